//! What is compared, and how far apart it may be.

use coreward_metrics::stats::percentile;
use serde::Serialize;

/// The figures of a benchmark, real or simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
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
        }
    }

    /// The median of each figure; of nothing, zeros.
    pub(super) fn median(runs: &[Figures]) -> Figures {
        let median = |of: fn(&Figures) -> f64| {
            percentile(&runs.iter().map(of).collect::<Vec<_>>(), 50.0).unwrap_or(0.0)
        };
        let counted: Option<Vec<f64>> = runs.iter().map(|run| run.migrations).collect();
        Figures {
            time_s: median(|run| run.time_s),
            cpu_us_per_operation: median(|run| run.cpu_us_per_operation),
            operations_per_switch: median(|run| run.operations_per_switch),
            switches: median(|run| run.switches),
            involuntary_pct: median(|run| run.involuntary_pct),
            migrations: counted.and_then(|counted| percentile(&counted, 50.0)),
        }
    }
}

/// A benchmark as it ran and as it was simulated.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Pair {
    pub(super) benchmark: String,
    pub(super) real: Figures,
    pub(super) simulated: Figures,
}

/// A figure that is scored.
pub(super) struct Scored {
    /// Its name in reports.
    pub(super) name: &'static str,
    of: fn(&Figures) -> Option<f64>,
    /// Does a benchmark do enough of it for the real figure to be more than chance?
    enough: fn(&Figures) -> bool,
    /// How far off the median benchmark may be, in percent.
    pub(super) median_pct: f64,
    /// How far off each may be, in percent, if that is limited.
    pub(super) worst_pct: Option<f64>,
}

/// With these tolerances a figure can be used to decide between machines and kernels that differ by more.
pub(super) const SCORED: [Scored; 4] = [
    Scored {
        name: "time",
        of: |f| Some(f.time_s),
        enough: |f| f.time_s > 0.0,
        median_pct: 10.0,
        worst_pct: Some(25.0),
    },
    Scored {
        name: "CPU time an operation",
        of: |f| Some(f.cpu_us_per_operation),
        enough: |f| f.cpu_us_per_operation > 0.0,
        median_pct: 10.0,
        worst_pct: None,
    },
    Scored {
        name: "operations a switch",
        of: |f| Some(f.operations_per_switch),
        enough: |f| f.switches > 5000.0,
        median_pct: 15.0,
        worst_pct: None,
    },
    // a factor of two either way, for each benchmark that migrates often enough for that to mean something
    Scored {
        name: "migrations",
        of: |f| f.migrations,
        enough: |f| f.migrations > Some(100.0),
        median_pct: 100.0,
        worst_pct: Some(100.0),
    },
];

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

impl Scored {
    /// How far the simulated figure is off, as a factor above 1 less 1, in percent: too high and too low weigh the same.
    fn off_pct(&self, pair: &Pair) -> Option<f64> {
        let (real, simulated) = ((self.of)(&pair.real)?, (self.of)(&pair.simulated)?);
        let factor = (simulated / real).max(real / simulated);
        (self.enough)(&pair.real).then_some((factor - 1.0) * 100.0)
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
        Pair { benchmark: benchmark.to_owned(), real: of(real), simulated: of(simulated) }
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
    fn few_migrations_are_chance() {
        assert!(SCORED[3].score(&[pair("a", 1.0, 4.0)]).is_none(), "50 migrations");
        assert!(!SCORED[3].score(&[pair("a", 3.0, 9.0)]).unwrap().met, "150, and three times as many");
    }

    #[test]
    fn figures_worked_by_hand() {
        let f = Figures::new(1.0, 2.0, (75.0, 25.0), None, 1e6);
        assert_eq!((f.cpu_us_per_operation, f.operations_per_switch, f.involuntary_pct), (2.0, 1e4, 25.0));
    }
}
