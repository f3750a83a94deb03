//! Runs a benchmark on this machine and counts what the kernel did for it.
//!
//! [`run`] starts a command and waits for it. Times and context switches are those that the kernel accounts to the
//! command and its children (`getrusage(2)`), which needs no privilege. Migrations are counted by a software event
//! (`perf_event_open(2)`), which an unprivileged user may not have. [`Tool`] knows what benchmarks print.

mod command;
mod tool;

pub use command::{Counted, MeasureError, run};
pub use tool::Tool;
