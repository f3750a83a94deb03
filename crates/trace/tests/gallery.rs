//! The gallery's recordings, simulated on the machine that they were made on; and workloads that are made of them wrongly,
//! which have to be further from the recordings.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use coreward_engine::{NoTrace, Outcome, Settings, Simulation};
use coreward_machine::{DomainOptions, Machine, Topology};
use coreward_metrics::Metric;
use coreward_policy::{PolicySettings, Profile};
use coreward_workload::recorded::{Recorded, Step};

fn gallery(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../gallery").join(name)
}

/// The recordings of the gallery, and what was recorded: figures by their names.
fn recordings() -> Vec<(String, Recorded, HashMap<String, f64>)> {
    let text = fs::read_to_string(gallery("recorded.json")).unwrap();
    let recorded: HashMap<String, HashMap<String, f64>> = serde_json::from_str(&text).unwrap();
    let mut all: Vec<_> = recorded.into_iter().collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let read = |(name, figures): (String, _)| {
        let recorded = Recorded::read(&gallery(&format!("{name}.cww"))).unwrap();
        (name, recorded, figures)
    };
    all.into_iter().map(read).collect()
}

fn run(recorded: &Recorded) -> Outcome {
    let machine = Machine::load(gallery("here.toml").to_str().unwrap()).unwrap();
    let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
    let workload = recorded.workload("gallery").unwrap();
    let policy = PolicySettings::new(Profile::of_kernel(machine.kernel.as_deref().unwrap()).0);
    let settings = Settings { policy, seed: 1, task_group_depth: 0, limit_ns: 100_000_000_000 };
    let mut trace = NoTrace;
    let simulation = Simulation::new(&machine, &topology, &workload, &settings, &mut trace).unwrap();
    simulation.run().unwrap()
}

/// How far each figure of a simulation is from what was recorded: the ratios, as logarithms.
fn errors(recorded: &Recorded, figures: &HashMap<String, f64>) -> Vec<f64> {
    let metrics = run(recorded).metrics;
    let of = [
        ("runtime_s", Metric::runtime_s),
        ("cpu_s", Metric::busy_s),
        ("wakeups", Metric::wakeups),
        ("wakeup_latency_us_p50", Metric::wakeup_latency_us_p50),
        ("wakeup_latency_us_p99", Metric::wakeup_latency_us_p99),
    ];
    let ratio = |(name, metric): (&str, Metric)| (metrics.get(metric).unwrap() / figures[name]).ln().abs();
    of.into_iter().map(ratio).collect()
}

/// A permutation that is always the same.
fn shuffle<T>(values: &mut [T]) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..values.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        values.swap(i, (state >> 33) as usize % (i + 1));
    }
}

/// Gives the steps of a kind the numbers of such steps anywhere.
fn permuted(recorded: &Recorded, kind: fn(&mut Step) -> Option<&mut u64>) -> Recorded {
    let mut recorded = recorded.clone();
    let steps = |recorded: &mut Recorded, numbers: &mut dyn FnMut(&mut u64)| {
        for step in recorded.tasks.iter_mut().flat_map(|task| &mut task.steps) {
            kind(step).into_iter().for_each(&mut *numbers);
        }
    };
    let mut all = Vec::new();
    steps(&mut recorded, &mut |number| all.push(*number));
    shuffle(&mut all);
    let mut next = all.into_iter();
    steps(&mut recorded, &mut |number| *number = next.next().unwrap());
    recorded
}

/// Tasks do what they do, but for the wrong ones.
fn edges_shuffled(recorded: &Recorded) -> Recorded {
    let mut recorded = recorded.clone();
    // a pair is a channel of its own, so that any wakeup may end any wait
    let mut channels: HashMap<(u32, u32), u32> = HashMap::new();
    for (index, task) in (0..).zip(&mut recorded.tasks) {
        for step in &mut task.steps {
            let pair = match *step {
                Step::Wake(task) => (index, task),
                Step::Await(task) => (task, index),
                _ => continue,
            };
            let next = 500_000 + channels.len() as u32;
            let channel = *channels.entry(pair).or_insert(next);
            *step = if matches!(step, Step::Wake(_)) { Step::Post(channel) } else { Step::Take(channel) };
        }
    }
    let mut posts: Vec<u32> = Vec::new();
    let each = |recorded: &mut Recorded, f: &mut dyn FnMut(&mut u32)| {
        for step in recorded.tasks.iter_mut().flat_map(|task| &mut task.steps) {
            if let Step::Post(channel) = step {
                f(channel);
            }
        }
    };
    each(&mut recorded, &mut |channel| posts.push(*channel));
    shuffle(&mut posts);
    let mut next = posts.into_iter();
    each(&mut recorded, &mut |channel| *channel = next.next().unwrap());
    recorded
}

/// Tasks compute what others did.
fn segments_swapped(recorded: &Recorded) -> Recorded {
    permuted(recorded, |step| if let Step::Run(ns) = step { Some(ns) } else { None })
}

/// Waiting for time counts as computing.
fn think_time_as_work(recorded: &Recorded) -> Recorded {
    let mut recorded = recorded.clone();
    for task in &mut recorded.tasks {
        let mut until = 0;
        for step in &mut task.steps {
            match *step {
                Step::Sleep(ns) | Step::Device(ns) => *step = Step::Run(ns),
                Step::Until(ns) => *step = Step::Run(ns - std::mem::replace(&mut until, ns)),
                _ => {}
            }
        }
    }
    recorded
}

#[test]
fn workloads_that_are_made_wrongly_are_further_from_the_recordings() {
    let recordings = recordings();
    assert!(recordings.len() >= 10, "five programs on two CPUs and on one");
    // not the mean: the median latency has two modes where a woken task runs at once or after its waker, and jumps
    let median = |change: &dyn Fn(&Recorded) -> Recorded| {
        let of = |(_, recorded, figures): &(_, Recorded, _)| errors(&change(recorded), figures);
        let mut errors: Vec<f64> = recordings.iter().flat_map(of).collect();
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    let right = median(&Recorded::clone);
    for (what, change) in [
        ("edges shuffled", &edges_shuffled as &dyn Fn(&Recorded) -> Recorded),
        ("segments swapped", &segments_swapped),
        ("think time as work", &think_time_as_work),
    ] {
        let wrong = median(change);
        println!("{what}: {wrong:.3}, as imported {right:.3}");
        assert!(wrong > right * 1.1, "{what}: {wrong:.3}, as imported {right:.3}");
    }
}
