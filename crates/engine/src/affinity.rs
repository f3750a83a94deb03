//! On which CPUs a task may run.

use crate::sim::{SimError, Simulation};
use coreward_machine::CpuSet;
use coreward_metrics::Part;
use coreward_policy::CpuMask;
use coreward_workload::CpuChoice;

/// Is the CPU in the mask?
#[inline]
pub(crate) fn contains(mask: &CpuMask, cpu: usize) -> bool {
    mask.bits[cpu / 64] >> (cpu % 64) & 1 == 1
}

/// Is every CPU of `a` in `b`?
pub(crate) fn is_subset(a: &CpuMask, b: &CpuMask) -> bool {
    a.bits.iter().zip(b.bits).all(|(a, b)| a & !b == 0)
}

/// A set as the policy has it.
pub(crate) fn mask(set: &CpuSet) -> CpuMask {
    CpuMask { bits: *set.words() }
}

/// The CPUs that a task chooses among those that the workload may use, of which there is one at least.
pub(crate) fn chosen(choice: &CpuChoice, allowed: &CpuSet) -> CpuSet {
    match choice {
        CpuChoice::These(cpus) => cpus.iter().map(|cpu| *cpu as usize).collect(),
        CpuChoice::InTurn(turn) => allowed.iter().nth(*turn as usize % allowed.len()).into_iter().collect(),
    }
}

/// The CPUs that all tasks may use, then for each set of the workload those of it that a task may use.
///
/// # Errors
/// A set has none.
pub(crate) fn masks(allowed: &CpuSet, sets: &[CpuChoice]) -> Result<Vec<CpuMask>, SimError> {
    let mut masks = vec![mask(allowed)];
    for set in sets {
        let wanted = chosen(set, allowed);
        let usable = wanted.intersect(allowed);
        if usable.is_empty() {
            let (wanted, allowed) = (wanted.to_string(), allowed.to_string());
            return Err(SimError::Affinity { wanted, allowed });
        }
        masks.push(mask(&usable));
    }
    Ok(masks)
}

impl Simulation<'_> {
    /// `sched_setaffinity` of the current task. False if it has to leave its CPU.
    pub(crate) fn set_affinity(&mut self, cpu: usize, id: u32, set: Option<u32>) -> bool {
        self.tasks[id as usize].advance();
        self.allow(id, set.map_or(0, |set| set as usize + 1));
        let mask = self.masks[self.tasks[id as usize].allowed];
        if contains(&mask, cpu) {
            return true;
        }
        // cpumask_any_and_distribute(): the next one after that of the last time
        let last = self.cpus[cpu].distributed;
        let nr_cpus = self.cpus.len();
        let mut next = (1..=nr_cpus).map(|step| (last + step) % nr_cpus);
        let to = next.find(|cpu| contains(&mask, *cpu)).expect("masks() refuses an empty mask");
        self.cpus[cpu].distributed = to;
        // the stopper preempts the task, so it can be moved like a waiting one
        self.charge_work(cpu, Part::Switch, self.costs.context_switch_ns);
        self.update_curr(cpu, cpu);
        self.put_prev_task(cpu, id);
        self.count_switch(cpu, Some(id), None);
        self.detach_task(id, cpu, cpu);
        self.attach_task(id, to, cpu);
        self.wakeup_preempt(id, to, cpu, 0);
        false
    }

    /// Makes the CPUs of a mask those that a task may use.
    pub(crate) fn allow(&mut self, id: u32, mask: usize) {
        let cpus = self.masks[mask];
        let usable = (0..self.cpus.len()).filter(|cpu| contains(&cpus, *cpu));
        let capacities = usable.map(|cpu| self.sys.cpu[cpu].capacity_orig);
        let t = &mut self.tasks[id as usize];
        t.allowed = mask;
        t.policy.nr_cpus_allowed = capacities.clone().count() as u32;
        t.policy.max_allowed_capacity = capacities.max().unwrap_or(1024);
    }
}
