//! What the engine's tests share: runs with an observer that keeps every event,
//! machines whose costs are all zero but those under test, and tiny workloads.
#![allow(dead_code)] // each test crate uses its part

use coreward_engine::{
    Change, Leaving, Moment, NoTrace, Outcome, Settings, SimError, Simulation, Trace, Waker,
};
use coreward_machine::{Costs, DomainOptions, Machine, Topology};
use coreward_metrics::Metric;
use coreward_policy::{Changes, Decision, PolicySettings, Profile, TUNABLES};
pub(crate) use coreward_workload::Workload;
use coreward_workload::{Channel, ChannelKind, CpuChoice, Footprint, Op, Program, ProgramBuilder, Scale};

pub(crate) const MS: u64 = 1_000_000;

/// One call of the observer, with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Fork { now: u64, pid: i32, process: i32 },
    Waking { now: u64, cpu: usize, waker: i32, pid: i32, target: usize, new: bool },
    Migrate { now: u64, cpu: usize, pid: i32, from: usize, to: usize },
    Switch { now: u64, cpu: usize, prev: i32, leaving: Leaving, next: i32 },
    Decision(Decision),
}

/// Keeps all events.
#[derive(Default)]
struct Log(Vec<Event>);

impl Trace for Log {
    fn fork(&mut self, now: u64, pid: i32, process: i32, _: u32, _: u32) {
        self.0.push(Event::Fork { now, pid, process });
    }
    fn waking(&mut self, when: Moment, cpu: usize, waker: Waker, pid: i32, target: usize, new: bool) {
        let waker = waker.pid;
        self.0.push(Event::Waking { now: when.now, cpu, waker, pid, target, new });
    }
    fn migrate(&mut self, now: u64, cpu: usize, pid: i32, from: usize, to: usize) {
        self.0.push(Event::Migrate { now, cpu, pid, from, to });
    }
    fn switch(&mut self, when: Moment, cpu: usize, prev: i32, leaving: Leaving, next: i32) {
        self.0.push(Event::Switch { now: when.now, cpu, prev, leaving, next });
    }
    fn decision(&mut self, d: &Decision) {
        self.0.push(Event::Decision(*d));
    }
}

/// FNV-1a of all events, each as a row of numbers: the same on every machine.
pub(crate) fn hash(events: &[Event]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |row: &[i64]| {
        for byte in row.iter().flat_map(|n| n.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    for event in events {
        match *event {
            Event::Fork { now, pid, process } => add(&[1, now as i64, pid.into(), process.into()]),
            Event::Waking { now, cpu, waker, pid, target, new } => {
                add(&[2, now as i64, cpu as i64, waker.into(), pid.into(), target as i64, new.into()]);
            }
            Event::Migrate { now, cpu, pid, from, to } => {
                add(&[3, now as i64, cpu as i64, pid.into(), from as i64, to as i64]);
            }
            Event::Switch { now, cpu, prev, leaving, next } => {
                add(&[4, now as i64, cpu as i64, prev.into(), leaving as i64, next.into()]);
            }
            Event::Decision(d) => add(&[
                5,
                d.now as i64,
                d.pid.into(),
                d.this_cpu.into(),
                d.prev_cpu.into(),
                d.target.into(),
                d.cpu.into(),
                d.event.into(),
                d.reason.into(),
                d.notes.into(),
                d.cpus_scanned.into(),
                d.groups_scanned.into(),
            ]),
        }
    }
    hash
}

/// A finished run.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
}

impl Run {
    pub(crate) fn get(&self, metric: Metric) -> f64 {
        self.outcome.metrics.get(metric).unwrap_or_else(|| panic!("no {}", metric.name()))
    }

    /// Time of the measured part, in ns.
    pub(crate) fn runtime_ns(&self) -> u64 {
        (self.get(Metric::runtime_s) * 1e9).round() as u64
    }

    pub(crate) fn hash(&self) -> u64 {
        hash(&self.events)
    }

    /// The hash of what tasks and CPUs did, without what was on the policy's mind.
    pub(crate) fn behaviour(&self) -> u64 {
        let done: Vec<Event> =
            self.events.iter().filter(|e| !matches!(e, Event::Decision(_))).copied().collect();
        hash(&done)
    }

    /// (time, CPU, previous task, how it left, next task) of each switch.
    pub(crate) fn switches(&self) -> impl Iterator<Item = (u64, usize, i32, Leaving, i32)> + '_ {
        self.events.iter().filter_map(|e| match *e {
            Event::Switch { now, cpu, prev, leaving, next } => Some((now, cpu, prev, leaving, next)),
            _ => None,
        })
    }
}

