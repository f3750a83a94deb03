//! The last-level cache that a process prefers: what has to be reported to the policy
//! (`policy/track/process.h`) about processes, and the cost of a search for that cache.

use crate::sim::Simulation;
use coreward_machine::{CpuSet, Machine};
use coreward_metrics::Part;
use coreward_policy::layout::{MAX_CPUS, NONE};
use coreward_policy::{Feature, Process, Runtime, System};

/// The cache lines of counters that a search reads for each CPU: the process's run time there,
/// and the run time of all processes with its lock (struct sched_cache_time and struct rq, kernel/sched/sched.h of 7.3).
const RUNTIME_LINES: u64 = 2;
/// SCHED_CACHE also reads the task that runs there, which each switch writes (rq->curr).
const CURR_LINES: u64 = 1;

/// The processes of a run, if a feature that needs them is on.
pub(crate) struct Processes {
    /// By the number of the first task, while it or another thread lives.
    list: Vec<Option<Box<Process>>>,
    /// The CPU that wrote the counters of a CPU's run time last.
    written_by: Vec<usize>,
    /// NUMA balancing, which is on if the machine has several nodes, sees footprints.
    numa_balancing: bool,
}

impl Processes {
    /// None if no feature of `sys` looks at what processes prefer.
    pub(crate) fn new(sys: &System, machine: &Machine) -> Option<Box<Self>> {
        let features = [Feature::CACHE_AWARE_WAKEUP, Feature::CACHE_AWARE_HOT];
        let asked = sys.sched_cache_enabled() || features.iter().any(|f| sys.sched_feat(*f));
        asked.then(|| {
            Box::new(Processes {
                list: Vec::new(),
                written_by: (0..machine.nr_cpus()).collect(),
                numa_balancing: machine.distances.len() > 1,
            })
        })
    }

    fn get(&mut self, process: u32) -> Option<&mut Process> {
        self.list.get_mut(process as usize)?.as_deref_mut()
    }
}

/// A process without threads.
fn new_process(sys: &System, now: u64) -> Box<Process> {
    let mut process = Box::new(Process {
        cache_cpu: -1,
        nr_threads: 0,
        epoch: 0,
        nr_running_avg: 0,
        footprint: 0,
        runtime: [Runtime::default(); MAX_CPUS],
    });
    sys.process_init(&mut process, now);
    process.nr_threads = 0;
    process
}

impl Simulation<'_> {
    /// CPUs other than these are gone: no process prefers their LLCs.
    pub(crate) fn forget_cache_cpus(&mut self, online: &CpuSet) {
        let Some(processes) = &mut self.processes else { return };
        for process in processes.list.iter_mut().flatten() {
            if usize::try_from(process.cache_cpu).is_ok_and(|cpu| !online.contains(cpu)) {
                process.cache_cpu = -1;
            }
        }
    }

    /// A new task joins its process, or is the first of one.
    pub(crate) fn sched_cache_fork(&mut self, task: u32) {
        let Some(processes) = &mut self.processes else { return };
        let t = &self.tasks[task as usize];
        processes.list.resize_with(self.tasks.len(), || None);
        let seen = u64::from(processes.numa_balancing);
        let first = t.process == task;
        if first {
            processes.list[task as usize] = Some(new_process(&self.sys, self.now));
        }
        if let Some(process) = processes.get(t.process) {
            let shared = if first { self.workload.footprint.shared_bytes } else { 0 };
            process.nr_threads += 1;
            let bytes = self.workload.private_bytes(t.program).saturating_add(shared);
            process.footprint = process.footprint.saturating_add(seen * bytes);
        }
    }

    /// A task has ended; with the last one its process does.
    pub(crate) fn sched_cache_exit(&mut self, task: u32) {
        let Some(processes) = &mut self.processes else { return };
        let t = &self.tasks[task as usize];
        let seen = u64::from(processes.numa_balancing);
        let Some(process) = processes.get(t.process) else { return };
        process.nr_threads -= 1;
        let bytes = seen * self.workload.private_bytes(t.program);
        process.footprint = process.footprint.saturating_sub(bytes);
        if process.nr_threads == 0 {
            processes.list[t.process as usize] = None;
        }
    }

    /// The current task of `cpu` ran for `delta` ns. This is counted in two lines that other CPUs
    /// touch at most once in an epoch, so the cost is negligible.
    #[inline]
    pub(crate) fn account_mm_sched(&mut self, cpu: usize, curr: u32, delta: u64) {
        let Some(processes) = &mut self.processes else { return };
        processes.written_by[cpu] = cpu;
        let t = &mut self.tasks[curr as usize];
        if let Some(process) = processes.get(t.process) {
            self.sys.account_mm_sched(process, &mut t.policy, delta, self.now);
        }
    }

    /// At a tick: is it time for the current task to look for an LLC?
    #[inline]
    pub(crate) fn task_tick_cache(&mut self, curr: u32) {
        let Some(processes) = &mut self.processes else { return };
        let t = &mut self.tasks[curr as usize];
        if let Some(process) = processes.get(t.process) {
            t.cache_work |= self.sys.process_tick(process, self.now);
        }
    }

    /// On its way out of the kernel, the current task searches for the LLC that its process occupies
    /// most, if a search is due.
    #[inline]
    pub(crate) fn task_cache_work(&mut self, cpu: usize, curr: u32) {
        if std::mem::take(&mut self.tasks[curr as usize].cache_work) {
            self.find_llc(cpu, curr);
        }
    }

    /// The search itself, which is kept out of the path of every op.
    #[cold]
    fn find_llc(&mut self, cpu: usize, curr: u32) {
        let t = &self.tasks[curr as usize];
        let Some(processes) = &mut self.processes else { return };
        let Some(process) = processes.get(t.process) else { return };
        if self.sys.task_cache_work(process, &t.policy, self.now) {
            self.charge_llc_search(cpu);
        }
    }

    /// A search reads and writes each CPU's counters, which decay. It accesses one CPU after the
    /// other, because it takes a lock for each.
    fn charge_llc_search(&mut self, cpu: usize) {
        let Some(processes) = &mut self.processes else { return };
        let curr_lines = if self.sys.sched_cache_enabled() { CURR_LINES } else { 0 };
        let mut stall = 0;
        for (of, writer) in processes.written_by.iter_mut().enumerate() {
            let llc = self.sys.cpu[of].llc as usize;
            if self.sys.llc[llc].domain == NONE {
                continue;
            }
            stall += RUNTIME_LINES * self.distances.transfer(*writer, cpu);
            stall += curr_lines * self.distances.transfer(of, cpu);
            *writer = cpu;
        }
        self.charge_stall(cpu, Part::LlcSearch, stall);
    }

    /// Tells the policy what a task's process prefers.
    #[inline]
    pub(crate) fn note_cache_cpu(&mut self, task: u32) {
        let Some(processes) = &mut self.processes else { return };
        let t = &mut self.tasks[task as usize];
        self.sys.task_cache_cpu(&mut t.policy, processes.get(t.process).map(|p| &*p));
    }
}
