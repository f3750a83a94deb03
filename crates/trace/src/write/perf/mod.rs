//! Events as a file of perf (`perf.data`), which `perf sched latency`, `timehist`, `map` and `perf script` read.
//!
//! The file has the tracepoints' own descriptions, those of Linux 6.12, so that a reader needs no kernel that has them.
//! The layout is that of the kernel's `tools/perf/Documentation/perf.data-file-format.txt`.

mod bytes;
mod tracepoints;

use std::io::{self, Seek, SeekFrom, Write};

use super::{EventWriter, Place, Written};
use crate::event::{Leaving, Task};
use bytes::Bytes;
use tracepoints::{
    EXIT, FIRST_ID, FORK, MIGRATE, STAT_RUNTIME, SWITCH, TRACEPOINTS, WAKEUP, WAKEUP_NEW, WAKING,
    tracing_data,
};

const MAGIC: &[u8; 8] = b"PERFILE2";
const HEADER_BYTES: u64 = 104;
/// `PERF_ATTR_SIZE_VER5`.
const ATTRIBUTE_BYTES: u32 = 112;
/// Where and how long something is in the file.
const SECTION_BYTES: u64 = 16;

/// `PERF_TYPE_TRACEPOINT`.
const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_` TID, TIME, CPU, PERIOD, RAW and IDENTIFIER.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// The bit of the attributes' flags that gives records other than samples a time, too (`sample_id_all`).
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// `PERF_RECORD_COMM`, `_SAMPLE` and `_FINISHED_ROUND`.
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
/// `PERF_RECORD_MISC_KERNEL`: where tracepoints are.
const MISC_KERNEL: u16 = 1;
/// Samples from one end of a round to the next. What stands before the last but one end can be put into order.
const ROUND: u32 = 10_000;

/// Features by their numbers (`HEADER_`).
const TRACING_DATA: u32 = 1;
const OS_RELEASE: u32 = 4;
const NR_CPUS: u32 = 7;
const EVENT_DESC: u32 = 12;

/// `TRACE_FLAG_HARDIRQ`.
const FLAG_HARDIRQ: u8 = 8;
/// Bits of `prev_state`: preempted, asleep, dead.
const PREEMPTED: u64 = 0x100;
const ASLEEP: u64 = 0x1;
const DEAD: u64 = 0x10;

/// Writes events as `perf record -e 'sched:*'` would. Beside those of [`Written`] it writes `sched_stat_runtime`, once for
/// each time that a task was on a CPU, since `perf sched latency` adds these up, and `sched_wakeup`, since
/// `perf sched latency` of perf 6.1 knows no other wakeup.
pub struct PerfWriter<W> {
    out: W,
    /// The last switch of each CPU.
    switched: Vec<u64>,
    /// Where the samples end.
    end: u64,
    /// Samples since the last end of a round.
    samples: u32,
}

impl<W: Write + Seek> PerfWriter<W> {
    /// Begins a file of so many CPUs.
    ///
    /// # Errors
    /// `out` cannot be written, or its position cannot be changed.
    pub fn new(mut out: W, cpus: usize) -> io::Result<PerfWriter<W>> {
        // the header comes last, when it is known
        out.seek(SeekFrom::Start(0))?;
        let mut start = Bytes(vec![0; HEADER_BYTES as usize]);
        let ids = HEADER_BYTES + TRACEPOINTS.len() as u64 * (u64::from(ATTRIBUTE_BYTES) + SECTION_BYTES);
        for event in 0..TRACEPOINTS.len() {
            attribute(&mut start, event);
            start.u64(ids + 8 * event as u64);
            start.u64(8);
        }
        (0..TRACEPOINTS.len()).for_each(|event| start.u64(identity(event)));
        out.write_all(&start.0)?;
        Ok(PerfWriter { out, switched: vec![0; cpus], end: start.0.len() as u64, samples: 0 })
    }

    /// Writes the headers, and gives the output back.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        let mut event_desc = Bytes::default();
        event_desc.u32(TRACEPOINTS.len() as u32);
        event_desc.u32(ATTRIBUTE_BYTES);
        for (event, tracepoint) in TRACEPOINTS.iter().enumerate() {
            attribute(&mut event_desc, event);
            event_desc.u32(1);
            event_desc.padded(&format!("sched:{}", tracepoint.name()));
            event_desc.u64(identity(event));
        }
        let mut release = Bytes::default();
        release.padded("6.12.0");
        let mut cpus = Bytes::default();
        (0..2).for_each(|_| cpus.u32(self.switched.len() as u32));
        let features = [
            (TRACING_DATA, tracing_data()),
            (OS_RELEASE, release),
            (NR_CPUS, cpus),
            (EVENT_DESC, event_desc),
        ];
        let mut sections = Bytes::default();
        let mut at = self.end + features.len() as u64 * SECTION_BYTES;
        for (_, bytes) in &features {
            sections.u64(at);
            sections.u64(bytes.0.len() as u64);
            at += bytes.0.len() as u64;
        }
        self.out.write_all(&sections.0)?;
        features.iter().try_for_each(|(_, bytes)| self.out.write_all(&bytes.0))?;

        let attributes = TRACEPOINTS.len() as u64 * (u64::from(ATTRIBUTE_BYTES) + SECTION_BYTES);
        let data = HEADER_BYTES + attributes + 8 * TRACEPOINTS.len() as u64;
        let mut header = Bytes(MAGIC.to_vec());
        header.u64(HEADER_BYTES);
        header.u64(u64::from(ATTRIBUTE_BYTES) + SECTION_BYTES);
        [HEADER_BYTES, attributes, data, self.end - data, 0, 0]
            .into_iter()
            .for_each(|number| header.u64(number));
        header.u64(features.iter().map(|(feature, _)| 1 << feature).sum());
        header.0.resize(HEADER_BYTES as usize, 0);
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header.0)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn record(&mut self, kind: u32, misc: u16, body: &Bytes) -> io::Result<()> {
        let mut record = Bytes::default();
        record.u32(kind);
        record.u16(misc);
        record.u16(8 + body.0.len() as u16);
        record.0.extend(&body.0);
        self.end += record.0.len() as u64;
        self.out.write_all(&record.0)
    }

    /// Writes a sample of a tracepoint, of which `fields` are what follows the common ones.
    fn sample(&mut self, place: &Place, event: usize, fields: &Bytes) -> io::Result<()> {
        let mut body = Bytes::default();
        body.u64(identity(event));
        body.int(place.tgid);
        body.int(place.current.pid);
        body.u64(place.at);
        body.u32(place.cpu as u32);
        body.u32(0);
        body.u64(1);
        let mut raw = Bytes::default();
        raw.u16(FIRST_ID + event as u16);
        raw.0.extend([if place.in_interrupt { FLAG_HARDIRQ } else { 0 }, 0]);
        raw.int(place.current.pid);
        raw.0.extend(&fields.0);
        // with its length, it ends on 8 bytes
        raw.0.resize((raw.0.len() + 4).next_multiple_of(8) - 4, 0);
        body.u32(raw.0.len() as u32);
        body.0.extend(raw.0);
        self.record(SAMPLE, MISC_KERNEL, &body)?;
        self.samples += 1;
        if self.samples == ROUND {
            self.samples = 0;
            self.record(FINISHED_ROUND, 0, &Bytes::default())?;
        }
        Ok(())
    }

    fn runtime(&mut self, place: &Place) -> io::Result<()> {
        let since = self.switched.get_mut(place.cpu).map(|at| std::mem::replace(at, place.at));
        let ns = place.at - since.unwrap_or(place.at).min(place.at);
        if place.current.pid == 0 || ns == 0 {
            return Ok(());
        }
        let mut fields = Bytes::default();
        fields.comm(place.current.comm);
        fields.int(place.current.pid);
        fields.align(8);
        fields.u64(ns);
        self.sample(place, STAT_RUNTIME, &fields)
    }
}

impl<W: Write + Seek> EventWriter for PerfWriter<W> {
    fn task(&mut self, at: u64, task: &Task, tgid: i32) -> io::Result<()> {
        let mut body = Bytes::default();
        body.int(tgid);
        body.int(task.pid);
        body.comm(task.comm);
        // what a sample begins with, at the end
        body.int(tgid);
        body.int(task.pid);
        body.u64(at);
        body.u64(0);
        body.u64(identity(SWITCH));
        self.record(COMM, 0, &body)
    }

    fn event(&mut self, place: &Place, event: &Written) -> io::Result<()> {
        let mut fields = Bytes::default();
        let task = |fields: &mut Bytes, task: &Task| {
            fields.comm(task.comm);
            fields.int(task.pid);
            fields.int(task.prio);
        };
        let current = place.current;
        let kind = match *event {
            Written::Switch { leaving, next } => {
                self.runtime(place)?;
                task(&mut fields, &current);
                fields.u64(match leaving {
                    Leaving::Runnable if current.pid == 0 => 0,
                    Leaving::Runnable => PREEMPTED,
                    Leaving::Blocked => ASLEEP,
                    Leaving::Dead => DEAD,
                });
                task(&mut fields, &next);
                SWITCH
            }
            Written::Waking { task: woken, target } | Written::WakeupNew { task: woken, target } => {
                task(&mut fields, &woken);
                fields.u32(target as u32);
                if matches!(event, Written::Waking { .. }) {
                    self.sample(place, WAKING, &fields)?;
                    WAKEUP
                } else {
                    WAKEUP_NEW
                }
            }
            Written::Fork { child } => {
                for task in [current, child] {
                    fields.comm(task.comm);
                    fields.int(task.pid);
                }
                FORK
            }
            Written::Exit => {
                task(&mut fields, &current);
                EXIT
            }
            Written::Migrate { task: moved, from, to } => {
                task(&mut fields, &moved);
                fields.u32(from as u32);
                fields.u32(to as u32);
                MIGRATE
            }
        };
        self.sample(place, kind, &fields)
    }
}

/// How samples of an event are told from those of others.
fn identity(event: usize) -> u64 {
    event as u64 + 1
}

/// `struct perf_event_attr`.
fn attribute(bytes: &mut Bytes, event: usize) {
    let start = bytes.0.len();
    bytes.u32(TYPE_TRACEPOINT);
    bytes.u32(ATTRIBUTE_BYTES);
    bytes.u64(u64::from(FIRST_ID) + event as u64);
    // a sample for each event
    bytes.u64(1);
    bytes.u64(SAMPLE_TYPE);
    bytes.u64(0);
    bytes.u64(SAMPLE_ID_ALL);
    bytes.0.resize(start + ATTRIBUTE_BYTES as usize, 0);
}
