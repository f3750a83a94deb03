//! Features, tunables, and the kernel versions that a set of them represents.

use crate::code::Code;
use crate::generated::tables::{COMPARED, PROFILES};

/// One `FEATURE` line of `policy/features.def`.
#[derive(Clone, Copy, Debug)]
pub struct FeatureInfo {
    /// The name, as in the kernel's `sched/features` where it exists there.
    pub name: &'static str,
    /// The kernels that have it on: ranges of versions, such as `6.1 6.12..`.
    pub kernels: &'static str,
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

/// A named set of features: the kernel that a baseline represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    index: usize,
}

impl Profile {
    /// The names, oldest kernel first.
    pub const ALL: [&'static str; PROFILES.len()] = PROFILES;

    /// The profile that is meant when none is named.
    pub const DEFAULT: Profile = Profile { index: 8 };

    fn all() -> impl DoubleEndedIterator<Item = Profile> {
        (0..Self::ALL.len()).map(|index| Profile { index })
    }

    /// The profile of that name, which may also be the kernel's version alone (`6.12` for `linux-6.12`) or a release of
    /// it (`6.12.107+deb13-amd64`), if there is one.
    pub fn by_name(name: &str) -> Option<Profile> {
        let release = name.strip_prefix("linux-").unwrap_or(name);
        let is_meant = |profile: &Profile| {
            let (major, minor) = profile.version();
            let rest = release.strip_prefix(&format!("{major}.{minor}"));
            // 6.1 is not the version of 6.12
            let is_release = rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(['.', '-', '+']) && !rest.contains(' ')
            });
            is_release && profile.release() <= numbers(release)
        };
        Self::all().rev().find(is_meant)
    }

    /// The same for a user.
    ///
    /// # Errors
    /// There is none; the message lists all.
    pub fn named(name: &str) -> Result<Profile, String> {
        Self::by_name(name).ok_or_else(|| coreward_input::unknown("profile", name, Self::ALL))
    }

    /// The profile that represents a kernel (`6.12.107+deb13-amd64`), and whether it is of another version: then it is
    /// the nearest older one, or the oldest of all.
    pub fn of_kernel(release: &str) -> (Profile, bool) {
        let wanted = numbers(release);
        let older = Self::all().rev().find(|profile| profile.release() <= wanted);
        let nearest = older.unwrap_or(Profile { index: 0 });
        (nearest, nearest.version() != kernel_version(release))
    }

    /// The name, one of [`Profile::ALL`].
    pub fn name(self) -> &'static str {
        Self::ALL[self.index]
    }

    /// The kernel version in its name, (6, 12) for `linux-6.12`.
    pub fn version(self) -> (u32, u32) {
        kernel_version(self.name())
    }

    /// The release in its name: [6, 18, 44] for `linux-6.18.44`, [6, 18, 0] for `linux-6.18`.
    fn release(self) -> Release {
        numbers(self.name())
    }

    /// The kernel whose recorded placements, balances and queue steps this profile agrees with, `6.12.107`; `None` if it has not
    /// been compared with any.
    pub fn compared(self) -> Option<&'static str> {
        Some(COMPARED[self.index]).filter(|kernel| !kernel.is_empty())
    }

    /// The profile compared with a kernel that is nearest to this one, itself included: the newest one that is not
    /// newer, or else the oldest of all.
    pub fn nearest_compared(self) -> Profile {
        let compared = |index: &usize| !COMPARED[*index].is_empty();
        let older = (0..=self.index).rev().find(compared);
        Profile { index: older.or_else(|| (self.index..COMPARED.len()).find(compared)).unwrap_or(self.index) }
    }

    /// The feature bits of the built-in policy that are on in this profile; bit i is the i-th of
    /// [`crate::FEATURES`].
    pub fn features(self) -> u128 {
        Code::built_in().profile(self)
    }

    /// Is its kernel one of these ranges?
    pub(crate) fn has(self, kernels: &str) -> bool {
        ranges(kernels).any(|(first, last)| (first..=last).contains(&self.release()))
    }
}

/// The first two numbers of a kernel's release (`6.12.107+deb13-amd64`); zeros for what is none.
pub fn kernel_version(release: &str) -> (u32, u32) {
    let [major, minor, _] = numbers(release);
    (major, minor)
}

/// The first three numbers of a kernel's release.
type Release = [u32; 3];

