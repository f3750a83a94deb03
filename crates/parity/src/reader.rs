//! Reads a capture file, one decision at a time.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use crate::error::{CaptureError, Wrong, in_frame};
use crate::format::{END_WITHOUT_STEPS, End, Field, FrameHeader, FrameType, Header, MAGIC, VERSION};
use crate::host::Host;
use crate::record::{Balance, Parts, Placement, Record, RecordedMachine, Step, decode_queue};

/// The longest payload, in bytes: more than any frame of 512 CPUs with 10 domains each needs.
const MAX_PAYLOAD: u32 = 512 << 10;

/// Where a file has its frames of decisions: what it begins with, its version, and what their types have been added to.
/// Frames of lower types are of a workload (docs/recording.md).
struct Container {
    magic: u64,
    version: u32,
    base: u32,
}

/// A file of decisions alone, and a recording of a workload that has decisions, too.
const CONTAINERS: [Container; 2] = [
    Container { magic: MAGIC, version: VERSION, base: 0 },
    Container { magic: u64::from_le_bytes(*b"cwrecord"), version: 4, base: 16 },
];
/// The longest payload of a frame of a workload, in bytes.
const MAX_WORKLOAD_PAYLOAD: u32 = 1 << 20;
/// The last frame of a workload's recording.
const WORKLOAD_END: u32 = 3;

/// A capture file that is being read. As an iterator, it yields the decisions in the order of the file, and nothing
/// after an error. Only when it has ended without an error is the file known to be sound.
pub struct Reader<R> {
    input: R,
    file: String,
    base: u32,
    machine: RecordedMachine,
    /// Where the next frame begins.
    offset: u64,
    /// How many frames were read.
    frames: u64,
    payload: Vec<u8>,
    /// The first decision's frame, which ended the prologue.
    pending: Option<FrameType>,
    seen: End,
    end: Option<End>,
    failed: bool,
}

impl Reader<BufReader<File>> {
    /// Opens a file and reads it up to the first decision.
    ///
    /// # Errors
    /// It cannot be read, or is damaged up to there.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let input =
            coreward_input::open(path).map_err(|source| CaptureError::Io { file: name.clone(), source })?;
        Reader::new(BufReader::with_capacity(1 << 20, input), &name)
    }
}

