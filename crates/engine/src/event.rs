//! What changes in the middle of a run, as it is written: `1.5s offline 2-3`.

use std::fmt;
use std::str::FromStr;

use coreward_machine::CpuSet;

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// CPUs go offline: `echo 0 > /sys/devices/system/cpu/cpuN/online`.
    Offline(CpuSet),
    /// CPUs come back.
    Online(CpuSet),
    /// The CPUs are from now on those of the workload's cgroup (`cpuset.cpus`).
    Cpus(CpuSet),
    /// The weight of a task group (`cpu.weight`), 1 to 10000; 100 is that of a nice-0 task.
    Weight {
        /// Its name, like `/a`.
        group: String,
        /// The weight.
        weight: u32,
    },
    /// The bandwidth of a task group (`cpu.max`).
    Max {
        /// Its name; `/` is the whole workload.
        group: String,
        /// CPU time in each period, in ns; None without a limit.
        quota_ns: Option<u64>,
        /// The period, in ns.
        period_ns: u64,
    },
}

/// A change at a time. Reads and prints as `1.5s offline 2-3`, `0s weight /a 300`, `1s max /a 20ms/100ms` or
/// `2s max / max`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time since the start of the run, in ns.
    pub at_ns: u64,
    /// What changes.
    pub action: Action,
}

/// The latest time of a change, in s.
const MAX_S: f64 = 1e6;
/// The period of `cpu.max` if none is named, in ns (default_cfs_period()).
const PERIOD_NS: u64 = 100_000_000;
/// The shortest quota and period, and the longest period, in ns (min_cfs_quota_period, max_cfs_quota_period).
const MIN_PERIOD_NS: u64 = 1_000_000;
const MAX_PERIOD_NS: u64 = 1_000_000_000;
/// The largest `cpu.weight` (CGROUP_WEIGHT_MAX).
const MAX_WEIGHT: u32 = 10_000;

impl Change {
    /// The CPUs that it names.
    pub(crate) fn cpus(&self) -> Option<&CpuSet> {
        match &self.action {
            Action::Offline(cpus) | Action::Online(cpus) | Action::Cpus(cpus) => Some(cpus),
            Action::Weight { .. } | Action::Max { .. } => None,
        }
    }

    /// Is it about a task group?
    pub(crate) fn is_of_a_group(&self) -> bool {
        matches!(self.action, Action::Weight { .. } | Action::Max { .. })
    }
}

const FORM: &str = "allowed is TIME offline|online|cpus CPUS, as in `1.5s offline 2-3`, TIME weight GROUP WEIGHT or \
                    TIME max GROUP QUOTA/PERIOD|max";

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<_> = text.split_whitespace().collect();
        let [time, kind, rest @ ..] = &words[..] else {
            return Err(format!("`{text}` is not a time and a change, {FORM}"));
        };
        let at_ns = time_ns(time).ok_or_else(|| {
            format!("`{time}` is no time, allowed are 0s to {MAX_S}s, also with ms or us instead of s")
        })?;
        let action = match (*kind, rest) {
            ("offline", [cpus]) => Action::Offline(some_cpus(text, cpus)?),
            ("online", [cpus]) => Action::Online(some_cpus(text, cpus)?),
            ("cpus", [cpus]) => Action::Cpus(some_cpus(text, cpus)?),
            ("weight", [group, weight]) => {
                Action::Weight { group: name(group)?, weight: parse_weight(weight)? }
            }
            ("max", [group, max]) => {
                let (quota_ns, period_ns) = parse_max(max)?;
                Action::Max { group: name(group)?, quota_ns, period_ns }
            }
            ("offline" | "online" | "cpus" | "weight" | "max", _) => {
                return Err(format!("`{text}` has {} words, {FORM}", words.len()));
            }
            _ => return Err(format!("`{kind}` is not known, {FORM}")),
        };
        Ok(Change { at_ns, action })
    }
}

fn some_cpus(text: &str, cpus: &str) -> Result<CpuSet, String> {
    let cpus = CpuSet::parse_list(cpus)?;
    if cpus.is_empty() { Err(format!("`{text}` names no CPU, {FORM}")) } else { Ok(cpus) }
}

fn name(group: &str) -> Result<String, String> {
    if group.starts_with('/') {
        Ok(group.to_owned())
    } else {
        Err(format!("`{group}` is no task group, allowed are / and names like /a"))
    }
}

