//! Waking tasks: choosing a CPU, queueing the task there, and notifying that CPU.

use crate::affinity::contains;
use crate::contention::Moment;
use crate::cpu::{Activation, Activity};
use crate::fair::Enqueue;
use crate::queue::NEVER;
use crate::sim::Simulation;
use crate::task::{State, WaitsIn};
use crate::trace::Waker;
use coreward_metrics::Part;
use coreward_policy::Distance;
use coreward_policy::layout::{WF_FORK, WF_SYNC, WF_TTWU};
use coreward_policy::{Decision, Feature, Placement};

/// Cache lines of a task that its waker reads and writes: state, on_cpu with the wake list entry, pi_lock, cpus_ptr, the wakee
/// statistics, its sched_entity with its averages, and the neighbours in the queue's tree.
/// Measured on Granite Rapids, two of them on their way at a time (`mlp_pct`): 6, 12 and 16
/// (docs/results/validation-granite-rapids.md).
pub const WAKEE_LINES: u64 = 12;
/// Cache lines that a CPU fetches from the waker when it switches to a woken task: those again, and its entry of the wait queue.
/// Measured likewise: 13 and 18.
pub const SWITCH_LINES: u64 = 16;
/// Cache lines of a runqueue that queueing a task writes: lock, counters, clock, the fair
/// queue's counters, its tree and its averages.
/// assumption: counted from the layout of struct rq and cfs_rq, kernel/sched/sched.h.
pub const RQ_LINES: u64 = 6;
/// Cache lines of the current task's sched_entity, which is charged first (update_curr()): run time, vruntime and deadline,
/// and its averages.
/// assumption: counted from the layout of struct sched_entity, include/linux/sched.h.
pub const CURR_LINES: u64 = 3;
/// Cache lines of each level of the queue's tree: the entity's key and vruntime, and what it knows of those below it.
/// assumption: counted likewise. With both, a remote wakeup and a switch after it have as many lines as was measured on
/// Granite Rapids (docs/results/validation-granite-rapids.md).
const TREE_LINES: u64 = 2;
/// The same of each level of task groups: the group's queue on the CPU (counters, tree, averages, what is passed on to
/// the group), and its entity there (load, vruntime, queues, averages).
/// assumption: counted from the layout of struct cfs_rq and sched_entity. Measured between two CPUs (docs/results/task-groups.md):
/// about 0.3 us a level for a wakeup and a sleep, the line's way back included.
const GROUP_LINES: u64 = 8;
/// Cache lines that a scan reads of each CPU, and that the CPU has modified: nr_running,
/// and curr (available_idle_cpu, kernel/sched/syscalls.c).
const SCAN_LINES: u64 = 2;

/// Two different tasks at once.
fn two_of<T>(tasks: &mut [T], a: usize, b: usize) -> (&mut T, &mut T) {
    let (low, high) = tasks.split_at_mut(a.max(b));
    let (first, second) = (&mut low[a.min(b)], &mut high[0]);
    if a < b { (first, second) } else { (second, first) }
}

