//! Where the CPUs' time went: the parts add up, and each cost is in the part that is named after it.

mod support;

use coreward_metrics::{Metric, Part};
use coreward_policy::Profile;
use coreward_workload::Scale;
use proptest::prelude::*;
use support::{MS, Setup, Workload, hackbench, restless, spinners, uneven, workload, yielders};

/// What costs something on a machine where all else is free.
fn parts_of(setup: &Setup) -> Vec<Part> {
    let time = setup.run().outcome.cpu_time;
    let costs = |part: &Part| !matches!(part, Part::Task | Part::Idle | Part::IdleWaiting);
    Part::ALL.iter().copied().filter(|part| costs(part) && time.ns(*part) > 0).collect()
}

/// On one CPU nothing is contended.
fn pipes() -> Setup {
    Setup::free("1c", hackbench("-g 1 -f 3 -l 50 -T --pipe"))
}

#[test]
fn on_a_free_machine_all_time_is_the_tasks_own() {
    assert_eq!(parts_of(&pipes()), []);
}

#[test]
fn each_cost_is_in_its_part() {
    let pulls = || Setup::free("4c", uneven());
    let cases = [
        ("wakeup_ns", pipes(), Part::Wakeup),
        ("enqueue_ns", pipes(), Part::Queue),
        ("dequeue_ns", pipes(), Part::Queue),
        ("group_entity_ns", pulls(), Part::Queue),
        ("pick_next_ns", pipes(), Part::Queue),
        ("context_switch_ns", pipes(), Part::Switch),
        ("balance_ns", pulls(), Part::Balance),
        ("balance_cpu_ns", pulls(), Part::Balance),
        ("detach_task_ns", pulls(), Part::Balance),
        ("tick_ns", Setup::free("1c", spinners(1, 50 * MS)), Part::Interrupt),
        ("thread_start_ns", Setup::free("1c", spinners(9, MS)), Part::Create),
    ];
    for (name, setup, part) in cases {
        let mut parts = parts_of(&setup.cost(name, 1000));
        // another CPU may wait for the runqueue meanwhile
        parts.retain(|other| *other != Part::RqLock);
        assert_eq!(parts, [part], "{name}");
    }
    for (name, part) in [("syscall_ns", Part::Task), ("pipe_op_ns", Part::Task)] {
        let task = |cost| pipes().cost(name, cost).run().outcome.cpu_time.ns(part);
        assert!(task(1000) > task(0), "{name}");
    }
}

#[test]
fn lines_and_locks_are_told_apart() {
    let crowd = Setup::free("4c", hackbench("-g 4 -f 3 -l 100 -T --pipe")).profile("linux-6.5");
    let parts = parts_of(&crowd.cost("transfer_llc_ns", 100));
    let shared = [Part::ChannelLock, Part::ChannelLines, Part::TaskLines, Part::RqLock, Part::TgLoadAvg];
    for part in shared.into_iter().chain([Part::FileLines]) {
        assert!(parts.contains(&part), "{}: {parts:?}", part.name());
    }
    assert!(!parts.contains(&Part::FutexLines), "hackbench has no mutex: {parts:?}");
    let sysbench = coreward_workload::parse("sysbench threads --threads=4 --events=200 run", Scale::FULL);
    let parts = parts_of(&Setup::free("4c", sysbench.unwrap()).cost("transfer_llc_ns", 100));
    assert!(parts.contains(&Part::FutexLines) && !parts.contains(&Part::ChannelLines), "{parts:?}");
}

#[test]
fn only_threads_share_the_reference_count_of_a_file() {
    let file_lines = |options: &str, transfer_ns| {
        let setup = Setup::new("4c", hackbench(&format!("-g 2 -f 4 -l 500 {options}")));
        setup.cost("transfer_llc_ns", transfer_ns).run().outcome.cpu_time.ns(Part::FileLines)
    };
    for channel in ["--pipe", ""] {
        let (near, far) =
            (file_lines(&format!("-T {channel}"), 20), file_lines(&format!("-T {channel}"), 100));
        assert!(near > 0 && far > 2 * near, "{channel}: {near} and {far} ns");
        assert_eq!(file_lines(&format!("-P {channel}"), 60), 0, "{channel}");
    }
    let alone = Setup::free("1c", hackbench("-g 1 -f 3 -l 500 -T --pipe")).cost("transfer_llc_ns", 60);
    assert_eq!(alone.run().outcome.cpu_time.ns(Part::FileLines), 0, "the line never leaves the CPU");
}

