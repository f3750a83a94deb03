//! Options that several commands have.

use std::path::PathBuf;

use clap::Args;

use crate::setup::SKIP_STEADY_PCT;
use crate::shard::Shard;
use crate::tables::Target;

pub(super) const MACHINE_HELP: &str = "A preset (see coreward machines), a path ending in .toml or .json, sysfs (this machine), sysfs:DIR, hwloc:FILE or \
     a shorthand like 2n4l8c2t: nodes, LLCs per node, cores per LLC, threads per core";

/// What a person reads.
#[derive(Args)]
pub(crate) struct Quiet {
    /// Print neither the report nor progress and notes, only errors, and what --json asks for [default: print them]
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What the exit status says.
#[derive(Args)]
pub(crate) struct Gate {
    /// Exit with status 1 if a headline metric is worse beyond noise [default: only report it]
    #[arg(long)]
    pub(crate) fail_if_worse: bool,
}

/// The end of the help of commands that compare.
pub(super) const EXIT_STATUS: &str = "Exit status:\n  0  all runs were made; with --fail-if-worse, nothing is worse beyond noise\n  \
    1  --fail-if-worse: something is worse; --check: an invariant was broken\n  2  the input was refused, or a run failed";

/// Results as tables.
#[derive(Args)]
pub(crate) struct Tables {
    /// Also write every metric of every run to a file, as a table whose format is that of the ending: Parquet, CSV or lines of
    /// JSON (see docs/tables.md). May be repeated [default: none]
    #[arg(long = "output", value_name = "F.parquet|F.csv|F.jsonl")]
    pub(crate) files: Vec<Target>,
}

pub(super) fn skip_steady(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse().ok().filter(|percent| SKIP_STEADY_PCT.contains(percent));
    let (least, most) = (SKIP_STEADY_PCT.start(), SKIP_STEADY_PCT.end());
    percent.ok_or_else(|| format!("allowed are {least} to {most}"))
}

/// The work of a sweep or matrix in shares.
#[derive(Args)]
pub(crate) struct Shares {
    /// Make only a share of the runs (of a matrix: of the cells), number I of N from 0 on, and keep it in the file of
    /// --state; print no report. May be repeated [default: all]
    #[arg(long, value_name = "I/N", requires = "state", conflicts_with_all = ["json", "html", "files", "all", "check", "fail_if_worse"])]
    pub(crate) shard: Vec<Shard>,
    /// Print what no file of --state and --merge has, each run or cell as the share that --shard takes, and make none
    /// [default: no]
    #[arg(long, conflicts_with_all = ["shard", "json", "html", "files", "all", "check", "fail_if_worse"])]
    pub(crate) left: bool,
    /// Also take what is finished from the --state file of a share. May be repeated [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) merge: Vec<PathBuf>,
}
