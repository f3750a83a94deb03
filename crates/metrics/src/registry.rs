//! The table of metrics: name, unit, which direction is better, and meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which direction of change is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// A smaller value is better (times, migrations, latencies).
    Lower,
    /// A larger value is better (throughput).
    Higher,
    /// Neither direction is better by itself; a change is reported as it is.
    Neutral,
}

/// Builds [`Metric`] from the table below: one line per metric, `name: unit, direction, help;`.
macro_rules! metrics {
    ($($name:ident: $unit:literal, $better:ident, $help:literal;)+) => {
        /// A metric; the variant is spelled as the metric is printed.
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Metric {
            $(#[doc = $help] $name,)+
        }

        impl Metric {
            /// Every metric, in the order in which reports list them.
            pub const ALL: &[Metric] = &[$(Metric::$name,)+];

            /// Name in JSON, tables and experiment files.
            pub fn name(self) -> &'static str {
                match self { $(Metric::$name => stringify!($name),)+ }
            }

            /// Unit of the value; empty for a plain count.
            pub fn unit(self) -> &'static str {
                match self { $(Metric::$name => $unit,)+ }
            }

            /// Direction that is an improvement.
            pub fn better(self) -> Better {
                match self { $(Metric::$name => Better::$better,)+ }
            }

            /// One line that says what is measured.
            pub fn help(self) -> &'static str {
                match self { $(Metric::$name => $help,)+ }
            }
        }
    };
}

metrics! {
    runtime_s: "s", Lower, "simulated time from the start of the workload to its end";
    messages_per_s: "1/s", Higher, "messages passed per second of runtime";
    events: "", Higher, "events (requests, transactions) that the workload's tasks ended";
    events_per_s: "1/s", Higher, "events per second of runtime";
    events_per_s_p20: "1/s", Higher, "20th percentile of the events in a second of the run";
    events_per_s_p50: "1/s", Higher, "median of the events in a second of the run";
    events_per_s_p90: "1/s", Higher, "90th percentile of the events in a second of the run";
    events_per_task_stddev: "", Lower, "standard deviation of the tasks' numbers of events, the spread of fairness";
    event_latency_us_min: "us", Lower, "shortest time from the start of an event to its end";
    event_latency_us_avg: "us", Lower, "mean time from the start of an event to its end";
    event_latency_us_p50: "us", Lower, "median time from the start of an event to its end";
    event_latency_us_p90: "us", Lower, "90th percentile of the time from the start of an event to its end";
    event_latency_us_p95: "us", Lower, "95th percentile of the time from the start of an event to its end";
    event_latency_us_p99: "us", Lower, "99th percentile of the time from the start of an event to its end";
    event_latency_us_p999: "us", Lower, "99.9th percentile of the time from the start of an event to its end";
    event_latency_us_max: "us", Lower, "longest time from the start of an event to its end";
    reply_latency_us_p50: "us", Lower, "median time from when the replying thread reads the clock until the requesting thread runs, schbench's wakeup latency";
    reply_latency_us_p75: "us", Lower, "75th percentile of schbench's wakeup latency";
    reply_latency_us_p90: "us", Lower, "90th percentile of schbench's wakeup latency";
    reply_latency_us_p95: "us", Lower, "95th percentile of schbench's wakeup latency";
    reply_latency_us_p99: "us", Lower, "99th percentile of schbench's wakeup latency";
    reply_latency_us_p995: "us", Lower, "99.5th percentile of schbench's wakeup latency";
    reply_latency_us_p999: "us", Lower, "99.9th percentile of schbench's wakeup latency";
    reply_latency_us_max: "us", Lower, "longest of schbench's wakeup latencies";
    cpu_migrations: "", Lower, "times that a task was placed on another CPU than its last one";
    migrations_smt: "", Lower, "migrations between the hardware threads of one core";
    migrations_llc: "", Lower, "migrations between the cores of one last-level cache";
    migrations_node: "", Lower, "migrations between the last-level caches of one NUMA node";
    migrations_remote: "", Lower, "migrations between NUMA nodes";
    cpu_migrations_per_s: "1/s", Lower, "migrations per second of task_clock_s, the rate that perf stat prints as K/sec";
    context_switches: "", Neutral, "switches of a CPU away from a task, to another one or to idle";
    context_switches_voluntary: "", Neutral, "context switches because the task blocked, slept or exited";
    context_switches_involuntary: "", Neutral, "context switches because the task was preempted";
    context_switches_per_s: "1/s", Neutral, "context switches per second of task_clock_s, the rate that perf stat prints as K/sec";
    wakeups: "", Neutral, "times that a blocked task was made runnable";
    wakeups_preferred_llc: "", Neutral, "wakeups that looked for a CPU in the last-level cache that the process prefers, not in the previous one";
    wakeups_llc_crowded: "", Neutral, "wakeups that would have, but the preferred cache was crowded";
    wakeup_latency_us_p50: "us", Lower, "median time from wakeup to running";
    wakeup_latency_us_p90: "us", Lower, "90th percentile of the time from wakeup to running";
    wakeup_latency_us_p99: "us", Lower, "99th percentile of the time from wakeup to running";
    wakeup_latency_us_p999: "us", Lower, "99.9th percentile of the time from wakeup to running";
    task_clock_s: "s", Lower, "time during which a task is current, summed over the CPUs (perf's task-clock); without the work that a CPU does before it has a task, like leaving an idle state";
    cpus_utilized: "", Neutral, "task_clock_s per second of runtime, as perf stat prints it";
    cpus_busy: "", Neutral, "busy_s per second of runtime: CPUs that are not idle, with or without a task";
    busy_s: "s", Lower, "CPU time spent on tasks and on scheduling, summed over the CPUs";
    idle_while_waiting_s: "s", Lower, "CPU time spent idle while a task waited to run on another CPU (work conservation violated, unless the task is bound to its CPU)";
    newidle_time_s: "s", Lower, "CPU time spent in newidle balancing";
    newidle_pct: "%", Lower, "newidle_time_s, of busy_s";
    newidle_futex_pct: "%", Lower, "the part of newidle_pct that was spent after a task of the CPU had blocked on a futex";
    newidle_nanosleep_pct: "%", Lower, "the part of newidle_pct after which a task slept on a timer";
    newidle_calls: "", Neutral, "newidle balancing attempts";
    balance_time_s: "s", Lower, "CPU time spent in periodic and nohz-idle balancing";
    balance_pulled_tasks: "", Neutral, "tasks that balancing of any kind moved";
    balance_llc_pulled_tasks: "", Neutral, "tasks that balancing moved to the last-level cache that they prefer, for its sake";
    wakeup_time_s: "s", Lower, "CPU time spent selecting a CPU for a woken task and waking it there";
    refill_time_s: "s", Lower, "CPU time stalled on refilling caches after a migration or an eviction";
    transfer_time_s: "s", Lower, "CPU time stalled on cache lines transferred from other CPUs";
    lock_wait_s: "s", Lower, "CPU time spent waiting for runqueue locks";
    channel_wait_s: "s", Lower, "CPU time spent waiting for the locks of pipes and sockets";
    tg_load_avg_wait_s: "s", Lower, "CPU time stalled on the shared cache line of the task group's load average";
    llc_search_time_s: "s", Lower, "CPU time stalled on searches for the last-level caches that processes prefer";
    idle_exit_s: "s", Lower, "time lost to leaving idle states, summed over the CPUs";
    cpus_scanned: "", Neutral, "CPUs looked at by placement and balancing decisions";
    groups_scanned: "", Neutral, "scheduling groups looked at by placement and balancing decisions";
    sim_events: "", Neutral, "events that the simulator processed";
}

