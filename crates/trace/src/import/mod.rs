//! From a recording to the workload behind it.
//!
//! What a task did is divided by its waits. Being preempted, or waiting for a CPU, is neither: it is what the scheduler
//! did. A wait ends when `sched_waking` says so; whoever ran in process context then is the cause, and wakes the task in
//! the workload after as much work as it had done. An interrupt is a cause that comes after a time, or at a time.

mod answer;
mod attributes;
mod cause;
mod channel;
mod cpu;
mod draft;
mod finish;
mod kernel;
mod message;
mod report;
mod speed;
mod waking;

use std::collections::{BTreeSet, HashMap};

use coreward_machine::Machine;
use coreward_workload::recorded::{MAX_STEPS, MAX_TASKS, Watch};

use crate::event::{Channel, Comm, CpuSet, Event, Leaving, Task, What};
use attributes::{Attributes, Numbers};
pub use cause::{Cause, Causes};
use channel::Channels;
use cpu::{Cpus, Current};
use draft::Draft;
use message::{Batch, Connections, Sockets};
pub use report::{Class, LeftOut, Report};
use speed::Speed;

/// Most CPUs of a recording.
const MAX_CPUS: u32 = 4096;
/// Default priority of a task (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;

/// What is imported, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The machine that the recording was made on.
    pub machine: Option<Machine>,
    /// Names of tasks that are imported; empty for all. A `*` at the end stands for any ending.
    pub only: Vec<String>,
    /// Names of tasks that are left out, in the same form.
    pub without: Vec<String>,
    /// Interrupts wake tasks at the recorded times, whatever the tasks do; otherwise after the recorded waits.
    pub open_loop: bool,
    /// Tasks may run on any CPU, whatever affinity they had.
    pub any_cpu: bool,
    /// The part of the recording that is imported, in ns from its first event.
    pub from_ns: u64,
    /// Its end; `u64::MAX` for all.
    pub to_ns: u64,
}

/// Why a recording is not imported.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImportError {
    /// The machine has no such CPU.
    #[error("an event is of CPU {cpu}, but the machine of the recording has CPUs 0 to {last}")]
    Cpu {
        /// The CPU.
        cpu: u32,
        /// The machine's last one.
        last: usize,
    },
    /// There are too many.
    #[error("it has more than {0} (allowed: a part of it, with --from and --to)")]
    Large(String),
    /// Nothing is left.
    #[error("no task is left: {0}")]
    Nothing(&'static str),
}

/// Does a pattern of [`Options`] mean a task of that name?
fn means(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Why a task is left out.
const RECORDS: &str = "it made the recording";
const MOVES: &str = "it moves tasks, which a simulation does by itself";
const ASKED: &str = "as asked for";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was there before, and the recording has not said it yet.
    Unknown,
    Running,
    Queued {
        since: u64,
    },
    Blocked {
        since: u64,
    },
    Dead,
}

/// A wakeup by a task.
#[derive(Clone, Copy)]
struct Wakeup {
    by: usize,
    /// Where it stands among that one's drafts.
    draft: usize,
    cpu: usize,
    at: u64,
}

struct Seen {
    comm: Comm,
    tgid: Option<i32>,
    prio: i32,
    parent: Option<usize>,
    state: State,
    drafts: Vec<Draft>,
    /// Work since the last draft, and how often it was switched to meanwhile.
    open: (u64, u32),
    /// How many drafts it had when it was last switched to, and the work since the last of these.
    switched_to: (usize, u64),
    /// Nothing else was left to run on its CPU when it went to sleep.
    empties: bool,
    /// It was forked in the recording.
    new: bool,
    /// When its first step began.
    born: Option<u64>,
    left_out: Option<&'static str>,
    /// Where it ran last.
    cpu: Option<usize>,
    /// Who woke it, if it has not run since.
    wakeup: Option<Wakeup>,
    /// It was woken since it last ran on: if it seems to sleep now, the wakeup came between its dequeueing and its switch.
    woken_awake: Option<Cause>,
    /// What it is about to sleep on, or sleeps on.
    waits_on: Option<Channel>,
    /// What it last slept on to wait for sockets.
    listens: Option<Channel>,
    batch: Batch,
    /// What it has when it first runs, and what it has now.
    begins: Attributes,
    now: Attributes,
    cpu_ns: u64,
    queued_ns: u64,
    blocked_ns: u64,
    unknown_ns: u64,
    waits: Causes,
}

