//! `coreward compare`: compares the sides of an experiment over many seeds.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use coreward_engine::NoTrace;
use coreward_metrics::{Ablated, Comparison, Metric, ablation, html, table, verdict, why};
use coreward_workload::Scale;
use serde::Serialize;

use crate::caller;
use crate::cli;
use crate::effort::Effort;
use crate::experiment::{AdHoc, Experiment};
use crate::figure;
use crate::look;
use crate::output::{self, Outputs};
use crate::prepared::{self, Case, Overrides, Prepared};
use crate::standing::Book;
use crate::tables::{Change, Place, Role, Runs, Tables};
use crate::uncertainty;
use crate::unmet::Unmet;

pub(crate) fn run(args: &cli::Compare, out: &mut dyn Write) -> Result<()> {
    caller::be_quiet(args.quiet.quiet);
    let (files, experiments) = prepare(args)?;
    if let (Some(_), 2..) = (&args.html, experiments.len()) {
        bail!("--html takes one experiment, given are {}", experiments.len());
    }
    let tested = |prepared: &Prepared| prepared.cases.iter().all(|case| case.runs > 1);
    if args.gate.fail_if_worse && !experiments.iter().all(tested) {
        bail!("--fail-if-worse: one run a side is not tested, allowed are two or more");
    }
    let mut outputs = Outputs::new(files.into_iter().chain(experiments.iter().flat_map(Prepared::inputs)));
    let page = args.html.as_deref().map(|target| outputs.create("--html", target)).transpose()?;
    let json_only = args.json.as_deref() == Some(Path::new("-"));
    let json = args.json.as_deref().filter(|_| !json_only);
    let json = json.map(|target| outputs.create("--json", target)).transpose()?;
    let mut tables = Tables::open(&mut outputs, &args.tables.files)?;

    let pool = prepared::pool(args.jobs)?;
    let effort = Effort::new(args.precision, args.budget);
    let book = Book::read()?;
    let mut reports = Vec::new();
    for (i, prepared) in experiments.iter().enumerate() {
        let record = book.standing(&prepared.experiment)?;
        let comparisons = prepared.compare(&pool, &effort)?.into_iter();
        let of_model = |it: Comparison| it.with_record(record.clone(), book.reliability().to_vec());
        let mut comparisons: Vec<_> = comparisons.map(of_model).collect();
        if let Some(points) = args.intervals {
            let headline = |comparison: &Comparison| comparison.headline.clone();
            uncertainty::add(&mut comparisons, headline, prepared, points, &pool)?;
        }
        if args.headline.is_empty() || experiments.len() == 1 {
            has_headline(args, prepared, &comparisons)?;
        }
        rows(prepared, &comparisons, &mut tables)?;
        let ablations = prepared.ablate(&comparisons, &pool)?;
        if !json_only && !args.quiet.quiet {
            if i > 0 {
                writeln!(out)?;
            }
            print_report(prepared, &comparisons, &ablations, args, out)?;
        }
        reports.push((comparisons, ablations));
    }
    let all = reports.iter().flat_map(|(comparisons, _)| comparisons);
    if let Some(metric) = figure::unmeasured(&args.headline, all).first() {
        return Err(figure::no_run_has(*metric).context("--headline"));
    }
    let mut files = tables.complete()?;
    let mut unmet = Vec::new();
    for (comparisons, _) in &reports {
        unmet.extend(args.check.then(|| broken(comparisons)).into_iter().flatten());
        unmet.extend(args.gate.fail_if_worse.then(|| worse(comparisons)).into_iter().flatten());
    }
    let one = args.experiments.len() == 1 && !args.experiments[0].is_dir();
    let reports = reports.into_iter().zip(&experiments);
    let reports =
        reports.map(|((comparisons, ablations), prepared)| Report::new(prepared, comparisons, ablations));
    let reports: Vec<_> = reports.collect();
    let write = |out: &mut dyn Write| match &reports[..] {
        [report] if one => output::json(out, report),
        reports => output::json(out, &reports),
    };
    if let (Some(mut file), [report]) = (page, &reports[..]) {
        file.write_all(report.page(&experiments[0])?.as_bytes())?;
        files.push(file.complete()?);
    }
    if let Some(mut file) = json {
        write(&mut file)?;
        files.push(file.complete()?);
    }
    output::place(files)?;
    if json_only {
        write(out)?;
    }
    Unmet::check(&unmet)
}

