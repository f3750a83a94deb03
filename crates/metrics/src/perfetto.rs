//! Perfetto traces (`.pftrace`) of scheduling events, for <https://ui.perfetto.dev> and `trace_processor`.
//!
//! A trace is a stream of packets; this writer emits the ftrace events that the thread-state and CPU tracks are built
//! from, one bundle per CPU at a time, and so needs memory for the open bundles only.

mod proto;

use std::io::{self, Write};

use prost::Message;
use thiserror::Error;

use proto::{
    Event, FtraceEvent, FtraceEventBundle, ProcessTree, SchedMigrateTask, SchedSwitch, SchedWakeup,
    SystemInfo, Trace, TracePacket, TreeProcess, TreeThread, Utsname,
};

/// Events that a CPU collects before its bundle is written.
const BUNDLE_EVENTS: usize = 128;
/// All packets come from this one writer; Perfetto wants a number other than 0.
const SEQUENCE_ID: u32 = 1;
/// Kernel release that the trace claims. Perfetto reads `prev_state` by it: from 4.14 on, bit 0x100 means preempted.
const KERNEL_RELEASE: &str = "6.12.0";

/// Why a trace could not be written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The writer failed.
    #[error("cannot write the trace: {0}")]
    Io(#[from] io::Error),
    /// An event names a CPU that the trace was not opened for.
    #[error("trace event on CPU {cpu}, but the trace has CPUs 0 to {last}", last = .cpus.saturating_sub(1))]
    Cpu {
        /// The CPU of the event.
        cpu: u32,
        /// Number of CPUs of the trace.
        cpus: u32,
    },
}

/// What the previous task of a switch goes on to do, with the bits of `sched_switch`'s `prev_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrevState {
    /// Still runnable: it yielded (`R`).
    Running = 0x0,
    /// Still runnable: it was preempted (`R+`).
    Preempted = 0x100,
    /// Blocked, a signal can wake it (`S`).
    Interruptible = 0x1,
    /// Blocked, signals do not wake it (`D`).
    Uninterruptible = 0x2,
    /// Exited (`X`).
    Dead = 0x10,
}

/// A task as an event names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskRef<'a> {
    /// Thread id; 0 is the idle task.
    pub pid: i32,
    /// Name.
    pub comm: &'a str,
    /// Kernel priority: 120 + nice for fair tasks.
    pub prio: i32,
}

impl TaskRef<'static> {
    /// The idle task of any CPU.
    pub const IDLE: TaskRef<'static> = TaskRef { pid: 0, comm: "swapper", prio: 120 };
}

/// A thread of the process tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread<'a> {
    /// Thread id.
    pub tid: i32,
    /// Process id; the thread with `tid == tgid` names the process.
    pub tgid: i32,
    /// Name.
    pub name: &'a str,
}

