//! Compares variants with a baseline, and with published figures.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cpu_time::CpuTime;
use crate::difference::Difference;
use crate::fidelity::{Reliability, Standing};
use crate::published::{Published, PublishedBesideSimulated};
use crate::registry::{Metric, Metrics};
use crate::stats::{self, ALPHA, Summary, Verdict};
use crate::uncertainty::Uncertainty;

/// The runs of one side of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs {
    /// Name of the side, as the experiment file gives it.
    pub label: String,
    /// Name of the policy's profile.
    pub profile: String,
    /// What is not as in the profile and the machine file.
    pub changes: Vec<String>,
    /// Seed of the first run; each run has the next one.
    pub seed: u64,
    /// Metrics of each run.
    pub runs: Vec<Metrics>,
    /// What the CPUs' time was spent on, in all runs together.
    pub cpu_time: CpuTime,
}

/// What was run, and how to repeat it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Recipe {
    /// Version of the program.
    pub version: String,
    /// The command line that makes exactly these runs.
    pub command: String,
    /// Name and description of the machine.
    pub machine: String,
    /// Command line of the workload, with its defaults.
    pub workload: String,
    /// Fraction of the workload that was run, a decimal number.
    pub scale: String,
    /// Nesting depth of the workload's task group.
    pub task_group_depth: u32,
}

/// A baseline, its variants, and what was published about them. Serializes as the report of `coreward compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the experiment.
    pub experiment: String,
    /// Label of the case, if the experiment has cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// What was run.
    pub recipe: Recipe,
    /// The metrics that the comparison is about, and that its verdicts are about; the others are exploratory.
    pub headline: Vec<Metric>,
    /// The side that the variants are compared with.
    pub baseline: Side,
    /// The variants in the order of the experiment file.
    pub variants: Vec<Variant>,
    /// Published results.
    pub published: Vec<Published>,
    /// How well the model did at comparisons of this kind; `None` if no published figures of this kind were checked.
    pub record: Option<Standing>,
    /// What was published where changes of some size were simulated.
    pub reliability: Vec<Reliability>,
    /// Remarks for the reader of the report.
    pub notes: Vec<String>,
    /// The invariants that runs of a side broke.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Name of the side.
    pub label: String,
    /// Name of the policy's profile.
    pub profile: String,
    /// What is not as in the profile and the machine file.
    pub changes: Vec<String>,
    /// Seed of the first run; each run has the next one.
    pub seed: u64,
    /// Number of runs.
    pub runs: usize,
    /// Summary of each metric over the runs that have it.
    pub metrics: BTreeMap<Metric, Summary>,
    /// Value of each metric in each run; `None` in runs that do not have it.
    pub values: BTreeMap<Metric, Vec<Option<f64>>>,
    /// What the CPUs' time was spent on, in all runs together.
    pub cpu_time_s: CpuTime,
}

/// A variant and how it differs from the baseline. The maps of differences hold the metrics that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variant {
    /// Its runs.
    #[serde(flatten)]
    pub side: Side,
    /// Runs that are the same as the baseline's run of the same seed in every metric: there the change did nothing.
    pub same_runs: usize,
    /// Whether runs of one seed are compared with each other. A seed stands for the same chance events on both sides
    /// only until the first decision that differs; from there on, the runs have nothing in common
    /// (`make power` measures their correlation). So pairs help only if many runs never come to that point: if half of them are the same.
    pub paired: bool,
    /// Change of the mean in percent of the baseline's, see [`stats::delta_pct`].
    pub delta_pct: BTreeMap<Metric, Option<f64>>,
    /// 95 % interval of the change of each metric by itself, see [`Difference::interval_pct`].
    pub interval_pct: BTreeMap<Metric, Option<(f64, f64)>>,
    /// p-value for each metric by itself, see [`Difference::p_value`].
    pub p_value: BTreeMap<Metric, Option<f64>>,
    /// Judgement of each headline metric. The p-values are corrected by [`stats::holm`] over the headline metrics, of
    /// which chance would otherwise move one too easily.
    pub verdict: BTreeMap<Metric, Verdict>,
    /// Of the headline metrics for which no change was shown: the change that would have been, see
    /// [`Difference::detectable_pct`].
    pub detectable_pct: BTreeMap<Metric, Option<f64>>,
    /// Of the headline metrics, what their change is over the bounds of the machine's costs, if that was asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub uncertainty: BTreeMap<Metric, Uncertainty>,
}

