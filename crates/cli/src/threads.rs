//! The latencies of each thread of a run, where the workload gives threads names.

use std::io::Write;

use anyhow::Result;
use coreward_engine::{LatencySummary, Thread};
use serde_json::{Value, json};

/// Most threads in the table; JSON has all.
const MOST: usize = 32;

pub(crate) fn json(thread: &Thread) -> Value {
    let of = |latency: &Option<LatencySummary>| {
        latency.map(|l| json!({"count": l.count, "p50": l.p50_us, "p99": l.p99_us, "max": l.max_us}))
    };
    json!({
        "name": thread.name,
        "wakeup_latency_us": of(&thread.wakeup_latency),
        "event_latency_us": of(&thread.event_latency),
    })
}

pub(crate) fn table(out: &mut dyn Write, threads: &[Thread]) -> Result<()> {
    let width = threads
        .iter()
        .take(MOST)
        .map(|thread| thread.name.chars().count())
        .max()
        .unwrap_or(0)
        .max("latencies".len());
    let head = |what: &str| format!("{what:>10} {:>10} {:>10} {:>10}", "p50 us", "p99 us", "max us");
    writeln!(out, "{:width$} {} {}", "latencies", head("wakeups"), head("events"))?;
    for thread in threads.iter().take(MOST) {
        let cells = |latency: &Option<LatencySummary>| match latency {
            Some(l) => format!("{:>10} {:>10.1} {:>10.1} {:>10.1}", l.count, l.p50_us, l.p99_us, l.max_us),
            None => format!("{:>10} {:>10} {:>10} {:>10}", 0, "-", "-", "-"),
        };
        writeln!(
            out,
            "{:width$} {} {}",
            thread.name,
            cells(&thread.wakeup_latency),
            cells(&thread.event_latency)
        )?;
    }
    if threads.len() > MOST {
        writeln!(out, "and {} more threads (--json has all)", threads.len() - MOST)?;
    }
    Ok(())
}
