//! The programs' counters (`bpf/shadow/shadow.h`), read from the bytes of the maps as 64-bit words.

/// The names of distances but the first, which is no move.
pub(super) const DISTANCES: [&str; 4] = {
    let [_, (core, _), (llc, _), (node, _), (across, _)] = coreward_policy::DISTANCES;
    [core, llc, node, across]
};
/// The names of `enum shadow_kind`.
pub(super) const KINDS: [&str; 3] = ["wakeup", "fork", "exec"];

/// `SHADOW_MAX_REASONS`.
const MAX_REASONS: usize = 32;

/// Moves by distance, the first entry those to the same CPU.
pub(super) type Moves = [u64; 5];

/// Consecutive words, each one 0 behind the end.
struct Words<'a>(std::slice::ChunksExact<'a, u8>);

impl<'a> Words<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Words(bytes.chunks_exact(8))
    }

    fn next(&mut self) -> u64 {
        self.0.next().map_or(0, |word| u64::from_ne_bytes(word.try_into().expect("chunks of 8")))
    }

    fn array<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.next())
    }
}

fn combine<const N: usize>(to: &mut [u64; N], from: &[u64; N], f: fn(u64, u64) -> u64) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = f(*to, *from));
}

/// `struct shadow_counts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) decisions: u64,
    pub(super) elsewhere: u64,
    pub(super) kernel: Moves,
    pub(super) policy: Moves,
    pub(super) avoided: Moves,
    pub(super) added: Moves,
}

impl Counts {
    fn read(words: &mut Words<'_>) -> Self {
        Counts {
            decisions: words.next(),
            elsewhere: words.next(),
            kernel: words.array(),
            policy: words.array(),
            avoided: words.array(),
            added: words.array(),
        }
    }

    fn combine(&mut self, other: &Self, f: fn(u64, u64) -> u64) {
        self.decisions = f(self.decisions, other.decisions);
        self.elsewhere = f(self.elsewhere, other.elsewhere);
        combine(&mut self.kernel, &other.kernel, f);
        combine(&mut self.policy, &other.policy, f);
        combine(&mut self.avoided, &other.avoided, f);
        combine(&mut self.added, &other.added, f);
    }
}

/// `struct shadow_drift`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drift {
    pub(super) samples: u64,
    pub(super) idle: u64,
    pub(super) nr_running: u64,
    pub(super) nr_running_sum: u64,
    pub(super) util_sum: u64,
}

/// `struct shadow_totals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) kinds: [Counts; KINDS.len()],
    pub(super) unplaced: u64,
    pub(super) lost: u64,
    pub(super) decided: u64,
    pub(super) ns: u64,
    pub(super) sync: u64,
    pub(super) preferred_llc: u64,
    /// Of each of the policy's reasons: decisions, and how many of these the kernel made otherwise.
    pub(super) reasons: [[u64; 2]; MAX_REASONS],
    pub(super) drift: Drift,
}

impl Default for Totals {
    fn default() -> Self {
        Totals::read(&[])
    }
}

impl Totals {
    /// One CPU's.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let words = &mut Words::new(bytes);
        Totals {
            kinds: std::array::from_fn(|_| Counts::read(words)),
            unplaced: words.next(),
            lost: words.next(),
            decided: words.next(),
            ns: words.next(),
            sync: words.next(),
            preferred_llc: words.next(),
            reasons: std::array::from_fn(|_| words.array()),
            drift: Drift {
                samples: words.next(),
                idle: words.next(),
                nr_running: words.next(),
                nr_running_sum: words.next(),
                util_sum: words.next(),
            },
        }
    }

    fn combine(&mut self, other: &Self, f: fn(u64, u64) -> u64) {
        self.kinds.iter_mut().zip(&other.kinds).for_each(|(a, b)| a.combine(b, f));
        for (a, b) in [
            (&mut self.unplaced, other.unplaced),
            (&mut self.lost, other.lost),
            (&mut self.decided, other.decided),
            (&mut self.ns, other.ns),
            (&mut self.sync, other.sync),
            (&mut self.preferred_llc, other.preferred_llc),
            (&mut self.drift.samples, other.drift.samples),
            (&mut self.drift.idle, other.drift.idle),
            (&mut self.drift.nr_running, other.drift.nr_running),
            (&mut self.drift.nr_running_sum, other.drift.nr_running_sum),
            (&mut self.drift.util_sum, other.drift.util_sum),
        ] {
            *a = f(*a, b);
        }
        self.reasons.iter_mut().zip(&other.reasons).for_each(|(a, b)| combine(a, b, f));
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

/// `struct shadow_share`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) decisions: u64,
    pub(super) elsewhere: u64,
    pub(super) avoided: Moves,
    pub(super) added: Moves,
}

impl Share {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let words = &mut Words::new(bytes);
        Share {
            decisions: words.next(),
            elsewhere: words.next(),
            avoided: words.array(),
            added: words.array(),
        }
    }

    /// Takes off what was counted before.
    pub(super) fn subtract(&mut self, before: &Self) {
        self.decisions = self.decisions.wrapping_sub(before.decisions);
        self.elsewhere = self.elsewhere.wrapping_sub(before.elsewhere);
        combine(&mut self.avoided, &before.avoided, u64::wrapping_sub);
        combine(&mut self.added, &before.added, u64::wrapping_sub);
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
