//! One CPU's fair queue: the policy's view of it, and the waiting entities in order.

use coreward_policy::{Entity, FairRq, QueueDecision, System, Waiting};

/// The queue of one CPU. The running entity is in [`FairRq::curr`], the others here.
pub(crate) struct Timeline {
    pub(crate) rq: FairRq,
    waiting: Vec<Waiting>,
    /// How often the last waiting entity has left.
    pub(crate) emptied: u64,
}

impl Timeline {
    /// An empty queue.
    pub(crate) fn new(sys: &System) -> Timeline {
        Timeline { rq: sys.fair_rq(), waiting: Vec::new(), emptied: 0 }
    }

    /// Does nothing wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The waiting tasks in their order.
    pub(crate) fn tasks(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.waiting.iter().map(|w| w.id as u32)
    }

    /// The waiting task at this index; None if it is negative, as for a pick of the running entity.
    pub(crate) fn waiting_at(&self, index: i32) -> Option<u32> {
        usize::try_from(index).ok().map(|i| self.waiting[i].id as u32)
    }

    /// Places an entity that joins the queue, and queues it.
    pub(crate) fn enqueue(&mut self, sys: &System, se: &mut Entity, why: u32) {
        if self.waiting.is_empty() && !self.rq.curr_competes() {
            self.rq.update_zero_vruntime(sys);
        }
        self.rq.enqueue_entity(sys, se, why);
        self.insert(sys, se);
    }

    /// A waiting entity leaves; false if its dequeue is delayed.
    pub(crate) fn dequeue(&mut self, sys: &System, se: &mut Entity, sleep: bool) -> bool {
        let order = se.order(sys);
        let left = self.rq.dequeue_entity(sys, se, sleep, false);
        self.remove(order, se.id);
        self.rq.update_min_vruntime(sys);
        left
    }

    /// The running entity leaves; false if its dequeue is delayed.
    pub(crate) fn dequeue_curr(&mut self, sys: &System, may_delay: bool) -> bool {
        let left = self.rq.dequeue_curr(sys, true, may_delay);
        self.rq.update_min_vruntime(sys);
        left
    }

    /// A delayed sleeper is woken where it is queued.
    pub(crate) fn requeue_delayed(&mut self, sys: &System, se: &mut Entity) {
        let order = se.order(sys);
        if self.rq.requeue_delayed_entity(sys, se) {
            self.remove(order, se.id);
            self.insert(sys, se);
        }
    }

    /// The weight of a waiting entity changes.
    pub(crate) fn reweight(&mut self, sys: &System, se: &mut Entity, weight: u32) {
        let emptied = self.emptied;
        self.remove(se.order(sys), se.id);
        self.rq.reweight_entity(sys, se, weight);
        self.insert(sys, se);
        self.emptied = emptied;
    }

    /// A waiting entity runs from `now` on.
    pub(crate) fn set_next(&mut self, sys: &System, se: &Entity, now: u64) {
        self.rq.set_next_entity(sys, se, now);
        self.remove(se.order(sys), se.id);
    }

    /// The running entity is switched out.
    pub(crate) fn put_prev(&mut self, sys: &System, se: &mut Entity) {
        let waits = self.rq.curr_competes();
        self.rq.put_prev_entity(sys, se);
        if waits {
            self.insert(sys, se);
        }
    }

    /// Which entity runs next: `picked` is -1 for the running entity, or if nothing is queued.
    pub(crate) fn pick_next(&mut self, sys: &System) -> QueueDecision {
        if !self.rq.curr_competes() {
            self.rq.update_zero_vruntime(sys);
        }
        self.rq.pick_next_entity(sys, &self.waiting)
    }

    /// Does an entity that has come to the queue run at once?
    pub(crate) fn wakeup_preempt(
        &mut self,
        sys: &System,
        se: &Entity,
        wake_flags: u32,
        pending: bool,
        now: u64,
    ) -> QueueDecision {
        self.rq.wakeup_preempt_fair(sys, se, &self.waiting, wake_flags, pending, now)
    }

