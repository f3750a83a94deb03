//! Partitions have domains of their own, with a `relax_domain_level` of their own.

use coreward_machine::{
    CpuSet, DomainOptions, Machine, Partition, PartitionError, RelaxSemantics, SdFlags, Topology,
};
use proptest::prelude::*;

fn partitions(texts: &[&str]) -> Vec<Partition> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn divide(machine: &str, options: &DomainOptions, texts: &[&str]) -> Result<Topology, PartitionError> {
    Topology::partitioned(&Machine::load(machine).unwrap(), options, &partitions(texts))
}

/// Name, level and span of a CPU's domains.
fn chain(topology: &Topology, cpu: usize) -> Vec<(&'static str, u32, String)> {
    topology.domains_of(cpu).map(|d| (d.name, d.level, d.span.to_string())).collect()
}

/// Whether newidle balance is on, by level of a CPU's domains.
fn newidle(topology: &Topology, cpu: usize) -> Vec<bool> {
    topology.domains_of(cpu).map(|d| d.flags.contains(SdFlags::BALANCE_NEWIDLE)).collect()
}

#[test]
fn no_partition_is_the_whole_machine() {
    let machine = Machine::load("e5-2680v3-2s").unwrap();
    let whole = Topology::build(&machine, &DomainOptions::default()).unwrap();
    assert_eq!(divide("e5-2680v3-2s", &DomainOptions::default(), &[]).unwrap(), whole);
    assert_eq!(divide("e5-2680v3-2s", &DomainOptions::default(), &["0-47"]).unwrap(), whole);
    assert_eq!(whole.partitions, [machine.all_cpus()]);
}

#[test]
fn a_node_of_its_own_has_no_domain_across_nodes() {
    let topology = divide("e5-2680v3-2s", &DomainOptions::default(), &["0-11,24-35"]).unwrap();
    assert_eq!(chain(&topology, 0), [("SMT", 0, "0,24".into()), ("MC", 2, "0-11,24-35".into())]);
    assert_eq!(chain(&topology, 12), [("SMT", 0, "12,36".into()), ("MC", 2, "12-23,36-47".into())]);
    let parts: Vec<_> = topology.partitions.iter().map(CpuSet::to_string).collect();
    assert_eq!(parts, ["0-11,24-35", "12-23,36-47"]);
    assert_eq!(topology.level_max, 5, "the highest level that the kernel has built");
}

#[test]
fn domains_are_cut_at_the_edge_of_a_partition() {
    // two cores of node 0, one of them by one thread only, and one core of node 1
    let topology = divide("e5-2680v3-2s", &DomainOptions::default(), &["0,1,24,12,36"]).unwrap();
    assert_eq!(
        chain(&topology, 0),
        [("SMT", 0, "0,24".into()), ("MC", 2, "0-1,24".into()), ("NUMA", 5, "0-1,12,24,36".into())]
    );
    assert_eq!(chain(&topology, 1), [("MC", 2, "0-1,24".into()), ("NUMA", 5, "0-1,12,24,36".into())]);
    let numa = topology.domains_of(12).last().unwrap();
    let groups: Vec<_> = topology.groups_from(numa, 12).map(|g| g.span.to_string()).collect();
    assert_eq!(groups, ["12,36", "0-1,24"]);
    assert!(topology.groups_from(numa, 12).all(|g| g.balance_mask == g.span));
    // a partition of one CPU has nothing to balance
    assert!(chain(&divide("4c", &DomainOptions::default(), &["2"]).unwrap(), 2).is_empty());
}

#[test]
fn each_partition_has_its_own_level() {
    let options = DomainOptions { relax_domain_level: Some(1), ..DomainOptions::default() };
    let divided = |texts: &[&str]| divide("e5-2680v3-2s", &options, texts).unwrap();
    let topology = divided(&["0-11,24-35:0", "12-23,36-47:6"]);
    assert_eq!(newidle(&topology, 0), [false, false]);
    assert_eq!(newidle(&topology, 12), [true, true]);
    // no request, and no partition: as the machine
    let topology = divided(&["0-11,24-35:-1"]);
    assert_eq!(newidle(&topology, 0), [true, false]);
    assert_eq!(newidle(&topology, 12), [true, false]);
}

#[test]
fn capacities_are_those_of_the_partition() {
    let full = SdFlags::ASYM_CPUCAPACITY_FULL;
    let asymmetric = |topology: &Topology, cpu| topology.domains_of(cpu).any(|d| d.flags.contains(full));
    let apart = divide("pixel3", &DomainOptions::default(), &["0-3"]).unwrap();
    assert!(!asymmetric(&apart, 0) && !asymmetric(&apart, 4));
    let mixed = divide("pixel3", &DomainOptions::default(), &["2-5"]).unwrap();
    assert!(asymmetric(&mixed, 2) && asymmetric(&mixed, 5) && asymmetric(&mixed, 0));
}

#[test]
fn what_is_refused() {
    let refuse = |texts: &[&str]| {
        let semantics = RelaxSemantics::Before;
        let options = DomainOptions { relax_semantics: semantics, ..DomainOptions::default() };
        divide("e5-2680v3-2s", &options, texts).unwrap_err().to_string()
    };
    assert_eq!(refuse(&[""]), "a partition has no CPU");
    assert_eq!(refuse(&["0-50"]), "a partition has CPU 48, allowed are 0 to 47");
    assert_eq!(refuse(&["0-3", "3-4"]), "CPU 3 is in two partitions, it may be in one only");
    assert_eq!(
        refuse(&["0-3:5"]),
        "relax_domain_level is 5, allowed are -1 (no request) to 4 on this machine, whose top level is 5"
    );
    let wrong = |text: &str| text.parse::<Partition>().unwrap_err();
    assert_eq!(wrong("0-3:x"), "the level `x` is not an integer, allowed is CPUS[:LEVEL]");
    assert!(wrong("3-0").contains("runs backwards"));
}

proptest! {
    /// Domains and groups stay within their partition, nest, and reach all of it.
    #[test]
    fn partitions_are_apart(
        nodes in 1usize..4, llcs in 1usize..3, cores in 1usize..4, threads in 1usize..3,
        owner in prop::collection::vec(0usize..4, 64),
    ) {
        let machine = Machine::load(&format!("{nodes}n{llcs}l{cores}c{threads}t")).unwrap();
        let mut sets = [CpuSet::new(); 3];
        for (cpu, &owner) in owner.iter().enumerate().take(machine.nr_cpus()) {
            if let Some(set) = sets.get_mut(owner) {
                set.insert(cpu);
            }
        }
        let sets = sets.iter().filter(|set| !set.is_empty());
        let partitions: Vec<_> = sets.map(|&cpus| Partition { cpus, relax_domain_level: None }).collect();
        let topology = Topology::partitioned(&machine, &DomainOptions::default(), &partitions).unwrap();
        for part in &topology.partitions {
            for cpu in part.iter() {
                let mut below = CpuSet::single(cpu);
                for domain in topology.domains_of(cpu) {
                    prop_assert!(below.is_subset(&domain.span));
                    let groups = topology.groups_from(domain, cpu);
                    let covered = groups.fold(CpuSet::new(), |sum, group| sum.union(&group.span));
                    prop_assert_eq!(covered, domain.span);
                    below = domain.span;
                }
                prop_assert_eq!(below, *part, "the top domain spans the partition");
            }
        }
    }
}
