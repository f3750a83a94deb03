//! Steps of the fair class on one queue, repeated by the policy.

mod state;
mod steps;

use coreward_policy::{Decision, Entity, FairRq, QueueDecision, System, Waiting};

use crate::format::{ENTITY_ON_RQ, STEP_CUT, StepKind};
use crate::path::Path;
use crate::record::Step;
use crate::replay::{Choice, Outcome};
use crate::stable::Moved;
use state::recorded_id;
use steps::Side;

pub(crate) use state::Kernel;

/// The policy's functions for a queue, or others to be compared with the kernel.
#[derive(Clone, Copy)]
#[allow(clippy::type_complexity, reason = "they are the functions' own types")]
pub struct QueueRules {
    /// An entity comes.
    pub enqueue_entity: fn(&mut FairRq, &System, &mut Entity, u32),
    /// A sleeper whose dequeue was delayed is woken.
    pub requeue_delayed_entity: fn(&mut FairRq, &System, &mut Entity) -> bool,
    /// The running entity leaves.
    pub dequeue_curr: fn(&mut FairRq, &System, bool, bool) -> bool,
    /// Does the entity that came run at once?
    pub wakeup_preempt_fair: fn(&mut FairRq, &System, &Entity, &[Waiting], u32, bool, u64) -> QueueDecision,
    /// Which entity runs next.
    pub pick_next_entity: fn(&FairRq, &System, &[Waiting]) -> QueueDecision,
    /// The running entity pays.
    pub update_curr: fn(&mut FairRq, &System, u64) -> bool,
    /// Does CFS end its turn at a tick?
    pub entity_tick: fn(&mut FairRq, &System) -> bool,
    /// It gives up its turn.
    pub yield_task_fair: fn(&mut FairRq, &System),
    /// One that waited begins to run.
    pub set_next_entity: fn(&mut FairRq, &System, &Entity, u64),
    /// The weight of one that waits or sleeps changes.
    pub reweight_entity: fn(&mut FairRq, &System, &mut Entity, u32),
}

impl Default for QueueRules {
    fn default() -> Self {
        QueueRules {
            enqueue_entity: FairRq::enqueue_entity,
            requeue_delayed_entity: FairRq::requeue_delayed_entity,
            dequeue_curr: FairRq::dequeue_curr,
            wakeup_preempt_fair: FairRq::wakeup_preempt_fair,
            pick_next_entity: FairRq::pick_next_entity,
            update_curr: FairRq::update_curr,
            entity_tick: FairRq::entity_tick,
            yield_task_fair: FairRq::yield_task_fair,
            set_next_entity: FairRq::set_next_entity,
            reweight_entity: FairRq::reweight_entity,
        }
    }
}

/// What both sides did in a step.
pub(crate) struct Answer {
    pub(crate) kernel: Choice,
    pub(crate) policy: Choice,
    /// The policy's reason.
    pub(crate) reason: &'static str,
}

/// Repeats a step. None if nothing of it can be compared.
pub(crate) fn compare(
    rules: &QueueRules,
    kernel: Kernel,
    sys: &System,
    step: &Step,
    number: u64,
) -> Option<Outcome> {
    let side = Side { rules, kernel, sys, step };
    let answer = match step.kind() {
        StepKind::Place => side.place(),
        StepKind::Requeue => side.requeue(),
        StepKind::Dequeue => side.dequeue(),
        StepKind::Preempt => side.preempt(),
        StepKind::Pick => side.pick(),
        StepKind::Charge => side.charge(),
        StepKind::Tick => side.tick(),
        StepKind::Yield => side.yield_task(),
        StepKind::SetNext => side.set_next(),
        StepKind::Reweight => side.reweight(),
    }?;
    Some(Outcome {
        number,
        path: Path::of_step(step.kind()),
        relation: relation(&answer.policy, &answer.kernel),
        kernel: answer.kernel,
        policy: answer.policy,
        policy_reason: answer.reason,
        kernel_reason: "the same state",
        decision: Decision::default(),
        moved: moved(kernel, step),
    })
}

/// The first thing that the two differ in.
fn relation(policy: &Choice, kernel: &Choice) -> &'static str {
    match (policy, kernel) {
        (Choice::Values(policy), Choice::Values(kernel)) => policy
            .iter()
            .zip(kernel)
            .find(|(policy, kernel)| policy != kernel)
            .map_or("the same", |((name, _), _)| name),
        (Choice::Entity(policy), Choice::Entity(kernel)) if policy == kernel => "the same",
        _ => "another entity",
    }
}

/// Inputs that may differ from what the file says. Everything happens under the queue's lock; these are the exceptions.
fn moved(kernel: Kernel, step: &Step) -> Vec<Moved> {
    let head = &step.head;
    let field = |field, before, after| Moved { cpu: head.cpu as usize, field, before, after };
    let mut moved = Vec::new();
    if head.flags & STEP_CUT != 0 {
        moved.push(field("nr_waiting", head.nr_waiting.into(), kernel.nr_queued(&head.before).into()));
    }
    // its task may run elsewhere before the function returns
    if step.kind() == StepKind::Dequeue && kernel.completes(head.argument) {
        moved.push(field("on_rq", u64::from(head.se_before.flags & ENTITY_ON_RQ), 0));
    }
    moved
}

/// An entity in words.
pub(crate) fn entity_name(id: i32) -> String {
    match id {
        0 => String::from("none"),
        id if id > 0 => format!("task {id}"),
        id if id % 2 == 0 => format!("group {}", -(id / 2)),
        id => format!("autogroup {}", -(id + 1) / 2),
    }
}

/// The picked entity's number in the file.
pub(crate) fn picked(decision: &QueueDecision) -> i32 {
    recorded_id(decision.id)
}
