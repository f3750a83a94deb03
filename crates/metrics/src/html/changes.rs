//! Changes with their intervals, one below the other.

use std::fmt::Write;

use super::escape;
use crate::compare::Comparison;
use crate::stats::Verdict;
use crate::table;

/// Sizes, in SVG units.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 400.0;
const RIGHT: f64 = 240.0;
const STEP: f64 = 26.0;
/// The most letters of a name that have room.
const LETTERS: usize = 52;

/// A change in percent, with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What changes.
    pub name: String,
    /// By how much.
    pub delta: f64,
    /// Where it lies.
    pub interval: Option<(f64, f64)>,
    /// What is beyond noise is coloured and has a mark.
    pub verdict: Option<Verdict>,
}

/// The changes of the headline metrics that have a value; empty if none has.
pub(super) fn of_comparison(comparison: &Comparison) -> String {
    let mut changes = Vec::new();
    for variant in &comparison.variants {
        for metric in &comparison.headline {
            let Some(delta) = variant.delta_pct.get(metric).copied().flatten() else { continue };
            let name = format!("{}: {}", variant.side.label, metric.name());
            let interval = variant.interval_pct.get(metric).copied().flatten();
            changes.push(Change { name, delta, interval, verdict: variant.verdict(*metric) });
        }
    }
    let legend =
        "In % of the baseline, + is better; the line is the 95 % confidence interval, * is beyond noise.";
    drawing("Changes", legend, &changes)
}

/// A drawing of changes under a heading; empty if there are none.
pub fn drawing(title: &str, legend: &str, changes: &[Change]) -> String {
    if changes.is_empty() {
        return String::new();
    }
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
        "<h2>{1}</h2>\n<p class=\"plain\">{2}</p>\n\
         <div class=\"wide\" role=\"region\" aria-label=\"{1}\" tabindex=\"0\">\n<svg class=\"changes\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" \
         aria-label=\"{1} with their intervals, as in the table below\">\n\
         <line class=\"grid\" x1=\"{0:.1}\" y1=\"0\" x2=\"{0:.1}\" y2=\"{height}\"/>\n",
        x(0.0),
        escape(title),
        escape(legend),
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
        let shortened: String = name.chars().take(LETTERS).collect();
        _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\"><title>{}</title>{}</text>\
             <line class=\"{class}\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\
             <circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}{mark}{}</text>",
            LEFT - 12.0,
            y + 4.0,
            escape(name),
            escape(&shortened),
            x(low),
            x(high),
            x(*delta),
            WIDTH - RIGHT + 12.0,
            y + 4.0,
            table::percent(Some(*delta)),
            escape(&shown),
        );
    }
    out.push_str("</svg>\n</div>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_out_of_the_picture_and_0_is_in_the_middle() {
        let change = |delta, interval| Change { name: "<m>".into(), delta, interval, verdict: None };
        let changes = [change(-50.0, Some((-9000.0, 100.0))), change(0.0, None)];
        let svg = drawing("<t>", "<l>", &changes);
        for text in ["&lt;m&gt;", "<h2>&lt;t&gt;", "&lt;l&gt;"] {
            assert!(svg.contains(text), "{svg}");
        }
        assert!(!svg.contains("NaN") && drawing("t", "l", &[]).is_empty(), "{svg}");
        // the scale ends at 200 %
        assert!(svg.contains("x1=\"400.0\" y1=\"13.0\" x2=\"640.0\""), "{svg}");
        assert!(svg.contains("cx=\"520.0\""), "{svg}");
        assert!(svg.contains("cx=\"560.0\" cy=\"39.0\""), "{svg}");
    }
}
