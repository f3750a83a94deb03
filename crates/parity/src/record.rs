//! The contents of the frames of a file, with their variable parts, for reading and writing.

use coreward_machine::CpuSet;
use coreward_policy::Distance;

use crate::error::Wrong;
use crate::format::{
    BalanceHead, ChangedCpu, CpuState, DomainHead, Field, GroupHead, GroupState, MAX_WAITING, PlacementHead,
    Queue, StaticCpu, StepHead, StepKind, Waiting,
};
use crate::host::Host;

/// The unchanging data of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCpu {
    /// Its frame.
    pub head: StaticCpu,
    /// The CPUs of its SMT core, itself included.
    pub core: CpuSet,
}

/// One group of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedGroup {
    /// Its part of the frame.
    pub head: GroupHead,
    /// Its CPUs.
    pub span: CpuSet,
    /// The CPUs that may balance on its behalf.
    pub balance_mask: CpuSet,
}

/// One domain of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDomain {
    /// Its frame.
    pub head: DomainHead,
    /// Its CPUs.
    pub span: CpuSet,
    /// Its groups, from the CPU's own on.
    pub groups: Vec<RecordedGroup>,
}

/// The machine of a file: everything before the first decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMachine {
    /// The host frame.
    pub host: Host,
    /// All CPUs.
    pub cpus: Vec<RecordedCpu>,
    /// The domains of each CPU, the lowest first.
    pub domains: Vec<Vec<RecordedDomain>>,
}

impl RecordedMachine {
    /// How far `to` is from `from`; a number that is no CPU of the machine has the greatest distance.
    pub fn distance(&self, from: usize, to: usize) -> Distance {
        let (Some(a), Some(b)) = (self.cpus.get(from), self.cpus.get(to)) else { return Distance::Across };
        match () {
            _ if from == to => Distance::Same,
            _ if a.core.contains(to) => Distance::Core,
            _ if a.head.llc_id == b.head.llc_id => Distance::Llc,
            _ if a.head.node == b.head.node => Distance::Node,
            _ => Distance::Across,
        }
    }

    /// Which of the domains of `cpu` has `weight` CPUs; they grow from level to level.
    pub fn level_of_weight(&self, cpu: usize, weight: u32) -> Option<usize> {
        self.domains[cpu].iter().position(|domain| domain.span.len() == weight as usize)
    }

    /// Entries of the group states of a decision: one for each CPU and level.
    pub fn nr_group_states(&self) -> usize {
        self.domains.iter().map(Vec::len).sum()
    }

    /// The number of 64-bit words of each CPU set in this file.
    pub fn mask_words(&self) -> usize {
        mask_words(self.host.nr_cpus)
    }
}

/// The number of words of a CPU set for this many CPUs.
pub(crate) fn mask_words(nr_cpus: usize) -> usize {
    nr_cpus.div_ceil(64)
}

/// The state of the machine around one decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// Every CPU, before.
    pub cpus: Vec<CpuState>,
    /// Each CPU's own group, CPU by CPU and level by level, before; empty for wakeups.
    pub groups: Vec<GroupState>,
    /// The CPUs whose state had changed afterwards, in ascending order.
    pub changed: Vec<ChangedCpu>,
}

/// Where a task was placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The fixed part.
    pub head: PlacementHead,
    /// Where the task may run.
    pub allowed: CpuSet,
    /// The state it was decided on.
    pub states: States,
}

/// The group that a balance found to be the busiest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// The fixed part.
    pub head: BalanceHead,
    /// The CPUs under consideration.
    pub cpus: CpuSet,
    /// The CPUs of the group; empty if there is nothing to balance.
    pub group: CpuSet,
    /// The state it was decided on.
    pub states: States,
}

/// What the fair class did with one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The fixed part.
    pub head: StepHead,
    /// The waiting entities, in the order of the kernel's tree, if the step chooses among them.
    pub waiting: Vec<Waiting>,
}

/// One recorded decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Of a wakeup, a fork or an exec.
    Placement(Box<Placement>),
    /// Of the busiest group.
    Balance(Box<Balance>),
    /// Of the queue in it.
    Queue(Queue),
    /// Of a change of a CPU's queue.
    Step(Box<Step>),
}

