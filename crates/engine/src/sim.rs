//! The state of a simulation and its event loop.

use crate::affinity::{self, contains};
use crate::cache::Caches;
use crate::change::Changes;
use crate::channel::Channel;
use crate::checks::{Checks, Watch};
use crate::contention::{Distances, Moment, SharedLine};
use crate::counters::{Counters, Thread, ThreadLatencies};
use crate::cpu::{Activity, Cpu};
use crate::group::{GroupUse, Groups};
use crate::intervals::{Interval, Intervals};
use crate::lazy_tlb::MmCounts;
use crate::ledger::cpu_time;
use crate::process::Processes;
use crate::queue::{EventQueue, NEVER};
use crate::queued::Queued;
use crate::segment::{Segment, Work};
use crate::shared::{Shared, Stop};
use crate::skip::{Skip, Skipped};
use crate::task::{State, Task};
use crate::timeline::Timeline;
use crate::trace::{CpuSchedstat, DomainSchedstat, Trace};
use coreward_machine::{Costs, IdleState, Machine, Topology};
use coreward_metrics::{CpuTime, LatencyHistogram, Metric, Metrics, Part};
use coreward_policy::{Code, CpuMask, Feature, PolicySettings, Reason, System, Task as PolicyTask};
use coreward_state::{TooLarge, policy_system};
use coreward_workload::{TaskNames, Workload};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulated time at which a run begins: the machine has been up for longer than any domain waits
/// between two balances, and is somewhere between two ticks.
pub(crate) const START_NS: u64 = 8_001_048_576;

/// CPUs of an idle machine are asleep for up to so long, in ns: at most a second, after which Linux gathers statistics
/// of memory again (sysctl vm.stat_interval).
const ASLEEP_NS: u32 = 1_000_000_000;

/// How to run a workload on a machine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Features and tunables of the policy.
    pub policy: PolicySettings,
    /// Seed of all randomness.
    pub seed: u64,
    /// How many task groups deep the workload runs; each has a load average that
    /// all CPUs share. 0 is the root group, which has none; see
    /// [`Settings::LOGIN_SESSION_DEPTH`].
    pub task_group_depth: u32,
    /// Simulated time at which a run is abandoned, in ns.
    pub limit_ns: u64,
}

impl Settings {
    /// That of a login session.
    pub const LOGIN_SESSION_DEPTH: u32 = coreward_workload::LOGIN_SESSION_DEPTH;
    /// The deepest nesting of task groups that can be asked for.
    pub const MAX_DEPTH: u32 = coreward_policy::layout::MAX_TG_DEPTH as u32;
}

/// Why a simulation could not be run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The policy has no room for the machine.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// None of the CPUs that a task asks for may be used.
    #[error("a task asks for CPUs {wanted}, which the workload may not use (allowed: {allowed})")]
    Affinity {
        /// The CPUs it asks for.
        wanted: String,
        /// Those that there are for the workload.
        allowed: String,
    },
    /// The machine cannot change so.
    #[error("{change}: {why}")]
    Change {
        /// The change.
        change: String,
        /// Why not.
        why: String,
    },
    /// All tasks wait for each other.
    #[error("the workload is stuck at {at_ns} ns: {waiting} tasks wait and nothing will wake them: {first}")]
    Deadlock {
        /// When, in simulated ns.
        at_ns: u64,
        /// How many tasks are left.
        waiting: usize,
        /// One of them, and what it waits for.
        first: String,
    },
    /// The limit was reached.
    #[error("the workload did not end within {limit_ns} ns of simulated time")]
    Limit {
        /// The limit.
        limit_ns: u64,
    },
    /// The run has more intervals than are kept.
    #[error("the run has more than {most} intervals: longer ones are needed")]
    Intervals {
        /// How many are kept.
        most: usize,
    },
    /// It was told to end early; see [`Simulation::with_interrupt`].
    #[error("the run was interrupted")]
    Interrupted,
}

