//! What waits until nothing can come that was earlier.
//!
//! Recorders write what they find in a CPU's buffer in one piece, so the events of CPUs stand behind each other. Unlike
//! [`crate::Reorder`], which repairs single lines, this takes as much as fits into memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Memory for what waits, in bytes; as much again as half of the file.
const MEMORY: u64 = 24 << 20;

/// Things with times.
pub struct Held<T> {
    /// By time and by arrival; the last number is a place in `things`.
    waiting: BinaryHeap<Reverse<(u64, u64, usize)>>,
    things: Vec<Option<T>>,
    free: Vec<usize>,
    arrived: u64,
    most: usize,
}

impl<T> Held<T> {
    /// As many are held as fit into 24 MiB, and half of `length`, which is that of the file, in bytes.
    pub fn new(length: u64) -> Held<T> {
        let each = size_of::<Option<T>>() as u64 + 32;
        let most = ((MEMORY + length / 2) / each) as usize;
        Held { waiting: BinaryHeap::new(), things: Vec::new(), free: Vec::new(), arrived: 0, most }
    }

    /// Holds a thing.
    pub fn push(&mut self, time: u64, thing: T) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.things.push(None);
            self.things.len() - 1
        });
        self.things[place] = Some(thing);
        self.waiting.push(Reverse((time, self.arrived, place)));
        self.arrived += 1;
    }

    /// The earliest, if it is not later than `settled`, or if there are too many.
    pub fn pop(&mut self, settled: Option<u64>) -> Option<T> {
        let Reverse((time, ..)) = self.waiting.peek()?;
        if settled.is_none_or(|settled| *time > settled) && self.waiting.len() <= self.most {
            return None;
        }
        let Reverse((_, _, place)) = self.waiting.pop()?;
        self.free.push(place);
        self.things[place].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_once_it_is_settled() {
        let mut held = Held::new(0);
        for (time, thing) in [(3, 'c'), (1, 'a'), (3, 'd'), (2, 'b')] {
            held.push(time, thing);
        }
        assert_eq!(held.pop(None), None);
        assert_eq!(std::iter::from_fn(|| held.pop(Some(2))).collect::<String>(), "ab");
        assert_eq!(std::iter::from_fn(|| held.pop(Some(u64::MAX))).collect::<String>(), "cd");
    }

    #[test]
    fn memory_is_bounded() {
        let mut held = Held::new(0);
        let mut given = 0;
        for time in 0..2_000_000u64 {
            held.push(time, [time; 16]);
            given += u64::from(held.pop(None).is_some());
        }
        assert!(given > 1_800_000 && held.things.len() * (16 * 8 + 8) < 24 << 20, "{}", held.things.len());
    }
}
