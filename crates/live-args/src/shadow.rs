//! The options of `coreward shadow`.

use clap::{Args, ValueEnum};

use coreward_state::Options;

/// How decisions are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The name of the task that is placed.
    Comm = 1,
    /// Its cgroup.
    Cgroup = 2,
}

impl By {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            By::Comm => "comm",
            By::Cgroup => "cgroup",
        }
    }
}

/// Watch where this kernel places tasks, and show where the policy would have placed them
#[derive(Args, Debug)]
pub struct Shadow {
    /// The kernel whose features the policy starts from (see coreward features) [default: this one, or the nearest
    /// older one]
    #[arg(long, value_name = "P")]
    pub profile: Option<String>,
    /// What differs from it.
    #[command(flatten)]
    pub options: Options,
    /// Stop after this many seconds [default: when interrupted]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Also count by the command or the cgroup of the task that is placed
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Print one JSON object at the end instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print the output of the kernel's verifier [default: only if it refuses a program]
    #[arg(long)]
    pub verbose: bool,
}

/// The longest duration, in s: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => Ok(seconds),
        _ => Err(format!("allowed is a number above 0, up to {MAX_SECONDS}")),
    }
}
