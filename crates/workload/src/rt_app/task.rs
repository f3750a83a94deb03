//! Tasks of an rt-app file: their phases and steps.

use super::json::{Json, Value};
use super::{Class, Global, PRIVATE_BYTES, Refusal, class, integer, legacy, members, string};
use crate::Program;
use crate::TaskGroup;
use crate::program::{Attributes, Op, Policy, ProgramBuilder, Scale};
use std::collections::BTreeMap;

/// What rt-app itself does at each repetition of a phase: reads the clock and writes a log
/// entry. assumption. It also keeps a loop from taking no time.
const BOOKKEEPING_NS: u64 = 200;
/// Largest time in us that rt-app takes: it keeps them in an int.
pub(super) const MAX_US: i64 = i32::MAX as i64;
/// Most steps of a phase.
const MAX_STEPS: usize = 100_000;

/// Names, numbered from 0 in the order in which they were met.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, u32>);

impl Names {
    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// The number of a name, if it was met.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.0.get(name).map(|number| *number as usize)
    }

    /// The number of a name; a new one gets the next number.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        let next = self.len();
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

/// The names of a file.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) tasks: Names,
    pub(super) mutexes: Names,
    pub(super) conds: Names,
    pub(super) barriers: Names,
    pub(super) timers: Names,
    pub(super) cpu_sets: Vec<Vec<u32>>,
    /// Task groups, in the order in which they were met.
    pub(super) groups: Vec<TaskGroup>,
}

impl Tables {
    /// The number of a set of CPUs.
    fn cpu_set(&mut self, cpus: Vec<u32>) -> u32 {
        let found = self.cpu_sets.iter().position(|set| *set == cpus);
        found.unwrap_or_else(|| {
            self.cpu_sets.push(cpus);
            self.cpu_sets.len() - 1
        }) as u32
    }
}

/// What is without effect on a thread that is alone, and is not simulated beside others.
pub(super) struct Alone {
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) why: String,
}

/// A step: an op, or a timer whose number depends on the thread.
pub(super) enum Step {
    Op(Op),
    UniqueTimer {
        index: u32,
        period_ns: u64,
        relative: bool,
    },
    /// The number in [`Tables::tasks`] is not known before all tasks are read.
    Fork(usize),
}

/// A step that forks.
pub(super) struct Fork {
    pub(super) line: usize,
    pub(super) task: String,
    /// How often one thread does it.
    pub(super) times: u64,
}

pub(super) struct Phase {
    /// None: for ever.
    pub(super) times: Option<u64>,
    /// The set of CPUs that it asks for.
    pub(super) cpus: Option<u32>,
    pub(super) steps: Vec<Step>,
}

pub(super) struct Task {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) instances: u32,
    /// It has a loop without end.
    pub(super) endless: bool,
    pub(super) unique_timers: u32,
    /// The barriers that its steps name, once for each.
    pub(super) barriers: Vec<u32>,
    pub(super) forks: Vec<Fork>,
    pub(super) alone: Vec<Alone>,
    nice: i8,
    policy: Policy,
    cpus: Option<u32>,
    group: Option<u32>,
    /// Bytes of the buffer of `mem` that it writes to.
    buffer: u64,
    delay_ns: u64,
    times: Option<u64>,
    phases: Vec<Phase>,
}

