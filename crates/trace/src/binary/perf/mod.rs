//! Files of perf (`perf.data`), of which samples of tracepoints are read.
//!
//! A file has a header, the attributes of the events, records, and features, one of which (`TRACING_DATA`) describes the
//! fields of tracepoints. What `perf record -o -` writes has all of that as records. Records stand in rounds: what perf
//! read from all CPUs' buffers at once. Two rounds are enough to put them into order.

mod sample;

use std::collections::HashMap;

use self::sample::SampleLayout;
use super::bytes::{Bytes, Cursor, Order};
use super::dat;
use super::formats::{Decoded, Formats};
use crate::event::{Comm, Event, What};
use crate::held::Held;
use crate::recording::Source;
use crate::{Format, ReadError};

/// What a file begins with, in either order of bytes.
pub(crate) const MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Records by their numbers (`PERF_RECORD_`).
const LOST: u32 = 2;
const COMM: u32 = 3;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const HEADER_ATTR: u32 = 64;
const HEADER_TRACING_DATA: u32 = 66;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const COMPRESSED: [u32; 2] = [81, 83];

/// Of `perf_event_attr`: a tracepoint.
const TYPE_TRACEPOINT: u64 = 2;
/// The bit of the feature that describes tracepoints.
const TRACING_DATA: u32 = 1;
/// Bits of features.
const FEATURES: u32 = 256;
/// The length of the attributes of an event with the place of its identities, in bytes; those of 2026 have 160.
const ATTRIBUTES: std::ops::RangeInclusive<u64> = 80..=4096;
/// The most attributes and identities of events.
const MAX_EVENTS: u64 = 1 << 20;
/// The most threads whose names are kept.
const MAX_NAMES: usize = 1 << 20;

/// What waits for its place in time.
enum Item {
    Event(Event),
    /// A thread has a name.
    Named(i32, Comm),
    /// A thread has a new one, which is called like it.
    Forked(i32, i32),
}

/// Reads the records of a file.
pub(crate) struct Perf {
    cursor: Cursor,
    end: u64,
    formats: Formats,
    layouts: Layouts,
    names: HashMap<i32, Comm>,
    held: Held<Item>,
    /// The latest time so far, and that at the end of the round before.
    newest: u64,
    round: u64,
    /// What is not later than this has its place.
    settled: Option<u64>,
}

/// How samples are laid out, by the identities of their events.
#[derive(Default)]
struct Layouts {
    all: Vec<SampleLayout>,
    by_id: HashMap<u64, usize>,
}

impl Layouts {
    fn of(&self, id: Option<u64>) -> Option<&SampleLayout> {
        match id {
            Some(id) if self.all.len() > 1 => self.all.get(*self.by_id.get(&id)?),
            _ => self.all.first(),
        }
    }
}

/// Opens a file that begins with one of the magics.
pub(crate) fn open(bytes: &Bytes) -> Result<Perf, ReadError> {
    let mut magic = [0; 8];
    bytes.read(0, &mut magic)?;
    let order = if magic == *MAGICS[0] { Order::Little } else { Order::Big };
    let mut cursor = Cursor::new(bytes, order, 8);
    let mut perf = Perf {
        end: bytes.len(),
        formats: Formats::new(order),
        layouts: Layouts::default(),
        names: HashMap::new(),
        held: Held::new(bytes.len()),
        newest: 0,
        round: 0,
        settled: None,
        cursor: cursor.clone(),
    };
    match cursor.u64()? {
        // what was written to a pipe has no more of a header
        16 => perf.cursor = cursor,
        104 => perf.sections(bytes, cursor)?,
        other => return Err(cursor.refuse(&format!("its header has {other} bytes (allowed: 16, 104)"))),
    }
    Ok(perf)
}

