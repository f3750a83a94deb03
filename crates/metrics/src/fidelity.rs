//! How well simulated changes agree with published ones, row by row, by family of experiments and over all.
//!
//! A published row is an *effect* if its change is beyond twice its spread, and is scored by its sign. Otherwise it is a
//! *null* row: it says that nothing changed, and a simulation has to say the same.

mod before;
mod fit;
mod markdown;
mod record;
mod reliability;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ablation::Ablated;
use crate::compare::Comparison;
use crate::published::PublishedBesideSimulated;
use crate::stats::{Statistic, Summary};

pub use before::Level;
pub use fit::{FamilyFit, Fit};
pub use markdown::render;
pub use record::{Hits, Record, Standing, benchmark};
pub use reliability::Reliability;

/// Spread that is assumed of a row that prints none, as a coefficient of variation in percent. It is an assumption: of 273
/// rows of kernel threads and LWN articles that do print one, a quarter are below 1.4, half below 2.9 and three quarters
/// below 6.4.
pub const ROW_SPREAD_UNKNOWN: f64 = 2.0;

/// A change of more than this many spreads is an effect.
pub const EFFECT_SPREADS: f64 = 2.0;

/// The verdict of a row on the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowVerdict {
    /// An effect, and the simulated change has its sign.
    RightSign,
    /// An effect, and the simulated change is 0 or has the other sign.
    WrongSign,
    /// A null row, and the simulated change is within twice the larger of the published and the simulated spread.
    NullOk,
    /// A null row, and the simulated change is beyond that.
    NullMissed,
    /// The simulation has no figure: the runs have no such value, or it is 0 before the change. Counts as not right.
    NoFigure,
    /// The simulator does not have the metric. Not counted.
    NotSimulated,
    /// No change was published, or none from a value other than 0. Not counted.
    NoPublishedChange,
}

impl RowVerdict {
    /// The verdict in words.
    pub fn text(self) -> &'static str {
        match self {
            RowVerdict::RightSign => "right sign",
            RowVerdict::WrongSign => "wrong sign",
            RowVerdict::NullOk => "null ok",
            RowVerdict::NullMissed => "null missed",
            RowVerdict::NoFigure => "no figure",
            RowVerdict::NotSimulated => "not simulated",
            RowVerdict::NoPublishedChange => "no published change",
        }
    }
}

/// A value before the change, in the unit of its metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Before {
    /// The published one; not 0.
    pub published: f64,
    /// The simulated one.
    pub simulated: f64,
}

/// A published row beside what was simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the row in the collection that it was taken from.
    pub id: Option<String>,
    /// Name of the experiment.
    pub experiment: String,
    /// Label of the case.
    pub case: Option<String>,
    /// Label of the variant, if it is not the first.
    pub variant: Option<String>,
    /// Name of the machine.
    pub machine: String,
    /// Name of the workload without its options, see [`benchmark`].
    pub benchmark: String,
    /// Name of the metric.
    pub metric: String,
    /// What of the runs it is.
    pub statistic: Statistic,
    /// Its value before the change; `None` if that was not published, or is not simulated.
    pub before: Option<Before>,
    /// Published change in percent, + is better.
    pub published_pct: Option<f64>,
    /// Published spread, or [`ROW_SPREAD_UNKNOWN`].
    pub spread_pct: f64,
    /// Whether the spread was published.
    pub spread_published: bool,
    /// Simulated change in percent, + is better.
    pub simulated_pct: Option<f64>,
    /// Spread of the simulated runs, as published ones are given.
    pub simulated_spread_pct: Option<f64>,
    /// The ends of the simulated change's 80 % interval over the bounds of the costs, see [`crate::uncertainty`]. `None`
    /// if that was not asked for, or if the statistic is one of many runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_pct: Option<[f64; 2]>,
    /// The part of the workload that the runs at the points of the interval have, if it is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_part: Option<f64>,
    /// The simulated changes at the points of the interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_points_pct: Vec<Option<f64>>,
    /// What the row says.
    pub verdict: RowVerdict,
}