/// What nothing interrupts.
static NEVER_SET: AtomicBool = AtomicBool::new(false);

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The metrics of the measured part.
    pub metrics: Metrics,
    /// What the CPUs' time of the measured part was spent on.
    pub cpu_time: CpuTime,
    /// What decided.
    pub code: &'static Code,
    /// How often each reason decided a placement or balance, in the order of [`Code::reasons`].
    pub reasons: Vec<u64>,
    /// Wakeup latencies, ns.
    pub wakeup_latency: LatencyHistogram,
    /// The threads that the workload tells apart (rt-app's), in the order in which they were created, with latencies of the
    /// measured part.
    pub threads: Vec<Thread>,
    /// Scheduling events of the whole run: wakeups, switches, ticks, timers.
    pub events: u64,
    /// Waits for a semaphore that ended although nothing had come, because nothing else could have happened.
    pub lent: u64,
    /// Counters of each CPU, of the whole run.
    pub schedstat: Vec<CpuSchedstat>,
    /// Simulated time at the end, ns.
    pub end_ns: u64,
    /// The measured part in intervals; empty without [`Simulation::with_intervals`].
    pub intervals: Vec<Interval>,
    /// The part that was not simulated; None without [`Simulation::with_skip`], or if no part was steady.
    pub skipped: Option<Skipped>,
    /// The invariants of the whole run.
    pub checks: Checks,
    /// How many changes of the machine the run ended before.
    pub changes_left: usize,
    /// What task groups used, if there are some inside the workload's or if that had a quota.
    pub groups: Vec<GroupUse>,
}

impl Outcome {
    /// The reasons that occurred, with how often.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        self.code.reasons().zip(&self.reasons).filter(|(_, n)| **n > 0).map(|(r, n)| (r, *n))
    }
}

/// One workload on one machine under one policy.
pub struct Simulation<'a> {
    pub(crate) now: u64,
    pub(crate) sys: System,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) tasks: Vec<Task<'a>>,
    /// None unless the policy asks what they prefer.
    pub(crate) processes: Option<Box<Processes>>,
    pub(crate) mm_counts: MmCounts,
    pub(crate) intervals: Intervals,
    pub(crate) skip: Skip,
    pub(crate) watch: Watch,
    pub(crate) changes: Changes<'a>,
    pub(crate) groups: Groups,
    pub(crate) channels: Vec<Channel>,
    /// Memory of the messages that are queued on sockets.
    pub(crate) queued: Queued,
    /// Mutexes, conditions and the like.
    pub(crate) shared: Shared,
    /// When the workload stops.
    pub(crate) stop: Stop,
    pub(crate) workload: &'a Workload,
    pub(crate) costs: Costs,
    pub(crate) idle_states: &'a [IdleState],
    pub(crate) distances: Distances,
    pub(crate) caches: Caches,
    /// Of the workload's task group and the groups around it, innermost first.
    pub(crate) tg_load_avg: Vec<SharedLine>,
    pub(crate) counters: Counters,
    /// Latencies are also counted for each thread.
    pub(crate) by_thread: bool,
    pub(crate) schedstat: Vec<CpuSchedstat>,
    pub(crate) trace: &'a mut dyn Trace,
    /// What happens now happens in an interrupt of the current task.
    pub(crate) in_interrupt: bool,
    pub(crate) rng: Pcg64Mcg,
    /// Of the draws from distributions.
    pub(crate) seed: u64,
    /// The idle task of each CPU, as a waker for the policy.
    pub(crate) swappers: Vec<PolicyTask>,
    /// The CPUs that all tasks may use, then those of the workload's sets.
    pub(crate) masks: Vec<CpuMask>,
    /// When these last changed.
    pub(crate) masks_since: u64,
    pub(crate) nohz_idle: CpuMask,
    pub(crate) sleepers: BinaryHeap<Reverse<(u64, u32)>>,
    pub(crate) tick_ns: u64,
    /// log2 of the bytes of a cache line.
    pub(crate) line_shift: u32,
    pub(crate) nr_live: usize,
    /// How often [`Simulation::lend`] ended a wait.
    pub(crate) lent: u64,
    pub(crate) nr_idle: u64,
    pub(crate) nr_waiting: u64,
    pub(crate) conservation_at: u64,
    pub(crate) marked_start: Option<u64>,
    pub(crate) measured: Option<Measured>,
    pub(crate) events_before: u64,
    pub(crate) list_clock: u64,
    queue: EventQueue,
    limit_ns: u64,
    interrupt: &'a AtomicBool,
    smt_pct: u64,
}

/// The counters at the end of the measured part.
pub(crate) struct Measured {
    pub(crate) metrics: Metrics,
    pub(crate) cpu_time: CpuTime,
    pub(crate) reasons: Vec<u64>,
    pub(crate) latency: LatencyHistogram,
    pub(crate) threads: Vec<Thread>,
}

