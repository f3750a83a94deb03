//! Perfetto traces (`.pftrace`) of scheduling events, for <https://ui.perfetto.dev> and `trace_processor`.
//!
//! A trace is a stream of packets; this writer emits the ftrace events that the thread-state and CPU tracks are built
//! from, one bundle per CPU at a time, so it needs memory only for the open bundles. Events on other tracks follow each
//! other as they come.

mod proto;
mod track;

use std::io::{self, Write};

use thiserror::Error;

use proto::Message;
pub use track::{Flow, Instant, Track, Value};

/// Numbers of the fields that are written, as in Perfetto's `protos/perfetto/trace`: `trace.proto` and
/// `trace_packet.proto` here, those of the messages within where they are made.
const TRACE_PACKET: u32 = 1;
const PACKET_FTRACE_EVENTS: u32 = 1;
const PACKET_PROCESS_TREE: u32 = 2;
const PACKET_TIMESTAMP: u32 = 8;
const PACKET_SEQUENCE_ID: u32 = 10;
const PACKET_SYSTEM_INFO: u32 = 45;
/// Of `ftrace/ftrace_event_bundle.proto`.
const BUNDLE_CPU: u32 = 1;
const BUNDLE_EVENT: u32 = 2;
/// Of `ftrace/ftrace_event.proto`.
const EVENT_TIMESTAMP: u32 = 1;
const EVENT_PID: u32 = 2;
const EVENT_SCHED_SWITCH: u32 = 4;
const EVENT_SCHED_WAKING: u32 = 20;
const EVENT_SCHED_WAKEUP_NEW: u32 = 114;
const EVENT_SCHED_MIGRATE_TASK: u32 = 491;

/// Events that a CPU collects before its bundle is written.
const BUNDLE_EVENTS: usize = 128;
/// All packets come from this one writer; Perfetto wants a number other than 0.
const SEQUENCE_ID: u64 = 1;
/// Kernel release that the trace claims. Perfetto reads `prev_state` by it: from 4.14 on, bit 0x100 means preempted.
const KERNEL_RELEASE: &str = "6.12.0";

/// Why a trace could not be written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The writer failed.
    #[error(transparent)]
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
    bundles: Vec<Bundle>,
}

/// Events of a CPU that are not written yet.
#[derive(Clone, Debug, Default)]
struct Bundle {
    message: Message,
    events: usize,
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace of CPUs 0 to `cpus - 1`.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn new(out: W, cpus: u32) -> Result<TraceWriter<W>, TraceError> {
        let mut writer = TraceWriter { out, bundles: vec![Bundle::default(); cpus as usize] };
        // system_info.proto
        let utsname = Message::default().text(1, "Linux").text(3, KERNEL_RELEASE);
        let info = Message::default().message(1, &utsname);
        let packet = Message::default().uint(PACKET_SEQUENCE_ID, SEQUENCE_ID);
        writer.packet(&packet.message(PACKET_SYSTEM_INFO, &info))?;
        Ok(writer)
    }

    /// Names threads and groups them by process.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn process_tree(&mut self, timestamp: u64, threads: &[Thread<'_>]) -> Result<(), TraceError> {
        // ps/process_tree.proto
        let process = |t: &Thread<'_>| Message::default().int(1, t.tgid.into()).int(2, 0).text(3, t.name);
        let thread =
            |t: &Thread<'_>| Message::default().int(1, t.tid.into()).text(2, t.name).int(3, t.tgid.into());
        let mut tree = Message::default();
        for leader in threads.iter().filter(|thread| thread.tid == thread.tgid) {
            tree = tree.message(1, &process(leader));
        }
        for other in threads.iter().filter(|thread| thread.tid != thread.tgid) {
            tree = tree.message(2, &thread(other));
        }
        let packet = Message::default().message(PACKET_PROCESS_TREE, &tree).uint(PACKET_TIMESTAMP, timestamp);
        self.packet(&packet.uint(PACKET_SEQUENCE_ID, SEQUENCE_ID))
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
        // ftrace/sched.proto
        let event = Message::default()
            .text(1, prev.comm)
            .int(2, prev.pid.into())
            .int(3, prev.prio.into())
            .int(4, prev_state as i64)
            .text(5, next.comm)
            .int(6, next.pid.into())
            .int(7, next.prio.into());
        self.event(timestamp, cpu, prev.pid, EVENT_SCHED_SWITCH, &event)
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
        self.event(timestamp, cpu, waker, EVENT_SCHED_WAKING, &sched_wakeup(task, target_cpu))
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
        self.event(timestamp, cpu, waker, EVENT_SCHED_WAKEUP_NEW, &sched_wakeup(task, target_cpu))
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
        let event = task_fields(task).int(4, orig_cpu.into()).int(5, dest_cpu.into());
        self.event(timestamp, cpu, current, EVENT_SCHED_MIGRATE_TASK, &event)
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

