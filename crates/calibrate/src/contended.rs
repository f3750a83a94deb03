//! What several CPUs do to each other at the same time: accesses to one line, and work on one core.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::sample::Sample;
use crate::thread::{Gate, pin};

/// How long CPUs access a line at a time.
const WINDOW: Duration = Duration::from_millis(8);
const WINDOWS: usize = 9;
/// Accesses between two looks at whether the time is over.
const BLOCK: u64 = 64;
/// Words of a task's own data that the work of a core reads, well within the first-level cache.
const WORDS: usize = 1 << 10;

/// One access to a line that several CPUs access all the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contended {
    /// So many CPUs.
    pub cpus: usize,
    /// An atomic read-modify-write by each of them, in ns.
    pub rmw: Sample,
    /// A read by each but the first one, which writes, in ns; by a single one, of a line that nobody writes.
    pub read: Sample,
}

/// A line to itself.
#[repr(align(128))]
struct Line(AtomicU64);

/// Measures 1, 2, 4 and so on of these CPUs, and all of them.
pub(crate) fn line(cpus: &[usize]) -> io::Result<Vec<Contended>> {
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < cpus.len()).collect();
    counts.push(cpus.len());
    let line = Line(AtomicU64::new(0));
    let rmw = |_, _: &mut u64| _ = line.0.fetch_add(1, Ordering::AcqRel);
    let read = |index: usize, _: &mut u64| match index {
        0 => line.0.store(1, Ordering::Release),
        _ => _ = std::hint::black_box(line.0.load(Ordering::Acquire)),
    };
    let alone = |_, _: &mut u64| _ = std::hint::black_box(line.0.load(Ordering::Acquire));
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let measure = |n: usize| {
        let rmw = windows(&cpus[..n], rmw, mean)?;
        let read = match n {
            1 => windows(&cpus[..1], alone, mean)?,
            n => windows(&cpus[..n], read, |times| mean(&times[1..]))?,
        };
        Ok(Contended { cpus: n, rmw, read })
    };
    counts.into_iter().map(measure).collect()
}

/// What two siblings of a core get done together, in percent of what one gets done alone.
pub(crate) fn smt_share(a: usize, b: usize) -> io::Result<Sample> {
    let data: Vec<u64> = (0..WORDS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    // loads and arithmetic that depend on each other in part, as in the kernel's and most programs' code
    let work = |_: usize, state: &mut u64| {
        *state = state.rotate_left(7) ^ data[(*state as usize) % WORDS];
    };
    let alone = windows(&[a], work, |times| times[0])?;
    let together = windows(&[a, b], work, |times| 1.0 / times.iter().map(|ns| 1.0 / ns).sum::<f64>())?;
    Ok(share_pct(alone, together))
}

/// The same, of the times that one operation takes alone, and on two siblings together.
fn share_pct(alone: Sample, together: Sample) -> Sample {
    let pct = 100.0 * alone.ns / together.ns;
    let spread = (alone.spread_ns / alone.ns).hypot(together.spread_ns / together.ns);
    Sample { ns: pct, spread_ns: pct * spread }
}

/// Lets a thread on each CPU repeat `access`, which gets the CPU's index and a state of its own, for some [`WINDOW`]s.
/// `figure` makes one of the times that an access takes on each.
fn windows(
    cpus: &[usize],
    access: impl Fn(usize, &mut u64) + Sync,
    figure: impl Fn(&[f64]) -> f64,
) -> io::Result<Sample> {
    let figures = (0..WINDOWS).map(|_| Ok(figure(&window(cpus, &access)?)));
    Ok(Sample::of(figures.collect::<io::Result<Vec<f64>>>()?))
}

/// How long an access takes on each CPU, in ns.
fn window(cpus: &[usize], access: impl Fn(usize, &mut u64) + Sync) -> io::Result<Vec<f64>> {
    let (start, stop) = (Gate::default(), AtomicBool::new(false));
    let repeat = |index: usize, cpu: usize| {
        let pinned = pin(&[cpu]);
        start.pass();
        let (begin, mut accesses, mut state) = (Instant::now(), 0, index as u64);
        while !stop.load(Ordering::Relaxed) {
            (0..BLOCK).for_each(|_| access(index, &mut state));
            accesses += BLOCK;
        }
        std::hint::black_box(state);
        pinned.map(|()| begin.elapsed().as_nanos() as f64 / accesses.max(1) as f64)
    };
    thread::scope(|scope| {
        let repeat = &repeat;
        let begin = |(index, cpu): (usize, &usize)| {
            let cpu = *cpu;
            thread::Builder::new().spawn_scoped(scope, move || repeat(index, cpu))
        };
        let threads = start.open_for(cpus.iter().enumerate().map(begin).collect());
        if threads.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        let threads = threads?;
        thread::sleep(WINDOW);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("an access does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_siblings_that_each_take_twice_as_long_get_done_what_one_does() {
        let of = |ns| Sample { ns, spread_ns: 0.0 };
        assert_eq!(share_pct(of(2.0), of(2.0)).ns, 100.0);
        // each takes 3.2 ns, so that one is done every 1.6 ns
        assert_eq!(share_pct(of(2.0), of(1.6)).ns, 125.0);
    }

    #[test]
    fn every_number_of_cpus_is_measured_up_to_all() {
        let all: Vec<usize> = (0..64).filter(|cpu| crate::thread::is_allowed(*cpu)).take(3).collect();
        let counts: Vec<usize> = line(&all).unwrap().iter().map(|contended| contended.cpus).collect();
        let expected: &[usize] = if all.len() == 3 { &[1, 2, 3] } else { &[1, 2] };
        assert_eq!(counts, expected[..all.len().min(expected.len())]);
    }
}