    fn insert(&mut self, sys: &System, se: &Entity) {
        let order = se.order(sys);
        let at = self.waiting.partition_point(|w| w.order <= order);
        let entry = Waiting { order, vruntime: se.vruntime, weight: se.weight, id: se.id };
        self.waiting.insert(at, entry);
        self.rq.leftmost = self.waiting[0].vruntime;
    }

    fn remove(&mut self, order: i64, id: i32) {
        let from = self.waiting.partition_point(|w| w.order < order);
        let at = self.waiting[from..].iter().position(|w| w.id == id);
        self.waiting.remove(from + at.expect("a waiting entity is found at its order"));
        self.rq.leftmost = self.waiting.first().map_or(self.rq.leftmost, |w| w.vruntime);
        self.emptied += u64::from(self.waiting.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_policy::{Profile, Tunable};
    use proptest::prelude::*;

    fn system(profile: &str) -> System {
        let mut sys = System::default();
        sys.nr_cpus = 1;
        sys.tick_ns = 4_000_000;
        sys.set_features(Profile::by_name(profile).unwrap().features());
        sys.tunable = sys.code().default_tunables();
        sys
    }

    proptest! {
        /// Some waiting entity is always eligible, and the pick is the eligible one of earliest deadline.
        #[test]
        fn pick_is_the_eligible_entity_of_earliest_deadline(
            tasks in prop::collection::vec((-1_000_000i64..1_000_000, 0i64..5_000_000, 3u32..90_000), 2..40)
        ) {
            let sys = system("linux-7.3");
            let mut queue = Timeline::new(&sys);
            let mut entities = Vec::new();
            for (i, (v, d, weight)) in tasks.iter().enumerate() {
                let mut se = Entity { id: i as i32, weight: *weight, ..Entity::default() };
                queue.enqueue(&sys, &mut se, 0);
                // elsewhere than where it was placed
                queue.dequeue(&sys, &mut se, false);
                se.flags |= coreward_policy::layout::SE_ON_RQ;
                (se.vruntime, se.deadline) = (*v, v + d);
                entities.push(se);
            }
            for se in &mut entities {
                queue.rq.curr = *se;
                queue.put_prev(&sys, se);
            }
            let total: i128 = tasks.iter().map(|t| i128::from(t.2)).sum();
            let sum: i128 = tasks.iter().map(|t| i128::from(t.0) * i128::from(t.2)).sum();
            let best = tasks.iter().filter(|t| sum >= i128::from(t.0) * total).map(|t| t.0 + t.1).min().unwrap();
            let d = queue.pick_next(&sys);
            let picked = tasks[d.id as usize];
            prop_assert_eq!(picked.0 + picked.1, best);
            // taking all out again leaves nothing behind
            for se in &mut entities {
                queue.dequeue(&sys, se, true);
            }
            let rq = &queue.rq;
            prop_assert_eq!((rq.sum_w_vruntime, rq.sum_weight, rq.nr_waiting), (0, 0, 0));
        }

        /// Whatever the buddies are, CFS runs no entity that is ahead of another by more than the granularity.
        #[test]
        fn the_pick_of_cfs_is_never_unfair(
            vruntimes in prop::collection::vec(0i64..4_000_000, 1..12),
            buddies in prop::array::uniform3(prop::option::of(0usize..12)),
        ) {
            let sys = system("linux-6.5");
            let mut queue = Timeline::new(&sys);
            for (i, vruntime) in vruntimes.iter().enumerate() {
                let mut se = Entity { id: i as i32, weight: 1024, vruntime: *vruntime, ..Entity::default() };
                queue.enqueue(&sys, &mut se, 0);
            }
            let [next, last, skip] = buddies.map(|b| b.map_or(-1, |b| (b % vruntimes.len()) as i32));
            (queue.rq.next, queue.rq.last, queue.rq.skip) = (next, last, skip);
            let picked = queue.pick_next(&sys).id;
            let ahead = vruntimes[picked as usize] - vruntimes.iter().min().unwrap();
            prop_assert!(ahead <= sys.tunable(Tunable::wakeup_granularity_ns));
        }
    }
}
