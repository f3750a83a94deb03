//! Text tables of a comparison, in the format of mmtests' `compare-mmtests`.
//!
//! A column holds a value in 12 characters and its `(delta%)` from the baseline, where + means better. A significant
//! delta of a headline metric is enclosed in asterisks instead of parentheses, a notable one of another metric in tildes. The label of a column takes two header lines.

use std::fmt::Write;

use crate::compare::{Comparison, Variant};
use crate::published::PublishedBesideSimulated;
use crate::registry::Metric;
use crate::stats::{self, Summary};
use crate::verdict;

/// Width of a column: `%12.2f (%7.2f%%)`.
const COLUMN: usize = 23;
/// Width of the value in a column, with the space before it.
const VALUE: usize = 12;

/// The whole report: the comparison with all its metrics, what it says, and the published figures beside the simulated.
///
/// The headline metrics, those that the experiment is about, come first and with their spread.
///
/// Of the exploratory metrics it has those that differ most clearly, at most `FEW`, or all.
pub fn render(comparison: &Comparison, all: bool) -> String {
    let exploratory = exploratory(comparison);
    let shown = if all { exploratory.clone() } else { clearest(comparison, &exploratory) };
    let rows = rows(comparison, &shown);
    let mut out = comparison.experiment.clone();
    if let Some(case) = &comparison.case {
        _ = write!(out, ": {case}");
    }
    out.push('\n');
    let title_width = rows.iter().map(|row| row.title.len()).max().unwrap_or(0);
    header(&mut out, comparison, title_width);
    for row in &rows {
        _ = write!(out, "{:title_width$}", row.title);
        row.cells.iter().for_each(|cell| out.push_str(cell));
        out.push('\n');
    }
    let left_out = exploratory.len() - shown.len();
    if left_out > 0 {
        _ = writeln!(out, "{left_out} more exploratory metrics: --all, --json or --html");
    }
    out.push('\n');
    out.push_str(&verdict::legend(comparison));
    if !comparison.published.is_empty() {
        out.push('\n');
        out.push_str(&published(comparison));
    }
    if !comparison.notes.is_empty() || !comparison.broken.is_empty() {
        out.push('\n');
    }
    for note in &comparison.notes {
        _ = writeln!(out, "note: {note}");
    }
    for broken in &comparison.broken {
        _ = writeln!(out, "note: broken: {broken}");
    }
    out
}

/// The two header lines with the labels of the columns.
fn header(out: &mut String, comparison: &Comparison, title_width: usize) {
    let labels =
        std::iter::once(&comparison.baseline.label).chain(comparison.variants.iter().map(|v| &v.side.label));
    let lines: Vec<(String, String)> = labels.map(|label| split_label(label)).collect();
    for line in [lines.iter().map(|l| &l.0).collect::<Vec<_>>(), lines.iter().map(|l| &l.1).collect()] {
        let text: String = line.iter().map(|part| format!("{part:>COLUMN$}")).collect();
        _ = writeln!(out, "{}", format!("{:title_width$}{text}", "").trim_end());
    }
}

/// Splits a label over two lines, each truncated to the column: a kernel release goes above its suffix
/// (`6.5.0-rc1` above `patched`), a long label is broken at the column, a short one stands on the lower line.
fn split_label(label: &str) -> (String, String) {
    let room = COLUMN - 1;
    let fit = |text: &str| text.chars().take(room).collect::<String>();
    let release = label.find('-').filter(|_| label.starts_with(|c: char| c.is_ascii_digit())).map(|dash| {
        let suffix = &label[dash + 1..];
        let past_rc = suffix.find('-').filter(|_| suffix.starts_with("rc"));
        past_rc.map_or(dash, |next| dash + 1 + next)
    });
    match release {
        Some(dash) => (fit(&label[..dash]), fit(&label[dash + 1..])),
        None if label.chars().count() <= room => (String::new(), label.into()),
        None => (fit(label), fit(&label.chars().skip(room).collect::<String>())),
    }
}

/// A row of the comparison, ready to print.
#[derive(Clone)]
struct Row {
    title: String,
    cells: Vec<String>,
}

/// What a row shows of a summary.
type Statistic = fn(&Summary) -> Option<f64>;

