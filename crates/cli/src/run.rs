//! `coreward run`: one workload on one machine under one policy.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use coreward_engine::{NoTrace, Outcome};
use coreward_workload::Workload;

use crate::assumed;
use crate::caller;
use crate::cli;
use crate::domains;
use crate::ftracefile::FtraceFile;
use crate::output::{self, OutputFile, Outputs};
use crate::report::Report;
use crate::schedstat;
use crate::setup::{self, Host};
use crate::tables::{Change, Place, Role, Runs, Tables};
use crate::tracefile::TraceFile;
use crate::unmet::Unmet;

pub(crate) fn run(args: &cli::Run, out: &mut dyn Write) -> Result<()> {
    caller::be_quiet(args.quiet.quiet);
    let (mut host, workload) = setup::from_args(&args.simulated)?;
    host.interval_ns = args.intervals;
    host.skip_steady_pct = args.skip_steady;
    let mut outputs =
        Outputs::new(setup::inputs(&args.simulated.machine, [args.simulated.workload.as_str()]));
    let mut open =
        |option, file: &Option<PathBuf>| file.as_deref().map(|file| outputs.create(option, file)).transpose();
    let schedstat = open("--schedstat", &args.schedstat)?;
    let domains = open("--domains", &args.domains)?;
    let html = open("--html", &args.html)?;
    let trace = open("--trace", &args.trace)?;
    let ftrace = open("--ftrace", &args.ftrace)?;
    let mut tables = Tables::open(&mut outputs, &args.tables.files)?;

    let outcome = match ftrace {
        Some(file) => simulate_to_ftrace(args, &host, &workload, file)?,
        None => simulate(args, &host, &workload, trace)?,
    };
    if let Some(mut file) = schedstat {
        let version = args.schedstat_version.unwrap_or(schedstat::version(host.policy.profile));
        schedstat::write(&mut file, version, &host, &outcome)?;
        file.finish()?;
    }
    if let Some(mut file) = domains {
        domains::write_state(&mut file, &host, &outcome)?;
        file.finish()?;
    }
    let report = Report::new(&host, &workload, &args.simulated, &outcome);
    if let Some(mut file) = html {
        file.write_all(report.html().as_bytes())?;
        file.finish()?;
    }
    rows(args, &host, &workload, &outcome, &mut tables)?;
    tables.finish()?;
    if outcome.lent > 0 {
        let ended = format!(
            "{} waits ended although nothing had come, because nothing else could have happened: other tasks had taken it",
            outcome.lent
        );
        assumed::say(&workload.name, &ended);
    }
    if args.json {
        output::json(out, &report)?
    } else if !args.quiet.quiet {
        report.text(out)?
    }
    let broken: Vec<_> = outcome.checks.violations.iter().map(ToString::to_string).collect();
    if args.check { Unmet::check(&broken) } else { Ok(()) }
}

fn rows(
    args: &cli::Run,
    host: &Host,
    workload: &Workload,
    outcome: &Outcome,
    tables: &mut Tables,
) -> Result<()> {
    let changes = host.policy.deviations().join(",");
    let runs = Runs {
        role: Role::Single,
        label: if changes.is_empty() { host.policy.profile.name() } else { &changes },
        host,
        seed: args.simulated.seed,
        runs: 1,
        value: |_, metric| outcome.metrics.get(metric),
    };
    let scale = args.simulated.scale;
    let place = Place { command: "run", experiment: None, case: None, workload: &workload.name, scale };
    tables.add(&place, &runs, |_| Change::default())
}

fn simulate(args: &cli::Run, host: &Host, workload: &Workload, trace: Option<OutputFile>) -> Result<Outcome> {
    let seed = args.simulated.seed;
    let Some(file) = trace else {
        return host.run(workload, seed, &mut NoTrace);
    };
    let mut trace = TraceFile::new(file, host, workload)?;
    let outcome = host.run(workload, seed, &mut trace)?;
    trace.finish()?;
    Ok(outcome)
}

fn simulate_to_ftrace(
    args: &cli::Run,
    host: &Host,
    workload: &Workload,
    file: OutputFile,
) -> Result<Outcome> {
    let mut trace = FtraceFile::new(file, host.machine.nr_cpus(), workload)?;
    let outcome = host.run(workload, args.simulated.seed, &mut trace)?;
    trace.finish()?;
    Ok(outcome)
}
