//! Commands that record what a kernel does, and that read recordings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use coreward_input::within;
use coreward_state::Options;
use coreward_workload::recorded;

use crate::parity::Requirement;

#[derive(Args, Default)]
pub(crate) struct Import {
    /// A recording: a file of coreward record --workload, of trace-cmd or of perf, a Perfetto trace, the JSON of wprof, or
    /// the text of trace-cmd report, of /sys/kernel/tracing/trace or of perf script, which may be compressed by gzip; or a
    /// directory of pages of the ring buffer; or a workload, to be written in another form (see docs/import.md)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the workload to a file, which coreward run and coreward compare take as a workload: W.cww is compressed,
    /// W.cww.toml and W.cww.json can be edited [default: none]
    #[arg(short, long, value_name = "W.cww", value_parser = recorded_path)]
    pub(crate) output: Option<PathBuf>,
    /// Print each class of tasks: its time, what its waits ended by, how much of it is explained, and what is left out
    /// [default: a summary]
    #[arg(long)]
    pub(crate) explain: bool,
    /// The machine that the recording was made on, for its capacities, its shared cores and its costs: a preset, a file
    /// or another form that coreward run takes [default: CPUs of capacity 1024 with the default costs]
    #[arg(long, value_name = "M")]
    pub(crate) machine: Option<String>,
    /// Import only tasks of this name, where a * at the end stands for any ending. May be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Leave out tasks of this name, in the same form. May be repeated [default: none but the recorder's own]
    #[arg(long, value_name = "NAME")]
    pub(crate) without: Vec<String>,
    /// Let interrupts of unknown or of the network's devices come at the recorded times, however late the tasks are
    /// [default: after the recorded waits]
    #[arg(long)]
    pub(crate) open_loop: bool,
    /// Let tasks run on any CPU, whatever affinity they had in the recording [default: as recorded]
    #[arg(long)]
    pub(crate) any_cpu: bool,
    /// Import from this many seconds after the first event on, 0 to 1000000
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = moment_ns)]
    pub(crate) from: u64,
    /// Import up to this many seconds after the first event, 0 to 1000000 [default: all]
    #[arg(long, value_name = "SECONDS", value_parser = moment_ns)]
    pub(crate) to: Option<u64>,
    /// Write the workload even if the recording does not say how most waits ended [default: refuse]
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Print JSON [default: text]
    #[arg(long, conflicts_with = "explain")]
    pub(crate) json: bool,
}

/// The name of a recorded workload's file.
fn recorded_path(text: &str) -> Result<PathBuf, String> {
    match recorded::Form::of(text).is_some() && !text.contains(char::is_whitespace) {
        true => Ok(text.into()),
        false => Err(format!("allowed are {} and have no blanks", recorded::ALLOWED)),
    }
}

/// How long a recording may take, in s.
fn seconds_of_recording(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=86400.0).contains(seconds));
    seconds.ok_or_else(|| "allowed are 0.001 to 86400".into())
}

/// Seconds as ns.
fn moment_ns(text: &str) -> Result<u64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.map(|seconds| (seconds * 1e9).round() as u64).ok_or_else(|| "allowed are 0 to 1000000".into())
}

#[derive(Args)]
pub(crate) struct Parity {
    /// Files that coreward record wrote
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The kernel that the policy stands for [default: that of the file, or the nearest older one]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    /// A directory with headers and tables of the policy that are to be used instead of the built-in ones (see
    /// coreward policy) [default: the built-in policy]
    #[arg(long, value_name = "DIR")]
    pub(crate) policy: Option<PathBuf>,
    /// Print decisions one by one instead of the table [default: the table]
    #[arg(long, value_name = "WHICH", conflicts_with_all = ["explain", "require", "sched_feat", "set"])]
    pub(crate) list: Option<Listed>,
    /// Show one decision of one file step by step, by its number in --list [default: the table]
    #[arg(long, value_name = "N", value_parser = within(1u64..=u64::MAX),
          conflicts_with_all = ["require", "sched_feat", "set"])]
    pub(crate) explain: Option<u64>,
    /// Exit with status 1 if fewer stable decisions agree, for example wakeup=99.9,fork=99,balance=99,'idle: queue=95'
    /// [default: no requirement]
    #[arg(long, value_name = "CLASS=PERCENT", value_delimiter = ',')]
    pub(crate) require: Vec<Requirement>,
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten, next_help_heading = "What if the policy had other settings")]
    pub(crate) what_if: Options,
}

/// Which decisions are listed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// Decisions in which the kernel and the policy differ
    Disagreements,
    /// Decisions whose inputs changed while they were made
    Unstable,
    /// All decisions
    All,
}

#[derive(Args)]
#[command(
    after_help = "Exit status: that of the command; 2 if the input was refused, 3 if the recording was cut short (--max-size, CPUs that went on- or offline)"
)]
pub(crate) struct Record {
    /// Record placements and balances [default: no]
    #[arg(long)]
    pub(crate) decisions: bool,
    /// Record the changes of each CPU's queue instead: picks, preemptions, ends of turns [default: no]
    #[arg(long, conflicts_with = "decisions")]
    pub(crate) queue: bool,
    /// Record what all tasks of the machine do: how long each runs, who wakes whom, what they sleep on; for coreward import.
    /// One file has both, if decisions (--decisions, --queue) are recorded, too [default: no]
    #[arg(long)]
    pub(crate) workload: bool,
    /// The file to write. If it ends in .cww, .cww.toml or .cww.json, the workload is imported at once, and its
    /// recording is not kept [default: decisions.cwc or workload.cwr]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Size of the ring buffer in MiB, a power of two
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = within(1u32..=1024))]
    pub(crate) buffer: u32,
    /// Stop recording, but not the command, after this many decisions [default: no limit]
    #[arg(long, value_name = "N", value_parser = within(1u64..=u64::MAX))]
    pub(crate) limit: Option<u64>,
    /// Stop recording a workload, but not the command, after this many seconds, 0.001 to 86400. No command is needed then
    /// [default: until the command ends]
    #[arg(long, value_name = "SECONDS", requires = "workload", value_parser = seconds_of_recording)]
    pub(crate) duration: Option<f64>,
    /// Stop recording a workload when its file has so many MiB
    #[arg(long, value_name = "MIB", requires = "workload", default_value_t = 1024, value_parser = within(1u32..=1 << 20))]
    pub(crate) max_size: u32,
    /// Record a workload without BPF, as the text of tracepoints, which say less [default: only if the kernel refuses BPF]
    #[arg(long, requires = "workload", conflicts_with_all = ["decisions", "queue"])]
    pub(crate) tracepoints: bool,
    /// If the recording is imported at once: this machine, as coreward calibrate describes it
    /// [default: CPUs of capacity 1024 with the default costs]
    #[arg(long, value_name = "M", requires = "workload")]
    pub(crate) machine: Option<String>,
    /// The command to run, with its arguments
    #[arg(last = true, required_unless_present = "duration", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
