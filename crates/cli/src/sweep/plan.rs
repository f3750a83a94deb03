//! A sweep's file, and the runs that it asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use coreward_engine::NoTrace;
use coreward_input::{line_at, toml_refusal, twice};
use coreward_machine::Machine;
use coreward_metrics::{Better, Metric, Metrics};
use coreward_policy::Profile;
use coreward_workload::{Scale, Workload};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toml::{Spanned, Value};

use super::space::{self, LatinHypercube};
use crate::address;
use crate::assumed;
use crate::experiment::{MAX_RUNS, changed};
use crate::matrix::suite::{self, Row};
use crate::policy::Policy;
use crate::scale;
use crate::setup::{self, Host};
use crate::shard;
use crate::work::Item;

/// Largest file, in KiB.
const MAX_KIB: u64 = 4 << 10;
const DEFAULT_RUNS: u32 = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSweep {
    name: Spanned<String>,
    machines: Spanned<Vec<String>>,
    workloads: Spanned<Vec<String>>,
    profile: Option<Spanned<String>>,
    baseline: Option<Spanned<String>>,
    runs: Option<Spanned<u32>>,
    seed: Option<u64>,
    scale: Option<Spanned<f64>>,
    metrics: Option<Spanned<Vec<Metric>>>,
    #[serde(default)]
    list: Vec<Spanned<String>>,
    #[serde(default)]
    grid: BTreeMap<String, Spanned<Value>>,
    latin_hypercube: Option<LatinHypercube>,
}

/// A sweep whose names have all been looked up.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) profile: Option<String>,
    /// What the baseline changes.
    pub(super) baseline: Option<String>,
    pub(super) runs: u32,
    /// Of the first run of every setting: run i of all settings has the same chance events.
    pub(super) seed: u64,
    /// How much of each workload is run.
    pub(super) scale: Scale,
    /// What the settings change, in the order of the file.
    pub(super) settings: Vec<String>,
    pub(super) machines: Vec<OnMachine>,
    pub(super) rows: Vec<Row>,
}

/// A machine of a sweep, and what runs on it.
pub(super) struct OnMachine {
    /// What the file calls it.
    pub(super) spec: String,
    /// Under the baseline and each setting.
    pub(super) hosts: Vec<Host>,
    /// For each row of the suite, the workload, if the machine is large enough.
    pub(super) workloads: Vec<Option<Workload>>,
}

/// A run that a sweep asks for.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) machine: usize,
    pub(super) row: usize,
    /// 0 is the baseline, i + 1 the i-th setting.
    pub(super) side: usize,
    pub(super) seed: u64,
}

/// What a run came to.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) metrics: Metrics,
    /// The invariants that it broke.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) broken: Vec<String>,
}

impl Plan {
    /// Reads a sweep's file and all that it names.
    ///
    /// # Errors
    /// The file cannot be read, a name in it is unknown, or a value out of its range.
    pub(super) fn load(path: &Path, strict: bool) -> Result<Plan> {
        let name = path.display().to_string();
        let text = coreward_input::read_text(path, MAX_KIB)
            .map_err(|error| anyhow!("cannot read {name}: {error}"))?;
        let place = |at: usize| format!("{name}:{}", line_at(&text, at));
        let raw: RawSweep = toml::from_str(&text).map_err(|error| {
            let place = error.span().map_or(name.clone(), |span| place(span.start));
            anyhow!("{place}: {}", toml_refusal(error.message()))
        })?;
        Plan::of(raw, strict, &place)
    }

