//! Benchmarks as they run on this machine.

use anyhow::Result;
use coreward_measure::{Counted, MeasureError, Tool, run};
use coreward_workload::Workload;
use indicatif::ProgressBar;

use super::score::Figures;

/// A round in which everything else took more than this share of one CPU's time says little about the benchmark.
const OTHERS: f64 = 0.05;
/// How often a round is made again because of that.
const RETRIES: u32 = 3;

/// A benchmark, and what its runs took.
pub(super) struct Benchmark {
    /// Its command line.
    pub(super) line: String,
    pub(super) workload: Workload,
    /// Why it could not be run.
    pub(super) missing: Option<String>,
    /// What its start and end take: the least of some runs of the least amount of work.
    overhead: Option<Counted>,
    rounds: Vec<Counted>,
    /// Rounds of which nothing better could be had than with others on the CPUs.
    pub(super) disturbed: u32,
}

impl Benchmark {
    pub(super) fn new(line: &str) -> Result<Benchmark> {
        let workload = super::workload(line)?;
        let (missing, overhead) = (None, None);
        Ok(Benchmark { line: line.to_owned(), workload, missing, overhead, rounds: Vec::new(), disturbed: 0 })
    }

    fn words(&self) -> Vec<&str> {
        self.line.split_whitespace().collect()
    }

    /// Medians over the rounds, without what start and end take.
    pub(super) fn figures(&self) -> Figures {
        let overhead = self.overhead.clone().unwrap_or_default();
        let tool = Tool::of(&self.words());
        let rounds = self.rounds.iter().map(|counted| {
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
                operations(&self.workload, events(&counted.output)),
            )
        });
        Figures::median(&rounds.collect::<Vec<_>>())
    }

    fn measure_overhead(&mut self) -> Result<(), MeasureError> {
        let words = self.words();
        let Some(tool) = Tool::of(&words) else { return Ok(()) };
        let shortest = tool.shortest(&words);
        let runs = (0..3).map(|_| run(&shortest)).collect::<Result<Vec<_>, _>>()?;
        self.overhead = runs.into_iter().min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
        Ok(())
    }

    fn round(&mut self) -> Result<(), MeasureError> {
        let mut best: Option<Counted> = None;
        for _ in 0..=RETRIES {
            let counted = run(&self.words())?;
            if best.as_ref().is_none_or(|best| others(&counted) < others(best)) {
                best = Some(counted);
            }
            if best.as_ref().is_some_and(|best| others(best) <= OTHERS) {
                break;
            }
        }
        let best = best.expect("there is one try at least");
        self.disturbed += u32::from(others(&best) > OTHERS);
        self.rounds.push(best);
        Ok(())
    }
}

/// Runs all benchmarks in turn, so that what changes on the machine meets all of them.
///
/// # Errors
/// A benchmark failed. One that is not installed is left out.
pub(super) fn run_all(benchmarks: &mut [Benchmark], rounds: u32, progress: &ProgressBar) -> Result<()> {
    for round in 0..=rounds {
        for benchmark in benchmarks.iter_mut().filter(|benchmark| benchmark.missing.is_none()) {
            progress.set_message(benchmark.line.clone());
            let ran = if round == 0 { benchmark.measure_overhead() } else { benchmark.round() };
            progress.inc(1);
            match ran {
                Err(missing @ MeasureError::Missing { .. }) => benchmark.missing = Some(missing.to_string()),
                ran => ran?,
            }
        }
    }
    Ok(())
}

/// Messages of a workload, or what it counts instead.
pub(super) fn operations(workload: &Workload, events: f64) -> f64 {
    if workload.messages > 0 { workload.messages as f64 } else { events }
}

/// Share of a CPU that everything else had.
fn others(counted: &Counted) -> f64 {
    counted.others_cpu_s / counted.wall_s.max(0.01)
}

/// The events that sysbench says that it counted.
fn events(output: &str) -> f64 {
    let after = output.split("total number of events:").nth(1);
    after.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}
