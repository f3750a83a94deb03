//! `--intervals`: the changes over the bounds of the machine's costs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Result, bail};
use coreward_machine::{CostField, Costs, Machine};
use coreward_metrics::stats::delta_pct;
use coreward_metrics::{Comparison, Metric, Metrics, Uncertainty};
use coreward_workload::Scale;
use rayon::ThreadPool;

use crate::prepared::Prepared;
use crate::setup::Host;

/// Points unless a number is given: among 40 costs, one that explains a sixth of the variance stands out (a correlation of
/// 0.4 has p = 0.05 / 40).
pub(crate) const POINTS: &str = "64";
/// Points that are allowed: with fewer, the interval leaves out less than one on each side.
pub(crate) const ALLOWED: RangeInclusive<u32> = 10..=4096;

/// Costs that a machine knows within bounds.
pub(crate) struct Space {
    bounds: Vec<Bounds>,
    machine: Machine,
}

struct Bounds {
    field: &'static CostField,
    low: u64,
    high: u64,
    /// Of the sequence: the cost's place among all costs, so that a point is the same of all machines.
    dimension: u32,
}

impl Space {
    /// Of all costs of the machine but those that have one value on all sides, as it was given.
    pub(crate) fn new(machine: &Machine, sides: &[Host]) -> Space {
        let given =
            |name: &str| sides.iter().all(|side| side.policy.costs.iter().any(|(set, _)| set == name));
        let bounds = (0..).zip(Costs::FIELDS).map(|(dimension, field)| {
            let (low, high) = machine.cost_bounds(field);
            Bounds { field, low, high, dimension }
        });
        let bounds = bounds.filter(|it| it.low < it.high && !given(it.field.name)).collect();
        Space { bounds, machine: machine.clone() }
    }

    /// The costs at a point of Sobol's sequence, with Owen's scrambling: any number of points fills the space evenly. A
    /// cost is as likely in each equal factor between its bounds.
    fn costs(&self, point: u32) -> Costs {
        let mut costs = self.machine.costs.clone();
        for Bounds { field, low, high, dimension } in &self.bounds {
            let at = f64::from(sobol_burley::sample(point, *dimension, 0));
            let (least, most) = ((*low as f64).max(0.5), *high as f64 + 0.5);
            let value = (least * (most / least).powf(at)) as u64;
            costs.set(field.name, value.clamp(*low, *high)).expect("bounds are in the range of the cost");
        }
        costs
    }
}

/// Adds to comparisons what the changes of `metrics` are over the bounds of the costs.
pub(crate) fn add(
    comparisons: &mut [Comparison],
    metrics: impl Fn(&Comparison) -> Vec<Metric>,
    prepared: &Prepared,
    points: u32,
    pool: &ThreadPool,
) -> Result<()> {
    let space = Space::new(&prepared.machine, &prepared.hosts);
    if space.bounds.is_empty() {
        bail!("--intervals: no cost of {} has bounds between which it may lie", prepared.machine.name);
    }
    let costs: Vec<Costs> = (0..points).map(|point| space.costs(point)).collect();
    let hosts: Vec<Vec<Host>> = costs.iter().map(|costs| prepared.hosts_with(costs)).collect();
    let of_costs: Vec<(&str, Vec<f64>)> = space
        .bounds
        .iter()
        .map(|Bounds { field, .. }| {
            (field.name, costs.iter().map(|c| c.get(field.name).unwrap_or(0) as f64).collect())
        })
        .collect();
    let scale = prepared.experiment.points_scale;
    let part = (scale != Scale::FULL).then(|| f64::from(scale.0) / f64::from(Scale::FULL.0));
    let shorter = part.map(|part| format!(", with {part} of the workload")).unwrap_or_default();
    for (comparison, runs) in comparisons.iter_mut().zip(prepared.run_points(&hosts, pool)?) {
        let metrics = metrics(comparison);
        for (i, variant) in comparison.variants.iter_mut().enumerate() {
            let change = |metric: Metric| {
                let of = |sides: &Vec<Metrics>| {
                    delta_pct(metric.better(), sides[0].get(metric)?, sides[i + 1].get(metric)?)
                };
                let changes: Vec<_> = runs.iter().map(of).collect();
                Some((metric, Uncertainty { part, ..Uncertainty::of(&of_costs, &changes)? }))
            };
            variant.uncertainty = metrics.iter().copied().filter_map(change).collect::<BTreeMap<_, _>>();
        }
        comparison.recipe.command += &format!(" --intervals={points}");
        let varied = space.bounds.len();
        comparison.notes.push(format!(
            "the intervals are over the bounds of {varied} of the machine's costs, one run of each side at each of {points} \
             points{shorter}; they say nothing of what the model lacks"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use coreward_policy::Profile;

    use super::*;
    use crate::policy::Policy;

    #[test]
    fn points_fill_the_bounds() {
        let text = "shape = \"2c\"\n[costs]\nwakeup_ns = { value = 300, low = 0, high = 900 }\n\
            pipe_op_ns = { value = 100, low = 100 }\n";
        let machine = Machine::from_toml_str("m.toml", text).unwrap();
        let side = Host::new(machine.clone(), Policy::new(Profile::DEFAULT)).unwrap();
        let space = Space::new(&machine, &[side]);
        assert!(space.bounds.iter().all(|it| it.field.name != "pipe_op_ns"), "it has one value");
        let all: Vec<Costs> = (0..256).map(|point| space.costs(point)).collect();
        assert!(all.iter().all(|costs| costs.wakeup_ns <= 900 && costs.pipe_op_ns == 100));
        let ends = (all.iter().map(|c| c.wakeup_ns).min(), all.iter().map(|c| c.wakeup_ns).max());
        assert!(ends.0 == Some(0) && ends.1 > Some(800), "{ends:?}");
        let (low, high) = machine.cost_bounds(Costs::field("syscall_ns").unwrap());
        let middle = ((low * high) as f64).sqrt() as u64;
        let below = all.iter().filter(|costs| costs.syscall_ns <= middle).count();
        assert!((118..=138).contains(&below), "half of the points are below the geometric mean: {below}");
        assert_eq!(space.costs(7), all[7], "the same each time");
    }
}
