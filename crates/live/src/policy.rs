//! The policy's settings, and the state of this machine with which the BPF programs start.

use std::fmt;
use std::mem::size_of;

use anyhow::Result;
use coreward_live_args::Policy;
use coreward_policy::{Changes, Code, Feature, PolicySettings, Profile, Sys, System};
use coreward_state::{Options, domain_options, policy_system};

use crate::machine::LiveMachine;

/// The user asked for something impossible.
#[derive(Debug)]
pub(crate) struct WrongArgument(pub(crate) String);

impl fmt::Display for WrongArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongArgument {}

/// Features and tunables that act only in the simulator: its workloads and its CFS queue read them,
/// or sched_ext does not allow what they change.
const WITHOUT_EFFECT: [&str; 18] = [
    "DELAY_ZERO",
    "EEVDF",
    "GENTLE_FAIR_SLEEPERS",
    "HRTICK",
    "LAST_BUDDY",
    "NEXT_BUDDY",
    "PIPE_TIMES",
    "PIPE_WAKE_WHILE_FULL",
    "PREEMPT_FULL",
    "PREEMPT_LAZY",
    "START_DEBIT",
    "TG_LOAD_AVG_RATELIMIT",
    "TTWU_QUEUE",
    "TTWU_QUEUE_IDLE",
    "TTWU_QUEUE_L2",
    "latency_ns",
    "min_granularity_ns",
    "wakeup_granularity_ns",
];

/// Does the feature, `NO_` before its name or not, or the tunable act on a running kernel?
pub(crate) fn has_effect(name: &str) -> bool {
    !WITHOUT_EFFECT.contains(&name.strip_prefix("NO_").unwrap_or(name))
}

/// The message for a setting that does not.
pub(crate) fn without_effect(name: &str) -> String {
    format!("{name} has no effect here, only in simulations (coreward run, compare)")
}

/// Refuses settings that act only in simulations.
///
/// # Errors
/// One of the names is without effect.
pub(crate) fn check_effects(options: &Options) -> Result<(), WrongArgument> {
    let set = options.set.iter().map(|set| ("--set", &set.name));
    let mut named = options.sched_feat.iter().map(|name| ("--sched-feat", name)).chain(set);
    match named.find(|(_, name)| !has_effect(name)) {
        Some((option, name)) => Err(WrongArgument(format!("{option}: {}", without_effect(name)))),
        None => Ok(()),
    }
}

/// The settings of the named policy, with the features that are also `on` by default, and its profile,
/// which determines the sched domains.
///
/// # Errors
/// A name is unknown or without effect, or a value out of its range.
pub(crate) fn settings(named: &Policy, on: &[Feature]) -> Result<(PolicySettings, Profile), WrongArgument> {
    let profile = Profile::named(&named.profile).map_err(|e| WrongArgument(format!("--profile: {e}")))?;
    let mut ours = Changes::default();
    on.iter().for_each(|feature| ours.switch_feature(*feature, true));
    let changes = named.options.changes(Code::built_in()).map_err(WrongArgument)?;
    check_effects(&named.options)?;
    Ok((changes.apply(&ours.apply(&PolicySettings::new(profile))), profile))
}

/// The policy's state of the machine, on which nothing runs yet.
///
/// # Errors
/// The kernel refuses the `relax_domain_level`, or the policy has no room for the machine.
pub(crate) fn system(live: &LiveMachine, settings: &PolicySettings, profile: Profile) -> Result<System> {
    let options = domain_options(profile, settings);
    let topology = live.topology(&options).map_err(|error| WrongArgument(format!("{error:#}")))?;
    Ok(policy_system(&live.machine, &topology, settings, 0)?)
}

/// Copies the state to a BPF program.
///
/// # Panics
/// The program was compiled with another layout.
pub(crate) fn copy_system<T>(to: &mut T, from: &System) {
    assert_eq!(size_of::<T>(), size_of::<Sys>());
    // SAFETY: both are the same C structure, plain integers of the same size, one compiled for BPF
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const **from).cast::<u8>(),
            (&raw mut *to).cast::<u8>(),
            size_of::<T>(),
        )
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use coreward_policy::{FEATURES, TUNABLES};

    use super::has_effect;

    /// The text of C below a directory, but that of tests, of the queue, and of task groups, which no program in BPF carries.
    fn sources(dir: &Path) -> String {
        let paths = fs::read_dir(dir).expect("it is there").map(|file| file.expect("it can be read").path());
        let text = |path: PathBuf| {
            if path.is_dir() {
                let skipped = path.ends_with("tests") || path.ends_with("queue");
                return if skipped { String::new() } else { sources(&path) };
            }
            let code =
                path.extension().is_some_and(|e| e == "c" || e == "h") && !path.ends_with("task_group.h");
            if code { fs::read_to_string(path).expect("it is text") } else { String::new() }
        };
        paths.map(text).collect()
    }

    #[test]
    fn what_has_an_effect_is_read_by_the_policy_or_its_hosts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let of = |dirs: &[&str]| dirs.iter().map(|dir| sources(&root.join(dir))).collect::<String>();
        let placing = of(&["policy", "bpf"]);
        // not all of it is what this scheduler's queue does
        let queue = of(&["policy/queue"]);
        let found = |text: &str, name: &str| {
            text.match_indices(name).any(|(at, found)| {
                !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        };
        let features = FEATURES.iter().map(|f| (f.name, "CW_FEAT_"));
        for (name, prefix) in features.chain(TUNABLES.iter().map(|t| (t.name, "CW_TUNE_"))) {
            let full = format!("{prefix}{name}");
            // it acts through the flags of the domains, which user space fills in
            let read = found(&placing, &full) || name == "relax_domain_level";
            assert!(has_effect(name) || !read, "{name} has an effect");
            assert!(!has_effect(name) || read || found(&queue, &full), "{name} has none");
        }
    }
}
