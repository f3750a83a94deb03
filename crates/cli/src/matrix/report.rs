//! What a matrix says: every cell judged, and the order of damage.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anyhow::Result;
use coreward_metrics::Metrics;
use coreward_metrics::fidelity::{Hits, Standing};
use coreward_metrics::stats::{ALPHA, Verdict};
use serde::Serialize;

use super::cell::Cell;
use super::suite::Row;
use crate::figure::{self, JudgedFigure};
use crate::output;

/// The report. Serializes as the output of `coreward matrix --json`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) version: &'static str,
    /// The command that repeats it.
    pub(super) command: String,
    pub(super) change: String,
    /// The baseline on each machine: mostly the same one.
    pub(super) baseline: Vec<String>,
    pub(super) runs: u32,
    pub(super) seed: u64,
    /// The model's record at changes of this family.
    pub(super) record: Option<Standing>,
    pub(super) summary: Summary,
    /// In the order of damage, like the workloads and the cells.
    pub(super) machines: Vec<Described>,
    pub(super) workloads: Vec<Row>,
    pub(super) cells: Vec<Judged>,
    pub(super) notes: Vec<String>,
}

/// How many cells are what.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) cells: usize,
    /// With a figure beyond noise for the worse.
    pub(super) worse: usize,
    /// Of the others, those with one for the better.
    pub(super) better: usize,
    pub(super) not_shown: usize,
    /// The change had no effect on any run.
    pub(super) same: usize,
    /// Figures that were tested together, which the correction is for.
    pub(super) tests: usize,
    /// The share of the figures beyond noise that are expected to be false alarms.
    pub(super) alpha: f64,
}

/// A machine of the matrix.
#[derive(Clone, Serialize)]
pub(super) struct Described {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) cpus: usize,
}

/// A cell and what it says.
#[derive(Clone, Serialize)]
pub(super) struct Judged {
    pub(super) machine: String,
    /// Name of the suite's row.
    pub(super) name: String,
    /// The command line that the row stands for on this machine.
    pub(super) workload: String,
    pub(super) command: String,
    /// That of the figures, a loss before a gain.
    pub(super) verdict: Verdict,
    pub(super) same_runs: usize,
    /// How often the model was right about this benchmark: among published changes of the same family, or, if the change
    /// belongs to none, among all.
    pub(super) record: Hits,
    pub(super) figures: Vec<JudgedFigure>,
    /// The metrics of each run of the baseline, and of the change.
    #[serde(skip)]
    pub(super) runs: [Vec<Metrics>; 2],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) broken: Vec<String>,
}

/// What the report is made of, besides the cells.
pub(super) struct Frame {
    pub(super) command: String,
    pub(super) change: String,
    pub(super) baseline: Vec<String>,
    pub(super) runs: u32,
    pub(super) seed: u64,
    pub(super) record: Option<Standing>,
    pub(super) machines: Vec<Described>,
    pub(super) workloads: Vec<Row>,
    pub(super) notes: Vec<String>,
}

impl Report {
    /// Judges the cells, which come with their machine, row and record.
    pub(super) fn new(frame: Frame, cells: Vec<(usize, usize, Hits, Cell)>) -> Report {
        let Frame { command, change, baseline, runs, seed, record, machines, workloads, notes } = frame;
        let figures =
            cells.iter().map(|(.., cell)| (cell.figures.as_slice(), cell.same_runs < runs as usize));
        let (figures, tests) = figure::judge(figures);
        let mut judged = Vec::new();
        for ((machine, row, record, cell), figures) in cells.into_iter().zip(figures) {
            judged.push(Judged {
                machine: machines[machine].name.clone(),
                name: workloads[row].name.clone(),
                workload: cell.workload,
                command: cell.command,
                verdict: figure::worst(&figures),
                same_runs: cell.same_runs,
                record,
                figures,
                runs: cell.runs,
                broken: cell.broken,
            });
        }
        judged.sort_by(by_damage);
        let count = |verdict| judged.iter().filter(|cell| cell.verdict == verdict).count();
        let same = judged.iter().filter(|cell| cell.same_runs == runs as usize).count();
        let (worse, better) = (count(Verdict::Worse), count(Verdict::Better));
        let summary = Summary {
            cells: judged.len(),
            worse,
            better,
            not_shown: judged.len() - worse - better - same,
            same,
            tests,
            alpha: ALPHA,
        };
        // a machine or workload is where the first of its cells is
        let first = |name: fn(&Judged) -> &str| -> BTreeMap<String, usize> {
            judged.iter().enumerate().rev().map(|(i, cell)| (name(cell).to_owned(), i)).collect()
        };
        let place =
            |places: &BTreeMap<String, usize>, name: &str| places.get(name).copied().unwrap_or(usize::MAX);
        let (of_machines, of_workloads) = (first(|cell| &cell.machine), first(|cell| &cell.name));
        let (mut machines, mut workloads) = (machines, workloads);
        machines.sort_by_key(|machine| place(&of_machines, &machine.name));
        workloads.sort_by_key(|row| place(&of_workloads, &row.name));
        let version = env!("CARGO_PKG_VERSION");
        Report {
            version,
            command,
            change,
            baseline,
            runs,
            seed,
            record,
            summary,
            machines,
            workloads,
            cells: judged,
            notes,
        }
    }

    /// The cell of a machine and a row, if the row fits.
    pub(super) fn cell(&self, machine: &str, row: &str) -> Option<&Judged> {
        self.cells.iter().find(|cell| cell.machine == machine && cell.name == row)
    }

