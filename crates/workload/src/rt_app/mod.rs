//! rt-app's workload files, by the grammar of doc/tutorial.txt of rt-app 1.0 and by what its
//! `src/rt-app.c` does where the tutorial is silent.
//!
//! - `run` is work: so many us on a CPU of capacity 1024 (`calibration` as an integer rounds it
//!   down to whole loops of so many ns, as rt-app does). `runtime` is elapsed time, whichever task runs meanwhile.
//! - `timer` counts from its last expiry, `sleep` from now; a name that begins with `unique` is a
//!   timer of each thread, any other one of all.
//! - `sync` signals and waits, and locks no mutex by itself; `suspend` and `resume` wait for and
//!   wake the name that they give, an empty one being the task's own.
//! - A barrier waits for as many threads as steps of all threads name it.
//! - A key that comes twice is two steps, as workgen makes them.
//! - One repetition of a phase is an event: its period is `event_latency_us_*`.
//!
//! What cannot be simulated (affinity, other policies than SCHED_OTHER, priorities of
//! phases, clamps, task groups, `mem`, `iorun`) is refused by name.

mod json;
mod task;

use crate::program::{Attributes, Footprint, Limits, Op, ProgramBuilder, Scale, Shared, Workload};
use crate::{Program, WorkloadError};
use json::{Json, Value};
use std::path::Path;
use task::{Tables, Task};

/// Largest file that is read, in KiB.
const MAX_KIB: u64 = 4 << 10;
/// Most threads that a file may ask for, forks included.
const MAX_THREADS: u64 = 100_000;
/// Most steps of all programs together.
const MAX_OPS: usize = 1 << 20;
/// Most tasks of a file, which may have many instances each.
const MAX_TASKS: usize = 1000;
/// Stack, the used part of the kernel stack, the touched lines of task_struct and its entity,
/// and the thread's data. assumption: as for hackbench.
const PRIVATE_BYTES: u64 = 8 << 10;
/// Text and data of the tool and libc that the loops touch. assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;

/// What is wrong, and on which line.
type Refusal = (usize, String);

/// Reads the words after `rt-app`: the name of one file.
///
/// # Errors
/// Not one file, or [`from_text`] refuses what is in it.
pub(crate) fn parse<'a>(
    mut words: impl Iterator<Item = &'a str>,
    scale: Scale,
) -> Result<Workload, WorkloadError> {
    let (Some(file), None) = (words.next(), words.next()) else {
        return Err(WorkloadError::Usage("rt-app: it takes one JSON file (allowed: rt-app FILE)".into()));
    };
    let text = coreward_input::read_text(Path::new(file), MAX_KIB)
        .map_err(|error| WorkloadError::Usage(format!("rt-app: {file}: {error}")))?;
    from_text(file, &text, scale)
}

/// The workload that an rt-app file describes, with its duration (or, if it has none, the
/// loops of its threads) shortened by `scale`. `name` is the file's, for messages.
///
/// # Errors
/// The text is no JSON, a field is not of the grammar, or cannot be simulated: with file, line and field.
pub fn from_text(name: &str, text: &str, scale: Scale) -> Result<Workload, WorkloadError> {
    json::read(text)
        .and_then(|json| Description::read(&json))
        .and_then(|file| file.workload(name, scale))
        .map_err(|(line, what)| WorkloadError::Usage(format!("rt-app: {name}:{line}: {what}")))
}

/// The members of an object.
fn members<'a>(json: &'a Json, field: &str) -> Result<&'a [(String, Json)], Refusal> {
    match &json.value {
        Value::Object(members) => Ok(members),
        other => Err((json.line, format!("{field} is {}, not an object", other.kind()))),
    }
}

/// An integer from `min` to `max`.
fn integer(json: &Json, field: &str, min: i64, max: i64) -> Result<i64, Refusal> {
    match &json.value {
        Value::Int(n) if (min..=max).contains(n) => Ok(*n),
        Value::Int(n) => Err((json.line, format!("{field} is {n} (allowed: {min} to {max})"))),
        other => Err((json.line, format!("{field} is {} (allowed: {min} to {max})", other.kind()))),
    }
}

fn string<'a>(json: &'a Json, field: &str) -> Result<&'a str, Refusal> {
    match &json.value {
        Value::String(string) => Ok(string),
        other => Err((json.line, format!("{field} is {}, not a string", other.kind()))),
    }
}

