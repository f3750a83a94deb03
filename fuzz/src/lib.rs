//! The common part of the fuzz targets: the properties of every machine that a reader accepts.

pub mod recording;
pub mod structure;

use coreward_machine::{
    CpuSet, DomainOptions, KernelStyle, Machine, RelaxSemantics, Topology, render_domains,
    render_schedstat_masks, render_topology,
};

/// CPUs of a machine that are looked at one by one; the others are like one of them.
const SAMPLE: usize = 8;

/// Checks the result of a reader: an accepted machine has domains and survives being written as a
/// machine file; a refusal is a message that says something.
///
/// # Panics
/// That is how a fuzz target reports what it found.
pub fn check<E: std::fmt::Display>(read: Result<Machine, E>) {
    match read {
        Ok(machine) => {
            check_round_trip(&machine);
            check_domains(&machine);
            render_topology(&machine);
        }
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
}

fn check_round_trip(machine: &Machine) {
    let text = machine.to_toml();
    // of what the file says, nothing is assumed any more
    let machine = &Machine { assumptions: Vec::new(), ..machine.clone() };
    match Machine::from_toml_str("again.toml", &text) {
        Ok(again) => assert!(again == *machine, "reads back as another machine:\n{text}"),
        Err(error) => panic!("does not read back: {error}\n{text}"),
    }
}

fn check_domains(machine: &Machine) {
    let default = DomainOptions::default();
    let topology = Topology::build(machine, &default).expect("no request is never refused");
    let step = machine.nr_cpus().div_ceil(SAMPLE);
    for cpu in (0..machine.nr_cpus()).step_by(step) {
        check_chain(machine, &topology, cpu);
        render_domains(&topology, cpu, KernelStyle::new(6, 5));
        render_schedstat_masks(&topology, cpu);
    }
    let highest = i32::try_from(topology.level_max).expect("levels are few") + 1;
    let requests = [
        (0, RelaxSemantics::Before),
        (highest, RelaxSemantics::After),
        (highest + 1, RelaxSemantics::After),
        (i32::MAX, RelaxSemantics::Before),
        (i32::MIN, RelaxSemantics::After),
    ];
    for (request, relax_semantics) in requests {
        let relaxed = DomainOptions { relax_domain_level: Some(request), relax_semantics, ..default };
        let refused = Topology::build(machine, &relaxed).is_err();
        assert!(refused || (0..=highest).contains(&request), "{request} of {highest} is accepted");
    }
}

/// Every domain holds the one below, and its groups cover it and nothing else.
fn check_chain(machine: &Machine, topology: &Topology, cpu: usize) {
    let mut below = CpuSet::single(cpu);
    for domain in topology.domains_of(cpu) {
        assert!(below.is_subset(&domain.span), "CPU {cpu}: {} is not around the one below", domain.name);
        let mut covered = CpuSet::new();
        for group in topology.groups_from(domain, cpu) {
            assert!(!group.span.is_empty() && group.capacity > 0);
            assert!(group.balance_mask.is_subset(&group.span));
            covered = covered.union(&group.span);
        }
        assert_eq!(covered, domain.span, "CPU {cpu}: the groups of {}", domain.name);
        below = domain.span;
    }
    assert_eq!(below, machine.all_cpus(), "CPU {cpu}: the top domain");
}
