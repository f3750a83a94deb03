//! One CPU's fair queue (`policy/queue/`).

use crate::layout::{Entity, FairRq, QueueDecision, SE_ON_RQ, Waiting};
use crate::system::System;

impl System {
    /// The weight of a task; a nice value out of range counts as the nearest that is in range.
    pub fn task_weight(&self, nice: i8, idle: bool) -> u32 {
        // SAFETY: reads a constant table.
        unsafe { (self.code().native.cw_task_weight)(i32::from(nice), idle) }
    }

    /// An empty queue.
    pub fn fair_rq(&self) -> FairRq {
        let mut rq = std::mem::MaybeUninit::uninit();
        // SAFETY: C writes all of it.
        unsafe {
            (self.code().native.cw_fair_rq_init)(rq.as_mut_ptr());
            rq.assume_init()
        }
    }
}

impl Entity {
    /// The key by which waiting entities are ordered.
    pub fn order(&self, sys: &System) -> i64 {
        // SAFETY: reads its arguments.
        unsafe { (sys.code().native.cw_entity_order)(&raw const **sys, self) }
    }
}

/// The functions have the names of those in `policy/queue/fair.h` and `preempt.h`, which say what they do.
///
/// Where an array of waiting entities is passed, it has to hold all `nr_waiting`, in order of [`Entity::order`].
impl FairRq {
    /// Does the running entity compete with those that wait?
    pub fn curr_competes(&self) -> bool {
        self.curr.weight != 0 && self.curr.flags & SE_ON_RQ != 0
    }

    /// Entities that wait or run.
    pub fn nr_queued(&self) -> u32 {
        self.nr_waiting + u32::from(self.curr_competes())
    }

    /// V: the mean of all vruntimes, weighted.
    pub fn avg_vruntime(&self, sys: &System) -> i64 {
        // SAFETY: reads its argument.
        unsafe { (sys.code().native.cw_avg_vruntime)(self) }
    }

    /// Is the lag at this vruntime not negative?
    pub fn vruntime_eligible(&self, sys: &System, vruntime: i64) -> bool {
        // SAFETY: reads its argument.
        unsafe { (sys.code().native.cw_vruntime_eligible)(self, vruntime) }
    }

    /// Moves the origin of virtual time to V.
    pub fn update_zero_vruntime(&mut self, sys: &System) {
        // SAFETY: one exclusive reference.
        unsafe { (sys.code().native.cw_update_zero_vruntime)(self) }
    }

    /// CFS: the least vruntime of all may have grown; `leftmost` is that of those that wait.
    pub fn update_min_vruntime(&mut self, sys: &System) {
        // SAFETY: one exclusive reference.
        unsafe { (sys.code().native.cw_update_min_vruntime)(self) }
    }

    /// Charges the running entity until `now`; true if its turn is over.
    pub fn update_curr(&mut self, sys: &System, now: u64) -> bool {
        // SAFETY: C reads sys and writes the queue.
        unsafe { (sys.code().native.cw_update_curr)(&raw const **sys, self, now) }
    }

    /// A new task on its parent's CPU.
    pub fn task_fork_fair(&self, sys: &System, se: &mut Entity) {
        // SAFETY: C reads sys and the queue, and writes the entity, which is not in it.
        unsafe { (sys.code().native.cw_task_fork_fair)(&raw const **sys, self, se) }
    }

    /// A sleeper leaves for another queue.
    pub fn migrate_task_rq_fair(&self, sys: &System, se: &mut Entity) {
        // SAFETY: as above.
        unsafe { (sys.code().native.cw_migrate_task_rq_fair)(&raw const **sys, self, se) }
    }

    /// Places an entity that comes, and adds it to those that wait.
    pub fn enqueue_entity(&mut self, sys: &System, se: &mut Entity, why: u32) {
        // SAFETY: C reads sys, and writes the queue and the entity, which is not in it.
        unsafe { (sys.code().native.cw_enqueue_entity)(&raw const **sys, self, se, why) }
    }

