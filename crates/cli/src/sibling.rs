//! Separate programs that some subcommands run, because these need libbpf.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

/// The program of that name, which `made_by` builds, with what that needs.
///
/// # Errors
/// It is not there.
pub(crate) fn command(name: &str, made_by: &str) -> Result<Command> {
    match find(name) {
        Some(program) => Ok(Command::new(program)),
        None => bail!("{name} is neither beside this program nor in PATH: build it with {made_by}"),
    }
}

/// Becomes the program.
///
/// Returns only if that failed: why.
pub(crate) fn exec(mut command: Command) -> anyhow::Error {
    let program = Path::new(command.get_program()).display().to_string();
    anyhow::Error::new(command.exec()).context(format!("cannot run {program}"))
}

/// Beside this program, or else the first in PATH.
fn find(name: &str) -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = beside.into_iter().chain(env::split_paths(&path).collect::<Vec<_>>());
    directories.map(|directory| directory.join(name)).find(|file| file.is_file())
}
