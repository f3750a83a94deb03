//! A comparison that the command line describes, instead of a file.

use std::collections::HashSet;

use coreward_engine::Settings;
use coreward_input::did_you_mean;
use coreward_machine::Costs;
use coreward_policy::{Assignment, Profile};
use coreward_workload::Scale;

use super::{Case, Experiment, ExperimentError, Named, Side};
use crate::policy::Policy;
use crate::setup::{self, TIME_LIMIT_S};

/// The options of a comparison without a file.
pub(crate) struct AdHoc<'a> {
    pub(crate) workload: &'a str,
    pub(crate) machine: &'a str,
    pub(crate) profile: Option<&'a str>,
    pub(crate) seed: Option<u64>,
    /// What the baseline changes.
    pub(crate) baseline_with: Option<&'a str>,
    /// What each variant changes.
    pub(crate) with: &'a [String],
}

impl Experiment {
    /// The experiment that options describe.
    ///
    /// # Errors
    /// A name is unknown, a value out of its range, or two variants are the same.
    pub(crate) fn of_options(options: &AdHoc) -> Result<Experiment, ExperimentError> {
        let refused = |option: &str| {
            let option = option.to_owned();
            move |what: String| ExperimentError(format!("{option}: {what}"))
        };
        let setup::Default { mut policy, mut notes } = setup::policy(options.profile, options.machine)
            .map_err(|error| ExperimentError(error.to_string()))?;
        let mut label = policy.profile.name().to_owned();
        if let Some(changes) = options.baseline_with {
            policy = changed(&policy, changes).map_err(refused("--baseline-with"))?;
            label = format!("{},{changes}", policy.profile.name());
        }
        notes.extend(options.profile.and_then(|_| setup::left_out(&policy, options.machine)));
        let seed = options.seed.unwrap_or(super::parse::DEFAULT_SEED);
        let side = |label: &str, policy: Policy| Side { label: label.to_owned(), policy, seed };
        let baseline = side(&label, policy);
        let mut variants: Vec<Side> = Vec::new();
        for changes in options.with {
            if variants.iter().chain([&baseline]).any(|side| side.label == *changes) {
                return Err(refused("--with")(format!("`{changes}` is a side already")));
            }
            if changes.trim().is_empty() {
                return Err(refused("--with")("it is empty".into()));
            }
            let (own_seed, rest) = seed_among(changes).map_err(refused("--with"))?;
            let policy = match rest.is_empty() {
                true => baseline.policy.clone(),
                false => changed(&baseline.policy, &rest).map_err(refused("--with"))?,
            };
            let variant = Side { seed: own_seed.unwrap_or(seed), ..side(changes, policy) };
            if is_same(&variant, &baseline) {
                notes.push(format!("--with {changes} changes nothing: {} is so already", baseline.label));
            }
            variants.push(variant);
        }
        let mut origin = vec![options.workload.to_owned(), "--machine".into(), options.machine.to_owned()];
        origin.extend(["--profile".into(), baseline.policy.profile.name().to_owned()]);
        // the profile alone would leave out how the machine's kernel preempts
        let changes = baseline.policy.deviations().join(",");
        origin.extend(
            Some(changes).filter(|c| !c.is_empty()).into_iter().flat_map(|c| ["--baseline-with".into(), c]),
        );
        origin.extend(options.with.iter().flat_map(|changes| ["--with".into(), changes.clone()]));
        origin.extend(["--seed".into(), seed.to_string()]);
        let named = |text: &str, place: &str| Named { text: text.to_owned(), place: place.to_owned() };
        Ok(Experiment {
            name: options.workload.to_owned(),
            origin,
            title: None,
            source: None,
            description: None,
            family: None,
            machine: named(options.machine, "--machine"),
            task_group_depth: Settings::LOGIN_SESSION_DEPTH,
            time_limit_s: TIME_LIMIT_S,
            skip_steady_pct: None,
            points: None,
            points_scale: Scale::FULL,
            events: Vec::new(),
            headline: Vec::new(),
            baseline,
            variants,
            cases: vec![Case {
                label: None,
                workload: named(options.workload, "the workload"),
                runs: super::parse::DEFAULT_RUNS,
                ablated: false,
            }],
            ablations: Vec::new(),
            published: Vec::new(),
            notes,
        })
    }
}

