//! The changes of the headline metrics with their intervals, one below the other.

use std::fmt::Write;

use super::escape;
use crate::compare::Comparison;
use crate::stats::Verdict;
use crate::table;

/// Sizes, in SVG units.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 200.0;
const STEP: f64 = 26.0;

/// A change in percent, with its interval.
struct Change {
    name: String,
    delta: f64,
    interval: Option<(f64, f64)>,
    verdict: Option<Verdict>,
}

/// A drawing of the changes that have a value; empty if none has.
pub(super) fn drawing(comparison: &Comparison) -> String {
    let mut changes = Vec::new();
    for variant in &comparison.variants {
        for metric in &comparison.headline {
            let Some(delta) = variant.delta_pct.get(metric).copied().flatten() else { continue };
            let name = format!("{}: {}", variant.side.label, metric.name());
            let interval = variant.interval_pct.get(metric).copied().flatten();
            changes.push(Change { name, delta, interval, verdict: variant.verdict(*metric) });
        }
    }
    if changes.is_empty() { String::new() } else { draw(&changes) }
}

fn draw(changes: &[Change]) -> String {
    let ends = changes.iter().flat_map(|change| {
        let (low, high) = change.interval.unwrap_or((change.delta, change.delta));
        [low, high, change.delta]
    });
    // the scale has 0 in the middle, and leaves out the far ends of intervals that say nothing
    let farthest = ends.map(f64::abs).fold(0.0, f64::max).clamp(1.0, 200.0);
    let area = WIDTH - LEFT - RIGHT;
    let x = |pct: f64| LEFT + area / 2.0 * (1.0 + (pct / farthest).clamp(-1.0, 1.0));
    let height = STEP * changes.len() as f64;
    let mut out = format!(
        "<h2>Changes</h2>\n<p class=\"plain\">In % of the baseline, + is better; the line is the 95 % confidence interval, \
         * is beyond noise.</p>\n<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" \
         aria-label=\"Changes with their intervals, as in the table below\">\n\
         <line class=\"grid\" x1=\"{0:.1}\" y1=\"0\" x2=\"{0:.1}\" y2=\"{height}\"/>\n",
        x(0.0)
    );
    for (i, Change { name, delta, interval, verdict }) in changes.iter().enumerate() {
        let y = STEP * (i as f64 + 0.5);
        let (class, mark) = match verdict {
            Some(Verdict::Better) => ("good", " *"),
            Some(Verdict::Worse) => ("bad", " *"),
            Some(Verdict::Different) => ("other", " *"),
            _ => ("other", ""),
        };
        let (low, high) = interval.unwrap_or((*delta, *delta));
        let shown = interval.map_or(String::new(), |(low, high)| format!(" {}", table::interval(low, high)));
        let name: String = name.chars().take(38).collect();
        _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <line class=\"{class}\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\
             <circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}{mark}{}</text>",
            LEFT - 12.0,
            y + 4.0,
            escape(&name),
            x(low),
            x(high),
            x(*delta),
            WIDTH - RIGHT + 12.0,
            y + 4.0,
            table::percent(Some(*delta)),
            escape(&shown),
        );
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_out_of_the_picture_and_0_is_in_the_middle() {
        let change = |delta, interval| Change { name: "<m>".into(), delta, interval, verdict: None };
        let svg = draw(&[change(-50.0, Some((-9000.0, 100.0))), change(0.0, None)]);
        assert!(svg.contains("&lt;m&gt;") && !svg.contains("NaN"), "{svg}");
        // the scale ends at 200 %
        assert!(svg.contains("x1=\"330.0\" y1=\"13.0\" x2=\"577.5\""), "{svg}");
        assert!(svg.contains("cx=\"454.0\"") || svg.contains("cx=\"453.8\""), "{svg}");
        assert!(svg.contains("cx=\"495.0\" cy=\"39.0\""), "{svg}");
    }
}
