//! Through which object a wakeup went.
//!
//! A task that sleeps on a futex, a pipe, a socket or an instance of epoll goes on with whatever comes there, whoever it
//! is from; and if several tasks sleep on one, any of them takes it. That is a semaphore, unless all that sleep there
//! are woken at once: then each needs its own wakeup.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::event::Channel;

/// Wakeups by a task that follow each other so fast, in ns of time, are of one system call.
const AT_ONCE_NS: u64 = 3_000;

/// A channel of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Via {
    /// An object, which several tasks may sleep on.
    Object(Channel),
    /// What a task waits for at several places at once.
    Own(usize),
    /// What tasks of a class wake a task for.
    Class(usize, u32),
}

impl Via {
    /// The channel of a task that sleeps on something. `None` if it is not known, or nothing that a task wakes by.
    pub(super) fn of(channel: Channel, task: usize) -> Option<Via> {
        match channel {
            Channel::Poll | Channel::Child => Some(Via::Own(task)),
            Channel::Time | Channel::Other => None,
            object => Some(Via::Object(object)),
        }
    }
}

#[derive(Default)]
struct Seen {
    takers: BTreeSet<usize>,
    /// Who woke the last taker, when, and which.
    last: Option<(usize, u64, usize)>,
    /// Several takers were woken at once.
    broadcast: bool,
    /// Messages came over sockets.
    socket: bool,
}

/// The channels of a recording.
#[derive(Default)]
pub(super) struct Channels(HashMap<Via, Seen>);

impl Channels {
    /// A task wakes another one through a channel.
    pub(super) fn wakes(&mut self, via: Via, waker: usize, taker: usize, at: u64) {
        let seen = self.0.entry(via).or_default();
        seen.takers.insert(taker);
        let at_once = |(last, when, other): (usize, u64, usize)| {
            last == waker && other != taker && at.saturating_sub(when) < AT_ONCE_NS
        };
        seen.broadcast |= seen.last.is_some_and(at_once);
        seen.last = Some((waker, at, taker));
    }

    /// A task takes a message of a socket from a channel.
    pub(super) fn takes(&mut self, via: Via, taker: usize) {
        let seen = self.0.entry(via).or_default();
        seen.takers.insert(taker);
        seen.socket = true;
    }

    /// Do messages over sockets come through it?
    pub(super) fn has_sockets(&self, via: Via) -> bool {
        self.0.get(&via).is_some_and(|seen| seen.socket)
    }

    /// Is it a channel in the workload?
    pub(super) fn has(&self, via: Via) -> bool {
        self.0.get(&via).is_some_and(|seen| !seen.broadcast)
    }

    /// It is a channel, however tasks are woken through it.
    pub(super) fn add(&mut self, via: Via, socket: bool) {
        let seen = self.0.entry(via).or_default();
        seen.broadcast = false;
        seen.socket |= socket;
    }

    /// The number of each channel that is one in the workload.
    pub(super) fn numbers(&self) -> BTreeMap<Via, u32> {
        let mut channels: Vec<Via> =
            self.0.iter().filter(|(_, seen)| !seen.broadcast).map(|(via, _)| *via).collect();
        channels.sort_unstable();
        channels.into_iter().zip(0..).collect()
    }

    /// How many of these have several takers.
    pub(super) fn shared(&self) -> u64 {
        self.0.values().filter(|seen| !seen.broadcast && seen.takers.len() > 1).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_none_if_all_that_sleep_there_are_woken_at_once() {
        let (queue, barrier) = (Via::Object(Channel::Futex(1)), Via::Object(Channel::Futex(2)));
        let mut channels = Channels::default();
        for (via, taker, at) in
            [(queue, 1, 0), (queue, 2, AT_ONCE_NS), (barrier, 1, 0), (barrier, 2, AT_ONCE_NS - 1)]
        {
            channels.wakes(via, 0, taker, at);
        }
        assert_eq!(channels.numbers(), [(queue, 0)].into());
        assert_eq!(channels.shared(), 1);
        // one task that is woken twice, and two wakers, are not at once
        let own = Via::of(Channel::Poll, 7).unwrap();
        channels.wakes(own, 0, 7, 0);
        channels.wakes(own, 0, 7, 1);
        let pipe = Via::of(Channel::PipeData(3), 7).unwrap();
        channels.wakes(pipe, 0, 7, 0);
        channels.wakes(pipe, 1, 8, 1);
        assert_eq!((channels.numbers().len(), channels.shared()), (3, 2));
        assert_eq!(Via::of(Channel::Time, 7), None);
    }
}