impl Task {
    pub(super) fn read(
        name: &str,
        json: &Json,
        global: &Global,
        resources: &[&Json],
        tables: &mut Tables,
    ) -> Result<Task, Refusal> {
        let place = format!("tasks.{name}");
        if tables.tasks.get(name).is_some() {
            return Err((json.line, format!("{place} is there twice")));
        }
        tables.tasks.number(name);
        let mut task = Task {
            name: name.to_owned(),
            line: json.line,
            instances: 1,
            endless: false,
            unique_timers: 0,
            barriers: Vec::new(),
            forks: Vec::new(),
            alone: Vec::new(),
            nice: 0,
            policy: Policy::Other,
            cpus: None,
            group: None,
            buffer: 0,
            delay_ns: 0,
            times: None,
            phases: Vec::new(),
        };
        let mut reader = Reader {
            task: name,
            global,
            tables,
            unique: Names::default(),
            barriers: Vec::new(),
            forks: Vec::new(),
            alone: Vec::new(),
            buffer: 0,
        };
        let all = members(json, &place)?;
        let mut looped = None;
        let mut priority = None;
        let (mut asked, mut asked_line) = (global.class, json.line);
        for (key, value) in all {
            let field = format!("{place}.{key}");
            match key.as_str() {
                "instance" => task.instances = integer(value, &field, 0, 100_000)? as u32,
                "delay" => task.delay_ns = integer(value, &field, 0, MAX_US)? as u64 * 1000,
                "loop" => looped = Some(times(value, &field)?),
                "policy" => (asked, asked_line) = (class(value, &field)?, value.line),
                "priority" => priority = Some((value, field)),
                "cpus" => task.cpus = reader.cpus(value, &field)?,
                "taskgroup" => task.group = reader.taskgroup(value, &field)?,
                "phases" => {
                    for (name, phase) in members(value, &field)? {
                        task.phases.push(reader.phase(phase, &format!("{field}.{name}"))?);
                    }
                }
                _ => {}
            }
        }
        match asked {
            Class::Fair(policy) => {
                task.policy = policy;
                if let Some((value, field)) = priority {
                    task.nice = integer(value, &field, -20, 19)? as i8;
                }
            }
            Class::RealTime(class) => {
                if let Some((value, field)) = priority {
                    integer(value, &field, 1, 99)?;
                }
                let why = "real-time threads run before all others, and only the fair class is simulated";
                let what = format!("{place}: {class}");
                reader.alone.push(Alone { line: asked_line, why: format!("{what}: {why}"), what });
            }
        }
        let own = ["instance", "delay", "loop", "policy", "priority", "cpus", "taskgroup", "phases"];
        if legacy::is(all) {
            task.phases.push(legacy::phase(all, &place, resources, &mut reader)?);
        } else if all.iter().any(|(key, _)| key == "phases") {
            if let Some((key, value)) = all.iter().find(|(key, _)| !own.contains(&key.as_str())) {
                return Err((
                    value.line,
                    unknown(&format!("{place}.{key}"), key, "with phases, steps belong into a phase"),
                ));
            }
            task.times = looped.unwrap_or(None);
        } else {
            // without phases the loop is that of the only phase, and the thread repeats that for ever: with `loop` 1, 3 or
            // 200 and a period of 10 ms, rt-app 1.0 sleeps 300 times in a `duration` of 3 s, and never ends without one
            let steps: Vec<_> = all.iter().filter(|(key, _)| !own.contains(&key.as_str())).collect();
            if steps.is_empty() {
                return Err((json.line, format!("{place} has neither phases nor steps")));
            }
            let steps = reader.steps(&steps, &place, json.line)?;
            let times = looped.unwrap_or(Some(1)).filter(|times| *times > 0);
            task.phases.push(Phase { times, cpus: None, steps });
            let repeated = task.phases[0].times.unwrap_or(1);
            reader.forks.iter_mut().for_each(|fork| fork.times = repeated);
        }
        if task.phases.is_empty() {
            return Err((json.line, format!("{place}.phases has no phase")));
        }
        task.unique_timers = reader.unique.len();
        (task.barriers, task.forks, task.alone) = (reader.barriers, reader.forks, reader.alone);
        task.buffer = reader.buffer;
        for fork in &mut task.forks {
            fork.times = fork.times.saturating_mul(task.times.unwrap_or(1));
        }
        task.endless = task.times.is_none() || task.phases.iter().any(|phase| phase.times.is_none());
        Ok(task)
    }

    /// Puts the numbers of the forked tasks into its steps, in the order of [`Task::forks`].
    pub(super) fn link(&mut self, forked: &[usize]) {
        let steps = self.phases.iter_mut().flat_map(|phase| &mut phase.steps);
        let forks = steps.filter_map(|step| if let Step::Fork(task) = step { Some(task) } else { None });
        for (task, index) in forks.zip(forked) {
            *task = *index;
        }
    }

    pub(super) fn attributes(&self) -> Attributes {
        let private_bytes = (self.buffer > 0).then_some(PRIVATE_BYTES + self.buffer);
        Attributes {
            policy: self.policy,
            nice: self.nice,
            private_bytes,
            group: self.group,
            mapped_pct: None,
        }
    }

