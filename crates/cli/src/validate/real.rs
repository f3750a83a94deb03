//! Benchmarks as they run on this machine.

use std::collections::BTreeMap;

use anyhow::Result;
use coreward_calibrate::Transfers;
use coreward_machine::Machine;
use coreward_measure::{Counted, MeasureError, Tool, Tracer, run};
use coreward_workload::{Limits, Workload};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::observed::{self, Observed};
use super::score::{Figures, spread_pct};
use crate::caller;

/// A round in which everything else took more than this share of one CPU's time says little about the benchmark.
/// assumption: half of what times may be off by.
const OTHERS: f64 = 0.05;
/// How often a round is made again because of that.
const RETRIES: u32 = 3;

/// What is counted as an operation of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Operation {
    /// A message of a workload that passes a known number of them.
    Message,
    /// What the benchmark itself counts.
    Event,
    /// A millisecond of its time: it counts nothing.
    Millisecond,
}

impl Operation {
    /// How many of them a run has had.
    pub(super) fn count(self, workload: &Workload, events: f64, time_s: f64) -> f64 {
        match self {
            Operation::Message => workload.messages as f64,
            Operation::Event => events,
            Operation::Millisecond => time_s * 1000.0,
        }
    }
}

/// What a benchmark did here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ran {
    /// Its command line.
    pub(super) benchmark: String,
    /// Medians over the rounds.
    pub(super) real: Figures,
    pub(super) operation: Operation,
    /// How far the rounds lie apart, in percent of their median, by figure.
    #[serde(default)]
    pub(super) spread_pct: BTreeMap<String, f64>,
    /// Rounds of which nothing better could be had than with others on the CPUs.
    #[serde(default)]
    pub(super) disturbed: u32,
    /// How long lines took from one CPU to another around each round; without them, as long as in the machine's costs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) transfers: Vec<Transfers>,
    /// The same around each recorded round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) recorded_transfers: Vec<Transfers>,
}

/// Does a benchmark run for a time that it is told, whatever it gets done?
pub(super) fn has_fixed_time(line: &str, workload: &Workload) -> bool {
    let of_timers = ["cyclictest", "rt-app"].iter().any(|tool| line.starts_with(tool));
    of_timers || workload.limits.time_ns != Limits::default().time_ns
}

/// A benchmark, and what its runs took.
pub(super) struct Benchmark {
    /// Its command line.
    pub(super) line: String,
    workload: Workload,
    /// Why it could not be run.
    pub(super) missing: Option<String>,
    /// What its start and end take: the least of some runs of the least amount of work.
    overhead: Option<Counted>,
    rounds: Vec<(Counted, Transfers)>,
    observed: Vec<(Observed, Transfers)>,
    disturbed: u32,
}

impl Benchmark {
    pub(super) fn new(line: &str) -> Result<Benchmark> {
        Ok(Benchmark {
            line: line.to_owned(),
            workload: super::workload(line)?,
            missing: None,
            overhead: None,
            rounds: Vec::new(),
            observed: Vec::new(),
            disturbed: 0,
        })
    }

    fn words(&self) -> Vec<&str> {
        self.line.split_whitespace().collect()
    }

    /// Medians over the rounds, without what start and end take. None if it is not installed.
    pub(super) fn ran(&self) -> Option<Ran> {
        let overhead = self.overhead.clone().unwrap_or_default();
        let tool = Tool::of(&self.words());
        let events = |counted: &Counted| tool.and_then(|tool| tool.events(&counted.output));
        let operation = match () {
            _ if self.workload.messages > 0 => Operation::Message,
            _ if self.rounds.iter().all(|(counted, _)| events(counted).is_some()) => Operation::Event,
            _ => Operation::Millisecond,
        };
        let rounds = self.rounds.iter().map(|(counted, _)| {
            let time = tool.and_then(|tool| tool.time_s(&counted.output)).unwrap_or(counted.wall_s);
            let switches = |all: u64, of_start: u64| all.saturating_sub(of_start) as f64;
            let migrations = counted.migrations.map(|n| switches(n, overhead.migrations.unwrap_or(0)));
            Figures::new(
                time,
                (counted.cpu_s - overhead.cpu_s).max(0.0),
                (
                    switches(counted.switches_voluntary, overhead.switches_voluntary),
                    switches(counted.switches_involuntary, overhead.switches_involuntary),
                ),
                migrations,
                operation.count(&self.workload, events(counted).unwrap_or(0.0), time),
            )
        });
        let mut rounds: Vec<Figures> = rounds.collect();
        let mut observed = self.observed.iter().map(|(observed, _)| observed.clone());
        rounds.iter_mut().for_each(|round| round.observed = observed.next());
        self.missing.is_none().then(|| Ran {
            benchmark: self.line.clone(),
            real: Figures::median(&rounds),
            operation,
            spread_pct: spread_pct(&rounds),
            disturbed: self.disturbed,
            transfers: self.rounds.iter().map(|(_, transfers)| transfers.clone()).collect(),
            recorded_transfers: self.observed.iter().map(|(_, transfers)| transfers.clone()).collect(),
        })
    }

