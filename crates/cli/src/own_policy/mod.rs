//! `coreward policy`: a policy of the user's own, as a directory.

mod check;
mod new;

use std::io::Write;

use anyhow::Result;

use crate::cli::PolicyCommand;

pub(crate) fn run(command: &PolicyCommand, out: &mut dyn Write) -> Result<()> {
    match command {
        PolicyCommand::New(args) => new::run(args, out),
        PolicyCommand::Check(args) => check::run(args, out),
    }
}
