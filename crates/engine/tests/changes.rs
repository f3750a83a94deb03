//! The machine changes in the middle of a run: CPUs go offline and come back, and the workload's cpuset changes.

mod support;

use coreward_engine::SimError;
use coreward_metrics::Metric;
use coreward_policy::Profile;
use coreward_workload::{CpuChoice, Op};
use support::{Event, MS, Run, Setup, hackbench, program, restless, run, sleep, spawn, spinners, workload};

/// Simulated time at which runs begin, in ns (`START_NS`).
const START: u64 = 8_001_048_576;

fn changed(setup: &Setup, changes: &[&str]) -> Run {
    setup.run_changed(changes).unwrap_or_else(|error| panic!("{changes:?}: {error}"))
}

/// The CPUs on which tasks began to run between two times, in ms since the start.
fn used(run: &Run, from: u64, to: u64) -> Vec<usize> {
    let within = |now: u64| (START + from * MS..START + to * MS).contains(&now);
    let mut cpus: Vec<usize> = run
        .switches()
        .filter(|(now, _, _, _, next)| *next != 0 && within(*now))
        .map(|(_, cpu, ..)| cpu)
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

#[test]
fn a_cpu_that_goes_offline_runs_nothing_until_it_comes_back() {
    for profile in Profile::ALL {
        let setup = Setup::new("4c", restless(8, 3 * MS, MS, 100)).profile(profile);
        assert_eq!(used(&setup.run(), 100, 400), [0, 1, 2, 3], "{profile}");
        let away = changed(&setup, &["100ms offline 1-2", "300ms online 1"]);
        // it ends what it is in the middle of
        assert_eq!(used(&away, 101, 300), [0, 3], "{profile}");
        assert_eq!(used(&away, 310, 500), [0, 1, 3], "{profile}");
        assert_eq!(away.outcome.changes_left, 0);
        assert_eq!(away.outcome.checks.violations, [], "{profile}");
    }
}

#[test]
fn fewer_cpus_take_longer() {
    let setup = Setup::free("4c", spinners(4, 400 * MS));
    let ms = |changes: &[&str]| (changed(&setup, changes).get(Metric::runtime_s) * 1e3).round() as u64;
    assert_eq!(ms(&[]), 400);
    // two CPUs are left for four times 300 ms
    let half = ms(&["100ms offline 2-3"]);
    assert!((690..720).contains(&half), "{half}");
    // and for 100 ms only: three quarters of the work are done at 400 ms
    let shortly = ms(&["100ms offline 2-3", "200ms online 2-3"]);
    assert!((445..480).contains(&shortly), "{shortly}");
    let cpuset = ms(&["100ms cpus 0-1"]);
    assert!((690..720).contains(&cpuset), "{cpuset}");
}

#[test]
fn a_smaller_cpuset_moves_all_tasks_and_a_larger_one_spreads_them() {
    let setup = Setup::new("2n4c", restless(8, 3 * MS, MS, 100));
    let run = changed(&setup, &["100ms cpus 5", "200ms cpus 0-7"]);
    assert_eq!(used(&run, 101, 200), [5]);
    assert_eq!(used(&run, 300, 400), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_task_that_is_bound_to_a_lost_cpu_runs_elsewhere_and_returns() {
    let rounds = [run(MS), sleep(MS)].repeat(200);
    let bound = [&[Op::SetAffinity { set: Some(0) }][..], &rounds].concat();
    let mut w = workload(
        0,
        vec![program(&[Op::MarkStart, spawn(1), Op::WaitChildren, Op::MarkEnd]), program(&bound)],
    );
    w.cpu_sets = vec![CpuChoice::These(vec![3])];
    let setup = Setup::new("4c", w);
    assert_eq!(used(&setup.run(), 50, 300), [3]);
    let run = changed(&setup, &["100ms offline 3", "200ms online 3"]);
    let meanwhile = used(&run, 105, 200);
    assert!(!meanwhile.is_empty() && !meanwhile.contains(&3), "{meanwhile:?}");
    assert_eq!(used(&run, 205, 300), [3]);
}

#[test]
fn domains_are_those_of_the_cpus_that_are_left() {
    // what is left of the second node does not suffice for a level of its own: no decision reaches it. Task 1 waits for
    // the others, and may have been there.
    let setup = Setup::new("2n2c", restless(6, 3 * MS, MS, 100));
    let reach = |run: &Run| {
        run.events.iter().any(|event| {
            matches!(event, Event::Migrate { now, pid, from, to, .. }
                if *now > START + 101 * MS && *pid != 1 && (*from < 2) != (*to < 2))
        })
    };
    assert!(reach(&setup.run()));
    assert!(!reach(&changed(&setup, &["100ms offline 2-3"])));
}

/// Without siblings, sched_smt_present is off, and nobody searches for idle cores.
#[test]
fn idle_cores_are_searched_for_while_some_core_has_siblings() {
    let setup = Setup::new("4c2t", hackbench("-g 4 -l 50"));
    let idle_cores = |changes: &[&str]| -> u64 {
        let found = changed(&setup, changes);
        found.outcome.reasons().filter(|(reason, _)| reason.text == "idle core").map(|(_, n)| n).sum()
    };
    assert!(idle_cores(&[]) > 0);
    assert!(idle_cores(&["0ms offline 4-6"]) > 0);
    assert_eq!(idle_cores(&["0ms offline 4-7"]), 0);
}

#[test]
fn changes_after_the_end_are_counted() {
    let setup = Setup::new("2c", spinners(2, 10 * MS));
    let run = changed(&setup, &["5s offline 1"]);
    assert_eq!(run.outcome.changes_left, 1);
    assert_eq!(run.hash(), setup.run().hash());
}

#[test]
fn impossible_changes_are_refused() {
    let setup = Setup::new("4c", hackbench("-g 1 -l 5"));
    for (changes, what) in [
        (&["1s offline 4"][..], "1s offline 4: there is no CPU 4, allowed are 0 to 3"),
        (&["1s offline 0-3"], "1s offline 0-3: the workload has no CPU left"),
        (&["2s offline 0-1", "1s cpus 0-1"], "2s offline 0-1: the workload has no CPU left"),
    ] {
        let refused = setup.run_changed(changes).err().expect("it is refused");
        assert!(matches!(refused, SimError::Change { .. }));
        assert_eq!(refused.to_string(), what);
    }
}