#[test]
fn threads_that_go_idle_share_the_reference_count_of_their_address_space() {
    // two tasks that take turns, so that each waits for the other on an idle CPU
    let mm_count = |options: &str, transfer_ns| {
        let turns = format!("perf bench sched pipe -l 1000 {options}");
        let setup = Setup::free("4c", coreward_workload::parse(&turns, Scale::FULL).unwrap());
        setup.cost("transfer_llc_ns", transfer_ns).run().outcome.cpu_time.ns(Part::MmCount)
    };
    let (near, far) = (mm_count("-T", 20), mm_count("-T", 60));
    assert!(near > 0 && far > 2 * near, "{near} and {far} ns");
    // a process finds its own count where it ran before, unless it has moved
    let stays = mm_count("", 60);
    assert!(stays < far / 2, "{stays} and {far} ns");
    let moves = Setup::free("4c", hackbench("-g 2 -f 2 -l 5000 --pipe -P")).cost("transfer_llc_ns", 60);
    assert!(moves.run().outcome.cpu_time.ns(Part::MmCount) > 0);
    let busy = Setup::free("1c", yielders_without_marks(3, 20)).run().outcome.cpu_time;
    assert_eq!(busy.ns(Part::MmCount), 0, "switches between tasks take no reference");
}

#[test]
fn a_switch_takes_what_it_costs() {
    let run = Setup::free("1c", yielders_without_marks(3, 20)).cost("context_switch_ns", 700).run();
    let switches = run.switches().count() as u64;
    assert!(switches >= 60);
    // with the last one, to idle, the run is over
    assert_eq!(run.outcome.cpu_time.ns(Part::Switch), 700 * (switches - 1));
}

/// Its measured part is the whole run.
fn yielders_without_marks(n: usize, rounds: usize) -> Workload {
    let mut programs = yielders(n, rounds).programs;
    let mut main = vec![support::spawn(1); n];
    main.push(coreward_workload::Op::WaitChildren);
    programs[0] = support::program(&main);
    workload(0, programs)
}

#[test]
fn an_idle_cpu_beside_no_waiting_task_is_idle() {
    let time = Setup::free("2c", spinners(1, 50 * MS)).run().outcome.cpu_time;
    assert_eq!(time.ns(Part::IdleWaiting), 0);
    assert!(time.ns(Part::Idle) >= 50 * MS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A debug build also checks in [`coreward_engine`] that no time is missing before the sum is formed.
    #[test]
    fn the_parts_add_up_to_all_time(
        shape in prop::sample::select(vec!["1c", "1c2t", "3c", "2l4c2t", "1n2l2c2t", "2n2l2c2t", "juno-r0"]),
        kind in 0..5,
        size in 1usize..6,
        profile in prop::sample::select(vec!["linux-5.10", "linux-6.5", "linux-6.12", "linux-6.18", "linux-7.3"]),
        seed in 1u64..1000,
    ) {
        let bench = |command: String| coreward_workload::parse(&command, Scale::FULL).unwrap();
        let workload = match kind {
            0 => hackbench(&format!("-g {size} -f 3 -l 30 -T --pipe")),
            1 => hackbench(&format!("-g {size} -f 2 -l 30 -P")),
            2 => bench(format!("sysbench threads --threads={size} --events=100 run")),
            3 => restless(3 * size, MS / 5, MS / 3, 10),
            _ => yielders(2 * size, 10),
        };
        prop_assert!(Profile::by_name(profile).is_some());
        let setup = Setup::new(shape, workload).profile(profile).seed(seed);
        let cpus = setup.machine.cpus.len() as u64;
        let run = setup.run();
        let time = run.outcome.cpu_time;
        prop_assert_eq!(time.total_ns(), cpus * run.runtime_ns());
        let idle = time.ns(Part::Idle) + time.ns(Part::IdleWaiting);
        let busy = (run.get(Metric::busy_s) * 1e9).round() as u64;
        prop_assert_eq!(time.total_ns() - idle, busy);
        let waiting = (run.get(Metric::idle_while_waiting_s) * 1e9).round() as u64;
        prop_assert_eq!(time.ns(Part::IdleWaiting), waiting);
    }
}
