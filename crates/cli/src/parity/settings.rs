//! The policy's settings for a file: those of its kernel, and for a what-if the changed ones.

use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};
use coreward_parity::{Host, Reader, Replay};
use coreward_policy::{Changes, Code, PolicySettings, Profile};

use crate::cli;

/// An open file, and the policy with the settings of its kernel.
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

/// The code of the policy.
fn code(args: &cli::Parity) -> Result<&'static Code> {
    match &args.policy {
        Some(directory) => Code::of_directory(directory).map_err(|what| anyhow!("--policy: {what}")),
        None => Ok(Code::built_in()),
    }
}

/// The settings of the policy, and the kernel that it represents.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) profile: Profile,
    /// The profile is not that of the file's kernel, but the nearest.
    pub(crate) nearest: bool,
    policy: PolicySettings,
}

impl Settings {
    fn of(args: &cli::Parity, host: &Host) -> Result<Settings> {
        let (profile, nearest) = match &args.profile {
            Some(name) => (Profile::named(name).map_err(|e| anyhow!("--profile: {e}"))?, false),
            None => host.profile(),
        };
        let policy = host.settings(code(args)?, profile);
        Ok(Settings { profile, nearest, policy })
    }

    pub(crate) fn replay<R: std::io::Read>(&self, reader: &Reader<R>) -> Result<Replay> {
        Replay::new(reader.machine(), &self.policy).map_err(|what| anyhow!("{}: {what}", reader.file()))
    }
}

/// What `--sched-feat` and `--set` ask for.
pub(crate) struct Change {
    changes: Changes,
    /// As it was given, in a line.
    pub(crate) name: String,
}

impl Change {
    /// The change that was asked for, if any.
    pub(crate) fn of(args: &cli::Parity) -> Result<Option<Change>> {
        let what_if = &args.what_if;
        if what_if.is_empty() {
            return Ok(None);
        }
        if what_if.set.iter().any(|set| set.name == "relax_domain_level") {
            bail!(
                "--set: relax_domain_level acts when domains are built, those of a recording are what they are"
            );
        }
        let changes = what_if.changes(code(args)?).map_err(Error::msg)?;
        Ok(Some(Change { changes, name: what_if.words().collect::<Vec<_>>().join(" ") }))
    }

    /// The settings of `file` with the change.
    ///
    /// # Errors
    /// Nothing is changed by it.
    pub(crate) fn apply(&self, settings: &Settings, file: &str) -> Result<Settings> {
        let changed = Settings { policy: self.changes.apply(&settings.policy), ..settings.clone() };
        if changed == *settings {
            bail!("{file}: {} is what the kernel had already: there is nothing to compare", self.name);
        }
        Ok(changed)
    }
}
