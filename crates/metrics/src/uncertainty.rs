//! How far a change hangs on costs that are known within bounds only.
//!
//! A comparison is made at many points of the space that the costs' bounds span, with one run of each side, and the same
//! seed on both. The middle four fifths of the changes are the interval: a figure of a machine whose costs are somewhere
//! in their bounds lies there in four of five cases, if the model is right otherwise. The index of a cost is the square of
//! the rank correlation of its value with the change, which is the share of the ranks' variance that a straight line
//! explains (Helton and Davis, "Latin hypercube sampling and the propagation of uncertainty in analyses of complex
//! systems", Reliability Engineering and System Safety 81, 2003, section 6.6).

use serde::Serialize;

use crate::difference::tails_of_student_t;
use crate::stats::{ALPHA, percentile};

/// Costs that are named, at most.
const MOVERS: usize = 3;
/// The interval is from here, in per cent of the points.
const LOW_PERCENT: f64 = 10.0;
/// To here.
const HIGH_PERCENT: f64 = 90.0;

/// What the change of a metric is over the bounds of the costs. Changes are in percent, and + is better.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Uncertainty {
    /// Points with a change.
    pub points: usize,
    /// Lower end of the 80 % interval.
    pub low_pct: f64,
    /// Upper end.
    pub high_pct: f64,
    /// The costs that move the change more than chance would, the most important one first; at most three.
    pub movers: Vec<Mover>,
    /// The part of the workload that the runs at the points have, if it is not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// The changes at all points, `None` where there is none.
    #[serde(skip)]
    pub changes: Vec<Option<f64>>,
}

/// A cost that moves a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mover {
    /// Name of the cost.
    pub cost: String,
    /// Share of the variance of the change's ranks that the cost explains, 0 to 1.
    pub index: f64,
    /// The change is the better the larger the cost is.
    pub rises: bool,
}

impl Uncertainty {
    /// From the changes at all points, `None` where there is none, and the values of the costs there, a list for each cost.
    /// `None` if fewer than two points have a change.
    pub fn of(costs: &[(&str, Vec<f64>)], changes: &[Option<f64>]) -> Option<Uncertainty> {
        let present: Vec<f64> = changes.iter().copied().flatten().collect();
        if present.len() < 2 {
            return None;
        }
        let ranked = ranks(&present);
        let mut movers = Vec::new();
        for (cost, values) in costs {
            let values: Vec<f64> =
                values.iter().zip(changes).filter(|(_, change)| change.is_some()).map(|(v, _)| *v).collect();
            let correlation = correlation(&ranks(&values), &ranked);
            // as many costs as there are have as many chances to look important
            if p_value(correlation, present.len()) * (costs.len() as f64) < ALPHA {
                let (index, rises) = (correlation * correlation, correlation > 0.0);
                movers.push(Mover { cost: (*cost).to_owned(), index, rises });
            }
        }
        movers.sort_by(|a, b| b.index.total_cmp(&a.index));
        movers.truncate(MOVERS);
        Some(Uncertainty {
            points: present.len(),
            low_pct: percentile(&present, LOW_PERCENT)?,
            high_pct: percentile(&present, HIGH_PERCENT)?,
            movers,
            part: None,
            changes: changes.to_vec(),
        })
    }

    /// The whole interval is on one side of no change.
    pub fn sign_is_sure(&self) -> bool {
        self.low_pct > 0.0 || self.high_pct < 0.0
    }

    /// A sentence about the change of a metric.
    pub fn text(&self, metric: &str) -> String {
        let Uncertainty { points, low_pct, high_pct, movers, .. } = self;
        if *low_pct == 0.0 && *high_pct == 0.0 {
            return format!("{metric}: no change, wherever the costs are in their bounds ({points} samples)");
        }
        let sure = if self.sign_is_sure() { "" } else { ", so its sign is not sure" };
        let of = |mover: &Mover| format!("{} ({:.0} %)", mover.cost, 100.0 * mover.index);
        let moved = match &movers[..] {
            [] => "no single cost stands out".to_owned(),
            movers => format!("moved most by {}", movers.iter().map(of).collect::<Vec<_>>().join(", ")),
        };
        format!(
            "{metric} changes by {low_pct:+.2} to {high_pct:+.2} % over the bounds of the costs (80 % of {points} samples)\
             {sure}; {moved}"
        )
    }
}

