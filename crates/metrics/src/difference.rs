//! How far two sides of a comparison differ in a metric: a test, an interval, and what could have been found.

use std::f64::consts::{FRAC_PI_4, SQRT_2};

use special::Beta;

use crate::registry::Better;

/// The chance of finding a change of [`Difference::detectable_pct`].
pub const POWER: f64 = 0.8;
/// Larger changes are not worth naming.
const LARGEST_PCT: f64 = 1000.0;
/// Steps of the integral in [`Difference::chance_to_find`], for which twice as many give the same three digits.
const STEPS: usize = 48;

/// The means of two samples of at least two values each, and how well they are known.
///
/// Samples of different variance and size are allowed (Welch, "The Generalization of Student's Problem when Several
/// Different Population Variances are Involved", 1947). In paired samples, value i of both was measured under the same
/// conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    base: f64,
    variant: f64,
    /// Squared standard errors of the two means, and their covariance.
    base_error: f64,
    variant_error: f64,
    covariance: f64,
    freedom: Freedom,
    /// The share of the ways to deal out the values that would set the means as far apart, if neither side varies.
    p_of_constants: f64,
}

/// How many degrees of freedom the error of the difference has.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Freedom {
    /// Of pairs.
    Known(f64),
    /// One less than the runs of the baseline and of the variant.
    Welch(f64, f64),
}

impl Freedom {
    /// For these squared standard errors of the two means.
    fn of(self, base: f64, variant: f64) -> f64 {
        match self {
            Freedom::Known(freedom) => freedom,
            // Welch-Satterthwaite, written with shares of the error so that tiny and huge variances keep their precision.
            Freedom::Welch(base_freedom, variant_freedom) => {
                let part = |own: f64, freedom: f64| (own / (base + variant)).powi(2) / freedom;
                1.0 / (part(base, base_freedom) + part(variant, variant_freedom))
            }
        }
    }
}

impl Difference {
    /// Of samples that have nothing in common; `None` if one has a single value.
    pub fn unpaired(base: &[f64], variant: &[f64]) -> Option<Difference> {
        let ((base_mean, base_error), (variant_mean, variant_error)) = (moments(base)?, moments(variant)?);
        Some(Difference {
            base: base_mean,
            variant: variant_mean,
            base_error,
            variant_error,
            covariance: 0.0,
            freedom: Freedom::Welch(base.len() as f64 - 1.0, variant.len() as f64 - 1.0),
            p_of_constants: 2.0 / ways_to_deal(base.len(), variant.len()),
        })
    }

