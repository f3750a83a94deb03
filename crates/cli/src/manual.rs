//! `coreward completions` and `coreward manual`: what shells and `man` have to know.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::{self, Cli};
use crate::output::Outputs;

/// The date of all pages would be that of the build; without one they are the same each time.
const NO_DATE: &str = "";

pub(crate) fn completions(args: &cli::Completions, out: &mut dyn Write) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "coreward", &mut script);
    Ok(out.write_all(&script)?)
}

/// Writes `coreward.1` and `coreward-COMMAND.1` for each command.
pub(crate) fn run(args: &cli::Manual) -> Result<()> {
    let directory = &args.directory;
    fs::read_dir(directory).with_context(|| format!("cannot write to {}", directory.display()))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(&command, directory)
}

fn pages(command: &Command, directory: &Path) -> Result<()> {
    let page = Man::new(command.clone().version(env!("CARGO_PKG_VERSION"))).date(NO_DATE);
    let mut file = Outputs::new([]).create("manual", &directory.join(page.get_filename()))?;
    page.render(&mut file)?;
    file.finish()?;
    command.get_subcommands().try_for_each(|command| pages(command, directory))
}
