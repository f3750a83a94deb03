//! A closer look at a run, for pages: where its tasks moved on the machine, and its metrics over time.

use std::collections::BTreeMap;

use anyhow::Result;
use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_metrics::html::{Page, Place, floor_plan, moves_map};
use coreward_metrics::{Comparison, Metric};

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

/// The first run of each side of a case once more, drawn.
///
/// # Errors
/// It does not end.
pub(crate) fn at(prepared: &Prepared, case: &Case, comparison: &Comparison) -> Result<String> {
    let mut page = Page::part();
    if prepared.hosts[0].skip_steady_pct.is_some() {
        page.text("Runs that skip their steady middle are not drawn.");
        return Ok(page.html_so_far());
    }
    for (side, host) in prepared.experiment.sides().zip(&prepared.hosts) {
        let own = std::iter::once(&comparison.baseline).chain(comparison.variants.iter().map(|v| &v.side));
        let runtime =
            own.filter_map(|side| side.metrics.get(&Metric::runtime_s)).map(|s| s.mean).fold(0.0, f64::max);
        let interval_ns = ((runtime * 1e9 / INTERVALS) as u64).max(1000);
        let mut host = host.clone();
        host.interval_ns = Some(interval_ns);
        let mut moves = Moves::default();
        let outcome = host.run(&case.workload, side.seed, &mut moves)?;
        page.heading(&format!("A run of {}, seed {}", side.label, side.seed));
        let cpus = places(&host, &moves);
        page.html(&floor_plan(&format!("Where tasks moved under {}", side.label), &cpus));
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
