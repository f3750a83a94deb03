//! One CPU's fair queue (`policy/queue/`).

use crate::layout::Sys;
use std::ffi::{CStr, c_char};

/// `struct cw_entity` of `policy/queue/entity.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)] // one description is enough: policy/queue/entity.h
pub struct Entity {
    pub vruntime: i64,
    pub deadline: i64,
    pub vlag: i64,
    pub vprot: i64,
    pub slice: u64,
    pub exec_start: u64,
    pub sum_exec_runtime: u64,
    pub prev_sum_exec_runtime: u64,
    pub weight: u32,
    pub flags: u32,
    pub id: i32,
    pub pad: u32,
}

/// `struct cw_waiting` of `policy/queue/entity.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Waiting {
    pub order: i64,
    pub vruntime: i64,
    pub weight: u32,
    pub id: i32,
}

/// `struct cw_fair_rq` of `policy/queue/entity.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct FairRq {
    pub curr: Entity,
    pub zero_vruntime: i64,
    pub sum_w_vruntime: i64,
    pub sum_weight: i64,
    pub min_slice: u64,
    pub max_slice: u64,
    pub min_vruntime: i64,
    pub leftmost: i64,
    pub nr_waiting: u32,
    pub load_shift: u32,
    pub next: i32,
    pub last: i32,
    pub skip: i32,
    pub pad: u32,
    pub next_deadline: i64,
    pub next_slice: u64,
}

/// `struct cw_queue_decision` of `policy/queue/reasons.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct QueueDecision {
    pub now: u64,
    pub event: u32,
    pub reason: u32,
    pub curr: i32,
    pub id: i32,
    pub picked: i32,
    pub preempts: u32,
}

/// `enum cw_entity_flag`, by name.
#[allow(missing_docs)]
pub mod se {
    pub const ON_RQ: u32 = 1 << 0;
    pub const DELAYED: u32 = 1 << 1;
    pub const REL_DEADLINE: u32 = 1 << 2;
    pub const CUSTOM_SLICE: u32 = 1 << 3;
    pub const IDLE: u32 = 1 << 4;
    pub const BATCH: u32 = 1 << 5;
    pub const GROUP: u32 = 1 << 6;
    pub const REL_VRUNTIME: u32 = 1 << 7;
}

/// `CW_NO_ENTITY`.
pub const NO_ENTITY: i32 = -1;
/// `enum cw_enqueue`: it slept.
pub const ENQUEUE_WAKEUP: u32 = 1 << 0;
/// `enum cw_enqueue`: it is new.
pub const ENQUEUE_INITIAL: u32 = 1 << 1;

unsafe extern "C" {
    fn cw_fair_rq_init(rq: *mut FairRq);
    fn cw_task_weight(nice: i32, idle: bool) -> u32;
    fn cw_entity_order(sys: *const Sys, se: *const Entity) -> i64;
    fn cw_avg_vruntime(rq: *const FairRq) -> i64;
    fn cw_vruntime_eligible(rq: *const FairRq, vruntime: i64) -> bool;
    fn cw_update_zero_vruntime(rq: *mut FairRq);
    fn cw_update_min_vruntime(rq: *mut FairRq);
    fn cw_update_curr(sys: *const Sys, rq: *mut FairRq, now: u64) -> bool;
    fn cw_task_fork_fair(sys: *const Sys, rq: *const FairRq, se: *mut Entity);
    fn cw_migrate_task_rq_fair(sys: *const Sys, rq: *const FairRq, se: *mut Entity);
    fn cw_enqueue_entity(sys: *const Sys, rq: *mut FairRq, se: *mut Entity, why: u32);
    fn cw_dequeue_entity(
        sys: *const Sys,
        rq: *mut FairRq,
        se: *mut Entity,
        sleep: bool,
        may_delay: bool,
    ) -> bool;
    fn cw_requeue_delayed_entity(sys: *const Sys, rq: *mut FairRq, se: *mut Entity) -> bool;
    fn cw_reweight_entity(sys: *const Sys, rq: *mut FairRq, se: *mut Entity, weight: u32);
    fn cw_set_next_entity(sys: *const Sys, rq: *mut FairRq, se: *const Entity, now: u64);
    fn cw_put_prev_entity(rq: *mut FairRq, se: *mut Entity);
    fn cw_entity_tick(sys: *const Sys, rq: *mut FairRq) -> bool;
    fn cw_yield_task_fair(sys: *const Sys, rq: *mut FairRq);
    fn cw_pick_next_entity(
        sys: *const Sys,
        rq: *const FairRq,
        waiting: *const Waiting,
        d: *mut QueueDecision,
    ) -> i32;
    fn cw_wakeup_preempt_fair(
        sys: *const Sys,
        rq: *mut FairRq,
        pse: *const Entity,
        waiting: *const Waiting,
        wake_flags: u32,
        pending: bool,
        now: u64,
        d: *mut QueueDecision,
    ) -> bool;
    fn cw_nr_queue_reasons() -> u32;
    fn cw_queue_reason_name(reason: u32) -> *const c_char;
    fn cw_queue_reason_text(reason: u32) -> *const c_char;
}

