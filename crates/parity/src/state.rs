//! The policy's state of a recorded machine: its domains once, and the state at each decision.

use std::collections::BTreeMap;

use coreward_machine::CpuSet;
use coreward_policy::layout::{
    CfsRq, MAX_CPUS, MAX_DOMAINS, MAX_GROUPS, MAX_LEVELS, NO_IDLE_STATE, NONE, TASK_CFS_RQ,
    TASK_PERCPU_KTHREAD, TASK_SCHED_IDLE, TASK_UCLAMP,
};
use coreward_policy::{Avg, CpuMask, Domain, Feature, Group, Llc, PolicySettings, System, Task};

use crate::format::{self, CpuState, DomainHead, GroupState, TaskState};
use crate::record::{RecordedDomain, RecordedMachine, States};

/// `SD_*` bits as the policy numbers them (`policy/types.h`).
pub(crate) mod sd {
    pub(crate) const ASYM_CPUCAPACITY: u32 = 1 << 5;
    pub(crate) const ASYM_CPUCAPACITY_FULL: u32 = 1 << 6;
    pub(crate) const CLUSTER: u32 = 1 << 8;
    pub(crate) const SHARE_LLC: u32 = 1 << 9;
    pub(crate) const NUMA: u32 = 1 << 14;
}

/// A set of CPUs in the policy's form.
pub(crate) fn mask(set: &CpuSet) -> CpuMask {
    CpuMask { bits: *set.words() }
}

// a file has no more levels than the policy
const _: () = assert!(format::MAX_LEVELS <= MAX_LEVELS && format::MAX_CPUS <= MAX_CPUS);

/// The machine as the policy sees it, and the places of the recorded state in it.
pub(crate) struct State {
    pub(crate) sys: System,
    /// For each group of `sys`, the entry of [`States::groups`] that is its state.
    group_states: Vec<usize>,
}

impl State {
    /// Builds domains, groups and caches as the kernel had them.
    ///
    /// # Errors
    /// The policy has no room for so many domains or groups.
    pub(crate) fn build(machine: &RecordedMachine, policy: &PolicySettings) -> Result<State, String> {
        let mut sys = System::new(policy.code);
        sys.nr_cpus = machine.host.nr_cpus as u32;
        sys.mask_words = machine.mask_words() as u32;
        sys.tick_ns = machine.host.tick_ns() as u32;
        sys.set_features(policy.features);
        sys.tunable = policy.tunables;
        let mut state = State { sys, group_states: Vec::new() };
        state.add_cpus(machine);
        let owners = owners(machine);
        let mut known = BTreeMap::new();
        for (cpu, domains) in machine.domains.iter().enumerate() {
            for (level, domain) in domains.iter().enumerate() {
                state.add_domain(machine, &owners, &mut known, cpu, level, domain)?;
            }
        }
        Ok(state)
    }

    fn add_cpus(&mut self, machine: &RecordedMachine) {
        let mut llcs = BTreeMap::new();
        for (cpu, recorded) in machine.cpus.iter().enumerate() {
            let next = llcs.len() as u32;
            let llc = *llcs.entry(recorded.head.llc_id).or_insert(next);
            self.sys.smt_mask[cpu] = mask(&recorded.core);
            self.sys.smt_present |= u32::from(recorded.core.len() > 1);
            self.sys.max_cpu_capacity = self.sys.max_cpu_capacity.max(recorded.head.capacity_orig);
            let rq = &mut self.sys.cpu[cpu];
            rq.capacity_orig = recorded.head.capacity_orig;
            rq.llc = llc;
            rq.core = recorded.core.first().unwrap_or(cpu) as u32;
            rq.node = recorded.head.node as i32;
            rq.asym_sd = NONE;
            self.sys.llc[llc as usize] = Llc { weight: 1, domain: NONE, ..Llc::default() };
            self.sys.cpu_sd[cpu].iter_mut().for_each(|sd| sd.domain = NONE);
        }
        self.sys.nr_llcs = llcs.len() as u32;
    }

    /// Gives `cpu` its domain of that level. CPUs whose domain and ring of groups are the same share it.
    fn add_domain(
        &mut self,
        machine: &RecordedMachine,
        owners: &Owners,
        known: &mut BTreeMap<Vec<u8>, (u32, u32)>,
        cpu: usize,
        level: usize,
        recorded: &RecordedDomain,
    ) -> Result<(), String> {
        let (ring, own) = canonical(recorded, machine.host.nr_cpus);
        let key = ring.encode(machine.host.nr_cpus);
        let (domain, first_group) = match known.get(&key) {
            Some(same) => *same,
            None => {
                let added = self.add_ring(machine, owners, cpu, &ring, known.len())?;
                known.insert(key, added);
                added
            }
        };
        let sd = &mut self.sys.cpu_sd[cpu][level];
        sd.domain = domain;
        sd.local_group = first_group + own as u32;
        sd.balance_interval_ms = recorded.head.min_interval_ms;
        self.sys.cpu[cpu].nr_sd = level as u32 + 1;
        self.note_flags(cpu, domain);
        Ok(())
    }