impl<R: Read> Reader<R> {
    /// Reads from `input` up to the first decision; errors call it `file`.
    ///
    /// # Errors
    /// It cannot be read, or is damaged up to there.
    pub fn new(mut input: R, file: &str) -> Result<Self, CaptureError> {
        let damaged = |what: &str| CaptureError::Damaged { file: file.into(), offset: 0, what: what.into() };
        let mut bytes = [0; Header::SIZE];
        match input.read_exact(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(damaged("the file is shorter than a capture file's header"));
            }
            Err(source) => return Err(CaptureError::Io { file: file.into(), source }),
            Ok(()) => {}
        }
        let header = Header::take(&mut &bytes[..]).unwrap_or_default();
        let Some(container) = CONTAINERS.iter().find(|container| container.magic == header.magic) else {
            return Err(damaged(
                "this is not a capture file: it does not begin with `coreward` or `cwrecord`",
            ));
        };
        if header.version != container.version {
            let (version, allowed) = (header.version, container.version);
            return Err(damaged(&format!("the file is of version {version}, allowed is {allowed}")));
        }
        let mut reader = Reader {
            input,
            file: file.into(),
            base: container.base,
            machine: RecordedMachine::new(Host {
                release: String::new(),
                nr_cpus: 0,
                hz: 1,
                lines: Vec::new(),
            }),
            offset: Header::SIZE as u64,
            frames: 0,
            payload: Vec::new(),
            pending: None,
            seen: End::default(),
            end: None,
            failed: false,
        };
        reader.read_prologue()?;
        Ok(reader)
    }

    /// The machine that was recorded.
    pub fn machine(&self) -> &RecordedMachine {
        &self.machine
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Decisions that the recorder had no room for; known once the end is reached.
    pub fn lost(&self) -> Option<u64> {
        self.end.map(|end| end.lost)
    }

    fn read_prologue(&mut self) -> Result<(), CaptureError> {
        let first = self.read_frame()?;
        if first != FrameType::Host {
            return Err(self.wrong(Some(first), "the file does not begin with a host frame"));
        }
        let host = Host::parse(&self.payload).map_err(|what| self.wrong(Some(first), &what))?;
        self.machine = RecordedMachine::new(host);
        loop {
            let kind = self.read_frame()?;
            let added = match kind {
                FrameType::Host => Err("the file has two host frames".into()),
                FrameType::Cpu => self.machine.add_cpu(&self.payload),
                FrameType::Domain => self.machine.add_domain(&self.payload),
                _ => {
                    self.machine.check_complete().map_err(|what| self.wrong(Some(kind), &what))?;
                    self.pending = Some(kind);
                    return Ok(());
                }
            };
            added.map_err(|what| self.wrong(Some(kind), &what))?;
        }
    }

    /// Reads the next frame of decisions into `payload`.
    fn read_frame(&mut self) -> Result<FrameType, CaptureError> {
        loop {
            let header = self.read_frame_header()?;
            let Some(number) = header.kind.checked_sub(self.base).filter(|number| *number > 0) else {
                self.skip_workload(&header)?;
                continue;
            };
            let kind = FrameType::from_number(number).ok_or_else(|| self.unknown(&header))?;
            self.read_payload(&header, Some(kind), MAX_PAYLOAD)?;
            return Ok(kind);
        }
    }

    fn read_frame_header(&mut self) -> Result<FrameHeader, CaptureError> {
        let start = self.offset + if self.frames == 0 { 0 } else { self.frame_length() };
        (self.offset, self.frames) = (start, self.frames + 1);
        let mut bytes = [0; FrameHeader::SIZE];
        self.fill(&mut bytes)?;
        Ok(FrameHeader::take(&mut &bytes[..]).unwrap_or_default())
    }

    fn unknown(&self, header: &FrameHeader) -> CaptureError {
        let [first, last] = [1, FrameType::ALL.len() as u32].map(|number| self.base + number);
        self.wrong(None, &format!("type {} is unknown, allowed are {first} to {last}", header.kind))
    }

    /// A frame of a workload is none of decisions, but it has to be sound. True if it is the last one.
    fn skip_workload(&mut self, header: &FrameHeader) -> Result<bool, CaptureError> {
        if self.base == 0 || !(1..=WORKLOAD_END).contains(&header.kind) {
            return Err(self.unknown(header));
        }
        self.read_payload(header, None, MAX_WORKLOAD_PAYLOAD)?;
        let ends = header.kind == WORKLOAD_END;
        if ends && self.machine.host.nr_cpus == 0 {
            return Err(self.wrong(
                None,
                "the recording has a workload, but no decisions (record --workload --decisions has both)",
            ));
        }
        Ok(ends)
    }

    fn read_payload(
        &mut self,
        header: &FrameHeader,
        kind: Option<FrameType>,
        most: u32,
    ) -> Result<(), CaptureError> {
        if header.length > most || header.length % 8 != 0 {
            let what = format!("the length is {}, allowed are multiples of 8 up to {most}", header.length);
            return Err(self.wrong(kind, &what));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(header.length as usize, 0);
        self.fill(&mut payload)?;
        self.payload = payload;
        let checksum = crc32fast::hash(&self.payload);
        if checksum != header.checksum {
            let what = format!(
                "the checksum is {checksum:08x}, the frame says {:08x}: the file is damaged",
                header.checksum
            );
            return Err(self.wrong(kind, &what));
        }
        Ok(())
    }

    fn frame_length(&self) -> u64 {
        (FrameHeader::SIZE + self.payload.len()) as u64
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), CaptureError> {
        self.input.read_exact(bytes).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => {
                self.wrong(None, "the file ends here without an end frame: it is truncated")
            }
            _ => CaptureError::Io { file: self.file.clone(), source },
        })
    }

    fn wrong(&self, kind: Option<FrameType>, what: &str) -> CaptureError {
        let what = in_frame(self.frames, kind, what);
        CaptureError::Damaged { file: self.file.clone(), offset: self.offset, what }
    }

    /// The next decision; `None` after the end frame.
    fn read_record(&mut self) -> Result<Option<Record>, CaptureError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let kind = match self.pending.take() {
            Some(kind) => kind,
            None => self.read_frame()?,
        };
        let record = self.decode(kind).map_err(|what| self.wrong(Some(kind), &what))?;
        if record.is_none() {
            self.expect_end_of_file()?;
        }
        Ok(record)
    }

    fn decode(&mut self, kind: FrameType) -> Result<Option<Record>, Wrong> {
        match kind {
            FrameType::Placement => {
                self.seen.placements += 1;
                let placement = Placement::decode(&self.payload, &self.machine)?;
                Ok(Some(Record::Placement(Box::new(placement))))
            }
            FrameType::Balance => {
                self.seen.balances += 1;
                let balance = Balance::decode(&self.payload, &self.machine)?;
                Ok(Some(Record::Balance(Box::new(balance))))
            }
            FrameType::Queue => {
                self.seen.queues += 1;
                Ok(Some(Record::Queue(decode_queue(&self.payload, self.machine.host.nr_cpus)?)))
            }
            FrameType::Step => {
                self.seen.steps += 1;
                let step = Step::decode(&self.payload, self.machine.host.nr_cpus)?;
                Ok(Some(Record::Step(Box::new(step))))
            }
            FrameType::End => self.take_end().map(|()| None),
            _ => Err("it stands after the first decision".into()),
        }
    }

    fn take_end(&mut self) -> Result<(), Wrong> {
        if self.payload.len() == END_WITHOUT_STEPS {
            self.payload.resize(End::SIZE, 0);
        }
        let mut parts = Parts::new(&self.payload, self.machine.host.nr_cpus);
        let end: End = parts.take()?;
        parts.end()?;
        let seen = &self.seen;
        for (what, said, found) in [
            ("placements", end.placements, seen.placements),
            ("balances", end.balances, seen.balances),
            ("queues", end.queues, seen.queues),
            ("steps", end.steps, seen.steps),
        ] {
            if said != found {
                return Err(format!("it counts {said} {what}, the file has {found}"));
            }
        }
        self.end = Some(end);
        Ok(())
    }

    /// Nothing follows the last decision, but a workload may.
    fn expect_end_of_file(&mut self) -> Result<(), CaptureError> {
        let mut ended = self.base == 0;
        while !ended {
            let header = self.read_frame_header()?;
            ended = self.skip_workload(&header)?;
        }
        let mut more = [0; 1];
        match self.input.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.wrong(Some(FrameType::End), "the file goes on after it")),
            Err(source) => Err(CaptureError::Io { file: self.file.clone(), source }),
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.read_record();
        self.failed = record.is_err();
        record.transpose()
    }
}
