//! What a sweep says: every setting beside the baseline, and the order of the settings.

use coreward_metrics::stats::{ALPHA, Verdict};
use coreward_metrics::{Comparison, CpuTime, Metrics, Runs};
use coreward_workload::Scale;
use serde::Serialize;
use serde_json::{Value, json};

use super::plan::{Done, Plan, Point};
use crate::address;
use crate::figure::{self, Figure, JudgedFigure};
use crate::matrix::suite::Row;
use crate::scale;
use crate::shell;

/// The report. Serializes as the output of `coreward sweep --json`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) version: &'static str,
    pub(super) name: String,
    /// `None` for that of the machine.
    pub(super) profile: Option<String>,
    /// What the baseline changes.
    pub(super) baseline: Option<String>,
    pub(super) runs: u32,
    pub(super) seed: u64,
    /// The part of each workload that was run, unless it was all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scale: Option<f64>,
    pub(super) summary: Summary,
    /// The best first: by whether a cell is worse beyond noise, then by the mean change.
    pub(super) settings: Vec<Setting>,
    pub(super) machines: Vec<String>,
    pub(super) workloads: Vec<Row>,
    /// Machine by machine, workload by workload, in the order of the file's settings.
    pub(super) cells: Vec<Cell>,
}

/// How many there are of what.
#[derive(Serialize)]
pub(super) struct Summary {
    /// Runs.
    pub(super) points: usize,
    pub(super) cells: usize,
    pub(super) worse: usize,
    pub(super) better: usize,
    pub(super) not_shown: usize,
    pub(super) same: usize,
    /// Figures that were tested together, which the correction is for.
    pub(super) tests: usize,
    pub(super) alpha: f64,
    /// SHA-256 over the metrics of all runs, in their order: the same however the sweep was run.
    pub(super) results_sha256: String,
}

/// A setting over all machines and workloads.
#[derive(Serialize)]
pub(super) struct Setting {
    pub(super) setting: String,
    /// The mean over the cells of the change of the first metric, in percent; + is better.
    pub(super) mean_delta_pct: Option<f64>,
    /// The worst of them.
    pub(super) worst_delta_pct: Option<f64>,
    pub(super) worse: usize,
    pub(super) better: usize,
}

/// A setting on a machine under a workload.
#[derive(Serialize)]
pub(super) struct Cell {
    pub(super) machine: String,
    /// Name of the suite's row.
    pub(super) name: String,
    pub(super) workload: String,
    pub(super) setting: String,
    /// The command that makes the same runs.
    pub(super) command: String,
    pub(super) verdict: Verdict,
    /// Runs that the setting did not alter in any metric.
    pub(super) same_runs: usize,
    pub(super) figures: Vec<JudgedFigure>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) broken: Vec<String>,
}

impl Report {
    pub(super) fn new(plan: &Plan, points: &[Point], done: &[Done]) -> Report {
        let runs = plan.runs as usize;
        let sides = plan.settings.len() + 1;
        let mut unjudged: Vec<(Cell, Vec<Figure>)> = Vec::new();
        // the points of a machine and a row stand together, side by side
        for (points, done) in points.chunks(runs * sides).zip(done.chunks(runs * sides)) {
            unjudged.extend(cells(plan, points[0], done));
        }
        let figures = unjudged.iter().map(|(cell, figures)| (figures.as_slice(), cell.same_runs < runs));
        let (judged, tests) = figure::judge(figures);
        let of = |((cell, _), figures): ((Cell, _), Vec<JudgedFigure>)| Cell {
            verdict: figure::worst(&figures),
            figures,
            ..cell
        };
        let cells: Vec<Cell> = unjudged.into_iter().zip(judged).map(of).collect();
        let count = |verdict| cells.iter().filter(|cell| cell.verdict == verdict).count();
        let same = cells.iter().filter(|cell| cell.same_runs == runs).count();
        let (worse, better) = (count(Verdict::Worse), count(Verdict::Better));
        let summary = Summary {
            points: points.len(),
            cells: cells.len(),
            worse,
            better,
            not_shown: cells.len() - worse - better - same,
            same,
            tests,
            alpha: ALPHA,
            results_sha256: address::of_lines(lines(plan, points, done)),
        };
        // the cells of a machine and a row are in the order of the settings
        let of = |i: usize| cells.iter().skip(i).step_by(plan.settings.len());
        let mut settings: Vec<Setting> =
            plan.settings.iter().enumerate().map(|(i, setting)| Setting::new(setting, of(i))).collect();
        let mean = |setting: &Setting| setting.mean_delta_pct.unwrap_or(f64::NEG_INFINITY);
        settings.sort_by(|a, b| (a.worse > 0).cmp(&(b.worse > 0)).then_with(|| mean(b).total_cmp(&mean(a))));
        Report {
            version: env!("CARGO_PKG_VERSION"),
            name: plan.name.clone(),
            profile: plan.profile.clone(),
            baseline: plan.baseline.clone(),
            runs: plan.runs,
            seed: plan.seed,
            scale: (plan.scale != Scale::FULL).then(|| f64::from(plan.scale.0) / f64::from(Scale::FULL.0)),
            summary,
            settings,
            machines: plan.machines.iter().map(|on| on.hosts[0].machine.name.clone()).collect(),
            workloads: plan.rows.clone(),
            cells,
        }
    }

