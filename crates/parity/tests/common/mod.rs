//! Machines and decisions made by hand.

#![allow(dead_code, reason = "not every test file needs all of it")]

use coreward_machine::CpuSet;
use coreward_parity::format::{
    BalanceHead, CPU_CURR_IDLE, CpuState, DomainHead, GroupHead, GroupState, NO_SHARED, PlacementHead,
    StaticCpu, TaskState,
};
use coreward_parity::{
    Balance, Host, Outcome, Placement, Record, RecordedCpu, RecordedDomain, RecordedGroup, RecordedMachine,
    Replay, States, Writer,
};
use coreward_policy::Code;

pub(crate) const WF_TTWU: u32 = 8;
pub(crate) const WF_FORK: u32 = 4;
pub(crate) const WF_EXEC: u32 = 2;
pub(crate) const WF_SYNC: u32 = 16;

const SD_FLAGS: &str = "SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_BALANCE_WAKE SD_WAKE_AFFINE \
                        SD_ASYM_CPUCAPACITY SD_ASYM_CPUCAPACITY_FULL SD_SHARE_CPUCAPACITY SD_CLUSTER SD_SHARE_LLC \
                        SD_SERIALIZE SD_ASYM_PACKING SD_PREFER_SIBLING SD_OVERLAP SD_NUMA";
/// NEWIDLE, EXEC, FORK and WAKE_AFFINE, which every domain has here.
const COMMON: u32 = 0b1_0111;
const ASYM: u32 = 0b110_0000;
const SHARE_CPUCAPACITY: u32 = 1 << 7;
const SHARE_LLC: u32 = 1 << 9;

/// A machine by the CPUs of each core and of each LLC.
pub(crate) struct Shape {
    pub(crate) cores: Vec<Vec<usize>>,
    pub(crate) llcs: Vec<Vec<usize>>,
    pub(crate) capacities: Vec<u32>,
}

impl Shape {
    /// `llcs` LLCs of `per_llc` CPUs, which are cores.
    pub(crate) fn plain(llcs: usize, per_llc: usize) -> Shape {
        let all = llcs * per_llc;
        Shape {
            cores: (0..all).map(|cpu| vec![cpu]).collect(),
            llcs: (0..llcs).map(|llc| (llc * per_llc..(llc + 1) * per_llc).collect()).collect(),
            capacities: vec![1024; all],
        }
    }

    /// One LLC of two cores with two threads: CPUs 0 and 2, 1 and 3.
    pub(crate) fn smt() -> Shape {
        Shape { cores: vec![vec![0, 2], vec![1, 3]], llcs: vec![vec![0, 1, 2, 3]], capacities: vec![1024; 4] }
    }

    /// Two small and two big CPUs that share a cache.
    pub(crate) fn asymmetric() -> Shape {
        Shape { capacities: vec![446, 446, 1024, 1024], ..Shape::plain(1, 4) }
    }

    pub(crate) fn machine(&self, release: &str) -> RecordedMachine {
        let nr_cpus = self.capacities.len();
        let text =
            format!("release\t{release}\nmachine\tx86_64\ncpus\t{nr_cpus}\nhz\t250\nsd_flags\t{SD_FLAGS}\n");
        let set = |cpus: &Vec<usize>| cpus.iter().copied().collect::<CpuSet>();
        let of = |sets: &[Vec<usize>], cpu: usize| sets.iter().position(|s| s.contains(&cpu)).unwrap();
        let cpus = (0..nr_cpus)
            .map(|cpu| RecordedCpu {
                head: StaticCpu {
                    cpu: cpu as u32,
                    capacity_orig: self.capacities[cpu],
                    node: 0,
                    llc_id: of(&self.llcs, cpu) as u32,
                },
                core: set(&self.cores[of(&self.cores, cpu)]),
            })
            .collect();
        let asym = if self.capacities.iter().any(|c| *c != 1024) { ASYM } else { 0 };
        let levels: Vec<(Vec<CpuSet>, u32)> = vec![
            (self.cores.iter().map(set).collect(), COMMON | SHARE_CPUCAPACITY | SHARE_LLC),
            (self.llcs.iter().map(set).collect(), COMMON | SHARE_LLC | asym),
            (vec![(0..nr_cpus).collect()], COMMON),
        ];
        let domains = (0..nr_cpus).map(|cpu| domains_of(cpu, nr_cpus, &levels)).collect();
        RecordedMachine { host: Host::parse(text.as_bytes()).unwrap(), cpus, domains }
    }
}

