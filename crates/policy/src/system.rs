//! A machine's policy state and the decisions on it.

use crate::code::Code;
use crate::generated::tables::{Feature, Tunable};
use crate::layout::{Avg, Balance, CpuMask, Decision, Detach, Lb, LbStep, Process, Sys, Task, Wakeup};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ops::{Deref, DerefMut};

/// The policy's view of one machine: owns a [`Sys`], which it dereferences to, and knows the code that
/// decides on it.
pub struct System {
    sys: Box<Sys>,
    code: &'static Code,
}

/// The bits of features as [`Sys`] has them.
pub fn feature_words(features: u128) -> [u64; 2] {
    [features as u64, (features >> 64) as u64]
}

impl Deref for System {
    type Target = Sys;
    fn deref(&self) -> &Sys {
        &self.sys
    }
}

impl DerefMut for System {
    fn deref_mut(&mut self) -> &mut Sys {
        &mut self.sys
    }
}

impl Default for System {
    /// An empty machine under the built-in policy.
    fn default() -> Self {
        System::new(Code::built_in())
    }
}

impl System {
    /// An empty machine: all zero.
    pub fn new(code: &'static Code) -> Self {
        let layout = Layout::new::<Sys>();
        // SAFETY: Sys is integers only, so all-zero bytes are a value of it; it is
        // too large to build on a stack first.
        unsafe {
            let sys = alloc_zeroed(layout).cast::<Sys>();
            if sys.is_null() {
                handle_alloc_error(layout);
            }
            System { sys: Box::from_raw(sys), code }
        }
    }
}

impl System {
    /// What decides.
    pub fn code(&self) -> &'static Code {
        self.code
    }
}

/// What tasks and CPUs do, as the host reports it (`policy/track/upkeep.h`).
impl System {
    /// Brings the averages of the CPU's runqueue to `now`.
    pub fn update_blocked_averages(&mut self, cpu: usize, now: u64) {
        // SAFETY: exclusive references to plain integers; C masks CPU numbers. The same holds
        // for all calls below.
        unsafe { (self.code.native.cw_update_blocked_averages)(&mut *self.sys, cpu as i32, now) }
    }

    /// A task is seen for the first time, on `cpu`; its weight is known.
    pub fn init_task(&self, p: &mut Task, cpu: usize) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_init_task)(p, cpu as i32) }
    }

    /// The new task `p` was created by `parent`.
    pub fn fork(&self, p: &mut Task, parent: &Task) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_fork)(p, parent) }
    }

    /// The task is queued on `cpu`.
    pub fn enqueue_task(&mut self, p: &mut Task, cpu: usize, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_enqueue_task)(&mut *self.sys, p, cpu as i32, now) }
    }

    /// `cpu`, on whose queue the task is, switches to it.
    pub fn set_next_task(&mut self, p: &mut Task, cpu: usize, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_set_next_task)(&mut *self.sys, p, cpu as i32, now) }
    }

    /// A tick of `cpu` finds the task running.
    pub fn task_tick(&mut self, p: &mut Task, cpu: usize, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_task_tick)(&mut *self.sys, p, cpu as i32, now) }
    }

    /// `cpu` switches away from the task.
    pub fn put_prev_task(&mut self, p: &mut Task, cpu: usize, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_put_prev_task)(&mut *self.sys, p, cpu as i32, now) }
    }

    /// The task leaves its queue; `running`: it is current until now.
    pub fn dequeue_task(&mut self, p: &mut Task, now: u64, running: bool) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_dequeue_task)(&mut *self.sys, p, now, running) }
    }

    /// The task sleeps, at once or delayed.
    pub fn sleep(&self, p: &mut Task, now: u64) {
        // SAFETY: as above; the system is only read.
        unsafe { (self.code.native.cw_track_sleep)(&*self.sys, p, now) }
    }

    /// The current task sleeps, but stays queued.
    pub fn delay_dequeue(&mut self, p: &mut Task, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_delay_dequeue)(&mut *self.sys, p, now) }
    }

    /// A sleeper that is still queued is woken.
    pub fn requeue_delayed(&mut self, p: &mut Task, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_requeue_delayed)(&mut *self.sys, p, now) }
    }

    /// The task has been dequeued to be queued elsewhere.
    pub fn detach_task(&mut self, p: &mut Task) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_detach_task)(&mut *self.sys, p) }
    }

    /// A sleeping or new task will be queued on `cpu`.
    pub fn set_task_cpu(&mut self, p: &mut Task, cpu: usize) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_set_task_cpu)(&mut *self.sys, p, cpu as i32) }
    }

    /// The task, which is not queued, ends.
    pub fn remove_task(&mut self, p: &mut Task) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_track_remove_task)(&mut *self.sys, p) }
    }

    /// `cpu` goes idle.
    pub fn set_next_task_idle(&mut self, cpu: usize, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_set_next_task_idle)(&mut *self.sys, cpu as i32, now) }
    }

    /// `cpu` goes offline: the task groups forget its load.
    pub fn clear_tg_offline_cfs_rqs(&mut self, cpu: usize) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_clear_tg_offline_cfs_rqs)(&mut *self.sys, cpu as i32) }
    }

    /// The task wakes another synchronously (`SYNC_ON_WAKER`).
    pub fn note_sync_wakeup(&self, p: &mut Task, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_note_sync_wakeup)(p, now) }
    }
}

