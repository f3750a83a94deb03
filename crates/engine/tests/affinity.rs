//! Tasks that may not run everywhere, and the other policies of the fair class.

mod support;

use coreward_engine::Leaving;
use coreward_workload::{Attributes, CpuChoice, Op, Policy, Scale, Workload, parse};
use support::{Event, MS, Setup, program, run, single, sleep, spawn, workload};

/// The CPUs on which tasks ran, in the order in which they began to.
fn cpus(machine: &str, w: Workload) -> Vec<usize> {
    let r = Setup::free(machine, w).run();
    r.switches().filter(|s| s.4 != 0).map(|s| s.1).collect()
}

fn set(set: u32) -> Op {
    Op::SetAffinity { set: Some(set) }
}

fn with_sets(w: Workload, sets: &[&[u32]]) -> Workload {
    Workload { cpu_sets: sets.iter().map(|set| CpuChoice::These(set.to_vec())).collect(), ..w }
}

#[test]
fn a_task_goes_where_it_may_run() {
    let w = single(&[run(MS), set(0), run(MS), set(1), run(MS)]);
    let ran = cpus("4c", with_sets(w, &[&[3], &[1]]));
    assert_eq!(ran[ran.len() - 2..], [3, 1]);
}

/// select_task_rq() asks no policy then.
#[test]
fn nobody_decides_where_a_task_goes_that_may_use_one_cpu() {
    let decisions = |machine| {
        let r = Setup::new(machine, parse("hackbench -g 1 -f 2 -l 20", Scale::FULL).unwrap()).run();
        r.events.iter().filter(|e| matches!(e, Event::Decision(_))).count()
    };
    assert_eq!(decisions("1c"), 0);
    assert!(decisions("2c") > 0);
}

#[test]
fn cpus_are_taken_in_turn() {
    let turns = |machine| {
        let w = single(&[set(0), run(MS), set(1), run(MS), set(2), run(MS)]);
        let ran = cpus(machine, Workload { cpu_sets: [1, 2, 3].map(CpuChoice::InTurn).to_vec(), ..w });
        ran[ran.len() - 3..].to_vec()
    };
    assert_eq!((turns("4c"), turns("3c")), (vec![1, 2, 3], vec![1, 2, 0]));
}

#[test]
fn threads_of_cyclictest_stay_on_their_cpus() {
    let r = Setup::free("2c", parse("cyclictest -t 4 -i 1000 -l 500", Scale::FULL).unwrap()).run();
    // each of them leaves the CPU that it began on once at most
    assert!(r.get(coreward_metrics::Metric::cpu_migrations) <= 4.0);
}

#[test]
fn a_set_with_its_cpu_does_not_move_it() {
    let w = single(&[set(0), run(MS), set(1), run(MS)]);
    let ran = cpus("4c", with_sets(w, &[&[2], &[0, 1, 2, 3]]));
    assert_eq!(ran[ran.len() - 1], 2);
    let times = |w: Workload| Setup::free("4c", w).run().runtime_ns();
    let free = times(single(&[run(MS)]));
    assert_eq!(times(with_sets(single(&[set(0), run(MS)]), &[&[0, 1, 2, 3]])), free);
}

#[test]
fn a_task_may_run_everywhere_again() {
    let everywhere = Op::SetAffinity { set: None };
    let body = |last: &[Op]| program(&[&[set(0), run(10 * MS)], last, &[run(40 * MS)]].concat());
    let times = |last: &[Op]| {
        let main = program(&[spawn(1), spawn(1), Op::WaitChildren]);
        let w = with_sets(workload(0, vec![main, body(last)]), &[&[2]]);
        Setup::free("4c", w).run().runtime_ns()
    };
    assert!(times(&[]) >= 100 * MS, "{}", times(&[]));
    assert!(times(&[everywhere]) < 70 * MS, "{}", times(&[everywhere]));
}

/// Of two tasks that share a CPU, one has done so much work when the other, which changes its nice value after 100 ms of
/// work, ends after another 100 ms of it.
fn beside_one_that_changes(nice: i8) -> f64 {
    let main = program(&[spawn(1), spawn(2), Op::WaitChildren]);
    let changes = program(&[run(100 * MS), Op::SetNice { nice }, run(100 * MS)]);
    let other = program(&[run(20_000 * MS)]);
    let r = Setup::free("1c", workload(0, vec![main, changes, other])).run();
    let began = r.switches().next().unwrap().0;
    let ended = r.switches().find(|s| s.3 == Leaving::Exited).unwrap().0;
    (ended - began) as f64 / MS as f64 - 200.0
}

