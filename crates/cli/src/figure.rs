//! Figures of many comparisons that are judged together: what of them is beyond noise.

use std::collections::BTreeSet;

use anyhow::anyhow;
use coreward_metrics::html::{self, Change, Tone};
use coreward_metrics::stats::{self, Verdict};
use coreward_metrics::{Comparison, Metric, Side, Variant};
use serde::{Deserialize, Serialize};

/// A change of so many percent has the full colour.
const FULL_PCT: f64 = 30.0;
/// The faintest colour of a cell beyond noise.
const FAINT: f64 = 0.2;

/// A metric of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) metric: Metric,
    /// The means of the two sides.
    pub(crate) baseline: f64,
    pub(crate) changed: f64,
    /// In percent, + is better.
    pub(crate) delta_pct: Option<f64>,
    /// 95 % interval of that, by itself.
    pub(crate) interval_pct: Option<(f64, f64)>,
    /// By itself.
    pub(crate) p_value: Option<f64>,
}

/// A figure and what it says.
#[derive(Clone, Serialize)]
pub(crate) struct JudgedFigure {
    #[serde(flatten)]
    pub(crate) figure: Figure,
    /// The p-value corrected over all figures; `None` if it was not tested.
    pub(crate) corrected_p: Option<f64>,
    pub(crate) verdict: Verdict,
}

/// The figures of a variant, for those of the metrics that both sides have.
pub(crate) fn of(metrics: &[Metric], baseline: &Side, variant: &Variant) -> Vec<Figure> {
    let figure = |metric: &Metric| {
        let (before, after) = (baseline.metrics.get(metric)?, variant.side.metrics.get(metric)?);
        Some(Figure {
            metric: *metric,
            baseline: before.mean,
            changed: after.mean,
            delta_pct: variant.delta_pct.get(metric).copied().flatten(),
            interval_pct: variant.interval_pct.get(metric).copied().flatten(),
            p_value: variant.p_value.get(metric).copied().flatten(),
        })
    };
    metrics.iter().filter_map(figure).collect()
}

/// Those of the metrics that no run of any side has.
pub(crate) fn unmeasured<'a>(
    metrics: &[Metric],
    comparisons: impl IntoIterator<Item = &'a Comparison>,
) -> Vec<Metric> {
    let sides = comparisons
        .into_iter()
        .flat_map(|comparison| comparison.variants.iter().map(|it| &it.side).chain([&comparison.baseline]));
    let found: BTreeSet<Metric> = sides.flat_map(|side| side.values.keys().copied()).collect();
    metrics.iter().copied().filter(|metric| !found.contains(metric)).collect()
}

/// What is wrong with a metric that no run has.
pub(crate) fn no_run_has(metric: Metric) -> anyhow::Error {
    anyhow!("no run has {}, which is not measured in such a workload", metric.name())
}

/// Judges the figures of all cells together, and how many of them were tested. Cells whose runs are all the same, which the
/// flag says, are no tests.
pub(crate) fn judge<'a>(
    cells: impl Iterator<Item = (&'a [Figure], bool)> + Clone,
) -> (Vec<Vec<JudgedFigure>>, usize) {
    let tested = cells.clone().filter(|(_, differ)| *differ);
    let p_values: Vec<f64> =
        tested.flat_map(|(figures, _)| figures.iter().filter_map(|figure| figure.p_value)).collect();
    let mut corrected = stats::benjamini_hochberg(&p_values).into_iter();
    let mut judge = |(figures, differ): (&[Figure], bool)| {
        let judged = figures.iter().map(|figure| {
            let p = figure.p_value.filter(|_| differ).and_then(|_| corrected.next());
            let verdict = match differ {
                true => Verdict::of(figure.metric.better(), figure.baseline, figure.changed, p),
                false => Verdict::NotShown,
            };
            JudgedFigure { figure: figure.clone(), corrected_p: p, verdict }
        });
        judged.collect()
    };
    (cells.map(&mut judge).collect(), p_values.len())
}

