//! Recordings of `coreward record --workload`, which docs/recording.md describes.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, Read};
use std::ops::RangeInclusive;

use coreward_workload::TaskGroup;
use flate2::Crc;

use crate::event::{Channel, Comm, CpuSet, Event, Handler, Leaving, Task, What};
use crate::recording::Source;
use crate::{Format, ReadError};

/// What a file begins with.
pub(crate) const MAGIC: &[u8] = b"cwrecord";
/// The versions that are read.
const VERSIONS: RangeInclusive<u32> = 1..=4;
/// Most task groups.
const MAX_GROUPS: usize = 10_000;
/// The longest path of one.
const MAX_PATH: usize = 4 * 64;
/// The largest payload of a frame, in bytes; the recorder writes up to 64 KiB.
const MAX_FRAME: u32 = 1 << 20;
/// Default priority of a task (`DEFAULT_PRIO`).
const DEFAULT_PRIO: i32 = 120;

const HOST: u32 = 1;
const EVENTS: u32 = 2;
const END: u32 = 3;
/// Frames of decisions, which `coreward parity` reads.
const DECISIONS: RangeInclusive<u32> = 17..=24;

/// In the first byte of a switch: cycles follow.
const CYCLES: u8 = 4;
/// The highest speed of a CPU that is believed, in kHz.
const MAX_KHZ: u64 = 10_000_000;

/// What is known of a thread id.
#[derive(Clone, Copy)]
struct Known {
    comm: Comm,
    tgid: Option<i32>,
    prio: i32,
}

/// Reads a recording.
pub(crate) struct CwrReader<R> {
    input: R,
    /// Bytes of the file that were read.
    at: u64,
    frame: Vec<u8>,
    /// Where the next event is in it.
    next: usize,
    /// Time of the last event in it.
    time: u64,
    tasks: HashMap<i32, Known>,
    groups: HashMap<u32, TaskGroup>,
    /// Of several events that are one in the file, those that have not been passed on.
    rest: VecDeque<Event>,
    /// When each CPU last switched.
    switched: HashMap<u32, u64>,
    /// The speed of each CPU's fastest times, in kHz; 0 or nothing if it is not known.
    fastest_khz: Vec<u32>,
    events: u64,
    started: bool,
    ended: bool,
}

impl<R: BufRead> CwrReader<R> {
    /// A reader of what begins with [`MAGIC`].
    pub(crate) fn new(input: R) -> CwrReader<R> {
        CwrReader {
            input,
            at: 0,
            frame: Vec::new(),
            next: 0,
            time: 0,
            tasks: HashMap::new(),
            groups: HashMap::new(),
            rest: VecDeque::new(),
            switched: HashMap::new(),
            fastest_khz: Vec::new(),
            events: 0,
            started: false,
            ended: false,
        }
    }

