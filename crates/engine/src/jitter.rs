//! How long things take differs from one time to the next.
//!
//! Without that, tasks that wake each other keep in step: one that fights for a mutex finds it taken each time, or never.

use crate::segment::Work;
use crate::sim::Simulation;
use rand_core::RngCore;

impl Simulation<'_> {
    /// A task's own work, uniformly spread by `jitter_pct` to either side.
    #[inline]
    pub(crate) fn jittered(&mut self, ns: u64) -> Work {
        let pct = self.costs.jitter_pct;
        let work = if pct == 0 {
            ns
        } else {
            ns * (1000 - 10 * pct + u64::from(self.random(20 * pct as u32 + 1))) / 1000
        };
        Work { work, stall: 0 }
    }

    /// The kernel's work, of which `kernel_jitter_pct` is exponentially distributed.
    #[inline]
    pub(crate) fn kernel_jittered(&mut self, ns: u64) -> u64 {
        let pct = self.costs.kernel_jitter_pct;
        if pct == 0 || ns == 0 {
            return ns;
        }
        let varies = ns * pct / 100;
        ns - varies + ((varies * exponential(self.rng.next_u32())) >> 16)
    }
}

/// An exponentially distributed number with a mean of 1, in units of 2^-16, from 32 random bits.
///
/// Of an exponentially distributed number in units of ln 2, the whole part is geometrically distributed, like the leading zeros of random
/// bits. The fraction is taken as uniformly distributed, so the mean is 1.5 units; the standard deviation is 0.96 instead of 1.
#[inline]
fn exponential(bits: u32) -> u64 {
    let whole = u64::from(bits.leading_zeros());
    let fraction = u64::from(bits & 0xffff);
    (whole << 16 | fraction) * 2 / 3
}

#[cfg(test)]
mod tests {
    use super::exponential;

    #[test]
    fn the_mean_is_1_and_the_quantiles_are_those_of_the_distribution() {
        let mut drawn: Vec<f64> = (0..1u32 << 16)
            // a permutation of the 16-bit numbers in the upper half, another one in the lower
            .map(|i| i << 16 | (i.wrapping_mul(40_503) & 0xffff))
            .map(|bits| exponential(bits) as f64 / 65536.0)
            .collect();
        drawn.sort_by(f64::total_cmp);
        let n = drawn.len() as f64;
        let mean = drawn.iter().sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 0.001, "{mean}");
        for quantile in [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999] {
            let (is, should) = (drawn[(quantile * n) as usize], -(1.0f64 - quantile).ln());
            assert!((is - should).abs() < 0.05 * should + 0.04, "{quantile}: {is}, not {should}");
        }
    }
}
