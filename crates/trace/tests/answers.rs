//! A pool of workers with one queue, replayed in another order than it was recorded in.

use coreward_engine::{NoTrace, Settings, Simulation};
use coreward_machine::{DomainOptions, Machine, Topology};
use coreward_metrics::Metric;
use coreward_policy::{PolicySettings, Profile};
use coreward_workload::recorded::{Recorded, Step, Task};

const CLIENTS: u32 = 16;
const WORKERS: u32 = 4;
const ROUNDS: u64 = 50;
const US: u64 = 1000;

/// How long a client thinks before a request, in ns: 10 to 30 ms.
fn thinks(client: u32, round: u64) -> u64 {
    (10_000 + (u64::from(client) * 7919 + round * 104_729) % 20_000) * US
}

/// Clients think, put a request on channel 0, and wait for the answer on a channel of their own. `answers` says how the
/// workers wake the clients whose requests they took in the recording.
fn pool(request: Step, answer: fn(u32) -> Step, tied: bool) -> Recorded {
    let mut tasks = Vec::new();
    // who comes when, if nothing delays anybody
    let mut requests = Vec::new();
    for client in 0..CLIENTS {
        let (mut at, mut steps) = (0, Vec::new());
        for round in 0..ROUNDS {
            let think = thinks(client, round);
            at += think + 200 * US;
            requests.push((at, client));
            steps.extend([Step::Sleep(think), Step::Run(20 * US), Step::Post(0), Step::Take(1 + client)]);
        }
        let answers = tied.then_some(1 + client);
        tasks.push(Task { name: format!("client-{client}"), answers, steps, ..Task::default() });
    }
    requests.sort_unstable();
    for worker in 0..WORKERS {
        let of_worker = requests.iter().skip(worker as usize).step_by(WORKERS as usize);
        let steps =
            of_worker.flat_map(|(_, client)| [request, Step::Run(200 * US), answer(*client)]).collect();
        tasks.push(Task { name: format!("worker-{worker}"), steps, ..Task::default() });
    }
    Recorded { tasks, ..Recorded::default() }
}

/// Seconds on a machine, and how many waits ended although nothing had come.
fn run(recorded: &Recorded, machine: &str) -> (f64, u64) {
    let machine = Machine::load(machine).unwrap();
    let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
    let workload = recorded.workload("pool").unwrap();
    let policy = PolicySettings::new(Profile::DEFAULT);
    let settings = Settings { policy, seed: 1, task_group_depth: 0, limit_ns: 100_000_000_000 };
    let mut trace = NoTrace;
    let simulation = Simulation::new(&machine, &topology, &workload, &settings, &mut trace).unwrap();
    let outcome = simulation.run().unwrap();
    (outcome.metrics.get(Metric::runtime_s).unwrap(), outcome.lent)
}

#[test]
fn answers_go_to_whoever_asked() {
    let think = |client| (0..ROUNDS).map(|round| thinks(client, round) + 240 * US).sum::<u64>();
    let longest = (0..CLIENTS).map(think).max().unwrap() as f64 / 1e9;
    let tied = pool(Step::Request(0), |_| Step::Answer, true);
    let untied = pool(Step::Take(0), |client| Step::Post(1 + client), false);
    let mut worst: f64 = 0.0;
    for machine in ["2c", "4c", "8c"] {
        let ((seconds, lent), (without, _)) = (run(&tied, machine), run(&untied, machine));
        println!("{machine}: {seconds:.3} s with answers, {without:.3} s without, {longest:.3} s at least");
        assert_eq!(lent, 0, "{machine}");
        assert!((seconds / longest - 1.0).abs() < 0.03, "{machine}: {seconds}, not {longest}");
        worst = worst.max(without / seconds);
    }
    assert!(worst > 1.2, "answers to the recorded clients are nearly as good: {worst}");
}
