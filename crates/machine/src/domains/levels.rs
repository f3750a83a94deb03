//! The topology levels of a machine and the domain of each CPU on each of them.

use std::collections::BTreeSet;

use crate::cpuset::CpuSet;
use crate::machine::{Arch, Machine};

use super::flags::SdFlags;
use super::{KernelStyle, RelaxSemantics};

/// One level of the kernel's topology table.
pub(super) struct Level {
    name: &'static str,
    /// What the table says of the level's domains.
    flags: SdFlags,
    /// Distance reached, for NODE (the local distance) and the NUMA levels.
    distance: Option<u32>,
    /// Span by CPU.
    spans: Vec<CpuSet>,
}

/// A sched domain of one CPU under construction.
#[derive(Clone, Debug)]
pub(super) struct RawDomain {
    pub(super) name: &'static str,
    pub(super) level: u32,
    pub(super) flags: SdFlags,
    pub(super) span: CpuSet,
    pub(super) imbalance_pct: u32,
    pub(super) cache_nice_tries: u32,
    pub(super) imb_numa_nr: u32,
    pub(super) busy_factor: u32,
    /// Ids of the groups, the local one first.
    pub(super) groups: Vec<usize>,
}

/// Makes one span by CPU from a label by CPU.
fn spans_by(machine: &Machine, label: impl Fn(usize) -> usize) -> Vec<CpuSet> {
    let labels: Vec<usize> = (0..machine.nr_cpus()).map(label).collect();
    let mut sets = vec![CpuSet::new(); labels.iter().max().map_or(0, |max| max + 1)];
    labels.iter().enumerate().for_each(|(cpu, &label)| sets[label].insert(cpu));
    labels.iter().map(|&label| sets[label]).collect()
}

/// The table of topology levels, bottom up (`sched_domain_topology`).
pub(super) fn table(machine: &Machine, style: KernelStyle) -> Vec<Level> {
    let cpus = &machine.cpus;
    let smt = spans_by(machine, |cpu| cpus[cpu].core);
    let llc = spans_by(machine, |cpu| cpus[cpu].llc);
    let node = spans_by(machine, |cpu| cpus[cpu].node);
    let level = |name, flags, spans| Level { name, flags, distance: None, spans };

    let share_llc = SdFlags::SHARE_LLC;
    let mut levels = Vec::new();
    if !(machine.arch == Arch::X86 && style.drops_unused_smt() && smt.iter().all(|span| span.len() == 1)) {
        levels.push(level("SMT", SdFlags::SHARE_CPUCAPACITY | share_llc, smt.clone()));
    }
    match machine.arch {
        // The cache that a core shares with nobody or with its neighbour is the last one.
        Arch::Power => levels.push(level("CACHE", share_llc, llc.clone())),
        Arch::X86 | Arch::Arm64 if !style.has_sched_cluster() => {}
        Arch::X86 | Arch::Arm64 => {
            let clusters = cluster_spans(machine, &smt, &llc);
            levels.push(level("CLS", SdFlags::CLUSTER | share_llc, clusters));
        }
    }
    match machine.arch {
        Arch::Power => levels.push(level("MC", SdFlags::empty(), package_spans(machine, &node))),
        Arch::X86 | Arch::Arm64 => levels.push(level("MC", share_llc, llc)),
    }
    if !(machine.arch == Arch::X86 && has_numa_in_package(machine)) {
        levels.push(level(style.package_name(), SdFlags::empty(), node.clone()));
    }
    levels.extend(numa_levels(machine, &node).into_iter().skip(usize::from(!style.has_node_level())));
    levels
}

/// Clusters; a cluster that is no smaller than its LLC counts as none (`cpu_clustergroup_mask`).
fn cluster_spans(machine: &Machine, smt: &[CpuSet], llc: &[CpuSet]) -> Vec<CpuSet> {
    let clusters = spans_by(machine, |cpu| machine.cpus[cpu].cluster.map_or(0, |id| id + 1));
    let span = |cpu: usize| match machine.cpus[cpu].cluster {
        Some(_) if !llc[cpu].is_subset(&clusters[cpu]) => clusters[cpu],
        _ => smt[cpu],
    };
    (0..machine.nr_cpus()).map(span).collect()
}

