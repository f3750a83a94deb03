//! The `coreward` command: one module for each subcommand, and what they share.
//!
//! Every error is one line, `coreward: …`, and exit status 2 (1 if a requirement is not met). Files are written
//! completely or not at all (`output`).

mod address;
mod assumed;
mod calibrate;
mod call;
mod caller;
mod classes;
mod cli;
mod command_line;
mod compare;
mod domains;
mod effort;
mod eventfile;
pub mod experiment;
mod explain;
mod features;
mod fidelity;
mod figure;
mod import;
mod intervals;
mod live;
mod look;
mod machine_save;
mod machines;
mod manual;
mod matrix;
mod output;
mod own_policy;
mod parity;
mod policy;
mod prepared;
mod progress;
mod record;
mod report;
mod run;
mod scale;
mod schedstat;
mod setup;
mod shard;
mod shell;
mod sibling;
mod standing;
mod state;
mod sweep;
mod tables;
mod threads;
mod topology;
mod tracefile;
mod tune;
mod uncertainty;
mod unmet;
mod validate;
mod work;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use coreward_input::Printer;

pub use call::{Answer, Files, call, draw};
use cli::{Cli, Command};
use output::{Named, UntilClosed};
pub use progress::Told;

/// Exit status of every failure, as for a wrong command line.
const FAILURE: u8 = 2;

/// Exit status if all went well, but a requirement is not met.
const UNMET: u8 = 1;

/// Runs the command that the process was called with.
pub fn main() -> ExitCode {
    let mut out = Printer::new(Named::new("to standard output", UntilClosed::new(io::stdout().lock())));
    match parse(env::args_os().collect()).and_then(|command| carry_out(command, &mut out)) {
        Err(error) if is_help(&error) => match error.downcast_ref().map_or(Ok(()), clap::Error::print) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                fail(FAILURE, &format!("cannot write to standard output: {error}"))
            }
            _ => ExitCode::SUCCESS,
        },
        Err(error) if error.is::<unmet::Unmet>() => fail(UNMET, &message(&error)),
        Err(error) => fail(FAILURE, &message(&error)),
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Reads a command line, from the program's name on.
fn parse(args: Vec<OsString>) -> anyhow::Result<Command> {
    let args = command_line::join_workload(args).map_err(anyhow::Error::msg)?;
    let matches = takes_negative_numbers(Cli::command()).try_get_matches_from(args)?;
    Ok(Cli::from_arg_matches(&matches)?.command)
}

/// A negative number is the value of the option before it, so that an option which takes none says so: otherwise `-1` is an
/// option that does not exist.
fn takes_negative_numbers(command: clap::Command) -> clap::Command {
    let takes = |arg: clap::Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(takes).mut_subcommands(takes_negative_numbers)
}

/// Carries out a command, and prints all of its result.
fn carry_out(command: Command, out: &mut dyn Write) -> anyhow::Result<()> {
    dispatch(command, out)?;
    Ok(out.flush()?)
}

fn dispatch(command: Command, out: &mut dyn Write) -> anyhow::Result<()> {
    match command {
        Command::Machines(args) => machines::run(&args, out),
        Command::Machine(args) => match args.command {
            cli::MachineCommand::Save(args) => machine_save::run(&args, out),
        },
        Command::Topology(args) => topology::run(&args, out),
        Command::Domains(args) => domains::run(&args, out),
        Command::Features(args) => features::run(&args, out),
        Command::Run(args) => run::run(&args, out),
        Command::Compare(args) => compare::run(&args, out),
        Command::Matrix(args) => matrix::run(&args, out),
        Command::Sweep(args) => sweep::run(&args, out),
        Command::Tune(_) => tune::run(),
        Command::Experiment(args) => experiment::command::run(&args, out),
        Command::Fidelity(args) => fidelity::run(&args, out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Calibrate(args) => calibrate::run(&args, out),
        Command::Parity(args) => parity::run(&args, out),
        Command::Validate(args) => validate::run(&args, out),
        Command::Record(args) => record::run(&args, out),
        Command::Import(args) => import::run(&args, out),
        Command::Completions(args) => manual::completions(&args, out),
        Command::Manual(args) => manual::run(&args),
        Command::Policy(command) => own_policy::run(&command, out),
        Command::Live(_) | Command::Shadow(_) | Command::Top(_) | Command::Get(_) | Command::Set(_) => {
            live::run()
        }
    }
}

/// Help, which goes to standard output.
fn is_help(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref().map(clap::Error::kind);
    matches!(kind, Some(ErrorKind::DisplayHelp | ErrorKind::DisplayVersion))
}

fn fail(status: u8, message: &str) -> ExitCode {
    caller::tell(&format!("coreward: {message}"));
    ExitCode::from(status)
}

/// An error as one line.
fn message(error: &anyhow::Error) -> String {
    let text = error.downcast_ref().map_or_else(|| format!("{error:#}"), usage);
    coreward_input::message(&text)
}

/// A usage error shows only what is wrong, what is allowed, and what may have been meant.
fn usage(error: &clap::Error) -> String {
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let text = error.render().to_string();
            let words =
                text.lines().find_map(|line| line.trim().strip_prefix("Usage: ")).unwrap_or("coreward");
            let named: Vec<_> = words.split(' ').take_while(|word| !word.starts_with(['<', '['])).collect();
            format!("no command given, see {} --help", named.join(" "))
        }
        _ => {
            let text = error.render().to_string();
            let mut parts = text.split("\n\n");
            let what = parts.next().unwrap_or_default().trim_start_matches("error: ");
            let similar = parts.next().and_then(|tip| tip.trim().strip_prefix("tip: a similar"));
            let similar = similar.map(|similar| format!(", a similar{similar}")).unwrap_or_default();
            format!("{what}{similar}")
        }
    }
}