    /// The cell that is worst beyond noise; if none is, the one that is best; if none is that either, the first.
    pub(super) fn outermost(&self) -> Option<&Cell> {
        let size = |cell: &Cell| figure::main(&cell.figures, cell.verdict).map_or(0.0, figure::size);
        let largest = |verdict| {
            let cells = self.cells.iter().filter(|cell| cell.verdict == verdict);
            cells.max_by(|a, b| size(a).total_cmp(&size(b)))
        };
        largest(Verdict::Worse).or_else(|| largest(Verdict::Better)).or(self.cells.first())
    }

    /// What invariants were broken in which cells.
    pub(super) fn broken(&self) -> Vec<String> {
        let of = |cell: &Cell| -> Vec<String> {
            let place = format!("{} on {}, {}", cell.name, cell.machine, cell.setting);
            cell.broken.iter().map(|what| format!("{place}: {what}")).collect()
        };
        self.cells.iter().flat_map(of).collect()
    }
}

impl Setting {
    fn new<'a>(setting: &str, cells: impl Iterator<Item = &'a Cell> + Clone) -> Setting {
        let main = cells.clone().filter_map(|cell| cell.figures.first());
        let deltas: Vec<f64> = main.filter_map(|figure| figure.figure.delta_pct).collect();
        let count = |verdict| cells.clone().filter(|cell| cell.verdict == verdict).count();
        Setting {
            setting: setting.to_owned(),
            mean_delta_pct: (!deltas.is_empty()).then(|| deltas.iter().sum::<f64>() / deltas.len() as f64),
            worst_delta_pct: deltas.iter().copied().reduce(f64::min),
            worse: count(Verdict::Worse),
            better: count(Verdict::Better),
        }
    }
}

/// The cells of a machine and a row, of which `done` are all runs and `first` is the first one.
fn cells(plan: &Plan, first: Point, done: &[Done]) -> Vec<(Cell, Vec<Figure>)> {
    let on = &plan.machines[first.machine];
    let row = &plan.rows[first.row];
    let side = |(side, done): (usize, &[Done])| {
        let policy = &on.hosts[side].policy;
        Runs {
            label: plan.side(side).to_owned(),
            profile: policy.profile.name().to_owned(),
            changes: policy.deviations(),
            seed: plan.seed,
            runs: done.iter().map(|done| done.metrics.clone()).collect::<Vec<Metrics>>(),
            cpu_time: CpuTime::default(),
        }
    };
    let mut sides = done.chunks(plan.runs as usize).enumerate().map(side);
    let baseline = sides.next().expect("a sweep has a baseline");
    let compared =
        Comparison::new(&plan.name, &row.metrics, baseline, sides.collect(), Vec::new(), Vec::new());
    let Comparison { baseline, variants, headline, .. } = compared;
    let workload = on.workloads[first.row].as_ref().map_or("", |workload| &workload.name);
    let cell = |(i, variant): (usize, &coreward_metrics::Variant)| {
        let setting = plan.settings[i].clone();
        let own = &done[(i + 1) * plan.runs as usize..][..plan.runs as usize];
        let cell = Cell {
            machine: on.hosts[0].machine.name.clone(),
            name: row.name.clone(),
            workload: workload.to_owned(),
            command: command(plan, &on.spec, workload, &setting, on.hosts[0].policy.profile.name()),
            setting,
            verdict: Verdict::Untested,
            same_runs: variant.same_runs,
            figures: Vec::new(),
            broken: own.iter().flat_map(|done| done.broken.iter().cloned()).collect(),
        };
        (cell, figure::of(&headline, &baseline, variant))
    };
    variants.iter().enumerate().map(cell).collect()
}

/// The command that compares a setting with the baseline.
fn command(plan: &Plan, machine: &str, workload: &str, setting: &str, profile: &str) -> String {
    let (runs, seed, scale) = (plan.runs.to_string(), plan.seed.to_string(), scale::text(plan.scale));
    let mut words = vec!["coreward", "compare", workload, "--machine", machine, "--profile", profile];
    words.extend(plan.baseline.iter().flat_map(|changes| ["--baseline-with", changes]));
    words.extend(["--with", setting, "--seed", &seed, "--runs", &runs]);
    if plan.scale != Scale::FULL {
        words.extend(["--scale", &scale]);
    }
    shell::line(words)
}

/// A row for each run: what it is, what its setting changes, and its metrics.
pub(super) fn lines<'a>(
    plan: &'a Plan,
    points: &'a [Point],
    done: &'a [Done],
) -> impl Iterator<Item = Value> + 'a {
    points.iter().zip(done).map(|(point, done)| {
        let on = &plan.machines[point.machine];
        json!({
            "machine": on.hosts[0].machine.name,
            "name": plan.rows[point.row].name,
            "workload": on.workloads[point.row].as_ref().map(|workload| &workload.name),
            "setting": plan.side(point.side),
            "seed": point.seed,
            "metrics": done.metrics,
        })
    })
}
