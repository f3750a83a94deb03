//! Changes in the middle of a run: CPUs go offline and come back, and the workload's cgroups get other CPUs, weights and
//! quotas.

use coreward_machine::{CpuSet, DomainOptions, Machine, Partition, Topology};
use coreward_metrics::Part;
use coreward_policy::layout::{NONE, TASK_PREFERRED_LLC};
use coreward_policy::{CpuMask, PolicySettings, System};
use coreward_state::policy_system;

use crate::affinity::{chosen, contains, mask};
use crate::cpu::Activity;
use crate::event::{Action, Change};
use crate::queue::NEVER;
use crate::sim::{START_NS, SimError, Simulation};
use crate::task::State;

/// What happens at a time.
enum What {
    Machine(Box<Machines>),
    Weight { group: usize, weight: u32 },
    Max { group: usize, quota_ns: Option<u64>, period_ns: u64 },
}

struct Step {
    at: u64,
    what: What,
}

/// The state of the machine from a change on.
struct Machines {
    /// The CPUs that the workload may use, then those of its sets.
    masks: Vec<CpuMask>,
    /// The CPUs that are online.
    online: CpuSet,
    /// New domains; None if they stay.
    topology: Option<Topology>,
}

/// The changes of a run that are still to come.
pub(crate) struct Changes<'a> {
    /// Time of the next one; [`NEVER`] without any.
    pub(crate) next_at: u64,
    /// The last one first.
    steps: Vec<Step>,
    /// What domains are built of.
    built_of: Option<(&'a Machine, PolicySettings)>,
}

impl Changes<'_> {
    /// No change.
    pub(crate) fn none() -> Self {
        Changes { next_at: NEVER, steps: Vec::new(), built_of: None }
    }

    /// How many are still to come.
    pub(crate) fn left(&self) -> usize {
        self.steps.len()
    }
}

impl<'a> Simulation<'a> {
    /// Changes the machine in the middle of the run. `options` and `partitions` have to be those of its topology.
    ///
    /// # Errors
    /// There is no such CPU or group, or no CPU is left for the workload.
    pub fn with_changes(
        mut self,
        machine: &'a Machine,
        options: &DomainOptions,
        partitions: &[Partition],
        policy: &PolicySettings,
        changes: &[Change],
    ) -> Result<Self, SimError> {
        let all = machine.all_cpus();
        let refused = |change: &Change, why: String| SimError::Change { change: change.to_string(), why };
        let home = partitions.first().map_or(all, |first| first.cpus);
        let (mut online, mut cpuset) = (all, all);
        let mut sorted: Vec<&Change> = changes.iter().collect();
        sorted.sort_by_key(|change| change.at_ns);
        let mut steps = Vec::new();
        for change in sorted {
            let at = START_NS + change.at_ns;
            let before = online;
            if let Some(cpu) = change.cpus().and_then(|cpus| cpus.difference(&all).last()) {
                let why = format!("there is no CPU {cpu}, allowed are 0 to {}", machine.nr_cpus() - 1);
                return Err(refused(change, why));
            }
            match &change.action {
                Action::Offline(cpus) => online = online.difference(cpus),
                Action::Online(cpus) => online = online.union(cpus),
                Action::Cpus(cpus) => cpuset = *cpus,
                Action::Weight { group, weight } => {
                    let group = self.groups.find(group).map_err(|why| refused(change, why))?;
                    if group == 0 {
                        return Err(refused(change, "nothing competes with the whole workload".into()));
                    }
                    steps.push(Step { at, what: What::Weight { group, weight: *weight } });
                    continue;
                }
                Action::Max { group, quota_ns, period_ns } => {
                    let group = self.groups.find(group).map_err(|why| refused(change, why))?;
                    let what = What::Max { group, quota_ns: *quota_ns, period_ns: *period_ns };
                    steps.push(Step { at, what });
                    continue;
                }
            }
            let allowed = home.intersect(&cpuset).intersect(&online);
            if allowed.is_empty() {
                return Err(refused(change, "the workload has no CPU left".into()));
            }
            let build = || Topology::partitioned(machine, options, &parts(partitions, all, online));
            let topology = (online != before).then(build).transpose();
            let topology = topology.map_err(|error| refused(change, error.to_string()))?;
            // a task none of whose CPUs is left may use all (cpuset_cpus_allowed_fallback())
            let usable =
                |set: CpuSet| if set.intersects(&allowed) { set.intersect(&allowed) } else { allowed };
            let sets = self.workload.cpu_sets.iter().map(|set| mask(&usable(chosen(set, &allowed))));
            let masks = std::iter::once(mask(&allowed)).chain(sets).collect();
            steps.push(Step { at, what: What::Machine(Box::new(Machines { masks, online, topology })) });
        }
        steps.reverse();
        let next_at = steps.last().map_or(NEVER, |step| step.at);
        self.groups.used |= changes.iter().any(Change::is_of_a_group);
        self.changes = Changes { next_at, steps, built_of: Some((machine, policy.clone())) };
        Ok(self)
    }