impl Perf {
    /// Reads the header of a file, and what it points to.
    fn sections(&mut self, bytes: &Bytes, mut header: Cursor) -> Result<(), ReadError> {
        let length = header.u64()?;
        let (attributes, attributes_length) = (header.u64()?, header.u64()?);
        let (data, data_length) = (header.u64()?, header.u64()?);
        header.skip(16)?;
        if !ATTRIBUTES.contains(&length) {
            return Err(header.refuse(&format!("its attributes have {length} bytes (allowed: 80 to 4096)")));
        }
        let mut at = Cursor::new(bytes, header.order, attributes);
        if attributes_length / length > MAX_EVENTS {
            return Err(header.refuse("it has too many events"));
        }
        for _ in 0..attributes_length / length {
            let next = at.at.saturating_add(length);
            let layout = SampleLayout::read(&mut at)?;
            at.at = next - 16;
            let (ids, ids_length) = (at.u64()?, at.u64()?);
            let mut of = Cursor::new(bytes, header.order, ids);
            self.add(layout, &mut of, ids_length / 8)?;
        }
        self.end = data.checked_add(data_length).filter(|end| *end <= bytes.len()).ok_or_else(|| {
            header.refuse("its data would be behind the file's end (perf may not have ended well)")
        })?;
        let mut features = Cursor::new(bytes, header.order, self.end);
        for word in 0..FEATURES / 64 {
            let bits = header.u64()?;
            for feature in (0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| word * 64 + bit) {
                let (at, _length) = (features.u64()?, features.u64()?);
                if feature == TRACING_DATA {
                    self.tracing_data(Cursor::new(bytes, header.order, at))?;
                }
            }
        }
        self.cursor = Cursor::new(bytes, header.order, data);
        Ok(())
    }

    /// Takes an event with its identities.
    fn add(&mut self, layout: SampleLayout, ids: &mut Cursor, count: u64) -> Result<(), ReadError> {
        if count + self.layouts.by_id.len() as u64 + self.layouts.all.len() as u64 > MAX_EVENTS {
            return Err(ids.refuse("it has too many events"));
        }
        for _ in 0..count {
            self.layouts.by_id.insert(ids.u64()?, self.layouts.all.len());
        }
        self.layouts.all.push(layout);
        Ok(())
    }

    fn tracing_data(&mut self, mut at: Cursor) -> Result<(), ReadError> {
        let mut magic = [0; 10];
        at.fill(&mut magic)?;
        if magic != *dat::MAGIC {
            return Err(at.refuse("where tracepoints should be described, something else stands"));
        }
        self.formats = dat::described(at)?;
        Ok(())
    }

    /// Reads a record, and puts it into order. False at the end.
    fn record(&mut self) -> Result<bool, ReadError> {
        let cursor = &mut self.cursor;
        if cursor.at + 8 > self.end {
            return Ok(false);
        }
        let at = cursor.at;
        let (kind, _misc, length) = (cursor.u32()?, cursor.u16()?, u64::from(cursor.u16()?));
        let next = at + length;
        if length < 8 || next > self.end {
            return Err(ReadError::byte(at, &format!("a record has {length} bytes, which cannot be")));
        }
        match kind {
            SAMPLE | COMM | FORK | LOST | LOST_SAMPLES => {
                let body = cursor.take(length - 8, length)?;
                let wrong = |what| ReadError::byte(at, what);
                self.body(kind, &body).map_err(wrong)?;
            }
            HEADER_ATTR => {
                let start = cursor.at;
                let layout = SampleLayout::read(cursor)?;
                cursor.at = start;
                cursor.skip(4)?;
                let size = u64::from(cursor.u32()?);
                let mut ids = cursor.clone();
                ids.at = start.saturating_add(size);
                let count = next.saturating_sub(ids.at) / 8;
                self.add(layout, &mut ids, count)?;
            }
            HEADER_TRACING_DATA => {
                let data = u64::from(cursor.u32()?);
                let mut described = cursor.clone();
                described.at = next;
                self.tracing_data(described)?;
                return self.pass(next.saturating_add(data.next_multiple_of(8)));
            }
            AUXTRACE => {
                let data = cursor.u64()?;
                return self.pass(next.saturating_add(data));
            }
            FINISHED_ROUND => {
                self.settled = Some(self.round);
                self.round = self.newest;
            }
            _ if COMPRESSED.contains(&kind) => {
                return Err(ReadError::Unsupported {
                    what: "a file of perf whose records are compressed",
                    instead: "record without -z, or make text of it with `perf script -F comm,pid,tid,cpu,time,event,trace`",
                });
            }
            _ => {}
        }
        self.pass(next)
    }

