//! Experiments that are ready to run, and their runs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use coreward_engine::NoTrace;
use coreward_input::printable;
use coreward_metrics::{Ablated, Comparison, Metrics, Published, Runs};
use coreward_workload::{Scale, Workload};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::assumed;
use crate::experiment::{self, Ablation, Experiment, Named};
use crate::policy::Policy;
use crate::report;
use crate::setup::{self, Host};
use coreward_policy::Assignment;

/// The most runs of a side under an ablation, which has to distinguish mechanisms, not to measure a percent.
const ABLATION_RUNS: u32 = 5;

/// The settings of the command line, which override those of every experiment.
#[derive(Default)]
pub(crate) struct Overrides<'a> {
    pub(crate) runs: Option<u32>,
    pub(crate) scale: Option<Scale>,
    pub(crate) task_group_depth: Option<u32>,
    pub(crate) costs: &'a [Assignment],
    /// Refuse a machine or workload that is not described completely.
    pub(crate) strict: bool,
}

/// An experiment that can be run.
pub(crate) struct Prepared {
    pub(crate) experiment: Experiment,
    pub(crate) cases: Vec<Case>,
    /// Of the baseline and the variants.
    pub(crate) hosts: Vec<Host>,
    /// For each ablation that is to be run, of the baseline and the variants.
    ablated: Vec<Vec<Host>>,
}

/// A workload that all sides run.
pub(crate) struct Case {
    pub(crate) label: Option<String>,
    pub(crate) workload: Workload,
    scale: Scale,
    pub(crate) runs: u32,
    ablated: bool,
}

/// All runs of one case.
struct Batch<'a> {
    case: &'a Case,
    /// The ablation under which it is run, if it is under one.
    ablation: Option<&'a str>,
    /// Of the baseline and the variants.
    hosts: &'a [Host],
    /// Of a side.
    runs: usize,
}

/// The files that are meant: a directory stands for all `*.toml` files in it and in its directories, in the order of
/// their paths.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside = Vec::new();
        collect(path, &mut inside)?;
        if inside.is_empty() {
            bail!("{}: there is no *.toml file in it", path.display());
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// Links to directories are not followed: they may lead back.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = entry.path();
        if entry.file_type().with_context(cannot)?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}

/// The number of threads that make runs: as many as asked for, or one for each CPU of this machine.
pub(crate) fn pool(jobs: Option<u32>) -> Result<ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, |jobs| jobs as usize)).build()?)
}

impl Prepared {
    /// Reads all that the experiment names; its ablations only if they are to be run.
    ///
    /// # Errors
    /// The machine or a workload is refused, or the machine does not have what a side asks for.
    pub(crate) fn new(
        path: &Path,
        experiment: Experiment,
        overrides: &Overrides,
        ablations: bool,
    ) -> Result<Prepared> {
        let Named { text, place } = &experiment.machine;
        let machine = assumed::machine(text, overrides.strict).with_context(|| place.clone())?;
        let host = |policy: &Policy, depth: u32, what: &str| -> Result<Host> {
            let mut policy = policy.clone();
            for cost in overrides.costs {
                policy.cost(&cost.name, cost.value).map_err(|what| anyhow::anyhow!("--cost: {what}"))?;
            }
            let mut host =
                Host::new(machine.clone(), policy).with_context(|| format!("{}: {what}", path.display()))?;
            host.task_group_depth = overrides.task_group_depth.unwrap_or(depth);
            host.time_limit_s = experiment.time_limit_s;
            Ok(host)
        };
        let depth = experiment.task_group_depth;
        let hosts = experiment.sides().map(|side| host(&side.policy, depth, &side.label));
        let hosts = hosts.collect::<Result<_>>()?;
        let ablated = |ablation: &Ablation| -> Result<Vec<Host>> {
            let policies = ablation.policies.iter();
            policies.map(|policy| host(policy, ablation.task_group_depth, &ablation.label)).collect()
        };
        let ablated = match ablations {
            true => experiment.ablations.iter().map(ablated).collect::<Result<_>>()?,
            false => Vec::new(),
        };
        let cases = experiment.cases.iter().map(|case| Case::new(case, overrides)).collect::<Result<_>>()?;
        Ok(Prepared { experiment, cases, hosts, ablated })
    }

