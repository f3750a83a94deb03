//! The events of a run as ftrace's text, so that what reads a real machine's trace reads a simulated one's.

use std::io;

use anyhow::{Context, Result};
use coreward_engine::{Leaving, Trace, Waker};
use coreward_trace::{self as trace, Comm, Place, TextWriter};
use coreward_workload::{TaskNames, Workload};

use crate::output::OutputFile;

/// Priority of a task of nice 0 (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;

/// Writes what it sees. The first error ends the writing and is reported by [`FtraceFile::finish`].
pub(crate) struct FtraceFile<'a> {
    writer: TextWriter<OutputFile>,
    workload: &'a Workload,
    names: TaskNames<'a>,
    /// By pid, from 1 on, with their processes.
    tasks: Vec<(trace::Task, i32)>,
    /// What runs on each CPU.
    current: Vec<i32>,
    result: io::Result<()>,
}

impl<'a> FtraceFile<'a> {
    pub(crate) fn new(file: OutputFile, cpus: usize, workload: &'a Workload) -> Result<FtraceFile<'a>> {
        Ok(FtraceFile {
            writer: TextWriter::new(file)?,
            workload,
            names: TaskNames::new(workload),
            tasks: Vec::new(),
            current: vec![0; cpus],
            result: Ok(()),
        })
    }

    /// Puts the file in place.
    pub(crate) fn finish(self) -> Result<()> {
        self.result.context("cannot write --ftrace")?;
        self.writer.finish().context("cannot finish --ftrace")?.finish()
    }

    /// The task and its process.
    fn task(&self, pid: i32) -> (trace::Task, i32) {
        let known = usize::try_from(pid).ok().and_then(|pid| self.tasks.get(pid.checked_sub(1)?));
        known.copied().unwrap_or((trace::Task { pid: 0, comm: Comm::new(b"swapper"), prio: DEFAULT_PRIO }, 0))
    }

    /// Writes an event that happens on a CPU.
    fn write(
        &mut self,
        now: u64,
        cpu: usize,
        in_interrupt: bool,
        event: impl FnOnce(&mut TextWriter<OutputFile>, &Place) -> io::Result<()>,
    ) {
        let (current, tgid) = self.task(self.current[cpu]);
        if self.result.is_ok() {
            self.result = event(&mut self.writer, &Place { at: now, cpu, current, tgid, in_interrupt });
        }
    }
}

impl Trace for FtraceFile<'_> {
    fn fork(&mut self, _: u64, pid: i32, process: i32, program: u32, base: u32) {
        let prio = DEFAULT_PRIO + i32::from(self.workload.attributes(program).nice);
        let comm = Comm::new(self.names.next(program, base).as_bytes());
        self.tasks.push((trace::Task { pid, comm, prio }, process));
    }

    fn waking(&mut self, now: u64, cpu: usize, waker: Waker, pid: i32, target: usize, new: bool) {
        let (task, _) = self.task(pid);
        self.write(now, cpu, waker.in_interrupt, |writer, place| {
            if !new {
                return writer.sched_waking(place, &task, target);
            }
            if waker.pid != 0 {
                writer.sched_process_fork(place, &task)?;
            }
            writer.sched_wakeup_new(place, &task, target)
        });
    }

    fn migrate(&mut self, now: u64, cpu: usize, pid: i32, from: usize, to: usize) {
        let (task, _) = self.task(pid);
        self.write(now, cpu, false, |writer, place| writer.sched_migrate_task(place, &task, from, to));
    }

    fn switch(&mut self, now: u64, cpu: usize, _: i32, leaving: Leaving, next: i32) {
        let (task, _) = self.task(next);
        self.write(now, cpu, false, |writer, place| {
            let leaving = match leaving {
                _ if place.current.pid == 0 => trace::Leaving::Runnable,
                Leaving::Preempted => trace::Leaving::Runnable,
                Leaving::Blocked => trace::Leaving::Blocked,
                Leaving::Exited => trace::Leaving::Dead,
            };
            if leaving == trace::Leaving::Dead {
                writer.sched_process_exit(place)?;
            }
            writer.sched_switch(place, leaving, &task)
        });
        self.current[cpu] = next;
    }
}
