//! Experiments that are ready to run, and their runs.

use std::collections::BTreeMap;
use std::fs;
use std::iter::zip;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use coreward_engine::{NoTrace, Outcome, Skipped, Violation};
use coreward_input::{printable, twice};
use coreward_machine::{Costs, Machine};
use coreward_metrics::{Ablated, Comparison, CpuTime, Metric, Metrics, Published, Recipe, Runs};
use coreward_workload::{Scale, Workload};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::assumed;
use crate::effort::Effort;
use crate::experiment::{self, Ablation, Experiment, Named};
use crate::policy::Policy;
use crate::progress::Progress;
use crate::report;
use crate::scale;
use crate::setup::{self, Host};
use crate::shell;
use coreward_policy::Assignment;

/// The most runs of a side under an ablation, which has to distinguish mechanisms, not to measure a percent.
const ABLATION_RUNS: u32 = 5;

/// The settings of the command line, which override those of every experiment.
#[derive(Default)]
pub(crate) struct Overrides<'a> {
    pub(crate) runs: Option<u32>,
    pub(crate) scale: Option<Scale>,
    pub(crate) skip_steady: Option<f64>,
    pub(crate) task_group_depth: Option<u32>,
    pub(crate) costs: &'a [Assignment],
    /// Refuse a machine or workload that is not described completely.
    pub(crate) strict: bool,
    pub(crate) headline: &'a [Metric],
    /// Show no progress of its own.
    pub(crate) quiet: bool,
}

/// An experiment that can be run.
pub(crate) struct Prepared {
    pub(crate) experiment: Experiment,
    /// Without the costs that the sides set.
    pub(crate) machine: Machine,
    pub(crate) cases: Vec<Case>,
    /// Of the baseline and the variants.
    pub(crate) hosts: Vec<Host>,
    /// The command line that repeats it, but for what depends on the case.
    command: Vec<String>,
    /// For each ablation that is to be run, of the baseline and the variants.
    ablated: Vec<Vec<Host>>,
    quiet: bool,
}

/// A workload that all sides run.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) label: Option<String>,
    pub(crate) workload: Workload,
    pub(crate) scale: Scale,
    pub(crate) runs: u32,
    ablated: bool,
}

/// Runs of one case, of all its sides.
#[derive(Clone)]
struct Batch<'a> {
    case: &'a Case,
    /// The ablation under which it is run, if it is under one.
    ablation: Option<&'a str>,
    /// Of the baseline and the variants.
    hosts: &'a [Host],
    /// Which runs of each side: run i has the i-th seed.
    runs: Range<usize>,
}

/// What a run came to.
#[derive(Clone)]
struct Ran {
    metrics: Metrics,
    cpu_time: CpuTime,
    /// The invariants that it broke.
    broken: Vec<Violation>,
    /// The steady middle that it skipped.
    skipped: Option<Skipped>,
    /// How many of its events it ended before.
    changes_left: usize,
}