    /// Figures with this verdict and their cells, the largest changes first.
    pub(super) fn figures(&self, verdict: Verdict) -> Vec<(&Judged, &JudgedFigure)> {
        let all = self.cells.iter().flat_map(|cell| cell.figures.iter().map(move |figure| (cell, figure)));
        let mut found: Vec<_> = all.filter(|(_, figure)| figure.verdict == verdict).collect();
        found.sort_by(|(_, a), (_, b)| figure::size(b).total_cmp(&figure::size(a)));
        found
    }

    pub(super) fn json(&self, out: &mut dyn std::io::Write) -> Result<()> {
        output::json(out, self)
    }

    /// What invariants were broken in which cells.
    pub(super) fn broken(&self) -> Vec<String> {
        let of = |cell: &Judged| -> Vec<String> {
            cell.broken.iter().map(|what| format!("{} on {}: {what}", cell.name, cell.machine)).collect()
        };
        self.cells.iter().flat_map(of).collect()
    }
}

impl Judged {
    /// The figure that stands for the cell.
    pub(super) fn main(&self) -> Option<&JudgedFigure> {
        figure::main(&self.figures, self.verdict)
    }

    /// Whether the change had no effect on any run.
    pub(super) fn is_same(&self, runs: u32) -> bool {
        self.same_runs == runs as usize
    }
}

/// Losses, then what shows no change, then gains; each from the worst figure to the best.
fn by_damage(a: &Judged, b: &Judged) -> Ordering {
    let rank = |cell: &Judged| match cell.verdict {
        Verdict::Worse => 0,
        Verdict::Better => 2,
        _ => 1,
    };
    let delta = |cell: &Judged| {
        let figure = cell.main();
        let unknown = if cell.verdict == Verdict::Worse { f64::NEG_INFINITY } else { 0.0 };
        figure.map_or(0.0, |figure| figure.figure.delta_pct.unwrap_or(unknown))
    };
    rank(a)
        .cmp(&rank(b))
        .then_with(|| delta(a).total_cmp(&delta(b)))
        .then_with(|| (&a.machine, &a.name).cmp(&(&b.machine, &b.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use coreward_metrics::Metric;

    fn figure(delta: f64, p: f64) -> Figure {
        Figure {
            metric: Metric::runtime_s,
            baseline: 100.0,
            changed: 100.0 - delta,
            delta_pct: Some(delta),
            interval_pct: None,
            p_value: Some(p),
        }
    }

    fn report(figures: &[Vec<Figure>], same_runs: &[usize]) -> Report {
        let cell = |(i, figures): (usize, &Vec<Figure>)| {
            let cell = Cell {
                workload: format!("w{i}"),
                command: String::new(),
                same_runs: same_runs.get(i).copied().unwrap_or(0),
                runs: [vec![], vec![]],
                figures: figures.clone(),
                broken: vec![],
            };
            (i, 0, Hits::default(), cell)
        };
        let described = |i| Described { name: format!("m{i}"), description: String::new(), cpus: 1 };
        let frame = Frame {
            command: String::new(),
            change: String::new(),
            baseline: vec![],
            runs: 5,
            seed: 1,
            record: None,
            machines: (0..figures.len()).map(described).collect(),
            workloads: super::super::suite::rows(None, &["perf-pipe".into()]).unwrap(),
            notes: vec![],
        };
        Report::new(frame, figures.iter().enumerate().map(cell).collect())
    }

    #[test]
    fn the_worst_cell_is_first_and_a_gain_does_not_hide_a_loss() {
        let report = report(
            &[
                vec![figure(9.0, 1e-6)],
                vec![figure(-5.0, 1e-6), figure(90.0, 1e-6)],
                vec![figure(-40.0, 0.5)],
                vec![figure(-30.0, 1e-6)],
            ],
            &[],
        );
        let machines: Vec<_> = report.machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(machines, ["m3", "m1", "m2", "m0"]);
        let Summary { worse, better, not_shown, same, tests, .. } = report.summary;
        assert_eq!((worse, better, not_shown, same, tests), (2, 1, 1, 0, 5));
        let losses: Vec<_> =
            report.figures(Verdict::Worse).iter().map(|(cell, _)| cell.machine.clone()).collect();
        assert_eq!(losses, ["m3", "m1"]);
        assert_eq!(report.cells[1].main().unwrap().figure.delta_pct, Some(-5.0));
    }

    /// p = 0.02 is beyond noise by itself and among four of the kind, but not among many that show nothing.
    #[test]
    fn a_figure_is_tested_among_all_of_the_matrix() {
        let worse = |others: usize, p: f64| {
            let mut cells = vec![vec![figure(-5.0, 0.02)]];
            cells.extend((0..others).map(|_| vec![figure(-5.0, p)]));
            report(&cells, &[]).summary.worse
        };
        assert_eq!((worse(0, 0.5), worse(3, 0.02), worse(3, 0.5)), (1, 4, 0));
    }

    #[test]
    fn cells_without_any_effect_are_no_tests() {
        let cells: Vec<_> = (0..50).map(|i| vec![figure(0.0, if i == 0 { 0.02 } else { 1.0 })]).collect();
        let same: Vec<_> = (0..50).map(|i| if i == 0 { 0 } else { 5 }).collect();
        let Summary { worse, better, same, tests, .. } = report(&cells, &same).summary;
        assert_eq!((worse + better, same, tests), (1, 49, 1));
    }
}
