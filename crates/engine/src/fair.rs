//! The fair class at each step of a task's life: what has to be reported to the policy's queue.

use crate::sim::Simulation;
use coreward_policy::layout::{ENQUEUE_INITIAL, ENQUEUE_WAKEUP};
use coreward_policy::{Entity, Feature};

/// Why a task joins a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueue {
    /// It slept.
    Wakeup,
    /// It has just been created.
    New,
    /// It waited on another CPU.
    Migration,
}

impl Enqueue {
    fn flags(self) -> u32 {
        match self {
            Enqueue::Wakeup => ENQUEUE_WAKEUP,
            Enqueue::New => ENQUEUE_INITIAL,
            Enqueue::Migration => 0,
        }
    }
}

impl Simulation<'_> {
    /// The entity of a task that is on `cpu`'s queue, running or not.
    pub(crate) fn entity(&self, task: u32, cpu: usize) -> &Entity {
        let c = &self.cpus[cpu];
        if c.curr == Some(task) { &c.fair.rq.curr } else { &self.tasks[task as usize].se }
    }

    /// A new task begins with its parent, which creates it on `cpu`.
    pub(crate) fn task_fork(&mut self, task: u32, cpu: usize) {
        self.update_curr(cpu, cpu);
        self.cpus[cpu].fair.rq.task_fork_fair(&self.sys, &mut self.tasks[task as usize].se);
    }

    /// A woken task leaves `cpu`, where it slept.
    pub(crate) fn migrate_task_rq(&mut self, task: u32, cpu: usize) {
        self.cpus[cpu].fair.rq.migrate_task_rq_fair(&self.sys, &mut self.tasks[task as usize].se);
    }

    /// Places a task that comes to `cpu`'s queue, and queues it.
    pub(crate) fn enqueue_entity(&mut self, cpu: usize, task: u32, why: Enqueue) {
        self.cpus[cpu].fair.enqueue(&self.sys, &mut self.tasks[task as usize].se, why.flags());
    }

    /// Takes a waiting task off `cpu`'s queue. It moves elsewhere, or it `sleep`s and has been queued for long enough.
    pub(crate) fn dequeue_waiting(&mut self, cpu: usize, task: u32, sleep: bool) {
        self.cpus[cpu].fair.dequeue(&self.sys, &mut self.tasks[task as usize].se, sleep);
    }

    /// Is the task a buddy, which its CPU prefers at the next switch?
    pub(crate) fn is_buddy(&self, task: u32, cpu: usize) -> bool {
        let rq = &self.cpus[cpu].fair.rq;
        rq.next == task as i32 || rq.last == task as i32
    }

    /// At a tick: is the current task's turn over?
    pub(crate) fn entity_tick(&mut self, cpu: usize) {
        if self.cpus[cpu].fair.rq.entity_tick(&self.sys) {
            self.cpus[cpu].need_resched = true;
        }
    }

    /// Should the task that just came to `cpu`'s queue run in place of the current one?
    pub(crate) fn wakeup_preempt(&mut self, task: u32, cpu: usize, by: usize, wake_flags: u32) {
        let idle = self.cpus[cpu].curr.is_none();
        if idle {
            self.resched_curr(cpu, by);
        } else {
            self.wakeup_preempt_fair(task, cpu, by, wake_flags);
        }
        let lazy = !idle && self.feature(Feature::PREEMPT_LAZY);
        let c = &mut self.cpus[cpu];
        c.skips_clock_update |= c.need_resched && !lazy;
    }

    fn wakeup_preempt_fair(&mut self, task: u32, cpu: usize, by: usize, wake_flags: u32) {
        self.charge_curr(cpu);
        let d = loop {
            let c = &mut self.cpus[cpu];
            let se = &self.tasks[task as usize].se;
            let d = c.fair.wakeup_preempt(&self.sys, se, wake_flags, c.need_resched, c.clock);
            // a delayed sleeper that is due leaves the queue, and the choice is made again
            match c.fair.waiting_at(d.picked) {
                Some(picked) if self.tasks[picked as usize].is_delayed() => {
                    self.finish_delayed_dequeue(cpu, picked);
                }
                _ => break d,
            }
        };
        self.counters.queue_reasons[d.reason as usize] += 1;
        if d.preempts != 0 {
            self.resched_curr(cpu, by);
        }
    }

    /// `sched_yield`.
    pub(crate) fn yield_task(&mut self, cpu: usize) {
        self.schedstat[cpu].yld_count += 1;
        self.update_curr(cpu, cpu);
        self.cpus[cpu].fair.rq.yield_task_fair(&self.sys);
    }
}