/// The CPUs of a package that are of one node (the core group of POWER).
fn package_spans(machine: &Machine, node: &[CpuSet]) -> Vec<CpuSet> {
    let packages = spans_by(machine, |cpu| machine.cpus[cpu].package);
    packages.iter().zip(node).map(|(package, node)| package.intersect(node)).collect()
}

/// Whether a package holds CPUs of several nodes (`x86_has_numa_in_package`): the levels by
/// distance then make the right spans, and the x86 table leaves the package level out.
fn has_numa_in_package(machine: &Machine) -> bool {
    let mut node_of = vec![None; machine.nr_packages()];
    machine.cpus.iter().any(|cpu| *node_of[cpu.package].get_or_insert(cpu.node) != cpu.node)
}

/// NODE and one level for each distance between nodes (`sched_init_numa`).
fn numa_levels(machine: &Machine, node: &[CpuSet]) -> Vec<Level> {
    let distances: BTreeSet<u32> = machine.distances.iter().flatten().copied().collect();
    let masks: Vec<CpuSet> = (0..machine.nodes).map(|node| machine.node_mask(node)).collect();
    let within = |from: usize, reach: u32| {
        let near = machine.distances[from].iter().zip(&masks).filter(|(d, _)| **d <= reach);
        near.fold(CpuSet::new(), |sum, (_, mask)| sum.union(mask))
    };
    let level = |reach: u32| {
        let by_node: Vec<_> = (0..machine.nodes).map(|node| within(node, reach)).collect();
        let spans = machine.cpus.iter().map(|cpu| by_node[cpu.node]).collect();
        (reach, spans)
    };
    let level = |(index, &reach): (usize, &u32)| match index {
        0 => Level { name: "NODE", flags: SdFlags::empty(), distance: None, spans: node.to_vec() },
        _ => {
            let (reach, spans) = level(reach);
            Level { name: "NUMA", flags: SdFlags::NUMA, distance: Some(reach), spans }
        }
    };
    distances.iter().enumerate().map(level).collect()
}

/// Number of the highest level that the domains of the whole machine reach.
pub(super) fn highest(machine: &Machine, levels: &[Level]) -> u32 {
    let spans_all = |cpu: usize| levels.iter().position(|level| level.spans[cpu].len() == machine.nr_cpus());
    let tops = (0..machine.nr_cpus()).map(|cpu| spans_all(cpu).unwrap_or(levels.len() - 1));
    tops.max().unwrap_or(0) as u32
}

/// The domains of one CPU among the CPUs `part`, bottom up, up to the first that spans them all.
pub(super) fn chain(
    machine: &Machine,
    levels: &[Level],
    cpu: usize,
    part: &CpuSet,
    capacities: &[CpuSet],
    style: KernelStyle,
) -> Vec<RawDomain> {
    let mut chain: Vec<RawDomain> = Vec::new();
    for (number, level) in levels.iter().enumerate() {
        let mut domain = init(machine, level, number as u32, cpu, style);
        domain.span = domain.span.intersect(part);
        domain.flags |= asymmetry(&domain.span, capacities);
        if domain.flags.contains(SdFlags::ASYM_CPUCAPACITY) && style.keeps_tasks_below_asymmetry() {
            // Tasks are not spread over CPUs of different capacities.
            if let Some(child) = chain.last_mut() {
                child.flags = child.flags & !SdFlags::PREFER_SIBLING;
            }
        }
        let spans_all = domain.span == *part;
        let full = domain.flags.contains(SdFlags::ASYM_CPUCAPACITY_FULL);
        let lowest_full =
            full && !chain.last().is_some_and(|d| d.flags.contains(SdFlags::ASYM_CPUCAPACITY_FULL));
        chain.push(domain);
        if lowest_full && style.balances_wakeups_of_asymmetry() {
            chain.iter_mut().for_each(|d| d.flags |= SdFlags::BALANCE_WAKE);
        }
        if spans_all {
            break;
        }
    }
    set_imb_numa_nr(&mut chain);
    chain
}

