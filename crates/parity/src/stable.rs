//! Whether the inputs of a decision stayed the same while it was made.
//!
//! A decision is stable if no field that its path may read, of any CPU that it may look at, had changed when it had been
//! made. What the path may read follows from the kernels' code and from what is known before the decision. It never
//! depends on what the policy does with it, or on whether the two agree. Where it depends on the course of a decision, all
//! courses count.

use std::fmt;

use coreward_machine::CpuSet;
use coreward_policy::layout::{SD_BALANCE_EXEC, SD_BALANCE_FORK, WF_EXEC, WF_FORK, WF_SYNC};
use coreward_policy::{Feature, System};

use crate::format::{CPU_CURR_IDLE, CPU_IDLE_STATE, CPU_TTWU_PENDING, CpuState, PLACEMENT_TICKED};
use crate::record::{Balance, Placement, RecordedDomain, RecordedMachine, States};
use crate::state::{State, sd};

/// A field that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Of this CPU, or of the cache or domain that it belongs to.
    pub cpu: usize,
    /// Its name in the file.
    pub field: &'static str,
    /// What it was before.
    pub before: u64,
    /// What it was afterwards.
    pub after: u64,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU {} {} {} -> {}", self.cpu, self.field, self.before, self.after)
    }
}

// The fields of a CPU that a path reads.
const IDLE: u32 = 1 << 0;
const SCHED_IDLE: u32 = 1 << 1;
const LOAD: u32 = 1 << 2;
const AVERAGES: u32 = 1 << 3;
const QUEUED: u32 = 1 << 4;
const RUNNABLE: u32 = 1 << 5;
const CAPACITY: u32 = 1 << 6;
const IDLE_STATE: u32 = 1 << 7;
const MISFIT: u32 = 1 << 8;
const NUMA: u32 = 1 << 9;
const PREF_LLC: u32 = 1 << 10;

