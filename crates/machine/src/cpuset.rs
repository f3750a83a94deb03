//! Sets of CPUs as fixed-size bitmaps, printed and parsed as the kernel does.

use std::fmt;

use serde::{Serialize, Serializer};

/// The largest number of CPUs that any machine here may have.
pub const MAX_CPUS: usize = 1024;

const WORD_BITS: usize = 64;
const WORDS: usize = MAX_CPUS / WORD_BITS;

/// A set of CPU numbers below [`MAX_CPUS`].
///
/// `Display` prints the kernel's list form (`0-11,24-35`; the empty set prints nothing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet {
    words: [u64; WORDS],
}

impl CpuSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { words: [0; WORDS] }
    }

    /// The CPUs `0..count`; `count` above [`MAX_CPUS`] is cut to it.
    pub fn first_n(count: usize) -> Self {
        (0..count.min(MAX_CPUS)).collect()
    }

    /// The set of one CPU.
    pub fn single(cpu: usize) -> Self {
        std::iter::once(cpu).collect()
    }

    /// Adds a CPU. Numbers of [`MAX_CPUS`] and above are ignored.
    pub fn insert(&mut self, cpu: usize) {
        if cpu < MAX_CPUS {
            self.words[cpu / WORD_BITS] |= 1 << (cpu % WORD_BITS);
        }
    }

    /// Takes a CPU out.
    pub fn remove(&mut self, cpu: usize) {
        if cpu < MAX_CPUS {
            self.words[cpu / WORD_BITS] &= !(1 << (cpu % WORD_BITS));
        }
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        cpu < MAX_CPUS && self.words[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1 == 1
    }

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The lowest CPU of the set.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The highest CPU of the set.
    pub fn last(&self) -> Option<usize> {
        let word = self.words.iter().rposition(|&w| w != 0)?;
        Some(word * WORD_BITS + WORD_BITS - 1 - self.words[word].leading_zeros() as usize)
    }

    /// The CPUs of either set.
    pub fn union(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    /// The CPUs of both sets.
    pub fn intersect(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// The CPUs of this set that are not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    /// Whether the sets have a CPU in common.
    pub fn intersects(&self, other: &Self) -> bool {
        !self.intersect(other).is_empty()
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    fn zip(&self, other: &Self, op: impl Fn(u64, u64) -> u64) -> Self {
        let mut words = self.words;
        for (word, &b) in words.iter_mut().zip(&other.words) {
            *word = op(*word, b);
        }
        Self { words }
    }

    /// The bitmap, CPU 0 in the lowest bit of word 0.
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors((word != 0).then_some(word), |w| {
                let rest = w & (w - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |w| index * WORD_BITS + w.trailing_zeros() as usize)
        })
    }

    /// The CPUs in ascending order, beginning at `start` and wrapping round (`for_each_cpu_wrap`).
    pub fn iter_wrap(&self, start: usize) -> impl Iterator<Item = usize> + '_ {
        let from_start = self.iter().skip_while(move |&cpu| cpu < start);
        from_start.chain(self.iter().take_while(move |&cpu| cpu < start))
    }

    /// Reads the kernel's list form: numbers and ranges separated by commas (`0-11,24-35`).
    ///
    /// Surrounding blanks and a final newline are allowed; the empty text is the empty set.
    ///
    /// # Errors
    /// A message that names the wrong part, if it is no number or range, if a range runs
    /// backwards, or if a CPU is [`MAX_CPUS`] or more.
    pub fn parse_list(text: &str) -> Result<Self, String> {
        let mut set = Self::new();
        let text = text.trim();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (parse_cpu(part, low)?, parse_cpu(part, high)?);
            if low > high {
                return Err(format!("CPU range `{part}` runs backwards"));
            }
            (low..=high).for_each(|cpu| set.insert(cpu));
        }
        Ok(set)
    }

    /// Prints the kernel's `%*pb` mask for a machine of `nr_cpus`, as in `/proc/schedstat`:
    /// groups of 32 bits separated by commas, the highest group as short as it can be
    /// (48 CPUs: `000f,ff000fff`).
    pub fn to_mask(&self, nr_cpus: usize) -> String {
        let nr_cpus = nr_cpus.clamp(1, MAX_CPUS);
        let chunks = (0..nr_cpus.div_ceil(32)).rev().map(|chunk| {
            let bits = (nr_cpus - chunk * 32).min(32);
            let value = (self.words[chunk / 2] >> (chunk % 2 * 32)) as u32;
            format!("{value:0width$x}", width = bits.div_ceil(4))
        });
        chunks.collect::<Vec<_>>().join(",")
    }

    /// Reads a mask of comma-separated 32-bit groups, each with or without `0x`
    /// (`000f,ff000fff`, hwloc's `0x0000000f,0xff000fff`; an empty group is 0).
    ///
    /// # Errors
    /// A message that names the group that is not hexadecimal, or says that a CPU is
    /// [`MAX_CPUS`] or more.
    pub fn parse_mask(text: &str) -> Result<Self, String> {
        let mut set = Self::new();
        for (chunk, part) in text.trim().rsplit(',').enumerate() {
            let digits = part.strip_prefix("0x").unwrap_or(part);
            let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            let value = match digits {
                "" => 0,
                _ if is_hex => u32::from_str_radix(digits, 16).map_err(|_| bad_group(part))?,
                _ => return Err(bad_group(part)),
            };
            if value != 0 && chunk >= MAX_CPUS / 32 {
                return Err(format!("CPU mask has a CPU above {}", MAX_CPUS - 1));
            }
            (0..32).filter(|bit| value >> bit & 1 == 1).for_each(|bit| set.insert(chunk * 32 + bit));
        }
        Ok(set)
    }
}

fn bad_group(part: &str) -> String {
    format!("`{part}` is not a group of up to 8 hexadecimal digits")
}

fn parse_cpu(part: &str, digits: &str) -> Result<usize, String> {
    let digits = digits.trim();
    // `usize::from_str` takes a leading plus sign, which no kernel file has.
    let cpu = if digits.starts_with('+') { None } else { digits.parse::<usize>().ok() };
    match cpu {
        Some(cpu) if cpu < MAX_CPUS => Ok(cpu),
        Some(cpu) => Err(format!("CPU {cpu} is above the limit of {}", MAX_CPUS - 1)),
        None => Err(format!("`{part}` is not a CPU number or a range like 0-3")),
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::new();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(low) = cpus.next() {
            let mut high = low;
            while cpus.next_if_eq(&(high + 1)).is_some() {
                high += 1;
            }
            write!(f, "{separator}{low}")?;
            if high > low {
                write!(f, "-{high}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
