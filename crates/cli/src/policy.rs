//! A policy as a user names it: its code, a profile and the deviations from it.

use std::path::Path;

use coreward_machine::Costs;
use coreward_policy::{Assignment, Changes, Code, PolicySettings, Profile};

/// A policy and the costs of the machine that are changed with it.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) code: &'static Code,
    pub(crate) profile: Profile,
    /// The deviations from the profile.
    pub(crate) changes: Changes,
    /// Costs that do not have the machine's value, in the order in which they were given.
    pub(crate) costs: Vec<(String, u64)>,
}

impl Policy {
    /// The built-in policy with a profile, unchanged.
    pub(crate) fn new(profile: Profile) -> Policy {
        Policy::of(Code::built_in(), profile)
    }

    /// A policy with a profile, unchanged.
    pub(crate) fn of(code: &'static Code, profile: Profile) -> Policy {
        Policy { code, profile, changes: Changes::default(), costs: Vec::new() }
    }

    /// The settings for the engine.
    pub(crate) fn settings(&self) -> PolicySettings {
        self.changes.apply(&PolicySettings::of(self.code, self.profile))
    }

    /// Replaces its code by that of a directory, with the same profile and changes.
    ///
    /// # Errors
    /// The directory is refused, or the changes name what only another directory has.
    pub(crate) fn set_directory(&mut self, directory: &Path) -> Result<(), String> {
        let code = Code::of_directory(directory)?;
        if code != self.code && self.changes.is_beyond_built_in() {
            return Err("the policy before it has features or tunables of its own switched".into());
        }
        self.code = code;
        Ok(())
    }

    /// The directory that its code comes from, as it was named.
    pub(crate) fn directory(&self) -> Option<String> {
        self.code.directory().map(|directory| directory.display().to_string())
    }

    /// Sets a cost of the machine.
    ///
    /// # Errors
    /// There is no such cost, or the value is out of its range.
    pub(crate) fn cost(&mut self, name: &str, value: i64) -> Result<(), String> {
        // below every range: refused with the range that is allowed
        let Ok(value) = u64::try_from(value) else {
            return match Costs::field(name) {
                Some(field) => Err(format!("{name} is {value}, allowed are {} to {}", field.min, field.max)),
                None => Costs::default().set(name, 0),
            };
        };
        Costs::default().set(name, value)?;
        self.costs.retain(|(other, _)| other != name);
        self.costs.push((name.into(), value));
        Ok(())
    }

    /// Sets the costs that `--cost` names.
    ///
    /// # Errors
    /// One is there twice, or there is none of that name, or its value is out of range.
    pub(crate) fn set_costs(&mut self, costs: &[Assignment]) -> anyhow::Result<()> {
        for (i, cost) in costs.iter().enumerate() {
            if costs[..i].iter().any(|other| other.name == cost.name) {
                anyhow::bail!("--cost: {} is there twice", cost.name);
            }
            self.cost(&cost.name, cost.value).map_err(|what| anyhow::anyhow!("--cost: {what}"))?;
        }
        Ok(())
    }

    /// The features that are on, in the order of the table.
    pub(crate) fn features(&self) -> impl Iterator<Item = &'static str> {
        let features = self.settings().features;
        let all = self.code.features().iter().enumerate();
        all.filter(move |(i, _)| features >> i & 1 == 1).map(|(_, f)| f.name)
    }

    /// The deviations from the built-in policy, the profile and the machine file.
    pub(crate) fn deviations(&self) -> Vec<String> {
        let PolicySettings { code, features, tunables } = self.settings();
        let directory = self.directory().map(|directory| format!("policy={directory}"));
        let switched = switched(code, code.profile(self.profile), features);
        let tunables = code
            .tunables()
            .iter()
            .zip(tunables)
            .filter(|(t, value)| t.default != *value)
            .map(|(t, value)| format!("{}={value}", t.name));
        let costs = self.costs.iter().map(|(name, value)| format!("{name}={value}"));
        directory.into_iter().chain(switched).chain(tunables).chain(costs).collect()
    }
}

/// The features that differ between two sets, by name; those that are off in the second one with a leading `NO_`.
pub(crate) fn switched(code: &Code, from: u128, to: u128) -> impl Iterator<Item = String> + use<> {
    let changed = from ^ to;
    let features = code.features().iter().enumerate();
    features.filter(move |(i, _)| changed >> i & 1 == 1).map(move |(i, f)| {
        let off = to >> i & 1 == 0;
        format!("{}{}", if off { "NO_" } else { "" }, f.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_what_differs_from_the_profile() {
        let mut policy = Policy::new(Profile::named("linux-6.5").unwrap());
        assert!(policy.deviations().is_empty());
        policy.changes.sched_feat(policy.code, "NO_SIS_UTIL").unwrap();
        policy.changes.sched_feat(policy.code, "UTIL_EST").unwrap(); // on already
        policy.changes.set(policy.code, "nr_migrate", 8).unwrap();
        policy.cost("tick_ns", 0).unwrap();
        policy.cost("tick_ns", 2000).unwrap();
        assert_eq!(policy.deviations(), ["NO_SIS_UTIL", "nr_migrate=8", "tick_ns=2000"]);
        policy.changes.sched_feat(policy.code, "SIS_UTIL").unwrap();
        assert_eq!(policy.deviations(), ["nr_migrate=8", "tick_ns=2000"]);
    }

    #[test]
    fn what_was_switched_stays_when_the_profile_changes() {
        let mut policy = Policy::new(Profile::named("linux-6.5").unwrap());
        policy.changes.sched_feat(policy.code, "UTIL_EST").unwrap(); // on in 6.5, off in 4.8
        policy.changes.sched_feat(policy.code, "NO_WA_IDLE").unwrap();
        policy.profile = Profile::named("linux-4.8").unwrap();
        assert_eq!(policy.deviations(), ["UTIL_EST", "NO_WA_IDLE"]);
    }

    #[test]
    fn profiles_are_kernel_versions_and_those_before_6_6_have_cfs() {
        for name in Profile::ALL {
            let profile = Profile::named(name).unwrap();
            let eevdf = Policy::new(profile).features().any(|f| f == "EEVDF");
            assert_eq!(eevdf, profile.version() >= (6, 6), "{name}");
        }
    }
}