/// A field, and the name above for reading it.
type FieldRead = (&'static str, u32, fn(&CpuState) -> u64);

fn flag(cpu: &CpuState, flag: u32) -> u64 {
    u64::from(cpu.flags & flag != 0)
}

const FIELDS: [FieldRead; 18] = [
    ("nr_running", IDLE, |c| c.nr_running.into()),
    ("curr_idle", IDLE, |c| flag(c, CPU_CURR_IDLE)),
    ("ttwu_pending", IDLE, |c| flag(c, CPU_TTWU_PENDING)),
    ("h_nr_idle", SCHED_IDLE, |c| c.h_nr_idle.into()),
    ("load_avg", LOAD | AVERAGES, |c| c.load_avg),
    ("runnable_avg", AVERAGES, |c| c.runnable_avg),
    ("util_avg", AVERAGES, |c| c.util_avg),
    ("util_est", AVERAGES, |c| c.util_est.into()),
    ("h_nr_queued", QUEUED, |c| c.h_nr_queued.into()),
    ("h_nr_runnable", RUNNABLE, |c| c.h_nr_runnable.into()),
    ("capacity", CAPACITY, |c| c.capacity.into()),
    ("idle_state", IDLE_STATE, |c| flag(c, CPU_IDLE_STATE)),
    ("exit_latency", IDLE_STATE, |c| c.exit_latency.into()),
    ("idle_stamp", IDLE_STATE, |c| c.idle_stamp),
    ("misfit_task_load", MISFIT, |c| c.misfit_task_load),
    ("nr_numa_running", NUMA, |c| c.nr_numa_running.into()),
    ("nr_preferred_running", NUMA, |c| c.nr_preferred_running.into()),
    ("nr_pref_dst_llc", PREF_LLC, |c| c.nr_pref_dst_llc.into()),
];

/// The changed inputs of a placement.
pub(crate) fn placement(machine: &RecordedMachine, state: &State, placement: &Placement) -> Vec<Moved> {
    match placement.head.is_slow() {
        true => slow_path(machine, state, placement),
        false => wakeup(state, placement),
    }
}

fn wakeup(state: &State, placement: &Placement) -> Vec<Moved> {
    let head = &placement.head;
    let (sys, this_cpu, prev_cpu) = (&state.sys, head.this_cpu as usize, head.prev_cpu as usize);
    let ends = CpuSet::from_iter([this_cpu, prev_cpu]);
    // cores whose idle siblings decide, and the CPUs that the search starts from
    let nearby = ends.union(&cores(sys, &near(sys, &ends).intersect(&placement.allowed)));
    let asym = if sys.asym_present != 0 { CAPACITY } else { 0 };
    let sync = if head.wake_flags & WF_SYNC != 0 { QUEUED | RUNNABLE } else { 0 };
    let affine = if this_cpu == prev_cpu { 0 } else { LOAD | CAPACITY };
    let reads = |cpu: usize| {
        let scanned = if nearby.contains(cpu) { IDLE | SCHED_IDLE | asym } else { 0 };
        let compared = if ends.contains(cpu) { affine } else { 0 };
        scanned | compared | if cpu == this_cpu { sync } else { 0 }
    };
    let mut moved = changed_fields(&placement.states, reads);
    moved.extend(changed_notes(sys, placement, &ends));
    // the waker's flips decay by it
    if head.flags & PLACEMENT_TICKED != 0 {
        moved.push(Moved { cpu: this_cpu, field: "jiffies", before: head.jiffies, after: head.jiffies + 1 });
    }
    moved
}

fn slow_path(machine: &RecordedMachine, state: &State, placement: &Placement) -> Vec<Moved> {
    let sys = &state.sys;
    let wanted = match placement.head.wake_flags & (WF_EXEC | WF_FORK) {
        WF_EXEC => SD_BALANCE_EXEC,
        _ => SD_BALANCE_FORK,
    };
    let domains = machine.domains[placement.head.this_cpu as usize].iter();
    let searched = domains.take_while(|domain| machine.host.sd_flags(domain.head.flags) & wanted != 0);
    let mut span = searched.last().map_or_else(CpuSet::new, |top| top.span);
    if sys.sched_feat(Feature::DST_GROUP_ALLOWED) {
        span = span.intersect(&placement.allowed);
    }
    let asym = if sys.asym_present != 0 { CAPACITY } else { 0 };
    let all = IDLE | SCHED_IDLE | AVERAGES | QUEUED | IDLE_STATE | asym;
    changed_fields(&placement.states, |cpu| if span.contains(cpu) { all } else { 0 })
}

/// The changed inputs of a balance's choice of a group.
pub(crate) fn group(machine: &RecordedMachine, state: &State, balance: &Balance) -> Vec<Moved> {
    let dst = balance.head.dst_cpu as usize;
    let (level, domain) = domain(machine, balance);
    let considered = domain.span.intersect(&balance.cpus);
    let core = machine.cpus[dst].core;
    let all = balance_reads(machine, state, domain);
    changed_fields(&balance.states, |cpu| {
        let idle = if core.contains(cpu) { IDLE } else { 0 };
        let choice = if considered.contains(cpu) { all } else { 0 };
        // at the lowest level the balance brings the capacity of its own CPU up to date
        let own = if cpu == dst && level == 0 { CAPACITY } else { 0 };
        (idle | choice) & !own
    })
}

/// The changed inputs of the choice of a queue, during the choice of the group: the known state is that at its
/// end.
pub(crate) fn queue(machine: &RecordedMachine, state: &State, balance: &Balance) -> Vec<Moved> {
    let (_, domain) = domain(machine, balance);
    let considered = balance.group.intersect(&balance.cpus);
    let all = balance_reads(machine, state, domain);
    changed_fields(&balance.states, |cpu| if considered.contains(cpu) { all } else { 0 })
}

fn balance_reads(machine: &RecordedMachine, state: &State, domain: &RecordedDomain) -> u32 {
    let flags = machine.host.sd_flags(domain.head.flags);
    let counted = if state.sys.sched_feat(Feature::LB_RUNNABLE) { RUNNABLE } else { QUEUED };
    let misfit = if flags & sd::ASYM_CPUCAPACITY != 0 { MISFIT } else { 0 };
    let numa = if flags & sd::NUMA != 0 { NUMA } else { 0 };
    let cache = if state.sys.sched_cache_enabled() { PREF_LLC } else { 0 };
    IDLE | AVERAGES | CAPACITY | counted | misfit | numa | cache
}

/// The domain that is balanced, with its level.
pub(crate) fn domain<'m>(machine: &'m RecordedMachine, balance: &Balance) -> (usize, &'m RecordedDomain) {
    let dst = balance.head.dst_cpu as usize;
    let level = machine.level_of_weight(dst, balance.head.span_weight).unwrap_or(0);
    (level, &machine.domains[dst][level])
}

