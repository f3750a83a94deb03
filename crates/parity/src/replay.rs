//! Gives recorded states to the policy, and compares its decisions with the kernel's.

use std::collections::BTreeMap;
use std::fmt;

use coreward_machine::CpuSet;
use coreward_policy::layout::{WF_EXEC, WF_FORK, WF_SYNC};
use coreward_policy::{Code, CpuMask, Decision, GROUP_TYPES, MIGRATION_TYPES, PolicySettings, System, Task};

use crate::format::{PLACEMENT_IN_TASK, Queue, TASK_EXITING};
use crate::kernel;
use crate::path::{Part, Path};
use crate::queue::{self, Kernel, QueueRules};
use crate::record::{Balance, Placement, Record, RecordedMachine};
use crate::stable::{self, Moved};
use crate::state::{State, mask};

/// How the policy places a task: [`System::select_task_rq_fair`], or another rule to be compared with the kernel.
pub type SelectRule =
    fn(&mut System, &coreward_policy::Placement, &mut Task, Option<&mut Task>, &CpuMask) -> Decision;

/// The two halves of a balance: of [`System::sched_balance_find_src_group`] and
/// [`System::sched_balance_find_src_rq`], or of replacements for them.
#[derive(Clone, Copy)]
pub struct BalanceRules {
    /// The busiest group.
    pub group: fn(&mut System, &mut coreward_policy::Balance) -> (Option<u32>, Decision),
    /// The busiest CPU of a group.
    pub queue: fn(&mut System, &coreward_policy::Balance, u32) -> (Option<usize>, Decision),
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A CPU; none is negative.
    Cpu(i32),
    /// The group of these CPUs; empty: none.
    Group(CpuSet),
    /// How much to move, by which migration type.
    Imbalance(u32, i64),
    /// An entity of a queue, as the file numbers them.
    Entity(i32),
    /// The results of a step, by name.
    Values(Vec<(&'static str, i64)>),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Cpu(cpu) if *cpu < 0 => f.write_str("none"),
            Choice::Cpu(cpu) => write!(f, "CPU {cpu}"),
            Choice::Group(group) if group.is_empty() => f.write_str("none"),
            Choice::Group(group) => write!(f, "group {group}"),
            Choice::Imbalance(kind, imbalance) => {
                let name = MIGRATION_TYPES.get(*kind as usize).unwrap_or(&"?");
                write!(f, "{imbalance} by {name}")
            }
            Choice::Entity(id) => f.write_str(&queue::entity_name(*id)),
            Choice::Values(values) => {
                let words: Vec<_> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
                f.write_str(&words.join(", "))
            }
        }
    }
}

/// One comparison. A balance gives up to three: of its group, its imbalance and its queue.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The number of the decision: its place in the file, from 1 on.
    pub number: u64,
    /// The path to the decision, by the policy's reason.
    pub path: Path,
    /// What the kernel chose.
    pub kernel: Choice,
    /// What the policy chooses.
    pub policy: Choice,
    /// The reason for the policy's choice.
    pub policy_reason: &'static str,
    /// The likely reason for the kernel's choice, as far as the state shows it.
    pub kernel_reason: &'static str,
    /// Where the kernel's choice is relative to the policy's.
    pub relation: &'static str,
    /// The policy's record.
    pub decision: Decision,
    /// The inputs that changed during the decision.
    pub moved: Vec<Moved>,
}

impl Outcome {
    /// Do kernel and policy agree?
    pub fn agrees(&self) -> bool {
        self.kernel == self.policy
    }

    /// Did the inputs stay the same?
    pub fn is_stable(&self) -> bool {
        self.moved.is_empty()
    }
}

/// The policy's answer to a balance.
#[derive(Clone, Debug)]
struct GroupChoice {
    group: CpuSet,
    env: coreward_policy::Balance,
    decision: Decision,
}

/// A machine on which recorded decisions are repeated.
pub struct Replay {
    machine: RecordedMachine,
    state: State,
    select: SelectRule,
    balance: BalanceRules,
    queue: QueueRules,
    kernel: Kernel,
    /// The last balance with a group of each CPU, and the policy's answer: its queue may follow.
    pending: BTreeMap<u64, (Balance, GroupChoice)>,
    number: u64,
}

/// The bits of a balance's sequence number that say which CPU it ran on.
const SEQUENCE_CPU: u64 = 1023;

impl Replay {
    /// The machine of a file, under a policy.
    ///
    /// # Errors
    /// The policy has no room for the machine.
    pub fn new(machine: &RecordedMachine, policy: &PolicySettings) -> Result<Replay, String> {
        Ok(Replay {
            state: State::build(machine, policy)?,
            machine: machine.clone(),
            select: System::select_task_rq_fair,
            balance: BalanceRules {
                group: System::sched_balance_find_src_group,
                queue: System::sched_balance_find_src_rq,
            },
            queue: QueueRules::default(),
            kernel: Kernel::of(&machine.host),
            pending: BTreeMap::new(),
            number: 0,
        })
    }

