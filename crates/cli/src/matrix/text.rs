//! The report as text for a mail: 80 columns, nothing but ASCII.

use std::fmt::Write;

use coreward_input::many;
use coreward_metrics::fidelity::{Hits, Standing};
use coreward_metrics::stats::Verdict;

use super::report::{Judged, Report};
use crate::figure::JudgedFigure;

const WIDTH: usize = 80;
/// Of a machine's name; those of the presets fit.
const MACHINE: usize = 17;
/// Of a cell of the overview, and how many fit beside the machine.
const CELL: usize = 6;
const COLUMNS: usize = (WIDTH - MACHINE) / CELL;
/// Lines of a list, unless all are asked for.
const FEW: usize = 25;

/// The whole report.
pub(super) fn render(report: &Report, all: bool) -> String {
    let mut out = String::new();
    heading(&mut out, report);
    for (verdict, title) in [(Verdict::Worse, "Losses"), (Verdict::Better, "Gains")] {
        list(&mut out, report, verdict, title, all);
    }
    overview(&mut out, report);
    suite(&mut out, report);
    for note in &report.notes {
        _ = write!(out, "\n{}", wrapped(&format!("note: {note}"), WIDTH));
    }
    for broken in report.broken() {
        _ = write!(out, "\n{}", wrapped(&format!("broken: {broken}"), WIDTH));
    }
    out
}

fn heading(out: &mut String, report: &Report) {
    let summary = &report.summary;
    out.push_str(&wrapped(
        &format!("coreward matrix: {} against {}", report.change, report.baseline.join(", ")),
        WIDTH,
    ));
    let Report { machines, workloads, runs, seed, .. } = report;
    let sizes = format!(
        "Simulated by coreward {}: {}, {}, {}, {runs} runs a side from seed {seed}.",
        report.version,
        many(machines.len(), "machine"),
        many(workloads.len(), "workload"),
        many(summary.cells, "cell")
    );
    _ = write!(out, "\n{}\n", wrapped(&sizes, WIDTH));
    for (number, what) in [
        (summary.worse, "cells worse beyond noise"),
        (summary.better, "better beyond noise"),
        (summary.not_shown, "no change shown"),
        (summary.same, "the same in all runs: the change does nothing there"),
    ] {
        _ = writeln!(out, "{number:>5}  {what}");
    }
    let noise = format!(
        "A change is in percent of the baseline's mean, and + is better. Beyond noise (*) has p < {} by Welch's t-test, or the \
         paired one where most runs are the same, corrected for the {} figures of the matrix by Benjamini and Hochberg: about \
         {:.0} % of them are false alarms, and with a change of no effect the chance of even one is {:.0} %. CI95 is the 95 % \
         interval of a figure by itself.",
        summary.alpha,
        summary.tests,
        summary.alpha * 100.0,
        summary.alpha * 100.0
    );
    _ = write!(out, "\n{}", wrapped(&noise, WIDTH));
    _ = write!(
        out,
        "\n{}",
        wrapped(&format!("The model's record: {}.", Standing::text(report.record.as_ref())), WIDTH)
    );
    let known = "In the lists, the record is how many published effects on this benchmark the model has with the right sign: \
                 for changes of the same family, or for all if the change belongs to none.";
    out.push_str(&wrapped(known, WIDTH));
    _ = write!(out, "\nRepeated by:\n{}", command(&report.command));
}

fn list(out: &mut String, report: &Report, verdict: Verdict, title: &str, all: bool) {
    let found = report.figures(verdict);
    let figures = if found.len() == 1 { "figure" } else { "figures" };
    _ = writeln!(out, "\n{title}: {} {figures} beyond noise", found.len());
    if found.is_empty() {
        return;
    }
    _ = writeln!(
        out,
        "{:>7} {:>13} {:>6} {:MACHINE$} {:18} metric",
        "change", "CI95", "record", "machine", "workload"
    );
    let shown = if all { found.len() } else { FEW.min(found.len()) };
    for (cell, figure) in &found[..shown] {
        out.push_str(&line(cell, figure));
    }
    if shown < found.len() {
        _ = writeln!(out, "{} more: --all, --json or --html", found.len() - shown);
    }
}

fn line(cell: &Judged, figure: &JudgedFigure) -> String {
    // what latency a percentile is of, is said by its first word
    let metric = figure.figure.metric.name().replace("_latency_us", "");
    let interval = figure.figure.interval_pct;
    let interval = interval.map_or("-".into(), |(low, high)| format!("[{low:.0}, {high:.0}]"));
    let line = format!(
        "{:>7} {interval:>13} {:>6} {:MACHINE$} {:18} {metric}",
        percent(figure),
        hits(cell.record),
        cut(&cell.machine, MACHINE),
        cell.name
    );
    format!("{}\n", line.trim_end())
}

