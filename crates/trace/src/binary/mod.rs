//! Recordings in the kernel's own form: events of the ring buffer, as tracefs, trace-cmd and perf keep them.

mod bytes;
mod compressed;
mod dat;
mod formats;
mod merge;
mod pages;
mod ring;

pub(crate) use bytes::Bytes;
pub(crate) use dat::{MAGIC as TRACE_DAT, open as trace_dat};
pub(crate) use formats::softirq;
pub(crate) use pages::open as pages;
