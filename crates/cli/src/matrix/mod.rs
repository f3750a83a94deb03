//! `coreward matrix`: what one change does to many workloads on many machines.

mod cell;
mod page;
mod report;
pub(crate) mod suite;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use coreward_input::Printer;
use coreward_machine::Machine;
use coreward_metrics::Metric;
use coreward_workload::Scale;

use crate::assumed;
use crate::caller;
use crate::cli;
use crate::figure;
use crate::look;
use crate::output::{self, Outputs};
use crate::prepared::Prepared;
use crate::shard;
use crate::shell;
use crate::standing;
use crate::state::State;
use crate::tables::{Change, Place, Role, Runs, Tables};
use crate::unmet::Unmet;
use crate::work::{self, Item};
use cell::{Cell, Plan};
use report::{Described, Frame, Report};
use suite::Row;

pub(crate) fn run(args: &cli::Matrix, out: &mut dyn Write) -> Result<()> {
    caller::be_quiet(args.quiet.quiet);
    let Some(change) = &args.with else {
        // --print-suite, which clap takes in its place
        return Ok(out.write_all(suite::BUILT_IN.as_bytes())?);
    };
    let printed = |target: &Option<PathBuf>| target.as_deref() == Some(Path::new("-"));
    if printed(&args.json) && printed(&args.text) {
        bail!("--json, --text: one of them can be printed, give a file to the other one");
    }
    let specs: Vec<String> = match args.machine.is_empty() {
        true => Machine::presets().into_iter().map(|(name, _)| name).collect(),
        false => args.machine.clone(),
    };
    let rows = suite::rows(args.suite.as_deref(), &args.workload)?;
    let machines = machines(&specs, args.strict)?;

    let inputs = specs.iter().filter_map(|spec| Machine::path(spec)).map(Path::to_owned);
    let inputs = inputs.chain(args.suite.clone()).chain(rows.iter().flat_map(Row::paths));
    let inputs = inputs.chain(args.state.clone()).chain(args.shares.merge.iter().cloned());
    let inputs: Vec<PathBuf> = inputs.collect();
    let mut outputs = Outputs::new(inputs);
    let mut open = |option, target: &Option<PathBuf>| {
        let file = target.as_deref().filter(|target| *target != Path::new("-"));
        file.map(|target| outputs.create(option, target)).transpose()
    };
    let (json, text, html) =
        (open("--json", &args.json)?, open("--text", &args.text)?, open("--html", &args.html)?);

    let mut tables = Tables::open(&mut outputs, &args.tables.files)?;

    let shards = &args.shares.shard;
    let plans = shard::share(plans(args, change, &specs, &machines, &rows)?, shards);
    let mut state = State::open("matrix", args.state.as_deref())?;
    state.merge(&args.shares.merge)?;
    let (plans, items): (Vec<Plan>, Vec<Item>) = plans.into_iter().unzip();
    if args.shares.left {
        return shard::left(plans.len(), &work::left(&items, &state), |i| plans[i].describe(), out);
    }
    let cells = work::finish(&items, "cells", &state, work::jobs(args.jobs), |i| plans[i].run())?;
    if !shards.is_empty() {
        return shard::kept(shards, plans.len(), "cells", out);
    }
    for (plan, cell) in plans.iter().zip(&cells) {
        let metric = plan.prepared.experiment.headline.first().filter(|_| cell.figures.is_empty());
        if let Some(metric) = metric {
            return Err(figure::no_run_has(*metric).context(plan.name.clone()));
        }
    }
    let report = report(args, change, &plans, cells, machines, rows)?;

    self::rows(&plans, &report, &mut tables)?;
    let mut files = tables.complete()?;
    let texts = text::render(&report, args.all);
    if let Some(mut file) = text {
        Printer::new(&mut file).write_all(texts.as_bytes())?;
        files.push(file.complete()?);
    }
    if let Some(mut file) = html {
        let (look, data) = (look(&plans, &report)?, serde_json::to_string_pretty(&report)?);
        file.write_all(page::render(&report, &look, &data).as_bytes())?;
        files.push(file.complete()?);
    }
    if let Some(mut file) = json {
        report.json(&mut file)?;
        files.push(file.complete()?);
    }
    output::place(files)?;
    if printed(&args.json) {
        report.json(out)?;
    } else if !args.quiet.quiet {
        out.write_all(texts.as_bytes())?;
        out.flush()?;
    }
    let mut unmet = if args.check { report.broken() } else { Vec::new() };
    if args.gate.fail_if_worse && report.summary.worse > 0 {
        unmet.push(figure::worse_cells(report.summary.worse, report.summary.cells));
    }
    Unmet::check(&unmet)
}

/// The first runs of the most damaged cell, drawn.
fn look(plans: &[Plan], report: &Report) -> Result<String> {
    let Some(cell) = report.cells.first() else { return Ok(String::new()) };
    let is_it = |plan: &&Plan| plan.prepared.machine.name == cell.machine && plan.name == cell.name;
    let Some(Plan { prepared, .. }) = plans.iter().find(is_it) else { return Ok(String::new()) };
    let runtime_s =
        cell.runs.iter().filter_map(|runs| runs.first()?.get(Metric::runtime_s)).fold(0.0, f64::max);
    look::runs(look::sides(prepared), &prepared.cases[0].workload, runtime_s)
}