    fn of(raw: RawSweep, strict: bool, place: &dyn Fn(usize) -> String) -> Result<Plan> {
        let at = |start: usize, what: &str| anyhow!("{}: {what}", place(start));
        let runs = match &raw.runs {
            Some(runs) if !(2..=MAX_RUNS).contains(runs.get_ref()) => {
                let what = format!("runs is {}, allowed are 2 to {MAX_RUNS}", runs.get_ref());
                return Err(at(runs.span().start, &what));
            }
            runs => runs.as_ref().map_or(DEFAULT_RUNS, |runs| *runs.get_ref()),
        };
        let scale = match &raw.scale {
            Some(part) => {
                scale::parse(&part.get_ref().to_string()).map_err(|what| at(part.span().start, &what))?
            }
            None => Scale::FULL,
        };
        if let Some(profile) = &raw.profile {
            Profile::named(profile.get_ref())
                .map_err(|what| at(profile.span().start, &format!("profile: {what}")))?;
        }
        let start = raw.workloads.span().start;
        let mut rows = suite::rows(None, raw.workloads.get_ref()).with_context(|| place(start))?;
        if raw.workloads.get_ref().is_empty() {
            return Err(at(start, "workloads: there is none"));
        }
        if let Some(metrics) = &raw.metrics {
            if let Some(metric) = metrics.get_ref().iter().find(|metric| metric.better() == Better::Neutral) {
                let what = format!("metrics: neither direction of {} is better", metric.name());
                return Err(at(metrics.span().start, &what));
            }
            if let Some(metric) = twice(metrics.get_ref()) {
                let what = format!("metrics: {} is there twice", metric.name());
                return Err(at(metrics.span().start, &what));
            }
            rows.iter_mut().for_each(|row| row.metrics.clone_from(metrics.get_ref()));
        }
        let settings = settings(&raw, &at)?;
        let profile = raw.profile.map(Spanned::into_inner);
        let start = raw.machines.span().start;
        let mut machines: Vec<OnMachine> = Vec::new();
        for spec in raw.machines.get_ref() {
            let refused = || format!("{}: machines", place(start));
            let machine = assumed::machine(spec, strict).with_context(refused)?;
            if machines.iter().any(|other| other.hosts[0].machine.name == machine.name) {
                bail!("{}: {} is named twice", refused(), machine.name);
            }
            let policy = setup::policy(profile.as_deref(), spec)?.policy;
            let baseline = match &raw.baseline {
                Some(changes) => changed(&policy, changes.get_ref())
                    .map_err(|what| at(changes.span().start, &format!("baseline: {what}")))?,
                None => policy,
            };
            let host = |policy: Policy, what: &str| {
                Host::new(machine.clone(), policy).with_context(|| format!("{}: {what}", machine.name))
            };
            let mut hosts = vec![host(baseline.clone(), "the baseline")?];
            for (start, setting) in &settings {
                let policy = changed(&baseline, setting).map_err(|what| at(*start, &what))?;
                hosts.push(host(policy, setting)?);
            }
            let cpus = machine.nr_cpus();
            let fits = |row: &Row| cpus >= row.min_cpus;
            let workloads = rows.iter().map(|row| fits(row).then(|| row.on(cpus, scale)).transpose());
            let workloads = workloads.collect::<Result<_>>();
            machines.push(OnMachine {
                spec: spec.clone(),
                hosts,
                workloads: workloads.with_context(|| place(raw.workloads.span().start))?,
            });
        }
        if machines.is_empty() {
            return Err(at(start, "machines: there is none"));
        }
        for (i, row) in rows.iter().enumerate() {
            let Some(workload) = machines.iter().find_map(|on| on.workloads[i].as_ref()) else {
                return Err(at(
                    start,
                    &format!("{} takes {} CPUs, which no machine has", row.name, row.min_cpus),
                ));
            };
            assumed::of_workload(&workload.name, workload, strict)?;
        }
        let settings = settings.into_iter().map(|(_, setting)| setting).collect();
        let plan = Plan {
            name: raw.name.into_inner(),
            profile,
            baseline: raw.baseline.map(Spanned::into_inner),
            runs,
            seed: raw.seed.unwrap_or(1),
            scale,
            settings,
            machines,
            rows,
        };
        let points = plan.points().len();
        // their metrics are in memory, 2 KiB each
        if points > shard::MOST {
            return Err(at(0, &format!("the sweep has {points} runs, allowed are {}", shard::MOST)));
        }
        Ok(plan)
    }

