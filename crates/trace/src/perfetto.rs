//! Perfetto traces, of which events of ftrace are read, also in the form that puts switches and wakeups into columns
//! (`compact_sched`).
//!
//! The numbers of fields are those of Perfetto's `protos/perfetto/trace`. A bundle has events of one CPU. Columns do not
//! say who ran before a switch, nor who woke: that is who the CPU switched to last.

mod wire;

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, Read};

use flate2::read::ZlibDecoder;

use self::wire::{Fields, Value, packed};
use crate::binary::softirq;
use crate::event::{Comm, Event, Handler, Task, What};
use crate::held::Held;
use crate::payload::leaving_bits;
use crate::recording::Source;
use crate::{Format, ReadError};

/// The largest packet, and the largest that a compressed one makes, in bytes.
const MAX_PACKET: u64 = 8 << 20;
const MAX_UNPACKED: u64 = 16 << 20;
/// The most threads that are known.
const MAX_THREADS: usize = 1 << 18;
/// The most CPUs.
const MAX_CPUS: u64 = 4096;

/// `trace_packet.proto`
const FTRACE_EVENTS: u32 = 1;
const PROCESS_TREE: u32 = 2;
const COMPRESSED_PACKETS: u32 = 50;
/// `ftrace_event_bundle.proto`
const CPU: u32 = 1;
const EVENT: u32 = 2;
const LOST_EVENTS: u32 = 3;
const COMPACT_SCHED: u32 = 4;

/// `common_flags`: a handler of an interrupt, of a softirq or of an NMI.
const IN_INTERRUPT: u64 = 0x08 | 0x10 | 0x40;

/// An event of a bundle.
struct Found {
    at: u64,
    /// Who ran, if it says so.
    pid: Option<i32>,
    in_interrupt: Option<bool>,
    what: Kind,
}

enum Kind {
    Whole(What),
    /// A switch of a column, which knows only the next task.
    Switch {
        next: Task,
        prev_state: i64,
    },
}

/// What is known of a thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    tgid: Option<i32>,
    comm: Option<Comm>,
}

/// Reads a trace.
pub(crate) struct PerfettoReader<R> {
    input: R,
    /// Bytes that were read.
    at: u64,
    held: Held<Event>,
    threads: HashMap<i32, Thread>,
    /// Who runs on a CPU.
    current: HashMap<u32, Task>,
    ended: bool,
}

/// What is wrong with a message.
type Wrong = &'static str;

impl<R: BufRead> PerfettoReader<R> {
    pub(crate) fn new(input: R) -> PerfettoReader<R> {
        let (threads, current) = (HashMap::new(), HashMap::new());
        PerfettoReader { input, at: 0, held: Held::new(0), threads, current, ended: false }
    }

