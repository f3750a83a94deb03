//! What can be wrong with a machine description.

use thiserror::Error;

/// Why a machine could not be read. The text says where, what was wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// The specification names no preset and has the form of no source.
    #[error(
        "unknown machine `{spec}`: {hint}give a preset ({presets}), a path ending in .toml or .json, sysfs for this machine, sysfs:DIR, hwloc:FILE or a shorthand like 2n4l8c2t"
    )]
    Unknown {
        /// What was asked for.
        spec: String,
        /// A preset with a similar name, as a question; or nothing.
        hint: String,
        /// The presets there are, separated by commas.
        presets: String,
    },
    /// A file or directory could not be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file or directory.
        path: String,
        /// The operating system's reason.
        reason: String,
    },
    /// The description is malformed or contradicts itself.
    #[error("{place}: {what}")]
    Invalid {
        /// The file and line, the sysfs file, or the text that was given.
        place: String,
        /// What is wrong and what is allowed.
        what: String,
    },
}

impl MachineError {
    pub(crate) fn invalid(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Invalid { place: place.into(), what: what.into() }
    }
}
