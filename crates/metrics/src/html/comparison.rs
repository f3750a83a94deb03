//! A comparison as a page.

use std::fmt::Write;

use super::{Page, changes, escape};
use crate::ablation::{self, Ablated};
use crate::compare::{Comparison, Recipe, Side, Variant};
use crate::registry::Metric;
use crate::stats::{Statistic, Summary, Verdict};
use crate::table;
use crate::verdict;
use crate::why;

/// Width of the drawing area of a bar chart, in SVG units.
const BAR_AREA: f64 = 460.0;
/// Height of a bar and the distance from one to the next, in SVG units.
const BAR_HEIGHT: f64 = 18.0;
const BAR_STEP: f64 = 28.0;

/// The page of an experiment, with one comparison for each of its cases, and its ablations. The headline metrics get a
/// bar chart of their means with whiskers of one standard deviation, and a circle for each run. A look, which may be
/// empty, follows each comparison; `data` is all of it as JSON.
pub fn render(comparisons: &[Comparison], ablations: &[Ablated], looks: &[String], data: &str) -> String {
    let mut page = Page::new(comparisons.first().map_or("", |comparison| &comparison.experiment));
    let mut out = String::new();
    for (i, comparison) in comparisons.iter().enumerate() {
        section(&mut out, comparison);
        looks.get(i).into_iter().for_each(|look| out.push_str(look));
    }
    for ablated in ablations {
        _ = write!(
            out,
            "<h2>{}</h2>\n<pre>{}</pre>\n",
            escape(&ablated.title()),
            escape(&ablation::table(ablated))
        );
    }
    page.html(&out);
    page.data(data);
    page.finish()
}

fn section(out: &mut String, comparison: &Comparison) {
    if let Some(case) = &comparison.case {
        _ = writeln!(out, "<h1>{}</h1>", escape(case));
    }
    recipe(out, comparison);
    out.push_str(&changes::of_comparison(comparison));
    for &metric in &comparison.headline {
        chart(out, comparison, metric);
    }
    metrics_table(out, comparison);
    for variant in &comparison.variants {
        why_differs(out, &comparison.baseline, variant);
    }
    _ = writeln!(out, "<pre>{}</pre>", escape(&verdict::legend(comparison)));
    if !comparison.published.is_empty() {
        published_table(out, comparison);
    }
    for note in &comparison.notes {
        _ = writeln!(out, "<p>{}</p>", escape(note));
    }
    for broken in &comparison.broken {
        _ = writeln!(out, "<p>broken: {}</p>", escape(broken));
    }
}

/// What was run, and how to repeat it.
fn recipe(out: &mut String, comparison: &Comparison) {
    let Recipe { version, command, machine, workload, scale, task_group_depth } = &comparison.recipe;
    let mut rows = vec![
        ("machine", machine.clone()),
        ("workload", workload.clone()),
        ("scale", format!("{scale} of the workload")),
        ("task groups", format!("{task_group_depth} around the workload")),
    ];
    for side in std::iter::once(&comparison.baseline).chain(comparison.variants.iter().map(|v| &v.side)) {
        rows.push(("side", side.text()));
    }
    rows.push(("command", command.clone()));
    rows.push(("coreward", version.clone()));
    out.push_str(
        "<div class=\"wide\" role=\"region\" aria-label=\"What was run\" tabindex=\"0\">\n<table>\n",
    );
    for (name, text) in rows {
        _ = writeln!(out, "<tr><td>{name}</td><td class=\"text\">{}</td></tr>", escape(&text));
    }
    out.push_str("</table>\n</div>\n");
}

fn chart(out: &mut String, comparison: &Comparison, metric: Metric) {
    let sides: Vec<(&Side, Summary)> = std::iter::once(&comparison.baseline)
        .chain(comparison.variants.iter().map(|v| &v.side))
        .filter_map(|side| Some((side, *side.metrics.get(&metric)?)))
        .collect();
    let spread = |summary: &Summary| summary.std.unwrap_or(0.0);
    let longest = sides.iter().map(|(_, s)| (s.mean.abs() + spread(s)).max(s.max.abs())).fold(0.0, f64::max);
    let scale = if longest > 0.0 { BAR_AREA / longest } else { 0.0 };
    let (width, height) = (BAR_AREA + 400.0, BAR_STEP * sides.len() as f64);
    _ = writeln!(out, "<h2>{}</h2>\n<p class=\"plain\">{}</p>", heading(metric), escape(metric.help()));
    _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" \
         aria-label=\"{} of each side, as in the table below\">",
        metric.name()
    );
    for (i, (side, summary)) in sides.iter().enumerate() {
        let (top, end) = (BAR_STEP * i as f64 + 4.0, 200.0 + summary.mean.abs() * scale);
        let (middle, whisker) = (top + BAR_HEIGHT / 2.0, spread(summary) * scale);
        _ = writeln!(
            out,
            "<text x=\"190\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"200\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR_HEIGHT}\"/>\n\
             <line x1=\"{:.1}\" y1=\"{middle:.1}\" x2=\"{:.1}\" y2=\"{middle:.1}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            middle + 4.0,
            escape(&side.label.chars().take(22).collect::<String>()),
            end - 200.0,
            (end - whisker).max(200.0),
            end + whisker,
            (end + whisker).max(200.0 + summary.max.abs() * scale) + 8.0,
            middle + 4.0,
            value(Some(summary), metric),
        );
        for value in side.values[&metric].iter().flatten() {
            let x = 200.0 + value.abs() * scale;
            _ = writeln!(out, "<circle class=\"run\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"3\"/>");
        }
    }
    out.push_str("</svg>\n");
}

