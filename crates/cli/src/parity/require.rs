//! `--require`: the agreement that must be reached.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::Result;
use coreward_parity::{Class, Path, Summary, Tally};

use crate::unmet::Unmet;

/// The least agreement of the stable decisions of a class, and of each of its paths that was taken often enough; or
/// of one such path, which the requirement of its class then leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Requirement {
    what: What,
    percent: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Class(Class),
    Path(Path),
}

impl What {
    fn named(name: &str) -> Option<Self> {
        let class = Class::ALL.into_iter().find(|class| class.name() == name).map(What::Class);
        class.or_else(|| Path::all().find(|path| path.name() == name).map(What::Path))
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let classes = Class::ALL.map(Class::name).join(", ");
        let wrong = || {
            format!(
                "allowed is CLASS=PERCENT or PATH=PERCENT, where CLASS is one of {classes}, PATH one of the report, \
                 and PERCENT 0 to 100"
            )
        };
        let (name, percent) = text.split_once('=').ok_or_else(wrong)?;
        let what = What::named(name).ok_or_else(wrong)?;
        let percent = percent.parse().ok().filter(|p| (0.0..=100.0).contains(p)).ok_or_else(wrong)?;
        Ok(Requirement { what, percent })
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
            required
                .unmet(summary, requirements)
                .into_iter()
                .map(move |what| format!("Linux {kernel}: {what}"))
        })
        .collect();
    Unmet::check(&unmet)
}

impl Requirement {
    /// What `summary` misses of this requirement, which is one of `all`: the class, and its paths.
    fn unmet(&self, summary: &Summary, all: &[Requirement]) -> Vec<String> {
        let Requirement { what, percent } = *self;
        let lacks = |name: &str, tally: &Tally| {
            tally.stable_percent().filter(|found| *found < percent).map(|_| {
                format!(
                    "{} of {} stable {name} decisions agree, required are {percent} %",
                    tally.stable_agree, tally.stable
                )
            })
        };
        let covers = |path: Path| match what {
            What::Path(one) => path == one,
            What::Class(class) => {
                path.class() == class
                    && path.name() != class.name()
                    && all.iter().all(|other| other.what != What::Path(path))
            }
        };
        let often = summary.paths().filter(|(path, tally)| tally.stable >= PATH_DECISIONS && covers(*path));
        let of_paths = often.filter_map(|(path, tally)| lacks(path.name(), tally));
        let What::Class(class) = what else { return of_paths.collect() };
        let whole = summary.class(class);
        if whole.stable == 0 {
            return vec![format!("there is no stable {} decision, required are {percent} %", class.name())];
        }
        lacks(class.name(), &whole).into_iter().chain(of_paths).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_taken_often_counts_for_itself() {
        let required = |text: &str| text.parse::<Requirement>().unwrap();
        let class = required("wakeup=99");
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
        assert!(class.unmet(&summary(5, 500), &[class]).is_empty());
        let expected = "494 of 500 stable wakeup: scan decisions agree, required are 99 %";
        assert_eq!(class.unmet(&summary(6, 500), &[class]), [expected]);
        assert!(class.unmet(&summary(6, 499), &[class]).is_empty(), "too few to tell");

        let scan = required("wakeup: scan=98.9");
        assert!(class.unmet(&summary(6, 500), &[class, scan]).is_empty(), "the path has its own requirement");
        assert!(scan.unmet(&summary(5, 500), &[class, scan]).is_empty());
        assert_eq!(scan.unmet(&summary(6, 500), &[class, scan]), [expected.replace("99 %", "98.9 %")]);
    }
}
