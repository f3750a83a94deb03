//! What an observer of a run sees: the events that would trigger tracepoints, and
//! the counters that `/proc/schedstat` and debugfs would show.

use coreward_policy::Decision;

pub use crate::contention::Moment;

/// How a task leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It wants to continue.
    Preempted,
    /// It waits for something.
    Blocked,
    /// It has ended.
    Exited,
}

/// Who wakes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The task that runs on the waking CPU; 0 is the idle task.
    pub pid: i32,
    /// An interrupt of that task wakes, not the task.
    pub in_interrupt: bool,
}

/// Sees the scheduling events of a run. Times are in ns; task 0 is the idle task. Events come in the order of `now`. A
/// tracepoint fires `at` the time to which its CPU has got with the kernel's work, which may be after the next event of
/// another CPU.
pub trait Trace {
    /// A task was created; `program` and `base` are what [`Op::Spawn`](coreward_workload::Op::Spawn) gives it.
    fn fork(&mut self, now: u64, pid: i32, process: i32, program: u32, base: u32);
    /// A task was woken on `cpu` and will run on `target`; `new` for its first time.
    fn waking(&mut self, when: Moment, cpu: usize, waker: Waker, pid: i32, target: usize, new: bool);
    /// A task moved between CPUs.
    fn migrate(&mut self, now: u64, cpu: usize, pid: i32, from: usize, to: usize);
    /// A CPU switched tasks.
    fn switch(&mut self, when: Moment, cpu: usize, prev: i32, leaving: Leaving, next: i32);
    /// The policy placed a task, or looked for tasks to pull. Most observers ignore this.
    fn decision(&mut self, _: &Decision) {}
}

/// Sees nothing.
pub struct NoTrace;

impl Trace for NoTrace {
    fn fork(&mut self, _: u64, _: i32, _: i32, _: u32, _: u32) {}
    fn waking(&mut self, _: Moment, _: usize, _: Waker, _: i32, _: usize, _: bool) {}
    fn migrate(&mut self, _: u64, _: usize, _: i32, _: usize, _: usize) {}
    fn switch(&mut self, _: Moment, _: usize, _: i32, _: Leaving, _: i32) {}
}

/// A CPU's counters as in `/proc/schedstat`, and what it has learnt about newidle balance. They cover the whole run,
/// from its first task to the end of its last, not only the measured part.
#[derive(Clone, Debug, Default)]
pub struct CpuSchedstat {
    /// Calls of `sched_yield()`.
    pub yld_count: u64,
    /// Calls of schedule().
    pub sched_count: u64,
    /// Of these, with the idle task as the next.
    pub sched_goidle: u64,
    /// Wakeups by this CPU.
    pub ttwu_count: u64,
    /// Those among them of tasks that were last on this CPU and stay.
    pub ttwu_local: u64,
    /// Time from switches to tasks to switches away from them, ns. It excludes the transitions to and from idle, which
    /// are busy time, too.
    pub rq_cpu_time: u64,
    /// Time that tasks waited here, ns.
    pub run_delay: u64,
    /// Time slices run here.
    pub pcount: u64,
    /// The average idle time at the end, ns.
    pub avg_idle: u64,
    /// The highest cost of one newidle balance of the CPU at the end, ns; avg_idle is at most
    /// twice that.
    pub max_idle_balance_cost: u64,
    /// Its domains, lowest first.
    pub domains: Vec<DomainSchedstat>,
}

/// A domain's balance counters, by what the CPU was doing: busy, idle, newly idle.
#[derive(Clone, Debug, Default)]
pub struct DomainSchedstat {
    /// Attempts.
    pub lb_count: [u64; 3],
    /// Found to be balanced.
    pub lb_balanced: [u64; 3],
    /// Wanted to move tasks and could not.
    pub lb_failed: [u64; 3],
    /// Sum of the imbalances found.
    pub lb_imbalance: [u64; 3],
    /// Tasks moved.
    pub lb_gained: [u64; 3],
    /// No busiest queue.
    pub lb_nobusyq: [u64; 3],
    /// No busiest group.
    pub lb_nobusyg: [u64; 3],
    /// Active balances that were begun.
    pub alb_count: u64,
    /// Those that moved nothing.
    pub alb_failed: u64,
    /// Those that moved a task.
    pub alb_pushed: u64,
    /// Wakeups that moved a task over this domain.
    pub ttwu_move_affine: u64,
    /// Wakeups of tasks last run elsewhere in this domain.
    pub ttwu_wake_remote: u64,
    /// The highest cost of a newidle balance of the domain at the end, decayed, ns.
    pub max_newidle_lb_cost: u64,
}
