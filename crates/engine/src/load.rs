//! The load average that the CPUs of a task group share, and the run time of the current task.

use crate::sim::Simulation;
use coreward_metrics::Part;
use coreward_policy::Feature;

/// A runqueue updates its task group's load at most this often (TG_LOAD_AVG_RATELIMIT).
const TG_UPDATE_NS: u64 = 1_000_000;

impl Simulation<'_> {
    /// Advances the clock of `cpu`'s runqueue to the time of `by`, which holds its lock. Kernel work that `by` has
    /// already done in this event has passed: a task that wakes another pays for the wakeup.
    pub(crate) fn update_rq_clock(&mut self, cpu: usize, by: usize) {
        let now = self.local_now(by);
        let clock = &mut self.cpus[cpu].clock;
        *clock = now.max(*clock);
    }

    /// Accounts the time of `cpu`'s current task up to the present time of `by`.
    pub(crate) fn update_curr(&mut self, cpu: usize, by: usize) {
        self.update_rq_clock(cpu, by);
        self.charge_curr(cpu);
    }

    /// Accounts the time of `cpu`'s current task up to the clock of its runqueue.
    pub(crate) fn charge_curr(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let Some(curr) = c.curr else { return };
        let delta = c.clock - c.fair.rq.curr.exec_start;
        if delta == 0 {
            return;
        }
        c.need_resched |= c.fair.rq.update_curr(&self.sys, c.clock);
        self.schedstat[cpu].rq_cpu_time += delta;
        self.tasks[curr as usize].policy.exec_start = c.clock;
        self.account_mm_sched(cpu, curr, delta);
        if self.groups.used {
            self.account_cfs_rq_runtime(cpu, curr, delta);
        }
    }

    /// Passes the load of `cpu`'s runqueue on to its task group, if it has changed by more
    /// than 1/64. The change propagates up the hierarchy of groups, whose shares of the CPU
    /// follow. `by` is the CPU that does this, and waits for the groups' lines.
    pub(crate) fn update_tg_load_avg(&mut self, cpu: usize, by: usize) {
        let load = self.sys.cpu[cpu].avg.load_avg;
        let c = &self.cpus[cpu];
        if self.feature(Feature::TG_LOAD_AVG_RATELIMIT) && self.now - c.tg_updated_at < TG_UPDATE_NS {
            return;
        }
        if load.abs_diff(c.tg_load_avg_contrib) > c.tg_load_avg_contrib / 64 {
            self.cpus[cpu].tg_load_avg_contrib = load;
            self.cpus[cpu].tg_updated_at = self.now;
            for level in 0..self.tg_load_avg.len() {
                let m = self.moment(by);
                let wait = self.tg_load_avg[level].write(&self.distances, by, m);
                self.charge_tg(by, wait);
            }
        }
    }

    /// A group's share of a CPU follows the group's load average, so every enqueue and
    /// dequeue reads it, on every level.
    pub(crate) fn update_cfs_group(&mut self, by: usize) {
        for level in 0..self.tg_load_avg.len() {
            let m = self.moment(by);
            let wait = self.tg_load_avg[level].read(&self.distances, by, m);
            self.charge_tg(by, wait);
        }
    }

    /// A group's entity on a CPU is queued on the level above while the group has tasks there, and the workload's groups
    /// lie in each other: when the first task comes to `cpu` or the last one has left, all of them change.
    /// (enqueue_task_fair(), dequeue_entities())
    fn charge_group_entities(&mut self, cpu: usize, by: usize) {
        if self.cpus[cpu].fair.rq.nr_queued() == 0 {
            let levels = self.tg_load_avg.len() as u64;
            self.charge_work(by, Part::Queue, levels * self.costs.group_entity_ns);
        }
    }

    fn charge_tg(&mut self, cpu: usize, wait: u64) {
        self.charge_stall(cpu, Part::TgLoadAvg, wait);
    }

    /// A task is about to join the queue of `cpu`: its load counts there from now on.
    /// `by` is the CPU that does the work.
    pub(crate) fn account_enqueue(&mut self, cpu: usize, task: u32, by: usize) {
        self.charge_group_entities(cpu, by);
        self.enqueue_in_group(task, cpu);
        if self.sys.enqueue_task(&mut self.tasks[task as usize].policy, cpu, self.now) {
            self.update_tg_load_avg(cpu, by);
        }
        self.update_cfs_group(by);
    }

    /// A task has left the queue of `cpu`. `running` if it ran until now.
    pub(crate) fn account_dequeue(&mut self, cpu: usize, task: u32, running: bool, by: usize) {
        self.charge_group_entities(cpu, by);
        self.dequeue_from_group(task);
        if self.sys.dequeue_task(&mut self.tasks[task as usize].policy, self.now, running) {
            self.update_tg_load_avg(cpu, by);
        }
        self.update_cfs_group(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{begun, one_message, settings};
    use coreward_machine::Machine;
    use coreward_policy::Changes;

    /// What the group knows of CPU 0's load, which it was given as `contrib` when it was last updated
    /// and has become `load` `after` ns later, once the CPU has wanted to give it anew.
    fn contrib_after(ratelimit: bool, contrib: u64, load: u64, after: u64) -> u64 {
        let mut changes = Changes::default();
        changes.switch_feature(Feature::TG_LOAD_AVG_RATELIMIT, ratelimit);
        begun(&Machine::load("2c").unwrap(), &one_message(), &settings(&changes, 1), |sim| {
            sim.cpus[0].tg_load_avg_contrib = contrib;
            sim.cpus[0].tg_updated_at = sim.now;
            sim.sys.cpu[0].avg.load_avg = load;
            sim.now += after;
            sim.update_tg_load_avg(0, 0);
            sim.cpus[0].tg_load_avg_contrib
        })
    }

    #[test]
    fn with_the_rate_limit_a_group_is_told_of_a_changed_load_only_once_a_millisecond() {
        // a task has come within the millisecond: twice the load
        assert_eq!(contrib_after(false, 1024, 2048, 999_999), 2048);
        assert_eq!(contrib_after(true, 1024, 2048, 999_999), 1024);
        assert_eq!(contrib_after(true, 1024, 2048, 1_000_000), 2048);
    }

    #[test]
    fn a_group_is_told_of_a_load_that_has_changed_by_more_than_a_64th() {
        for (load, told) in [(1040, 1024), (1041, 1041), (1008, 1024), (1007, 1007)] {
            assert_eq!(contrib_after(true, 1024, load, 1_000_000), told);
        }
    }

    /// How far the clock of CPU 0's queue is ahead once CPU 1, after `spent` ns of kernel work, has updated it.
    fn ahead_by_another(spent: u64) -> u64 {
        begun(&Machine::load("2c").unwrap(), &one_message(), &settings(&Changes::default(), 0), |sim| {
            sim.cpus[1].pending = Default::default();
            sim.charge_stall(1, Part::Wakeup, spent);
            sim.update_curr(0, 1);
            // CPU 0's own time has not come that far: its clock does not go back
            sim.update_curr(0, 0);
            sim.cpus[0].clock - sim.local_now(0)
        })
    }

    #[test]
    fn a_wakeup_is_on_the_clock_of_the_queue_that_it_changes() {
        assert_eq!(ahead_by_another(0), 0);
        assert_eq!(ahead_by_another(700), 700);
    }
}