    /// The program of a thread whose unique timers are numbered from `first_timer`.
    pub(super) fn program(&self, scale: Scale, first_timer: u32) -> Program {
        let mut b = ProgramBuilder::default();
        if let Some(set) = self.cpus {
            b = b.op(Op::SetAffinity { set: Some(set) });
        }
        if self.delay_ns > 0 {
            b = b.op(Op::Sleep { ns: self.delay_ns });
        }
        let times = self.times.map_or(u64::MAX, |times| scale.of(times));
        // a phase without CPUs of its own has those of the task, if other phases may have changed them
        let pinned = self.phases.iter().any(|phase| phase.cpus.is_some());
        let cpus = |phase: &Phase| phase.cpus.or(self.cpus).filter(|_| pinned);
        b.op(Op::Origin)
            .at_most_until_stopped(times, |b| {
                self.phases.iter().fold(b, |b, phase| {
                    let b = match cpus(phase) {
                        Some(set) => b.op(Op::SetAffinity { set: Some(set) }),
                        None => b,
                    };
                    phase.build(b, first_timer)
                })
            })
            .build()
    }
}

impl Phase {
    fn build(&self, b: ProgramBuilder, first_timer: u32) -> ProgramBuilder {
        b.at_most_until_stopped(self.times.unwrap_or(u64::MAX), |b| {
            let b = b.op(Op::EventStart);
            let b = self.steps.iter().fold(b, |b, step| {
                b.op(match *step {
                    Step::Op(op) => op,
                    Step::UniqueTimer { index, period_ns, relative } => {
                        Op::Timer { timer: first_timer + index, period_ns, relative }
                    }
                    Step::Fork(task) => Op::Spawn { program: 1 + task as u32, base: 0, process: false },
                })
            });
            b.op(Op::Run { ns: BOOKKEEPING_NS }).op(Op::EventEnd)
        })
    }
}

/// How often a loop runs; None for ever.
fn times(json: &Json, field: &str) -> Result<Option<u64>, Refusal> {
    Ok(u64::try_from(integer(json, field, -1, MAX_US)?).ok())
}

/// How often a phase runs; None for ever. rt-app looks at a phase's number only when the phase has run, so 0 is without end
/// (measured: as many events as with -1).
fn times_of_phase(json: &Json, field: &str) -> Result<Option<u64>, Refusal> {
    Ok(times(json, field)?.filter(|times| *times > 0))
}

/// Why a key is refused.
fn unknown(field: &str, key: &str, why: &str) -> String {
    let not_simulated = [
        ("nodes_membind", "memory is not placed on nodes"),
        ("util_min", "utilization clamps are not simulated"),
        ("util_max", "utilization clamps are not simulated"),
        ("policy", "a thread keeps its policy"),
        ("priority", "a thread keeps its priority"),
        ("dl-runtime", "slices and reservations of a thread's own are not simulated"),
        ("dl-period", "reservations (SCHED_DEADLINE) are not simulated"),
        ("dl-deadline", "reservations (SCHED_DEADLINE) are not simulated"),
        ("period", "reservations (SCHED_DEADLINE) are not simulated"),
        ("deadline", "reservations (SCHED_DEADLINE) are not simulated"),
        ("memrun", "reads and chains of pointers are not simulated, only mem is"),
        ("sem_post", "semaphores are not simulated"),
        ("sem_wait", "semaphores are not simulated"),
    ];
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    match not_simulated.iter().find(|(name, _)| stem == *name) {
        Some((_, what)) => format!("{field}: {what}"),
        None => format!("{field} is not known ({why})"),
    }
}

pub(super) struct Reader<'a> {
    task: &'a str,
    pub(super) global: &'a Global,
    pub(super) tables: &'a mut Tables,
    unique: Names,
    barriers: Vec<u32>,
    forks: Vec<Fork>,
    alone: Vec<Alone>,
    buffer: u64,
}

