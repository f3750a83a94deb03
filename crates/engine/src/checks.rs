//! Invariants of every run: what no scheduler may do, whatever the policy.
//!
//! They are looked at every few milliseconds of simulated time, so they cost next to nothing. The times that they find
//! are therefore those at the looks, not exact maxima.

use std::fmt;

use coreward_policy::layout::{SD_PREFER_SIBLING, SD_SHARE_LLC};
use coreward_policy::{CpuMask, Domain, Feature, Group, Tunable, util_est};

use crate::affinity::{contains, is_subset};
use crate::cpu::Cpu;
use crate::sim::{START_NS, Simulation};
use crate::task::{State, Task};

/// Simulated time between two looks, ns: the tick of a kernel with 250 Hz.
const LOOK_NS: u64 = 4_000_000;
/// Of how many looks one adds up the tasks of all queues.
const SUMS_EVERY: u32 = 16;
/// What an idle CPU may take to notice a task in any case, in ns: a tick to notice it, one to act, and the time that a
/// task counts as cache hot.
const NOTICE_NS: u64 = 20_000_000;
/// And for each CPU of its partition: domains are balanced every 1 to 2 ms for each of their CPUs, and a cache-hot task
/// moves after a few attempts (`sd->cache_nice_tries`).
const BALANCE_NS: u64 = 10_000_000;
/// The same for a misfit, for which an attempt is enough. The kernel does not keep to 1 ms for each CPU: attempts that find
/// nothing double the interval, which begins there, up to 2 ms (`sd->max_interval`).
const MISFIT_NS: u64 = 2_000_000;
/// The longest interval of a domain in which no task may move, in ns: `MAX_PINNED_INTERVAL`. It lasts on when one may again.
const PINNED_NS: u64 = 512_000_000;
/// The longest wait in a queue of two equal tasks that is not called starvation, in ns.
const STARVED_NS: u64 = 1_000_000_000;
/// The longest turn of a task, in ns: `latency_ns` of CFS on 8 CPUs.
const TURN_NS: u64 = 24_000_000;

/// What has to hold in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// No CPU stays idle while a task waits that may run there, on a CPU that is no bigger. Balancing does not ensure
    /// that while tasks are bound to some of the CPUs.
    WorkConserving,
    /// No CPU stays idle while a smaller one runs a task that is too big for it, under the same condition.
    Misfit,
    /// Every waiting task gets a CPU.
    Starvation,
    /// The sums of a runqueue are those of its tasks.
    Sums,
    /// Sched domains contain each other, their groups cover them, and the highest covers the partition.
    Domains,
}

impl Invariant {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Invariant::WorkConserving => "work_conserving",
            Invariant::Misfit => "misfit",
            Invariant::Starvation => "starvation",
            Invariant::Sums => "sums",
            Invariant::Domains => "domains",
        }
    }
}

/// The first case in which an invariant did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// When, in simulated ns.
    pub at_ns: u64,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} s: {}", self.invariant.name(), Seconds(self.at_ns), self.what)
    }
}

/// The invariants of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The longest time that a CPU was idle while tasks that may run there waited on another one, in ns.
    pub idle_beside_waiting_ns: u64,
    /// The longest time that a CPU was idle while a smaller one ran the same misfit task, in ns.
    pub idle_beside_misfit_ns: u64,
    /// The longest wait of a task for a CPU, in ns.
    pub waiting_ns: u64,
    /// The first violation of each invariant.
    pub violations: Vec<Violation>,
}

/// What is remembered between two looks.
pub(crate) struct Watch {
    /// When the next look is due.
    pub(crate) next_at: u64,
    looks: u32,
    /// From when on no domain is balanced more rarely because tasks were bound to some of the CPUs.
    free_at: u64,
    /// For each CPU who waits there.
    crowds: Vec<Vec<Crowd>>,
    /// For each CPU the misfit task that it runs, which CPU could help it, and since when.
    misfits: Vec<Option<Misfit>>,
    /// For each task its last wait.
    waits: Vec<Wait>,
    pub(crate) found: Checks,
}