/// The rows of a headline metric: title and statistic. The mean's delta is the one that is tested.
const HEADLINE_ROWS: [(&str, Statistic); 5] = [
    ("Min", |s| Some(s.min)),
    ("Amean", |s| Some(s.mean)),
    ("Stddev", |s| s.std),
    ("CoeffVar", Summary::coeff_var_pct),
    ("Max", |s| Some(s.max)),
];

/// Exploratory metrics that are shown unless all are asked for: with two headline metrics, the table is a screenful.
const FEW: usize = 12;

fn is_present(comparison: &Comparison, metric: Metric) -> bool {
    comparison.baseline.metrics.contains_key(&metric)
        || comparison.variants.iter().any(|variant| variant.side.metrics.contains_key(&metric))
}

/// The metrics that the comparison is not about, in the order of the registry.
fn exploratory(comparison: &Comparison) -> Vec<Metric> {
    let others = Metric::ALL.iter().copied().filter(|metric| !comparison.headline.contains(metric));
    others.filter(|metric| is_present(comparison, *metric)).collect()
}

/// Those of which a variant differs most clearly by its p-value, in the same order; without tests, the first ones.
fn clearest(comparison: &Comparison, exploratory: &[Metric]) -> Vec<Metric> {
    let p = |metric: &Metric| {
        let of = |variant: &Variant| variant.p_value.get(metric).copied().flatten();
        comparison.variants.iter().filter_map(of).fold(1.0, f64::min)
    };
    let mut ranked: Vec<(f64, usize)> = exploratory.iter().map(p).zip(0..).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut first: Vec<usize> = ranked.into_iter().take(FEW).map(|(_, index)| index).collect();
    first.sort_unstable();
    first.into_iter().map(|index| exploratory[index]).collect()
}

fn rows(comparison: &Comparison, exploratory: &[Metric]) -> Vec<Row> {
    let of_headline = |&metric: &Metric| {
        let mut rows = HEADLINE_ROWS.map(|(statistic, of)| row(comparison, metric, statistic, of)).to_vec();
        // behind the mean
        rows.insert(2, interval_row(comparison, metric));
        rows
    };
    let headline = comparison.headline.iter().filter(|metric| is_present(comparison, **metric));
    let others = exploratory.iter().map(|&metric| row(comparison, metric, "Amean", |s| Some(s.mean)));
    headline.flat_map(of_headline).chain(others).collect()
}

/// Which changes of a metric's mean the runs do not exclude.
fn interval_row(comparison: &Comparison, metric: Metric) -> Row {
    let of = |variant: &Variant| match variant.interval_pct.get(&metric).copied().flatten() {
        Some((low, high)) => interval(low, high),
        None => "-".into(),
    };
    let cells = std::iter::once(String::new()).chain(comparison.variants.iter().map(of));
    Row {
        title: format!("{:8} {}", "CI95", metric.name()),
        cells: cells.map(|cell| format!("{cell:>COLUMN$}")).collect(),
    }
}

fn row(comparison: &Comparison, metric: Metric, statistic: &str, of: Statistic) -> Row {
    let base = comparison.baseline.metrics.get(&metric).and_then(of);
    let values: Vec<Option<f64>> =
        comparison.variants.iter().map(|variant| variant.side.metrics.get(&metric).and_then(of)).collect();
    let decimals = match statistic {
        "CoeffVar" => 2,
        _ => decimals(metric, comparison.baseline.metrics.get(&metric)),
    };
    // Less spread is better whatever the metric.
    let better = match statistic {
        "Stddev" | "CoeffVar" => crate::Better::Lower,
        _ => metric.better(),
    };
    let mut cells = vec![cell(base, base.map(|_| 0.0), PLAIN, decimals)];
    for (variant, &value) in comparison.variants.iter().zip(&values) {
        let delta = base.zip(value).and_then(|(base, value)| stats::delta_pct(better, base, value));
        let marks = if statistic == "Amean" { marks(variant, metric) } else { PLAIN };
        cells.push(cell(value, delta, marks, decimals));
    }
    Row { title: format!("{statistic:8} {}", metric.name()), cells }
}

