//! `coreward record`: runs the recorder, a program of its own because it needs libbpf.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cli;

/// The program that records.
const RECORDER: &str = "coreward-record";

/// Becomes the recorder, whose exit status is that of the command.
pub(crate) fn run(args: &cli::Record) -> Result<()> {
    if !args.decisions {
        bail!("record what? only --decisions can be recorded yet");
    }
    let Some(recorder) = recorder() else {
        bail!(
            "{RECORDER} is neither beside this program nor in PATH: build it with `make record`, which needs clang and \
             libbpf"
        );
    };
    let mut command = Command::new(&recorder);
    command.arg("--output").arg(&args.output);
    command.arg("--buffer").arg(args.buffer.to_string());
    if let Some(limit) = args.limit {
        command.arg("--limit").arg(limit.to_string());
    }
    let error = command.arg("--").args(&args.command).exec();
    Err(error).with_context(|| format!("cannot run {}", recorder.display()))
}

/// Beside this program, or else the first in PATH.
fn recorder() -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = beside.into_iter().chain(env::split_paths(&path).collect::<Vec<_>>());
    directories.map(|directory| directory.join(RECORDER)).find(|file| file.is_file())
}
