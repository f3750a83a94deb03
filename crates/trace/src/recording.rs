//! A recording's file.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::rc::Rc;

use coreward_workload::TaskGroup;
use flate2::read::MultiGzDecoder;

use crate::binary::{self, Bytes};
use crate::cwr::{self, CwrReader};
use crate::event::Event;
use crate::order::Reorder;
use crate::perfetto::PerfettoReader;
use crate::text::TextReader;
use crate::wprof::WprofReader;
use crate::{Format, ReadError};

/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// Formats by what their files begin with, that are refused, and what to do instead.
const REFUSED: [(&[u8], &str, &str); 4] = [
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "`zstd -d` makes text of it"),
    (b"\xfd7zXZ\0", "compressed by xz", "`xz -d` makes text of it"),
    (b"Attaching ", "the text of an eBPF collector", "record with trace-cmd or perf"),
    (b"<!DOCTYPE html", "a page of systrace", "record with trace-cmd or perf"),
];
/// What an archive of tar has at this place.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// The longest recording, in ns: 13 days. Work of many CPUs then fits into 64 bits.
const MAX_SPAN_NS: u64 = 1 << 50;

/// A reader of one format. Its events are nearly in order.
pub(crate) trait Source {
    /// The next event; `None` at the end.
    fn next_event(&mut self) -> Result<Option<Event>, ReadError>;
    /// Who wrote it; `None` before its first event.
    fn format(&self) -> Option<Format>;
    /// The first line that was not understood, and how many there were.
    fn unknown(&self) -> Option<(u64, u64)> {
        None
    }
    /// The task group of a number that events have had.
    fn group(&self, _number: u32) -> Option<&TaskGroup> {
        None
    }
    /// Says what is wrong with the last event.
    fn refuse(&self, what: String) -> ReadError;
}

impl<R: BufRead> Source for TextReader<R> {
    fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        self.next_event()
    }

    fn format(&self) -> Option<Format> {
        self.format()
    }

    fn unknown(&self) -> Option<(u64, u64)> {
        self.unknown()
    }

    fn refuse(&self, what: String) -> ReadError {
        ReadError::Line { line: self.line(), what }
    }
}

/// The events of a file, in order.
pub struct Recording {
    reader: Box<dyn Source>,
    order: Reorder,
    /// The time of the first event.
    first: Option<u64>,
    /// The file has ended.
    ended: bool,
}

impl Recording {
    /// Opens a file, or a directory of pages of the ring buffer.
    ///
    /// # Errors
    /// It cannot be read, or it is of a format that is not.
    pub fn open(path: &Path) -> Result<Recording, ReadError> {
        if path.is_dir() {
            return Ok(Recording::with(Box::new(binary::pages(path)?)));
        }
        let file = coreward_input::open(path)?;
        let again = file.try_clone()?;
        Recording::choose(BufReader::with_capacity(BUFFER, file), || Bytes::of(again))
    }

    /// Reads what a file had.
    ///
    /// # Errors
    /// As of [`Recording::open`].
    pub fn of(bytes: Vec<u8>) -> Result<Recording, ReadError> {
        let bytes: Rc<[u8]> = bytes.into();
        Recording::choose(io::Cursor::new(bytes.clone()), || Ok(Bytes::Memory(bytes)))
    }

    /// `whole` is all of the input, of which parts can be read in any order.
    fn choose(
        mut input: impl BufRead + 'static,
        whole: impl FnOnce() -> io::Result<Bytes>,
    ) -> Result<Recording, ReadError> {
        if !input.fill_buf()?.starts_with(b"\x1f\x8b") {
            let start = start(&mut input)?;
            if binary::is_binary(&start) {
                return Recording::binary(&whole()?);
            }
            return Recording::text(start, Box::new(input));
        }
        let mut input = MultiGzDecoder::new(input);
        let start = start(&mut input)?;
        if binary::is_binary(&start) {
            let mut file = tempfile::tempfile()?;
            file.write_all(&start)?;
            io::copy(&mut input, &mut file)?;
            return Recording::binary(&Bytes::of(file)?);
        }
        Recording::text(start, Box::new(BufReader::with_capacity(BUFFER, input)))
    }

    fn with(reader: Box<dyn Source>) -> Recording {
        Recording { reader, order: Reorder::default(), first: None, ended: false }
    }

    fn binary(bytes: &Bytes) -> Result<Recording, ReadError> {
        Ok(Recording::with(binary::open(bytes)?))
    }

