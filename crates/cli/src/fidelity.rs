//! `coreward fidelity`: compares the published figures of many experiments with simulated ones.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use coreward_input::printable;
use coreward_metrics::Fidelity;
use coreward_metrics::fidelity::{Ran, Record, render};
use rayon::ThreadPool;

use crate::cli;
use crate::effort::Effort;
use crate::experiment::Experiment;
use crate::output::{self, Outputs};
use crate::prepared::{self, Overrides, Prepared};
use crate::scale;
use crate::standing;

/// The family of experiments that name none.
const NO_FAMILY: &str = "other";

pub(crate) fn run(args: &cli::Fidelity, out: &mut dyn Write) -> Result<()> {
    let files = prepared::files(&args.experiments)?;
    let experiments = load(args, &files)?;
    let mut outputs = Outputs::new(files.into_iter().chain(experiments.iter().flat_map(Prepared::inputs)));
    let file = args.output.as_deref().map(|file| outputs.create("--output", file)).transpose()?;
    let record = args.record.as_deref().map(|file| outputs.create("--record", file)).transpose()?;
    let pool = prepared::pool(args.jobs)?;
    // one after the other, which frees the machines of each before the next is run
    let ran = experiments.into_iter().map(|prepared| run_one(&prepared, &pool));
    let fidelity = Fidelity::new(ran.collect::<Result<_>>()?, notes(args));
    if let Some(mut file) = record {
        let revision = args.revision.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
        output::json(&mut file, &Record::new(&fidelity, revision, &standing::model()?))?;
        file.finish()?;
    }
    match file {
        Some(mut file) => {
            write(args, &fidelity, &mut file)?;
            file.finish()
        }
        None => write(args, &fidelity, out),
    }
}

/// The experiments that have published figures. Every file is read before the first is run.
fn load(args: &cli::Fidelity, files: &[PathBuf]) -> Result<Vec<Prepared>> {
    let overrides =
        Overrides { runs: args.runs, scale: args.scale, strict: args.strict, ..Overrides::default() };
    let mut experiments = Vec::new();
    for path in files {
        let experiment = Experiment::load(path)?;
        if !experiment.published.is_empty() {
            experiments.push(Prepared::new(experiment, &overrides, args.ablations)?);
        }
    }
    if experiments.is_empty() {
        let names: Vec<_> = args.experiments.iter().map(|path| path.display().to_string()).collect();
        bail!("{}: there are no published figures to compare with", names.join(", "));
    }
    Ok(experiments)
}

/// Runs an experiment, and says on standard error how long that took.
fn run_one(prepared: &Prepared, pool: &ThreadPool) -> Result<Ran> {
    let start = Instant::now();
    let comparisons = prepared.compare(pool, &Effort::default())?;
    let ablations = prepared.ablate(&comparisons, pool)?;
    let experiment = &prepared.experiment;
    eprintln!("{}: {:.1} s", printable(&experiment.name), start.elapsed().as_secs_f64());
    let family = experiment.family.clone().unwrap_or_else(|| NO_FAMILY.to_owned());
    Ok(Ran { family, comparisons, ablations })
}

/// A remark for the reader, if the runs are not those of the experiment files.
fn notes(args: &cli::Fidelity) -> Vec<String> {
    let runs = args.runs.map(|runs| format!("--runs {runs}"));
    let scale = args.scale.map(|scale| format!("--scale {}", scale::text(scale)));
    let options: Vec<_> = runs.into_iter().chain(scale).collect();
    match &options[..] {
        [] => Vec::new(),
        _ => vec![format!("These runs are not those that the experiments ask for: {}.", options.join(" "))],
    }
}

fn write(args: &cli::Fidelity, fidelity: &Fidelity, out: &mut dyn Write) -> Result<()> {
    match args.json {
        true => output::json(out, fidelity),
        false => Ok(out.write_all(render(fidelity).as_bytes())?),
    }
}
