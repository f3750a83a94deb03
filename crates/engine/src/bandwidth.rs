//! CPU bandwidth control of task groups (`cpu.max`), as kernel/sched/fair.c has it since 6.18.
//!
//! A group's quota is refilled each period. The group's queue on a CPU takes slices of it, and is throttled when it has
//! used up its last one and there is no more. Then each of the group's tasks on that CPU leaves the queue on its way out of
//! the kernel: the current one, and others when they are picked. They return when the quota is refilled. Before 6.18, the
//! whole queue was taken out at once, in the middle of system calls, too.

use crate::affinity::contains;
use crate::fair::Enqueue;
use crate::queue::NEVER;
use crate::sim::Simulation;
use crate::task::State;
use coreward_metrics::Part;

/// How much of the quota a CPU takes at a time, in ns (`sched_cfs_bandwidth_slice_us`).
const SLICE_NS: u64 = 5_000_000;
/// What the queue of a CPU keeps when its last task sleeps, in ns (min_cfs_rq_runtime).
const KEPT_NS: i64 = 1_000_000;
/// How long returned quota waits for more before it is distributed, in ns (cfs_bandwidth_slack_period).
const SLACK_NS: u64 = 5_000_000;
/// Returned quota is not distributed so shortly before a refill, in ns (min_bandwidth_expiration).
const REFILL_SOON_NS: u64 = 2_000_000;

/// A group's queue on a CPU.
#[derive(Default)]
struct Local {
    /// What it has left of its slice, in ns.
    remaining: i64,
    /// Since when it is throttled.
    throttled: Option<u64>,
    /// Tasks that have left the queue until then (throttled_limbo_list).
    limbo: Vec<u32>,
}

/// The bandwidth of a group.
pub(crate) struct Bandwidth {
    /// None without a limit.
    quota_ns: Option<u64>,
    period_ns: u64,
    /// What is left of the quota.
    runtime: u64,
    /// When the period ends; [`NEVER`] while nothing uses the quota.
    refill_at: u64,
    /// When a period ended last.
    refilled_at: u64,
    /// When returned quota is distributed; [`NEVER`] if there is none.
    slack_at: u64,
    /// Nothing was used of the quota in this period.
    idle: bool,
    /// CPUs in the order in which they were throttled.
    throttled_cpus: Vec<usize>,
    local: Vec<Local>,
    pub(crate) periods: u64,
    pub(crate) throttled_periods: u64,
    throttled_ns: u64,
}

impl Bandwidth {
    /// No limit.
    pub(crate) fn none(nr_cpus: usize) -> Bandwidth {
        Bandwidth {
            quota_ns: None,
            period_ns: 0,
            runtime: 0,
            refill_at: NEVER,
            refilled_at: 0,
            slack_at: NEVER,
            idle: false,
            throttled_cpus: Vec::new(),
            local: std::iter::repeat_with(Local::default).take(nr_cpus).collect(),
            periods: 0,
            throttled_periods: 0,
            throttled_ns: 0,
        }
    }

    pub(crate) fn is_throttled(&self, cpu: usize) -> bool {
        self.local[cpu].throttled.is_some()
    }

    /// When its next timer fires.
    pub(crate) fn next_at(&self) -> u64 {
        self.refill_at.min(self.slack_at)
    }

    /// How long queues were throttled until `now`.
    pub(crate) fn throttled_ns(&self, now: u64) -> u64 {
        let still = self.local.iter().filter_map(|local| local.throttled).map(|since| now - since);
        self.throttled_ns + still.sum::<u64>()
    }

    /// Charges what a task ran. True if the queue has just been throttled.
    fn account(&mut self, cpu: usize, delta: u64, now: u64) -> bool {
        if self.quota_ns.is_none() {
            return false;
        }
        self.local[cpu].remaining -= delta as i64;
        let missing = SLICE_NS as i64 - self.local[cpu].remaining;
        if self.local[cpu].remaining > 0 || self.is_throttled(cpu) {
            return false;
        }
        self.start(now);
        let amount = self.runtime.min(missing as u64);
        if amount > 0 {
            self.runtime -= amount;
            self.idle = false;
        }
        self.local[cpu].remaining += amount as i64;
        if self.local[cpu].remaining > 0 {
            return false;
        }
        self.local[cpu].throttled = Some(now);
        self.throttled_cpus.push(cpu);
        true
    }