/// The ranks of values, equal ones sharing the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = first as f64 + (tied.len() - 1) as f64 / 2.0;
        tied.iter().for_each(|i| ranks[*i] = mean);
        first += tied.len();
    }
    ranks
}

/// Pearson's coefficient; 0 if one of the two is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| of(a - mean_a, b - mean_b)).sum()
    };
    let (together, of_a, of_b) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    if of_a > 0.0 && of_b > 0.0 { together / (of_a * of_b).sqrt() } else { 0.0 }
}

/// The chance that the ranks of `n` unrelated pairs have at least this correlation, in either direction.
fn p_value(correlation: f64, n: usize) -> f64 {
    if n < 3 {
        return 1.0;
    }
    let freedom = (n - 2) as f64;
    let rest = 1.0 - correlation * correlation;
    if rest <= 0.0 { 0.0 } else { tails_of_student_t(correlation * (freedom / rest).sqrt(), freedom) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` values of which none has to do with the others: the golden ratio's multiples (Weyl's sequence).
    fn unrelated(n: usize, step: f64) -> Vec<f64> {
        (1..=n).map(|i| (i as f64 * step).fract()).collect()
    }

    #[test]
    fn what_moves_the_change_is_named_first() {
        let (strong, weak, idle) =
            (unrelated(64, 0.618_034), unrelated(64, 0.414_214), unrelated(64, 0.732_051));
        let changes: Vec<_> =
            strong.iter().zip(&weak).map(|(s, w)| Some(10.0 * w.powi(3) - 40.0 * s)).collect();
        let costs = [("weak", weak), ("idle", idle), ("strong", strong)];
        let found = Uncertainty::of(&costs, &changes).unwrap();
        let names: Vec<_> = found.movers.iter().map(|m| (m.cost.as_str(), m.rises)).collect();
        assert_eq!(names[0], ("strong", false));
        assert!(found.movers[0].index > 0.8, "{found:?}");
        assert!(!names.iter().any(|(name, _)| *name == "idle"), "{found:?}");
        assert!(found.low_pct < -30.0 && found.high_pct > -5.0 && found.points == 64, "{found:?}");
        assert!(found.text("runtime_s").contains("; moved most by strong ("), "{}", found.text("runtime_s"));
    }

    #[test]
    fn without_an_effect_there_is_no_interval_and_no_mover() {
        let costs = [("a", unrelated(32, 0.618_034))];
        let found = Uncertainty::of(&costs, &[Some(0.0); 32]).unwrap();
        assert_eq!((found.low_pct, found.high_pct, found.movers.len()), (0.0, 0.0, 0));
        assert!(!found.sign_is_sure());
        assert_eq!(found.text("m"), "m: no change, wherever the costs are in their bounds (32 samples)");
        assert_eq!(Uncertainty::of(&costs, &[None, Some(1.0)]), None);
    }

    #[test]
    fn a_sign_is_sure_if_the_whole_interval_has_it() {
        let of = |low_pct, high_pct| Uncertainty { points: 9, low_pct, high_pct, ..Uncertainty::default() };
        assert!(
            of(0.1, 3.0).sign_is_sure() && of(-3.0, -0.1).sign_is_sure() && !of(-0.1, 3.0).sign_is_sure()
        );
        assert!(of(-1.0, 2.0).text("m").contains(", so its sign is not sure; no single cost stands out"));
    }

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
        assert!(p_value(1.0, 5) == 0.0 && p_value(0.0, 5) > 0.99);
    }
}
