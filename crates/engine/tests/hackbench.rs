//! The engine as a whole, on hackbench.

use coreward_engine::{NoTrace, Outcome, Settings, SimError, Simulation};
use coreward_machine::{DomainOptions, Machine, Topology};
use coreward_metrics::Metric;
use coreward_policy::{PolicySettings, Profile};
use coreward_workload::{Scale, parse};

fn settings(profile: &str, seed: u64) -> Settings {
    Settings {
        policy: PolicySettings::new(Profile::by_name(profile).unwrap()),
        seed,
        task_group_depth: Settings::LOGIN_SESSION_DEPTH,
        limit_ns: 10_000_000_000,
    }
}

fn run(machine: &str, workload: &str, settings: &Settings) -> Result<Outcome, SimError> {
    let machine = Machine::load(machine).unwrap();
    let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
    let workload = parse(workload, Scale::FULL).unwrap();
    Simulation::new(&machine, &topology, &workload, settings, &mut NoTrace)?.run()
}

#[test]
fn every_message_arrives_whatever_the_machine_and_the_tool_are_told() {
    for machine in ["1n1l1c1t", "1n1l2c2t", "2n2l2c2t", "1n3l3c1t"] {
        for options in
            ["-T --pipe", "-P --pipe", "-T --sockets", "-P --sockets -s 5000", "-T --pipe -s 70000"]
        {
            let name = format!("hackbench -g 2 -f 3 -l 40 {options}");
            for profile in ["linux-6.5", "linux-6.12"] {
                let outcome = run(machine, &name, &settings(profile, 1))
                    .unwrap_or_else(|e| panic!("{machine} {name}: {e}"));
                let rate = outcome.metrics.get(Metric::messages_per_s).unwrap();
                let runtime = outcome.metrics.get(Metric::runtime_s).unwrap();
                assert_eq!((rate * runtime).round(), 2.0 * 9.0 * 40.0, "{machine} {name}");
            }
        }
    }
}