/// Takes the parts of a payload off its front.
pub(crate) struct Parts<'a> {
    rest: &'a [u8],
    words: usize,
    nr_cpus: usize,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(payload: &'a [u8], nr_cpus: usize) -> Parts<'a> {
        Parts { rest: payload, words: mask_words(nr_cpus), nr_cpus }
    }

    pub(crate) fn take<T: Field>(&mut self) -> Result<T, Wrong> {
        T::take(&mut self.rest).ok_or_else(|| "it is too short for what it announces".into())
    }

    fn list<T: Field>(&mut self, count: usize) -> Result<Vec<T>, Wrong> {
        if self.rest.len() / T::SIZE < count {
            return Err("it is too short for what it announces".into());
        }
        (0..count).map(|_| self.take()).collect()
    }

    pub(crate) fn set(&mut self, what: &str) -> Result<CpuSet, Wrong> {
        let mut set = CpuSet::new();
        for word in 0..self.words {
            let bits: u64 = self.take()?;
            (0..64).filter(|bit| bits >> bit & 1 == 1).for_each(|bit| set.insert(word * 64 + bit));
        }
        match set.last() {
            Some(last) if last >= self.nr_cpus => {
                Err(format!("{what} has CPU {last}, allowed are 0 to {}", self.nr_cpus - 1))
            }
            _ => Ok(set),
        }
    }

    fn cpu(&self, what: &str, cpu: i32) -> Result<(), Wrong> {
        match usize::try_from(cpu) {
            Ok(number) if number < self.nr_cpus => Ok(()),
            _ => Err(format!("{what} is CPU {cpu}, allowed are 0 to {}", self.nr_cpus - 1)),
        }
    }

    pub(crate) fn end(&self) -> Result<(), Wrong> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(format!("it has {more} bytes more than it announces")),
        }
    }

    fn groups(&self, nr: u32, machine: &RecordedMachine, may_be_none: bool) -> Result<usize, Wrong> {
        let expected = machine.nr_group_states();
        match nr as usize {
            0 if may_be_none => Ok(0),
            nr if nr == expected => Ok(nr),
            nr => Err(format!("it has {nr} group states, the domain frames announce {expected}")),
        }
    }

    fn states(&mut self, nr_groups: usize, nr_changed: u32) -> Result<States, Wrong> {
        let cpus = self.list(self.nr_cpus)?;
        let groups = self.list(nr_groups)?;
        let changed: Vec<ChangedCpu> = self.list(nr_changed as usize)?;
        let mut next = 0;
        for change in &changed {
            if change.cpu < next || change.cpu as usize >= self.nr_cpus {
                let last = self.nr_cpus - 1;
                return Err(format!("CPU {} changed, allowed are {next} to {last} here", change.cpu));
            }
            next = change.cpu + 1;
        }
        Ok(States { cpus, groups, changed })
    }
}

impl Placement {
    pub(crate) fn decode(payload: &[u8], machine: &RecordedMachine) -> Result<Placement, Wrong> {
        let mut parts = Parts::new(payload, machine.host.nr_cpus);
        let head: PlacementHead = parts.take()?;
        for (what, cpu) in [
            ("the waker", head.this_cpu),
            ("the previous CPU", head.prev_cpu),
            ("the choice", head.chosen),
            ("the task", head.task_cpu),
        ] {
            parts.cpu(what, cpu)?;
        }
        let allowed = parts.set("the affinity")?;
        let nr_groups = parts.groups(head.nr_groups, machine, !head.is_slow())?;
        let states = parts.states(nr_groups, head.nr_changed)?;
        parts.end()?;
        Ok(Placement { head, allowed, states })
    }

    /// The payload of its frame; the counts in the head are set to what there is.
    pub fn encode(&self, nr_cpus: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let nr_groups = self.states.groups.len() as u32;
        PlacementHead { nr_groups, nr_changed: self.states.changed.len() as u32, ..self.head }
            .put(&mut bytes);
        put_set(&mut bytes, &self.allowed, nr_cpus);
        put_states(&mut bytes, &self.states);
        bytes
    }
}

