//! Each kind of step: what the kernel did, and what the policy does on the same state.

use coreward_policy::layout::{
    ENQUEUE_INITIAL, ENQUEUE_WAKEUP, SE_BATCH, SE_DELAYED, SE_IDLE, SE_ON_RQ, SE_REL_DEADLINE,
};
use coreward_policy::{Entity, FairRq, Feature, QueueDecision, Reason, System, Waiting};

use super::state::{Kernel, flags, id, recorded_id};
use super::{Answer, QueueRules, picked};
use crate::format::{
    ENTITY_ON_RQ, EntityState, STEP_CURR_TASK_IDLE, STEP_NEED_RESCHED, STEP_RESCHED, STEP_RESCHED_LAZY,
    STEP_TASK_BATCH, STEP_TASK_IDLE, StepHead,
};
use crate::record::Step;
use crate::replay::Choice;

const DEQUEUE_SLEEP: u32 = 1;

/// One step, and the policy that repeats it.
pub(super) struct Side<'a> {
    pub(super) rules: &'a QueueRules,
    pub(super) kernel: Kernel,
    pub(super) sys: &'a System,
    pub(super) step: &'a Step,
}

/// The names of what is compared.
type Values = Vec<(&'static str, i64)>;

impl Side<'_> {
    fn head(&self) -> &StepHead {
        &self.step.head
    }

    fn has(&self, feature: Feature) -> bool {
        self.sys.sched_feat(feature)
    }

    fn queue(&self) -> FairRq {
        self.kernel.queue(self.sys, self.step, 0)
    }

    fn se(&self) -> Entity {
        self.kernel.entity(&self.head().se_before)
    }

    fn se_is_curr(&self) -> bool {
        self.head().se_before.id == self.head().curr_before.id
    }

    /// Did the kernel ask the CPU to switch?
    fn asked(&self) -> i64 {
        i64::from(self.head().flags & (STEP_RESCHED | STEP_RESCHED_LAZY) != 0)
    }

    /// Compares the policy's result for an entity with the kernel's.
    fn entities(&self, policy: &Entity, kernel: &EntityState) -> [Values; 2] {
        let kernel = Entity { flags: flags(kernel.flags), ..self.kernel.entity(kernel) };
        [policy, &kernel].map(|e| {
            let mut values = vec![("vruntime", e.vruntime)];
            if self.has(Feature::EEVDF) {
                values.extend([("deadline", e.deadline), ("slice", e.slice as i64)]);
                values.push(("relative deadline", i64::from(e.flags & SE_REL_DEADLINE != 0)));
            }
            values
        })
    }

    fn answer(reason: &'static str, policy: Values, kernel: Values) -> Option<Answer> {
        Some(Answer { kernel: Choice::Values(kernel), policy: Choice::Values(policy), reason })
    }

    pub(super) fn place(&self) -> Option<Answer> {
        let head = self.head();
        let counted = u32::from(self.kernel.is_counted(head.argument));
        let mut rq = self.kernel.queue(self.sys, self.step, counted);
        let mut se = self.se();
        let initial = self.kernel.is_initial(head.argument);
        if initial && self.kernel.is_cfs() {
            // a turn of a group's task takes the weights of all levels above
            if head.se_before.depth > 0 {
                return None;
            }
            rq.task_fork_fair(self.sys, &mut se);
        }
        let wakeup = u32::from(self.kernel.is_wakeup(head.argument));
        let why = if initial { ENQUEUE_INITIAL } else { ENQUEUE_WAKEUP * wakeup };
        (self.rules.enqueue_entity)(&mut rq, self.sys, &mut se, why);
        let [policy, kernel] = self.entities(&se, &head.se_after);
        let reason = match (initial, se.vlag) {
            (true, _) => "a new entity",
            _ if self.kernel.is_cfs() => "a sleeper",
            (_, 0) => "at V: it has no lag",
            _ => "at V, less its lag",
        };
        Self::answer(reason, policy, kernel)
    }

    pub(super) fn requeue(&self) -> Option<Answer> {
        let head = self.head();
        if self.se_is_curr() {
            return None;
        }
        let (mut rq, mut se) = (self.queue(), self.se());
        let anew = (self.rules.requeue_delayed_entity)(&mut rq, self.sys, &mut se);
        let [mut policy, mut kernel] = self.entities(&se, &head.se_after);
        policy.push(("lag", se.vlag));
        kernel.push(("lag", head.se_after.vlag));
        Self::answer(if anew { "placed anew" } else { "stays where it is" }, policy, kernel)
    }

    pub(super) fn dequeue(&self) -> Option<Answer> {
        let head = self.head();
        let mut rq = self.queue();
        (self.rules.update_curr)(&mut rq, self.sys, head.now);
        let sleep = head.argument & DEQUEUE_SLEEP != 0;
        let may_delay = self.kernel.may_delay(head.argument);
        let charged = rq.min_vruntime;
        let (gone, se) = if self.se_is_curr() {
            ((self.rules.dequeue_curr)(&mut rq, self.sys, sleep, may_delay), rq.curr)
        } else {
            let mut se = self.se();
            (rq.dequeue_entity(self.sys, &mut se, sleep, may_delay), se)
        };
        let [mut policy, mut kernel] = self.entities(&se, &head.se_after);
        policy.insert(0, ("leaves", i64::from(gone)));
        kernel.insert(0, ("leaves", i64::from(head.result >= if self.kernel.has_levels() { 0 } else { 1 })));
        if self.kernel.is_cfs() && sleep && self.se_is_curr() {
            // a group whose only task leaves its queue for a moment counts as asleep, but does not move it on
            let comes_back = self.kernel.comes_back(head.argument);
            policy.push(("min_vruntime", if comes_back { charged } else { rq.min_vruntime }));
            kernel.push(("min_vruntime", head.after.min_vruntime));
        } else if gone {
            policy.push(("lag", se.vlag));
            kernel.push(("lag", head.se_after.vlag));
        }
        let reason = match (gone, sleep) {
            (false, _) => "stays queued: it owes time",
            (true, true) => "leaves: it sleeps",
            (true, false) => "leaves: it moves",
        };
        Self::answer(reason, policy, kernel)
    }

    /// The entities that wait, as the policy takes them. The queue counts as many.
    fn waiting(&self, rq: &mut FairRq) -> Vec<Waiting> {
        let by_deadline = self.has(Feature::EEVDF);
        let waiting: Vec<_> = self.step.waiting.iter().map(|w| self.kernel.waiting(w, by_deadline)).collect();
        rq.nr_waiting = waiting.len() as u32;
        rq.leftmost = waiting.iter().map(|w| w.vruntime).min().unwrap_or(0);
        if let Some(next) = self.step.waiting.iter().find(|w| id(w.id) == rq.next) {
            (rq.next_deadline, rq.next_slice) = (next.deadline, next.slice);
        }
        waiting
    }

    /// The woken entity; what its task is counts, too, where it is its group that is compared.
    fn woken(&self) -> Entity {
        let mut pse = self.se();
        if self.head().flags & (STEP_TASK_BATCH | STEP_TASK_IDLE) != 0 {
            pse.flags |= SE_BATCH;
        }
        pse
    }

    fn ask_preempt(&self, rq: &mut FairRq, waiting: &[Waiting]) -> QueueDecision {
        let pending = self.head().flags & STEP_NEED_RESCHED != 0;
        let (wake_flags, now) = (self.head().argument, self.head().now);
        (self.rules.wakeup_preempt_fair)(rq, self.sys, &self.woken(), waiting, wake_flags, pending, now)
    }

    fn reason(&self, decision: &QueueDecision) -> Reason {
        self.sys.code().queue_reason(decision.reason)
    }

    /// Is the question answered before the running entity is charged?
    fn answers_before_charge(&self, decision: &QueueDecision) -> bool {
        match self.reason(decision).name {
            "PREEMPT_OFF" | "PREEMPT_PENDING" | "PREEMPT_IDLE_CURR" => true,
            "PREEMPT_IDLE" | "PREEMPT_BATCH" => !self.has(Feature::WAKEUP_PROTECT),
            _ => false,
        }
    }

    pub(super) fn preempt(&self) -> Option<Answer> {
        let head = self.head();
        if head.curr_before.id == 0 {
            return None;
        }
        let mut rq = self.queue();
        let mut waiting = self.waiting(&mut rq);
        if self.kernel.is_cfs() && head.flags & STEP_CURR_TASK_IDLE != 0 {
            rq.curr.flags |= SE_IDLE;
        }
        let mut over = false;
        let mut charged = rq;
        let mut decision = self.ask_preempt(&mut charged, &waiting);
        if !self.answers_before_charge(&decision) {
            over = (self.rules.update_curr)(&mut rq, self.sys, head.now);
            charged = rq;
            decision = self.ask_preempt(&mut charged, &waiting);
            while let Some(i) = self.picked_delayed(&decision, &waiting) {
                self.complete(&mut rq, i, &mut waiting);
                charged = rq;
                decision = self.ask_preempt(&mut charged, &waiting);
            }
        }
        let asked = over || decision.preempts != 0;
        let buddies = [charged.next, charged.last].map(recorded_id);
        let policy = self.preempted(i64::from(asked), buddies, &charged.curr);
        let kernel = self.kernel.entity(&head.curr_after);
        let kernel = self.preempted(self.asked(), [head.after.next, head.after.last], &kernel);
        Self::answer(self.reason(&decision).text, policy, kernel)
    }

    fn preempted(&self, asked: i64, [next, last]: [i32; 2], curr: &Entity) -> Values {
        let mut values = vec![("switch", asked), ("buddy", next.into()), ("vruntime", curr.vruntime)];
        if self.has(Feature::EEVDF) {
            values.extend([("deadline", curr.deadline), ("protected until", curr.vprot)]);
        } else {
            values.push(("last buddy", last.into()));
        }
        values
    }

    /// The entity that would be picked, if it is asleep and the pick then completes its dequeue.
    fn picked_delayed(&self, decision: &QueueDecision, waiting: &[Waiting]) -> Option<usize> {
        let i = usize::try_from(decision.picked).ok().filter(|_| self.has(Feature::WAKEUP_PICK))?;
        let picked = recorded_id(waiting.get(i)?.id);
        let recorded = self.step.waiting.iter().find(|w| w.id == picked)?;
        (flags(recorded.flags) & SE_DELAYED != 0).then_some(i)
    }

    fn complete(&self, rq: &mut FairRq, i: usize, waiting: &mut Vec<Waiting>) {
        let gone = waiting.remove(i);
        let mut se = Entity {
            vruntime: gone.vruntime,
            weight: gone.weight,
            id: gone.id,
            flags: SE_ON_RQ | SE_DELAYED,
            ..Entity::default()
        };
        rq.dequeue_entity(self.sys, &mut se, true, false);
    }

    pub(super) fn pick(&self) -> Option<Answer> {
        let mut rq = self.queue();
        let waiting = self.waiting(&mut rq);
        let decision = (self.rules.pick_next_entity)(&rq, self.sys, &waiting);
        Some(Answer {
            kernel: Choice::Entity(self.head().result),
            policy: Choice::Entity(picked(&decision)),
            reason: self.reason(&decision).text,
        })
    }

    fn charged(&self, reason: &'static str, over: Option<bool>, rq: &FairRq) -> Option<Answer> {
        let head = self.head();
        let [mut policy, mut kernel] = self.entities(&rq.curr, &head.curr_after);
        policy.push(("ran", rq.curr.sum_exec_runtime as i64));
        kernel.push(("ran", head.curr_after.sum_exec_runtime as i64));
        if self.kernel.is_cfs() {
            policy.push(("min_vruntime", rq.min_vruntime));
            kernel.push(("min_vruntime", head.after.min_vruntime));
        }
        if let Some(over) = over {
            policy.insert(0, ("turn is over", i64::from(over)));
            kernel.insert(0, ("turn is over", self.asked()));
        }
        Self::answer(reason, policy, kernel)
    }

    pub(super) fn charge(&self) -> Option<Answer> {
        let mut rq = self.queue();
        let over = (self.rules.update_curr)(&mut rq, self.sys, self.head().now);
        self.charged(if over { "its turn is over" } else { "it goes on" }, Some(over), &rq)
    }

    pub(super) fn tick(&self) -> Option<Answer> {
        let head = self.head();
        let mut rq = self.queue();
        let mut over = (self.rules.update_curr)(&mut rq, self.sys, head.now);
        let weight = self.kernel.weight(head.curr_after.weight);
        if weight != rq.curr.weight && weight != 0 && rq.curr.weight != 0 {
            rq.reweight_curr(self.sys, weight);
        }
        if self.kernel.is_cfs() && rq.nr_waiting > 0 {
            // the period has room for all tasks, those of groups included (ALT_PERIOD)
            rq.nr_waiting = head.before.h_nr_queued.saturating_sub(1);
        }
        // a tick by hrtick is set for the moment when the turn ends
        over |= (self.rules.entity_tick)(&mut rq, self.sys) || (head.argument != 0 && rq.curr.weight != 0);
        // above its own queue it is the groups whose turns end
        let alone = head.curr_before.depth == 0 || !self.kernel.has_levels();
        self.charged(if over { "its turn is over" } else { "it goes on" }, alone.then_some(over), &rq)
    }

    pub(super) fn yield_task(&self) -> Option<Answer> {
        let head = self.head();
        let mut rq = self.queue();
        // whether anything else runs on the CPU is not seen from a group's queue
        if rq.nr_waiting == 0 && head.curr_before.depth > 0 && self.kernel.has_levels() {
            return None;
        }
        let uncharged = self.kernel.is_cfs() && rq.curr.flags & SE_BATCH != 0;
        if rq.nr_waiting > 0 && !uncharged {
            (self.rules.update_curr)(&mut rq, self.sys, head.now);
        }
        (self.rules.yield_task_fair)(&mut rq, self.sys);
        let [mut policy, mut kernel] = self.entities(&rq.curr, &head.curr_after);
        if self.kernel.is_cfs() {
            policy.push(("passed over", recorded_id(rq.skip).into()));
            kernel.push(("passed over", head.after.skip.into()));
        }
        Self::answer("gives up its turn", policy, kernel)
    }

    pub(super) fn set_next(&self) -> Option<Answer> {
        let head = self.head();
        let (mut rq, mut se) = (self.queue(), self.se());
        if head.se_before.flags & ENTITY_ON_RQ == 0 || head.curr_before.id != 0 {
            return None;
        }
        let weight = self.kernel.weight(head.se_after.weight);
        if weight != se.weight && weight != 0 {
            (self.rules.reweight_entity)(&mut rq, self.sys, &mut se, weight);
        }
        // the kernel does not keep the extremes of slices exact, and asks for them once it is off the tree
        (rq.min_slice, rq.max_slice) = (head.after.min_slice, head.after.max_slice);
        (self.rules.set_next_entity)(&mut rq, self.sys, &se, head.now);
        let [mut policy, mut kernel] = self.entities(&rq.curr, &head.se_after);
        if head.argument != 0 && self.has(Feature::EEVDF) {
            policy.push(("protected until", rq.curr.vprot));
            kernel.push(("protected until", self.kernel.vprot(&head.se_after)));
        }
        Self::answer("begins to run", policy, kernel)
    }

    pub(super) fn reweight(&self) -> Option<Answer> {
        let head = self.head();
        let (mut rq, mut se) = (self.queue(), self.se());
        let weight = self.kernel.weight(head.se_after.weight);
        if weight == 0 || se.weight == 0 {
            return None;
        }
        let queued = head.argument != 0;
        if !queued {
            // the flag may be set already while an entity comes
            se.flags &= !SE_ON_RQ;
        }
        // CFS charges the running one if it is that which changes, and what waits does not depend on it
        if queued && self.kernel.has_levels() && (self.se_is_curr() || !self.kernel.is_cfs()) {
            (self.rules.update_curr)(&mut rq, self.sys, head.now);
        }
        let se = if self.se_is_curr() {
            rq.reweight_curr(self.sys, weight);
            rq.curr
        } else {
            (self.rules.reweight_entity)(&mut rq, self.sys, &mut se, weight);
            se
        };
        let [mut policy, mut kernel] = self.entities(&se, &head.se_after);
        if !queued {
            policy.push(("lag", se.vlag));
            kernel.push(("lag", head.se_after.vlag));
        } else if self.se_is_curr() && self.has(Feature::EEVDF) {
            policy.push(("protected until", se.vprot));
            kernel.push(("protected until", self.kernel.vprot(&head.se_after)));
        }
        Self::answer(if queued { "keeps its lag" } else { "keeps the lag that it left with" }, policy, kernel)
    }
}
