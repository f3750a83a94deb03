//! What can be wrong with a capture file.

use std::io;

use crate::format::FrameType;

/// Why a capture file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The operating system refuses to read it.
    #[error("cannot read {file}")]
    Io {
        /// The file's name.
        file: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// It is no capture file, another version's, or damaged.
    #[error("{file}: byte {offset}: {what}")]
    Damaged {
        /// The file's name.
        file: String,
        /// Where the header or frame begins that is wrong.
        offset: u64,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// It is sound, but of a machine or kernel that the policy does not know.
    #[error("{file}: {what}")]
    Unsupported {
        /// The file's name.
        file: String,
        /// What is not supported, and what is.
        what: String,
    },
}

/// What is wrong with one frame, before it is known where the frame stands.
pub(crate) type Wrong = String;

/// `frame 7 (cpu): what`.
pub(crate) fn in_frame(number: u64, kind: Option<FrameType>, what: &str) -> String {
    match kind {
        Some(kind) => format!("frame {number} ({}): {what}", kind.name()),
        None => format!("frame {number}: {what}"),
    }
}
