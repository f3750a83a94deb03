//! `coreward record`: starts the recorder, which is a separate program because it needs libbpf.

use anyhow::{Result, bail};

use crate::{cli, sibling};

/// Becomes the recorder, whose exit status is that of the command.
pub(crate) fn run(args: &cli::Record) -> Result<()> {
    if !args.decisions && !args.queue {
        bail!("record what? --decisions or --queue");
    }
    let mut command = sibling::command("coreward-record", "`make record`, which needs clang and libbpf")?;
    command.arg("--output").arg(&args.output);
    command.arg("--buffer").arg(args.buffer.to_string());
    if args.queue {
        command.arg("--queue");
    }
    if let Some(limit) = args.limit {
        command.arg("--limit").arg(limit.to_string());
    }
    command.arg("--").args(&args.command);
    Err(sibling::exec(command))
}