impl Comparison {
    /// Compares the runs of each variant with those of the baseline. If no headline metric is declared, it is the
    /// result of the benchmark, the wakeup latency if that is a rate of events, and the number of migrations.
    pub fn new(
        experiment: impl Into<String>,
        headline: &[Metric],
        baseline: Runs,
        variants: Vec<Runs>,
        published: Vec<Published>,
        notes: Vec<String>,
    ) -> Comparison {
        let side = Side::new(&baseline);
        let headline = if headline.is_empty() { usual_headline(&side) } else { headline.to_vec() };
        let variant = |runs: Runs| Variant::new(&headline, &baseline, &runs);
        Comparison {
            experiment: experiment.into(),
            case: None,
            recipe: Recipe::default(),
            variants: variants.into_iter().map(variant).collect(),
            baseline: side,
            headline,
            published: published.into_iter().map(Published::with_delta).collect(),
            record: None,
            reliability: Vec::new(),
            notes,
            broken: Vec::new(),
        }
    }

    /// The comparison with what was run.
    pub fn with_recipe(self, recipe: Recipe) -> Comparison {
        Comparison { recipe, ..self }
    }

    /// The comparison as one case of its experiment.
    pub fn of_case(self, label: Option<String>) -> Comparison {
        Comparison { case: label, ..self }
    }

    /// The comparison with the invariants that its runs broke.
    pub fn with_broken(self, broken: Vec<String>) -> Comparison {
        Comparison { broken, ..self }
    }

    /// The comparison with the model's record at such comparisons, and at changes of any kind.
    pub fn with_record(self, record: Option<Standing>, reliability: Vec<Reliability>) -> Comparison {
        Comparison { record, reliability, ..self }
    }

    /// The published results beside the simulated ones.
    pub fn published_beside_simulated(&self) -> Vec<PublishedBesideSimulated<'_>> {
        self.published.iter().map(|published| self.beside(published)).collect()
    }

    /// The metrics of the published results, of those that the simulator has.
    pub fn published_metrics(&self) -> Vec<Metric> {
        self.published.iter().filter_map(|published| Metric::from_name(&published.metric)).collect()
    }

    /// The variant that a published result is about.
    fn variant_of(&self, published: &Published) -> Option<&Variant> {
        match &published.variant {
            Some(label) => self.variants.iter().find(|variant| variant.side.label == *label),
            None => self.variants.first(),
        }
    }

    fn beside<'a>(&'a self, published: &'a Published) -> PublishedBesideSimulated<'a> {
        let metric = Metric::from_name(&published.metric);
        let of = |metrics: &'a BTreeMap<Metric, Summary>| metrics.get(&metric?);
        let variant = self.variant_of(published);
        let baseline = of(&self.baseline.metrics);
        let patched = variant.and_then(|variant| of(&variant.side.metrics));
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
            uncertainty: variant
                .filter(|_| published.statistic.is_of_one_run())
                .and_then(|variant| variant.uncertainty.get(&metric?)),
        }
    }
}

impl Side {
    /// The policy and the runs of the side, in words.
    pub fn text(&self) -> String {
        let Side { label, profile, changes, seed, runs, .. } = self;
        let with = if changes.is_empty() { String::new() } else { format!(" with {}", changes.join(", ")) };
        let seeds = match runs {
            1 => format!("1 run, seed {seed}"),
            _ => format!("{runs} runs, seeds {seed} to {}", seed.wrapping_add(*runs as u64 - 1)),
        };
        format!("{label}: {profile}{with}; {seeds}")
    }

    /// The metrics of each run.
    pub fn by_run(&self) -> Vec<Metrics> {
        let of = |run: usize| self.values.iter().filter_map(move |(&m, values)| Some((m, values[run]?)));
        (0..self.runs).map(|run| of(run).collect()).collect()
    }

    fn new(runs: &Runs) -> Side {
        let all: BTreeSet<Metric> =
            runs.runs.iter().flat_map(Metrics::iter).map(|(metric, _)| metric).collect();
        let of = |metric: Metric| runs.runs.iter().map(|run| run.get(metric)).collect::<Vec<_>>();
        let values: BTreeMap<_, _> = all.into_iter().map(|metric| (metric, of(metric))).collect();
        let summary = |values: &[Option<f64>]| Summary::of(&present(values));
        Side {
            label: runs.label.clone(),
            profile: runs.profile.clone(),
            changes: runs.changes.clone(),
            seed: runs.seed,
            runs: runs.runs.len(),
            metrics: values.iter().filter_map(|(&m, values)| Some((m, summary(values)?))).collect(),
            values,
            cpu_time_s: runs.cpu_time,
        }
    }
}

