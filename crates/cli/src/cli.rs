//! The command line: subcommands and their options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use coreward_engine::{Change, Settings};
use coreward_input::within;
use coreward_live_args as live;
use coreward_machine::{MAX_CPUS, Partition, RelaxSemantics};
use coreward_metrics::Metric;
use coreward_metrics::schedstat::Version;
use coreward_policy::Profile;
use coreward_state::Options;
use coreward_workload::{Scale, recorded};

use crate::parity::Requirement;
use crate::scale;
use crate::setup::SKIP_STEADY_PCT;
use crate::shard::Shard;
use crate::tables::Target;
use crate::uncertainty;
use coreward_policy::Assignment;

/// A CPU-placement policy laboratory for Linux: what would this scheduler change do on that machine?
#[derive(Parser)]
#[command(name = "coreward", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the machines that come with the program
    Machines(Machines),
    /// Describe this machine in a file, for others to simulate
    Machine(MachineFile),
    /// Print the nodes, caches, cores and CPUs of a machine
    Topology(Topology),
    /// Print the sched domains of a CPU as the kernel's debugfs does
    Domains(Domains),
    /// List the features and tunables of the policy
    Features(Features),
    /// Run a workload on a machine
    Run(Run),
    /// Compare variants of the policy with a baseline
    Compare(Compare),
    /// Show what one change does to many workloads on many machines, sorted by damage
    Matrix(Matrix),
    /// Try many settings on many machines under many workloads, in shares that other computers may take
    Sweep(Sweep),
    /// Search for the settings that serve workloads on machines best; it needs the Python package (see docs/tuning.md)
    Tune(Tune),
    /// Write an experiment file to start from, or print the format of such files
    Experiment(ExperimentFile),
    /// Compare published figures with simulated ones, and score the agreement
    Fidelity(Fidelity),
    /// Print the first decisions of a run, with the reason for each
    Explain(Explain),
    /// Measure what things cost on this machine
    Calibrate(Calibrate),
    /// Run benchmarks on this machine, simulate the same, and compare
    Validate(Validate),
    /// Compare recorded decisions of a kernel with the policy's
    Parity(Parity),
    /// Run a command and record what the kernel decides while it runs, or what all tasks do
    Record(Record),
    /// Make a workload of a recording of the scheduler: who ran how long, who woke whom
    Import(Import),
    /// Write or check a policy of your own, for --policy
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Print a script with which a shell completes coreward's commands and options
    Completions(Completions),
    /// Write a manual page for each command
    Manual(Manual),
    /// Schedule this machine with the policy, through sched_ext
    Live(live::Live),
    /// Watch where this kernel places tasks, and show where the policy would have placed them
    Shadow(live::Shadow),
    /// Show what the running scheduler does
    Top(live::Top),
    /// Print the settings of the running scheduler
    Get(live::Get),
    /// Change settings of the running scheduler
    Set(live::Set),
}

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    /// Write a copy of the policy to a new directory, with an example of a new rule and what to do next
    New(PolicyNew),
    /// Compile a directory's policy, run its tests, compare it with the built-in policy and with recorded decisions
    Check(PolicyCheck),
}

#[derive(Args)]
pub(crate) struct PolicyNew {
    /// The directory to create
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Args)]
pub(crate) struct PolicyCheck {
    /// A directory with files of the policy that were changed or added
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Files that coreward record wrote: how the policy agrees with them
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

const MACHINE_HELP: &str = "A preset (see coreward machines), a path ending in .toml or .json, sysfs (this machine), sysfs:DIR, hwloc:FILE or \
     a shorthand like 2n4l8c2t: nodes, LLCs per node, cores per LLC, threads per core";

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell, as in: coreward completions bash >/usr/share/bash-completion/completions/coreward
    pub(crate) shell: Shell,
}

