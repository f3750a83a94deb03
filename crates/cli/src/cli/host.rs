//! Commands that measure this machine, and hold the simulation against it.

use std::path::PathBuf;

use clap::Args;
use coreward_engine::Settings;
use coreward_input::within;
use coreward_policy::Assignment;
use coreward_state::Options;

use super::machine::machine_path;
use crate::validate;

#[derive(Args)]
pub(crate) struct Calibrate {
    /// Write a machine file: this machine as sysfs shows it, with the costs that were measured [default: none]
    #[arg(short, long, value_name = "F.toml", value_parser = machine_path)]
    pub(crate) out: Option<PathBuf>,
    /// How often everything is measured; the middle half counts, since a machine is not equally fast all the time
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within(1u32..=100))]
    pub(crate) passes: u32,
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(
    after_help = "Exit status:\n  0  all is within the limits\n  1  something is further off than allowed\n  2  the input was refused, or a benchmark failed"
)]
pub(crate) struct Validate {
    /// Command lines of benchmarks, each as one argument [default: twenty that cover hackbench, perf bench and sysbench]
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workloads: Vec<String>,
    /// This machine, as coreward calibrate --out wrote it
    #[arg(long, value_name = "M", default_value = "sysfs")]
    pub(crate) machine: String,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
    /// The kernel that the policy stands for [default: this one, or the nearest older one]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Set a cost of the machine, by its name in a machine file; may be repeated [default: as in the machine file]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// How often each benchmark is run, and simulated; medians are compared
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within(1u32..=validate::MAX_ROUNDS))]
    pub(crate) rounds: u32,
    /// How many task groups deep the benchmarks run [default: as this process]
    #[arg(long, value_name = "N", value_parser = within(0u32..=Settings::MAX_DEPTH))]
    pub(crate) task_group_depth: Option<u32>,
    /// Calibrate this machine before each round instead of taking --machine, and write the machine file: a machine is not
    /// equally fast all the time [default: take --machine]
    #[arg(long, value_name = "F.toml", conflicts_with_all = ["machine", "real"])]
    pub(crate) calibrate: Option<PathBuf>,
    /// Only run the benchmarks, and write what they did to a file, for --real [default: also simulate them]
    #[arg(long, value_name = "F.json", conflicts_with_all = ["real", "html", "json", "cost", "set", "sched_feat"])]
    pub(crate) save_real: Option<PathBuf>,
    /// Take what the benchmarks did from a file of --save-real or --json, of this or another machine, instead of running
    /// them. May be repeated [default: run them]
    #[arg(long, value_name = "F.json", conflicts_with = "rounds")]
    pub(crate) real: Vec<PathBuf>,
    /// Print JSON instead of text, or with =F write it to a file beside the text [default: no]
    #[arg(long, value_name = "F", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report as an HTML page to a file [default: no]
    #[arg(long, value_name = "F")]
    pub(crate) html: Option<PathBuf>,
}