/// A domain with what its level alone decides (`sd_init`).
fn init(machine: &Machine, level: &Level, number: u32, cpu: usize, style: KernelStyle) -> RawDomain {
    let mut flags = SdFlags::BALANCE_NEWIDLE
        | SdFlags::BALANCE_EXEC
        | SdFlags::BALANCE_FORK
        | SdFlags::WAKE_AFFINE
        | SdFlags::PREFER_SIBLING
        | level.flags;
    let (mut imbalance_pct, mut cache_nice_tries) = (style.imbalance_pct(), 1);
    if flags.contains(SdFlags::SHARE_CPUCAPACITY) {
        (imbalance_pct, cache_nice_tries) = (110, 0);
    } else if flags.contains(SdFlags::SHARE_LLC) {
        imbalance_pct = 117;
        if !style.mc_prefers_siblings() {
            flags = flags & !SdFlags::PREFER_SIBLING;
        }
    } else if let Some(distance) = level.distance {
        cache_nice_tries = 2;
        flags = flags & !SdFlags::PREFER_SIBLING | SdFlags::SERIALIZE;
        if style.has_overlap() {
            flags |= SdFlags::OVERLAP;
        }
        if distance > machine.reclaim_distance {
            let near_only = SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE;
            flags = flags & !near_only;
        }
    }
    RawDomain {
        name: level.name,
        level: number,
        flags,
        span: level.spans[cpu],
        imbalance_pct,
        cache_nice_tries,
        imb_numa_nr: 0,
        busy_factor: style.busy_factor(),
        groups: Vec::new(),
    }
}

/// Turns newidle balance off where a `relax_domain_level` asks for it.
pub(super) fn relax(chain: &mut [RawDomain], request: i32, semantics: RelaxSemantics) {
    for domain in chain {
        if !semantics.keeps(request, domain.level) {
            domain.flags = domain.flags & !(SdFlags::BALANCE_WAKE | SdFlags::BALANCE_NEWIDLE);
        }
    }
}

/// The CPUs of each capacity that the CPUs `part` have.
pub(super) fn capacity_sets(machine: &Machine, part: &CpuSet) -> Vec<CpuSet> {
    let values: BTreeSet<u32> = part.iter().map(|cpu| machine.cpus[cpu].capacity).collect();
    values.iter().map(|&value| machine.cpus_where(|cpu| cpu.capacity == value)).collect()
}

/// Whether a span holds several capacities, and whether it holds all of them.
fn asymmetry(span: &CpuSet, capacities: &[CpuSet]) -> SdFlags {
    match capacities.iter().filter(|set| set.intersects(span)).count() {
        0 | 1 => SdFlags::empty(),
        count if count < capacities.len() => SdFlags::ASYM_CPUCAPACITY,
        _ => SdFlags::ASYM_CPUCAPACITY | SdFlags::ASYM_CPUCAPACITY_FULL,
    }
}

/// The imbalance between nodes that is left alone: an eighth of a node of one LLC, else one
/// task an LLC; above the first NUMA domain in proportion to the span.
fn set_imb_numa_nr(chain: &mut [RawDomain]) {
    let weight = |domain: &RawDomain| domain.span.len() as u32;
    let (mut imbalance, mut imbalance_span) = (0, 1);
    for index in 0..chain.len() {
        let shares_llc = |index: usize| chain[index].flags.contains(SdFlags::SHARE_LLC);
        let span = weight(&chain[index]);
        chain[index].imb_numa_nr = if index > 0 && !shares_llc(index) && shares_llc(index - 1) {
            let llcs = span / weight(&chain[index - 1]);
            imbalance = if llcs == 1 { span / 8 } else { llcs }.max(1);
            let numa = chain[index + 1..].iter().find(|d| d.flags.contains(SdFlags::NUMA));
            imbalance_span = numa.map_or(span, weight);
            imbalance
        } else {
            imbalance * (span / imbalance_span).max(1)
        };
    }
}