impl Watch {
    pub(crate) fn new(nr_cpus: usize) -> Watch {
        let (crowds, misfits) = (vec![Vec::new(); nr_cpus], vec![None; nr_cpus]);
        let (waits, found) = (Vec::new(), Checks::default());
        Watch { next_at: START_NS, looks: 0, free_at: 0, crowds, misfits, waits, found }
    }
}

struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.0 as f64 / 1e9)
    }
}

/// A task that is too big for its CPU.
#[derive(Clone, Copy, PartialEq)]
struct Misfit {
    task: u32,
    /// The CPU that balances for the group that has been idle for the longest time.
    helper: Option<usize>,
    since: u64,
}

/// Tasks wait in a queue that may use the same CPUs.
#[derive(Clone, Copy)]
struct Crowd {
    allowed: usize,
    /// One of them.
    task: u32,
    /// The queue has not been empty since this look...
    since: u64,
    /// ...for which this is the evidence, see [`Timeline::emptied`](crate::timeline::Timeline::emptied).
    emptied: u64,
    /// The CPU that balances for the idle ones that could help.
    balances: Option<usize>,
}

/// A task waits for a CPU.
#[derive(Clone, Copy, Default)]
struct Wait {
    since: u64,
    /// How long it may, by the heaviest queue in which it has been found meanwhile, in ns.
    allowed: u64,
}

/// What the tasks of a queue add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    tasks: u64,
    delayed: u64,
    sched_idle: u64,
    weight: u64,
    util_est: u64,
}

