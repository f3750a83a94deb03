//! What an import found, and what it could not know.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cause::Causes;

/// What an import found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Who wrote the recording.
    pub format: &'static str,
    /// From its first event to its last, in s.
    pub duration_s: f64,
    /// CPUs that events happened on.
    pub cpus: usize,
    /// Events.
    pub events: u64,
    /// Events by their tracepoints.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Switches of imported tasks: how often one began to run.
    pub switches: u64,
    /// Waits of imported tasks, by what ended them.
    pub waits: Causes,
    /// Objects that tasks sleep on and are woken through, and how many of these have several takers.
    pub channels: [u64; 2],
    /// Wakeups that answer requests: they go to whoever made the request that was taken.
    pub answers: u64,
    /// Messages over sockets whose readers were awake; they wait for these, too.
    pub messages: u64,
    /// Tasks that were woken before they had gone to sleep; they wait for that, too.
    pub woken_awake: u64,
    /// From a wakeup of an imported task to its running: median and 99th percentile, in us.
    pub wakeup_latency_us: [f64; 2],
    /// Moves to another CPU.
    pub migrations: u64,
    /// Waits that a periodic timer ended, which is taken to keep its times.
    pub periodic: u64,
    /// Work of imported tasks, in s at capacity 1024.
    pub work_s: f64,
    /// How fast CPUs ran while they did it, in percent of their fastest, if the recording counts cycles.
    pub speed_pct: Option<f64>,
    /// What of their time was the kernel's switching, waking and forking, which a simulation adds by itself, in s.
    pub kernel_s: f64,
    /// What of that was more than segments were long.
    pub kernel_missing_s: f64,
    /// The task groups that imported tasks were in, other than the root group.
    pub groups: Vec<String>,
    /// The classes of tasks, by their names without numbers, largest first.
    pub classes: Vec<Class>,
    /// The tasks that are left out, by name, with the reason.
    pub left_out: Vec<LeftOut>,
    /// What the recording does not say, with what that means for the workload; one sentence each.
    pub lacks: Vec<String>,
    /// What was wrong in it, one sentence each.
    pub faults: Vec<String>,
}

/// Tasks with the same name, but for numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Class {
    /// The name, with `*` for numbers.
    pub name: String,
    /// Tasks.
    pub tasks: u64,
    /// Time on a CPU, in s.
    pub cpu_s: f64,
    /// Time that they waited for a CPU, in s.
    pub queued_s: f64,
    /// Time that they waited for something else, in s.
    pub blocked_s: f64,
    /// Waits, by what ended them.
    pub waits: Causes,
    /// The part of the time for which the recording says what they did or waited for, in percent.
    pub explained_pct: f64,
    /// Times that one ran on another CPU than before.
    pub moves: u64,
    /// From a wakeup to running: median and 99th percentile, in us.
    pub wakeup_latency_us: [f64; 2],
    /// Requests: from a wakeup to the next wait.
    pub requests: u64,
    /// How long these took: median and 99th percentile, in us.
    pub request_us: [f64; 2],
}

/// A task that is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LeftOut {
    /// The name, with `*` for numbers.
    pub name: String,
    /// Time on a CPU, in s.
    pub cpu_s: f64,
    /// Why.
    pub why: &'static str,
}
