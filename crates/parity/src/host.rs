//! The host frame: the recorded machine and its kernel.

use coreward_policy::layout::MAX_TUNABLES;
use coreward_policy::{Changes, Code, Feature, PolicySettings, Profile, kernel_version};

use crate::error::Wrong;
use crate::format::MAX_CPUS;

/// The flags of sched domains by the names that all kernels use, lowest bit of `policy/types.h` first.
const SD_FLAGS: [&str; 15] = [
    "SD_BALANCE_NEWIDLE",
    "SD_BALANCE_EXEC",
    "SD_BALANCE_FORK",
    "SD_BALANCE_WAKE",
    "SD_WAKE_AFFINE",
    "SD_ASYM_CPUCAPACITY",
    "SD_ASYM_CPUCAPACITY_FULL",
    "SD_SHARE_CPUCAPACITY",
    "SD_CLUSTER",
    "SD_SHARE_LLC",
    "SD_SERIALIZE",
    "SD_ASYM_PACKING",
    "SD_PREFER_SIBLING",
    "SD_OVERLAP",
    "SD_NUMA",
];

/// Jiffies a second that a kernel can be built with.
const HZ: std::ops::RangeInclusive<u64> = 24..=10_000;

/// The machine and kernel that a file was recorded on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// `uname -r`.
    pub release: String,
    /// How many CPUs the kernel can have; all of them are in the file.
    pub nr_cpus: usize,
    /// Jiffies a second.
    pub hz: u64,
    /// Every line of the frame: name and value.
    pub lines: Vec<(String, String)>,
}

impl Host {
    /// Reads the text of a host frame: lines of a name, a tab and a value; zero bytes fill up the end.
    ///
    /// # Errors
    /// What is wrong or missing.
    pub fn parse(payload: &[u8]) -> Result<Host, String> {
        let end = payload.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        let text = std::str::from_utf8(&payload[..end]).map_err(|_| "the text is not UTF-8")?;
        let mut lines = Vec::new();
        for line in text.lines() {
            let (name, value) =
                line.split_once('\t').ok_or_else(|| format!("line `{line}` has no tab after its name"))?;
            lines.push((name.to_owned(), value.to_owned()));
        }
        let mut host = Host { release: String::new(), nr_cpus: 0, hz: 0, lines };
        host.release = host.required("release")?.to_owned();
        host.nr_cpus = host.number("cpus", 1..=MAX_CPUS as u64)? as usize;
        host.hz = host.number("hz", HZ)?;
        host.required("sd_flags")?;
        Ok(host)
    }

