//! The events of a run as a Perfetto trace file.
//!
//! Threads have the names of their roles. Each placement is an instant on the waker's track (on that of its CPU if an
//! interrupt woke the task), with its reason and what it was based on, and an arrow leads from there to where the task
//! runs. Balances are instants on the tracks of CPUs. Two counters of each LLC say how many of its CPUs run a task, and
//! how many tasks wait there.

use anyhow::Result;
use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_metrics::perfetto::{
    Flow, Instant, PrevState, TaskRef, Thread, TraceError, TraceWriter, Track, Value,
};
use coreward_policy::{Code, Decision};
use coreward_workload::{TaskNames, Workload};

use crate::explain;
use crate::output::{Complete, OutputFile};
use crate::setup::Host;

/// Priority of a task of nice 0 (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;

/// Writes what it sees. The first error ends the writing and is reported by [`TraceFile::finish`].
pub(crate) struct TraceFile<'a> {
    writer: TraceWriter<OutputFile>,
    workload: &'a Workload,
    names: TaskNames<'a>,
    /// What knows the reasons.
    code: &'static Code,
    /// By pid, from 1 on.
    tasks: Vec<Task>,
    /// What runs on each CPU.
    current: Vec<i32>,
    llcs: Llcs,
    /// Arrows so far.
    flows: u64,
    result: Result<(), TraceError>,
}

struct Task {
    name: String,
    prio: i32,
    /// The CPU on whose queue it waits, or to which it is on its way.
    waits_on: Option<usize>,
    /// The arrow that leads to where it runs next, and when it was woken.
    woken: Option<(u64, u64)>,
}

/// The counters of last-level caches.
struct Llcs {
    /// Of each CPU.
    of: Vec<usize>,
    /// CPUs of each that run a task.
    running: Vec<i64>,
    /// Tasks that wait in each.
    queued: Vec<i64>,
}

impl Llcs {
    fn running_track(llc: usize) -> Track {
        Track::counter(2 * llc as u32)
    }

    fn queued_track(llc: usize) -> Track {
        Track::counter(2 * llc as u32 + 1)
    }
}

