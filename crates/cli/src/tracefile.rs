//! The events of a run as a Perfetto trace file.

use anyhow::{Context, Result};
use coreward_engine::{Leaving, Trace};
use coreward_metrics::perfetto::{PrevState, TaskRef, Thread, TraceError, TraceWriter};

use crate::output::OutputFile;

/// Priority of a task of nice 0 (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;

/// Writes what it sees. The first error ends the writing and is reported by [`TraceFile::finish`].
pub(crate) struct TraceFile {
    writer: TraceWriter<OutputFile>,
    /// Name of every task: the workload's program.
    comm: String,
    /// What runs on each CPU.
    current: Vec<i32>,
    result: Result<(), TraceError>,
}

impl TraceFile {
    pub(crate) fn new(file: OutputFile, nr_cpus: usize, workload: &str) -> Result<TraceFile> {
        let comm = workload.split_whitespace().next().unwrap_or("task").to_owned();
        let writer = TraceWriter::new(file, nr_cpus as u32)?;
        Ok(TraceFile { writer, comm, current: vec![0; nr_cpus], result: Ok(()) })
    }

    /// Puts the trace in place.
    pub(crate) fn finish(self) -> Result<()> {
        self.result?;
        self.writer.finish().context("cannot finish the trace")?.finish()
    }

    fn record(
        &mut self,
        write: impl FnOnce(&mut TraceWriter<OutputFile>, &str, &[i32]) -> Result<(), TraceError>,
    ) {
        if self.result.is_ok() {
            self.result = write(&mut self.writer, &self.comm, &self.current);
        }
    }
}

fn task(pid: i32, comm: &str) -> TaskRef<'_> {
    if pid == 0 { TaskRef::IDLE } else { TaskRef { pid, comm, prio: DEFAULT_PRIO } }
}

impl Trace for TraceFile {
    fn fork(&mut self, now: u64, pid: i32, process: i32) {
        self.record(|writer, name, _| writer.process_tree(now, &[Thread { tid: pid, tgid: process, name }]));
    }

    fn waking(&mut self, now: u64, cpu: usize, waker: i32, pid: i32, target: usize, new: bool) {
        self.record(|writer, comm, _| match new {
            true => writer.sched_wakeup_new(now, cpu as u32, waker, task(pid, comm), target as u32),
            false => writer.sched_waking(now, cpu as u32, waker, task(pid, comm), target as u32),
        });
    }

    fn migrate(&mut self, now: u64, cpu: usize, pid: i32, from: usize, to: usize) {
        self.record(|writer, comm, current| {
            writer.sched_migrate_task(now, cpu as u32, current[cpu], task(pid, comm), from as u32, to as u32)
        });
    }

    fn switch(&mut self, now: u64, cpu: usize, prev: i32, leaving: Leaving, next: i32) {
        let state = match leaving {
            _ if prev == 0 => PrevState::Running,
            Leaving::Preempted => PrevState::Preempted,
            Leaving::Blocked => PrevState::Interruptible,
            Leaving::Exited => PrevState::Dead,
        };
        self.record(|writer, comm, _| {
            writer.sched_switch(now, cpu as u32, task(prev, comm), state, task(next, comm))
        });
        self.current[cpu] = next;
    }
}