    /// The payload of its frame.
    pub fn encode(&self) -> Vec<u8> {
        let text: String = self.lines.iter().map(|(name, value)| format!("{name}\t{value}\n")).collect();
        let mut bytes = text.into_bytes();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    /// The value of a line, if there is one.
    pub fn line(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn required(&self, name: &str) -> Result<&str, Wrong> {
        self.line(name).ok_or_else(|| format!("the line `{name}` is missing"))
    }

    fn number(&self, name: &str, allowed: std::ops::RangeInclusive<u64>) -> Result<u64, Wrong> {
        let value = self.required(name)?;
        value.parse().ok().filter(|n| allowed.contains(n)).ok_or_else(|| {
            format!("{name} is `{value}`, allowed are {} to {}", allowed.start(), allowed.end())
        })
    }

    /// Domain flags of this kernel, whose numbers differ from kernel to kernel, as the policy numbers them. One of
    /// them was called otherwise until 6.9, and until 5.13 the domains with `SD_ASYM_CPUCAPACITY` were those that
    /// have `SD_ASYM_CPUCAPACITY_FULL` since.
    pub fn sd_flags(&self, kernel: u32) -> u32 {
        let names = || self.line("sd_flags").unwrap_or_default().split_whitespace().take(32);
        let bit_of = |name| SD_FLAGS.iter().position(|known| *known == name).map_or(0, |bit| 1 << bit);
        let full = names().any(|name| name == "SD_ASYM_CPUCAPACITY_FULL");
        let policy = |name| match name {
            "SD_SHARE_PKG_RESOURCES" => bit_of("SD_SHARE_LLC"),
            "SD_ASYM_CPUCAPACITY" if !full => bit_of(name) | bit_of("SD_ASYM_CPUCAPACITY_FULL"),
            _ => bit_of(name),
        };
        let set = names().enumerate().filter(|(bit, _)| kernel >> bit & 1 == 1);
        set.fold(0, |flags, (_, name)| flags | policy(name))
    }

    /// Nanoseconds of a jiffy.
    pub fn tick_ns(&self) -> u64 {
        1_000_000_000 / self.hz
    }

    /// The first two numbers of the kernel's version.
    pub fn version(&self) -> (u32, u32) {
        kernel_version(&self.release)
    }

    /// The profile that represents the kernel, and whether it is of another version: then it is the nearest
    /// older one, or the oldest of all.
    pub fn profile(&self) -> (Profile, bool) {
        Profile::of_kernel(&self.release)
    }

    /// The settings of the kernel, for a policy with this code: the features of `profile`, but as the kernel has set
    /// those that it has as switches; and the tunables, as far as the kernel shows its own.
    pub fn settings(&self, code: &'static Code, profile: Profile) -> PolicySettings {
        PolicySettings { tunables: self.tunables(code), ..self.switched(code, profile) }
    }

    fn switched(&self, code: &'static Code, profile: Profile) -> PolicySettings {
        let mut changes = Changes::default();
        for word in self.line("features").unwrap_or_default().split_whitespace() {
            // the kernel has features that the policy does not have
            let _ = changes.sched_feat(code, word);
        }
        // cache-aware balancing has a switch of its own, which is there only if it was built in
        if self.line("llc_enabled").is_none_or(|value| value == "0" || value == "N") {
            changes.switch_feature(Feature::SCHED_CACHE, false);
        }
        changes.apply(&PolicySettings::of(code, profile))
    }

    /// The factor of the queue's tunables in the kernel: 1 + log2(min(CPUs, 8)), unless it was changed.
    fn tunable_scale(&self) -> i64 {
        let cpus = self.nr_cpus.clamp(1, 8) as i64;
        match self.line("tunable_scaling") {
            Some("0") => 1,
            Some("2") => cpus,
            _ => 1 + i64::from(cpus.ilog2()),
        }
    }

    fn tunables(&self, code: &Code) -> [i64; MAX_TUNABLES] {
        let mut tunables = code.default_tunables();
        for (i, tunable) in code.tunables().iter().enumerate() {
            let shown: Option<i64> = self.line(tunable.name).and_then(|value| value.parse().ok());
            let value = shown.map(|value| match SCALED.contains(&tunable.name) {
                true => value / self.tunable_scale(),
                false => value,
            });
            if let Some(value) = value.filter(|v| (tunable.min..=tunable.max).contains(v)) {
                tunables[i] = value;
            }
        }
        tunables
    }
}

/// Tunables that the kernel shows scaled by its number of CPUs.
const SCALED: [&str; 4] = ["base_slice_ns", "latency_ns", "min_granularity_ns", "wakeup_granularity_ns"];

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_policy::Tunable;

    fn host(release: &str, more: &str) -> Host {
        let text =
            format!("release\t{release}\ncpus\t4\nhz\t250\nsd_flags\tSD_NUMA SD_X SD_SHARE_LLC\n{more}\0\0");
        Host::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_profile_is_the_nearest_that_is_not_newer() {
        let of = |release| {
            let (profile, other) = host(release, "").profile();
            (profile.name(), other)
        };
        assert_eq!(of("6.12.107+deb13-amd64"), ("linux-6.12", false));
        assert_eq!(of("7.3.4+deb13-amd64"), ("linux-7.3", false));
        assert_eq!(of("6.17.5"), ("linux-6.12", true));
        assert_eq!(of("5.10.0-32-amd64"), ("linux-5.10", false));
        assert_eq!(of("7.12.0"), ("linux-7.3", true));
        assert_eq!(of("3.10.0"), ("linux-4.8", true));
    }

    #[test]
    fn flags_are_known_by_name() {
        assert_eq!(host("6.12", "").sd_flags(0b111), 1 << 14 | 1 << 9);
        assert_eq!(host("6.12", "").sd_flags(0b1010), 0);
        let old = Host::parse(b"release\t6.1\ncpus\t4\nhz\t250\nsd_flags\tSD_SHARE_PKG_RESOURCES\n").unwrap();
        assert_eq!(old.sd_flags(1), 1 << 9);
        let asym = |names| {
            let text = format!("release\t6.1\ncpus\t4\nhz\t250\nsd_flags\t{names}\n");
            Host::parse(text.as_bytes()).unwrap().sd_flags(1)
        };
        assert_eq!(asym("SD_ASYM_CPUCAPACITY SD_ASYM_CPUCAPACITY_FULL"), 1 << 5);
        assert_eq!(asym("SD_ASYM_CPUCAPACITY SD_NUMA"), 1 << 5 | 1 << 6);
    }

    #[test]
    fn features_of_the_kernel_win_over_the_profile() {
        let profile = Profile::by_name("linux-6.12").unwrap();
        let plain = host("6.12", "").settings(Code::built_in(), profile).features;
        let changed = host("6.12", "features\tNO_WA_IDLE WA_WEIGHT NO_SUCH\n");
        let changed = changed.settings(Code::built_in(), profile).features;
        let bit = Feature::WA_IDLE as u32;
        assert_eq!(plain ^ changed, 1 << bit);
    }

    #[test]
    fn tunables_of_the_queue_are_shown_scaled() {
        let slice = |more| {
            let profile = Profile::by_name("linux-6.12").unwrap();
            host("6.12", more).settings(Code::built_in(), profile).tunable(Tunable::base_slice_ns)
        };
        assert_eq!(slice("base_slice_ns\t2100000\n"), 700_000);
        assert_eq!(slice("base_slice_ns\t2800000\ntunable_scaling\t2\n"), 700_000);
        assert_eq!(slice("base_slice_ns\t700000\ntunable_scaling\t0\n"), 700_000);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(Host::parse(b"release\tx\n").unwrap_err(), "the line `cpus` is missing");
        let wrong = Host::parse(b"release\tx\ncpus\t0\n").unwrap_err();
        assert_eq!(wrong, "cpus is `0`, allowed are 1 to 512");
        assert_eq!(Host::parse(b"release").unwrap_err(), "line `release` has no tab after its name");
    }
}
