//! `coreward parity`: recorded decisions of a kernel, held against the policy.

use std::io::Write;
use std::path::Path;

use anyhow::{Error, Result};
use coreward_parity::{Reader, Replay, Summary};

use crate::cli;
use crate::policy;

pub(crate) fn run(args: &cli::Parity, out: &mut dyn Write) -> Result<()> {
    let mut total = Summary::default();
    for file in &args.files {
        total.add(&one_file(args, file, out)?);
    }
    if args.files.len() > 1 {
        write!(out, "all files\n{}", total.render())?;
    }
    Ok(())
}

fn one_file(args: &cli::Parity, file: &Path, out: &mut dyn Write) -> Result<Summary> {
    let mut reader = Reader::open(file)?;
    let host = &reader.machine().host;
    let (profile, other) = match &args.profile {
        Some(name) => (policy::profile(name).map_err(Error::msg)?, false),
        None => host.profile(),
    };
    let note = if other { " (nearest)" } else { "" };
    writeln!(out, "{}: {}, {} CPUs, profile {}{note}", file.display(), host.release, host.nr_cpus, profile.name())?;
    let (features, tunables) = (host.features(profile), host.tunables());
    let mut replay = Replay::new(reader.machine(), features, tunables).map_err(Error::msg)?;
    let mut summary = Summary::default();
    for record in &mut reader {
        for outcome in replay.compare(record?) {
            summary.count(&outcome);
        }
    }
    writeln!(out, "{} lost\n\n{}", reader.lost().unwrap_or(0), summary.render())?;
    Ok(summary)
}
