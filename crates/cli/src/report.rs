//! The report of `coreward run`. Nothing in it depends on the local machine or the time of day.

use std::io::Write;

use anyhow::Result;
use coreward_engine::{Checks, GroupUse, Interval, Outcome, Settings, Skipped, Thread, Violation};
use coreward_machine::Partition;
use coreward_metrics::html::{Page, Tone};
use coreward_metrics::{CpuTime, Metric, Metrics, Part, why};
use coreward_policy::Reason;
use coreward_workload::{Scale, Workload};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::classes::{self, Class};
use crate::cli::Simulated;
use crate::intervals;
use crate::policy::Policy;
use crate::scale;
use crate::setup::Host;
use crate::threads;

/// A run and its results. Serializes as the output of `coreward run --json`.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    machine: &'a str,
    workload: &'a str,
    profile: &'static str,
    /// The directory of its policy.
    #[serde(rename = "policy", skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    /// The features that are on.
    features: Vec<&'static str>,
    tunables: Map<String, Value>,
    /// The costs that do not have the machine's value.
    costs: Map<String, Value>,
    task_group_depth: u32,
    /// As given, the workload's first; empty if the machine is not divided.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    partitions: &'a [Partition],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<String>,
    seed: u64,
    scale: Value,
    metrics: &'a Metrics,
    cpu_time_s: &'a CpuTime,
    checks: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    intervals: Vec<Value>,
    /// Latencies of each thread of an rt-app file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    threads: Vec<Value>,
    /// What task groups used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Value>,
    /// What the classes of a recorded workload did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<Value>,
    reasons: Map<String, Value>,
    notes: Vec<String>,
    #[serde(skip)]
    policy: &'a Policy,
    #[serde(skip)]
    counts: Vec<(Reason, u64)>,
    #[serde(skip)]
    spans: &'a [Interval],
    #[serde(skip)]
    by_thread: &'a [Thread],
    #[serde(skip)]
    by_group: &'a [GroupUse],
    #[serde(skip)]
    by_class: &'a [Class],
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        host: &'a Host,
        workload: &'a Workload,
        args: &'a Simulated,
        outcome: &'a Outcome,
        by_class: &'a [Class],
    ) -> Self {
        let policy = &host.policy;
        let counts: Vec<_> = outcome.reasons().collect();
        let tunables = policy.code.tunables().iter().zip(policy.settings().tunables);
        Report {
            machine: &host.machine.name,
            workload: &workload.name,
            profile: policy.profile.name(),
            directory: policy.directory(),
            features: policy.features().collect(),
            tunables: tunables.map(|(t, value)| (t.name.into(), value.into())).collect(),
            costs: policy.costs.iter().map(|(name, value)| (name.clone(), (*value).into())).collect(),
            task_group_depth: host.task_group_depth,
            partitions: &args.partition,
            events: args.event.iter().map(ToString::to_string).collect(),
            seed: args.seed,
            scale: as_number(args.scale),
            metrics: &outcome.metrics,
            cpu_time_s: &outcome.cpu_time,
            checks: checks(&outcome.checks),
            intervals: outcome.intervals.iter().map(intervals::json).collect(),
            threads: outcome.threads.iter().map(threads::json).collect(),
            groups: outcome.groups.iter().map(group).collect(),
            classes: by_class.iter().map(Class::json).collect(),
            reasons: counts.iter().map(|(reason, n)| (reason.name.into(), (*n).into())).collect(),
            notes: scaled(args.scale)
                .into_iter()
                .chain(skipped(host, outcome))
                .chain(host.notes.iter().cloned())
                .chain(unhappened(outcome))
                .chain(outcome.checks.violations.iter().map(|violation| format!("broken: {violation}")))
                .collect(),
            policy,
            counts,
            spans: &outcome.intervals,
            by_thread: &outcome.threads,
            by_group: &outcome.groups,
            by_class,
        }
    }

    /// What was run.
    fn heading(&self) -> Vec<(&'static str, String)> {
        let mut heading = vec![
            ("machine", self.machine.to_owned()),
            ("workload", self.workload.to_owned()),
            ("profile", self.profile.to_owned()),
        ];
        let mut changed = self.policy.deviations();
        changed.extend(self.partitions.iter().map(|partition| format!("partition={partition}")));
        changed.extend(self.events.iter().map(|event| format!("event={event}")));
        if self.task_group_depth != Settings::LOGIN_SESSION_DEPTH {
            changed.push(format!("task_group_depth={}", self.task_group_depth));
        }
        if !changed.is_empty() {
            heading.push(("changed", changed.join(", ")));
        }
        heading.push(("seed", self.seed.to_string()));
        heading.extend(self.notes.iter().map(|note| ("note", note.clone())));
        heading
    }

    /// The report for people.
    pub(crate) fn text(&self, out: &mut dyn Write) -> Result<()> {
        for (name, text) in self.heading() {
            writeln!(out, "{name:9} {text}")?;
        }
        writeln!(out)?;
        self.metrics_table(out)?;
        writeln!(out, "\n{}", why::parts(self.cpu_time_s))?;
        if !self.spans.is_empty() {
            intervals::table(out, self.spans)?;
            writeln!(out)?;
        }
        // of one thread, they are the metrics above
        if self.by_thread.len() > 1 {
            threads::table(out, self.by_thread)?;
            writeln!(out)?;
        }
        if !self.by_group.is_empty() {
            groups(out, self.by_group)?;
            writeln!(out)?;
        }
        if !self.by_class.is_empty() {
            classes::table(out, self.by_class)?;
            writeln!(out)?;
        }
        self.reasons_table(out)
    }

    /// The report as a page.
    pub(crate) fn html(&self) -> String {
        let mut page = Page::new(self.workload);
        page.names(&self.heading());
        if !self.spans.is_empty() {
            page.heading("Over time");
            intervals::plots(&mut page, self.spans);
        }
        if !self.by_class.is_empty() {
            classes::page(&mut page, self.by_class);
        }
        page.heading("Metrics");
        let metric = |(metric, value): (Metric, f64)| {
            let cells = [metric.name(), &number(metric, value), metric.unit(), metric.help()];
            let tones = [Tone::Plain, Tone::Plain, Tone::Text, Tone::Text];
            cells.iter().zip(tones).map(|(text, tone)| ((*text).to_owned(), tone)).collect()
        };
        page.table(
            &["metric", "value", "unit", "meaning"],
            &self.metrics.iter().map(metric).collect::<Vec<_>>(),
        );
        page.heading("CPU time");
        let total = self.cpu_time_s.total_ns().max(1) as f64;
        let part = |part: &Part| {
            let ns = self.cpu_time_s.ns(*part) as f64;
            let (time, share) = (format!("{:.6}", ns / 1e9), format!("{:.2}", 100.0 * ns / total));
            let cells = [part.name(), &time, &share, part.meaning()];
            let tones = [Tone::Plain, Tone::Plain, Tone::Plain, Tone::Text];
            cells.iter().zip(tones).map(|(text, tone)| ((*text).to_owned(), tone)).collect()
        };
        page.table(
            &["part", "s", "%", "what it is"],
            &Part::ALL.iter().filter(|part| self.cpu_time_s.ns(**part) > 0).map(part).collect::<Vec<_>>(),
        );
        page.heading("Decisions");
        let reason = |(reason, n): &(Reason, u64)| {
            vec![(reason.text.to_owned(), Tone::Plain), (n.to_string(), Tone::Plain)]
        };
        page.table(&["decision", "count"], &self.counts.iter().map(reason).collect::<Vec<_>>());
        page.finish()
    }

    fn metrics_table(&self, out: &mut dyn Write) -> Result<()> {
        let width = self.metrics.iter().map(|(metric, _)| metric.name().len()).max().unwrap_or(0);
        for (metric, value) in self.metrics.iter() {
            let line = format!("{:width$} {:>16} {}", metric.name(), number(metric, value), metric.unit());
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn reasons_table(&self, out: &mut dyn Write) -> Result<()> {
        let total: u64 = self.counts.iter().map(|(_, n)| n).sum();
        writeln!(out, "{:>14} {:>7}  decision", "count", "share")?;
        for (reason, n) in &self.counts {
            let share = *n as f64 * 100.0 / total as f64;
            writeln!(out, "{n:>14} {share:>6.2}%  {}", reason.text)?;
        }
        Ok(())
    }
}

/// A value with the number of decimals that suits its unit.
fn number(metric: Metric, value: f64) -> String {
    match metric.unit() {
        "s" => format!("{value:.6}"),
        "us" => format!("{value:.3}"),
        "" if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// A remark for the reader of a shortened run's figures.
pub(crate) fn scaled(scale: Scale) -> Option<String> {
    let part = scale::text(scale);
    (scale != Scale::FULL).then(|| {
        format!(
            "this is a shorter benchmark, with {part} of the workload's repetitions or of its time: no estimate of the \
             whole one"
        )
    })
}

/// Changes of the machine that the run ended before.
fn unhappened(outcome: &Outcome) -> Option<String> {
    let end_s = outcome.end_ns as f64 / 1e9;
    (outcome.changes_left > 0).then(|| {
        format!("of the events {} did not happen: the run ended at {end_s:.6} s", outcome.changes_left)
    })
}

/// The same of many runs, of each the number of changes that it ended before.
pub(crate) fn unhappened_in(left: &[usize]) -> Option<String> {
    let runs = left.iter().filter(|left| **left > 0).count();
    let events = left.iter().max().filter(|_| runs > 0)?;
    Some(format!("of the events {events} did not happen: {runs} of {} runs ended before", left.len()))
}

/// A line for each task group.
fn groups(out: &mut dyn Write, groups: &[GroupUse]) -> Result<()> {
    let s = |ns: u64| ns as f64 / 1e9;
    for GroupUse { name, cpu_ns, periods, throttled_periods, throttled_ns } in groups {
        write!(out, "group {name}: {:.6} s of CPU time", s(*cpu_ns))?;
        if *periods > 0 {
            let throttled = s(*throttled_ns);
            write!(out, ", throttled in {throttled_periods} of {periods} periods, for {throttled:.6} s")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn group(group: &GroupUse) -> Value {
    let s = |ns: u64| ns as f64 / 1e9;
    json!({
        "name": group.name,
        "cpu_time_s": s(group.cpu_ns),
        "periods": group.periods,
        "throttled_periods": group.throttled_periods,
        "throttled_s": s(group.throttled_ns),
    })
}

/// The invariants of the whole run.
fn checks(checks: &Checks) -> Value {
    let s = |ns: u64| ns as f64 / 1e9;
    let violation =
        |v: &Violation| json!({"invariant": v.invariant.name(), "at_s": s(v.at_ns), "what": v.what});
    json!({
        "idle_beside_waiting_s": s(checks.idle_beside_waiting_ns),
        "idle_beside_misfit_s": s(checks.idle_beside_misfit_ns),
        "waiting_s": s(checks.waiting_ns),
        "violations": checks.violations.iter().map(violation).collect::<Vec<_>>(),
    })
}

/// What a run that was to skip its steady middle did.
fn skipped(host: &Host, outcome: &Outcome) -> Option<String> {
    host.skip_steady_pct?;
    let s = |ns: u64| ns as f64 / 1e9;
    Some(match outcome.skipped {
        None => {
            "nothing was skipped: the run ended before its rates were steady and known well enough".into()
        }
        Some(Skipped { warm_up_ns, window_ns, work_pct, switches_pct, skipped_ns }) => format!(
            "{:.6} s were skipped: steady from {:.6} s, measured for {:.6} s in 20 batches, messages or events within \
             {work_pct:.2} %, switches within {switches_pct:.2} % (95 % confidence)",
            s(skipped_ns),
            s(warm_up_ns),
            s(window_ns)
        ),
    })
}

/// What runs that were to skip their steady middles did; the figures are those of the run that is known worst.
pub(crate) fn skipped_in(runs: &[Option<Skipped>]) -> String {
    let skipped: Vec<&Skipped> = runs.iter().flatten().collect();
    if skipped.is_empty() {
        return "all runs were simulated whole: they ended before their rates were steady and known well enough".into();
    }
    let most = |of: fn(&Skipped) -> f64| skipped.iter().map(|s| of(s)).fold(0.0, f64::max);
    let window_ns = skipped.iter().map(|s| s.window_ns).min().unwrap_or(0);
    format!(
        "{} of {} runs skipped their steady middle: steady from {:.2} s or earlier, measured for {:.2} s or longer, \
         messages or events within {:.2} %, switches within {:.2} % (95 % confidence)",
        skipped.len(),
        runs.len(),
        most(|s| s.warm_up_ns as f64 / 1e9),
        window_ns as f64 / 1e9,
        most(|s| s.work_pct),
        most(|s| s.switches_pct)
    )
}

fn as_number(scale: Scale) -> Value {
    serde_json::from_str(&scale::text(scale)).expect("a decimal number")
}
