//! A deterministic simulator of a Linux machine: tasks, runqueues, ticks, idle
//! states, caches and locks, around the placement policy.
//!
//! [`Simulation`] runs one workload on one machine under one policy. The same
//! inputs and seed give the same result on any host: all of it is integer
//! arithmetic in one thread, and randomness comes from one seeded generator.
//! What things cost is the machine's ([`coreward_machine::Costs`]); what is
//! modelled, and how, stands in `docs/model.md`.
//!
//! Where things are: [`mod@queue`] the event queue, `sim` the state and the loop,
//! `exec` what tasks do, `shared` and `sync` what they wait for each other with,
//! `wakeup`, `schedule`, `tick`, `idle` and `balance` the scheduler's paths, `load`
//! its averages, `fair` and `timeline` its queues, whose discipline is the policy's,
//! `channel`, `cache` and `contention` the physics.

mod balance;
mod cache;
mod channel;
mod contention;
mod counters;
mod cpu;
mod exec;
mod fair;
mod idle;
mod load;
mod process;
pub mod queue;
mod schedule;
mod segment;
mod shared;
mod sim;
mod stuck;
mod sync;
mod task;
mod tick;
mod timeline;
mod trace;
mod wakeup;

pub use sim::{Outcome, Settings, SimError, Simulation};
pub use trace::{CpuSchedstat, DomainSchedstat, Leaving, NoTrace, Trace};
