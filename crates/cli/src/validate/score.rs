//! What is compared, and how far apart it may be.

use std::collections::BTreeMap;

use coreward_metrics::stats::percentile;
use serde::{Deserialize, Serialize};

use super::observed::Observed;
use super::real::Operation;

/// The figures of a benchmark, real or simulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figures {
    /// As the benchmark measures it, in s.
    pub(super) time_s: f64,
    /// CPU time of one operation (a message, a request), in us.
    pub(super) cpu_us_per_operation: f64,
    /// Operations between two context switches.
    pub(super) operations_per_switch: f64,
    pub(super) switches: f64,
    /// Share of the switches that were preemptions, in percent.
    pub(super) involuntary_pct: f64,
    /// None if they could not be counted.
    pub(super) migrations: Option<f64>,
    /// None if the tracepoints could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) observed: Option<Observed>,
}

impl Figures {
    pub(super) fn new(
        time_s: f64,
        cpu_s: f64,
        (voluntary, involuntary): (f64, f64),
        migrations: Option<f64>,
        operations: f64,
    ) -> Figures {
        let switches = (voluntary + involuntary).max(1.0);
        Figures {
            time_s,
            cpu_us_per_operation: cpu_s * 1e6 / operations.max(1.0),
            operations_per_switch: operations / switches,
            switches,
            involuntary_pct: 100.0 * involuntary / switches,
            migrations,
            observed: None,
        }
    }

    /// Its fields that nothing can make negative, by their names.
    pub(super) fn by_name(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let observed = self.observed.iter().flat_map(|observed| {
            [
                ("wakeup_us_p50", observed.wakeup_us_p50),
                ("wakeup_us_p99", observed.wakeup_us_p99),
                ("run_us_p50", observed.run_us_p50),
                ("run_us_p90", observed.run_us_p90),
            ]
        });
        [
            ("time_s", self.time_s),
            ("cpu_us_per_operation", self.cpu_us_per_operation),
            ("operations_per_switch", self.operations_per_switch),
            ("switches", self.switches),
            ("involuntary_pct", self.involuntary_pct),
            ("migrations", self.migrations.unwrap_or(0.0)),
        ]
        .into_iter()
        .chain(observed)
    }

    /// The median of each figure; of nothing, zeros.
    pub(super) fn median(runs: &[Figures]) -> Figures {
        let median = |of: fn(&Figures) -> f64| {
            percentile(&runs.iter().map(of).collect::<Vec<_>>(), 50.0).unwrap_or(0.0)
        };
        let counted: Option<Vec<f64>> = runs.iter().map(|run| run.migrations).collect();
        let observed: Vec<&Observed> = runs.iter().filter_map(|run| run.observed.as_ref()).collect();
        Figures {
            time_s: median(|run| run.time_s),
            cpu_us_per_operation: median(|run| run.cpu_us_per_operation),
            operations_per_switch: median(|run| run.operations_per_switch),
            switches: median(|run| run.switches),
            involuntary_pct: median(|run| run.involuntary_pct),
            migrations: counted.and_then(|counted| percentile(&counted, 50.0)),
            observed: Observed::median(&observed),
        }
    }
}

/// A benchmark as it ran and as it was simulated.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Pair {
    pub(super) benchmark: String,
    pub(super) real: Figures,
    pub(super) simulated: Figures,
    pub(super) operation: Operation,
    /// The benchmark runs for the time that it is told to.
    pub(super) fixed_time: bool,
    /// How far the real rounds lie apart, in percent of their median, by figure.
    pub(super) spread_pct: BTreeMap<String, f64>,
}

/// The factor that figures are off at most.
pub(super) const MOST_OFF: f64 = 1000.0;

/// A figure that is scored.
pub(super) struct Scored {
    /// Its name in reports.
    pub(super) name: &'static str,
    of: fn(&Figures) -> Option<f64>,
    /// Does a benchmark do enough of it for the real figure to be more than chance?
    enough: fn(&Pair) -> bool,
    /// How far off the median benchmark may be, in percent.
    pub(super) median_pct: f64,
    /// How far off each may be, in percent, if that is limited.
    pub(super) worst_pct: Option<f64>,
}