fn parse_weight(text: &str) -> Result<u32, String> {
    let weight = text.parse().ok().filter(|weight| (1..=MAX_WEIGHT).contains(weight));
    weight.ok_or_else(|| format!("`{text}` is no weight, allowed are 1 to {MAX_WEIGHT}"))
}

fn parse_max(text: &str) -> Result<(Option<u64>, u64), String> {
    let (quota, period) = text.split_once('/').unwrap_or((text, ""));
    let period_ns = if period.is_empty() { Some(PERIOD_NS) } else { time_ns(period) };
    let period_ns = period_ns.filter(|ns| (MIN_PERIOD_NS..=MAX_PERIOD_NS).contains(ns));
    let period_ns = period_ns.ok_or_else(|| format!("`{period}` is no period, allowed are 1ms to 1s"))?;
    if quota == "max" {
        return Ok((None, period_ns));
    }
    let quota_ns = time_ns(quota).filter(|ns| *ns >= MIN_PERIOD_NS);
    let quota_ns =
        quota_ns.ok_or_else(|| format!("`{quota}` is no quota, allowed are 1ms to {MAX_S}s, and max"))?;
    Ok((Some(quota_ns), period_ns))
}

fn time_ns(text: &str) -> Option<u64> {
    let (number, unit) = [("us", 1e3), ("ms", 1e6), ("s", 1e9)]
        .into_iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))?;
    let ns = number.parse::<f64>().ok()? * unit;
    (0.0..=MAX_S * 1e9).contains(&ns).then_some(ns.round() as u64)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |ns: u64| ns as f64 / 1e9;
        write!(f, "{}s ", s(self.at_ns))?;
        match &self.action {
            Action::Offline(cpus) => write!(f, "offline {cpus}"),
            Action::Online(cpus) => write!(f, "online {cpus}"),
            Action::Cpus(cpus) => write!(f, "cpus {cpus}"),
            Action::Weight { group, weight } => write!(f, "weight {group} {weight}"),
            Action::Max { group, quota_ns: None, .. } => write!(f, "max {group} max"),
            Action::Max { group, quota_ns: Some(quota), period_ns } => {
                write!(f, "max {group} {}s/{}s", s(*quota), s(*period_ns))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_read_as_they_print() {
        for (text, printed) in [
            ("1.5s offline 2-3", "1.5s offline 2-3"),
            ("250ms online 0,2", "0.25s online 0,2"),
            (" 10us  cpus 1", "0.00001s cpus 1"),
            ("0s offline 1", "0s offline 1"),
            ("0s weight /a 300", "0s weight /a 300"),
            ("1s max /a 20ms", "1s max /a 0.02s/0.1s"),
            ("1s max / 250ms/50ms", "1s max / 0.25s/0.05s"),
            ("2s max /a max", "2s max /a max"),
        ] {
            let change: Change = text.parse().unwrap();
            assert_eq!(change.to_string(), printed);
            assert_eq!(printed.parse(), Ok(change));
        }
    }

    #[test]
    fn what_is_no_change_is_refused_with_what_is_allowed() {
        for (text, what) in [
            ("", "`` is not a time and a change, allowed is TIME"),
            ("1s offline", "has 2 words, allowed is TIME"),
            ("1s offline 1 2", "has 4 words"),
            ("1s weight /a", "has 3 words"),
            ("1s weight a 100", "`a` is no task group, allowed are / and names like /a"),
            ("1s weight /a 0", "`0` is no weight, allowed are 1 to 10000"),
            ("1s max /a 20", "`20` is no quota, allowed are 1ms to 1000000s, and max"),
            ("1s max /a 20ms/2s", "`2s` is no period, allowed are 1ms to 1s"),
            ("1 offline 1", "`1` is no time, allowed are 0s to 1000000s"),
            ("-1s offline 1", "is no time"),
            ("nans offline 1", "is no time"),
            ("2000001s offline 1", "is no time"),
            ("1s remove 1", "`remove` is not known, allowed is TIME offline|online|cpus CPUS"),
            ("1s offline x", "x"),
            ("1s offline 99999", "99999"),
        ] {
            let refused = text.parse::<Change>().expect_err(text);
            assert!(refused.contains(what), "{text}: {refused}");
        }
    }
}