    fn measure_overhead(&mut self) -> Result<(), MeasureError> {
        let words = self.words();
        let Some(shortest) = Tool::of(&words).and_then(|tool| tool.shortest(&words)) else { return Ok(()) };
        let runs = (0..3).map(|_| run(&shortest)).collect::<Result<Vec<_>, _>>()?;
        self.overhead = runs.into_iter().min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
        Ok(())
    }

    fn round(&mut self, machine: &Machine) -> Result<(), MeasureError> {
        let mut best: Option<(Counted, Transfers)> = None;
        for _ in 0..=RETRIES {
            let (counted, transfers) = with_transfers(machine, || run(&self.words()))?;
            if best.as_ref().is_none_or(|(best, _)| others(&counted) < others(best)) {
                best = Some((counted, transfers));
            }
            if best.as_ref().is_some_and(|(best, _)| others(best) <= OTHERS) {
                break;
            }
        }
        let best = best.expect("there is one try at least");
        self.disturbed += u32::from(others(&best.0) > OTHERS);
        self.rounds.push(best);
        Ok(())
    }

    /// Runs it once more, under the tracepoints, which make it slower. How many events were lost.
    fn observe(&mut self, machine: &Machine, tracer: Tracer) -> Result<u64, MeasureError> {
        let distance = |from, to| observed::distance(machine, from, to);
        let (traced, transfers) = with_transfers(machine, || tracer.run(&self.words(), distance))?;
        if traced.lost == 0 {
            let plain = self.rounds.last().map(|(plain, _)| plain.cpu_s).filter(|cpu_s| *cpu_s > 0.0);
            let recording_pct = plain.map(|plain| 100.0 * (traced.counted.cpu_s / plain - 1.0));
            let observed = Observed { recording_pct, ..Observed::of(&traced.scheduling) };
            self.observed.push((observed, transfers));
        }
        Ok(traced.lost)
    }
}

/// Runs something, and measures how long lines take from one CPU to another before and after: the means. What cannot be
/// measured is left out.
fn with_transfers<T>(
    machine: &Machine,
    what: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<(T, Transfers), MeasureError> {
    let measure = || coreward_calibrate::transfers(machine).unwrap_or_default();
    let before = measure();
    let result = what()?;
    let after = measure();
    let mean = |(name, ns): (String, f64)| Some((name.clone(), f64::midpoint(ns, *after.get(&name)?)));
    Ok((result, before.into_iter().filter_map(mean).collect()))
}

/// Runs all benchmarks in turn, so that what changes on the machine meets all of them, and calls `between` before each
/// round. Remarks about figures that could not be had are passed back.
///
/// # Errors
/// A benchmark failed, or `between`. A benchmark that is not installed is left out.
pub(super) fn run_all(
    benchmarks: &mut [Benchmark],
    rounds: u32,
    machine: &Machine,
    progress: &ProgressBar,
    mut between: impl FnMut() -> Result<()>,
) -> Result<Vec<String>> {
    // a tracer that could not be opened once cannot be opened later
    let mut refused = None;
    let mut lost = 0;
    for round in 0..=rounds {
        if round > 0 {
            between()?;
        }
        for benchmark in benchmarks.iter_mut().filter(|benchmark| benchmark.missing.is_none()) {
            caller::go_on()?;
            progress.set_message(benchmark.line.clone());
            let ran = if round == 0 { benchmark.measure_overhead() } else { benchmark.round(machine) };
            progress.inc(1);
            match ran {
                Err(missing @ MeasureError::Missing { .. }) => {
                    benchmark.missing = Some(missing.to_string());
                    continue;
                }
                ran => ran?,
            }
            // half of the rounds are enough for percentiles of many thousand wakeups
            if round % 2 == 1 && refused.is_none() {
                match Tracer::new(machine.nr_cpus()) {
                    Ok(tracer) => lost += benchmark.observe(machine, tracer)?,
                    Err(error) => refused = Some(error),
                }
            }
        }
        if round > 0 && benchmarks.iter().any(|benchmark| benchmark.missing.is_none()) {
            super::say(progress, &format!("round {round} of {rounds} was run here"));
        }
    }
    let refused = refused.map(|error| {
        format!(
            "wakeup latencies, run lengths, what was waited for and how far migrations went are left out: the \
             scheduler's tracepoints need root or CAP_PERFMON, and tracefs at /sys/kernel/tracing ({error})"
        )
    });
    let lost =
        (lost > 0).then(|| format!("{lost} events of tracepoints were lost; those rounds are left out"));
    Ok(refused.into_iter().chain(lost).collect())
}

/// Share of a CPU that everything else had.
fn others(counted: &Counted) -> f64 {
    counted.others_cpu_s / counted.wall_s.max(0.01)
}