impl Reader<'_> {
    fn phase(&mut self, json: &Json, place: &str) -> Result<Phase, Refusal> {
        let all = members(json, place)?;
        let (mut repeated, mut cpus) = (Some(1), None);
        for (key, value) in all {
            let field = format!("{place}.{key}");
            match key.as_str() {
                "loop" => repeated = times_of_phase(value, &field)?,
                "cpus" => cpus = self.cpus(value, &field)?,
                "taskgroup" => self.group_of_phase(value, &field)?,
                _ => {}
            }
        }
        let own = ["loop", "cpus", "taskgroup"];
        let steps: Vec<_> = all.iter().filter(|(key, _)| !own.contains(&key.as_str())).collect();
        let forks = self.forks.len();
        let steps = self.steps(&steps, place, json.line)?;
        for fork in &mut self.forks[forks..] {
            fork.times = repeated.unwrap_or(1);
        }
        Ok(Phase { times: repeated, cpus, steps })
    }

    /// The set of CPUs that a thread may use; nothing for null.
    fn cpus(&mut self, json: &Json, field: &str) -> Result<Option<u32>, Refusal> {
        let Value::Array(items) = &json.value else {
            if json.value == Value::Null {
                return Ok(None);
            }
            return Err((json.line, format!("{field} is {}, not an array of CPUs", json.value.kind())));
        };
        let mut cpus = Vec::new();
        for item in items {
            cpus.push(integer(item, field, 0, 1023)? as u32);
        }
        if cpus.is_empty() {
            return Err((json.line, format!("{field} has no CPU")));
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Some(self.tables.cpu_set(cpus)))
    }

    /// The task group of a thread, a name that begins with /; an empty text for none.
    fn taskgroup(&mut self, json: &Json, field: &str) -> Result<Option<u32>, Refusal> {
        let group = string(json, field)?;
        if group.is_empty() || group == "/" {
            return Ok(None);
        }
        if !group.starts_with('/') {
            return Err((json.line, format!("{field} is \"{group}\" (allowed: a path that begins with /)")));
        }
        if group[1..].contains('/') {
            return Err((json.line, format!("{field}: groups in groups are not simulated (allowed: /NAME)")));
        }
        let groups = &mut self.tables.groups;
        let found = groups.iter().position(|known| known.name == group);
        Ok(Some(found.unwrap_or_else(|| {
            groups.push(TaskGroup::new(group));
            groups.len() - 1
        }) as u32))
    }

    /// A thread keeps its group.
    fn group_of_phase(&mut self, json: &Json, field: &str) -> Result<(), Refusal> {
        let group = string(json, field)?;
        if !group.is_empty() && !group.starts_with('/') {
            return Err((json.line, format!("{field} is \"{group}\" (allowed: a path that begins with /)")));
        }
        if !group.is_empty() {
            let why = "a thread that changes its group is not simulated";
            self.alone.push(Alone {
                line: json.line,
                what: format!("{field} {group}"),
                why: format!("{field}: {why}"),
            });
        }
        Ok(())
    }

    /// Work in ns, rounded down to whole loops as rt-app does.
    pub(super) fn calibrated(&self, ns: u64) -> u64 {
        let loop_ns = self.global.calibration_ns;
        (ns / loop_ns * loop_ns).max(1)
    }

    /// A timer that each thread has for itself.
    pub(super) fn own_timer(&mut self, name: &str, period_ns: u64, relative: bool) -> Step {
        Step::UniqueTimer { index: self.unique.number(name), period_ns, relative }
    }

    fn steps(&mut self, members: &[&(String, Json)], place: &str, line: usize) -> Result<Vec<Step>, Refusal> {
        let mut steps = Vec::new();
        for (key, value) in members {
            self.step(key, value, &format!("{place}.{key}"), &mut steps)?;
        }
        if steps.len() > MAX_STEPS {
            return Err((line, format!("{place} has {} steps (allowed: up to {MAX_STEPS})", steps.len())));
        }
        Ok(steps)
    }

    /// One step of the file, which may be several ops. rt-app knows a step by what its key begins with.
    fn step(&mut self, key: &str, json: &Json, field: &str, steps: &mut Vec<Step>) -> Result<(), Refusal> {
        const KINDS: [&str; 17] = [
            "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer",
            "suspend", "resume", "yield", "barrier", "fork", "mem", "iorun",
        ];
        let found = KINDS.into_iter().find(|kind| key.starts_with(kind));
        let Some(kind) = found.filter(|kind| *kind != "mem" || !key.starts_with("memrun")) else {
            return Err((json.line, unknown(field, key, &format!("steps are {}", KINDS.join(", ")))));
        };
        let mut push = |op| steps.push(Step::Op(op));
        match kind {
            "run" => {
                let ns = integer(json, field, 0, MAX_US)? as u64 * 1000;
                push(Op::Run { ns: self.calibrated(ns) });
            }
            "mem" => {
                let bytes = integer(json, field, 0, MAX_US)? as u64;
                self.buffer = self.buffer.max(bytes.min(self.global.buffer));
                push(Op::Memset { bytes });
            }
            "iorun" => {
                let bytes = integer(json, field, 0, MAX_US)? as u64;
                if self.global.io_device != "/dev/null" {
                    let what = format!("{field}: writes to {} are not simulated", self.global.io_device);
                    return Err((json.line, format!("{what} (allowed: global.io_device \"/dev/null\")")));
                }
                let writes = bytes.div_ceil(self.global.buffer);
                if writes > MAX_STEPS as u64 {
                    return Err((
                        json.line,
                        format!("{field} is {writes} writes (allowed: up to {MAX_STEPS})"),
                    ));
                }
                (0..writes).for_each(|_| push(Op::Syscall));
            }
            "runtime" => push(Op::Spin { ns: integer(json, field, 0, MAX_US)? as u64 * 1000 }),
            "sleep" => push(Op::Sleep { ns: integer(json, field, 0, MAX_US)? as u64 * 1000 }),
            "lock" => push(Op::Lock { mutex: self.tables.mutexes.number(string(json, field)?) }),
            "unlock" => push(Op::Unlock { mutex: self.tables.mutexes.number(string(json, field)?) }),
            "signal" => push(Op::Signal { cond: self.tables.conds.number(string(json, field)?) }),
            "broad" => push(Op::Broadcast { cond: self.tables.conds.number(string(json, field)?) }),
            "wait" | "sync" => {
                let [cond, mutex] = self.reference(json, field)?;
                if kind == "sync" {
                    push(Op::Signal { cond });
                }
                push(Op::CondWait { cond, mutex });
            }
            "suspend" | "resume" => {
                // workgen gives a suspend without a name the task's
                let name = if json.value == Value::Null { "" } else { string(json, field)? };
                let name = if name.is_empty() { self.task } else { name };
                // the condition and its mutex have the same name
                let cond = self.tables.conds.number(name);
                let mutex = self.tables.mutexes.number(name);
                let inside =
                    if kind == "suspend" { Op::CondWait { cond, mutex } } else { Op::Broadcast { cond } };
                [Op::Lock { mutex }, inside, Op::Unlock { mutex }].into_iter().for_each(push);
            }
            "barrier" => {
                let barrier = self.tables.barriers.number(string(json, field)?);
                self.barriers.push(barrier);
                push(Op::Barrier { barrier, starts: false });
            }
            "yield" => {
                string(json, field)?;
                push(Op::Yield);
            }
            "timer" => steps.push(self.timer(json, field)?),
            _ => {
                let task = string(json, field)?;
                self.forks.push(Fork { line: json.line, task: task.to_owned(), times: 1 });
                steps.push(Step::Fork(0));
            }
        }
        Ok(())
    }

    /// The condition and the mutex of a wait.
    fn reference(&mut self, json: &Json, field: &str) -> Result<[u32; 2], Refusal> {
        let (mut cond, mut mutex) = (None, None);
        for (key, value) in members(json, field)? {
            let inner = format!("{field}.{key}");
            match key.as_str() {
                "ref" => cond = Some(self.tables.conds.number(string(value, &inner)?)),
                "mutex" => mutex = Some(self.tables.mutexes.number(string(value, &inner)?)),
                _ => return Err((value.line, format!("{inner} is not known (allowed: ref, mutex)"))),
            }
        }
        match (cond, mutex) {
            (Some(cond), Some(mutex)) => Ok([cond, mutex]),
            _ => Err((json.line, format!("{field} needs both ref and mutex"))),
        }
    }

    fn timer(&mut self, json: &Json, field: &str) -> Result<Step, Refusal> {
        let (mut name, mut period_ns, mut relative) = ("unknown", 0, true);
        for (key, value) in members(json, field)? {
            let inner = format!("{field}.{key}");
            match key.as_str() {
                "ref" => name = string(value, &inner)?,
                "period" => period_ns = integer(value, &inner, 0, MAX_US)? as u64 * 1000,
                "mode" => {
                    relative = match string(value, &inner)? {
                        "relative" => true,
                        "absolute" => false,
                        mode => {
                            return Err((
                                value.line,
                                format!("{inner} is \"{mode}\" (allowed: relative, absolute)"),
                            ));
                        }
                    }
                }
                _ => return Err((value.line, format!("{inner} is not known (allowed: ref, period, mode)"))),
            }
        }
        if name.starts_with("unique") {
            return Ok(self.own_timer(name, period_ns, relative));
        }
        let timer = self.tables.timers.number(name);
        Ok(Step::Op(Op::Timer { timer, period_ns, relative }))
    }
}
