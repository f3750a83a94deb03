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

    /// The same for a user.
    ///
    /// # Errors
    /// There is none; the message lists all.
    pub fn named(name: &str) -> Result<Profile, String> {
        Self::by_name(name)
            .ok_or_else(|| format!("unknown profile `{name}`, allowed are {}", Self::ALL.join(", ")))
    }

    /// The name, one of [`Profile::ALL`].
    pub fn name(self) -> &'static str {
        Self::ALL[self.index]
    }

    /// The kernel version in its name, (6, 12) for `linux-6.12`.
    pub fn version(self) -> (u32, u32) {
        let numbers = self.name().strip_prefix("linux-").and_then(|v| v.split_once('.'));
        let parse = |(major, minor): (&str, &str)| Some((major.parse().ok()?, minor.parse().ok()?));
        numbers.and_then(parse).expect("the profiles are named after kernels")
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

/// What a name that is written to `sched/features` means: the bit of a feature, and whether it is
/// to be on, which `NO_` before the name denies.
///
/// # Errors
/// There is no such feature; the message lists all.
pub fn feature_switch(name: &str) -> Result<(u64, bool), String> {
    let (wanted, on) = match name.strip_prefix("NO_") {
        Some(wanted) => (wanted, false),
        None => (name, true),
    };
    match FEATURES.iter().position(|f| f.name == wanted) {
        Some(index) => Ok((1 << index, on)),
        None => {
            let names: Vec<_> = FEATURES.iter().map(|f| f.name).collect();
            Err(format!(
                "unknown feature `{wanted}`, allowed are {}, each also with NO_ before it",
                names.join(", ")
            ))
        }
    }
}

/// The index in [`TUNABLES`] of the tunable of that name, which may be `value`.
///
/// # Errors
/// There is no such tunable, or the value is out of its range; the message says what is allowed.
pub fn tunable_index(name: &str, value: i64) -> Result<usize, String> {
    let Some(index) = TUNABLES.iter().position(|t| t.name == name) else {
        let names: Vec<_> = TUNABLES.iter().map(|t| t.name).collect();
        return Err(format!("unknown tunable `{name}`, allowed are {}", names.join(", ")));
    };
    let tunable = &TUNABLES[index];
    if !(tunable.min..=tunable.max).contains(&value) {
        return Err(format!(
            "{name} is {value}, allowed are {} to {} ({})",
            tunable.min, tunable.max, tunable.unit
        ));
    }
    Ok(index)
}
