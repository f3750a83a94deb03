//! A deterministic simulator of a Linux machine: tasks, runqueues, ticks, idle
//! states, caches and locks, around the placement policy.
//!
//! [`Simulation`] runs one workload on one machine under one policy. The same
//! inputs and seed give the same result everywhere: all of it is integer
//! arithmetic in one thread, and randomness comes from one seeded generator.
//! The machine determines the costs ([`coreward_machine::Costs`]). `docs/model.md`
//! says what is modelled, and how.
//!
//! Where things are: [`mod@queue`] the event queue, `sim` the state and the loop, `exec` what tasks do, `shared` and
//! `sync` the objects by which they wait for each other, `wakeup`, `schedule`, `tick`, `idle` and `balance` the
//! scheduler's paths, `load` its averages, `checks` the invariants of every run, `event` and `change` hotplug, cpusets
//! and cgroups in mid-run, `group` and `bandwidth` the latter's weights and quotas, `fair` and `timeline` its queues,
//! whose discipline is the policy's, `channel`, `cache`, `contention`, `lazy_tlb` and `asid` the physics.

mod affinity;
mod asid;
mod attributes;
mod balance;
mod bandwidth;
mod cache;
mod change;
mod channel;
mod checks;
mod contention;
mod counters;
mod cpu;
mod event;
mod exec;
mod fair;
mod fork;
mod group;
mod idle;
mod intervals;
mod jitter;
mod lazy_tlb;
mod ledger;
mod load;
mod process;
pub mod queue;
mod queued;
mod schedule;
mod segment;
mod shared;
mod sim;
mod skip;
mod stuck;
mod sync;
mod task;
#[cfg(test)]
mod testing;
mod tick;
mod timeline;
mod trace;
mod wakeup;

pub use asid::Asids;
pub use checks::{Checks, Invariant, Violation};
pub use counters::{LatencySummary, Thread};
pub use event::{Action, Change};
pub use exec::{CHANNEL_LINES, remote_socket_ns};
pub use group::GroupUse;
pub use intervals::Interval;
pub use sim::{Outcome, Settings, SimError, Simulation};
pub use skip::Skipped;
pub use trace::{CpuSchedstat, DomainSchedstat, Leaving, Moment, NoTrace, Trace, Waker};
pub use wakeup::{CURR_LINES, RQ_LINES, SWITCH_LINES, WAKEE_LINES};
