//! What a task changes of itself while it runs: its nice value, and the task group that it is in.

use coreward_policy::layout::TASK_SCHED_IDLE;

use crate::fair::Enqueue;
use crate::sim::Simulation;
use crate::task::Task;

impl Simulation<'_> {
    /// `setpriority` of the current task. One that is less important now may have to leave the CPU.
    pub(crate) fn set_user_nice(&mut self, cpu: usize, id: u32, nice: i8) {
        let idle = self.tasks[id as usize].policy.flags & TASK_SCHED_IDLE != 0;
        let weight = self.sys.task_weight(nice, idle);
        let before = self.tasks[id as usize].own_weight;
        self.change_queued(cpu, id, |task| task.own_weight = weight);
        self.cpus[cpu].need_resched |= weight < before;
    }

    /// The current task moves to another task group (`sched_move_task()`); `None` is the workload's own.
    pub(crate) fn move_task(&mut self, cpu: usize, id: u32, group: Option<u32>) {
        self.change_queued(cpu, id, |task| task.group = group.map(|group| group as usize + 1));
        self.cpus[cpu].need_resched = true;
    }

    /// The current task leaves its queue, is changed, joins the queue again, and goes on.
    fn change_queued(&mut self, cpu: usize, id: u32, change: impl FnOnce(&mut Task)) {
        self.update_curr(cpu, cpu);
        self.put_prev_task(cpu, id);
        self.dequeue_waiting(cpu, id, false);
        self.account_dequeue(cpu, id, false, cpu);
        self.return_cfs_rq_runtime(cpu, id);
        let t = &mut self.tasks[id as usize];
        change(t);
        if t.group.is_none() {
            t.policy.weight = t.own_weight;
            self.cpus[cpu].fair.rq.reweight_entity(&self.sys, &mut t.se, t.own_weight);
        }
        self.account_enqueue(cpu, id, cpu);
        self.enqueue_entity(cpu, id, Enqueue::Migration);
        self.set_next_task(cpu, id);
    }
}
