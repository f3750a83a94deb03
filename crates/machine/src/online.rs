//! What the sysfs and hwloc readers have in common: CPUs and nodes whose numbers have gaps.

use std::collections::BTreeMap;

use crate::capacity::{self, Speed};
use crate::cpuset::CpuSet;
use crate::machine::{
    CAPACITY_SCALE, LOCAL_DISTANCE, MAX_DISTANCE, Machine, Place, REMOTE_DISTANCE, flat_distances,
};
use crate::render::size;

/// The largest capacity that is read. Some firmware reports a little more than [`CAPACITY_SCALE`].
const MAX_CAPACITY: u32 = 2 * CAPACITY_SCALE;

/// The online CPUs of a real machine by the numbers that it gives them.
#[derive(Default)]
pub(crate) struct Online {
    /// Where each CPU sits; nodes by their own numbers.
    pub(crate) places: BTreeMap<usize, Place>,
    /// Capacities that the machine reports.
    pub(crate) capacities: BTreeMap<usize, u32>,
    /// What it reports about speed besides.
    pub(crate) speeds: BTreeMap<usize, Speed>,
    /// Distances between nodes, by their own numbers.
    pub(crate) distances: BTreeMap<(usize, usize), u32>,
    /// What was assumed so far.
    pub(crate) assumptions: Vec<String>,
}

impl Online {
    /// The machine, with CPUs and nodes numbered without gaps: offline CPUs and nodes without
    /// CPUs (memory only) are left out. Distances that are not known keep their defaults.
    pub(crate) fn into_machine(mut self, name: &str) -> Machine {
        let mut nodes: Vec<usize> = self.places.values().map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let dense = |node: usize| nodes.binary_search(&node).unwrap_or(0);
        let renumbered = |place: &Place| Place { node: dense(place.node), ..*place };
        let places: Vec<Place> = self.places.values().map(renumbered).collect();
        let mut machine = Machine::from_places(name, &places);
        self.set_distances(&nodes, &mut machine);
        self.set_capacities(&mut machine);
        if self.places.keys().enumerate().any(|(index, &number)| index != number) {
            let numbers: CpuSet = self.places.keys().copied().collect();
            machine.description = format!("online CPUs {numbers}, renumbered from 0");
        }
        machine.assumptions = self.assumptions;
        machine
    }

    fn set_distances(&mut self, nodes: &[usize], machine: &mut Machine) {
        let known = |from: &usize, to: &usize| self.distances.get(&(*from, *to)).copied();
        let row = |from: &usize| nodes.iter().map(|to| known(from, to)).collect::<Option<Vec<u32>>>();
        let Some(mut rows) = nodes.iter().map(row).collect::<Option<Vec<_>>>() else {
            if nodes.len() > 1 {
                self.assumptions.push(unknown_distances());
            }
            return;
        };
        if make_symmetric(&mut rows) {
            let what = "distances of nodes differ by direction: the larger one counts";
            self.assumptions.push(what.to_owned());
        }
        match scaled(&rows) {
            Some(scaled) => {
                if scaled != rows {
                    let what = "distances of nodes to themselves are not 10: all are scaled so that they are";
                    self.assumptions.push(what.to_owned());
                }
                machine.distances = scaled;
            }
            None => {
                let what = "the distances of nodes are no ACPI SLIT (10 of a node to itself, more to others)";
                let assumed = format!("{LOCAL_DISTANCE} and {REMOTE_DISTANCE} are assumed, as by the kernel");
                self.assumptions.push(format!("{what}: {assumed}"));
                machine.distances = flat_distances(nodes.len());
            }
        }
    }

    fn set_capacities(&mut self, machine: &mut Machine) {
        if self.capacities.is_empty() {
            if let Some((capacities, note)) = capacity::infer(&self.speeds) {
                self.capacities = capacities;
                self.assumptions.push(note);
            }
        }
        if let Some(&most) = self.capacities.values().max().filter(|most| **most > CAPACITY_SCALE) {
            let what =
                format!("a capacity is {most}: all are scaled so that the largest is {CAPACITY_SCALE}");
            self.assumptions.push(what);
            let scale = |capacity: &mut u32| *capacity = (*capacity * CAPACITY_SCALE / most).max(1);
            self.capacities.values_mut().for_each(scale);
        }
        for (index, number) in self.places.keys().enumerate() {
            if let Some(&capacity) = self.capacities.get(number) {
                machine.cpus[index].capacity = capacity;
            }
        }
        let mut of_cores: BTreeMap<usize, u32> = BTreeMap::new();
        for cpu in &machine.cpus {
            let most = of_cores.entry(cpu.core).or_default();
            *most = cpu.capacity.max(*most);
        }
        if machine.cpus.iter().any(|cpu| cpu.capacity != of_cores[&cpu.core]) {
            self.assumptions
                .push("CPUs of one core differ in capacity: each core is given its largest".into());
            machine.cpus.iter_mut().for_each(|cpu| cpu.capacity = of_cores[&cpu.core]);
        }
    }
}