/// Collects what tasks did.
pub struct Import {
    options: Options,
    cpus: Cpus,
    tasks: Vec<Seen>,
    /// All names that tasks had.
    names: BTreeSet<Comm>,
    /// The present task of each thread id.
    by_pid: HashMap<i32, usize>,
    channels: Channels,
    sockets: Sockets,
    connections: Connections,
    /// Those that tasks may be bound to.
    sets: Numbers<CpuSet>,
    /// When tasks were woken, ran and waited, by their index.
    watch: Watch,
    start: Option<u64>,
    end: u64,
    steps: usize,
    report: Report,
    /// It has a switch, in the stretch that is imported or before it.
    switches: bool,
    /// Wakeups by `sched_waking`, and by `sched_wakeup` alone.
    wakings: [u64; 2],
    /// Wakeups by tasks that may have been interrupts, because the recording does not tell them apart.
    unsure: u64,
    /// It has events of interrupts' handlers, which tell them.
    handlers: bool,
    lost: (u64, u64),
    /// Switches away from a task that was not the one that ran.
    inconsistent: u64,
    speed: Speed,
}

impl Import {
    /// Nothing was seen yet.
    pub fn new(options: Options) -> Import {
        Import {
            cpus: Cpus::new(options.machine.as_ref()),
            options,
            tasks: Vec::new(),
            names: BTreeSet::new(),
            by_pid: HashMap::new(),
            channels: Channels::default(),
            sockets: Sockets::default(),
            connections: Connections::default(),
            sets: Numbers::default(),
            watch: Watch::default(),
            start: None,
            end: 0,
            steps: 0,
            report: Report::default(),
            switches: false,
            wakings: [0; 2],
            unsure: 0,
            handlers: false,
            lost: (0, 0),
            inconsistent: 0,
            speed: Speed::default(),
        }
    }