#[derive(Args)]
pub(crate) struct Manual {
    /// The directory, which has to exist, like /usr/local/share/man/man1
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Args)]
pub(crate) struct Machines {
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct MachineFile {
    #[command(subcommand)]
    pub(crate) command: MachineCommand,
}

#[derive(Subcommand)]
pub(crate) enum MachineCommand {
    /// Write CPUs, caches, capacities, idle states, the kernel's version and its scheduler's features to a file that
    /// --machine takes; it has no names, addresses or serial numbers
    Save(MachineSave),
}

#[derive(Args)]
pub(crate) struct MachineSave {
    /// The file
    #[arg(value_name = "F.toml", value_parser = machine_path)]
    pub(crate) file: PathBuf,
    /// Take the costs and idle states from a file that coreward calibrate --out wrote on this machine [default: those of
    /// a typical machine, and what sysfs says]
    #[arg(long, value_name = "M.toml")]
    pub(crate) calibrated: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Topology {
    #[arg(help = MACHINE_HELP)]
    pub(crate) machine: String,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON, which can be read back as a machine from a file ending in .json [default: text]
    #[arg(long, conflicts_with = "toml")]
    pub(crate) json: bool,
    /// Print a machine file, which can be read back from a file ending in .toml [default: text]
    #[arg(long)]
    pub(crate) toml: bool,
}

#[derive(Args)]
pub(crate) struct Domains {
    #[arg(help = MACHINE_HELP)]
    pub(crate) machine: String,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
    /// The CPU whose domains are printed
    #[arg(long, value_name = "C", default_value_t = 0, allow_negative_numbers = true,
          value_parser = within(0..=MAX_CPUS - 1))]
    pub(crate) cpu: usize,
    /// Print names and flags as this kernel does: linux-6.1 or 6.1 [default: linux-6.12; on the machine sysfs this
    /// kernel, or the nearest older one]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    /// Assume a kernel built without CONFIG_SCHED_CLUSTER, like Debian's 6.12 for arm64 [default: with]
    #[arg(long)]
    pub(crate) no_sched_cluster: bool,
    /// cpuset.sched_relax_domain_level: which domains newidle balance searches [default: no request]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = within(-1..=i32::MAX))]
    pub(crate) relax_domain_level: Option<i32>,
    /// CPUs with domains of their own, like those of an exclusive cpuset, and their relax_domain_level; the
    /// remaining CPUs form one more partition [default: one partition]
    #[arg(long, value_name = "CPUS[:LEVEL]")]
    pub(crate) partition: Vec<Partition>,
    /// What the request means: before or after Linux 6.10 [default: as in the profile's kernel]
    #[arg(long, value_name = "WHEN")]
    pub(crate) relax_semantics: Option<Semantics>,
    /// Print the CPU masks of the domains too, as /proc/schedstat does [default: no]
    #[arg(long)]
    pub(crate) schedstat: bool,
    /// Print JSON [default: text]
    #[arg(long, conflicts_with = "schedstat")]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Semantics {
    /// A domain up to level N is searched; 0 acts as 1
    Before,
    /// A domain below level N is searched; 0 is no search
    After,
}

impl From<Semantics> for RelaxSemantics {
    fn from(semantics: Semantics) -> Self {
        match semantics {
            Semantics::Before => RelaxSemantics::Before,
            Semantics::After => RelaxSemantics::After,
        }
    }
}

#[derive(Args)]
pub(crate) struct Features {
    /// The kernel whose values are listed
    #[arg(long, value_name = "P", default_value = Profile::DEFAULT.name())]
    pub(crate) profile: String,
    /// A directory with headers and tables of the policy that are to be used instead of the built-in ones (see
    /// coreward policy) [default: the built-in policy]
    #[arg(long, value_name = "DIR")]
    pub(crate) policy: Option<PathBuf>,
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
}

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
    /// The kernel that the policy stands for: linux-6.1 or 6.1 (see coreward features) [default: linux-6.12; on the
    /// machine sysfs this kernel, or the nearest older one]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    /// A directory with headers and tables of the policy that are to be used instead of the built-in ones (see
    /// coreward policy) [default: the built-in policy]
    #[arg(long, value_name = "DIR")]
    pub(crate) policy: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Set a cost of the machine [default: as in the machine file]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// Seed of all randomness
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true,
          value_parser = within(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Run a shorter benchmark: this fraction of its loops or of its time, 0.000001 to 1
    #[arg(long, value_name = "X", default_value = "1", value_parser = scale::parse)]
    pub(crate) scale: Scale,
    /// Nesting depth of the workload's task group: 0 is the root group, 3 that of a login session
    #[arg(long, value_name = "N", default_value_t = Settings::LOGIN_SESSION_DEPTH,
          value_parser = within(0u32..=Settings::MAX_DEPTH))]
    pub(crate) task_group_depth: u32,
    /// cpuset.sched_relax_domain_level: which domains newidle balance searches [default: no request]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = within(-1..=i32::MAX))]
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
    /// Give up after this much simulated time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = crate::setup::TIME_LIMIT_S,
          value_parser = within(1u64..=crate::setup::MAX_TIME_LIMIT_S))]
    pub(crate) time_limit: u64,
}

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
    #[arg(long, value_name = "SECONDS", default_value = "0", allow_negative_numbers = true, value_parser = moment_ns)]
    pub(crate) from: u64,
    /// Import up to this many seconds after the first event, 0 to 1000000 [default: all]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = moment_ns)]
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