impl Row {
    fn new(comparison: &Comparison, beside: &PublishedBesideSimulated) -> Row {
        let published = beside.published;
        let simulated = beside.baseline.and_then(|runs| runs.statistic(published.statistic));
        let before = published.baseline.filter(|value| *value != 0.0).zip(simulated);
        let row = Row {
            id: published.id.clone(),
            experiment: comparison.experiment.clone(),
            case: comparison.case.clone(),
            variant: published.variant.clone(),
            machine: comparison.recipe.machine.split(':').next().unwrap_or_default().to_owned(),
            benchmark: benchmark(&comparison.recipe.workload),
            metric: published.metric.clone(),
            statistic: published.statistic,
            before: before.map(|(published, simulated)| Before { published, simulated }),
            published_pct: published.delta_pct,
            spread_pct: published.spread_pct.unwrap_or(ROW_SPREAD_UNKNOWN),
            spread_published: published.spread_pct.is_some(),
            simulated_pct: beside.delta_pct,
            simulated_spread_pct: beside.spread_pct,
            interval_pct: beside.uncertainty.map(|it| [it.low_pct, it.high_pct]),
            interval_part: beside.uncertainty.and_then(|it| it.part),
            at_points_pct: beside.uncertainty.map(|it| it.changes.clone()).unwrap_or_default(),
            verdict: RowVerdict::NotSimulated,
        };
        Row { verdict: if beside.metric.is_some() { row.judge() } else { row.verdict }, ..row }
    }

    fn judge(&self) -> RowVerdict {
        let Some(published) = self.published_pct else {
            return RowVerdict::NoPublishedChange;
        };
        let Some(simulated) = self.simulated_pct else {
            return RowVerdict::NoFigure;
        };
        let spread = self.spread_pct.max(self.simulated_spread_pct.unwrap_or(0.0));
        match (self.is_effect(), simulated * published > 0.0, simulated.abs() <= EFFECT_SPREADS * spread) {
            (true, true, _) => RowVerdict::RightSign,
            (true, false, _) => RowVerdict::WrongSign,
            (false, _, true) => RowVerdict::NullOk,
            (false, _, false) => RowVerdict::NullMissed,
        }
    }

    /// Whether the published change is beyond twice its spread.
    pub fn is_effect(&self) -> bool {
        self.published_pct.is_some_and(|delta| delta.abs() > EFFECT_SPREADS * self.spread_pct)
    }

    /// Whether the row is compared with a simulated one.
    fn is_compared(&self) -> bool {
        !matches!(self.verdict, RowVerdict::NotSimulated | RowVerdict::NoPublishedChange)
    }

    /// Whether the simulated change is beyond twice the spread of the simulated runs; not if that is not known.
    fn is_clear(&self) -> bool {
        self.simulated_pct
            .zip(self.simulated_spread_pct)
            .is_some_and(|(delta, spread)| delta.abs() > EFFECT_SPREADS * spread)
    }

    /// Whether the published change is in the interval of the simulated one, or less than its spread beside it; `None`
    /// without an interval. The change of two means of three to five runs is within about one spread in four of five cases.
    fn is_covered(&self) -> Option<bool> {
        let [low, high] = self.interval_pct?;
        Some((low - self.spread_pct..=high + self.spread_pct).contains(&self.published_pct?))
    }

    /// Distance of the simulated change from the published one, in percentage points.
    fn error(&self) -> Option<f64> {
        Some((self.simulated_pct? - self.published_pct?).abs())
    }
}

/// What the rows of a family, or all rows, say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Rows with a published change of a metric that is simulated.
    pub compared: usize,
    /// Effects among them.
    pub scored: usize,
    /// Effects with the right sign.
    pub right: usize,
    /// Effects with the right sign whose simulated change is beyond twice the spread of the simulated runs.
    pub right_and_clear: usize,
    /// Median distance of the simulated changes from the published ones over the effects, in percentage points.
    pub median_error: Option<f64>,
    /// Null rows among those compared.
    pub null: usize,
    /// Null rows that were simulated as such.
    pub null_ok: usize,
    /// The median distance over the null rows.
    pub null_median_error: Option<f64>,
    /// Rows among those compared whose simulated change has an interval.
    #[serde(default)]
    pub with_interval: usize,
    /// Those whose published change is in it, give or take its spread.
    #[serde(default)]
    pub covered: usize,
    /// Rows whose metric is not simulated or that print no change.
    pub not_compared: usize,
}

