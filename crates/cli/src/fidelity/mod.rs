//! `coreward fidelity`: compares the published figures of many experiments with simulated ones.

mod results;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use coreward_input::printable;
use coreward_metrics::fidelity::{Origin, Outcome, Ran, Record, render};
use coreward_metrics::{Comparison, Fidelity};
use rayon::ThreadPool;
use serde_json::json;

use crate::address;
use crate::caller;
use crate::cli;
use crate::effort::Effort;
use crate::experiment::Experiment;
use crate::output::{self, Outputs};
use crate::prepared::{self, Overrides, Prepared};
use crate::scale;
use crate::standing;
use crate::state::State;
use crate::uncertainty;
use results::Results;

/// The family of experiments that name none.
const NO_FAMILY: &str = "other";

pub(crate) fn run(args: &cli::Fidelity, out: &mut dyn Write) -> Result<()> {
    let files = prepared::files(&args.experiments)?;
    let experiments = load(args, &files)?;
    // what is wrong with them is to be known before anything is run
    let kept = || args.results.as_deref().map_or_else(|| Ok(Results::new()), results::read);
    kept()?;
    let inputs = files.into_iter().chain(experiments.iter().flat_map(|it| it.prepared.inputs()));
    let mut outputs = Outputs::new(inputs.chain(args.state.clone()));
    let mut output =
        |option, path: &Option<PathBuf>| path.as_deref().map(|path| outputs.create(option, path)).transpose();
    let page = output("--output", &args.output)?;
    let record = output("--record", &args.record)?;
    let results = output("--results", &args.results)?;
    let pool = prepared::pool(args.jobs)?;
    let state = State::open("fidelity", args.state.as_deref())?;
    let origin = Origin {
        revision: args.revision.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        model: standing::model()?,
    };
    // one after the other, which frees the machines of each before the next is run
    let outcomes = experiments.into_iter().map(|experiment| run_one(&experiment, &origin, &pool, &state));
    let outcomes: Vec<_> = outcomes.collect::<Result<_>>()?;
    // others may have been added meanwhile
    let mut all = kept()?;
    all.extend(outcomes.into_iter().map(|outcome| (outcome.experiment.clone(), outcome)));
    let mut files = Vec::new();
    if let Some(mut file) = results {
        results::write(&all, &mut file)?;
        files.push(file.complete()?);
    }
    let fidelity = Fidelity::new(all.into_values().collect(), notes(args));
    if let Some(mut file) = record {
        output::json(&mut file, &Record::new(&fidelity))?;
        files.push(file.complete()?);
    }
    match page {
        Some(mut file) => {
            write(args, &fidelity, &mut file)?;
            files.push(file.complete()?);
        }
        None => write(args, &fidelity, out)?,
    }
    output::place(files)
}

/// An experiment with published figures.
struct Published {
    prepared: Prepared,
    /// Of its intervals, if it gets any.
    points: Option<u32>,
    /// Everything that decides what it comes to ([`mod@address`]).
    key: String,
}

/// The experiments that have published figures. Every file is read before the first is run.
fn load(args: &cli::Fidelity, files: &[PathBuf]) -> Result<Vec<Published>> {
    let overrides =
        Overrides { runs: args.runs, scale: args.scale, strict: args.strict, ..Overrides::default() };
    let (mut experiments, mut names) = (Vec::new(), BTreeMap::new());
    for path in files {
        let experiment = Experiment::load(path)?;
        if !experiment.published.is_empty() {
            if let Some(other) = names.insert(experiment.name.clone(), path) {
                bail!("{}: {} has an experiment of the same name, too", path.display(), other.display());
            }
            let prepared = Prepared::new(experiment, &overrides, args.ablations)?;
            let points = args.intervals.and_then(|given| given.or(prepared.experiment.points));
            let key = key(args, path, points, &prepared)?;
            experiments.push(Published { prepared, points, key });
        }
    }
    if experiments.is_empty() {
        let names: Vec<_> = args.experiments.iter().map(|path| path.display().to_string()).collect();
        bail!("{}: there are no published figures to compare with", names.join(", "));
    }
    Ok(experiments)
}

fn key(args: &cli::Fidelity, file: &Path, points: Option<u32>, prepared: &Prepared) -> Result<String> {
    let inputs = prepared.inputs();
    let inputs = inputs.iter().filter(|path| path.is_file()).map(|path| address::of_file(path));
    Ok(address::of(&json!({
        "experiment": address::of_file(file)?,
        "inputs": inputs.collect::<Result<Vec<_>>>()?,
        "hosts": prepared.hosts.iter().map(address::of_host).collect::<Result<Vec<_>>>()?,
        "runs": args.runs,
        "scale": args.scale.map(scale::text),
        "points": points,
        "ablations": args.ablations,
    })))
}

fn run_one(published: &Published, origin: &Origin, pool: &ThreadPool, state: &State<Ran>) -> Result<Outcome> {
    let experiment = &published.prepared.experiment;
    let ran = match state.get(&published.key) {
        Some(ran) => ran.clone(),
        None => simulate(published, pool, state)?,
    };
    Ok(Outcome {
        experiment: experiment.name.clone(),
        family: experiment.family.clone().unwrap_or_else(|| NO_FAMILY.to_owned()),
        origin: origin.clone(),
        ran,
    })
}

/// Runs an experiment, and says on standard error how long that took.
fn simulate(
    Published { prepared, points, key }: &Published,
    pool: &ThreadPool,
    state: &State<Ran>,
) -> Result<Ran> {
    let start = Instant::now();
    let mut comparisons = prepared.compare(pool, &Effort::default())?;
    if let Some(points) = *points {
        uncertainty::add(&mut comparisons, Comparison::published_metrics, prepared, points, pool)?;
    }
    let ran = Ran::new(&comparisons, prepared.ablate(&comparisons, pool)?);
    state.keep(key, &ran)?;
    let name = printable(&prepared.experiment.name);
    caller::tell(&format!("{name}: {:.1} s", start.elapsed().as_secs_f64()));
    Ok(ran)
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
