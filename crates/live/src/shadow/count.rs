//! The programs' counters (`bpf/shadow/shadow.h`), read from the bytes of the maps as 64-bit words.

/// The names of distances but the first, which is no move.
pub(super) const DISTANCES: [&str; 4] = {
    let [_, (core, _), (llc, _), (node, _), (across, _)] = coreward_policy::DISTANCES;
    [core, llc, node, across]
};
/// The names of `enum shadow_kind`.
pub(super) const KINDS: [&str; 3] = ["wakeup", "fork", "exec"];

/// Moves by distance, the first entry those to the same CPU.
pub(super) type Moves = [u64; 5];

/// Consecutive 64-bit words, each one 0 behind the end.
struct Words<'a>(std::slice::ChunksExact<'a, u8>);

impl Words<'_> {
    fn next(&mut self) -> u64 {
        self.0.next().map_or(0, |word| u64::from_ne_bytes(word.try_into().expect("chunks of 8")))
    }
}

/// Counters that stand one after the other.
trait Counted: Sized {
    fn take(words: &mut Words<'_>) -> Self;
    /// Changes each by the same one of `other`.
    fn combine(&mut self, other: &Self, f: fn(u64, u64) -> u64);
}

impl Counted for u64 {
    fn take(words: &mut Words<'_>) -> Self {
        words.next()
    }

    fn combine(&mut self, other: &Self, f: fn(u64, u64) -> u64) {
        *self = f(*self, *other);
    }
}

impl<T: Counted, const N: usize> Counted for [T; N] {
    fn take(words: &mut Words<'_>) -> Self {
        std::array::from_fn(|_| T::take(words))
    }

    fn combine(&mut self, other: &Self, f: fn(u64, u64) -> u64) {
        self.iter_mut().zip(other).for_each(|(to, from)| to.combine(from, f));
    }
}

macro_rules! counted {
    ($($(#[doc = $doc:literal])+ $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::shadow) struct $name { $(pub(in crate::shadow) $field: $type),+ }

        impl Counted for $name {
            fn take(words: &mut Words<'_>) -> Self {
                $name { $($field: Counted::take(words)),+ }
            }

            fn combine(&mut self, other: &Self, f: fn(u64, u64) -> u64) {
                $(self.$field.combine(&other.$field, f);)+
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Counted::take(&mut Words([].chunks_exact(8)))
            }
        }
    )+ };
}

mod generated;
#[cfg(test)]
pub(super) use generated::Counts;
pub(super) use generated::{Share, Totals};

fn read<T: Counted>(bytes: &[u8]) -> T {
    T::take(&mut Words(bytes.chunks_exact(8)))
}

impl Totals {
    /// One CPU's.
    pub(super) fn read(bytes: &[u8]) -> Self {
        read(bytes)
    }

    /// Adds those of another CPU.
    pub(super) fn add(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_add);
    }

    /// Takes off what was counted before.
    pub(super) fn subtract(&mut self, before: &Self) {
        self.combine(before, u64::wrapping_sub);
    }
}

impl Share {
    pub(super) fn read(bytes: &[u8]) -> Self {
        read(bytes)
    }

    /// Takes off what was counted before.
    pub(super) fn subtract(&mut self, before: &Self) {
        self.combine(before, u64::wrapping_sub);
    }
}

/// A part of a whole in per cent; none of nothing.
pub(super) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// A sum per item; none of nothing.
pub(super) fn mean(sum: u64, items: u64) -> Option<f64> {
    (items > 0).then(|| sum as f64 / items as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of so many words, each its own number.
    fn numbered(words: u64) -> Vec<u8> {
        (0..words).flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn words_stand_where_c_has_them() {
        // three kinds of 22 words, six words, 32 reasons of two, five words
        let totals = Totals::read(&numbered(3 * 22 + 6 + 2 * 32 + 5));
        assert_eq!((totals.kinds[1].decisions, totals.kinds[1].elsewhere), (22, 23));
        assert_eq!(totals.kinds[2].added, [61, 62, 63, 64, 65]);
        assert_eq!((totals.unplaced, totals.preferred_llc, totals.reasons[0]), (66, 71, [72, 73]));
        assert_eq!((totals.drift.samples, totals.drift.util_sum), (136, 140));
    }

    #[test]
    fn cpus_add_up_and_what_was_before_is_taken_off() {
        let one = Totals::read(&numbered(141));
        let mut sum = one;
        sum.add(&one);
        assert_eq!(sum.kinds[0].kernel, [4, 6, 8, 10, 12]);
        sum.subtract(&one);
        assert_eq!(sum, one);
    }
}