    fn pass(&mut self, to: u64) -> Result<bool, ReadError> {
        if to > self.end {
            return Err(self.cursor.refuse("a record is longer than what is left of the file"));
        }
        self.cursor.at = to;
        Ok(true)
    }

    fn body(&mut self, kind: u32, body: &[u8]) -> Result<(), &'static str> {
        const SHORT: &str = "a record is shorter than it should be";
        let order = self.cursor.order;
        let u32_at = |at: usize| body.get(at..).and_then(|rest| order.u32(rest)).ok_or(SHORT);
        let first = self.layouts.all.first().ok_or("a record stands before the description of its event")?;
        match kind {
            SAMPLE => {
                let id = first.id(body, order);
                let layout = self.layouts.of(id).ok_or("a sample is of an event that is not described")?;
                let sample = layout.sample(body, order)?;
                let decoded = match sample.raw {
                    Some(raw) if layout.kind == TYPE_TRACEPOINT => self.formats.decode(raw)?,
                    _ => Decoded { pid: sample.tid, in_interrupt: false, what: What::Other },
                };
                // the sample's own task is -1 if it is gone already
                let Decoded { in_interrupt, what, .. } = decoded;
                let event = Event {
                    at: sample.time,
                    cpu: sample.cpu,
                    pid: sample.tid,
                    tgid: Some(sample.pid),
                    comm: Comm::default(),
                    in_interrupt: Some(in_interrupt),
                    what,
                };
                self.push(sample.time, Item::Event(event));
            }
            COMM => {
                let tid = u32_at(4)? as i32;
                let name = body.get(8..).ok_or(SHORT)?.split(|byte| *byte == 0).next().unwrap_or(&[]);
                let time = first.time_at_end(body, order).unwrap_or(0);
                self.push(time, Item::Named(tid, Comm::new(name)));
            }
            FORK => {
                let (tid, parent) = (u32_at(8)? as i32, u32_at(12)? as i32);
                let time = order.number(body.get(16..24).ok_or(SHORT)?);
                self.push(time, Item::Forked(parent, tid));
            }
            _ => {
                let skip = if kind == LOST { 8 } else { 0 };
                let events = order.number(body.get(skip..skip + 8).ok_or(SHORT)?);
                let event = Event {
                    at: self.newest,
                    cpu: 0,
                    pid: 0,
                    tgid: None,
                    comm: Comm::default(),
                    in_interrupt: None,
                    what: What::Lost { events },
                };
                self.push(self.newest, Item::Event(event));
            }
        }
        Ok(())
    }

    fn push(&mut self, time: u64, item: Item) {
        self.newest = self.newest.max(time);
        self.held.push(time, item);
    }

    fn name(&self, tid: i32) -> Comm {
        let unknown = || match tid {
            0 => Comm::new(b"swapper"),
            _ => Comm::new(format!(":{tid}").as_bytes()),
        };
        self.names.get(&tid).copied().unwrap_or_else(unknown)
    }
}

impl Source for Perf {
    fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        let mut ended = false;
        loop {
            while let Some(item) = self.held.pop(self.settled) {
                match item {
                    Item::Event(event) => {
                        let comm = self.name(event.pid);
                        return Ok(Some(Event { comm, ..event }));
                    }
                    Item::Named(tid, name)
                        if self.names.len() < MAX_NAMES || self.names.contains_key(&tid) =>
                    {
                        self.names.insert(tid, name);
                    }
                    Item::Forked(parent, tid) if self.names.len() < MAX_NAMES => {
                        let name = self.name(parent);
                        self.names.insert(tid, name);
                    }
                    Item::Named(..) | Item::Forked(..) => {}
                }
            }
            if ended {
                return Ok(None);
            }
            if !self.record()? {
                ended = true;
                self.settled = Some(u64::MAX);
            }
        }
    }

    fn format(&self) -> Option<Format> {
        Some(Format::PerfData)
    }

    fn refuse(&self, what: String) -> ReadError {
        ReadError::byte(self.cursor.at, &what)
    }
}
