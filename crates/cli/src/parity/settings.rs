//! How the policy is set for a file: as its kernel was, and otherwise for a what-if.

use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use coreward_parity::{Host, Reader, Replay};
use coreward_policy::{NR_TUNABLES, Profile, TUNABLES};

use crate::cli;
use crate::policy::Policy;
use coreward_policy::Assignment;

/// A file that is open, and the policy as its kernel was set.
pub(crate) struct Input {
    pub(crate) reader: Reader<std::io::BufReader<std::fs::File>>,
    pub(crate) replay: Replay,
    pub(crate) settings: Settings,
}

impl Input {
    pub(crate) fn open(args: &cli::Parity, file: &Path) -> Result<Input> {
        let reader = Reader::open(file)?;
        let settings = Settings::of(args, &reader.machine().host)?;
        let replay = settings.replay(&reader)?;
        Ok(Input { reader, replay, settings })
    }
}

/// Features and tunables, and the kernel that they stand for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) profile: Profile,
    /// The profile is not that of the file's kernel, but the nearest.
    pub(crate) nearest: bool,
    features: u64,
    tunables: [i64; NR_TUNABLES],
}

impl Settings {
    fn of(args: &cli::Parity, host: &Host) -> Result<Settings> {
        let (profile, nearest) = match &args.profile {
            Some(name) => (Profile::named(name).map_err(|e| anyhow!("--profile: {e}"))?, false),
            None => host.profile(),
        };
        Ok(Settings { profile, nearest, features: host.features(profile), tunables: host.tunables() })
    }

    pub(crate) fn replay<R: std::io::Read>(&self, reader: &Reader<R>) -> Result<Replay> {
        Replay::new(reader.machine(), self.features, self.tunables)
            .map_err(|what| anyhow!("{}: {what}", reader.file()))
    }
}

/// What `--sched-feat` and `--set` ask for.
pub(crate) struct Change {
    policy: Policy,
    tunables: Vec<Assignment>,
    /// As it was given, in a line.
    pub(crate) name: String,
}

impl Change {
    /// The change that was asked for, if any.
    pub(crate) fn of(args: &cli::Parity) -> Result<Option<Change>> {
        if args.sched_feat.is_empty() && args.set.is_empty() {
            return Ok(None);
        }
        let mut policy = Policy::new(Profile::DEFAULT);
        for name in &args.sched_feat {
            policy.sched_feat(name).map_err(|e| anyhow!("--sched-feat: {e}"))?;
        }
        for Assignment { name, value } in &args.set {
            if name == "relax_domain_level" {
                bail!(
                    "--set: relax_domain_level acts when domains are built, those of a recording are what they are"
                );
            }
            policy.set(name, *value).map_err(|e| anyhow!("--set: {e}"))?;
        }
        let set = args.set.iter().map(|a| format!("{}={}", a.name, a.value));
        let name = args.sched_feat.iter().cloned().chain(set).collect::<Vec<_>>().join(" ");
        Ok(Some(Change { policy, tunables: args.set.clone(), name }))
    }

    /// The settings of `file` with the change.
    ///
    /// # Errors
    /// Nothing is changed by it.
    pub(crate) fn apply(&self, settings: &Settings, file: &str) -> Result<Settings> {
        let mut changed = settings.clone();
        changed.features = self.policy.switched(changed.features);
        for Assignment { name, value } in &self.tunables {
            let index = TUNABLES.iter().position(|t| t.name == name);
            changed.tunables[index.ok_or_else(|| Error::msg("the tunable is known"))?] = *value;
        }
        if changed == *settings {
            bail!("{file}: {} is what the kernel had already: there is nothing to compare", self.name);
        }
        Ok(changed)
    }
}