/// The verdict of a cell: that of its figures, a loss before a gain.
pub(crate) fn worst(figures: &[JudgedFigure]) -> Verdict {
    let has = |verdict| figures.iter().any(|figure| figure.verdict == verdict);
    [Verdict::Worse, Verdict::Better, Verdict::NotShown]
        .into_iter()
        .find(|v| has(*v))
        .unwrap_or(Verdict::Untested)
}

/// What fails a command that is to fail if something is worse.
pub(crate) fn worse_cells(worse: usize, cells: usize) -> String {
    format!("{worse} of {cells} cells are worse beyond noise")
}

/// The figure that stands for a cell: of those with its verdict, the one that changed most, otherwise the first.
pub(crate) fn main(figures: &[JudgedFigure], verdict: Verdict) -> Option<&JudgedFigure> {
    let same = figures.iter().filter(|figure| figure.verdict == verdict);
    match verdict.is_significant() {
        true => same.max_by(|a, b| size(a).total_cmp(&size(b))),
        false => figures.first(),
    }
}

/// The most changes that a page draws.
pub(crate) const DRAWN: usize = 25;

/// The largest changes beyond noise, to be drawn, the losses first; each figure comes with what its cell is called.
pub(crate) fn drawing(figures: Vec<(String, &JudgedFigure)>) -> String {
    let mut beyond: Vec<_> =
        figures.into_iter().filter(|(_, figure)| figure.verdict.is_significant()).collect();
    beyond.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
    beyond.truncate(DRAWN);
    let change = |(cell, judged): (String, &JudgedFigure)| {
        let Figure { metric, delta_pct, interval_pct, .. } = &judged.figure;
        let name = format!("{}: {cell}", metric.name());
        let verdict = Some(judged.verdict);
        delta_pct.map(|delta| Change { name, delta, interval: *interval_pct, verdict })
    };
    let mut changes: Vec<Change> = beyond.into_iter().filter_map(change).collect();
    changes.sort_by(|a, b| a.delta.total_cmp(&b.delta));
    let legend = format!(
        "The largest changes beyond noise, {DRAWN} at most, in % of the baseline, + is better; the line is the 95 % confidence \
         interval of each by itself."
    );
    html::changes("Changes", &legend, &changes)
}

/// The head of a table of all figures, after what their cells are called.
pub(crate) const COLUMNS: [&str; 4] = ["metric", "change %", "CI95", "p, corrected"];

/// A figure in these columns.
pub(crate) fn row(judged: &JudgedFigure) -> Vec<(String, Tone)> {
    let (tone, mark) = match judged.verdict {
        Verdict::Worse => (Tone::Bad, " *"),
        Verdict::Better => (Tone::Good, " *"),
        _ => (Tone::Plain, ""),
    };
    vec![
        (judged.figure.metric.name().to_owned(), Tone::Name),
        (format!("{}{mark}", change(judged)), tone),
        (interval(judged), Tone::Plain),
        (judged.corrected_p.map_or("-".into(), |p| format!("{p:.4}")), Tone::Plain),
    ]
}

/// How much a figure changes, in words.
pub(crate) fn change(judged: &JudgedFigure) -> String {
    judged.figure.delta_pct.map_or("from 0".into(), |delta| format!("{delta:+.2}"))
}

/// Where the change lies, in words.
pub(crate) fn interval(judged: &JudgedFigure) -> String {
    judged.figure.interval_pct.map_or("-".into(), |(low, high)| format!("{low:+.2} to {high:+.2}"))
}

/// How much a cell of a heat map is coloured, from -1 to 1.
pub(crate) fn degree(main: Option<&JudgedFigure>, verdict: Verdict) -> f64 {
    let delta = main.and_then(|judged| judged.figure.delta_pct);
    let size = delta.map_or(1.0, |delta| delta.abs() / FULL_PCT).clamp(FAINT, 1.0);
    match verdict {
        Verdict::Worse => -size,
        Verdict::Better => size,
        _ => 0.0,
    }
}

/// A change from 0 is larger than any in percent.
pub(crate) fn size(figure: &JudgedFigure) -> f64 {
    figure.figure.delta_pct.map_or(f64::INFINITY, f64::abs)
}
