//! `coreward sweep`: many settings of the policy and the machine's costs, on many machines under many workloads.

mod page;
mod plan;
mod report;
mod space;
mod text;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::Result;

use crate::caller;
use crate::cli;
use crate::figure;
use crate::output::{self, OutputFile, Outputs};
use crate::state::State;
use crate::tables::{Change, Place, Role, Runs, Tables};
use crate::unmet::Unmet;
use crate::work;
use plan::{Done, Plan, Point};
use report::Report;

/// Some of the runs of a sweep: those whose number, divided by `of`, leaves `number`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}/{}", self.number, self.of)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `0/4`.
    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').map(|(number, of)| (number.parse(), of.parse()));
        match numbers {
            Some((Ok(number), Ok(of))) if number < of && of <= plan::MAX_POINTS => Ok(Shard { number, of }),
            _ => Err(format!("allowed are 0/N to N-1/N, with N up to {}", plan::MAX_POINTS)),
        }
    }
}

pub(crate) fn run(args: &cli::Sweep, out: &mut dyn Write) -> Result<()> {
    caller::be_quiet(args.quiet.quiet);
    let plan = Plan::load(&args.file, args.strict)?;
    let inputs = plan.inputs().into_iter().chain([args.file.clone()]);
    let mut outputs = Outputs::new(inputs.chain(args.state.clone()).chain(args.merge.iter().cloned()));
    let file = args.json.as_deref().filter(|target| *target != Path::new("-"));
    let json = file.map(|target| outputs.create("--json", target)).transpose()?;
    let html = args.html.as_deref().map(|target| outputs.create("--html", target)).transpose()?;
    let tables = Tables::open(&mut outputs, &args.tables.files)?;

    let points = share(plan.points(), &args.shard);
    let items = plan.items(&points)?;
    let mut state = State::open("sweep", args.state.as_deref())?;
    state.merge(&args.merge)?;
    if args.left {
        return left(&plan, &points, &work::left(&items, &state), out);
    }
    let done: Vec<Done> =
        work::finish(&items, "runs", &state, work::jobs(args.jobs), |i| plan.run(&points[i]))?;
    if !args.shard.is_empty() {
        let shards: Vec<String> = args.shard.iter().map(Shard::to_string).collect();
        return Ok(writeln!(out, "shard {}: {} runs are kept", shards.join(", "), points.len())?);
    }
    print(args, &plan, &points, &done, (json, html, tables), out)
}

/// The points of the shards in their order; without shards all.
fn share(points: Vec<Point>, shards: &[Shard]) -> Vec<Point> {
    if shards.is_empty() {
        return points;
    }
    let of = |shard: &Shard| (shard.number..points.len()).step_by(shard.of);
    shards.iter().flat_map(of).collect::<BTreeSet<_>>().into_iter().map(|i| points[i]).collect()
}

/// Each of the points that are left as the shard of it alone, and what it is.
fn left(plan: &Plan, points: &[Point], left: &[usize], out: &mut dyn Write) -> Result<()> {
    let of = points.len();
    for &number in left {
        writeln!(out, "{} {}", Shard { number, of }, plan.describe(&points[number]))?;
    }
    Ok(out.flush()?)
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
    tables.finish()?;
    if let Some(mut file) = html {
        file.write_all(page::render(&report, &serde_json::to_string_pretty(&report)?).as_bytes())?;
        file.finish()?;
    }
    if let Some(mut file) = json {
        output::json(&mut file, &report)?;
        file.finish()?;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_many() {
        assert_eq!("2/5".parse(), Ok(Shard { number: 2, of: 5 }));
        for wrong in ["", "1", "5/5", "0/0", "-1/4", "1/", "1/4/8", "0/1000000", "1/500001"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