fn is_same(variant: &Side, baseline: &Side) -> bool {
    let of = |side: &Side| (side.policy.profile.name(), side.policy.deviations(), side.seed);
    of(variant) == of(baseline)
}

/// The seed that a variant begins with, if `seed=S` is among its changes, and the others.
fn seed_among(changes: &str) -> Result<(Option<u64>, String), String> {
    let is_seed = |change: &&str| change.starts_with("seed=");
    let (seeds, others): (Vec<&str>, Vec<&str>) = changes.split(',').map(str::trim).partition(is_seed);
    let number = |change: &str| {
        let number = change.split_once('=').and_then(|(_, number)| number.parse().ok());
        number.ok_or_else(|| format!("`{change}`: allowed are 0 to {}", u64::MAX))
    };
    match seeds[..] {
        [] => Ok((None, changes.to_owned())),
        [one] => Ok((Some(number(one)?), others.join(","))),
        [_, second, ..] => Err(format!("`{second}`: a variant has one seed")),
    }
}

/// A policy with changes like `NO_TTWU_QUEUE,base_slice_ns=2ms`.
///
/// # Errors
/// A name is unknown, or a value out of its range.
pub(crate) fn changed(policy: &Policy, changes: &str) -> Result<Policy, String> {
    let mut policy = policy.clone();
    let mut changed = HashSet::new();
    for change in changes.split(',').map(str::trim) {
        let code = policy.code;
        if !changed.insert(subject(change)) {
            return Err(format!("`{change}`: {} is changed twice", subject(change)));
        }
        if let Some(directory) = change.strip_prefix("policy=") {
            policy.set_directory(directory.as_ref())?;
        } else if change.contains('=') {
            let name = change.split('=').next().unwrap_or_default().trim();
            let is_tunable = code.tunables().iter().any(|tunable| tunable.name == name);
            if code.features().iter().any(|feature| feature.name == name) {
                return Err(format!("`{change}`: {name} is a feature, allowed are {name} and NO_{name}"));
            }
            if !is_tunable && Costs::field(name).is_none() {
                let tunables = code.tunables().iter().map(|tunable| tunable.name);
                let costs = Costs::FIELDS.iter().map(|field| field.name);
                return Err(format!(
                    "unknown tunable or cost `{name}`, {}`coreward features` lists all tunables, `{}` all costs",
                    did_you_mean(name, tunables.chain(costs)),
                    Costs::LISTED
                ));
            }
            let Assignment { name, value } = change.parse().map_err(|what| format!("`{change}`: {what}"))?;
            match is_tunable {
                true => policy.changes.set(code, &name, value)?,
                false => policy.cost(&name, value)?,
            }
        } else if is_profile(change) {
            policy.profile = Profile::named(change)?;
        } else {
            policy.changes.sched_feat(code, change)?;
        }
    }
    Ok(policy)
}

/// What a change is about: a profile, a tunable, a cost or a feature.
fn subject(change: &str) -> &str {
    match change.split_once('=') {
        Some((name, _)) => name.trim(),
        None if is_profile(change) => "the profile",
        None => change.strip_prefix("NO_").unwrap_or(change),
    }
}

