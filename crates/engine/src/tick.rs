//! The scheduler's tick. Idle CPUs have none (NOHZ idle).

use crate::sim::Simulation;

impl Simulation<'_> {
    pub(crate) fn tick(&mut self, cpu: usize) {
        self.cpus[cpu].tick_at += self.tick_ns;
        self.charge_work(cpu, self.costs.tick_ns);
        if let Some(curr) = self.cpus[cpu].curr {
            self.update_curr(cpu);
            if self.update_load_avg(cpu, curr, self.cpus[cpu].fair.rq.curr_competes(), true) {
                self.update_tg_load_avg(cpu, cpu);
            }
            self.update_cfs_group(cpu);
            self.entity_tick(cpu);
            self.task_tick_cache(curr);
            self.sys.update_misfit_status(Some(&self.tasks[curr as usize].policy), cpu);
        }
        self.sched_balance_trigger(cpu);
        if let Some(curr) = self.cpus[cpu].curr.filter(|_| !self.cpus[cpu].need_resched) {
            self.task_cache_work(cpu, curr);
        }
        self.after_interrupt(cpu);
    }
}
