//! Commands that compare variants of the policy: with a baseline, over many machines, with what is published.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use coreward_engine::Settings;
use coreward_input::within;
use coreward_metrics::Metric;
use coreward_policy::Assignment;
use coreward_workload::Scale;

use super::common::{EXIT_STATUS, Gate, MACHINE_HELP, Quiet, Shares, Tables, skip_steady};
use crate::{scale, uncertainty};

fn metric(name: &str) -> Result<Metric, String> {
    Metric::named(name)
}

#[derive(Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Compare {
    /// Experiment files, or directories whose *.toml files are used; or, with --with, a benchmark's command
    /// line
    #[arg(required = true, value_name = "EXPERIMENT.toml|WORKLOAD")]
    pub(crate) experiments: Vec<PathBuf>,
    /// Compare without an experiment file: a variant by what it changes, like NO_TTWU_QUEUE,base_slice_ns=2ms or
    /// linux-7.3. Features, tunables, costs and a profile are understood; more variants by repeating [default: as in
    /// the file]
    #[arg(long, value_name = "CHANGE,CHANGE...")]
    pub(crate) with: Vec<String>,
    /// With --with: what the baseline changes, in the same form. The variants start from the baseline [default: nothing]
    #[arg(long, value_name = "CHANGE,CHANGE...")]
    pub(crate) baseline_with: Option<String>,
    #[arg(long, value_name = "M", help = MACHINE_HELP)]
    pub(crate) machine: Option<String>,
    /// With --with: the kernel that the baseline stands for [default: that of the
    /// machine sysfs or of a machine file that names one, or the nearest older one; otherwise linux-6.12]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    /// With --with: the seed of the first run of each side [default: 1]
    #[arg(long, value_name = "S", value_parser = within(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// A metric that the verdict is about; may be repeated [default: as in the experiment, or the benchmark's
    /// result, of events also wakeup_latency_us_p99, and cpu_migrations]
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    pub(crate) headline: Vec<Metric>,
    /// Run only the cases with this label [default: all]
    #[arg(long, value_name = "LABEL")]
    pub(crate) case: Vec<String>,
    /// Add runs until the 95 % interval of the first headline metric is at most this many percentage points to either
    /// side, like 2% [default: no]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, value_parser = crate::effort::precision)]
    pub(crate) precision: Option<f64>,
    /// Add runs for this time at most, like 60s, 5m or 1h. The report says how many were made, and which command
    /// repeats them [default: no]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = crate::effort::budget)]
    pub(crate) budget: Option<Duration>,
    /// Also vary all costs of the machine together, within their bounds, and print how far the headline changes depend on
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
    /// Set a cost of the machine on all sides; may be repeated [default: as in the experiment and the machine]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// Nesting depth of the workload's task group, 0 to 16, on all sides [default: as in the experiment, or 3]
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
    /// The kernel that the baseline stands for [default: that of the machine sysfs or of a machine file that
    /// names one, or the nearest older one; otherwise linux-6.12]
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
    #[arg(long, value_name = "S", default_value_t = 1,
          value_parser = within(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Number of cells that are run at once; the result does not depend on it [default: the number of CPUs of this machine]
    #[arg(long, value_name = "J", value_parser = within(1u32..=1024))]
    pub(crate) jobs: Option<u32>,
    /// Set a cost of all machines on both sides [default: as in the machine]
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<Assignment>,
    /// Nesting depth of the workload's task group, 0 to 16, on both sides [default: 3]
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
    /// Keep what came of each experiment in a file, with its revision. The page and the record are of all experiments in it:
    /// of those that are not given, they have what came of them when they were last run [default: no]
    #[arg(long, value_name = "F.jsonl", conflicts_with_all = ["runs", "scale"])]
    pub(crate) results: Option<PathBuf>,
    /// What the experiments are said to have been run by, like a commit [default: the version of coreward]
    #[arg(long, value_name = "TEXT")]
    pub(crate) revision: Option<String>,
    /// Number of runs of each side [default: as in the experiment, or 5]
    #[arg(long, value_name = "N",
          value_parser = within(1u32..=crate::experiment::MAX_RUNS))]
    pub(crate) runs: Option<u32>,
    /// Also vary all costs of the machines together, within their bounds, and show beside each row the 80 % interval of its
    /// change. N is the number of points, 10 to 4096, with a run of each side [default: no; without a number, as in the
    /// experiment, and none where it names no points]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          value_parser = within(uncertainty::ALLOWED))]
    pub(crate) intervals: Option<Option<u32>>,
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
