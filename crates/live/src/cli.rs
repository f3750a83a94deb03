//! The command line: the subcommands, whose options are in `coreward-live-args`.

use clap::{Parser, Subcommand};
use coreward_live_args::{Get, Live, Set, Shadow, Top};

use crate::parity;

/// coreward's policy on the running kernel.
#[derive(Parser)]
#[command(name = "coreward", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Schedule this machine with the policy, through sched_ext
    Live(Live),
    /// Watch where this kernel places tasks, and show where the policy would have placed them
    Shadow(Shadow),
    /// Show what the running scheduler does
    Top(Top),
    /// Print the settings of the running scheduler
    Get(Get),
    /// Change settings of the running scheduler
    Set(Set),
    /// Repeat recorded decisions natively and in BPF, and compare the two
    Parity(parity::Parity),
}
