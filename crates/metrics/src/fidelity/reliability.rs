//! What a simulated change was worth: which changes were published where one of its size was simulated.
//!
//! This is the reliability of forecasts (Murphy and Winkler, "Reliability of subjective probability forecasts of
//! precipitation and temperature", Applied Statistics 26, 1977): forecasts of about the same size are put together, and what
//! came of them stands beside them.

use serde::{Deserialize, Serialize};

use super::{Family, Row};
use crate::stats::{Statistic, percentile};

/// Where the size of a simulated change passes from one class to the next, in percent. Each end is about three times the one
/// before, and each class has figures of all families but one or two.
const ENDS_PCT: [f64; 3] = [3.0, 10.0, 30.0];

/// Between these of the published changes lie four of five, in percent of them.
const LOW_PERCENT: f64 = 10.0;
const HIGH_PERCENT: f64 = 90.0;

/// The published changes beside simulated ones of about the same size. They count in the direction of the simulated change,
/// in percent: below 0, a change is published to be the other way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// The smallest simulated change, in percent in either direction.
    pub from_pct: f64,
    /// All simulated changes are below this; `None` if there is no such limit.
    pub below_pct: Option<f64>,
    /// How many published changes there are, means and medians of runs.
    pub figures: usize,
    /// Those in the direction of the simulated change.
    pub same_direction: usize,
    /// A tenth of them is below this.
    pub low_pct: f64,
    /// Half of them are.
    pub median_pct: f64,
    /// Nine tenths are.
    pub high_pct: f64,
    /// Figures for which other families have figures in this class.
    pub with_others: usize,
    /// Those that lie where four of five of these others do, give or take their own spread.
    pub within_others: usize,
}

/// A published change beside a simulated one.
struct Figure<'a> {
    family: &'a str,
    simulated_pct: f64,
    /// In the direction of the simulated change.
    published_pct: f64,
    spread_pct: f64,
}

