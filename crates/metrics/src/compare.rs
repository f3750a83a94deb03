//! Variants beside a baseline, and beside what was published.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::registry::{Better, Metric, Metrics};
use crate::stats::{self, Summary, Verdict};

/// The runs of one side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs {
    /// Name of the side, as the experiment file gives it.
    pub label: String,
    /// Metrics of each run.
    pub runs: Vec<Metrics>,
}

/// A published result that an experiment is held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Name of the metric; it may be one that the simulator does not have.
    pub metric: String,
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
    /// Where it was published.
    pub source: String,
    /// What has to be known to read it.
    #[serde(default)]
    pub note: Option<String>,
}

/// A baseline, its variants, and what was published about them. Serializes as the report of `coreward compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the experiment.
    pub experiment: String,
    /// The side that the variants are compared with.
    pub baseline: Baseline,
    /// The variants in the order of the experiment file.
    pub variants: Vec<Variant>,
    /// Published results; reports hold them against the first variant.
    pub published: Vec<Published>,
    /// Remarks for the reader of the report.
    pub notes: Vec<String>,
}

/// A published result beside the simulated one of the first variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedBesideSimulated<'a> {
    /// What was published.
    pub published: &'a Published,
    /// The metric, if the simulator has it.
    pub metric: Option<Metric>,
    /// The simulated baseline.
    pub baseline: Option<&'a Summary>,
    /// The simulated first variant.
    pub patched: Option<&'a Summary>,
    /// The simulated change, signed as the published one.
    pub delta_pct: Option<f64>,
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
            variants: variants.into_iter().map(|runs| Variant::new(&baseline, runs)).collect(),
            baseline,
            published: published.into_iter().map(Published::with_delta).collect(),
            notes,
        }
    }

    /// The published results beside the simulated ones of the first variant.
    pub fn published_beside_simulated(&self) -> Vec<PublishedBesideSimulated<'_>> {
        self.published.iter().map(|published| self.beside(published)).collect()
    }

    fn beside<'a>(&'a self, published: &'a Published) -> PublishedBesideSimulated<'a> {
        let metric = Metric::from_name(&published.metric);
        let variant = self.variants.first();
        let delta_pct = metric.and_then(|metric| *variant?.delta_pct.get(&metric)?);
        PublishedBesideSimulated {
            published,
            metric,
            baseline: metric.and_then(|metric| self.baseline.metrics.get(&metric)),
            patched: metric.and_then(|metric| variant?.metrics.get(&metric)),
            delta_pct,
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
    /// Direction of improvement of the metric; neutral if the simulator does not have it.
    pub fn better(&self) -> Better {
        Metric::from_name(&self.metric).map_or(Better::Neutral, Metric::better)
    }

    /// The source, and the note in parentheses if there is one.
    pub fn source_and_note(&self) -> String {
        match &self.note {
            Some(note) => format!("{} ({note})", self.source),
            None => self.source.clone(),
        }
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
        metric: metric.into(),
        baseline,
        patched,
        delta_pct: None,
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
    fn published_deltas_are_worked_out_unless_given() {
        let published = &example().published;
        assert!((published[0].delta_pct.unwrap() - 40.816_327).abs() < 1e-6);
        // Unknown to the simulator, so its sign is plain: less is -.
        assert!((published[2].delta_pct.unwrap() + 20.833_333).abs() < 1e-6);
    }
}