/// A policy has to be the one that there is.
fn sched_other(json: &Json, field: &str) -> Result<(), Refusal> {
    match string(json, field)? {
        "SCHED_OTHER" => Ok(()),
        policy => Err((
            json.line,
            format!("{field} is \"{policy}\", which is not simulated (allowed: \"SCHED_OTHER\")"),
        )),
    }
}

struct Global {
    /// In s; None: until all threads have ended.
    duration: Option<u64>,
    /// ns per loop of calibrated work.
    calibration_ns: u64,
}

struct Description {
    global: Global,
    tasks: Vec<Task>,
    tables: Tables,
}

impl Description {
    fn read(json: &Json) -> Result<Description, Refusal> {
        let mut global = Global { duration: None, calibration_ns: 1 };
        let mut tasks = None;
        for (key, value) in members(json, "the file")? {
            match key.as_str() {
                "tasks" => tasks = Some(value),
                "global" => global = Global::read(value)?,
                // rt-app makes resources as it meets them; declaring them has no effect
                "resources" => {}
                _ => {
                    return Err((
                        value.line,
                        format!("'{key}' is not known (allowed: global, tasks, resources)"),
                    ));
                }
            }
        }
        let tasks = tasks.ok_or((json.line, "there is no 'tasks'".to_owned()))?;
        let mut tables = Tables::default();
        let mut read = Vec::new();
        let listed = members(tasks, "tasks")?;
        if listed.len() > MAX_TASKS {
            return Err((
                tasks.line,
                format!("tasks has {} tasks (allowed: up to {MAX_TASKS})", listed.len()),
            ));
        }
        for (name, task) in listed {
            read.push(Task::read(name, task, global.calibration_ns, &mut tables)?);
        }
        if read.iter().all(|task| task.instances == 0) {
            return Err((tasks.line, "tasks has no thread that would be started".into()));
        }
        let mut file = Description { global, tasks: read, tables };
        for index in 0..file.tasks.len() {
            let forked = file.forks_of(&file.tasks[index])?;
            file.tasks[index].link(&forked);
        }
        Ok(file)
    }