    /// Adds a domain with its groups: its number, and that of its first group.
    fn add_ring(
        &mut self,
        machine: &RecordedMachine,
        owners: &Owners,
        cpu: usize,
        ring: &RecordedDomain,
        number: usize,
    ) -> Result<(u32, u32), String> {
        let first_group = self.group_states.len();
        if number >= MAX_DOMAINS || first_group + ring.groups.len() > MAX_GROUPS {
            return Err(format!(
                "the machine has more than {MAX_DOMAINS} different domains or {MAX_GROUPS} groups, which are allowed"
            ));
        }
        let flags = machine.host.sd_flags(ring.head.flags);
        for group in &ring.groups {
            self.sys.group[self.group_states.len()] = Group {
                span: mask(&group.span),
                balance_mask: mask(&group.balance_mask),
                weight: group.head.weight,
                cores: group.head.cores,
                flags: machine.host.sd_flags(group.head.flags),
                ..Group::default()
            };
            self.group_states.push(owners.of(ring.head.level, &group.span));
        }
        let head = &ring.head;
        self.sys.domain[number] = Domain {
            span: mask(&ring.span),
            flags,
            level: head.level,
            weight: ring.span.len() as u32,
            imbalance_pct: head.imbalance_pct,
            busy_factor: head.busy_factor,
            min_interval_ms: head.min_interval_ms,
            max_interval_ms: head.max_interval_ms,
            cache_nice_tries: head.cache_nice_tries,
            imb_numa_nr: head.imb_numa_nr,
            nr_groups: ring.groups.len() as u32,
            first_group: first_group as u32,
            llc: if flags & sd::SHARE_LLC != 0 { self.sys.cpu[cpu].llc } else { NONE },
            ..Domain::default()
        };
        Ok((number as u32, first_group as u32))
    }

    /// What the kernel keeps per CPU and in static keys, from the flags of a domain that `cpu` is in.
    fn note_flags(&mut self, cpu: usize, domain: u32) {
        let Domain { flags, weight, .. } = self.sys.domain[domain as usize];
        if flags & sd::SHARE_LLC != 0 {
            let llc = self.sys.cpu[cpu].llc as usize;
            (self.sys.llc[llc].domain, self.sys.llc[llc].weight) = (domain, weight);
        } else {
            // domains come from the lowest to the highest
            let llc = self.sys.llc[self.sys.cpu[cpu].llc as usize];
            self.sys.sched_cache_present |= u32::from(llc.weight > 1 && weight > llc.weight);
        }
        if flags & sd::ASYM_CPUCAPACITY_FULL != 0 && self.sys.cpu[cpu].asym_sd == NONE {
            self.sys.cpu[cpu].asym_sd = domain;
        }
        self.sys.cluster_present |= u32::from(flags & sd::CLUSTER != 0);
        self.sys.asym_present |= u32::from(flags & sd::ASYM_CPUCAPACITY != 0);
    }

    /// Loads the recorded state before a decision.
    pub(crate) fn apply(&mut self, states: &States) {
        for (cpu, state) in states.cpus.iter().enumerate() {
            self.apply_cpu(cpu, state);
        }
        if states.groups.is_empty() {
            return;
        }
        for (group, &from) in self.group_states.iter().enumerate() {
            let state: &GroupState = &states.groups[from];
            let group = &mut self.sys.group[group];
            group.capacity = state.capacity;
            group.min_capacity = state.min_capacity;
            group.max_capacity = state.max_capacity;
            group.imbalance = state.imbalance;
            group.next_update = state.next_update;
        }
    }