fn changed_fields(states: &States, reads: impl Fn(usize) -> u32) -> Vec<Moved> {
    let mut moved = Vec::new();
    for changed in &states.changed {
        let cpu = changed.cpu as usize;
        let read = reads(cpu);
        for (field, kind, value) in FIELDS {
            let (before, after) = (value(&states.cpus[cpu]), value(&changed.after));
            if read & kind != 0 && before != after {
                moved.push(Moved { cpu, field, before, after });
            }
        }
    }
    moved
}

/// The data stored with LLCs and domains of asymmetric capacity: the scan limit, and whether a core is idle. They are
/// read through each of their CPUs in turn. The last reading before the decision is through the last of these CPUs, and
/// the first reading after it is through the first.
fn changed_notes(sys: &System, placement: &Placement, ends: &CpuSet) -> Vec<Moved> {
    let mut moved = Vec::new();
    for end in ends.iter() {
        let llc = same(sys, |cpu| sys.cpu[cpu].llc == sys.cpu[end].llc);
        let asym = same(sys, |cpu| sys.cpu[cpu].asym_sd == sys.cpu[end].asym_sd);
        let mut compare = |field, set: &CpuSet, may_be_ours: bool, value: fn(&CpuState) -> u32| {
            let (Some(first), Some(last)) = (set.first(), set.last()) else { return };
            let changed = placement.states.changed.iter().find(|changed| changed.cpu as usize == first);
            let before = u64::from(value(&placement.states.cpus[last]));
            let after = changed.map_or(&placement.states.cpus[first], |changed| &changed.after);
            let after = u64::from(value(after));
            if before == after {
                return;
            }
            let taken_back = may_be_ours && before != 0 && after == 0;
            if !taken_back || has_idle_core(sys, placement, set) {
                moved.push(Moved { cpu: end, field, before, after });
            }
        };
        if sys.sched_feat(Feature::SIS_UTIL) {
            compare("nr_idle_scan", &llc, false, |c| c.nr_idle_scan);
        }
        // a failed search for an idle core clears the flag
        compare("has_idle_cores", &llc, true, |c| c.has_idle_cores);
        if sys.asym_present != 0 {
            compare("asym_nr_idle_scan", &asym, false, |c| c.asym_nr_idle_scan);
            compare("asym_has_idle_cores", &asym, true, |c| c.asym_has_idle_cores);
        }
    }
    moved
}

fn same(sys: &System, is_same: impl Fn(usize) -> bool) -> CpuSet {
    (0..sys.nr_cpus as usize).filter(|cpu| is_same(*cpu)).collect()
}

/// The CPUs that share the cache, or the domain that is searched where capacities differ, with any of these.
fn near(sys: &System, ends: &CpuSet) -> CpuSet {
    same(sys, |cpu| {
        ends.iter().any(|end| {
            let (rq, end) = (&sys.cpu[cpu], &sys.cpu[end]);
            rq.llc == end.llc || sys.asym_present != 0 && rq.asym_sd == end.asym_sd
        })
    })
}

/// All CPUs of the cores of these.
fn cores(sys: &System, cpus: &CpuSet) -> CpuSet {
    same(sys, |cpu| cpus.iter().any(|other| sys.cpu[cpu].core == sys.cpu[other].core))
}

/// Was there a core without a task before the decision, among these CPUs, that the task may use?
fn has_idle_core(sys: &System, placement: &Placement, cpus: &CpuSet) -> bool {
    cpus.intersect(&placement.allowed).iter().any(|cpu| {
        let core = cores(sys, &CpuSet::single(cpu));
        core.iter().all(|cpu| is_idle(&placement.states.cpus[cpu]))
    })
}

/// `idle_cpu()` of a recorded CPU.
pub(crate) fn is_idle(cpu: &CpuState) -> bool {
    cpu.flags & CPU_CURR_IDLE != 0 && cpu.flags & CPU_TTWU_PENDING == 0 && cpu.nr_running == 0
}
