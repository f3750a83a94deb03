//! One cell: a workload on a machine, with and without the change.

use anyhow::{Context, Result};
use coreward_machine::Machine;
use coreward_metrics::{Comparison, Metrics, Side};
use coreward_workload::Scale;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::suite::Row;
use crate::address;
use crate::cli;
use crate::effort::Effort;
use crate::experiment::{AdHoc, Experiment};
use crate::figure::{self, Figure};
use crate::prepared::{self, Case, Overrides, Prepared};
use crate::work::Item;

/// A cell that is to be made.
pub(super) struct Plan {
    pub(super) machine: usize,
    pub(super) row: usize,
    /// Name of the suite's row.
    pub(super) name: String,
    pub(super) prepared: Prepared,
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
    /// The metrics of each run of the baseline, and of the change.
    pub(super) runs: [Vec<Metrics>; 2],
    /// The most important one first.
    pub(super) figures: Vec<Figure>,
    /// The invariants that runs broke.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) broken: Vec<String>,
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
    ) -> Result<(Plan, Item)> {
        let cpus = described.nr_cpus();
        let workload = suite_row.on(cpus, Scale::FULL)?;
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
        let key = key(&prepared, suite_row, cpus)?;
        let item = Item { key, weight: u64::from(args.runs) * (cpus as u64 + 16) };
        Ok((Plan { machine, row, name: suite_row.name.clone(), prepared }, item))
    }

    /// What the cell is called.
    pub(super) fn describe(&self) -> String {
        let Prepared { experiment, machine, cases, .. } = &self.prepared;
        let change = &experiment.variants[0].label;
        format!("{} on {}, {change}, {} runs a side", cases[0].workload.name, machine.name, cases[0].runs)
    }

    /// Runs both sides.
    ///
    /// # Errors
    /// A run does not end.
    pub(super) fn run(&self) -> Result<Cell> {
        // a cell is run by one thread: the cells are many, and are kept the sooner
        let compared = self.prepared.compare(&prepared::pool(Some(1))?, &Effort::default())?;
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
        Cell {
            workload: recipe.workload,
            command: recipe.command,
            same_runs: variant.same_runs,
            runs: [&baseline, &variant.side].map(Side::by_run),
            figures: figure::of(&headline, &baseline, variant),
            broken,
        }
    }
}

/// Everything that decides what a cell comes to.
fn key(prepared: &Prepared, row: &Row, cpus: usize) -> Result<String> {
    let hosts = prepared.hosts.iter().map(address::of_host).collect::<Result<Vec<_>>>()?;
    let seeds: Vec<u64> = prepared.experiment.sides().map(|side| side.seed).collect();
    Ok(address::of(&json!({
        "hosts": hosts,
        "seeds": seeds,
        "workload": address::of_row(row, cpus)?,
        "metrics": prepared.experiment.headline,
        "runs": prepared.cases[0].runs,
    })))
}
