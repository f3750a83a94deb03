//! Groups: what a domain balances between.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::Machine;

use super::Group;
use super::flags::SdFlags;
use super::levels::RawDomain;

/// Builds the groups of all domains of the CPUs `part`, which are balanced apart from others,
/// appends them to `groups` and puts their ids into the domains.
pub(super) fn build(
    machine: &Machine,
    part: &CpuSet,
    chains: &mut [Vec<RawDomain>],
    groups: &mut Vec<Group>,
) {
    let first_cpu = |node| machine.node_mask(node).intersect(part).first();
    let mut builder = Builder {
        machine,
        part,
        first_cpus: (0..machine.nodes).map(first_cpu).collect(),
        groups,
        rings: BTreeMap::new(),
        by_distance: BTreeMap::new(),
    };
    for cpu in part.iter() {
        for level in 0..chains[cpu].len() {
            let overlap = chains[cpu][level].flags.contains(SdFlags::NUMA);
            chains[cpu][level].groups = match overlap {
                true => builder.overlapping(chains, cpu, level),
                false => builder.partition(chains, cpu, level),
            };
        }
    }
}

struct Builder<'a> {
    machine: &'a Machine,
    part: &'a CpuSet,
    /// The first CPU of each node, if the part has one there.
    first_cpus: Vec<Option<usize>>,
    groups: &'a mut Vec<Group>,
    /// Rings that all CPUs of a domain share, by level and first CPU.
    rings: BTreeMap<(usize, usize), Vec<usize>>,
    /// Groups of domains by distance, by the level and node of the child domain; for a local
    /// group also by the level of its own domain.
    by_distance: BTreeMap<(usize, usize, Option<usize>), usize>,
}

impl Builder<'_> {
    /// The groups of a domain whose children do not overlap, from the local one on.
    fn partition(&mut self, chains: &[Vec<RawDomain>], cpu: usize, level: usize) -> Vec<usize> {
        let key = (level, chains[cpu][level].span.first().unwrap_or(cpu));
        let ring = match self.rings.get(&key) {
            Some(ring) => ring,
            None => {
                let ring = self.link(chains, cpu, level);
                self.rings.entry(key).or_insert(ring)
            }
        };
        let is_local = |&id: &usize| self.groups[id].span.contains(cpu);
        let local = ring.iter().position(is_local).unwrap_or(0);
        [&ring[local..], &ring[..local]].concat()
    }

    /// The ring of groups of a domain: the child domains, or single CPUs on the lowest level.
    /// All CPUs of the domain share it. Its order is the one that the domain's last CPU sees,
    /// since the kernel links the groups anew for each CPU.
    fn link(&mut self, chains: &[Vec<RawDomain>], cpu: usize, level: usize) -> Vec<usize> {
        let span = chains[cpu][level].span;
        let mut covered = CpuSet::new();
        let mut ring = Vec::new();
        for member in span.iter_wrap(span.last().unwrap_or(cpu)) {
            if covered.contains(member) {
                continue;
            }
            let child = level.checked_sub(1).map(|below| &chains[member][below]);
            let group = child.map_or(CpuSet::single(member), |child| child.span);
            covered = covered.union(&group);
            let flags = child.map_or(SdFlags::empty(), |child| child.flags);
            ring.push(self.add(group, group, flags));
        }
        ring
    }

    /// The groups of a domain by distance: child domains of its nodes, in order from `cpu`,
    /// until they cover the span.
    fn overlapping(&mut self, chains: &[Vec<RawDomain>], cpu: usize, level: usize) -> Vec<usize> {
        let span = chains[cpu][level].span;
        let mut covered = CpuSet::new();
        let mut ring = Vec::new();
        for node in nodes_from(self.machine, self.part, cpu) {
            let Some(member) = self.first_cpus[node] else { continue };
            // A node whose domains end below this level cannot contribute a child.
            let skip = covered.contains(member) || chains[member].len() <= level;
            if skip || !span.contains(member) {
                continue;
            }
            let donor = donor_level(&chains[member], level, &span);
            let group = chains[member][donor - 1].span;
            covered = covered.union(&group);
            // The local group's flags change when domains are dropped, those of others do not.
            let key = (donor, node, ring.is_empty().then_some(level));
            let id = match self.by_distance.get(&key) {
                Some(&id) => id,
                None => {
                    let balance = self.balance_mask(chains, &group, donor);
                    let id = self.add(group, balance, chains[member][donor - 1].flags);
                    self.by_distance.insert(key, id);
                    id
                }
            };
            ring.push(id);
        }
        ring
    }

    /// The CPUs of a group that see it as their own child domain: only they may balance for it.
    fn balance_mask(&self, chains: &[Vec<RawDomain>], group: &CpuSet, level: usize) -> CpuSet {
        let sees = |cpu: usize| chains[cpu].len() > level && chains[cpu][level - 1].span == *group;
        let nodes = (0..self.machine.nodes).filter(|&node| {
            self.first_cpus[node].is_some_and(|member| group.contains(member) && sees(member))
        });
        let all = nodes.fold(CpuSet::new(), |sum, node| sum.union(&self.machine.node_mask(node)));
        all.intersect(self.part)
    }

    fn add(&mut self, span: CpuSet, balance_mask: CpuSet, flags: SdFlags) -> usize {
        let cpus = || span.iter().map(|cpu| &self.machine.cpus[cpu]);
        let mut cores: Vec<usize> = cpus().map(|cpu| cpu.core).collect();
        cores.sort_unstable();
        cores.dedup();
        let capacities = || cpus().map(|cpu| cpu.capacity);
        self.groups.push(Group {
            span,
            balance_mask,
            weight: span.len() as u32,
            cores: cores.len() as u32,
            flags,
            capacity: capacities().sum(),
            min_capacity: capacities().min().unwrap_or(0),
            max_capacity: capacities().max().unwrap_or(0),
        });
        self.groups.len() - 1
    }
}

/// The nodes in the order in which the CPUs of the part after `cpu` meet them, its own first. By
/// distance, all CPUs of a node have the same domains.
fn nodes_from(machine: &Machine, part: &CpuSet, cpu: usize) -> Vec<usize> {
    let mut nodes = Vec::new();
    let mut seen = vec![false; machine.nodes];
    for node in part.iter_wrap(cpu).map(|cpu| machine.cpus[cpu].node) {
        if !seen[node] {
            seen[node] = true;
            nodes.push(node);
        }
    }
    nodes
}

/// The level whose child is the group that a node contributes to a domain by distance: the
/// domain's own level, or a lower one if the child would reach out of the span (machines with
/// three hops and more). The NODE level is always in the span, so there is one.
fn donor_level(chain: &[RawDomain], level: usize, span: &CpuSet) -> usize {
    let fits = |&donor: &usize| chain[donor - 1].span.is_subset(span);
    (1..=level).rev().find(fits).unwrap_or(1)
}