    /// The next change happens now.
    #[cold]
    pub(crate) fn change(&mut self) {
        let Some(step) = self.changes.steps.pop() else { return };
        self.changes.next_at = self.changes.steps.last().map_or(NEVER, |step| step.at);
        match step.what {
            What::Machine(machine) => self.change_machine(*machine),
            What::Weight { group, weight } => self.set_group_weight(group, weight),
            What::Max { group, quota_ns, period_ns } => self.set_group_bandwidth(group, quota_ns, period_ns),
        }
    }

    fn change_machine(&mut self, step: Machines) {
        self.settle_conservation();
        let left = self.masks[0];
        self.masks = step.masks;
        self.masks_since = self.now;
        if let (Some(topology), Some((machine, policy))) = (&step.topology, &self.changes.built_of) {
            // it had room for all CPUs in the same domains
            if let Ok(built) = policy_system(machine, topology, policy, self.now) {
                self.rebuild_domains(&built, &step.online);
                let partitions: Vec<CpuMask> = topology.partitions.iter().map(mask).collect();
                self.check_domains(&partitions);
            }
        }
        for task in 0..self.tasks.len() as u32 {
            if self.tasks[task as usize].state != State::Dead {
                self.allow(task, self.tasks[task as usize].allowed);
            }
        }
        let takes_part: Vec<bool> = (0..self.cpus.len()).map(|cpu| contains(&self.masks[0], cpu)).collect();
        self.nr_idle = 0;
        for (cpu, takes_part) in takes_part.into_iter().enumerate() {
            let idle = self.cpus[cpu].activity == Activity::Idle;
            self.nr_idle += u64::from(takes_part && idle);
            let bit = 1 << (cpu % 64);
            if takes_part && idle {
                self.nohz_idle.bits[cpu / 64] |= bit;
            } else {
                self.nohz_idle.bits[cpu / 64] &= !bit;
            }
        }
        for cpu in (0..self.cpus.len()).filter(|cpu| contains(&left, *cpu)) {
            self.evacuate(cpu);
        }
    }

    /// `partition_sched_domains()`: all CPUs get new domains, which have not been balanced yet.
    fn rebuild_domains(&mut self, built: &System, online: &CpuSet) {
        let sys = &mut self.sys;
        // these are too large for the stack
        sys.domain.copy_from_slice(&built.domain);
        sys.group.copy_from_slice(&built.group);
        sys.cpu_sd.copy_from_slice(&built.cpu_sd);
        sys.llc.copy_from_slice(&built.llc);
        sys.nr_llcs = built.nr_llcs;
        (sys.cluster_present, sys.asym_present) = (built.cluster_present, built.asym_present);
        (sys.max_cpu_capacity, sys.sched_cache_present) = (built.max_cpu_capacity, built.sched_cache_present);
        sys.nohz_next_balance = self.now / self.tick_ns + 1;
        for (cpu, c) in self.cpus.iter().enumerate() {
            let (rq, new) = (&mut sys.cpu[cpu], &built.cpu[cpu]);
            (rq.llc, rq.nr_sd, rq.asym_sd) = (new.llc, new.nr_sd, new.asym_sd);
            rq.next_balance = self.now / self.tick_ns + 1;
            rq.nr_pref_dst_llc = 0;
            rq.nr_pref_llc_running = 0;
            let (llc, levels) = (new.llc as usize, new.nr_sd as usize);
            sys.smt_mask[cpu] = built.smt_mask[cpu];
            sys.smt_mask[cpu].bits.iter_mut().zip(online.words()).for_each(|(bits, online)| *bits &= online);
            sys.llc[llc].nr_busy_cpus += u32::from(c.activity != Activity::Idle);
            sys.cpu_sd[cpu].iter_mut().for_each(|sd| sd.last_balance = self.now);
            let domains = &mut self.schedstat[cpu].domains;
            domains.resize_with(domains.len().max(levels), Default::default);
        }
        // sched_cpu_activate() counts cores of which a second CPU is online
        let siblings = |cpu: usize| sys.smt_mask[cpu].bits.iter().map(|bits| bits.count_ones()).sum::<u32>();
        sys.smt_present = u32::from((0..self.cpus.len()).any(|cpu| siblings(cpu) > 1));
        // LLCs have new numbers: tasks are counted for those that they prefer when they run next
        sys.nr_pref_llc.iter_mut().for_each(|tasks| tasks.fill(0));
        for t in &mut self.tasks {
            t.policy.queued.llc = NONE;
            t.policy.flags &= !TASK_PREFERRED_LLC;
        }
        self.forget_cache_cpus(online);
    }