/// The weight of a task; a nice value out of range counts as the nearest that is in range.
pub fn task_weight(nice: i8, idle: bool) -> u32 {
    // SAFETY: reads a constant table.
    unsafe { cw_task_weight(i32::from(nice), idle) }
}

impl Entity {
    /// By what waiting entities stand in order.
    pub fn order(&self, sys: &Sys) -> i64 {
        // SAFETY: reads its arguments.
        unsafe { cw_entity_order(sys, self) }
    }
}

impl Default for FairRq {
    /// An empty queue.
    fn default() -> Self {
        let mut rq = std::mem::MaybeUninit::uninit();
        // SAFETY: C writes all of it.
        unsafe {
            cw_fair_rq_init(rq.as_mut_ptr());
            rq.assume_init()
        }
    }
}

/// The functions have the names of those in `policy/queue/fair.h` and `preempt.h`, which say what they do.
///
/// Where an array of waiting entities is passed, it has to hold all `nr_waiting`, in order of [`Entity::order`].
impl FairRq {
    /// Does the running entity compete with those that wait?
    pub fn curr_competes(&self) -> bool {
        self.curr.weight != 0 && self.curr.flags & se::ON_RQ != 0
    }

    /// Entities that wait or run.
    pub fn nr_queued(&self) -> u32 {
        self.nr_waiting + u32::from(self.curr_competes())
    }

    /// V: the mean of all vruntimes, weighted.
    pub fn avg_vruntime(&self) -> i64 {
        // SAFETY: reads its argument.
        unsafe { cw_avg_vruntime(self) }
    }

    /// Is the lag at this vruntime not negative?
    pub fn vruntime_eligible(&self, vruntime: i64) -> bool {
        // SAFETY: reads its argument.
        unsafe { cw_vruntime_eligible(self, vruntime) }
    }

    /// Moves the origin of virtual time to V.
    pub fn update_zero_vruntime(&mut self) {
        // SAFETY: one exclusive reference.
        unsafe { cw_update_zero_vruntime(self) }
    }

    /// CFS: the least vruntime of all may have grown; `leftmost` is that of those that wait.
    pub fn update_min_vruntime(&mut self) {
        // SAFETY: one exclusive reference.
        unsafe { cw_update_min_vruntime(self) }
    }

    /// Charges the running entity until `now`; true if its turn is over.
    pub fn update_curr(&mut self, sys: &Sys, now: u64) -> bool {
        // SAFETY: C reads sys and writes the queue.
        unsafe { cw_update_curr(sys, self, now) }
    }

    /// A new task on its parent's CPU.
    pub fn task_fork_fair(&self, sys: &Sys, se: &mut Entity) {
        // SAFETY: C reads sys and the queue, and writes the entity, which is not in it.
        unsafe { cw_task_fork_fair(sys, self, se) }
    }

    /// A sleeper leaves for another queue.
    pub fn migrate_task_rq_fair(&self, sys: &Sys, se: &mut Entity) {
        // SAFETY: as above.
        unsafe { cw_migrate_task_rq_fair(sys, self, se) }
    }

    /// Places an entity that comes, and adds it to those that wait.
    pub fn enqueue_entity(&mut self, sys: &Sys, se: &mut Entity, why: u32) {
        // SAFETY: C reads sys, and writes the queue and the entity, which is not in it.
        unsafe { cw_enqueue_entity(sys, self, se, why) }
    }

    /// A waiting entity leaves; false if its dequeue is delayed.
    pub fn dequeue_entity(&mut self, sys: &Sys, se: &mut Entity, sleep: bool, may_delay: bool) -> bool {
        // SAFETY: as above.
        unsafe { cw_dequeue_entity(sys, self, se, sleep, may_delay) }
    }

