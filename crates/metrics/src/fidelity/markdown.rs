//! The agreement of simulated and published changes as a Markdown page.

use std::fmt::Write;

use super::{
    EFFECT_SPREADS, Family, FamilyFit, Fidelity, Fit, Level, ROW_SPREAD_UNKNOWN, Reliability, Row, Score,
};
use crate::ablation::{self, delta};
use crate::markdown::{escape, table};
use crate::stats::Statistic;

/// The page. Nothing in it depends on the local machine or the time of day.
pub fn render(fidelity: &Fidelity) -> String {
    let mut out = String::from("# Published and simulated changes\n\n");
    out.push_str("`coreward fidelity` wrote this page (`make fidelity`); changes by hand are lost.\n\n");
    let intervals = fidelity.overall.with_interval > 0;
    out.push_str(&how_to_read(intervals));
    for note in &fidelity.notes {
        _ = writeln!(out, "\n{note}");
    }
    out.push_str("\n## Summary\n\n");
    out.push_str(&summary(fidelity, intervals));
    out.push_str(&coverage(fidelity));
    out.push_str(&reliability(&fidelity.reliability));
    out.push_str(&before(&fidelity.before));
    for family in &fidelity.families {
        _ = write!(out, "\n## {}\n\n{}", escape(&family.name), rows(&family.rows, intervals));
    }
    out.push_str(&fidelity.fit.as_ref().map(fit).unwrap_or_default());
    out.push_str(&ablations(&fidelity.families));
    out
}

/// The last column of the rows, of a page that has intervals.
const INTERVAL: &str = "80 % interval";
/// Likewise of the families.
const COVERED: &str = "covered";
/// The last column of the families.
const REVISION: &str = "revision";

fn how_to_read(intervals: bool) -> String {
    let twice = EFFECT_SPREADS;
    let unknown = ROW_SPREAD_UNKNOWN;
    let beyond = twice * unknown;
    let interval = match intervals {
        true => {
            "\
- The 80 % interval is what the simulated change is in four of five points of the bounds of the machine's costs, with a run \
of each side at each; behind it stands the part of the workload that these runs have, if it is not all of it. A published \
change that is in it, give or take its spread, is *covered*. A spread or an extreme of many runs has no interval.
"
        }
        false => "",
    };
    format!(
        "\
Each row is a figure that somebody published about a change of the scheduler, beside the same figure simulated.

- A change is in percent of the value before it, and + means better: a shorter time, a lower latency, a smaller standard \
deviation, a higher rate. For metrics without a better direction, + means more.
- The spread of a row is the coefficient of variation of its runs in percent, as printed, the larger one of the two sides. \
A row that prints none is taken to have {unknown} %, marked `*`. Behind the simulated change stands the spread of the \
simulated runs, likewise.
- A row is *scored* if its published change is beyond {twice} times its spread (without a printed one: beyond {beyond} %). \
It has the right sign if the simulated change has the same sign; no change at all is wrong. *Clear* are those whose \
simulated change is also beyond {twice} times the simulated spread: among the others chance alone gives half of them the \
right sign.
- Any other row says that nothing changed: a *null* row. It is ok if the simulated change is within {twice} times the larger \
of the published and the simulated spread.
- The error is the distance of the simulated change from the published one in percentage points.
{interval}- *No figure* means that the simulation has no such value, or 0 before the change; it counts as not right. Metrics that are \
not simulated are listed and not counted.
- The revision is that which last ran the experiments of a family.
- Patches are published with the rows that favour them; rows of independent testers also show losses.
"
    )
}

fn summary(fidelity: &Fidelity, intervals: bool) -> String {
    let header = [
        "family",
        "rows compared",
        "scored",
        "right sign",
        "and clear",
        "median error",
        "null rows",
        "null ok",
        "median error of null rows",
        "not compared",
    ];
    let header = header.into_iter().chain(intervals.then_some(COVERED)).chain([REVISION]).map(String::from);
    let line = |name: &str, score: &Score, revisions: String| {
        score_cells(name, score, intervals).into_iter().chain([revisions]).collect::<Vec<_>>()
    };
    let families = fidelity
        .families
        .iter()
        .map(|family| line(&escape(&family.name), &family.score, escape(&family.revisions())));
    let all = families.chain(std::iter::once(line("**all**", &fidelity.overall, String::new())));
    table(1, &header.collect::<Vec<_>>(), &all.collect::<Vec<_>>())
}

