//! Recordings of a kernel's scheduler: reading them, writing them, and the workload behind them.
//!
//! [`Recording`] reads a file, whatever its format, and gives its events in order. [`import::Import`] finds out from them what
//! the tasks did and why: how much they computed, what they waited for, and who woke them.

mod binary;
mod cwr;
mod event;
mod held;
pub mod import;
mod order;
mod payload;
mod perfetto;
mod recording;
mod text;
mod wprof;
mod write;

use std::io;

pub use event::{Channel, Comm, CpuSet, Event, Handler, Leaving, Task, What};
pub use held::Held;
pub use order::Reorder;
pub use recording::Recording;
pub use text::TextReader;
pub use write::{EventWriter, PerfWriter, Place, TextWriter, Written};

/// Who wrote a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text of ftrace or `trace-cmd report`.
    Ftrace,
    /// Text of `perf script`.
    PerfScript,
    /// A file of `coreward record --workload`.
    Coreward,
    /// A file of perf.
    PerfData,
    /// A Perfetto trace.
    Perfetto,
    /// The JSON of wprof.
    Wprof,
    /// A file of trace-cmd.
    TraceDat,
    /// Pages of the kernel's ring buffer.
    Pages,
}

impl Format {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ftrace => "ftrace text",
            Format::PerfScript => "perf script text",
            Format::Coreward => "recording of coreward",
            Format::PerfData => "perf.data",
            Format::Perfetto => "Perfetto trace",
            Format::Wprof => "JSON of wprof",
            Format::TraceDat => "trace.dat",
            Format::Pages => "ring buffer pages",
        }
    }
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is not what it should be.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A place of a binary file is not what it should be.
    #[error("byte {at}: {what}")]
    Place {
        /// Its offset.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// A file of a directory is not what it should be.
    #[error("{0}: {1}")]
    Part(String, String),
    /// A directory without what is needed.
    #[error(
        "it is a directory without pages of the ring buffer (needed: formats/SYSTEM/EVENT/format as in \
         /sys/kernel/tracing/events, and traces/cpuN with what per_cpu/cpuN/trace_pipe_raw gave)"
    )]
    Directory,
    /// A format that is known, but not read.
    #[error("it is {what} (allowed: {ALLOWED}): {instead}")]
    Unsupported {
        /// The format.
        what: &'static str,
        /// How to get one that is read.
        instead: &'static str,
    },
    /// Nothing that is known.
    #[error("it is not a recording (allowed: {ALLOWED})")]
    Unknown,
    /// There is nothing in it.
    #[error("it has no scheduling events (needed: sched_switch and sched_waking)")]
    Empty,
}

impl ReadError {
    fn byte(at: u64, what: &str) -> ReadError {
        ReadError::Place { at, what: what.to_owned() }
    }
}

/// What is read.
const ALLOWED: &str = "files of `coreward record --workload`, of trace-cmd and of perf, Perfetto traces, the JSON of wprof, the text of `trace-cmd report`, of \
     /sys/kernel/tracing/trace and of `perf script`, also compressed by gzip, and directories of pages of the ring buffer";
