//! The queues of the profiles from 6.6 on, on one CPU where nothing costs anything.

mod support;

use coreward_metrics::Metric;
use coreward_workload::Op;
use support::{MS, Run, Setup, program, run, sleep, spawn, spinners, workload};

/// `w` on one CPU with HZ 1000.
fn one_cpu(w: support::Workload) -> Setup {
    let mut s = Setup::free("1c", w);
    s.machine.hz = 1000;
    s
}

/// (when, for how long) the task of this pid ran, from the first switch on.
fn turns(r: &Run, pid: i32) -> Vec<(u64, u64)> {
    let switches: Vec<_> = r.switches().collect();
    let start = switches[0].0;
    let pairs = switches.windows(2).filter(|w| w[0].4 == pid);
    pairs.map(|w| (w[0].0 - start, w[1].0 - w[0].0)).collect()
}

#[test]
fn spinners_take_turns_of_a_request() {
    // a request is found served at a tick
    for (slice, turn_ms) in [(750_000, 1), (2_500_000, 3), (10_000_000, 10)] {
        let r = one_cpu(spinners(3, 60 * MS)).tunable("base_slice_ns", slice).run();
        let involuntary = r.get(Metric::context_switches_involuntary) as i64;
        assert!((involuntary - 180 / turn_ms).abs() <= 18 / turn_ms + 3, "{slice}: {involuntary}");
    }
}

#[test]
fn a_new_task_of_half_a_request_is_due_before_its_parent() {
    // at 500 us the child is due at 875 or at 1250; the parent, which began likewise, has had its
    // first request of 375 us served and is due at 1250, or is due at 750
    let main = [Op::MarkStart, run(500_000), spawn(1), run(20 * MS), Op::WaitChildren, Op::MarkEnd];
    let w = workload(0, vec![program(&main), program(&[run(20 * MS)])]);
    let first = |on| {
        let s = one_cpu(w.clone()).feature("RUN_TO_PARITY", false);
        turns(&s.feature("PLACE_DEADLINE_INITIAL", on).run(), 2)[0].0
    };
    assert_eq!(first(true), 500_000);
    assert!(first(false) > 500_000);
}

/// How long a task waits that ran for 8 ms, 2 of them more than its share, and slept for 8 ms beside
/// a spinner. Requests are of 10 ms, and ticks at n ms less 48.576 us. With PREEMPT_SHORT its turn would
/// end as soon as it has had its share.
fn wait_of_debtor(features: &[(&str, bool)]) -> u64 {
    let main = [Op::MarkStart, spawn(1), spawn(2), Op::WaitChildren, Op::MarkEnd];
    let debtor = [run(8 * MS), sleep(8 * MS), run(20 * MS)];
    let w = workload(0, vec![program(&main), program(&[run(200 * MS)]), program(&debtor)]);
    let s = one_cpu(w).tunable("base_slice_ns", 10_000_000).feature("PREEMPT_SHORT", false);
    let r = features.iter().fold(s, |s, (name, on)| s.feature(name, *on)).run();
    let turns = turns(&r, 3);
    assert_eq!(turns[0].1, 8 * MS, "it ran, and slept");
    turns[1].0 - (turns[0].0 + 16 * MS)
}

#[test]
fn a_sleeper_that_stays_queued_pays_its_debt_meanwhile() {
    // it comes back at the mean, and runs when the spinner's request is served, 10 ms after it began
    assert_eq!(wait_of_debtor(&[("DELAY_DEQUEUE", true)]), 2 * MS);
    // it comes back with its debt, so the spinner has one request more
    assert_eq!(wait_of_debtor(&[("DELAY_DEQUEUE", false)]), 12 * MS);
}

#[test]
fn a_sleeper_that_stayed_queued_for_too_long_gains_nothing_by_it() {
    assert_eq!(wait_of_debtor(&[("DELAY_ZERO", true)]), 2 * MS);
    // the spinner ran 8 ms, the sleeper owed 2: now the spinner is ahead, and not eligible
    assert_eq!(wait_of_debtor(&[("DELAY_ZERO", false)]), 0);
}

#[test]
fn a_sleeper_that_is_still_queued_preempts_a_task_whose_request_has_just_been_served() {
    // the writer has had 4 ms of its request of 3; it is charged with them by the wakeup, before the tick at 8.95 ms
    let (write, read) = (Op::WriteTo { channel: 0, bytes: 1 }, Op::ReadFrom { channel: 0, bytes: 1 });
    let main = [Op::MarkStart, spawn(1), spawn(2), Op::WaitChildren, Op::MarkEnd];
    let reader = [run(4 * MS), read, run(MS)];
    let writer = [run(4 * MS), write, run(20 * MS)];
    let mut s = Setup::free("1c", workload(1, vec![program(&main), program(&reader), program(&writer)]));
    s.machine.hz = 100;
    let r = s.tunable("base_slice_ns", 3_000_000).run();
    assert_eq!(turns(&r, 2), [(0, 4 * MS), (8 * MS, MS)]);
}