impl Simulation<'_> {
    /// Wakes `task` from `cpu`, which pays for it. `sync`: the waker is about to sleep.
    pub(crate) fn try_to_wake_up(&mut self, task: u32, cpu: usize, sync: bool) {
        if self.tasks[task as usize].state != State::Sleeping {
            return;
        }
        let before = self.local_now(cpu);
        self.counters.wakeups += 1;
        self.schedstat[cpu].ttwu_count += 1;
        self.charge_work(cpu, Part::Wakeup, self.costs.wakeup_ns);
        self.fetch_lines(self.tasks[task as usize].cpu(), cpu, WAKEE_LINES);
        let t = &mut self.tasks[task as usize];
        t.woken_at = Some(self.now);
        t.waking_at = before;
        t.woken_by = Some(cpu);
        if let Some(waker) = self.cpus[cpu].curr.filter(|_| sync) {
            self.sys.note_sync_wakeup(&mut self.tasks[waker as usize].policy, before);
        }
        if self.tasks[task as usize].is_delayed() {
            self.ttwu_runnable(task, cpu);
        } else if !self.ttwu_on_cpu(task, cpu) {
            let prev = self.tasks[task as usize].cpu();
            let flags = WF_TTWU | if sync { WF_SYNC } else { 0 };
            let target = self.select_task_rq(task, cpu, prev, flags);
            self.trace_waking(task, cpu, target, false);
            self.count_ttwu(cpu, target);
            if target != prev {
                self.migrate_task_rq(task, prev);
                self.set_task_cpu(task, target, cpu);
            }
            self.tasks[task as usize].state = State::Waking;
            if self.ttwu_queue_cond(target, cpu) {
                self.ttwu_queue_wakelist(task, target, cpu);
            } else if target != cpu && self.cpus[cpu].activity == Activity::Task && !self.in_interrupt {
                let at = self.local_now(cpu);
                self.cpus[cpu].activations.push_back(Activation { at, task, target });
            } else {
                self.ttwu_do_activate(task, target, cpu);
            }
        }
        self.counters.time.wakeup += self.local_now(cpu) - before;
    }

    /// The task may have just blocked, so that its CPU is still switching away from it. Then it is
    /// queued there directly if that can be done remotely (true), or the waker spins until the
    /// switch is done.
    fn ttwu_on_cpu(&mut self, task: u32, cpu: usize) -> bool {
        let prev = self.tasks[task as usize].cpu();
        let c = &self.cpus[prev];
        let left = c.left_at.saturating_sub(self.local_now(cpu));
        let stays = contains(&self.masks[self.tasks[task as usize].allowed], prev);
        if c.leaving != Some(task) || prev == cpu || !stays {
            return false;
        }
        if left > 0 && self.feature(Feature::TTWU_QUEUE_IDLE) && self.ttwu_queue_cond(prev, cpu) {
            self.trace_waking(task, cpu, prev, false);
            self.count_ttwu(cpu, prev);
            self.tasks[task as usize].state = State::Waking;
            self.ttwu_queue_wakelist(task, prev, cpu);
            return true;
        }
        if c.activity == Activity::GoingIdle {
            // when the decision is made, the switch to idle is done; its event comes later
            self.sys.cpu[prev].curr_is_idle = 1;
        }
        self.charge_stall(cpu, Part::Wakeup, left);
        false
    }

    /// Lets the policy choose a CPU, and charges `cpu` for the CPUs that were looked at.
    fn select_task_rq(&mut self, task: u32, cpu: usize, prev: usize, wake_flags: u32) -> usize {
        let t = &self.tasks[task as usize];
        if t.policy.nr_cpus_allowed == 1 {
            // the kernel asks no policy where a task goes that may use one CPU
            return if contains(&self.masks[t.allowed], prev) { prev } else { self.fallback_cpu(task, prev) };
        }
        self.note_cache_cpu(task);
        let random = if self.tasks.len() == 1 { 0 } else { self.random(u32::MAX) };
        let request = Placement {
            this_cpu: cpu,
            prev_cpu: prev,
            task_cpu: prev,
            wake_flags,
            in_task: self.cpus[cpu].curr.is_some(),
            now: self.now,
            random,
        };
        let curr = self.cpus[cpu].curr.filter(|c| *c != task);
        let cpus_ptr = &self.masks[self.tasks[task as usize].allowed];
        let d: Decision = match curr {
            Some(curr) => {
                let (p, waker) = two_of(&mut self.tasks, task as usize, curr as usize);
                self.sys.select_task_rq_fair(&request, &mut p.policy, Some(&mut waker.policy), cpus_ptr)
            }
            None => {
                let p = &mut self.tasks[task as usize].policy;
                self.sys.select_task_rq_fair(&request, p, Some(&mut self.swappers[cpu]), cpus_ptr)
            }
        };
        self.counters.record(&d);
        if wake_flags & WF_TTWU != 0 && prev != cpu && d.target as usize == cpu {
            // wake_affine() chose the waker's CPU
            if let Some(level) = self.level_spanning(cpu, prev) {
                self.schedstat[cpu].domains[level].ttwu_move_affine += 1;
            }
        }
        self.trace.decision(&d);
        let scan_ns = u64::from(d.cpus_scanned) * SCAN_LINES * self.costs.transfer_llc_ns;
        self.sys.update_avg_scan_cost(&d, scan_ns);
        self.charge_stall(cpu, Part::IdleScan, scan_ns);
        // the policy may go by what the CPU that it slept on was like, which may be gone
        let chosen = d.cpu as usize;
        if contains(&self.masks[self.tasks[task as usize].allowed], chosen) {
            chosen
        } else {
            self.fallback_cpu(task, prev)
        }
    }

    /// The counters of ttwu_stat(): for a remote CPU on the lowest domain that spans it.
    fn count_ttwu(&mut self, cpu: usize, target: usize) {
        if target == cpu {
            self.schedstat[cpu].ttwu_local += 1;
        } else if let Some(level) = self.level_spanning(cpu, target) {
            self.schedstat[cpu].domains[level].ttwu_wake_remote += 1;
        }
    }

    /// The lowest level at which `cpu` has a domain with `other` in it.
    pub(crate) fn level_spanning(&self, cpu: usize, other: usize) -> Option<usize> {
        (0..self.sys.cpu[cpu].nr_sd as usize).find(|level| {
            let span = &self.sys.domain[self.sys.cpu_sd[cpu][*level].domain as usize].span;
            contains(span, other)
        })
    }

    /// A sleeping or new task changes CPUs; `by` is the CPU that decides this.
    pub(crate) fn set_task_cpu(&mut self, task: u32, to: usize, by: usize) {
        let t = &mut self.tasks[task as usize];
        let from = t.cpu();
        self.sys.set_task_cpu(&mut t.policy, to);
        self.count_migration(task, from, to, by);
    }

    pub(crate) fn count_migration(&mut self, task: u32, from: usize, to: usize, by: usize) {
        let distance = self.distances.between(from, to);
        if distance != Distance::Same {
            self.counters.migrations[distance as usize] += 1;
            self.trace.migrate(self.now, by, self.tasks[task as usize].policy.pid, from, to);
        }
    }

    /// Should the target do the queueing itself? Yes across last-level caches, or with a variant across cores, and in later
    /// kernels also if it is idle.
    fn ttwu_queue_cond(&self, target: usize, cpu: usize) -> bool {
        if !self.feature(Feature::TTWU_QUEUE) {
            return false;
        }
        let idle = self.feature(Feature::TTWU_QUEUE_IDLE) && self.sys.cpu[target].nr_running == 0;
        let shared = if self.feature(Feature::TTWU_QUEUE_L2) { Distance::Core } else { Distance::Llc };
        self.distances.between(target, cpu) > shared || (target != cpu && idle)
    }

    fn ttwu_queue_wakelist(&mut self, task: u32, target: usize, cpu: usize) {
        // the task goes on the target's list: one line there
        self.fetch_lines(target, cpu, 1);
        self.sys.cpu[target].ttwu_pending = 1;
        self.cpus[target].wakelist.push(task);
        if self.cpus[target].wakelist.len() == 1 {
            self.send_ipi(target, cpu);
        }
    }

    /// Interrupts `target`; an idle CPU that polls only needs its flag written.
    pub(crate) fn send_ipi(&mut self, target: usize, cpu: usize) {
        let sent = self.local_now(cpu);
        let polls = self.polls(target, sent);
        let flight = if polls {
            self.distances.transfer(cpu, target)
        } else {
            self.charge_work(cpu, Part::Wakeup, self.costs.ipi_send_ns);
            self.kernel_jittered(self.costs.ipi_deliver_ns)
        };
        let c = &mut self.cpus[target];
        c.flagged |= polls;
        c.ipi_at = c.ipi_at.min(sent + flight);
        self.reprogram(target);
    }

    /// Puts a woken task on `target`'s queue and checks if it should run there at once.
    fn ttwu_do_activate(&mut self, task: u32, target: usize, cpu: usize) {
        self.lock_rq(target, cpu);
        self.activate_task(task, target, cpu, Enqueue::Wakeup);
        self.wakeup_preempt(task, target, cpu, WF_TTWU);
        self.unlock_rq(target, cpu);
    }

    /// `cpu` gets to the lock of the CPU that the next task goes to which it has woken. What it does there delays what it is
    /// busy with, and the further ones.
    ///
    /// An event does in one go what its CPU gets to by and by. A wakeup comes to the other CPU's lock 0.6 us after its
    /// event. If it took the lock at once, it would be before all that the other CPU does meanwhile, which would wait for it.
    pub(crate) fn activate_next(&mut self, cpu: usize) {
        if let Some(next) = self.cpus[cpu].activations.pop_front() {
            self.activate_remote(cpu, &next);
        }
        let later = self.local_now(cpu) - self.now;
        self.cpus[cpu].activations.iter_mut().for_each(|next| next.at += later);
        self.extend_segment(cpu);
    }

    /// `cpu` is about to switch, after what it was about to do for the tasks that it has woken.
    pub(crate) fn activate_all(&mut self, cpu: usize) {
        while let Some(next) = self.cpus[cpu].activations.pop_front() {
            self.activate_remote(cpu, &next);
        }
    }

    fn activate_remote(&mut self, cpu: usize, woken: &Activation) {
        let before = self.local_now(cpu);
        let mut target = woken.target;
        // meanwhile the CPU may have gone
        if !contains(&self.masks[self.tasks[woken.task as usize].allowed], target) {
            target = self.fallback_cpu(woken.task, target);
            self.set_task_cpu(woken.task, target, cpu);
        }
        self.ttwu_do_activate(woken.task, target, cpu);
        self.counters.time.wakeup += self.local_now(cpu) - before;
    }

    /// The target takes the tasks that were queued for it.
    pub(crate) fn sched_ttwu_pending(&mut self, cpu: usize) {
        if self.cpus[cpu].wakelist.is_empty() {
            return;
        }
        let mut list = std::mem::take(&mut self.cpus[cpu].wakelist);
        self.lock_rq(cpu, cpu);
        for &task in &list {
            self.activate_task(task, cpu, cpu, Enqueue::Wakeup);
            self.wakeup_preempt(task, cpu, cpu, WF_TTWU);
        }
        self.unlock_rq(cpu, cpu);
        self.sys.cpu[cpu].ttwu_pending = 0;
        // the list is returned empty, to keep its memory
        list.clear();
        self.cpus[cpu].wakelist = list;
    }

    /// A sleeper that is still queued (DELAY_DEQUEUE) stays queued, and now waits for the CPU.
    fn ttwu_runnable(&mut self, task: u32, cpu: usize) {
        let target = self.tasks[task as usize].cpu();
        self.trace_waking(task, cpu, target, false);
        self.lock_rq(target, cpu);
        self.requeue_delayed_entity(task, target, cpu);
        self.charge_work(cpu, Part::Queue, self.costs.enqueue_ns);
        self.wakeup_preempt(task, target, cpu, WF_TTWU);
        self.unlock_rq(target, cpu);
    }

    /// A new task, created on `cpu`, gets its first CPU.
    pub(crate) fn wake_up_new_task(&mut self, task: u32, cpu: usize) {
        let before = self.local_now(cpu);
        self.task_fork(task, cpu);
        let target = self.select_task_rq(task, cpu, cpu, WF_FORK);
        self.set_task_cpu(task, target, cpu);
        let p = &mut self.tasks[task as usize];
        p.woken_at = Some(self.now);
        p.waking_at = before;
        self.trace_waking(task, cpu, target, true);
        self.lock_rq(target, cpu);
        self.activate_task(task, target, cpu, Enqueue::New);
        self.wakeup_preempt(task, target, cpu, WF_FORK);
        self.unlock_rq(target, cpu);
        self.counters.time.wakeup += self.local_now(cpu) - before;
    }

    /// The lines of a woken task come from the waker to the CPU that switches to it.
    pub(crate) fn fetch_woken(&mut self, task: u32, cpu: usize) {
        if let Some(waker) = self.tasks[task as usize].woken_by.take() {
            self.fetch_lines(waker, cpu, SWITCH_LINES);
        }
    }

    /// Moves lines that `from` has modified to `to`, which waits for them.
    fn fetch_lines(&mut self, from: usize, to: usize, lines: u64) {
        let ns = self.distances.ahead(self.distances.fetch(from, to, lines));
        self.charge_stall(to, Part::TaskLines, ns);
    }

    /// Takes `target`'s runqueue lock on `cpu`, which waits for it.
    pub(crate) fn lock_rq(&mut self, target: usize, cpu: usize) {
        let m = self.moment(cpu);
        let owner = self.cpus[target].lock.owner();
        let got = self.cpus[target].lock.acquire(&self.distances, cpu, m, 1);
        self.charge_stall(cpu, Part::RqLock, got.waited);
        if owner != cpu {
            let others = self.distances.fetch(owner, cpu, self.rq_lines(target) - 1);
            self.charge_stall(cpu, Part::TaskLines, got.lines_with(others, &self.distances));
        }
    }

    /// Cache lines of `cpu`'s runqueue that queueing a task there writes, and reads on the way to its place.
    fn rq_lines(&self, cpu: usize) -> u64 {
        let c = &self.cpus[cpu];
        let groups = self.tg_load_avg.len() as u64;
        let running = u32::from(c.curr.is_some());
        let waiting = c.fair.rq.nr_queued().saturating_sub(running);
        let levels = waiting.checked_ilog2().map_or(0, |log2| log2 + 1);
        RQ_LINES + groups * GROUP_LINES + u64::from(running) * CURR_LINES + u64::from(levels) * TREE_LINES
    }

    pub(crate) fn unlock_rq(&mut self, target: usize, cpu: usize) {
        let at = self.local_now(cpu);
        self.cpus[target].lock.release(at);
    }

    /// Queues a task on `cpu`; `by` does the work and pays.
    pub(crate) fn activate_task(&mut self, task: u32, cpu: usize, by: usize, why: Enqueue) {
        self.update_curr(cpu, by);
        self.charge_work(by, Part::Queue, self.costs.enqueue_ns);
        self.account_enqueue(cpu, task, by);
        self.enqueue_entity(cpu, task, why);
        if self.cpus[cpu].hrtick_at == NEVER {
            self.hrtick_start(cpu);
        }
        let t = &mut self.tasks[task as usize];
        t.state = State::Queued;
        t.queued_at = self.now;
        if why != Enqueue::Migration {
            t.waits_since = self.now;
        }
        self.touch(task);
        self.set_waiting(true);
    }

    /// The current task is not charged first, so the sleeper is placed by the lag that it had when the current task was
    /// last charged.
    fn requeue_delayed_entity(&mut self, task: u32, cpu: usize, by: usize) {
        self.update_rq_clock(cpu, by);
        self.sys.requeue_delayed(&mut self.tasks[task as usize].policy, self.now);
        let t = &mut self.tasks[task as usize];
        t.state = State::Queued;
        t.queued_at = self.now;
        t.waits_since = self.now;
        self.cpus[cpu].fair.requeue_delayed(&self.sys, &mut t.se);
        self.set_waiting(true);
    }

    /// Makes `cpu` choose again what to run.
    pub(crate) fn resched_curr(&mut self, cpu: usize, by: usize) {
        if self.cpus[cpu].need_resched {
            return;
        }
        self.cpus[cpu].need_resched = true;
        // a lazy request waits for the task to leave the kernel
        let waits = self.cpus[cpu].curr.is_some() && self.feature(Feature::PREEMPT_LAZY);
        if cpu != by && !waits {
            self.send_ipi(cpu, by);
        }
    }

    fn trace_waking(&mut self, task: u32, cpu: usize, target: usize, new: bool) {
        let curr = self.cpus[cpu].curr.map_or(0, |c| self.tasks[c as usize].policy.pid);
        let waker = Waker { pid: curr, in_interrupt: self.in_interrupt };
        let woken = &self.tasks[task as usize];
        let when = Moment { now: self.now, at: woken.waking_at };
        self.trace.waking(when, cpu, waker, woken.policy.pid, target, new);
    }

    /// A sleep ends: the timer interrupts the CPU that it was armed on, or the device the one that waits for it. An idle CPU
    /// leaves its idle state before it handles the interrupt.
    pub(crate) fn timer_interrupt(&mut self, cpu: usize, task: u32) {
        let handler_ns = match self.tasks[task as usize].waits_in {
            WaitsIn::Nanosleep => self.costs.timer_ns,
            // what a busy CPU loses to any interrupt
            _ => self.costs.ipi_handle_ns,
        };
        match self.cpus[cpu].activity {
            Activity::Idle => {
                self.cpus[cpu].expired.push(task);
                self.charge_work(cpu, Part::Interrupt, handler_ns);
                self.begin_idle_exit(cpu);
            }
            Activity::Waking => {
                self.cpus[cpu].expired.push(task);
                self.charge_work(cpu, Part::Interrupt, handler_ns);
                self.extend_segment(cpu);
            }
            Activity::Task | Activity::GoingIdle => {
                self.charge_work(cpu, Part::Interrupt, handler_ns);
                self.wake_by_timer(cpu, task);
                self.after_interrupt(cpu);
            }
        }
        self.reprogram(cpu);
    }

    /// The handler of a timer wakes the task that it was armed for (hrtimer_wakeup()).
    pub(crate) fn wake_by_timer(&mut self, cpu: usize, task: u32) {
        self.in_interrupt = true;
        self.try_to_wake_up(task, cpu, false);
        self.in_interrupt = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Work;
    use crate::testing::{begun, one_message, settings};
    use coreward_machine::Machine;
    use coreward_policy::Changes;

    /// What the other CPU does before that is not delayed by it, and does not see the task.
    #[test]
    fn a_woken_task_is_queued_elsewhere_when_its_waker_gets_to_that_lock() {
        let machine = Machine::load("2c").unwrap();
        let mut changes = Changes::default();
        changes.switch_feature(Feature::TTWU_QUEUE_IDLE, false);
        begun(&machine, &one_message(), &settings(&changes, 0), |sim| {
            let [waker, sleeper] = [0, 1].map(|cpu| sim.new_task(0, 0, true, None, cpu));
            sim.cpus[0].curr = Some(waker);
            (sim.sys.cpu[0].nr_running, sim.sys.cpu[0].curr_is_idle) = (2, 0);
            sim.begin_segment(0, Activity::Task, Work { work: 5_000, stall: 0 });
            sim.tasks[sleeper as usize].state = State::Sleeping;
            sim.set_task_cpu(sleeper, 1, 0);
            sim.try_to_wake_up(sleeper, 0, false);
            assert_eq!(sim.tasks[sleeper as usize].state, State::Waking);
            assert!(sim.cpus[1].fair.tasks().all(|task| task != sleeper));
            let at = sim.cpus[0].activation_at();
            assert!(at >= sim.now + sim.costs.wakeup_ns * 3 / 4, "it looks for a CPU first");
            sim.extend_segment(0);
            let end = sim.cpus[0].segment.end();
            sim.now = at;
            sim.activate_next(0);
            assert_eq!(sim.tasks[sleeper as usize].state, State::Queued);
            assert!(sim.cpus[1].fair.tasks().any(|task| task == sleeper));
            assert!(
                sim.cpus[0].segment.end() >= end + sim.costs.enqueue_ns * 3 / 4,
                "it takes the waker longer"
            );
            assert_eq!(sim.cpus[0].activation_at(), NEVER);
        });
    }

    #[test]
    fn a_lazy_request_interrupts_nobody_but_an_idle_cpu() {
        let machine = Machine::load("2c").unwrap();
        let interrupts = |lazy: bool, idle: bool| {
            let mut changes = Changes::default();
            changes.switch_feature(Feature::PREEMPT_LAZY, lazy);
            begun(&machine, &one_message(), &settings(&changes, 0), |sim| {
                // not the CPU on which the workload begins
                let cpu = (0..2).find(|cpu| !sim.cpus[*cpu].need_resched).unwrap();
                let task = sim.new_task(0, 0, true, None, cpu);
                sim.cpus[cpu].curr = Some(task).filter(|_| !idle);
                sim.resched_curr(cpu, 1 - cpu);
                assert!(sim.cpus[cpu].need_resched);
                sim.cpus[cpu].ipi_at != NEVER
            })
        };
        assert!(interrupts(false, false));
        assert!(!interrupts(true, false));
        assert!(interrupts(true, true));
    }
}