    fn error<T>(&self, what: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError::Place { at: self.at, what: what.into() })
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => self.at += N as u64,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return self.error("the file ends here, without its end frame: it is not complete");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(bytes)
    }

    fn header(&mut self) -> Result<(), ReadError> {
        let header: [u8; 16] = self.bytes()?;
        let version = word(&header[8..]);
        if !VERSIONS.contains(&version) {
            return self.error(format!("the recording is of version {version} (allowed: 1 to 4)"));
        }
        self.started = true;
        Ok(())
    }

    /// Reads frames up to one with events. False if it was the last one.
    fn frame(&mut self) -> Result<bool, ReadError> {
        if !self.started {
            self.header()?;
        }
        loop {
            let head: [u8; 16] = self.bytes()?;
            let [kind, length, sum] = [0, 4, 8].map(|at| word(&head[at..]));
            if length > MAX_FRAME || length % 8 != 0 {
                return self.error(format!("a frame of {length} bytes (allowed: up to {MAX_FRAME}, by 8)"));
            }
            self.frame.clear();
            let read = self.input.by_ref().take(length.into()).read_to_end(&mut self.frame)?;
            self.at += read as u64;
            if read < length as usize {
                return self.error("the file ends within a frame: it is not complete");
            }
            let mut crc = Crc::new();
            crc.update(&self.frame);
            if crc.sum() != sum {
                return self.error("a frame's checksum is wrong: the file is damaged");
            }
            match kind {
                HOST => self.host()?,
                kind if DECISIONS.contains(&kind) => {}
                EVENTS => {
                    (self.next, self.time) = (0, 0);
                    return Ok(true);
                }
                END => {
                    let told = self
                        .frame
                        .get(..8)
                        .map(|bytes| u64::from(word(bytes)) | u64::from(word(&bytes[4..])) << 32);
                    if told != Some(self.events) {
                        return self.error(format!(
                            "there were {} events, but the end frame says {}",
                            self.events,
                            told.unwrap_or_default()
                        ));
                    }
                    return Ok(false);
                }
                _ => return self.error(format!("a frame of type {kind} (allowed: 1 to 3, 17 to 24)")),
            }
        }
    }

    fn host(&mut self) -> Result<(), ReadError> {
        let text = String::from_utf8_lossy(&self.frame).into_owned();
        let Some(speeds) = text.lines().find_map(|line| line.strip_prefix("fastest_khz\t")) else {
            return Ok(());
        };
        let speed = |khz: &str| khz.parse().ok().filter(|khz| u64::from(*khz) <= MAX_KHZ);
        match speeds.split_ascii_whitespace().map(speed).collect() {
            Some(fastest_khz) => {
                self.fastest_khz = fastest_khz;
                Ok(())
            }
            None => self
                .error(format!("the line fastest_khz has no speeds (allowed: 0 to {MAX_KHZ} for each CPU)")),
        }
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let Some(byte) = self.frame.get(self.next).copied() else {
            return self.error("an event ends after its frame");
        };
        self.next += 1;
        Ok(byte)
    }

    /// Seven bits in a byte, the lowest first; all but the last byte have the highest bit set.
    fn number(&mut self) -> Result<u64, ReadError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        self.error("a number has more than 64 bits")
    }

    fn signed(&mut self) -> Result<i64, ReadError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn pid(&mut self) -> Result<i32, ReadError> {
        let number = self.number()?;
        i32::try_from(number).or_else(|_| self.error(format!("{number} is no thread id")))
    }

    fn prio(&mut self) -> Result<i32, ReadError> {
        let number = self.signed()?;
        match i32::try_from(number) {
            Ok(prio) if (-1..140).contains(&prio) => Ok(prio),
            _ => self.error(format!("{number} is no priority")),
        }
    }

    fn name(&mut self) -> Result<Comm, ReadError> {
        let length = usize::from(self.byte()?);
        let Some(name) = self.frame.get(self.next..self.next + length) else {
            return self.error("a name ends after its frame");
        };
        self.next += length;
        Ok(Comm::new(name))
    }

    fn cpus(&mut self) -> Result<CpuSet, ReadError> {
        let mut cpus = CpuSet::default();
        let words = usize::from(self.byte()?);
        if words > cpus.len() {
            return self.error(format!("a set of {words} words (allowed: {})", cpus.len()));
        }
        for word in &mut cpus[..words] {
            *word = self.number()?;
        }
        Ok(cpus)
    }

    fn known(&self, pid: i32) -> Known {
        let unknown = Known { comm: Comm::default(), tgid: None, prio: DEFAULT_PRIO };
        self.tasks.get(&pid).copied().unwrap_or(unknown)
    }

    /// A task with the priority that it has now.
    fn task(&mut self, pid: i32, prio: i32) -> Task {
        let comm = self.known(pid).comm;
        if let Some(known) = self.tasks.get_mut(&pid) {
            known.prio = prio;
        }
        Task { pid, comm, prio }
    }

    fn event(&mut self) -> Result<Option<Event>, ReadError> {
        let kind = self.byte()?;
        if kind == 0 {
            // padding
            self.next = self.frame.len();
            return Ok(None);
        }
        self.events += 1;
        let cpu = self.number()?;
        let cpu = u32::try_from(cpu).or_else(|_| self.error(format!("there is no CPU {cpu}")))?;
        self.time = self.time.wrapping_add_signed(self.signed()?);
        let pid = self.pid()?;
        let Known { comm, tgid, .. } = self.known(pid);
        // these are not of what runs on a CPU
        let apart = matches!(kind, 9 | 12..=15);
        let (pid, tgid) = if apart { (-1, None) } else { (pid, tgid) };
        let mut event = Event { at: self.time, cpu, pid, tgid, comm, in_interrupt: None, what: What::Other };
        event.what = match kind {
            1 => self.switch(&mut event)?,
            2 => {
                event.in_interrupt = Some(self.byte()? != 0);
                let (pid, prio) = (self.pid()?, self.prio()?);
                What::Waking { task: self.task(pid, prio) }
            }
            3 => {
                let (pid, prio) = (self.pid()?, self.prio()?);
                What::WakeupNew { task: self.task(pid, prio) }
            }
            4 => {
                let (child, tgid) = (self.pid()?, self.pid()?);
                let known = Known { tgid: Some(tgid), ..self.known(pid) };
                self.tasks.insert(child, known);
                What::Fork { parent: pid, child, comm: known.comm }
            }
            5 => What::Exit { pid: self.pid()? },
            6 => What::Exec { pid: self.pid()? },
            7 => {
                let (pid, comm) = (self.pid()?, self.name()?);
                let known = Known { comm, ..self.known(pid) };
                self.tasks.insert(pid, known);
                What::Other
            }
            8 => What::Migrate { pid: self.pid()? },
            9 => What::Allowed { pid: self.pid()?, cpus: self.cpus()? },
            10 => What::HandlerEntry(match self.byte()? {
                0 => Handler::Timer,
                1 => Handler::Network,
                2 => Handler::Block,
                _ => Handler::Other,
            }),
            11 => What::HandlerExit,
            12 => What::Lost { events: self.number()? },
            13 => {
                let (pid, tgid, prio, comm) = (self.pid()?, self.pid()?, self.prio()?, self.name()?);
                self.tasks.insert(pid, Known { comm, tgid: Some(tgid), prio });
                What::Other
            }
            14 => {
                let (pid, group) = (self.pid()?, self.group_number()?);
                What::Grouped { pid, group: (group != 0).then_some(group) }
            }
            15 => {
                self.new_group()?;
                What::Other
            }
            16 => {
                event.in_interrupt = Some(self.byte()? != 0);
                What::Arrived { socket: self.number()? as u32 }
            }
            17 => What::Received { socket: self.number()? as u32 },
            _ => return self.error(format!("an event of kind {kind} (allowed: 1 to 17)")),
        };
        Ok(Some(event))
    }

    fn group_number(&mut self) -> Result<u32, ReadError> {
        let number = self.number()?;
        u32::try_from(number).or_else(|_| self.error(format!("there is no task group {number}")))
    }

    fn new_group(&mut self) -> Result<(), ReadError> {
        let (number, weight) = (self.group_number()?, self.number()?);
        let [quota_us, period_us] = [self.number()?, self.number()?];
        let length = self.number()? as usize;
        let path = self.frame.get(self.next..).and_then(|rest| rest.get(..length));
        let Some(path) = path.filter(|path| path.len() <= MAX_PATH).map(String::from_utf8_lossy) else {
            return self.error("the path of a task group is too long, or ends after its frame");
        };
        let limit = (quota_us, period_us);
        let group =
            TaskGroup::checked(path.into_owned(), weight, Some(limit).filter(|limit| *limit != (0, 0)));
        self.next += length;
        match group {
            Ok(group) if self.groups.len() < MAX_GROUPS || self.groups.contains_key(&number) => {
                self.groups.insert(number, group);
                Ok(())
            }
            Ok(_) => self.error(format!("it has more than {MAX_GROUPS} task groups")),
            Err(what) => self.error(what),
        }
    }

    /// How fast the CPU was, and what the task sleeps on, are events of their own, before the switch.
    fn switch(&mut self, event: &mut Event) -> Result<What, ReadError> {
        let kind = self.byte()?;
        let leaving = match kind & !CYCLES {
            0 => Leaving::Runnable,
            1 => Leaving::Blocked,
            2 => Leaving::Dead,
            _ => return self.error(format!("a switch of kind {kind} (allowed: 0 to 2, 4 to 6)")),
        };
        let (next, prio) = (self.pid()?, self.prio()?);
        let Known { comm, prio: own, .. } = self.known(event.pid);
        let prev = Task { pid: event.pid, comm, prio: own };
        let switch = What::Switch { prev, leaving, next: self.task(next, prio) };
        let speed = if kind & CYCLES == 0 { None } else { Some(self.number()?) };
        let speed = self.speed(event, speed);
        let sleeps = if leaving == Leaving::Blocked { self.channel()? } else { None };
        let parts = [speed, sleeps.map(|channel| What::WaitsOn { channel }), Some(switch)];
        let mut parts = parts.into_iter().flatten();
        let first = parts.next().expect("one is the switch");
        self.rest.extend(parts.map(|what| Event { what, ..*event }));
        Ok(first)
    }

    /// Of the cycles since the last switch of the CPU.
    fn speed(&mut self, event: &Event, cycles: Option<u64>) -> Option<What> {
        let since = self.switched.insert(event.cpu, event.at)?;
        let ns = event.at.checked_sub(since).filter(|ns| *ns > 0)?;
        let khz = cycles?.saturating_mul(1_000_000) / ns;
        let fastest_khz = *self.fastest_khz.get(event.cpu as usize).filter(|khz| **khz > 0)?;
        (1..=MAX_KHZ).contains(&khz).then_some(What::Speed { khz: khz as u32, fastest_khz })
    }

    fn channel(&mut self) -> Result<Option<Channel>, ReadError> {
        let kind = self.byte()?;
        let id = self.number()? as u32;
        Ok(Some(match kind {
            0 => return Ok(None),
            1 => Channel::Futex(id),
            2 => Channel::PipeData(id),
            3 => Channel::PipeSpace(id),
            4 => Channel::Socket(id),
            5 => Channel::Epoll(id),
            6 => Channel::Anonymous(id),
            7 => Channel::Poll,
            8 => Channel::Child,
            9 => Channel::Time,
            _ => return self.error(format!("a wait of kind {kind} (allowed: 0 to 9)")),
        }))
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

impl<R: BufRead> Source for CwrReader<R> {
    fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        if let Some(event) = self.rest.pop_front() {
            return Ok(Some(event));
        }
        while !self.ended {
            if self.next >= self.frame.len() && !self.frame()? {
                self.ended = true;
                break;
            }
            if let Some(event) = self.event()? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn format(&self) -> Option<Format> {
        self.started.then_some(Format::Coreward)
    }

    fn group(&self, number: u32) -> Option<&TaskGroup> {
        self.groups.get(&number)
    }

    fn refuse(&self, what: String) -> ReadError {
        ReadError::Place { at: self.at, what }
    }
}

#[cfg(test)]
mod tests;
