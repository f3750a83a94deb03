//! What was published of the time before a change, beside the same simulated: whether a machine is as fast in the
//! simulation as it really was, whatever the change does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Before, Family};
use crate::stats::{Statistic, Summary};

/// The figures of one metric that a benchmark had on a machine before a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Name of the machine.
    pub machine: String,
    /// Name of the workload without its options.
    pub benchmark: String,
    /// Name of the metric.
    pub metric: String,
    /// How many figures there are; the same one stands in several rows if a change was published more than once.
    pub figures: usize,
    /// Simulated over published: the median.
    pub median: f64,
    /// The lowest of them.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}

/// What a case had before the change.
#[derive(PartialEq)]
struct Figure<'a> {
    experiment: &'a str,
    case: Option<&'a str>,
    before: Before,
}

/// By machine, benchmark and metric, in the order of their names. Means only: extremes of many runs say little.
pub(super) fn levels(families: &[Family]) -> Vec<Level> {
    let mut by_names: BTreeMap<[&str; 3], Vec<Figure>> = BTreeMap::new();
    for row in families.iter().flat_map(|family| &family.rows) {
        let Some(before) = row.before.filter(|_| row.statistic == Statistic::Mean) else { continue };
        let figure = Figure { experiment: &row.experiment, case: row.case.as_deref(), before };
        let figures = by_names.entry([&row.machine, &row.benchmark, &row.metric]).or_default();
        if !figures.contains(&figure) {
            figures.push(figure);
        }
    }
    by_names.into_iter().filter_map(|(names, figures)| Level::new(names, &figures)).collect()
}

impl Level {
    fn new([machine, benchmark, metric]: [&str; 3], figures: &[Figure]) -> Option<Level> {
        let ratio = |figure: &Figure| figure.before.simulated / figure.before.published;
        let ratios = Summary::of(&figures.iter().map(ratio).collect::<Vec<_>>())?;
        Some(Level {
            machine: machine.to_owned(),
            benchmark: benchmark.to_owned(),
            metric: metric.to_owned(),
            figures: figures.len(),
            median: ratios.median,
            lowest: ratios.min,
            highest: ratios.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::fidelity::Fidelity;
    use crate::fidelity::tests::{comparison, outcome, published};
    use crate::published::Published;
    use crate::stats::Statistic;

    #[test]
    fn a_figure_counts_once_and_extremes_do_not() {
        // 100 events a second are simulated before the change; 50 and 400 were published
        let row = |baseline| Published { baseline: Some(baseline), ..published(10.0, None) };
        let min = Published { statistic: Statistic::Min, ..row(1.0) };
        let without = published(10.0, None);
        let mut comparison =
            comparison(100.0, 110.0, vec![row(50.0), row(50.0), row(400.0), row(0.0), min, without]);
        comparison.recipe.machine = "m: a machine".into();
        comparison.recipe.workload = "hackbench -g 1".into();
        let fidelity = Fidelity::new(vec![outcome("f", &comparison)], vec![]);
        let [level] = &fidelity.before[..] else { panic!("{:?}", fidelity.before) };
        let names = [&level.machine, &level.benchmark, &level.metric].map(String::as_str);
        assert_eq!(names, ["m", "hackbench", "events_per_s"]);
        assert_eq!((level.figures, level.lowest, level.median, level.highest), (2, 0.25, 1.125, 2.0));
    }
}
