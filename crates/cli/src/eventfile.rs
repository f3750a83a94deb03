//! The events of a run as ftrace's text or as a file of perf, so that what reads a real machine's recording reads a
//! simulated one's.

use std::io;

use anyhow::{Context, Result};
use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_trace::{self as trace, Comm, EventWriter, Held, PerfWriter, Place, TextWriter, Written};
use coreward_workload::{TaskNames, Workload};

use crate::output::{Complete, OutputFile};

/// Who reads the file.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    /// What reads ftrace's text.
    Ftrace,
    /// perf.
    Perf,
}

/// Priority of a task of nice 0 (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;

enum Writer {
    Text(TextWriter<OutputFile>),
    Perf(PerfWriter<OutputFile>),
}

impl Writer {
    fn events(&mut self) -> &mut dyn EventWriter {
        match self {
            Writer::Text(writer) => writer,
            Writer::Perf(writer) => writer,
        }
    }

    fn finish(self) -> io::Result<OutputFile> {
        match self {
            Writer::Text(writer) => writer.finish(),
            Writer::Perf(writer) => writer.finish(),
        }
    }
}

/// Writes what it sees. The first error ends the writing and is reported by [`EventFile::finish`].
pub(crate) struct EventFile<'a> {
    writer: Writer,
    workload: &'a Workload,
    names: TaskNames<'a>,
    /// By pid, from 1 on, with their processes.
    tasks: Vec<(trace::Task, i32)>,
    /// What runs on each CPU.
    current: Vec<i32>,
    /// The time to which each CPU has got.
    reached: Vec<u64>,
    /// Events that an earlier one of another CPU may still come before.
    held: Held<(Place, Written)>,
    result: io::Result<()>,
}

impl<'a> EventFile<'a> {
    pub(crate) fn new(
        reader: Reader,
        file: OutputFile,
        cpus: usize,
        workload: &'a Workload,
    ) -> Result<EventFile<'a>> {
        Ok(EventFile {
            writer: match reader {
                Reader::Ftrace => Writer::Text(TextWriter::new(file)?),
                Reader::Perf => Writer::Perf(PerfWriter::new(file, cpus).context("--perf-data")?),
            },
            workload,
            names: TaskNames::new(workload),
            tasks: Vec::new(),
            current: vec![0; cpus],
            reached: vec![0; cpus],
            held: Held::new(0),
            result: Ok(()),
        })
    }

    /// The whole file.
    pub(crate) fn complete(mut self) -> Result<Complete> {
        self.write_until(u64::MAX);
        self.result?;
        self.writer.finish()?.complete()
    }

    /// The task and its process.
    fn task(&self, pid: i32) -> (trace::Task, i32) {
        let known = usize::try_from(pid).ok().and_then(|pid| self.tasks.get(pid.checked_sub(1)?));
        known.copied().unwrap_or((trace::Task { pid: 0, comm: Comm::new(b"swapper"), prio: DEFAULT_PRIO }, 0))
    }

    /// Something happens on a CPU, which is not before what has happened there already.
    fn happens(&mut self, at: u64, cpu: usize, in_interrupt: bool, event: Written) {
        let (current, tgid) = self.task(self.current[cpu]);
        let at = at.max(self.reached[cpu]);
        self.reached[cpu] = at;
        self.held.push(at, (Place { at, cpu, current, tgid, in_interrupt }, event));
    }

    /// Writes what has happened by then.
    fn write_until(&mut self, now: u64) {
        while let Some((place, event)) = self.held.pop(Some(now)) {
            if self.result.is_ok() {
                self.result = self.writer.events().event(&place, &event);
            }
        }
    }
}

impl Trace for EventFile<'_> {
    fn fork(&mut self, now: u64, pid: i32, process: i32, program: u32, base: u32) {
        let prio = DEFAULT_PRIO + i32::from(self.workload.attributes(program).nice);
        let comm = Comm::new(self.names.next(program, base).as_bytes());
        let task = trace::Task { pid, comm, prio };
        self.tasks.push((task, process));
        self.write_until(now);
        if self.result.is_ok() {
            self.result = self.writer.events().task(now, &task, process);
        }
    }

    fn waking(&mut self, when: Moment, cpu: usize, waker: Waker, pid: i32, target: usize, new: bool) {
        self.write_until(when.now);
        let (task, _) = self.task(pid);
        if new && waker.pid != 0 {
            self.happens(when.at, cpu, waker.in_interrupt, Written::Fork { child: task });
        }
        let event = if new { Written::WakeupNew { task, target } } else { Written::Waking { task, target } };
        self.happens(when.at, cpu, waker.in_interrupt, event);
    }

    fn migrate(&mut self, now: u64, cpu: usize, pid: i32, from: usize, to: usize) {
        let (task, _) = self.task(pid);
        self.write_until(now);
        self.happens(now, cpu, false, Written::Migrate { task, from, to });
    }

    fn switch(&mut self, when: Moment, cpu: usize, _: i32, leaving: Leaving, next: i32) {
        self.write_until(when.now);
        let (task, _) = self.task(next);
        let leaving = match leaving {
            _ if self.current[cpu] == 0 => trace::Leaving::Runnable,
            Leaving::Preempted => trace::Leaving::Runnable,
            Leaving::Blocked => trace::Leaving::Blocked,
            Leaving::Exited => trace::Leaving::Dead,
        };
        if leaving == trace::Leaving::Dead {
            self.happens(when.at, cpu, false, Written::Exit);
        }
        self.happens(when.at, cpu, false, Written::Switch { leaving, next: task });
        self.current[cpu] = next;
    }
}