    /// Of pairs of values; `None` if there is only one.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Difference> {
        let (base, variant): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let ((base_mean, base_error), (variant_mean, variant_error)) = (moments(&base)?, moments(&variant)?);
        let n = pairs.len() as f64;
        let products: f64 = pairs.iter().map(|(b, v)| (b - base_mean) * (v - variant_mean)).sum();
        Some(Difference {
            base: base_mean,
            variant: variant_mean,
            base_error,
            variant_error,
            covariance: products / (n - 1.0) / n,
            freedom: Freedom::Known(n - 1.0),
            // each pair can be turned round
            p_of_constants: 2.0 / 2.0_f64.powf(n),
        })
    }

    /// Two-sided p-value of Student's t-test: the chance of means at least this far apart if both samples came from
    /// distributions of one mean.
    ///
    /// A difference that does not vary gives no variance to test by. If it is 0, the value is 1. If not, it is that of
    /// Fisher's permutation test: the share of the ways to deal out the values of which the means are as far apart,
    /// which are two. So two runs a side are never evidence, however far apart they are.
    pub fn p_value(&self) -> f64 {
        let error = self.error();
        if error == 0.0 {
            return if self.base == self.variant { 1.0 } else { self.p_of_constants.min(1.0) };
        }
        let t = (self.variant - self.base).abs() / error.sqrt();
        let p = tails_of_student_t(t, self.freedom());
        if p.is_finite() { p.clamp(0.0, 1.0) } else { 1.0 }
    }

    /// The changes of the mean, in percent as [`crate::stats::delta_pct`] signs them, that a two-sided test of level
    /// `alpha` does not exclude: 0 is among them exactly if the p-value is `alpha` or more. The baseline's mean is an
    /// estimate, too, which is why the interval is not symmetric (Fieller, "Some Problems in Interval Estimation", 1954).
    /// No value of a metric is below 0, so no fall is beyond 100 %.
    ///
    /// `None` if the baseline's mean cannot be told from 0, or if two different constants give no spread to judge by.
    pub fn interval_pct(&self, better: Better, alpha: f64) -> Option<(f64, f64)> {
        if self.base == self.variant && self.error() == 0.0 {
            return Some((0.0, 0.0));
        }
        if self.error() == 0.0 || self.base <= 0.0 {
            return None;
        }
        let t2 = student_t(alpha, self.freedom()).powi(2);
        // (variant - ratio * base)² <= t² * its variance
        let a = self.base * self.base - t2 * self.base_error;
        let b = self.base * self.variant - t2 * self.covariance;
        let c = self.variant * self.variant - t2 * self.variant_error;
        if a <= 0.0 {
            return None;
        }
        let root = (b * b - a * c).max(0.0).sqrt();
        let percent = |ratio: f64| (ratio.max(0.0) - 1.0) * 100.0;
        let (low, high) = (percent((b - root) / a), percent((b + root) / a));
        Some(if better == Better::Lower { (-high, -low) } else { (low, high) })
    }

    /// The change, in percent of the baseline's mean, that the next comparison of as many runs shows with the chance
    /// [`POWER`], in a two-sided test of level `alpha`; `None` if these samples are not spread at all, or from 0, or too
    /// much for any change below `LARGEST_PCT`.
    ///
    /// The spread is assumed to grow with the mean, as it does where a change acts on all of a run. Falls, and rises
    /// that leave the spread as it is, are found more often.
    pub fn detectable_pct(&self, alpha: f64) -> Option<f64> {
        if self.error() == 0.0 || self.base <= 0.0 {
            return None;
        }
        let (mut missed, mut found) = (0.0, LARGEST_PCT / 100.0);
        if self.chance_to_find(found, alpha) < POWER {
            return None;
        }
        while found - missed > 1e-4 * found {
            let middle = (missed + found) / 2.0;
            if self.chance_to_find(middle, alpha) < POWER {
                missed = middle;
            } else {
                found = middle;
            }
        }
        Some(found * 100.0)
    }

    /// The chance that the next comparison shows a rise by the share `rise` of the mean, with what is known of means and
    /// spreads from this one.
    ///
    /// In units of the standard error, the next test passes if Z + k * S > t * S', where k is the rise as this comparison
    /// sees it, and S and S' are the errors that the two comparisons estimate. To put 1 for S is to promise too much:
    /// few runs do not know their spread, and an estimate that is too low misses more than one that is too high gains. The
    /// squares of S and S' are independent and distributed as chi-square, so S = R * sin(a) and S' = R * cos(a), where the
    /// angle has the density (sin(a) * cos(a))^(freedom - 1), and Z / R is Student's t with twice the degrees of freedom.
    fn chance_to_find(&self, rise: f64, alpha: f64) -> f64 {
        let growth = match self.freedom {
            Freedom::Welch(..) => 1.0 + rise,
            // most pairs are equal: what the change does to the others is not in proportion to them
            Freedom::Known(_) => 1.0,
        };
        let variant_error = self.variant_error * growth * growth;
        let error = self.base_error + variant_error - 2.0 * self.covariance * growth;
        let freedom = self.freedom.of(self.base_error, variant_error);
        let k = rise * self.base / error.sqrt();
        // the baseline's mean, of which the rise is a share, is as uncertain
        let scale = (1.0 + rise * rise * self.base_error / error).sqrt();
        let t = student_t(alpha, freedom);
        // eight standard deviations of the angle to either side
        let width = (8.0 / (2.0 * freedom).sqrt()).min(FRAC_PI_4);
        let (mut sum, mut weights) = (0.0, 0.0);
        for step in 0..STEPS {
            let angle = FRAC_PI_4 + width * ((2 * step + 1) as f64 / STEPS as f64 - 1.0);
            let (sin, cos) = angle.sin_cos();
            let weight = (2.0 * sin * cos).powf(freedom - 1.0);
            sum += weight * student_t_cdf(SQRT_2 * (k * sin - t * cos) / scale, 2.0 * freedom);
            weights += weight;
        }
        sum / weights
    }

    fn freedom(&self) -> f64 {
        self.freedom.of(self.base_error, self.variant_error)
    }

    /// Squared standard error of the difference.
    fn error(&self) -> f64 {
        (self.base_error + self.variant_error - 2.0 * self.covariance).max(0.0)
    }
}

/// Mean and squared standard error; exactly 0 for equal values, `None` for a single one.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let (&first, n) = (values.first()?, values.len() as f64);
    if values.len() < 2 {
        return None;
    }
    if values.iter().all(|value| *value == first) {
        return Some((first, 0.0));
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, squares / (n - 1.0) / n))
}

/// In how many ways `a` + `b` values can be dealt out to samples of `a` and `b` of them.
fn ways_to_deal(a: usize, b: usize) -> f64 {
    (1..=a).map(|i| (b + i) as f64 / i as f64).product()
}

