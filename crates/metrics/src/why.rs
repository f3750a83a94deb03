//! Why a variant is faster or slower: the CPU time of a message or event by part, before and after.
//!
//! All CPUs' time is divided by the work that was done, so a benchmark of fixed length and one of fixed work read alike:
//! the sum of the parts is the inverse of the throughput, and its change is all that there is to explain.

use std::fmt::Write;

use crate::compare::{Comparison, Side, Variant};
use crate::cpu_time::{CpuTime, Part};
use crate::registry::Metric;
use crate::stats::ALPHA;

/// What the CPU time is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Message,
    Event,
    Run,
}

impl Unit {
    /// Of a comparison: what both sides did.
    fn of(base: &Side, variant: &Side) -> Unit {
        let both = |metric| [base, variant].iter().all(|side| side.metrics.contains_key(&metric));
        match () {
            () if both(Metric::messages_per_s) => Unit::Message,
            () if both(Metric::events) => Unit::Event,
            () => Unit::Run,
        }
    }

    /// What the sum of all parts is the inverse of, or what it is proportional to.
    fn whole(self) -> Metric {
        match self {
            Unit::Message => Metric::messages_per_s,
            Unit::Event => Metric::events_per_s,
            Unit::Run => Metric::runtime_s,
        }
    }

    /// How many a side did in all its runs.
    fn done(self, side: &Side) -> f64 {
        let sum = |metric| side.values.get(&metric).into_iter().flatten().flatten().sum::<f64>();
        let values = |metric| side.values.get(&metric).into_iter().flatten().copied();
        match self {
            Unit::Message => values(Metric::messages_per_s)
                .zip(values(Metric::runtime_s))
                .filter_map(|(rate, time)| Some(rate? * time?))
                .sum(),
            Unit::Event => sum(Metric::events),
            Unit::Run => side.runs as f64,
        }
    }

    /// The unit of the table's figures, and how many ns it is.
    fn scale(self) -> (&'static str, f64) {
        match self {
            Unit::Message => ("us of CPU time a message", 1e3),
            Unit::Event => ("us of CPU time an event", 1e3),
            Unit::Run => ("s of CPU time a run", 1e9),
        }
    }
}

/// A difference of less than this part of the time is no difference: shares of it would be of thousands of percent.
const LEAST: f64 = 1e-4;

/// A part of the difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    pub(crate) part: Part,
    pub(crate) base: f64,
    pub(crate) variant: f64,
    /// Of the whole difference, in percent; `None` if there is none.
    pub(crate) share_pct: Option<f64>,
}

/// Says so if the runs do not show that the whole differs: the parts then differ by chance, and shares of that would
/// mislead.
pub(crate) fn chance(base: &Side, variant: &Variant) -> Option<String> {
    let whole = Unit::of(base, &variant.side).whole();
    let p_value = variant.p_value.get(&whole).copied().flatten()?;
    (p_value >= ALPHA).then(|| {
        format!(
            "no change of {} is shown, so these differences may be chance and have no shares",
            whole.name()
        )
    })
}

/// The parts that either side has, and the unit of their values.
pub(crate) fn rows(base: &Side, variant: &Variant) -> (&'static str, Vec<Row>) {
    let shares = chance(base, variant).is_none();
    let variant = &variant.side;
    let unit = Unit::of(base, variant);
    let (name, ns) = unit.scale();
    let per = |side: &Side, time: u64| time as f64 / ns / unit.done(side).max(f64::MIN_POSITIVE);
    let total = |side: &Side| per(side, side.cpu_time_s.total_ns());
    let whole = total(variant) - total(base);
    let differ = shares && whole.abs() > LEAST * total(base);
    let row = |&part: &Part| {
        let (base, variant) =
            (per(base, base.cpu_time_s.ns(part)), per(variant, variant.cpu_time_s.ns(part)));
        let share_pct = differ.then(|| 100.0 * (variant - base) / whole);
        (base > 0.0 || variant > 0.0).then_some(Row { part, base, variant, share_pct })
    };
    (name, Part::ALL.iter().filter_map(row).collect())
}

/// The table of each variant beside the baseline.
pub fn render(comparison: &Comparison) -> String {
    comparison.variants.iter().map(|variant| table(&comparison.baseline, variant)).collect()
}

