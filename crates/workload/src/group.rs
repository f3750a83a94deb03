//! The task groups of a workload: weights and limits.

use std::ops::RangeInclusive;

/// `cpu.weight` of a group that has none of its own (CGROUP_WEIGHT_DFL).
pub const DEFAULT_WEIGHT: u32 = 100;

/// Values of `cpu.weight` (CGROUP_WEIGHT_MIN, CGROUP_WEIGHT_MAX).
const WEIGHTS: RangeInclusive<u32> = 1..=10_000;
/// Values of `cpu.max` in us (min_cfs_quota_period, max_cfs_quota_period). The largest quota is that of 4096 CPUs.
const QUOTAS_US: RangeInclusive<u64> = 1_000..=4_096_000_000;
const PERIODS_US: RangeInclusive<u64> = 1_000..=1_000_000;

/// A task group in the workload's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskGroup {
    /// Its name, like `/a`.
    pub name: String,
    /// `cpu.weight`, 1 to 10000.
    pub weight: u32,
    /// `cpu.max`: CPU time in each period, and the period, in ns; `None` without a limit.
    pub max: Option<(u64, u64)>,
}

impl TaskGroup {
    /// A group with the default weight and without a limit.
    pub fn new(name: &str) -> TaskGroup {
        TaskGroup { name: name.to_owned(), weight: DEFAULT_WEIGHT, max: None }
    }

    /// A group of a file; `max_us` is as in `cpu.max`, in us.
    ///
    /// # Errors
    /// The name does not begin with `/`, or a value is none that `cpu.weight` or `cpu.max` take.
    pub fn checked(name: String, weight: u64, max_us: Option<(u64, u64)>) -> Result<TaskGroup, String> {
        if !name.starts_with('/') || name == "/" {
            return Err(format!("group {name}: it is no name (allowed: a path that begins with /)"));
        }
        let Some(weight) = u32::try_from(weight).ok().filter(|weight| WEIGHTS.contains(weight)) else {
            return Err(format!("group {name}: weight is {weight} (allowed: 1 to 10000)"));
        };
        let wrong =
            |(quota, period): &(u64, u64)| !(QUOTAS_US.contains(quota) && PERIODS_US.contains(period));
        if let Some((quota, period)) = max_us.filter(wrong) {
            return Err(format!(
                "group {name}: max_us is [{quota}, {period}] (allowed: a quota of 1000 to {}, a period of 1000 to 1000000)",
                QUOTAS_US.end()
            ));
        }
        Ok(TaskGroup { name, weight, max: max_us.map(|(quota, period)| (quota * 1000, period * 1000)) })
    }
}
