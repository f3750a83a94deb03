//! Tasks of an rt-app file: their phases and steps.

use super::json::Json;
use super::{Refusal, integer, members, sched_other, string};
use crate::Program;
use crate::program::{Attributes, Op, ProgramBuilder, Scale};
use std::collections::BTreeMap;

/// What rt-app itself does at each repetition of a phase: reads the clock and writes a log
/// entry. assumption. It also keeps a loop from taking no time.
const BOOKKEEPING_NS: u64 = 200;
/// Largest time in us that rt-app takes: it keeps them in an int.
const MAX_US: i64 = i32::MAX as i64;
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
    fn number(&mut self, name: &str) -> u32 {
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
}

/// A step: an op, or a timer whose number depends on the thread.
enum Step {
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

struct Phase {
    /// None: for ever.
    times: Option<u64>,
    steps: Vec<Step>,
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
    nice: i8,
    delay_ns: u64,
    times: Option<u64>,
    phases: Vec<Phase>,
}

impl Task {
    pub(super) fn read(
        name: &str,
        json: &Json,
        calibration_ns: u64,
        tables: &mut Tables,
    ) -> Result<Task, Refusal> {
        let place = format!("tasks.{name}");
        if tables.tasks.get(name).is_some() {
            return Err((json.line, format!("{place} is there twice")));
        }
        tables.tasks.number(name);
        let mut reader = Reader {
            task: name,
            calibration_ns,
            tables,
            unique: Names::default(),
            barriers: Vec::new(),
            forks: Vec::new(),
        };
        let mut task = Task {
            name: name.to_owned(),
            line: json.line,
            instances: 1,
            endless: false,
            unique_timers: 0,
            barriers: Vec::new(),
            forks: Vec::new(),
            nice: 0,
            delay_ns: 0,
            times: None,
            phases: Vec::new(),
        };
        let all = members(json, &place)?;
        let mut looped = None;
        for (key, value) in all {
            let field = format!("{place}.{key}");
            match key.as_str() {
                "instance" => task.instances = integer(value, &field, 0, 100_000)? as u32,
                "delay" => task.delay_ns = integer(value, &field, 0, MAX_US)? as u64 * 1000,
                "loop" => looped = Some(times(value, &field)?),
                "policy" => sched_other(value, &field)?,
                "priority" => task.nice = integer(value, &field, -20, 19)? as i8,
                "phases" => {
                    for (name, phase) in members(value, &field)? {
                        task.phases.push(reader.phase(phase, &format!("{field}.{name}"))?);
                    }
                }
                _ => {}
            }
        }
        let own = ["instance", "delay", "loop", "policy", "priority", "phases"];
        if all.iter().any(|(key, _)| key == "phases") {
            if let Some((key, value)) = all.iter().find(|(key, _)| !own.contains(&key.as_str())) {
                return Err((
                    value.line,
                    unknown(&format!("{place}.{key}"), key, "with phases, steps belong into a phase"),
                ));
            }
            task.times = looped.unwrap_or(None);
        } else {
            // without phases the loop is that of the only phase, and without a loop it lasts for ever
            let steps: Vec<_> = all.iter().filter(|(key, _)| !own.contains(&key.as_str())).collect();
            let phase =
                Phase { times: looped.unwrap_or(Some(1)), steps: reader.steps(&steps, &place, json.line)? };
            task.phases.push(phase);
            task.times = looped.map(|_| 1);
            let repeated = task.phases[0].times.unwrap_or(1);
            reader.forks.iter_mut().for_each(|fork| fork.times = repeated);
        }
        if task.phases.is_empty() {
            return Err((json.line, format!("{place}.phases has no phase")));
        }
        task.unique_timers = reader.unique.len();
        (task.barriers, task.forks) = (reader.barriers, reader.forks);
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
        Attributes { nice: self.nice, ..Attributes::default() }
    }

    /// The program of a thread whose unique timers are numbered from `first_timer`.
    pub(super) fn program(&self, scale: Scale, first_timer: u32) -> Program {
        let mut b = ProgramBuilder::default();
        if self.delay_ns > 0 {
            b = b.op(Op::Sleep { ns: self.delay_ns });
        }
        let times = self.times.map_or(u64::MAX, |times| scale.of(times));
        b.op(Op::Origin)
            .at_most_until_stopped(times, |b| {
                self.phases.iter().fold(b, |b, phase| phase.build(b, first_timer))
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

/// Why a key is refused.
fn unknown(field: &str, key: &str, why: &str) -> String {
    let not_simulated = [
        "cpus",
        "nodes_membind",
        "util_min",
        "util_max",
        "hold_ns",
        "taskgroup",
        "policy",
        "priority",
        "dl-runtime",
        "dl-period",
        "dl-deadline",
        "period",
        "deadline",
        "mem",
        "iorun",
    ];
    if not_simulated.iter().any(|name| key.trim_end_matches(|c: char| c.is_ascii_digit()) == *name) {
        format!("{field} is not simulated here")
    } else {
        format!("{field} is not known ({why})")
    }
}

struct Reader<'a> {
    task: &'a str,
    calibration_ns: u64,
    tables: &'a mut Tables,
    unique: Names,
    barriers: Vec<u32>,
    forks: Vec<Fork>,
}

impl Reader<'_> {
    fn phase(&mut self, json: &Json, place: &str) -> Result<Phase, Refusal> {
        let all = members(json, place)?;
        let mut repeated = Some(1);
        for (key, value) in all.iter().filter(|(key, _)| key == "loop") {
            repeated = times(value, &format!("{place}.{key}"))?;
        }
        let steps: Vec<_> = all.iter().filter(|(key, _)| key != "loop").collect();
        let forks = self.forks.len();
        let steps = self.steps(&steps, place, json.line)?;
        for fork in &mut self.forks[forks..] {
            fork.times = repeated.unwrap_or(1);
        }
        Ok(Phase { times: repeated, steps })
    }

    fn steps(&mut self, members: &[&(String, Json)], place: &str, line: usize) -> Result<Vec<Step>, Refusal> {
        let mut steps = Vec::new();
        for (key, value) in members {
            self.step(key, value, &format!("{place}.{key}"), &mut steps)?;
        }
        if steps.is_empty() || steps.len() > MAX_STEPS {
            return Err((line, format!("{place} has {} steps (allowed: 1 to {MAX_STEPS})", steps.len())));
        }
        Ok(steps)
    }

    /// One step of the file, which may be several ops. rt-app knows a step by what its key begins with.
    fn step(&mut self, key: &str, json: &Json, field: &str, steps: &mut Vec<Step>) -> Result<(), Refusal> {
        const KINDS: [&str; 15] = [
            "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer",
            "suspend", "resume", "yield", "barrier", "fork",
        ];
        let Some(kind) = KINDS.into_iter().find(|kind| key.starts_with(kind)) else {
            return Err((json.line, unknown(field, key, &format!("steps are {}", KINDS.join(", ")))));
        };
        let mut push = |op| steps.push(Step::Op(op));
        match kind {
            "run" => {
                let ns = integer(json, field, 1, MAX_US)? as u64 * 1000;
                push(Op::Run { ns: (ns / self.calibration_ns * self.calibration_ns).max(1) });
            }
            "runtime" => push(Op::Spin { ns: integer(json, field, 1, MAX_US)? as u64 * 1000 }),
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
                let name = string(json, field)?;
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
            let index = self.unique.number(name);
            return Ok(Step::UniqueTimer { index, period_ns, relative });
        }
        let timer = self.tables.timers.number(name);
        Ok(Step::Op(Op::Timer { timer, period_ns, relative }))
    }
}
