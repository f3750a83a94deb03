//! Latency histograms in nanoseconds.

use hdrhistogram::Histogram;

/// Largest latency that is told apart, one hour in ns; longer ones count as one hour.
const MAX_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits that are kept, so a percentile is at most 0.1 % above the recorded value.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of latencies in nanoseconds, exact below 2,048 ns and to 0.1 % above.
///
/// The order of recording and merging does not show in the result.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyHistogram(Histogram<u64>);

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> LatencyHistogram {
        let histogram = Histogram::new_with_bounds(1, MAX_NS, SIGNIFICANT_DIGITS);
        LatencyHistogram(histogram.expect("the bounds are constants that hdrhistogram accepts"))
    }

    /// Records one latency in ns.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds the latencies of another histogram.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.0.add(&other.0).expect("both histograms have the same bounds");
    }

    /// Adds the latencies of another histogram, each `factor` times. What rounding takes from one value it gives to the next
    /// ones, so that all together are `factor` times as many, and thousands that occur once do not vanish.
    pub fn merge_times(&mut self, other: &LatencyHistogram, factor: f64) {
        let (mut counted, mut added) = (0, 0);
        for bucket in other.0.iter_recorded() {
            counted += bucket.count_at_value();
            let count = (counted as f64 * factor).round() as u64 - added;
            self.0.saturating_record_n(bucket.value_iterated_to(), count);
            added += count;
        }
    }

    /// Number of latencies recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The smallest value that at least `percent` % (0 to 100) of the latencies do not exceed, in ns; `None` if nothing
    /// was recorded.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        // 99.9 / 100 is not exactly 999 / 1000: without the step down, the rank could round up to the next one.
        let quantile = (percent / 100.0 - f64::EPSILON).max(0.0);
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for &ns in values {
            histogram.record(ns);
        }
        histogram
    }

    #[test]
    fn percentiles_of_one_to_a_thousand() {
        let h = histogram(&(1..=1000).collect::<Vec<_>>());
        let at = |percent| h.percentile(percent).unwrap();
        assert_eq!(
            (at(0.0), at(50.0), at(90.0), at(99.0), at(99.9), at(100.0)),
            (1, 500, 900, 990, 999, 1000)
        );
    }

    #[test]
    fn long_latencies_are_kept_to_a_thousandth() {
        let p50 = histogram(&[123_456_789]).percentile(50.0).unwrap();
        assert!((123_456_789..=123_580_245).contains(&p50), "{p50}");
    }

    #[test]
    fn an_hour_is_the_longest() {
        let p50 = histogram(&[u64::MAX]).percentile(50.0).unwrap();
        assert!((MAX_NS..=MAX_NS + MAX_NS / 1000).contains(&p50), "{p50}");
    }

    #[test]
    fn latencies_count_several_times() {
        let mut h = histogram(&[1, 1, 50_000]);
        h.merge_times(&histogram(&[1, 1, 50_000]), 2.5);
        // 2 + 5 and 1 + 3
        assert_eq!((h.count(), h.percentile(63.0), h.percentile(64.0)), (11, Some(1), h.percentile(100.0)));
    }

    #[test]
    fn values_that_occur_once_do_not_vanish_from_less_than_half_of_them() {
        let once: Vec<u64> = (1..=1000).collect();
        let mut h = LatencyHistogram::new();
        h.merge_times(&histogram(&once), 0.4);
        assert_eq!(h.count(), 400);
        assert_eq!(h.percentile(50.0), Some(499));
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        assert_eq!(LatencyHistogram::new().percentile(50.0), None);
    }

    #[test]
    fn merging_is_recording_both_in_any_order() {
        let (low, high) = (histogram(&[0, 5, 70_000]), histogram(&[9, 8_000_000]));
        let (mut a, mut b) = (low.clone(), high.clone());
        a.merge(&high);
        b.merge(&low);
        assert_eq!(a, histogram(&[8_000_000, 0, 70_000, 9, 5]));
        assert_eq!(a, b);
        assert_eq!(a.count(), 5);
    }
}
