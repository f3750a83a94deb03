//! Decisions that a Linux kernel took, recorded with the state that it took them on, and held against the policy.
//!
//! [`Reader`] reads a capture file (`docs/capture.md`), [`Writer`] writes one.

mod error;
pub mod format;
mod host;
mod prologue;
mod reader;
mod record;
mod writer;

pub use error::CaptureError;
pub use host::Host;
pub use reader::Reader;
pub use record::{Balance, Placement, Record, RecordedCpu, RecordedDomain, RecordedGroup, RecordedMachine, States};
pub use writer::Writer;
