//! Experiment files: a baseline, its variants, and what was published about them.
//!
//! ```toml
//! name = "wakeup-bias-prev"
//! title = "Stay on the previous CPU"
//! description = "…"
//! source = "where it comes from"
//! family = "bias_prev"            # experiments that are summarized together
//! machine = "epyc-9654-2s"        # as for --machine
//! workload = "hackbench -g 32"    # a benchmark's command line; or cases, see below
//! task_group_depth = 3            # task groups around the workload; 0: the root group
//! scale = 0.005                   # fraction of the workload to run; default 1
//! runs = 5                        # seeds for each side
//! seed = 1                        # the first one
//! relax_domain_level = 2          # default: no request
//! time_limit = 1000               # simulated seconds after which a run is abandoned
//! headline = ["runtime_s"]        # the metrics of interest
//! ablation_cases = ["2 groups"]   # cases for which ablations are run; default: the first
//!
//! [baseline]                      # label, and profile, policy, sched_feat, set, cost as for coreward run
//! label = "linux-6.5"
//! profile = "linux-6.5"
//!
//! [[variant]]                     # like the baseline except for what is given here
//! label = "WAKEUP_BIAS_PREV"
//! sched_feat = ["WAKEUP_BIAS_PREV"]
//! seed = 101                      # its own first seed, for a comparison of unpaired runs
//!
//! [[case]]                        # instead of `workload`: the load points of a table
//! label = "2 groups"
//! workload = "hackbench -g 2"
//! scale = 0.1                     # default: as above
//! runs = 10                       # default: as above
//!
//! [[ablation]]                    # what --ablations switches off or changes on all sides, for at most 5 runs of each
//! label = "no line transfers"     # sched_feat, set, cost, task_group_depth
//! cost = { transfer_llc_ns = 0 }
//!
//! [[published]]
//! id = "S01-001"                  # id of the row, if it is from a collection; unique in the file
//! case = "2 groups"               # required if there are cases
//! variant = "WAKEUP_BIAS_PREV"    # default: the first variant
//! metric = "runtime_s"            # may be one that is not simulated
//! statistic = "mean"              # of the runs: mean (the default), std, min, max, p50, p75, p99
//! baseline = 49
//! patched = 29
//! delta_pct = 41                  # + is better; default: computed from the two values
//! spread_pct = 1.5                # coefficient of variation as published; default: none was published
//! source = "…"                    # default: that of the experiment
//! note = "…"
//! ```
//!
//! Required are `name`, `machine`, `workload` or one `[[case]]`, `[baseline]`, one `[[variant]]`, and their labels.
//! Run i of every side has the same seed, unless a variant has its own seed. Published rows may be an array instead,
//! `published = [{ metric = "…", delta_pct = 1 }, …]`, with one row per line, before the first table.

mod parse;
mod raw;
mod source;

use std::path::Path;

use coreward_metrics::{Metric, Published};
use coreward_workload::Scale;

use crate::policy::Policy;

/// The most runs of a side that may be requested.
pub const MAX_RUNS: u32 = 1000;
/// Largest file, in KiB; no experiment comes near it.
const MAX_KIB: u64 = 1 << 10;

/// Why an experiment file was refused. The text names the file, the line and the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExperimentError(String);

/// An experiment whose names have all been looked up; machine and workloads are read when it is run.
#[derive(Debug)]
pub struct Experiment {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) family: Option<String>,
    pub(crate) machine: Named,
    pub(crate) task_group_depth: u32,
    pub(crate) time_limit_s: u64,
    pub(crate) headline: Vec<Metric>,
    pub(crate) baseline: Side,
    pub(crate) variants: Vec<Side>,
    /// At least one.
    pub(crate) cases: Vec<Case>,
    pub(crate) ablations: Vec<Ablation>,
    pub(crate) published: Vec<Published>,
}

/// A text and its place in the file, for messages about it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) text: String,
    /// `FILE:LINE: FIELD`
    pub(crate) place: String,
}

/// A side of the comparison.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) label: String,
    pub(crate) policy: Policy,
    /// Seed of its first run.
    pub(crate) seed: u64,
}

/// A workload that all sides run.
#[derive(Debug)]
pub(crate) struct Case {
    /// `None` if the experiment has no cases but one workload.
    pub(crate) label: Option<String>,
    pub(crate) workload: Named,
    pub(crate) scale: Scale,
    pub(crate) runs: u32,
    /// Whether the experiment's ablations are run for it.
    pub(crate) ablated: bool,
}

/// A mechanism that is switched off, or changed, to show its effect on the result.
#[derive(Debug)]
pub(crate) struct Ablation {
    pub(crate) label: String,
    /// The policies of the baseline and the variants with it.
    pub(crate) policies: Vec<Policy>,
    pub(crate) task_group_depth: u32,
}

impl Experiment {
    /// Reads an experiment file.
    ///
    /// # Errors
    /// It cannot be read, or is refused by [`Experiment::parse`].
    pub fn load(path: &Path) -> Result<Experiment, ExperimentError> {
        let name = path.display().to_string();
        let text = coreward_input::read_text(path, MAX_KIB)
            .map_err(|error| ExperimentError(format!("cannot read {name}: {error}")))?;
        Experiment::parse(&name, &text)
    }

    /// Reads the text of an experiment file; `path` is used in messages.
    ///
    /// # Errors
    /// It is no TOML, a field is missing, unknown or of the wrong type, or a name or value in it is
    /// not one that is allowed.
    pub fn parse(path: &str, text: &str) -> Result<Experiment, ExperimentError> {
        parse::experiment(path, text)
    }

    /// Leaves out all cases except those with these labels.
    ///
    /// # Errors
    /// There is no case of one of them.
    pub(crate) fn only(&mut self, labels: &[String]) -> Result<(), ExperimentError> {
        for label in labels {
            if !self.cases.iter().any(|case| case.label.as_ref() == Some(label)) {
                let allowed: Vec<_> = self.cases.iter().filter_map(|case| case.label.as_deref()).collect();
                let what = parse::unknown_case(label, &allowed);
                return Err(ExperimentError(format!("{}: {what}", self.name)));
            }
        }
        self.cases.retain(|case| case.label.as_ref().is_some_and(|label| labels.contains(label)));
        Ok(())
    }

    /// The baseline and the variants.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &Side> {
        std::iter::once(&self.baseline).chain(&self.variants)
    }
}