/// Decimals of a metric: mmtests prints seconds with four and the rest with two; small values get three more.
pub(crate) fn decimals(metric: Metric, base: Option<&Summary>) -> usize {
    let usual = if metric.unit() == "s" { 4 } else { 2 };
    match base {
        Some(base) if base.mean != 0.0 && base.mean.abs() < 10.0_f64.powi(1 - usual as i32) => usual + 3,
        _ => usual,
    }
}

/// What encloses a delta that is not marked.
const PLAIN: (char, char) = ('(', ')');

/// What encloses the delta of a metric.
fn marks(variant: &Variant, metric: Metric) -> (char, char) {
    match variant.verdict(metric) {
        Some(verdict) if verdict.is_significant() => ('*', '*'),
        None if variant.is_notable(metric) => ('~', '~'),
        _ => PLAIN,
    }
}

fn cell(value: Option<f64>, delta: Option<f64>, (open, close): (char, char), decimals: usize) -> String {
    let Some(value) = value else {
        return format!("{:>COLUMN$}", "-");
    };
    format!("{} {open}{:>8}{close}", number(value, decimals), percent(delta))
}

/// A value right-aligned in [`VALUE`] characters, with as many of the decimals as fit.
fn number(value: f64, decimals: usize) -> String {
    (0..=decimals)
        .rev()
        .map(|decimals| format!("{value:VALUE$.decimals$}"))
        .find(|text| text.len() < VALUE || text.starts_with(' '))
        .unwrap_or_else(|| format!("{value:VALUE$.4e}"))
}

/// The ends of an interval of changes.
pub(crate) fn interval(low: f64, high: f64) -> String {
    format!("[{}, {}]", percent(Some(low)), percent(Some(high)))
}

/// A change to two decimals, `-` if there is none.
pub(crate) fn percent(delta: Option<f64>) -> String {
    match delta {
        // Adding 0 turns the -0.00 of a tiny loss into 0.00.
        Some(delta) => format!("{:.2}%", (delta * 100.0).round() / 100.0 + 0.0),
        None => "-".into(),
    }
}

/// The published figures beside the simulated ones, and by how many percentage points the changes differ (simulated less
/// published). A row is about the first variant unless its source names another.
pub fn published(comparison: &Comparison) -> String {
    let titles = comparison.published.iter().map(|row| row.metric_and_statistic().len());
    let width = titles.max().unwrap_or(0).max("metric".len());
    let sides = VALUE * 2 + 10;
    let simulated =
        comparison.variants.first().map_or("simulated".into(), |v| format!("simulated: {}", v.side.label));
    let simulated: String = simulated.chars().take(sides - 2).collect();
    let mut out =
        format!("{:width$} |{:^sides$}|{simulated:^sides$}|\n{:width$} ", "", "published", "metric");
    for _ in 0..2 {
        _ = write!(out, "|{:>VALUE$}{:>VALUE$}{:>9} ", "before", "after", "delta");
    }
    out.push_str("|  points  source\n");
    for row in comparison.published_beside_simulated() {
        out.push_str(&published_row(&row, width));
    }
    out
}

