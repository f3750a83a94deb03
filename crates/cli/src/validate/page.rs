//! A validation as an HTML page.

use coreward_metrics::Verdict;
use coreward_metrics::html::{Change, Page, Tone, changes};

use super::report::{COUNTED, Column, OBSERVED, Report, ratio, sentence};
use super::score::{Pair, SCORED};

/// The report with all tables, and the ratio and the verdict of each figure of each benchmark. `look` is a closer look at
/// the simulation of a benchmark; `data` is the report as JSON.
pub(super) fn render(report: &Report<'_>, look: (&str, &str), data: &str) -> String {
    let mut page = Page::new("Benchmarks beside their simulation");
    page.names(&report.heading());
    page.heading("Verdicts");
    let verdict = |met| if met { ("met".to_owned(), Tone::Good) } else { ("not met".to_owned(), Tone::Bad) };
    let rows = report.scores.iter().map(|score| {
        let sentence = sentence(score);
        let text = sentence.split_once(": ").map_or(sentence.as_str(), |(_, text)| text);
        vec![(score.name.to_owned(), Tone::Plain), verdict(score.met), (text.to_owned(), Tone::Text)]
    });
    page.table(&["figure", "verdict", ""], &rows.collect::<Vec<_>>());
    page.heading("Simulated by real");
    let head: Vec<&str> =
        std::iter::once("benchmark").chain(SCORED.iter().map(|scored| scored.name)).collect();
    page.table(&head, &report.pairs.iter().map(ratios).collect::<Vec<_>>());
    for scored in &SCORED {
        page.html(&drawing(report.pairs, scored.name));
    }
    page.heading("Real / simulated: what can be counted of every run");
    columns(&mut page, report.pairs, &COUNTED);
    if report.pairs.iter().any(|pair| pair.real.observed.is_some()) {
        page.heading("Real / simulated: what tracepoints show");
        columns(&mut page, report.pairs, &OBSERVED);
    }
    let (benchmark, drawn) = look;
    page.heading(&format!("A closer look: the simulation of {benchmark}"));
    page.html(drawn);
    report.notes().iter().for_each(|note| page.text(note));
    page.data(data);
    page.finish()
}

/// How far the simulation of each benchmark is off in a figure.
fn drawing(pairs: &[Pair], figure: &str) -> String {
    let change = |pair: &Pair| {
        let compared = pair.compared().into_iter().find(|compared| compared.figure == figure)?;
        let delta = 100.0 * (compared.ratio - 1.0);
        // of the real rounds, about their median
        let half = compared.spread_pct.map(|spread| spread / 2.0 * compared.ratio);
        let interval = half.map(|half| (delta - half, delta + half));
        let verdict = if compared.within { Verdict::NotShown } else { Verdict::Worse };
        Some(Change { name: pair.benchmark.clone(), delta, interval, verdict: Some(verdict) })
    };
    let legend = "Simulated against real, in %: 0 is exact. The line is as wide as the real rounds lie apart; * is further off \
                  than the median benchmark may be.";
    changes(&format!("How far off: {figure}"), legend, &pairs.iter().filter_map(change).collect::<Vec<_>>())
}

fn ratios(pair: &Pair) -> Vec<(String, Tone)> {
    let compared = pair.compared();
    let cell = |name: &str| match compared.iter().find(|compared| compared.figure == name) {
        None => ("-".to_owned(), Tone::Plain),
        Some(compared) if compared.within => (ratio(compared), Tone::Good),
        // the colour is not all that tells it
        Some(compared) => (format!("{} !", ratio(compared)), Tone::Bad),
    };
    let cells = SCORED.iter().map(|scored| cell(scored.name));
    std::iter::once((pair.benchmark.clone(), Tone::Plain)).chain(cells).collect()
}

fn columns(page: &mut Page, pairs: &[Pair], columns: &[Column]) {
    let head: Vec<&str> =
        std::iter::once("benchmark").chain(columns.iter().map(|(heading, _)| *heading)).collect();
    let row = |pair: &Pair| {
        let cells = columns.iter().map(|(_, text)| (text(pair), Tone::Plain));
        std::iter::once((pair.benchmark.clone(), Tone::Plain)).chain(cells).collect()
    };
    page.table(&head, &pairs.iter().map(row).collect::<Vec<_>>());
}
