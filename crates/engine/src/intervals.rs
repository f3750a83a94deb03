//! Metrics of the measured part, interval by interval.

use coreward_metrics::Metrics;
use coreward_policy::Code;

use crate::counters::Counters;
use crate::queue::NEVER;
use crate::sim::{START_NS, SimError, Simulation};

/// How many intervals a run may have: their metrics take some 7 KB each.
const MOST: usize = 100_000;

/// A span of the measured part, and what was measured in it.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its start, in ns since the start of the measured part.
    pub from_ns: u64,
    /// Its end, likewise. The last interval may be shorter than the others.
    pub to_ns: u64,
    /// The metrics of this span alone.
    pub metrics: Metrics,
}

/// The intervals of a run.
pub(crate) struct Intervals {
    /// Length of an interval.
    every_ns: u64,
    /// Simulated time at which the current interval ends; never before the measured part begins.
    ends_at: u64,
    /// What was counted in the intervals that have ended.
    ended: Counters,
    list: Vec<Interval>,
}

impl Intervals {
    /// One interval, which never ends.
    pub(crate) fn none(code: &Code) -> Intervals {
        Intervals { every_ns: NEVER, ends_at: NEVER, ended: Counters::new(code), list: Vec::new() }
    }

    /// When the current interval ends.
    #[inline]
    pub(crate) fn ends_at(&self) -> u64 {
        self.ends_at
    }

    /// The measured part begins at `now`.
    pub(crate) fn start(&mut self, code: &Code, now: u64) {
        *self = Intervals {
            every_ns: self.every_ns,
            ends_at: now.saturating_add(self.every_ns),
            ..Intervals::none(code)
        };
    }

    /// What was counted in the intervals that have ended.
    pub(crate) fn ended(&self) -> &Counters {
        &self.ended
    }

    /// Adds what was counted elsewhere to the sum.
    pub(crate) fn add(&mut self, counted: &Counters) {
        self.ended.add(counted);
    }

    pub(crate) fn take(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.list)
    }
}

impl Simulation<'_> {
    /// Also measures in intervals of `every_ns`, at least 1.
    pub fn with_intervals(mut self, every_ns: u64) -> Self {
        self.intervals.every_ns = every_ns.max(1);
        self.intervals.start(self.sys.code(), self.marked_start.unwrap_or(START_NS));
        self
    }

    /// Ends the intervals that end by `now`, the time of the next event.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn end_intervals(&mut self, now: u64) -> Result<(), SimError> {
        while self.intervals.ends_at <= now && self.measured.is_none() {
            if self.intervals.list.len() >= MOST {
                return Err(SimError::Intervals { most: MOST });
            }
            self.now = self.intervals.ends_at;
            self.end_interval();
        }
        Ok(())
    }

    /// Ends the current interval here, whatever its length. What was counted in it moves to the sum.
    pub(crate) fn end_interval(&mut self) {
        self.settle_bills();
        self.settle_conservation();
        let start = self.marked_start.unwrap_or(START_NS);
        let from_ns = self.intervals.list.last().map_or(0, |last| last.to_ns);
        let to_ns = self.now - start;
        if to_ns > from_ns && self.intervals.every_ns != NEVER {
            let metrics = self.counters.metrics(to_ns - from_ns);
            self.intervals.list.push(Interval { from_ns, to_ns, metrics });
        }
        let counted = std::mem::replace(&mut self.counters, Counters::new(self.sys.code()));
        self.events_before += counted.sim_events();
        self.intervals.ended.add(&counted);
        if let Some(window) = &mut self.skip.window {
            window.add(&counted);
        }
        self.intervals.ends_at = self.now.saturating_add(self.intervals.every_ns);
    }

    /// The counters of the whole measured part. The current interval ends.
    pub(crate) fn all_counters(&mut self) -> &Counters {
        self.end_interval();
        &self.intervals.ended
    }
}