/// The LLC that a process prefers (`policy/track/process.h`).
impl System {
    /// A process without a history. It has one thread; the host keeps `nr_threads`.
    pub fn process_init(&self, process: &mut Process, now: u64) {
        // SAFETY: exclusive reference to plain integers, sys is only read.
        unsafe { (self.code.native.cw_process_init)(&*self.sys, process, now) }
    }

    /// The task, a thread of the process, ran for `delta` ns until `now`.
    pub fn account_mm_sched(&mut self, process: &mut Process, p: &mut Task, delta: u64, now: u64) {
        // SAFETY: exclusive references; C masks CPU numbers.
        unsafe { (self.code.native.cw_account_mm_sched)(&mut *self.sys, process, p, delta, now) }
    }

    /// From the tick of a CPU that runs a thread of it: is `task_cache_work` due?
    pub fn process_tick(&self, process: &mut Process, now: u64) -> bool {
        // SAFETY: as for process_init.
        unsafe { (self.code.native.cw_process_tick)(&*self.sys, process, now) }
    }

    /// The running task looks for the LLC that its process occupies most. False if the process
    /// does not fit one, so that no search was made.
    pub fn task_cache_work(&mut self, process: &mut Process, p: &Task, now: u64) -> bool {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_task_cache_work)(&mut *self.sys, process, p, now) }
    }

    /// Lets a task carry what its process prefers; None for a kernel thread.
    pub fn task_cache_cpu(&self, p: &mut Task, process: Option<&Process>) {
        // SAFETY: as above; C accepts a null process.
        unsafe { (self.code.native.cw_task_cache_cpu)(p, process.map_or(std::ptr::null(), |p| p)) }
    }
}

/// Placement of wakeups, forks and execs (`policy/wakeup/wakeup.h`, `policy/wakeup/forkexec.h`).
impl System {
    /// Chooses a CPU for a task and says why.
    ///
    /// `waker` is None if the task places itself (exec).
    pub fn select_task_rq_fair(
        &mut self,
        request: &Placement,
        p: &mut Task,
        waker: Option<&mut Task>,
        cpus_ptr: &CpuMask,
    ) -> Decision {
        let p: *mut Task = p;
        let w = Wakeup {
            p,
            waker: waker.map_or(p, |w| w as *mut Task),
            cpus_ptr,
            this_cpu: request.this_cpu as i32,
            prev_cpu: request.prev_cpu as i32,
            task_cpu: request.task_cpu as i32,
            wake_flags: request.wake_flags,
            in_task: u32::from(request.in_task),
            random: request.random,
            now: request.now,
        };
        let mut d = Decision::default();
        // SAFETY: sys, p and waker are exclusive references (or p twice, which C treats as
        // one task), w and cpus_ptr outlive the call, and every CPU number is masked by C.
        unsafe { (self.code.native.cw_select_task_rq_fair)(&mut *self.sys, &w, &mut d) };
        d
    }

