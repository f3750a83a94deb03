//! Messages between tasks over sockets, whether or not they wake anybody.
//!
//! A wakeup shows that a reader slept. One that is awake takes what has arrived without a wakeup; but in another run it
//! may be ahead of the sender, and has to wait. So each such message is something that is sent and waited for, as a wakeup
//! is.

use std::collections::HashMap;

use super::channel::Via;
use super::draft::Draft;
use super::{Current, Import, ImportError};
use crate::event::{Channel, Event};

/// Data that arrived at a socket and was not received yet.
struct Message {
    /// When it arrived, and the CPU that it was sent on.
    at: u64,
    cpu: usize,
    /// The task that sent it, and where that stands among its drafts. `None` if it is none that is imported.
    sent: Option<(usize, usize)>,
    /// It woke a task, and is known as a wakeup.
    woke: bool,
}

/// What has arrived at the sockets of a recording.
#[derive(Default)]
pub(super) struct Sockets {
    messages: HashMap<u32, Message>,
    /// The CPU on which data of a socket was received last, and where that data went through.
    receivers: HashMap<u32, (usize, Via)>,
    /// The socket at which data arrived on each CPU, if nothing but wakeups came after it.
    latest: Vec<Option<u32>>,
}

impl Sockets {
    fn arrives(&mut self, at: u64, cpu: usize, socket: u32, sent: Option<(usize, usize)>) {
        self.messages.entry(socket).or_insert(Message { at, cpu, sent, woke: false });
        self.latest.resize(self.latest.len().max(cpu + 1), None);
        self.latest[cpu] = Some(socket);
    }

    /// Something happens on a CPU that is no wakeup.
    pub(super) fn passes(&mut self, cpu: usize) {
        if let Some(latest) = self.latest.get_mut(cpu) {
            *latest = None;
        }
    }

    /// A task is woken on a CPU that sleeps on `on`, or is about to sleep: was it by what arrived there just now?
    pub(super) fn wakes(&mut self, cpu: usize, on: Option<Channel>) -> bool {
        let Some(socket) = self.latest.get(cpu).copied().flatten() else { return false };
        let at_socket = match on {
            Some(Channel::Socket(other)) => other == socket,
            Some(Channel::Epoll(_) | Channel::Poll) | None => true,
            Some(_) => false,
        };
        if let Some(message) = self.messages.get_mut(&socket) {
            message.woke |= at_socket;
        }
        at_socket
    }
}

/// Over which sockets tasks receive messages of each other.
#[derive(Default)]
pub(super) struct Connections(HashMap<(usize, usize), (u32, bool)>);

impl Connections {
    fn note(&mut self, receiver: usize, sender: usize, socket: u32) {
        let (first, several) = self.0.entry((receiver, sender)).or_insert((socket, false));
        *several |= *first != socket;
    }

    /// Are there several from one task to another?
    pub(super) fn several(&self, receiver: usize, sender: usize) -> bool {
        self.0.get(&(receiver, sender)).is_some_and(|(_, several)| *several)
    }
}

/// What a task receives before it sends again: all of it has to have come by then.
#[derive(Default)]
pub(super) struct Batch {
    /// When it received the first of those that were there already; 0 if it has sent something since, or slept.
    since: u64,
    /// The waits for the others.
    others: Vec<Draft>,
}

impl Import {
    /// Data arrives at a socket. Whether anybody waits for it shows when it is received.
    pub(super) fn arrived(&mut self, event: &Event, cpu: usize, socket: u32) -> Result<(), ImportError> {
        let (_, sender) = self.cause(event, cpu, None)?;
        let receiver = self.sockets.receivers.get(&socket).copied();
        let sent = sender.map(|sender| {
            self.account_task(sender, event.at);
            self.begin_batch(sender, 0);
            if let Some((from, via)) = receiver {
                self.moves_lines(sender, via, from, cpu);
            }
            self.step(sender, Some(Draft::Sent));
            (sender, self.tasks[sender].drafts.len() - 1)
        });
        self.sockets.arrives(event.at, cpu, socket, sent);
        Ok(())
    }

    /// The task that runs receives data of a socket. If it was awake when that came, it waits for it in the workload where
    /// it sleeps otherwise when it waits for sockets: at once, unless it was there when the task looked for the one before.
    pub(super) fn received(&mut self, at: u64, cpu: usize, socket: u32) {
        let Current::Task(index) = self.cpus.current(cpu) else { return };
        let Some(Message { at: arrived, cpu: from, sent, woke }) = self.sockets.messages.remove(&socket)
        else {
            return;
        };
        if let Some((sender, _)) = sent {
            self.connections.note(index, sender, socket);
        }
        self.account(cpu, at);
        let later = arrived < self.tasks[index].batch.since;
        if !later {
            self.begin_batch(index, at);
        }
        let Some((sender, draft)) = sent.filter(|(sender, _)| self.exchange(*sender, index)) else {
            return;
        };
        let via = match self.tasks[index].listens {
            Some(Channel::Socket(_)) => Via::of(Channel::Socket(socket), index),
            on => on.and_then(|on| Via::of(on, index)),
        };
        if let Some(via) = via {
            self.channels.takes(via, index);
            self.sockets.receivers.insert(socket, (cpu, via));
            self.moves_lines(index, via, from, cpu);
        }
        if woke {
            return;
        }
        self.tasks[sender].drafts[draft] =
            Draft::Wake { task: index, via, awake: true, far_ns: 0, answer: false, nothing: false };
        let wait = Draft::Await { task: sender, via, awake: true, request: false, nothing: false };
        match later {
            true => self.tasks[index].batch.others.push(wait),
            false => self.step(index, Some(wait)),
        }
        self.report.messages += 1;
    }

    /// A task has sent or received a message whose lines another CPU had.
    fn moves_lines(&mut self, index: usize, via: Via, from: usize, to: usize) {
        let lines = self.options.machine.as_ref().map_or(0, |machine| machine.costs.message_lines);
        let ns = self.transfer_ns(from, to) * lines / 2;
        if ns > 0 {
            self.tasks[index].drafts.push(Draft::Lines { via, ns });
        }
    }

    /// Do both tasks belong to the workload?
    fn exchange(&self, sender: usize, receiver: usize) -> bool {
        sender != receiver && [sender, receiver].iter().all(|index| self.tasks[*index].left_out.is_none())
    }

    /// A task has received all that was there.
    pub(super) fn begin_batch(&mut self, index: usize, since: u64) {
        let before = std::mem::replace(&mut self.tasks[index].batch, Batch { since, others: Vec::new() });
        before.others.into_iter().for_each(|wait| self.step(index, Some(wait)));
    }
}