    /// Loads the state of one CPU, and of its caches.
    pub(crate) fn apply_cpu(&mut self, cpu: usize, state: &CpuState) {
        let sis_prop = self.sys.sched_feat(Feature::SIS_PROP);
        let rq = &mut self.sys.cpu[cpu];
        rq.nr_running = state.nr_running;
        rq.cfs_nr_running = state.h_nr_queued;
        rq.cfs_nr_delayed = state.h_nr_queued.saturating_sub(state.h_nr_runnable);
        rq.idle_nr_running = state.h_nr_idle;
        rq.curr_is_idle = u8::from(state.flags & format::CPU_CURR_IDLE != 0);
        rq.ttwu_pending = u8::from(state.flags & format::CPU_TTWU_PENDING != 0);
        rq.capacity = state.capacity;
        let idle_state = state.flags & format::CPU_IDLE_STATE != 0;
        rq.exit_latency_us = if idle_state { state.exit_latency } else { NO_IDLE_STATE };
        rq.idle_stamp = state.idle_stamp;
        rq.misfit_task_load = state.misfit_task_load;
        rq.nr_numa_running = state.nr_numa_running;
        rq.nr_preferred_running = state.nr_preferred_running;
        rq.nr_pref_dst_llc = state.nr_pref_dst_llc;
        rq.avg = Avg {
            load_avg: state.load_avg,
            runnable_avg: state.runnable_avg,
            util_avg: state.util_avg,
            util_est: state.util_est,
            ..Avg::default()
        };
        if sis_prop {
            rq.avg_idle = state.avg_idle.into();
            rq.avg_scan_cost = state.nr_idle_scan.into();
        }
        let (llc, asym) = (rq.llc as usize, rq.asym_sd);
        let llc = &mut self.sys.llc[llc];
        llc.has_idle_cores = state.has_idle_cores;
        llc.nr_idle_scan = state.nr_idle_scan;
        llc.util_avg = u64::from(state.llc_util_avg);
        llc.capacity = state.llc_capacity;
        if asym != NONE {
            let domain = &mut self.sys.domain[asym as usize];
            let noted = state.asym_has_idle_cores != format::NO_SHARED;
            domain.has_idle_cores = if noted { state.asym_has_idle_cores } else { 0 };
            domain.nr_idle_scan = state.asym_nr_idle_scan;
        }
    }

    /// A recorded task; times become nanoseconds.
    pub(crate) fn task(&self, state: &TaskState) -> Task {
        let flag = |recorded: u32, policy: u32| if state.flags & recorded != 0 { policy } else { 0 };
        Task {
            pid: state.pid,
            recent_used_cpu: state.recent_used_cpu,
            wakee_flips: state.wakee_flips,
            wakee_flip_decay_ts: self.nanoseconds(state.wakee_flip_decay_ts),
            weight: state.weight,
            nr_cpus_allowed: state.nr_cpus_allowed,
            flags: flag(format::TASK_PERCPU_KTHREAD, TASK_PERCPU_KTHREAD)
                | flag(format::TASK_SCHED_IDLE, TASK_SCHED_IDLE)
                | if state.uclamp != 0 { TASK_UCLAMP } else { 0 }
                | TASK_CFS_RQ,
            uclamp_min: state.uclamp & 0xffff,
            uclamp_max: state.uclamp >> 16,
            numa_preferred_nid: state.numa_preferred_nid,
            cfs_rq: CfsRq {
                last_update_time: state.cfs_rq_update_time,
                load_avg: state.cfs_rq_load_avg,
                h_load: state.cfs_rq_h_load,
            },
            avg: Avg {
                last_update_time: state.last_update_time,
                load_sum: state.load_sum,
                runnable_sum: state.runnable_sum,
                load_avg: state.load_avg,
                runnable_avg: state.runnable_avg,
                util_avg: state.util_avg,
                util_sum: state.util_sum,
                period_contrib: state.period_contrib,
                util_est: state.util_est,
                pad: 0,
            },
            ..Task::default()
        }
    }

    /// Jiffies as the policy counts time.
    pub(crate) fn nanoseconds(&self, jiffies: u64) -> u64 {
        jiffies.wrapping_mul(u64::from(self.sys.tick_ns))
    }
}

/// The domain with its groups from the one with the lowest CPU on, for any CPU alike, and the place of
/// the CPU's own group among them.
fn canonical(domain: &RecordedDomain, nr_cpus: usize) -> (RecordedDomain, usize) {
    let lowest = |i: &usize| (domain.groups[*i].span.first().unwrap_or(nr_cpus), domain.groups[*i].span);
    let start = (0..domain.groups.len()).min_by_key(lowest).unwrap_or(0);
    let mut ring = domain.clone();
    ring.groups.rotate_left(start);
    ring.head = DomainHead { cpu: 0, index: 0, ..ring.head };
    (ring, (domain.groups.len() - start) % domain.groups.len())
}

/// Which entry of a decision's group states belongs to which group. The kernel's groups share their state
/// if they are of one level and span the same CPUs; each is the own group of one of these CPUs.
struct Owners {
    of_level: BTreeMap<(u32, CpuSet), usize>,
    of_any: BTreeMap<CpuSet, usize>,
}

impl Owners {
    /// If a level is missing on the CPUs of a group, the group of another level that spans the same CPUs
    /// has the same capacity; if there is none, the first entry is used instead.
    fn of(&self, level: u32, span: &CpuSet) -> usize {
        let same_level = self.of_level.get(&(level, *span));
        same_level.or_else(|| self.of_any.get(span)).copied().unwrap_or(0)
    }
}

fn owners(machine: &RecordedMachine) -> Owners {
    let mut owners = Owners { of_level: BTreeMap::new(), of_any: BTreeMap::new() };
    for (entry, domain) in machine.domains.iter().flatten().enumerate() {
        let span = domain.groups[0].span;
        owners.of_level.insert((domain.head.level, span), entry);
        owners.of_any.insert(span, entry);
    }
    owners
}
