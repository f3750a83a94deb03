//! How many runs a comparison makes: a number, or as many as it takes to know the first headline metric well enough.

use std::time::{Duration, Instant};

use coreward_metrics::Comparison;
use coreward_metrics::sequential::{self, FIRST_LOOK};

use crate::caller;
use crate::experiment::MAX_RUNS;

/// When a comparison stops adding runs; as a default, it adds none.
#[derive(Default)]
pub(crate) struct Effort {
    /// The largest half-width of the first headline metric's 95 % interval, in percentage points.
    precision_pct: Option<f64>,
    budget: Option<Budget>,
}

struct Budget {
    start: Instant,
    length: Duration,
}

impl Effort {
    /// What the options ask for; a budget begins now.
    pub(crate) fn new(precision_pct: Option<f64>, budget: Option<Duration>) -> Effort {
        let budget = budget.map(|length| Budget { start: Instant::now(), length });
        Effort { precision_pct, budget }
    }

    /// The number of runs of a side to begin with.
    pub(crate) fn first_runs(&self, asked: u32) -> usize {
        let at_least = if self.adds_runs() { FIRST_LOOK } else { 1 };
        (asked as usize).max(at_least)
    }

    pub(crate) fn adds_runs(&self) -> bool {
        self.precision_pct.is_some() || self.budget.is_some()
    }

    /// The number of runs of a side after the next round, if there is to be one. What is decided by depends on the
    /// runs alone, unless a budget is short.
    pub(crate) fn next_runs(&self, comparison: &Comparison) -> Option<usize> {
        let runs = comparison.baseline.runs;
        if !self.adds_runs() || runs >= MAX_RUNS as usize {
            return None;
        }
        let wanted = match self.precision_pct {
            Some(target) => sequential::next_runs(comparison, target)?,
            None => 2 * runs,
        };
        Some(wanted.min(MAX_RUNS as usize))
    }

    /// How many of a round's runs the budget allows, if `made` runs have taken all of the time that has passed.
    pub(crate) fn affordable(&self, made: usize) -> usize {
        let Some(Budget { start, length }) = &self.budget else { return usize::MAX };
        let passed = start.elapsed();
        let each = passed.as_secs_f64() / made.max(1) as f64;
        (length.saturating_sub(passed).as_secs_f64() / each) as usize
    }

    /// Says on standard error how far a comparison is that adds runs.
    pub(crate) fn say(&self, comparison: &Comparison) {
        if !self.adds_runs() {
            return;
        }
        let case = comparison.case.as_deref().map(|case| format!("{case}: ")).unwrap_or_default();
        let asked = self.precision_pct.map(|target| format!(" (asked: ±{target})")).unwrap_or_default();
        let (runs, metric, reached) =
            (comparison.baseline.runs, first_metric(comparison), reached(comparison));
        let line = format!("{case}{runs} runs a side, CI95 of {metric} is {reached}{asked}");
        caller::progress(&line);
    }

    /// What to say of a comparison that has made its runs.
    pub(crate) fn note(&self, comparison: &Comparison) -> Option<String> {
        if !self.adds_runs() {
            return None;
        }
        let (metric, reached) = (first_metric(comparison), reached(comparison));
        let end = match self.precision_pct {
            Some(target) if sequential::half_width(comparison).is_some_and(|width| width <= target) => {
                format!("as --precision {target}% asks")
            }
            Some(target) => format!("not the ±{target} of --precision"),
            None => "when the budget ended".into(),
        };
        Some(format!(
            "runs were added until there were {} a side; CI95 of {metric} is {reached}, {end}. \
             The command above, with --runs, repeats exactly these runs",
            comparison.baseline.runs
        ))
    }
}

fn first_metric(comparison: &Comparison) -> &'static str {
    comparison.headline.first().map_or("the first metric", |metric| metric.name())
}

/// How well the first headline metric is known.
fn reached(comparison: &Comparison) -> String {
    match sequential::half_width(comparison) {
        Some(width) => format!("±{width:.2} points"),
        None => "unknown".into(),
    }
}

/// Reads `2%` or `2`.
///
/// # Errors
/// It is no percentage from 0.01 to 100.
pub(crate) fn precision(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|percent| (0.01..=100.0).contains(percent))
        .ok_or_else(|| "allowed are 0.01% to 100%".into())
}

/// Reads `90s`, `5m`, `1h`; without a unit, a number is of seconds.
///
/// # Errors
/// It is no time from 1 s to a week.
pub(crate) fn budget(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (1..=7 * 24 * 3600).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| "allowed are 1s to 168h, as in 90s, 5m, 2h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_as_people_write_them() {
        assert_eq!((precision("2%"), precision("0.5")), (Ok(2.0), Ok(0.5)));
        for wrong in ["", "%", "0", "101%", "nan", "2 %"] {
            assert!(precision(wrong).is_err(), "{wrong}");
        }
        let seconds = |text| budget(text).map(|time| time.as_secs());
        assert_eq!(
            (seconds("90"), seconds("90s"), seconds("5m"), seconds("2h")),
            (Ok(90), Ok(90), Ok(300), Ok(7200))
        );
        for wrong in ["", "s", "0s", "1.5m", "169h", "5d", "99999999999999999999s", "18446744073709551615h"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }
}