    /// The search for an idle CPU of this decision took `ns` nanoseconds, for SIS_PROP.
    pub fn update_avg_scan_cost(&mut self, decision: &Decision, ns: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_update_avg_scan_cost)(&mut *self.sys, decision, ns) }
    }
}

/// Load balancing (`policy/balance/balance.h` and what it includes).
impl System {
    /// Starts an attempt of `cpu` to balance its domain at `level`.
    pub fn balance_begin(&self, env: &mut Balance, cpu: usize, level: u32, idle: u32, now: u64) {
        // SAFETY: exclusive references to plain integers; C masks CPU numbers. The same holds
        // for all calls below.
        unsafe { (self.code.native.cw_balance_begin)(env, cpu as i32, level, idle, now) }
    }

    /// Chooses the CPU to pull from, None if there is nothing to pull.
    pub fn sched_balance_find_src(&mut self, env: &mut Balance) -> (Option<usize>, Decision) {
        let mut d = Decision::default();
        // SAFETY: as above.
        let cpu = unsafe { (self.code.native.cw_sched_balance_find_src)(&mut *self.sys, env, &mut d) };
        (usize::try_from(cpu).ok(), d)
    }

    /// The first half of [`sched_balance_find_src`](Self::sched_balance_find_src), without the
    /// check of which CPU balances: the busiest group as an index in [`Sys::group`], None if there is no imbalance.
    /// Sets imbalance, migration_type, fbq_type and sds of `env`.
    pub fn sched_balance_find_src_group(&mut self, env: &mut Balance) -> (Option<u32>, Decision) {
        let mut d = Decision::default();
        // SAFETY: as above.
        let group =
            unsafe { (self.code.native.cw_sched_balance_find_src_group)(&mut *self.sys, env, &mut d) };
        ((group != crate::layout::NONE).then_some(group), d)
    }

    /// The second half: the busiest CPU of `group` by the imbalance, migration_type and
    /// fbq_type of `env`, None if none will do.
    pub fn sched_balance_find_src_rq(&mut self, env: &Balance, group: u32) -> (Option<usize>, Decision) {
        let mut d = Decision::default();
        // SAFETY: as above; C masks the group.
        let cpu =
            unsafe { (self.code.native.cw_sched_balance_find_src_rq)(&mut *self.sys, env, group, &mut d) };
        (usize::try_from(cpu).ok(), d)
    }