/// How often the intervals of whole runs and those of runs of a part of the workload have the published changes, nothing if
/// none is of a part.
fn coverage(fidelity: &Fidelity) -> String {
    let rows = fidelity.families.iter().flat_map(|family| &family.rows).filter(|row| row.is_compared());
    let covered = |of_a_part: bool| {
        let of =
            rows.clone().filter(|row| row.interval_part.is_some() == of_a_part).filter_map(Row::is_covered);
        (of.clone().filter(|covered| *covered).count(), of.count())
    };
    let ((whole, of_whole), (part, of_part)) = (covered(false), covered(true));
    match of_part {
        0 => String::new(),
        _ => format!(
            "
Of the published changes whose interval is of whole runs, {} of {of_whole} are covered; where it is of runs of a part of \
the workload, {} of {of_part} are.
",
            share(whole, of_whole),
            share(part, of_part)
        ),
    }
}

/// What simulated changes were worth, nothing if there are no published ones.
fn reliability(classes: &[Reliability]) -> String {
    if classes.is_empty() {
        return String::new();
    }
    let header =
        ["simulated", "figures", "same direction", "a tenth below", "median", "a tenth above", "of others"];
    let row = |class: &Reliability| {
        let shares = [class.figures.to_string(), share(class.same_direction, class.figures)];
        let changes = [class.low_pct, class.median_pct, class.high_pct].map(|pct| format!("{pct:+.1}"));
        let others = share(class.within_others, class.with_others);
        [class.sizes()].into_iter().chain(shares).chain(changes).chain([others]).collect()
    };
    format!(
        "
## What a simulated change is worth

What was published where changes of about the same size were simulated, in percent, + in the direction of the simulated \
change; means and medians of runs only. *Of others* is how many figures lie between the tenths that the other \
families alone give, give or take their own spread, which is what to expect of a change of a new kind; four of five would \
be as good as the tenths promise.

{}",
        table(1, &header.map(String::from), &classes.iter().map(row).collect::<Vec<_>>())
    )
}

/// How the values before the changes agree, nothing if none was published.
fn before(levels: &[Level]) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let header =
        ["machine", "benchmark", "metric", "figures", "median", "lowest", "highest"].map(String::from);
    let row = |level: &Level| {
        let factors = [level.median, level.lowest, level.highest].map(|factor| format!("{factor:.2}"));
        let names = [&level.machine, &level.benchmark, &level.metric].map(|name| escape(name));
        names.into_iter().chain([level.figures.to_string()]).chain(factors).collect()
    };
    let rows: Vec<_> = levels.iter().map(row).collect();
    format!(
        "
## Before the change

Simulated values before the change, divided by the published ones: 1 is exact. A change may be right on a machine whose \
speed is wrong, but where a benchmark takes half or twice the time, it does not do the same as on the real machine.

{}",
        table(3, &header, &rows)
    )
}

fn score_cells(name: &str, score: &Score, intervals: bool) -> Vec<String> {
    let error = |error: Option<f64>| error.map_or("-".into(), |error| format!("{error:.1}"));
    let mut cells = vec![
        name.to_owned(),
        score.compared.to_string(),
        score.scored.to_string(),
        share(score.right, score.scored),
        share(score.right_and_clear, score.scored),
        error(score.median_error),
        score.null.to_string(),
        share(score.null_ok, score.null),
        error(score.null_median_error),
        score.not_compared.to_string(),
    ];
    cells.extend(intervals.then(|| share(score.covered, score.with_interval)));
    cells
}

/// A number of rows and its share of all of them, rounded down: 100 % is all.
fn share(part: usize, all: usize) -> String {
    match (part * 100).checked_div(all) {
        Some(percent) => format!("{part} ({percent} %)"),
        None => "-".into(),
    }
}

fn rows(rows: &[Row], intervals: bool) -> String {
    let header = ["row", "experiment", "metric", "verdict", "published", "spread", "simulated"];
    let header = header.into_iter().chain(intervals.then_some(INTERVAL)).map(String::from);
    let cells = rows.iter().map(|row| row_cells(row, intervals));
    table(4, &header.collect::<Vec<_>>(), &cells.collect::<Vec<_>>())
}

fn row_cells(row: &Row, intervals: bool) -> Vec<String> {
    let mut experiment = escape(&row.experiment);
    for part in [&row.case, &row.variant].into_iter().flatten() {
        _ = write!(experiment, ": {}", escape(part));
    }
    let statistic = match row.statistic {
        Statistic::Mean => String::new(),
        statistic => format!(" {}", statistic.name()),
    };
    let part = row.interval_part.map(|part| format!(" ({part})")).unwrap_or_default();
    let interval =
        || row.interval_pct.map_or("-".into(), |[low, high]| format!("{low:+.1} to {high:+.1}{part}"));
    let mut cells = vec![
        row.id.as_deref().map_or("-".into(), escape),
        experiment,
        format!("{}{statistic}", escape(&row.metric)),
        row.verdict.text().into(),
        delta(row.published_pct, None),
        format!("{:.1}{}", row.spread_pct, if row.spread_published { "" } else { "\\*" }),
        delta(row.simulated_pct, row.simulated_spread_pct),
    ];
    cells.extend(intervals.then(interval));
    cells
}

