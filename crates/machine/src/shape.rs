//! Regular machines: a number of nodes, LLCs, cores and threads (`2n4l8c2t`).

use crate::cpuset::MAX_CPUS;
use crate::machine::Place;

/// How the CPUs of a regular machine are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// First thread of every core, then all second threads: x86 servers on bare metal.
    #[default]
    CoresFirst,
    /// The threads of a core are neighbours: virtual machines.
    ThreadsAdjacent,
    /// The threads of two cores take turns: the small cores of POWER, which are the even and
    /// the odd threads of a big one. There is an even number of cores.
    CoresAlternate,
}

impl Numbering {
    /// All of them, by their names in machine files.
    pub(crate) const ALL: [(&str, Self); 3] = [
        ("cores-first", Self::CoresFirst),
        ("threads-adjacent", Self::ThreadsAdjacent),
        ("cores-alternate", Self::CoresAlternate),
    ];
}

/// A regular machine; every factor is at least 1 and their product at most [`MAX_CPUS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// NUMA nodes.
    pub(crate) nodes: usize,
    /// Last-level caches of a node.
    pub(crate) llcs: usize,
    /// Cores of an LLC.
    pub(crate) cores: usize,
    /// Threads of a core.
    pub(crate) threads: usize,
}

const FORM: &str =
    "expected NODESn LLCSl CORESc THREADSt without blanks, like 2n4l8c2t; n, l and t may be left out";

impl Shape {
    /// Reads `2n4l8c2t`: nodes, LLCs a node, cores an LLC, threads a core, in this order.
    /// A part that is left out counts 1; `c` is required.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut shape = Self { nodes: 1, llcs: 1, cores: 0, threads: 1 };
        let mut rest = text;
        for letter in ['n', 'l', 'c', 't'] {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || !rest[digits..].starts_with(letter) {
                continue;
            }
            let number = &rest[..digits];
            rest = &rest[digits + 1..];
            let count = number.parse().ok().filter(|count| (1..=MAX_CPUS).contains(count));
            let count = count
                .ok_or_else(|| format!("`{number}{letter}` is out of range, allowed are 1 to {MAX_CPUS}"))?;
            match letter {
                'n' => shape.nodes = count,
                'l' => shape.llcs = count,
                'c' => shape.cores = count,
                _ => shape.threads = count,
            }
        }
        if !rest.is_empty() {
            return Err(format!("`{rest}` is not understood: {FORM}"));
        }
        if shape.cores == 0 {
            return Err(format!("the number of cores is missing: {FORM}"));
        }
        match shape.cpus() {
            cpus if cpus > MAX_CPUS => Err(format!("{cpus} CPUs are too many, the limit is {MAX_CPUS}")),
            _ => Ok(shape),
        }
    }

    /// Number of CPUs. No factor exceeds [`MAX_CPUS`], so the product fits.
    pub(crate) fn cpus(&self) -> usize {
        self.nodes * self.llcs * self.cores * self.threads
    }

    /// Where each CPU sits, in CPU order. `packages` must divide the number of LLCs;
    /// `cluster` is the number of cores that share a mid-level cache, a divisor of the cores.
    pub(crate) fn places(&self, packages: usize, cluster: Option<usize>, numbering: Numbering) -> Vec<Place> {
        let cores = self.nodes * self.llcs * self.cores;
        let place = |cpu| {
            let core = match numbering {
                Numbering::CoresFirst => cpu % cores,
                Numbering::ThreadsAdjacent => cpu / self.threads,
                Numbering::CoresAlternate => cpu / (2 * self.threads) * 2 + cpu % 2,
            };
            let llc = core / self.cores;
            Place {
                core,
                cluster: cluster.map(|size| core / size),
                llc,
                package: llc * packages / (self.nodes * self.llcs),
                node: llc / self.llcs,
            }
        };
        (0..self.cpus()).map(place).collect()
    }
}
