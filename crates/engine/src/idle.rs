//! Idle CPUs: going idle, wakeup events, leaving idle.

use crate::affinity::contains;
use crate::balance::NohzKick;
use crate::cpu::Activity;
use crate::queue::NEVER;
use crate::segment::Work;
use crate::sim::Simulation;
use coreward_machine::IdleState;
use coreward_metrics::Part;
use coreward_policy::Feature;
use coreward_policy::layout::NO_IDLE_STATE;

impl Simulation<'_> {
    /// The switch to idle is complete; by now there may be work after all.
    pub(crate) fn enter_idle(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        // tasks that are queued for it go unnoticed until the interrupt has come that tells of them
        if (!c.wakelist.is_empty() && c.ipi_at == NEVER) || !c.fair.is_empty() {
            self.sched_ttwu_pending(cpu);
            return self.schedule(cpu);
        }
        self.enter_idle_state(cpu);
        let entry_ns = if self.stops_tick(cpu) { self.kernel_jittered(self.costs.timer_arm_ns) } else { 0 };
        let c = &mut self.cpus[cpu];
        c.asleep_at = self.now + entry_ns;
        c.activity = Activity::Idle;
        c.need_resched = false;
        c.tick_at = NEVER;
        c.hrtick_at = NEVER;
        self.sys.set_next_task_idle(cpu, self.now);
        let llc = self.sys.cpu[cpu].llc as usize;
        self.sys.llc[llc].nr_busy_cpus -= 1;
        let takes_part = contains(&self.masks[0], cpu);
        self.nohz_idle.bits[cpu / 64] |= u64::from(takes_part) << (cpu % 64);
        self.sys.nohz_has_blocked = 1;
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

    /// Does a CPU that goes idle stop its tick, for which it sets its timer anew? The governors menu and teo leave it if they
    /// expect less than a tick, which the average idle time shows only of a tick of 1000 Hz, since it is at most 1 ms.
    /// haltpoll, with which a guest gets deeper asleep only as its host decides, never leaves it.
    fn stops_tick(&self, cpu: usize) -> bool {
        self.sys.cpu[cpu].avg_idle >= self.tick_ns || self.idle_states.iter().any(|state| state.promoted)
    }

    /// Does `cpu` see at `at` if its flag is written? An idle CPU does until it sleeps, and in a state that polls.
    pub(crate) fn polls(&self, cpu: usize, at: u64) -> bool {
        let c = &self.cpus[cpu];
        let in_polling_state = || self.idle_states.get(c.idle_state).is_none_or(|s| s.polling);
        c.activity == Activity::Idle && (at < c.asleep_at || in_polling_state())
    }

    /// An interrupt (or, if it polls, a write to its flag) reaches `cpu`.
    pub(crate) fn interrupted(&mut self, cpu: usize) {
        let flagged = std::mem::take(&mut self.cpus[cpu].flagged);
        self.charge_work(cpu, Part::Interrupt, if flagged { 0 } else { self.costs.ipi_handle_ns });
        match self.cpus[cpu].activity {
            Activity::Idle => self.begin_idle_exit(cpu),
            Activity::Task => {
                self.sched_ttwu_pending(cpu);
                self.after_interrupt(cpu);
            }
            // it will handle this when the switch is complete
            Activity::GoingIdle | Activity::Waking => self.extend_segment(cpu),
        }
    }

    /// The CPU is in the last of the states that it has been promoted to since it went idle.
    fn promote_idle_state(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let idle_ns = self.now - c.idle_since;
        let further = self.idle_states.iter().skip(c.idle_state + 1);
        c.idle_state += further.take_while(|s| s.promoted && s.residency_ns <= idle_ns).count();
    }

    /// An interrupt that has been charged, or a write to its flag, ends the idleness of `cpu`.
    pub(crate) fn begin_idle_exit(&mut self, cpu: usize) {
        self.promote_idle_state(cpu);
        let exit_ns = self.idle_states.get(self.cpus[cpu].idle_state).map_or(0, |s| s.exit_ns);
        let stall = match self.cpus[cpu].asleep_at.saturating_sub(self.now) {
            0 => self.kernel_jittered(exit_ns - self.idle_return_ns(cpu)),
            entry_left => entry_left,
        };
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
        let kick = std::mem::take(&mut self.cpus[cpu].nohz_kick);
        if kick != NohzKick::Nothing {
            self.nohz_idle_balance(cpu, kick);
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
            Activity::Idle => self.begin_idle_exit(cpu),
            _ => self.extend_segment(cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{begun, one_message, settings};
    use coreward_machine::Machine;
    use coreward_policy::Changes;

    /// Two CPUs in a guest: the idle state does not poll, and `timer_arm_ns` is 6000. The one on which nothing runs yet goes
    /// idle.
    fn go_idle(then: impl Fn(&mut Simulation<'_>, usize)) {
        let mut machine = Machine::load("2c").unwrap();
        let state = |name: &str, promoted| IdleState {
            name: name.into(),
            exit_ns: 9_000,
            residency_ns: 0,
            polling: false,
            promoted,
            source: String::new(),
        };
        machine.idle_states = vec![state("hlt", false), state("descheduled", true)];
        machine.costs.timer_arm_ns = 6_000;
        machine.costs.kernel_jitter_pct = 0;
        begun(&machine, &one_message(), &settings(&Changes::default(), 0), |sim| {
            let cpu = (0..2).find(|cpu| !sim.cpus[*cpu].need_resched).unwrap();
            sim.now += 100_000;
            sim.begin_idle_exit(cpu);
            sim.cpus[cpu].activity = Activity::GoingIdle;
            then(sim, cpu);
        });
    }

    #[test]
    fn a_queued_task_is_found_when_its_interrupt_has_come() {
        for (in_flight, found) in [(true, false), (false, true)] {
            go_idle(|sim, cpu| {
                let task = sim.new_task(0, 0, true, None, cpu);
                sim.tasks[task as usize].state = crate::task::State::Waking;
                sim.cpus[cpu].wakelist.push(task);
                sim.cpus[cpu].ipi_at = if in_flight { sim.now + 500 } else { NEVER };
                sim.enter_idle(cpu);
                assert_eq!(sim.cpus[cpu].curr == Some(task), found, "in flight: {in_flight}");
                assert_eq!(sim.cpus[cpu].activity == Activity::Idle, !found);
            });
        }
    }

    #[test]
    fn a_cpu_looks_at_its_flag_until_it_sleeps() {
        go_idle(|sim, cpu| {
            sim.enter_idle(cpu);
            assert!(sim.polls(cpu, sim.now + 5_999));
            assert!(!sim.polls(cpu, sim.now + 6_000));
        });
    }

    #[test]
    fn a_timer_that_expires_on_the_way_out_takes_its_time_too() {
        go_idle(|sim, cpu| {
            sim.enter_idle(cpu);
            sim.now += 6_000;
            sim.begin_idle_exit(cpu);
            let end = sim.cpus[cpu].segment.end();
            let sleeper = sim.new_task(0, 0, true, None, cpu);
            sim.timer_interrupt(cpu, sleeper);
            assert!(sim.costs.ipi_handle_ns > 0);
            assert_eq!(sim.cpus[cpu].segment.end(), end + sim.costs.ipi_handle_ns);
            assert_eq!(sim.cpus[cpu].expired, [sleeper]);
        });
    }

    #[test]
    fn who_is_wanted_on_the_way_to_sleep_comes_back_at_its_end() {
        // the rest of the way, or the way out of the state without the way out of the idle loop
        for (after, stall) in [(1_000, 5_000), (6_000, 8_000)] {
            go_idle(|sim, cpu| {
                sim.enter_idle(cpu);
                sim.now += after;
                sim.begin_idle_exit(cpu);
                assert_eq!(sim.cpus[cpu].segment.end() - sim.now, stall, "after {after} ns");
            });
        }
    }
}