/// Does it look like a profile, `linux-6.12` or `6.12`?
fn is_profile(change: &str) -> bool {
    change.starts_with("linux-") || change.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(with: &[&str]) -> Result<Experiment, String> {
        let with: Vec<String> = with.iter().map(|&changes| changes.to_owned()).collect();
        let options = AdHoc {
            workload: "hackbench",
            machine: "2c",
            profile: Some("linux-6.5"),
            seed: None,
            baseline_with: None,
            with: &with,
        };
        Experiment::of_options(&options).map_err(|error| error.to_string())
    }

    #[test]
    fn a_variant_has_all_kinds_of_changes() {
        let found =
            experiment(&["WAKEUP_BIAS_PREV, base_slice_ns=2ms,tick_ns=0", "linux-7.3,NO_SIS_UTIL"]).unwrap();
        let [first, second] = &found.variants[..] else { panic!("two variants") };
        assert_eq!(first.policy.deviations(), ["WAKEUP_BIAS_PREV", "base_slice_ns=2000000", "tick_ns=0"]);
        assert_eq!((first.policy.profile.name(), found.baseline.label.as_str()), ("linux-6.5", "linux-6.5"));
        assert_eq!(
            (second.policy.profile.name(), second.policy.deviations()),
            ("linux-7.3", vec!["NO_SIS_UTIL".into()])
        );
    }

    /// The control of a comparison: nothing is changed but chance.
    #[test]
    fn a_variant_may_have_other_seeds() {
        let found = experiment(&["seed=1001", "WAKEUP_BIAS_PREV, seed=7", "NO_SIS_UTIL"]).unwrap();
        let seeds: Vec<_> = found.variants.iter().map(|side| side.seed).collect();
        assert_eq!(seeds, [1001, 7, 1]);
        assert!(found.variants[0].policy.deviations().is_empty());
        assert_eq!(found.variants[1].policy.deviations(), ["WAKEUP_BIAS_PREV"]);
    }

    #[test]
    fn a_variant_that_changes_nothing_is_noted() {
        let notes = |with| experiment(with).unwrap().notes;
        let before = notes(&["NO_SIS_UTIL", "seed=7", "TTWU_QUEUE,WAKEUP_BIAS_PREV"]);
        let after = notes(&["NO_SIS_UTIL", "TTWU_QUEUE"]);
        assert_eq!(after[..before.len()], before);
        assert_eq!(after[before.len()..], ["--with TTWU_QUEUE changes nothing: linux-6.5 is so already"]);
    }

    #[test]
    fn what_is_refused() {
        for (with, message) in [
            (
                &["WAKEUP_BAIS_PREV"][..],
                "--with: unknown feature `WAKEUP_BAIS_PREV`, did you mean `WAKEUP_BIAS_PREV`? ",
            ),
            (
                &["base_slice=2ms"],
                "--with: unknown tunable or cost `base_slice`, did you mean `base_slice_ns`? `coreward features` lists all \
                 tunables, `coreward topology 1c --toml` all costs",
            ),
            (&[""], "--with: it is empty"),
            (&["TTWU_QUEUE,NO_TTWU_QUEUE"], "--with: `NO_TTWU_QUEUE`: TTWU_QUEUE is changed twice"),
            (&["nr_migrate=1,nr_migrate=2"], "--with: `nr_migrate=2`: nr_migrate is changed twice"),
            (&["linux-6.6,7.3"], "--with: `7.3`: the profile is changed twice"),
            (
                &["SIS_UTIL=0"],
                "--with: `SIS_UTIL=0`: SIS_UTIL is a feature, allowed are SIS_UTIL and NO_SIS_UTIL",
            ),
            (&["7.33"], "--with: unknown profile `7.33`, allowed are linux-4.8"),
            (&["zzz=2"], "--with: unknown tunable or cost `zzz`, `coreward features` lists all tunables"),
            (
                &["base_slice_ns=2x"],
                "--with: `base_slice_ns=2x`: allowed is NAME=VALUE with an integer value",
            ),
            (&["linux-7.33"], "--with: unknown profile `linux-7.33`, did you mean `linux-7.3`? "),
            (&["nr_migrate=0"], "--with: nr_migrate is 0, allowed are 1 to 128"),
            (&["SIS_UTIL", "SIS_UTIL"], "--with: `SIS_UTIL` is a side already"),
            (&["linux-6.5"], "--with: `linux-6.5` is a side already"),
            (&["seed=-1"], "--with: `seed=-1`: allowed are 0 to 18446744073709551615"),
            (&["seed=1,seed=2"], "--with: `seed=2`: a variant has one seed"),
            (&["SIS_UTIL,"], "--with: unknown feature ``, `coreward features` lists all"),
        ] {
            let error = experiment(with).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