/// With these tolerances a figure can be used to decide between machines and kernels that differ by more.
pub(super) const SCORED: [Scored; 7] = [
    Scored {
        name: "time",
        of: |f| Some(f.time_s),
        enough: |pair| pair.real.time_s > 0.0 && !pair.fixed_time,
        median_pct: 10.0,
        worst_pct: Some(25.0),
    },
    Scored {
        name: "CPU time an operation",
        of: |f| Some(f.cpu_us_per_operation),
        enough: |pair| pair.real.cpu_us_per_operation > 0.0,
        median_pct: 10.0,
        worst_pct: None,
    },
    Scored {
        name: "operations a switch",
        of: |f| Some(f.operations_per_switch),
        enough: |pair| pair.real.switches > 5000.0,
        median_pct: 15.0,
        worst_pct: None,
    },
    Scored {
        name: "preemptions",
        of: |f| Some(f.involuntary_pct),
        enough: |pair| pair.real.switches * pair.real.involuntary_pct > 100.0 * 1000.0,
        median_pct: 100.0,
        worst_pct: None,
    },
    // a factor of two either way, for each benchmark that migrates often enough for that to mean something
    Scored {
        name: "migrations",
        of: |f| f.migrations,
        enough: |pair| pair.real.migrations > Some(100.0),
        median_pct: 100.0,
        worst_pct: Some(100.0),
    },
    Scored {
        name: "wakeup latency p50",
        of: |f| f.observed.as_ref().map(|o| o.wakeup_us_p50),
        enough: has_wakeups,
        median_pct: 25.0,
        worst_pct: None,
    },
    Scored {
        name: "wakeup latency p99",
        of: |f| f.observed.as_ref().map(|o| o.wakeup_us_p99),
        enough: has_wakeups,
        median_pct: 50.0,
        worst_pct: None,
    },
];

/// A task that blocks is woken. Of fewer wakeups than this the percentiles are chance.
fn has_wakeups(pair: &Pair) -> bool {
    pair.real.switches * (1.0 - pair.real.involuntary_pct / 100.0) > 1000.0
}

/// How a figure fares over all benchmarks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Score {
    pub(super) name: &'static str,
    /// Benchmarks that were scored.
    pub(super) benchmarks: usize,
    /// How far off the median benchmark is, in percent.
    pub(super) median_pct: f64,
    /// How far off the worst one is, in percent.
    pub(super) worst_pct: f64,
    /// Which one that is.
    pub(super) worst: String,
    pub(super) allowed_median_pct: f64,
    pub(super) allowed_worst_pct: Option<f64>,
    pub(super) met: bool,
}

/// One figure of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Compared {
    pub(super) figure: &'static str,
    pub(super) real: f64,
    pub(super) simulated: f64,
    /// Simulated by real.
    pub(super) ratio: f64,
    /// How far off, too high and too low weighing the same, in percent.
    pub(super) off_pct: f64,
    /// How far the real rounds lie apart, in percent of their median, if there was more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spread_pct: Option<f64>,
    /// Is it as near as the median benchmark is to be?
    pub(super) within: bool,
}

impl Pair {
    /// The figures that count.
    pub(super) fn compared(&self) -> Vec<Compared> {
        let compared = |scored: &Scored| {
            let off_pct = scored.off_pct(self)?;
            let (real, simulated) = ((scored.of)(&self.real)?, (scored.of)(&self.simulated)?);
            Some(Compared {
                figure: scored.name,
                real,
                simulated,
                ratio: simulated / real,
                off_pct,
                spread_pct: self.spread_pct.get(scored.name).copied(),
                within: off_pct <= scored.median_pct,
            })
        };
        SCORED.iter().filter_map(compared).collect()
    }
}

/// How far rounds lie apart, from the lowest to the highest, in percent of their median, by figure.
pub(super) fn spread_pct(rounds: &[Figures]) -> BTreeMap<String, f64> {
    let spread = |scored: &Scored| {
        let values: Vec<f64> = rounds.iter().filter_map(scored.of).collect();
        let median = percentile(&values, 50.0).filter(|median| *median > 0.0 && values.len() > 1)?;
        let (low, high) =
            values.iter().fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
        Some((scored.name.to_owned(), 100.0 * (high - low) / median))
    };
    SCORED.iter().filter_map(spread).collect()
}

impl Scored {
    /// How far the simulated figure is off, as a factor above 1 less 1, in percent: too high and too low weigh the same.
    fn off_pct(&self, pair: &Pair) -> Option<f64> {
        let (real, simulated) = ((self.of)(&pair.real)?, (self.of)(&pair.simulated)?);
        // something that does not happen at all is no further off than this
        let factor = (simulated / real).max(real / simulated).min(MOST_OFF);
        (self.enough)(pair).then_some((factor - 1.0) * 100.0)
    }