/// The first run of each side of a comparison's first case, drawn as in its page.
pub(crate) fn look(args: &cli::Compare) -> Result<String> {
    let (_, experiments) = prepare(args)?;
    let prepared = experiments.first().context("there is an experiment")?;
    let case = prepared.cases.first().context("an experiment has a case")?;
    let first = prepared.hosts[0].run(&case.workload, prepared.experiment.baseline.seed, &mut NoTrace)?;
    let runtime_s = first.metrics.get(Metric::runtime_s).unwrap_or(0.0);
    look::runs(look::sides(prepared), &case.workload, runtime_s)
}

/// All runs of an experiment's cases, but not those of its ablations.
fn rows(prepared: &Prepared, comparisons: &[Comparison], tables: &mut Tables) -> Result<()> {
    for (case, comparison) in prepared.cases.iter().zip(comparisons) {
        let place = Place {
            command: "compare",
            experiment: Some(&comparison.experiment),
            case: case.label.as_deref(),
            workload: &case.workload.name,
            scale: case.scale,
        };
        let variants = comparison.variants.iter().map(|variant| (&variant.side, Some(variant)));
        let sides = std::iter::once((&comparison.baseline, None)).chain(variants);
        for ((side, variant), host) in sides.zip(&prepared.hosts) {
            let runs = Runs {
                role: if variant.is_some() { Role::Variant } else { Role::Baseline },
                label: &side.label,
                host,
                seed: side.seed,
                runs: side.runs,
                value: |run, metric| side.values.get(&metric)?[run],
            };
            let change = |metric| variant.map_or_else(Change::default, |v| Change::of(v, metric));
            tables.add(&place, &runs, change)?;
        }
    }
    Ok(())
}

/// # Errors
/// The runs lack a metric that `--headline` names, or are whole and lack all that the experiment names.
fn has_headline(args: &cli::Compare, prepared: &Prepared, comparisons: &[Comparison]) -> Result<()> {
    let Experiment { name, headline, .. } = &prepared.experiment;
    let missing = figure::unmeasured(headline, comparisons);
    let whole = prepared.cases.iter().any(|case| case.scale == Scale::FULL);
    match missing.first() {
        Some(metric) if !args.headline.is_empty() => Err(figure::no_run_has(*metric)).context("--headline"),
        Some(metric) if missing.len() == headline.len() && whole => {
            Err(figure::no_run_has(*metric)).with_context(|| format!("{name}: headline"))
        }
        _ => Ok(()),
    }
}

/// The invariants that runs of an experiment broke, with its name and the case.
fn broken(comparisons: &[Comparison]) -> impl Iterator<Item = String> {
    comparisons.iter().flat_map(|comparison| {
        let case = comparison.case.as_ref().map_or(String::new(), |case| format!("{case}: "));
        comparison.broken.iter().map(move |broken| format!("{}: {case}{broken}", comparison.experiment))
    })
}

/// What is worse beyond noise, in the words of the report.
fn worse(comparisons: &[Comparison]) -> Vec<String> {
    let of = |comparison: &Comparison| {
        let case = comparison.case.as_ref().map_or(String::new(), |case| format!("{case}: "));
        let variants =
            comparison.variants.iter().flat_map(|variant| verdict::worse(&comparison.headline, variant));
        variants.map(|what| format!("{}: {case}{what}", comparison.experiment)).collect::<Vec<_>>()
    };
    comparisons.iter().flat_map(of).collect()
}

/// The files that are read, and what stands in them. Every one is read before the first is run, so that a mistake in the
/// last one shows immediately.
fn prepare(args: &cli::Compare) -> Result<(Vec<PathBuf>, Vec<Prepared>)> {
    let overrides = Overrides {
        runs: args.runs,
        scale: args.scale,
        skip_steady: args.skip_steady,
        task_group_depth: args.task_group_depth,
        costs: &args.cost,
        headline: &args.headline,
        strict: args.strict,
        ..Overrides::default()
    };
    let prepare = |mut experiment: Experiment| {
        if !args.case.is_empty() {
            experiment.only(&args.case)?;
        }
        let prepared = Prepared::new(experiment, &overrides, args.ablations)?;
        if args.ablations && !prepared.has_ablations() {
            bail!("--ablations: {} has none of the cases that are run", prepared.experiment.origin[0]);
        }
        Ok(prepared)
    };
    if let Some(machine) = &args.machine {
        if args.with.is_empty() {
            bail!(
                "--machine: an experiment names its own machine; a workload needs --with, the change to compare"
            );
        }
        if args.ablations {
            bail!("--ablations are those of an experiment file, and there is none");
        }
        let [workload] = &args.experiments[..] else {
            let given = args.experiments.iter().map(|it| format!("`{}`", it.display())).collect::<Vec<_>>();
            bail!(
                "--with takes one workload, given are {}; a workload is one argument, in quotes, and a value that an \
                 option may have follows it in one word (--json=F)",
                given.join(" and ")
            );
        };
        let options = AdHoc {
            workload: workload.to_str().context("the workload is not UTF-8 text")?,
            machine,
            profile: args.profile.as_deref(),
            seed: args.seed,
            baseline_with: args.baseline_with.as_deref(),
            with: &args.with,
        };
        return Ok((Vec::new(), vec![prepare(Experiment::of_options(&options)?)?]));
    }
    for_workloads_only(args)?;
    let files = prepared::files(&args.experiments)?;
    let experiments = files.iter().map(|path| prepare(Experiment::load(path)?)).collect::<Result<_>>()?;
    Ok((files, experiments))
}

