//! `coreward compare`: compares the sides of an experiment over many seeds.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use coreward_metrics::{Ablated, Comparison, ablation, html, table};
use rayon::ThreadPool;
use serde::Serialize;

use crate::cli;
use crate::experiment::Experiment;
use crate::output::{self, OutputFile, Outputs};
use crate::prepared::{self, Case, Overrides, Prepared};

pub(crate) fn run(args: &cli::Compare, out: &mut dyn Write) -> Result<()> {
    let overrides = Overrides {
        runs: args.runs,
        scale: args.scale,
        task_group_depth: args.task_group_depth,
        costs: &args.cost,
        strict: args.strict,
    };
    // every file is read before the first is run, so that a mistake in the last one shows immediately
    let load = |path: &Path| {
        let mut experiment = Experiment::load(path)?;
        if !args.case.is_empty() {
            experiment.only(&args.case)?;
        }
        Prepared::new(path, experiment, &overrides, args.ablations)
    };
    let files = prepared::files(&args.experiments)?;
    let experiments = files.iter().map(|path| load(path)).collect::<Result<Vec<_>>>()?;
    let pool = prepared::pool(args.jobs)?;
    if let Some(target) = &args.html {
        let [prepared] = &experiments[..] else {
            bail!("--html takes one experiment, given are {}", experiments.len());
        };
        let mut outputs = Outputs::new(files.into_iter().chain(prepared.inputs()));
        return write_page(prepared, &pool, outputs.create("--html", target)?);
    }
    if args.json {
        let reports = experiments.iter().map(|prepared| Report::of(prepared, &pool));
        let reports = reports.collect::<Result<Vec<_>>>()?;
        return match (&reports[..], &args.experiments[..]) {
            ([one], [path]) if !path.is_dir() => output::json(out, one),
            _ => output::json(out, &reports),
        };
    }
    for (i, prepared) in experiments.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        print_report(prepared, &pool, out)?;
    }
    Ok(())
}

/// The output of `--json` for an experiment.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    compared: Compared,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ablations: Vec<Ablated>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Compared {
    /// The experiment has one workload.
    Single(Box<Comparison>),
    Cases {
        experiment: String,
        cases: Vec<Comparison>,
    },
}

impl Report {
    fn of(prepared: &Prepared, pool: &ThreadPool) -> Result<Report> {
        let mut cases = prepared.compare(pool)?;
        let ablations = prepared.ablate(&cases, pool)?;
        let compared = match cases.pop() {
            Some(single) if single.case.is_none() => Compared::Single(Box::new(single)),
            last => {
                cases.extend(last);
                Compared::Cases { experiment: prepared.experiment.name.clone(), cases }
            }
        };
        Ok(Report { compared, ablations })
    }
}

fn write_page(prepared: &Prepared, pool: &ThreadPool, mut file: OutputFile) -> Result<()> {
    let comparisons = prepared.compare(pool)?;
    file.write_all(html::render(&comparisons, &prepared.experiment.headline).as_bytes())?;
    file.finish()
}

fn print_report(prepared: &Prepared, pool: &ThreadPool, out: &mut dyn Write) -> Result<()> {
    let comparisons = prepared.compare(pool)?;
    heading(prepared, out)?;
    for (case, comparison) in prepared.cases.iter().zip(&comparisons) {
        if let Some(label) = &case.label {
            writeln!(out, "\ncase      {label}")?;
            case_heading(prepared, case, out)?;
        }
        writeln!(out)?;
        out.write_all(table::render(comparison, &prepared.experiment.headline).as_bytes())?;
    }
    for ablated in prepared.ablate(&comparisons, pool)? {
        let case = ablated.case.iter().map(|case| format!(": {case}")).collect::<String>();
        write!(
            out,
            "\n{}{case}: change in percent ± spread of the runs\n{}",
            ablated.experiment,
            ablation::table(&ablated)
        )?;
    }
    Ok(out.flush()?)
}

fn heading(prepared: &Prepared, out: &mut dyn Write) -> Result<()> {
    let experiment = &prepared.experiment;
    for text in [&experiment.title, &experiment.description].into_iter().flatten() {
        writeln!(out, "{}", text.trim())?;
    }
    if let Some(source) = &experiment.source {
        writeln!(out, "source    {source}")?;
    }
    writeln!(out, "machine   {}", prepared.hosts[0].machine.name)?;
    if let [single @ Case { label: None, .. }] = &prepared.cases[..] {
        case_heading(prepared, single, out)?;
    }
    for (side, host) in experiment.sides().zip(&prepared.hosts) {
        let changed = host.policy.deviations();
        let changed =
            if changed.is_empty() { String::new() } else { format!(" with {}", changed.join(", ")) };
        writeln!(out, "side      {}: {}{changed}", side.label, host.policy.profile.name())?;
    }
    Ok(())
}

fn case_heading(prepared: &Prepared, case: &Case, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "workload  {}", case.workload.name)?;
    Ok(writeln!(out, "runs      {} a side, from seed {}", case.runs, prepared.experiment.baseline.seed)?)
}
