//! Differences between kernel versions, and the `relax_domain_level` setting.

use serde::Serialize;
use thiserror::Error;

/// The kernel whose topology levels, names and flags are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KernelStyle {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
    no_sched_cluster: bool,
}

impl Default for KernelStyle {
    /// Linux 6.12.
    fn default() -> Self {
        Self::new(6, 12)
    }
}

impl KernelStyle {
    /// The style of a kernel version.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor, no_sched_cluster: false }
    }

    /// The same kernel, built without `CONFIG_SCHED_CLUSTER`, as Debian's 6.12 for arm64 is.
    pub const fn without_sched_cluster(self) -> Self {
        Self { no_sched_cluster: true, ..self }
    }

    fn since(self, major: u32, minor: u32) -> bool {
        self >= Self::new(major, minor)
    }

    /// Whether the table of levels has one for clusters: since 5.16, if it is built so.
    pub(super) fn has_sched_cluster(self) -> bool {
        self.since(5, 16) && !self.no_sched_cluster
    }

    /// Whether there is a NODE level below the levels by distance: commit 051f3ca02e46 of
    /// September 2017, which 4.14 has not.
    pub(super) fn has_node_level(self) -> bool {
        self.since(4, 15)
    }

    /// `imbalance_pct` above the last-level cache: 117 as below since 5.10 (linux-kernel
    /// 20200914100340.17608-3), 125 before (`sd_init` of 4.14 and 4.19).
    pub(super) fn imbalance_pct(self) -> u32 {
        if self.since(5, 10) { 117 } else { 125 }
    }

    /// How often a busy CPU balances less than an idle one: `busy_factor` is 16 since 5.10
    /// (linux-kernel 20200914100340.17608-5), 32 before.
    pub(super) fn busy_factor(self) -> u32 {
        if self.since(5, 10) { 16 } else { 32 }
    }

    /// Whether tasks are spread over last-level caches as over cores and packages
    /// (`SD_PREFER_SIBLING` on MC): `sd_init` of 4.19 says so, that of 4.14 does not.
    pub(super) fn mc_prefers_siblings(self) -> bool {
        self.since(4, 19)
    }

    /// Whether x86 leaves the SMT level out of its table on a machine without SMT, so that the
    /// levels above have lower numbers: seen in 7.3, not in 6.12.
    pub(super) fn drops_unused_smt(self) -> bool {
        self.since(7, 0)
    }

    /// Whether `SD_OVERLAP` exists: seen in 6.12; in 7.3 `SD_NUMA` means it too.
    pub(super) fn has_overlap(self) -> bool {
        !self.since(7, 0)
    }

    /// Whether `SD_PREFER_SIBLING` is cleared below a domain of different capacities: from 4.20
    /// (commit 9c63e84db29b, with misfit migration); seen in 6.12, not in 7.3.
    pub(super) fn keeps_tasks_below_asymmetry(self) -> bool {
        self.since(4, 20) && !self.since(7, 0)
    }

    /// Whether the lowest domain that has CPUs of all capacities, and those below it, have
    /// `SD_BALANCE_WAKE`: from 4.9 (commit 9ee1cda5ee25) to 5.6 (removed by seed 004's series).
    pub(super) fn balances_wakeups_of_asymmetry(self) -> bool {
        self.since(4, 9) && !self.since(5, 7)
    }

    /// Name of the package level: `PKG` since 6.7, `DIE` before.
    pub(super) fn package_name(self) -> &'static str {
        if self.since(6, 7) { "PKG" } else { "DIE" }
    }

    /// Whether `SD_SHARE_LLC` has its new name: since 6.10.
    pub(super) fn has_share_llc(self) -> bool {
        self.since(6, 10)
    }

    /// Whether debugfs shows the level of a domain: since 6.10 (seed 002's second patch).
    pub(super) fn shows_level(self) -> bool {
        self.since(6, 10)
    }

    /// What this kernel makes of `relax_domain_level`: seed 002's patch is in 6.10.
    pub fn relax_semantics(self) -> RelaxSemantics {
        if self.since(6, 10) { RelaxSemantics::After } else { RelaxSemantics::Before }
    }
}

/// A `relax_domain_level` that requests nothing.
pub(super) const NO_REQUEST: i32 = -1;

/// What a `relax_domain_level` request means, before and after seed 002's patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RelaxSemantics {
    /// A domain keeps `SD_BALANCE_NEWIDLE` if its level is at most the request, so that 0 acts
    /// as 1. The top level and beyond cannot be requested.
    Before,
    /// A domain keeps it if its level is below the request: 0 is no search, one more than the
    /// top level is everything.
    #[default]
    After,
}

/// A `relax_domain_level` that the kernel refuses (`Invalid argument`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "relax_domain_level is {request}, allowed are -1 (no request) to {max} on this machine, whose top level is {level_max}"
)]
pub struct RelaxError {
    /// What was requested.
    pub request: i32,
    /// The largest request that is allowed; -1 if there is none but no request.
    pub max: i32,
    /// Level of the machine's top domain.
    pub level_max: u32,
}

impl RelaxSemantics {
    /// Checks a request as writing `cpuset.sched_relax_domain_level` does.
    pub(super) fn check(self, request: i32, level_max: u32) -> Result<(), RelaxError> {
        let max = match self {
            Self::Before => level_max as i32 - 1,
            Self::After => level_max as i32 + 1,
        };
        match (NO_REQUEST..=max).contains(&request) || request == NO_REQUEST {
            true => Ok(()),
            false => Err(RelaxError { request, max, level_max }),
        }
    }

    /// Whether a domain of this level keeps newidle balance.
    pub(super) fn keeps(self, request: i32, level: u32) -> bool {
        match self {
            _ if request < 0 => true,
            Self::Before => level as i32 <= request,
            Self::After => (level as i32) < request,
        }
    }
}
