//! New tasks, what they have from the task that creates them, and their end.

use coreward_policy::layout::{SE_BATCH, SE_IDLE, TASK_SCHED_IDLE};
use coreward_workload::Policy;

use crate::sim::Simulation;
use crate::task::{State, Task};

/// What a task has created and not waited for yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Children {
    threads: u32,
    /// Ended or not.
    processes: u32,
    /// Processes that have ended.
    zombies: u32,
}

impl Children {
    pub(crate) fn spawned(&mut self, process: bool) {
        if process {
            self.processes += 1;
        } else {
            self.threads += 1;
        }
    }

    /// One of them ends. Returns whether that wakes a task that waits for them: `wait()` returns for each process,
    /// `pthread_join()` is taken to have been called for the thread that is the last to end.
    fn ended(&mut self, process: bool) -> bool {
        if process {
            self.zombies += 1;
            return true;
        }
        self.threads -= 1;
        !self.any()
    }

    /// Waits for one of the processes that have ended, if there is one.
    pub(crate) fn reap(&mut self) -> bool {
        let one = self.zombies > 0;
        self.zombies -= u32::from(one);
        self.processes -= u32::from(one);
        one
    }

    pub(crate) fn any(&self) -> bool {
        self.threads + self.processes > 0
    }
}

impl Simulation<'_> {
    /// A call of `wait()`. It looks at all child processes, or at half of them to find one that has ended.
    pub(crate) fn wait_ns(&self, task: usize) -> u64 {
        let children = &self.tasks[task].children;
        let scan_ns = self.costs.child_scan_ns * u64::from(children.processes);
        if children.zombies > 0 { self.costs.reap_ns + scan_ns / 2 } else { scan_ns }
    }

    /// A task ends on `cpu`, and tells the task that created it.
    pub(crate) fn exit(&mut self, cpu: usize, id: u32) {
        let task = &mut self.tasks[id as usize];
        let process = task.process == id;
        task.state = State::Dead;
        self.sched_cache_exit(id);
        self.nr_live -= 1;
        if let Some(parent) = self.tasks[id as usize].parent {
            let p = &mut self.tasks[parent as usize];
            if p.children.ended(process) && std::mem::take(&mut p.waits_for_children) {
                // a task that exits is never a synchronous waker (select_task_rq_fair())
                self.try_to_wake_up(parent, cpu, false);
            }
        }
    }

    /// The end of a task; with that of its first thread the process gives its memory back.
    pub(crate) fn exit_ns(&self, task: usize) -> u64 {
        let t = &self.tasks[task];
        if t.process as usize != task {
            return self.costs.exit_ns;
        }
        let mapped_pct = self.workload.attributes(t.program).mapped_pct.unwrap_or(100);
        self.costs.exit_ns + self.costs.process_exit_ns * u64::from(mapped_pct) / 100
    }

    /// Creates a task on `cpu`, a process of its own if it has no parent or if that is asked for.
    pub(crate) fn new_task(
        &mut self,
        program: u32,
        base: u32,
        process: bool,
        parent: Option<u32>,
        cpu: usize,
    ) -> u32 {
        let id = self.tasks.len() as u32;
        let process = match parent {
            Some(p) if !process => self.tasks[p as usize].process,
            _ => id,
        };
        let ops = &self.workload.programs[program as usize];
        let mut task = Task::new(id, (program, ops), base, process, parent);
        let attributes = self.workload.attributes(program);
        let weight = self.sys.task_weight(attributes.nice, attributes.policy == Policy::Idle);
        task.policy.weight = weight;
        task.own_weight = weight;
        task.group = attributes.group.map(|group| group as usize + 1);
        task.se.weight = weight;
        match attributes.policy {
            Policy::Other => {}
            Policy::Batch => task.se.flags |= SE_BATCH,
            Policy::Idle => {
                task.se.flags |= SE_IDLE;
                task.policy.flags |= TASK_SCHED_IDLE;
            }
        }
        let mask = parent.map_or(0, |parent| self.tasks[parent as usize].allowed);
        task.start_ns = match parent {
            None => 0,
            Some(_) if process == id => self.costs.fork_start_ns,
            Some(_) => self.costs.thread_start_ns,
        };
        self.sys.init_task(&mut task.policy, cpu);
        match parent {
            Some(parent) => self.sys.fork(&mut task.policy, &self.tasks[parent as usize].policy),
            None => task.policy.wakee_flips = self.workload.wakee_flips,
        }
        self.trace.fork(
            self.now,
            task.policy.pid,
            self.tasks.get(process as usize).map_or(task.policy.pid, |t| t.policy.pid),
            program,
            base,
        );
        self.tasks.push(task);
        if process == id {
            self.mm_counts.add(process);
        }
        self.allow(id, mask);
        self.sched_cache_fork(id);
        self.nr_live += 1;
        id
    }
}