    /// A number of the file; `None` at its end.
    fn varint(&mut self) -> Result<Option<u64>, ReadError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            if self.input.read(&mut byte)? == 0 {
                return if shift == 0 {
                    Ok(None)
                } else {
                    Err(self.refuse("it ends within a packet".into()))
                };
            }
            self.at += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(Some(value));
            }
        }
        Err(self.refuse("a number has more than 64 bits".into()))
    }

    /// Reads a packet. False at the end.
    fn packet(&mut self) -> Result<bool, ReadError> {
        let Some(tag) = self.varint()? else { return Ok(false) };
        if tag != 0x0a {
            return Err(self.refuse("where a packet should begin, something else stands".into()));
        }
        let length = self.varint()?.unwrap_or(0);
        if length > MAX_PACKET {
            let what = format!("a packet has {length} bytes (allowed: up to {MAX_PACKET})");
            return Err(self.refuse(what));
        }
        let mut packet = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut packet)?;
        self.at += packet.len() as u64;
        if packet.len() as u64 != length {
            return Err(self.refuse("it ends within a packet".into()));
        }
        self.parts(&packet, true).map_err(|what| self.refuse(what.into()))?;
        Ok(true)
    }

    fn parts(&mut self, packet: &[u8], outer: bool) -> Result<(), Wrong> {
        for field in Fields(packet) {
            match field? {
                (FTRACE_EVENTS, Value::Bytes(bundle)) => self.bundle(bundle)?,
                (PROCESS_TREE, Value::Bytes(tree)) => self.tree(tree)?,
                (COMPRESSED_PACKETS, Value::Bytes(packed)) if outer => {
                    let mut plain = Vec::new();
                    let mut input = ZlibDecoder::new(packed).take(MAX_UNPACKED + 1);
                    input.read_to_end(&mut plain).map_err(|_| "compressed packets cannot be decompressed")?;
                    if plain.len() as u64 > MAX_UNPACKED {
                        return Err("compressed packets have more than 16 MiB");
                    }
                    for packet in Fields(&plain) {
                        if let (1, Value::Bytes(packet)) = packet? {
                            self.parts(packet, false)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Which process threads belong to, and what they are called.
    fn tree(&mut self, tree: &[u8]) -> Result<(), Wrong> {
        for field in Fields(tree) {
            let (kind, Value::Bytes(inner)) = field? else { continue };
            let (mut tid, mut tgid, mut comm) = (None, None, None);
            for field in Fields(inner) {
                match (kind, field?) {
                    (1 | 2, (1, Value::Number(pid))) => tid = Some(pid as i32),
                    (2, (2, Value::Bytes(name))) => comm = Some(Comm::new(name)),
                    (2, (3, Value::Number(pid))) => tgid = Some(pid as i32),
                    _ => {}
                }
            }
            // the first thread of a process has its number
            let tgid = if kind == 1 { tid } else { tgid };
            if let Some(tid) = tid {
                self.thread(tid, |thread| *thread = Thread { tgid, comm: comm.or(thread.comm) });
            }
        }
        Ok(())
    }

    fn thread(&mut self, tid: i32, change: impl FnOnce(&mut Thread)) {
        if self.threads.len() < MAX_THREADS || self.threads.contains_key(&tid) {
            change(self.threads.entry(tid).or_default());
        }
    }

    fn bundle(&mut self, bundle: &[u8]) -> Result<(), Wrong> {
        let mut cpu = 0;
        let mut lost = false;
        let mut found = Vec::new();
        for field in Fields(bundle) {
            match field? {
                (CPU, Value::Number(number)) if number >= MAX_CPUS => {
                    return Err("a CPU has a number above 4095");
                }
                (CPU, Value::Number(number)) => cpu = number as u32,
                (EVENT, Value::Bytes(event)) => found.push(event_of(event)?),
                (LOST_EVENTS, Value::Number(any)) => lost = any != 0,
                (COMPACT_SCHED, Value::Bytes(columns)) => compact(columns, &mut found)?,
                _ => {}
            }
        }
        found.sort_by_key(|event| event.at);
        if let Some(first) = found.first().filter(|_| lost) {
            self.put(cpu, first.at, -1, None, What::Lost { events: 0 });
        }
        for Found { at, pid, in_interrupt, what } in found {
            let current = self.current.get(&cpu).copied();
            let pid = pid.or(current.map(|task| task.pid)).unwrap_or(-1);
            let what = match (what, current) {
                (Kind::Whole(what), _) => what,
                (Kind::Switch { next, prev_state }, Some(prev)) => {
                    What::Switch { prev, leaving: leaving_bits(prev_state), next }
                }
                (Kind::Switch { next, .. }, None) => {
                    // who ran before the first one is not known
                    self.current.insert(cpu, next);
                    continue;
                }
            };
            match what {
                What::Switch { prev, next, .. } => {
                    self.current.insert(cpu, next);
                    for task in [prev, next] {
                        self.thread(task.pid, |thread| thread.comm = Some(task.comm));
                    }
                }
                What::Waking { task } | What::Wakeup { task } | What::WakeupNew { task } => {
                    self.thread(task.pid, |thread| thread.comm = Some(task.comm));
                }
                _ => {}
            }
            self.put(cpu, at, pid, in_interrupt, what);
        }
        Ok(())
    }

    fn put(&mut self, cpu: u32, at: u64, pid: i32, in_interrupt: Option<bool>, what: What) {
        let event = Event { at, cpu, pid, tgid: None, comm: Comm::default(), in_interrupt, what };
        self.held.push(at, event);
    }
}

/// `ftrace_event.proto`
fn event_of(event: &[u8]) -> Result<Found, Wrong> {
    let (mut at, mut pid, mut in_interrupt) = (0, None, None);
    let mut what = What::Other;
    for field in Fields(event) {
        match field? {
            (1, Value::Number(time)) => at = time,
            (2, Value::Number(number)) => pid = Some(number as i32),
            (5, Value::Number(flags)) => in_interrupt = Some(flags & IN_INTERRUPT != 0),
            (kind, Value::Bytes(fields)) => what = what_of(kind, fields)?,
            _ => {}
        }
    }
    Ok(Found { at, pid, in_interrupt, what: Kind::Whole(what) })
}

/// Fields of an event by their numbers, up to 7, which none of those that are read exceeds.
struct Parts<'a> {
    numbers: [i64; 8],
    texts: [&'a [u8]; 8],
}

impl Parts<'_> {
    fn task(&self, comm: usize, pid: usize, prio: usize) -> Task {
        let number = |at: usize| self.numbers[at] as i32;
        Task { pid: number(pid), comm: Comm::new(self.texts[comm]), prio: number(prio) }
    }
}

fn what_of(kind: u32, fields: &[u8]) -> Result<What, Wrong> {
    let mut parts = Parts { numbers: [0; 8], texts: [&[]; 8] };
    for field in Fields(fields) {
        match field? {
            (number @ 1..=7, Value::Number(value)) => parts.numbers[number as usize] = value as i64,
            (number @ 1..=7, Value::Bytes(text)) => parts.texts[number as usize] = text,
            _ => {}
        }
    }
    let pid = |at: usize| parts.numbers[at] as i32;
    Ok(match kind {
        4 => {
            let leaving = leaving_bits(parts.numbers[4]);
            What::Switch { prev: parts.task(1, 2, 3), leaving, next: parts.task(5, 6, 7) }
        }
        17 => What::Wakeup { task: parts.task(1, 2, 3) },
        20 => What::Waking { task: parts.task(1, 2, 3) },
        24 => What::HandlerEntry(softirq(pid(1))),
        36 => What::HandlerEntry(Handler::Other),
        25 | 37 => What::HandlerExit,
        114 => What::WakeupNew { task: parts.task(1, 2, 3) },
        237 => What::Exec { pid: pid(2) },
        238 => What::Exit { pid: pid(2) },
        239 => What::Fork { parent: pid(2), child: pid(4), comm: Comm::new(parts.texts[3]) },
        491 => What::Migrate { pid: pid(2) },
        _ => What::Other,
    })
}

/// Columns of switches and of wakeups. The first time of each is whole, the others are differences.
fn compact(columns: &[u8], found: &mut Vec<Found>) -> Result<(), Wrong> {
    const UNEVEN: Wrong = "columns of compact_sched have different lengths";
    let mut names: Vec<Comm> = Vec::new();
    let mut numbers: [VecDeque<u64>; 13] = Default::default();
    for field in Fields(columns) {
        match field? {
            (5, Value::Bytes(name)) => names.push(Comm::new(name)),
            (column @ 1..=12, Value::Bytes(bytes)) => packed(bytes, &mut numbers[column as usize])?,
            (column @ 1..=12, Value::Number(number)) => numbers[column as usize].push_back(number),
            _ => {}
        }
    }
    let mut next = |column: usize| numbers[column].pop_front();
    let name = |index: u64| {
        let name = usize::try_from(index).ok().and_then(|index| names.get(index));
        name.copied().ok_or("a name of compact_sched is missing")
    };
    let mut at = 0u64;
    while let Some(after) = next(1) {
        at = at.wrapping_add(after);
        let prev_state = next(2).ok_or(UNEVEN)? as i64;
        let (pid, prio) = (next(3).ok_or(UNEVEN)? as i32, next(4).ok_or(UNEVEN)? as i32);
        let task = Task { pid, comm: name(next(6).ok_or(UNEVEN)?)?, prio };
        let what = Kind::Switch { next: task, prev_state };
        found.push(Found { at, pid: None, in_interrupt: Some(false), what });
    }
    let mut at = 0u64;
    while let Some(after) = next(7) {
        at = at.wrapping_add(after);
        let pid = next(8).ok_or(UNEVEN)? as i32;
        next(9).ok_or(UNEVEN)?;
        let prio = next(10).ok_or(UNEVEN)? as i32;
        let task = Task { pid, comm: name(next(11).ok_or(UNEVEN)?)?, prio };
        // older traces have no flags
        let in_interrupt = next(12).map(|flags| flags & IN_INTERRUPT != 0);
        found.push(Found { at, pid: None, in_interrupt, what: Kind::Whole(What::Waking { task }) });
    }
    Ok(())
}

impl<R: BufRead> Source for PerfettoReader<R> {
    fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = self.held.pop(self.ended.then_some(u64::MAX)) {
                let Thread { tgid, comm } = self.threads.get(&event.pid).copied().unwrap_or_default();
                return Ok(Some(Event { tgid, comm: comm.unwrap_or_default(), ..event }));
            }
            if self.ended {
                return Ok(None);
            }
            self.ended = !self.packet()?;
        }
    }

    fn format(&self) -> Option<Format> {
        Some(Format::Perfetto)
    }

    fn refuse(&self, what: String) -> ReadError {
        ReadError::byte(self.at, &what)
    }
}
