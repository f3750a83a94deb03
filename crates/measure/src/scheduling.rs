//! What a scheduler did with tasks, from the events of its tracepoints. Real and simulated runs go through the same
//! code, so that their figures mean the same.

use std::collections::{BTreeMap, HashMap};

use coreward_metrics::LatencyHistogram;

/// How far a migration went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// To the SMT sibling.
    Smt,
    /// To another core of the last-level cache.
    Llc,
    /// To another last-level cache of the NUMA node.
    Node,
    /// To another NUMA node.
    Remote,
}

impl Distance {
    /// All, nearest first.
    pub const ALL: [Distance; 4] = [Distance::Smt, Distance::Llc, Distance::Node, Distance::Remote];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Distance::Smt => "smt",
            Distance::Llc => "llc",
            Distance::Node => "node",
            Distance::Remote => "remote",
        }
    }
}

/// Collects the events of a set of tasks. Times are in ns.
#[derive(Clone, Debug, Default)]
pub struct Scheduling {
    /// When tasks were woken that have not run since.
    woken: HashMap<i32, u64>,
    /// Since when tasks run.
    running: HashMap<i32, u64>,
    latency: LatencyHistogram,
    runs: LatencyHistogram,
    migrations: [u64; 4],
    waits: BTreeMap<&'static str, u64>,
}

impl Scheduling {
    /// A blocked task was made runnable (sched_waking).
    pub fn waking(&mut self, now: u64, pid: i32) {
        self.woken.entry(pid).or_insert(now);
    }

    /// A task begins to run.
    pub fn starts(&mut self, now: u64, pid: i32) {
        if let Some(woken) = self.woken.remove(&pid) {
            self.latency.record(now.saturating_sub(woken));
        }
        self.running.insert(pid, now);
    }

    /// A task leaves its CPU: it blocks or exits, or it is preempted.
    pub fn stops(&mut self, now: u64, pid: i32, blocks: bool) {
        if blocks {
            // a wakeup while it was still running made it wait for nothing
            self.woken.remove(&pid);
        }
        if let Some(since) = self.running.remove(&pid) {
            self.runs.record(now.saturating_sub(since));
        }
    }

    /// A task came to another CPU.
    pub fn migrated(&mut self, distance: Distance) {
        self.migrations[distance as usize] += 1;
    }

    /// A task blocked because of this. Not every one need be told: only shares count.
    pub fn waits_for(&mut self, what: &'static str) {
        *self.waits.entry(what).or_default() += 1;
    }

    /// The time from a wakeup to running that `percent` % of the wakeups did not exceed, in us.
    pub fn wakeup_latency_us(&self, percent: f64) -> Option<f64> {
        self.latency.percentile(percent).map(|ns| ns as f64 / 1e3)
    }

    /// The time that a task keeps a CPU which `percent` % of the turns did not exceed, in us.
    pub fn run_us(&self, percent: f64) -> Option<f64> {
        self.runs.percentile(percent).map(|ns| ns as f64 / 1e3)
    }

    /// Migrations over each of [`Distance::ALL`].
    pub fn migrations(&self) -> [u64; 4] {
        self.migrations
    }

    /// What tasks waited for when they blocked, with its share of the blocking switches in percent.
    pub fn waits(&self) -> BTreeMap<&'static str, f64> {
        let all: u64 = self.waits.values().sum();
        self.waits.iter().map(|(what, n)| (*what, 100.0 * *n as f64 / all.max(1) as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_from_the_wakeup_to_running() {
        let mut s = Scheduling::default();
        s.waking(1_000, 7);
        s.waking(1_200, 7);
        s.starts(1_500, 7);
        s.stops(3_500, 7, true);
        s.starts(9_000, 7);
        assert_eq!((s.wakeup_latency_us(99.0), s.run_us(50.0)), (Some(0.5), Some(2.0)));
    }

    #[test]
    fn a_task_that_is_woken_before_it_sleeps_has_no_latency() {
        let mut s = Scheduling::default();
        s.starts(0, 7);
        s.waking(10, 7);
        s.stops(20, 7, true);
        s.starts(5_000, 7);
        assert_eq!(s.wakeup_latency_us(50.0), None);
    }

    #[test]
    fn waits_are_shares() {
        let mut s = Scheduling::default();
        ["pipe_read", "pipe_read", "pipe_read", "futex"].iter().for_each(|what| s.waits_for(what));
        assert_eq!(s.waits(), BTreeMap::from([("futex", 25.0), ("pipe_read", 75.0)]));
    }
}
