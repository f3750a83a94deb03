//! Runs that skip their steady middle.

mod support;

use coreward_engine::Outcome;
use coreward_metrics::Metric;
use coreward_workload::{Scale, Workload};
use support::MS;

/// Shorter than the command's, so that the tests are fast.
const LEAST_WINDOW_NS: u64 = 50 * MS;

fn outcome(workload: &Workload, skip_pct: Option<f64>) -> Outcome {
    support::outcome("2c", workload, |simulation| match skip_pct {
        Some(pct) => simulation.with_skip(pct, LEAST_WINDOW_NS),
        None => simulation,
    })
}

fn workload(text: &str) -> Workload {
    coreward_workload::parse(text, Scale::FULL).unwrap()
}

fn get(outcome: &Outcome, metric: Metric) -> f64 {
    outcome.metrics.get(metric).unwrap_or_else(|| panic!("{}", metric.name()))
}

/// The relative difference in per cent.
fn off(whole: &Outcome, skipped: &Outcome, metric: Metric) -> f64 {
    100.0 * (get(skipped, metric) / get(whole, metric) - 1.0).abs()
}

#[test]
fn a_run_that_skips_its_middle_is_like_the_whole_one() {
    let workload = workload("perf bench sched pipe -l 200000 -T");
    let (whole, short) = (outcome(&workload, None), outcome(&workload, Some(2.0)));
    let skipped = short.skipped.expect("taking turns is steady");
    assert!(whole.skipped.is_none());
    assert!(short.events * 3 < whole.events * 2, "{} of {}", short.events, whole.events);
    assert!(skipped.work_pct <= 2.0 && skipped.switches_pct <= 2.0, "{skipped:?}");
    for metric in [Metric::runtime_s, Metric::context_switches, Metric::wakeups, Metric::busy_s] {
        assert!(off(&whole, &short, metric) < 2.0, "{}: {}", metric.name(), off(&whole, &short, metric));
    }
    // all messages are there, simulated or not
    let messages = |o: &Outcome| get(o, Metric::messages_per_s) * get(o, Metric::runtime_s);
    assert!((messages(&short) / messages(&whole) - 1.0).abs() < 1e-3);
}

#[test]
fn a_run_that_ends_early_is_simulated_whole() {
    let workload = workload("perf bench sched pipe -l 5000 -T");
    let (whole, short) = (outcome(&workload, None), outcome(&workload, Some(2.0)));
    assert!(short.skipped.is_none());
    let all = |outcome: &Outcome| outcome.metrics.iter().map(|(m, v)| (m.name(), v)).collect::<Vec<_>>();
    assert_eq!(all(&whole), all(&short));
    assert_eq!((whole.events, whole.end_ns), (short.events, short.end_ns));
}

#[test]
fn a_wider_interval_skips_more() {
    let workload = workload("tbench 4 -t 1");
    let skipped = |pct| outcome(&workload, Some(pct)).skipped.map_or(0, |skipped| skipped.skipped_ns);
    let (wide, narrow) = (skipped(5.0), skipped(0.01));
    assert!(wide > narrow, "{wide} {narrow}");
}

#[test]
fn a_workload_with_a_time_limit_lasts_as_long() {
    let workload = workload("sysbench threads --threads=4 --thread-yields=20 --thread-locks=4 --time=2 run");
    let (whole, short) = (outcome(&workload, None), outcome(&workload, Some(5.0)));
    let skipped = short.skipped.expect("yielding is steady");
    assert!(skipped.skipped_ns > 500 * MS, "{skipped:?}");
    assert!(off(&whole, &short, Metric::runtime_s) < 0.1);
    for metric in [Metric::events, Metric::events_per_s_p50, Metric::context_switches] {
        assert!(off(&whole, &short, metric) < 5.0, "{}: {}", metric.name(), off(&whole, &short, metric));
    }
}

#[test]
fn what_comes_in_bursts_is_not_skipped() {
    // hackbench changes its rates over tenths of seconds
    let workload = workload("hackbench -g 1 -f 4 -l 40000 -T");
    assert!(outcome(&workload, Some(0.5)).skipped.is_none());
}

#[test]
fn what_tasks_have_done_each_is_not_known_of_a_part_that_was_skipped() {
    let workload = workload("sysbench threads --threads=2 --thread-yields=200 --thread-locks=2 --time=1 run");
    let (whole, short) = (outcome(&workload, None), outcome(&workload, Some(5.0)));
    assert!(short.skipped.is_some(), "yielding is steady");
    for metric in [Metric::events, Metric::event_latency_us_avg] {
        assert!(off(&whole, &short, metric) < 5.0, "{}: {}", metric.name(), off(&whole, &short, metric));
    }
    assert!(whole.metrics.get(Metric::events_per_task_stddev).is_some());
    assert_eq!(short.metrics.get(Metric::events_per_task_stddev), None);
}