/// The runs of each side, in the order of their seeds.
type SideRuns = Vec<Vec<Ran>>;

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
    pub(crate) fn new(experiment: Experiment, overrides: &Overrides, ablations: bool) -> Result<Prepared> {
        let Named { text, place } = &experiment.machine;
        let machine = assumed::machine(text, overrides.strict).with_context(|| place.clone())?;
        let cases = experiment.cases.iter().map(|case| Case::new(case, overrides)).collect::<Result<_>>()?;
        Prepared::of(experiment, &machine, cases, overrides, ablations)
    }

    /// The same with a machine and workloads that have been read.
    ///
    /// # Errors
    /// The machine does not have what a side asks for.
    pub(crate) fn of(
        mut experiment: Experiment,
        machine: &Machine,
        cases: Vec<Case>,
        overrides: &Overrides,
        ablations: bool,
    ) -> Result<Prepared> {
        let host = |policy: &Policy, depth: u32, what: &str| -> Result<Host> {
            let mut policy = policy.clone();
            for cost in overrides.costs {
                if policy.costs.iter().any(|(name, _)| *name == cost.name) {
                    bail!("--cost: {} is what `{what}` sets; --cost would set it on all sides", cost.name);
                }
            }
            policy.set_costs(overrides.costs)?;
            let mut host = Host::new(machine.clone(), policy)
                .with_context(|| format!("{}: {what}", experiment.origin[0]))?;
            host.task_group_depth = overrides.task_group_depth.unwrap_or(depth);
            host.time_limit_s = experiment.time_limit_s;
            host.skip_steady_pct = overrides.skip_steady.or(experiment.skip_steady_pct);
            host.events.clone_from(&experiment.events);
            if host.skip_steady_pct.is_some() && !host.events.is_empty() {
                bail!(
                    "{}: events: each has its time, which skip_steady (--skip-steady) may skip; allowed is one of them",
                    experiment.origin[0]
                );
            }
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
        let command = command(&experiment, overrides);
        if let Some(metric) = twice(overrides.headline) {
            bail!("--headline: {} is there twice", metric.name());
        }
        if !overrides.headline.is_empty() {
            experiment.headline = overrides.headline.to_vec();
        }
        Ok(Prepared {
            experiment,
            machine: machine.clone(),
            cases,
            hosts,
            command,
            ablated,
            quiet: overrides.quiet,
        })
    }

    /// Is anything to be run under an ablation?
    pub(crate) fn has_ablations(&self) -> bool {
        !self.ablated.is_empty() && self.cases.iter().any(|case| case.ablated)
    }

    /// The files and directories that the machine and the workloads were read from.
    pub(crate) fn inputs(&self) -> Vec<PathBuf> {
        let Experiment { machine, cases, .. } = &self.experiment;
        let mut inputs = setup::inputs(&machine.text, cases.iter().map(|case| case.workload.text.as_str()));
        inputs.extend(self.experiment.sides().filter_map(|side| Some(side.policy.directory()?.into())));
        inputs
    }

    /// Runs all sides with as many seeds as it takes, and compares them, case by case.
    pub(crate) fn compare(&self, pool: &ThreadPool, effort: &Effort) -> Result<Vec<Comparison>> {
        let batch =
            |case| Batch { case, ablation: None, hosts: &self.hosts, runs: 0..effort.first_runs(case.runs) };
        let mut batches: Vec<_> = self.cases.iter().map(batch).collect();
        let mut runs = self.run(&batches, pool)?;
        let mut compared = zip(&batches, &runs)
            .map(|(batch, runs)| self.comparison(batch, runs))
            .collect::<Result<Vec<_>>>()?;
        compared.iter().for_each(|comparison| effort.say(comparison));
        loop {
            let mut wanted: Vec<(usize, usize)> =
                (0..compared.len()).filter_map(|i| Some((i, effort.next_runs(&compared[i])?))).collect();
            let sides = self.hosts.len();
            let made = runs.iter().flatten().map(Vec::len).sum();
            let affordable = effort.affordable(made) / (sides * wanted.len().max(1));
            wanted.iter_mut().for_each(|(i, next)| {
                *next = (*next).min(compared[*i].baseline.runs.saturating_add(affordable))
            });
            wanted.retain(|(i, next)| *next > compared[*i].baseline.runs);
            if wanted.is_empty() {
                break;
            }
            let of =
                |&(i, next): &(usize, usize)| Batch { runs: batches[i].runs.end..next, ..batches[i].clone() };
            let round: Vec<_> = wanted.iter().map(of).collect();
            for ((i, next), more) in zip(wanted, self.run(&round, pool)?) {
                zip(&mut runs[i], more).for_each(|(side, more)| side.extend(more));
                batches[i].runs.end = next;
                compared[i] = self.comparison(&batches[i], &runs[i])?;
                effort.say(&compared[i]);
            }
        }
        compared.iter_mut().for_each(|comparison| comparison.notes.extend(effort.note(comparison)));
        Ok(compared)
    }

    /// Runs cases under each ablation; `intact` are the comparisons of all cases without. Nothing if there are no
    /// ablations, or they were not asked for.
    pub(crate) fn ablate(&self, intact: &[Comparison], pool: &ThreadPool) -> Result<Vec<Ablated>> {
        let Experiment { ablations, .. } = &self.experiment;
        if self.ablated.is_empty() {
            return Ok(Vec::new());
        }
        let cases: Vec<_> = self.cases.iter().zip(intact).filter(|(case, _)| case.ablated).collect();
        let mut batches = Vec::new();
        for (case, _) in &cases {
            for (ablation, hosts) in ablations.iter().zip(&self.ablated) {
                let runs = 0..case.runs.min(ABLATION_RUNS) as usize;
                batches.push(Batch { case, ablation: Some(&ablation.label), hosts, runs });
            }
        }
        let runs = self.run(&batches, pool)?;
        let comparisons = zip(&batches, &runs).map(|(batch, runs)| self.comparison(batch, runs));
        let comparisons = comparisons.collect::<Result<Vec<_>>>()?;
        let labels: Vec<_> = ablations.iter().map(|ablation| ablation.label.as_str()).collect();
        let of_cases = cases.iter().zip(comparisons.chunks(labels.len()));
        Ok(of_cases
            .map(|((_, intact), ablated)| Ablated::new(intact, labels.iter().copied().zip(ablated)))
            .collect())
    }

    /// The baseline and the variants on a machine with other costs.
    pub(crate) fn hosts_with(&self, costs: &Costs) -> Vec<Host> {
        self.hosts.iter().map(|host| host.with_costs(costs)).collect()
    }

    /// The cases with so much of the workload as the runs at points have.
    fn point_cases(&self) -> Result<Vec<Case>> {
        let of = |(case, Named { text, place }): (&Case, &Named)| {
            let scale = Scale(case.scale.of(self.experiment.points_scale.0.into()) as u32);
            let workload = match scale == case.scale {
                true => case.workload.clone(),
                false => coreward_workload::parse(text, scale).with_context(|| place.clone())?,
            };
            Ok(Case { workload, scale, ..case.clone() })
        };
        zip(&self.cases, self.experiment.cases.iter().map(|case| &case.workload)).map(of).collect()
    }

    /// For each case and each point, the metrics of one run of each side on the hosts of the point. The runs of point i
    /// have the i-th seed.
    pub(crate) fn run_points(
        &self,
        hosts: &[Vec<Host>],
        pool: &ThreadPool,
    ) -> Result<Vec<Vec<Vec<Metrics>>>> {
        let of_case = |case| {
            let batch = |(i, hosts): (usize, _)| Batch { case, ablation: None, hosts, runs: i..i + 1 };
            hosts.iter().map(Vec::as_slice).enumerate().map(batch).collect::<Vec<_>>()
        };
        let cases = self.point_cases()?;
        let batches: Vec<_> = cases.iter().flat_map(of_case).collect();
        let first = |side: Vec<Ran>| side.into_iter().map(|run| run.metrics).next().expect("one run a side");
        let points: Vec<Vec<Metrics>> = self
            .run(&batches, pool)?
            .into_iter()
            .map(|sides| sides.into_iter().map(first).collect())
            .collect();
        Ok(points.chunks(hosts.len()).map(<[_]>::to_vec).collect())
    }

    /// Makes the runs of all batches.
    fn run(&self, batches: &[Batch], pool: &ThreadPool) -> Result<Vec<SideRuns>> {
        let progress = self.progress(batches);
        let mut all = pool.install(|| self.run_all(batches, &progress))?.into_iter();
        let of_side =
            |batch: &Batch, all: &mut dyn Iterator<Item = Ran>| all.take(batch.runs.len()).collect();
        let of_batch = |batch: &Batch| (0..batch.hosts.len()).map(|_| of_side(batch, &mut all)).collect();
        Ok(batches.iter().map(of_batch).collect())
    }

    /// Compares the sides of a batch.
    fn comparison(&self, batch: &Batch, runs: &SideRuns) -> Result<Comparison> {
        let sides = zip(self.experiment.sides(), batch.hosts);
        let mut sides = zip(sides, runs).map(|((side, host), runs)| Runs {
            label: side.label.clone(),
            profile: host.policy.profile.name().to_owned(),
            changes: host.policy.deviations(),
            seed: side.seed,
            runs: runs.iter().map(|run| run.metrics.clone()).collect(),
            cpu_time: runs.iter().map(|run| run.cpu_time).sum(),
        });
        let baseline = sides.next().context("an experiment has a baseline")?;
        let published = match batch.ablation {
            None => self.published(batch.case),
            Some(_) => Vec::new(),
        };
        let scaled = report::scaled(batch.case.scale);
        let all_runs = runs.iter().flatten();
        let all: Vec<_> = all_runs.clone().map(|run| run.skipped).collect();
        let skipped = batch.hosts[0].skip_steady_pct.map(|_| report::skipped_in(&all));
        let left: Vec<_> = all_runs.clone().map(|run| run.changes_left).collect();
        let notes = self.experiment.notes.iter().cloned().chain(scaled).chain(skipped);
        let notes = notes.chain(report::unhappened_in(&left)).collect();
        let Experiment { name, headline, .. } = &self.experiment;
        let comparison = Comparison::new(name, headline, baseline, sides.collect(), published, notes);
        let comparison = comparison.of_case(batch.case.label.clone()).with_recipe(self.recipe(batch));
        Ok(comparison.with_broken(self.broken(runs)))
    }

    /// The invariants that runs broke: for each side and invariant the first run, and how many did.
    fn broken(&self, runs: &SideRuns) -> Vec<String> {
        let mut broken = Vec::new();
        for (side, runs) in zip(self.experiment.sides(), runs) {
            let mut kinds: BTreeMap<&str, (usize, usize, &Violation)> = BTreeMap::new();
            for (i, violation) in
                runs.iter().enumerate().flat_map(|(i, run)| run.broken.iter().map(move |v| (i, v)))
            {
                kinds.entry(violation.invariant.name()).or_insert((0, i, violation)).0 += 1;
            }
            let text = |(n, first, violation): (usize, usize, &Violation)| {
                let (of, seed) = (runs.len(), side.seed.wrapping_add(first as u64));
                format!("{}: in {n} of {of} runs, first with seed {seed}: {violation}", side.label)
            };
            broken.extend(kinds.into_values().map(text));
        }
        broken
    }

    fn recipe(&self, batch: &Batch) -> Recipe {
        let Batch { case, hosts, runs, .. } = batch;
        let machine = &hosts[0].machine;
        let scale = scale::text(case.scale);
        let mut command: Vec<&str> = self.command.iter().map(String::as_str).collect();
        command.extend(case.label.iter().flat_map(|label| ["--case", label]));
        let runs = runs.end.to_string();
        command.extend(["--runs", &runs]);
        if case.scale != Scale::FULL {
            command.extend(["--scale", &scale]);
        }
        Recipe {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: shell::line(command),
            machine: format!("{}: {}", machine.name, machine.description),
            workload: case.workload.name.clone(),
            scale: scale.clone(),
            task_group_depth: hosts[0].task_group_depth,
        }
    }

    /// What was published about a case.
    fn published(&self, case: &Case) -> Vec<Published> {
        self.experiment.published.iter().filter(|row| row.case == case.label).cloned().collect()
    }

    fn progress(&self, batches: &[Batch]) -> Progress {
        let runs = batches.iter().map(Batch::all_runs).sum();
        match self.quiet {
            true => Progress::hidden(),
            false => {
                let name = printable(&self.experiment.name).into_owned();
                Progress::new(runs, runs as u64, name, "{msg} [{wide_bar}] {pos}/{len} runs, {elapsed}")
            }
        }
    }

    /// All runs, batch by batch and side by side, on the threads of the current pool.
    fn run_all(&self, batches: &[Batch], progress: &Progress) -> Result<Vec<Ran>> {
        let runs: Vec<(&Batch, usize)> =
            batches.iter().flat_map(|batch| (0..batch.all_runs()).map(move |i| (batch, i))).collect();
        let one = |&(batch, i): &(&Batch, usize)| {
            let ran = self.run_one(batch, i);
            progress.done(1);
            ran
        };
        // the results, and so the first error, are in the order of the runs, whichever thread computes them
        let results: Vec<Result<Ran>> = runs.par_iter().map(one).collect();
        progress.finish();
        results.into_iter().collect()
    }

    /// Run i of a batch.
    fn run_one(&self, batch: &Batch, i: usize) -> Result<Ran> {
        let (number, run) = (i / batch.runs.len(), batch.runs.start + i % batch.runs.len());
        let side = self.experiment.sides().nth(number).context("a batch has runs of each side")?;
        let seed = side.seed.wrapping_add(run as u64);
        let outcome = batch.hosts[number].run(&batch.case.workload, seed, &mut NoTrace);
        let outcome = outcome.with_context(|| {
            let of = [Some(self.experiment.name.as_str()), batch.case.label.as_deref(), batch.ablation];
            let of: String = of.into_iter().flatten().map(|name| format!("{name}: ")).collect();
            format!("{of}{}, seed {seed}", side.label)
        })?;
        let Outcome { metrics, cpu_time, checks, skipped, changes_left, .. } = outcome;
        Ok(Ran { metrics, cpu_time, broken: checks.violations, skipped, changes_left })
    }
}