/// The change with a decimal, or of a change from 0 the value.
fn percent(figure: &JudgedFigure) -> String {
    match figure.figure.delta_pct {
        Some(delta) if delta.abs() < 1000.0 => format!("{delta:+.1}"),
        Some(delta) => format!("{delta:+.0}"),
        None => "from 0".into(),
    }
}

/// Right signs of published effects; `-` if none were published.
pub(super) fn hits(hits: Hits) -> String {
    if hits.scored == 0 { "-".into() } else { format!("{}/{}", hits.right, hits.scored) }
}

/// What of a cell has room in the overview.
pub(super) fn short(cell: &Judged, runs: u32) -> String {
    if cell.is_same(runs) {
        return "=".into();
    }
    let Some(figure) = cell.main() else { return "-".into() };
    let mark = if cell.verdict.is_significant() { "*" } else { "" };
    match figure.figure.delta_pct {
        Some(delta) => format!("{:+.0}{mark}", delta.clamp(-999.0, 999.0)),
        None => format!("0{mark}"),
    }
}

/// The columns by letter; there are up to 64 of them.
fn letter(column: usize) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let last = char::from(letters[column % letters.len()]);
    match column / letters.len() {
        0 => last.to_string(),
        more => format!("{}{last}", char::from(letters[more - 1])),
    }
}

fn overview(out: &mut String, report: &Report) {
    out.push_str("\nAll cells, the most damaged machines and workloads first: change in %, * beyond\nnoise, = the same in all runs\n");
    let columns: Vec<usize> = (0..report.workloads.len()).collect();
    for block in columns.chunks(COLUMNS) {
        _ = write!(out, "{:MACHINE$}", "");
        block.iter().for_each(|column| _ = write!(out, "{:>CELL$}", letter(*column)));
        out.push('\n');
        for machine in &report.machines {
            let mut line = format!("{:MACHINE$}", cut(&machine.name, MACHINE));
            for column in block {
                let cell = report.cell(&machine.name, &report.workloads[*column].name);
                let text = cell.map_or(String::new(), |cell| short(cell, report.runs));
                _ = write!(line, "{text:>CELL$}");
            }
            _ = writeln!(out, "{}", line.trim_end());
        }
        out.push('\n');
    }
}

/// What the columns stand for.
fn suite(out: &mut String, report: &Report) {
    for (column, row) in report.workloads.iter().enumerate() {
        let record = report
            .cells
            .iter()
            .find(|cell| cell.name == row.name)
            .map_or(Hits::default(), |cell| cell.record);
        let metrics: Vec<_> = row.metrics.iter().map(|metric| metric.name()).collect();
        let metrics = if metrics.is_empty() { String::new() } else { format!(" [{}]", metrics.join(", ")) };
        let record = match record.scored {
            0 => "no published effects".into(),
            _ => format!("record {}", hits(record)),
        };
        _ = writeln!(out, "{:>2} {:18} {record}", letter(column), row.name);
        wrapped(&format!("{}{metrics}", row.workload), WIDTH - 3)
            .lines()
            .for_each(|line| _ = writeln!(out, "   {line}"));
    }
}

/// A text with its end cut off if it is too long.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 1).chain(['~']).collect(),
        false => text.to_owned(),
    }
}

/// Words in lines.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 {
            let fits = column + 1 + length <= width;
            out.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

/// A command line that a shell takes as one, though it is several.
fn command(line: &str) -> String {
    let mut out = String::from(" ");
    let mut column = 1;
    for (i, part) in line.split(" --").enumerate() {
        let part = if i == 0 { part.to_owned() } else { format!("--{part}") };
        if i > 0 && column + 1 + part.chars().count() > WIDTH - 2 {
            out.push_str(" \\\n   ");
            column = 3;
        }
        _ = write!(out, " {part}");
        column += 1 + part.chars().count();
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_commands_stay_one() {
        let text = wrapped(&"word ".repeat(40), WIDTH);
        assert!(text.lines().all(|line| line.len() <= WIDTH) && text.lines().count() == 3, "{text}");
        let line = format!("coreward matrix{}", " --machine epyc-9654-2s".repeat(6));
        let broken = command(&line);
        assert!(broken.lines().all(|line| line.len() <= WIDTH), "{broken}");
        assert_eq!(broken.replace(" \\\n   ", "").trim(), line);
    }

    #[test]
    fn columns_have_letters() {
        assert_eq!([0, 25, 26, 63].map(letter), ["A", "Z", "AA", "BL"]);
    }

    #[test]
    fn names_are_cut() {
        assert_eq!((cut("abcdef", 6).as_str(), cut("abcdefg", 6).as_str()), ("abcdef", "abcde~"));
    }
}
