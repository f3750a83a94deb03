//! `coreward record`: starts the recorder, which is a separate program because it needs libbpf.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use coreward_workload::recorded;
use signal_hook::consts::SIGINT;

use crate::{assumed, cli, import, sibling};

/// Becomes the recorder, whose exit status is that of the command; or runs it, and imports what it recorded.
pub(crate) fn run(args: &cli::Record, out: &mut dyn Write) -> Result<()> {
    if !args.decisions && !args.queue && !args.workload {
        bail!("record what? --decisions, --queue or --workload");
    }
    let default = if args.workload { "workload.cwr" } else { "decisions.cwc" };
    let output = args.output.clone().unwrap_or_else(|| default.into());
    let imports = args.workload && recorded::Form::of(&output.to_string_lossy()).is_some();
    let decides = args.decisions || args.queue;
    if imports && decides {
        bail!("--output: {} would have no decisions (allowed: a name that ends in .cwr)", output.display());
    }
    if args.workload && args.limit.is_some() && !decides {
        bail!("--limit counts decisions, and none are recorded without --decisions or --queue");
    }
    if imports {
        return record_and_import(args, &output, out);
    }
    if args.machine.is_some() {
        bail!("--machine: it is of the import, so --output is needed (allowed: {})", recorded::ALLOWED);
    }
    Err(sibling::exec(recorder(args, &output)?))
}

fn recorder(args: &cli::Record, output: &Path) -> Result<std::process::Command> {
    let mut command = sibling::command("coreward-record", "`make record`, which needs clang and libbpf")?;
    command.arg("--output").arg(output);
    command.arg("--buffer").arg(args.buffer.to_string());
    if args.queue {
        command.arg("--queue");
    }
    if args.decisions && args.workload {
        command.arg("--decisions");
    }
    if let Some(limit) = args.limit {
        command.arg("--limit").arg(limit.to_string());
    }
    if args.workload {
        command.arg("--workload").arg("--max-size").arg(args.max_size.to_string());
    }
    if let Some(duration) = args.duration {
        command.arg("--duration").arg(duration.to_string());
    }
    if args.tracepoints {
        command.arg("--tracepoints");
    }
    command.arg("--").args(&args.command);
    Ok(command)
}

/// Gives the recording a name beside the output, which no file has.
fn keep(recording: &Path, output: &Path) -> Result<PathBuf> {
    let name = |number: usize| output.with_extension(format!("{number}.cwr"));
    let free = (1..).map(name).find(|name| !name.exists()).expect("there are numbers enough");
    fs::rename(recording, &free).with_context(|| format!("cannot write {}", free.display()))?;
    Ok(free)
}

/// The recording is written beside the workload, where there has to be room anyway.
fn record_and_import(args: &cli::Record, output: &Path, out: &mut dyn Write) -> Result<()> {
    let beside = match output.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    if let Some(machine) = &args.machine {
        // before anything is recorded
        assumed::machine(machine, false).context("--machine")?;
    }
    let directory = tempfile::Builder::new().prefix(".coreward-").tempdir_in(&beside);
    let directory = directory.with_context(|| output.display().to_string())?;
    let recording = directory.path().join("workload.cwr");
    // Ctrl-C ends the recorder, whose recording is then imported
    signal_hook::flag::register(SIGINT, Arc::default()).context("cannot handle Ctrl-C")?;
    let status = recorder(args, &recording)?.status().context("cannot run coreward-record")?;
    if !recording.exists() {
        bail!("nothing was recorded");
    }
    let imported = import::run(
        &cli::Import {
            file: recording.clone(),
            output: Some(output.to_owned()),
            machine: args.machine.clone(),
            ..cli::Import::default()
        },
        out,
    );
    if let Err(error) = imported {
        let kept = keep(&recording, output)?;
        return Err(error.context(format!("the recording is in {}, but cannot be imported", kept.display())));
    }
    if !status.success() {
        out.flush()?;
        drop(directory);
        std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()));
    }
    Ok(())
}
