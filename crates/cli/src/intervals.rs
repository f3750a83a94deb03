//! A run in intervals, as `coreward run --intervals` prints and draws it.

use std::io::Write;

use anyhow::Result;
use coreward_engine::Interval;
use coreward_metrics::Metric;
use coreward_metrics::html::{Line, Page, Tone, lines};
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
    ("CPUs", 8, 2, Metric::cpus_busy),
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

/// What is drawn: a title, and one or two metrics of the same scale with their names. Counts are drawn by the second,
/// since the last interval is shorter.
const PLOTS: [(&str, &[(&str, Metric)]); 6] = [
    ("Messages a second", &[("messages", Metric::messages_per_s)]),
    (
        "Switches a second",
        &[("all", Metric::context_switches), ("preemptions", Metric::context_switches_involuntary)],
    ),
    ("Wakeups a second", &[("wakeups", Metric::wakeups)]),
    (
        "Wakeup latency, us",
        &[("median", Metric::wakeup_latency_us_p50), ("99th percentile", Metric::wakeup_latency_us_p99)],
    ),
    ("Migrations a second", &[("migrations", Metric::cpu_migrations)]),
    ("Busy CPUs", &[("CPUs", Metric::cpus_busy)]),
];

/// A drawing of each of [`PLOTS`] that the run has values of, and the table behind them.
pub(crate) fn plots(page: &mut Page, intervals: &[Interval]) {
    let times: Vec<f64> = intervals.iter().map(|interval| interval.to_ns as f64 / 1e9).collect();
    for (title, metrics) in PLOTS {
        let line = |(name, metric): &(&'static str, Metric)| Line {
            name,
            values: intervals.iter().map(|interval| level(interval, *metric)).collect(),
        };
        let drawn: Vec<Line<'_>> = metrics.iter().map(line).collect();
        if drawn.iter().any(|line| line.values.iter().any(Option::is_some)) {
            page.html(&lines(title, &times, &drawn));
        }
    }
    let head: Vec<&str> = std::iter::once("to s").chain(COLUMNS.map(|(header, ..)| header)).collect();
    let row = |interval: &Interval| {
        let cells = COLUMNS.iter().map(|(_, _, decimals, metric)| {
            interval.metrics.get(*metric).map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
        });
        let time = format!("{:.6}", interval.to_ns as f64 / 1e9);
        std::iter::once(time).chain(cells).map(|text| (text, Tone::Plain)).collect()
    };
    page.table(&head, &intervals.iter().map(row).collect::<Vec<_>>());
}

/// A metric as it is drawn: a count by the second.
fn level(interval: &Interval, metric: Metric) -> Option<f64> {
    let value = interval.metrics.get(metric)?;
    let seconds = (interval.to_ns - interval.from_ns) as f64 / 1e9;
    let counted = metric.unit().is_empty() && metric != Metric::cpus_busy;
    Some(if counted { value / seconds } else { value })
}
