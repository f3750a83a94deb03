//! The buffers of all CPUs, as one sequence of events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::bytes::Bytes;
use super::compressed::Codec;
use super::formats::{Decoded, Formats};
use super::ring::{Entry, PageLayout, Position};
use crate::event::{Comm, Event, What};
use crate::recording::Source;
use crate::{Format, ReadError};

/// The most memory that the buffers' pages may take together.
const MAX_HELD: u64 = 32 << 20;
/// The most names of tasks that are learned.
const MAX_NAMES: usize = 100_000;

/// Where the pages of a CPU are.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) cpu: u32,
    pub(crate) bytes: Bytes,
    pub(crate) at: u64,
    pub(crate) end: u64,
    /// Pages stand in compressed chunks.
    pub(crate) codec: Option<Codec>,
}

/// The pages of a CPU, one by one.
#[derive(Debug)]
struct Stream {
    buffer: Buffer,
    /// Chunks that follow, if there are any.
    chunks: u32,
    /// A page, or a chunk of pages.
    held: Vec<u8>,
    /// Where the present page begins in it.
    page: usize,
    position: Position,
    next: Option<Entry>,
}

impl Stream {
    fn new(mut buffer: Buffer, layout: &PageLayout) -> Result<Stream, ReadError> {
        let mut chunks = 0;
        if buffer.codec.is_some() && buffer.at < buffer.end {
            let mut count = [0; 4];
            buffer.bytes.read(buffer.at, &mut count)?;
            chunks = layout.order.number(&count) as u32;
            buffer.at += 4;
        }
        Ok(Stream { buffer, chunks, held: Vec::new(), page: 0, position: Position::default(), next: None })
    }

    /// What is wrong with a page.
    fn refuse(&self, what: &str) -> ReadError {
        ReadError::byte(self.buffer.at, &format!("in the pages of CPU {}: {what}", self.buffer.cpu))
    }

    fn page<'a>(held: &'a [u8], page: usize, layout: &PageLayout) -> &'a [u8] {
        &held[page..held.len().min(page + layout.size)]
    }

    fn advance(&mut self, layout: &PageLayout, most: u64) -> Result<(), ReadError> {
        loop {
            let page = Self::page(&self.held, self.page, layout);
            let next = self.position.next(page, layout.order);
            self.next = next.map_err(|what| self.refuse(what))?;
            if self.next.is_some() {
                return Ok(());
            }
            self.page += page.len();
            if self.page >= self.held.len() && !self.read(layout, most)? {
                return Ok(());
            }
            let page = Self::page(&self.held, self.page, layout);
            if page.len() < layout.data {
                return Err(self.refuse("the last page is cut off"));
            }
            let position = Position::begin(page, layout);
            self.position = position.map_err(|what| self.refuse(what))?;
        }
    }

    /// Reads more pages, if there are any.
    fn read(&mut self, layout: &PageLayout, most: u64) -> Result<bool, ReadError> {
        self.page = 0;
        self.held.clear();
        let Buffer { bytes, at, end, codec, .. } = &mut self.buffer;
        let Some(codec) = codec else {
            let length = (*end - *at).min(layout.size as u64);
            self.held.resize(length as usize, 0);
            bytes.read(*at, &mut self.held)?;
            *at += length;
            return Ok(length > 0);
        };
        if self.chunks == 0 {
            return Ok(false);
        }
        self.chunks -= 1;
        self.held = codec.chunk(bytes, layout.order, at, most)?;
        Ok(true)
    }
}

/// The events of all CPUs.
pub(crate) struct Merged {
    format: Format,
    layout: PageLayout,
    formats: Formats,
    names: HashMap<i32, Comm>,
    streams: Vec<Stream>,
    /// The times of the streams' next entries.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// What each stream may hold.
    most: u64,
}

impl Merged {
    /// `names` are those of threads at the end of the recording, as far as it says them.
    pub(crate) fn new(
        format: Format,
        layout: PageLayout,
        formats: Formats,
        names: HashMap<i32, Comm>,
        buffers: Vec<Buffer>,
    ) -> Result<Merged, ReadError> {
        let most = MAX_HELD / buffers.len().max(1) as u64;
        if most < layout.size as u64 {
            let (cpus, size) = (buffers.len(), layout.size);
            return Err(ReadError::byte(0, &format!("pages of {size} bytes on {cpus} CPUs are too many")));
        }
        let streams = buffers.into_iter().map(|buffer| Stream::new(buffer, &layout));
        let streams = streams.collect::<Result<Vec<_>, _>>()?;
        let mut merged = Merged { format, layout, formats, names, streams, next: BinaryHeap::new(), most };
        for index in 0..merged.streams.len() {
            merged.advance(index)?;
        }
        Ok(merged)
    }

    fn advance(&mut self, index: usize) -> Result<(), ReadError> {
        let stream = &mut self.streams[index];
        stream.advance(&self.layout, self.most)?;
        match stream.next {
            Some(Entry::Event(at, _)) => self.next.push(Reverse((at, index))),
            Some(Entry::Lost(_)) => self.next.push(Reverse((stream.position.time(), index))),
            None => {}
        }
        Ok(())
    }

    fn event(&mut self, index: usize) -> Result<Option<Event>, ReadError> {
        let stream = &mut self.streams[index];
        let cpu = stream.buffer.cpu;
        let (at, decoded) = match stream.next.take() {
            Some(Entry::Event(at, range)) => {
                let page = Stream::page(&stream.held, stream.page, &self.layout);
                (at, self.formats.decode(&page[range]).map_err(|what| stream.refuse(what))?)
            }
            Some(Entry::Lost(events)) => {
                let what = What::Lost { events };
                (stream.position.time(), Decoded { pid: 0, in_interrupt: false, what })
            }
            None => return Ok(None),
        };
        let Decoded { pid, in_interrupt, what } = decoded;
        if let What::Switch { prev, next, .. } = what
            && self.names.len() < MAX_NAMES
        {
            for task in [prev, next] {
                self.names.entry(task.pid).or_insert(task.comm);
            }
        }
        let unknown = || Comm::new(if pid == 0 { b"<idle>" } else { b"<...>" });
        let comm = self.names.get(&pid).copied().filter(|_| pid != 0).unwrap_or_else(unknown);
        Ok(Some(Event { at, cpu, pid, tgid: None, comm, in_interrupt: Some(in_interrupt), what }))
    }
}

impl Source for Merged {
    fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        let Some(Reverse((_, index))) = self.next.pop() else { return Ok(None) };
        let event = self.event(index)?;
        self.advance(index)?;
        Ok(event)
    }

    fn format(&self) -> Option<Format> {
        Some(self.format)
    }

    fn refuse(&self, what: String) -> ReadError {
        ReadError::byte(self.streams.iter().map(|stream| stream.buffer.at).max().unwrap_or(0), &what)
    }
}
