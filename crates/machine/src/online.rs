//! What the sysfs and hwloc readers have in common: CPUs and nodes whose numbers have gaps.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::{CAPACITY_SCALE, LOCAL_DISTANCE, Machine, Place};

/// The online CPUs of a real machine by the numbers that it gives them.
#[derive(Default)]
pub(crate) struct Online {
    /// Where each CPU sits; nodes by their own numbers.
    pub(crate) places: BTreeMap<usize, Place>,
    /// Capacities that the machine reports.
    pub(crate) capacities: BTreeMap<usize, u32>,
    /// Distances between nodes, by their own numbers.
    pub(crate) distances: BTreeMap<(usize, usize), u32>,
}

impl Online {
    /// The machine, with CPUs and nodes numbered without gaps: offline CPUs and nodes without
    /// CPUs (memory only) are left out. Distances that are not known keep their defaults.
    pub(crate) fn into_machine(self, name: &str) -> Machine {
        let mut nodes: Vec<usize> = self.places.values().map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let dense = |node: usize| nodes.binary_search(&node).unwrap_or(0);
        let renumbered = |place: &Place| Place { node: dense(place.node), ..*place };
        let places: Vec<Place> = self.places.values().map(renumbered).collect();
        let mut machine = Machine::from_places(name, &places);
        for (index, number) in self.places.keys().enumerate() {
            if let Some(&capacity) = self.capacities.get(number) {
                machine.cpus[index].capacity = capacity;
            }
        }
        for (from, &from_number) in nodes.iter().enumerate() {
            for (to, &to_number) in nodes.iter().enumerate() {
                if let Some(&distance) = self.distances.get(&(from_number, to_number)) {
                    machine.distances[from][to] = distance;
                }
            }
        }
        if self.places.keys().enumerate().any(|(index, &number)| index != number) {
            let numbers: CpuSet = self.places.keys().copied().collect();
            machine.description = format!("online CPUs {numbers}, renumbered from 0");
        }
        machine
    }
}

/// Reads a capacity as the machine reports it.
pub(crate) fn parse_capacity(text: &str) -> Result<u32, String> {
    let capacity = text.trim().parse().ok().filter(|capacity| (1..=CAPACITY_SCALE).contains(capacity));
    capacity.ok_or_else(|| format!("capacity is `{}`, allowed are 1 to {CAPACITY_SCALE}", text.trim()))
}

/// Reads a row of distances; the local one may be any number that is 10.
pub(crate) fn parse_distances(text: &str) -> Result<Vec<u32>, String> {
    let number = |word: &str| match word.parse() {
        Ok(distance) if (LOCAL_DISTANCE..=254).contains(&distance) => Ok(distance),
        _ => Err(format!("distance is `{word}`, allowed are 10 to 254")),
    };
    text.split_whitespace().map(number).collect()
}
