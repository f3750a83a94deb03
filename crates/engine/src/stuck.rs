//! What tasks are waiting for when no event is left.

use std::cmp::Reverse;

use coreward_workload::Op;

use crate::sim::Simulation;
use crate::task::{State, Task};

impl Simulation<'_> {
    /// Does nothing happen any more but that the first task wakes up and ends the run? `slot` is that of the next event.
    #[inline]
    pub(crate) fn only_ends(&self, slot: usize) -> bool {
        let first_task = || self.sleepers.peek().is_some_and(|Reverse((_, task))| *task == 0);
        let idle = || self.cpus.iter().all(|cpu| cpu.curr.is_none());
        slot == self.cpus.len() && self.sleepers.len() == 1 && first_task() && idle()
    }

    /// Ends the first wait for a channel although nothing has come. False if nobody waits for one.
    ///
    /// Each recorded task takes from a channel as often as in the recording. So one may have taken early what another one
    /// was to take, which those wait for that put it there.
    pub(crate) fn lend(&mut self) -> bool {
        let channels = &mut self.shared.semaphores[self.shared.first_channel..];
        let Some(semaphore) = channels.iter_mut().find(|semaphore| !semaphore.waiters.is_empty()) else {
            return false;
        };
        semaphore.messages.push_back(None);
        semaphore.owed += 1;
        let Some((waiter, _)) = semaphore.waiters.pop_front() else { return false };
        self.lent += 1;
        let cpu = self.tasks[waiter as usize].cpu();
        self.timer_interrupt(cpu, waiter);
        true
    }

    /// A waiting task and what it waits for; preferably a task that does not wait for its children.
    pub(crate) fn stuck_task(&self) -> String {
        let waiting = || self.tasks.iter().filter(|task| task.state == State::Sleeping);
        let task = waiting().find(|task| !task.waits_for_children).or_else(|| waiting().next());
        task.map_or("no task waits".into(), |task| format!("task {} waits {}", task.policy.pid, reason(task)))
    }
}

fn reason(task: &Task) -> String {
    match task.op {
        Some(Op::Read { channel, .. }) => format!("to read channel {}", task.base + channel),
        Some(Op::ReadFrom { channel, .. } | Op::Poll { channel }) => format!("to read channel {channel}"),
        Some(Op::Write { channel, .. }) => format!("to write to channel {}", task.base + channel),
        Some(Op::WriteTo { channel, .. }) => format!("to write to channel {channel}"),
        Some(Op::WaitChildren) => "for its children".into(),
        Some(Op::Lock { mutex }) => format!("for mutex {}", mutex + task.sync.turn),
        Some(Op::CondWait { cond, .. }) => format!("for condition {cond}"),
        Some(Op::Barrier { barrier, .. }) => format!("at barrier {barrier}"),
        Some(Op::Await { flag }) => format!("for flag {}", task.base + flag),
        Some(Op::Down { semaphore, .. }) => format!("for semaphore {semaphore}"),
        Some(Op::TakeRequest) => format!("for a request at flag {}", task.base),
        op => format!("in {op:?}"),
    }
}
