//! Experiment files: a baseline, its variants, and what was published about them.
//!
//! ```toml
//! name = "wakeup-bias-prev"
//! title = "Stay on the previous CPU"
//! description = "…"
//! source = "where it comes from"
//! machine = "epyc-9654-2s"        # as for --machine
//! workload = "hackbench -g 32"    # a benchmark's command line
//! task_group_depth = 3           # task groups around the workload; 0: the root group
//! scale = 0.005                   # part of the workload that is run, 1 if left out
//! runs = 5                        # seeds per side
//! seed = 1                        # the first one
//! relax_domain_level = 2          # left out: no request
//! time_limit = 1000               # simulated seconds after which a run is given up
//! headline = ["runtime_s"]        # the metrics that it is about
//!
//! [baseline]                      # label, and profile, sched_feat, set, cost as for coreward run
//! label = "linux-6.5"
//! profile = "linux-6.5"
//!
//! [[variant]]                     # as the baseline but for what is given here
//! label = "WAKEUP_BIAS_PREV"
//! sched_feat = ["WAKEUP_BIAS_PREV"]
//! seed = 101                      # a first seed of its own, for a comparison of unpaired runs
//!
//! [[published]]                   # metric, baseline, patched, delta_pct, source, note
//! metric = "runtime_s"
//! delta_pct = 41
//! source = "…"
//! ```
//!
//! `name`, `machine`, `workload`, `[baseline]`, one `[[variant]]` and their labels have to be there.
//! Run i of every side has the same seed, unless a variant has a seed of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use coreward_engine::Settings;
use coreward_metrics::{Metric, Published};
use coreward_policy::Profile;
use coreward_workload::Scale;
use serde::Deserialize;
use toml::Spanned;

use crate::policy::{self, Policy};
use crate::scale;
use crate::setup::{MAX_TIME_LIMIT_S, TIME_LIMIT_S};

/// Runs of a side that may be asked for.
pub const MAX_RUNS: u32 = 1000;
/// Variants of an experiment.
const MAX_VARIANTS: usize = 64;
/// Runs of a side unless something else is said.
const DEFAULT_RUNS: u32 = 5;
const DEFAULT_SEED: u64 = 1;
/// No experiment comes near this size.
const MAX_BYTES: u64 = 1 << 20;

/// Why an experiment file was refused. The text names the file, the line and the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExperimentError(String);

/// An experiment whose names have all been looked up; machine and workload are read when it is run.
#[derive(Debug)]
pub struct Experiment {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) machine: Named,
    pub(crate) workload: Named,
    pub(crate) task_group_depth: u32,
    pub(crate) scale: Scale,
    pub(crate) runs: u32,
    pub(crate) time_limit_s: u64,
    pub(crate) headline: Vec<Metric>,
    pub(crate) baseline: Side,
    pub(crate) variants: Vec<Side>,
    pub(crate) published: Vec<Published>,
}

/// A text and where it stands, for messages about it.
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExperiment {
    name: String,
    title: Option<String>,
    description: Option<String>,
    source: Option<String>,
    machine: Spanned<String>,
    workload: Spanned<String>,
    task_group_depth: Option<Spanned<i64>>,
    scale: Option<Spanned<f64>>,
    runs: Option<Spanned<i64>>,
    seed: Option<u64>,
    relax_domain_level: Option<Spanned<i64>>,
    time_limit: Option<Spanned<i64>>,
    #[serde(default)]
    headline: Vec<Metric>,
    baseline: RawSide,
    variant: Vec<RawSide>,
    #[serde(default)]
    published: Vec<Published>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSide {
    label: String,
    profile: Option<Spanned<String>>,
    #[serde(default)]
    sched_feat: Vec<Spanned<String>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<i64>>,
    #[serde(default)]
    cost: BTreeMap<String, Spanned<i64>>,
    seed: Option<u64>,
}

impl Experiment {
    /// Reads an experiment file.
    ///
    /// # Errors
    /// It cannot be read, or is refused by [`Experiment::parse`].
    pub fn load(path: &Path) -> Result<Experiment, ExperimentError> {
        let name = path.display().to_string();
        let unreadable =
            |reason: &dyn std::fmt::Display| ExperimentError(format!("cannot read {name}: {reason}"));
        let file = File::open(path).map_err(|e| unreadable(&e))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(unreadable(&"it is larger than 1 MiB"));
        }
        let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8 text"))?;
        Experiment::parse(&name, &text)
    }

    /// Reads the text of an experiment file; `path` is used in messages.
    ///
    /// # Errors
    /// It is no TOML, a field is missing, unknown or of the wrong type, or a name or value in it is
    /// not one that is allowed.
    pub fn parse(path: &str, text: &str) -> Result<Experiment, ExperimentError> {
        let source = Source { path, text };
        let raw: RawExperiment = toml::from_str(text).map_err(|e| source.syntax(&e))?;
        if !(1..=MAX_VARIANTS).contains(&raw.variant.len()) {
            let what = format!("{} variants, allowed are 1 to {MAX_VARIANTS}", raw.variant.len());
            return Err(source.error(None, "variant", &what));
        }
        let seed = raw.seed.unwrap_or(DEFAULT_SEED);
        let mut common = Policy::new(Profile::DEFAULT);
        if let Some(level) = &raw.relax_domain_level {
            let set = common.set("relax_domain_level", *level.get_ref());
            set.map_err(|what| source.at(level, "relax_domain_level", &what))?;
        }
        let baseline = source.side("baseline", common, seed, &raw.baseline)?;
        let variants =
            raw.variant.iter().map(|variant| source.side("variant", baseline.policy.clone(), seed, variant));
        Ok(Experiment {
            variants: variants.collect::<Result<_, _>>()?,
            baseline,
            scale: source.scale(raw.scale.as_ref())?,
            runs: source.number("runs", raw.runs.as_ref(), MAX_RUNS.into(), DEFAULT_RUNS.into())? as u32,
            time_limit_s: source.number(
                "time_limit",
                raw.time_limit.as_ref(),
                MAX_TIME_LIMIT_S,
                TIME_LIMIT_S,
            )?,
            machine: source.named("machine", raw.machine),
            workload: source.named("workload", raw.workload),
            name: raw.name,
            title: raw.title,
            source: raw.source,
            description: raw.description,
            task_group_depth: source.depth(raw.task_group_depth.as_ref())?,
            headline: raw.headline,
            published: raw.published,
        })
    }

    /// The baseline and the variants.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &Side> {
        std::iter::once(&self.baseline).chain(&self.variants)
    }
}