impl PlacementHead {
    /// Is it a fork or an exec, which search for the idlest group?
    pub fn is_slow(&self) -> bool {
        self.wake_flags & (coreward_policy::layout::WF_EXEC | coreward_policy::layout::WF_FORK) != 0
    }
}

impl Balance {
    pub(crate) fn decode(payload: &[u8], machine: &RecordedMachine) -> Result<Balance, Wrong> {
        let mut parts = Parts::new(payload, machine.host.nr_cpus);
        let head: BalanceHead = parts.take()?;
        parts.cpu("the destination", head.dst_cpu)?;
        if head.idle > 2 {
            return Err(format!("the idle type is {}, allowed are 0 to 2", head.idle));
        }
        let dst = head.dst_cpu as usize;
        let level = machine
            .level_of_weight(dst, head.span_weight)
            .ok_or_else(|| format!("CPU {dst} has no domain of {} CPUs", head.span_weight))?;
        let cpus = parts.set("the set of considered CPUs")?;
        let group = parts.set("the group")?;
        if !group.is_empty() && !machine.domains[dst][level].groups.iter().any(|g| g.span == group) {
            return Err(format!("CPU {dst} has no group of CPUs {group} in its domain {level}"));
        }
        let nr_groups = parts.groups(head.nr_groups, machine, false)?;
        let states = parts.states(nr_groups, head.nr_changed)?;
        parts.end()?;
        Ok(Balance { head, cpus, group, states })
    }

    /// The payload of its frame; the counts in the head are set to what there is.
    pub fn encode(&self, nr_cpus: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let nr_groups = self.states.groups.len() as u32;
        BalanceHead { nr_groups, nr_changed: self.states.changed.len() as u32, ..self.head }.put(&mut bytes);
        put_set(&mut bytes, &self.cpus, nr_cpus);
        put_set(&mut bytes, &self.group, nr_cpus);
        put_states(&mut bytes, &self.states);
        bytes
    }
}

impl Step {
    pub(crate) fn decode(payload: &[u8], nr_cpus: usize) -> Result<Step, Wrong> {
        let mut parts = Parts::new(payload, nr_cpus);
        let head: StepHead = parts.take()?;
        parts.cpu("the queue", head.cpu)?;
        if StepKind::from_number(head.kind).is_none() {
            return Err(format!("the kind is {}, allowed are 1 to {}", head.kind, StepKind::ALL.len()));
        }
        if head.nr_waiting as usize > MAX_WAITING {
            return Err(format!("{} entities wait, allowed are 0 to {MAX_WAITING}", head.nr_waiting));
        }
        let waiting = parts.list(head.nr_waiting as usize)?;
        parts.end()?;
        Ok(Step { head, waiting })
    }

    /// The payload of its frame; the count in the head is set to what there is.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        StepHead { nr_waiting: self.waiting.len() as u32, ..self.head }.put(&mut bytes);
        self.waiting.iter().for_each(|waiting| waiting.put(&mut bytes));
        bytes
    }

    /// What the fair class did.
    pub fn kind(&self) -> StepKind {
        StepKind::from_number(self.head.kind).unwrap_or(StepKind::Place)
    }
}

/// A queue frame; the CPU has to be one of the machine, or -1 for none.
pub(crate) fn decode_queue(payload: &[u8], nr_cpus: usize) -> Result<Queue, Wrong> {
    let mut parts = Parts::new(payload, nr_cpus);
    let queue: Queue = parts.take()?;
    if queue.src_cpu != -1 {
        parts.cpu("the source", queue.src_cpu)?;
    }
    parts.end()?;
    Ok(queue)
}

pub(crate) fn put_set(bytes: &mut Vec<u8>, set: &CpuSet, nr_cpus: usize) {
    set.words()[..mask_words(nr_cpus)].iter().for_each(|word| word.put(bytes));
}

fn put_states(bytes: &mut Vec<u8>, states: &States) {
    states.cpus.iter().for_each(|cpu| cpu.put(bytes));
    states.groups.iter().for_each(|group| group.put(bytes));
    states.changed.iter().for_each(|changed| changed.put(bytes));
}