fn published_row(row: &PublishedBesideSimulated<'_>, width: usize) -> String {
    let decimals = row.metric.map_or(2, |metric| decimals(metric, row.baseline));
    let side = |before: Option<f64>, after: Option<f64>, delta| {
        let value = |v: Option<f64>| v.map_or_else(|| format!("{:>VALUE$}", "-"), |v| number(v, decimals));
        format!("|{}{}{:>9} ", value(before), value(after), percent(delta))
    };
    let points = row.points.map_or("-".into(), |points| format!("{points:+.2}"));
    let published = row.published;
    let value = |summary: Option<&Summary>| summary.and_then(|s| s.statistic(published.statistic));
    format!(
        "{:width$} {}{}|{points:>8}  {}\n",
        published.metric_and_statistic(),
        side(published.baseline, published.patched, published.delta_pct),
        side(value(row.baseline), value(row.patched), row.delta_pct),
        published.source_and_note(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Runs, example, golden};

    #[test]
    fn golden_report() {
        golden("table.txt", &render(&example(), false));
    }

    #[test]
    fn cells_are_as_mmtests_prints_them() {
        // From a schbench report of mmtests: 6 us before, 5 us after.
        let cells = cell(Some(6.0), Some(0.0), PLAIN, 2) + &cell(Some(5.0), Some(100.0 / 6.0), PLAIN, 2);
        assert_eq!(cells, "        6.00 (   0.00%)        5.00 (  16.67%)");
        assert_eq!(cell(Some(1.2400), Some(11.28), ('*', '*'), 4), "      1.2400 *  11.28%*");
        assert_eq!(cell(Some(0.0), None, PLAIN, 2), "        0.00 (       -)");
        assert_eq!(cell(None, None, PLAIN, 2), "                      -");
    }

    #[test]
    fn large_values_lose_decimals_before_they_touch_their_neighbour() {
        assert_eq!(number(118_000_000.0, 2), " 118000000.0");
        assert_eq!(number(6_100_000_000.0, 2), "  6100000000");
        assert_eq!(number(6.1e15, 2), "   6.1000e15");
        assert_eq!(number(-1.5, 2), "       -1.50");
    }

    #[test]
    fn a_tiny_loss_is_not_minus_zero() {
        assert_eq!(percent(Some(-0.001)), "0.00%");
        assert_eq!(percent(Some(-0.006)), "-0.01%");
    }

    #[test]
    fn labels_take_two_lines() {
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(split_label("5.15.0-rc3-vanilla"), pair("5.15.0-rc3", "vanilla"));
        assert_eq!(split_label("5.7.0-nofsnotify-v1r1"), pair("5.7.0", "nofsnotify-v1r1"));
        assert_eq!(split_label("6.5-rc1"), pair("6.5", "rc1"));
        assert_eq!(split_label("linux-6.5"), pair("", "linux-6.5"));
        assert_eq!(
            split_label("linux-6.5 with WAKEUP_BIAS_PREV"),
            pair("linux-6.5 with WAKEUP_", "BIAS_PREV")
        );
        assert_eq!(split_label(&"é".repeat(60)), ("é".repeat(22), "é".repeat(22)));
        assert_eq!(split_label(""), pair("", ""));
    }

    /// The clearest ones are shown, in the registry's order, and the rest is counted.
    #[test]
    fn exploratory_rows_are_a_screenful_unless_all_are_asked_for() {
        let side = |differs: f64| Runs {
            label: "x".into(),
            runs: (0..4)
                .map(|i| {
                    let clear = [Metric::sim_events, Metric::busy_s];
                    let value =
                        |m: &Metric| 10.0 + f64::from(i) + if clear.contains(m) { differs } else { 0.0 };
                    Metric::ALL.iter().map(|m| (*m, value(m))).collect()
                })
                .collect(),
            seed: differs as u64,
            ..Runs::default()
        };
        let headline = [Metric::runtime_s, Metric::cpu_migrations];
        let comparison = Comparison::new("e", &headline, side(0.0), vec![side(50.0)], vec![], vec![]);
        let (few, all) = (render(&comparison, false), render(&comparison, true));
        let rows = |text: &str| text.lines().filter(|line| line.starts_with("Amean")).count();
        assert_eq!((rows(&few), rows(&all)), (2 + FEW, Metric::ALL.len()));
        let left_out = Metric::ALL.len() - 2 - FEW;
        assert!(few.contains(&format!("\n{left_out} more exploratory metrics: --all, ")), "{few}");
        assert!(!all.contains("more exploratory"));
        let at =
            |name: &str| few.find(&format!("Amean    {name} ")).unwrap_or_else(|| panic!("{name}: {few}"));
        assert!(at("busy_s") < at("sim_events"));
    }

    #[test]
    fn single_runs_are_said_to_be_untested() {
        let one = |value| Runs {
            label: "x".into(),
            runs: vec![[(Metric::runtime_s, value)].into_iter().collect()],
            ..Runs::default()
        };
        let comparison = Comparison::new("e", &[], one(2.0), vec![one(1.0)], vec![], vec![]);
        let report = render(&comparison, false);
        assert!(report.contains("\nx: not tested, it takes two runs a side\n"), "{report}");
        assert!(report.contains("Amean    runtime_s      2.0000 (   0.00%)      1.0000 (  50.00%)"));
    }
}
