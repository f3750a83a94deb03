//! A policy as a user names it: a profile and the deviations from it.

use coreward_machine::Costs;
use coreward_policy::{Changes, FEATURES, PolicySettings, Profile, TUNABLES};

/// A policy and the costs of the machine that are changed with it.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) profile: Profile,
    /// The deviations from the profile.
    pub(crate) changes: Changes,
    /// Costs that do not have the machine's value, in the order in which they were given.
    pub(crate) costs: Vec<(String, u64)>,
}

impl Policy {
    /// The policy of a profile, unchanged.
    pub(crate) fn new(profile: Profile) -> Policy {
        Policy { profile, changes: Changes::default(), costs: Vec::new() }
    }

    /// The settings for the engine.
    pub(crate) fn settings(&self) -> PolicySettings {
        self.changes.apply(&PolicySettings::new(self.profile))
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

    /// The features that are on, in the order of the table.
    pub(crate) fn features(&self) -> impl Iterator<Item = &'static str> {
        let features = self.settings().features;
        FEATURES.iter().enumerate().filter(move |(i, _)| features >> i & 1 == 1).map(|(_, f)| f.name)
    }

    /// The deviations from the profile and the machine file.
    pub(crate) fn deviations(&self) -> Vec<String> {
        let PolicySettings { features, tunables } = self.settings();
        let switched = switched(self.profile.features(), features);
        let tunables = TUNABLES
            .iter()
            .zip(tunables)
            .filter(|(t, value)| t.default != *value)
            .map(|(t, value)| format!("{}={value}", t.name));
        let costs = self.costs.iter().map(|(name, value)| format!("{name}={value}"));
        switched.chain(tunables).chain(costs).collect()
    }
}

/// The features that differ between two sets, by name; those that are off in the second one with a leading `NO_`.
pub(crate) fn switched(from: u128, to: u128) -> impl Iterator<Item = String> {
    let changed = from ^ to;
    FEATURES.iter().enumerate().filter(move |(i, _)| changed >> i & 1 == 1).map(move |(i, f)| {
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
        policy.changes.sched_feat("NO_SIS_UTIL").unwrap();
        policy.changes.sched_feat("UTIL_EST").unwrap(); // on already
        policy.changes.set("nr_migrate", 8).unwrap();
        policy.cost("tick_ns", 0).unwrap();
        policy.cost("tick_ns", 2000).unwrap();
        assert_eq!(policy.deviations(), ["NO_SIS_UTIL", "nr_migrate=8", "tick_ns=2000"]);
        policy.changes.sched_feat("SIS_UTIL").unwrap();
        assert_eq!(policy.deviations(), ["nr_migrate=8", "tick_ns=2000"]);
    }

    #[test]
    fn what_was_switched_stays_when_the_profile_changes() {
        let mut policy = Policy::new(Profile::named("linux-6.5").unwrap());
        policy.changes.sched_feat("UTIL_EST").unwrap(); // on in 6.5, off in 4.8
        policy.changes.sched_feat("NO_WA_IDLE").unwrap();
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
