//! Compares variants with a baseline, and with published figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::registry::{Better, Metric, Metrics};
use crate::stats::{self, Statistic, Summary, Verdict};

/// The runs of one side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs {
    /// Name of the side, as the experiment file gives it.
    pub label: String,
    /// Metrics of each run.
    pub runs: Vec<Metrics>,
}

/// A published result that an experiment is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Name of the row in the collection that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Label of the case that it is about; `None` if the experiment has no cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Label of the variant that it is about; `None` for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Name of the metric; it may be one that the simulator does not have.
    pub metric: String,
    /// What of a side's runs the values are.
    #[serde(default, skip_serializing_if = "Statistic::is_mean")]
    pub statistic: Statistic,
    /// Value before the change, in the unit of the metric; `None` if only the change was published.
    #[serde(default)]
    pub baseline: Option<f64>,
    /// Value after the change.
    #[serde(default)]
    pub patched: Option<f64>,
    /// Change in percent as [`stats::delta_pct`] signs it; [`Comparison::new`] works it out from the values if it is not
    /// given.
    #[serde(default)]
    pub delta_pct: Option<f64>,
    /// Spread of the runs as published: the coefficient of variation, in percent; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_pct: Option<f64>,
    /// Where it was published; in an experiment file it may be left out if the experiment has a source.
    #[serde(default)]
    pub source: String,
    /// A note that helps to interpret it.
    #[serde(default)]
    pub note: Option<String>,
}

/// A baseline, its variants, and what was published about them. Serializes as the report of `coreward compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the experiment.
    pub experiment: String,
    /// Label of the case, if the experiment has cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The side that the variants are compared with.
    pub baseline: Baseline,
    /// The variants in the order of the experiment file.
    pub variants: Vec<Variant>,
    /// Published results.
    pub published: Vec<Published>,
    /// Remarks for the reader of the report.
    pub notes: Vec<String>,
}

/// A published result beside the simulated one of the variant that it is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedBesideSimulated<'a> {
    /// What was published.
    pub published: &'a Published,
    /// The metric, if the simulator has it.
    pub metric: Option<Metric>,
    /// The simulated baseline.
    pub baseline: Option<&'a Summary>,
    /// The simulated variant.
    pub patched: Option<&'a Summary>,
    /// The simulated change of the statistic, signed as the published one.
    pub delta_pct: Option<f64>,
    /// Spread of the simulated runs: the larger coefficient of variation of the two sides, in percent. `None` if a
    /// side has a single run.
    pub spread_pct: Option<f64>,
    /// Simulated less published change, in percentage points.
    pub points: Option<f64>,
}

/// The baseline of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// Name of the side.
    pub label: String,
    /// Summary of each metric over the runs that have it.
    pub metrics: BTreeMap<Metric, Summary>,
}

/// A variant and how it differs from the baseline. The maps of differences hold the metrics that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variant {
    /// Name of the side.
    pub label: String,
    /// Summary of each metric over the runs that have it.
    pub metrics: BTreeMap<Metric, Summary>,
    /// Change of the mean in percent of the baseline's, see [`stats::delta_pct`].
    pub delta_pct: BTreeMap<Metric, Option<f64>>,
    /// p-value of Welch's t-test for each metric by itself, see [`stats::welch_p_value`].
    pub p_value: BTreeMap<Metric, Option<f64>>,
    /// Judgement of each metric. A variant has dozens of metrics, of which chance alone moves one in twenty, so the
    /// p-values are corrected by [`stats::holm`] over all metrics of the variant before they are judged.
    #[serde(skip)]
    pub verdicts: BTreeMap<Metric, Verdict>,
}