impl Variant {
    fn new(headline: &[Metric], baseline: &Runs, runs: &Runs) -> Variant {
        let (base, own) = (Side::new(baseline), Side::new(runs));
        let same_runs = match baseline.seed == runs.seed {
            true => baseline.runs.iter().zip(&runs.runs).filter(|(a, b)| a == b).count(),
            false => 0,
        };
        let paired = base.runs == own.runs && same_runs > 0 && 2 * same_runs >= own.runs;
        let both: Vec<Metric> =
            own.metrics.keys().copied().filter(|m| base.metrics.contains_key(m)).collect();
        let delta = |m: Metric| stats::delta_pct(m.better(), base.metrics[&m].mean, own.metrics[&m].mean);
        let differences: BTreeMap<Metric, Difference> = both
            .iter()
            .filter_map(|&m| Some((m, difference(&base.values[&m], &own.values[&m], paired)?)))
            .collect();
        let of = |m: Metric| differences.get(&m);
        let mut variant = Variant {
            delta_pct: both.iter().map(|&m| (m, delta(m))).collect(),
            interval_pct: both
                .iter()
                .map(|&m| (m, of(m).and_then(|d| d.interval_pct(m.better(), ALPHA))))
                .collect(),
            p_value: both.iter().map(|&m| (m, of(m).map(Difference::p_value))).collect(),
            side: own,
            same_runs,
            uncertainty: BTreeMap::new(),
            paired,
            verdict: BTreeMap::new(),
            detectable_pct: BTreeMap::new(),
        };
        variant.judge(headline, &base, &differences);
        variant
    }

    /// Judges the headline metrics.
    fn judge(&mut self, headline: &[Metric], base: &Side, differences: &BTreeMap<Metric, Difference>) {
        let judged: Vec<Metric> = headline.iter().copied().filter(|m| self.p_value.contains_key(m)).collect();
        let corrected = correct(judged.iter().filter_map(|m| Some((*m, self.p_value[m]?))));
        let verdict = |m: Metric| {
            let (before, after) = (base.metrics[&m].mean, self.side.metrics[&m].mean);
            Verdict::of(m.better(), before, after, corrected.get(&m).copied())
        };
        self.verdict = judged.iter().map(|&m| (m, verdict(m))).collect();
        // the level at which Holm's method tested those that it left
        let left: Vec<Metric> =
            judged.iter().copied().filter(|m| self.verdict[m] == Verdict::NotShown).collect();
        let alpha = ALPHA / left.len() as f64;
        let detectable = |m: &Metric| differences.get(m).and_then(|d| d.detectable_pct(alpha));
        self.detectable_pct = left.iter().map(|m| (*m, detectable(m))).collect();
    }

    /// Judgement of a metric; `None` if it is exploratory or a side lacks it.
    pub fn verdict(&self, metric: Metric) -> Option<Verdict> {
        self.verdict.get(&metric).copied()
    }

    /// Whether an exploratory metric differs so much that chance alone would rarely make it. Of many such metrics, chance
    /// alone makes some.
    pub fn is_notable(&self, metric: Metric) -> bool {
        let p = self.p_value.get(&metric).copied().flatten();
        !self.verdict.contains_key(&metric) && p.is_some_and(|p| p < ALPHA)
    }

    /// The exploratory metrics that have been tested.
    pub fn exploratory(&self) -> impl Iterator<Item = Metric> + '_ {
        let tested = self.p_value.iter().filter(|(_, p)| p.is_some());
        tested.map(|(metric, _)| *metric).filter(|metric| !self.verdict.contains_key(metric))
    }
}

fn present(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().copied().flatten().collect()
}

/// How a metric differs, over the runs that have it.
fn difference(base: &[Option<f64>], own: &[Option<f64>], paired: bool) -> Option<Difference> {
    if paired {
        let pairs = base.iter().zip(own).filter_map(|(base, own)| Some(((*base)?, (*own)?)));
        return Difference::paired(&pairs.collect::<Vec<_>>());
    }
    Difference::unpaired(&present(base), &present(own))
}

/// What a benchmark reports, and what a placement changes first. Threads that do events and sleep between them may keep
/// their rate while they wait longer for a CPU, so events have their wakeup latencies beside them.
fn usual_headline(baseline: &Side) -> Vec<Metric> {
    let results = [Metric::events_per_s, Metric::messages_per_s, Metric::runtime_s];
    let result = results.into_iter().find(|metric| baseline.metrics.contains_key(metric));
    let latency = (result == Some(Metric::events_per_s)).then_some(Metric::wakeup_latency_us_p99);
    let measured = latency.filter(|metric| baseline.metrics.contains_key(metric));
    result.into_iter().chain(measured).chain([Metric::cpu_migrations]).collect()
}

