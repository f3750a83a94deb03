//! When a running task gives way to another: at once, when it leaves the kernel, at a tick, at a timer.

mod support;

use coreward_metrics::Metric;
use coreward_workload::Op;
use support::{MS, Run, Setup, program, run, sleep, spawn, spinners, workload};

/// When the first task of this pid runs after a time.
fn runs_after(r: &Run, pid: i32, time: u64) -> u64 {
    let start = r.switches().next().unwrap().0;
    r.switches().map(|s| (s.0 - start, s.4)).find(|s| s.1 == pid && s.0 >= time).unwrap().0
}

#[test]
fn with_hrtick_a_turn_ends_when_the_request_is_served() {
    // three spinners of 60 ms, requests of 2.5 ms, ticks each 4 ms
    let switches = |hrtick| {
        let s = Setup::free("1c", spinners(3, 60 * MS)).tunable("base_slice_ns", 2_500_000);
        s.feature("HRTICK", hrtick).run().get(Metric::context_switches_involuntary) as i64
    };
    assert!((switches(true) - 72).abs() <= 4, "180 ms / 2.5 ms: {}", switches(true));
    assert!((switches(false) - 45).abs() <= 4, "180 ms / 4 ms: {}", switches(false));
}

/// A task sleeps for 1 ms while another, which has had more than its share by then, does `op` on the
/// only other CPU's behalf: on a machine of one CPU. When does the sleeper run again?
fn wakes_during(op: Op, features: &[(&str, bool)]) -> u64 {
    let main = [Op::MarkStart, spawn(1), spawn(2), Op::WaitChildren, Op::MarkEnd];
    let w = workload(
        0,
        vec![program(&main), program(&[sleep(MS), run(MS)]), program(&[run(MS / 2), op, run(MS)])],
    );
    let mut s = Setup::free("1c", w);
    s.machine.costs.fork_ns = 5 * MS;
    let s = features.iter().fold(s, |s, (name, on)| s.feature(name, *on));
    runs_after(&s.run(), 2, MS / 2)
}

#[test]
fn a_system_call_is_finished_first_but_with_preempt_full() {
    // forking takes 5 ms from 0.5 ms on
    let fork = Op::Spawn { program: 1, base: 0, process: true };
    let at = |full| wakes_during(fork, &[("PREEMPT_FULL", full), ("RUN_TO_PARITY", false)]);
    assert!((MS..2 * MS).contains(&at(true)), "{}", at(true));
    assert!(at(false) >= 5 * MS, "{}", at(false));
}