    /// All tasks leave that may not stay: the stopper moves the running one, and those that wait.
    fn evacuate(&mut self, cpu: usize) {
        self.sched_ttwu_pending(cpu);
        let must_go = |sim: &Self, task: u32| !contains(&sim.masks[sim.tasks[task as usize].allowed], cpu);
        let curr = self.cpus[cpu].curr.filter(|curr| must_go(self, *curr));
        self.update_curr(cpu, cpu);
        if let Some(task) = curr {
            self.save_rest(cpu, task);
            self.put_prev_task(cpu, task);
            self.charge_work(cpu, Part::Switch, self.costs.context_switch_ns);
            self.count_switch(cpu, Some(task), None);
        }
        let waiting: Vec<u32> = self.cpus[cpu].fair.tasks().filter(|task| must_go(self, *task)).collect();
        for &task in &waiting {
            let to = self.fallback_cpu(task, cpu);
            let sleeps = self.tasks[task as usize].is_delayed();
            self.detach_task(task, cpu, cpu);
            self.attach_task(task, to, cpu);
            if !sleeps {
                self.wakeup_preempt(task, to, cpu, 0);
            }
        }
        self.sys.clear_tg_offline_cfs_rqs(cpu);
        if curr.is_some() {
            self.schedule(cpu);
        } else if !self.cpus[cpu].pending.is_zero() {
            self.after_interrupt(cpu);
        }
        self.reprogram(cpu);
    }

    /// `select_fallback_rq()`: a CPU for a task that may not use the one that was chosen. CPUs of the same node first.
    pub(crate) fn fallback_cpu(&mut self, task: u32, from: usize) -> usize {
        let allowed = self.masks[self.tasks[task as usize].allowed];
        let (node, nr_cpus, last) = (self.sys.cpu[from].node, self.cpus.len(), self.cpus[from].distributed);
        let usable = |cpu: &usize| contains(&allowed, *cpu);
        let after = || (1..=nr_cpus).map(|step| (last + step) % nr_cpus);
        let near = after().filter(usable).find(|cpu| self.sys.cpu[*cpu].node == node);
        let to = near.or_else(|| after().find(usable)).unwrap_or(from);
        self.cpus[from].distributed = to;
        to
    }
}

/// The partitions, without the CPUs that are offline: those are each alone, and the workload does not use them.
fn parts(partitions: &[Partition], all: CpuSet, online: CpuSet) -> Vec<Partition> {
    let whole = [Partition { cpus: all, relax_domain_level: None }];
    let partitions = if partitions.is_empty() { &whole } else { partitions };
    let rest = partitions.iter().map(|part| Partition { cpus: part.cpus.intersect(&online), ..part.clone() });
    let alone = all.difference(&online);
    let alone = alone
        .iter()
        .map(|cpu| Partition { cpus: CpuSet::single(cpu), relax_domain_level: None })
        .collect::<Vec<_>>();
    rest.filter(|part| !part.cpus.is_empty()).chain(alone).collect()
}
