//! One cell: a workload on a machine, with and without the change.

use anyhow::{Context, Result};
use coreward_machine::Machine;
use coreward_metrics::{Comparison, Metric};
use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::suite::Row;
use crate::cli;
use crate::effort::Effort;
use crate::experiment::{AdHoc, Experiment};
use crate::prepared::{Case, Overrides, Prepared};

/// A cell that is to be made.
pub(super) struct Plan {
    pub(super) machine: usize,
    pub(super) row: usize,
    /// About how much work it is.
    pub(super) weight: u64,
    /// Everything that decides the result; empty if no cells are kept.
    pub(super) key: String,
    prepared: Prepared,
}

/// What a cell came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Cell {
    /// The command line of the workload.
    pub(super) workload: String,
    /// The command that makes the same runs.
    pub(super) command: String,
    /// Runs that the change did not alter in any metric.
    pub(super) same_runs: usize,
    /// The most important one first.
    pub(super) figures: Vec<Figure>,
    /// The invariants that runs broke.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) broken: Vec<String>,
}

/// A metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) metric: Metric,
    /// The means of the two sides.
    pub(super) baseline: f64,
    pub(super) changed: f64,
    /// In percent, + is better.
    pub(super) delta_pct: Option<f64>,
    /// 95 % interval of that, by itself.
    pub(super) interval_pct: Option<(f64, f64)>,
    /// By itself.
    pub(super) p_value: Option<f64>,
}

impl Plan {
    /// Reads all that the cell needs; `spec` is what the user called the machine.
    ///
    /// # Errors
    /// A name is unknown, or the machine does not have what a side asks for.
    pub(super) fn new(
        args: &cli::Matrix,
        change: &str,
        (machine, spec, described): (usize, &str, &Machine),
        (row, suite_row): (usize, &Row),
    ) -> Result<Plan> {
        let cpus = described.nr_cpus();
        let workload = suite_row.on(cpus)?;
        let with = [change.to_owned()];
        let experiment = Experiment::of_options(&AdHoc {
            workload: &workload.name,
            machine: spec,
            profile: args.profile.as_deref(),
            seed: Some(args.seed),
            baseline_with: args.baseline_with.as_deref(),
            with: &with,
        })?;
        let overrides = Overrides {
            runs: Some(args.runs),
            task_group_depth: args.task_group_depth,
            costs: &args.cost,
            headline: &suite_row.metrics,
            quiet: true,
            ..Overrides::default()
        };
        let case = Case::of(&experiment.cases[0], workload, &overrides);
        let prepared = Prepared::of(experiment, described, vec![case], &overrides, false)
            .with_context(|| format!("{} on {}", suite_row.name, described.name))?;
        let key = match args.state {
            Some(_) => key(&prepared, suite_row, cpus)?,
            None => String::new(),
        };
        let weight = args.runs as u64 * (cpus as u64 + 16);
        Ok(Plan { machine, row, weight, key, prepared })
    }

    /// Runs both sides.
    ///
    /// # Errors
    /// A run does not end.
    pub(super) fn run(&self, pool: &ThreadPool) -> Result<Cell> {
        let compared = self.prepared.compare(pool, &Effort::default())?;
        let comparison = compared.into_iter().next().context("an experiment has a case")?;
        Ok(Cell::new(comparison))
    }

    /// The experiment, of which the sides are the same in all cells on machines with the same kernel.
    pub(super) fn experiment(&self) -> &Experiment {
        &self.prepared.experiment
    }
}

impl Cell {
    fn new(comparison: Comparison) -> Cell {
        let Comparison { recipe, baseline, variants, headline, broken, .. } = comparison;
        let variant = &variants[0];
        let figure = |metric: &Metric| {
            let (before, after) = (baseline.metrics.get(metric)?, variant.side.metrics.get(metric)?);
            Some(Figure {
                metric: *metric,
                baseline: before.mean,
                changed: after.mean,
                delta_pct: variant.delta_pct.get(metric).copied().flatten(),
                interval_pct: variant.interval_pct.get(metric).copied().flatten(),
                p_value: variant.p_value.get(metric).copied().flatten(),
            })
        };
        Cell {
            workload: recipe.workload,
            command: recipe.command,
            same_runs: variant.same_runs,
            figures: headline.iter().filter_map(figure).collect(),
            broken,
        }
    }
}

/// Everything that decides what a cell comes to, as a line of JSON: the program, the machine with its costs, the
/// workload, both sides and the number of runs.
fn key(prepared: &Prepared, row: &Row, cpus: usize) -> Result<String> {
    let (workload, file) = row.text(cpus).map_err(anyhow::Error::msg)?;
    let files = row.paths().into_iter().map(|path| Ok(crc32fast::hash(&std::fs::read(path)?)));
    let files: Vec<u32> = files.collect::<Result<_>>()?;
    let sides: Vec<Value> = prepared
        .experiment
        .sides()
        .zip(&prepared.hosts)
        .map(|(side, host)| {
            json!({
                "profile": host.policy.profile.name(),
                "changes": host.policy.deviations(),
                "policy": host.policy.code.key(),
                "seed": side.seed,
            })
        })
        .collect();
    let host = &prepared.hosts[0];
    Ok(serde_json::to_string(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "program": super::state::program()?,
        "machine": host.machine.name,
        "machine_crc": crc32fast::hash(host.machine.to_toml().as_bytes()),
        "workload": workload,
        "rt_app": file,
        "files_crc": files,
        "metrics": prepared.experiment.headline,
        "sides": sides,
        "runs": prepared.cases[0].runs,
        "task_group_depth": host.task_group_depth,
    }))?)
}