/// The difference in CPU time by part: a chart with a bar to the left for what became less, and a table.
fn why_differs(out: &mut String, base: &Side, variant: &Variant) {
    let (unit, rows) = why::rows(base, variant);
    let longest = rows.iter().map(|row| (row.variant - row.base).abs()).fold(0.0, f64::max);
    let scale = if longest > 0.0 { BAR_AREA / 2.0 / longest } else { 0.0 };
    let (width, height, zero) = (BAR_AREA + 400.0, BAR_STEP * rows.len() as f64, 200.0 + BAR_AREA / 2.0);
    _ = writeln!(
        out,
        "<h2>Why {} differs from {}</h2>\n<p class=\"plain\">{unit}, of all CPUs, idle ones too{}</p>",
        escape(&variant.side.label),
        escape(&base.label),
        why::chance(base, variant).map_or(String::new(), |chance| format!(": {chance}"))
    );
    _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" \
         aria-label=\"Difference in CPU time by part, as in the table below\">"
    );
    for (i, row) in rows.iter().enumerate() {
        let (top, difference) = (BAR_STEP * i as f64 + 4.0, row.variant - row.base);
        let middle = top + BAR_HEIGHT / 2.0 + 4.0;
        let share = row.share_pct.map_or(String::new(), |share| format!("{share:.1} %"));
        _ = writeln!(
            out,
            "<text x=\"190\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR_HEIGHT}\"/>\n\
             <text x=\"{:.1}\" y=\"{middle:.1}\">{difference:+.4} {share}</text>",
            row.part.name(),
            zero + (difference * scale).min(0.0),
            difference.abs() * scale,
            zero + BAR_AREA / 2.0 + 8.0,
        );
    }
    out.push_str("</svg>\n<div class=\"wide\" role=\"region\" aria-label=\"CPU time by part\" tabindex=\"0\">\n<table>\n");
    _ = writeln!(out, "<tr><th>part</th><th>before</th><th>after</th><th>share</th><th>what it is</th></tr>");
    for row in &rows {
        let share = row.share_pct.map_or("-".into(), |share| format!("{share:.1} %"));
        _ = writeln!(
            out,
            "<tr><td>{}</td><td>{:.4}</td><td>{:.4}</td><td>{share}</td><td class=\"text\">{}</td></tr>",
            row.part.name(),
            row.base,
            row.variant,
            escape(row.part.meaning()),
        );
    }
    out.push_str("</table>\n</div>\n");
}

fn heading(metric: Metric) -> String {
    match metric.unit() {
        "" => metric.name().into(),
        unit => format!("{} [{unit}]", metric.name()),
    }
}

/// Mean and standard deviation.
fn value(summary: Option<&Summary>, metric: Metric) -> String {
    let Some(summary) = summary else {
        return "-".into();
    };
    let decimals = table::decimals(metric, Some(summary));
    let spread = summary.std.map_or(String::new(), |std| format!(" &#177; {std:.decimals$}"));
    format!("{:.decimals$}{spread}", summary.mean)
}

