//! Summaries of samples, and judgements of changes.

use crate::registry::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Significance level of every verdict: the chance of seeing a difference where there is none.
pub const ALPHA: f64 = 0.05;

/// What a sample looks like. The values have the unit of their metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values, at least 1.
    #[serde(skip)]
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n - 1 in the denominator); `None` for a single value, which has no spread.
    pub std: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Middle value, or the mean of the two middle ones.
    pub median: f64,
    /// 75th [`percentile`].
    #[serde(skip)]
    pub p75: f64,
    /// 99th [`percentile`].
    #[serde(skip)]
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

/// What of the runs of a side a published figure gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Sample standard deviation.
    Std,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Median.
    P50,
    /// 75th percentile.
    P75,
    /// 99th percentile.
    P99,
}

impl Statistic {
    /// Name in experiment files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::Std => "std",
            Statistic::Min => "min",
            Statistic::Max => "max",
            Statistic::P50 => "p50",
            Statistic::P75 => "p75",
            Statistic::P99 => "p99",
        }
    }

    /// Whether a single run has it as well as many do: spreads and extremes are of many.
    pub fn is_of_one_run(self) -> bool {
        matches!(self, Statistic::Mean | Statistic::P50)
    }

    /// Which direction of this statistic of a metric is better: less spread is, whatever the metric.
    pub fn better(self, metric: Better) -> Better {
        if self == Statistic::Std { Better::Lower } else { metric }
    }

    /// Whether this is what a figure gives unless something else is said.
    pub(crate) fn is_mean(&self) -> bool {
        *self == Statistic::Mean
    }
}

impl Summary {
    /// Summarises finite values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let n = sorted.len();
        let mean = if min == max { min } else { mean(&sorted) };
        let std = (n > 1).then(|| {
            let squares: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
            (squares / (n - 1) as f64).sqrt()
        });
        let percentile = |percent| percentile_of_sorted(&sorted, percent);
        let (median, p75, p99) = (percentile(50.0), percentile(75.0), percentile(99.0));
        Some(Summary { n, mean, std, min, median, p75, p99, max })
    }

    /// A statistic; `None` for the standard deviation of a single value.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => Some(self.mean),
            Statistic::Std => self.std,
            Statistic::Min => Some(self.min),
            Statistic::Max => Some(self.max),
            Statistic::P50 => Some(self.median),
            Statistic::P75 => Some(self.p75),
            Statistic::P99 => Some(self.p99),
        }
    }

    /// Standard deviation as a percentage of the mean, 0 to infinity; `None` without a spread or with a mean of 0.
    pub fn coeff_var_pct(&self) -> Option<f64> {
        self.std.filter(|_| self.mean != 0.0).map(|std| std / self.mean.abs() * 100.0)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The `percent` (0 to 100) percentile of finite values, interpolated linearly between the two nearest ranks (type 7 of
/// Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996); `None` if there are no values.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| percentile_of_sorted(&sorted, percent))
}

fn percentile_of_sorted(sorted: &[f64], percent: f64) -> f64 {
    let rank = (sorted.len() - 1) as f64 * percent.clamp(0.0, 100.0) / 100.0;
    let below = sorted[rank.floor() as usize];
    let above = sorted[rank.ceil() as usize];
    below + (above - below) * rank.fract()
}

/// Holm's step-down correction of a family of p-values (Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
/// 1979), in the order given: what stays under [`ALPHA`] is significant with the chance of even one false alarm in the
/// whole family held to [`ALPHA`]. It holds however the metrics depend on each other, which they do.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let hypotheses_left = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * hypotheses_left).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

/// Benjamini and Hochberg's correction of p-values ("Controlling the False Discovery Rate", 1995), in the order given. Of what
/// stays under [`ALPHA`], a share of [`ALPHA`] is expected to be false alarms; where nothing has changed, the chance of even
/// one is [`ALPHA`]. It holds for tests that do not depend on each other, or that tend to err together.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[b].total_cmp(&p_values[a]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least = 1.0_f64;
    for (above, &index) in order.iter().enumerate() {
        let rank = (p_values.len() - above) as f64;
        least = least.min(p_values[index] * p_values.len() as f64 / rank);
        corrected[index] = least;
    }
    corrected
}

