//! Shares of a command's work, which other processes and computers make.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;

/// The most simulations of a command.
pub(crate) const MOST: usize = 500_000;

/// Some of the simulations of a command: those whose number, divided by `of`, leaves `number`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}/{}", self.number, self.of)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// Reads `0/4`.
    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').map(|(number, of)| (number.parse(), of.parse()));
        match numbers {
            Some((Ok(number), Ok(of))) if number < of && of <= MOST => Ok(Shard { number, of }),
            _ => Err(format!("allowed are 0/N to N-1/N, with N up to {MOST}")),
        }
    }
}

/// What is in the shards, in its order; without shards all.
pub(crate) fn share<T>(all: Vec<T>, shards: &[Shard]) -> Vec<T> {
    if shards.is_empty() {
        return all;
    }
    let of = |shard: &Shard| (shard.number..all.len()).step_by(shard.of);
    let chosen: BTreeSet<usize> = shards.iter().flat_map(of).collect();
    all.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, one)| one).collect()
}

/// Says that shares are kept, of so many of what is so called.
pub(crate) fn kept(shards: &[Shard], number: usize, what: &str, out: &mut dyn Write) -> Result<()> {
    let shards: Vec<String> = shards.iter().map(Shard::to_string).collect();
    Ok(writeln!(out, "shard {}: {number} {what} are kept", shards.join(", "))?)
}

/// Each that is left of `of` as the shard of it alone, and what it is.
pub(crate) fn left(
    of: usize,
    left: &[usize],
    describe: impl Fn(usize) -> String,
    out: &mut dyn Write,
) -> Result<()> {
    for &number in left {
        writeln!(out, "{} {}", Shard { number, of }, describe(number))?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_many() {
        assert_eq!("2/5".parse(), Ok(Shard { number: 2, of: 5 }));
        for wrong in ["", "1", "5/5", "0/0", "-1/4", "1/", "1/4/8", "0/1000000", "1/500001"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn shards_together_are_all_and_one_twice_is_once() {
        let of = |shards: &[&str]| {
            let shards: Vec<Shard> = shards.iter().map(|shard| shard.parse().unwrap()).collect();
            share((0..7).collect(), &shards)
        };
        assert_eq!(of(&["1/3"]), [1, 4]);
        assert_eq!(of(&["2/3", "0/3", "2/3"]), [0, 2, 3, 5, 6]);
        assert_eq!(of(&["0/3", "1/3", "2/3"]), of(&[]));
    }
}