/// # Errors
/// There is no machine, and something that only a comparison without a file has.
fn for_workloads_only(args: &cli::Compare) -> Result<()> {
    let given = [
        ("--with", !args.with.is_empty()),
        ("--baseline-with", args.baseline_with.is_some()),
        ("--profile", args.profile.is_some()),
        ("--seed", args.seed.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        bail!(
            "{option} is for a workload, with --machine and --with; an experiment has its own sides and seeds"
        );
    }
    let is_workload =
        |it: &&PathBuf| !it.exists() && it.to_str().is_some_and(coreward_workload::is_benchmark);
    if let Some(workload) = args.experiments.iter().find(is_workload) {
        bail!("{}: a workload needs --machine, and --with, the change to compare", workload.display());
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
    fn new(prepared: &Prepared, mut cases: Vec<Comparison>, ablations: Vec<Ablated>) -> Report {
        let compared = match cases.pop() {
            Some(single) if single.case.is_none() => Compared::Single(Box::new(single)),
            last => {
                cases.extend(last);
                Compared::Cases { experiment: prepared.experiment.name.clone(), cases }
            }
        };
        Report { compared, ablations }
    }

    /// The report as a page, with a closer look at a run of each side.
    fn page(&self, prepared: &Prepared) -> Result<String> {
        let comparisons = match &self.compared {
            Compared::Single(single) => std::slice::from_ref(&**single),
            Compared::Cases { cases, .. } => cases,
        };
        let looks = prepared.cases.iter().zip(comparisons);
        let looks = looks.map(|(case, comparison)| look::at(prepared, case, comparison));
        let data = serde_json::to_string_pretty(self)?;
        Ok(html::render(comparisons, &self.ablations, &looks.collect::<Result<Vec<_>>>()?, &data))
    }
}

fn print_report(
    prepared: &Prepared,
    comparisons: &[Comparison],
    ablations: &[Ablated],
    args: &cli::Compare,
    out: &mut dyn Write,
) -> Result<()> {
    heading(prepared, comparisons, out)?;
    for (case, comparison) in prepared.cases.iter().zip(comparisons) {
        if let Some(label) = &case.label {
            writeln!(out, "\ncase      {label}")?;
            case_heading(comparison, out)?;
        }
        writeln!(out)?;
        out.write_all(table::render(comparison, args.all).as_bytes())?;
        if args.why {
            write!(out, "\n{}", why::render(comparison))?;
        }
    }
    for ablated in ablations {
        write!(out, "\n{}\n{}", ablated.title(), ablation::table(ablated))?;
    }
    Ok(out.flush()?)
}

fn heading(prepared: &Prepared, comparisons: &[Comparison], out: &mut dyn Write) -> Result<()> {
    let experiment = &prepared.experiment;
    for text in [&experiment.title, &experiment.description].into_iter().flatten() {
        writeln!(out, "{}", text.trim())?;
    }
    if let Some(source) = &experiment.source {
        writeln!(out, "source    {source}")?;
    }
    writeln!(out, "coreward  {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "machine   {}", prepared.hosts[0].machine.name)?;
    if let ([Case { label: None, .. }], [comparison]) = (&prepared.cases[..], comparisons) {
        case_heading(comparison, out)?;
    }
    for (side, host) in experiment.sides().zip(&prepared.hosts) {
        let mut changed = host.policy.deviations();
        if side.seed != experiment.baseline.seed {
            changed.push(format!("seeds from {}", side.seed));
        }
        let changed =
            if changed.is_empty() { String::new() } else { format!(" with {}", changed.join(", ")) };
        writeln!(out, "side      {}: {}{changed}", side.label, host.policy.profile.name())?;
    }
    Ok(())
}

fn case_heading(comparison: &Comparison, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "workload  {}", comparison.recipe.workload)?;
    writeln!(out, "command   {}", comparison.recipe.command)?;
    Ok(writeln!(
        out,
        "runs      {} a side, from seed {}",
        comparison.baseline.runs, comparison.baseline.seed
    )?)
}