/// p-values corrected as one family.
fn correct(p_values: impl Iterator<Item = (Metric, f64)>) -> BTreeMap<Metric, f64> {
    let (metrics, raw): (Vec<Metric>, Vec<f64>) = p_values.unzip();
    metrics.into_iter().zip(stats::holm(&raw)).collect()
}

/// Compares with a file in `tests/golden`, or writes it if `COREWARD_BLESS` is set.
#[cfg(test)]
pub(crate) fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("COREWARD_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "COREWARD_BLESS=1 writes {name}");
}

/// Builds the comparison that the tests of the reports print: hackbench with round figures.
#[cfg(test)]
pub(crate) fn example() -> Comparison {
    let side = |label: &str, seed, values: &[(f64, f64, f64)]| Runs {
        label: label.into(),
        profile: "linux-6.5".into(),
        changes: if seed == 1 { vec![label.into()] } else { vec![] },
        seed,
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
        cpu_time: CpuTime::new(std::array::from_fn(|part| match part {
            0 => values.iter().map(|(runtime, ..)| (runtime * 1e9) as u64).sum(),
            _ => 0,
        })),
    };
    use crate::stats::Statistic;
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
        &[Metric::runtime_s, Metric::wakeups],
        side("linux-6.5", 1, &[(49.0, 118e6, 9.0), (50.0, 119e6, 10.0), (51.0, 120e6, 11.0)]),
        vec![
            side("WAKEUP_BIAS_PREV", 1, &[(29.0, 7e6, 9.5), (30.0, 7e6, 10.5), (31.0, 7e6, 11.5)]),
            side("no-op", 101, &[(49.0, 118e6, 9.0), (50.0, 119e6, 10.0), (51.0, 120e6, 11.0)]),
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
    use serde_json::json;

    use super::*;
    use crate::stats::Statistic;

    /// Runs of one metric.
    fn runs(label: impl Into<String>, seed: u64, metric: Metric, values: &[f64]) -> Runs {
        let runs = values.iter().map(|value| [(metric, *value)].into_iter().collect()).collect();
        Runs { label: label.into(), seed, runs, ..Runs::default() }
    }

    #[test]
    fn events_have_the_latency_of_wakeups_beside_them() {
        let headline = |result: Metric| {
            let run =
                [result, Metric::wakeup_latency_us_p99, Metric::cpu_migrations].map(|metric| (metric, 1.0));
            let side = || Runs { runs: vec![run.into_iter().collect(); 2], ..Runs::default() };
            Comparison::new("e", &[], side(), vec![side()], vec![], vec![]).headline
        };
        let events = [Metric::events_per_s, Metric::wakeup_latency_us_p99, Metric::cpu_migrations];
        assert_eq!(headline(Metric::events_per_s), events);
        assert_eq!(headline(Metric::messages_per_s), [Metric::messages_per_s, Metric::cpu_migrations]);
    }

    #[test]
    fn json_has_the_documented_shape() {
        let one = |value| runs(format!("at {value}"), 3, Metric::runtime_s, &[value, value + 1.0]);
        let comparison = Comparison::new("e", &[], one(10.0), vec![one(5.0)], vec![], vec!["n".into()]);
        let variant = &comparison.variants[0];
        let side = |mean: f64, min: f64| {
            let summary =
                json!({"mean": mean, "std": 0.5_f64.sqrt(), "min": min, "median": mean, "max": min + 1.0});
            json!({
                "label": format!("at {min}"),
                "profile": "",
                "changes": [],
                "seed": 3,
                "runs": 2,
                "metrics": {"runtime_s": summary},
                "values": {"runtime_s": [min, min + 1.0]},
                "cpu_time_s": CpuTime::default(),
            })
        };
        let p = variant.p_value[&Metric::runtime_s];
        let mut own = side(5.5, 5.0);
        own.as_object_mut().unwrap().extend(
            json!({
                "same_runs": 0,
                "paired": false,
                "delta_pct": {"runtime_s": 5.0 / 10.5 * 100.0},
                "interval_pct": {"runtime_s": variant.interval_pct[&Metric::runtime_s]},
                "p_value": {"runtime_s": p},
                "verdict": {"runtime_s": "better"},
                "detectable_pct": {},
            })
            .as_object()
            .unwrap()
            .clone(),
        );
        let want = json!({
            "experiment": "e",
            "recipe": Recipe::default(),
            "headline": ["runtime_s", "cpu_migrations"],
            "baseline": side(10.5, 10.0),
            "variants": [own],
            "published": [],
            "record": null,
            "reliability": [],
            "notes": ["n"],
        });
        assert_eq!(serde_json::to_value(&comparison).unwrap(), want);
        // t = 5 / sqrt(0.5) with exactly 2 degrees of freedom: p = 1 - t / sqrt(2 + t^2) = 1 - sqrt(50 / 52).
        assert!((p.unwrap() - (1.0 - (50.0_f64 / 52.0).sqrt())).abs() < 1e-12);
    }

    #[test]
    fn single_runs_have_deltas_but_no_p_value() {
        let one = |value| runs("x", 1, Metric::runtime_s, &[value]);
        let comparison = Comparison::new("e", &[], one(10.0), vec![one(9.0)], vec![], vec![]);
        let variant = serde_json::to_value(&comparison.variants[0]).unwrap();
        assert_eq!(variant["delta_pct"]["runtime_s"], 10.0);
        assert!(variant["p_value"]["runtime_s"].is_null());
        assert!(variant["metrics"]["runtime_s"]["std"].is_null());
        assert_eq!(comparison.variants[0].verdict(Metric::runtime_s), Some(Verdict::Untested));
    }

    #[test]
    fn a_real_effect_is_found_and_a_no_op_is_not() {
        let comparison = example();
        let [patched, no_op] = &comparison.variants[..] else { panic!("two variants") };
        assert_eq!(patched.verdict(Metric::runtime_s), Some(Verdict::Better));
        assert_eq!(patched.verdict(Metric::wakeups), Some(Verdict::NotShown));
        assert!(no_op.verdict.values().all(|&v| v == Verdict::NotShown));
        assert!(no_op.p_value.values().all(|&p| p == Some(1.0)));
        assert!(no_op.delta_pct.values().all(|&d| d == Some(0.0)));
    }

    /// Only what the comparison is about has a verdict; the rest is marked, however large its change.
    #[test]
    fn other_metrics_are_exploratory() {
        let patched = &example().variants[0];
        assert_eq!(patched.verdict(Metric::cpu_migrations), None);
        assert!(patched.is_notable(Metric::cpu_migrations) && !patched.is_notable(Metric::runtime_s));
        assert_eq!(patched.exploratory().collect::<Vec<_>>(), [Metric::cpu_migrations]);
    }

    /// A fall of migrations by more than half with five runs is shown if it is what is asked about, whatever the number
    /// of the metrics beside it: its p-value of 0.004 would not survive the correction for all of them.
    #[test]
    fn metrics_that_nobody_asked_about_do_not_hide_an_effect() {
        let side = |label: &str, seed, values: [f64; 5]| {
            let mut side = runs(label, seed, Metric::cpu_migrations, &values);
            for (i, run) in side.runs.iter_mut().enumerate() {
                for (j, metric) in Metric::ALL.iter().filter(|m| **m != Metric::cpu_migrations).enumerate() {
                    run.set(*metric, ((i * 7 + j * 3 + seed as usize) % 5) as f64);
                }
            }
            side
        };
        let base = side("a", 1, [586.0, 420.0, 700.0, 510.0, 800.0]);
        let own = side("b", 1, [250.0, 130.0, 390.0, 240.0, 300.0]);
        let compare = |headline: &[Metric]| {
            Comparison::new("e", headline, base.clone(), vec![own.clone()], vec![], vec![]).variants[0]
                .clone()
        };
        let asked = compare(&[Metric::runtime_s, Metric::cpu_migrations]);
        assert_eq!(asked.verdict(Metric::cpu_migrations), Some(Verdict::Better));
        assert_eq!(compare(Metric::ALL).verdict(Metric::cpu_migrations), Some(Verdict::NotShown));
    }

    #[test]
    fn chance_differences_do_not_survive_the_correction() {
        // One of forty metrics has p = 0.04: under 0.05 by itself, but that is what chance gives.
        let p_values = Metric::ALL.iter().map(|&m| (m, if m == Metric::wakeups { 0.04 } else { 0.5 }));
        assert_eq!(correct(p_values)[&Metric::wakeups], 1.0);
    }

    #[test]
    fn a_metric_of_one_side_only_is_not_compared() {
        let side = |metric| runs("x", 1, metric, &[1.0]);
        let comparison =
            Comparison::new("e", &[], side(Metric::runtime_s), vec![side(Metric::wakeups)], vec![], vec![]);
        assert!(comparison.variants[0].delta_pct.is_empty());
        assert!(comparison.variants[0].side.metrics.contains_key(&Metric::wakeups));
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
