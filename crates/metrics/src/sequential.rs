//! How many runs a comparison takes until its first headline metric is known well enough.
//!
//! What is decided by is the width of an interval, never whether it excludes 0: stopping as soon as a change looks
//! significant would find one where there is none.

use crate::compare::{Comparison, Variant};

/// Fewer runs say too little about their own spread to decide by it how many more it takes.
pub const FIRST_LOOK: usize = 5;
/// After so many runs, a metric without an interval is not going to have one.
const LAST_HOPE: usize = 30;

/// Half the width of the widest 95 % interval that a variant has for the first headline metric, in percentage points;
/// `None` if one has no interval.
pub fn half_width(comparison: &Comparison) -> Option<f64> {
    let metric = comparison.headline.first()?;
    let width = |variant: &Variant| {
        let (low, high) = variant.interval_pct.get(metric).copied().flatten()?;
        Some((high - low) / 2.0)
    };
    let widths: Option<Vec<f64>> = comparison.variants.iter().map(width).collect();
    widths?.into_iter().reduce(f64::max)
}

/// The number of runs of a side after the next round; `None` if the half-width is at most `target`, or if it cannot be
/// known. It depends on the runs alone.
pub fn next_runs(comparison: &Comparison, target: f64) -> Option<usize> {
    let runs = comparison.baseline.runs;
    match half_width(comparison) {
        Some(width) if width <= target => None,
        Some(width) => Some(wanted(runs, width, target)),
        None => (runs < LAST_HOPE).then_some(2 * runs),
    }
}

/// As many runs as would be enough if they were spread as the runs so far; in steps that are neither so small that the
/// data is looked at very often, nor so large that a rough first estimate is costly.
fn wanted(runs: usize, width: f64, target: f64) -> usize {
    let enough = (runs as f64 * (width / target).powi(2)).ceil();
    (enough.min(1e9) as usize).clamp(runs + runs.div_ceil(4), 2 * runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Runs;
    use crate::registry::Metric;

    #[test]
    fn rounds_are_as_large_as_the_spread_asks() {
        assert_eq!(wanted(8, 2.4, 2.0), 12, "1.44 times 8");
        assert_eq!(wanted(8, 2.01, 2.0), 10, "at least a quarter more");
        assert_eq!(wanted(5, 20.0, 2.0), 10, "at most twice as many");
    }

    #[test]
    fn it_ends_when_the_widest_interval_is_narrow_enough() {
        let side = |values: &[f64]| Runs {
            runs: values.iter().map(|v| [(Metric::runtime_s, *v)].into_iter().collect()).collect(),
            ..Runs::default()
        };
        let narrow = side(&[10.0, 10.1, 9.9]);
        let wide = side(&[10.0, 12.0, 8.0]);
        let headline = [Metric::runtime_s];
        let compare = |variants| Comparison::new("e", &headline, narrow.clone(), variants, vec![], vec![]);
        let one = compare(vec![narrow.clone()]);
        assert_eq!((half_width(&one), next_runs(&one, 0.1)), (Some(0.0), None), "the same runs");
        let two = compare(vec![narrow.clone(), wide]);
        assert!(half_width(&two).unwrap() > 20.0);
        assert_eq!((next_runs(&two, 100.0), next_runs(&two, 2.0)), (None, Some(6)));
        // from 0 there is no interval
        let unknown = Comparison::new("e", &headline, side(&[0.0; 5]), vec![side(&[1.0; 5])], vec![], vec![]);
        assert_eq!((half_width(&unknown), next_runs(&unknown, 2.0)), (None, Some(10)));
        let unknown =
            Comparison::new("e", &headline, side(&[0.0; 30]), vec![side(&[1.0; 30])], vec![], vec![]);
        assert_eq!(next_runs(&unknown, 2.0), None);
    }
}
