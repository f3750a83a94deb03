//! The report as text.

use std::fmt::Write;

use coreward_input::many;

use super::report::{Cell, Report};

/// Settings of the table, unless all are asked for.
const FEW: usize = 20;

pub(super) fn render(report: &Report, all: bool) -> String {
    let mut out = String::new();
    let summary = &report.summary;
    let profile = report.profile.as_deref().unwrap_or("the machine's profile");
    let baseline =
        report.baseline.as_ref().map_or(profile.to_owned(), |changes| format!("{profile},{changes}"));
    _ = writeln!(out, "coreward sweep: {} against {baseline}\n", report.name);
    _ = writeln!(
        out,
        "Simulated by coreward {}: {}, {}, {}, seeds {} to {}, {} runs.",
        report.version,
        many(report.settings.len(), "setting"),
        many(report.machines.len(), "machine"),
        many(report.workloads.len(), "workload"),
        report.seed,
        report.seed.wrapping_add(u64::from(report.runs) - 1),
        summary.points
    );
    if let Some(part) = report.scale {
        _ = writeln!(out, "Only {part} of each workload was run, which is no estimate of the whole one.");
    }
    _ = writeln!(out, "SHA-256 of all results: {}", summary.results_sha256);
    for (number, what) in [
        (summary.worse, "cells worse beyond noise"),
        (summary.better, "better beyond noise"),
        (summary.not_shown, "no change shown"),
        (summary.same, "the same in all runs: the setting does nothing there"),
    ] {
        _ = writeln!(out, "{number:>5}  {what}");
    }
    _ = writeln!(
        out,
        "\nSettings: first those without a cell worse beyond noise, then the others, each by the mean change of the first\n\
         metric in %. + is better. Beyond noise has p < {}, corrected for {} figures by Benjamini and Hochberg.\n",
        summary.alpha, summary.tests
    );
    _ = writeln!(out, "{:>8} {:>8} {:>7} {:>6}  setting", "mean", "worst", "better", "worse");
    let shown = if all { report.settings.len() } else { FEW.min(report.settings.len()) };
    for setting in &report.settings[..shown] {
        let percent = |delta: Option<f64>| delta.map_or("-".into(), |delta| format!("{delta:+.1}"));
        let (mean, worst) = (percent(setting.mean_delta_pct), percent(setting.worst_delta_pct));
        let (better, worse) = (setting.better, setting.worse);
        _ = writeln!(out, "{mean:>8} {worst:>8} {better:>7} {worse:>6}  {}", setting.setting);
    }
    if shown < report.settings.len() {
        _ = writeln!(out, "{} more: --all, --json or --output", report.settings.len() - shown);
    }
    if all {
        cells(&mut out, report);
    }
    for broken in report.broken() {
        _ = writeln!(out, "broken: {broken}");
    }
    out
}

/// Every figure of every cell.
fn cells(out: &mut String, report: &Report) {
    let width = |of: fn(&Cell) -> &str| report.cells.iter().map(|cell| of(cell).len()).max().unwrap_or(0);
    let (machine, name) = (width(|cell| &cell.machine).max(7), width(|cell| &cell.name).max(8));
    _ = writeln!(
        out,
        "\n{:>9} {:>16} {:machine$} {:name$} metric: setting",
        "change", "CI95", "machine", "workload"
    );
    for cell in &report.cells {
        for judged in &cell.figures {
            let figure = &judged.figure;
            let mark = if judged.verdict.is_significant() { "*" } else { "" };
            let change = match figure.delta_pct {
                _ if cell.same_runs == report.runs as usize => "=".into(),
                Some(delta) => format!("{delta:+.1}{mark}"),
                None => format!("from 0{mark}"),
            };
            let interval =
                figure.interval_pct.map_or("-".into(), |(low, high)| format!("[{low:.1}, {high:.1}]"));
            let metric = figure.metric.name();
            let line = format!(
                "{change:>9} {interval:>16} {:machine$} {:name$} {metric}: {}",
                cell.machine, cell.name, cell.setting
            );
            _ = writeln!(out, "{line}");
        }
    }
}
