//! Sched domains and groups, built by the kernel's rules (`kernel/sched/topology.c`, Linux 6.12).
//!
//! Every CPU has a chain of domains. Each spans more CPUs than the one below and is divided
//! into groups, between which load is balanced. The levels come from a table (SMT, cluster,
//! MC, package, node, then one level for each NUMA distance). A level that spans no more than
//! the one below is dropped, so the level numbers have gaps.

mod degenerate;
mod flags;
mod groups;
mod levels;
mod partition;
mod render;
mod style;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::Machine;

pub use flags::SdFlags;
pub use partition::{Partition, PartitionError};
pub use render::{render_domains, render_schedstat_masks};
pub use style::{KernelStyle, RelaxError, RelaxSemantics};

use levels::RawDomain;
use partition::Part;
use style::NO_REQUEST;

/// What may be asked of the domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainOptions {
    /// `cpuset.sched_relax_domain_level`: up to which level newidle balance searches.
    /// `None` and -1 are no request.
    pub relax_domain_level: Option<i32>,
    /// What the request means.
    pub relax_semantics: RelaxSemantics,
    /// Kernel whose levels, names, flags and constants the domains get.
    pub names: KernelStyle,
}

/// A sched domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Domain {
    /// Name of the level: SMT, CLS, MC, PKG, NODE, NUMA, …
    pub name: &'static str,
    /// Level: index in the kernel's table of topology levels.
    pub level: u32,
    /// Flags.
    pub flags: SdFlags,
    /// CPUs of the domain.
    pub span: CpuSet,
    /// Imbalance that is tolerated, in percent: 117 lets the busier side have 17 % more.
    pub imbalance_pct: u32,
    /// Failed balance attempts after which cache-hot tasks move too.
    pub cache_nice_tries: u32,
    /// Tasks that a node may have more than another before they are spread over nodes.
    pub imb_numa_nr: u32,
    /// Factor by which a busy CPU stretches its balance interval.
    pub busy_factor: u32,
    /// Shortest balance interval, in ms.
    pub min_interval_ms: u32,
    /// Longest balance interval, in ms.
    pub max_interval_ms: u32,
    /// Groups in ring order, as indices into [`Topology::groups`].
    pub groups: Vec<usize>,
}

/// A sched group: a part of a domain, between which and the others the domain balances.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Group {
    /// CPUs of the group.
    pub span: CpuSet,
    /// CPUs that may balance for the group: all of it, but where groups overlap.
    pub balance_mask: CpuSet,
    /// Number of CPUs.
    pub weight: u32,
    /// Number of cores.
    pub cores: u32,
    /// Flags of the child domain that the group stands for; none on the lowest level.
    pub flags: SdFlags,
    /// Sum of the capacities of its CPUs.
    pub capacity: u32,
    /// Smallest capacity of its CPUs.
    pub min_capacity: u32,
    /// Largest capacity of its CPUs.
    pub max_capacity: u32,
}

/// The sched domains and groups of a machine.
///
/// CPUs share a domain here if theirs are equal, with the same ring of groups (each CPU
/// enters the ring at its own group). The kernel gives every CPU a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// All domains.
    pub domains: Vec<Domain>,
    /// All groups.
    pub groups: Vec<Group>,
    /// The domains of each CPU, lowest first, as indices into [`Topology::domains`].
    pub cpu_domains: Vec<Vec<usize>>,
    /// The sets of CPUs that are balanced apart from each other: each CPU is in one of them.
    pub partitions: Vec<CpuSet>,
    /// Level of the highest domain of the machine, whatever its partitions
    /// (`sched_domain_level_max`, which never falls).
    pub level_max: u32,
}

impl Topology {
    /// Builds the domains of a machine.
    ///
    /// # Errors
    /// [`RelaxError`] if the requested `relax_domain_level` is one that the kernel refuses.
    pub fn build(machine: &Machine, options: &DomainOptions) -> Result<Self, RelaxError> {
        Self::of_parts(machine, options, &[Part { cpus: machine.all_cpus(), request: None }])
    }

    /// Builds the domains of a machine that is divided into partitions
    /// (`partition_sched_domains`). CPUs of no partition make one more, the last.
    /// `options.relax_domain_level` is for partitions that request none.
    ///
    /// # Errors
    /// A partition is empty, has a CPU that the machine has not or that another one has, or
    /// requests a `relax_domain_level` that the kernel refuses.
    pub fn partitioned(
        machine: &Machine,
        options: &DomainOptions,
        partitions: &[Partition],
    ) -> Result<Self, PartitionError> {
        let parts = partition::parts(machine, partitions)?;
        Ok(Self::of_parts(machine, options, &parts)?)
    }

