//! How fast the engine is, as a ratio to a floor that is measured in the same run:
//! the hold loop (pop the earliest, push it back later) of a bare binary heap with
//! as many pending events. One line a size; `make bench` prints them.

use coreward_engine::{NoTrace, Outcome, Settings, Simulation};
use coreward_machine::{DomainOptions, Machine, Topology};
use coreward_metrics::Metric;
use coreward_policy::{FEATURES, PolicySettings, Profile};
use coreward_workload::{Scale, parse};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

/// Rounds of engine and floor in turn, of which the median is reported.
const ROUNDS: usize = 5;
/// Events that the floor handles in a round.
const HOLDS: u64 = 3_000_000;

/// Features that are on: those of the default profile, or all that there are.
#[derive(Clone, Copy)]
enum On {
    Default,
    All,
}

impl On {
    fn bits(self) -> u128 {
        match self {
            On::Default => Profile::DEFAULT.features(),
            On::All => (1 << FEATURES.len()) - 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            On::Default => Profile::DEFAULT.name(),
            On::All => "all",
        }
    }
}

fn simulate(machine: &str, workload: &str, on: On) -> (Outcome, f64) {
    let machine = Machine::load(machine).expect("a machine");
    let topology = Topology::build(&machine, &DomainOptions::default()).expect("domains");
    let workload = parse(workload, Scale::FULL).expect("a workload");
    let settings = Settings {
        policy: PolicySettings { features: on.bits(), ..PolicySettings::new(Profile::DEFAULT) },
        seed: 1,
        task_group_depth: Settings::LOGIN_SESSION_DEPTH,
        limit_ns: u64::MAX >> 12,
    };
    let mut trace = NoTrace;
    let simulation = Simulation::new(&machine, &topology, &workload, &settings, &mut trace).expect("fits");
    let start = Instant::now();
    let outcome = simulation.run().expect("ends");
    (outcome, start.elapsed().as_secs_f64())
}

/// Events per second of the hold loop with `pending` events.
fn floor(pending: u64) -> f64 {
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..pending).map(|i| Reverse((i * 37 % 1000, i))).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let start = Instant::now();
    for _ in 0..HOLDS {
        let Reverse((time, event)) = heap.pop().expect("never empty");
        // xorshift
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        heap.push(Reverse((time + random % 2000, event)));
    }
    black_box(heap);
    HOLDS as f64 / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A field of /proc/self/status, in bytes; 0 where there is none.
fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Memory per task: first, while no other run has left its memory behind.
fn memory() {
    let before = status("VmRSS");
    let tasks = 100_000;
    simulate("epyc-9654-2s", "hackbench -g 2500 -f 20 --threads --pipe -l 1 -s 100", On::Default);
    let per_task = status("VmHWM").saturating_sub(before) / tasks;
    println!("tasks={tasks} bytes_per_task={per_task}");
}

fn speed(on: On, cpus: u64, machine: &str, groups: u64, loops: u64) {
    let workload = format!("hackbench -g {groups} -f 20 --threads --pipe -l {loops} -s 100");
    // each of a group's 20 senders sends so many to each of its 20 receivers
    let messages = (groups * 20 * 20 * loops) as f64;
    let mut floors = Vec::new();
    let mut rates: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        // a segment and a tick of each CPU
        floors.push(floor(2 * cpus));
        let (outcome, seconds) = simulate(machine, &workload, on);
        let count = |metric| outcome.metrics.get(metric).unwrap_or(0.0);
        let decisions = count(Metric::wakeups) + count(Metric::context_switches);
        let done = [outcome.events as f64, messages, decisions, outcome.end_ns as f64 / 1e9];
        rates.iter_mut().zip(done).for_each(|(rates, done)| rates.push(done / seconds));
    }
    let ([events, messages, decisions, simulated], floor) = (rates.map(median), median(floors));
    println!(
        "features={} cpus={cpus} tasks={} events_per_s={events:.0} floor_per_s={floor:.0} ratio={:.2} \
         messages_per_s={messages:.0} wakeups_and_switches_per_s={decisions:.0} simulated_s_per_s={simulated:.4} \
         ns_per_event={:.0}",
        on.name(),
        groups * 40,
        events / floor,
        1e9 / events
    );
}

fn main() {
    memory();
    for on in [On::Default, On::All] {
        speed(on, 2, "2c", 1, 3000);
        speed(on, 8, "1n1l4c2t", 1, 3000);
        speed(on, 64, "1n4l8c2t", 5, 800);
        speed(on, 384, "epyc-9654-2s", 32, 150);
        speed(on, 384, "epyc-9654-2s", 320, 15);
    }
}
