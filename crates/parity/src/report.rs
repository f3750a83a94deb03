//! Agreement by path, and the kinds of disagreements.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::path::{Class, Path};
use crate::replay::Outcome;

/// How many decisions there were, and how many of them agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All comparisons.
    pub all: u64,
    /// Those in which kernel and policy agree.
    pub agree: u64,
    /// Those whose inputs stayed the same.
    pub stable: u64,
    /// Of these, those that agree.
    pub stable_agree: u64,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        let (agrees, stable) = (outcome.agrees(), outcome.is_stable());
        self.all += 1;
        self.agree += u64::from(agrees);
        self.stable += u64::from(stable);
        self.stable_agree += u64::from(agrees && stable);
    }

    fn add(&mut self, other: &Tally) {
        self.all += other.all;
        self.agree += other.agree;
        self.stable += other.stable;
        self.stable_agree += other.stable_agree;
    }

    /// Agreement of the stable decisions in percent; None without any.
    pub fn stable_percent(&self) -> Option<f64> {
        percent(self.stable_agree, self.stable)
    }
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// The common properties of disagreements that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    path: Path,
    policy: &'static str,
    kernel: &'static str,
    relation: &'static str,
}

/// A row of the table of disagreements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// The path, by the policy's reason.
    pub path: &'static str,
    /// The policy's reason.
    pub policy: &'static str,
    /// The kernel's likely reason.
    pub kernel: &'static str,
    /// Where the kernel's choice is relative to the policy's.
    pub kernel_choice: &'static str,
    /// How many there are.
    pub all: u64,
    /// How many of them are stable.
    pub stable: u64,
    /// The number of the first of them, a stable one if there is one.
    pub example: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: u64,
    stable: u64,
    first: u64,
    first_stable: Option<u64>,
}

/// Outcomes, counted.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    tallies: BTreeMap<Path, Tally>,
    disagreements: BTreeMap<Kind, Count>,
}

impl Summary {
    /// Counts one comparison.
    pub fn count(&mut self, outcome: &Outcome) {
        self.tallies.entry(outcome.path).or_default().count(outcome);
        if outcome.agrees() {
            return;
        }
        let kind = Kind {
            path: outcome.path,
            policy: outcome.policy_reason,
            kernel: outcome.kernel_reason,
            relation: outcome.relation,
        };
        let fresh = Count { first: outcome.number, ..Count::default() };
        let count = self.disagreements.entry(kind).or_insert(fresh);
        count.all += 1;
        if outcome.is_stable() {
            count.stable += 1;
            count.first_stable.get_or_insert(outcome.number);
        }
    }

    /// Replaces the tally of a path.
    pub fn set(&mut self, path: Path, tally: Tally) {
        self.tallies.insert(path, tally);
    }

    /// Adds the results of another file. The examples stay those of this one.
    pub fn add(&mut self, other: &Summary) {
        for (path, tally) in &other.tallies {
            self.tallies.entry(*path).or_default().add(tally);
        }
        for (kind, count) in &other.disagreements {
            let sum = self.disagreements.entry(kind.clone()).or_default();
            sum.all += count.all;
            sum.stable += count.stable;
        }
    }

    /// The paths that occur, in the order of reports.
    pub fn paths(&self) -> impl Iterator<Item = (Path, &Tally)> {
        self.tallies.iter().map(|(path, tally)| (*path, tally))
    }

    /// The paths that no decision took.
    pub fn absent(&self) -> impl Iterator<Item = Path> {
        Path::all().filter(|path| !self.tallies.contains_key(path))
    }

    /// All paths of a class together.
    pub fn class(&self, class: Class) -> Tally {
        let mut sum = Tally::default();
        self.paths().filter(|(path, _)| path.class() == class).for_each(|(_, tally)| sum.add(tally));
        sum
    }

    /// The disagreements, by path, the most frequent stable ones first.
    pub fn disagreements(&self) -> Vec<Disagreement> {
        let mut rows: Vec<_> = self.disagreements.iter().collect();
        rows.sort_by_key(|(kind, count)| (kind.path, u64::MAX - count.stable, u64::MAX - count.all));
        let row = |(kind, count): (&Kind, &Count)| Disagreement {
            path: kind.path.name(),
            policy: kind.policy,
            kernel: kind.kernel,
            kernel_choice: kind.relation,
            all: count.all,
            stable: count.stable,
            example: count.first_stable.unwrap_or(count.first),
        };
        rows.into_iter().map(row).collect()
    }

    /// Agreement by path and class as a table, then the disagreements if there are any.
    pub fn render(&self) -> String {
        let mut out = String::new();
        row(&mut out, ["path", "decisions", "agree", "%", "stable", "agree", "%"].map(String::from));
        for class in Class::ALL {
            let paths: Vec<_> = self.paths().filter(|(path, _)| path.class() == class).collect();
            for (path, tally) in &paths {
                row(&mut out, cells(path.name(), tally));
            }
            if paths.len() > 1 {
                row(&mut out, cells(&format!("all {}", class.name()), &self.class(class)));
            }
        }
        let absent: Vec<_> = self.absent().map(Path::name).collect();
        if !absent.is_empty() {
            _ = writeln!(out, "\nwithout a decision: {}", absent.join(", "));
        }
        let disagreements = self.disagreements();
        if !disagreements.is_empty() {
            _ = writeln!(
                out,
                "\ndisagreements (stable/all, example): policy's reason / what the kernel seems to have done"
            );
        }
        for d in disagreements {
            let counts = format!("{}/{}", d.stable, d.all);
            let example = if d.example == 0 { String::new() } else { format!("#{}", d.example) };
            _ = writeln!(
                out,
                "{:28} {counts:>13} {example:>9}  {} / {}: {}",
                d.path, d.policy, d.kernel, d.kernel_choice
            );
        }
        out
    }
}

fn cells(name: &str, tally: &Tally) -> [String; 7] {
    let percent = |part, whole| percent(part, whole).map_or("-".into(), floor);
    [
        name.into(),
        tally.all.to_string(),
        tally.agree.to_string(),
        percent(tally.agree, tally.all),
        tally.stable.to_string(),
        tally.stable_agree.to_string(),
        percent(tally.stable_agree, tally.stable),
    ]
}

/// With two digits, rounded down, so that 100.00 means all.
fn floor(percent: f64) -> String {
    format!("{:.2}", (percent * 100.0).floor() / 100.0)
}

fn row(out: &mut String, cells: [String; 7]) {
    let [name, all, agree, percent, stable, stable_agree, stable_percent] = cells;
    _ = writeln!(
        out,
        "{name:28} {all:>10} {agree:>10} {percent:>7} {stable:>10} {stable_agree:>10} {stable_percent:>7}"
    );
}
