//! A machine's policy state and the decisions on it.

use crate::layout::{Avg, Cpu, Sys, Task};
use crate::profile::{Feature, Tunable};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ffi::{CStr, c_char};
use std::ops::{Deref, DerefMut};

unsafe extern "C" {
    fn cw_update_load_avg_se(now: u64, p: *mut Task, on_rq: bool, running: bool);
    fn cw_update_cfs_rq_load_avg(now: u64, rq: *mut Cpu, running: bool) -> bool;
    fn cw_attach_entity_load_avg(rq: *mut Cpu, p: *mut Task);
    fn cw_detach_entity_load_avg(rq: *mut Cpu, p: *const Task);
    fn cw_remove_entity_load_avg(rq: *mut Cpu, p: *mut Task);
    fn cw_init_entity_runnable_average(p: *mut Task);
    fn cw_post_init_entity_util_avg(rq: *const Cpu, p: *mut Task);
    fn cw_update_rq_clock_pelt(pelt: u64, task: u64, delta: u64, capacity: u32, idle: bool) -> u64;
    fn cw_util_est_enqueue(sys: *const Sys, rq: *mut Cpu, p: *const Task);
    fn cw_util_est_dequeue(sys: *const Sys, rq: *mut Cpu, p: *const Task);
    fn cw_util_est_update(sys: *const Sys, rq: *const Cpu, p: *mut Task);
    fn cw_nr_reasons() -> u32;
    fn cw_reason_name(reason: u32) -> *const c_char;
    fn cw_reason_text(reason: u32) -> *const c_char;
}

/// The policy's view of one machine: owns a [`Sys`], which it dereferences to.
pub struct System(Box<Sys>);

impl Deref for System {
    type Target = Sys;
    fn deref(&self) -> &Sys {
        &self.0
    }
}

impl DerefMut for System {
    fn deref_mut(&mut self) -> &mut Sys {
        &mut self.0
    }
}

impl Default for System {
    /// An empty machine: all zero.
    fn default() -> Self {
        let layout = Layout::new::<Sys>();
        // SAFETY: Sys is integers only, so all-zero bytes are a value of it; it is
        // too large to build on a stack first.
        unsafe {
            let sys = alloc_zeroed(layout).cast::<Sys>();
            if sys.is_null() {
                handle_alloc_error(layout);
            }
            System(Box::from_raw(sys))
        }
    }
}

/// PELT and util_est; the mathematics stands in `policy/pelt.h`.
impl System {
    /// Brings a task's averages to `now` of its runqueue's clock.
    pub fn update_load_avg_se(now: u64, p: &mut Task, on_rq: bool, running: bool) {
        // SAFETY: exclusive reference, plain integers.
        unsafe { cw_update_load_avg_se(now, p, on_rq, running) }
    }

    /// Brings a runqueue's averages to `now`; true if they changed.
    pub fn update_cfs_rq_load_avg(&mut self, now: u64, cpu: usize, running: bool) -> bool {
        // SAFETY: exclusive reference, plain integers; indexing is checked.
        unsafe { cw_update_cfs_rq_load_avg(now, &mut self.0.cpu[cpu], running) }
    }

    /// Adds a task's averages to a runqueue that did not account it.
    pub fn attach_entity_load_avg(&mut self, cpu: usize, p: &mut Task) {
        // SAFETY: as above.
        unsafe { cw_attach_entity_load_avg(&mut self.0.cpu[cpu], p) }
    }

    /// Takes a task's averages off the runqueue that it leaves.
    pub fn detach_entity_load_avg(&mut self, cpu: usize, p: &Task) {
        // SAFETY: as above.
        unsafe { cw_detach_entity_load_avg(&mut self.0.cpu[cpu], p) }
    }

    /// Leaves note on its old runqueue that a sleeper went elsewhere.
    pub fn remove_entity_load_avg(&mut self, cpu: usize, p: &mut Task) {
        // SAFETY: as above.
        unsafe { cw_remove_entity_load_avg(&mut self.0.cpu[cpu], p) }
    }

    /// The averages of a task without a history, before it is placed.
    pub fn init_entity_runnable_average(p: &mut Task) {
        // SAFETY: as above.
        unsafe { cw_init_entity_runnable_average(p) }
    }

    /// The utilisation of a new task on its first runqueue.
    pub fn post_init_entity_util_avg(&self, cpu: usize, p: &mut Task) {
        // SAFETY: as above.
        unsafe { cw_post_init_entity_util_avg(&self.0.cpu[cpu], p) }
    }

    /// The clock of a runqueue's averages after `delta` ns at `capacity`.
    pub fn update_rq_clock_pelt(
        pelt: u64,
        task: u64,
        delta: u64,
        capacity: u32,
        idle: bool,
    ) -> u64 {
        // SAFETY: plain integers.
        unsafe { cw_update_rq_clock_pelt(pelt, task, delta, capacity, idle) }
    }

    /// A task became runnable on `cpu`: count its estimate there.
    pub fn util_est_enqueue(&mut self, cpu: usize, p: &Task) {
        let sys: *mut Sys = &mut *self.0;
        // SAFETY: one exclusive reference; C reads sys.features and writes one cpu.
        unsafe { cw_util_est_enqueue(sys, &raw mut (*sys).cpu[cpu], p) }
    }

    /// A task stopped being runnable on `cpu`.
    pub fn util_est_dequeue(&mut self, cpu: usize, p: &Task) {
        let sys: *mut Sys = &mut *self.0;
        // SAFETY: as above.
        unsafe { cw_util_est_dequeue(sys, &raw mut (*sys).cpu[cpu], p) }
    }

    /// A task goes to sleep on `cpu`: move its estimate.
    pub fn util_est_update(&self, cpu: usize, p: &mut Task) {
        // SAFETY: sys is only read.
        unsafe { cw_util_est_update(&*self.0, &self.0.cpu[cpu], p) }
    }
}

/// Features and tunables.
impl System {
    /// Is the feature on?
    pub fn sched_feat(&self, feature: Feature) -> bool {
        self.0.features >> feature as u32 & 1 == 1
    }

    /// The value of a tunable.
    pub fn tunable(&self, tunable: Tunable) -> i64 {
        self.0.tunable[tunable as usize]
    }
}

/// Why a decision was taken: the reason code of a decision record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(pub u32);

impl Reason {
    /// All reasons, in the order of their codes.
    pub fn all() -> impl Iterator<Item = Reason> {
        // SAFETY: reads a constant.
        (0..unsafe { cw_nr_reasons() }).map(Reason)
    }

    /// The name, as in `policy/types.h`.
    pub fn name(self) -> &'static str {
        // SAFETY: C returns a static string for any code.
        str_of(unsafe { cw_reason_name(self.0) })
    }

    /// The text that reports print.
    pub fn text(self) -> &'static str {
        // SAFETY: as above.
        str_of(unsafe { cw_reason_text(self.0) })
    }
}

fn str_of(s: *const c_char) -> &'static str {
    // SAFETY: only called with the static, NUL-terminated ASCII strings of native.c.
    unsafe { CStr::from_ptr(s) }.to_str().unwrap_or("?")
}

/// An average's utilisation estimate without the flag in its top bit.
pub fn util_est(avg: &Avg) -> u32 {
    avg.util_est & 0x7fff_ffff
}