    /// Periods go on from the last one (start_cfs_bandwidth()).
    fn start(&mut self, now: u64) {
        if self.refill_at == NEVER {
            self.refill_at = now - (now - self.refilled_at) % self.period_ns + self.period_ns;
        }
    }

    /// The period ends. True if throttled queues get some of the new quota.
    fn refill(&mut self) -> bool {
        let Some(quota) = self.quota_ns else {
            self.refill_at = NEVER;
            return false;
        };
        self.periods += 1;
        self.runtime = quota;
        self.refilled_at = self.refill_at;
        self.refill_at += self.period_ns;
        let throttled = !self.throttled_cpus.is_empty();
        if throttled {
            self.throttled_periods += 1;
            self.idle = false;
        } else if std::mem::replace(&mut self.idle, true) {
            self.refill_at = NEVER;
        }
        throttled
    }

    /// Gives a throttled queue what it lacks. True if that suffices.
    fn give(&mut self, cpu: usize) -> bool {
        let missing = (1 - self.local[cpu].remaining).max(0) as u64;
        let amount = missing.min(self.runtime);
        self.runtime -= amount;
        self.local[cpu].remaining += amount as i64;
        self.local[cpu].remaining > 0
    }

    /// The queue may run again; these tasks return to it.
    fn unthrottle(&mut self, cpu: usize, now: u64) -> Vec<u32> {
        self.throttled_cpus.retain(|throttled| *throttled != cpu);
        if let Some(since) = self.local[cpu].throttled.take() {
            self.throttled_ns += now - since;
        }
        std::mem::take(&mut self.local[cpu].limbo)
    }

    /// The queue has no task left: most of its slice goes back (return_cfs_rq_runtime()).
    fn give_back(&mut self, cpu: usize, now: u64) {
        let slack = self.local[cpu].remaining - KEPT_NS;
        if self.quota_ns.is_none() || slack <= 0 {
            return;
        }
        self.local[cpu].remaining -= slack;
        self.runtime += slack as u64;
        let soon = self.refill_at < now + SLACK_NS + REFILL_SOON_NS;
        if self.runtime > SLICE_NS && !self.throttled_cpus.is_empty() && self.slack_at == NEVER && !soon {
            self.slack_at = now + SLACK_NS;
        }
    }
}