impl Score {
    /// The score of some rows.
    fn of<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Score {
        let compared = rows.clone().filter(|row| row.is_compared());
        let effects = compared.clone().filter(|row| row.is_effect());
        let nulls = compared.clone().filter(|row| !row.is_effect());
        let right = effects.clone().filter(|row| row.verdict == RowVerdict::RightSign);
        Score {
            compared: compared.clone().count(),
            scored: effects.clone().count(),
            right: right.clone().count(),
            right_and_clear: right.filter(|row| row.is_clear()).count(),
            median_error: median(effects.filter_map(Row::error)),
            null: nulls.clone().count(),
            null_ok: nulls.clone().filter(|row| row.verdict == RowVerdict::NullOk).count(),
            null_median_error: median(nulls.filter_map(Row::error)),
            with_interval: compared.clone().filter_map(Row::is_covered).count(),
            covered: compared.filter_map(Row::is_covered).filter(|covered| *covered).count(),
            not_compared: rows.filter(|row| !row.is_compared()).count(),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    Summary::of(&values.collect::<Vec<_>>()).map(|summary| summary.median)
}

/// The program that something was run by.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// Its revision, in any words.
    pub revision: String,
    /// The fingerprint of its model: a later model has another one.
    pub model: String,
}

/// The experiments of one family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// The programs that ran them, in the order of the experiments.
    pub origins: Vec<Origin>,
    /// What its rows say together.
    pub score: Score,
    /// Its rows in the order of the experiments.
    pub rows: Vec<Row>,
    /// Which mechanism carries the effects; empty if that was not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ablations: Vec<Ablated>,
}

impl Family {
    fn new(name: String, outcomes: Vec<(Origin, Ran)>) -> Family {
        let (mut origins, mut rows, mut ablations) = (Vec::new(), Vec::new(), Vec::new());
        for (origin, ran) in outcomes {
            if !origins.contains(&origin) {
                origins.push(origin);
            }
            rows.extend(ran.rows);
            ablations.extend(ran.ablations);
        }
        Family { name, origins, score: Score::of(rows.iter()), rows, ablations }
    }

    /// The revisions that ran its experiments.
    pub fn revisions(&self) -> String {
        let mut revisions: Vec<&str> = self.origins.iter().map(|origin| origin.revision.as_str()).collect();
        revisions.dedup();
        revisions.join(", ")
    }

    /// The model that they are of, if it is one.
    fn model(&self) -> Option<&str> {
        let (first, others) = self.origins.split_first()?;
        others.iter().all(|origin| origin.model == first.model).then_some(&first.model)
    }
}

/// What came of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub experiment: String,
    /// The family that it belongs to.
    pub family: String,
    /// The program that ran it.
    #[serde(flatten)]
    pub origin: Origin,
    /// Its figures.
    #[serde(flatten)]
    pub ran: Ran,
}

/// The figures of an experiment that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// The published rows of all its cases, with their verdicts.
    rows: Vec<Row>,
    /// Of its cases for which there are any.
    ablations: Vec<Ablated>,
}

impl Ran {
    /// Scores the published rows of the comparisons, one for each case.
    pub fn new(comparisons: &[Comparison], ablations: Vec<Ablated>) -> Ran {
        let rows = |comparison: &Comparison| -> Vec<Row> {
            let beside = comparison.published_beside_simulated();
            beside.iter().map(|beside| Row::new(comparison, beside)).collect()
        };
        Ran { rows: comparisons.iter().flat_map(rows).collect(), ablations }
    }
}

/// The agreement of all experiments. Serializes as the report of `coreward fidelity --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fidelity {
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// Over all families.
    pub overall: Score,
    /// In the order of their names.
    pub families: Vec<Family>,
    /// What was published where changes of some size were simulated.
    pub reliability: Vec<Reliability>,
    /// How the values before the changes agree.
    pub before: Vec<Level>,
    /// What costs that are fitted to them would be worth. `None` if fewer than three families have intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
}

