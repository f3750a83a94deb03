//! What a recorded state suggests about the kernel's reasons; the kernel itself gives none.

use coreward_machine::CpuSet;

use crate::record::{Placement, RecordedMachine};
use crate::stable::is_idle;

/// Why the kernel may have placed a task there: the first reason that fits.
pub(crate) fn placement_reason(machine: &RecordedMachine, placement: &Placement) -> &'static str {
    let head = &placement.head;
    let chosen = head.chosen as usize;
    let idle = |cpu: usize| is_idle(&placement.states.cpus[cpu]);
    let core_idle = machine.cpus[chosen].core.iter().all(idle);
    match (idle(chosen), head.chosen) {
        (true, cpu) if cpu == head.prev_cpu => "previous CPU, idle",
        (true, cpu) if cpu == head.this_cpu => "waker's CPU, idle",
        (true, cpu) if cpu == head.task.recent_used_cpu && !head.is_slow() => "recently used CPU, idle",
        (true, _) if core_idle && machine.cpus[chosen].core.len() > 1 => "idle core",
        (true, _) if machine.cpus[head.prev_cpu as usize].core.contains(chosen) => {
            "SMT sibling of the previous CPU, idle"
        }
        (true, _) => "idle CPU",
        (false, cpu) if cpu == head.prev_cpu => "previous CPU, busy",
        (false, cpu) if cpu == head.this_cpu => "waker's CPU, busy",
        (false, _) => "busy CPU",
    }
}

/// What the kernel found.
pub(crate) fn balance_reason(group: &CpuSet) -> &'static str {
    if group.is_empty() { "balanced" } else { "busiest group found" }
}

/// Where the kernel's group is relative to the policy's.
pub(crate) fn group_relation(policy: &CpuSet, kernel: &CpuSet) -> &'static str {
    match (policy.is_empty(), kernel.is_empty()) {
        (true, false) => "only the kernel pulls",
        (false, true) => "only the policy pulls",
        _ if policy == kernel => "same group",
        _ => "another group",
    }
}
