//! Figures over time as a line drawing.

use std::fmt::Write;

use super::escape;

/// Size of the drawing, in SVG units.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 220.0;
/// Room for the scales.
const LEFT: f64 = 90.0;
const RIGHT: f64 = 15.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 30.0;
/// Steps that scales are divided into, about.
const STEPS: f64 = 5.0;

/// A line of a drawing: its name, and a value at each point of time; where there is none, the line is interrupted.
pub struct Line<'a> {
    /// What the values are.
    pub name: &'a str,
    /// One for each point of time.
    pub values: Vec<Option<f64>>,
}

/// A drawing of one or two lines over the time in s, from 0 on, with its description for those who do not see it. A line
/// is drawn from point to point; a point is the end of the interval that its value is of.
pub fn lines(title: &str, times: &[f64], lines: &[Line<'_>]) -> String {
    let highest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let to_s = highest(&mut times.iter().copied());
    let top = highest(&mut lines.iter().flat_map(|line| line.values.iter().flatten().copied()));
    let (x_step, y_step) = (step(to_s), step(top));
    let top = (top / y_step).ceil().max(1.0) * y_step;
    let x = |s: f64| LEFT + s / if to_s > 0.0 { to_s } else { 1.0 } * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);

    let mut out = format!(
        "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{}\">\n",
        escape(&description(title, to_s, lines))
    );
    for i in 0..=(top / y_step).round() as u32 {
        let value = f64::from(i) * y_step;
        _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y(value) + 4.0,
            number(value, y_step),
            at = y(value),
        );
    }
    for i in 0..=(to_s / x_step).floor() as u32 {
        let s = f64::from(i) * x_step;
        _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} s</text>",
            x(s),
            HEIGHT - 8.0,
            number(s, x_step)
        );
    }
    for (line, class) in lines.iter().zip(["", " class=\"second\""]) {
        let mut path = String::new();
        let mut drawn = false;
        for (s, value) in times.iter().zip(&line.values) {
            match value {
                Some(value) if drawn => _ = write!(path, "L{:.1} {:.1}", x(*s), y(*value)),
                // a line of no length, so that a point which no other follows is a dot
                Some(value) => _ = write!(path, "M{:.1} {:.1}h0", x(*s), y(*value)),
                None => {}
            }
            drawn = value.is_some();
        }
        _ = writeln!(out, "<path{class} d=\"{path}\"/>");
    }
    _ = writeln!(out, "</svg>\n<figcaption>{}</figcaption>\n</figure>", escape(&caption(title, lines)));
    out
}

/// What is drawn how.
fn caption(title: &str, lines: &[Line<'_>]) -> String {
    match lines {
        [first, second, ..] => format!("{title}: {} (solid), {} (dashed)", first.name, second.name),
        _ => title.to_owned(),
    }
}

/// The drawing in words.
fn description(title: &str, to_s: f64, lines: &[Line<'_>]) -> String {
    let range = |line: &Line<'_>| {
        let values = line.values.iter().flatten();
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        if low > high {
            format!("{}: no values", line.name)
        } else {
            format!("{} from {low:.6} to {high:.6}", line.name)
        }
    };
    let ranges: Vec<String> = lines.iter().map(range).collect();
    format!("{title} over {to_s:.6} s: {}", ranges.join(", "))
}

/// A step of 1, 2 or 5 times a power of ten that divides a scale into about [`STEPS`].
fn step(to: f64) -> f64 {
    if to <= 0.0 {
        return 1.0;
    }
    let rough = to / STEPS;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough)
}

/// A number of a scale, with as many decimals as its steps need.
fn number(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_steps() {
        let steps = [0.0, 1.0, 7.0, 99.0, 100.0, 0.0013].map(step);
        for (step, expected) in steps.into_iter().zip([1.0, 0.2, 2.0, 20.0, 20.0, 0.0005]) {
            assert!((step - expected).abs() < expected * 1e-9, "{step} and {expected}");
        }
        assert_eq!((number(0.4, 0.2), number(1000.0, 500.0)), ("0.4".into(), "1000".into()));
    }

    #[test]
    fn a_line_rises_with_its_values_and_is_interrupted_where_there_are_none() {
        let line = Line { name: "n", values: vec![Some(0.0), Some(10.0), None, Some(5.0)] };
        let svg = lines("t", &[1.0, 2.0, 3.0, 4.0], &[line]);
        let path = svg.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
        // from the lower end of the scale to its upper end, and half of it
        assert_eq!(path, "M278.8 190.0h0L467.5 12.0M845.0 101.0h0", "the last one is a dot");
    }

    #[test]
    fn who_does_not_see_it_is_told() {
        let line = |name| Line { name, values: vec![Some(1.5), Some(2.5)] };
        let svg = lines("<latency>", &[0.5, 1.0], &[line("p50"), line("p99")]);
        let label = "aria-label=\"&lt;latency&gt; over 1.000000 s: p50 from 1.500000 to 2.500000, p99";
        assert!(svg.contains(label) && svg.contains("role=\"img\""), "{svg}");
        assert!(svg.contains("p50 (solid), p99 (dashed)"), "not by colour alone");
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        let svg = lines("t", &[], &[Line { name: "n", values: vec![] }]);
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("no values"), "{svg}");
    }
}
