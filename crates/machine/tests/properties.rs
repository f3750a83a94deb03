//! What holds for every machine.

use coreward_machine::{CpuSet, DomainOptions, Machine, SdFlags, Topology};
use proptest::prelude::*;

/// Shorthands of up to 1024 CPUs.
fn shape() -> impl Strategy<Value = String> {
    (1usize..=8, 1usize..=16, 1usize..=64, 1usize..=8)
        .prop_filter("at most 1024 CPUs", |(n, l, c, t)| n * l * c * t <= 1024)
        .prop_map(|(n, l, c, t)| format!("{n}n{l}l{c}c{t}t"))
}

/// A machine file of 2 to 6 nodes of 2 CPUs with symmetric distances.
fn mesh() -> impl Strategy<Value = Machine> {
    (2usize..=6).prop_flat_map(|nodes| {
        proptest::collection::vec(11u32..=40, nodes * nodes).prop_map(move |random| {
            let distance = |a: usize, b: usize| match a.cmp(&b) {
                std::cmp::Ordering::Equal => 10,
                _ => random[a.min(b) * nodes + a.max(b)],
            };
            let rows: Vec<Vec<u32>> =
                (0..nodes).map(|a| (0..nodes).map(|b| distance(a, b)).collect()).collect();
            let text = format!("shape = \"{nodes}n1l2c\"\ndistances = {rows:?}");
            Machine::from_toml_str("mesh.toml", &text).unwrap()
        })
    })
}

/// Checks what holds of the domains of every CPU (of some forty on large machines).
fn check(machine: &Machine, topology: &Topology) -> Result<(), TestCaseError> {
    let step = machine.nr_cpus().div_ceil(40);
    for cpu in (0..machine.nr_cpus()).rev().step_by(step) {
        let mut below = CpuSet::single(cpu);
        let mut level = None;
        for domain in topology.domains_of(cpu) {
            prop_assert!(below.is_subset(&domain.span) && domain.span.len() > 1);
            prop_assert!(level < Some(domain.level));
            let mut covered = CpuSet::new();
            for (index, group) in topology.groups_from(domain, cpu).enumerate() {
                prop_assert!(index > 0 || group.span == below, "the local group is the child");
                prop_assert!(group.span.is_subset(&domain.span));
                prop_assert!(group.balance_mask.is_subset(&group.span));
                prop_assert_eq!(group.weight as usize, group.span.len());
                if !domain.flags.contains(SdFlags::OVERLAP) {
                    prop_assert!(!group.span.intersects(&covered), "groups do not overlap");
                }
                covered = covered.union(&group.span);
            }
            prop_assert_eq!(covered, domain.span, "groups cover the span");
            below = domain.span;
            level = Some(domain.level);
        }
        prop_assert_eq!(below, machine.all_cpus(), "the top domain spans the machine");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_shorthand(shape in shape()) {
        let machine = Machine::from_shorthand(&shape).unwrap();
        let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
        check(&machine, &topology)?;
        let again = Machine::from_toml_str("again.toml", &machine.to_toml()).unwrap();
        prop_assert_eq!(again, machine);
    }

    #[test]
    fn any_distances(machine in mesh()) {
        let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
        check(&machine, &topology)?;
    }
}
