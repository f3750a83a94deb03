//! The settings of a policy, and changes to them.

use coreward_input::unknown_of_many;

use crate::code::Code;
use crate::generated::tables::{Feature, Tunable};
use crate::layout::MAX_TUNABLES;
use crate::profile::Profile;

/// The command that lists features and tunables.
const LISTED: &str = "coreward features";

/// A policy and its settings: features and tunables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// What decides.
    pub code: &'static Code,
    /// Bit i: the i-th of [`Code::features`] is on.
    pub features: u128,
    /// In the order of [`Code::tunables`]. `relax_domain_level` acts when a machine's domains are built,
    /// so it has to be given there.
    pub tunables: [i64; MAX_TUNABLES],
}

impl PolicySettings {
    /// The built-in policy with those of a profile.
    pub fn new(profile: Profile) -> Self {
        PolicySettings::of(Code::built_in(), profile)
    }

    /// A policy with those of a profile.
    pub fn of(code: &'static Code, profile: Profile) -> Self {
        PolicySettings { code, features: code.profile(profile), tunables: code.default_tunables() }
    }

    /// Is the feature on?
    pub fn sched_feat(&self, feature: Feature) -> bool {
        self.features >> feature as u32 & 1 == 1
    }

    /// The value of a tunable.
    pub fn tunable(&self, tunable: Tunable) -> i64 {
        self.tunables[tunable as usize]
    }
}

/// Features that are switched and tunables that are set, on top of other settings. Names are those of one
/// [`Code`], to whose settings the changes apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    on: u128,
    off: u128,
    tunables: [Option<i64>; MAX_TUNABLES],
}

impl Changes {
    /// Switches a feature on, or off with `NO_` before its name, as a write to `sched/features` does.
    ///
    /// # Errors
    /// There is no such feature; the message names similar ones.
    pub fn sched_feat(&mut self, code: &Code, name: &str) -> Result<(), String> {
        let (wanted, on) = name.strip_prefix("NO_").map_or((name, true), |wanted| (wanted, false));
        let Some(index) = code.features().iter().position(|f| f.name == wanted) else {
            let names = code.features().iter().map(|f| f.name);
            let unknown = unknown_of_many("feature", wanted, names, LISTED);
            return Err(format!("{unknown}, each also with NO_ before it"));
        };
        self.switch(1 << index, on);
        Ok(())
    }

    /// Switches a feature.
    pub fn switch_feature(&mut self, feature: Feature, on: bool) {
        self.switch(1 << feature as u32, on);
    }

    fn switch(&mut self, bit: u128, on: bool) {
        let (to, from) = if on { (&mut self.on, &mut self.off) } else { (&mut self.off, &mut self.on) };
        *to |= bit;
        *from &= !bit;
    }

    /// Sets a tunable.
    ///
    /// # Errors
    /// There is no such tunable, or the value is out of its range; the message says what is allowed.
    pub fn set(&mut self, code: &Code, name: &str, value: i64) -> Result<(), String> {
        let Some(index) = code.tunables().iter().position(|t| t.name == name) else {
            return Err(unknown_of_many("tunable", name, code.tunables().iter().map(|t| t.name), LISTED));
        };
        let tunable = &code.tunables()[index];
        if !(tunable.min..=tunable.max).contains(&value) {
            return Err(format!(
                "{name} is {value}, allowed are {} to {} ({})",
                tunable.min, tunable.max, tunable.unit
            ));
        }
        self.tunables[index] = Some(value);
        Ok(())
    }

    /// Sets a tunable to a value that is known to be in its range, or that is judged elsewhere.
    pub fn set_tunable(&mut self, tunable: Tunable, value: i64) {
        self.tunables[tunable as usize] = Some(value);
    }

    /// Does it name anything that the built-in policy does not have?
    pub fn is_beyond_built_in(&self) -> bool {
        let (features, tunables) = (Code::built_in().features().len(), Code::built_in().tunables().len());
        (self.on | self.off) >> features != 0 || self.tunables[tunables..].iter().any(Option::is_some)
    }

    /// The settings with these changes.
    pub fn apply(&self, settings: &PolicySettings) -> PolicySettings {
        PolicySettings {
            code: settings.code,
            features: settings.features & !self.off | self.on,
            tunables: std::array::from_fn(|i| self.tunables[i].unwrap_or(settings.tunables[i])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_holds_and_the_rest_stays() {
        let plain = PolicySettings::new(Profile::named("linux-6.12").unwrap());
        let mut changes = Changes::default();
        assert_eq!(changes.apply(&plain), plain);
        for name in ["NO_WA_IDLE", "WAKEUP_BIAS_PREV", "NO_WAKEUP_BIAS_PREV", "NEXT_BUDDY"] {
            changes.sched_feat(plain.code, name).unwrap();
        }
        changes.set(plain.code, "nr_migrate", 8).unwrap();
        changes.set(plain.code, "nr_migrate", 9).unwrap();
        let changed = changes.apply(&plain);
        assert!(!changed.sched_feat(Feature::WA_IDLE) && changed.sched_feat(Feature::NEXT_BUDDY));
        assert!(!changed.sched_feat(Feature::WAKEUP_BIAS_PREV));
        assert_eq!((changed.features ^ plain.features).count_ones(), 2);
        assert_eq!(changed.tunable(Tunable::nr_migrate), 9);
        assert_eq!(changed.tunable(Tunable::capacity_margin), plain.tunable(Tunable::capacity_margin));
        assert!(
            changes
                .set(plain.code, "nr_migrate", 0)
                .unwrap_err()
                .starts_with("nr_migrate is 0, allowed are 1 to 128")
        );
    }
}
