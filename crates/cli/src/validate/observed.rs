//! What tracepoints show of a run, real or simulated.

use std::collections::BTreeMap;

use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_machine::Machine;
use coreward_measure::{Distance, Scheduling};
use coreward_metrics::stats::percentile;
use serde::{Deserialize, Serialize};

/// Medians over the runs that were observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Observed {
    /// From a wakeup to running, in us.
    pub(super) wakeup_us_p50: f64,
    /// As above.
    pub(super) wakeup_us_p99: f64,
    /// How long a task keeps a CPU, in us.
    pub(super) run_us_p50: f64,
    /// As above.
    pub(super) run_us_p90: f64,
    /// Migrations by the distance that they went; distances that none went are left out.
    pub(super) migrations_by_distance: BTreeMap<String, f64>,
    /// What tasks waited for when they blocked, each with its share in percent. The simulation does not tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) waits_pct: BTreeMap<String, f64>,
    /// How much more CPU time the benchmark took than in the round before, because it was recorded, in percent. None of a
    /// simulation, which is observed for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) recording_pct: Option<f64>,
}

impl Observed {
    pub(super) fn of(scheduling: &Scheduling) -> Observed {
        let distances = Distance::ALL.iter().zip(scheduling.migrations()).filter(|(_, n)| *n > 0);
        let waits = scheduling.waits().into_iter();
        Observed {
            wakeup_us_p50: scheduling.wakeup_latency_us(50.0).unwrap_or(0.0),
            wakeup_us_p99: scheduling.wakeup_latency_us(99.0).unwrap_or(0.0),
            run_us_p50: scheduling.run_us(50.0).unwrap_or(0.0),
            run_us_p90: scheduling.run_us(90.0).unwrap_or(0.0),
            migrations_by_distance: distances.map(|(d, n)| (d.name().to_owned(), n as f64)).collect(),
            waits_pct: waits.map(|(what, pct)| (what.to_owned(), pct)).collect(),
            recording_pct: None,
        }
    }

    /// The median of each figure; None of nothing.
    pub(super) fn median(all: &[&Observed]) -> Option<Observed> {
        let median = |of: &dyn Fn(&Observed) -> f64| {
            percentile(&all.iter().map(|o| of(o)).collect::<Vec<_>>(), 50.0).unwrap_or(0.0)
        };
        // what one of them does not have it has 0 times
        let medians = |of: fn(&Observed) -> &BTreeMap<String, f64>| {
            let mut names: Vec<&String> = all.iter().flat_map(|o| of(o).keys()).collect();
            names.sort_unstable();
            names.dedup();
            let value = |name: &String| median(&|o| of(o).get(name).copied().unwrap_or(0.0));
            names.into_iter().map(|name| (name.clone(), value(name))).collect()
        };
        (!all.is_empty()).then(|| Observed {
            wakeup_us_p50: median(&|o| o.wakeup_us_p50),
            wakeup_us_p99: median(&|o| o.wakeup_us_p99),
            run_us_p50: median(&|o| o.run_us_p50),
            run_us_p90: median(&|o| o.run_us_p90),
            migrations_by_distance: medians(|o| &o.migrations_by_distance),
            waits_pct: medians(|o| &o.waits_pct),
            recording_pct: percentile(&all.iter().filter_map(|o| o.recording_pct).collect::<Vec<_>>(), 50.0),
        })
    }
}

/// How far two CPUs of a machine are from each other.
pub(super) fn distance(machine: &Machine, from: usize, to: usize) -> Distance {
    match (machine.cpus.get(from), machine.cpus.get(to)) {
        (Some(a), Some(b)) if a.core == b.core => Distance::Smt,
        (Some(a), Some(b)) if a.llc == b.llc => Distance::Llc,
        (Some(a), Some(b)) if a.node == b.node => Distance::Node,
        _ => Distance::Remote,
    }
}

/// Sees a simulated run as the tracepoints see a real one.
pub(super) struct Observer<'a> {
    machine: &'a Machine,
    pub(super) scheduling: Scheduling,
}

impl<'a> Observer<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        Observer { machine, scheduling: Scheduling::default() }
    }
}

impl Trace for Observer<'_> {
    fn fork(&mut self, _: u64, _: i32, _: i32, _: u32, _: u32) {}

    fn waking(&mut self, when: Moment, _: usize, _: Waker, pid: i32, _: usize, new: bool) {
        // a new task has a tracepoint of its own, which the recording leaves out
        if !new {
            self.scheduling.waking(when.at, pid);
        }
    }

    fn migrate(&mut self, _: u64, _: usize, _: i32, from: usize, to: usize) {
        self.scheduling.migrated(distance(self.machine, from, to));
    }

    fn switch(&mut self, when: Moment, _: usize, prev: i32, leaving: Leaving, next: i32) {
        // task 0 is the idle task
        if prev != 0 {
            self.scheduling.stops(when.at, prev, leaving != Leaving::Preempted);
        }
        if next != 0 {
            self.scheduling.starts(when.at, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_one_run_does_not_have_is_zero_there() {
        let of = |waits: &[(&str, f64)], p50| Observed {
            wakeup_us_p50: p50,
            waits_pct: waits.iter().map(|(what, pct)| ((*what).to_owned(), *pct)).collect(),
            ..Observed::default()
        };
        let (a, b, c) =
            (of(&[("futex", 9.0)], 1.0), of(&[("pipe read", 5.0)], 7.0), of(&[("pipe read", 6.0)], 3.0));
        let median = Observed::median(&[&a, &b, &c]).unwrap();
        assert_eq!(
            (median.wakeup_us_p50, median.waits_pct["futex"], median.waits_pct["pipe read"]),
            (3.0, 0.0, 5.0)
        );
        assert_eq!(Observed::median(&[]), None);
    }

    #[test]
    fn distances_are_those_of_the_machine() {
        let machine = Machine::load("2n2l2c2t").unwrap();
        let far = |to| distance(&machine, 0, to);
        let all: Vec<Distance> = (1..machine.nr_cpus()).map(far).collect();
        for distance in Distance::ALL {
            assert!(all.contains(&distance), "{distance:?} in {all:?}");
        }
    }
}