    /// Offers one task of the source: it is left, taken, or nothing more is to be offered.
    pub fn offer_task(&mut self, env: &mut Balance, p: &Task, cpus_ptr: &CpuMask, running: bool) -> Detach {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_detach_task)(&mut *self.sys, env, p, cpus_ptr, running) }
    }

    /// `cpu` has nothing to run and is to look for work elsewhere; `random` decides NI_RANDOM's
    /// choices. True if it does; [`lb_next`](Self::lb_next) has to follow in either case.
    pub fn lb_newidle(&mut self, lb: &mut Lb, cpu: usize, now: u64, random: u32) -> bool {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_lb_newidle)(&mut *self.sys, lb, cpu as i32, now, random) }
    }

    /// The domains of `cpu` that are due are to be balanced.
    pub fn lb_periodic(&mut self, lb: &mut Lb, cpu: usize, idle: u32, now: u64) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_lb_periodic)(&mut *self.sys, lb, cpu as i32, idle, now) }
    }

    /// What the host is to do next for the balance (`policy/balance/loop.h`).
    pub fn lb_next(&mut self, lb: &mut Lb) -> LbStep {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_lb_next)(&mut *self.sys, lb) }
    }

    /// Starts an active balance from `src` to `dst`; false if no domain spans both. `for_llc`: a
    /// balance for LLC preferences led to it.
    pub fn active_balance_begin(
        &mut self,
        env: &mut Balance,
        src: usize,
        dst: usize,
        for_llc: bool,
        now: u64,
    ) -> bool {
        // SAFETY: as above.
        unsafe {
            (self.code.native.cw_active_balance_begin)(
                &mut *self.sys,
                env,
                src as i32,
                dst as i32,
                for_llc,
                now,
            )
        }
    }

    /// May the task that the source ran go?
    pub fn active_balance_task(&mut self, env: &mut Balance, p: &Task, cpus_ptr: &CpuMask) -> bool {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_active_balance_task)(&mut *self.sys, env, p, cpus_ptr) }
    }

    /// The idle CPU that the tick of busy `cpu` has bring the averages of all idle ones up to date.
    pub fn kick_nohz_stats(&mut self, cpu: usize, nohz_idle: &CpuMask, now: u64) -> Option<usize> {
        // SAFETY: as above.
        let ilb =
            unsafe { (self.code.native.cw_kick_nohz_stats)(&mut *self.sys, cpu as i32, nohz_idle, now) };
        usize::try_from(ilb).ok()
    }

    /// Is `cpu`, which goes idle, to do that itself?
    pub fn nohz_newidle_stats(&self, cpu: usize, now: u64) -> bool {
        // SAFETY: as above; the system is only read.
        unsafe { (self.code.native.cw_nohz_newidle_stats)(&*self.sys, cpu as i32, now) }
    }

    /// Brings the averages of an idle CPU to `now`. True if they are not 0.
    pub fn update_nohz_stats(&mut self, cpu: usize, now: u64) -> bool {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_update_nohz_stats)(&mut *self.sys, cpu as i32, now) }
    }

    /// The averages of all idle CPUs have been brought to `now`; `has_blocked`: some are not 0.
    pub fn nohz_stats_done(&mut self, now: u64, has_blocked: bool) {
        // SAFETY: as above.
        unsafe { (self.code.native.cw_nohz_stats_done)(&mut *self.sys, now, has_blocked) }
    }

    /// The idle CPU that the tick of busy `cpu` has balance for the idle ones.
    pub fn kick_ilb(&mut self, cpu: usize, nohz_idle: &CpuMask, now: u64) -> Option<usize> {
        // SAFETY: as above.
        usize::try_from(unsafe { (self.code.native.cw_kick_ilb)(&mut *self.sys, cpu as i32, nohz_idle, now) })
            .ok()
    }
}

/// One placement to decide; see `struct cw_wakeup`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placement {
    /// The waker's CPU.
    pub this_cpu: usize,
    /// Where the task last ran, or where NUMA balancing wants it to wake.
    pub prev_cpu: usize,
    /// The CPU whose averages the task is part of: where it last ran.
    pub task_cpu: usize,
    /// `WF_*` of [`crate::layout`].
    pub wake_flags: u32,
    /// Not from an interrupt.
    pub in_task: bool,
    /// Now, in ns.
    pub now: u64,
    /// A random number, for rules that choose at random.
    pub random: u32,
}

/// Features and tunables.
impl System {
    /// Switches all features; bit i is the i-th of [`Code::features`].
    pub fn set_features(&mut self, features: u128) {
        self.sys.features = feature_words(features);
    }

    /// Is the feature on?
    pub fn sched_feat(&self, feature: Feature) -> bool {
        let bit = feature as usize;
        self.sys.features[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Do tasks prefer the LLC of their process? Not where there is only one.
    pub fn sched_cache_enabled(&self) -> bool {
        self.sched_cache_present != 0 && self.sched_feat(Feature::SCHED_CACHE)
    }

    /// The value of a tunable.
    pub fn tunable(&self, tunable: Tunable) -> i64 {
        self.sys.tunable[tunable as usize]
    }
}

/// An average's utilisation estimate without the flag in its top bit.
pub fn util_est(avg: &Avg) -> u32 {
    avg.util_est & 0x7fff_ffff
}