impl Simulation<'_> {
    /// The current task of `cpu` ran for `delta` ns.
    #[cold]
    pub(crate) fn account_cfs_rq_runtime(&mut self, cpu: usize, curr: u32, delta: u64) {
        let now = self.now;
        for group in self.groups_of(curr) {
            let group = &mut self.groups.list[group];
            group.cpu_ns += delta;
            self.cpus[cpu].need_resched |= group.bandwidth.account(cpu, delta, now);
        }
        self.reprogram_sleepers();
    }

    /// The current task of `cpu` leaves its queue if a quota keeps it from running; not in the middle of a system call.
    pub(crate) fn throttle_curr(&mut self, cpu: usize) {
        let Some(curr) = self.cpus[cpu].curr else { return };
        let t = &self.tasks[curr as usize];
        let in_kernel = t.left.is_some() && !t.is_in_user_space();
        if t.state == State::Running && !in_kernel && self.is_throttled(curr, cpu) {
            self.tasks[curr as usize].state = State::Throttled;
            self.send_to_limbo(cpu, curr);
        }
    }

    /// A picked task leaves `cpu`'s queue instead, if a quota keeps it from running.
    pub(crate) fn throttle_picked(&mut self, cpu: usize, task: u32) -> bool {
        let t = &self.tasks[task as usize];
        if (t.left.is_some() && !t.is_in_user_space()) || !self.is_throttled(task, cpu) {
            return false;
        }
        self.charge_work(cpu, Part::Queue, self.costs.dequeue_ns);
        self.dequeue_waiting(cpu, task, true);
        self.account_dequeue(cpu, task, false, cpu);
        self.tasks[task as usize].state = State::Throttled;
        self.set_waiting(false);
        self.send_to_limbo(cpu, task);
        true
    }

    fn send_to_limbo(&mut self, cpu: usize, task: u32) {
        if let Some(group) = self.throttling_group(task, cpu) {
            self.groups.list[group].bandwidth.local[cpu].limbo.push(task);
        }
    }

    /// A task of `cpu` sleeps or ends: its groups' queues there may have none left.
    pub(crate) fn return_cfs_rq_runtime(&mut self, cpu: usize, task: u32) {
        if !self.groups.used {
            return;
        }
        for group in self.groups_of(task) {
            if !self.group_is_queued(group, cpu, task) {
                self.groups.list[group].bandwidth.give_back(cpu, self.now);
            }
        }
        self.reprogram_sleepers();
    }

    /// The timers of quotas that are due.
    pub(crate) fn bandwidth_timers(&mut self) {
        for group in 0..self.groups.list.len() {
            let bandwidth = &mut self.groups.list[group].bandwidth;
            if bandwidth.slack_at <= self.now {
                bandwidth.slack_at = NEVER;
                if bandwidth.refill_at >= self.now + REFILL_SOON_NS && bandwidth.runtime > SLICE_NS {
                    self.distribute_cfs_runtime(group);
                }
            }
            let bandwidth = &mut self.groups.list[group].bandwidth;
            if bandwidth.refill_at <= self.now && bandwidth.refill() {
                self.distribute_cfs_runtime(group);
            }
        }
    }

    /// Throttled queues get what they lack, as far as the quota suffices.
    fn distribute_cfs_runtime(&mut self, group: usize) {
        for cpu in self.groups.list[group].bandwidth.throttled_cpus.clone() {
            self.update_curr(cpu, cpu);
            if !self.groups.list[group].bandwidth.give(cpu) {
                break;
            }
            self.unthrottle_cfs_rq(group, cpu);
        }
    }

    /// The tasks of a group return to `cpu`'s queue.
    fn unthrottle_cfs_rq(&mut self, group: usize, cpu: usize) {
        let tasks = self.groups.list[group].bandwidth.unthrottle(cpu, self.now);
        // an interrupt on that CPU does it, or on another one if it is offline
        let by = match tasks.first() {
            Some(task) if !contains(&self.masks[0], cpu) => self.fallback_cpu(*task, cpu),
            _ => cpu,
        };
        self.charge_work(by, Part::Interrupt, self.costs.ipi_handle_ns);
        for task in tasks {
            if self.is_throttled(task, cpu) {
                self.send_to_limbo(cpu, task);
                continue;
            }
            let allowed = contains(&self.masks[self.tasks[task as usize].allowed], cpu);
            let to = if allowed { cpu } else { self.fallback_cpu(task, cpu) };
            if to != cpu {
                self.migrate_task_rq(task, cpu);
                self.set_task_cpu(task, to, by);
            }
            self.activate_task(task, to, by, Enqueue::Wakeup);
            self.wakeup_preempt(task, to, by, 0);
        }
        self.after_interrupt(by);
        self.reprogram(by);
    }

    /// `echo QUOTA PERIOD > cpu.max` (tg_set_cfs_bandwidth()).
    pub(crate) fn set_group_bandwidth(&mut self, group: usize, quota_ns: Option<u64>, period_ns: u64) {
        let now = self.now;
        for cpu in 0..self.cpus.len() {
            self.update_curr(cpu, cpu);
        }
        let bandwidth = &mut self.groups.list[group].bandwidth;
        (bandwidth.quota_ns, bandwidth.period_ns) = (quota_ns, period_ns);
        bandwidth.runtime = quota_ns.unwrap_or(0);
        bandwidth.refilled_at = now;
        (bandwidth.refill_at, bandwidth.slack_at) = (NEVER, NEVER);
        if quota_ns.is_some() {
            bandwidth.refill_at = now + period_ns;
        }
        for local in &mut bandwidth.local {
            local.remaining = 1;
        }
        for cpu in bandwidth.throttled_cpus.clone() {
            self.unthrottle_cfs_rq(group, cpu);
        }
        self.reprogram_sleepers();
    }
}