/// The runs of all cells, machine by machine.
fn rows(plans: &[Plan], report: &Report, tables: &mut Tables) -> Result<()> {
    for plan in plans {
        let Prepared { experiment, machine, cases, hosts, .. } = &plan.prepared;
        let Some(cell) = report.cell(&machine.name, &plan.name) else { continue };
        let place = Place {
            command: "matrix",
            experiment: None,
            case: Some(&plan.name),
            workload: &cell.workload,
            scale: cases[0].scale,
        };
        for (number, (side, host)) in experiment.sides().zip(hosts).enumerate() {
            let own = &cell.runs[number];
            let runs = Runs {
                role: if number == 0 { Role::Baseline } else { Role::Variant },
                label: &side.label,
                host,
                seed: side.seed,
                runs: own.len(),
                value: |run: usize, metric| own[run].get(metric),
            };
            let change = |metric| match number {
                0 => Change::default(),
                _ => Change::among(&cell.figures, metric),
            };
            tables.add(&place, &runs, change)?;
        }
    }
    Ok(())
}

fn machines(specs: &[String], strict: bool) -> Result<Vec<Machine>> {
    let mut machines: Vec<Machine> = Vec::new();
    for spec in specs {
        let machine = assumed::machine(spec, strict).context("--machine")?;
        if machines.iter().any(|other| other.name == machine.name) {
            bail!("--machine: {} is named twice", machine.name);
        }
        machines.push(machine);
    }
    Ok(machines)
}

/// All cells, machine by machine. Everything that can be refused is refused here, before the first run.
fn plans(
    args: &cli::Matrix,
    change: &str,
    specs: &[String],
    machines: &[Machine],
    rows: &[Row],
) -> Result<Vec<(Plan, Item)>> {
    let mut plans = Vec::new();
    for (row, suite_row) in rows.iter().enumerate() {
        let fits = |machine: &&Machine| machine.nr_cpus() >= suite_row.min_cpus;
        match machines.iter().find(fits) {
            Some(machine) => {
                let workload = suite_row.on(machine.nr_cpus(), Scale::FULL)?;
                assumed::of_workload(&workload.name, &workload, args.strict)?;
            }
            None => bail!("{} takes {} CPUs, which no machine has", suite_row.name, suite_row.min_cpus),
        }
        for (machine, described) in machines.iter().enumerate().filter(|(_, machine)| fits(machine)) {
            plans.push(Plan::new(args, change, (machine, &specs[machine], described), (row, suite_row))?);
        }
    }
    plans.sort_by_key(|(plan, _)| (plan.machine, plan.row));
    Ok(plans)
}

fn report(
    args: &cli::Matrix,
    change: &str,
    plans: &[Plan],
    cells: Vec<Cell>,
    machines: Vec<Machine>,
    rows: Vec<Row>,
) -> Result<Report> {
    let mut baseline: Vec<String> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for plan in plans {
        let experiment = plan.experiment();
        let label = &experiment.baseline.label;
        baseline.extend((!baseline.contains(label)).then(|| label.clone()));
        let new = experiment.notes.iter().filter(|note| !notes.contains(note)).cloned().collect::<Vec<_>>();
        notes.extend(new);
    }
    let record = standing::Book::read()?;
    let first = plans.first().context("there is a cell")?.experiment();
    let described = |machine: &Machine| Described {
        name: machine.name.clone(),
        description: machine.description.clone(),
        cpus: machine.nr_cpus(),
    };
    let of = |plan: &Plan| record.hits(first, &rows[plan.row].benchmark());
    let cells =
        plans.iter().zip(cells).map(|(plan, cell)| (plan.machine, plan.row, of(plan), cell)).collect();
    let frame = Frame {
        command: command(args, change),
        change: change.to_owned(),
        baseline,
        runs: args.runs,
        seed: args.seed,
        record: record.standing(first)?,
        machines: machines.iter().map(described).collect(),
        workloads: rows,
        notes,
    };
    Ok(Report::new(frame, cells))
}

/// The command line that makes the same matrix.
fn command(args: &cli::Matrix, change: &str) -> String {
    let mut words = vec!["coreward".to_owned(), "matrix".into(), "--with".into(), change.to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    args.baseline_with.iter().for_each(|changes| option("--baseline-with", changes.clone()));
    args.profile.iter().for_each(|profile| option("--profile", profile.clone()));
    args.machine.iter().for_each(|machine| option("--machine", machine.clone()));
    args.workload.iter().for_each(|workload| option("--workload", workload.clone()));
    args.suite.iter().for_each(|suite| option("--suite", suite.display().to_string()));
    args.cost.iter().for_each(|cost| option("--cost", format!("{}={}", cost.name, cost.value)));
    args.task_group_depth.iter().for_each(|depth| option("--task-group-depth", depth.to_string()));
    option("--runs", args.runs.to_string());
    option("--seed", args.seed.to_string());
    shell::line(words.iter().map(String::as_str))
}
