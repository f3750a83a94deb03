//! Requirements that are not met: exit status 1.

use std::fmt;

/// Names all requirements that are not met.
#[derive(Debug)]
pub(crate) struct Unmet(String);

impl Unmet {
    /// Nothing if `unmet` is empty.
    ///
    /// # Errors
    /// `Unmet` with all of them.
    pub(crate) fn check(unmet: &[String]) -> anyhow::Result<()> {
        if unmet.is_empty() { Ok(()) } else { Err(Unmet(unmet.join("; ")).into()) }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unmet {}
