//! `coreward sweep`: many settings of the policy and the machine's costs, on many machines under many workloads.

mod page;
mod plan;
mod report;
mod space;
mod text;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use coreward_metrics::Metric;
use coreward_workload::Scale;

use crate::caller;
use crate::cli;
use crate::figure;
use crate::look;
use crate::matrix::suite::Row;
use crate::output::{self, OutputFile, Outputs};
use crate::shard;
use crate::state::State;
use crate::tables::{Change, Place, Role, Runs, Tables};
use crate::unmet::Unmet;
use crate::work;
use plan::{Done, Plan, Point};
use report::Report;

pub(crate) fn run(args: &cli::Sweep, out: &mut dyn Write) -> Result<()> {
    caller::be_quiet(args.quiet.quiet);
    let plan = Plan::load(&args.file, args.strict)?;
    let inputs = plan.inputs().into_iter().chain([args.file.clone()]);
    let mut outputs = Outputs::new(inputs.chain(args.state.clone()).chain(args.shares.merge.iter().cloned()));
    let file = args.json.as_deref().filter(|target| *target != Path::new("-"));
    let json = file.map(|target| outputs.create("--json", target)).transpose()?;
    let html = args.html.as_deref().map(|target| outputs.create("--html", target)).transpose()?;
    let tables = Tables::open(&mut outputs, &args.tables.files)?;

    let shards = &args.shares.shard;
    let points = shard::share(plan.points(), shards);
    let items = plan.items(&points)?;
    let mut state = State::open("sweep", args.state.as_deref())?;
    state.merge(&args.shares.merge)?;
    if args.shares.left {
        return shard::left(points.len(), &work::left(&items, &state), |i| plan.describe(&points[i]), out);
    }
    let done: Vec<Done> =
        work::finish(&items, "runs", &state, work::jobs(args.jobs), |i| plan.run(&points[i]))?;
    if !shards.is_empty() {
        return shard::kept(shards, points.len(), "runs", out);
    }
    for (point, done) in points.iter().zip(&done) {
        let Row { name, metrics, .. } = &plan.rows[point.row];
        let first = metrics.first().filter(|_| {
            plan.scale == Scale::FULL && metrics.iter().all(|it| done.metrics.get(*it).is_none())
        });
        if let Some(metric) = first {
            return Err(figure::no_run_has(*metric).context(name.clone()));
        }
    }
    print(args, &plan, &points, &done, (json, html, tables), out)
}

fn print(
    args: &cli::Sweep,
    plan: &Plan,
    points: &[Point],
    done: &[Done],
    (json, html, mut tables): (Option<OutputFile>, Option<OutputFile>, Tables),
    out: &mut dyn Write,
) -> Result<()> {
    let report = Report::new(plan, points, done);
    rows(plan, points, done, &report, &mut tables)?;
    let mut files = tables.complete()?;
    if let Some(mut file) = html {
        let (look, data) = (look(plan, points, done, &report)?, serde_json::to_string_pretty(&report)?);
        file.write_all(page::render(&report, &look, &data).as_bytes())?;
        files.push(file.complete()?);
    }
    if let Some(mut file) = json {
        output::json(&mut file, &report)?;
        files.push(file.complete()?);
    }
    output::place(files)?;
    if args.json.as_deref() == Some(Path::new("-")) {
        output::json(out, &report)?;
    } else if !args.quiet.quiet {
        out.write_all(text::render(&report, args.all).as_bytes())?;
    }
    out.flush()?;
    let mut unmet = if args.check { report.broken() } else { Vec::new() };
    if args.gate.fail_if_worse && report.summary.worse > 0 {
        unmet.push(figure::worse_cells(report.summary.worse, report.summary.cells));
    }
    Unmet::check(&unmet)
}

/// The first runs of the outermost cell and its baseline, drawn.
fn look(plan: &Plan, points: &[Point], done: &[Done], report: &Report) -> Result<String> {
    let Some(cell) = report.outermost() else { return Ok(String::new()) };
    let is_it = |point: &Point| {
        plan.machines[point.machine].hosts[0].machine.name == cell.machine
            && plan.rows[point.row].name == cell.name
            && plan.side(point.side) == cell.setting
    };
    let Some(at) = points.iter().position(is_it) else { return Ok(String::new()) };
    let on = &plan.machines[points[at].machine];
    let side = |side| look::Side { label: plan.side(side), seed: plan.seed, host: &on.hosts[side] };
    let workload = on.workloads[points[at].row].as_ref().context("the workload fits the machine")?;
    let runtime_s = done[at].metrics.get(Metric::runtime_s).unwrap_or(0.0);
    look::runs([0, points[at].side].map(side).into_iter(), workload, runtime_s)
}

/// All runs: the points of a side stand together, and those of the sides of a machine and a workload.
fn rows(plan: &Plan, points: &[Point], done: &[Done], report: &Report, tables: &mut Tables) -> Result<()> {
    let mut cells = report.cells.iter();
    for (points, done) in points.chunks(plan.runs as usize).zip(done.chunks(plan.runs as usize)) {
        let Point { machine, row, side, seed } = points[0];
        let on = &plan.machines[machine];
        let place = Place {
            command: "sweep",
            experiment: Some(&plan.name),
            case: Some(&plan.rows[row].name),
            workload: on.workloads[row].as_ref().map_or("", |workload| &workload.name),
            scale: plan.scale,
        };
        let cell = if side == 0 { None } else { cells.next() };
        let runs = Runs {
            role: if cell.is_some() { Role::Variant } else { Role::Baseline },
            label: plan.side(side),
            host: &on.hosts[side],
            seed,
            runs: done.len(),
            value: |run: usize, metric| done[run].metrics.get(metric),
        };
        let change = |metric| cell.map_or_else(Change::default, |cell| Change::among(&cell.figures, metric));
        tables.add(&place, &runs, change)?;
    }
    Ok(())
}