    /// `start` was read from the input.
    fn text(start: Vec<u8>, input: Box<dyn BufRead>) -> Result<Recording, ReadError> {
        if let Some((_, what, instead)) = REFUSED.iter().find(|(magic, ..)| start.starts_with(magic)) {
            return Err(ReadError::Unsupported { what, instead });
        }
        if start.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
            return Err(ReadError::Unsupported {
                what: "an archive of tar",
                instead: "unpack it, and name a file or a directory of pages",
            });
        }
        let (own, json, perfetto) =
            (start.starts_with(cwr::MAGIC), start.starts_with(b"{"), is_perfetto(&start));
        let input: Box<dyn BufRead> = Box::new(io::Cursor::new(start).chain(input));
        Ok(Recording::with(match () {
            () if own => Box::new(CwrReader::new(input)),
            () if json => Box::new(WprofReader::new(input)?),
            () if perfetto => Box::new(PerfettoReader::new(input)),
            () => Box::new(TextReader::new(input)),
        }))
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, is not what it should be, or its events are not in order or too far apart.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        let Some(event) = self.in_order()? else { return Ok(None) };
        let first = *self.first.get_or_insert(event.at);
        if event.at - first > MAX_SPAN_NS {
            return Err(self.reader.refuse("an event is more than 13 days after the first one".into()));
        }
        Ok(Some(event))
    }

    fn in_order(&mut self) -> Result<Option<Event>, ReadError> {
        while !self.ended {
            let Some(event) = self.reader.next_event()? else {
                self.ended = true;
                break;
            };
            let late = |ns: u64| {
                self.reader.refuse(format!(
                    "it is {} us older than an event far above: the events are not in order (record with one clock for \
                     all CPUs, like `-C mono`, or sort the lines by time)",
                    ns.div_ceil(1000)
                ))
            };
            if let Some(event) = self.order.push(event).map_err(late)? {
                return Ok(Some(event));
            }
        }
        Ok(self.order.pop())
    }

    /// Who wrote it; `None` before its first event.
    pub fn format(&self) -> Option<Format> {
        self.reader.format()
    }

    /// The first line that was not understood, and how many there were.
    pub fn unknown(&self) -> Option<(u64, u64)> {
        self.reader.unknown()
    }

    /// The task group of a number that events have had, if the recording describes it.
    pub fn group(&self, number: u32) -> Option<&TaskGroup> {
        self.reader.group(number)
    }

    /// How many events stood after a later one.
    pub fn late(&self) -> u64 {
        self.order.late
    }
}

/// As much of an input as is needed to know its format.
fn start(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    input.take(TAR.0 as u64 + 8).read_to_end(&mut start)?;
    Ok(start)
}

/// A text may begin with an empty line; of a Perfetto trace, a length and a field of a packet follow.
fn is_perfetto(start: &[u8]) -> bool {
    start.starts_with(b"\x0a")
        && start.iter().take(64).any(|byte| *byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(start: &[u8]) -> String {
        match Recording::of(start.to_vec()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn formats_that_are_not_read_are_named() {
        let tar: Vec<u8> = [vec![b'a'; 257], b"ustar\0".to_vec()].concat();
        for (start, what) in [
            (&b"{\"a\": 1}\n"[..], "JSON, but not of wprof"),
            (b"Attaching 6 probes...", "eBPF"),
            (&tar, "tar"),
        ] {
            assert!(refusal(start).contains(what), "{}", refusal(start));
        }
        assert_eq!(refusal(b"\n\na-1 [000] 1.0: print: x\n"), "");
    }

    #[test]
    fn a_recording_of_weeks_is_refused() {
        let text = b"a-1 [000] 1.0: print: x\na-1 [000] 1125899.0: print: x\na-1 [000] 1125901.0: print: x\n";
        let mut recording = Recording::of(text.to_vec()).unwrap();
        let mut next = || recording.next_event();
        assert!(next().is_ok() && next().is_ok());
        assert!(next().unwrap_err().to_string().contains("more than 13 days"));
    }

    #[test]
    fn a_compressed_file_reads_like_the_text() {
        let text = b"a-1 [000] 1.0: print: x\nb-2 [001] 0.5: print: x\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text).unwrap();
        let mut recording = Recording::of(gzip.finish().unwrap()).unwrap();
        let mut times = Vec::new();
        while let Some(event) = recording.next_event().unwrap() {
            times.push(event.at);
        }
        assert_eq!(times, [500_000_000, 1_000_000_000]);
        assert_eq!((recording.late(), recording.format()), (1, Some(Format::Ftrace)));
    }
}