/// What fitted costs would be worth.
fn fit(fit: &Fit) -> String {
    let Fit { points, best, families } = fit;
    let text = format!(
        "
## Fitted costs

The costs of this page are not fitted to it. This table says what a fit would be worth. Each of {points} points is one set \
of costs within their bounds, at the same place in them on all machines. *Fitted* is the point with the smallest mean over \
the families of their median error: point {best}. *Left out* is the error of a family at the point that is fitted to the \
other families alone. A fit is worth something for other changes only if *left out* is below *as it is*. The rows are those \
with an interval of whole runs, and at a point there is one run of each side.

"
    );
    let header = ["family", "rows", "as it is", "fitted", "left out"].map(String::from);
    let row = |family: &FamilyFit| {
        let errors = [family.as_is, family.fitted, family.left_out].map(|error| format!("{error:.1}"));
        [escape(&family.name), family.rows.to_string()].into_iter().chain(errors).collect()
    };
    text + &table(1, &header, &families.iter().map(row).collect::<Vec<_>>())
}

/// The tables of the ablations, nothing if there are none.
fn ablations(families: &[Family]) -> String {
    let mut out = String::new();
    for ablated in families.iter().flat_map(|family| &family.ablations) {
        if out.is_empty() {
            out.push_str(
                "\n## Which mechanism carries the effect\n\n\
                 The change with nothing switched off, and with each of some mechanisms switched off or altered in the \
                 baseline and in the variant. Without the one that carries it, an effect is gone.\n",
            );
        }
        _ = write!(out, "\n### {}", escape(&ablated.experiment));
        if let Some(case) = &ablated.case {
            _ = write!(out, ": {}", escape(case));
        }
        _ = write!(out, "\n\n{}", ablation::table(ablated));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{COVERED, INTERVAL};
    use crate::ablation::Ablated;
    use crate::compare::{example, golden};
    use crate::fidelity::{Fidelity, Origin, Outcome, Ran, render};
    use crate::published::Published;
    use crate::registry::Metric;
    use crate::uncertainty::Uncertainty;

    #[test]
    fn golden_page() {
        let mut comparison = example();
        comparison.recipe.machine = "2n4l: two nodes".into();
        comparison.recipe.workload = "hackbench -g 20".into();
        let row = |id: &str, metric: &str, delta_pct, spread_pct| Published {
            id: Some(id.into()),
            metric: metric.into(),
            delta_pct,
            spread_pct,
            ..comparison.published[0].clone()
        };
        comparison.published = vec![
            row("S-1", "runtime_s", Some(41.0), Some(1.5)),
            row("S-2", "runtime_s", Some(-10.0), None),
            row("S-3", "cpu_migrations", Some(3.0), Some(2.0)),
            row("S-4", "events_per_s", Some(12.0), None),
            row("S-5", "stalled|cycles", Some(12.0), None),
            row("S-6", "wakeups", None, None),
            Published { variant: Some("no-op".into()), ..row("S-7", "runtime_s", Some(1.0), Some(0.6)) },
        ];
        comparison.variants[0].uncertainty = uncertainty(30.0, 45.0);
        let ablated = Ablated::new(&example(), [("no line transfers", &example())]);
        let outcome = |family: &str, revision: &str, ran| Outcome {
            experiment: "e".into(),
            family: family.into(),
            origin: Origin { revision: revision.into(), model: "m".into() },
            ran,
        };
        let bias = outcome("bias_prev", "abc", Ran::new(&[comparison], vec![ablated]));
        let mut other = example().of_case(Some("2 groups".into()));
        other.published.truncate(1);
        let without = Ran::new(std::slice::from_ref(&other), vec![]);
        other.variants[0].uncertainty = uncertainty(38.0, 41.0);
        let other = |family, revision| outcome(family, revision, Ran::new(&[other.clone()], vec![]));
        let all = vec![other("another", "abc"), other("third", "abc"), other("third", "def"), bias];
        golden("fidelity.md", &render(&Fidelity::new(all, vec!["A note.".into()])));
        let page = render(&Fidelity::new(vec![outcome("another", "abc", without)], vec![]));
        assert!(!page.contains(INTERVAL) && !page.contains(COVERED), "none was asked for");
    }

    /// Of a change that is at each end of its interval once.
    fn uncertainty(low_pct: f64, high_pct: f64) -> BTreeMap<Metric, Uncertainty> {
        let changes = vec![Some(low_pct), Some(high_pct)];
        [(Metric::runtime_s, Uncertainty { low_pct, high_pct, changes, ..Uncertainty::default() })].into()
    }
}
