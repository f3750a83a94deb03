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
//! - `mem` writes to a buffer of `mem_buffer_size`, which counts among what a move makes cold. `iorun` to
//!   /dev/null is one system call for each such buffer.
//! - `cpus` of a phase last for that phase, those of a task for the phases without any.
//! - Several files are one workload, as `doc/merge.py` joins them. The grammar of rt-app before 2014 (`exec`,
//!   `period`, `lock_order`) is read too.
//! - A file without `duration` whose threads do not end runs for `ENDLESS_S` seconds.
//!
//! What cannot be simulated (other scheduling classes and task groups beside other threads, priorities of
//! phases, clamps, devices) is refused by name.

mod json;
mod legacy;
mod task;

use crate::program::{Attributes, CpuChoice, Footprint, Op, Policy, ProgramBuilder, Scale, Shared, Workload};
use crate::{Program, Role, WorkloadError};
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
/// How long a workload without end is simulated, in s.
const ENDLESS_S: u64 = 10;
/// Default of `mem_buffer_size`, in bytes.
const MEM_BUFFER: i64 = 4 << 20;
/// Stack, the used part of the kernel stack, the touched lines of task_struct and its entity,
/// and the thread's data. assumption: as for hackbench.
const PRIVATE_BYTES: u64 = 8 << 10;
/// Text and data of the tool and libc that the loops touch. assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;

/// What is wrong, and on which line.
type Refusal = (usize, String);