impl Simulation<'_> {
    /// Looks at the state as it has been until `now`, the time of the next event.
    #[cold]
    pub(crate) fn check_invariants(&mut self, now: u64) {
        self.watch.next_at = now + LOOK_NS;
        if self.has_bound_tasks() {
            self.watch.free_at = now + PINNED_NS;
        }
        if self.nr_idle > 0 && self.nr_waiting > 0 {
            self.check_waiting(now);
        } else {
            self.watch.crowds.iter_mut().for_each(Vec::clear);
        }
        if self.sys.asym_present != 0 {
            self.check_misfits(now);
        }
        if self.watch.looks % SUMS_EVERY == 0 {
            self.check_tasks(now);
        }
        self.watch.looks += 1;
    }

    /// Notes the first violation of an invariant.
    pub(crate) fn violated(&mut self, invariant: Invariant, now: u64, what: impl FnOnce() -> String) {
        if self.watch.found.violations.iter().all(|seen| seen.invariant != invariant) {
            let violation = Violation { invariant, at_ns: now - START_NS, what: what() };
            self.watch.found.violations.push(violation);
        }
    }

    /// The idle CPUs that take part in balancing, with the time since which they are idle.
    fn idle_cpus(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let idle = |(cpu, c): (usize, &Cpu)| {
            let takes_part = self.sys.cpu[cpu].nr_sd > 0 && contains(&self.masks[0], cpu);
            let idle = c.curr.is_none() && c.fair.is_empty() && c.wakelist.is_empty();
            (takes_part && idle).then_some((cpu, c.idle_since))
        };
        self.cpus.iter().enumerate().filter_map(idle)
    }

    fn check_waiting(&mut self, now: u64) {
        for on in 0..self.cpus.len() {
            let mut crowds = self.crowds(on, now);
            let capacity = self.sys.cpu[on].capacity_orig;
            for Crowd { allowed, task, since, balances, .. } in &mut crowds {
                // misfits apart, a bigger CPU's task need not come to a smaller one: it may not fit there
                let mask = &self.masks[*allowed];
                let may = |cpu: usize| contains(mask, cpu) && self.sys.cpu[cpu].capacity_orig >= capacity;
                let idlest = self.idle_cpus().filter(|(cpu, _)| may(*cpu)).min_by_key(|(_, since)| *since);
                let Some((cpu, idle_since)) = idlest else { continue };
                // each CPU that balances has an interval and failed attempts of its own
                let before = std::mem::replace(balances, self.idle_beside(cpu, on).next());
                let from = balances.unwrap_or(cpu);
                if before != *balances
                    || !self.is_overloaded(from, on)
                    || self.spares_no_task(from, on)
                    || self.exceeds_spare(*task, from, on)
                {
                    *since = now;
                }
                let cpus = self.balanced_cpus(cpu);
                let bound = NOTICE_NS + BALANCE_NS * cpus;
                let since = idle_since.max(*since).max(self.masks_since);
                let lasted = now - since;
                self.watch.found.idle_beside_waiting_ns = self.watch.found.idle_beside_waiting_ns.max(lasted);
                if now.saturating_sub(since.max(self.watch.free_at)) > bound {
                    let pid = self.tasks[*task as usize].policy.pid;
                    self.violated(Invariant::WorkConserving, now, || {
                        format!(
                            "CPU {cpu} has been idle for {} s while tasks that may run there wait on CPU {on}, now \
                             task {pid} (allowed with {cpus} CPUs: {} s)",
                            Seconds(lasted),
                            Seconds(bound)
                        )
                    });
                }
            }
            self.watch.crowds[on] = crowds;
        }
    }

    /// May some living task use only some of the workload's CPUs, or the workload only some of those that are balanced?
    fn has_bound_tasks(&self) -> bool {
        let all = &self.masks[0];
        let balanced = |cpu: usize| -> Option<CpuMask> {
            let top = self.sys.cpu_sd[cpu][..self.sys.cpu[cpu].nr_sd as usize].last()?;
            Some(self.sys.domain[top.domain as usize].span)
        };
        let first = (0..self.cpus.len()).find(|cpu| contains(all, *cpu));
        if first.and_then(balanced).is_some_and(|span| span.bits != all.bits) {
            return true;
        }
        let bound = |t: &Task| t.state != State::Dead && self.masks[t.allowed].bits != all.bits;
        self.masks.len() > 1 && self.tasks.iter().any(bound)
    }

    fn domain(&self, cpu: usize, level: usize) -> &Domain {
        &self.sys.domain[self.sys.cpu_sd[cpu][level].domain as usize]
    }

    /// The group of `cpu` in the lowest domain of `from` that also has `other`.
    fn group_of(&self, from: usize, other: usize, cpu: usize) -> Option<&Group> {
        let domain = self.domain(from, self.level_spanning(from, other)?);
        let groups = domain.first_group as usize..(domain.first_group + domain.nr_groups) as usize;
        self.sys.group[groups].iter().find(|group| contains(&group.span, cpu))
    }

    /// The idle CPUs of the group of `cpu` in its lowest domain that also has `other`. The first of them balances for all
    /// (should_we_balance()), and sees the groups of its own domains.
    fn idle_beside(&self, cpu: usize, other: usize) -> impl Iterator<Item = usize> + '_ {
        let group = self.group_of(cpu, other, cpu).map(|group| group.span);
        let beside = move |cpu: &usize| group.is_some_and(|span| contains(&span, *cpu));
        self.idle_cpus().map(|(cpu, _)| cpu).filter(beside)
    }

    /// Is `big` bigger than the group of `cpu`, as it sees that when it balances (capacity_greater(), and before it
    /// group_smaller_max_cpu_capacity())?
    fn is_bigger(&self, big: usize, cpu: usize) -> bool {
        let (Some(own), Some(others)) = (self.group_of(big, cpu, big), self.group_of(big, cpu, cpu)) else {
            return false;
        };
        let (capacity, others) = (u64::from(self.sys.cpu[big].capacity_orig), u64::from(others.max_capacity));
        if self.feature(Feature::LB_CAPACITY_GREATER) {
            return capacity * 1024 > others * 1078;
        }
        let margin = self.sys.tunable(Tunable::capacity_margin) as u64;
        capacity > u64::from(self.sys.cpu[cpu].capacity_orig)
            && u64::from(own.max_capacity) * 1024 > others * margin
    }

    /// Have the CPUs of the group of `cpu` more tasks than CPUs, and no time to spare, as `from` sees it
    /// (group_is_overloaded(), with the imbalance_pct of most domains)? Otherwise balancing leaves it alone if the CPUs
    /// that are idle there are only one fewer than in the own group.
    fn is_overloaded(&self, from: usize, cpu: usize) -> bool {
        let Some(group) = self.group_of(from, cpu, cpu) else { return false };
        let (mut tasks, mut cpus, mut util, mut capacity) = (0, 0, 0, 0);
        for rq in (0..self.cpus.len()).filter(|cpu| contains(&group.span, *cpu)).map(|cpu| &self.sys.cpu[cpu])
        {
            tasks += rq.nr_running;
            cpus += 1;
            // what came with tasks from elsewhere does not count beyond the capacity (cpu_util_cfs())
            util += rq.avg.util_avg.min(rq.capacity_orig.into());
            capacity += u64::from(rq.capacity_orig);
        }
        tasks > cpus && util * 117 > capacity * 100
    }

    /// Has the group of `from` too few idle CPUs more than that of `cpu` to be given a task (calculate_imbalance())? Within an
    /// LLC, tasks are evened out between groups of several CPUs only if SD_PREFER_SIBLING says so. Before 6.5, that is a flag
    /// of the domain below, and a CPU has no such domain while its siblings are offline.
    fn spares_no_task(&self, from: usize, cpu: usize) -> bool {
        let Some(level) = self.level_spanning(from, cpu) else { return false };
        let (Some(own), Some(theirs)) = (self.group_of(from, cpu, from), self.group_of(from, cpu, cpu))
        else {
            return false;
        };
        let flags = match level.checked_sub(1) {
            _ if self.feature(Feature::LB_BUSIEST_SIBLING) => theirs.flags,
            Some(below) => self.domain(from, below).flags,
            None => 0,
        };
        let idle = |group: &Group| self.idle_cpus().filter(|(cpu, _)| contains(&group.span, *cpu)).count();
        let evens_out = theirs.weight == 1 || flags & SD_PREFER_SIBLING != 0;
        let share_llc = self.domain(from, level).flags & SD_SHARE_LLC != 0;
        share_llc && !evens_out && idle(own) < idle(theirs) + 2
    }

    /// Is the task, which waits on `cpu`, too big for what the group of `from` has to spare? Before 6.8, it is then left
    /// where it is, however often balancing fails (detach_tasks()).
    fn exceeds_spare(&self, task: u32, from: usize, cpu: usize) -> bool {
        let Some(group) = self.group_of(from, cpu, from).filter(|_| !self.feature(Feature::LB_UTIL_RELAX))
        else {
            return false;
        };
        let of_group = (0..self.cpus.len()).filter(|cpu| contains(&group.span, *cpu));
        let spare = |cpu: usize| {
            let rq = &self.sys.cpu[cpu];
            i64::from(rq.capacity_orig) - rq.avg.util_avg.max(util_est(&rq.avg).into()) as i64
        };
        let avg = &self.tasks[task as usize].policy.avg;
        avg.util_avg.max(util_est(avg).into()) as i64 > of_group.map(spare).sum()
    }

    /// Who waits on a CPU, one task for each mask of allowed CPUs, and since when tasks have waited there all the time.
    fn crowds(&mut self, cpu: usize, now: u64) -> Vec<Crowd> {
        let before = std::mem::take(&mut self.watch.crowds[cpu]);
        let mut crowds: Vec<Crowd> = Vec::new();
        let queue = &self.cpus[cpu].fair;
        let emptied = queue.emptied;
        for task in queue.tasks().filter(|_| contains(&self.masks[0], cpu)) {
            let t = &self.tasks[task as usize];
            let allowed = t.allowed;
            let waits = t.state == State::Queued && !self.is_throttled(task, cpu);
            if waits && crowds.iter().all(|crowd| crowd.allowed != allowed) {
                let same = before.iter().find(|crowd| crowd.allowed == allowed && crowd.emptied == emptied);
                let since = same.map_or(now, |crowd| crowd.since);
                let balances = same.and_then(|crowd| crowd.balances);
                crowds.push(Crowd { allowed, task, since, emptied, balances });
            }
        }
        crowds
    }

    fn check_misfits(&mut self, now: u64) {
        // a core that runs several tasks comes before misfits (group_smt_balance), even if none of its tasks may be taken
        let crowded = self.feature(Feature::LB_SMT_BALANCE)
            && self.cpus.iter().any(|c| c.curr.is_some() && c.active_siblings > 0);
        for cpu in 0..self.cpus.len() {
            let misfit = self.sys.cpu[cpu].misfit_task_load != 0;
            let Some(task) = self.cpus[cpu].curr.filter(|_| misfit && !crowded) else {
                self.watch.misfits[cpu] = None;
                continue;
            };
            let mask = &self.masks[self.tasks[task as usize].allowed];
            // a CPU whose core is busy may be no faster
            let helps = |other: usize| {
                contains(mask, other) && self.cpus[other].active_siblings == 0 && self.is_bigger(other, cpu)
            };
            // the one that balances for a group may be too small itself
            let balances = |other: usize| {
                let mut idle = self.idle_beside(other, cpu).peekable();
                idle.peek() == Some(&other) && idle.all(helps)
            };
            let idle = self.idle_cpus().filter(|(other, _)| balances(*other));
            let idlest = idle.min_by_key(|(_, since)| *since);
            let helper = idlest.map(|(helper, _)| helper);
            // nobody owes it help before there is somebody, nor another CPU than the one that began to owe it
            let since = match self.watch.misfits[cpu] {
                Some(before) if before.task == task && before.helper == helper => before.since,
                _ => now,
            };
            self.watch.misfits[cpu] = Some(Misfit { task, helper, since });
            let Some((big, idle_since)) = idlest else { continue };
            let cpus = self.balanced_cpus(big);
            let bound = NOTICE_NS + MISFIT_NS * cpus;
            let since = since.max(idle_since).max(self.masks_since);
            let lasted = now - since;
            self.watch.found.idle_beside_misfit_ns = self.watch.found.idle_beside_misfit_ns.max(lasted);
            if now.saturating_sub(since.max(self.watch.free_at)) > bound {
                let pid = self.tasks[task as usize].policy.pid;
                self.violated(Invariant::Misfit, now, || {
                    format!(
                        "CPU {big} has been idle for {} s while the smaller CPU {cpu} runs task {pid}, which is too \
                         big for it (allowed with {cpus} CPUs: {} s)",
                        Seconds(lasted),
                        Seconds(bound)
                    )
                });
            }
        }
    }

    /// Adds up the tasks of all queues, and looks for one that waits for ever.
    fn check_tasks(&mut self, now: u64) {
        let mut sums = vec![Sums::default(); self.cpus.len()];
        self.watch.waits.resize(self.tasks.len(), Wait::default());
        for i in 0..self.tasks.len() {
            let t = &self.tasks[i];
            let q = &t.policy.queued;
            if let Ok(cpu) = usize::try_from(q.cpu) {
                let sum = &mut sums[cpu];
                sum.tasks += 1;
                sum.delayed += u64::from(t.is_delayed());
                sum.sched_idle += u64::from(q.sched_idle);
                sum.weight += u64::from(q.weight);
                sum.util_est += u64::from(q.util_est);
            }
            let since = match t.state {
                State::Queued => t.waits_since,
                State::Waking => t.woken_at.unwrap_or(now),
                State::Running | State::Sleeping | State::Throttled | State::Dead => continue,
            };
            let lasted = now.saturating_sub(since);
            self.watch.found.waiting_ns = self.watch.found.waiting_ns.max(lasted);
            let all = self.sys.cpu[t.cpu()].load_weight;
            // a light task among heavy ones has few turns
            let bound = STARVED_NS + TURN_NS * all / u64::from(t.policy.weight.max(1));
            // heavy tasks that have left meanwhile had their turns, too
            let wait = &mut self.watch.waits[i];
            let before = if wait.since == since { wait.allowed } else { 0 };
            *wait = Wait { since, allowed: bound.max(before) };
            let bound = wait.allowed;
            if lasted > bound {
                let (pid, on) = (t.policy.pid, t.cpu());
                self.violated(Invariant::Starvation, now, || {
                    let (lasted, bound) = (Seconds(lasted), Seconds(bound));
                    format!(
                        "task {pid} has waited on CPU {on} for {lasted} s (allowed at its weight: {bound} s)"
                    )
                });
            }
        }
        for (cpu, expected) in sums.into_iter().enumerate() {
            let (rq, c) = (&self.sys.cpu[cpu], &self.cpus[cpu]);
            let noted = Sums {
                tasks: u64::from(rq.nr_running),
                delayed: u64::from(rq.cfs_nr_delayed),
                sched_idle: u64::from(rq.idle_nr_running),
                weight: rq.load_weight,
                util_est: u64::from(rq.avg.util_est),
            };
            let queued = c.fair.tasks().count() as u64 + u64::from(c.curr.is_some());
            let same = noted == expected && queued == expected.tasks && rq.cfs_nr_running == rq.nr_running;
            if !same {
                self.violated(Invariant::Sums, now, || {
                    format!("the runqueue of CPU {cpu} notes {noted:?}, its tasks are {expected:?}, {queued} in its queue")
                });
            }
        }
    }

    /// Looks at the sched domains, which have just been built.
    pub(crate) fn check_domains(&mut self, partitions: &[CpuMask]) {
        if let Err(what) = self.domains_cover(partitions) {
            self.violated(Invariant::Domains, self.now, || what);
        }
    }

    fn domains_cover(&self, partitions: &[CpuMask]) -> Result<(), String> {
        let sys = &self.sys;
        let mut covered = vec![false; sys.domain.len()];
        for partition in partitions {
            for cpu in (0..self.cpus.len()).filter(|cpu| contains(partition, *cpu)) {
                let mut below = CpuMask { bits: [0; _] };
                below.bits[cpu / 64] |= 1 << (cpu % 64);
                for sd in &sys.cpu_sd[cpu][..sys.cpu[cpu].nr_sd as usize] {
                    let domain = &sys.domain[sd.domain as usize];
                    if !is_subset(&below, &domain.span) {
                        return Err(format!("a domain of CPU {cpu} is not contained in the next one"));
                    }
                    let first = domain.first_group as usize;
                    let groups = &sys.group[first..first + domain.nr_groups as usize];
                    let mut all = CpuMask { bits: [0; _] };
                    if !std::mem::replace(&mut covered[sd.domain as usize], true) {
                        groups.iter().for_each(|group| {
                            all.bits.iter_mut().zip(group.span.bits).for_each(|(all, bits)| *all |= bits);
                        });
                        if all.bits != domain.span.bits {
                            return Err(format!("the groups of a domain of CPU {cpu} do not cover it"));
                        }
                    }
                    if !contains(&sys.group[sd.local_group as usize].span, cpu) {
                        return Err(format!("CPU {cpu} is not in its own group of a domain"));
                    }
                    below = domain.span;
                }
                if below.bits != partition.bits {
                    return Err(format!("the domains of CPU {cpu} do not span its partition"));
                }
            }
        }
        Ok(())
    }

    /// The number of CPUs among which tasks are balanced with a CPU, whether the workload may use them or not.
    fn balanced_cpus(&self, cpu: usize) -> u64 {
        let levels = self.sys.cpu[cpu].nr_sd as usize;
        let top = self.sys.cpu_sd[cpu][..levels].last();
        top.map_or(1, |top| u64::from(self.sys.domain[top.domain as usize].weight))
    }
}

#[cfg(test)]
mod tests;