impl Fidelity {
    /// Scores experiments.
    pub fn new(outcomes: Vec<Outcome>, notes: Vec<String>) -> Fidelity {
        let mut by_family: BTreeMap<String, Vec<(Origin, Ran)>> = BTreeMap::new();
        for Outcome { family, origin, ran, .. } in outcomes {
            by_family.entry(family).or_default().push((origin, ran));
        }
        let families: Vec<Family> =
            by_family.into_iter().map(|(name, outcomes)| Family::new(name, outcomes)).collect();
        let overall = Score::of(families.iter().flat_map(|family| &family.rows));
        let fit = Fit::of(&families);
        let before = before::levels(&families);
        let reliability = reliability::classes(&families);
        Fidelity { notes, overall, families, reliability, before, fit }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::compare::Runs;
    use crate::published::Published;
    use crate::registry::Metric;
    use crate::uncertainty::Uncertainty;

    /// Runs of 99, 100 and 101 times `base` and `patched` events per second: a coefficient of variation of 1 %.
    pub(super) fn comparison(base: f64, patched: f64, published: Vec<Published>) -> Comparison {
        let side = |label: &str, value: f64| Runs {
            label: label.into(),
            runs: [0.99, 1.0, 1.01]
                .map(|x| [(Metric::events_per_s, value * x)].into_iter().collect())
                .to_vec(),
            ..Runs::default()
        };
        Comparison::new("e", &[], side("a", base), vec![side("b", patched)], published, vec![])
    }

    pub(super) fn published(delta_pct: f64, spread_pct: Option<f64>) -> Published {
        Published {
            id: None,
            case: None,
            variant: None,
            metric: "events_per_s".into(),
            statistic: Statistic::Mean,
            baseline: None,
            patched: None,
            delta_pct: Some(delta_pct),
            spread_pct,
            source: "s".into(),
            note: None,
        }
    }

    /// Of one comparison, by revision `abc`.
    pub(super) fn outcome(family: &str, comparison: &Comparison) -> Outcome {
        Outcome {
            experiment: comparison.experiment.clone(),
            family: family.into(),
            origin: Origin { revision: "abc".into(), model: "m".into() },
            ran: Ran::new(slice::from_ref(comparison), vec![]),
        }
    }

    fn fidelity(comparison: Comparison) -> Fidelity {
        Fidelity::new(vec![outcome("f", &comparison)], vec![])
    }

    fn verdict(base: f64, patched: f64, published: Published) -> RowVerdict {
        fidelity(comparison(base, patched, vec![published])).families[0].rows[0].verdict
    }

    #[test]
    fn effects_are_judged_by_their_sign() {
        // 10 % beyond twice 4 %, and within twice 5 %
        assert_eq!(verdict(100.0, 101.0, published(10.0, Some(4.0))), RowVerdict::RightSign);
        assert_eq!(verdict(100.0, 99.0, published(10.0, Some(4.0))), RowVerdict::WrongSign);
        assert_eq!(verdict(100.0, 99.0, published(-10.0, Some(4.0))), RowVerdict::RightSign);
        assert_eq!(verdict(100.0, 100.0, published(10.0, Some(4.0))), RowVerdict::WrongSign);
        assert_eq!(verdict(100.0, 100.0, published(10.0, Some(5.0))), RowVerdict::NullOk);
    }

    #[test]
    fn null_rows_are_judged_by_the_larger_spread() {
        // simulated: 5 % or 1.9 % with a spread of 1 %
        assert_eq!(verdict(100.0, 105.0, published(0.5, Some(3.0))), RowVerdict::NullOk);
        assert_eq!(verdict(100.0, 105.0, published(0.5, Some(2.4))), RowVerdict::NullMissed);
        assert_eq!(verdict(100.0, 101.9, published(0.5, Some(0.5))), RowVerdict::NullOk);
        assert_eq!(verdict(100.0, 102.1, published(0.5, Some(0.5))), RowVerdict::NullMissed);
    }

    #[test]
    fn a_row_without_a_spread_has_the_assumed_one() {
        assert_eq!(verdict(100.0, 101.0, published(4.1, None)), RowVerdict::RightSign);
        assert_eq!(verdict(100.0, 101.0, published(4.0, None)), RowVerdict::NullOk);
    }

    #[test]
    fn what_cannot_be_compared() {
        let unknown = Published { metric: "stalled_cycles".into(), ..published(10.0, None) };
        assert_eq!(verdict(100.0, 101.0, unknown), RowVerdict::NotSimulated);
        let absent = Published { metric: "newidle_time_s".into(), ..published(10.0, None) };
        assert_eq!(verdict(100.0, 101.0, absent), RowVerdict::NoFigure);
        assert_eq!(verdict(0.0, 101.0, published(10.0, None)), RowVerdict::NoFigure);
        let unchanged = Published { delta_pct: None, baseline: Some(3.0), ..published(1.0, None) };
        assert_eq!(verdict(100.0, 101.0, unchanged), RowVerdict::NoPublishedChange);
    }

    #[test]
    fn a_score_worked_by_hand() {
        // Simulated +5 % with a spread of 1 %. Errors of the effects: 5, 25, 3, of which the median is 5; of the null
        // rows: 4 and 6.
        let rows = vec![
            published(10.0, Some(1.0)),
            published(-20.0, Some(1.0)),
            published(8.0, Some(1.0)),
            published(1.0, Some(1.0)),
            published(-1.0, Some(3.0)),
            Published { metric: "newidle_time_s".into(), ..published(10.0, None) },
            Published { metric: "newidle_time_s".into(), ..published(0.0, None) },
            Published { metric: "other".into(), ..published(10.0, None) },
        ];
        let score = fidelity(comparison(100.0, 105.0, rows)).overall;
        assert_eq!((score.compared, score.scored, score.right, score.right_and_clear), (7, 4, 2, 2));
        assert_eq!((score.with_interval, score.covered), (0, 0), "none was asked for");
        assert_eq!((score.null, score.null_ok, score.not_compared), (3, 1, 1));
        assert!((score.median_error.unwrap() - 5.0).abs() < 1e-9);
        assert!((score.null_median_error.unwrap() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_right_sign_within_the_noise_is_not_clear() {
        let score = |patched| fidelity(comparison(100.0, patched, vec![published(10.0, None)])).overall;
        assert_eq!((score(101.9).right, score(101.9).right_and_clear), (1, 0));
        assert_eq!((score(102.1).right, score(102.1).right_and_clear), (1, 1));
    }

    #[test]
    fn families_are_in_the_order_of_their_names() {
        let comparison = comparison(100.0, 105.0, vec![published(10.0, None)]);
        let fidelity =
            Fidelity::new(["b", "a", "b"].map(|family| outcome(family, &comparison)).into(), vec![]);
        let families: Vec<_> = fidelity.families.iter().map(|f| (f.name.as_str(), f.rows.len())).collect();
        assert_eq!(families, [("a", 1), ("b", 2)]);
        assert_eq!(fidelity.overall.compared, 3);
    }

    #[test]
    fn a_family_of_several_revisions_is_of_one_model_or_of_none() {
        let comparison = comparison(100.0, 105.0, vec![published(10.0, None)]);
        let of = |revision: &str, model: &str| Outcome {
            origin: Origin { revision: revision.into(), model: model.into() },
            ..outcome("f", &comparison)
        };
        let family = |outcomes: &[Outcome]| Fidelity::new(outcomes.to_vec(), vec![]).families.remove(0);
        let one = family(&[of("abc", "m"), of("def", "m"), of("abc", "m")]);
        assert_eq!((one.revisions().as_str(), one.model()), ("abc, def", Some("m")));
        let two = family(&[of("abc", "m"), of("abc", "n")]);
        assert_eq!((two.revisions().as_str(), two.model()), ("abc", None));
    }

    #[test]
    fn published_changes_are_covered_by_intervals_of_what_one_run_has() {
        let rows = [3.9, 4.0, 10.0, 10.1].map(|delta_pct| published(delta_pct, Some(1.0)));
        let spread = Published { statistic: Statistic::Std, ..published(7.0, Some(1.0)) };
        let mut comparison = comparison(100.0, 105.0, rows.into_iter().chain([spread]).collect());
        let interval = Uncertainty { low_pct: 5.0, high_pct: 9.0, ..Uncertainty::default() };
        comparison.variants[0].uncertainty = [(Metric::events_per_s, interval)].into();
        let fidelity = fidelity(comparison);
        assert_eq!((fidelity.overall.with_interval, fidelity.overall.covered), (4, 2));
        let intervals = fidelity.families[0].rows.iter().map(|row| row.interval_pct);
        let interval = Some([5.0, 9.0]);
        assert!(intervals.eq([interval, interval, interval, interval, None]));
    }

    #[test]
    fn intervals_of_a_part_of_the_workload_are_counted_apart() {
        let fidelity = |parts: &[Option<f64>]| {
            let outcomes = parts.iter().map(|&part| {
                let mut comparison = comparison(100.0, 105.0, vec![published(10.0, Some(1.0))]);
                // The interval of a part is too low
                let high_pct = if part.is_some() { 8.0 } else { 9.0 };
                let interval = Uncertainty { low_pct: 5.0, high_pct, part, ..Uncertainty::default() };
                comparison.variants[0].uncertainty = [(Metric::events_per_s, interval)].into();
                outcome("f", &comparison)
            });
            markdown::render(&Fidelity::new(outcomes.collect(), vec![]))
        };
        let apart = "whole runs, 1 (100 %) of 1 are covered; where it is of runs of a part of the workload, 0 (0 %) of 2";
        assert!(fidelity(&[Some(0.1), None, Some(0.5)]).contains(apart));
        assert!(!fidelity(&[None, None]).contains("are covered"));
    }
}
