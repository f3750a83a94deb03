//! `--output`: the runs of a command as a table (docs/tables.md).

use std::path::PathBuf;

use anyhow::Result;
use coreward_metrics::{Metric, Variant, Verdict};
use coreward_tables::{Format, Row, SCHEMA_VERSION, Table, better, verdict};
use coreward_workload::Scale;

use crate::caller;
use crate::figure::JudgedFigure;
use crate::output::{Complete, OutputFile, Outputs};
use crate::setup::Host;

/// A file whose ending says how the table is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    path: PathBuf,
    format: Format,
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let path = PathBuf::from(text);
        match Format::of(&path) {
            Some(format) => Ok(Target { path, format }),
            None => Err("allowed are names that end with .parquet, .csv or .jsonl".into()),
        }
    }
}

/// The tables that a command writes; each has all rows, as has the caller's.
pub(crate) struct Tables(Vec<Table<OutputFile>>);

/// What the runs of all sides have in common.
pub(crate) struct Place<'a> {
    pub(crate) command: &'static str,
    /// Name of the experiment or sweep.
    pub(crate) experiment: Option<&'a str>,
    /// Label of the case, or name of the suite's row.
    pub(crate) case: Option<&'a str>,
    pub(crate) workload: &'a str,
    pub(crate) scale: Scale,
}

/// The runs of a side.
pub(crate) struct Runs<'a, F: Fn(usize, Metric) -> Option<f64>> {
    pub(crate) role: Role,
    pub(crate) label: &'a str,
    pub(crate) host: &'a Host,
    /// Of the first run; each has the next one.
    pub(crate) seed: u64,
    pub(crate) runs: usize,
    /// The value of a metric in a run.
    pub(crate) value: F,
}

/// What a side is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    Single,
    Baseline,
    Variant,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Single => "single",
            Role::Baseline => "baseline",
            Role::Variant => "variant",
        }
    }
}

/// How a variant differs from the baseline in a metric.
#[derive(Clone, Copy, Default)]
pub(crate) struct Change {
    delta_pct: Option<f64>,
    interval_pct: Option<(f64, f64)>,
    p_value: Option<f64>,
    verdict: Option<Verdict>,
}

impl Change {
    /// Of a variant of a comparison.
    pub(crate) fn of(variant: &Variant, metric: Metric) -> Change {
        Change {
            delta_pct: variant.delta_pct.get(&metric).copied().flatten(),
            interval_pct: variant.interval_pct.get(&metric).copied().flatten(),
            p_value: variant.p_value.get(&metric).copied().flatten(),
            verdict: variant.verdict(metric),
        }
    }

    /// Of the figures of a cell.
    pub(crate) fn among(figures: &[JudgedFigure], metric: Metric) -> Change {
        let found = figures.iter().find(|judged| judged.figure.metric == metric);
        found.map_or_else(Change::default, |JudgedFigure { figure, verdict, .. }| Change {
            delta_pct: figure.delta_pct,
            interval_pct: figure.interval_pct,
            p_value: figure.p_value,
            verdict: Some(*verdict),
        })
    }
}

impl Tables {
    /// Opens all files, so that one that cannot be written is found before any work is done.
    ///
    /// # Errors
    /// One cannot be written, or is an input or another output.
    pub(crate) fn open(outputs: &mut Outputs, targets: &[Target]) -> Result<Tables> {
        let open = |target: &Target| -> Result<_> {
            Ok(Table::new(target.format, outputs.create("--output", &target.path)?)?)
        };
        Ok(Tables(targets.iter().map(open).collect::<Result<_>>()?))
    }

    /// Adds the runs of a side, with how the side differs from the baseline in each metric.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn add<F: Fn(usize, Metric) -> Option<f64>>(
        &mut self,
        place: &Place<'_>,
        side: &Runs<'_, F>,
        change: impl Fn(Metric) -> Change,
    ) -> Result<()> {
        if self.0.is_empty() && !caller::wants_rows() {
            return Ok(());
        }
        let changes = side.host.policy.deviations().join(", ");
        let changed: Vec<(Metric, Change)> = Metric::ALL.iter().map(|m| (*m, change(*m))).collect();
        for run in 0..side.runs {
            for (metric, change) in &changed {
                let Some(value) = (side.value)(run, *metric) else { continue };
                let row = Row {
                    schema_version: SCHEMA_VERSION,
                    coreward_version: env!("CARGO_PKG_VERSION"),
                    command: place.command,
                    experiment: place.experiment,
                    case: place.case,
                    machine: &side.host.machine.name,
                    cpus: side.host.machine.nr_cpus() as u64,
                    workload: place.workload,
                    scale: f64::from(place.scale.0) / f64::from(Scale::FULL.0),
                    task_group_depth: side.host.task_group_depth.into(),
                    profile: side.host.policy.profile.name(),
                    role: side.role.name(),
                    side: side.label,
                    changes: &changes,
                    run: run as u64,
                    seed: side.seed.wrapping_add(run as u64),
                    metric: metric.name(),
                    value,
                    unit: metric.unit(),
                    better: better(metric.better()),
                    delta_pct: change.delta_pct,
                    ci95_low_pct: change.interval_pct.map(|(low, _)| low),
                    ci95_high_pct: change.interval_pct.map(|(_, high)| high),
                    p_value: change.p_value,
                    verdict: change.verdict.map(verdict),
                };
                self.0.iter_mut().try_for_each(|table| table.push(&row))?;
                caller::row(&row);
            }
        }
        Ok(())
    }

    /// All files.
    ///
    /// # Errors
    /// One cannot be written.
    pub(crate) fn complete(self) -> Result<Vec<Complete>> {
        self.0.into_iter().map(|table| table.finish()?.complete()).collect()
    }
}
