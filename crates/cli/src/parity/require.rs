//! `--require`: the agreement that must be reached.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::Result;
use coreward_parity::{Class, Summary, Tally};

use crate::unmet::Unmet;

/// The least agreement of the stable decisions of a class, and of each of its paths that was taken often enough.
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

/// With this many stable decisions, a path has to reach the requirement of its class. Otherwise, errors on one path
/// would be lost among the decisions of its class.
const PATH_DECISIONS: u64 = 500;

/// Are all requirements met on every kernel separately? A class without a stable decision meets none.
///
/// # Errors
/// [`Unmet`], which names all that are not.
pub(crate) fn check(requirements: &[Requirement], kernels: &BTreeMap<&str, Summary>) -> Result<()> {
    let unmet: Vec<_> = kernels
        .iter()
        .flat_map(|(kernel, summary)| requirements.iter().map(move |required| (kernel, summary, required)))
        .flat_map(|(kernel, summary, required)| {
            required.unmet(summary).into_iter().map(move |what| format!("Linux {kernel}: {what}"))
        })
        .collect();
    Unmet::check(&unmet)
}

impl Requirement {
    /// The requirements that `summary` misses: the class, and its paths.
    fn unmet(&self, summary: &Summary) -> Vec<String> {
        let Requirement { class, percent } = *self;
        let lacks = |name: &str, tally: &Tally| {
            tally.stable_percent().filter(|found| *found < percent).map(|_| {
                format!(
                    "{} of {} stable {name} decisions agree, required are {percent} %",
                    tally.stable_agree, tally.stable
                )
            })
        };
        let whole = summary.class(class);
        if whole.stable == 0 {
            return vec![format!("there is no stable {} decision, required are {percent} %", class.name())];
        }
        let paths = summary.paths().filter(|(path, _)| path.class() == class);
        let often =
            paths.filter(|(path, tally)| tally.stable >= PATH_DECISIONS && path.name() != class.name());
        let of_paths = often.filter_map(|(path, tally)| lacks(path.name(), tally));
        lacks(class.name(), &whole).into_iter().chain(of_paths).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_parity::Path;

    #[test]
    fn a_path_that_is_taken_often_counts_for_itself() {
        let required = Requirement { class: Class::Wakeup, percent: 99.0 };
        let path = |name: &str| Path::all().find(|path| path.name() == name).unwrap();
        let summary = |wrong, scans| {
            let tally = |stable: u64, wrong| Tally {
                all: stable,
                agree: stable - wrong,
                stable,
                stable_agree: stable - wrong,
            };
            let mut summary = Summary::default();
            summary.set(path("wakeup: target idle"), tally(100_000, 0));
            summary.set(path("wakeup: scan"), tally(scans, wrong));
            summary
        };
        assert!(required.unmet(&summary(5, 500)).is_empty());
        let expected = "494 of 500 stable wakeup: scan decisions agree, required are 99 %";
        assert_eq!(required.unmet(&summary(6, 500)), [expected]);
        assert!(required.unmet(&summary(6, 499)).is_empty(), "too few to tell");
    }
}
