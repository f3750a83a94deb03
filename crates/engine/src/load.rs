//! The load average that the CPUs of a task group share, and the run time of the current task.

use crate::sim::Simulation;
use coreward_metrics::Part;

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

    /// `cpu`'s queue may have told the groups around it of its load: `by`, which did that, waits for the groups' lines.
    pub(crate) fn charge_tg_writes(&mut self, cpu: usize, by: usize) {
        let mut written = std::mem::take(&mut self.sys.tg_cpu[cpu].written);
        while written != 0 {
            let level = 31 - written.leading_zeros();
            written &= !(1 << level);
            let m = self.moment(by);
            let wait = self.tg_load_avg[level as usize].write(&self.distances, by, m);
            self.charge_tg(by, wait);
        }
    }

    /// A group's share of a CPU follows the group's load average, so every enqueue and
    /// dequeue reads it, on every level.
    pub(crate) fn charge_tg_reads(&mut self, by: usize) {
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
        self.sys.enqueue_task(&mut self.tasks[task as usize].policy, cpu, self.now);
        self.charge_tg_writes(cpu, by);
        self.charge_tg_reads(by);
    }

    /// A task has left the queue of `cpu`. `running` if it ran until now.
    pub(crate) fn account_dequeue(&mut self, cpu: usize, task: u32, running: bool, by: usize) {
        self.charge_group_entities(cpu, by);
        self.dequeue_from_group(task);
        self.sys.dequeue_task(&mut self.tasks[task as usize].policy, self.now, running);
        self.charge_tg_writes(cpu, by);
        self.charge_tg_reads(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::Moment;
    use crate::testing::{begun, one_message, settings};
    use coreward_machine::Machine;
    use coreward_policy::Changes;

    /// How long CPU 0 takes to tell the groups of these levels of its load, after CPU 1 has done so, and again.
    fn tells(levels: u32) -> (u64, u64) {
        begun(&Machine::load("2c").unwrap(), &one_message(), &settings(&Changes::default(), 3), |sim| {
            sim.now += 1_000_000;
            sim.cpus[0].pending = Default::default();
            for level in &mut sim.tg_load_avg {
                level.write(&sim.distances, 1, Moment { now: sim.now - 500_000, at: sim.now - 500_000 });
            }
            sim.sys.tg_cpu[0].written = levels;
            sim.charge_tg_writes(0, 0);
            let once = sim.local_now(0) - sim.now;
            sim.charge_tg_writes(0, 0);
            (once, sim.local_now(0) - sim.now - once)
        })
    }

    #[test]
    fn a_cpu_waits_for_the_line_of_each_group_that_it_tells_of_its_load_once() {
        let line = tells(0b100).0;
        assert!(line > 0);
        assert_eq!(tells(0), (0, 0));
        assert_eq!(tells(0b001), (line, 0));
        assert_eq!(tells(0b111), (3 * line, 0));
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
