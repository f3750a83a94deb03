//! Which CPUs are measured together.

use coreward_machine::Machine;

/// The CPUs that measurements use.
pub(crate) struct Pairs {
    pub(crate) first: usize,
    /// All that may be used.
    pub(crate) allowed: Vec<usize>,
    /// A CPU near the first one, for wakeups: of the same LLC and another core if there is one.
    pub(crate) other: Option<usize>,
    /// For each distance that the machine has, its cost and a pair of CPUs.
    pub(crate) by_distance: Vec<(&'static str, (usize, usize))>,
}

impl Pairs {
    pub(crate) fn of(machine: &Machine, is_allowed: impl Fn(usize) -> bool) -> Pairs {
        let allowed: Vec<usize> = (0..machine.nr_cpus()).filter(|cpu| is_allowed(*cpu)).collect();
        let first = allowed.first().copied().unwrap_or(0);
        let mut by_distance: Vec<(&'static str, (usize, usize))> = Vec::new();
        for other in allowed.iter().copied().skip(1) {
            if let Some(name) = machine.transfer_cost(first, other)
                && by_distance.iter().all(|(known, _)| *known != name)
            {
                by_distance.push((name, (first, other)));
            }
        }
        let other = by_distance.iter().find(|(name, _)| *name == "transfer_llc_ns").map(|(_, pair)| pair.1);
        Pairs { first, allowed, other, by_distance }
    }
}