impl Metric {
    /// The same as [`Metric::from_name`] for a user.
    ///
    /// # Errors
    /// There is none; the message names similar ones.
    pub fn named(name: &str) -> Result<Metric, String> {
        let all = Metric::ALL.iter().map(|metric| metric.name());
        Metric::from_name(name)
            .ok_or_else(|| coreward_input::unknown_of_many("metric", name, all, "coreward experiment schema"))
    }

    /// The metric of this name, if the table has it.
    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL.iter().copied().find(|m| m.name() == name)
    }
}

/// The metrics of one run, in the order of the table.
///
/// A metric that has no value in a run (a rate over no time, a percentile of no samples) is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metrics(BTreeMap<Metric, f64>);

impl Metrics {
    /// No metrics yet.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// Sets a metric; a value that is not finite means that the run has none, and leaves it absent.
    pub fn set(&mut self, metric: Metric, value: f64) {
        if value.is_finite() {
            self.0.insert(metric, value);
        } else {
            self.0.remove(&metric);
        }
    }

    /// Value of a metric, `None` if the run has none.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    /// Metrics and values in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> {
        self.0.iter().map(|(&metric, &value)| (metric, value))
    }
}

impl FromIterator<(Metric, f64)> for Metrics {
    fn from_iter<I: IntoIterator<Item = (Metric, f64)>>(values: I) -> Metrics {
        let mut metrics = Metrics::new();
        for (metric, value) in values {
            metrics.set(metric, value);
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_metric() {
        for &metric in Metric::ALL {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
        }
        assert_eq!(Metric::from_name("runtime"), None);
    }

    #[test]
    fn json_keeps_the_order_of_the_table() {
        let metrics: Metrics =
            [(Metric::wakeups, 3.0), (Metric::runtime_s, 1.5), (Metric::cpu_migrations, 2.0)]
                .into_iter()
                .collect();
        let json = serde_json::to_string(&metrics).unwrap();
        assert_eq!(json, r#"{"runtime_s":1.5,"cpu_migrations":2.0,"wakeups":3.0}"#);
    }

    #[test]
    fn a_value_that_is_not_finite_is_absent() {
        let mut metrics: Metrics = [(Metric::runtime_s, 1.0)].into_iter().collect();
        metrics.set(Metric::runtime_s, f64::NAN);
        metrics.set(Metric::messages_per_s, f64::INFINITY);
        assert_eq!(metrics, Metrics::new());
    }
}
