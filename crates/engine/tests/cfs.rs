//! The queues of the profiles before 6.6, on machines where nothing costs anything.

mod support;

use coreward_engine::Leaving;
use coreward_metrics::Metric;
use coreward_workload::{Op, ProgramBuilder};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{MS, Run, Setup, hackbench, program, run, single, sleep, spawn, spinners, workload};

/// `w` on one CPU with HZ 1000 under CFS.
fn one_cpu(w: support::Workload) -> Setup {
    let mut s = Setup::free("1c", w).profile("linux-6.5");
    s.machine.hz = 1000;
    s
}

/// Time on the only CPU of each task, by its switches up to a time.
fn cpu_time(r: &Run, upto: u64) -> BTreeMap<i32, u64> {
    let mut time: BTreeMap<i32, u64> = BTreeMap::new();
    let mut since = 0;
    for (now, _, prev, ..) in r.switches().take_while(|s| s.0 <= upto) {
        *time.entry(prev).or_default() += now - since;
        since = now;
    }
    time
}

/// The time of the first exit, up to which all spinners compete.
fn first_exit(r: &Run) -> u64 {
    r.switches().find(|s| s.3 == Leaving::Exited).unwrap().0
}

#[test]
fn spinners_take_turns_of_a_slice() {
    // a turn is over at the first tick by which more than the slice has been used
    for (tasks, latency, turn_ms) in
        [(3, 6_000_000, 3), (3, 24_000_000, 9), (2, 6_000_000, 4), (12, 6_000_000, 1)]
    {
        let r = one_cpu(spinners(tasks, 60 * MS)).tunable("latency_ns", latency).run();
        let expected = tasks as i64 * 60 / turn_ms;
        let involuntary = r.get(Metric::context_switches_involuntary) as i64;
        assert!(
            (involuntary - expected).abs() <= expected / 10 + 3,
            "{tasks} tasks: {involuntary} of {expected}"
        );
        assert_eq!(r.runtime_ns(), tasks as u64 * 60 * MS);
    }
}

/// A task that computes for `ns` at a time, `times` times, and sleeps for `idle` before each.
fn sleeper(idle: u64, ns: u64, times: u64) -> coreward_workload::Program {
    ProgramBuilder::default().repeat(times, |b| b.op(sleep(idle)).op(run(ns))).build()
}

/// A spinner of 200 ms beside a sleeper that computes for 100 us after each sleep.
fn spinner_and_sleeper(idle: u64) -> support::Workload {
    let main = [Op::MarkStart, spawn(1), spawn(2), Op::WaitChildren, Op::MarkEnd];
    workload(0, vec![program(&main), program(&[run(200 * MS)]), sleeper(idle, 100_000, 10)])
}

#[test]
fn a_sleeper_preempts_a_spinner_if_its_credit_exceeds_the_granularity() {
    let wait = |granularity| {
        let s = one_cpu(spinner_and_sleeper(10 * MS)).tunable("wakeup_granularity_ns", granularity);
        s.run().get(Metric::wakeup_latency_us_p50)
    };
    // half a latency is 3 ms
    assert_eq!(wait(2_900_000), 0.0);
    assert!(wait(3_100_000) > 0.0);
    let strict = one_cpu(spinner_and_sleeper(10 * MS)).tunable("wakeup_granularity_ns", 3_100_000);
    let generous = strict.feature("GENTLE_FAIR_SLEEPERS", false).run();
    assert_eq!(generous.get(Metric::wakeup_latency_us_p50), 0.0, "now the credit is 6 ms");
}

#[test]
fn a_new_task_begins_a_slice_behind_with_start_debit() {
    // main sleeps for half the granularity: only if its child began 3 ms behind is main behind by more
    let main = [Op::MarkStart, run(MS), spawn(1), sleep(MS / 2), run(MS), Op::WaitChildren, Op::MarkEnd];
    let w = workload(0, vec![program(&main), program(&[run(20 * MS)])]);
    let first_turn = |on| {
        let r = one_cpu(w.clone()).feature("START_DEBIT", on).run();
        let at = |who: fn(&(u64, usize, i32, Leaving, i32)) -> bool| r.switches().find(who).unwrap().0;
        at(|s| s.2 == 2) - at(|s| s.4 == 2)
    };
    assert_eq!(first_turn(true), MS / 2);
    assert!(first_turn(false) > MS / 2);
}

#[test]
fn who_yields_is_passed_over_and_alone_it_goes_on() {
    let yields = ProgramBuilder::default().repeat(100, |b| b.op(run(1_000)).op(Op::Yield)).build();
    let main = [Op::MarkStart, spawn(1), spawn(1), Op::WaitChildren, Op::MarkEnd];
    let r = one_cpu(workload(0, vec![program(&main), yields])).run();
    let involuntary = r.get(Metric::context_switches_involuntary);
    assert!(involuntary > 100.0, "they take turns: {involuntary}");
    let alone = one_cpu(single(&[run(1_000), Op::Yield, run(1_000)])).run();
    assert_eq!(alone.get(Metric::context_switches), 0.0);
}

#[test]
fn runs_are_the_same_twice_and_on_any_host() {
    let s = Setup::free("1n2l2c2t", hackbench("-g 2 -f 3 -l 600 -T --pipe")).seed(7);
    let of = |profile| s.clone().profile(profile).run().hash();
    assert_eq!(of("linux-6.5"), of("linux-6.5"));
    assert_ne!(of("linux-6.5"), s.clone().profile("linux-6.5").feature("EEVDF", true).run().hash());
    assert_eq!(of("linux-6.5"), 5_034_564_024_005_810_528, "golden");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Spinners that began together have run for the same time, to a slice and the ticks that end turns.
    #[test]
    fn equal_spinners_are_never_more_than_a_slice_apart(
        tasks in 2usize..6,
        latency in 1_000_000i64..40_000_000,
        hz in prop::sample::select(vec![250u32, 1000]),
        debit in any::<bool>(),
    ) {
        let mut s = one_cpu(spinners(tasks, 120 * MS)).tunable("latency_ns", latency).feature("START_DEBIT", debit);
        s.machine.hz = hz;
        let r = s.run();
        prop_assert_eq!(r.runtime_ns(), tasks as u64 * 120 * MS, "no time is lost");
        let tick = 1_000 * MS / u64::from(hz);
        // many tasks get the least granularity; a turn may last a tick longer, and another turn may be missing
        let slice = (latency as u64 / tasks as u64).max(750_000);
        let bound = 2 * (slice + tick) + slice;
        for (now, ..) in r.switches().take_while(|s| s.0 < first_exit(&r)) {
            let time = cpu_time(&r, now);
            let of = |i: usize| time.get(&(i as i32 + 2)).copied().unwrap_or(0);
            let (most, least) = ((0..tasks).map(of).max().unwrap(), (0..tasks).map(of).min().unwrap());
            prop_assert!(most - least <= bound, "{most} and {least} at {now}");
        }
    }
}