/// Change from `base` to `variant` in percent of `base`, + meaning better; a neutral metric keeps its plain sign
/// (+ is more). `None` for a change from 0, of which there is no percentage; 0 to 0 is no change.
pub fn delta_pct(better: Better, base: f64, variant: f64) -> Option<f64> {
    if base == variant {
        return Some(0.0);
    }
    let change = match better {
        Better::Lower => base - variant,
        Better::Higher | Better::Neutral => variant - base,
    };
    let percent = change / base.abs() * 100.0;
    percent.is_finite().then_some(percent)
}

/// What a comparison of one metric says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A side has a single run, so chance cannot be told from effect.
    Untested,
    /// The corrected p-value is not under [`ALPHA`]: there is no change, or too few runs to show it.
    NotShown,
    /// A significant change for the better.
    Better,
    /// A significant change for the worse.
    Worse,
    /// A significant change of a neutral metric.
    Different,
}

impl Verdict {
    /// Judges a change of the mean by its corrected p-value.
    pub fn of(better: Better, base: f64, variant: f64, corrected_p: Option<f64>) -> Verdict {
        match corrected_p {
            None => Verdict::Untested,
            Some(p) if p >= ALPHA => Verdict::NotShown,
            Some(_) => match better {
                Better::Neutral => Verdict::Different,
                Better::Lower if variant < base => Verdict::Better,
                Better::Higher if variant > base => Verdict::Better,
                Better::Lower | Better::Higher => Verdict::Worse,
            },
        }
    }

