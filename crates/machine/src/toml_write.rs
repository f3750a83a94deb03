//! Writes a machine as a machine file that reads back as the same machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use crate::costs::Costs;
use crate::cpuset::CpuSet;
use crate::machine::Machine;

impl Machine {
    /// The machine as a machine file, in the explicit form (one `[[llc]]` table for each LLC).
    /// [`Machine::from_toml_str`] reads it back as an equal machine, of which nothing is assumed any more.
    pub fn to_toml(&self) -> String {
        let mut writer = Writer { machine: self, text: String::new(), written: BTreeSet::new() };
        writer.header();
        writer.llcs();
        writer.capacities();
        writer.caches();
        writer.costs();
        writer.idle_states();
        writer.sources();
        writer.text
    }
}

struct Writer<'a> {
    machine: &'a Machine,
    text: String,
    /// Paths of the figures whose sources are written with them.
    written: BTreeSet<String>,
}

impl Writer<'_> {
    fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{line}");
    }

    /// A key and its value, with the source if the figure at `path` has one.
    fn figure(&mut self, path: &str, key: &str, value: impl Display) {
        match self.machine.sources.get(path) {
            Some(source) => {
                self.written.insert(path.to_owned());
                let source = quote(source);
                self.line(format_args!("{key} = {{ value = {value}, source = {source} }}"));
            }
            None => self.line(format_args!("{key} = {value}")),
        }
    }

    fn header(&mut self) {
        let machine = self.machine;
        self.figure("name", "name", quote(&machine.name));
        self.figure("description", "description", quote(&machine.description));
        self.figure("arch", "arch", quote(machine.arch.name()));
        self.figure("hz", "hz", machine.hz);
        if let Some(kernel) = &machine.kernel {
            self.figure("kernel", "kernel", quote(kernel));
        }
        if let Some(preemption) = machine.preemption {
            self.figure("preemption", "preemption", quote(preemption.name()));
        }
        if !machine.features.is_empty() {
            self.figure("features", "features", quote(&machine.features.join(" ")));
        }
        if let Some(bits) = machine.vcpu_pack {
            self.figure("vcpu_pack", "vcpu_pack", bits);
        }
        self.figure("distances", "distances", format_args!("{:?}", machine.distances));
        self.figure("reclaim_distance", "reclaim_distance", machine.reclaim_distance);
        if machine.idle_states.is_empty() {
            // Without this, the default states would be taken.
            self.line("idle = []");
        }
    }

    fn llcs(&mut self) {
        let machine = self.machine;
        for llc in 0..machine.nr_llcs() {
            let members = machine.cpus_where(|cpu| cpu.llc == llc);
            let Some(first) = members.first().map(|cpu| &machine.cpus[cpu]) else {
                continue;
            };
            let cores = lists(&members, |cpu| Some(machine.cpus[cpu].core));
            let clusters = lists(&members, |cpu| machine.cpus[cpu].cluster);
            self.line(format_args!("\n[[llc]]\ncores = [{cores}]"));
            if !clusters.is_empty() {
                self.line(format_args!("clusters = [{clusters}]"));
            }
            self.line(format_args!("node = {}\npackage = {}", first.node, first.package));
            let path = format!("llc.{llc}.bytes");
            let bytes = machine.llc_bytes[llc];
            if bytes != machine.caches.llc_bytes || machine.sources.contains_key(&path) {
                self.figure(&path, "bytes", bytes);
            }
        }
    }

    fn capacities(&mut self) {
        let mut values: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for (number, cpu) in self.machine.cpus.iter().enumerate() {
            values.entry(cpu.capacity).or_default().insert(number);
        }
        self.line("\n[capacity]");
        for (capacity, cpus) in values {
            self.figure(&format!("capacity.{cpus}"), &format!("\"{cpus}\""), capacity);
        }
    }

    fn caches(&mut self) {
        let caches = &self.machine.caches;
        self.line("\n[caches]");
        self.figure("caches.l1d_bytes", "l1d_bytes", caches.l1d_bytes);
        self.figure("caches.l2_bytes", "l2_bytes", caches.l2_bytes);
        self.figure("caches.llc_bytes", "llc_bytes", caches.llc_bytes);
        self.figure("caches.line_bytes", "line_bytes", caches.line_bytes);
    }

    fn costs(&mut self) {
        self.line("\n[costs]");
        for field in Costs::FIELDS {
            let Some(value) = self.machine.costs.get(field.name) else { continue };
            let path = format!("costs.{}", field.name);
            match self.machine.own_bounds.get(field.name) {
                None => self.figure(&path, field.name, value),
                Some((low, high)) => {
                    self.written.insert(path.clone());
                    let source = self.machine.sources.get(&path);
                    let source =
                        source.map_or(String::new(), |source| format!(", source = {}", quote(source)));
                    let name = field.name;
                    self.line(format_args!(
                        "{name} = {{ value = {value}, low = {low}, high = {high}{source} }}"
                    ));
                }
            }
        }
    }

    fn idle_states(&mut self) {
        for state in &self.machine.idle_states {
            self.line(format_args!("\n[[idle]]\nname = {}", quote(&state.name)));
            self.line(format_args!("exit_ns = {}", state.exit_ns));
            self.line(format_args!("residency_ns = {}", state.residency_ns));
            self.line(format_args!("polling = {}", state.polling));
            if state.promoted {
                self.line(format_args!("promoted = true"));
            }
            self.line(format_args!("source = {}", quote(&state.source)));
        }
    }

    /// The sources of figures that the explicit form does not have, such as `shape`.
    fn sources(&mut self) {
        let machine = self.machine;
        let rest: Vec<_> = machine.sources.iter().filter(|(path, _)| !self.written.contains(*path)).collect();
        if !rest.is_empty() {
            self.line("\n[sources]");
        }
        for (path, source) in rest {
            self.line(format_args!("{} = {}", quote(path), quote(source)));
        }
    }
}

/// The CPUs by label, as quoted lists separated by commas.
fn lists(members: &CpuSet, label: impl Fn(usize) -> Option<usize>) -> String {
    let mut sets: BTreeMap<usize, CpuSet> = BTreeMap::new();
    for cpu in members.iter() {
        if let Some(label) = label(cpu) {
            sets.entry(label).or_default().insert(cpu);
        }
    }
    sets.values().map(|set| format!("\"{set}\"")).collect::<Vec<_>>().join(", ")
}

/// A text as a TOML basic string, which serves as value and as key.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            // TOML allows control characters only escaped.
            _ if character.is_ascii_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