/// The outcome of a workload on a machine of this name, in one task group, with what `with` adds to the simulation.
pub(crate) fn outcome(
    machine: &str,
    workload: &Workload,
    with: impl for<'a> FnOnce(Simulation<'a>) -> Simulation<'a>,
) -> Outcome {
    let setup = Setup::new(machine, workload.clone());
    let topology = Topology::build(&setup.machine, &DomainOptions::default()).unwrap();
    let settings = Settings { task_group_depth: 1, ..setup.settings };
    let mut trace = NoTrace;
    let simulation =
        Simulation::new(&setup.machine, &topology, &setup.workload, &settings, &mut trace).unwrap();
    with(simulation).run().unwrap()
}

/// A run to be made.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) machine: Machine,
    pub(crate) workload: Workload,
    pub(crate) settings: Settings,
}

impl Setup {
    /// A workload on a machine of this name, with the features of the default profile.
    pub(crate) fn new(machine: &str, workload: Workload) -> Setup {
        Setup {
            machine: Machine::load(machine).unwrap(),
            workload,
            settings: Settings {
                policy: PolicySettings::new(Profile::DEFAULT),
                seed: 1,
                task_group_depth: Settings::LOGIN_SESSION_DEPTH,
                limit_ns: 100_000 * MS,
            },
        }
    }

    /// The same on a machine on which nothing costs anything, there is no jitter, no
    /// idle state and no footprint: all time is the tasks' own.
    pub(crate) fn free(machine: &str, workload: Workload) -> Setup {
        let mut setup = Setup::new(machine, workload);
        for field in Costs::FIELDS {
            setup = setup.cost(field.name, field.min);
        }
        setup = setup.cost("all_core_freq_pct", 100).cost("socket_remote_pct", 100);
        setup.machine.idle_states.clear();
        setup.workload.footprint = Footprint { private_bytes: 0, shared_bytes: 0 };
        setup
    }

    pub(crate) fn profile(mut self, name: &str) -> Setup {
        self.settings.policy.features = Profile::by_name(name).unwrap().features();
        self
    }

    pub(crate) fn feature(mut self, name: &str, on: bool) -> Setup {
        let mut changes = Changes::default();
        changes
            .sched_feat(self.settings.policy.code, &format!("{}{name}", if on { "" } else { "NO_" }))
            .unwrap();
        self.settings.policy = changes.apply(&self.settings.policy);
        self
    }

    pub(crate) fn tunable(mut self, name: &str, value: i64) -> Setup {
        let index = TUNABLES.iter().position(|t| t.name == name).unwrap();
        self.settings.policy.tunables[index] = value;
        self
    }

    pub(crate) fn cost(mut self, name: &str, value: u64) -> Setup {
        self.machine.costs.set(name, value).unwrap();
        self
    }

    pub(crate) fn seed(mut self, seed: u64) -> Setup {
        self.settings.seed = seed;
        self
    }

    pub(crate) fn try_run(&self) -> Result<Run, SimError> {
        self.run_with(&DomainOptions::default())
    }

    pub(crate) fn run_with(&self, options: &DomainOptions) -> Result<Run, SimError> {
        self.run_on(&Topology::build(&self.machine, options).unwrap())
    }

    pub(crate) fn run_on(&self, topology: &Topology) -> Result<Run, SimError> {
        let mut log = Log::default();
        let sim = Simulation::new(&self.machine, topology, &self.workload, &self.settings, &mut log)?;
        let outcome = sim.run()?;
        Ok(Run { outcome, events: log.0 })
    }

    /// With changes of the machine, as `1.5s offline 3`.
    pub(crate) fn run_changed(&self, changes: &[&str]) -> Result<Run, SimError> {
        let options = DomainOptions::default();
        let topology = Topology::build(&self.machine, &options).unwrap();
        let changes: Vec<Change> = changes.iter().map(|text| text.parse().unwrap()).collect();
        let mut log = Log::default();
        let sim = Simulation::new(&self.machine, &topology, &self.workload, &self.settings, &mut log)?
            .with_changes(&self.machine, &options, &[], &self.settings.policy, &changes)?;
        let outcome = sim.run()?;
        Ok(Run { outcome, events: log.0 })
    }

    pub(crate) fn run(&self) -> Run {
        self.try_run().unwrap_or_else(|e| panic!("{} on {}: {e}", self.workload.name, self.machine.name))
    }
}

/// hackbench with these options.
pub(crate) fn hackbench(options: &str) -> Workload {
    coreward_workload::parse(&format!("hackbench {options}"), Scale::FULL).unwrap()
}

/// A workload of these programs, the first one's first; channels are pipes.
pub(crate) fn workload(channels: usize, programs: Vec<Program>) -> Workload {
    Workload {
        name: "by hand".into(),
        channels: vec![Channel { kind: ChannelKind::Pipe }; channels],
        programs,
        first_message_channel: channels as u32,
        ..Workload::default()
    }
}

/// A program of these steps.
pub(crate) fn program(ops: &[Op]) -> Program {
    ops.iter().fold(ProgramBuilder::default(), |b, op| b.op(*op)).build()
}

pub(crate) fn run(ns: u64) -> Op {
    Op::Run { ns }
}

