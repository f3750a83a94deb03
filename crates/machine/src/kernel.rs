//! The kernel that runs on a machine: its release, and how it preempts.

use std::fs::{self, File};
use std::io::Read;

use serde::{Deserialize, Serialize};

/// When the kernel takes a CPU from a task that runs in the kernel (`preempt=` on its command line).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// When the task leaves the kernel (`CONFIG_PREEMPT_NONE`).
    None,
    /// The same, and where the kernel asks for it (`CONFIG_PREEMPT_VOLUNTARY`).
    Voluntary,
    /// At once (`CONFIG_PREEMPT`).
    Full,
    /// For fair tasks when the task leaves the kernel, at the latest at a tick (`CONFIG_PREEMPT_LAZY`).
    Lazy,
    /// At once, almost everywhere (`CONFIG_PREEMPT_RT`).
    Rt,
}

/// Ticks a second that a kernel may have.
pub(crate) const HZ: std::ops::RangeInclusive<u32> = 24..=1200;

/// Larger configurations are not read; one of 2025 has 300 KiB.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

impl Preemption {
    pub(crate) const ALL: [(&'static str, Preemption); 5] = [
        ("none", Preemption::None),
        ("voluntary", Preemption::Voluntary),
        ("full", Preemption::Full),
        ("lazy", Preemption::Lazy),
        ("rt", Preemption::Rt),
    ];

    /// Its name in machine files, that of `preempt=` where the kernel has one.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    fn named(name: &str) -> Option<Preemption> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, model)| *model)
    }
}

/// The release of the running kernel (`uname -r`); `None` without /proc.
pub(crate) fn release() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_owned()).filter(|release| !release.is_empty())
}

/// Ticks a second of the running kernel: the coarse clocks advance at each tick.
pub(crate) fn hz() -> Option<u32> {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    rate(tick.tv_sec, tick.tv_nsec)
}

/// The rate of what comes every so many seconds and nanoseconds; `None` if Linux has no such rate (`CONFIG_HZ`).
fn rate(s: i64, ns: i64) -> Option<u32> {
    let tick_ns = s.checked_mul(1_000_000_000)?.checked_add(ns).filter(|ns| *ns > 0)?;
    let hz = (1_000_000_000 + tick_ns / 2) / tick_ns;
    u32::try_from(hz).ok().filter(|hz| HZ.contains(hz))
}

/// How the running kernel of that release preempts, if it can be known.
pub(crate) fn preemption(release: &str) -> Option<Preemption> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    chosen(&text("/sys/kernel/debug/sched/preempt"))
        .or_else(|| of_version(&text("/proc/sys/kernel/version")))
        .or_else(|| of_command_line(&text("/proc/cmdline")))
        .or_else(|| of_config(&config(release)?))
}

