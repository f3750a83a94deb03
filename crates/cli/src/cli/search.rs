//! Commands that try many settings.

use std::path::PathBuf;

use clap::Args;
use coreward_input::within;

use super::common::{EXIT_STATUS, Gate, Quiet, Shares, Tables};

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Sweep {
    /// A file that names machines, workloads and settings (see docs/sweep.md)
    #[arg(value_name = "SWEEP.toml")]
    pub(crate) file: PathBuf,
    /// Number of runs that are made at once; the result does not depend on it [default: the number of CPUs of this machine]
    #[arg(long, value_name = "J", value_parser = within(1u32..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Keep finished runs in a file, and do not make those again that are in it: a sweep that was killed continues where it
    /// was, and one that was extended makes only what is new [default: nothing is kept]
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shares: Shares,
    /// Exit with status 1 if a run broke an invariant, as with coreward run --check [default: only report it]
    #[arg(long)]
    pub(crate) check: bool,
    /// Print all settings and every cell [default: the 20 best settings]
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON instead of text, or with =F write it to a file beside the text [default: no]
    #[arg(long, value_name = "F", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report as an HTML page to a file [default: no]
    #[arg(long, value_name = "F")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) gate: Gate,
    #[command(flatten)]
    pub(crate) quiet: Quiet,
    #[command(flatten)]
    pub(crate) tables: Tables,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
}

/// The options of `python3 -m coreward.tune`, which carries them out.
#[derive(Args)]
pub(crate) struct Tune {
    /// The study: machines, workloads, and what is varied (see docs/tuning.md)
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Keep finished runs in a file, and do not make those again that are in it [default: nothing is kept]
    #[arg(long, value_name = "F")]
    pub(crate) state: Option<PathBuf>,
    /// Number of runs that are made at once; the result does not depend on it [default: the number of CPUs of this machine]
    #[arg(long, value_name = "N", value_parser = within(1u32..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Also write the result as JSON to a file [default: no]
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the result as an HTML page to a file [default: no]
    #[arg(long, value_name = "F")]
    pub(crate) html: Option<PathBuf>,
    /// Write each setting of the table for use, into DIR/NUMBER: options of coreward live, a script for the kernel's scheduler,
    /// a profile of TuneD, a drop-in for systemd [default: no]
    #[arg(long, value_name = "DIR")]
    pub(crate) export: Option<PathBuf>,
}