impl Comparison {
    /// Compares the runs of each variant with those of the baseline.
    pub fn new(
        experiment: impl Into<String>,
        baseline: Runs,
        variants: Vec<Runs>,
        published: Vec<Published>,
        notes: Vec<String>,
    ) -> Comparison {
        let baseline = Baseline { metrics: summarize(&baseline.runs), label: baseline.label };
        Comparison {
            experiment: experiment.into(),
            case: None,
            variants: variants.into_iter().map(|runs| Variant::new(&baseline, runs)).collect(),
            baseline,
            published: published.into_iter().map(Published::with_delta).collect(),
            notes,
        }
    }

    /// The comparison as one case of its experiment.
    pub fn of_case(self, label: Option<String>) -> Comparison {
        Comparison { case: label, ..self }
    }

    /// The published results beside the simulated ones.
    pub fn published_beside_simulated(&self) -> Vec<PublishedBesideSimulated<'_>> {
        self.published.iter().map(|published| self.beside(published)).collect()
    }

    /// The variant that a published result is about.
    fn variant_of(&self, published: &Published) -> Option<&Variant> {
        match &published.variant {
            Some(label) => self.variants.iter().find(|variant| variant.label == *label),
            None => self.variants.first(),
        }
    }

    fn beside<'a>(&'a self, published: &'a Published) -> PublishedBesideSimulated<'a> {
        let metric = Metric::from_name(&published.metric);
        let of = |metrics: &'a BTreeMap<Metric, Summary>| metrics.get(&metric?);
        let baseline = of(&self.baseline.metrics);
        let patched = self.variant_of(published).and_then(|variant| of(&variant.metrics));
        let sides = baseline.zip(patched);
        let delta_pct = sides.and_then(|(baseline, patched)| {
            let value = |summary: &Summary| summary.statistic(published.statistic);
            stats::delta_pct(published.better(), value(baseline)?, value(patched)?)
        });
        PublishedBesideSimulated {
            published,
            metric,
            baseline,
            patched,
            delta_pct,
            spread_pct: sides.and_then(|(a, b)| Some(a.coeff_var_pct()?.max(b.coeff_var_pct()?))),
            points: delta_pct.zip(published.delta_pct).map(|(simulated, published)| simulated - published),
        }
    }
}

impl Variant {
    fn new(baseline: &Baseline, runs: Runs) -> Variant {
        let metrics = summarize(&runs.runs);
        let pairs: Vec<(Metric, &Summary, &Summary)> = metrics
            .iter()
            .filter_map(|(&metric, own)| Some((metric, baseline.metrics.get(&metric)?, own)))
            .collect();
        let delta_pct = pairs
            .iter()
            .map(|&(m, base, own)| (m, stats::delta_pct(m.better(), base.mean, own.mean)))
            .collect();
        let p_value: BTreeMap<Metric, Option<f64>> =
            pairs.iter().map(|&(m, base, own)| (m, stats::welch_p_value(base, own))).collect();
        let corrected = correct(&p_value);
        let verdicts = pairs
            .iter()
            .map(|&(m, base, own)| {
                (m, Verdict::of(m.better(), base.mean, own.mean, corrected.get(&m).copied()))
            })
            .collect();
        Variant { label: runs.label, delta_pct, p_value, verdicts, metrics }
    }

    /// Judgement of a metric, untested if a side lacks it.
    pub fn verdict(&self, metric: Metric) -> Verdict {
        self.verdicts.get(&metric).copied().unwrap_or(Verdict::Untested)
    }
}

impl Published {
    /// Direction of improvement of the statistic; neutral if the simulator does not have the metric.
    pub fn better(&self) -> Better {
        self.statistic.better(Metric::from_name(&self.metric).map_or(Better::Neutral, Metric::better))
    }

    /// The metric, and what of it unless that is the mean.
    pub fn metric_and_statistic(&self) -> String {
        match self.statistic {
            Statistic::Mean => self.metric.clone(),
            statistic => format!("{} {}", self.metric, statistic.name()),
        }
    }

    /// The variant if it is named, the id, the source, and the note in parentheses.
    pub fn source_and_note(&self) -> String {
        let named = [&self.variant, &self.id].into_iter().flatten().map(|name| format!("{name}: "));
        let note = self.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        format!("{}{}{note}", named.collect::<String>(), self.source)
    }