    /// The files and directories that the machine and the workloads were read from.
    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let Experiment { machine, cases, .. } = &self.experiment;
        setup::inputs(&machine.text, cases.iter().map(|case| case.workload.text.as_str()))
    }

    /// Runs all seeds of all sides and compares the sides, case by case.
    pub(crate) fn compare(&self, pool: &ThreadPool) -> Result<Vec<Comparison>> {
        let batches = self.cases.iter().map(|case| Batch {
            case,
            ablation: None,
            hosts: &self.hosts,
            runs: case.runs as usize,
        });
        self.run(&batches.collect::<Vec<_>>(), pool)
    }

    /// Runs cases under each ablation; `intact` are the comparisons of all cases without. Nothing if there are no
    /// ablations, or they were not asked for.
    pub(crate) fn ablate(&self, intact: &[Comparison], pool: &ThreadPool) -> Result<Vec<Ablated>> {
        let Experiment { ablations, headline, .. } = &self.experiment;
        if self.ablated.is_empty() {
            return Ok(Vec::new());
        }
        let cases: Vec<_> = self.cases.iter().zip(intact).filter(|(case, _)| case.ablated).collect();
        let mut batches = Vec::new();
        for (case, _) in &cases {
            for (ablation, hosts) in ablations.iter().zip(&self.ablated) {
                let runs = case.runs.min(ABLATION_RUNS) as usize;
                batches.push(Batch { case, ablation: Some(&ablation.label), hosts, runs });
            }
        }
        let comparisons = self.run(&batches, pool)?;
        let labels: Vec<_> = ablations.iter().map(|ablation| ablation.label.as_str()).collect();
        let of_cases = cases.iter().zip(comparisons.chunks(labels.len()));
        Ok(of_cases
            .map(|((_, intact), ablated)| Ablated::new(intact, labels.iter().copied().zip(ablated), headline))
            .collect())
    }

    /// The sides of an experiment with their runs compared, batch by batch.
    fn run(&self, batches: &[Batch], pool: &ThreadPool) -> Result<Vec<Comparison>> {
        let metrics = pool.install(|| self.run_all(batches))?;
        let mut rest = &metrics[..];
        let mut comparisons = Vec::new();
        for batch in batches {
            let (own, others) = rest.split_at(batch.all_runs());
            comparisons.push(self.comparison(batch, own)?);
            rest = others;
        }
        Ok(comparisons)
    }

    /// Compares the runs of a batch, which stand side by side.
    fn comparison(&self, batch: &Batch, metrics: &[Metrics]) -> Result<Comparison> {
        let sides = self.experiment.sides().zip(metrics.chunks(batch.runs));
        let mut sides = sides.map(|(side, runs)| Runs { label: side.label.clone(), runs: runs.to_vec() });
        let baseline = sides.next().context("an experiment has a baseline")?;
        let published = match batch.ablation {
            None => self.published(batch.case),
            Some(_) => Vec::new(),
        };
        let notes = report::scaled(batch.case.scale, &batch.case.workload).into_iter().collect();
        let comparison = Comparison::new(&self.experiment.name, baseline, sides.collect(), published, notes);
        Ok(comparison.of_case(batch.case.label.clone()))
    }

    /// What was published about a case.
    fn published(&self, case: &Case) -> Vec<Published> {
        self.experiment.published.iter().filter(|row| row.case == case.label).cloned().collect()
    }

    /// The metrics of all runs, batch by batch and side by side, on the threads of the current pool.
    fn run_all(&self, batches: &[Batch]) -> Result<Vec<Metrics>> {
        let runs: Vec<(&Batch, usize)> =
            batches.iter().flat_map(|batch| (0..batch.all_runs()).map(move |i| (batch, i))).collect();
        let progress = progress_bar(&self.experiment.name, runs.len());
        let one = |&(batch, i): &(&Batch, usize)| {
            let metrics = self.run_one(batch, i);
            progress.inc(1);
            metrics
        };
        // the results, and so the first error, are in the order of the runs, whichever thread computes them
        let results: Vec<Result<Metrics>> = runs.par_iter().map(one).collect();
        progress.finish_and_clear();
        results.into_iter().collect()
    }

    /// Run i of a batch.
    fn run_one(&self, batch: &Batch, i: usize) -> Result<Metrics> {
        let (number, run) = (i / batch.runs, i % batch.runs);
        let side = self.experiment.sides().nth(number).context("a batch has runs of each side")?;
        let seed = side.seed.wrapping_add(run as u64);
        let outcome = batch.hosts[number].run(&batch.case.workload, seed, &mut NoTrace);
        let outcome = outcome.with_context(|| {
            let of = [Some(self.experiment.name.as_str()), batch.case.label.as_deref(), batch.ablation];
            let of: String = of.into_iter().flatten().map(|name| format!("{name}: ")).collect();
            format!("{of}{}, seed {seed}", side.label)
        })?;
        Ok(outcome.metrics)
    }
}

impl Case {
    fn new(case: &experiment::Case, overrides: &Overrides) -> Result<Case> {
        let scale = overrides.scale.unwrap_or(case.scale);
        let Named { text, place } = &case.workload;
        Ok(Case {
            label: case.label.clone(),
            workload: assumed::workload(text, scale, overrides.strict).with_context(|| place.clone())?,
            scale,
            runs: overrides.runs.unwrap_or(case.runs),
            ablated: case.ablated,
        })
    }
}

impl Batch<'_> {
    /// Of all its sides.
    fn all_runs(&self) -> usize {
        self.hosts.len() * self.runs
    }
}

/// On standard error, and only if that is a terminal.
fn progress_bar(name: &str, runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len} runs, {elapsed}");
    let bar = ProgressBar::new(runs as u64).with_message(printable(name).into_owned());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
