//! A run in intervals, as `coreward run --intervals` prints it.

use std::io::Write;

use anyhow::Result;
use coreward_engine::Interval;
use coreward_metrics::Metric;
use serde_json::{Value, json};

/// The columns: header, width and decimals, and where the value comes from.
const COLUMNS: [(&str, usize, usize, Metric); 8] = [
    ("messages/s", 14, 0, Metric::messages_per_s),
    ("switches", 10, 0, Metric::context_switches),
    ("preempted", 10, 0, Metric::context_switches_involuntary),
    ("wakeups", 10, 0, Metric::wakeups),
    ("p50 us", 10, 1, Metric::wakeup_latency_us_p50),
    ("p99 us", 10, 1, Metric::wakeup_latency_us_p99),
    ("migrations", 11, 0, Metric::cpu_migrations),
    ("CPUs", 8, 2, Metric::cpus_utilized),
];

/// One line for each interval.
pub(crate) fn table(out: &mut dyn Write, intervals: &[Interval]) -> Result<()> {
    write!(out, "{:>12}", "to s")?;
    for (header, width, ..) in COLUMNS {
        write!(out, "{header:>width$}")?;
    }
    writeln!(out)?;
    for interval in intervals {
        write!(out, "{:>12.6}", interval.to_ns as f64 / 1e9)?;
        for (_, width, decimals, metric) in COLUMNS {
            match interval.metrics.get(metric) {
                Some(value) => write!(out, "{value:>width$.decimals$}")?,
                None => write!(out, "{:>width$}", "-")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// All metrics of an interval.
pub(crate) fn json(interval: &Interval) -> Value {
    let seconds = |ns: u64| ns as f64 / 1e9;
    json!({"from_s": seconds(interval.from_ns), "to_s": seconds(interval.to_ns), "metrics": interval.metrics})
}
