//! Metrics say what the events say, and each of them can.

mod support;

use coreward_engine::Leaving;
use coreward_metrics::Metric;
use coreward_workload::Scale;
use support::{Event, MS, Run, Setup, hackbench, processes, spinners, uneven};

fn count(r: &Run, which: impl Fn(&Event) -> bool) -> f64 {
    r.events.iter().filter(|e| which(e)).count() as f64
}

#[test]
fn counts_are_those_of_the_events() {
    for machine in ["1c", "2c", "2n2l2c2t", "4c"] {
        let r = Setup::new(machine, uneven()).run();
        // all is measured but the end of the first task
        let blocked = |e: &Event| matches!(*e, Event::Switch { prev, leaving, .. } if prev != 0 && leaving != Leaving::Preempted);
        assert_eq!(r.get(Metric::context_switches_voluntary), count(&r, blocked) - 1.0, "{machine}");
        let preempted =
            |e: &Event| matches!(*e, Event::Switch { prev, leaving: Leaving::Preempted, .. } if prev != 0);
        assert_eq!(r.get(Metric::context_switches_involuntary), count(&r, preempted), "{machine}");
        let woken = |e: &Event| matches!(e, Event::Waking { new: false, .. });
        assert_eq!(r.get(Metric::wakeups), count(&r, woken), "{machine}");
        let moved = |e: &Event| matches!(e, Event::Migrate { .. });
        assert_eq!(r.get(Metric::cpu_migrations), count(&r, moved), "{machine}");
        let scanned = |e: &Event| if let Event::Decision(d) = e { f64::from(d.cpus_scanned) } else { 0.0 };
        // what is looked at before the first task runs is not measured, nor is it after the first task's
        // last wakeup has let it end the measured part
        let runs = |e: &Event| matches!(e, Event::Switch { .. });
        let wakes_main = |e: &Event| matches!(e, Event::Waking { pid: 1, .. });
        let from = r.events.iter().position(runs).expect("it runs");
        let to = r.events.iter().rposition(wakes_main).expect("its children wake it");
        let inside: f64 = r.events[from..=to].iter().map(scanned).sum();
        let all: f64 = r.events.iter().map(scanned).sum();
        let measured = r.get(Metric::cpus_scanned);
        assert!((inside..=all).contains(&measured), "{machine}: {measured} of {all}, inside {inside}");
    }
}

#[test]
fn busy_time_is_the_time_that_tasks_take_where_nothing_costs() {
    // 3 x 40 ms, on whichever CPUs
    for machine in ["1c", "2c", "4c", "2l2c"] {
        let r = Setup::free(machine, spinners(3, 40 * MS)).run();
        assert_eq!((r.get(Metric::busy_s) * 1e9).round() as u64, 120 * MS, "{machine}");
        assert!((r.get(Metric::cpus_utilized) * r.get(Metric::runtime_s) - 0.12).abs() < 1e-9);
    }
}

#[test]
fn one_cpu_idles_only_if_nobody_waits() {
    assert_eq!(Setup::new("1c", uneven()).run().get(Metric::idle_while_waiting_s), 0.0);
}

#[test]
fn every_metric_is_there_and_moves() {
    let runs = [
        Setup::new("2n2l2c2t", hackbench("-g 2 -f 6 -l 100 -T --pipe")).run(),
        Setup::new("2n2l2c2t", uneven()).run(),
        Setup::new("4c", uneven()).run(),
        Setup::new("2l4c", processes(2, 8, MS, MS, 50)).feature("CACHE_AWARE_WAKEUP", true).run(),
        Setup::new("2l4c", processes(2, 3, MS, MS, 50)).profile("linux-7.3").run(),
        Setup::new("4c", coreward_workload::parse("schbench -m 2 -t 3 -r 2", Scale::FULL).unwrap()).run(),
    ];
    for metric in Metric::ALL {
        let values: Vec<_> = runs.iter().filter_map(|r| r.outcome.metrics.get(*metric)).collect();
        assert!(!values.is_empty() && values.iter().any(|v| *v != 0.0), "{}: {values:?}", metric.name());
        assert!(values.iter().all(|v| *v >= 0.0), "{}: {values:?}", metric.name());
    }
}

#[test]
fn messages_are_counted_only_where_there_are_some() {
    assert_eq!(Setup::new("2c", uneven()).run().outcome.metrics.get(Metric::messages_per_s), None);
}
