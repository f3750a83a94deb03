//! Partitions: sets of CPUs with domains of their own, as exclusive cpusets create them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use crate::cpuset::CpuSet;
use crate::machine::Machine;

use super::RelaxError;
use super::style::NO_REQUEST;

/// CPUs that are balanced apart from all others: a cpuset with `sched_load_balance` below a
/// root without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Its `cpuset.sched_relax_domain_level`. `None` and -1 are no request: that of the
    /// machine counts.
    pub relax_domain_level: Option<i32>,
}

impl FromStr for Partition {
    type Err = String;

    /// Reads `CPUS` or `CPUS:LEVEL`, like `0-11,24-35:0`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (cpus, level) = match text.split_once(':') {
            Some((cpus, level)) => (cpus, Some(level)),
            None => (text, None),
        };
        let integer = |level: &str| {
            level
                .parse()
                .map_err(|_| format!("the level `{level}` is not an integer, allowed is CPUS[:LEVEL]"))
        };
        Ok(Partition { cpus: CpuSet::parse_list(cpus)?, relax_domain_level: level.map(integer).transpose()? })
    }
}

impl fmt::Display for Partition {
    /// The form that is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cpus)?;
        self.relax_domain_level.map_or(Ok(()), |level| write!(f, ":{level}"))
    }
}

/// Partitions that a machine cannot be divided into.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// A partition without a CPU.
    #[error("a partition has no CPU")]
    Empty,
    /// A CPU that there is not.
    #[error("a partition has CPU {cpu}, allowed are 0 to {last}")]
    NoSuchCpu {
        /// The CPU.
        cpu: usize,
        /// The machine's last CPU.
        last: usize,
    },
    /// A CPU of two partitions.
    #[error("CPU {0} is in two partitions, it may be in one only")]
    Overlap(usize),
    /// A level that the kernel refuses.
    #[error(transparent)]
    Relax(#[from] RelaxError),
}

/// The CPUs that domains are built of, and their request for a `relax_domain_level`.
pub(super) struct Part {
    pub(super) cpus: CpuSet,
    pub(super) request: Option<i32>,
}

/// Divides a machine; what is in no partition comes last.
pub(super) fn parts(machine: &Machine, partitions: &[Partition]) -> Result<Vec<Part>, PartitionError> {
    let all = machine.all_cpus();
    let mut rest = all;
    let mut parts = Vec::new();
    for Partition { cpus, relax_domain_level } in partitions {
        if cpus.is_empty() {
            return Err(PartitionError::Empty);
        }
        if let Some(cpu) = cpus.difference(&all).first() {
            return Err(PartitionError::NoSuchCpu { cpu, last: machine.nr_cpus() - 1 });
        }
        if let Some(cpu) = cpus.difference(&rest).first() {
            return Err(PartitionError::Overlap(cpu));
        }
        rest = rest.difference(cpus);
        let request = relax_domain_level.filter(|&level| level != NO_REQUEST);
        parts.push(Part { cpus: *cpus, request });
    }
    if !rest.is_empty() {
        parts.push(Part { cpus: rest, request: None });
    }
    Ok(parts)
}
