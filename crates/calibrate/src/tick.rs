//! The scheduler's tick: what it takes.

use std::io;
use std::time::{Duration, Instant};

use crate::sample::Sample;
use crate::thread::pin;

/// How long ticks are looked for.
const LOOK: Duration = Duration::from_millis(400);
/// A tick is that punctual, at least on a CPU without much other work, in ns.
const PUNCTUAL_NS: f64 = 40_000.0;
/// Shorter interruptions are none, in ns.
const SHORTEST_NS: f64 = 250.0;
/// Share of the ticks that have to be found.
const FOUND: f64 = 0.7;

/// An interruption of a thread that does nothing but read the clock.
#[derive(Clone, Copy)]
struct Gap {
    at_ns: f64,
    ns: f64,
}

/// How long the tick, which comes `hz` times a second, keeps a task from running; None if it was not seen.
pub(crate) fn tick(cpu: usize, hz: u32) -> io::Result<Option<Sample>> {
    pin(&[cpu])?;
    Ok(periodic(&gaps(), LOOK.as_nanos() as f64, 1e9 / f64::from(hz)))
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

/// The gaps of the phase at which most periods have one.
fn periodic(gaps: &[Gap], look_ns: f64, period_ns: f64) -> Option<Sample> {
    let of_phase = |first: &Gap| -> Vec<f64> {
        let off = |gap: &&Gap| {
            let phase = (gap.at_ns - first.at_ns).rem_euclid(period_ns);
            phase.min(period_ns - phase) < PUNCTUAL_NS.min(period_ns / 20.0)
        };
        gaps.iter().filter(off).map(|gap| gap.ns).collect()
    };
    let best = gaps.iter().take(50).map(of_phase).max_by_key(Vec::len)?;
    (best.len() as f64 >= FOUND * look_ns / period_ns).then(|| Sample::of(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(period_ns: f64, ns: f64) -> impl Iterator<Item = Gap> {
        (0..(4e8 / period_ns) as u32).map(move |i| Gap { at_ns: 777.0 + f64::from(i) * period_ns, ns })
    }

    #[test]
    fn the_tick_is_found_among_other_interruptions() {
        // a virtual machine's host may interrupt it more often than it ticks
        let gaps: Vec<Gap> =
            every(4e6, 1200.0).chain(every(9.7e6, 5000.0)).chain(every(1.01e6, 300.0)).collect();
        assert_eq!(periodic(&gaps, 4e8, 4e6).unwrap().ns, 1200.0);
    }

    #[test]
    fn without_a_tick_there_is_no_cost() {
        assert!(periodic(&[], 4e8, 4e6).is_none());
        assert!(periodic(&every(4e7, 1200.0).collect::<Vec<_>>(), 4e8, 4e6).is_none());
    }
}
