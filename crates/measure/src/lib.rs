//! Runs a benchmark on this machine and counts what the kernel did for it.
//!
//! [`run`] starts a command and waits for it. Times and context switches are those that the kernel accounts to the
//! command and its children (`getrusage(2)`), which needs no privilege. Migrations are counted by a software event
//! on each CPU (`perf_event_open(2)`), which an unprivileged user may not have. A [`Tracer`] also records the scheduler's tracepoints,
//! from which [`Scheduling`] has wakeup latencies, run lengths, what was waited for, and how far migrations went; that
//! takes root. [`Tool`] knows what benchmarks print.

mod command;
mod scheduling;
mod symbols;
mod tool;
mod trace;

pub use command::{Counted, MeasureError, run};
pub use scheduling::{Distance, Scheduling};
pub use tool::Tool;
pub use trace::{Traced, Tracer};