    /// None if no benchmark has the figure.
    pub(super) fn score(&self, pairs: &[Pair]) -> Option<Score> {
        let off: Vec<(f64, &Pair)> =
            pairs.iter().filter_map(|pair| Some((self.off_pct(pair)?, pair))).collect();
        let (worst_pct, worst) = off.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let median_pct = percentile(&off.iter().map(|(pct, _)| *pct).collect::<Vec<_>>(), 50.0)?;
        let met = median_pct <= self.median_pct && self.worst_pct.is_none_or(|allowed| *worst_pct <= allowed);
        Some(Score {
            name: self.name,
            benchmarks: off.len(),
            median_pct,
            worst_pct: *worst_pct,
            worst: worst.benchmark.clone(),
            allowed_median_pct: self.median_pct,
            allowed_worst_pct: self.worst_pct,
            met,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(benchmark: &str, real: f64, simulated: f64) -> Pair {
        let of = |time_s| Figures { time_s, migrations: Some(50.0 * time_s), ..Figures::default() };
        Pair {
            benchmark: benchmark.to_owned(),
            real: of(real),
            simulated: of(simulated),
            operation: Operation::Message,
            fixed_time: false,
            spread_pct: BTreeMap::new(),
        }
    }

    #[test]
    fn too_high_and_too_low_weigh_the_same() {
        let score = |simulated| SCORED[0].score(&[pair("a", 1.0, simulated)]).unwrap().median_pct;
        assert!((score(2.0) - 100.0).abs() < 1e-9 && (score(0.5) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_and_the_worst_both_count() {
        let pairs = [pair("a", 1.0, 1.0), pair("b", 1.0, 1.05), pair("c", 1.0, 1.3)];
        let score = SCORED[0].score(&pairs).unwrap();
        assert_eq!((score.worst.as_str(), score.met), ("c", false), "one is off by 30 %");
        assert!(SCORED[0].score(&pairs[..2]).unwrap().met);
    }

    #[test]
    fn what_is_missing_in_the_simulation_is_off_by_a_number() {
        let mut pair = pair("a", 1.0, 1.0);
        (pair.real.switches, pair.real.involuntary_pct) = (10_000.0, 20.0);
        let score = SCORED[3].score(std::slice::from_ref(&pair)).unwrap();
        assert_eq!((score.name, score.met, score.median_pct), ("preemptions", false, 99_900.0));
    }

    #[test]
    fn few_migrations_are_chance() {
        assert!(SCORED[4].score(&[pair("a", 1.0, 4.0)]).is_none(), "50 migrations");
        assert!(!SCORED[4].score(&[pair("a", 3.0, 9.0)]).unwrap().met, "150, and three times as many");
    }

    #[test]
    fn a_time_that_is_given_is_no_result() {
        let fixed = Pair { fixed_time: true, ..pair("a", 3.0, 3.0) };
        assert!(SCORED[0].score(std::slice::from_ref(&fixed)).is_none());
        assert_eq!(fixed.compared().len(), 1, "but its migrations are");
    }

    #[test]
    fn latencies_are_scored_where_they_were_recorded() {
        let mut pair = pair("a", 1.0, 1.0);
        let observed =
            |p50, p99| Some(Observed { wakeup_us_p50: p50, wakeup_us_p99: p99, ..Observed::default() });
        assert!(SCORED[5].score(std::slice::from_ref(&pair)).is_none());
        (pair.real.observed, pair.simulated.observed) = (observed(10.0, 100.0), observed(12.0, 160.0));
        (pair.real.switches, pair.real.involuntary_pct) = (10_000.0, 95.0);
        assert!(SCORED[5].score(std::slice::from_ref(&pair)).is_none(), "500 wakeups");
        pair.real.involuntary_pct = 20.0;
        assert!(SCORED[5].score(std::slice::from_ref(&pair)).unwrap().met, "20 % of 25 allowed");
        assert!(!SCORED[6].score(std::slice::from_ref(&pair)).unwrap().met, "60 % of 50 allowed");
    }

    #[test]
    fn a_figure_is_compared_with_ratio_spread_and_verdict() {
        let rounds: Vec<Figures> = [1.0, 0.9, 1.1].map(|time_s| pair("a", time_s, 0.0).real).to_vec();
        let pair = Pair { spread_pct: spread_pct(&rounds), ..pair("a", 1.0, 1.3) };
        let compared = pair.compared();
        assert_eq!((compared[0].figure, compared[0].within), ("time", false));
        assert!((compared[0].ratio - 1.3).abs() < 1e-9 && (compared[0].off_pct - 30.0).abs() < 1e-9);
        assert!((compared[0].spread_pct.unwrap() - 20.0).abs() < 1e-9);
        assert!(spread_pct(&rounds[..1]).is_empty());
    }

    #[test]
    fn figures_worked_by_hand() {
        let f = Figures::new(1.0, 2.0, (75.0, 25.0), None, 1e6);
        assert_eq!((f.cpu_us_per_operation, f.operations_per_switch, f.involuntary_pct), (2.0, 1e4, 25.0));
    }
}