    fn with_delta(mut self) -> Published {
        if let (None, Some(baseline), Some(patched)) = (self.delta_pct, self.baseline, self.patched) {
            self.delta_pct = stats::delta_pct(self.better(), baseline, patched);
        }
        self
    }
}

fn summarize(runs: &[Metrics]) -> BTreeMap<Metric, Summary> {
    let mut values: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
    for (metric, value) in runs.iter().flat_map(Metrics::iter) {
        values.entry(metric).or_default().push(value);
    }
    values.into_iter().filter_map(|(metric, values)| Some((metric, Summary::of(&values)?))).collect()
}

/// The p-values that there are, corrected as one family.
fn correct(p_values: &BTreeMap<Metric, Option<f64>>) -> BTreeMap<Metric, f64> {
    let (metrics, raw): (Vec<Metric>, Vec<f64>) =
        p_values.iter().filter_map(|(&m, &p)| Some((m, p?))).unzip();
    metrics.into_iter().zip(stats::holm(&raw)).collect()
}

/// Builds the comparison that the tests of the reports print: hackbench with round figures.
#[cfg(test)]
pub(crate) fn example() -> Comparison {
    let side = |label: &str, values: &[(f64, f64, f64)]| Runs {
        label: label.into(),
        runs: values
            .iter()
            .map(|&(runtime, migrations, wakeups)| {
                [
                    (Metric::runtime_s, runtime),
                    (Metric::cpu_migrations, migrations),
                    (Metric::wakeups, wakeups),
                ]
                .into_iter()
                .collect()
            })
            .collect(),
    };
    let published = |metric: &str, baseline, patched, note: Option<&str>| Published {
        id: None,
        case: None,
        variant: None,
        metric: metric.into(),
        statistic: Statistic::Mean,
        baseline,
        patched,
        delta_pct: None,
        spread_pct: None,
        source: "patch description".into(),
        note: note.map(Into::into),
    };
    Comparison::new(
        "wakeup-bias-prev",
        side("linux-6.5", &[(49.0, 118e6, 9.0), (50.0, 119e6, 10.0), (51.0, 120e6, 11.0)]),
        vec![
            side("WAKEUP_BIAS_PREV", &[(29.0, 7e6, 9.5), (30.0, 7e6, 10.5), (31.0, 7e6, 11.5)]),
            side("no-op", &[(49.0, 118e6, 9.0), (50.0, 119e6, 10.0), (51.0, 120e6, 11.0)]),
        ],
        vec![
            published("runtime_s", Some(49.0), Some(29.0), None),
            published("cpu_migrations", Some(118e6), Some(7e6), Some("rounded to a million")),
            published("stalled_cycles_backend_pct", Some(8.16), Some(6.46), None),
        ],
        vec!["EEVDF stands in for CFS".into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_documented_shape() {
        let one = |value| Runs {
            label: format!("at {value}"),
            runs: [value, value + 1.0].map(|v| [(Metric::runtime_s, v)].into_iter().collect()).to_vec(),
        };
        let comparison = Comparison::new("e", one(10.0), vec![one(5.0)], vec![], vec!["n".into()]);
        let summary = |mean, min, max| serde_json::json!({"mean": mean, "std": 0.5_f64.sqrt(), "min": min, "median": mean, "max": max});
        let p = comparison.variants[0].p_value[&Metric::runtime_s];
        let want = serde_json::json!({
            "experiment": "e",
            "baseline": {"label": "at 10", "metrics": {"runtime_s": summary(10.5, 10.0, 11.0)}},
            "variants": [{
                "label": "at 5",
                "metrics": {"runtime_s": summary(5.5, 5.0, 6.0)},
                "delta_pct": {"runtime_s": 5.0 / 10.5 * 100.0},
                "p_value": {"runtime_s": p},
            }],
            "published": [],
            "notes": ["n"],
        });
        assert_eq!(serde_json::to_value(&comparison).unwrap(), want);
        // t = 5 / sqrt(0.5) with exactly 2 degrees of freedom: p = 1 - t / sqrt(2 + t^2) = 1 - sqrt(50 / 52).
        assert!((p.unwrap() - (1.0 - (50.0_f64 / 52.0).sqrt())).abs() < 1e-12);
    }

    #[test]
    fn single_runs_have_deltas_but_no_p_value() {
        let one = |value| Runs {
            label: "x".into(),
            runs: vec![[(Metric::runtime_s, value)].into_iter().collect()],
        };
        let comparison = Comparison::new("e", one(10.0), vec![one(9.0)], vec![], vec![]);
        let variant = serde_json::to_value(&comparison.variants[0]).unwrap();
        assert_eq!(variant["delta_pct"]["runtime_s"], 10.0);
        assert!(variant["p_value"]["runtime_s"].is_null());
        assert!(variant["metrics"]["runtime_s"]["std"].is_null());
        assert_eq!(comparison.variants[0].verdict(Metric::runtime_s), Verdict::Untested);
    }

    #[test]
    fn a_real_effect_is_found_and_a_no_op_is_not() {
        let comparison = example();
        let [patched, no_op] = &comparison.variants[..] else { panic!("two variants") };
        assert_eq!(patched.verdict(Metric::runtime_s), Verdict::Better);
        assert_eq!(patched.verdict(Metric::cpu_migrations), Verdict::Better);
        assert_eq!(patched.verdict(Metric::wakeups), Verdict::NoDifference);
        assert!(no_op.verdicts.values().all(|&v| v == Verdict::NoDifference));
        assert!(no_op.p_value.values().all(|&p| p == Some(1.0)));
        assert!(no_op.delta_pct.values().all(|&d| d == Some(0.0)));
    }

    #[test]
    fn chance_differences_do_not_survive_the_correction() {
        // One of forty metrics has p = 0.04: under 0.05 by itself, but that is what chance gives.
        let p_values =
            Metric::ALL.iter().map(|&m| (m, Some(if m == Metric::wakeups { 0.04 } else { 0.5 }))).collect();
        assert_eq!(correct(&p_values)[&Metric::wakeups], 1.0);
    }

    #[test]
    fn a_metric_of_one_side_only_is_not_compared() {
        let side = |metric| Runs { label: "x".into(), runs: vec![[(metric, 1.0)].into_iter().collect()] };
        let comparison =
            Comparison::new("e", side(Metric::runtime_s), vec![side(Metric::wakeups)], vec![], vec![]);
        assert!(comparison.variants[0].delta_pct.is_empty());
        assert!(comparison.variants[0].metrics.contains_key(&Metric::wakeups));
    }

    #[test]
    fn a_published_result_is_held_against_its_statistic_and_variant() {
        let mut comparison = example();
        let row = Published {
            variant: Some("no-op".into()),
            statistic: Statistic::Std,
            ..comparison.published[1].clone()
        };
        comparison.published = vec![row, comparison.published[1].clone()];
        let [no_op, first] = &comparison.published_beside_simulated()[..] else { panic!("two rows") };
        // both spreads are those of 118, 119 and 120 million: no change; the first variant has none
        assert_eq!(no_op.delta_pct, Some(0.0));
        assert!((no_op.spread_pct.unwrap() - 100.0 / 119.0).abs() < 1e-9);
        assert!((first.delta_pct.unwrap() - 94.117_647).abs() < 1e-6);
    }

    #[test]
    fn published_deltas_are_worked_out_unless_given() {
        let published = &example().published;
        assert!((published[0].delta_pct.unwrap() - 40.816_327).abs() < 1e-6);
        // Unknown to the simulator, so its sign is plain: less is -.
        assert!((published[2].delta_pct.unwrap() + 20.833_333).abs() < 1e-6);
    }
}
