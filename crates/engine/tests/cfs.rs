//! The queues of the profiles before 6.6, on machines where nothing costs anything.

mod support;

use coreward_engine::Leaving;
use coreward_metrics::Metric;
use coreward_workload::{Attributes, Op, ProgramBuilder};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Event, MS, Run, Setup, hackbench, program, run, single, sleep, spawn, spinners, workload};

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
    // a turn is over at the first tick by which more than the slice has been used; slices are rounded
    // down, so that of 2 ms is 1,999,999 ns, and over at the second tick
    for (tasks, latency, turn_ms) in
        [(3, 6_000_000, 2), (3, 24_000_000, 8), (2, 6_000_000, 3), (12, 6_000_000, 1)]
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
fn a_sleeper_waits_without_preemption_and_under_eevdf() {
    let wait = |name, on| {
        one_cpu(spinner_and_sleeper(10 * MS)).feature(name, on).run().get(Metric::wakeup_latency_us_p50)
    };
    assert_eq!(wait("WAKEUP_PREEMPTION", true), 0.0);
    assert!(wait("WAKEUP_PREEMPTION", false) > 0.0, "until the next tick");
    // EEVDF gives no credit: the spinner's request is served first
    assert!(wait("EEVDF", true) > 0.0);
}

#[test]
fn many_spinners_take_turns_of_the_least_granularity() {
    // more than 6 ms / 3 ms tasks: each has 3 ms, and its turn ends at the next tick
    let r = one_cpu(spinners(12, 60 * MS)).tunable("min_granularity_ns", 3_000_000).run();
    let involuntary = r.get(Metric::context_switches_involuntary) as i64;
    assert!((involuntary - 12 * 60 / 4).abs() <= 20, "{involuntary}");
}

/// Eight spinners beside one of these: the CPU is crowded.
fn crowded(other: coreward_workload::Program) -> support::Workload {
    let mut main = vec![Op::MarkStart];
    main.extend([spawn(1); 8]);
    main.extend([spawn(2), Op::WaitChildren, Op::MarkEnd]);
    workload(0, vec![program(&main), program(&[run(200 * MS)]), other])
}

/// The pid of the task beside the spinners.
const OTHER: i32 = 10;

/// The longest time from a wakeup of that task, which is not its first, until it runs.
fn longest_wait(r: &Run) -> u64 {
    let mut woken = None;
    let waits = r.events.iter().filter_map(|event| match *event {
        Event::Waking { now, pid: OTHER, new: false, .. } => {
            woken = Some(now);
            None
        }
        Event::Switch { now, next: OTHER, .. } => woken.take().map(|at| now - at),
        _ => None,
    });
    waits.max().expect("it was woken")
}

#[test]
fn on_a_crowded_cpu_the_next_buddy_does_not_wait_for_those_that_are_behind_it() {
    // it hardly sleeps, so it has no credit; what it computes is three times as much in its virtual time
    let mut w = crowded(sleeper(10_000, MS / 2, 10));
    w.attributes =
        vec![Attributes::default(), Attributes::default(), Attributes { nice: 5, ..Attributes::default() }];
    let s = one_cpu(w).tunable("wakeup_granularity_ns", 20_000_000);
    let wait = |on| longest_wait(&s.clone().feature("NEXT_BUDDY", on).run());
    assert!(wait(true) <= 2 * MS, "until the end of the turn: {} ns", wait(true));
    assert!(wait(false) > 2 * MS, "for the turns of others: {} ns", wait(false));
}

#[test]
fn on_a_crowded_cpu_the_last_buddy_goes_on_after_who_preempted_it() {
    // (interruptions by the sleeper, those after which the interrupted one goes on)
    let interrupted = |on| {
        // more than the spinners are apart, less than a sleeper's credit; and it wakes between ticks
        let s =
            one_cpu(crowded(sleeper(10_050_000, 100_000, 10))).tunable("wakeup_granularity_ns", 2_900_000);
        let r = s.feature("LAST_BUDDY", on).run();
        // by then it is behind by its whole credit when it wakes
        let start = r.switches().next().map_or(0, |s| s.0);
        let switches: Vec<_> = r.switches().filter(|s| s.0 > start + 24 * MS).collect();
        let by_other = switches
            .windows(2)
            .filter(|w| w[0].4 == OTHER && w[0].3 == Leaving::Preempted && w[1].3 == Leaving::Blocked);
        (by_other.clone().count(), by_other.filter(|w| w[1].4 == w[0].2).count())
    };
    let (all, back) = interrupted(true);
    assert!(all > 5 && back == all, "{back} of {all}");
    let (all, back) = interrupted(false);
    assert!(back < all, "{back} of {all}");
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
    assert_eq!(of("linux-6.5"), 13_822_699_491_630_332_311, "golden");
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
