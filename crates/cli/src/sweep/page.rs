//! The report as a page.

use coreward_metrics::html::{Heat, Page, Tone, heat_map};

use super::report::{Cell, Report, Setting};
use crate::figure::{self, JudgedFigure};

/// All settings, and how each changes each workload on each machine. `look` is a closer look at the report's outermost
/// cell; `data` is the report as JSON.
pub(super) fn render(report: &Report, look: &str, data: &str) -> String {
    let mut page = Page::new(&report.name);
    let summary = &report.summary;
    page.names(&[
        ("coreward", report.version.to_owned()),
        ("profile", report.profile.clone().unwrap_or("that of the machine".into())),
        ("baseline", report.baseline.clone().unwrap_or("the profile".into())),
        (
            "runs",
            format!("{} of each setting, from seed {}; {} in all", report.runs, report.seed, summary.points),
        ),
        ("worse", format!("{} of {} cells beyond noise", summary.worse, summary.cells)),
        ("better", format!("{} beyond noise", summary.better)),
        ("not shown", summary.not_shown.to_string()),
        ("the same", format!("{} cells in all runs: the setting does nothing there", summary.same)),
        ("SHA-256", summary.results_sha256.clone()),
    ]);
    page.heading("Settings, the best first");
    page.text("Change of the first metric in %, + is better. Settings without a cell worse beyond noise come first.");
    page.table(
        &["setting", "mean", "worst", "better", "worse"],
        &report.settings.iter().map(line).collect::<Vec<_>>(),
    );
    page.heading("Each setting on each machine under each workload");
    page.text(&format!(
        "Change in %, + is better. Only what is beyond noise (*) is coloured: p < {} corrected for {} figures by Benjamini \
         and Hochberg. = is the same in all runs.",
        summary.alpha, summary.tests
    ));
    let mut places: Vec<(&str, &str)> = Vec::new();
    for cell in &report.cells {
        let place = (cell.machine.as_str(), cell.name.as_str());
        places.extend((!places.contains(&place)).then_some(place));
    }
    let names: Vec<String> = places.iter().map(|(machine, name)| format!("{name} on {machine}")).collect();
    let head: Vec<&str> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
    let row = |setting: &Setting| {
        let at = |(machine, name): &(&str, &str)| {
            let mut cells = report.cells.iter();
            let found =
                cells.find(|c| c.setting == setting.setting && c.machine == *machine && c.name == *name);
            found.map(|cell| heat(cell, report.runs))
        };
        places.iter().map(at).collect()
    };
    let rows: Vec<(&str, Vec<Option<Heat>>)> =
        report.settings.iter().map(|setting| (setting.setting.as_str(), row(setting))).collect();
    page.html(&heat_map(&head, &rows));
    let figures = report.cells.iter().flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
    let called = |cell: &Cell| format!("{} on {}, {}", cell.name, cell.machine, cell.setting);
    page.html(&figure::drawing(figures.clone().map(|(cell, figure)| (called(cell), figure)).collect()));
    page.heading("Cells");
    let head = [&["setting", "machine", "workload"], &figure::COLUMNS[..], &["command"]].concat();
    page.table(&head, &figures.map(|(cell, figure)| of_cell(cell, figure)).collect::<Vec<_>>());
    if let Some(cell) = report.outermost() {
        page.heading(&format!("A closer look: {}", called(cell)));
        page.html(look);
    }
    report.broken().iter().for_each(|broken| page.text(&format!("broken: {broken}")));
    page.data(data);
    page.finish()
}

fn line(setting: &Setting) -> Vec<(String, Tone)> {
    let percent =
        |delta: Option<f64>| (delta.map_or("-".into(), |delta| format!("{delta:+.2}")), Tone::Plain);
    let tone = if setting.worse > 0 { Tone::Bad } else { Tone::Plain };
    vec![
        (setting.setting.clone(), Tone::Text),
        percent(setting.mean_delta_pct),
        percent(setting.worst_delta_pct),
        (setting.better.to_string(), Tone::Plain),
        (setting.worse.to_string(), tone),
    ]
}

fn of_cell(cell: &Cell, figure: &JudgedFigure) -> Vec<(String, Tone)> {
    let names = [(&cell.setting, Tone::Text), (&cell.machine, Tone::Name), (&cell.name, Tone::Name)];
    let command = (cell.command.clone(), Tone::Command);
    names
        .map(|(name, tone)| (name.clone(), tone))
        .into_iter()
        .chain(figure::row(figure))
        .chain([command])
        .collect()
}

fn heat(cell: &Cell, runs: u32) -> Heat {
    let main = figure::main(&cell.figures, cell.verdict);
    let mark = if cell.verdict.is_significant() { "*" } else { "" };
    let text = match main.and_then(|judged| judged.figure.delta_pct) {
        _ if cell.same_runs == runs as usize => "=".into(),
        Some(delta) => format!("{delta:+.1}{mark}"),
        None => format!("from 0{mark}"),
    };
    let metric = main.map_or("", |judged| judged.figure.metric.name());
    let title = format!("{}: {metric}", cell.workload);
    Heat { text, title, degree: figure::degree(main, cell.verdict) }
}