    fn workload(&self, name: &str, scale: Scale) -> Result<Workload, Refusal> {
        self.refuse_too_many(&self.forked_before_forking()?)?;
        let loops = if self.global.duration.is_some() { Scale::FULL } else { scale };
        let mut timers = self.tables.timers.len();
        // main's, which is made last; then one for each task, and for each instance with timers of its own
        let mut programs: Vec<Program> = vec![ProgramBuilder::default().build()];
        let mut attributes = vec![Attributes::default()];
        let mut add = |task: &Task| {
            programs.push(task.program(loops, timers));
            attributes.push(task.attributes());
            timers += task.unique_timers;
            (programs.len() as u32 - 1, programs[programs.len() - 1].len())
        };
        let mut ops: usize = self.tasks.iter().map(|task| add(task).1).sum();
        let mut main = ProgramBuilder::default().op(Op::MarkStart);
        for (index, task) in self.tasks.iter().enumerate() {
            for instance in 0..task.instances {
                let mut program = 1 + index as u32;
                if instance > 0 && task.unique_timers > 0 {
                    let (number, more) = add(task);
                    program = number;
                    ops += more;
                }
                if ops > MAX_OPS {
                    return Err((task.line, format!("all threads together have more than {MAX_OPS} steps")));
                }
                main = main.op(Op::Spawn { program, base: 0, process: false });
            }
        }
        if let Some(seconds) = self.global.duration {
            main = main.op(Op::Sleep { ns: scale.of(seconds * 1_000_000_000) }).op(Op::Stop);
        }
        programs[0] = main.op(Op::WaitChildren).build();
        Ok(Workload {
            name: format!("rt-app {name}"),
            channels: Vec::new(),
            first_message_channel: 0,
            programs,
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            message_ns: 0,
            attributes,
            shared: Shared {
                mutexes: self.tables.mutexes.len(),
                conds: self.tables.conds.len(),
                barriers: self.barriers(),
                timers,
                ..Shared::default()
            },
            limits: Limits::default(),
            messages: 0,
            unscaled_messages: 0,
            assumptions: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Of each barrier, how many threads it waits for.
    fn barriers(&self) -> Vec<u32> {
        let mut needs = vec![0u32; self.tables.barriers.len() as usize];
        for task in &self.tasks {
            for barrier in &task.barriers {
                needs[*barrier as usize] = needs[*barrier as usize].saturating_add(task.instances);
            }
        }
        needs
    }

    /// The tasks, each before those that fork it.
    fn forked_before_forking(&self) -> Result<Vec<usize>, Refusal> {
        let mut left: Vec<(usize, Vec<usize>)> = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            left.push((index, self.forks_of(task)?));
        }
        let mut order: Vec<usize> = Vec::new();
        let mut done = vec![false; self.tasks.len()];
        while !left.is_empty() {
            let Some(ready) = left.iter().position(|(_, forked)| forked.iter().all(|f| done[*f])) else {
                let task = &self.tasks[left[0].0];
                return Err((
                    task.line,
                    format!("tasks.{}: it forks itself, or tasks that fork it", task.name),
                ));
            };
            let (index, _) = left.remove(ready);
            done[index] = true;
            order.push(index);
        }
        Ok(order)
    }

    fn forks_of(&self, task: &Task) -> Result<Vec<usize>, Refusal> {
        task.forks.iter().map(|fork| self.forked(fork)).collect()
    }

    fn forked(&self, fork: &task::Fork) -> Result<usize, Refusal> {
        let index = self.tables.tasks.get(&fork.task);
        let index = index.ok_or((fork.line, format!("fork: there is no task '{}'", fork.task)))?;
        let task = &self.tasks[index];
        if task.unique_timers > 0 || !task.barriers.is_empty() {
            let why = "a fork of a task with a unique timer or a barrier is not simulated";
            return Err((fork.line, format!("fork of '{}': {why}", fork.task)));
        }
        Ok(index)
    }

    /// Threads have to end, and to be so many that they fit.
    fn refuse_too_many(&self, order: &[usize]) -> Result<(), Refusal> {
        // how many threads one thread of a task makes, itself included
        let mut makes = vec![1u64; self.tasks.len()];
        let mut total = 0u64;
        for &index in order {
            let task = &self.tasks[index];
            if self.global.duration.is_none() && task.endless {
                let what =
                    format!("tasks.{}: it loops for ever, and global.duration gives no end", task.name);
                return Err((task.line, what));
            }
            for fork in &task.forks {
                if task.endless {
                    return Err((fork.line, "fork: it is in a loop without end".into()));
                }
                let forked = makes[self.forked(fork)?];
                makes[index] = makes[index].saturating_add(fork.times.saturating_mul(forked));
            }
            total = total.saturating_add(makes[index].saturating_mul(u64::from(task.instances)));
            if total > MAX_THREADS {
                return Err((task.line, format!("tasks.{}: more than {MAX_THREADS} threads", task.name)));
            }
        }
        Ok(())
    }
}

impl Global {
    fn read(json: &Json) -> Result<Global, Refusal> {
        let mut global = Global { duration: None, calibration_ns: 1 };
        for (key, value) in members(json, "global")? {
            let field = format!("global.{key}");
            match key.as_str() {
                "duration" => {
                    let seconds = integer(value, &field, -1, 1_000_000)?;
                    global.duration = u64::try_from(seconds).ok();
                }
                "calibration" => match &value.value {
                    // calibrated on that CPU, which is taken to have capacity 1024
                    Value::String(cpu)
                        if cpu.strip_prefix("CPU").is_some_and(|n| n.parse::<u16>().is_ok()) => {}
                    Value::String(_) => {
                        return Err((
                            value.line,
                            format!("{field} is neither \"CPU\" with a number nor an integer"),
                        ));
                    }
                    _ => global.calibration_ns = integer(value, &field, 1, 1_000_000)? as u64,
                },
                "default_policy" => sched_other(value, &field)?,
                "pi_enabled" => {
                    if value.value != Value::Bool(false) {
                        return Err((
                            value.line,
                            format!("{field}: priority inheritance is not simulated (allowed: false)"),
                        ));
                    }
                }
                // where and what rt-app logs, and what only events use that are refused
                "lock_pages" | "logdir" | "log_basename" | "logname" | "log_size" | "ftrace" | "gnuplot"
                | "io_device" | "mem_buffer_size" | "cumulative_slack" => {}
                _ => return Err((value.line, format!("{field} is not known"))),
            }
        }
        Ok(global)
    }
}

#[cfg(test)]
mod tests;