    /// The running entity leaves; false if its dequeue is delayed.
    pub fn dequeue_curr(&mut self, sys: &Sys, sleep: bool, may_delay: bool) -> bool {
        let rq: *mut FairRq = self;
        // SAFETY: C takes the running entity by its address in the queue; both come from one exclusive reference.
        unsafe { cw_dequeue_entity(sys, rq, &raw mut (*rq).curr, sleep, may_delay) }
    }

    /// A delayed sleeper is woken; true if it has been placed anew.
    pub fn requeue_delayed_entity(&mut self, sys: &Sys, se: &mut Entity) -> bool {
        // SAFETY: C reads sys, and writes the queue and the entity, which is not in it.
        unsafe { cw_requeue_delayed_entity(sys, self, se) }
    }

    /// The weight of an entity that waits or sleeps changes.
    pub fn reweight_entity(&mut self, sys: &Sys, se: &mut Entity, weight: u32) {
        // SAFETY: as above.
        unsafe { cw_reweight_entity(sys, self, se, weight) }
    }

    /// The weight of the running entity changes.
    pub fn reweight_curr(&mut self, sys: &Sys, weight: u32) {
        let rq: *mut FairRq = self;
        // SAFETY: as in dequeue_curr().
        unsafe { cw_reweight_entity(sys, rq, &raw mut (*rq).curr, weight) }
    }

    /// A waiting entity runs from `now` on.
    pub fn set_next_entity(&mut self, sys: &Sys, se: &Entity, now: u64) {
        // SAFETY: C reads sys and the entity, which is not in the queue, and writes the queue.
        unsafe { cw_set_next_entity(sys, self, se, now) }
    }

    /// The running entity is switched out: back to those that wait if it is still queued.
    pub fn put_prev_entity(&mut self, se: &mut Entity) {
        // SAFETY: C writes the queue and the entity, which is not in it.
        unsafe { cw_put_prev_entity(self, se) }
    }

    /// Does CFS end the running entity's turn at this tick?
    pub fn entity_tick(&mut self, sys: &Sys) -> bool {
        // SAFETY: C reads sys and writes the queue.
        unsafe { cw_entity_tick(sys, self) }
    }

    /// `sched_yield` of the running entity.
    pub fn yield_task_fair(&mut self, sys: &Sys) {
        // SAFETY: as above.
        unsafe { cw_yield_task_fair(sys, self) }
    }

    /// Who runs next.
    pub fn pick_next_entity(&self, sys: &Sys, waiting: &[Waiting]) -> QueueDecision {
        assert_eq!(waiting.len(), self.nr_waiting as usize);
        let mut d = QueueDecision::default();
        // SAFETY: C reads as many waiting entities as nr_waiting says, which is how many there are.
        unsafe { cw_pick_next_entity(sys, self, waiting.as_ptr(), &mut d) };
        d
    }

    /// Does `pse`, which has come to the queue and is among those that wait, run at once?
    pub fn wakeup_preempt_fair(
        &mut self,
        sys: &Sys,
        pse: &Entity,
        waiting: &[Waiting],
        wake_flags: u32,
        pending: bool,
        now: u64,
    ) -> QueueDecision {
        assert_eq!(waiting.len(), self.nr_waiting as usize);
        let mut d = QueueDecision::default();
        // SAFETY: as above; the entity is not in the queue.
        unsafe { cw_wakeup_preempt_fair(sys, self, pse, waiting.as_ptr(), wake_flags, pending, now, &mut d) };
        d
    }
}

impl QueueDecision {
    /// How many reasons there are.
    pub fn nr_reasons() -> u32 {
        // SAFETY: returns a constant.
        unsafe { cw_nr_queue_reasons() }
    }

    /// The name of its reason, as in `policy/queue/reasons.h`.
    pub fn reason_name(&self) -> &'static str {
        // SAFETY: a NUL-terminated constant of ASCII.
        unsafe { CStr::from_ptr(cw_queue_reason_name(self.reason)) }.to_str().unwrap_or("?")
    }

    /// Its reason as reports print it.
    pub fn reason_text(&self) -> &'static str {
        // SAFETY: as above.
        unsafe { CStr::from_ptr(cw_queue_reason_text(self.reason)) }.to_str().unwrap_or("?")
    }
}
