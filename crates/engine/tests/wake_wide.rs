//! A task that wakes many others, some of which wake many themselves, spreads them (`wake_wide()`).

mod support;

use coreward_policy::layout::NOTE_WAKE_WIDE;
use coreward_workload::{Op, ProgramBuilder};
use support::{Event, MS, Setup, program, run, spawn, workload};

/// A task wakes two others in turn. Which of the wakeups are wide?
fn wide(machine: &str) -> Vec<bool> {
    let wake = |b: ProgramBuilder, channel| b.op(Op::WriteTo { channel, bytes: 1 }).op(run(MS));
    let waker = ProgramBuilder::default().op(run(MS)).repeat(4, |b| wake(wake(b, 0), 1));
    let sleeper =
        |channel| ProgramBuilder::default().repeat(4, |b| b.op(Op::ReadFrom { channel, bytes: 1 })).build();
    let main = [spawn(1), spawn(2), spawn(3), Op::WaitChildren];
    let programs = vec![program(&main), sleeper(0), sleeper(1), waker.build()];
    let r = Setup::free(machine, workload(2, programs)).run();
    let wakeups = r.events.iter().filter_map(|event| match event {
        Event::Decision(d) if [2, 3].contains(&d.pid) => Some(d.notes & NOTE_WAKE_WIDE != 0),
        _ => None,
    });
    wakeups.skip(2).collect() // that are after the forks
}

#[test]
fn a_forked_task_takes_over_how_many_its_parent_has_woken() {
    // All tasks have the 4 flips of the shell. The waker's become 2 and then 3 at its first wakeup, since the last one is
    // long ago, and 8 at the sixth: twice those of the sleepers, and a cache of two CPUs asks for twice.
    assert_eq!(wide("2c"), [false, false, false, false, false, true, true, true]);
    // one of six asks for six flips of the sleepers
    assert_eq!(wide("6c"), [false; 8]);
}
