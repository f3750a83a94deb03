//! `coreward sweep`: many settings of the policy and the machine's costs, on many machines under many workloads.

mod plan;
mod report;
mod space;
mod text;

use std::io::Write;
use std::path::Path;

use anyhow::Result;

use crate::cli;
use crate::output::{self, Outputs};
use crate::state::State;
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

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `0/4`.
    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').map(|(number, of)| (number.parse(), of.parse()));
        match numbers {
            Some((Ok(number), Ok(of))) if number < of && of <= 100_000 => Ok(Shard { number, of }),
            _ => Err("allowed are 0/N to N-1/N, with N up to 100000".into()),
        }
    }
}

pub(crate) fn run(args: &cli::Sweep, out: &mut dyn Write) -> Result<()> {
    let plan = Plan::load(&args.file, args.strict)?;
    let inputs = plan.inputs().into_iter().chain([args.file.clone()]);
    let mut outputs = Outputs::new(inputs.chain(args.state.clone()).chain(args.merge.iter().cloned()));
    let file = args.json.as_deref().filter(|target| *target != Path::new("-"));
    let json = file.map(|target| outputs.create("--json", target)).transpose()?;

    let mut points = plan.points();
    if let Some(Shard { number, of }) = args.shard {
        points = points.into_iter().skip(number).step_by(of).collect();
    }
    let items = plan.items(&points)?;
    let mut state = State::open("sweep", args.state.as_deref())?;
    state.merge(&args.merge)?;
    let done: Vec<Done> =
        work::finish(&items, "runs", &state, work::jobs(args.jobs), |i| plan.run(&points[i]))?;
    if let Some(Shard { number, of }) = args.shard {
        return Ok(writeln!(out, "shard {number}/{of}: {} runs are kept", points.len())?);
    }
    print(args, &plan, &points, &done, json, out)
}

fn print(
    args: &cli::Sweep,
    plan: &Plan,
    points: &[Point],
    done: &[Done],
    json: Option<output::OutputFile>,
    out: &mut dyn Write,
) -> Result<()> {
    let report = Report::new(plan, points, done);
    if let Some(mut file) = json {
        output::json(&mut file, &report)?;
        file.finish()?;
    }
    if args.json.as_deref() == Some(Path::new("-")) {
        output::json(out, &report)?;
    } else {
        out.write_all(text::render(&report, args.all).as_bytes())?;
    }
    out.flush()?;
    Unmet::check(&if args.check { report.broken() } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_many() {
        assert_eq!("2/5".parse(), Ok(Shard { number: 2, of: 5 }));
        for wrong in ["", "1", "5/5", "0/0", "-1/4", "1/", "1/4/8", "0/1000000"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
