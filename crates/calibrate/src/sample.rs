//! Repeated measurements of one time.

use std::time::{Duration, Instant};

/// A measurement ends after that long: beside other programs, every yield of the CPU may take milliseconds.
const LONGEST: Duration = Duration::from_secs(1);
/// But not before so many batches, which have a middle half.
const FEWEST: usize = 4;
/// A batch goes on for that long. What interrupts a task often is part of what its calls take: the host of a virtual machine
/// may do so every 65 us for 2 us (docs/results/validation-granite-rapids.md), which shorter batches have or have not, and
/// then their middle half has none of it. What interrupts it seldom, such as its own tick, is in a few of these batches only.
const BATCH: Duration = Duration::from_micros(500);

/// The mean of the middle half of a number of batches, and how far they spread.
///
/// What disturbs a few batches does not move it, as it does not move a median. Where a machine has two speeds, for
/// instance because another guest uses the sibling of a core now and then, it lies between them as the time does that a
/// program takes, while a median has one or the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Mean of the middle half, in ns.
    pub ns: f64,
    /// Interquartile range, in ns. Of a difference of two samples: the root of the sum of the squares.
    pub spread_ns: f64,
}

impl Sample {
    /// The interquartile mean and range of `values`, which must not be empty.
    pub(crate) fn of(mut values: Vec<f64>) -> Sample {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| ((values.len() - 1) as f64 * share).round() as usize;
        let middle = &values[at(0.25)..=at(0.75)];
        let mean = middle.iter().sum::<f64>() / middle.len() as f64;
        Sample { ns: mean, spread_ns: middle[middle.len() - 1] - middle[0] }
    }

    /// Measures `batches` times, or as often as [`LONGEST`] allows; each call of `measure` returns a time in ns. A batch has
    /// the mean of as many calls as begin within its time.
    pub(crate) fn repeat(batches: usize, mut measure: impl FnMut() -> f64) -> Sample {
        let [sample] = Sample::repeat_all(batches, || [measure()]);
        sample
    }

    /// The same of several times that are measured in turn.
    pub(crate) fn repeat_all<const N: usize>(
        batches: usize,
        mut measure: impl FnMut() -> [f64; N],
    ) -> [Sample; N] {
        // the first call warms the caches
        measure();
        let (start, mut values) = (Instant::now(), Vec::new());
        while values.len() < batches && (values.len() < FEWEST || start.elapsed() < LONGEST) {
            values.push(batch(&mut measure));
        }
        std::array::from_fn(|i| Sample::of(values.iter().map(|all| all[i]).collect()))
    }

    pub(crate) fn map(self, share: f64) -> Sample {
        Sample { ns: self.ns * share, spread_ns: self.spread_ns * share }
    }

    /// What is left of this time without `other`, which it contains. Not below 0.
    pub(crate) fn without(self, other: Sample) -> Sample {
        Sample { ns: (self.ns - other.ns).max(0.0), spread_ns: self.spread_ns.hypot(other.spread_ns) }
    }

    /// This time, or `most` if that is less.
    pub(crate) fn at_most(self, most: Sample) -> Sample {
        Sample { ns: self.ns.min(most.ns), ..self }
    }

    /// Does it say no more than `assumed` does? Its middle half is wider than the figure, and `assumed` lies within it.
    pub(crate) fn is_vague(self, assumed: u64) -> bool {
        self.spread_ns > self.ns && (self.ns - assumed as f64).abs() <= self.spread_ns / 2.0
    }

    pub(crate) fn and(self, other: Sample) -> Sample {
        Sample { ns: self.ns + other.ns, spread_ns: self.spread_ns.hypot(other.spread_ns) }
    }
}

/// The means of what `measure` returns for the time of a [`BATCH`].
fn batch<const N: usize>(measure: &mut impl FnMut() -> [f64; N]) -> [f64; N] {
    let (start, mut sums, mut calls) = (Instant::now(), [0.0; N], 0.0);
    while calls == 0.0 || start.elapsed() < BATCH {
        let values = measure();
        sums = std::array::from_fn(|i| sums[i] + values[i]);
        calls += 1.0;
    }
    sums.map(|sum| sum / calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_interrupts_often_is_part_of_the_time() {
        let mut calls = 0;
        let sample = Sample::repeat(50, || {
            calls += 1;
            std::thread::sleep(BATCH / 50);
            if calls % 5 == 0 { 600.0 } else { 100.0 }
        });
        assert!((150.0..250.0).contains(&sample.ns), "200 in the mean: {sample:?}");
    }

    #[test]
    fn the_middle_half_counts() {
        let sample = Sample::of(vec![9.0, 1.0, 3.0, 6.0, 100.0]);
        assert_eq!(sample, Sample { ns: 6.0, spread_ns: 6.0 });
        assert_eq!(Sample::of(vec![7.0]), Sample { ns: 7.0, spread_ns: 0.0 });
    }

    #[test]
    fn slow_measurements_are_not_repeated_for_long() {
        let mut calls = 0;
        let sample = Sample::repeat(1000, || {
            calls += 1;
            std::thread::sleep(LONGEST / 2);
            f64::from(calls)
        });
        assert_eq!((calls, sample.ns), (1 + FEWEST as i32, 3.5), "the first one is not counted");
    }

    #[test]
    fn a_wide_figure_is_vague_where_it_does_not_rule_out_what_is_assumed() {
        let sample = |ns, spread_ns| Sample { ns, spread_ns };
        assert!(sample(20.0, 60.0).is_vague(50));
        assert!(!sample(20.0, 60.0).is_vague(51), "it is less than that");
        assert!(!sample(70.0, 60.0).is_vague(50), "it is narrow");
        assert!(!sample(0.0, 60.0).is_vague(90), "next to nothing, and not 90");
    }

    #[test]
    fn differences_are_not_negative_and_spread_more() {
        let (a, b) = (Sample { ns: 10.0, spread_ns: 3.0 }, Sample { ns: 4.0, spread_ns: 4.0 });
        assert_eq!(a.without(b), Sample { ns: 6.0, spread_ns: 5.0 });
        assert_eq!(b.without(a).ns, 0.0);
        assert_eq!([a.at_most(b).ns, b.at_most(a).ns], [4.0, 4.0]);
    }
}
