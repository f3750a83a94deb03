//! Groups: what a domain balances between.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::Machine;

use super::Group;
use super::flags::SdFlags;
use super::levels::RawDomain;

/// Builds the groups of all domains of all CPUs and puts their ids into the domains.
pub(super) fn build(machine: &Machine, chains: &mut [Vec<RawDomain>]) -> Vec<Group> {
    let mut builder = Builder { machine, groups: Vec::new(), shared: BTreeMap::new() };
    let mut rings: Vec<Vec<Vec<usize>>> = Vec::new();
    for cpu in 0..chains.len() {
        let ring = |builder: &mut Builder, (level, domain): (usize, &RawDomain)| match domain
            .flags
            .contains(SdFlags::OVERLAP)
        {
            true => builder.overlapping(chains, cpu, level),
            false => builder.partition(chains, cpu, level),
        };
        rings.push(chains[cpu].iter().enumerate().map(|item| ring(&mut builder, item)).collect());
    }
    for (chain, rings) in chains.iter_mut().zip(rings) {
        chain.iter_mut().zip(rings).for_each(|(domain, ring)| domain.groups = ring);
    }
    builder.groups
}

struct Builder<'a> {
    machine: &'a Machine,
    groups: Vec<Group>,
    /// Groups that all CPUs of a domain share, by level and first CPU.
    shared: BTreeMap<(usize, usize), usize>,
}

impl Builder<'_> {
    /// The groups of a domain whose children do not overlap: the child domains, or single CPUs
    /// on the lowest level. All CPUs of the domain share them and their order, which is the one
    /// that the domain's last CPU sees, since the kernel links them anew for each CPU.
    fn partition(&mut self, chains: &[Vec<RawDomain>], cpu: usize, level: usize) -> Vec<usize> {
        let span = chains[cpu][level].span;
        let mut covered = CpuSet::new();
        let mut ring = Vec::new();
        for member in span.iter_wrap(span.last().unwrap_or(cpu)) {
            if covered.contains(member) {
                continue;
            }
            let child = level.checked_sub(1).map(|below| &chains[member][below]);
            let group_span = child.map_or(CpuSet::single(member), |child| child.span);
            covered = covered.union(&group_span);
            let first = group_span.first().unwrap_or(member);
            let id = match self.shared.get(&(level, first)) {
                Some(&id) => id,
                None => {
                    let flags = child.map_or(SdFlags::empty(), |child| child.flags);
                    let id = self.add(group_span, group_span, flags);
                    self.shared.insert((level, first), id);
                    id
                }
            };
            ring.push(id);
        }
        let local = ring.iter().position(|&id| self.groups[id].span.contains(cpu));
        ring.rotate_left(local.unwrap_or(0));
        ring
    }

    /// The groups of a domain by distance: child domains of its CPUs, in order from `cpu`,
    /// until they cover the span. Each CPU has groups of its own.
    fn overlapping(&mut self, chains: &[Vec<RawDomain>], cpu: usize, level: usize) -> Vec<usize> {
        let span = chains[cpu][level].span;
        let mut covered = CpuSet::new();
        let mut ring = Vec::new();
        for member in span.iter_wrap(cpu) {
            // A CPU whose domains end below this level cannot contribute a child.
            if covered.contains(member) || chains[member].len() <= level {
                continue;
            }
            let donor = donor_level(&chains[member], level, &span);
            let domain = &chains[member][donor.saturating_sub(1)];
            let flags = if donor == 0 { SdFlags::empty() } else { domain.flags };
            covered = covered.union(&domain.span);
            let balance = balance_mask(chains, &domain.span, donor);
            ring.push(self.add(domain.span, balance, flags));
        }
        ring
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

/// The level whose child is the group that a CPU contributes to a domain by distance: the
/// domain's own level, or a lower one if the child would reach out of the span (machines with
/// three hops and more). Levels that will degenerate are skipped then.
fn donor_level(chain: &[RawDomain], level: usize, span: &CpuSet) -> usize {
    let mut donor = level;
    if donor > 0 && !chain[donor - 1].span.is_subset(span) {
        while donor > 0 && !chain[donor - 1].span.is_subset(span) {
            donor -= 1;
        }
        while donor > 0 && chain[donor - 1].span == chain[donor].span {
            donor -= 1;
        }
    }
    donor
}

/// The CPUs of a group that see it as their own child domain: only they may balance for it.
fn balance_mask(chains: &[Vec<RawDomain>], group: &CpuSet, level: usize) -> CpuSet {
    let sees = |cpu: &usize| {
        let chain = &chains[*cpu];
        level > 0 && chain.len() > level && chain[level - 1].span == *group
    };
    group.iter().filter(sees).collect()
}
