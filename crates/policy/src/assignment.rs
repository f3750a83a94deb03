//! A setting as users write it.

use std::str::FromStr;

/// `NAME=VALUE` with an integer value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// What is set: a tunable, a cost; any name is taken here.
    pub name: String,
    /// What it is set to.
    pub value: i64,
}

impl FromStr for Assignment {
    /// What is allowed.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "allowed is NAME=VALUE with an integer value".to_owned();
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        Ok(Assignment { name: name.into(), value: value.parse().map_err(|_| wrong())? })
    }
}