    /// `pid` is the task that ran when the event happened, `kind` the field of the event.
    fn event(
        &mut self,
        timestamp: u64,
        cpu: u32,
        pid: i32,
        kind: u32,
        event: &Message,
    ) -> Result<(), TraceError> {
        let cpus = self.bundles.len() as u32;
        let bundle = self.bundles.get_mut(cpu as usize).ok_or(TraceError::Cpu { cpu, cpus })?;
        if bundle.events == 0 {
            bundle.message = Message::default().uint(BUNDLE_CPU, cpu.into());
        }
        let event = Message::default()
            .uint(EVENT_TIMESTAMP, timestamp)
            .uint(EVENT_PID, u64::from(pid as u32))
            .message(kind, event);
        bundle.message = std::mem::take(&mut bundle.message).message(BUNDLE_EVENT, &event);
        bundle.events += 1;
        if bundle.events >= BUNDLE_EVENTS { self.close_bundle(cpu as usize) } else { Ok(()) }
    }

    fn close_bundle(&mut self, cpu: usize) -> Result<(), TraceError> {
        let bundle = std::mem::take(&mut self.bundles[cpu]);
        if bundle.events == 0 {
            return Ok(());
        }
        let packet = Message::default().message(PACKET_FTRACE_EVENTS, &bundle.message);
        self.packet(&packet.uint(PACKET_SEQUENCE_ID, SEQUENCE_ID))
    }

    /// Concatenated traces are a trace, which is what makes streaming possible.
    fn packet(&mut self, packet: &Message) -> Result<(), TraceError> {
        Ok(self.out.write_all(Message::default().message(TRACE_PACKET, packet).bytes())?)
    }
}

/// The fields that events about a task begin with.
fn task_fields(task: TaskRef<'_>) -> Message {
    Message::default().text(1, task.comm).int(2, task.pid.into()).int(3, task.prio.into())
}

/// `sched_waking` and `sched_wakeup_new`, which have the same fields.
fn sched_wakeup(task: TaskRef<'_>, target_cpu: u32) -> Message {
    task_fields(task).int(4, 1).int(5, target_cpu.into())
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
        trace.thread_track(&threads[1]).unwrap();
        trace.named_track(Track::cpu(1), "CPU 1 decisions").unwrap();
        trace.counter_track(Track::counter(0), "LLC 0 running", "tasks").unwrap();
        let args = [("prev_cpu", Value::Int(-1)), ("kind", Value::Text("wakeup"))];
        let placed =
            Instant { name: "idle core", category: "placement", args: &args, flow: Flow::Begins(1 << 40) };
        trace.instant(2_050, Track::thread(101), &placed).unwrap();
        let ran = Instant { name: "runs", category: "wakeup", args: &[], flow: Flow::Ends(1 << 40) };
        trace.instant(5_000, Track::cpu(1), &ran).unwrap();
        trace.counter(5_000, Track::counter(0), 2).unwrap();
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
        assert!(trace.bundles[1].events == 1, "full bundles are written at once");
        let trace = trace.finish().unwrap();
        let mut times = Vec::new();
        for (_, packet) in fields(&trace) {
            for (_, bundle) in fields(packet).into_iter().filter(|(field, _)| *field == PACKET_FTRACE_EVENTS)
            {
                let bundle = fields(bundle);
                assert_eq!(bundle[0], (BUNDLE_CPU, &[1][..]));
                let events = bundle.iter().filter(|(field, _)| *field == BUNDLE_EVENT);
                times.extend(events.map(|(_, event)| varint(&mut fields(event)[0].1)));
            }
        }
        assert_eq!(times, (0..BUNDLE_EVENTS as u64 * 2 + 1).collect::<Vec<_>>());
    }

    /// The fields of a message, as the format's documentation has it.
    fn fields(mut message: &[u8]) -> Vec<(u32, &[u8])> {
        let mut fields = Vec::new();
        while !message.is_empty() {
            let tag = varint(&mut message);
            let length = match tag & 7 {
                0 => 1 + message.iter().position(|byte| byte & 0x80 == 0).unwrap(),
                2 => varint(&mut message) as usize,
                other => panic!("wire type {other}"),
            };
            let (value, rest) = message.split_at(length);
            fields.push(((tag >> 3) as u32, value));
            message = rest;
        }
        fields
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let end = 1 + bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
        let (value, rest) = bytes.split_at(end);
        *bytes = rest;
        value.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
    }

    #[test]
    fn an_unknown_cpu_is_an_error() {
        let mut trace = TraceWriter::new(Vec::new(), 2).unwrap();
        let error = trace.sched_waking(0, 2, 1, B, 0).unwrap_err();
        assert_eq!(error.to_string(), "trace event on CPU 2, but the trace has CPUs 0 to 1");
    }
}