    /// Sees the next event. False if it is after the part that is imported, so that the rest need not be read.
    ///
    /// # Errors
    /// The machine has no such CPU, or there are too many tasks or steps.
    pub fn event(&mut self, event: &Event) -> Result<bool, ImportError> {
        let first = *self.start.get_or_insert(event.at);
        let after = event.at.saturating_sub(first);
        if after < self.options.from_ns {
            return Ok(true);
        }
        if after > self.options.to_ns {
            return Ok(false);
        }
        if self.report.events == 0 {
            self.cpus.begin(event.at);
            self.end = event.at;
            self.options.from_ns = event.at - first;
        }
        self.report.events += 1;
        *self.report.kinds.entry(event.what.name()).or_default() += 1;
        self.end = self.end.max(event.at);
        if let What::Lost { events } = event.what {
            self.lost = (self.lost.0 + 1, self.lost.1 + events);
            return Ok(true);
        }
        let cpu = self.cpu(event.cpu)?;
        self.header(event, cpu)?;
        if !matches!(event.what, What::Waking { .. }) {
            self.sockets.passes(cpu);
        }
        match event.what {
            What::Switch { prev, leaving, next } => self.switch(event.at, cpu, &prev, leaving, &next)?,
            What::Waking { task } => {
                self.wakings[0] += 1;
                self.waking(event, cpu, &task)?;
            }
            What::Wakeup { task } => {
                // the end of a wakeup that was seen is nothing new
                let index = self.task(&task)?;
                if matches!(self.tasks[index].state, State::Unknown | State::Blocked { .. }) {
                    self.wakings[1] += 1;
                    self.waking(event, cpu, &task)?;
                }
            }
            What::WakeupNew { task } => self.wakeup_new(event, cpu, &task)?,
            What::Fork { parent, child, comm } => self.fork(event.at, cpu, parent, child, comm)?,
            What::Exec { pid } => {
                self.account(cpu, event.at);
                if let Some(index) = self.by_pid.get(&pid).copied() {
                    self.named(index, event.comm, event.at, true);
                }
            }
            What::Migrate { pid } => {
                let known = self.by_pid.get(&pid).map(|index| &self.tasks[*index]);
                self.report.migrations += u64::from(known.is_none_or(|task| task.left_out.is_none()));
            }
            What::HandlerEntry(handler) => {
                self.account(cpu, event.at);
                self.handlers = true;
                self.cpus.enter(cpu, handler);
            }
            What::HandlerExit => {
                self.account(cpu, event.at);
                self.cpus.leave(cpu);
            }
            What::Speed { khz, fastest_khz } => {
                self.account(cpu, event.at);
                if let Current::Task(index) = self.cpus.current(cpu) {
                    self.ran_at(index, khz, fastest_khz);
                }
            }
            What::WaitsOn { channel } => {
                if let Current::Task(index) = self.cpus.current(cpu) {
                    self.tasks[index].waits_on = Some(channel);
                    if matches!(channel, Channel::Socket(_) | Channel::Epoll(_) | Channel::Poll) {
                        self.tasks[index].listens = Some(channel);
                        self.account(cpu, event.at);
                        self.begin_batch(index, 0);
                    }
                }
            }
            What::Arrived { socket } => self.arrived(event, cpu, socket)?,
            What::Received { socket } => self.received(event.at, cpu, socket),
            What::Allowed { pid, cpus } => {
                let index = self.task(&Task { pid, comm: event.comm, prio: DEFAULT_PRIO })?;
                // one none of whose CPUs is online may use all (cpuset_cpus_allowed_fallback())
                let some = cpus.iter().any(|word| *word != 0);
                let bound = some && !self.options.any_cpu && !self.everywhere(&cpus);
                let allowed = bound.then(|| self.sets.of(cpus));
                self.becomes(index, event.at, Attributes { allowed, ..self.tasks[index].now });
            }
            What::Grouped { pid, group } => {
                let index = self.task(&Task { pid, comm: event.comm, prio: DEFAULT_PRIO })?;
                self.becomes(index, event.at, Attributes { group, ..self.tasks[index].now });
            }
            What::Exit { .. } | What::Other | What::Lost { .. } => {}
        }
        if self.steps > MAX_STEPS {
            return Err(ImportError::Large(format!("{MAX_STEPS} steps")));
        }
        Ok(true)
    }

    fn cpu(&mut self, cpu: u32) -> Result<usize, ImportError> {
        let index = cpu as usize;
        if index < self.cpus.len() {
            return Ok(index);
        }
        if let Some(machine) = &self.options.machine {
            return Err(ImportError::Cpu { cpu, last: machine.nr_cpus() - 1 });
        }
        if cpu >= MAX_CPUS {
            return Err(ImportError::Large(format!("{MAX_CPUS} CPUs")));
        }
        self.cpus.grow(index);
        Ok(index)
    }