/// Reads the words after `rt-app`: the names of one or more files.
///
/// # Errors
/// No file, one that cannot be read, or [`from_texts`] refuses what is in it.
pub(crate) fn parse<'a>(
    words: impl Iterator<Item = &'a str>,
    scale: Scale,
) -> Result<Workload, WorkloadError> {
    let read = |file: &'a str| {
        let text = coreward_input::read_text(Path::new(file), MAX_KIB);
        text.map(|text| (file, text))
            .map_err(|error| WorkloadError::Usage(format!("rt-app: {file}: {error}")))
    };
    let files = words.map(read).collect::<Result<Vec<_>, _>>()?;
    if files.is_empty() {
        let what = "rt-app: it takes JSON files (allowed: rt-app FILE..., which together are one workload)";
        return Err(WorkloadError::Usage(what.into()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    from_texts(&files, scale)
}

/// The workload that an rt-app file describes, with its duration (or, if it has none, the
/// loops of its threads) shortened by `scale`. `name` is the file's, for messages.
///
/// # Errors
/// The text is no JSON, a field is not of the grammar, or cannot be simulated: with file, line and field.
pub fn from_text(name: &str, text: &str, scale: Scale) -> Result<Workload, WorkloadError> {
    from_texts(&[(name, text)], scale)
}

/// The workload that several files with their names describe together; see [`from_text`].
///
/// # Errors
/// As of [`from_text`].
fn from_texts(files: &[(&str, &str)], scale: Scale) -> Result<Workload, WorkloadError> {
    // their lines are counted as if they were one file
    let lines = |text: &str| text.split('\n').count();
    let mut first_line = 1;
    let mut roots = Vec::new();
    let mut refusal = None;
    for (_, text) in files {
        match json::read(text, first_line) {
            Ok(root) => roots.push(root),
            Err(what) => {
                refusal = Some(what);
                break;
            }
        }
        first_line += lines(text);
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let workload = match refusal {
        Some(refusal) => Err(refusal),
        None => Description::read(&roots).and_then(|file| file.workload(&names.join(" "), scale)),
    };
    workload.map_err(|(mut line, what)| {
        let mut files = files.iter();
        let mut file = files.next();
        while let Some((_, text)) = file.filter(|(_, text)| line > lines(text)) {
            line -= lines(text);
            file = files.next();
        }
        let name = file.map_or("", |(name, _)| *name);
        WorkloadError::Usage(format!("rt-app: {name}:{line}: {what}"))
    })
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

/// A scheduling class that the file asks for.
#[derive(Clone, Copy)]
enum Class {
    Fair(Policy),
    /// SCHED_FIFO or SCHED_RR.
    RealTime(&'static str),
}

/// # Errors
/// SCHED_DEADLINE, and what rt-app does not know.
fn class(json: &Json, field: &str) -> Result<Class, Refusal> {
    let why = match string(json, field)? {
        "SCHED_OTHER" => return Ok(Class::Fair(Policy::Other)),
        "SCHED_BATCH" => return Ok(Class::Fair(Policy::Batch)),
        "SCHED_IDLE" => return Ok(Class::Fair(Policy::Idle)),
        "SCHED_FIFO" => return Ok(Class::RealTime("SCHED_FIFO")),
        "SCHED_RR" => return Ok(Class::RealTime("SCHED_RR")),
        "SCHED_DEADLINE" => {
            "SCHED_DEADLINE reserves CPU time before all other classes, and only the fair class is simulated"
        }
        _ => "there is no such policy",
    };
    Err((json.line, format!("{field}: {why} (allowed: SCHED_OTHER, SCHED_BATCH, SCHED_IDLE)")))
}

struct Global {
    /// In s; None: until all threads have ended.
    duration: Option<u64>,
    /// ns per loop of calibrated work.
    calibration_ns: u64,
    class: Class,
    /// Bytes of the buffer of `mem` and `iorun`.
    buffer: u64,
    io_device: String,
}

impl Default for Global {
    fn default() -> Global {
        Global {
            duration: None,
            calibration_ns: 1,
            class: Class::Fair(Policy::Other),
            buffer: MEM_BUFFER as u64,
            io_device: "/dev/null".into(),
        }
    }
}

struct Description {
    global: Global,
    tasks: Vec<Task>,
    tables: Tables,
    assumptions: Vec<String>,
}

impl Description {
    fn read(roots: &[Json]) -> Result<Description, Refusal> {
        let mut global = Global::default();
        let (mut tasks, mut resources) = (Vec::new(), Vec::new());
        for root in roots {
            for (key, value) in members(root, "the file")? {
                match key.as_str() {
                    "tasks" => tasks.push(value),
                    "global" => global.update(value)?,
                    // rt-app makes resources as it meets them; only the old grammar declares them
                    "resources" => resources.push(value),
                    _ => {
                        return Err((
                            value.line,
                            format!("'{key}' is not known (allowed: global, tasks, resources)"),
                        ));
                    }
                }
            }
        }
        let line = roots.first().map_or(1, |root| root.line);
        let missing =
            "there is no 'tasks': this is a part of a workload (allowed: rt-app FILE..., all parts together)";
        let tasks_line = tasks.first().ok_or((line, missing.to_owned()))?.line;
        let mut listed = Vec::new();
        for tasks in tasks {
            listed.extend(members(tasks, "tasks")?);
        }
        if listed.len() > MAX_TASKS {
            return Err((
                tasks_line,
                format!("tasks has {} tasks (allowed: up to {MAX_TASKS})", listed.len()),
            ));
        }
        let mut tables = Tables::default();
        let mut read = Vec::new();
        for (name, task) in listed {
            read.push(Task::read(name, task, &global, &resources, &mut tables)?);
        }
        let tasks = tasks_line;
        if read.iter().all(|task| task.instances == 0) {
            return Err((tasks, "tasks has no thread that would be started".into()));
        }
        let mut file = Description { global, tasks: read, tables, assumptions: Vec::new() };
        for index in 0..file.tasks.len() {
            let forked = file.forks_of(&file.tasks[index])?;
            file.tasks[index].link(&forked);
        }
        if let Some(task) =
            file.tasks.iter().find(|task| task.endless).filter(|_| file.global.duration.is_none())
        {
            file.global.duration = Some(ENDLESS_S);
            let what = format!("tasks.{} never ends, and there is no global.duration", task.name);
            file.assumptions.push(format!("{what}: {ENDLESS_S} s are simulated"));
        }
        Ok(file)
    }

    fn workload(&self, name: &str, scale: Scale) -> Result<Workload, Refusal> {
        let threads = self.count_threads(&self.forked_before_forking()?)?;
        let notes = self.alone(threads)?;
        let loops = if self.global.duration.is_some() { Scale::FULL } else { scale };
        let mut timers = self.tables.timers.len();
        // main's, which is made last; then one for each task, and for each instance with timers of its own
        let mut programs: Vec<Program> = vec![ProgramBuilder::default().build()];
        let mut attributes = vec![Attributes::default()];
        let mut roles = vec![Role::One("rt-app".into())];
        let mut add = |task: &Task| {
            programs.push(task.program(loops, timers));
            attributes.push(task.attributes());
            roles.push(Role::Instance(task.name.clone()));
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
            programs,
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            attributes,
            roles,
            shared: Shared {
                mutexes: self.tables.mutexes.len(),
                conds: self.tables.conds.len(),
                barriers: self.barriers(),
                timers,
                ..Shared::default()
            },
            cpu_sets: self.tables.cpu_sets.iter().cloned().map(CpuChoice::These).collect(),
            groups: self.tables.groups.clone(),
            assumptions: self.assumptions.clone(),
            notes,
            ..Workload::default()
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

    /// What classes and groups of threads have no effect, since there is only one thread.
    ///
    /// # Errors
    /// There are more, so they would have one.
    fn alone(&self, threads: u64) -> Result<Vec<String>, Refusal> {
        let mut notes = Vec::new();
        for needed in self.tasks.iter().flat_map(|task| &task.alone) {
            if threads > 1 {
                return Err((needed.line, format!("{} (allowed: of a file's only thread)", needed.why)));
            }
            notes.push(format!("{} has no effect on the only thread", needed.what));
        }
        Ok(notes)
    }

    /// The number of threads that there are in the course of a run; they have to be so many that they fit.
    fn count_threads(&self, order: &[usize]) -> Result<u64, Refusal> {
        // how many threads one thread of a task makes, itself included
        let mut makes = vec![1u64; self.tasks.len()];
        let mut total = 0u64;
        for &index in order {
            let task = &self.tasks[index];
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
        Ok(total)
    }
}

impl Global {
    /// Takes what is in a `global`, which may be of another file than the one before: what it does not name stays.
    fn update(&mut self, json: &Json) -> Result<(), Refusal> {
        for (key, value) in members(json, "global")? {
            let field = format!("global.{key}");
            match key.as_str() {
                "duration" => {
                    let seconds = integer(value, &field, -1, 1_000_000)?;
                    self.duration = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
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
                    _ => self.calibration_ns = integer(value, &field, 1, 1_000_000)? as u64,
                },
                "default_policy" => self.class = class(value, &field)?,
                "mem_buffer_size" => self.buffer = integer(value, &field, 1, task::MAX_US)? as u64,
                "io_device" => self.io_device = string(value, &field)?.to_owned(),
                "pi_enabled" => {
                    if value.value != Value::Bool(false) {
                        return Err((
                            value.line,
                            format!("{field}: priority inheritance is not simulated (allowed: false)"),
                        ));
                    }
                }
                // where and what rt-app logs; `frag` is of a version before 2014
                "lock_pages" | "logdir" | "log_basename" | "logname" | "log_size" | "ftrace" | "gnuplot"
                | "frag" | "cumulative_slack" => {}
                _ => return Err((value.line, format!("{field} is not known"))),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