/// Writes a trace. Times are in ns and must not go back on a CPU.
///
/// Call [`TraceWriter::finish`] at the end; without it, the last events are missing.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    out: W,
    /// Open bundle of each CPU.
    bundles: Vec<FtraceEventBundle>,
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace of CPUs 0 to `cpus - 1`.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn new(out: W, cpus: u32) -> Result<TraceWriter<W>, TraceError> {
        let bundle = |cpu| FtraceEventBundle { cpu: Some(cpu), event: Vec::new() };
        let mut writer = TraceWriter { out, bundles: (0..cpus).map(bundle).collect() };
        let utsname = Utsname { sysname: Some("Linux".into()), release: Some(KERNEL_RELEASE.into()) };
        writer.packet(TracePacket {
            system_info: Some(SystemInfo { utsname: Some(utsname) }),
            ..TracePacket::default()
        })?;
        Ok(writer)
    }

    /// Names threads and groups them by process.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn process_tree(&mut self, timestamp: u64, threads: &[Thread<'_>]) -> Result<(), TraceError> {
        let (leaders, others): (Vec<&Thread<'_>>, Vec<_>) =
            threads.iter().partition(|thread| thread.tid == thread.tgid);
        let process =
            |t: &Thread<'_>| TreeProcess { pid: Some(t.tgid), ppid: Some(0), cmdline: vec![t.name.into()] };
        let thread =
            |t: &Thread<'_>| TreeThread { tid: Some(t.tid), name: Some(t.name.into()), tgid: Some(t.tgid) };
        let tree = ProcessTree {
            processes: leaders.into_iter().map(process).collect(),
            threads: others.into_iter().map(thread).collect(),
        };
        self.packet(TracePacket {
            timestamp: Some(timestamp),
            process_tree: Some(tree),
            ..TracePacket::default()
        })
    }

    /// A CPU switches from one task to another.
    ///
    /// # Errors
    /// Any [`TraceError`].
    pub fn sched_switch(
        &mut self,
        timestamp: u64,
        cpu: u32,
        prev: TaskRef<'_>,
        prev_state: PrevState,
        next: TaskRef<'_>,
    ) -> Result<(), TraceError> {
        let event = SchedSwitch {
            prev_comm: Some(prev.comm.into()),
            prev_pid: Some(prev.pid),
            prev_prio: Some(prev.prio),
            prev_state: Some(prev_state as i64),
            next_comm: Some(next.comm.into()),
            next_pid: Some(next.pid),
            next_prio: Some(next.prio),
        };
        self.event(timestamp, cpu, prev.pid, Event::Switch(event))
    }

    /// A wakeup of `task` begins on `cpu`, by the task `waker` that runs there; it is to run on `target_cpu`.
    ///
    /// # Errors
    /// Any [`TraceError`].
    pub fn sched_waking(
        &mut self,
        timestamp: u64,
        cpu: u32,
        waker: i32,
        task: TaskRef<'_>,
        target_cpu: u32,
    ) -> Result<(), TraceError> {
        self.event(timestamp, cpu, waker, Event::Waking(SchedWakeup::new(task, target_cpu)))
    }

    /// A new task is woken for the first time on `cpu`, by its parent `waker`; it is to run on `target_cpu`.
    ///
    /// # Errors
    /// Any [`TraceError`].
    pub fn sched_wakeup_new(
        &mut self,
        timestamp: u64,
        cpu: u32,
        waker: i32,
        task: TaskRef<'_>,
        target_cpu: u32,
    ) -> Result<(), TraceError> {
        self.event(timestamp, cpu, waker, Event::WakeupNew(SchedWakeup::new(task, target_cpu)))
    }

    /// `task` is moved from `orig_cpu` to `dest_cpu` by `cpu`, where the task `current` runs.
    ///
    /// # Errors
    /// Any [`TraceError`].
    pub fn sched_migrate_task(
        &mut self,
        timestamp: u64,
        cpu: u32,
        current: i32,
        task: TaskRef<'_>,
        orig_cpu: u32,
        dest_cpu: u32,
    ) -> Result<(), TraceError> {
        let event = SchedMigrateTask {
            comm: Some(task.comm.into()),
            pid: Some(task.pid),
            prio: Some(task.prio),
            orig_cpu: Some(orig_cpu as i32),
            dest_cpu: Some(dest_cpu as i32),
        };
        self.event(timestamp, cpu, current, Event::MigrateTask(event))
    }

    /// Writes what is still open and gives the writer back, flushed.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn finish(mut self) -> Result<W, TraceError> {
        for cpu in 0..self.bundles.len() {
            self.close_bundle(cpu)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn event(&mut self, timestamp: u64, cpu: u32, pid: i32, event: Event) -> Result<(), TraceError> {
        let cpus = self.bundles.len() as u32;
        let bundle = self.bundles.get_mut(cpu as usize).ok_or(TraceError::Cpu { cpu, cpus })?;
        bundle.event.push(FtraceEvent {
            timestamp: Some(timestamp),
            pid: Some(pid as u32),
            event: Some(event),
        });
        if bundle.event.len() >= BUNDLE_EVENTS { self.close_bundle(cpu as usize) } else { Ok(()) }
    }

    fn close_bundle(&mut self, cpu: usize) -> Result<(), TraceError> {
        let event = std::mem::take(&mut self.bundles[cpu].event);
        if event.is_empty() {
            return Ok(());
        }
        let bundle = FtraceEventBundle { cpu: Some(cpu as u32), event };
        self.packet(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() })
    }

    fn packet(&mut self, packet: TracePacket) -> Result<(), TraceError> {
        let trace = Trace { packet: vec![TracePacket { sequence_id: Some(SEQUENCE_ID), ..packet }] };
        Ok(self.out.write_all(&trace.encode_to_vec())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskRef<'_> = TaskRef { pid: 101, comm: "sender", prio: 120 };
    const B: TaskRef<'_> = TaskRef { pid: 102, comm: "receiver", prio: 120 };

    /// One event of each kind: A wakes B from CPU 0 to CPU 1, B runs there, A forks and blocks.
    fn trace() -> Vec<u8> {
        let mut trace = TraceWriter::new(Vec::new(), 2).unwrap();
        let threads = [
            Thread { tid: 100, tgid: 100, name: "hackbench" },
            Thread { tid: 101, tgid: 100, name: "sender" },
        ];
        trace.process_tree(0, &threads).unwrap();
        trace.sched_switch(1_000, 0, TaskRef::IDLE, PrevState::Running, A).unwrap();
        trace.sched_waking(2_000, 0, A.pid, B, 1).unwrap();
        trace.sched_migrate_task(2_100, 0, A.pid, B, 0, 1).unwrap();
        trace.sched_switch(5_000, 1, TaskRef::IDLE, PrevState::Running, B).unwrap();
        trace.sched_wakeup_new(6_000, 0, A.pid, TaskRef { pid: 103, comm: "child", prio: 120 }, 0).unwrap();
        trace.sched_switch(7_000, 0, A, PrevState::Interruptible, TaskRef::IDLE).unwrap();
        trace.sched_switch(8_000, 1, B, PrevState::Preempted, TaskRef::IDLE).unwrap();
        trace.finish().unwrap()
    }

    #[test]
    fn golden_trace() {
        // The file decodes to exactly these events with the descriptors in Perfetto's own Python package (0.59.1).
        assert_eq!(trace(), include_bytes!("../tests/golden/trace.pftrace"));
    }

    #[test]
    fn first_packet_worked_by_hand() {
        // Trace.packet = 1: 0a; TracePacket: trusted_packet_sequence_id = 10: 50 01, system_info = 45: ea 02;
        // SystemInfo.utsname = 1: 0a; Utsname.sysname = 1: 0a 05, release = 3: 1a 06.
        let out = TraceWriter::new(Vec::new(), 1).unwrap().finish().unwrap();
        let mut want = vec![0x0a, 0x16, 0x50, 0x01, 0xea, 0x02, 0x11, 0x0a, 0x0f, 0x0a, 0x05];
        want.extend(b"Linux");
        want.extend([0x1a, 0x06]);
        want.extend(b"6.12.0");
        assert_eq!(out, want);
    }

    #[test]
    fn bundles_are_streamed_in_order() {
        let mut trace = TraceWriter::new(Vec::new(), 2).unwrap();
        for i in 0..BUNDLE_EVENTS as u64 * 2 + 1 {
            trace.sched_waking(i, 1, A.pid, B, 0).unwrap();
        }
        assert!(trace.bundles[1].event.len() == 1, "full bundles are written at once");
        let decoded = Trace::decode(&trace.finish().unwrap()[..]).unwrap();
        let bundles: Vec<_> =
            decoded.packet.iter().filter_map(|packet| packet.ftrace_events.as_ref()).collect();
        assert!(bundles.iter().all(|bundle| bundle.cpu == Some(1)));
        let times: Vec<u64> =
            bundles.iter().flat_map(|b| &b.event).filter_map(|event| event.timestamp).collect();
        assert_eq!(times, (0..BUNDLE_EVENTS as u64 * 2 + 1).collect::<Vec<_>>());
    }

    #[test]
    fn an_unknown_cpu_is_an_error() {
        let mut trace = TraceWriter::new(Vec::new(), 2).unwrap();
        let error = trace.sched_waking(0, 2, 1, B, 0).unwrap_err();
        assert_eq!(error.to_string(), "trace event on CPU 2, but the trace has CPUs 0 to 1");
    }
}
