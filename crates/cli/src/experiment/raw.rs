//! The contents of an experiment file, as written. The comments on its keys are those of the schema.

use std::collections::BTreeMap;

use coreward_metrics::{Metric, Published};
use coreward_policy::Assignment;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::schema;

/// A baseline, its variants, and what was published about them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExperiment {
    /// Name of the experiment in reports.
    #[schemars(with = "String")]
    pub(super) name: Spanned<String>,
    /// A line above the report.
    pub(super) title: Option<String>,
    /// What the experiment is about.
    pub(super) description: Option<String>,
    /// Where it comes from.
    pub(super) source: Option<String>,
    /// Name under which coreward fidelity summarizes it together with others.
    pub(super) family: Option<String>,
    /// A preset, a path ending in .toml, sysfs, sysfs:DIR, hwloc:FILE or a shorthand like 2n4l8c2t.
    #[schemars(with = "String")]
    pub(super) machine: Spanned<String>,
    /// Command line of a benchmark, like hackbench -g 4 --pipe; or [[case]] tables.
    #[schemars(with = "Option<String>")]
    pub(super) workload: Option<Spanned<String>>,
    /// Task groups around the workload: 0 is the root group, 3 (the default) a login session.
    #[serde(default)]
    #[schemars(schema_with = "schema::task_group_depth")]
    pub(super) task_group_depth: Option<Spanned<i64>>,
    /// Skip the steady middle of each run once its rates are known to this many per cent; default: simulate all of it.
    #[serde(default)]
    #[schemars(schema_with = "schema::skip_steady")]
    pub(super) skip_steady: Option<Spanned<f64>>,
    /// Seeds for each side; default: 5.
    #[serde(default)]
    #[schemars(schema_with = "schema::runs")]
    pub(super) runs: Option<Spanned<i64>>,
    /// Points at which coreward fidelity --intervals varies the costs; default: no interval.
    #[serde(default)]
    #[schemars(schema_with = "schema::points")]
    pub(super) points: Option<Spanned<u32>>,
    /// The part of the workload that the runs at these points have, for runs that take long; default: 1.
    #[serde(default)]
    #[schemars(schema_with = "schema::points_scale")]
    pub(super) points_scale: Option<Spanned<f64>>,
    /// Seed of the first run of each side; default: 1.
    pub(super) seed: Option<u64>,
    /// cpuset.sched_relax_domain_level on all sides; default: no request.
    #[schemars(with = "Option<i64>")]
    pub(super) relax_domain_level: Option<Spanned<i64>>,
    /// Simulated seconds after which a run is abandoned; default: 1000.
    #[serde(default)]
    #[schemars(schema_with = "schema::time_limit")]
    pub(super) time_limit: Option<Spanned<i64>>,
    /// Changes of the machine in the middle of each run, like "1.5s offline 2-3", "2s online 2-3" and "1s cpus 0-1", which
    /// are from then on the CPUs of the workload's cpuset; or of a task group, like "0s weight /a 300" and
    /// "1s max /a 20ms/100ms"; default: none.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) events: Vec<Spanned<String>>,
    /// The metrics that the verdict is about, the most important one first; all others are exploratory. Default: the
    /// benchmark's result, of events also wakeup_latency_us_p99, and cpu_migrations.
    #[serde(default)]
    #[schemars(schema_with = "schema::metrics")]
    pub(super) headline: Option<Spanned<Vec<Metric>>>,
    /// Labels of the cases for which --ablations runs the ablations; default: the first.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) ablation_cases: Vec<Spanned<String>>,
    /// The side that the variants are compared with.
    pub(super) baseline: RawSide,
    /// Sides that are like the baseline except for what they name.
    #[schemars(schema_with = "schema::variants")]
    pub(super) variant: Vec<RawSide>,
    /// Load points of a table, instead of workload.
    #[serde(default)]
    pub(super) case: Vec<RawCase>,
    /// Mechanisms that --ablations switches off or changes on all sides, one at a time.
    #[serde(default)]
    pub(super) ablation: Vec<RawAblation>,
    /// Published figures to put beside the simulated ones.
    #[serde(default)]
    #[schemars(with = "Vec<Published>")]
    pub(super) published: Vec<Spanned<Published>>,
}

/// The value of a tunable or cost: an integer, or a text as `--with` takes it, `2ms`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "allowed is an integer, for a time also a text like \"2ms\"")]
pub(super) enum Setting {
    Integer(i64),
    Text(String),
}

impl Setting {
    /// Its value if it is set to what is called `name`.
    pub(super) fn of(&self, name: &str) -> Result<i64, String> {
        match self {
            Setting::Integer(value) => Ok(*value),
            Setting::Text(text) => format!("{name}={text}").parse().map(|Assignment { value, .. }| value),
        }
    }
}

/// A side of the comparison.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSide {
    /// Name of the side; each side needs its own.
    #[schemars(with = "String")]
    pub(super) label: Spanned<String>,
    /// The kernel that the policy stands for; default: linux-6.12, or as the baseline.
    #[serde(default)]
    #[schemars(schema_with = "schema::profile")]
    pub(super) profile: Option<Spanned<String>>,
    /// A policy out of the tree: a shared object, or a directory with its source.
    #[schemars(with = "Option<String>")]
    pub(super) policy: Option<Spanned<String>>,
    /// Features to switch on, or off with NO_ before the name.
    #[serde(default)]
    #[schemars(schema_with = "schema::features")]
    pub(super) sched_feat: Vec<Spanned<String>>,
    /// Tunables to set.
    #[serde(default)]
    #[schemars(schema_with = "schema::tunables")]
    pub(super) set: BTreeMap<String, Spanned<Setting>>,
    /// Costs of the machine to change.
    #[serde(default)]
    #[schemars(schema_with = "schema::costs")]
    pub(super) cost: BTreeMap<String, Spanned<Setting>>,
    /// Seed of its first run, for a comparison of runs with other seeds; default: as the experiment.
    pub(super) seed: Option<u64>,
}

/// A load point.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCase {
    /// Name of the case; each needs its own.
    #[schemars(with = "String")]
    pub(super) label: Spanned<String>,
    /// Command line of a benchmark.
    #[schemars(with = "String")]
    pub(super) workload: Spanned<String>,
    /// Seeds for each side; default: as the experiment.
    #[serde(default)]
    #[schemars(schema_with = "schema::runs")]
    pub(super) runs: Option<Spanned<i64>>,
}

/// A mechanism that is switched off or changed on all sides.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAblation {
    /// Name of the ablation; each needs its own.
    #[schemars(with = "String")]
    pub(super) label: Spanned<String>,
    /// Features to switch on, or off with NO_ before the name.
    #[serde(default)]
    #[schemars(schema_with = "schema::features")]
    pub(super) sched_feat: Vec<Spanned<String>>,
    /// Tunables to set.
    #[serde(default)]
    #[schemars(schema_with = "schema::tunables")]
    pub(super) set: BTreeMap<String, Spanned<Setting>>,
    /// Costs of the machine to change.
    #[serde(default)]
    #[schemars(schema_with = "schema::costs")]
    pub(super) cost: BTreeMap<String, Spanned<Setting>>,
    /// Task groups around the workload.
    #[serde(default)]
    #[schemars(schema_with = "schema::task_group_depth")]
    pub(super) task_group_depth: Option<Spanned<i64>>,
}