    fn of_parts(machine: &Machine, options: &DomainOptions, parts: &[Part]) -> Result<Self, RelaxError> {
        let levels = levels::table(machine, options.names);
        let level_max = levels::highest(machine, &levels);
        let semantics = options.relax_semantics;
        let mut chains = vec![Vec::new(); machine.nr_cpus()];
        let mut groups = Vec::new();
        for part in parts {
            let capacities = levels::capacity_sets(machine, &part.cpus);
            let request = part.request.or(options.relax_domain_level).unwrap_or(NO_REQUEST);
            semantics.check(request, level_max)?;
            for cpu in part.cpus.iter() {
                let mut chain = levels::chain(machine, &levels, cpu, &part.cpus, &capacities, options.names);
                levels::relax(&mut chain, request, semantics);
                chains[cpu] = chain;
            }
            groups::build(machine, &part.cpus, &mut chains, &mut groups);
        }
        chains.iter_mut().for_each(|chain| degenerate::attach(chain, &mut groups));
        let partitions = parts.iter().map(|part| part.cpus).collect();
        let empty = Topology {
            domains: Vec::new(),
            groups: Vec::new(),
            cpu_domains: Vec::new(),
            partitions,
            level_max,
        };
        Ok(share(chains, &groups, empty))
    }

    /// The domains of a CPU, lowest first.
    pub fn domains_of(&self, cpu: usize) -> impl DoubleEndedIterator<Item = &Domain> {
        self.cpu_domains[cpu].iter().map(|&index| &self.domains[index])
    }

    /// Position in a domain's ring of the group at which a CPU enters it (its local group).
    pub fn local_position(&self, domain: &Domain, cpu: usize) -> usize {
        if domain.flags.contains(SdFlags::NUMA) {
            return 0;
        }
        let local = |&group: &usize| self.groups[group].span.contains(cpu);
        domain.groups.iter().position(local).unwrap_or(0)
    }

    /// The groups of a domain in the order in which a CPU goes round them, local group first.
    pub fn groups_from<'a>(&'a self, domain: &'a Domain, cpu: usize) -> impl Iterator<Item = &'a Group> {
        let local = self.local_position(domain, cpu);
        let ring = domain.groups[local..].iter().chain(&domain.groups[..local]);
        ring.map(|&group| &self.groups[group])
    }
}

/// Makes equal domains and groups of different CPUs one, and puts them into `topology`.
fn share(chains: Vec<Vec<RawDomain>>, raw_groups: &[Group], mut topology: Topology) -> Topology {
    let mut shared_groups = BTreeMap::new();
    let mut group_ids: Vec<Option<usize>> = vec![None; raw_groups.len()];
    let mut domain_ids = BTreeMap::new();
    for chain in chains {
        let mut ids = Vec::new();
        for mut raw in chain {
            for group in &mut raw.groups {
                let raw_group = &raw_groups[*group];
                *group = *group_ids[*group].get_or_insert_with(|| {
                    let key = (raw.level, raw_group.clone());
                    *shared_groups.entry(key).or_insert_with(|| {
                        topology.groups.push(raw_group.clone());
                        topology.groups.len() - 1
                    })
                });
            }
            let domain = finish(raw);
            let next = topology.domains.len();
            let id = *domain_ids.entry(domain.clone()).or_insert(next);
            if id == next {
                topology.domains.push(domain);
            }
            ids.push(id);
        }
        topology.cpu_domains.push(ids);
    }
    topology
}

/// The finished domain. A ring without overlap begins with its lowest group, so that the
/// domains of CPUs that enter it at different groups compare equal.
fn finish(raw: RawDomain) -> Domain {
    let mut ring = raw.groups;
    if !raw.flags.contains(SdFlags::NUMA) {
        let lowest = ring.iter().enumerate().min_by_key(|(_, id)| **id);
        let start = lowest.map_or(0, |(index, _)| index);
        ring.rotate_left(start);
    }
    let weight = raw.span.len() as u32;
    Domain {
        name: raw.name,
        level: raw.level,
        flags: raw.flags,
        span: raw.span,
        imbalance_pct: raw.imbalance_pct,
        cache_nice_tries: raw.cache_nice_tries,
        imb_numa_nr: raw.imb_numa_nr,
        busy_factor: raw.busy_factor,
        min_interval_ms: weight,
        max_interval_ms: 2 * weight,
        groups: ring,
    }
}