/// The release in `6.12.107+deb13-amd64` or `linux-6.12`; zeros for what is none, and a number that is too large is the largest.
fn numbers(release: &str) -> Release {
    let release = release.strip_prefix("linux-").unwrap_or(release);
    let version = release.split(['-', '+']).next().unwrap_or_default();
    let number = |text: &str| if text.is_empty() { 0 } else { text.parse().unwrap_or(u32::MAX) };
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(number);
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// Is this `6.12` or `6.18.44`?
fn is_version(text: &str) -> bool {
    let numbers: Vec<_> = text.split('.').collect();
    (2..=3).contains(&numbers.len()) && numbers.iter().all(|number| number.parse::<u32>().is_ok())
}

/// Are these ranges that [`ranges`] reads?
pub(crate) fn is_list_of_kernels(text: &str) -> bool {
    text.split_whitespace().all(|range| {
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        [first, last].iter().all(|end| range.contains("..") && end.is_empty() || is_version(end))
    })
}

/// First and last release of each range in a line of `policy/features.def`.
fn ranges(kernels: &str) -> impl Iterator<Item = (Release, Release)> {
    kernels.split_whitespace().map(|range| {
        let (first, last) = range.split_once("..").unwrap_or((range, range));
        let end = |text: &str, open| if text.is_empty() { [open; 3] } else { numbers(text) };
        (end(first, 0), end(last, u32::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FEATURES;

    #[test]
    fn ranges_of_kernels_are_read() {
        for good in ["", "..", "6.1 6.12..", "..5.5", "6.18..6.18.44"] {
            assert!(is_list_of_kernels(good), "{good}");
        }
        for wrong in ["6", "6.x..", "linux-6.1", "6.1...6.5", "6.1.2.3"] {
            assert!(!is_list_of_kernels(wrong), "{wrong}");
        }
        let on = |kernels, version| {
            ranges(kernels).any(|(first, last)| (first..=last).contains(&numbers(version)))
        };
        assert!(on("..", "4.8") && on("..", "7.3"));
        assert!(on("..5.5", "5.5") && !on("..5.5", "5.10"));
        assert!(on("6.1 6.12..", "6.1") && !on("6.1 6.12..", "6.5") && on("6.1 6.12..", "6.18"));
        assert!(on("6.18", "6.18") && !on("6.18", "6.18.44") && on("6.18..6.18.44", "6.18.44"));
        assert!(!on("6.18.44..", "6.18") && on("6.18.44..", "7.3"));
        assert!(!on("", "6.12"));
    }

    #[test]
    fn a_profile_without_recordings_has_a_neighbour_with_some() {
        let nearest = |name| Profile::by_name(name).unwrap().nearest_compared().name();
        assert_eq!(nearest("linux-6.12"), "linux-6.12");
        assert_eq!(nearest("linux-6.8"), "linux-6.1");
        assert_eq!(nearest("linux-4.8"), "linux-5.10");
        assert_eq!((nearest("5.15"), nearest("6.6")), ("linux-5.10", "linux-6.1"));
        assert_eq!(Profile::DEFAULT.name(), "linux-6.12");
        assert_eq!(Profile::DEFAULT.compared(), Some("6.12.107"));
        assert_eq!(Profile::by_name("linux-6.5").unwrap().compared(), None);
    }

    #[test]
    fn a_kernel_has_its_profile_or_the_nearest_older_one() {
        let of = |release| {
            let (profile, nearest) = Profile::of_kernel(release);
            (profile.name(), nearest)
        };
        assert_eq!(of("6.12.107+deb13-amd64"), ("linux-6.12", false));
        assert_eq!(of("6.18-rc3"), ("linux-6.18", false));
        assert_eq!(of("6.18.15+deb13-amd64"), ("linux-6.18", false));
        assert_eq!(of("6.18.44"), ("linux-6.18.44", false));
        assert_eq!(of("6.18.60-fc"), ("linux-6.18.44", false));
        assert_eq!(of("7.0.13"), ("linux-6.18.44", true));
        assert_eq!(of("6.17.2"), ("linux-6.12", true));
        assert_eq!(of("5.15.0-91-generic"), ("linux-5.15", false));
        assert_eq!(of("6.6.87.2-microsoft-standard-WSL2"), ("linux-6.6", false));
        assert_eq!(of("99.0"), (*Profile::ALL.last().unwrap(), true));
        assert_eq!(of("99999999999999999999.1"), (*Profile::ALL.last().unwrap(), true));
        assert_eq!(of("2.6.32"), (Profile::ALL[0], true));
    }

    #[test]
    fn a_version_names_its_profile() {
        assert_eq!(Profile::named("6.12"), Profile::named("linux-6.12"));
        assert_eq!(Profile::named("6.12").unwrap().name(), "linux-6.12");
        for release in ["6.18.15", "6.18.43+deb13-amd64", "6.18-rc3", "6.18+", "linux-6.18.15", "6.18-45"] {
            assert_eq!(Profile::named(release).unwrap().name(), "linux-6.18", "{release}");
        }
        for release in ["6.18.44", "6.18.44+deb13-amd64", "linux-6.18.44", "6.18.60"] {
            assert_eq!(Profile::named(release).unwrap().name(), "linux-6.18.44", "{release}");
        }
        assert_eq!(Profile::named("6.1.2").unwrap().name(), "linux-6.1");
        for wrong in ["6.17.2", "6.121", "6.12.1 x", "linux-linux-6.12", "linux", "", "6", "v6.12", "6.12 "] {
            assert!(Profile::by_name(wrong).is_none(), "{wrong}");
        }
    }

    /// What 5.15.148 and 6.6.63 have in their sources, and their neighbours do not.
    #[test]
    fn long_term_kernels_differ_from_their_neighbours() {
        let differ = |from: &str, to: &str| -> (Vec<&str>, Vec<&str>) {
            let [from, to] = [from, to].map(|name| Profile::by_name(name).unwrap().features());
            let names = |bits: u128| {
                let on = FEATURES.iter().enumerate().filter(move |(i, _)| bits >> i & 1 == 1);
                on.map(|(_, f)| f.name).collect()
            };
            (names(to & !from), names(from & !to))
        };
        let (gained, lost) = differ("5.10", "5.15");
        let wanted = [
            "SIS_UTIL",
            "WA_IDLE_PREV",
            "SIS_ONE_SEARCH",
            "RECENT_USED_PREV",
            "LB_CAPACITY_GREATER",
            "LB_SKIP_EMPTY",
            "IMB_NUMA_QUARTER",
            "LB_ACTIVE_TASK",
        ];
        assert_eq!((gained, lost), (wanted.to_vec(), vec!["SIS_PROP"]));
        let (gained, lost) = differ("5.15", "6.1");
        let wanted =
            ["NI_RANDOM", "NEWIDLE_COST_DECAY", "IDLE_SLEEPERS", "IMB_NUMA_NR", "LB_REDUCED_CAPACITY"];
        assert_eq!((gained, lost), (wanted.to_vec(), vec!["NEWIDLE_MIN_IDLE", "IMB_NUMA_QUARTER"]));
        let (gained, lost) = differ("6.5", "6.6");
        let wanted = [
            "EEVDF",
            "RUN_TO_PARITY",
            "PLACE_LAG",
            "PLACE_DEADLINE_INITIAL",
            "NI_RANDOM",
            "LB_SMT_BALANCE",
            "LB_IDLE_CORE",
        ];
        let of_cfs = ["GENTLE_FAIR_SLEEPERS", "START_DEBIT", "LAST_BUDDY", "IDLE_SLEEPERS", "BASE_SLICE"];
        assert_eq!((gained, lost), (wanted.to_vec(), of_cfs.to_vec()));
        let (gained, lost) = differ("6.18", "6.18.44");
        assert_eq!((gained, lost), (vec!["DST_GROUP_ALLOWED", "WAKEUP_PICK", "LAG_MAX_SLICE"], vec![]));
        let (gained, lost) = differ("6.6", "6.8");
        assert_eq!((gained, lost), (vec!["TG_LOAD_AVG_RATELIMIT", "LB_UTIL_RELAX"], vec!["NI_RANDOM"]));
    }

    #[test]
    fn every_range_ends_at_profiles() {
        let known: Vec<_> = Profile::all().map(Profile::release).collect();
        assert!(known.is_sorted());
        for (first, last) in FEATURES.iter().flat_map(|f| ranges(f.kernels)) {
            assert!(first <= last && (first == [0; 3] || known.contains(&first)), "{first:?}");
            assert!(last == [u32::MAX; 3] || known.contains(&last), "{last:?}");
        }
    }
}
