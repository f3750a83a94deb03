//! The policy's state of a machine before the first task.

use coreward_machine::{CAPACITY_SCALE, DomainOptions, KernelStyle, Machine, SdFlags, Topology};
use coreward_policy::layout::{
    MASK_WORDS, MAX_DOMAINS, MAX_GROUPS, MAX_LEVELS, NONE, SD_BALANCE_NEWIDLE, SD_BALANCE_WAKE,
};
use coreward_policy::{
    CpuMask, CpuSd, Domain, Feature, Group, Llc, PolicySettings, Profile, System, Tunable,
};
use std::collections::BTreeSet;

/// The policy has no room for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// More domains than [`MAX_DOMAINS`].
    #[error("the machine has {0} sched domains (allowed: up to {MAX_DOMAINS})")]
    Domains(usize),
    /// More groups than [`MAX_GROUPS`].
    #[error("the machine has {0} sched groups (allowed: up to {MAX_GROUPS})")]
    Groups(usize),
    /// More levels than [`MAX_LEVELS`].
    #[error("a CPU has {0} sched domains (allowed: up to {MAX_LEVELS})")]
    Levels(usize),
}

/// The kernel in the profile's name.
pub fn kernel_style(profile: Profile) -> KernelStyle {
    let (major, minor) = profile.version();
    KernelStyle::new(major, minor)
}

/// The domains of a kernel of that profile, with the `relax_domain_level` that the settings request.
pub fn domain_options(profile: Profile, settings: &PolicySettings) -> DomainOptions {
    let names = kernel_style(profile);
    DomainOptions {
        // of what is not a level no machine has one
        relax_domain_level: i32::try_from(settings.tunable(Tunable::relax_domain_level)).ok(),
        relax_semantics: names.relax_semantics(),
        names,
    }
}

fn mask(set: &coreward_machine::CpuSet) -> CpuMask {
    CpuMask { bits: *set.words() }
}

/// Builds the policy's state at `now` (ns): `topology` has to be built from `machine`.
///
/// # Errors
/// The policy has no room for the machine.
pub fn policy_system(
    machine: &Machine,
    topology: &Topology,
    settings: &PolicySettings,
    now: u64,
) -> Result<System, TooLarge> {
    if topology.domains.len() > MAX_DOMAINS {
        return Err(TooLarge::Domains(topology.domains.len()));
    }
    let nr_groups: usize = topology.domains.iter().map(|d| d.groups.len()).sum();
    if nr_groups > MAX_GROUPS {
        return Err(TooLarge::Groups(nr_groups));
    }
    let mut sys = System::new(settings.code);
    sys.nr_cpus = machine.nr_cpus() as u32;
    sys.mask_words = machine.nr_cpus().div_ceil(64).min(MASK_WORDS) as u32;
    let llc_of = llcs(machine, topology);
    sys.nr_llcs = llc_of.iter().max().map_or(0, |last| last + 1);
    sys.tick_ns = 1_000_000_000 / machine.hz;
    // of the root domain in which tasks run
    let capacities = topology.partitions[0].iter().map(|cpu| machine.cpus[cpu].capacity);
    sys.max_cpu_capacity = capacities.max().unwrap_or(0);
    sys.set_features(settings.features);
    sys.tunable = settings.tunables;
    let first_group = add_domains(&mut sys, topology, &llc_of);
    add_llcs(&mut sys, machine, &llc_of);
    for (cpu, &llc) in llc_of.iter().enumerate() {
        let levels = topology.cpu_domains[cpu].len();
        if levels > MAX_LEVELS {
            return Err(TooLarge::Levels(levels));
        }
        sys.cpu[cpu].llc = llc;
        add_cpu(&mut sys, machine, topology, &first_group, cpu);
        if sys.sched_feat(Feature::WAKE_CAP) {
            balance_wakeups(&mut sys, cpu);
        }
        let rq = &mut sys.cpu[cpu];
        (rq.clock_task, rq.clock_pelt, rq.avg.last_update_time) = (now, now, now);
        sys.runnable_load[cpu].last_update_time = now;
        sys.cpu_sd[cpu].iter_mut().for_each(|sd| sd.newidle_stamp = now);
    }
    Ok(sys)
}

/// The last-level cache of each CPU as its domains show it (`sd_llc_id`): what CPUs of different
/// partitions share counts as two.
fn llcs(machine: &Machine, topology: &Topology) -> Vec<u32> {
    let partition = |cpu| topology.partitions.iter().position(|cpus| cpus.contains(cpu));
    let labels: Vec<_> = (0..machine.nr_cpus()).map(|cpu| (partition(cpu), machine.cpus[cpu].llc)).collect();
    let ids: Vec<_> = labels.iter().collect::<BTreeSet<_>>().into_iter().collect();
    labels.iter().map(|label| ids.partition_point(|id| *id < label) as u32).collect()
}