    /// Are these all CPUs of the machine, as far as it is known?
    fn everywhere(&self, cpus: &CpuSet) -> bool {
        self.options.machine.as_ref().is_some_and(|machine| {
            (0..machine.nr_cpus())
                .all(|cpu| cpus.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1))
        })
    }

    /// What an event says by the way: who runs, and in which process.
    fn header(&mut self, event: &Event, cpu: usize) -> Result<(), ImportError> {
        // perf names a task that is gone -1
        if event.pid < 0 {
            return Ok(());
        }
        if self.cpus.current(cpu) == Current::Unknown {
            let current = match event.pid {
                0 => Current::Idle,
                pid => {
                    let index = self.task(&Task { pid, comm: event.comm, prio: DEFAULT_PRIO })?;
                    self.tasks[index].state = State::Running;
                    Current::Task(index)
                }
            };
            self.cpus.switch(cpu, current);
        }
        if let Some(tgid) = event.tgid
            && let Some(index) = self.by_pid.get(&event.pid)
        {
            self.tasks[*index].tgid = Some(tgid);
        }
        Ok(())
    }

    /// The task of a thread id; one that is not known was there before.
    fn task(&mut self, task: &Task) -> Result<usize, ImportError> {
        if let Some(index) = self.by_pid.get(&task.pid) {
            return Ok(*index);
        }
        self.new_task(task, None)
    }

    fn new_task(&mut self, task: &Task, parent: Option<usize>) -> Result<usize, ImportError> {
        if self.tasks.len() >= MAX_TASKS {
            return Err(ImportError::Large(format!("{MAX_TASKS} tasks")));
        }
        let index = self.tasks.len();
        let records = match parent {
            Some(parent) => self.tasks[parent].left_out == Some(RECORDS),
            None => matches!(task.comm.bytes(), b"trace-cmd" | b"perf" | b"coreward-record"),
        };
        // a child has what its parent has, until an event says otherwise
        let inherited = parent.map_or_else(Attributes::default, |parent| self.tasks[parent].now);
        let begins = Attributes { nice: attributes::nice(task.prio), ..inherited };
        self.tasks.push(Seen {
            comm: task.comm,
            tgid: None,
            prio: task.prio,
            parent,
            state: State::Unknown,
            drafts: Vec::new(),
            open: (0, 0),
            switched_to: (0, 0),
            empties: false,
            new: parent.is_some(),
            born: None,
            cpu: None,
            left_out: if records { Some(RECORDS) } else { self.left_out(task.comm) },
            wakeup: None,
            woken_awake: None,
            waits_on: None,
            listens: None,
            batch: Batch::default(),
            begins,
            now: begins,
            cpu_ns: 0,
            queued_ns: 0,
            blocked_ns: 0,
            unknown_ns: 0,
            waits: Causes::default(),
        });
        self.by_pid.insert(task.pid, index);
        self.names.insert(task.comm);
        Ok(index)
    }

    /// Why a task of this name is left out.
    fn left_out(&self, comm: Comm) -> Option<&'static str> {
        let name = comm.to_string();
        let matches = |pattern: &String| means(pattern, &name);
        let Options { only, without, .. } = &self.options;
        if name.starts_with("migration/") {
            return Some(MOVES);
        }
        let asked = without.iter().any(matches) || (!only.is_empty() && !only.iter().any(matches));
        asked.then_some(ASKED)
    }

    /// Gives a CPU's task the time since it was last asked.
    fn account(&mut self, cpu: usize, now: u64) {
        if let Some(done) = self.cpus.account(cpu, now) {
            let task = &mut self.tasks[done.task];
            task.cpu_ns += done.time;
            task.open.0 += done.work;
        }
    }

    /// A task's work so far becomes a step, since another one follows.
    fn step(&mut self, index: usize, draft: Option<Draft>) {
        let task = &mut self.tasks[index];
        let (work, switches) = std::mem::take(&mut task.open);
        if work > 0 || switches > 0 {
            task.drafts.push(Draft::Run { work, switches, empties: std::mem::take(&mut task.empties) });
            self.steps += 1;
        }
        task.drafts.extend(draft);
        self.steps += 1;
    }

    fn switch(
        &mut self,
        at: u64,
        cpu: usize,
        prev: &Task,
        leaving: Leaving,
        next: &Task,
    ) -> Result<(), ImportError> {
        self.switches = true;
        for sibling in self.cpus.siblings(cpu) {
            self.account(sibling, at);
        }
        self.account(cpu, at);
        let left = if prev.pid == 0 { Current::Idle } else { Current::Task(self.task(prev)?) };
        let was = self.cpus.current(cpu);
        if was != left {
            self.inconsistent += 1;
            if let Current::Task(index) = was {
                self.tasks[index].state = State::Queued { since: at };
            }
        }
        if let Current::Task(index) = left {
            self.watch.leaves(index, leaving != Leaving::Runnable, at);
            self.named(index, prev.comm, at, false);
            self.has_prio(index, prev.prio, at);
            self.tasks[index].state = match leaving {
                Leaving::Runnable => State::Queued { since: at },
                Leaving::Blocked => State::Blocked { since: at },
                Leaving::Dead => State::Dead,
            };
        }
        let comes = if next.pid == 0 { Current::Idle } else { Current::Task(self.task(next)?) };
        if let Current::Task(index) = left {
            self.tasks[index].empties = comes == Current::Idle && leaving != Leaving::Runnable;
        }
        if let Current::Task(index) = comes {
            match self.tasks[index].state {
                State::Blocked { since } => match self.tasks[index].woken_awake {
                    Some(cause) => {
                        self.tasks[index].waits.count(cause);
                        self.tasks[index].queued_ns += at - since;
                        self.watch.woken(index, since);
                    }
                    None => self.wait(index, since, at, Cause::Unknown),
                },
                State::Queued { since } => self.tasks[index].queued_ns += at - since,
                _ => {}
            }
            self.watch.runs(index, cpu, at);
            if let Some(wakeup) = self.tasks[index].wakeup.take() {
                self.woken_afar(wakeup, cpu, at, left, leaving);
            }
            self.named(index, next.comm, at, false);
            self.has_prio(index, next.prio, at);
            let task = &mut self.tasks[index];
            (task.waits_on, task.woken_awake) = (None, None);
            task.state = State::Running;
            task.born.get_or_insert(at);
            task.switched_to = (task.drafts.len(), task.open.0);
            task.open.1 += 1;
            task.cpu = Some(cpu);
            self.report.switches += u64::from(task.left_out.is_none());
            self.switches_to(cpu, index);
        }
        self.cpus.switch(cpu, comes);
        Ok(())
    }

    fn has_prio(&mut self, index: usize, prio: i32, at: u64) {
        self.tasks[index].prio = prio;
        self.becomes(index, at, Attributes { nice: attributes::nice(prio), ..self.tasks[index].now });
    }

    /// A wait for something that is not an imported task ends.
    fn wait(&mut self, index: usize, since: u64, at: u64, cause: Cause) {
        self.waited(index, since, at, cause);
        self.step(index, Some(Draft::Block { since, at, cause }));
    }

    fn waited(&mut self, index: usize, since: u64, at: u64, cause: Cause) {
        let task = &mut self.tasks[index];
        task.waits.count(cause);
        task.blocked_ns += at - since;
        task.unknown_ns += if cause == Cause::Unknown { at - since } else { 0 };
    }

    fn wakeup_new(&mut self, event: &Event, cpu: usize, task: &Task) -> Result<(), ImportError> {
        let known = self.by_pid.get(&task.pid).copied();
        let index = match known
            .filter(|index| self.tasks[*index].state == State::Unknown && self.tasks[*index].new)
        {
            Some(index) => index,
            // its fork was not recorded
            None => {
                self.fork(event.at, cpu, event.pid, task.pid, task.comm)?;
                self.task(task)?
            }
        };
        self.tasks[index].state = State::Queued { since: event.at };
        self.has_prio(index, task.prio, event.at);
        Ok(())
    }

    fn fork(&mut self, at: u64, cpu: usize, parent: i32, child: i32, comm: Comm) -> Result<(), ImportError> {
        let child = Task { pid: child, comm, prio: DEFAULT_PRIO };
        // the idle task forks nothing: whoever did is not known
        let Some(parent) = self.by_pid.get(&parent).copied() else {
            let index = self.new_task(&child, None)?;
            self.tasks[index].new = true;
            self.step(index, Some(Draft::First { at }));
            return Ok(());
        };
        self.account(cpu, at);
        let index = self.new_task(&child, Some(parent))?;
        match (self.tasks[parent].left_out, self.tasks[index].left_out) {
            (None, None) => self.step(parent, Some(Draft::Start(index))),
            // nobody starts it, but it comes at that time
            (Some(_), None) => self.step(index, Some(Draft::First { at })),
            _ => {}
        }
        Ok(())
    }

    /// A task has a name, maybe a new one, and may be left out no more. A recorder ends to be one only by executing
    /// another program.
    fn named(&mut self, index: usize, comm: Comm, at: u64, executes: bool) {
        let task = &mut self.tasks[index];
        if std::mem::replace(&mut task.comm, comm) == comm && !executes {
            return;
        }
        self.names.insert(comm);
        let may_change = task.left_out == Some(ASKED) || (task.left_out == Some(RECORDS) && executes);
        if !may_change {
            return;
        }
        let left_out = self.left_out(comm);
        let task = &mut self.tasks[index];
        task.left_out = left_out;
        if left_out.is_none() {
            (task.open, task.new, task.parent) = ((0, 0), false, None);
            self.step(index, Some(Draft::First { at }));
        }
    }
}

#[cfg(test)]
mod tests;
