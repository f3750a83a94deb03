//! Cache lines: from one CPU to another, and from the caches and memory.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::sample::Sample;
use crate::thread::{elapsed_ns, pin};

/// Lines that are passed to and fro, each so many lines behind the one before: in another page, at another place. An LLC in
/// slices has each address in one of them, which may be near to both CPUs or far from them, so what one line takes says little
/// about another one (on a Granite Rapids, 58 to 138 ns, the same for each line whenever it is measured).
const LINES: usize = 64;
const APART: usize = 33;
/// Round trips of each line in a batch.
const TRIPS: u32 = 32;
/// Loads in a batch.
const LOADS: usize = 2_000;
const BATCHES: usize = 100;
/// Walks of which one meets no disturbance.
const WALKS: usize = 5;
/// How often a working set moves.
const MOVES: usize = 15;
/// Bytes of a cache line, and of the steps of a walk.
const LINE: usize = 64;

/// The trip that ends them all.
const END: u32 = u32::MAX;

/// A line to itself; the next one is left out for the prefetcher of pairs.
#[repr(align(128))]
struct Line(AtomicU32);

/// One-way transfer of a modified line from one CPU to another, as a mean of many lines: half a round trip of a line that both
/// modify in turn. Who waits for its turn only reads, as the kernel's locks do, so that the line moves once for each turn.
pub(crate) fn transfer(a: usize, b: usize) -> io::Result<Sample> {
    let lines: Vec<Line> = (0..LINES * APART).map(|_| Line(AtomicU32::new(0))).collect();
    let lines: Vec<&AtomicU32> = lines.iter().step_by(APART).map(|line| &line.0).collect();
    thread::scope(|scope| {
        let answering = scope.spawn(|| {
            pin(&[b])?;
            let mut first = 1;
            while lines.iter().all(|turn| take_turns(turn, first)) {
                first += 2 * TRIPS;
            }
            io::Result::Ok(())
        });
        pin(&[a])?;
        let mut first = 0;
        let sample = Sample::repeat(BATCHES, || {
            let ns = elapsed_ns(|| _ = lines.iter().all(|turn| take_turns(turn, first)));
            first += 2 * TRIPS;
            ns / (2 * TRIPS as usize * LINES) as f64
        });
        // the last turn has come back: nothing overwrites the end
        while lines[LINES - 1].load(Ordering::Acquire) != first {
            rustix::thread::sched_yield();
        }
        lines[0].store(END, Ordering::Release);
        answering.join().expect("the other side does not panic")?;
        Ok(sample)
    })
}

/// Every second turn from `first` on, for a batch; false if there is none any more.
fn take_turns(turn: &AtomicU32, first: u32) -> bool {
    (0..TRIPS).all(|trip| take_turn(turn, first + 2 * trip))
}

/// Waits for the turn and passes it on; false if there is none any more. Every thousandth time it lets others run, in case
/// that the other side shares its CPU with them.
fn take_turn(turn: &AtomicU32, own: u32) -> bool {
    let mut spins = 0u32;
    loop {
        match turn.load(Ordering::Acquire) {
            END => return false,
            now if now == own => break,
            _ => spins += 1,
        }
        if spins % 1000 == 0 {
            rustix::thread::sched_yield();
        }
    }
    turn.store(own + 1, Ordering::Release);
    true
}

/// One load after the other, in random order, from a buffer of `bytes`.
pub(crate) fn load(bytes: usize) -> Sample {
    let next = cycle(bytes / LINE);
    let mut at = 0usize;
    // every line once, so that the caches hold what they can
    for _ in 0..next.len() {
        at = next[at].0 as usize;
    }
    Sample::repeat(BATCHES, || {
        let ns = elapsed_ns(|| {
            for _ in 0..LOADS {
                at = next[at].0 as usize;
            }
            std::hint::black_box(at);
        });
        ns / LOADS as f64
    })
}

/// The same from a cache that holds them all: the fastest of some walks. A virtual machine's CPU that its host moves to another
/// LLC, or that shares its LLC with busy neighbours, finds its lines in memory for a while (seen on a Zen 5: a mean of 95 ns
/// instead of 13).
pub(crate) fn hits(bytes: usize) -> Sample {
    let walks = (0..WALKS).map(|_| load(bytes));
    walks.min_by(|a, b| a.ns.total_cmp(&b.ns)).expect("there are some walks")
}

/// The same of lines that `from` has just written, by `to`: what a task meets that has moved there.
pub(crate) fn moved(from: usize, to: usize, bytes: usize) -> io::Result<Sample> {
    let mut next = cycle(bytes / LINE);
    let mut times = Vec::new();
    for _ in 0..=MOVES {
        pin(&[from])?;
        for link in &mut next {
            // the same value, which the compiler would not write again
            *std::hint::black_box(link) = *link;
        }
        pin(&[to])?;
        let mut at = 0;
        let ns = elapsed_ns(|| {
            for _ in 0..next.len() {
                at = next[at].0 as usize;
            }
            std::hint::black_box(at);
        });
        times.push(ns / next.len() as f64);
    }
    // the first time maps the memory
    times.remove(0);
    Ok(Sample::of(times))
}

/// A line that names the next one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Link(u32);

/// Links that lead through all lines once and back (Sattolo's algorithm), without a pattern for prefetchers.
fn cycle(lines: usize) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::with_capacity(lines);
    // before the first touch, which is when the kernel chooses the size of the page
    advise_huge_pages(links.as_ptr() as usize, lines * LINE);
    links.extend((0..lines as u32).map(Link));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for last in (1..lines).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        links.swap(last, ((state >> 33) % last as u64) as usize);
    }
    links
}

/// Without huge pages the walk would measure the TLB. Where there are none, it does.
fn advise_huge_pages(start: usize, bytes: usize) {
    let first_page = start.next_multiple_of(4096);
    let bytes = bytes.saturating_sub(first_page - start);
    // SAFETY: the advice changes no contents, and a range that is not mapped is an error without effect
    unsafe { libc::madvise(first_page as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_meets_every_line_once() {
        let links = cycle(1000);
        let (mut at, mut steps) = (0, 0);
        loop {
            at = links[at].0 as usize;
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 1000);
    }
}
