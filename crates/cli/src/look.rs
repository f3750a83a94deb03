//! A closer look at a run, for pages: where its tasks moved on the machine, and its metrics over time.

use std::collections::BTreeMap;

use anyhow::Result;
use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_metrics::html::{Page, Place, floor_plan, moves_map};
use coreward_metrics::{Comparison, Metric};
use coreward_workload::Workload;

use crate::intervals;
use crate::prepared::{Case, Prepared};
use crate::setup::Host;

/// Intervals that a run is divided into.
const INTERVALS: f64 = 50.0;

/// The moves of a run, by the CPUs that they began and ended on.
#[derive(Default)]
struct Moves(BTreeMap<(usize, usize), u64>);

impl Trace for Moves {
    fn fork(&mut self, _: u64, _: i32, _: i32, _: u32, _: u32) {}
    fn waking(&mut self, _: Moment, _: usize, _: Waker, _: i32, _: usize, _: bool) {}
    fn migrate(&mut self, _: u64, _: usize, _: i32, from: usize, to: usize) {
        *self.0.entry((from, to)).or_default() += 1;
    }
    fn switch(&mut self, _: Moment, _: usize, _: i32, _: Leaving, _: i32) {}
}

/// A side of which a run is drawn.
pub(crate) struct Side<'a> {
    pub(crate) label: &'a str,
    pub(crate) seed: u64,
    pub(crate) host: &'a Host,
}

/// The first run of each side of a case once more, drawn.
///
/// # Errors
/// It does not end.
pub(crate) fn at(prepared: &Prepared, case: &Case, comparison: &Comparison) -> Result<String> {
    let own = std::iter::once(&comparison.baseline).chain(comparison.variants.iter().map(|v| &v.side));
    let runtime_s =
        own.filter_map(|side| side.metrics.get(&Metric::runtime_s)).map(|s| s.mean).fold(0.0, f64::max);
    runs(sides(prepared), &case.workload, runtime_s)
}

/// The sides of an experiment.
pub(crate) fn sides(prepared: &Prepared) -> impl Iterator<Item = Side<'_>> {
    let sides = prepared.experiment.sides().zip(&prepared.hosts);
    sides.map(|(side, host)| Side { label: &side.label, seed: side.seed, host })
}

/// A run of each side, drawn; it takes about this long, in s.
///
/// # Errors
/// It does not end.
pub(crate) fn runs<'a>(
    sides: impl Iterator<Item = Side<'a>>,
    workload: &Workload,
    runtime_s: f64,
) -> Result<String> {
    let mut page = Page::part();
    for Side { label, seed, host } in sides {
        if host.skip_steady_pct.is_some() {
            page.text("Runs that skip their steady middle are not drawn.");
            break;
        }
        let mut host = host.clone();
        host.interval_ns = Some(((runtime_s * 1e9 / INTERVALS) as u64).max(1000));
        let mut moves = Moves::default();
        let outcome = host.run(workload, seed, &mut moves)?;
        page.heading(&format!("A run of {label}, seed {seed}"));
        let cpus = places(&host, &moves);
        page.html(&floor_plan(&format!("Where tasks moved under {label}"), &cpus));
        page.html(&moves_map(&cpus, &moves.0));
        page.fold("Over time", |page| intervals::plots(page, &outcome.intervals));
    }
    Ok(page.html_so_far())
}

fn places(host: &Host, moves: &Moves) -> Vec<Place> {
    let mut cpus: Vec<Place> = host
        .machine
        .cpus
        .iter()
        .map(|cpu| Place { node: cpu.node, llc: cpu.llc, core: cpu.core, arrivals: 0 })
        .collect();
    moves.0.iter().for_each(|((_, to), number)| cpus[*to].arrivals += number);
    cpus
}
