//! Commands that run one workload, with the options of what is simulated.

use std::path::PathBuf;

use clap::Args;
use coreward_engine::{Change, Settings};
use coreward_input::within;
use coreward_machine::{MAX_CPUS, Partition};
use coreward_metrics::schedstat::Version;
use coreward_policy::Assignment;
use coreward_state::Options;
use coreward_workload::Scale;

use super::common::{MACHINE_HELP, Quiet, Tables, skip_steady};
use crate::scale;

/// What is simulated.
#[derive(Args)]
pub(crate) struct Simulated {
    /// A benchmark's command line, as one argument or as several: hackbench -g 4 --pipe. Options of coreward may stand
    /// before it or between its words; after -- every word is the benchmark's
    pub(crate) workload: String,
    #[arg(long, value_name = "M", help = MACHINE_HELP)]
    pub(crate) machine: String,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
    /// The kernel that the policy stands for: linux-6.1 or 6.1 (see coreward features) [default: that of the
    /// machine sysfs or of a machine file that names one, or the nearest older one; otherwise linux-6.12]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    /// A directory with headers and tables of the policy that are to be used instead of the built-in ones (see
    /// coreward policy) [default: the built-in policy]
    #[arg(long, value_name = "DIR")]
    pub(crate) policy: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Set a cost of the machine, by its name in a machine file; may be repeated [default: as in the machine file]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// Seed of all randomness
    #[arg(long, value_name = "S", default_value_t = 1,
          value_parser = within(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Run a shorter benchmark: this fraction of its loops or of its time, 0.000001 to 1
    #[arg(long, value_name = "X", default_value = "1", value_parser = scale::parse)]
    pub(crate) scale: Scale,
    /// Nesting depth of the workload's task group, 0 to 16: 0 is the root group, 3 that of a login session
    #[arg(long, value_name = "N", default_value_t = Settings::LOGIN_SESSION_DEPTH,
          value_parser = within(0u32..=Settings::MAX_DEPTH))]
    pub(crate) task_group_depth: u32,
    /// cpuset.sched_relax_domain_level: which domains newidle balance searches [default: no request]
    #[arg(long, value_name = "N", value_parser = within(-1..=i32::MAX))]
    pub(crate) relax_domain_level: Option<i32>,
    /// CPUs with domains of their own, like those of an exclusive cpuset, and their relax_domain_level. The
    /// workload runs in the first partition given [default: one partition of all CPUs]
    #[arg(long, value_name = "CPUS[:LEVEL]")]
    pub(crate) partition: Vec<Partition>,
    /// A change of the machine in the middle of the run, like "1.5s offline 2-3": CPUs go offline, come back (online), or
    /// are from then on those of the workload's cpuset (cpus). Or of a task group: "0s weight /a 300",
    /// "1s max /a 20ms/100ms". May be repeated [default: none]
    #[arg(long, value_name = "TIME CHANGE WHAT")]
    pub(crate) event: Vec<Change>,
    /// Give up after this much simulated time, in seconds, 1 to 1000000
    #[arg(long, value_name = "SECONDS", default_value_t = crate::setup::TIME_LIMIT_S,
          value_parser = within(1u64..=crate::setup::MAX_TIME_LIMIT_S))]
    pub(crate) time_limit: u64,
}

#[derive(Args)]
#[command(
    after_help = "Exit status:\n  0  the run was made\n  1  --check: an invariant was broken\n  2  the input was refused, or the run failed"
)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) simulated: Simulated,
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the scheduler's counters to a file in the format of /proc/schedstat, from the start of the first task to
    /// the end of the last [default: none]
    #[arg(long, value_name = "F", conflicts_with = "event")]
    pub(crate) schedstat: Option<PathBuf>,
    /// Version of that format, 15 to 17 [default: that of the profile's kernel]
    #[arg(long, value_name = "V", value_parser = schedstat_version, requires = "schedstat")]
    pub(crate) schedstat_version: Option<Version>,
    /// Write the final state of all CPUs' domains to a file, as the kernel's debugfs shows it, with the cost of
    /// newidle balance in each [default: none]
    #[arg(long, value_name = "F", conflicts_with = "event")]
    pub(crate) domains: Option<PathBuf>,
    /// Also print metrics of each interval of this many simulated seconds, as perf stat -I does, 0.000001 to 1000
    /// [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = interval_ns)]
    pub(crate) intervals: Option<u64>,
    /// Skip the steady middle of the run once its rates are known to this many per cent, 0.1 to 20 [default: simulate
    /// all of it]
    #[arg(long, value_name = "PERCENT", value_parser = skip_steady,
          conflicts_with_all = ["schedstat", "domains", "intervals", "trace", "ftrace", "perf_data", "event"])]
    pub(crate) skip_steady: Option<f64>,
    /// Write a trace for Perfetto to a file [default: none]
    #[arg(long, value_name = "F.pftrace")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the scheduling events to a file as the text of ftrace; not with --trace [default: none]
    #[arg(long, value_name = "F.txt", conflicts_with = "trace")]
    pub(crate) ftrace: Option<PathBuf>,
    /// Write the scheduling events to a file of perf, for perf sched latency, timehist, map and perf script; not with --trace
    /// or --ftrace [default: none]
    #[arg(long, value_name = "F.data", conflicts_with_all = ["trace", "ftrace"])]
    pub(crate) perf_data: Option<PathBuf>,
    /// Also write the report as an HTML page to a file, with a drawing of the metrics over time if --intervals is given
    /// [default: no]
    #[arg(long, value_name = "F")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) quiet: Quiet,
    #[command(flatten)]
    pub(crate) tables: Tables,
    /// Exit with status 1 if an invariant was broken: a CPU idle beside a waiting task, a task that waits for ever, sums
    /// that are not those of the tasks [default: only report it]
    #[arg(long)]
    pub(crate) check: bool,
}

/// Seconds as ns.
fn interval_ns(text: &str) -> Result<u64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (1e-6..=1000.0).contains(seconds));
    seconds.map(|seconds| (seconds * 1e9).round() as u64).ok_or_else(|| "allowed are 0.000001 to 1000".into())
}

fn schedstat_version(text: &str) -> Result<Version, String> {
    match text {
        "15" => Ok(Version::V15),
        "16" => Ok(Version::V16),
        "17" => Ok(Version::V17),
        _ => Err("allowed are 15, 16, 17".into()),
    }
}

#[derive(Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) simulated: Simulated,
    /// Print only placements of this task [default: every decision]
    #[arg(long, value_name = "N", value_parser = within(1..=i32::MAX))]
    pub(crate) pid: Option<i32>,
    /// Print only decisions that this CPU made or that concern it [default: every decision]
    #[arg(long, value_name = "C", value_parser = within(0..=MAX_CPUS as u32 - 1))]
    pub(crate) cpu: Option<u32>,
    /// Number of decisions to print
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = within(1u32..=1_000_000))]
    pub(crate) first: u32,
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
}