/// The chance that Student's t is at least as far from 0 in either direction, by the incomplete beta function
/// (Abramowitz and Stegun 26.7.1, 26.5.27).
pub(crate) fn tails_of_student_t(t: f64, freedom: f64) -> f64 {
    let (tails, half) = (freedom / 2.0, 0.5);
    (freedom / (freedom + t * t)).inc_beta(tails, half, tails.ln_beta(half))
}

/// The chance that Student's t is at most `t`.
fn student_t_cdf(t: f64, freedom: f64) -> f64 {
    let tail = tails_of_student_t(t, freedom) / 2.0;
    if t < 0.0 { tail } else { 1.0 - tail }
}

/// The value that Student's t exceeds in either direction with probability `alpha` (Abramowitz and Stegun 26.5.27, solved
/// for t).
pub(crate) fn student_t(alpha: f64, freedom: f64) -> f64 {
    let (tails, half) = (freedom / 2.0, 0.5);
    let x = alpha.inv_inc_beta(tails, half, tails.ln_beta(half));
    (freedom * (1.0 - x) / x).sqrt()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use proptest::prelude::*;
    use rand_core::{RngCore, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn p_value(a: &[f64], b: &[f64]) -> f64 {
        Difference::unpaired(a, b).unwrap().p_value()
    }

    fn close(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() < within, "{got}, not {want}");
    }

    #[test]
    fn a_single_value_cannot_be_tested() {
        assert_eq!(Difference::unpaired(&[3.0], &[1.0, 2.0]), None);
        assert_eq!(Difference::unpaired(&[1.0, 2.0], &[3.0]), None);
        assert_eq!(Difference::paired(&[(1.0, 2.0)]), None);
    }

    #[test]
    fn welch_against_published_and_computed_values() {
        // Unequal variances and sizes: t = -1.57, 9.9 degrees of freedom, p = 0.149 (Wikipedia, "Welch's t-test",
        // example 2); the further digits and the second value are from scipy.stats.ttest_ind(equal_var=False).
        let a = [17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8];
        let b = [
            21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8, 20.7, 21.7, 21.5, 22.5, 23.6, 21.5,
            22.5, 23.5, 21.5, 21.8,
        ];
        close(p_value(&a, &b), 0.148_841_696_605_328, 1e-9);
        let c = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let d = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 28.5];
        close(p_value(&c, &d), 0.005_973_986_825_102, 1e-9);
    }

    #[test]
    fn welch_with_a_closed_form() {
        // Means 2 and 6, both variances 2, two values each: t = 4 / sqrt(2) and exactly 2 degrees of freedom, where
        // the two-sided p-value of Student's t is 1 - t / sqrt(2 + t^2) = 1 - sqrt(8 / 10).
        close(p_value(&[1.0, 3.0], &[5.0, 7.0]), 1.0 - 0.8_f64.sqrt(), 1e-12);
    }

    #[test]
    fn quantiles_of_student_t_from_tables() {
        for (alpha, freedom, want) in [
            (0.05, 1.0, 12.706),
            (0.05, 4.0, 2.776),
            (0.01, 10.0, 3.169),
            (0.4, 4.0, 0.941),
            (0.05, 19.0, 2.093),
            (0.05, 120.0, 1.980),
            (0.05, 1e6, 1.960),
        ] {
            close(student_t(alpha, freedom), want, 5e-4);
        }
    }

    #[test]
    fn constants_are_equal_or_not() {
        assert_eq!(p_value(&[0.1; 3], &[0.1; 7]), 1.0);
        // Two of two values, and two of two others: 6 ways to deal them out. Five and five: 252.
        close(p_value(&[3.0; 2], &[0.0; 2]), 2.0 / 6.0, 1e-12);
        close(p_value(&[3.0; 5], &[0.0; 5]), 2.0 / 252.0, 1e-12);
        // Five pairs can be turned round in 32 ways.
        let pairs = Difference::paired(&[(3.0, 2.0); 5]).unwrap();
        close(pairs.p_value(), 2.0 / 32.0, 1e-12);
        assert_eq!((pairs.interval_pct(Better::Lower, 0.05), pairs.detectable_pct(0.05)), (None, None));
        // One constant side: the other's spread alone decides. t = 2 / 1 = 2 with 1 degree of freedom: Cauchy.
        close(p_value(&[0.0, 2.0], &[3.0; 5]), 2.0 * (0.5 - 2.0_f64.atan() / std::f64::consts::PI), 1e-12);
    }

    #[test]
    fn an_interval_worked_by_hand() {
        // A constant baseline of 10; 8, 9 and 10 have a mean of 9 and a standard error of sqrt(1 / 3) = 0.57735. With 2
        // degrees of freedom, t is 4.30265: 9 ± 2.48414, that is -34.84 to 14.84 % of 10.
        let difference = Difference::unpaired(&[10.0; 3], &[8.0, 9.0, 10.0]).unwrap();
        let (low, high) = difference.interval_pct(Better::Higher, 0.05).unwrap();
        close(low, -34.8414, 1e-3);
        close(high, 14.8414, 1e-3);
        assert_eq!(difference.interval_pct(Better::Lower, 0.05), Some((-high, -low)));
    }

    /// Normal values of mean 100, by Box and Muller.
    fn normal(rng: &mut Pcg64Mcg, std: f64, n: usize) -> Vec<f64> {
        let mut uniform = || (f64::from(rng.next_u32()) + 0.5) / 2.0_f64.powi(32);
        let mut one = || (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos();
        (0..n).map(|_| 100.0 + std * one()).collect()
    }

    /// How often a change of each of these shares of the size that a comparison of equal sides names is shown by the next
    /// one.
    fn kept<const N: usize>(runs: usize, std: f64, shares: [f64; N]) -> [f64; N] {
        const COMPARISONS: usize = 400;
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut shown = [0; N];
        for _ in 0..COMPARISONS {
            let mut side = || normal(&mut rng, std, runs);
            let named = Difference::unpaired(&side(), &side()).unwrap().detectable_pct(0.05).unwrap();
            let (base, next) = (side(), side());
            for (shown, share) in shown.iter_mut().zip(shares) {
                let variant: Vec<f64> =
                    next.iter().map(|value| value * (1.0 + share * named / 100.0)).collect();
                *shown += usize::from(p_value(&base, &variant) < 0.05);
            }
        }
        shown.map(|shown| shown as f64 / COMPARISONS as f64)
    }

    /// The promise is kept however few runs there are, and not by naming sizes that are far too large.
    #[test]
    fn a_change_of_the_size_that_is_named_is_found_eight_times_in_ten() {
        for (runs, std) in [(5, 10.0), (30, 20.0)] {
            let [whole, less] = kept(runs, std, [1.0, 0.7]);
            assert!((0.76..0.86).contains(&whole), "{runs} runs: {whole}");
            assert!(less < 0.68, "{runs} runs: {less}");
        }
    }

    #[test]
    fn where_the_spread_is_as_wide_as_the_values_no_size_is_named() {
        let wide = Difference::unpaired(&[1.0, 9.0, 2.0], &[8.0, 1.0, 3.0]).unwrap();
        assert_eq!(wide.detectable_pct(0.05), None);
    }

    #[test]
    fn a_baseline_that_may_be_zero_has_no_interval() {
        let rare = Difference::unpaired(&[0.0, 0.0, 1.0], &[5.0, 6.0, 7.0]).unwrap();
        assert_eq!(rare.interval_pct(Better::Lower, 0.05), None);
        let same = Difference::unpaired(&[0.0; 3], &[0.0; 3]).unwrap();
        assert_eq!(same.interval_pct(Better::Lower, 0.05), Some((0.0, 0.0)));
    }

    #[test]
    fn what_is_common_to_pairs_is_no_noise() {
        let base = [10.0, 20.0, 30.0, 40.0];
        let variant = [11.0, 20.5, 31.5, 41.0];
        let pairs: Vec<_> = base.into_iter().zip(variant).collect();
        let width = |difference: Option<Difference>| {
            let (low, high) = difference.unwrap().interval_pct(Better::Higher, 0.05).unwrap();
            high - low
        };
        let (paired, unpaired) =
            (width(Difference::paired(&pairs)), width(Difference::unpaired(&base, &variant)));
        assert!(paired < 0.1 * unpaired, "{paired} {unpaired}");
    }

    proptest! {
        #[test]
        fn p_values_are_probabilities_and_symmetric(
            a in prop::collection::vec(-1e9..1e9_f64, 2..20),
            b in prop::collection::vec(-1e9..1e9_f64, 2..20),
        ) {
            let p = p_value(&a, &b);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!((p - p_value(&b, &a)).abs() < 1e-9);
        }

        /// Star and interval never contradict each other.
        #[test]
        fn the_interval_excludes_no_change_exactly_if_the_test_does(
            a in prop::collection::vec(50.0..100.0_f64, 3..12),
            b in prop::collection::vec(50.0..130.0_f64, 3..12),
            alpha in 0.001..0.2_f64,
        ) {
            let pairs: Vec<_> = a.iter().copied().zip(b.iter().copied()).collect();
            for difference in [Difference::unpaired(&a, &b).unwrap(), Difference::paired(&pairs).unwrap()] {
                let p = difference.p_value();
                prop_assume!((p - alpha).abs() > 1e-6);
                if let Some((low, high)) = difference.interval_pct(Better::Lower, alpha) {
                    prop_assert_eq!(low > 0.0 || high < 0.0, p < alpha);
                }
            }
        }
    }
}
