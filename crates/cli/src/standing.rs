//! How well the model did at comparisons with published figures, for the reports that quote it.

use anyhow::{Context, Result};
use coreward_engine::NoTrace;
use coreward_machine::Machine;
use coreward_metrics::fidelity::{Hits, Record, Reliability, Standing};
use coreward_policy::{FEATURES, Profile};
use coreward_workload::Scale;

use crate::experiment::{Experiment, Side};
use crate::policy::Policy;
use crate::setup::Host;

/// What `make fidelity` wrote.
const RECORD: &str = include_str!("../../../docs/fidelity.json");

/// The families that are about the system of a seed.
const FAMILY_OF_SEED: [(&str, &str); 5] = [
    ("000", "bias_prev"),
    ("001", "idlest_group"),
    ("002", "newidle"),
    ("003", "cache_aware"),
    ("004", "asym_capacity"),
];

/// The record of the model.
pub(crate) struct Book(Record);

impl Book {
    /// That which was there when the program was built.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) fn read() -> Result<Book> {
        Ok(Book(serde_json::from_str(RECORD).context("docs/fidelity.json")?))
    }

    /// The record of the family of an experiment, `None` if it belongs to none.
    ///
    /// # Errors
    /// The model cannot be told from the one that the record is of.
    pub(crate) fn standing(&self, experiment: &Experiment) -> Result<Option<Standing>> {
        match family(experiment) {
            Some(family) => Ok(self.0.standing(family, &model()?)),
            None => Ok(None),
        }
    }

    /// What was published where changes of some size were simulated.
    pub(crate) fn reliability(&self) -> &[Reliability] {
        &self.0.reliability
    }

    /// How often the model was right about a benchmark, among changes of the experiment's family, or among all if it belongs
    /// to none.
    pub(crate) fn hits(&self, experiment: &Experiment, benchmark: &str) -> Hits {
        self.0.of_benchmark(family(experiment), benchmark)
    }
}

/// The family that an experiment names, or that of the seed to which all features belong that its variants switch.
fn family(experiment: &Experiment) -> Option<&str> {
    if let Some(family) = &experiment.family {
        return Some(family);
    }
    // of a policy out of the tree nothing is known
    if experiment.sides().any(|side| side.policy.directory().is_some()) {
        return None;
    }
    let features = |side: &Side| side.policy.settings().features;
    let switched = experiment
        .variants
        .iter()
        .fold(0, |all, side| all | (features(side) ^ features(&experiment.baseline)));
    let mut seeds = FEATURES.iter().enumerate().filter(|(i, _)| switched >> i & 1 == 1).map(|(_, f)| f.seed);
    let first = seeds.next()?;
    let (_, family) = FAMILY_OF_SEED.iter().find(|(seed, _)| *seed == first)?;
    seeds.all(|seed| seed == first).then_some(family)
}

/// A fingerprint of the model: the checksum of the metrics of a short run, which hardly any change of the engine, the
/// policy, the costs or the workloads leaves as they are.
///
/// # Errors
/// The run fails, which it never does.
pub(crate) fn model() -> Result<String> {
    let machine = Machine::from_shorthand("2n2l2c2t")?;
    let workload = coreward_workload::parse("hackbench -g 2 -f 4 -l 20 --pipe", Scale::FULL)?;
    let host = Host::new(machine, Policy::new(Profile::DEFAULT))?;
    let metrics = host.run(&workload, 1, &mut NoTrace)?.metrics;
    Ok(format!("{:08x}", crc32fast::hash(&serde_json::to_vec(&metrics)?)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::experiment::AdHoc;

    fn record() -> Record {
        serde_json::from_str(RECORD).unwrap()
    }

    #[test]
    fn every_seed_has_a_family_with_a_record() {
        for (seed, family) in FAMILY_OF_SEED {
            assert!(record().families.contains_key(family), "{family}");
            assert!(FEATURES.iter().any(|feature| feature.seed == seed), "{seed}");
        }
    }

    /// The page that people read, and the record that the program quotes, were written together.
    #[test]
    fn the_record_is_that_of_the_page() {
        let page = include_str!("../../../docs/fidelity.md");
        let record = record();
        let scores = record.families.iter().map(|(family, of)| (family.clone(), &of.score));
        let all: BTreeMap<_, _> = scores.chain([("**all**".to_owned(), &record.overall)]).collect();
        for (family, score) in all {
            let row = page.lines().find(|line| line.starts_with(&format!("| {family} "))).unwrap();
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let right = format!("{} ({} %)", score.right, score.right * 100 / score.scored);
            let error = format!("{:.1}", score.median_error.unwrap());
            assert_eq!(
                cells[2..5],
                [&score.compared.to_string(), &score.scored.to_string(), &right],
                "{family}"
            );
            assert_eq!((cells[6], cells[7]), (error.as_str(), score.null.to_string().as_str()), "{family}");
            let hits = &record.benchmarks.get(&family);
            let sum = |part: fn(&Hits) -> usize| hits.map(|hits| hits.values().map(part).sum::<usize>());
            let parts = [sum(|h| h.scored), sum(|h| h.right), sum(|h| h.null), sum(|h| h.null_ok)];
            let whole = [score.scored, score.right, score.null, score.null_ok];
            assert!(family == "**all**" || parts == whole.map(Some), "{family}: {parts:?}");
        }
        assert!(!record.reliability.is_empty());
        for class in record.reliability {
            let row = page.lines().find(|line| line.starts_with(&format!("| {} ", class.sizes()))).unwrap();
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let change = |pct: f64| format!("{pct:+.1}");
            assert_eq!(cells[2], class.figures.to_string(), "{}", class.sizes());
            assert_eq!(
                cells[4..7],
                [class.low_pct, class.median_pct, class.high_pct].map(change),
                "{}",
                class.sizes()
            );
        }
    }

    #[test]
    fn a_comparison_belongs_to_the_family_of_what_it_switches() {
        let of = |with: &str| {
            let with = [with.to_owned()];
            let options = AdHoc {
                workload: "hackbench",
                machine: "2c",
                profile: Some("linux-6.5"),
                seed: None,
                baseline_with: None,
                with: &with,
            };
            family(&Experiment::of_options(&options).unwrap()).map(str::to_owned)
        };
        assert_eq!(of("WAKEUP_BIAS_PREV").as_deref(), Some("bias_prev"));
        assert_eq!(of("WAKEUP_BIAS_PREV,base_slice_ns=2ms").as_deref(), Some("bias_prev"));
        assert_eq!(of("CACHE_AWARE_WAKEUP").as_deref(), Some("cache_aware"));
        assert_eq!(of("WAKEUP_BIAS_PREV,CACHE_AWARE_WAKEUP"), None, "of two");
        assert_eq!(of("NO_SIS_UTIL"), None, "of none");
        assert_eq!(of("base_slice_ns=2ms"), None);
    }

    #[test]
    fn the_model_has_one_fingerprint() {
        assert_eq!(model().unwrap(), model().unwrap());
    }
}