impl Case {
    fn new(case: &experiment::Case, overrides: &Overrides) -> Result<Case> {
        let scale = overrides.scale.unwrap_or(Scale::FULL);
        let Named { text, place } = &case.workload;
        let workload = assumed::workload(text, scale, overrides.strict).with_context(|| place.clone())?;
        Ok(Case::of(case, workload, overrides))
    }

    /// The same with a workload that has been read.
    pub(crate) fn of(case: &experiment::Case, workload: Workload, overrides: &Overrides) -> Case {
        Case {
            label: case.label.clone(),
            workload,
            scale: overrides.scale.unwrap_or(Scale::FULL),
            runs: overrides.runs.unwrap_or(case.runs),
            ablated: case.ablated,
        }
    }
}

impl Batch<'_> {
    /// Of all its sides.
    fn all_runs(&self) -> usize {
        self.hosts.len() * self.runs.len()
    }
}

/// The command line that repeats an experiment, but for what depends on the case.
fn command(experiment: &Experiment, overrides: &Overrides) -> Vec<String> {
    let mut command: Vec<String> = ["coreward".into(), "compare".into()].to_vec();
    command.extend(experiment.origin.iter().cloned());
    command.extend(overrides.headline.iter().flat_map(|metric| ["--headline".into(), metric.name().into()]));
    command.extend(overrides.skip_steady.iter().flat_map(|pct| ["--skip-steady".into(), pct.to_string()]));
    command.extend(overrides.costs.iter().flat_map(|c| ["--cost".into(), format!("{}={}", c.name, c.value)]));
    command
        .extend(overrides.task_group_depth.iter().flat_map(|n| ["--task-group-depth".into(), n.to_string()]));
    command
}
