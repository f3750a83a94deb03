//! Task groups inside the workload's: their weights, and which of them a task is in.
//!
//! A task's entity has the weight that it has in effect: its own, times the group's, divided by that of the group's
//! runnable tasks on all CPUs (calc_group_shares(); the kernel takes load averages for the latter). So one flat queue
//! gives the shares of a hierarchy of queues, as since 7.2 in the kernel itself. It follows at each enqueue of a task, and
//! for all tasks of a CPU at its tick (update_cfs_group()).

use coreward_policy::layout::NICE_0_WEIGHT;
use coreward_workload::{DEFAULT_WEIGHT, TaskGroup};

use crate::bandwidth::Bandwidth;
use crate::sim::Simulation;
use crate::task::State;

/// The least weight in effect (MIN_SHARES).
const MIN_SHARES: u64 = 2;

/// One task group.
pub(crate) struct Group {
    pub(crate) name: String,
    /// `cpu.weight`.
    weight: u64,
    /// The weights of its tasks that run or wait.
    runnable: u64,
    /// CPU time of its tasks, in ns.
    pub(crate) cpu_ns: u64,
    pub(crate) bandwidth: Bandwidth,
}

/// The workload's own group, then those in it.
pub(crate) struct Groups {
    pub(crate) list: Vec<Group>,
    /// Is there more than the workload's own, or does that have a quota at some time?
    pub(crate) used: bool,
}

impl Groups {
    pub(crate) fn new(groups: &[TaskGroup], nr_cpus: usize) -> Groups {
        let group = |of: &TaskGroup| Group {
            name: of.name.clone(),
            weight: u64::from(of.weight),
            runnable: 0,
            cpu_ns: 0,
            bandwidth: Bandwidth::none(nr_cpus),
        };
        let own = TaskGroup::new("/");
        Groups { list: std::iter::once(&own).chain(groups).map(group).collect(), used: !groups.is_empty() }
    }

    /// The number of a group.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn find(&self, name: &str) -> Result<usize, String> {
        let found = self.list.iter().position(|group| group.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.list.iter().map(|group| group.name.as_str()).collect();
            format!("there is no task group {name}, allowed are {}", names.join(", "))
        })
    }
}

/// What a task group used in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUse {
    /// Its name; `/` is the whole workload.
    pub name: String,
    /// CPU time of its tasks, in ns.
    pub cpu_ns: u64,
    /// Periods of its quota that ended (`nr_periods` of cpu.stat).
    pub periods: u64,
    /// Of these, in how many it was throttled (`nr_throttled`).
    pub throttled_periods: u64,
    /// How long its queues were throttled, in ns, added up over CPUs (`throttled_usec`).
    pub throttled_ns: u64,
}

impl Simulation<'_> {
    /// The groups that a task is in, outermost first.
    pub(crate) fn groups_of(&self, task: u32) -> impl Iterator<Item = usize> + use<> {
        std::iter::once(0).chain(self.tasks[task as usize].group)
    }

    /// The weight of a task in effect; None if it is in no group but the workload's.
    fn effective_weight(&self, task: u32) -> Option<u32> {
        let t = &self.tasks[task as usize];
        let group = &self.groups.list[t.group?];
        let own = u128::from(t.own_weight);
        let shares = u128::from(u64::from(NICE_0_WEIGHT) * group.weight / u64::from(DEFAULT_WEIGHT));
        let weight = own * shares / u128::from(group.runnable.max(u64::from(t.own_weight)));
        Some(weight.clamp(u128::from(MIN_SHARES), u128::from(u32::MAX / 2)) as u32)
    }

    /// A task is about to join `cpu`'s queue.
    pub(crate) fn enqueue_in_group(&mut self, task: u32, cpu: usize) {
        let t = &self.tasks[task as usize];
        let Some(group) = t.group else { return };
        self.groups.list[group].runnable += u64::from(t.own_weight);
        if let Some(weight) = self.effective_weight(task) {
            let t = &mut self.tasks[task as usize];
            t.policy.weight = weight;
            self.cpus[cpu].fair.rq.reweight_entity(&self.sys, &mut t.se, weight);
        }
    }

    /// A task has left its queue.
    pub(crate) fn dequeue_from_group(&mut self, task: u32) {
        let t = &self.tasks[task as usize];
        if let Some(group) = t.group {
            self.groups.list[group].runnable -= u64::from(t.own_weight);
        }
    }

    /// The weights of `cpu`'s tasks follow those of their groups.
    pub(crate) fn reweight_groups(&mut self, cpu: usize) {
        if !self.groups.used {
            return;
        }
        let curr = self.cpus[cpu].curr;
        if let Some(weight) = curr.and_then(|curr| self.effective_weight(curr)) {
            let rq = &mut self.cpus[cpu].fair.rq;
            if rq.curr_competes() && rq.curr.weight != weight {
                rq.reweight_curr(&self.sys, weight);
            }
        }
        let waiting: Vec<u32> = self.cpus[cpu].fair.tasks().collect();
        for task in waiting {
            let Some(weight) = self.effective_weight(task) else { continue };
            let se = &mut self.tasks[task as usize].se;
            if se.weight != weight {
                self.cpus[cpu].fair.reweight(&self.sys, se, weight);
            }
        }
    }

    /// `echo WEIGHT > cpu.weight`.
    pub(crate) fn set_group_weight(&mut self, group: usize, weight: u32) {
        self.groups.list[group].weight = u64::from(weight);
        for cpu in 0..self.cpus.len() {
            self.update_curr(cpu, cpu);
            self.reweight_groups(cpu);
        }
    }

    /// What the groups used; nothing if there are none but the workload's, and that has no quota.
    pub(crate) fn group_use(&self) -> Vec<GroupUse> {
        let running = |group: &Group| group.bandwidth.throttled_ns(self.now);
        let of = |group: &Group| GroupUse {
            name: group.name.clone(),
            cpu_ns: group.cpu_ns,
            periods: group.bandwidth.periods,
            throttled_periods: group.bandwidth.throttled_periods,
            throttled_ns: running(group),
        };
        if self.groups.used { self.groups.list.iter().map(of).collect() } else { Vec::new() }
    }

    /// Is the task kept from running on `cpu` by a quota?
    pub(crate) fn is_throttled(&self, task: u32, cpu: usize) -> bool {
        self.groups.used && self.throttling_group(task, cpu).is_some()
    }

    /// The outermost of the task's groups that is throttled on `cpu`.
    pub(crate) fn throttling_group(&self, task: u32, cpu: usize) -> Option<usize> {
        self.groups_of(task).find(|group| self.groups.list[*group].bandwidth.is_throttled(cpu))
    }

    /// Does the group have other tasks on `cpu`'s queue than one that leaves it?
    pub(crate) fn group_is_queued(&self, group: usize, cpu: usize, but: u32) -> bool {
        let c = &self.cpus[cpu];
        let curr = c.curr.filter(|curr| self.tasks[*curr as usize].state == State::Running);
        let others = c.fair.tasks().chain(curr).filter(|task| *task != but);
        others.into_iter().any(|task| self.groups_of(task).any(|of| of == group))
    }
}
