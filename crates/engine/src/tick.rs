//! The scheduler's tick. Idle CPUs have none (NOHZ idle).

use crate::queue::NEVER;
use crate::sim::Simulation;
use coreward_machine::CAPACITY_SCALE;
use coreward_metrics::Part;
use coreward_policy::Feature;

/// Turns do not end sooner than this (hrtick_start(), kernel/sched/core.c).
const HRTICK_MIN_NS: u64 = 10_000;

impl Simulation<'_> {
    pub(crate) fn tick(&mut self, cpu: usize) {
        self.cpus[cpu].tick_at += self.tick_ns;
        self.scale_freq_tick(cpu);
        if let Some(curr) = self.cpus[cpu].curr {
            self.update_curr(cpu, cpu);
            self.sys.task_tick(&mut self.tasks[curr as usize].policy, cpu, self.now);
            self.charge_tg_writes(cpu, cpu);
            self.charge_tg_reads(cpu);
            self.reweight_groups(cpu);
            self.entity_tick(cpu);
            self.task_tick_cache(curr);
        }
        self.charge_work(cpu, Part::Interrupt, self.costs.tick_ns);
        self.sched_balance_trigger(cpu);
        if let Some(curr) = self.cpus[cpu].curr.filter(|_| !self.cpus[cpu].need_resched) {
            self.task_cache_work(cpu, curr);
        }
        self.after_interrupt(cpu);
    }

    /// What its frequency leaves of the speed of `cpu` (`arch_scale_freq_tick()`). It falls with the number of busy cores
    /// in steps, which differ from model to model; a straight line is between them.
    fn scale_freq_tick(&mut self, cpu: usize) {
        let missing_pct = 100 - self.costs.all_core_freq_pct as u32;
        if missing_pct == 0 {
            return;
        }
        let llc = &self.sys.llc[self.sys.cpu[cpu].llc as usize];
        let busy = (llc.nr_busy_cpus * self.sys.smt_threads.max(1)).min(llc.weight);
        self.sys.cpu[cpu].freq_capacity =
            CAPACITY_SCALE - CAPACITY_SCALE * missing_pct * busy / (100 * llc.weight);
    }

    /// The current task's request may be served: another task gets the CPU, if one waits.
    pub(crate) fn hrtick(&mut self, cpu: usize) {
        self.cpus[cpu].hrtick_at = NEVER;
        self.charge_work(cpu, Part::Interrupt, self.costs.tick_ns);
        if self.cpus[cpu].curr.is_some() {
            self.update_curr(cpu, cpu);
            self.cpus[cpu].need_resched = true;
        }
        self.after_interrupt(cpu);
    }

    /// Arms the timer that ends the current task's turn, if another task waits.
    pub(crate) fn hrtick_start(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        if c.fair.is_empty() || !c.fair.rq.curr_competes() || !self.sys.sched_feat(Feature::HRTICK) {
            return;
        }
        let curr = &c.fair.rq.curr;
        let left = (curr.deadline - curr.vruntime).max(0) as u64 * u64::from(curr.weight) / 1024;
        c.hrtick_at = self.now + left.max(HRTICK_MIN_NS);
        self.reprogram(cpu);
    }
}
