//! `coreward compare`: the sides of an experiment, many seeds each, side by side.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use coreward_engine::NoTrace;
use coreward_machine::Machine;
use coreward_metrics::{Comparison, Metrics, Runs, html, table};
use coreward_workload::{Scale, Workload};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::cli;
use crate::experiment::{Experiment, Side};
use crate::output::{self, OutputFile};
use crate::report;
use crate::setup::Host;

pub(crate) fn run(args: &cli::Compare, out: &mut dyn Write) -> Result<()> {
    let paths = files(&args.experiments)?;
    // every file is read before the first is run: a mistake in the last one shows at once
    let experiments = paths.iter().map(|path| Ready::load(path, args)).collect::<Result<Vec<_>>>()?;
    let jobs = args.jobs.map_or(0, |jobs| jobs as usize);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build()?;
    if let Some(target) = &args.html {
        let [ready] = &experiments[..] else {
            bail!("--html takes one experiment, given are {}", experiments.len());
        };
        return write_page(ready, &pool, target);
    }
    if args.json {
        let comparisons = experiments.iter().map(|ready| ready.compare(&pool)).collect::<Result<Vec<_>>>()?;
        return match (&comparisons[..], &args.experiments[..]) {
            ([one], [path]) if !path.is_dir() => output::json(out, one),
            _ => output::json(out, &comparisons),
        };
    }
    for (i, ready) in experiments.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        print_report(ready, &pool, out)?;
    }
    Ok(())
}

fn write_page(ready: &Ready, pool: &ThreadPool, target: &Path) -> Result<()> {
    let mut file = OutputFile::create(target)?;
    let comparison = ready.compare(pool)?;
    file.write_all(html::render(&comparison, &ready.experiment.headline).as_bytes())?;
    file.finish()
}

fn print_report(ready: &Ready, pool: &ThreadPool, out: &mut dyn Write) -> Result<()> {
    let comparison = ready.compare(pool)?;
    ready.heading(out)?;
    out.write_all(table::render(&comparison, &ready.experiment.headline).as_bytes())?;
    Ok(out.flush()?)
}

/// The files that are meant: a directory stands for its `*.toml` files in the order of their names.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let cannot = || format!("cannot read {}", path.display());
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).with_context(cannot)? {
            let file = entry.with_context(cannot)?.path();
            if file.extension().is_some_and(|extension| extension == "toml") {
                inside.push(file);
            }
        }
        if inside.is_empty() {
            bail!("{}: there is no *.toml file in it", path.display());
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// An experiment that has all that it needs to be run.
struct Ready {
    experiment: Experiment,
    workload: Workload,
    scale: Scale,
    runs: u32,
    /// Of the baseline and the variants.
    hosts: Vec<Host>,
}

impl Ready {
    fn load(path: &Path, args: &cli::Compare) -> Result<Ready> {
        let experiment = Experiment::load(path)?;
        let scale = args.scale.unwrap_or(experiment.scale);
        let Experiment { machine, workload, .. } = &experiment;
        let workload =
            coreward_workload::parse(&workload.text, scale).with_context(|| workload.place.clone())?;
        let machine = Machine::load(&machine.text).with_context(|| machine.place.clone())?;
        let host = |side: &Side| -> Result<Host> {
            let mut policy = side.policy.clone();
            for cost in &args.cost {
                policy.cost(&cost.name, cost.value).map_err(|what| anyhow::anyhow!("--cost: {what}"))?;
            }
            let mut host = Host::new(machine.clone(), policy)
                .with_context(|| format!("{}: {}", path.display(), side.label))?;
            host.task_group_depth = args.task_group_depth.unwrap_or(experiment.task_group_depth);
            host.time_limit_s = experiment.time_limit_s;
            Ok(host)
        };
        let hosts = experiment.sides().map(host).collect::<Result<_>>()?;
        Ok(Ready { runs: args.runs.unwrap_or(experiment.runs), experiment, workload, scale, hosts })
    }

    /// Runs all seeds of all sides and compares the sides.
    fn compare(&self, pool: &ThreadPool) -> Result<Comparison> {
        let runs = self.runs as usize;
        let metrics = pool.install(|| self.run_all())?;
        let sides = self.experiment.sides().zip(metrics.chunks(runs));
        let mut sides = sides.map(|(side, runs)| Runs { label: side.label.clone(), runs: runs.to_vec() });
        let baseline = sides.next().context("an experiment has a baseline")?;
        let published = self.experiment.published.clone();
        let notes = report::scaled(self.scale, &self.workload).into_iter().collect();
        Ok(Comparison::new(&self.experiment.name, baseline, sides.collect(), published, notes))
    }

    /// The metrics of all runs, side by side, on the threads of the current pool.
    fn run_all(&self) -> Result<Vec<Metrics>> {
        let sides: Vec<(&Side, &Host)> = self.experiment.sides().zip(&self.hosts).collect();
        let runs = self.runs as usize;
        let progress = progress_bar(&self.experiment.name, sides.len() * runs);
        let one = |i: usize| {
            let (side, host) = sides[i / runs];
            let seed = side.seed.wrapping_add((i % runs) as u64);
            let outcome = host.run(&self.workload, seed, &mut NoTrace);
            progress.inc(1);
            let metrics = outcome.map(|outcome| outcome.metrics);
            metrics.with_context(|| format!("{}: {}, seed {seed}", self.experiment.name, side.label))
        };
        // the results, and so the first error, are in the order of the indices, whoever computes them
        let results: Vec<Result<Metrics>> = (0..sides.len() * runs).into_par_iter().map(one).collect();
        progress.finish_and_clear();
        results.into_iter().collect()
    }

    fn heading(&self, out: &mut dyn Write) -> Result<()> {
        let experiment = &self.experiment;
        for text in [&experiment.title, &experiment.description].into_iter().flatten() {
            writeln!(out, "{}", text.trim())?;
        }
        if let Some(source) = &experiment.source {
            writeln!(out, "source    {source}")?;
        }
        writeln!(out, "machine   {}", self.hosts[0].machine.name)?;
        writeln!(out, "workload  {}", self.workload.name)?;
        writeln!(out, "runs      {} a side, from seed {}", self.runs, experiment.baseline.seed)?;
        for (side, host) in experiment.sides().zip(&self.hosts) {
            let changed = host.policy.deviations();
            let changed =
                if changed.is_empty() { String::new() } else { format!(" with {}", changed.join(", ")) };
            writeln!(out, "side      {}: {}{changed}", side.label, host.policy.profile.name())?;
        }
        Ok(writeln!(out)?)
    }
}

/// On standard error, and only if that is a terminal.
fn progress_bar(name: &str, runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len} runs, {elapsed}");
    let bar = ProgressBar::new(runs as u64).with_message(name.to_owned());
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
