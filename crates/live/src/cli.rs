//! The command line: subcommands and their options.

use std::ops::RangeInclusive;

use clap::{Args, Parser, Subcommand};
use coreward_input::within;

use crate::{parity, shadow};
use coreward_policy::Assignment;
use coreward_state::Options;

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
    Shadow(shadow::Shadow),
    /// Show what the running scheduler does
    Top(Top),
    /// Print the settings of the running scheduler
    Get(Get),
    /// Change settings of the running scheduler
    Set(Set),
    /// Repeat recorded decisions natively and in BPF, and compare the two
    Parity(parity::Parity),
}

/// Which policy.
#[derive(Args, Clone)]
pub(crate) struct Policy {
    /// The kernel whose features the policy starts from (see coreward features)
    #[arg(long, value_name = "P", default_value = "linux-7.3")]
    pub(crate) profile: String,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(Args)]
pub(crate) struct Live {
    #[command(flatten)]
    pub(crate) policy: Policy,
    /// Schedule only tasks of policy SCHED_EXT [default: all but those of real-time classes]
    #[arg(long)]
    pub(crate) partial: bool,
    /// Print a line of counters at this interval, in seconds [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = within(1u64..=86_400))]
    pub(crate) stats: Option<u64>,
    /// Serve the counters as OpenMetrics on http://127.0.0.1:PORT/metrics [default: not]
    #[arg(long, value_name = "PORT", value_parser = within(1u16..=u16::MAX))]
    pub(crate) metrics: Option<u16>,
    /// Print the output of the kernel's verifier [default: only if it refuses a program]
    #[arg(long)]
    pub(crate) verbose: bool,
}

#[derive(Args)]
pub(crate) struct Top {
    /// Length of an interval
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub(crate) interval: f64,
    /// Print one interval and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one interval as a line of JSON and exit
    #[arg(long)]
    pub(crate) json: bool,
}

/// The shortest and the longest interval, in s.
const INTERVALS: RangeInclusive<f64> = 0.1..=3600.0;

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if INTERVALS.contains(&seconds) => Ok(seconds),
        _ => Err(format!("allowed is a number from {} to {}", INTERVALS.start(), INTERVALS.end())),
    }
}

#[derive(Args)]
pub(crate) struct Get {
    /// A feature or tunable (see coreward features) [default: all]
    pub(crate) name: Option<String>,
}

#[derive(Args)]
pub(crate) struct Set {
    /// A tunable and its value, or a feature and 0 or 1
    #[arg(value_name = "NAME=VALUE", required = true)]
    pub(crate) settings: Vec<Assignment>,
}