impl<'a> Figure<'a> {
    fn of_family(family: &'a Family) -> impl Iterator<Item = Figure<'a>> {
        family.rows.iter().filter_map(|row| Figure::of(&family.name, row))
    }

    /// Extremes and spreads of many runs say little about a change.
    fn of(family: &'a str, row: &Row) -> Option<Figure<'a>> {
        let central = matches!(row.statistic, Statistic::Mean | Statistic::P50);
        let (simulated_pct, published_pct) = (row.simulated_pct?, row.published_pct?);
        (central && row.is_compared()).then(|| Figure {
            family,
            simulated_pct,
            published_pct: if simulated_pct < 0.0 { -published_pct } else { published_pct },
            spread_pct: row.spread_pct,
        })
    }
}

/// The classes that have figures, the smallest changes first.
pub(super) fn classes(families: &[Family]) -> Vec<Reliability> {
    let figures: Vec<Figure> = families.iter().flat_map(Figure::of_family).collect();
    let begins = std::iter::once(0.0).chain(ENDS_PCT);
    let ends = ENDS_PCT.into_iter().map(Some).chain([None]);
    begins.zip(ends).filter_map(|(from, below)| Reliability::of(from, below, &figures)).collect()
}

impl Reliability {
    fn of(from_pct: f64, below_pct: Option<f64>, figures: &[Figure]) -> Option<Reliability> {
        let within = |figure: &&Figure| contains(from_pct, below_pct, figure.simulated_pct);
        let class: Vec<&Figure> = figures.iter().filter(within).collect();
        let published: Vec<f64> = class.iter().map(|figure| figure.published_pct).collect();
        let others = class.iter().filter_map(|figure| is_where_others_are(figure, &class));
        Some(Reliability {
            from_pct,
            below_pct,
            figures: class.len(),
            same_direction: class
                .iter()
                .filter(|figure| figure.simulated_pct != 0.0 && figure.published_pct > 0.0)
                .count(),
            low_pct: percentile(&published, LOW_PERCENT)?,
            median_pct: percentile(&published, 50.0)?,
            high_pct: percentile(&published, HIGH_PERCENT)?,
            with_others: others.clone().count(),
            within_others: others.filter(|is| *is).count(),
        })
    }

    /// Is a simulated change of this class?
    pub fn is_of(&self, simulated_pct: f64) -> bool {
        contains(self.from_pct, self.below_pct, simulated_pct)
    }

    /// The simulated changes of the class in words.
    pub fn sizes(&self) -> String {
        match self.below_pct {
            Some(below) if self.from_pct == 0.0 => format!("less than {below} %"),
            Some(below) => format!("{} to {below} %", self.from_pct),
            None => format!("{} % or more", self.from_pct),
        }
    }

    /// What was published in a sentence, about a simulated change that is called `word` (better) and the contrary of which
    /// is called `contrary`.
    pub fn text(&self, word: &str, contrary: &str) -> String {
        let change = |pct: f64| format!("{:.0} % {}", pct.abs(), if pct < 0.0 { contrary } else { word });
        format!(
            "of {} published changes where {} was simulated, {} had the same direction, and 80 % of them lay between {} and {}",
            self.figures,
            self.sizes(),
            self.same_direction,
            change(self.low_pct),
            change(self.high_pct)
        )
    }
}

fn contains(from_pct: f64, below_pct: Option<f64>, simulated_pct: f64) -> bool {
    let size = simulated_pct.abs();
    size >= from_pct && below_pct.is_none_or(|below| size < below)
}

/// `None` if no other family has figures in the class.
fn is_where_others_are(figure: &Figure, class: &[&Figure]) -> Option<bool> {
    let others = class.iter().filter(|other| other.family != figure.family);
    let others: Vec<f64> = others.map(|other| other.published_pct).collect();
    let low = percentile(&others, LOW_PERCENT)? - figure.spread_pct;
    let high = percentile(&others, HIGH_PERCENT)? + figure.spread_pct;
    Some((low..=high).contains(&figure.published_pct))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::tests::{comparison, outcome, published};
    use crate::fidelity::{Fidelity, Outcome};
    use crate::published::Published;

    /// A family of published changes that have a spread of 1 %, beside a simulated one.
    fn family(name: &str, simulated_pct: f64, changes: &[f64]) -> Outcome {
        let rows = changes.iter().map(|change| published(*change, Some(1.0)));
        let extreme = Published { statistic: Statistic::Max, ..published(1000.0, None) };
        let comparison = comparison(100.0, 100.0 + simulated_pct, rows.chain([extreme]).collect());
        outcome(name, &comparison)
    }

    #[test]
    fn classes_worked_by_hand() {
        let fidelity = Fidelity::new(
            vec![
                family("a", 5.0, &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
                // a loss is simulated, and what is published to be better is the other way
                family("b", -9.0, &[5.0, -7.0, -12.0]),
                family("c", 40.0, &[20.0]),
            ],
            vec![],
        );
        let [small, large] = &fidelity.reliability[..] else { panic!("{:?}", fidelity.reliability) };
        assert_eq!((small.from_pct, small.below_pct, small.sizes().as_str()), (3.0, Some(10.0), "3 to 10 %"));
        // -5, 0, 2, 4, 6, 7, 8, 10, 12: a tenth and nine tenths of the way are 0.8 and 7.2 steps
        assert_eq!((small.figures, small.same_direction, small.median_pct), (9, 7, 6.0));
        assert!((small.low_pct - -1.0).abs() < 1e-9 && (small.high_pct - 10.4).abs() < 1e-9, "{small:?}");
        // all of a are within -2.6 - 1 to 11 + 1; of b, only 7 is within 1 - 1 to 9 + 1
        assert_eq!((small.with_others, small.within_others), (9, 7));
        assert_eq!(
            (large.figures, large.same_direction, large.with_others, large.sizes().as_str()),
            (1, 1, 0, "30 % or more")
        );
        assert!(small.is_of(-3.0) && !small.is_of(10.0) && large.is_of(1e9) && large.is_of(-30.0));
    }

    #[test]
    fn a_class_in_words() {
        let class = Reliability {
            from_pct: 0.0,
            below_pct: Some(3.0),
            figures: 10,
            same_direction: 4,
            low_pct: -7.9,
            median_pct: 0.1,
            high_pct: 14.7,
            with_others: 10,
            within_others: 8,
        };
        assert_eq!(
            class.text("worse", "better"),
            "of 10 published changes where less than 3 % was simulated, 4 had the same direction, and 80 % of them lay \
             between 8 % better and 15 % worse"
        );
    }
}
