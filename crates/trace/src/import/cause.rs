//! Why a task's wait ended.

use serde::Serialize;

use crate::event::Handler;

/// What woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another task, which is imported too.
    Task,
    /// A timer.
    Timer,
    /// The network.
    Network,
    /// A block device.
    Block,
    /// An interrupt, of which the recording does not say what it was for.
    Interrupt,
    /// A task that is left out.
    LeftOut,
    /// The recording does not say it.
    Unknown,
}

impl Cause {
    /// All, in the order of [`Causes`].
    pub const ALL: [Cause; 7] = [
        Cause::Task,
        Cause::Timer,
        Cause::Network,
        Cause::Block,
        Cause::Interrupt,
        Cause::LeftOut,
        Cause::Unknown,
    ];

    /// Does it come from outside, without a timer that the task has armed?
    pub(super) fn is_device(self) -> bool {
        matches!(self, Cause::Network | Cause::Block | Cause::LeftOut)
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Task => "task",
            Cause::Timer => "timer",
            Cause::Network => "network",
            Cause::Block => "block device",
            Cause::Interrupt => "interrupt",
            Cause::LeftOut => "task left out",
            Cause::Unknown => "unknown",
        }
    }
}

impl From<Handler> for Cause {
    fn from(handler: Handler) -> Cause {
        match handler {
            Handler::Timer => Cause::Timer,
            Handler::Network => Cause::Network,
            Handler::Block => Cause::Block,
            Handler::Other => Cause::Interrupt,
        }
    }
}

/// How many waits ended by each cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// See [`Cause::Task`].
    pub task: u64,
    /// See [`Cause::Timer`].
    pub timer: u64,
    /// See [`Cause::Network`].
    pub network: u64,
    /// See [`Cause::Block`].
    pub block: u64,
    /// See [`Cause::Interrupt`].
    pub interrupt: u64,
    /// See [`Cause::LeftOut`].
    pub left_out: u64,
    /// See [`Cause::Unknown`].
    pub unknown: u64,
}

impl Causes {
    /// One more.
    pub fn count(&mut self, cause: Cause) {
        *self.slot(cause) += 1;
    }

    /// How many by this cause.
    pub fn of(&self, cause: Cause) -> u64 {
        let mut copy = *self;
        *copy.slot(cause)
    }

    /// How many in all.
    pub fn all(&self) -> u64 {
        Cause::ALL.iter().map(|cause| self.of(*cause)).sum()
    }

    /// These and others.
    pub fn add(&mut self, other: &Causes) {
        Cause::ALL.iter().for_each(|cause| *self.slot(*cause) += other.of(*cause));
    }

    fn slot(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Task => &mut self.task,
            Cause::Timer => &mut self.timer,
            Cause::Network => &mut self.network,
            Cause::Block => &mut self.block,
            Cause::Interrupt => &mut self.interrupt,
            Cause::LeftOut => &mut self.left_out,
            Cause::Unknown => &mut self.unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_count() {
        let mut causes = Causes::default();
        for (n, cause) in Cause::ALL.iter().enumerate() {
            (0..=n).for_each(|_| causes.count(*cause));
        }
        for (n, cause) in Cause::ALL.iter().enumerate() {
            assert_eq!(causes.of(*cause), n as u64 + 1);
        }
        causes.add(&causes.clone());
        assert_eq!((causes.all(), causes.unknown), (56, 14));
    }
}
