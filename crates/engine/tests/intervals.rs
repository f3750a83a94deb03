//! Runs that are also measured in intervals.

mod support;

use coreward_engine::Outcome;
use coreward_metrics::Metric;
use coreward_workload::Scale;
use support::{MS, Workload, hackbench, run, single, sleep};

fn outcome(workload: &Workload, interval_ns: Option<u64>) -> Outcome {
    support::outcome("4c", workload, |simulation| match interval_ns {
        Some(ns) => simulation.with_intervals(ns),
        None => simulation,
    })
}

#[test]
fn intervals_add_up_to_the_run_and_change_nothing_in_it() {
    let workload = hackbench("-g 2 -f 5 -l 400 -T --pipe");
    let (whole, parts) = (outcome(&workload, None), outcome(&workload, Some(MS / 2)));
    assert!(whole.intervals.is_empty());
    assert!(parts.intervals.len() > 3, "{}", parts.intervals.len());
    let all = |outcome: &Outcome| outcome.metrics.iter().map(|(m, v)| (m.name(), v)).collect::<Vec<_>>();
    assert_eq!(all(&whole), all(&parts));
    assert_eq!((whole.events, whole.end_ns, whole.reasons), (parts.events, parts.end_ns, parts.reasons));
    for metric in [Metric::context_switches, Metric::wakeups, Metric::cpu_migrations, Metric::sim_events] {
        let sum: f64 = parts.intervals.iter().map(|interval| interval.metrics.get(metric).unwrap()).sum();
        assert_eq!(Some(sum), parts.metrics.get(metric), "{}", metric.name());
    }
    let busy: f64 =
        parts.intervals.iter().map(|interval| interval.metrics.get(Metric::busy_s).unwrap()).sum();
    assert!((busy - parts.metrics.get(Metric::busy_s).unwrap()).abs() < 1e-9);
}

#[test]
fn intervals_follow_each_other_from_the_start_to_the_end() {
    let parts = outcome(&single(&[run(5 * MS), sleep(4 * MS), run(2 * MS)]), Some(3 * MS));
    let spans: Vec<_> = parts.intervals.iter().map(|interval| (interval.from_ns, interval.to_ns)).collect();
    assert_eq!(spans[..3], [(0, 3 * MS), (3 * MS, 6 * MS), (6 * MS, 9 * MS)]);
    assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0));
    // the task sleeps from 5 to 9 ms: the first and the second have no wakeup, and so no latency of one
    let latencies = parts.intervals.iter().map(|i| i.metrics.get(Metric::wakeup_latency_us_p50).is_some());
    let wakeups = parts.intervals.iter().map(|i| i.metrics.get(Metric::wakeups) > Some(0.0));
    assert!(
        latencies.clone().eq(wakeups)
            && latencies.clone().any(|some| some)
            && !latencies.clone().all(|some| some)
    );
    let runtime = parts.metrics.get(Metric::runtime_s).unwrap() * 1e9;
    assert!((spans.last().unwrap().1 as f64 - runtime).abs() < 1.0);
    let used: Vec<_> =
        parts.intervals.iter().map(|i| i.metrics.get(Metric::cpus_utilized).unwrap()).collect();
    // 3 ms of work, then 2 ms and a bit, then asleep all the time
    assert!(used[0] > 0.99 && (0.6..0.8).contains(&used[1]) && used[2] < 0.1, "{used:?}");
}

/// A percentile over the seconds of a run is none of its intervals, which need not begin with a second.
#[test]
fn percentiles_over_seconds_are_of_the_whole_run_only() {
    let workload = coreward_workload::parse("schbench -m 1 -t 2 -r 2", Scale::FULL).unwrap();
    let parts = outcome(&workload, Some(700 * MS));
    assert!(parts.metrics.get(Metric::events_per_s_p50).unwrap() > 0.0);
    for interval in &parts.intervals {
        assert!(interval.metrics.get(Metric::events_per_s).is_some());
        assert_eq!(interval.metrics.get(Metric::events_per_s_p50), None);
    }
}
