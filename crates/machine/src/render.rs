//! A machine as text for people.

use std::fmt::Write;

use coreward_input::many;

use crate::cpuset::CpuSet;
use crate::machine::{Cpu, Machine};

/// Prints a machine as a tree: nodes, packages, last-level caches, clusters and cores with
/// their CPUs, cache sizes and capacities, then the NUMA distances and idle states.
pub fn render_topology(machine: &Machine) -> String {
    let mut text = format!("{}: {}\n", machine.name, machine.description);
    let counts = [
        (machine.nodes, "node"),
        (machine.nr_packages(), "package"),
        (machine.nr_llcs(), "LLC"),
        (distinct(machine, |cpu| Some(cpu.core)), "core"),
        (machine.nr_cpus(), "CPU"),
    ];
    let counts = counts.map(|(count, name)| many(count, name));
    let _ = writeln!(text, "{}", counts.join(", "));
    let caches = &machine.caches;
    let _ = writeln!(
        text,
        "caches: L1d {}, L2 {}, line {} B",
        size(caches.l1d_bytes),
        size(caches.l2_bytes),
        caches.line_bytes
    );
    for node in 0..machine.nodes {
        let cpus = machine.node_mask(node);
        let _ = writeln!(text, "node {node}: CPUs {cpus}");
        packages(machine, &cpus, &mut text);
    }
    distances(machine, &mut text);
    for state in &machine.idle_states {
        let polling = if state.polling { ", polling" } else { "" };
        let (exit, residency) = (state.exit_ns, state.residency_ns);
        let promoted = if state.promoted { ", promoted" } else { "" };
        let name = &state.name;
        let _ = writeln!(text, "idle {name}: exit {exit} ns, residency {residency} ns{polling}{promoted}");
    }
    text
}

fn packages(machine: &Machine, node: &CpuSet, text: &mut String) {
    for (package, cpus) in parts(machine, node, |cpu| Some(cpu.package)) {
        let _ = writeln!(text, "  package {package}: CPUs {cpus}");
        for (llc, cpus) in parts(machine, &cpus, |cpu| Some(cpu.llc)) {
            let bytes = size(machine.llc_bytes[llc]);
            let _ = writeln!(text, "    LLC {llc} ({bytes}): CPUs {cpus}");
            for (cluster, cpus) in parts(machine, &cpus, |cpu| cpu.cluster) {
                let _ = writeln!(text, "      cluster {cluster}: CPUs {cpus}");
            }
            for (core, cpus) in parts(machine, &cpus, |cpu| Some(cpu.core)) {
                let capacity = cpus.first().map_or(0, |cpu| machine.cpus[cpu].capacity);
                let _ = writeln!(text, "      core {core}: CPUs {cpus}, capacity {capacity}");
            }
        }
    }
}

fn distances(machine: &Machine, text: &mut String) {
    if machine.nodes < 2 {
        return;
    }
    let header: String = (0..machine.nodes).map(|node| format!("{node:>4}")).collect();
    let _ = writeln!(text, "distances\n    {header}");
    for (node, row) in machine.distances.iter().enumerate() {
        let row: String = row.iter().map(|distance| format!("{distance:>4}")).collect();
        let _ = writeln!(text, "{node:>4}{row}");
    }
}

/// The CPUs of a set by id, in the order of their first CPUs.
fn parts(machine: &Machine, cpus: &CpuSet, id: impl Fn(&Cpu) -> Option<usize>) -> Vec<(usize, CpuSet)> {
    let mut parts: Vec<(usize, CpuSet)> = Vec::new();
    for cpu in cpus.iter() {
        let Some(id) = id(&machine.cpus[cpu]) else {
            continue;
        };
        match parts.iter_mut().find(|(other, _)| *other == id) {
            Some((_, set)) => set.insert(cpu),
            None => parts.push((id, CpuSet::single(cpu))),
        }
    }
    parts
}

fn distinct(machine: &Machine, id: impl Fn(&Cpu) -> Option<usize>) -> usize {
    machine.cpus.iter().filter_map(id).max().map_or(0, |max| max + 1)
}

/// A size in the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes != 0 && bytes % (1 << shift) == 0);
    unit.map_or_else(|| format!("{bytes} B"), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}