pub(crate) fn sleep(ns: u64) -> Op {
    Op::Sleep { ns }
}

/// A thread of program `program`.
pub(crate) fn spawn(program: u32) -> Op {
    Op::Spawn { program, base: 0, process: false }
}

/// The first task alone does this, and is measured.
pub(crate) fn single(ops: &[Op]) -> Workload {
    let measured = [&[Op::MarkStart][..], ops, &[Op::MarkEnd]].concat();
    workload(0, vec![program(&measured)])
}

/// `n` threads that each compute for `ns`; the first task waits for them.
pub(crate) fn spinners(n: usize, ns: u64) -> Workload {
    let mut main = vec![Op::MarkStart];
    main.extend(vec![spawn(1); n]);
    main.extend([Op::WaitChildren, Op::MarkEnd]);
    workload(0, vec![program(&main), program(&[run(ns)])])
}

/// Two tasks of a recording that answer each other over sockets, so many times, on CPUs 0 and 1, or both on CPU 0.
pub(crate) fn messages_of_sockets(rounds: u64, apart: bool) -> Workload {
    let up = |semaphore| Op::Up { semaphore, reply: None };
    let down = |semaphore| Op::Down { semaphore, count: 1, request: false };
    let body = |set, first, second| {
        let bound = ProgramBuilder::default().op(Op::SetAffinity { set: Some(set) });
        bound.repeat(rounds, |b| b.op(first).op(second)).build()
    };
    let main = program(&[Op::MarkStart, spawn(1), spawn(2), Op::WaitChildren, Op::MarkEnd]);
    let mut w = workload(0, vec![main, body(0, up(0), down(1)), body(u32::from(apart), down(0), up(1))]);
    w.shared.semaphores = 2;
    w.shared.sockets = vec![0, 1];
    w.cpu_sets = vec![CpuChoice::These(vec![0]), CpuChoice::These(vec![1])];
    w
}

/// Two tasks that pass a message to and fro, `rounds` times, and compute for `ns` between.
pub(crate) fn ping_pong(rounds: u64, ns: u64) -> Workload {
    let (there, back) = (Op::WriteTo { channel: 0, bytes: 100 }, Op::ReadFrom { channel: 0, bytes: 100 });
    let (answer, receive) = (Op::ReadFrom { channel: 1, bytes: 100 }, Op::WriteTo { channel: 1, bytes: 100 });
    let main = ProgramBuilder::default()
        .op(spawn(1))
        .op(Op::MarkStart)
        .repeat(rounds, |b| b.op(run(ns)).op(there).op(answer))
        .op(Op::MarkEnd)
        .op(Op::WaitChildren);
    let other = ProgramBuilder::default().repeat(rounds, |b| b.op(back).op(run(ns)).op(receive));
    workload(2, vec![main.build(), other.build()])
}

/// Twelve tasks that compute for 3 ms and sleep for half a one, once, 6 or 20 times: CPUs run out of work.
pub(crate) fn uneven() -> Workload {
    let mut main = vec![Op::MarkStart];
    main.extend((0..12).map(|i| spawn(1 + i % 3)));
    main.extend([Op::WaitChildren, Op::MarkEnd]);
    let rounds = |n: usize| program(&[run(3 * MS), sleep(MS / 2)].repeat(n));
    workload(0, vec![program(&main), rounds(1), rounds(6), rounds(20)])
}

/// `n` threads that yield after each 100 us, `rounds` times.
pub(crate) fn yielders(n: usize, rounds: usize) -> Workload {
    let mut main = vec![Op::MarkStart];
    main.extend(vec![spawn(1); n]);
    main.extend([Op::WaitChildren, Op::MarkEnd]);
    workload(0, vec![program(&main), program(&[run(MS / 10), Op::Yield].repeat(rounds))])
}

/// `n` threads that compute for `work` ns and sleep for `idle` ns, `rounds` times.
pub(crate) fn restless(n: usize, work: u64, idle: u64, rounds: usize) -> Workload {
    let mut main = vec![Op::MarkStart];
    main.extend(vec![spawn(1); n]);
    main.extend([Op::WaitChildren, Op::MarkEnd]);
    workload(0, vec![program(&main), program(&[run(work), sleep(idle)].repeat(rounds))])
}

/// `n` processes of `threads` threads each, which compute for `work` ns and sleep for `idle` ns, `rounds` times.
pub(crate) fn processes(n: usize, threads: usize, work: u64, idle: u64, rounds: usize) -> Workload {
    let mut main = vec![Op::MarkStart];
    main.extend(vec![Op::Spawn { program: 1, base: 0, process: true }; n]);
    main.extend([Op::WaitChildren, Op::MarkEnd]);
    let mut first = vec![spawn(2); threads];
    first.push(Op::WaitChildren);
    workload(0, vec![program(&main), program(&first), program(&[run(work), sleep(idle)].repeat(rounds))])
}
