//! The options that change a policy.

use coreward_policy::{Assignment, Changes, Code};

/// The changes that a user makes to a policy, on any command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Switch a feature on, or off by prefixing NO_ to its name; may be repeated [default: as in the profile, or in the
    /// file]
    #[arg(long, value_name = "NAME|NO_NAME")]
    pub sched_feat: Vec<String>,
    /// Set a tunable of the policy; may be repeated [default: see coreward features, or as in the file]
    #[arg(long, value_name = "TUNABLE=VALUE")]
    pub set: Vec<Assignment>,
}

impl Options {
    /// The changes to a policy with this code that the options ask for.
    ///
    /// # Errors
    /// A name is unknown, or a value out of its range; the message begins with the option.
    pub fn changes(&self, code: &Code) -> Result<Changes, String> {
        let mut changes = Changes::default();
        self.add_to(&mut changes, code)?;
        Ok(changes)
    }

    /// Adds them to others, before which they go.
    ///
    /// # Errors
    /// As [`Options::changes`].
    pub fn add_to(&self, changes: &mut Changes, code: &Code) -> Result<(), String> {
        for name in &self.sched_feat {
            changes.sched_feat(code, name).map_err(|wrong| format!("--sched-feat: {wrong}"))?;
        }
        for Assignment { name, value } in &self.set {
            changes.set(code, name, *value).map_err(|wrong| format!("--set: {wrong}"))?;
        }
        Ok(())
    }

    /// As they were given, one by one.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let set = self.set.iter().map(|Assignment { name, value }| format!("{name}={value}"));
        self.sched_feat.iter().cloned().chain(set)
    }

    /// Whether the user changes nothing.
    pub fn is_empty(&self) -> bool {
        self.sched_feat.is_empty() && self.set.is_empty()
    }
}