/// That distances keep their defaults.
pub(crate) fn unknown_distances() -> String {
    format!("the distances of nodes are not given: {LOCAL_DISTANCE} and {REMOTE_DISTANCE} are assumed")
}

/// Gives both directions the larger distance. False if they were equal.
fn make_symmetric(rows: &mut [Vec<u32>]) -> bool {
    let before = rows.to_vec();
    for (from, row) in rows.iter_mut().enumerate() {
        for (to, distance) in row.iter_mut().enumerate() {
            *distance = before[from][to].max(before[to][from]);
        }
    }
    *rows != before
}

/// The distances, scaled so that those of nodes to themselves are 10; nothing if they are no SLIT.
fn scaled(rows: &[Vec<u32>]) -> Option<Vec<Vec<u32>>> {
    let local = rows.first()?.first().copied().filter(|local| *local > 0)?;
    let scale = |distance: &u32| {
        u32::try_from(u64::from(*distance) * u64::from(LOCAL_DISTANCE) / u64::from(local)).ok()
    };
    let scale_row = |row: &Vec<u32>| row.iter().map(scale).collect::<Option<Vec<u32>>>();
    let rows: Vec<Vec<u32>> = rows.iter().map(scale_row).collect::<Option<_>>()?;
    let allowed = |from, to, distance| match from == to {
        true => distance == LOCAL_DISTANCE,
        false => (LOCAL_DISTANCE + 1..=MAX_DISTANCE).contains(&distance),
    };
    let valid = rows
        .iter()
        .enumerate()
        .all(|(from, row)| row.iter().enumerate().all(|(to, &distance)| allowed(from, to, distance)));
    valid.then_some(rows)
}

/// Sizes of caches in bytes, as far as a description gives them.
#[derive(Default)]
pub(crate) struct CacheSizes {
    pub(crate) l1d: Option<u64>,
    pub(crate) l2: Option<u64>,
    pub(crate) llc: Option<u64>,
    pub(crate) line: Option<u64>,
}

impl CacheSizes {
    /// Puts the known sizes into the machine, and notes which ones keep their defaults.
    pub(crate) fn put_into(self, machine: &mut Machine) {
        let caches = &mut machine.caches;
        let sizes = [
            ("L1d", self.l1d, &mut caches.l1d_bytes),
            ("L2", self.l2, &mut caches.l2_bytes),
            ("LLC", self.llc, &mut caches.llc_bytes),
            ("cache line", self.line, &mut caches.line_bytes),
        ];
        let mut assumed = Vec::new();
        for (name, known, bytes) in sizes {
            match known {
                Some(known) => *bytes = known,
                None => assumed.push(format!("{name} {}", size(*bytes))),
            }
        }
        if !assumed.is_empty() {
            let what = format!("sizes of caches are not given: assumed are {}", assumed.join(", "));
            machine.assumptions.push(what);
        }
        machine.llc_bytes.fill(machine.caches.llc_bytes);
    }
}

/// Reads a capacity as the machine reports it.
pub(crate) fn parse_capacity(text: &str) -> Result<u32, String> {
    let capacity = text.trim().parse().ok().filter(|capacity| (1..=MAX_CAPACITY).contains(capacity));
    capacity.ok_or_else(|| format!("capacity is `{}`, allowed are 1 to {MAX_CAPACITY}", text.trim()))
}

/// Reads a row of distances.
pub(crate) fn parse_distances(text: &str) -> Result<Vec<u32>, String> {
    let number =
        |word: &str| word.parse().map_err(|_| format!("distance is `{word}`, allowed are 0 to {}", u32::MAX));
    text.split_whitespace().map(number).collect()
}
