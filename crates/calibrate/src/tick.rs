//! The scheduler's tick: what it takes.

use std::collections::BTreeMap;
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

/// The longest gap of each period at the phase where these are longest in sum, if most periods have one there. The tick is not
/// the only interruption: the host of a virtual machine may interrupt it some 15,000 times a second.
fn periodic(gaps: &[Gap], look_ns: f64, period_ns: f64) -> Option<Sample> {
    let of_phase = |first: &Gap| -> Vec<f64> {
        let near = PUNCTUAL_NS.min(period_ns / 20.0);
        let mut longest = BTreeMap::<i64, f64>::new();
        for gap in gaps {
            let periods = (gap.at_ns - first.at_ns) / period_ns;
            if (periods - periods.round()).abs() * period_ns < near {
                let ns = longest.entry(periods.round() as i64).or_default();
                *ns = ns.max(gap.ns);
            }
        }
        longest.into_values().collect()
    };
    let first_period = gaps.iter().take_while(|gap| gap.at_ns < gaps[0].at_ns + period_ns);
    let sum = |gaps: &Vec<f64>| gaps.iter().sum::<f64>();
    let of_most_periods = |gaps: &Vec<f64>| gaps.len() as f64 >= FOUND * look_ns / period_ns;
    let found = first_period.map(of_phase).filter(of_most_periods);
    found.max_by(|a, b| sum(a).total_cmp(&sum(b))).map(Sample::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the order in which they come.
    fn sorted(gaps: impl Iterator<Item = Gap>) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = gaps.collect();
        gaps.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
        gaps
    }

    fn every(period_ns: f64, ns: f64) -> impl Iterator<Item = Gap> {
        (0..(4e8 / period_ns) as u32).map(move |i| Gap { at_ns: 777.0 + f64::from(i) * period_ns, ns })
    }

    #[test]
    fn the_tick_is_found_among_other_interruptions() {
        // a virtual machine's host may interrupt it more often than it ticks
        let gaps = sorted(every(4e6, 1200.0).chain(every(9.7e6, 5000.0)).chain(every(1.01e6, 300.0)));
        assert_eq!(periodic(&gaps, 4e8, 4e6).unwrap().ns, 1200.0);
    }

    #[test]
    fn the_tick_is_found_where_the_host_interrupts_far_more_often() {
        let gaps = sorted(every(65_000.0, 2200.0).chain(every(4e6, 30_000.0)));
        assert_eq!(periodic(&gaps, 4e8, 4e6).unwrap(), Sample { ns: 30_000.0, spread_ns: 0.0 });
    }

    #[test]
    fn without_a_tick_there_is_no_cost() {
        assert!(periodic(&[], 4e8, 4e6).is_none());
        assert!(periodic(&every(4e7, 1200.0).collect::<Vec<_>>(), 4e8, 4e6).is_none());
    }
}
