//! Is a series of observations of a run steady, and how well is its mean known?

use crate::difference::student_t;
use crate::stats::ALPHA;

/// Observations in a batch of MSER-5.
const MSER_BATCH: usize = 5;
/// With fewer batches of [`MSER_BATCH`] than this, nothing is said.
const MSER_LEAST: usize = 10;
/// Correlation that counts as this at most, so that an interval is finite.
const MOST_ALIKE: f64 = 0.95;

/// How many of the first observations belong to the warm-up, by MSER-5: the series is cut where the standard error of
/// the mean of the rest, taken over batches of five, is smallest (White, Cobb and Spratt, "A Comparison of Five
/// Steady-State Truncation Heuristics for Simulation", 2000).
///
/// `None` if the series is too short, or if the best cut is in its second half: then it has not settled yet (Hoad,
/// Robinson and Davies, "Automating Warm-up Length Estimation", 2008).
pub fn warm_up(series: &[f64]) -> Option<usize> {
    let batches: Vec<f64> =
        series.chunks_exact(MSER_BATCH).map(|batch| batch.iter().sum::<f64>() / MSER_BATCH as f64).collect();
    let n = batches.len();
    if n < MSER_LEAST {
        return None;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, n);
    // from the end, so that each cut adds a batch; the last five are too few to say anything
    for (cut, batch) in batches.iter().enumerate().rev() {
        sum += batch;
        squares += batch * batch;
        let left = (n - cut) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        if n - cut > 5 && error <= best.0 {
            best = (error, cut);
        }
    }
    (best.1 <= n / 2).then_some(best.1 * MSER_BATCH)
}

/// The mean of a steady series, by the method of batch means (Law, "Simulation Modeling and Analysis", section 9.5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchMeans {
    /// Mean of all batches.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t. Batches of which each is like the one
    /// before say less: with a correlation of r > 0, n of them count as n (1 - r) / (1 + r).
    pub half_width: f64,
    /// Correlation of each batch's mean with the next one's, -1 to 1.
    pub correlation: f64,
}

impl BatchMeans {
    /// Of a series cut into `batches` of equal length, at least 2; what is left over at its beginning is ignored.
    /// `None` if there are fewer observations than batches.
    pub fn of(series: &[f64], batches: usize) -> Option<BatchMeans> {
        let length = series.len().checked_div(batches).filter(|length| *length > 0 && batches > 1)?;
        let series = &series[series.len() - length * batches..];
        let means: Vec<f64> =
            series.chunks_exact(length).map(|batch| batch.iter().sum::<f64>() / length as f64).collect();
        let n = batches as f64;
        let mean = means.iter().sum::<f64>() / n;
        let off = |value: f64| value - mean;
        let squares: f64 = means.iter().map(|value| off(*value).powi(2)).sum();
        let products: f64 = means.windows(2).map(|pair| off(pair[0]) * off(pair[1])).sum();
        let correlation = if squares > 0.0 { products / squares } else { 0.0 };
        let alike = correlation.clamp(0.0, MOST_ALIKE);
        let error = (squares / (n - 1.0) / n * (1.0 + alike) / (1.0 - alike)).sqrt();
        Some(BatchMeans { mean, half_width: student_t(ALPHA, n - 1.0) * error, correlation })
    }

    /// The half width in per cent of the mean, 0 to infinity; 0 for a series of zeros.
    pub fn half_width_pct(&self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { 100.0 * self.half_width / self.mean.abs() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 10 +- 1, without correlation.
    fn noise(n: usize) -> Vec<f64> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        (0..n).map(|_| 9.0 + 2.0 * next()).collect()
    }

    #[test]
    fn a_warm_up_is_cut_off() {
        let mut series = noise(200);
        series.iter_mut().take(30).for_each(|value| *value += 8.0);
        assert_eq!(warm_up(&series), Some(30));
    }

    #[test]
    fn what_still_grows_is_not_steady() {
        let grows: Vec<f64> =
            noise(200).iter().enumerate().map(|(i, value)| value + 0.2 * i as f64).collect();
        assert_eq!(warm_up(&grows), None);
        assert_eq!(warm_up(&noise(49)), None, "nine batches are too few");
        assert!(warm_up(&noise(200)).is_some());
    }

    #[test]
    fn batch_means_worked_by_hand() {
        // means 2, 6, 4 of pairs; their squares off 4: 4 + 4 + 0, products -4 + 0
        let of = BatchMeans::of(&[99.0, 1.0, 3.0, 5.0, 7.0, 4.0, 4.0], 3).unwrap();
        assert_eq!((of.mean, of.correlation), (4.0, -0.5));
        assert!((of.half_width - 4.302_653 * (4.0_f64 / 3.0).sqrt()).abs() < 1e-5, "{}", of.half_width);
        assert_eq!(BatchMeans::of(&[1.0], 2), None);
        assert_eq!(BatchMeans::of(&[5.0; 8], 4).unwrap().half_width_pct(), 0.0);
    }

    #[test]
    fn slow_changes_show_as_correlation() {
        let slow: Vec<f64> = (0..400).map(|i| 10.0 + f64::from(i / 50 % 2)).collect();
        let means = BatchMeans::of(&slow, 40).unwrap();
        assert!(means.correlation > 0.5);
        // batches of 50 observations see every change: 8 of them, alternating
        let of_changes = BatchMeans::of(&slow, 8).unwrap().half_width;
        assert!((0.7..1.5).contains(&(means.half_width / of_changes)), "{} {of_changes}", means.half_width);
        assert!(BatchMeans::of(&noise(4000), 100).unwrap().correlation.abs() < 0.3);
    }

    proptest! {
        #[test]
        fn the_interval_scales_with_the_series(n in 40usize..400, factor in 1e-3..1e3_f64) {
            let series = noise(n);
            let scaled: Vec<f64> = series.iter().map(|value| value * factor).collect();
            let (a, b) = (BatchMeans::of(&series, 20).unwrap(), BatchMeans::of(&scaled, 20).unwrap());
            prop_assert!((a.half_width_pct() - b.half_width_pct()).abs() < 1e-6);
            prop_assert!((-1.0..=1.0).contains(&a.correlation));
        }
    }
}