/// The text that is read, for line numbers in messages.
struct Source<'a> {
    path: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn place(&self, span: Option<Range<usize>>) -> String {
        span.map_or_else(|| self.path.to_owned(), |span| format!("{}:{}", self.path, self.line(&span)))
    }

    fn error(&self, span: Option<Range<usize>>, field: &str, what: &str) -> ExperimentError {
        ExperimentError(format!("{}: {field}: {what}", self.place(span)))
    }

    fn at<T>(&self, value: &Spanned<T>, field: &str, what: &str) -> ExperimentError {
        self.error(Some(value.span()), field, what)
    }

    fn syntax(&self, error: &toml::de::Error) -> ExperimentError {
        ExperimentError(format!("{}: {}", self.place(error.span()), error.message()))
    }

    fn named(&self, field: &str, text: Spanned<String>) -> Named {
        Named { place: format!("{}: {field}", self.place(Some(text.span()))), text: text.into_inner() }
    }

    fn scale(&self, raw: Option<&Spanned<f64>>) -> Result<Scale, ExperimentError> {
        let Some(raw) = raw else { return Ok(Scale::FULL) };
        // the shortest decimal that reads back as this number is what stands in the file
        scale::parse(&raw.get_ref().to_string()).map_err(|what| self.at(raw, "scale", &what))
    }

    /// A depth of task groups.
    fn depth(&self, raw: Option<&Spanned<i64>>) -> Result<u32, ExperimentError> {
        let Some(raw) = raw else { return Ok(Settings::LOGIN_SESSION_DEPTH) };
        let depth = u32::try_from(*raw.get_ref()).ok().filter(|depth| *depth <= Settings::MAX_DEPTH);
        depth.ok_or_else(|| {
            let what =
                format!("task_group_depth is {}, allowed are 0 to {}", raw.get_ref(), Settings::MAX_DEPTH);
            self.at(raw, "task_group_depth", &what)
        })
    }

    /// A number from 1 to `max`.
    fn number(
        &self,
        field: &str,
        raw: Option<&Spanned<i64>>,
        max: u64,
        default: u64,
    ) -> Result<u64, ExperimentError> {
        let Some(raw) = raw else { return Ok(default) };
        let number = u64::try_from(*raw.get_ref()).ok().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| {
            self.at(raw, field, &format!("{field} is {}, allowed are 1 to {max}", raw.get_ref()))
        })
    }

    /// A side: the policy that it starts from, changed as the side's table says.
    fn side(
        &self,
        table: &str,
        mut policy: Policy,
        seed: u64,
        raw: &RawSide,
    ) -> Result<Side, ExperimentError> {
        if let Some(name) = &raw.profile {
            let profile = policy::profile(name.get_ref());
            let profile = profile.map_err(|what| self.at(name, &format!("{table}.profile"), &what))?;
            policy.profile = profile;
        }
        for feature in &raw.sched_feat {
            let switched = policy.sched_feat(feature.get_ref());
            switched.map_err(|what| self.at(feature, &format!("{table}.sched_feat"), &what))?;
        }
        for (name, value) in &raw.set {
            let set = policy.set(name, *value.get_ref());
            set.map_err(|what| self.at(value, &format!("{table}.set"), &what))?;
        }
        for (name, value) in &raw.cost {
            let set = policy.cost(name, *value.get_ref());
            set.map_err(|what| self.at(value, &format!("{table}.cost"), &what))?;
        }
        Ok(Side { label: raw.label.clone(), policy, seed: raw.seed.unwrap_or(seed) })
    }
}
