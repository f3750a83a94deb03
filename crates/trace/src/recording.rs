//! A recording's file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::cwr::{self, CwrReader};
use crate::event::Event;
use crate::order::Reorder;
use crate::text::TextReader;
use crate::{Format, ReadError};

/// Bytes that are read at a time.
const BUFFER: usize = 256 << 10;

/// Formats by what their files begin with, that are refused, and what to do instead.
const REFUSED: [(&[u8], &str, &str); 8] = [
    (b"\x17\x08\x44tracing", "a file of trace-cmd", "`trace-cmd report -R FILE > FILE.txt` makes text of it"),
    (
        b"PERFILE2",
        "a file of perf",
        "`perf script -F comm,pid,tid,cpu,time,event,trace -i FILE > FILE.txt` makes text of it",
    ),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "`zstd -d` makes text of it"),
    (b"\xfd7zXZ\0", "compressed by xz", "`xz -d` makes text of it"),
    (b"Attaching ", "the text of an eBPF collector", "record with trace-cmd or perf"),
    (b"<!DOCTYPE html", "a page of systrace", "record with trace-cmd or perf"),
    (b"{", "JSON", "record with trace-cmd or perf"),
    (b"\x0a", "a Perfetto trace", "`traceconv systrace FILE FILE.txt` makes text of it"),
];
/// What an archive of tar has at this place.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// A reader of one format. Its events are nearly in order.
pub(crate) trait Source {
    /// The next event; `None` at the end.
    fn next_event(&mut self) -> Result<Option<Event>, ReadError>;
    /// Who wrote it; `None` before its first event.
    fn format(&self) -> Option<Format>;
    /// The first line that was not understood, and how many there were.
    fn unknown(&self) -> Option<(u64, u64)>;
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
    /// The file has ended.
    ended: bool,
}

impl Recording {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or it is of a format that is not.
    pub fn open(path: &Path) -> Result<Recording, ReadError> {
        Recording::new(coreward_input::open(path)?)
    }

    fn new(file: File) -> Result<Recording, ReadError> {
        let mut file = BufReader::with_capacity(BUFFER, file);
        let compressed = file.fill_buf()?.starts_with(b"\x1f\x8b");
        let input: Box<dyn BufRead> = match compressed {
            true => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))),
            false => Box::new(file),
        };
        Recording::of(input)
    }

    /// Reads an input that is not compressed.
    ///
    /// # Errors
    /// As of [`Recording::open`].
    pub fn of(mut input: Box<dyn BufRead>) -> Result<Recording, ReadError> {
        let mut start = Vec::new();
        // what a pipe gives at once may be less than it takes to know the format
        input.by_ref().take(TAR.0 as u64 + 8).read_to_end(&mut start)?;
        let refused = REFUSED.iter().find(|(magic, ..)| start.starts_with(magic));
        if let Some((_, what, instead)) =
            refused.filter(|(magic, ..)| *magic != b"\x0a" || is_perfetto(&start))
        {
            return Err(ReadError::Unsupported { what, instead });
        }
        if start.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
            return Err(ReadError::Unsupported {
                what: "an archive of tar",
                instead: "unpack it, and name a file",
            });
        }
        let own = start.starts_with(cwr::MAGIC);
        let input: Box<dyn BufRead> = Box::new(io::Cursor::new(start).chain(input));
        let reader: Box<dyn Source> = match own {
            true => Box::new(CwrReader::new(input)),
            false => Box::new(TextReader::new(input)),
        };
        Ok(Recording { reader, order: Reorder::default(), ended: false })
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, is not what it should be, or its events are not in order.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
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

    /// How many events stood after a later one.
    pub fn late(&self) -> u64 {
        self.order.late
    }
}

/// A text may begin with an empty line; of a Perfetto trace, a length and a field of a packet follow.
fn is_perfetto(start: &[u8]) -> bool {
    start.iter().take(64).any(|byte| *byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn refusal(start: &[u8]) -> String {
        match Recording::of(Box::new(io::Cursor::new(start.to_vec()))) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn formats_that_are_not_read_are_named() {
        let tar: Vec<u8> = [vec![b'a'; 257], b"ustar\0".to_vec()].concat();
        for (start, what) in [
            (&b"\x17\x08\x44tracing6\0"[..], "trace-cmd report"),
            (b"PERFILE2....", "perf script"),
            (b"{\"a\": 1}", "JSON"),
            (b"\x0a\x16\x50\x01\xea\x02", "Perfetto"),
            (b"Attaching 6 probes...", "eBPF"),
            (&tar, "tar"),
        ] {
            assert!(refusal(start).contains(what), "{}", refusal(start));
        }
        assert_eq!(refusal(b"\n\na-1 [000] 1.0: print: x\n"), "");
    }

    #[test]
    fn a_compressed_file_reads_like_the_text() {
        let text = b"a-1 [000] 1.0: print: x\nb-2 [001] 0.5: print: x\n";
        let mut file = tempfile::tempfile().unwrap();
        let mut gzip = flate2::write::GzEncoder::new(&mut file, flate2::Compression::default());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let mut recording = Recording::new(file).unwrap();
        let mut times = Vec::new();
        while let Some(event) = recording.next_event().unwrap() {
            times.push(event.at);
        }
        assert_eq!(times, [500_000_000, 1_000_000_000]);
        assert_eq!((recording.late(), recording.format()), (1, Some(Format::Ftrace)));
    }
}
