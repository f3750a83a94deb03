//! The contents of an experiment file, as written.

use std::collections::BTreeMap;

use coreward_metrics::{Metric, Published};
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExperiment {
    pub(super) name: Spanned<String>,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) source: Option<String>,
    pub(super) family: Option<String>,
    pub(super) machine: Spanned<String>,
    pub(super) workload: Option<Spanned<String>>,
    pub(super) task_group_depth: Option<Spanned<i64>>,
    pub(super) scale: Option<Spanned<f64>>,
    pub(super) runs: Option<Spanned<i64>>,
    pub(super) seed: Option<u64>,
    pub(super) relax_domain_level: Option<Spanned<i64>>,
    pub(super) time_limit: Option<Spanned<i64>>,
    #[serde(default)]
    pub(super) headline: Vec<Metric>,
    #[serde(default)]
    pub(super) ablation_cases: Vec<Spanned<String>>,
    pub(super) baseline: RawSide,
    pub(super) variant: Vec<RawSide>,
    #[serde(default)]
    pub(super) case: Vec<RawCase>,
    #[serde(default)]
    pub(super) ablation: Vec<RawAblation>,
    #[serde(default)]
    pub(super) published: Vec<Spanned<Published>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSide {
    pub(super) label: Spanned<String>,
    pub(super) profile: Option<Spanned<String>>,
    pub(super) policy: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) sched_feat: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) set: BTreeMap<String, Spanned<i64>>,
    #[serde(default)]
    pub(super) cost: BTreeMap<String, Spanned<i64>>,
    pub(super) seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCase {
    pub(super) label: Spanned<String>,
    pub(super) workload: Spanned<String>,
    pub(super) scale: Option<Spanned<f64>>,
    pub(super) runs: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAblation {
    pub(super) label: Spanned<String>,
    #[serde(default)]
    pub(super) sched_feat: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) set: BTreeMap<String, Spanned<i64>>,
    #[serde(default)]
    pub(super) cost: BTreeMap<String, Spanned<i64>>,
    pub(super) task_group_depth: Option<Spanned<i64>>,
}