/// The scheduler's features in the running kernel; debugfs shows them to root alone, and not under lockdown.
pub(crate) fn features() -> Vec<String> {
    // the second is the place until 5.12
    let places = ["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];
    let text = places.iter().find_map(|place| fs::read_to_string(place).ok()).unwrap_or_default();
    words(&text).unwrap_or_default()
}

/// All bits of `sched_vcpu_pack`.
pub const VCPU_PACK_MAX: u8 = 15;

/// Which tasks the running kernel packs on busy CPUs: a parameter of some guests' kernels, which no other has.
pub(crate) fn vcpu_pack() -> Option<u8> {
    packed(&fs::read_to_string("/proc/cmdline").unwrap_or_default())
}

fn packed(command_line: &str) -> Option<u8> {
    let value = parameters(command_line).filter_map(|word| word.strip_prefix("sched_vcpu_pack=")).last()?;
    value.parse().ok().filter(|bits| (1..=VCPU_PACK_MAX).contains(bits))
}

/// Does an idle CPU of this machine halt, until an interrupt comes? So it does without a cpuidle driver, which sysfs would
/// show, on an x86 without MWAIT, as many guests are (select_idle_routine(), arch/x86/kernel/process.c).
pub(crate) fn halts() -> bool {
    lacks_mwait(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn lacks_mwait(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().all(|flag| flag != "monitor"))
}

/// What is for the kernel; after `--` it is for init.
fn parameters(command_line: &str) -> impl Iterator<Item = &str> {
    command_line.split_whitespace().take_while(|word| *word != "--")
}

/// The features of a list; `None` if it is none.
pub(crate) fn words(text: &str) -> Option<Vec<String>> {
    let is_feature = |word: &str| {
        word.len() <= 64 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
    words.iter().all(|word| is_feature(word)).then_some(words)
}

/// From debugfs, which encloses the model that is in use in parentheses: `none voluntary (full) lazy`.
fn chosen(text: &str) -> Option<Preemption> {
    let (_, rest) = text.split_once('(')?;
    Preemption::named(rest.split_once(')')?.0)
}

/// From `uname -v`; `PREEMPT_DYNAMIC` leaves it open.
fn of_version(text: &str) -> Option<Preemption> {
    let word = text.split_whitespace().find(|word| word.starts_with("PREEMPT"));
    match word {
        Some("PREEMPT_RT") => Some(Preemption::Rt),
        Some("PREEMPT_LAZY") => Some(Preemption::Lazy),
        Some("PREEMPT") => Some(Preemption::Full),
        // neither is named there, and they are the same for the scheduler
        None if !text.trim().is_empty() => Some(Preemption::None),
        _ => None,
    }
}

fn of_command_line(text: &str) -> Option<Preemption> {
    parameters(text).filter_map(|word| Preemption::named(word.strip_prefix("preempt=")?)).last()
}

/// What the kernel was built with.
fn config(release: &str) -> Option<String> {
    let mut text = String::new();
    if let Ok(file) = File::open(format!("/boot/config-{release}")) {
        file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).ok()?;
    } else {
        let packed = flate2::read::GzDecoder::new(File::open("/proc/config.gz").ok()?);
        packed.take(MAX_CONFIG_BYTES).read_to_string(&mut text).ok()?;
    }
    Some(text)
}

fn of_config(text: &str) -> Option<Preemption> {
    let is_set = |option: &str| text.lines().any(|line| line.strip_prefix(option) == Some("=y"));
    let options = [
        ("CONFIG_PREEMPT_RT", Preemption::Rt),
        ("CONFIG_PREEMPT_LAZY", Preemption::Lazy),
        ("CONFIG_PREEMPT", Preemption::Full),
        ("CONFIG_PREEMPT_VOLUNTARY", Preemption::Voluntary),
        ("CONFIG_PREEMPT_NONE", Preemption::None),
    ];
    options.into_iter().find(|(option, _)| is_set(option)).map(|(_, model)| model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_x86_without_mwait_halts() {
        assert!(lacks_mwait("processor\t: 0\nflags\t\t: fpu sse3 hypervisor\n"));
        assert!(!lacks_mwait("processor\t: 0\nflags\t\t: fpu monitor sse3\n"));
        for unknown in ["", "processor\t: 0\nFeatures\t: fp asimd\n"] {
            assert!(!lacks_mwait(unknown), "{unknown}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_coarse_clocks() {
        assert_eq!(rate(0, 4_000_000), Some(250));
        assert_eq!(rate(0, 3_333_333), Some(300));
        assert_eq!(rate(0, 1_000_000), Some(1000));
        assert_eq!(rate(0, 1), None, "a clock that does not tick");
        assert_eq!((rate(0, 0), rate(1, 0), rate(i64::MAX, 0)), (None, None, None));
    }

    #[test]
    fn the_model_is_known_wherever_the_kernel_tells_it() {
        assert_eq!(chosen("none voluntary (full) lazy\n"), Some(Preemption::Full));
        assert_eq!(chosen("full (lazy) \n"), Some(Preemption::Lazy));
        assert_eq!(chosen(""), None);
        let version = |text: &str| of_version(text);
        assert_eq!(version("#1 SMP PREEMPT_DYNAMIC Debian 6.18.44-1 (2026-05-01)"), None);
        assert_eq!(version("#1 SMP PREEMPT_RT Debian 6.12.107-1"), Some(Preemption::Rt));
        assert_eq!(version("#1 SMP PREEMPT Mon Jan 1"), Some(Preemption::Full));
        assert_eq!(version("#1 SMP Debian 5.10.226-1"), Some(Preemption::None));
        assert_eq!(version(""), None);
        assert_eq!(of_command_line("quiet preempt=none ro preempt=full"), Some(Preemption::Full));
        assert_eq!(of_command_line("quiet preempt=some -- preempt=none"), None);
        let built = "CONFIG_PREEMPT_BUILD=y\n# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_LAZY=y\n";
        assert_eq!(of_config(built), Some(Preemption::Lazy));
        assert_eq!(
            of_config("CONFIG_PREEMPT_VOLUNTARY_BUILD=y\nCONFIG_PREEMPT_NONE=y\n"),
            Some(Preemption::None)
        );
        assert_eq!(of_config(""), None);
    }

    #[test]
    fn packing_is_a_parameter_of_the_kernel() {
        assert_eq!(packed("quiet sched_vcpu_pack=15 panic=1"), Some(15));
        assert_eq!(packed("sched_vcpu_pack=15 sched_vcpu_pack=2"), Some(2));
        for text in ["quiet", "sched_vcpu_pack=0", "sched_vcpu_pack=16", "-- sched_vcpu_pack=15", ""] {
            assert_eq!(packed(text), None, "{text}");
        }
    }

    #[test]
    fn features_are_words() {
        assert_eq!(words("PLACE_LAG NO_TTWU_QUEUE\n").unwrap(), ["PLACE_LAG", "NO_TTWU_QUEUE"]);
        assert_eq!(words(""), Some(Vec::new()));
        assert_eq!(words("PLACE_LAG no"), None);
    }

    #[test]
    fn names_are_read_back() {
        for (name, model) in Preemption::ALL {
            assert_eq!((Preemption::named(name), model.name()), (Some(model), name));
        }
    }
}
