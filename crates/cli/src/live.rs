//! `coreward live` and related commands: starts coreward-live, which is a separate program because it
//! needs libbpf.

use anyhow::Result;

use crate::{cli, sibling};

/// Becomes `coreward-live SUBCOMMAND`, with the same arguments.
pub(crate) fn run(subcommand: &str, args: &cli::PassedOn) -> Result<()> {
    let mut command = sibling::command("coreward-live", "make live")?;
    command.arg(subcommand).args(&args.args);
    Err(sibling::exec(command))
}
