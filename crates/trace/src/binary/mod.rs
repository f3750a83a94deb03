//! Recordings in the kernel's own form: events of the ring buffer, as tracefs, trace-cmd and perf keep them.

mod bytes;
mod compressed;
mod dat;
mod formats;
mod merge;
mod pages;
mod perf;
mod ring;

pub(crate) use bytes::Bytes;
pub(crate) use formats::softirq;
pub(crate) use pages::open as pages;

use crate::ReadError;
use crate::recording::Source;

/// Does a file that begins so have one of these forms?
pub(crate) fn is_binary(start: &[u8]) -> bool {
    start.starts_with(dat::MAGIC) || perf::MAGICS.iter().any(|magic| start.starts_with(magic))
}

/// Opens such a file.
pub(crate) fn open(bytes: &Bytes) -> Result<Box<dyn Source>, ReadError> {
    let mut start = vec![0; dat::MAGIC.len()];
    bytes.read(0, &mut start)?;
    Ok(if start == dat::MAGIC { Box::new(dat::open(bytes)?) } else { Box::new(perf::open(bytes)?) })
}
