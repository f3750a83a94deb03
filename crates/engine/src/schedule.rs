//! schedule(): takes a task off a CPU and puts the next one on.

use crate::cpu::Activity;
use crate::segment::Work;
use crate::sim::Simulation;
use crate::task::State;
use crate::trace::Leaving;
use coreward_metrics::Part;
use coreward_policy::layout::TASK_DELAYED;

/// The part of a context switch in which its runqueue is locked, in percent. The rest comes after finish_lock_switch(): the
/// state of the FPU, restartable sequences, the way back to user space, cold caches.
/// assumption: half. Between 30 and 70, pinned readers and writers get on as fast as real ones; with 100, wakeups wait for the
/// switches that they lead to, and two thirds of the throughput are lost (docs/results/pinned.md).
const SWITCH_LOCKED_PCT: u64 = 50;

impl Simulation<'_> {
    /// Interrupts the current task in the middle of its op.
    pub(crate) fn preempt(&mut self, cpu: usize) {
        let curr = self.cpus[cpu].curr.expect("only a running task is preempted");
        self.save_rest(cpu, curr);
        self.schedule(cpu);
    }

    /// Saves the rest of the current task's op.
    pub(crate) fn save_rest(&mut self, cpu: usize, curr: u32) {
        let c = &mut self.cpus[cpu];
        c.bill.settle(self.now, &mut self.counters.spent);
        let work = c.segment.work_left(self.now);
        self.tasks[curr as usize].left = Some(Work { work, stall: 0 });
    }

    /// Chooses what `cpu` runs next; its current task blocked, ended, or has to share.
    pub(crate) fn schedule(&mut self, cpu: usize) {
        self.activate_all(cpu);
        self.lock_rq(cpu, cpu);
        if !std::mem::take(&mut self.cpus[cpu].skips_clock_update) {
            self.update_rq_clock(cpu, cpu);
        }
        self.charge_curr(cpu);
        self.charge_work(cpu, Part::Queue, self.costs.pick_next_ns);
        self.schedstat[cpu].sched_count += 1;
        self.cpus[cpu].need_resched = false;
        self.throttle_curr(cpu);
        let prev = self.cpus[cpu].curr;
        let wants_to_run = prev.is_some_and(|prev| self.tasks[prev as usize].state == State::Running);
        if let Some(prev) = prev.filter(|_| !wants_to_run) {
            self.dequeue_task(cpu, prev);
        }
        let next = self.pick_next_task(cpu);
        match (prev, next) {
            (Some(_), None) if wants_to_run => {
                self.unlock_rq(cpu, cpu);
                self.resume(cpu);
            }
            (_, Some(next)) => self.context_switch(cpu, prev, next),
            (_, None) => self.go_idle(cpu, prev),
        }
    }

    /// The task to switch to; None if the current one goes on, or if there is none.
    fn pick_next_task(&mut self, cpu: usize) -> Option<u32> {
        loop {
            if self.cpus[cpu].fair.rq.nr_queued() == 0 && !self.sched_balance_newidle(cpu) {
                return None;
            }
            let d = self.cpus[cpu].fair.pick_next(&self.sys);
            self.counters.queue_reasons[d.reason as usize] += 1;
            match u32::try_from(d.id).ok() {
                Some(task) if self.tasks[task as usize].is_delayed() => {
                    self.finish_delayed_dequeue(cpu, task)
                }
                Some(task) if d.picked >= 0 && self.throttle_picked(cpu, task) => {}
                picked => return picked.filter(|_| d.picked >= 0),
            }
        }
    }

    /// The current task leaves the queue because it sleeps, ends or is throttled. With DELAY_DEQUEUE
    /// a sleeper that owes time stays queued until the others have caught up.
    fn dequeue_task(&mut self, cpu: usize, task: u32) {
        self.charge_work(cpu, Part::Queue, self.costs.dequeue_ns);
        let state = self.tasks[task as usize].state;
        let (dead, throttled) = (state == State::Dead, state == State::Throttled);
        if self.cpus[cpu].fair.dequeue_curr(&self.sys, !dead && !throttled) {
            self.account_dequeue(cpu, task, true, cpu);
        } else {
            self.sys.delay_dequeue(&mut self.tasks[task as usize].policy, self.now);
        }
        if throttled {
            return;
        }
        self.return_cfs_rq_runtime(cpu, task);
        let now = self.local_now(cpu);
        let p = &mut self.tasks[task as usize].policy;
        if dead {
            self.sys.remove_task(p);
        } else {
            self.sys.sleep(p, now);
        }
    }

    /// A delayed sleeper has been picked, so it has caught up: now it leaves the queue.
    pub(crate) fn finish_delayed_dequeue(&mut self, cpu: usize, task: u32) {
        self.charge_work(cpu, Part::Queue, self.costs.dequeue_ns);
        if self.cpus[cpu].curr == Some(task) {
            self.cpus[cpu].fair.dequeue_curr(&self.sys, false);
        } else {
            self.dequeue_waiting(cpu, task, true);
        }
        self.account_dequeue(cpu, task, false, cpu);
        self.tasks[task as usize].policy.flags &= !TASK_DELAYED;
    }

    fn context_switch(&mut self, cpu: usize, prev: Option<u32>, next: u32) {
        if let Some(prev) = prev {
            self.put_prev_task(cpu, prev);
        }
        self.set_next_task(cpu, next);
        self.fetch_woken(next, cpu);
        self.count_switch(cpu, prev, Some(next));
        self.switch_to(cpu, prev);
        self.switch_mm(cpu, next);
        self.mmdrop_lazy_tlb(cpu);
        self.refill_caches(cpu, next);
        self.hrtick_start(cpu);
        let start_ns = std::mem::take(&mut self.tasks[next as usize].start_ns);
        self.charge_work(cpu, Part::Create, start_ns);
        self.resume(cpu);
    }

    pub(crate) fn put_prev_task(&mut self, cpu: usize, prev: u32) {
        let t = &mut self.tasks[prev as usize];
        self.sys.put_prev_task(&mut t.policy, cpu, self.now);
        if t.state == State::Running {
            t.state = State::Queued;
            t.queued_at = self.now;
            t.waits_since = self.now;
            self.set_waiting(true);
        }
        self.cpus[cpu].fair.put_prev(&self.sys, &mut self.tasks[prev as usize].se);
        self.cpus[cpu].curr = None;
        self.cpus[cpu].idle_since = self.now;
    }

    pub(crate) fn set_next_task(&mut self, cpu: usize, next: u32) {
        self.sys.set_next_task(&mut self.tasks[next as usize].policy, cpu, self.now);
        self.charge_tg_writes(cpu, cpu);
        let c = &mut self.cpus[cpu];
        c.fair.set_next(&self.sys, &self.tasks[next as usize].se, c.clock);
        self.tasks[next as usize].state = State::Running;
        self.touch(next);
        self.cpus[cpu].curr = Some(next);
        self.set_waiting(false);
    }

    /// Counts the switch. The latency of a wakeup ends when it is done; the time of the next task begins with it, as
    /// `sum_exec_runtime` does.
    pub(crate) fn count_switch(&mut self, cpu: usize, prev: Option<u32>, next: Option<u32>) {
        let mut leaving = Leaving::Preempted;
        if let Some(prev) = prev {
            let now = self.local_now(cpu);
            self.counters.task_clock_ns += now.saturating_sub(self.cpus[cpu].clocked_at);
            leaving = match self.tasks[prev as usize].state {
                State::Queued | State::Throttled => Leaving::Preempted,
                State::Dead => Leaving::Exited,
                _ => Leaving::Blocked,
            };
            match leaving {
                Leaving::Preempted => self.counters.switches_involuntary += 1,
                _ => self.counters.switches_voluntary += 1,
            }
        }
        if let Some(next) = next {
            let now = self.local_now(cpu);
            self.cpus[cpu].clocked_at = now;
            let at = now + self.costs.context_switch_ns;
            let t = &mut self.tasks[next as usize];
            let s = &mut self.schedstat[cpu];
            s.pcount += 1;
            s.run_delay += at - t.queued_at;
            if let Some(woken) = t.woken_at.take() {
                self.counters.latency.record(at - woken);
                if self.by_thread {
                    self.counters.threads.entry(next).or_default().wakeups.record(at - woken);
                }
            }
        }
        let pid = |t: Option<u32>| t.map_or(0, |t| self.tasks[t as usize].policy.pid);
        let (prev, next) = (pid(prev), pid(next));
        self.trace.switch(self.moment(cpu), cpu, prev, leaving, next);
    }

    /// The task that was switched in finds the caches as the others left them. It waits for
    /// no more lines than it touches, which is at most one for each ns of work that is left
    /// of its op: so it gets on however little time it is given.
    fn refill_caches(&mut self, cpu: usize, task: u32) {
        let shared_bytes = self.workload.footprint.shared_bytes;
        let t = &mut self.tasks[task as usize];
        let private_bytes = self.workload.private_bytes(t.program);
        let mut stall = self.caches.refill(&self.distances, &mut t.residence, cpu, private_bytes)
            + self.caches.refill_shared(cpu, t.process, shared_bytes);
        if let Some(left) = t.left {
            stall = stall.min(left.work * self.costs.dram_remote_line_ns.max(self.costs.dram_line_ns));
        }
        self.charge_stall(cpu, Part::Refill, stall);
    }

    /// Nothing to run: the switch to idle takes what is pending, then the CPU is idle.
    fn go_idle(&mut self, cpu: usize, prev: Option<u32>) {
        if let Some(prev) = prev {
            self.put_prev_task(cpu, prev);
            self.schedstat[cpu].sched_goidle += 1;
            self.count_switch(cpu, Some(prev), None);
            self.mmgrab_lazy_tlb(cpu, prev);
            self.switch_to(cpu, Some(prev));
        } else {
            self.cpus[cpu].leaving = None;
            self.unlock_rq(cpu, cpu);
        }
        self.begin_segment(cpu, Activity::GoingIdle, Work::default());
    }

    /// Switches away from `prev`, which is off the CPU when the runqueue is unlocked (finish_task()).
    fn switch_to(&mut self, cpu: usize, prev: Option<u32>) {
        let locked = self.costs.context_switch_ns * SWITCH_LOCKED_PCT / 100;
        self.charge_work(cpu, Part::Switch, locked);
        let at = self.local_now(cpu);
        let c = &mut self.cpus[cpu];
        c.leaving = prev;
        c.left_at = at;
        self.unlock_rq(cpu, cpu);
        self.charge_work(cpu, Part::Switch, self.costs.context_switch_ns - locked);
    }
}