impl<'a> Simulation<'a> {
    /// Prepares a run. `topology` has to be built from `machine`. The workload runs in the
    /// first partition; the CPUs of others stay idle, and do not balance for it.
    ///
    /// # Errors
    /// The machine has more domains than the policy has room for, or none of the CPUs that a task asks for.
    pub fn new(
        machine: &'a Machine,
        topology: &Topology,
        workload: &'a Workload,
        settings: &Settings,
        trace: &'a mut dyn Trace,
    ) -> Result<Self, SimError> {
        let mut sys = policy_system(machine, topology, &settings.policy, START_NS)?;
        sys.task_group_depth = settings.task_group_depth;
        let nr_cpus = machine.nr_cpus();
        let cpus: Vec<Cpu> = (0..nr_cpus)
            .map(|cpu| {
                let siblings = machine.smt_mask(cpu).iter().filter(|c| *c != cpu).collect();
                Cpu::new(siblings, u64::from(machine.cpus[cpu].capacity), Timeline::new(&sys))
            })
            .collect();
        let masks = affinity::masks(&topology.partitions[0], &workload.cpu_sets)?;
        let schedstat = (0..nr_cpus)
            .map(|cpu| CpuSchedstat {
                domains: vec![DomainSchedstat::default(); topology.cpu_domains[cpu].len()],
                ..CpuSchedstat::default()
            })
            .collect();
        let mut sim = Simulation {
            now: START_NS,
            cpus,
            tasks: Vec::new(),
            processes: Processes::new(&sys, machine),
            mm_counts: MmCounts::default(),
            intervals: Intervals::none(sys.code()),
            skip: Skip::nothing(),
            watch: Watch::new(nr_cpus),
            changes: Changes::none(),
            groups: Groups::new(&workload.groups, nr_cpus),
            channels: workload.channels.iter().map(|c| Channel::new(c.kind)).collect(),
            queued: Queued::default(),
            shared: Shared::new(&workload.shared, nr_cpus, machine.caches.line_bytes.max(1) as u32),
            stop: Stop::new(workload.limits),
            workload,
            costs: machine.costs.clone(),
            idle_states: &machine.idle_states,
            distances: Distances::new(machine),
            caches: Caches::new(machine),
            tg_load_avg: (0..settings.task_group_depth)
                .map(|_| SharedLine::new(nr_cpus, machine.nr_llcs(), machine.costs.llc_line_ns))
                .collect(),
            counters: Counters::new(sys.code()),
            by_thread: workload.tells_threads_apart(),
            schedstat,
            trace,
            in_interrupt: false,
            rng: Pcg64Mcg::seed_from_u64(settings.seed),
            seed: settings.seed,
            swappers: vec![PolicyTask::default(); nr_cpus],
            nohz_idle: masks[0],
            masks,
            masks_since: START_NS,
            sleepers: BinaryHeap::new(),
            tick_ns: 1_000_000_000 / u64::from(machine.hz),
            line_shift: machine.caches.line_bytes.max(1).ilog2(),
            nr_live: 0,
            lent: 0,
            nr_idle: topology.partitions[0].len() as u64,
            nr_waiting: 0,
            conservation_at: START_NS,
            marked_start: None,
            measured: None,
            events_before: 0,
            list_clock: 0,
            queue: EventQueue::new(nr_cpus + 1),
            limit_ns: settings.limit_ns,
            interrupt: &NEVER_SET,
            smt_pct: machine.costs.smt_pct,
            sys,
        };
        let partitions: Vec<CpuMask> = topology.partitions.iter().map(affinity::mask).collect();
        sim.check_domains(&partitions);
        sim.stagger_balance();
        sim.stagger_idle();
        for (index, group) in workload.groups.iter().enumerate() {
            if let Some((quota_ns, period_ns)) = group.max {
                sim.set_group_bandwidth(index + 1, Some(quota_ns), period_ns);
            }
        }
        sim.start();
        Ok(sim)
    }

    /// Each CPU balanced each of its domains at a different time before the run, because CPUs that
    /// have been running and idling for long do not all balance at once.
    fn stagger_balance(&mut self) {
        for cpu in 0..self.cpus.len() {
            for level in 0..self.sys.cpu[cpu].nr_sd as usize {
                let interval_ns = self.sys.cpu_sd[cpu][level].balance_interval_ms * 1_000_000;
                self.sys.cpu_sd[cpu][level].last_balance = START_NS - u64::from(self.random(interval_ns));
            }
        }
    }