/// A level of the machine is a domain if it is wider than the one below; its groups are those of that one.
fn domains_of(cpu: usize, nr_cpus: usize, levels: &[(Vec<CpuSet>, u32)]) -> Vec<RecordedDomain> {
    let mut below: Vec<CpuSet> = (0..nr_cpus).map(CpuSet::single).collect();
    let mut below_flags = 0;
    let mut domains: Vec<RecordedDomain> = Vec::new();
    for (level, (spans, flags)) in levels.iter().enumerate() {
        let span = *spans.iter().find(|span| span.contains(cpu)).unwrap();
        let mut groups: Vec<_> = below.iter().filter(|g| g.is_subset(&span)).copied().collect();
        if groups.len() < 2 {
            continue;
        }
        let own = groups.iter().position(|g| g.contains(cpu)).unwrap();
        groups.rotate_left(own);
        let group = |span: &CpuSet| RecordedGroup {
            head: GroupHead {
                weight: span.len() as u32,
                cores: span.len() as u32,
                flags: below_flags,
                pad: 0,
            },
            span: *span,
            balance_mask: *span,
        };
        let head = DomainHead {
            cpu: cpu as u32,
            index: domains.len() as u32,
            flags: *flags,
            level: level as u32,
            imbalance_pct: 117,
            busy_factor: 16,
            min_interval_ms: span.len() as u32,
            max_interval_ms: 2 * span.len() as u32,
            cache_nice_tries: 1,
            imb_numa_nr: 0,
            nr_groups: groups.len() as u32,
            pad: 0,
        };
        domains.push(RecordedDomain { head, span, groups: groups.iter().map(group).collect() });
        (below, below_flags) = (spans.clone(), *flags);
    }
    domains
}

/// An idle machine.
pub(crate) fn idle(machine: &RecordedMachine, groups: bool) -> States {
    let cpus = machine.cpus.iter().map(|cpu| CpuState {
        flags: CPU_CURR_IDLE,
        capacity: cpu.head.capacity_orig,
        nr_idle_scan: machine.host.nr_cpus as u32,
        asym_has_idle_cores: NO_SHARED,
        asym_nr_idle_scan: NO_SHARED,
        ..CpuState::default()
    });
    let own_groups = machine.domains.iter().flatten().map(|domain| {
        let capacities: Vec<_> =
            domain.groups[0].span.iter().map(|cpu| machine.cpus[cpu].head.capacity_orig).collect();
        GroupState {
            capacity: capacities.iter().sum(),
            min_capacity: capacities.iter().copied().min().unwrap(),
            max_capacity: capacities.iter().copied().max().unwrap(),
            imbalance: 0,
            next_update: u64::MAX,
        }
    });
    let groups = if groups { own_groups.collect() } else { Vec::new() };
    States { cpus: cpus.collect(), groups, changed: Vec::new() }
}

/// Makes CPUs run `tasks` tasks each that always run.
pub(crate) fn busy(states: &mut States, cpus: &[usize], tasks: u32) {
    for &cpu in cpus {
        let state = &mut states.cpus[cpu];
        state.flags &= !CPU_CURR_IDLE;
        (state.nr_running, state.h_nr_queued, state.h_nr_runnable) = (tasks, tasks, tasks);
        (state.load_avg, state.runnable_avg) = (1024 * u64::from(tasks), 1024 * u64::from(tasks));
        (state.util_avg, state.util_est) = (1024, 1024);
    }
}

/// A task that may run everywhere, woken, forked or executing on CPU 0 where it ran before. The kernel's choice is to
/// be filled in.
pub(crate) fn placement(machine: &RecordedMachine, wake_flags: u32) -> Placement {
    let task = TaskState {
        pid: 100,
        nr_cpus_allowed: machine.host.nr_cpus as u32,
        weight: 1024,
        numa_preferred_nid: -1,
        comm: *b"task\0\0\0\0\0\0\0\0\0\0\0\0",
        ..TaskState::default()
    };
    let states = idle(machine, wake_flags & (WF_FORK | WF_EXEC) != 0);
    Placement {
        head: PlacementHead {
            jiffies: 1 << 32,
            nr_groups: states.groups.len() as u32,
            wake_flags,
            flags: 1,
            task,
            waker: TaskState { pid: 99, ..task },
            ..PlacementHead::default()
        },
        allowed: CpuSet::first_n(machine.host.nr_cpus),
        states,
    }
}

/// A balance by `dst` of its domain of `weight` CPUs.
pub(crate) fn balance(machine: &RecordedMachine, dst: usize, weight: u32, idle_type: u32) -> Balance {
    Balance {
        head: BalanceHead {
            sequence: 1 << 10 | dst as u64,
            jiffies: 1 << 32,
            dst_cpu: dst as i32,
            span_weight: weight,
            idle: idle_type,
            fbq_type: 2,
            nr_groups: machine.nr_group_states() as u32,
            ..BalanceHead::default()
        },
        cpus: CpuSet::first_n(machine.host.nr_cpus),
        group: CpuSet::new(),
        states: idle(machine, true),
    }
}

/// A replay with the policy of the machine's kernel.
pub(crate) fn replay(machine: &RecordedMachine) -> Replay {
    let (profile, _) = machine.host.profile();
    Replay::new(machine, &machine.host.settings(Code::built_in(), profile)).unwrap()
}

/// The comparison of one placement.
pub(crate) fn compare(machine: &RecordedMachine, placement: Placement) -> Outcome {
    let mut outcomes = replay(machine).compare(&Record::Placement(Box::new(placement)));
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// A file of these decisions.
pub(crate) fn file(machine: &RecordedMachine, records: &[Record], lost: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), machine).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    writer.finish(lost).unwrap()
}
