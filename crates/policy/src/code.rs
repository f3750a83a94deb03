//! The code of a policy: its functions, and the tables that name what they use.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::generated::native::Native;
use crate::generated::tables::{FEATURES, NOTES, QUEUE_REASONS, REASONS, TUNABLES};
use crate::layout::MAX_TUNABLES;
use crate::profile::{FeatureInfo, Profile, TunableInfo};

/// A policy's functions and tables: those that are built in, or those of a directory
/// ([`Code::of_directory`]). There is one `Code` for each, which lives as long as the process.
pub struct Code {
    pub(crate) native: Native,
    pub(crate) tables: Tables,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) key: u64,
}

/// What the `.def` files say. Those of a directory begin with the entries of the built-in ones.
pub(crate) struct Tables {
    pub(crate) features: &'static [FeatureInfo],
    pub(crate) tunables: &'static [TunableInfo],
    pub(crate) reasons: &'static [(&'static str, &'static str)],
    pub(crate) queue_reasons: &'static [(&'static str, &'static str)],
    pub(crate) notes: &'static [(u32, &'static str, &'static str)],
}

static BUILT_IN: Code = Code {
    native: Native::BUILT_IN,
    tables: Tables {
        features: FEATURES,
        tunables: TUNABLES,
        reasons: REASONS,
        queue_reasons: QUEUE_REASONS,
        notes: NOTES,
    },
    directory: None,
    key: 0,
};

impl Code {
    /// That of coreward itself.
    pub fn built_in() -> &'static Code {
        &BUILT_IN
    }

    /// The directory that it comes from, as it was named; `None` if it is built in.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// A number that changes with the files of its directory; 0 if it is built in.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Its features; the number of one is its bit.
    pub fn features(&self) -> &'static [FeatureInfo] {
        self.tables.features
    }

    /// Its tunables.
    pub fn tunables(&self) -> &'static [TunableInfo] {
        self.tables.tunables
    }

    /// Bit, name and text of each note that a decision may carry.
    pub fn notes(&self) -> &'static [(u32, &'static str, &'static str)] {
        self.tables.notes
    }

    /// All reasons of placements and balances, in the order of their codes.
    pub fn reasons(&self) -> impl Iterator<Item = Reason> + use<> {
        let table = self.tables.reasons;
        (0..).zip(table).map(|(code, (name, text))| Reason { code, name, text })
    }

    /// The reason with this code, which is `?` if there is none, as in a record that a newer policy wrote.
    pub fn reason(&self, code: u32) -> Reason {
        named(self.tables.reasons, code)
    }

    /// How many reasons of queue decisions there are.
    pub fn nr_queue_reasons(&self) -> usize {
        self.tables.queue_reasons.len()
    }

    /// The same for the reason of a queue decision.
    pub fn queue_reason(&self, code: u32) -> Reason {
        named(self.tables.queue_reasons, code)
    }

    /// The feature bits that are on in a profile.
    pub fn profile(&self, profile: Profile) -> u128 {
        let on = |f: &FeatureInfo| profile.has(f.kernels);
        self.features().iter().enumerate().filter(|(_, f)| on(f)).map(|(i, _)| 1 << i).sum()
    }

    /// The default of every tunable; 0 beyond the last.
    pub fn default_tunables(&self) -> [i64; MAX_TUNABLES] {
        std::array::from_fn(|i| self.tunables().get(i).map_or(0, |t| t.default))
    }
}

fn named(table: &[(&'static str, &'static str)], code: u32) -> Reason {
    let (name, text) = table.get(code as usize).copied().unwrap_or(("?", "?"));
    Reason { code, name, text }
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.directory {
            Some(directory) => write!(f, "Code({})", directory.display()),
            None => f.write_str("Code(built in)"),
        }
    }
}

/// Why a decision was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// Its code in decision records.
    pub code: u32,
    /// Its name, as in `policy/reasons.def` or `policy/queue/reasons.def`.
    pub name: &'static str,
    /// The text that reports print.
    pub text: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_reason_has_a_name_all_the_same() {
        let code = Code::built_in();
        assert_eq!(code.reason(1).name, "BIAS_PREV");
        assert_eq!((code.reason(1000).name, code.queue_reason(1000).text), ("?", "?"));
        assert!(code.reasons().all(|reason| code.reason(reason.code) == reason));
    }
}