/// The name of a machine's file, by which `--machine` knows it.
fn machine_path(text: &str) -> Result<PathBuf, String> {
    if text.ends_with(".toml") {
        Ok(text.into())
    } else {
        Err("allowed are names that end with .toml".into())
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
const EXIT_STATUS: &str = "Exit status:\n  0  all runs were made; with --fail-if-worse, nothing is worse beyond noise\n  \
    1  --fail-if-worse: something is worse; --check: an invariant was broken\n  2  the input was refused, or a run failed";

/// Results as tables.
#[derive(Args)]
pub(crate) struct Tables {
    /// Also write every metric of every run to a file, as a table whose format is that of the ending: Parquet, CSV or lines of
    /// JSON (see docs/tables.md). May be repeated [default: none]
    #[arg(long = "output", value_name = "F.parquet|F.csv|F.jsonl")]
    pub(crate) files: Vec<Target>,
}

#[derive(Args)]
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
    /// Write the scheduling events to a file, as the text of ftrace [default: none]
    #[arg(long, value_name = "F.txt", conflicts_with = "trace")]
    pub(crate) ftrace: Option<PathBuf>,
    /// Write the scheduling events to a file of perf, for perf sched latency, timehist, map and perf script
    /// [default: none]
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

fn skip_steady(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse().ok().filter(|percent| SKIP_STEADY_PCT.contains(percent));
    let (least, most) = (SKIP_STEADY_PCT.start(), SKIP_STEADY_PCT.end());
    percent.ok_or_else(|| format!("allowed are {least} to {most}"))
}

/// Seconds as ns.
fn interval_ns(text: &str) -> Result<u64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (1e-6..=1000.0).contains(seconds));
    seconds.map(|seconds| (seconds * 1e9).round() as u64).ok_or_else(|| "allowed are 0.000001 to 1000".into())
}

