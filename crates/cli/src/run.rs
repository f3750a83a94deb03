//! `coreward run`: one workload on one machine under one policy.

use std::io::Write;

use anyhow::{Result, bail};
use coreward_engine::{NoTrace, Outcome};
use coreward_workload::Workload;

use crate::cli;
use crate::domains;
use crate::output::{self, OutputFile};
use crate::report::Report;
use crate::schedstat;
use crate::setup::{self, Host};
use crate::tracefile::TraceFile;

pub(crate) fn run(args: &cli::Run, out: &mut dyn Write) -> Result<()> {
    let files = [("--schedstat", &args.schedstat), ("--domains", &args.domains), ("--trace", &args.trace)];
    for (index, (second, path)) in files.iter().enumerate() {
        if let Some((first, _)) = files[..index].iter().find(|(_, other)| path.is_some() && other == path) {
            bail!("{first} and {second} name the same file");
        }
    }
    let (host, workload) = setup::from_args(&args.simulated)?;
    let schedstat = args.schedstat.as_deref().map(OutputFile::create).transpose()?;
    let domains = args.domains.as_deref().map(OutputFile::create).transpose()?;
    let trace = args.trace.as_deref().map(OutputFile::create).transpose()?;

    let outcome = simulate(args, &host, &workload, trace)?;
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
    if args.json { output::json(out, &report) } else { report.text(out) }
}

fn simulate(args: &cli::Run, host: &Host, workload: &Workload, trace: Option<OutputFile>) -> Result<Outcome> {
    let seed = args.simulated.seed;
    let Some(file) = trace else {
        return host.run(workload, seed, &mut NoTrace);
    };
    let mut trace = TraceFile::new(file, host.machine.nr_cpus(), &workload.name)?;
    let outcome = host.run(workload, seed, &mut trace)?;
    trace.finish()?;
    Ok(outcome)
}
