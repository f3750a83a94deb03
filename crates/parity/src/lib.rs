//! Compares decisions of a Linux kernel, which were recorded with the state that they are based on, with the policy's.
//!
//! [`Reader`] reads a capture file (`docs/capture.md`), [`Writer`] writes one.

mod error;
pub mod format;
mod host;
mod kernel;
mod path;
mod prologue;
mod queue;
mod reader;
mod record;
mod replay;
mod report;
mod stable;
mod state;
mod whatif;
mod writer;

pub use error::CaptureError;
pub use host::Host;
pub use path::{Class, Path};
pub use queue::QueueRules;
pub use reader::Reader;
pub use record::{
    Balance, Placement, Record, RecordedCpu, RecordedDomain, RecordedGroup, RecordedMachine, States, Step,
};
pub use replay::{BalanceRules, Choice, Outcome, Replay, SelectRule};
pub use report::{Disagreement, Summary, Tally};
pub use stable::Moved;
pub use whatif::{Changes, Effect, Migrations, WhatIf};
pub use writer::Writer;
