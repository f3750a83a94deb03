//! The model's record: how well it did in each family of experiments, in a form that other reports quote.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Family, Fidelity, Reliability, Row, RowVerdict, Score};

/// The scores of all families, as `coreward fidelity --record` writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Over all families.
    pub overall: Score,
    /// By the family's name.
    pub families: BTreeMap<String, OfFamily>,
    /// By the family's name and the [`benchmark`].
    #[serde(default)]
    pub benchmarks: BTreeMap<String, BTreeMap<String, Hits>>,
    /// What was published where changes of some size were simulated.
    #[serde(default)]
    pub reliability: Vec<Reliability>,
}

/// The score of one family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfFamily {
    /// The revisions of coreward that it is of.
    pub revision: String,
    /// The fingerprint of the model that it is of; `None` if it is of several.
    pub model: Option<String>,
    /// What its rows say together.
    #[serde(flatten)]
    pub score: Score,
}

/// How often the simulation said what was published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    /// Published effects.
    pub scored: usize,
    /// Those that the simulation has with the right sign.
    pub right: usize,
    /// Published figures that say that nothing changed.
    pub null: usize,
    /// Those that the simulation has as such.
    pub null_ok: usize,
}

impl Hits {
    fn add(&mut self, other: Hits) {
        self.scored += other.scored;
        self.right += other.right;
        self.null += other.null;
        self.null_ok += other.null_ok;
    }

    fn of(row: &Row) -> Hits {
        let (effect, compared) = (row.is_effect(), row.is_compared());
        let one = |is: bool| usize::from(is);
        Hits {
            scored: one(compared && effect),
            right: one(row.verdict == RowVerdict::RightSign),
            null: one(compared && !effect),
            null_ok: one(row.verdict == RowVerdict::NullOk),
        }
    }
}

/// The name of a workload without its options: `hackbench`, `perf bench sched pipe`.
pub fn benchmark(workload: &str) -> String {
    let words: Vec<_> = workload.split_whitespace().take_while(|word| !word.starts_with('-')).collect();
    match words.first() {
        Some(&"perf") => words.join(" "),
        first => first.copied().unwrap_or_default().to_owned(),
    }
}

/// The record of one family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// The family.
    pub family: String,
    /// The revision of coreward that the score is of.
    pub revision: String,
    /// Whether the model is still the same.
    pub current: bool,
    /// What its rows say together.
    #[serde(flatten)]
    pub score: Score,
}

impl Record {
    /// The record of what was simulated.
    pub fn new(fidelity: &Fidelity) -> Record {
        let of = |family: &Family| OfFamily {
            revision: family.revisions(),
            model: family.model().map(str::to_owned),
            score: family.score.clone(),
        };
        let mut benchmarks: BTreeMap<String, BTreeMap<String, Hits>> = BTreeMap::new();
        for family in &fidelity.families {
            let of_family = benchmarks.entry(family.name.clone()).or_default();
            for row in &family.rows {
                of_family.entry(row.benchmark.clone()).or_default().add(Hits::of(row));
            }
        }
        Record {
            overall: fidelity.overall.clone(),
            families: fidelity.families.iter().map(|family| (family.name.clone(), of(family))).collect(),
            benchmarks,
            reliability: fidelity.reliability.clone(),
        }
    }

    /// How often the model was right about a benchmark, in one family of changes or in all.
    pub fn of_benchmark(&self, family: Option<&str>, benchmark: &str) -> Hits {
        let mut all = Hits::default();
        let families = self.benchmarks.iter().filter(|(name, _)| family.is_none_or(|family| family == *name));
        families.filter_map(|(_, hits)| hits.get(benchmark)).for_each(|hits| all.add(*hits));
        all
    }

    /// The record of a family, if it has one; `model` is the fingerprint of the present model.
    pub fn standing(&self, family: &str, model: &str) -> Option<Standing> {
        let of = self.families.get(family)?;
        Some(Standing {
            family: family.to_owned(),
            revision: of.revision.clone(),
            current: of.model.as_deref() == Some(model),
            score: of.score.clone(),
        })
    }
}

impl Standing {
    /// The record in a sentence; without one, that there is none.
    pub fn text(standing: Option<&Standing>) -> String {
        let Some(Standing { family, revision, current, score }) = standing else {
            return "no published figures of this kind were checked".into();
        };
        let since = if *current { "" } else { "; the model has changed since" };
        let error = score.median_error.map_or("unknown".into(), |error| format!("{error:.1} points"));
        let covered = match score.with_interval {
            0 => String::new(),
            rows => format!("; of {rows} published figures {} are in the 80 % interval", score.covered),
        };
        format!(
            "{family}: of {} published changes the sign is right in {} ({}), the median error is {error}; null results \
             reproduced: {} of {}{covered} (docs/fidelity.md, revision {revision}{since})",
            score.scored,
            score.right,
            (score.right * 100)
                .checked_div(score.scored)
                .map_or("-".into(), |percent| format!("{percent} %")),
            score.null_ok,
            score.null,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_it_is_of() {
        let score = Score {
            compared: 28,
            scored: 25,
            right: 21,
            right_and_clear: 13,
            median_error: Some(33.04),
            null: 3,
            null_ok: 1,
            null_median_error: Some(13.0),
            with_interval: 20,
            covered: 9,
            not_compared: 3,
        };
        let of = |model: Option<&str>| OfFamily {
            revision: "abc".into(),
            model: model.map(str::to_owned),
            score: score.clone(),
        };
        let record = Record {
            overall: score.clone(),
            families: [("bias_prev".into(), of(Some("m"))), ("mixed".into(), of(None))].into(),
            benchmarks: BTreeMap::new(),
            reliability: Vec::new(),
        };
        let text = |family, model| Standing::text(record.standing(family, model).as_ref());
        assert_eq!(
            text("bias_prev", "m"),
            "bias_prev: of 25 published changes the sign is right in 21 (84 %), the median error is 33.0 points; null \
             results reproduced: 1 of 3; of 20 published figures 9 are in the 80 % interval (docs/fidelity.md, revision abc)"
        );
        assert!(
            text("bias_prev", "n")
                .ends_with(" (docs/fidelity.md, revision abc; the model has changed since)")
        );
        assert!(text("mixed", "m").ends_with("; the model has changed since)"));
        assert_eq!(text("other", "m"), "no published figures of this kind were checked");
    }

    #[test]
    fn a_benchmark_is_known_by_its_name() {
        for (workload, name) in [
            ("hackbench -g 4 --pipe", "hackbench"),
            ("perf bench sched pipe -l 5", "perf bench sched pipe"),
            ("sysbench threads --threads=8 run", "sysbench"),
            ("rt-app periodic.json", "rt-app"),
            ("", ""),
        ] {
            assert_eq!(benchmark(workload), name);
        }
    }

    #[test]
    fn hits_are_summed_over_families_or_not() {
        let hits = |right| Hits { scored: 10, right, null: 2, null_ok: 1 };
        let of = |family: &str, right| (family.to_owned(), [("hackbench".to_owned(), hits(right))].into());
        let record = Record {
            overall: Fidelity::new(vec![], vec![]).overall,
            families: BTreeMap::new(),
            benchmarks: [of("a", 4), of("b", 7)].into(),
            reliability: Vec::new(),
        };
        assert_eq!(record.of_benchmark(Some("b"), "hackbench"), hits(7));
        assert_eq!(record.of_benchmark(Some("b"), "schbench"), Hits::default());
        let both = Hits { scored: 20, right: 11, null: 4, null_ok: 2 };
        assert_eq!(record.of_benchmark(None, "hackbench"), both);
    }
}