    /// Places tasks by another rule, to test that parity detects a wrong one.
    pub fn with_rule(mut self, select: SelectRule) -> Replay {
        self.select = select;
        self
    }

    /// Balances by other rules.
    pub fn with_balance_rules(mut self, balance: BalanceRules) -> Replay {
        self.balance = balance;
        self
    }

    /// Works queues by other rules.
    pub fn with_queue_rules(mut self, queue: QueueRules) -> Replay {
        self.queue = queue;
        self
    }

    /// The machine.
    pub fn machine(&self) -> &RecordedMachine {
        &self.machine
    }

    /// What decides.
    pub fn code(&self) -> &'static Code {
        self.state.sys.code()
    }

    /// Repeats the next decision of the file. A queue whose balance is missing yields nothing.
    pub fn compare(&mut self, record: &Record) -> Vec<Outcome> {
        self.number += 1;
        match record {
            Record::Placement(placement) => vec![self.compare_placement(placement)],
            Record::Balance(balance) => self.compare_balance(balance),
            Record::Queue(queue) => self.compare_queue(*queue).into_iter().collect(),
            Record::Step(step) => {
                queue::compare(&self.queue, self.kernel, &self.state.sys, step, self.number)
                    .into_iter()
                    .collect()
            }
        }
    }

    /// What the policy decides: the CPU of a task, or the group to pull from. Queues are not asked for.
    pub fn decide(&mut self, record: &Record) -> Option<Choice> {
        match record {
            Record::Placement(placement) => Some(Choice::Cpu(self.place(placement).cpu)),
            Record::Balance(balance) => Some(Choice::Group(self.find_group(balance).group)),
            Record::Queue(_) | Record::Step(_) => None,
        }
    }

    /// The statistics that the policy chooses a group by, in words: the local group's and the busiest one's.
    pub fn describe_groups(&mut self, balance: &Balance) -> [String; 2] {
        let stats = self.find_group(balance).env.sds;
        [("local", &stats.local_stat), ("busiest", &stats.busiest_stat)].map(|(which, s)| {
            format!(
                "{which} group: {}, {} tasks, {} of {} CPUs idle, load {}, utilisation {}, runnable {}, capacity {}",
                GROUP_TYPES.get(s.group_type as usize).unwrap_or(&"?"),
                s.sum_h_nr_running,
                s.idle_cpus,
                s.group_weight,
                s.group_load,
                s.group_util,
                s.group_runnable,
                s.group_capacity
            )
        })
    }

    fn compare_placement(&mut self, placement: &Placement) -> Outcome {
        let decision = self.place(placement);
        let head = &placement.head;
        let reason = self.state.sys.code().reason(decision.reason);
        let path = match head.wake_flags & (WF_EXEC | WF_FORK) {
            0 => Path::of_wakeup(reason),
            WF_EXEC => Path::EXEC,
            _ => Path::FORK,
        };
        Outcome {
            number: self.number,
            path,
            kernel: Choice::Cpu(head.chosen),
            policy: Choice::Cpu(decision.cpu),
            policy_reason: reason.text,
            kernel_reason: kernel::placement_reason(&self.machine, placement),
            relation: self.relation(decision.cpu, head.chosen),
            decision,
            moved: stable::placement(&self.machine, &self.state, placement),
        }
    }

    /// The policy's placement.
    fn place(&mut self, placement: &Placement) -> Decision {
        let head = &placement.head;
        self.state.apply(&placement.states);
        let mut task = self.state.task(&head.task);
        let mut waker = self.state.task(&head.waker);
        waker.last_wakee = if head.waker.woke_task != 0 { task.pid } else { 0 };
        // an exiting waker cannot keep the promise of a synchronous wakeup
        let exiting = head.waker.flags & TASK_EXITING != 0;
        let request = coreward_policy::Placement {
            this_cpu: head.this_cpu as usize,
            prev_cpu: head.prev_cpu as usize,
            task_cpu: head.task_cpu as usize,
            wake_flags: if exiting { head.wake_flags & !WF_SYNC } else { head.wake_flags },
            in_task: head.flags & PLACEMENT_IN_TASK != 0,
            now: self.state.nanoseconds(head.jiffies),
            random: 0,
        };
        let waker = if head.wake_flags & WF_EXEC != 0 { None } else { Some(&mut waker) };
        (self.select)(&mut self.state.sys, &request, &mut task, waker, &mask(&placement.allowed))
    }

    fn compare_balance(&mut self, balance: &Balance) -> Vec<Outcome> {
        let choice = self.find_group(balance);
        let head = &balance.head;
        let moved = stable::group(&self.machine, &self.state, balance);
        let group = Outcome {
            number: self.number,
            path: Path::of_balance(head.idle, Part::Group),
            kernel: Choice::Group(balance.group),
            policy: Choice::Group(choice.group),
            policy_reason: kernel::balance_reason(&choice.group),
            kernel_reason: kernel::balance_reason(&balance.group),
            relation: kernel::group_relation(&choice.group, &balance.group),
            decision: choice.decision,
            moved,
        };
        let mut outcomes = vec![group.clone()];
        if group.agrees() && !balance.group.is_empty() {
            outcomes.push(Outcome {
                path: Path::of_balance(head.idle, Part::Imbalance),
                kernel: Choice::Imbalance(head.migration_type, head.imbalance),
                policy: Choice::Imbalance(choice.env.migration_type, choice.env.imbalance),
                relation: match choice.env.migration_type == head.migration_type {
                    true => "another amount",
                    false => "another type",
                },
                ..group
            });
        }
        if !balance.group.is_empty() {
            self.pending.insert(head.sequence & SEQUENCE_CPU, (balance.clone(), choice));
        }
        outcomes
    }

    /// The policy's choice of a group.
    fn find_group(&mut self, balance: &Balance) -> GroupChoice {
        let head = &balance.head;
        let dst = head.dst_cpu as usize;
        let (level, domain) = stable::domain(&self.machine, balance);
        let excluded = domain.span.difference(&balance.cpus);
        self.state.apply(&balance.states);
        if level == 0 {
            // the balance brings it up to date before it reads it
            if let Some(changed) = balance.states.changed.iter().find(|c| c.cpu as usize == dst) {
                self.state.sys.cpu[dst].capacity = changed.after.capacity;
            }
        }
        self.state.sys.cpu_sd[dst][level].nr_balance_failed = head.nr_balance_failed;
        let mut env = coreward_policy::Balance::default();
        let now = self.state.nanoseconds(head.jiffies);
        self.state.sys.balance_begin(&mut env, dst, level as u32, head.idle, now);
        env.fbq_type = head.fbq_type;
        env.nr_excluded = excluded.len() as u32;
        env.excluded = mask(&excluded);
        let (group, decision) = (self.balance.group)(&mut self.state.sys, &mut env);
        let group = group.map_or_else(CpuSet::new, |group| self.span(group));
        GroupChoice { group, env, decision }
    }

    fn span(&self, group: u32) -> CpuSet {
        let bits = &self.state.sys.group[group as usize].span.bits;
        (0..self.machine.host.nr_cpus).filter(|cpu| bits[cpu / 64] >> (cpu % 64) & 1 == 1).collect()
    }

    fn compare_queue(&mut self, queue: Queue) -> Option<Outcome> {
        let (balance, choice) = self.pending.remove(&(queue.sequence & SEQUENCE_CPU))?;
        if balance.head.sequence != queue.sequence {
            return None;
        }
        let decision = self.find_queue(&balance, &choice);
        Some(Outcome {
            number: self.number,
            path: Path::of_balance(balance.head.idle, Part::Queue),
            kernel: Choice::Cpu(queue.src_cpu),
            policy: Choice::Cpu(decision.cpu),
            policy_reason: "busiest queue",
            kernel_reason: "busiest queue",
            relation: self.relation(decision.cpu, queue.src_cpu),
            decision,
            moved: stable::queue(&self.machine, &self.state, &balance),
        })
    }

    /// The policy's choice of a queue in the kernel's group, with the kernel's imbalance, on the state that
    /// the choice of the group ended with.
    fn find_queue(&mut self, balance: &Balance, choice: &GroupChoice) -> Decision {
        self.state.apply(&balance.states);
        for changed in &balance.states.changed {
            self.state.apply_cpu(changed.cpu as usize, &changed.after);
        }
        let mut env = choice.env.clone();
        env.imbalance = balance.head.imbalance;
        env.migration_type = balance.head.migration_type;
        let sd = self.state.sys.cpu_sd[env.this_cpu as usize][env.level as usize];
        let domain = self.state.sys.domain[sd.domain as usize];
        let mut groups = domain.first_group..domain.first_group + domain.nr_groups;
        let group = groups.find(|group| self.span(*group) == balance.group).unwrap_or(sd.local_group);
        let (cpu, mut decision) = (self.balance.queue)(&mut self.state.sys, &env, group);
        decision.cpu = cpu.map_or(-1, |cpu| cpu as i32);
        decision
    }

    fn relation(&self, from: i32, to: i32) -> &'static str {
        match (usize::try_from(from), usize::try_from(to)) {
            (Ok(from), Ok(to)) => self.machine.distance(from, to).text(),
            _ => "none",
        }
    }
}