    /// Whether the difference is significant.
    pub fn is_significant(self) -> bool {
        matches!(self, Verdict::Better | Verdict::Worse | Verdict::Different)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn summary(values: &[f64]) -> Summary {
        Summary::of(values).unwrap()
    }

    #[test]
    fn summary_worked_by_hand() {
        // Squared distances from the mean 5: 9 1 1 1 0 0 4 16 = 32; 32 / 7 = 4.571429, its root 2.138090.
        let s = summary(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((s.n, s.mean, s.min, s.median, s.max), (8, 5.0, 2.0, 4.5, 9.0));
        assert!((s.std.unwrap() - 2.138_090).abs() < 1e-6);
        assert!((s.coeff_var_pct().unwrap() - 42.761_80).abs() < 1e-4);
    }

    #[test]
    fn a_single_value_has_no_spread() {
        let s = summary(&[3.0]);
        assert_eq!((s.mean, s.std, s.median, s.coeff_var_pct()), (3.0, None, 3.0, None));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn statistics_worked_by_hand() {
        // Ranks of the 75th and 99th percentile of 5 values: 4 * 0.75 = 3 and 4 * 0.99 = 3.96.
        let s = summary(&[10.0, 20.0, 30.0, 40.0, 50.0]);
        let of = |statistic| s.statistic(statistic).unwrap();
        assert_eq!((of(Statistic::Mean), of(Statistic::Min), of(Statistic::Max)), (30.0, 10.0, 50.0));
        assert_eq!((of(Statistic::P50), of(Statistic::P75)), (30.0, 40.0));
        assert!((of(Statistic::P99) - 49.6).abs() < 1e-9);
        assert!((of(Statistic::Std) - 250.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(summary(&[1.0]).statistic(Statistic::Std), None);
        assert_eq!(Statistic::Std.better(Better::Higher), Better::Lower);
        assert_eq!(Statistic::P99.better(Better::Higher), Better::Higher);
    }

    #[test]
    fn percentiles_interpolate() {
        let values = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(percentile(&values, 0.0), Some(10.0));
        assert_eq!(percentile(&values, 50.0), Some(25.0));
        assert_eq!(percentile(&values, 90.0), Some(37.0));
        assert_eq!(percentile(&values, 100.0), Some(40.0));
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn holm_worked_by_hand() {
        // Sorted 0.005 0.01 0.03 0.04, times 4 3 2 1: 0.02 0.03 0.06 0.04, and never less than the one before.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn benjamini_hochberg_worked_by_hand() {
        // Sorted 0.005 0.01 0.03 0.04, times 4/1 4/2 4/3 4/4: 0.02 0.02 0.04 0.04, and never more than the one after.
        let corrected = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in corrected.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(benjamini_hochberg(&[0.9, 0.8]), [0.9, 0.9]);
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn deltas_of_published_figures() {
        // 49 s to 29 s is published as a 41 % speedup, 118 M to 7 M migrations as -94 %.
        assert!((delta_pct(Better::Lower, 49.0, 29.0).unwrap() - 40.816_327).abs() < 1e-6);
        assert!((delta_pct(Better::Lower, 118e6, 7e6).unwrap() - 94.067_797).abs() < 1e-6);
        assert_eq!(delta_pct(Better::Higher, 100.0, 90.0), Some(-10.0));
        assert_eq!(delta_pct(Better::Neutral, 100.0, 150.0), Some(50.0));
        assert_eq!(delta_pct(Better::Lower, 0.0, 1.0), None);
        assert_eq!(delta_pct(Better::Lower, 0.0, 0.0), Some(0.0));
    }

    #[test]
    fn verdicts() {
        let of = |better, variant, p| Verdict::of(better, 10.0, variant, p);
        assert_eq!(of(Better::Lower, 9.0, Some(0.049)), Verdict::Better);
        assert_eq!(of(Better::Lower, 11.0, Some(0.049)), Verdict::Worse);
        assert_eq!(of(Better::Higher, 11.0, Some(0.049)), Verdict::Better);
        assert_eq!(of(Better::Neutral, 11.0, Some(0.049)), Verdict::Different);
        assert_eq!(of(Better::Lower, 9.0, Some(0.05)), Verdict::NotShown);
        assert_eq!(of(Better::Lower, 9.0, None), Verdict::Untested);
    }

    proptest! {
        #[test]
        fn plus_means_better(base in 1e-3..1e12_f64, variant in 1e-3..1e12_f64) {
            let sign = |better| delta_pct(better, base, variant).unwrap().partial_cmp(&0.0).unwrap();
            prop_assert_eq!(sign(Better::Lower), base.partial_cmp(&variant).unwrap());
            prop_assert_eq!(sign(Better::Higher), variant.partial_cmp(&base).unwrap());
            prop_assert_eq!(sign(Better::Neutral), sign(Better::Higher));
        }

        #[test]
        fn lower_and_higher_mirror_each_other(base in -1e12..1e12_f64, variant in -1e12..1e12_f64) {
            let lower = delta_pct(Better::Lower, base, variant);
            prop_assert_eq!(lower.map(|d| -d), delta_pct(Better::Higher, base, variant));
        }

        #[test]
        fn a_summary_is_ordered(values in prop::collection::vec(-1e9..1e9_f64, 1..50)) {
            let s = summary(&values);
            prop_assert!(s.min <= s.median && s.median <= s.max);
            prop_assert!(s.min <= s.mean + 1e-6 && s.mean <= s.max + 1e-6);
        }

        #[test]
        fn holm_never_lowers_a_p_value(p in prop::collection::vec(0.0..=1.0_f64, 0..40)) {
            for (corrected, raw) in holm(&p).iter().zip(&p) {
                prop_assert!(corrected >= raw && *corrected <= 1.0);
            }
        }

        #[test]
        fn benjamini_hochberg_is_between_the_p_value_and_holm(p in prop::collection::vec(0.0..=1.0_f64, 0..40)) {
            let (discovery, family) = (benjamini_hochberg(&p), holm(&p));
            for i in 0..p.len() {
                prop_assert!(p[i] <= discovery[i] + 1e-12 && discovery[i] <= family[i] + 1e-12);
            }
        }
    }
}