    /// All runs: machine by machine, row by row, setting by setting, seed by seed.
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for (machine, on) in self.machines.iter().enumerate() {
            for row in (0..self.rows.len()).filter(|row| on.workloads[*row].is_some()) {
                for side in 0..=self.settings.len() {
                    let seeds = (0..u64::from(self.runs)).map(|run| self.seed.wrapping_add(run));
                    points.extend(seeds.map(|seed| Point { machine, row, side, seed }));
                }
            }
        }
        points
    }

    /// How the points are known and how much work they are.
    ///
    /// # Errors
    /// A file that decides a result cannot be read.
    pub(super) fn items(&self, points: &[Point]) -> Result<Vec<Item>> {
        let mut hosts = Vec::new();
        let mut rows = Vec::new();
        for machine in &self.machines {
            hosts.push(machine.hosts.iter().map(address::of_host).collect::<Result<Vec<_>>>()?);
            let cpus = machine.hosts[0].machine.nr_cpus();
            let of_row = |(row, fits): (&Row, &Option<Workload>)| {
                fits.as_ref().map(|_| address::of_row(row, cpus)).transpose()
            };
            rows.push(self.rows.iter().zip(&machine.workloads).map(of_row).collect::<Result<Vec<_>>>()?);
        }
        let item = |&Point { machine, row, side, seed }: &Point| Item {
            key: address::of(&json!({
                "host": hosts[machine][side],
                "workload": rows[machine][row],
                "scale": scale::text(self.scale),
                "seed": seed,
            })),
            weight: self.machines[machine].hosts[0].machine.nr_cpus() as u64 + 16,
        };
        Ok(points.iter().map(item).collect())
    }

    /// Makes a run.
    ///
    /// # Errors
    /// It does not end.
    pub(super) fn run(&self, point: &Point) -> Result<Done> {
        let on = &self.machines[point.machine];
        let workload = on.workloads[point.row].as_ref().context("the workload fits the machine")?;
        let outcome = on.hosts[point.side].run(workload, point.seed, &mut NoTrace);
        let outcome = outcome.with_context(|| self.describe(point))?;
        let broken = outcome.checks.violations.iter().map(|v| format!("seed {}: {v}", point.seed)).collect();
        Ok(Done { metrics: outcome.metrics, broken })
    }

    /// What a run is called.
    pub(super) fn describe(&self, point: &Point) -> String {
        let on = &self.machines[point.machine];
        let workload = on.workloads[point.row].as_ref().map_or("", |workload| &workload.name);
        let machine = &on.hosts[0].machine.name;
        format!("{workload} on {machine}, {}, seed {}", self.side(point.side), point.seed)
    }

    /// What a side is called: `baseline`, or what it changes.
    pub(super) fn side(&self, side: usize) -> &str {
        match side {
            0 => "baseline",
            side => &self.settings[side - 1],
        }
    }

    /// The files and directories that are read.
    pub(super) fn inputs(&self) -> Vec<PathBuf> {
        let machines = self.machines.iter().filter_map(|on| Machine::path(&on.spec)).map(Path::to_owned);
        machines.chain(self.rows.iter().flat_map(Row::paths)).collect()
    }
}

/// The settings with the byte of the file that each comes from; the first of equal ones, and none that is the baseline's
/// profile alone.
fn settings(raw: &RawSweep, at: &dyn Fn(usize, &str) -> anyhow::Error) -> Result<Vec<(usize, String)>> {
    let refused =
        |field: &'static str| move |(start, what): space::Refusal| at(start, &format!("{field}.{what}"));
    let mut all: Vec<(usize, String)> =
        raw.list.iter().map(|setting| (setting.span().start, setting.get_ref().clone())).collect();
    let of_grid = raw.grid.values().next().map_or(0, |values| values.span().start);
    all.extend(
        space::grid(&raw.grid).map_err(refused("grid"))?.into_iter().map(|setting| (of_grid, setting)),
    );
    if let Some(hypercube) = &raw.latin_hypercube {
        let settings = space::latin_hypercube(hypercube).map_err(refused("latin_hypercube"))?;
        all.extend(settings.into_iter().map(|setting| (hypercube.start(), setting)));
    }
    let mut seen: BTreeSet<String> = raw.profile.iter().map(|profile| profile.get_ref().clone()).collect();
    all.retain(|(_, setting)| seen.insert(setting.clone()));
    if !(1..=space::MAX_SETTINGS).contains(&all.len()) {
        let what = format!(
            "{} settings, allowed are 1 to {} of list, [grid] and [latin_hypercube] together",
            all.len(),
            space::MAX_SETTINGS
        );
        return Err(at(raw.name.span().start, &what));
    }
    Ok(all)
}
