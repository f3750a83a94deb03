//! Features, tunables, and the kernel versions that a set of them stands for.

include!(concat!(env!("OUT_DIR"), "/features.rs"));

/// One `FEATURE` line of `policy/features.def`.
#[derive(Clone, Copy, Debug)]
pub struct FeatureInfo {
    /// The name, as in the kernel's `sched/features` where it exists there.
    pub name: &'static str,
    /// Whether it is on in each of [`Profile::ALL`].
    pub profiles: [bool; Profile::ALL.len()],
    /// The seed whose system it switches, or "".
    pub seed: &'static str,
    /// One line of explanation.
    pub help: &'static str,
}

/// One `TUNABLE` line of `policy/features.def`.
#[derive(Clone, Copy, Debug)]
pub struct TunableInfo {
    /// The name that `--set` takes.
    pub name: &'static str,
    /// The value without `--set`.
    pub default: i64,
    /// The smallest value allowed.
    pub min: i64,
    /// The largest value allowed.
    pub max: i64,
    /// The unit.
    pub unit: &'static str,
    /// One line of explanation.
    pub help: &'static str,
}

/// A named set of features: the kernel that a baseline stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    index: usize,
}

impl Profile {
    /// The names, oldest kernel first.
    pub const ALL: [&'static str; 6] =
        ["linux-4.8", "linux-5.5", "linux-6.5", "linux-6.8", "linux-6.12", "linux-7.3"];

    /// The profile that is meant when none is named.
    pub const DEFAULT: Profile = Profile { index: 4 };

    /// The profile of that name, if there is one.
    pub fn by_name(name: &str) -> Option<Profile> {
        Self::ALL.iter().position(|n| *n == name).map(|index| Profile { index })
    }

    /// The name, one of [`Profile::ALL`].
    pub fn name(self) -> &'static str {
        Self::ALL[self.index]
    }

    /// The feature bits that are on in this profile; bit i is the i-th of [`FEATURES`].
    pub fn features(self) -> u64 {
        FEATURES.iter().enumerate().filter(|(_, f)| f.profiles[self.index]).map(|(i, _)| 1 << i).sum()
    }
}

/// The default of every tunable, in the order of [`TUNABLES`].
pub fn default_tunables() -> [i64; NR_TUNABLES] {
    std::array::from_fn(|i| TUNABLES[i].default)
}