fn metric(name: &str) -> Result<Metric, String> {
    Metric::named(name)
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
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Compare {
    /// Experiment files, or directories whose *.toml files are used; or, with --with, a benchmark's command line as one
    /// argument
    #[arg(required = true, value_name = "EXPERIMENT.toml|WORKLOAD")]
    pub(crate) experiments: Vec<PathBuf>,
    /// Compare without an experiment file: a variant by what it changes, like NO_TTWU_QUEUE,base_slice_ns=2ms or
    /// linux-7.3. Features, tunables, costs and a profile are understood; more variants by repeating [default: as in
    /// the file]
    #[arg(long, value_name = "CHANGE,CHANGE...", requires = "machine")]
    pub(crate) with: Vec<String>,
    /// With --with: what the baseline changes, in the same form. The variants start from the baseline [default: nothing]
    #[arg(long, value_name = "CHANGE,CHANGE...", requires = "with")]
    pub(crate) baseline_with: Option<String>,
    #[arg(long, value_name = "M", requires = "with", help = MACHINE_HELP)]
    pub(crate) machine: Option<String>,
    /// With --with: the kernel that the baseline stands for [default: on
    /// sysfs the running one, otherwise linux-6.12]
    #[arg(long, value_name = "P", requires = "with")]
    pub(crate) profile: Option<String>,
    /// With --with: the seed of the first run of each side [default: 1]
    #[arg(long, value_name = "S", requires = "with", allow_negative_numbers = true, value_parser = within(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// A metric that the verdict is about; may be repeated [default: as in the experiment, or the benchmark's result
    /// and cpu_migrations]
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    pub(crate) headline: Vec<Metric>,
    /// Run only the cases with this label [default: all]
    #[arg(long, value_name = "LABEL")]
    pub(crate) case: Vec<String>,
    /// Add runs until the 95 % interval of the first headline metric is at most this many percentage points to either
    /// side, like 2% [default: no]
    #[arg(long, value_name = "PERCENT", value_parser = crate::effort::precision)]
    pub(crate) precision: Option<f64>,
    /// Add runs for this time at most, like 60s, 5m or 1h. The report says how many were made, and which command
    /// repeats them [default: no]
    #[arg(long, value_name = "TIME", value_parser = crate::effort::budget)]
    pub(crate) budget: Option<Duration>,
    /// Also vary all costs of the machine together, within their bounds, and print how far the headline changes hang on
    /// them: an 80 % interval, and the costs that move it most. N is the number of points, 10 to 4096, with a run of each
    /// side [default: no; without a number, 64]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = uncertainty::POINTS,
          value_parser = within(uncertainty::ALLOWED))]
    pub(crate) intervals: Option<u32>,
    /// Number of runs of each side, the least if runs are added [default: as in the experiment, or 5]
    #[arg(long, value_name = "N",
          value_parser = within(1u32..=crate::experiment::MAX_RUNS))]
    pub(crate) runs: Option<u32>,
    /// Number of simultaneous runs; the result does not depend on it [default: the number of CPUs of this machine]
    #[arg(long, value_name = "J", value_parser = within(1u32..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Run shorter benchmarks: this fraction of their loops or of their time, 0.000001 to 1 [default: 1]
    #[arg(long, value_name = "X", value_parser = scale::parse)]
    pub(crate) scale: Option<Scale>,
    /// Skip the steady middle of each run once its rates are known to this many per cent, 0.1 to 20 [default: as in the
    /// experiment, or simulate all of it]
    #[arg(long, value_name = "PERCENT", value_parser = skip_steady)]
    pub(crate) skip_steady: Option<f64>,
    /// Set a cost of the machine on all sides [default: as in the experiment and the machine]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// Nesting depth of the workload's task group, on all sides [default: as in the experiment, or 3]
    #[arg(long, value_name = "N", value_parser = within(0u32..=Settings::MAX_DEPTH))]
    pub(crate) task_group_depth: Option<u32>,
    /// Also run the experiments' ablations, which show the mechanism behind an effect [default: no]
    #[arg(long)]
    pub(crate) ablations: bool,
    /// Exit with status 1 if a run of a side broke an invariant, as with coreward run --check [default: only report it]
    #[arg(long)]
    pub(crate) check: bool,
    /// Also print where the CPU time of a message or event went on both sides, part by part, with each part's share of the
    /// difference [default: no]
    #[arg(long)]
    pub(crate) why: bool,
    /// Print all exploratory metrics [default: the dozen that differs most clearly]
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON instead of text, or with =F write it to a file beside the text: an object, or an array if several
    /// experiments are given [default: no]
    #[arg(long, value_name = "F", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report of one experiment as an HTML page to a file [default: no]
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

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Matrix {
    /// The change: features, tunables, costs and a profile, like NO_TTWU_QUEUE,base_slice_ns=2ms, and seed=S, the seed of its
    /// first run
    #[arg(long, value_name = "CHANGE,CHANGE...", required_unless_present = "print_suite")]
    pub(crate) with: Option<String>,
    /// What the baseline changes, in the same form. The change starts from the baseline [default: nothing]
    #[arg(long, value_name = "CHANGE,CHANGE...")]
    pub(crate) baseline_with: Option<String>,
    /// The kernel that the baseline stands for [default: on sysfs the running one, otherwise linux-6.12]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    /// A machine, in the forms that coreward run takes. May be repeated [default: all of coreward machines]
    #[arg(long, value_name = "M")]
    pub(crate) machine: Vec<String>,
    /// A row of the suite by its name, all rows of a benchmark by its name, or a command line with options instead of the
    /// suite's. May be repeated [default: all rows]
    #[arg(long, value_name = "W")]
    pub(crate) workload: Vec<String>,
    /// A file with other workloads [default: what --print-suite prints]
    #[arg(long, value_name = "F.toml")]
    pub(crate) suite: Option<PathBuf>,
    /// Print the workloads that are run by default, as a file for --suite, and do nothing else [default: no]
    #[arg(long, exclusive = true)]
    pub(crate) print_suite: bool,
    /// Number of runs of each side of a cell
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = within(2u32..=crate::experiment::MAX_RUNS))]
    pub(crate) runs: u32,
    /// The seed of the first run of each side
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true,
          value_parser = within(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Number of cells that are run at once; the result does not depend on it [default: the number of CPUs of this machine]
    #[arg(long, value_name = "J", value_parser = within(1u32..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Set a cost of all machines on both sides [default: as in the machine]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// Nesting depth of the workload's task group, on both sides [default: 3]
    #[arg(long, value_name = "N", value_parser = within(0u32..=Settings::MAX_DEPTH))]
    pub(crate) task_group_depth: Option<u32>,
    /// Keep finished cells in a file, and do not run those again that are in it: a matrix that was killed continues where it
    /// was. Cells of another program, machine, workload, change or number of runs stay in the file and are not used [default:
    /// nothing is kept]
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shares: Shares,
    /// Exit with status 1 if a run of a cell broke an invariant, as with coreward run --check [default: only report it]
    #[arg(long)]
    pub(crate) check: bool,
    /// Print all losses and gains [default: the 25 largest of each]
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON instead of text, or with =F write it to a file beside the text [default: no]
    #[arg(long, value_name = "F", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Print text of 80 columns, ready for a mail, or with =F also write it to a file [default: only print it]
    #[arg(long, value_name = "F", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          conflicts_with_all = ["shard", "left"])]
    pub(crate) text: Option<PathBuf>,
    /// Also write the report as an HTML page with a heat map to a file [default: no]
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

#[derive(Args)]
pub(crate) struct ExperimentFile {
    #[command(subcommand)]
    pub(crate) command: ExperimentCommand,
}

#[derive(Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Write a commented experiment that runs, to change into one's own
    Init {
        /// The file to write
        #[arg(value_name = "F.toml")]
        file: PathBuf,
    },
    /// Print the JSON schema of experiment files, with which editors complete and check them
    Schema,
}