#[test]
fn a_nice_value_changes_in_mid_run() {
    // prio_to_weight: 1024 of nice 0, 335 of nice 5, 3121 of nice -5
    for (nice, share) in [(0, 1.0), (5, 1024.0 / 335.0), (-5, 1024.0 / 3121.0)] {
        let (got, wanted) = (beside_one_that_changes(nice), 100.0 + 100.0 * share);
        assert!((got / wanted - 1.0).abs() < 0.06, "{nice}: {got} instead of {wanted}");
    }
}

/// Two tasks that have to share a CPU while three are idle take twice the time.
#[test]
fn neither_wakeups_nor_balancing_move_it_elsewhere() {
    let body = |first: Op| program(&[&[first][..], &[run(10 * MS), sleep(MS / 10)].repeat(10)].concat());
    let times = |first: Op| {
        let main = program(&[spawn(1), spawn(1), Op::WaitChildren]);
        let w = with_sets(workload(0, vec![main, body(first)]), &[&[2], &[1, 2]]);
        Setup::free("4c", w).run().runtime_ns()
    };
    assert!(times(set(0)) >= 200 * MS, "{}", times(set(0)));
    assert!(times(set(1)) < 110 * MS, "{}", times(set(1)));
}

#[test]
fn a_new_task_inherits_the_cpus() {
    let main = program(&[set(0), spawn(1), spawn(1), Op::WaitChildren]);
    let w = with_sets(workload(0, vec![main, program(&[run(5 * MS)])]), &[&[1]]);
    let ran = cpus("4c", w);
    assert!(ran.iter().filter(|cpu| **cpu == 1).count() >= 3, "{ran:?}");
    assert!(ran.iter().skip(1).all(|cpu| *cpu == 1), "{ran:?}");
}

#[test]
fn cpus_that_there_are_not_are_refused() {
    let refused = Setup::free("2c", with_sets(single(&[set(0)]), &[&[2, 5]])).try_run();
    let error = refused.err().unwrap().to_string();
    assert_eq!(error, "a task asks for CPUs 2,5, which the workload may not use (allowed: 0-1)");
    assert!(Setup::free("2c", with_sets(single(&[set(0)]), &[&[1, 5]])).try_run().is_ok(), "CPU 1 is enough");
}

/// When each of two tasks on one CPU ends: the first, and the second with a policy.
fn end_of_the_first(policy: Policy) -> u64 {
    let main = program(&[spawn(1), spawn(2), Op::WaitChildren]);
    let mut w = workload(0, vec![main, program(&[run(20 * MS)]), program(&[run(20 * MS)])]);
    let other = Attributes { policy, ..Attributes::default() };
    w.attributes = vec![Attributes::default(), Attributes::default(), other];
    let r = Setup::free("1c", w).run();
    let left = r.switches().filter(|s| s.2 == 2).map(|s| s.0).max().unwrap();
    left - r.switches().map(|s| s.0).min().unwrap()
}

#[test]
fn an_idle_task_leaves_the_cpu_to_the_others() {
    let (other, batch, idle) =
        (end_of_the_first(Policy::Other), end_of_the_first(Policy::Batch), end_of_the_first(Policy::Idle));
    assert!(other > 33 * MS && batch > 33 * MS, "they share: {other} and {batch}");
    assert!(idle < 28 * MS, "{idle}");
}

/// A batch task that wakes up waits until the running one has had its turn.
#[test]
fn a_batch_task_does_not_preempt() {
    let ends = |policy| {
        let main = program(&[spawn(1), spawn(2), Op::WaitChildren]);
        let sleeper = program(&[sleep(MS), run(MS / 100)].repeat(20));
        let mut w = workload(0, vec![main, program(&[run(100 * MS)]), sleeper]);
        let attributes = Attributes { policy, ..Attributes::default() };
        w.attributes = vec![Attributes::default(), Attributes::default(), attributes];
        let r = Setup::free("1c", w).profile("linux-6.1").run();
        let last = r.switches().filter(|s| s.2 == 3).map(|s| s.0).max().unwrap();
        last - r.switches().map(|s| s.0).min().unwrap()
    };
    let (other, batch) = (ends(Policy::Other), ends(Policy::Batch));
    assert!(batch > other + 10 * MS, "{other} and {batch}");
}

#[test]
fn writing_memory_takes_the_time_of_copying_it() {
    let time = |ops: &[Op], cost| {
        let mut s = Setup::free("1c", single(ops));
        s = s.cost("copy_ns_per_kib", cost);
        s.run().runtime_ns()
    };
    let memset = [Op::Memset { bytes: 1 << 20 }];
    assert_eq!(time(&memset, 60) - time(&memset, 0), 60 * 1024);
    let calls = |n: usize, cost| {
        let s = Setup::free("1c", single(&vec![Op::Syscall; n])).cost("syscall_ns", cost);
        s.run().runtime_ns()
    };
    assert_eq!(calls(10, 100) - calls(10, 0), 1000);
}
