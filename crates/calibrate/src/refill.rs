//! What a line of a working set takes to be loaded again, by the size of the set and by where it is.

use std::io;

use coreward_machine::Caches;

use crate::memory;
use crate::sample::Sample;

/// Sizes of working sets that move to another CPU, in bytes.
const MOVED: [u64; 4] = [16 << 10, 256 << 10, 1 << 20, 4 << 20];

/// The load of a line, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refill {
    /// Size of the working set.
    pub bytes: u64,
    /// Where it is.
    pub source: &'static str,
    /// A line, in ns.
    pub line: Sample,
}

/// From the caches of `cpu`, where the calling thread has to be, and, if there is another CPU, from that one's.
pub(crate) fn refills(caches: &Caches, cpu: usize, other: Option<usize>) -> io::Result<Vec<Refill>> {
    let from = |bytes: u64, source| Refill { bytes, source, line: memory::load(bytes as usize) };
    let mut refills = vec![from(caches.l1d_bytes / 2, "own L1"), from(caches.l2_bytes / 2, "own L2")];
    if let Some(other) = other {
        for bytes in MOVED.into_iter().filter(|bytes| *bytes <= caches.llc_bytes / 2) {
            let line = memory::moved(other, cpu, bytes as usize)?;
            refills.push(Refill { bytes, source: "written by another CPU", line });
        }
    }
    Ok(refills)
}
