//! Which CPU queues a woken task: its waker, or the one that it is woken on. Only queueing costs time here.

mod support;

use coreward_workload::Op;
use support::{MS, Setup, program, run, spawn, workload};

const ENQUEUE_NS: u64 = 100_000;

/// What it costs to wake a task that sleeps on another, idle CPU of this machine of two.
fn wake_cost(machine: &str, features: &[(&str, bool)]) -> u64 {
    let s = wakeup(machine).cost("enqueue_ns", ENQUEUE_NS);
    features.iter().fold(s, |s, (name, on)| s.feature(name, *on)).run().runtime_ns()
}

/// That wakeup.
fn wakeup(machine: &str) -> Setup {
    let message = (Op::WriteTo { channel: 0, bytes: 1 }, Op::ReadFrom { channel: 0, bytes: 1 });
    // the child has gone to sleep within the millisecond
    let main = [spawn(1), run(MS), Op::MarkStart, message.0, Op::MarkEnd, Op::WaitChildren];
    let w = workload(1, vec![program(&main), program(&[message.1])]);
    // it wakes where it slept
    Setup::free(machine, w).feature("WA_IDLE", false).feature("WA_WEIGHT", false)
}

#[test]
fn across_caches_the_target_queues_with_ttwu_queue() {
    assert_eq!(wake_cost("2l1c", &[("TTWU_QUEUE", true)]), 0);
    assert_eq!(wake_cost("2l1c", &[("TTWU_QUEUE", false)]), ENQUEUE_NS);
    // whichever CPU is idle
    assert_eq!(wake_cost("2l1c", &[("TTWU_QUEUE_IDLE", false)]), 0);
}

#[test]
fn within_a_cache_an_idle_target_queues_with_ttwu_queue_idle() {
    assert_eq!(wake_cost("2c", &[("TTWU_QUEUE_IDLE", true)]), 0);
    assert_eq!(wake_cost("2c", &[("TTWU_QUEUE_IDLE", false)]), ENQUEUE_NS);
    assert_eq!(wake_cost("2c", &[("TTWU_QUEUE", false)]), ENQUEUE_NS, "it only widens TTWU_QUEUE");
}

#[test]
fn within_a_cache_another_core_queues_with_ttwu_queue_l2() {
    let l2 = |machine, on| wake_cost(machine, &[("TTWU_QUEUE_L2", on), ("TTWU_QUEUE_IDLE", false)]);
    assert_eq!((l2("2c", true), l2("2c", false)), (0, ENQUEUE_NS));
    assert_eq!(l2("1c2t", true), ENQUEUE_NS, "siblings share the L2");
    assert_eq!(wake_cost("2c", &[("TTWU_QUEUE_L2", true), ("TTWU_QUEUE", false)]), ENQUEUE_NS);
}

#[test]
fn who_queues_elsewhere_fetches_the_lines_of_each_task_group() {
    let ns = |depth, queue| {
        let mut s = wakeup("2c").cost("transfer_llc_ns", 1000).feature("TTWU_QUEUE", queue);
        s.settings.task_group_depth = depth;
        s.run().runtime_ns()
    };
    // 8 lines, one after the other, and that of the group's load
    assert!((8000..=10_000).contains(&(ns(1, false) - ns(0, false))), "{} {}", ns(1, false), ns(0, false));
    assert_eq!(ns(1, true), ns(0, true), "the target has them");
}
