//! `--require`: the agreement that has to be reached.

use std::fmt;
use std::str::FromStr;

use anyhow::Result;
use coreward_parity::{Class, Summary};

/// The least agreement of the stable decisions of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Requirement {
    class: Class,
    percent: f64,
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let classes = Class::ALL.map(Class::name).join(", ");
        let wrong =
            || format!("allowed is CLASS=PERCENT, where CLASS is one of {classes} and PERCENT 0 to 100");
        let (name, percent) = text.split_once('=').ok_or_else(wrong)?;
        let class = Class::ALL.into_iter().find(|class| class.name() == name).ok_or_else(wrong)?;
        let percent = percent.parse().ok().filter(|p| (0.0..=100.0).contains(p)).ok_or_else(wrong)?;
        Ok(Requirement { class, percent })
    }
}

/// A requirement is not met.
#[derive(Debug)]
pub(crate) struct Unmet(String);

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unmet {}

/// Are all requirements met? A class without a stable decision meets none.
///
/// # Errors
/// [`Unmet`], which names all that are not.
pub(crate) fn check(requirements: &[Requirement], summary: &Summary) -> Result<()> {
    let unmet = requirements.iter().filter_map(|Requirement { class, percent }| {
        let tally = summary.class(*class);
        match tally.stable_percent() {
            Some(found) if found >= *percent => None,
            Some(_) => Some(format!(
                "{} of {} stable {} decisions agree, required are {percent} %",
                tally.stable_agree,
                tally.stable,
                class.name()
            )),
            None => Some(format!("there is no stable {} decision, required are {percent} %", class.name())),
        }
    });
    match unmet.collect::<Vec<_>>() {
        all if all.is_empty() => Ok(()),
        all => Err(Unmet(all.join("; ")).into()),
    }
}
