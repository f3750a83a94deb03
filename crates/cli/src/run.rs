//! `coreward run`: one workload on one machine under one policy.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use coreward_engine::{NoTrace, Outcome, Trace};
use coreward_metrics::Metric;
use coreward_workload::{Workload, recorded};

use crate::assumed;
use crate::caller;
use crate::classes::{Both, Watched};
use crate::cli;
use crate::domains;
use crate::eventfile::{EventFile, Reader};
use crate::output::{self, Outputs};
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
    let mut outputs = Outputs::new(
        setup::inputs(&args.simulated.machine, [args.simulated.workload.as_str()])
            .into_iter()
            .chain(args.simulated.policy.clone()),
    );
    let mut open =
        |option, file: &Option<PathBuf>| file.as_deref().map(|file| outputs.create(option, file)).transpose();
    let schedstat = open("--schedstat", &args.schedstat)?;
    let domains = open("--domains", &args.domains)?;
    let html = open("--html", &args.html)?;
    let trace = open("--trace", &args.trace)?;
    let ftrace = open("--ftrace", &args.ftrace)?.map(|file| (Reader::Ftrace, file));
    let perf = open("--perf-data", &args.perf_data)?.map(|file| (Reader::Perf, file));
    let mut tables = Tables::open(&mut outputs, &args.tables.files)?;

    // of a steady middle that is skipped there is nothing to watch
    let recorded = recorded::named(&args.simulated.workload).filter(|_| args.skip_steady.is_none());
    let recorded = recorded.transpose()?;
    let mut watched = recorded.map(|recorded| Watched::new(recorded, &workload));
    let mut files = Vec::new();
    let outcome = match ftrace.or(perf) {
        Some((reader, file)) => {
            let mut events = EventFile::new(reader, file, host.machine.nr_cpus(), &workload)?;
            let outcome = watch(args, &host, &workload, &mut events, watched.as_mut())?;
            files.push(events.complete()?);
            outcome
        }
        None => match trace {
            Some(file) => {
                let mut trace = TraceFile::new(file, &host, &workload)?;
                let outcome = watch(args, &host, &workload, &mut trace, watched.as_mut())?;
                files.push(trace.complete()?);
                outcome
            }
            None => watch(args, &host, &workload, &mut NoTrace, watched.as_mut())?,
        },
    };
    let runtime_s = outcome.metrics.get(Metric::runtime_s).unwrap_or_default();
    let classes = watched.map(|watched| watched.finish(runtime_s)).unwrap_or_default();
    if let Some(mut file) = schedstat {
        let version = args.schedstat_version.unwrap_or(schedstat::version(host.policy.profile));
        schedstat::write(&mut file, version, &host, &outcome)?;
        files.push(file.complete()?);
    }
    if let Some(mut file) = domains {
        domains::write_state(&mut file, &host, &outcome)?;
        files.push(file.complete()?);
    }
    let report = Report::new(&host, &workload, &args.simulated, &outcome, &classes);
    if let Some(mut file) = html {
        file.write_all(report.html().as_bytes())?;
        files.push(file.complete()?);
    }
    rows(args, &host, &workload, &outcome, &mut tables)?;
    files.extend(tables.complete()?);
    output::place(files)?;
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

/// Runs the workload before both observers.
fn watch(
    args: &cli::Run,
    host: &Host,
    workload: &Workload,
    trace: &mut dyn Trace,
    watched: Option<&mut Watched>,
) -> Result<Outcome> {
    let seed = args.simulated.seed;
    match watched {
        Some(watched) => host.run(workload, seed, &mut Both(trace, watched)),
        None => host.run(workload, seed, trace),
    }
}