#[derive(Args)]
pub(crate) struct Fidelity {
    /// Experiment files, or directories whose *.toml files are used; those without published figures are skipped
    #[arg(required = true, value_name = "EXPERIMENT.toml")]
    pub(crate) experiments: Vec<PathBuf>,
    /// Write the page to a file [default: standard output]
    #[arg(short, long, value_name = "F.md")]
    pub(crate) output: Option<PathBuf>,
    /// Also write the scores of the families as JSON to a file. coreward compare quotes the one that was there when
    /// it was built, docs/fidelity.json [default: no]
    #[arg(long, value_name = "F.json")]
    pub(crate) record: Option<PathBuf>,
    /// What the record says that it is of, like a commit [default: the version of coreward]
    #[arg(long, value_name = "TEXT", requires = "record")]
    pub(crate) revision: Option<String>,
    /// Number of runs of each side [default: as in the experiment, or 5]
    #[arg(long, value_name = "N",
          value_parser = within(1u32..=crate::experiment::MAX_RUNS))]
    pub(crate) runs: Option<u32>,
    /// Run shorter benchmarks: this fraction of their loops or of their time, 0.000001 to 1 [default: 1]
    #[arg(long, value_name = "X", value_parser = scale::parse)]
    pub(crate) scale: Option<Scale>,
    /// Number of simultaneous runs; the result does not depend on it [default: the number of CPUs of this machine]
    #[arg(long, value_name = "J", value_parser = within(1u32..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Keep finished experiments in a file, and do not run those again that are in it: a command that was killed continues
    /// where it was. Experiments of another program, or that have changed, stay in the file and are not used [default:
    /// nothing is kept]
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Also run the experiments' ablations, which show the mechanism behind an effect [default: no]
    #[arg(long)]
    pub(crate) ablations: bool,
    /// Write JSON [default: Markdown]
    #[arg(long)]
    pub(crate) json: bool,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
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
    /// Set a cost of the machine [default: as in the machine file]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// How often each benchmark is run, and simulated; medians are compared
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within(1u32..=100))]
    pub(crate) rounds: u32,
    /// How many task groups deep the benchmarks run [default: as this process]
    #[arg(long, value_name = "N", value_parser = within(0u32..=Settings::MAX_DEPTH))]
    pub(crate) task_group_depth: Option<u32>,
    /// Calibrate this machine before each round instead of taking --machine, and write the machine file: a machine is not
    /// equally fast all the time [default: take --machine]
    #[arg(long, value_name = "F.toml", conflicts_with_all = ["machine", "real"])]
    pub(crate) calibrate: Option<PathBuf>,
    /// Only run the benchmarks, and write what they did to a file, for --real [default: also simulate them]
    #[arg(long, value_name = "F.json", conflicts_with_all = ["real", "html", "json"])]
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
pub(crate) struct Record {
    /// Record placements and balances [default: no]
    #[arg(long)]
    pub(crate) decisions: bool,
    /// Record the changes of each CPU's queue instead: picks, preemptions, ends of turns [default: no]
    #[arg(long, conflicts_with = "decisions")]
    pub(crate) queue: bool,
    /// Record what all tasks of the machine do instead: how long each runs, who wakes whom, what they sleep on; for
    /// coreward import [default: no]
    #[arg(long, conflicts_with_all = ["decisions", "queue", "limit"])]
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
    #[arg(long, requires = "workload")]
    pub(crate) tracepoints: bool,
    /// If the recording is imported at once: this machine, as coreward calibrate describes it
    /// [default: CPUs of capacity 1024 with the default costs]
    #[arg(long, value_name = "M", requires = "workload")]
    pub(crate) machine: Option<String>,
    /// The command to run, with its arguments
    #[arg(last = true, required_unless_present = "duration", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
