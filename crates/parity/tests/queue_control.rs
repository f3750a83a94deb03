//! Can parity of queues fail? Each rule, changed on purpose, has to be noticed where it is used and nowhere else.

use std::collections::BTreeSet;

use coreward_parity::format::StepKind;
use coreward_parity::{QueueRules, Reader, Record, Replay, Summary};
use coreward_policy::{Code, Entity, FairRq, QueueDecision, System, Waiting};

/// Kernels with a recording in `tests/data`: CFS, and EEVDF three times.
const KERNELS: [&str; 4] = ["6.1", "6.12", "6.18", "7.3"];
const EEVDF: [&str; 3] = ["6.12", "6.18", "7.3"];

fn summary(kernel: &str, rules: QueueRules) -> Summary {
    let name = format!("{}/tests/data/queue-{kernel}.cwc", env!("CARGO_MANIFEST_DIR"));
    let mut reader = Reader::open(name.as_ref()).unwrap();
    let host = &reader.machine().host;
    let policy = host.settings(Code::built_in(), host.profile().0);
    let mut replay = Replay::new(reader.machine(), &policy).unwrap().with_queue_rules(rules);
    let mut summary = Summary::default();
    for record in &mut reader {
        replay.compare(&record.unwrap()).iter().for_each(|outcome| summary.count(outcome));
    }
    summary
}

/// The paths on which stable steps disagree, without the word that they all begin with.
fn wrong(kernel: &str, rules: QueueRules) -> BTreeSet<&'static str> {
    let summary = summary(kernel, rules);
    let wrong = summary.paths().filter(|(_, tally)| tally.stable_agree < tally.stable);
    wrong.map(|(path, _)| path.name().trim_start_matches("queue: ")).collect()
}

/// Disagreement on these paths, and no others, on each of these kernels.
fn noticed(kernels: &[&str], rules: QueueRules, paths: &[&str]) {
    for kernel in kernels {
        assert_eq!(wrong(kernel, rules), paths.iter().copied().collect(), "{kernel}");
    }
}

#[test]
fn the_policy_agrees() {
    noticed(&KERNELS, QueueRules::default(), &[]);
}

#[test]
fn recordings_have_every_path() {
    for kernel in KERNELS {
        let summary = summary(kernel, QueueRules::default());
        let absent = summary.absent().map(|path| path.name()).filter(|name| name.starts_with("queue: "));
        // CFS has no delayed dequeues
        let known: &[&str] = if kernel == "6.1" { &["queue: requeue"] } else { &[] };
        assert_eq!(absent.collect::<Vec<_>>(), known, "{kernel}");
    }
}

/// An entity that comes has neither lag nor credit.
fn place_at_v(rq: &mut FairRq, sys: &System, se: &mut Entity, why: u32) {
    se.vlag = 0;
    rq.enqueue_entity(sys, se, why & !1);
}

#[test]
fn placement() {
    noticed(&KERNELS, QueueRules { enqueue_entity: place_at_v, ..QueueRules::default() }, &["place"]);
}

/// A sleeper stays where it is.
fn stay(_: &mut FairRq, _: &System, _: &mut Entity) -> bool {
    false
}

#[test]
fn requeueing() {
    noticed(&EEVDF, QueueRules { requeue_delayed_entity: stay, ..QueueRules::default() }, &["requeue"]);
}

/// Dequeues are never delayed.
fn leave_at_once(rq: &mut FairRq, sys: &System, sleep: bool, _: bool) -> bool {
    rq.dequeue_curr(sys, sleep, false)
}

/// min_vruntime stays, as if nobody left.
fn leave_unnoticed(rq: &mut FairRq, sys: &System, sleep: bool, may_delay: bool) -> bool {
    let min_vruntime = rq.min_vruntime;
    let gone = rq.dequeue_curr(sys, sleep, may_delay);
    rq.min_vruntime = min_vruntime;
    gone
}

#[test]
fn leaving() {
    noticed(&EEVDF, QueueRules { dequeue_curr: leave_at_once, ..QueueRules::default() }, &["dequeue"]);
    noticed(&["6.1"], QueueRules { dequeue_curr: leave_unnoticed, ..QueueRules::default() }, &["dequeue"]);
}

