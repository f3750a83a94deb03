//! The scheduler's tick: how often it comes, and what it takes.

use std::io;
use std::time::{Duration, Instant};

use crate::sample::Sample;
use crate::thread::pin;

/// Ticks a second that Linux can be built with (`CONFIG_HZ`).
const RATES: [u32; 5] = [1000, 300, 250, 100, 24];
/// How long ticks are looked for.
const LOOK: Duration = Duration::from_millis(400);
/// A tick is that punctual, at least on a CPU without much other work, in ns.
const PUNCTUAL_NS: f64 = 40_000.0;
/// Shorter interruptions are none, in ns.
const SHORTEST_NS: f64 = 250.0;
/// Share of the ticks that have to be found for a rate to be believed.
const FOUND: f64 = 0.7;

/// An interruption of a thread that does nothing but read the clock.
#[derive(Clone, Copy)]
struct Gap {
    at_ns: f64,
    ns: f64,
}

/// The rate of the tick and how long it keeps a task from running; None if no rate fits what was seen.
pub(crate) fn tick(cpu: usize) -> io::Result<Option<(u32, Sample)>> {
    pin(&[cpu])?;
    Ok(periodic(&gaps(), LOOK.as_nanos() as f64))
}

fn gaps() -> Vec<Gap> {
    let start = Instant::now();
    let (mut gaps, mut last) = (Vec::new(), start);
    while last - start < LOOK {
        let now = Instant::now();
        let ns = (now - last).as_nanos() as f64;
        if ns > SHORTEST_NS {
            gaps.push(Gap { at_ns: (last - start).as_nanos() as f64, ns });
        }
        last = now;
    }
    gaps
}

/// The highest rate at which nearly every period has a gap at the same phase.
fn periodic(gaps: &[Gap], look_ns: f64) -> Option<(u32, Sample)> {
    RATES.into_iter().find_map(|rate| {
        let period = 1e9 / f64::from(rate);
        let of_phase = |first: &Gap| -> Vec<f64> {
            let off = |gap: &&Gap| {
                let phase = (gap.at_ns - first.at_ns).rem_euclid(period);
                phase.min(period - phase) < PUNCTUAL_NS.min(period / 20.0)
            };
            gaps.iter().filter(off).map(|gap| gap.ns).collect()
        };
        let best = gaps.iter().take(50).map(of_phase).max_by_key(Vec::len)?;
        (best.len() as f64 >= FOUND * look_ns / period).then(|| (rate, Sample::of(best)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(period_ns: f64, ns: f64) -> Vec<Gap> {
        (0..100).map(|i| Gap { at_ns: 777.0 + f64::from(i) * period_ns, ns }).collect()
    }

    #[test]
    fn the_rate_is_found_among_other_interruptions() {
        let mut gaps = every(4e6, 1200.0);
        gaps.extend((0..40).map(|i| Gap { at_ns: f64::from(i) * 9.7e6, ns: 5000.0 }));
        let (rate, tick) = periodic(&gaps, 4e8).unwrap();
        assert_eq!((rate, tick.ns), (250, 1200.0));
    }

    #[test]
    fn without_a_tick_there_is_no_rate() {
        assert!(periodic(&[], 4e8).is_none());
        assert!(periodic(&every(4e7, 1200.0), 4e9).is_none(), "25 a second is no rate of Linux");
    }
}
