//! The report as a page with a heat map.

use coreward_metrics::fidelity::Standing;
use coreward_metrics::html::{Heat, Page, Tone, heat_map};

use super::report::{Judged, Report};
use super::text::{hits, short};
use crate::figure::{self, JudgedFigure};

/// `look` is a closer look at the first cell; `data` is the report as JSON.
pub(super) fn render(report: &Report, look: &str, data: &str) -> String {
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
    let figures = report.cells.iter().flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
    let called = |cell: &Judged| format!("{} on {}", cell.name, cell.machine);
    let named = figures.clone().map(|(cell, figure)| (called(cell), figure));
    page.html(&figure::drawing(named.collect()));
    page.heading("Cells by damage");
    let head = [&["machine", "workload"], &figure::COLUMNS[..], &["record", "command"]].concat();
    page.table(&head, &figures.map(|(cell, figure)| line(cell, figure)).collect::<Vec<_>>());
    if let Some(cell) = report.cells.first() {
        page.heading(&format!("A closer look: {}", called(cell)));
        page.html(look);
    }
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
            figure::change(figure),
            figure::interval(figure),
            hits(cell.record)
        )
    };
    let title: Vec<_> = cell.figures.iter().map(sentence).collect();
    let degree = figure::degree(cell.main(), cell.verdict);
    Heat { text: short(cell, runs), title: format!("{}: {}", cell.workload, title.join("; ")), degree }
}

fn line(cell: &Judged, figure: &JudgedFigure) -> Vec<(String, Tone)> {
    let mut line = vec![(cell.machine.clone(), Tone::Name), (cell.name.clone(), Tone::Name)];
    line.extend(figure::row(figure));
    line.extend([(hits(cell.record), Tone::Plain), (cell.command.clone(), Tone::Command)]);
    line
}