fn table(base: &Side, variant: &Variant) -> String {
    let (unit, rows) = rows(base, variant);
    let mut out = String::new();
    _ = writeln!(
        out,
        "why {} differs from {}: {unit}, all CPUs, idle ones too",
        variant.side.label, base.label
    );
    _ = writeln!(out, "{:>12}{:>12}{:>12}{:>9}  part", "before", "after", "difference", "share");
    let mut line = |base: f64, variant: f64, share: Option<f64>, name: &str, meaning: &str| {
        let share = share.map_or("-".into(), |share| format!("{share:.1}%"));
        let text =
            format!("{base:12.4}{variant:12.4}{:12.4} {share:>8}  {name:14} {meaning}", variant - base);
        _ = writeln!(out, "{}", text.trim_end());
    };
    for row in &rows {
        line(row.base, row.variant, row.share_pct, row.part.name(), row.part.meaning());
    }
    let sum = |of: fn(&Row) -> f64| rows.iter().map(of).sum::<f64>();
    let share = rows.iter().map(|row| row.share_pct).sum::<Option<f64>>();
    line(sum(|row| row.base), sum(|row| row.variant), share, "all", "");
    if let Some(chance) = chance(base, variant) {
        _ = writeln!(out, "note: {chance}");
    }
    out
}

/// The parts of a run's time and their shares.
pub fn parts(time: &CpuTime) -> String {
    let total = time.total_ns().max(1) as f64;
    let mut out = format!("{:>14} {:>7}  part\n", "CPU time s", "share");
    for part in Part::ALL.iter().filter(|part| time.ns(**part) > 0) {
        let ns = time.ns(*part) as f64;
        let text =
            format!("{:14.6} {:6.2}%  {:14} {}", ns / 1e9, 100.0 * ns / total, part.name(), part.meaning());
        _ = writeln!(out, "{}", text.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Runs;
    use crate::cpu_time::PARTS;
    use crate::registry::Metrics;

    /// Two runs of a second in which a machine passes this many messages.
    fn side(label: &str, messages: [f64; 2], parts: &[(Part, u64)]) -> Runs {
        let mut ns = [0; PARTS];
        parts.iter().for_each(|(part, time)| ns[*part as usize] = *time);
        let run = |messages| -> Metrics {
            [(Metric::runtime_s, 1.0), (Metric::messages_per_s, messages)].into_iter().collect()
        };
        let cpu_time = CpuTime::new(ns);
        Runs { label: label.into(), runs: messages.map(run).into(), cpu_time, ..Runs::default() }
    }

    fn comparison(base: Runs, variant: Runs) -> Comparison {
        Comparison::new("e", &[Metric::messages_per_s], base, vec![variant], Vec::new(), Vec::new())
    }

    #[test]
    fn the_shares_of_the_difference_sum_to_100_percent() {
        // 4 s of CPU time for 2000 and for 4000 messages: 2000 and 1000 us a message
        let base =
            side("before", [999.0, 1001.0], &[(Part::Task, 2_000_000_000), (Part::RqLock, 2_000_000_000)]);
        let after = [(Part::Task, 2_400_000_000), (Part::RqLock, 1_200_000_000), (Part::Idle, 400_000_000)];
        let c = comparison(base, side("after", [1999.0, 2001.0], &after));
        let (unit, rows) = rows(&c.baseline, &c.variants[0]);
        assert_eq!(unit, "us of CPU time a message");
        let shown: Vec<_> =
            rows.iter().map(|r| (r.part, r.base, r.variant, r.share_pct.unwrap().round())).collect();
        assert_eq!(
            shown,
            [
                (Part::Task, 1000.0, 600.0, 40.0),
                (Part::RqLock, 1000.0, 300.0, 70.0),
                (Part::Idle, 0.0, 100.0, -10.0)
            ]
        );
        let text = render(&c);
        assert!(text.lines().last().unwrap().contains("100.0%"), "{text}");
    }

    #[test]
    fn what_may_be_chance_has_no_shares() {
        let time = [(Part::Task, 1_000_000_000)];
        let c = comparison(side("before", [900.0, 1100.0], &time), side("after", [1000.0, 1150.0], &time));
        let text = render(&c);
        let note = "note: no change of messages_per_s is shown, so these differences may be chance and have no shares\n";
        assert!(text.contains("-  all\n") && text.ends_with(note), "{text}");
    }

    #[test]
    fn equal_sides_have_nothing_to_explain() {
        let run = || side("same", [1000.0; 2], &[(Part::Task, 1_000_000_000)]);
        let nearly = side("nearly", [1000.0; 2], &[(Part::Task, 999_990_000), (Part::Idle, 10_100)]);
        for other in [run(), nearly] {
            let text = render(&comparison(run(), other));
            assert!(text.contains("-  all\n"), "{text}");
        }
    }
}