    /// The CPUs of a machine that has been idle went idle at different times, and sleep deeply. Which one
    /// was the last matters: a new task starts there or beside it.
    fn stagger_idle(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.sys.cpu[cpu].idle_stamp = START_NS - u64::from(self.random(ASLEEP_NS));
            self.enter_idle_state(cpu);
        }
    }

    /// The first task begins on a CPU of the machine, as if a shell there had started it.
    fn start(&mut self) {
        let allowed: Vec<usize> = self.allowed().collect();
        let cpu = allowed[self.random(allowed.len() as u32) as usize];
        let task = self.new_task(0, 0, true, None, cpu);
        self.wake_up_new_task(task, cpu);
        self.after_interrupt(cpu);
        self.reprogram(cpu);
    }

    /// Another thread can end the run by setting a flag. It is looked at before each event, thus every few microseconds.
    pub fn with_interrupt(self, interrupt: &'a AtomicBool) -> Self {
        Simulation { interrupt, ..self }
    }

    /// Runs to the end of the workload.
    ///
    /// # Errors
    /// The workload is stuck, does not end within the limit, or is interrupted.
    pub fn run(mut self) -> Result<Outcome, SimError> {
        while self.nr_live > 0 {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(SimError::Interrupted);
            }
            self.step()?;
        }
        Ok(self.outcome())
    }

    /// Carries out the next event.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), SimError> {
        let (mut time, slot) = self.queue.next();
        if (time == NEVER || self.only_ends(slot)) && self.lend() {
            return Ok(());
        }
        if time == NEVER {
            let first = self.stuck_task();
            return Err(SimError::Deadlock { at_ns: self.now - START_NS, waiting: self.nr_live, first });
        }
        if time - START_NS + self.skip.skipped_ns() > self.limit_ns {
            return Err(SimError::Limit { limit_ns: self.limit_ns });
        }
        let changes = self.changes.next_at <= time;
        if changes {
            time = self.changes.next_at;
        }
        if time >= self.intervals.ends_at() {
            self.end_intervals(time)?;
        }
        if time >= self.skip.next_at {
            self.observe(time);
        }
        if time >= self.watch.next_at {
            self.check_invariants(time);
        }
        self.now = time;
        if changes {
            self.change();
        } else if slot == self.cpus.len() {
            self.expire_sleepers();
        } else {
            self.cpu_event(slot);
        }
        Ok(())
    }

    fn cpu_event(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        if c.ipi_at == self.now {
            self.cpus[cpu].ipi_at = NEVER;
            self.counters.timers += 1;
            self.interrupted(cpu);
        } else if c.tick_at == self.now {
            self.counters.ticks += 1;
            self.tick(cpu);
        } else if c.hrtick_at == self.now {
            self.counters.timers += 1;
            self.hrtick(cpu);
        } else if c.activation_at() == self.now {
            self.counters.timers += 1;
            self.activate_next(cpu);
        } else {
            self.counters.timers += 1;
            let activity = c.activity;
            if activity != Activity::Idle {
                self.cpus[cpu].bill.settle(self.now, &mut self.counters.spent);
            }
            match activity {
                Activity::Task => self.finish_op(cpu),
                Activity::GoingIdle => self.enter_idle(cpu),
                Activity::Waking => self.leave_idle(cpu),
                Activity::Idle => {}
            }
        }
        self.reprogram(cpu);
    }

    /// Tells the event queue when `cpu` wants to be called next.
    pub(crate) fn reprogram(&mut self, cpu: usize) {
        self.queue.set(cpu, self.cpus[cpu].next_event().min(NEVER));
    }

    pub(crate) fn reprogram_sleepers(&mut self) {
        let mut next = self.sleepers.peek().map_or(NEVER, |Reverse((at, _))| *at);
        if self.groups.used {
            next = self.groups.list.iter().map(|group| group.bandwidth.next_at()).fold(next, u64::min);
        }
        self.queue.set(self.cpus.len(), next);
    }

    fn outcome(mut self) -> Outcome {
        let events = self.events_before + self.counters.sim_events();
        let measured = self.measured.take().unwrap_or_else(|| self.measure());
        self.save_newidle_costs();
        let groups = self.group_use();
        Outcome {
            metrics: measured.metrics,
            cpu_time: measured.cpu_time,
            code: self.sys.code(),
            reasons: measured.reasons,
            wakeup_latency: measured.latency,
            threads: measured.threads,
            events,
            lent: self.lent,
            schedstat: self.schedstat,
            end_ns: self.now - START_NS,
            skipped: self.skip.skipped(),
            intervals: self.intervals.take(),
            groups,
            checks: self.watch.found,
            changes_left: self.changes.left(),
        }
    }

    fn save_newidle_costs(&mut self) {
        for (cpu, stat) in self.schedstat.iter_mut().enumerate() {
            stat.avg_idle = self.sys.cpu[cpu].avg_idle;
            stat.max_idle_balance_cost = self.sys.cpu[cpu].max_idle_balance_cost;
            for (domain, sd) in stat.domains.iter_mut().zip(&self.sys.cpu_sd[cpu]) {
                domain.max_newidle_lb_cost = sd.max_newidle_lb_cost;
            }
        }
    }

    /// The counters as they are now. Without a marked start, the run began at 0.
    pub(crate) fn measure(&mut self) -> Measured {
        let runtime = self.measured_ns();
        let preferred_llc = self.processes.is_some();
        let all_cpus_ns = runtime * self.cpus.len() as u64;
        let skipped = self.skip.skipped().is_some();
        let counters = self.all_counters();
        debug_assert!(
            skipped || counters.spent.iter().sum::<u64>() == all_cpus_ns,
            "time is missing in the ledger"
        );
        let cpu_time = cpu_time(&counters.spent, counters.idle_while_waiting_ns, all_cpus_ns);
        let mut metrics = counters.metrics(runtime);
        if preferred_llc {
            counters.add_preferred_llc(&mut metrics);
        }
        let (reasons, latency) = (counters.reasons.clone(), counters.latency.clone());
        let by_thread = counters.threads.clone();
        // of intervals there are none, which need not begin with a second
        for (metric, events) in counters.event_rate_percentiles(runtime as f64 / 1e9) {
            metrics.set(metric, events);
        }
        // what tasks would have done in a part that was skipped is not known of each
        if let Some(stddev) = self.events_per_task_stddev().filter(|_| !skipped) {
            metrics.set(Metric::events_per_task_stddev, stddev);
        }
        let mut names = TaskNames::new(self.workload);
        let names = self.tasks.iter().map(|task| names.next(task.program, task.base));
        // the first one is the tool's own, which starts the others
        let threads = names.enumerate().filter_map(|(index, name)| {
            let ThreadLatencies { wakeups, events } = by_thread.get(&(index as u32)).filter(|_| index > 0)?;
            let (wakeup_latency, event_latency) = (wakeups.summary(), events.summary());
            Some(Thread { name, wakeup_latency, event_latency })
        });
        let threads = threads.collect();
        Measured { metrics, cpu_time, reasons, latency, threads }
    }

    /// The measured part begins: everything counted so far belongs to the start-up.
    pub(crate) fn mark_start(&mut self) {
        self.settle_bills();
        self.settle_conservation();
        self.events_before += self.counters.sim_events();
        self.counters = Counters::new(self.sys.code());
        self.marked_start = Some(self.now);
        self.intervals.start(self.sys.code(), self.now);
        self.skip.start(self.now);
        self.stop.start(self.now);
    }

    /// The CPUs that tasks may use.
    fn allowed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.cpus.len()).filter(|cpu| contains(&self.masks[0], *cpu))
    }

    /// Brings what the CPUs' time was spent on, and the task-clocks, to now.
    pub(crate) fn settle_bills(&mut self) {
        for c in &mut self.cpus {
            if c.curr.is_some() {
                self.counters.task_clock_ns += self.now.saturating_sub(c.clocked_at);
                c.clocked_at = self.now.max(c.clocked_at);
            }
            match c.activity {
                Activity::Idle => c.bill.idle(self.now, &mut self.counters.spent),
                _ => c.bill.spend(self.now, &mut self.counters.spent),
            }
        }
    }

    /// Accounts the time since idle CPUs or waiting tasks last changed: as many CPUs as
    /// there are waiting tasks should not have been idle.
    pub(crate) fn settle_conservation(&mut self) {
        let violated = self.nr_idle.min(self.nr_waiting);
        self.counters.idle_while_waiting_ns += (self.now - self.conservation_at) * violated;
        self.conservation_at = self.now;
    }

    pub(crate) fn set_waiting(&mut self, up: bool) {
        self.settle_conservation();
        self.nr_waiting = if up { self.nr_waiting + 1 } else { self.nr_waiting - 1 };
    }

    // ---- time on a CPU -----------------------------------------------------

    /// The speed of a CPU (1024 is full): its capacity, shared with busy siblings.
    fn shared_rate(&self, cpu: usize) -> u64 {
        let capacity = u64::from(self.sys.cpu[cpu].capacity_orig);
        let n = u64::from(self.cpus[cpu].active_siblings);
        // each further thread adds what the second one adds
        (capacity * (100 + n * (self.smt_pct - 100)) / (100 * (n + 1))).max(1)
    }

    /// The current time of `cpu`, which may be in the middle of kernel work.
    #[inline]
    pub(crate) fn local_now(&self, cpu: usize) -> u64 {
        let pending = self.cpus[cpu].pending;
        if pending.is_zero() { self.now } else { self.now + pending.duration(self.cpus[cpu].rate) }
    }

    #[inline]
    pub(crate) fn moment(&self, cpu: usize) -> Moment {
        Moment { now: self.now, at: self.local_now(cpu) }
    }

    #[inline]
    pub(crate) fn charge_work(&mut self, cpu: usize, part: Part, ns: u64) {
        let ns = self.kernel_jittered(ns);
        let c = &mut self.cpus[cpu];
        c.pending.work += ns;
        c.bill.work(part, ns);
    }

    #[inline]
    pub(crate) fn charge_stall(&mut self, cpu: usize, part: Part, ns: u64) {
        let c = &mut self.cpus[cpu];
        c.pending.stall += ns;
        c.bill.stall(part, ns);
    }

    /// `cpu` is busy with pending work and then with `work`, the stalls of which are on its bill already.
    #[inline]
    pub(crate) fn begin_segment(&mut self, cpu: usize, activity: Activity, work: Work) {
        let c = &mut self.cpus[cpu];
        c.activity = activity;
        let mut all = std::mem::take(&mut c.pending);
        all += work;
        c.bill.work(Part::Task, work.work);
        c.bill.begin();
        c.segment = Segment::new(self.now, all, c.rate);
    }

    /// Pending work delays the current segment of `cpu`.
    pub(crate) fn extend_segment(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let pending = std::mem::take(&mut c.pending);
        if !pending.is_zero() {
            c.segment.interrupt(self.now, pending);
            c.bill.begin();
        }
    }

    /// `cpu` starts or stops using its core: its siblings slow down or speed up.
    pub(crate) fn core_use_changed(&mut self, cpu: usize, active: bool) {
        for i in 0..self.cpus[cpu].siblings.len() {
            let sibling = self.cpus[cpu].siblings[i];
            let c = &mut self.cpus[sibling];
            c.active_siblings = if active { c.active_siblings + 1 } else { c.active_siblings - 1 };
            let rate = self.shared_rate(sibling);
            let c = &mut self.cpus[sibling];
            c.rate = rate;
            if c.activity != Activity::Idle {
                c.segment.retime(self.now, rate);
                self.reprogram(sibling);
            }
        }
    }

    /// The task becomes the youngest of its queue.
    pub(crate) fn touch(&mut self, task: u32) {
        self.list_clock += 1;
        self.tasks[task as usize].list_order = self.list_clock;
    }

    // ---- small helpers -----------------------------------------------------

    pub(crate) fn feature(&self, feature: Feature) -> bool {
        self.sys.sched_feat(feature)
    }

    /// Uniform in 0..n.
    pub(crate) fn random(&mut self, n: u32) -> u32 {
        ((u64::from(self.rng.next_u32()) * u64::from(n)) >> 32) as u32
    }

    fn expire_sleepers(&mut self) {
        while let Some(&Reverse((at, task))) = self.sleepers.peek() {
            if at > self.now {
                break;
            }
            self.sleepers.pop();
            self.counters.timers += 1;
            // the timer fires on the CPU on which the task went to sleep, or where that one's timers have moved
            let slept_on = self.tasks[task as usize].cpu();
            let cpu =
                if contains(&self.masks[0], slept_on) { slept_on } else { self.fallback_cpu(task, slept_on) };
            debug_assert_eq!(self.tasks[task as usize].state, State::Sleeping);
            self.timer_interrupt(cpu, task);
        }
        self.bandwidth_timers();
        self.reprogram_sleepers();
    }
}
