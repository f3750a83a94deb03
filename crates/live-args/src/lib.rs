//! The options of the subcommands that `coreward-live` carries out.
//!
//! `coreward` reads them, too, so that their help and the refusal of wrong arguments need neither libbpf nor clang.

mod shadow;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use coreward_input::within;
use coreward_policy::Assignment;
use coreward_state::Options;

pub use shadow::{By, Shadow};

/// Which policy.
#[derive(Args, Clone, Debug)]
pub struct Policy {
    /// The kernel whose features the policy starts from: linux-7.3 or 7.3 (see coreward features)
    #[arg(long, value_name = "P", default_value = "linux-7.3")]
    pub profile: String,
    /// What differs from it.
    #[command(flatten)]
    pub options: Options,
}

/// Schedule this machine with the policy, through sched_ext
#[derive(Args, Debug)]
pub struct Live {
    /// The policy.
    #[command(flatten)]
    pub policy: Policy,
    /// Schedule only tasks of policy SCHED_EXT [default: all but those of real-time classes]
    #[arg(long)]
    pub partial: bool,
    /// Print a line of counters at this interval, in seconds [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = within(1u64..=86_400))]
    pub stats: Option<u64>,
    /// Write the counters to a file in the format of Prometheus, for the textfile collector of node_exporter. It is
    /// replaced as a whole each time, and removed at the end [default: none]
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// How often that file is written, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = within(1u64..=86_400),
          requires = "metrics")]
    pub metrics_interval: u64,
    /// Print the output of the kernel's verifier [default: only if it refuses a program]
    #[arg(long)]
    pub verbose: bool,
}

/// Show what the running scheduler does
#[derive(Args, Debug)]
pub struct Top {
    /// Length of an interval
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: f64,
    /// Print one interval and exit
    #[arg(long)]
    pub once: bool,
    /// Print one interval as a line of JSON and exit
    #[arg(long)]
    pub json: bool,
}

/// The shortest and the longest interval, in s.
const INTERVALS: RangeInclusive<f64> = 0.1..=3600.0;

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if INTERVALS.contains(&seconds) => Ok(seconds),
        _ => Err(format!("allowed is a number from {} to {}", INTERVALS.start(), INTERVALS.end())),
    }
}

/// Print the settings of the running scheduler
#[derive(Args, Debug)]
pub struct Get {
    /// A feature or tunable (see coreward features) [default: all]
    pub name: Option<String>,
}

/// Change settings of the running scheduler
#[derive(Args, Debug)]
pub struct Set {
    /// A tunable and its value, or a feature and 0 or 1
    #[arg(value_name = "NAME=VALUE", required = true)]
    pub settings: Vec<Assignment>,
}
