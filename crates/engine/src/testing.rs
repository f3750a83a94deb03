//! Simulations that have just begun, for unit tests that look into them.

use coreward_machine::{DomainOptions, Machine, Topology};
use coreward_policy::{Changes, PolicySettings, Profile};
use coreward_workload::{Scale, Workload, parse};

use crate::sim::Simulation;
use crate::{NoTrace, Settings};

/// The default profile with `changes`.
pub(crate) fn settings(changes: &Changes, task_group_depth: u32) -> Settings {
    Settings {
        policy: changes.apply(&PolicySettings::new(Profile::DEFAULT)),
        seed: 1,
        task_group_depth,
        limit_ns: u64::MAX >> 12,
    }
}

/// A sender and a receiver that will pass one message.
pub(crate) fn one_message() -> Workload {
    parse("hackbench -g 1 -f 1 -l 1", Scale::FULL).unwrap()
}

/// Does `then` with a simulation in which the first task has been woken.
pub(crate) fn begun<R>(
    machine: &Machine,
    workload: &Workload,
    settings: &Settings,
    then: impl FnOnce(&mut Simulation<'_>) -> R,
) -> R {
    let topology = Topology::build(machine, &DomainOptions::default()).unwrap();
    let mut trace = NoTrace;
    then(&mut Simulation::new(machine, &topology, workload, settings, &mut trace).unwrap())
}
