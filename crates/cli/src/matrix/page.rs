//! The report as a page with a heat map.

use coreward_metrics::fidelity::Standing;
use coreward_metrics::html::{Heat, Page, Tone, heat_map};
use coreward_metrics::stats::Verdict;

use super::report::{Judged, Report};
use super::text::{hits, short};
use crate::figure::JudgedFigure;

/// A change of so many percent has the full colour.
const FULL_PCT: f64 = 30.0;
/// The faintest colour of a cell beyond noise.
const FAINT: f64 = 0.2;

/// `data` is the report as JSON.
pub(super) fn render(report: &Report, data: &str) -> String {
    let mut page = Page::new(&format!("{} against {}", report.change, report.baseline.join(", ")));
    let summary = &report.summary;
    page.names(&[
        ("coreward", report.version.to_owned()),
        ("runs", format!("{} a side, from seed {}", report.runs, report.seed)),
        ("worse", format!("{} of {} cells beyond noise", summary.worse, summary.cells)),
        ("better", format!("{} beyond noise", summary.better)),
        ("not shown", summary.not_shown.to_string()),
        ("the same", format!("{} cells in all runs: the change does nothing there", summary.same)),
        ("record", Standing::text(report.record.as_ref())),
        ("command", report.command.clone()),
    ]);
    page.heading("Heat map");
    page.text(&format!(
        "Change in %, + is better; machines and workloads from the most damaged on. Only what is beyond noise (*) is coloured: \
         p < {} corrected for the {} figures of the matrix by Benjamini and Hochberg. = is the same in all runs.",
        summary.alpha, summary.tests
    ));
    let head: Vec<&str> =
        std::iter::once("").chain(report.workloads.iter().map(|row| row.name.as_str())).collect();
    let row = |name: &str| -> Vec<Option<Heat>> {
        let cells = report.workloads.iter().map(|row| report.cell(name, &row.name));
        cells.map(|cell| cell.map(|cell| heat(cell, report.runs))).collect()
    };
    let rows: Vec<_> =
        report.machines.iter().map(|machine| (machine.name.as_str(), row(&machine.name))).collect();
    page.html(&heat_map(&head, &rows));
    page.heading("Cells by damage");
    let figures = report.cells.iter().flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
    page.table(
        &["machine", "workload", "metric", "change %", "CI95", "p, corrected", "record", "command"],
        &figures.map(|(cell, figure)| line(cell, figure)).collect::<Vec<_>>(),
    );
    page.heading("Workloads");
    let described = report.workloads.iter().map(|row| {
        let cells = [row.name.as_str(), &row.workload, &row.reason];
        cells.iter().map(|text| ((*text).to_owned(), Tone::Text)).collect()
    });
    page.table(&["name", "command line", "reason"], &described.collect::<Vec<_>>());
    report.notes.iter().for_each(|note| page.text(note));
    report.broken().iter().for_each(|broken| page.text(&format!("broken: {broken}")));
    page.data(data);
    page.finish()
}

fn heat(cell: &Judged, runs: u32) -> Heat {
    let sentence = |figure: &JudgedFigure| {
        format!(
            "{}: {} %, CI95 {}, record {}",
            figure.figure.metric.name(),
            change(figure),
            interval(figure),
            hits(cell.record)
        )
    };
    let title: Vec<_> = cell.figures.iter().map(sentence).collect();
    let size =
        cell.main().map_or(0.0, |figure| figure.figure.delta_pct.map_or(1.0, |delta| delta.abs() / FULL_PCT));
    let degree = match cell.verdict {
        Verdict::Worse => -size.clamp(FAINT, 1.0),
        Verdict::Better => size.clamp(FAINT, 1.0),
        _ => 0.0,
    };
    Heat { text: short(cell, runs), title: format!("{}: {}", cell.workload, title.join("; ")), degree }
}

fn line(cell: &Judged, figure: &JudgedFigure) -> Vec<(String, Tone)> {
    let (tone, mark) = match figure.verdict {
        Verdict::Worse => (Tone::Bad, " *"),
        Verdict::Better => (Tone::Good, " *"),
        _ => (Tone::Plain, ""),
    };
    vec![
        (cell.machine.clone(), Tone::Text),
        (cell.name.clone(), Tone::Text),
        (figure.figure.metric.name().to_owned(), Tone::Text),
        (format!("{}{mark}", change(figure)), tone),
        (interval(figure), Tone::Plain),
        (figure.corrected_p.map_or("-".into(), |p| format!("{p:.4}")), Tone::Plain),
        (hits(cell.record), Tone::Plain),
        (cell.command.clone(), Tone::Text),
    ]
}

fn change(figure: &JudgedFigure) -> String {
    figure.figure.delta_pct.map_or("from 0".into(), |delta| format!("{delta:+.2}"))
}

fn interval(figure: &JudgedFigure) -> String {
    figure.figure.interval_pct.map_or("-".into(), |(low, high)| format!("{low:+.2} to {high:+.2}"))
}