    /// A waiting entity leaves; false if its dequeue is delayed.
    pub fn dequeue_entity(&mut self, sys: &System, se: &mut Entity, sleep: bool, may_delay: bool) -> bool {
        // SAFETY: as above.
        unsafe { (sys.code().native.cw_dequeue_entity)(&raw const **sys, self, se, sleep, may_delay) }
    }

    /// The running entity leaves; false if its dequeue is delayed.
    pub fn dequeue_curr(&mut self, sys: &System, sleep: bool, may_delay: bool) -> bool {
        let rq: *mut FairRq = self;
        // SAFETY: C takes the running entity by its address in the queue; both come from one exclusive reference.
        unsafe {
            (sys.code().native.cw_dequeue_entity)(&raw const **sys, rq, &raw mut (*rq).curr, sleep, may_delay)
        }
    }

    /// A delayed sleeper is woken; true if it has been placed anew.
    pub fn requeue_delayed_entity(&mut self, sys: &System, se: &mut Entity) -> bool {
        // SAFETY: C reads sys, and writes the queue and the entity, which is not in it.
        unsafe { (sys.code().native.cw_requeue_delayed_entity)(&raw const **sys, self, se) }
    }

    /// The weight of an entity that waits or sleeps changes.
    pub fn reweight_entity(&mut self, sys: &System, se: &mut Entity, weight: u32) {
        // SAFETY: as above.
        unsafe { (sys.code().native.cw_reweight_entity)(&raw const **sys, self, se, weight) }
    }

    /// The weight of the running entity changes.
    pub fn reweight_curr(&mut self, sys: &System, weight: u32) {
        let rq: *mut FairRq = self;
        // SAFETY: as in dequeue_curr().
        unsafe { (sys.code().native.cw_reweight_entity)(&raw const **sys, rq, &raw mut (*rq).curr, weight) }
    }

    /// A waiting entity runs from `now` on.
    pub fn set_next_entity(&mut self, sys: &System, se: &Entity, now: u64) {
        // SAFETY: C reads sys and the entity, which is not in the queue, and writes the queue.
        unsafe { (sys.code().native.cw_set_next_entity)(&raw const **sys, self, se, now) }
    }

    /// The running entity is switched out: back to those that wait if it is still queued.
    pub fn put_prev_entity(&mut self, sys: &System, se: &mut Entity) {
        // SAFETY: C writes the queue and the entity, which is not in it.
        unsafe { (sys.code().native.cw_put_prev_entity)(self, se) }
    }

    /// Does CFS end the running entity's turn at this tick?
    pub fn entity_tick(&mut self, sys: &System) -> bool {
        // SAFETY: C reads sys and writes the queue.
        unsafe { (sys.code().native.cw_entity_tick)(&raw const **sys, self) }
    }

    /// `sched_yield` of the running entity.
    pub fn yield_task_fair(&mut self, sys: &System) {
        // SAFETY: as above.
        unsafe { (sys.code().native.cw_yield_task_fair)(&raw const **sys, self) }
    }

    /// Which entity runs next.
    pub fn pick_next_entity(&self, sys: &System, waiting: &[Waiting]) -> QueueDecision {
        assert_eq!(waiting.len(), self.nr_waiting as usize);
        let mut d = QueueDecision::default();
        // SAFETY: C reads as many waiting entities as nr_waiting says, which is how many there are.
        unsafe { (sys.code().native.cw_pick_next_entity)(&raw const **sys, self, waiting.as_ptr(), &mut d) };
        d
    }

    /// Does `pse`, which has come to the queue and is among those that wait, run at once?
    pub fn wakeup_preempt_fair(
        &mut self,
        sys: &System,
        pse: &Entity,
        waiting: &[Waiting],
        wake_flags: u32,
        pending: bool,
        now: u64,
    ) -> QueueDecision {
        assert_eq!(waiting.len(), self.nr_waiting as usize);
        let mut d = QueueDecision::default();
        // SAFETY: as above; the entity is not in the queue.
        unsafe {
            (sys.code().native.cw_wakeup_preempt_fair)(
                &raw const **sys,
                self,
                pse,
                waiting.as_ptr(),
                wake_flags,
                pending,
                now,
                &mut d,
            )
        };
        d
    }
}
