//! Experiment files: a baseline, its variants, and what was published about them.
//!
//! `template.toml`, which `coreward experiment init` writes, shows every key.
//!
//! Required are `name`, `machine`, `workload` or one `[[case]]`, `[baseline]`, one `[[variant]]`, and their labels.
//! Run i of every side has the same seed, unless a variant has its own seed. Published rows may be an array instead,
//! `published = [{ metric = "…", delta_pct = 1 }, …]`, with one row per line, before the first table.

mod ad_hoc;
pub(crate) mod command;
mod parse;
mod raw;
mod schema;
mod source;

use std::path::Path;

use coreward_engine::Change;
use coreward_metrics::{Metric, Published};
use coreward_workload::Scale;

use crate::policy::Policy;

pub(crate) use ad_hoc::{AdHoc, changed};

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
    /// The arguments of `coreward compare` that stand for it.
    pub(crate) origin: Vec<String>,
    pub(crate) title: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) family: Option<String>,
    pub(crate) machine: Named,
    pub(crate) task_group_depth: u32,
    pub(crate) time_limit_s: u64,
    /// The steady middle of a run is skipped once its rates are known to this many per cent.
    pub(crate) skip_steady_pct: Option<f64>,
    /// Points at which the costs are varied for the intervals of published figures.
    pub(crate) points: Option<u32>,
    /// The part of the workload that the runs at the points have.
    pub(crate) points_scale: Scale,
    pub(crate) events: Vec<Change>,
    pub(crate) headline: Vec<Metric>,
    pub(crate) baseline: Side,
    pub(crate) variants: Vec<Side>,
    /// At least one.
    pub(crate) cases: Vec<Case>,
    pub(crate) ablations: Vec<Ablation>,
    pub(crate) published: Vec<Published>,
    /// What a reader has to know of how the baseline's policy was chosen.
    pub(crate) notes: Vec<String>,
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