fn metrics_table(out: &mut String, comparison: &Comparison) {
    out.push_str("<div class=\"wide\" role=\"region\" aria-label=\"All metrics\" tabindex=\"0\">\n");
    _ = write!(out, "<table>\n<tr><th>metric</th><th>{}</th>", escape(&comparison.baseline.label));
    for variant in &comparison.variants {
        _ = write!(out, "<th>{}</th><th>delta</th><th>CI95</th><th>p</th>", escape(&variant.side.label));
    }
    out.push_str("</tr>\n");
    for &metric in Metric::ALL {
        let base = comparison.baseline.metrics.get(&metric);
        if base.is_none() && comparison.variants.iter().all(|v| !v.side.metrics.contains_key(&metric)) {
            continue;
        }
        _ = write!(out, "<tr><td title=\"{}\">{}</td>", escape(metric.help()), heading(metric));
        _ = write!(out, "<td>{}</td>", value(base, metric));
        for variant in &comparison.variants {
            variant_cells(out, variant, metric);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n</div>\n");
}

fn variant_cells(out: &mut String, variant: &Variant, metric: Metric) {
    let (class, mark) = match variant.verdict(metric) {
        Some(Verdict::Better) => ("good", " *"),
        Some(Verdict::Worse) => ("bad", " *"),
        Some(Verdict::Different) => ("", " *"),
        None if variant.is_notable(metric) => ("", " ~"),
        _ => ("plain", ""),
    };
    let delta = variant.delta_pct.get(&metric).copied().flatten();
    let interval = variant.interval_pct.get(&metric).copied().flatten();
    let p = variant.p_value.get(&metric).copied().flatten();
    _ = write!(
        out,
        "<td>{}</td><td class=\"{class}\">{}{mark}</td><td>{}</td><td>{}</td>",
        value(variant.side.metrics.get(&metric), metric),
        table::percent(delta),
        interval.map_or("-".into(), |(low, high)| table::interval(low, high)),
        p.map_or("-".into(), p_value),
    );
}

fn p_value(p: f64) -> String {
    if p > 0.0 && p < 1e-4 { "&lt;0.0001".into() } else { format!("{p:.4}") }
}

fn published_table(out: &mut String, comparison: &Comparison) {
    let label = comparison.variants.first().map_or("", |variant| &variant.side.label);
    _ = writeln!(
        out,
        "<h2>Published and simulated</h2>\n<div class=\"wide\" role=\"region\" aria-label=\"Published and simulated\" tabindex=\"0\">\n\
         <table>\n<tr><th>metric</th><th>published before</th><th>after</th>\
         <th>delta</th><th>simulated before</th><th>{}</th><th>delta</th><th>points</th><th>source</th></tr>",
        escape(label)
    );
    for row in comparison.published_beside_simulated() {
        let published = row.published;
        let number = |value: Option<f64>| value.map_or("-".into(), |value| value.to_string());
        let simulated = |summary: Option<&Summary>| match (row.metric, published.statistic) {
            (Some(metric), Statistic::Mean) => value(summary, metric),
            (Some(metric), statistic) => summary
                .and_then(|s| s.statistic(statistic))
                .map_or("-".into(), |v| format!("{v:.*}", table::decimals(metric, summary))),
            (None, _) => "-".into(),
        };
        _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"text\">{}</td></tr>",
            escape(&published.metric_and_statistic()),
            number(published.baseline),
            number(published.patched),
            table::percent(published.delta_pct),
            simulated(row.baseline),
            simulated(row.patched),
            table::percent(row.delta_pct),
            row.points.map_or("-".into(), |points| format!("{points:+.2}")),
            escape(&published.source_and_note()),
        );
    }
    out.push_str("</table>\n</div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Runs, example, golden};

    #[test]
    fn golden_page() {
        let recipe = Recipe {
            version: "1.2.3".into(),
            command: "coreward compare \"hackbench -g 4\" --machine 2c --with X --runs 3".into(),
            machine: "2c: two cores".into(),
            workload: "hackbench -g 4".into(),
            scale: "0.5".into(),
            task_group_depth: 3,
        };
        let comparison = example().with_recipe(recipe);
        let ablated = Ablated::new(&comparison, [("no line transfers", &example())]);
        golden(
            "page.html",
            &render(&[comparison], &[ablated], &["<p>look</p>\n".into()], "{\"a\": \"<1>\"}"),
        );
    }

    #[test]
    fn every_text_is_escaped() {
        let evil = "<script>\"'&\u{1b}";
        let mut comparison = example();
        comparison.experiment = evil.into();
        comparison.baseline.label = evil.into();
        comparison.variants[0].side.label = evil.into();
        comparison.variants[0].side.changes = vec![evil.into()];
        comparison.recipe.command = evil.into();
        comparison.recipe.machine = evil.into();
        comparison.recipe.workload = evil.into();
        comparison.notes = vec![evil.into()];
        comparison.published[0].metric = evil.into();
        comparison.published[0].source = evil.into();
        comparison.published[0].note = Some(evil.into());
        let page = render(&[comparison], &[], &[], "");
        assert!(!page.contains("<script") && !page.contains('\u{1b}'));
        assert_eq!(page.matches("&lt;script&gt;&quot;&#39;&amp;\u{fffd}").count(), 29);
    }

    #[test]
    fn bars_of_nothing_are_finite() {
        let side = |value| Runs {
            label: "x".into(),
            runs: vec![[(Metric::runtime_s, value)].into_iter().collect()],
            ..Runs::default()
        };
        let headline = [Metric::runtime_s, Metric::wakeups];
        let comparison = Comparison::new("e", &headline, side(0.0), vec![side(0.0)], vec![], vec![]);
        let page = render(&[comparison], &[], &[], "");
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
    }
}