/// The dequeues of a recording of CFS, with other flags: on how many the policy disagrees with the kernel.
fn wrong_dequeues(flags: u32) -> usize {
    let name = format!("{}/tests/data/queue-6.1.cwc", env!("CARGO_MANIFEST_DIR"));
    let mut reader = Reader::open(name.as_ref()).unwrap();
    let policy = reader.machine().host.settings(Code::built_in(), reader.machine().host.profile().0);
    let mut replay = Replay::new(reader.machine(), &policy).unwrap();
    let mut wrong = 0;
    for record in &mut reader {
        let mut record = record.unwrap();
        if let Record::Step(step) = &mut record
            && step.head.kind == StepKind::Dequeue as u32
        {
            step.head.argument |= flags;
            wrong += replay.compare(&record).iter().filter(|outcome| !outcome.agrees()).count();
        }
    }
    wrong
}

#[test]
fn a_group_that_comes_back_does_not_move_min_vruntime_on() {
    const SAVE: u32 = 2;
    const MOVE: u32 = 4;
    assert_eq!(wrong_dequeues(0), 0);
    assert_eq!(wrong_dequeues(SAVE | MOVE), 0);
    // those that moved it on when they were recorded
    assert_eq!(wrong_dequeues(SAVE), 3);
}

/// Every entity that comes preempts.
fn preempt_always(
    rq: &mut FairRq,
    sys: &System,
    pse: &Entity,
    waiting: &[Waiting],
    wake_flags: u32,
    pending: bool,
    now: u64,
) -> QueueDecision {
    let decision = rq.wakeup_preempt_fair(sys, pse, waiting, wake_flags, pending, now);
    QueueDecision { preempts: 1, ..decision }
}

#[test]
fn preemption() {
    noticed(
        &KERNELS,
        QueueRules { wakeup_preempt_fair: preempt_always, ..QueueRules::default() },
        &["preempt"],
    );
}

/// The last in order runs next.
fn pick_last(rq: &FairRq, sys: &System, waiting: &[Waiting]) -> QueueDecision {
    let decision = rq.pick_next_entity(sys, waiting);
    QueueDecision { id: waiting.last().map_or(decision.id, |last| last.id), ..decision }
}

#[test]
fn picking() {
    noticed(&KERNELS, QueueRules { pick_next_entity: pick_last, ..QueueRules::default() }, &["pick"]);
}

/// Half of the time is forgotten.
fn charge_half(rq: &mut FairRq, sys: &System, now: u64) -> bool {
    let start = rq.curr.exec_start;
    rq.update_curr(sys, start + now.saturating_sub(start) / 2)
}

#[test]
fn charging() {
    let rules = QueueRules { update_curr: charge_half, ..QueueRules::default() };
    for kernel in KERNELS {
        let wrong = wrong(kernel, rules);
        assert!(wrong.contains("charge") && wrong.contains("tick"), "{kernel}: {wrong:?}");
        // these charge before they do what they are for; the others do not
        let charging = BTreeSet::from(["charge", "tick", "dequeue", "preempt", "yield", "reweight"]);
        assert!(wrong.is_subset(&charging), "{kernel}: {wrong:?}");
    }
}

/// A tick ends no turn.
fn tick_idly(_: &mut FairRq, _: &System) -> bool {
    false
}

#[test]
fn ticks() {
    noticed(&["6.1"], QueueRules { entity_tick: tick_idly, ..QueueRules::default() }, &["tick"]);
}

/// An entity that yields keeps its turn.
fn keep(_: &mut FairRq, _: &System) {}

#[test]
fn yielding() {
    noticed(&KERNELS, QueueRules { yield_task_fair: keep, ..QueueRules::default() }, &["yield"]);
}

/// An entity that begins to run is not protected.
fn run_unprotected(rq: &mut FairRq, sys: &System, se: &Entity, now: u64) {
    rq.set_next_entity(sys, se, now);
    rq.curr.vprot = rq.curr.vruntime;
}

#[test]
fn beginning_to_run() {
    noticed(&EEVDF, QueueRules { set_next_entity: run_unprotected, ..QueueRules::default() }, &["set next"]);
}

/// Only the weight changes.
fn reweight_alone(_: &mut FairRq, _: &System, se: &mut Entity, weight: u32) {
    se.weight = weight;
}

#[test]
fn reweighting() {
    let rules = QueueRules { reweight_entity: reweight_alone, ..QueueRules::default() };
    noticed(&["6.12", "6.18"], rules, &["reweight"]);
    // a task of a group gets its weight on the CPU as it begins to run
    noticed(&["7.3"], rules, &["reweight", "set next"]);
}
