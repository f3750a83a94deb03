//! The agreement of simulated and published changes as a Markdown page.

use std::fmt::Write;

use super::{EFFECT_SPREADS, Family, Fidelity, ROW_SPREAD_UNKNOWN, Row, Score};
use crate::ablation::{self, delta};
use crate::markdown::{escape, table};
use crate::stats::Statistic;

/// The page. Nothing in it depends on the local machine or the time of day.
pub fn render(fidelity: &Fidelity) -> String {
    let mut out = String::from("# Published and simulated changes\n\n");
    out.push_str("`coreward fidelity` wrote this page (`make fidelity`); changes by hand are lost.\n\n");
    out.push_str(&how_to_read());
    for note in &fidelity.notes {
        _ = writeln!(out, "\n{note}");
    }
    out.push_str("\n## Summary\n\n");
    out.push_str(&summary(fidelity));
    for family in &fidelity.families {
        _ = write!(out, "\n## {}\n\n{}", escape(&family.name), rows(&family.rows));
    }
    out.push_str(&ablations(&fidelity.families));
    out
}

fn how_to_read() -> String {
    let twice = EFFECT_SPREADS;
    let unknown = ROW_SPREAD_UNKNOWN;
    let beyond = twice * unknown;
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
- *No figure* means that the simulation has no such value, or 0 before the change; it counts as not right. Metrics that are \
not simulated are listed and not counted.
- Patches are published with the rows that favour them; rows of independent testers also show losses.
"
    )
}

fn summary(fidelity: &Fidelity) -> String {
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
    let families = fidelity.families.iter().map(|family| score(&escape(&family.name), &family.score));
    let all = families.chain(std::iter::once(score("**all**", &fidelity.overall)));
    table(1, &header.map(String::from), &all.collect::<Vec<_>>())
}

fn score(name: &str, score: &Score) -> Vec<String> {
    let error = |error: Option<f64>| error.map_or("-".into(), |error| format!("{error:.1}"));
    vec![
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
    ]
}

/// A number of rows and its share of all of them, rounded down: 100 % is all.
fn share(part: usize, all: usize) -> String {
    match (part * 100).checked_div(all) {
        Some(percent) => format!("{part} ({percent} %)"),
        None => "-".into(),
    }
}

fn rows(rows: &[Row]) -> String {
    let header = ["row", "experiment", "metric", "verdict", "published", "spread", "simulated"];
    table(4, &header.map(String::from), &rows.iter().map(row).collect::<Vec<_>>())
}

fn row(row: &Row) -> Vec<String> {
    let mut experiment = escape(&row.experiment);
    for part in [&row.case, &row.variant].into_iter().flatten() {
        _ = write!(experiment, ": {}", escape(part));
    }
    let statistic = match row.statistic {
        Statistic::Mean => String::new(),
        statistic => format!(" {}", statistic.name()),
    };
    vec![
        row.id.as_deref().map_or("-".into(), escape),
        experiment,
        format!("{}{statistic}", escape(&row.metric)),
        row.verdict.text().into(),
        delta(row.published_pct, None),
        format!("{:.1}{}", row.spread_pct, if row.spread_published { "" } else { "\\*" }),
        delta(row.simulated_pct, row.simulated_spread_pct),
    ]
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
    use crate::ablation::Ablated;
    use crate::compare::{example, golden};
    use crate::fidelity::{Fidelity, Ran, render};
    use crate::published::Published;

    #[test]
    fn golden_page() {
        let mut comparison = example();
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
        let ablated = Ablated::new(&example(), [("no line transfers", &example())]);
        let bias = ("bias_prev".into(), Ran::new(&[comparison], vec![ablated]));
        let mut other = example().of_case(Some("2 groups".into()));
        other.published.truncate(1);
        let other = ("another".into(), Ran::new(&[other], vec![]));
        let fidelity = Fidelity::new(vec![bias, other], vec!["A note.".into()]);
        golden("fidelity.md", &render(&fidelity));
    }
}
