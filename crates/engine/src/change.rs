//! Changes of the machine in the middle of a run: CPUs go offline and come back, and the CPUs of the workload's cpuset
//! change.

use std::fmt;
use std::str::FromStr;

use coreward_machine::{CpuSet, DomainOptions, Machine, Partition, Topology};
use coreward_policy::layout::{NONE, TASK_PREFERRED_LLC};
use coreward_policy::{CpuMask, PolicySettings, System};
use coreward_state::policy_system;

use crate::affinity::{contains, mask};
use crate::cpu::Activity;
use crate::queue::NEVER;
use crate::sim::{START_NS, SimError, Simulation};
use crate::task::State;

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CPUs go offline: `echo 0 > /sys/devices/system/cpu/cpuN/online`.
    Offline,
    /// CPUs come back.
    Online,
    /// The CPUs are from now on those of the workload's cgroup (`cpuset.cpus`).
    Cpus,
}

impl Kind {
    const ALL: [(Kind, &'static str); 3] =
        [(Kind::Offline, "offline"), (Kind::Online, "online"), (Kind::Cpus, "cpus")];
}

/// A change of the machine at a time. Reads and prints as `1.5s offline 2-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time since the start of the run, in ns.
    pub at_ns: u64,
    /// What changes.
    pub kind: Kind,
    /// Of which CPUs.
    pub cpus: CpuSet,
}

/// The latest time of a change, in s.
const MAX_S: f64 = 1e6;

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "allowed is TIME offline|online|cpus CPUS, as in `1.5s offline 2-3`";
        let words: Vec<_> = text.split_whitespace().collect();
        let [time, kind, cpus] = words[..] else {
            return Err(format!("`{text}` is not three words, {form}"));
        };
        let at_ns = time_ns(time).ok_or_else(|| {
            format!("`{time}` is no time, allowed are 0s to {MAX_S}s, also with ms or us instead of s")
        })?;
        let (kind, _) = Kind::ALL
            .into_iter()
            .find(|(_, name)| *name == kind)
            .ok_or_else(|| format!("`{kind}` is not known, {form}"))?;
        let cpus = CpuSet::parse_list(cpus)?;
        if cpus.is_empty() {
            return Err(format!("`{text}` names no CPU, {form}"));
        }
        Ok(Change { at_ns, kind, cpus })
    }
}

fn time_ns(text: &str) -> Option<u64> {
    let (number, unit) = [("us", 1e3), ("ms", 1e6), ("s", 1e9)]
        .into_iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))?;
    let ns = number.parse::<f64>().ok()? * unit;
    (0.0..=MAX_S * 1e9).contains(&ns).then_some(ns.round() as u64)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Kind::ALL.into_iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, name)| name);
        write!(f, "{}s {name} {}", self.at_ns as f64 / 1e9, self.cpus)
    }
}

/// The state of the machine from a change on.
struct Step {
    at: u64,
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
    /// There is no such CPU, or none is left for the workload.
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
            if let Some(cpu) = change.cpus.difference(&all).last() {
                let why = format!("there is no CPU {cpu}, allowed are 0 to {}", machine.nr_cpus() - 1);
                return Err(refused(change, why));
            }
            let before = online;
            match change.kind {
                Kind::Offline => online = online.difference(&change.cpus),
                Kind::Online => online = online.union(&change.cpus),
                Kind::Cpus => cpuset = change.cpus,
            }
            let allowed = home.intersect(&cpuset).intersect(&online);
            if allowed.is_empty() {
                return Err(refused(change, "the workload has no CPU left".into()));
            }
            let build = || Topology::partitioned(machine, options, &parts(partitions, all, online));
            let topology = (online != before).then(build).transpose();
            let topology = topology.map_err(|error| refused(change, error.to_string()))?;
            let wanted = |set: &Vec<u32>| set.iter().map(|cpu| *cpu as usize).collect::<CpuSet>();
            // a task none of whose CPUs is left may use all (cpuset_cpus_allowed_fallback())
            let usable =
                |set: CpuSet| if set.intersects(&allowed) { set.intersect(&allowed) } else { allowed };
            let sets = self.workload.cpu_sets.iter().map(|set| mask(&usable(wanted(set))));
            let masks = std::iter::once(mask(&allowed)).chain(sets).collect();
            steps.push(Step { at: START_NS + change.at_ns, masks, online, topology });
        }
        steps.reverse();
        let next_at = steps.last().map_or(NEVER, |step| step.at);
        self.changes = Changes { next_at, steps, built_of: Some((machine, policy.clone())) };
        Ok(self)
    }

    /// The next change happens now.
    #[cold]
    pub(crate) fn change(&mut self) {
        let Some(step) = self.changes.steps.pop() else { return };
        self.changes.next_at = self.changes.steps.last().map_or(NEVER, |step| step.at);
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
            self.charge_work(cpu, self.costs.context_switch_ns);
            self.extend_segment(cpu);
            self.save_rest(cpu, task);
            self.put_prev_task(cpu, task);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_read_as_they_print() {
        for (text, printed) in [
            ("1.5s offline 2-3", "1.5s offline 2-3"),
            ("250ms online 0,2", "0.25s online 0,2"),
            (" 10us  cpus 1", "0.00001s cpus 1"),
            ("0s offline 1", "0s offline 1"),
        ] {
            let change: Change = text.parse().unwrap();
            assert_eq!(change.to_string(), printed);
            assert_eq!(printed.parse(), Ok(change));
        }
    }

    #[test]
    fn what_is_no_change_is_refused_with_what_is_allowed() {
        for (text, what) in [
            ("", "`` is not three words, allowed is TIME"),
            ("1s offline", "is not three words"),
            ("1s offline 1 2", "is not three words"),
            ("1 offline 1", "`1` is no time, allowed are 0s to 1000000s"),
            ("-1s offline 1", "is no time"),
            ("nans offline 1", "is no time"),
            ("2000001s offline 1", "is no time"),
            ("1s remove 1", "`remove` is not known, allowed is TIME offline|online|cpus CPUS"),
            ("1s offline x", "x"),
            ("1s offline 99999", "99999"),
        ] {
            let refused = text.parse::<Change>().expect_err(text);
            assert!(refused.contains(what), "{text}: {refused}");
        }
    }
}