/// Copies domains, and each domain's groups one after the other; returns where each domain's start.
fn add_domains(sys: &mut System, topology: &Topology, llc_of: &[u32]) -> Vec<u32> {
    let mut next = 0;
    let mut first_group = Vec::new();
    for (i, d) in topology.domains.iter().enumerate() {
        // what places wakeups by load follows WAKE_CAP, whatever kernel the domains are of
        let flags = (d.flags & !SdFlags::BALANCE_WAKE).bits();
        let llc = if d.flags.contains(SdFlags::SHARE_LLC) {
            d.span.first().map_or(NONE, |cpu| llc_of[cpu])
        } else {
            NONE
        };
        sys.domain[i] = Domain {
            span: mask(&d.span),
            flags,
            level: d.level,
            weight: d.span.len() as u32,
            imbalance_pct: d.imbalance_pct,
            busy_factor: d.busy_factor,
            min_interval_ms: d.min_interval_ms,
            max_interval_ms: d.max_interval_ms,
            cache_nice_tries: d.cache_nice_tries,
            imb_numa_nr: d.imb_numa_nr,
            nr_groups: d.groups.len() as u32,
            first_group: next,
            llc,
            // an idle machine, as for the LLCs below
            has_idle_cores: 1,
            nr_idle_scan: d.span.len() as u32,
        };
        sys.asym_present |= u32::from(d.flags.contains(SdFlags::ASYM_CPUCAPACITY));
        first_group.push(next);
        for group in &d.groups {
            let g = &topology.groups[*group];
            sys.group[next as usize] = Group {
                span: mask(&g.span),
                balance_mask: mask(&g.balance_mask),
                weight: g.weight,
                cores: g.cores,
                flags: g.flags.bits(),
                capacity: g.capacity,
                min_capacity: g.min_capacity,
                max_capacity: g.max_capacity,
                ..Group::default()
            };
            next += 1;
        }
    }
    first_group
}

fn add_llcs(sys: &mut System, machine: &Machine, llc_of: &[u32]) {
    for (cpu, &llc) in machine.cpus.iter().zip(llc_of) {
        let l = &mut sys.llc[llc as usize];
        l.weight += 1;
        l.domain = NONE;
        l.bytes = machine.llc_bytes[cpu.llc];
    }
    for llc in 0..sys.nr_llcs as usize {
        let weight = sys.llc[llc].weight;
        // an idle machine: everything may be looked at, and every core is idle
        sys.llc[llc] = Llc { has_idle_cores: 1, nr_idle_scan: weight, ..sys.llc[llc] };
    }
}

/// Lets the lowest domain of `cpu` that has CPUs of all capacities, and those below it, place
/// wakeups, but where `relax_domain_level` forbids that together with newidle balance.
fn balance_wakeups(sys: &mut System, cpu: usize) {
    let levels = sys.cpu[cpu].nr_sd as usize;
    let chain: Vec<_> = sys.cpu_sd[cpu][..levels].iter().map(|sd| sd.domain).collect();
    let Some(top) = chain.iter().position(|&sd| sd == sys.cpu[cpu].asym_sd) else { return };
    for &domain in &chain[..=top] {
        let flags = &mut sys.domain[domain as usize].flags;
        if *flags & SD_BALANCE_NEWIDLE != 0 {
            *flags |= SD_BALANCE_WAKE;
        }
    }
}

fn add_cpu(sys: &mut System, machine: &Machine, topology: &Topology, first_group: &[u32], cpu: usize) {
    let place = &machine.cpus[cpu];
    let smt = machine.smt_mask(cpu);
    sys.smt_mask[cpu] = mask(&smt);
    sys.smt_present |= u32::from(smt.len() > 1);
    sys.smt_threads = sys.smt_threads.max(smt.len() as u32);
    let rq = &mut sys.cpu[cpu];
    rq.capacity_orig = place.capacity;
    rq.capacity = place.capacity;
    rq.freq_capacity = CAPACITY_SCALE;
    rq.core = smt.first().unwrap_or(cpu) as u32;
    rq.node = place.node as i32;
    rq.curr_is_idle = 1;
    rq.nr_sd = topology.cpu_domains[cpu].len() as u32;
    rq.asym_sd = NONE;
    // as the kernel starts a runqueue: half a millisecond each (sched_init)
    let cost = sys.tunable[Tunable::migration_cost_ns as usize] as u64;
    let rq = &mut sys.cpu[cpu];
    rq.avg_idle = 2 * cost;
    rq.max_idle_balance_cost = cost;
    rq.idle_stamp = 0;
    let mut llc_weight = 0;
    for (level, &domain) in topology.cpu_domains[cpu].iter().enumerate() {
        let d = &topology.domains[domain];
        sys.cpu_sd[cpu][level] = CpuSd {
            // as the kernel starts a domain: half of the searches are made, half of these succeed
            newidle_call: 512,
            newidle_success: 256,
            newidle_ratio: 512,
            balance_interval_ms: d.min_interval_ms,
            domain: domain as u32,
            local_group: first_group[domain] + topology.local_position(d, cpu) as u32,
            ..CpuSd::default()
        };
        if d.flags.contains(SdFlags::SHARE_LLC) {
            let llc = sys.cpu[cpu].llc as usize;
            sys.llc[llc].domain = domain as u32;
            llc_weight = d.span.len();
        } else if llc_weight > 1 && d.span.len() > llc_weight {
            sys.sched_cache_present = 1;
        }
        if d.flags.contains(SdFlags::CLUSTER) {
            sys.cluster_present = 1;
        }
        if d.flags.contains(SdFlags::ASYM_CPUCAPACITY_FULL) && sys.cpu[cpu].asym_sd == NONE {
            sys.cpu[cpu].asym_sd = domain as u32;
        }
    }
    for level in topology.cpu_domains[cpu].len()..MAX_LEVELS {
        sys.cpu_sd[cpu][level].domain = NONE;
    }
}
