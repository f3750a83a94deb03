//! What tasks are waiting for when no event is left.

use coreward_workload::Op;

use crate::sim::Simulation;
use crate::task::{State, Task};

impl Simulation<'_> {
    /// Ends the first wait for a channel although nothing has come. False if nobody waits for one.
    ///
    /// Each recorded task takes from a channel as often as in the recording. So one may have taken early what another one
    /// was to take, which those wait for that put it there.
    pub(crate) fn lend(&mut self) -> bool {
        let channels = &mut self.shared.semaphores[self.shared.first_channel..];
        let Some(semaphore) = channels.iter_mut().find(|semaphore| !semaphore.waiters.is_empty()) else {
            return false;
        };
        semaphore.count += 1;
        semaphore.owed += 1;
        let Some(waiter) = semaphore.waiters.pop_front() else { return false };
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
        Some(Op::Down { semaphore }) => format!("for semaphore {semaphore}"),
        Some(Op::TakeRequest) => format!("for a request at flag {}", task.base),
        op => format!("in {op:?}"),
    }
}