impl<'a> TraceFile<'a> {
    pub(crate) fn new(file: OutputFile, host: &Host, workload: &'a Workload) -> Result<TraceFile<'a>> {
        let machine = &host.machine;
        let mut writer = TraceWriter::new(file, machine.nr_cpus() as u32)?;
        for cpu in 0..machine.nr_cpus() {
            writer.named_track(Track::cpu(cpu as u32), &format!("CPU {cpu} decisions"))?;
        }
        let nr_llcs = machine.nr_llcs();
        for llc in 0..nr_llcs {
            writer.counter_track(Llcs::running_track(llc), &format!("LLC {llc} running"), "tasks")?;
            writer.counter_track(Llcs::queued_track(llc), &format!("LLC {llc} queued"), "tasks")?;
        }
        let of = machine.cpus.iter().map(|cpu| cpu.llc).collect();
        Ok(TraceFile {
            writer,
            workload,
            names: TaskNames::new(workload),
            code: host.policy.code,
            tasks: Vec::new(),
            current: vec![0; machine.nr_cpus()],
            llcs: Llcs { of, running: vec![0; nr_llcs], queued: vec![0; nr_llcs] },
            flows: 0,
            result: Ok(()),
        })
    }

    /// The whole trace.
    pub(crate) fn complete(self) -> Result<Complete> {
        self.result?;
        self.writer.finish()?.complete()
    }

    fn record(
        &mut self,
        write: impl FnOnce(&mut TraceWriter<OutputFile>, &[Task]) -> Result<(), TraceError>,
    ) {
        if self.result.is_ok() {
            self.result = write(&mut self.writer, &self.tasks);
        }
    }

    fn task_mut(&mut self, pid: i32) -> Option<&mut Task> {
        self.tasks.get_mut(usize::try_from(pid).ok()?.checked_sub(1)?)
    }

    /// The task waits on this CPU, or no longer waits.
    fn wait(&mut self, now: u64, pid: i32, on: Option<usize>) {
        let Some(task) = self.task_mut(pid) else { return };
        let before = std::mem::replace(&mut task.waits_on, on);
        let [before, after] = [before, on].map(|cpu| cpu.map(|cpu| self.llcs.of[cpu]));
        if before == after {
            return;
        }
        for (llc, change) in [(before, -1), (after, 1)] {
            if let Some(llc) = llc {
                self.llcs.queued[llc] += change;
                let value = self.llcs.queued[llc];
                self.record(|writer, _| writer.counter(now, Llcs::queued_track(llc), value));
            }
        }
    }

    /// An instant from which an arrow leads to where the task runs next.
    fn placed(&mut self, now: u64, cpu: usize, pid: i32, name: &str, args: &[(&str, Value<'_>)]) {
        self.flows += 1;
        let id = self.flows;
        let Some(task) = self.task_mut(pid) else { return };
        task.woken = Some((id, now));
        let track = match self.current[cpu] {
            0 => Track::cpu(cpu as u32),
            waker => Track::thread(waker),
        };
        let what = Instant { name, category: "placement", args, flow: Flow::Begins(id) };
        self.record(|writer, _| writer.instant(now, track, &what));
    }
}

/// The task as an event names it.
fn task(tasks: &[Task], pid: i32) -> TaskRef<'_> {
    match usize::try_from(pid).ok().and_then(|pid| tasks.get(pid.checked_sub(1)?)) {
        Some(task) => TaskRef { pid, comm: &task.name, prio: task.prio },
        None => TaskRef::IDLE,
    }
}

impl Trace for TraceFile<'_> {
    fn fork(&mut self, now: u64, pid: i32, process: i32, program: u32, base: u32) {
        let prio = DEFAULT_PRIO + i32::from(self.workload.attributes(program).nice);
        let name = self.names.next(program, base);
        self.tasks.push(Task { name, prio, waits_on: None, woken: None });
        self.record(|writer, tasks| {
            let thread = Thread { tid: pid, tgid: process, name: task(tasks, pid).comm };
            writer.process_tree(now, &[thread])?;
            writer.thread_track(&thread)
        });
    }

    fn waking(&mut self, when: Moment, cpu: usize, waker: Waker, pid: i32, target: usize, new: bool) {
        let now = when.now;
        if self.task_mut(pid).is_some_and(|task| task.woken.is_none()) {
            let to = [("task", Value::Int(pid.into())), ("cpu", Value::Int(target as i64))];
            self.placed(now, cpu, pid, "no choice of a CPU", &to);
        }
        self.wait(now, pid, Some(target));
        self.record(|writer, tasks| match new {
            true => writer.sched_wakeup_new(now, cpu as u32, waker.pid, task(tasks, pid), target as u32),
            false => writer.sched_waking(now, cpu as u32, waker.pid, task(tasks, pid), target as u32),
        });
    }

    fn migrate(&mut self, now: u64, cpu: usize, pid: i32, from: usize, to: usize) {
        if self.task_mut(pid).is_some_and(|task| task.waits_on.is_some()) {
            self.wait(now, pid, Some(to));
        }
        let current = self.current[cpu];
        self.record(|writer, tasks| {
            let (from, to) = (from as u32, to as u32);
            writer.sched_migrate_task(now, cpu as u32, current, task(tasks, pid), from, to)
        });
    }

    fn switch(&mut self, when: Moment, cpu: usize, prev: i32, leaving: Leaving, next: i32) {
        let now = when.now;
        let state = match leaving {
            _ if prev == 0 => PrevState::Running,
            Leaving::Preempted => PrevState::Preempted,
            Leaving::Blocked => PrevState::Interruptible,
            Leaving::Exited => PrevState::Dead,
        };
        self.record(|writer, tasks| {
            writer.sched_switch(now, cpu as u32, task(tasks, prev), state, task(tasks, next))
        });
        self.current[cpu] = next;
        self.wait(now, prev, (state == PrevState::Preempted).then_some(cpu));
        self.wait(now, next, None);
        let change = i64::from(next != 0) - i64::from(prev != 0);
        if change != 0 {
            let llc = self.llcs.of[cpu];
            self.llcs.running[llc] += change;
            let value = self.llcs.running[llc];
            self.record(|writer, _| writer.counter(now, Llcs::running_track(llc), value));
        }
        if let Some((id, since)) = self.task_mut(next).and_then(|task| task.woken.take()) {
            let waited = [("cpu", Value::Int(cpu as i64)), ("waited_ns", Value::Int((now - since) as i64))];
            let what = Instant { name: "runs", category: "wakeup", args: &waited, flow: Flow::Ends(id) };
            self.record(|writer, _| writer.instant(now, Track::thread(next), &what));
        }
    }

    fn decision(&mut self, d: &Decision) {
        let notes: Vec<_> = explain::notes(self.code, d).map(|(_, text)| text).collect();
        let notes = notes.join("; ");
        let kind = explain::balance(d);
        let mut args = vec![("kind", Value::Text(kind.unwrap_or(explain::placement(d))))];
        if kind.is_none() {
            args.push(("task", Value::Int(d.pid.into())));
            args.push(("prev_cpu", Value::Int(d.prev_cpu.into())));
            args.push(("target", Value::Int(d.target.into())));
        }
        // a balance that pulls nothing has none
        args.extend((d.cpu >= 0).then_some(("cpu", Value::Int(d.cpu.into()))));
        args.push(("cpus_scanned", Value::Int(d.cpus_scanned.into())));
        args.push(("groups_scanned", Value::Int(d.groups_scanned.into())));
        args.extend((!notes.is_empty()).then_some(("notes", Value::Text(&notes))));
        let reason = self.code.reason(d.reason).text;
        if kind.is_none() {
            return self.placed(d.now, d.this_cpu as usize, d.pid, reason, &args);
        }
        let what = Instant { name: reason, category: "balance", args: &args, flow: Flow::None };
        self.record(|writer, _| writer.instant(d.now, Track::cpu(d.this_cpu as u32), &what));
    }
}
