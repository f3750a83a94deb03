//! Samples, whose parts are there or not by the bits of `sample_type`.

use crate::ReadError;
use crate::binary::bytes::{Cursor, Order};

/// Bits of `sample_type` (`PERF_SAMPLE_`).
const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// Bits of `read_format` (`PERF_FORMAT_`).
const TIME_ENABLED: u64 = 1 << 0;
const TIME_RUNNING: u64 = 1 << 1;
const FORMAT_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const FORMAT_LOST: u64 = 1 << 4;

/// Of the flags of `perf_event_attr`: other records have time and CPU, too (`sample_id_all`).
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// How the samples of an event are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleLayout {
    /// The kind of the event (`PERF_TYPE_`).
    pub(super) kind: u64,
    sample_type: u64,
    read_format: u64,
    all: bool,
}

/// What a sample says.
pub(super) struct Sample<'a> {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) time: u64,
    pub(super) cpu: u32,
    pub(super) raw: Option<&'a [u8]>,
}

/// The rest of a record.
struct Rest<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(self.order.number(self.take(8)?))
    }

    fn u32(&mut self) -> Option<u32> {
        self.order.u32(self.take(4)?)
    }

    /// Passes over so many numbers of 8 bytes.
    fn skip(&mut self, count: u64) -> Option<()> {
        self.take(usize::try_from(count.checked_mul(8)?).ok()?).map(|_| ())
    }
}

impl SampleLayout {
    /// Reads a `perf_event_attr` that begins here, and stops within it.
    pub(super) fn read(at: &mut Cursor) -> Result<SampleLayout, ReadError> {
        let kind = u64::from(at.u32()?);
        at.skip(4 + 8 + 8)?;
        let (sample_type, read_format, flags) = (at.u64()?, at.u64()?, at.u64()?);
        // a compiler for the other order of bytes puts the first bit to the other end
        let all = match at.order {
            Order::Little => flags & SAMPLE_ID_ALL,
            Order::Big => flags.reverse_bits() & SAMPLE_ID_ALL,
        };
        Ok(SampleLayout { kind, sample_type, read_format, all: all != 0 })
    }

    fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// The identity of a sample's event, which stands at the same place in all samples of a file.
    pub(super) fn id(&self, body: &[u8], order: Order) -> Option<u64> {
        let before = match () {
            () if self.has(IDENTIFIER) => 0,
            () if self.has(ID) => (self.sample_type & (IP | TID | TIME | ADDR)).count_ones() as usize,
            () => return None,
        };
        Some(order.number(body.get(before * 8..before * 8 + 8)?))
    }

    /// The time of a record that is no sample, which ends with it and what follows.
    pub(super) fn time_at_end(&self, body: &[u8], order: Order) -> Option<u64> {
        if !self.all || !self.has(TIME) {
            return None;
        }
        let after = (self.sample_type & (ID | STREAM_ID | CPU | IDENTIFIER)).count_ones() as usize;
        let start = body.len().checked_sub((after + 1) * 8)?;
        Some(order.number(&body[start..start + 8]))
    }

    pub(super) fn sample<'a>(&self, body: &'a [u8], order: Order) -> Result<Sample<'a>, &'static str> {
        for (bit, what) in [
            (TID, "samples do not say their tasks (record with perf record -a)"),
            (TIME, "samples have no times (record with perf record -a)"),
            (CPU, "samples do not say their CPUs (record with perf record -a)"),
        ] {
            if !self.has(bit) {
                return Err(what);
            }
        }
        self.parts(body, order).ok_or("a sample is shorter than its event says")
    }

    fn parts<'a>(&self, body: &'a [u8], order: Order) -> Option<Sample<'a>> {
        let mut rest = Rest { bytes: body, order };
        rest.skip((self.sample_type & (IDENTIFIER | IP)).count_ones().into())?;
        let (pid, tid) = (rest.u32()? as i32, rest.u32()? as i32);
        let time = rest.u64()?;
        rest.skip((self.sample_type & (ADDR | ID | STREAM_ID)).count_ones().into())?;
        let (cpu, _reserved) = (rest.u32()?, rest.u32()?);
        rest.skip(u64::from(self.has(PERIOD)))?;
        let mut sample = Sample { pid, tid, time, cpu, raw: None };
        if self.has(READ) {
            let format = |bits: u64| u64::from((self.read_format & bits).count_ones());
            match self.read_format & GROUP {
                0 => rest.skip(1 + format(TIME_ENABLED | TIME_RUNNING | FORMAT_ID | FORMAT_LOST))?,
                _ => {
                    let count = rest.u64()?;
                    let each = 1 + format(FORMAT_ID | FORMAT_LOST);
                    rest.skip(format(TIME_ENABLED | TIME_RUNNING).checked_add(count.checked_mul(each)?)?)?;
                }
            }
        }
        if self.has(CALLCHAIN) {
            let count = rest.u64()?;
            rest.skip(count)?;
        }
        if self.has(RAW) {
            let length = rest.u32()?;
            sample.raw = Some(rest.take(length as usize)?);
        }
        Some(sample)
    }
}
