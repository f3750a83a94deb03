//! Idle CPUs: going idle, wakeup events, leaving idle.

use crate::affinity::contains;
use crate::cpu::Activity;
use crate::queue::NEVER;
use crate::segment::Work;
use crate::sim::Simulation;
use coreward_machine::IdleState;
use coreward_metrics::Part;
use coreward_policy::Feature;
use coreward_policy::layout::NO_IDLE_STATE;

/// What ends the idleness of a CPU.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum IdleEnd {
    /// Another CPU: by an interrupt or, if the idle one polls, by writing to its flag.
    Waker,
    Timer,
}

impl Simulation<'_> {
    /// The switch to idle is complete; by now there may be work after all.
    pub(crate) fn enter_idle(&mut self, cpu: usize) {
        if !self.cpus[cpu].wakelist.is_empty() || !self.cpus[cpu].fair.is_empty() {
            self.sched_ttwu_pending(cpu);
            return self.schedule(cpu);
        }
        self.enter_idle_state(cpu);
        let c = &mut self.cpus[cpu];
        c.activity = Activity::Idle;
        c.need_resched = false;
        c.tick_at = NEVER;
        c.hrtick_at = NEVER;
        self.sys.set_next_task_idle(cpu, self.now);
        let llc = self.sys.cpu[cpu].llc as usize;
        self.sys.llc[llc].nr_busy_cpus -= 1;
        let takes_part = contains(&self.masks[0], cpu);
        self.nohz_idle.bits[cpu / 64] |= u64::from(takes_part) << (cpu % 64);
        let due = self.sys.cpu[cpu].next_balance.max(self.now / self.tick_ns + 1);
        self.sys.nohz_next_balance = self.sys.nohz_next_balance.min(due);
        self.settle_conservation();
        self.nr_idle += u64::from(takes_part);
        self.core_use_changed(cpu, false);
    }

    /// Enters the deepest state that pays off if this idle time is like the average one. The
    /// kernel's governors predict from recent idle times and timers; the average that
    /// newidle balance maintains is the closest equivalent here.
    pub(crate) fn enter_idle_state(&mut self, cpu: usize) {
        let rq = &mut self.sys.cpu[cpu];
        let pays = |s: &IdleState| !s.promoted && s.residency_ns <= rq.avg_idle;
        let state = self.idle_states.iter().rposition(pays).unwrap_or(0);
        rq.exit_latency_us = self.idle_states.get(state).map_or(NO_IDLE_STATE, |s| (s.exit_ns / 1000) as u32);
        self.cpus[cpu].idle_state = state;
    }

    /// An interrupt (or, if it polls, a write to its flag) reaches `cpu`.
    pub(crate) fn interrupted(&mut self, cpu: usize) {
        match self.cpus[cpu].activity {
            Activity::Idle => self.begin_idle_exit(cpu, IdleEnd::Waker),
            Activity::Task => {
                self.charge_work(cpu, Part::Interrupt, self.costs.ipi_handle_ns);
                self.sched_ttwu_pending(cpu);
                self.after_interrupt(cpu);
            }
            // it will handle this when the switch is complete
            Activity::GoingIdle | Activity::Waking => {
                self.charge_work(cpu, Part::Interrupt, self.costs.ipi_handle_ns);
                self.extend_segment(cpu);
            }
        }
    }

    /// The CPU is in the last of the states that it has been promoted to since it went idle.
    fn promote_idle_state(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let idle_ns = self.now - c.idle_since;
        let further = self.idle_states.iter().skip(c.idle_state + 1);
        c.idle_state += further.take_while(|s| s.promoted && s.residency_ns <= idle_ns).count();
    }

    pub(crate) fn begin_idle_exit(&mut self, cpu: usize, end: IdleEnd) {
        self.promote_idle_state(cpu);
        let interrupt_ns = match end {
            IdleEnd::Timer => self.costs.timer_ns,
            IdleEnd::Waker if self.polls(cpu) => 0,
            IdleEnd::Waker => self.costs.ipi_handle_ns,
        };
        self.charge_work(cpu, Part::Interrupt, interrupt_ns);
        let exit_ns = self.idle_states.get(self.cpus[cpu].idle_state).map_or(0, |s| s.exit_ns);
        let stall = self.kernel_jittered(exit_ns - self.idle_return_ns(cpu));
        let c = &mut self.cpus[cpu];
        c.bill.idle(self.now, &mut self.counters.spent);
        c.bill.stall(Part::IdleExit, stall);
        c.tick_at = self.now - self.now % self.tick_ns + self.tick_ns;
        let rq = &mut self.sys.cpu[cpu];
        rq.exit_latency_us = NO_IDLE_STATE;
        let llc = rq.llc as usize;
        self.sys.llc[llc].nr_busy_cpus += 1;
        self.nohz_idle.bits[cpu / 64] &= !(1 << (cpu % 64));
        self.settle_conservation();
        self.nr_idle -= u64::from(contains(&self.masks[0], cpu));
        self.begin_segment(cpu, Activity::Waking, Work { work: 0, stall });
        self.core_use_changed(cpu, true);
    }

    /// The part of the exit that comes after the handler of the interrupt: the way out of the idle loop, with the restart
    /// of the tick. What the handler wakes is charged for it, because schedule() goes on with the handler's clock. A CPU
    /// that polls takes woken tasks at the end.
    fn idle_return_ns(&self, cpu: usize) -> u64 {
        let state = self.idle_states.get(self.cpus[cpu].idle_state);
        state.filter(|s| !s.polling).map_or(0, |s| s.exit_ns.min(self.costs.idle_return_ns))
    }

    /// The CPU is awake: it takes the tasks that were queued for it or that a timer wakes, or goes back to sleep.
    pub(crate) fn leave_idle(&mut self, cpu: usize) {
        for task in std::mem::take(&mut self.cpus[cpu].expired) {
            self.wake_by_timer(cpu, task);
        }
        if std::mem::take(&mut self.cpus[cpu].nohz_kicked) {
            self.nohz_idle_balance(cpu);
        }
        self.sched_ttwu_pending(cpu);
        let ns = self.idle_return_ns(cpu);
        self.charge_stall(cpu, Part::IdleExit, ns);
        self.schedule(cpu);
    }

    /// May the current task be preempted now? In the kernel only with PREEMPT_FULL; otherwise at the
    /// end of its system call, which is the end of its op.
    fn is_preemptible(&self, cpu: usize) -> bool {
        let task = self.cpus[cpu].curr.map(|curr| &self.tasks[curr as usize]);
        self.feature(Feature::PREEMPT_FULL) || task.is_some_and(|t| t.is_in_user_space())
    }

    /// Kernel work has interrupted `cpu`, which now continues, or does something more urgent.
    pub(crate) fn after_interrupt(&mut self, cpu: usize) {
        match self.cpus[cpu].activity {
            Activity::Task if self.cpus[cpu].need_resched && self.is_preemptible(cpu) => self.preempt(cpu),
            Activity::Idle => self.begin_idle_exit(cpu, IdleEnd::Waker),
            _ => self.extend_segment(cpu),
        }
    }
}
