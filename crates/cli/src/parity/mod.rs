//! `coreward parity`: compares recorded decisions of a kernel with the policy's.

mod explain;
mod list;
mod report;
mod require;
mod settings;

use std::io::Write;

use anyhow::{Result, bail};

use crate::cli;

pub(crate) use require::Requirement;

pub(crate) fn run(args: &cli::Parity, out: &mut dyn Write) -> Result<()> {
    if let Some(number) = args.explain {
        let [file] = &args.files[..] else {
            bail!("--explain takes one file, given are {}", args.files.len());
        };
        return explain::run(args, file, number, out);
    }
    match args.list {
        Some(which) => list::run(args, which, out),
        None => report::run(args, out),
    }
}
