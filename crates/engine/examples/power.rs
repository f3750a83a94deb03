//! How far the verdicts of `coreward compare` can be trusted, measured: false alarms, and the changes that are found.
//!
//! `make power` writes docs/results/power.md with it, in a few minutes of CPU time. It simulates many runs of some short
//! workloads, deals them out to comparisons whose answer is known, and counts what the comparisons say.

use std::ops::Range;

use anyhow::Result;
use coreward_engine::{NoTrace, Settings, Simulation};
use coreward_machine::{Machine, Topology};
use coreward_metrics::{Comparison, Metric, Metrics, Runs, Verdict, sequential};
use coreward_policy::{Changes, Code, PolicySettings, Profile};
use coreward_state::domain_options;
use coreward_workload::{Scale, Workload};
use rayon::prelude::*;

/// Workload, machine, and what its comparisons are about.
const WORKLOADS: [(&str, &str, [Metric; 2]); 3] = [
    ("hackbench -g 2 -f 4 --threads --pipe -l 500", "2n2l4c2t", [Metric::runtime_s, Metric::cpu_migrations]),
    ("perf bench sched messaging -g 1 -l 100", "1n2l4c2t", [Metric::runtime_s, Metric::cpu_migrations]),
    ("hackbench -g 1 -f 6 -l 100", "1n4l2c1t", [Metric::runtime_s, Metric::cpu_migrations]),
];

/// Runs of a side in a comparison.
const SIZES: [usize; 3] = [5, 10, 30];
const LARGEST: usize = 30;
/// Comparisons of the largest size; there are more of the smaller ones, from the same runs.
const COMPARISONS: usize = 100;
/// Planted changes of the mean in percent; a change is worse, to leave no value below 0.
const PLANTED: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0];
/// What the sequential comparisons ask for, in percentage points, and the most runs that they can make.
const PRECISION: f64 = 10.0;
/// A change of the policy whose effect is real, not planted.
const CHANGE: &str = "WAKEUP_BIAS_PREV";

/// All runs of a workload: seed by seed, of the baseline and with the change.
struct Pool {
    base: Vec<Metrics>,
    changed: Vec<Metrics>,
    headline: [Metric; 2],
}

fn main() -> Result<()> {
    let pools = WORKLOADS.iter().map(pool).collect::<Result<Vec<_>>>()?;
    print!("{}", page(&pools));
    Ok(())
}

fn pool((workload, machine, headline): &(&str, &str, [Metric; 2])) -> Result<Pool> {
    let machine = Machine::load(machine)?;
    let workload = coreward_workload::parse(workload, Scale::FULL)?;
    let plain = PolicySettings::new(Profile::DEFAULT);
    let mut changes = Changes::default();
    changes.sched_feat(Code::built_in(), CHANGE).map_err(anyhow::Error::msg)?;
    Ok(Pool {
        base: runs(&machine, &workload, &plain, 2 * LARGEST * COMPARISONS)?,
        changed: runs(&machine, &workload, &changes.apply(&plain), 2 * LARGEST * COMPARISONS)?,
        headline: *headline,
    })
}

fn runs(
    machine: &Machine,
    workload: &Workload,
    policy: &PolicySettings,
    number: usize,
) -> Result<Vec<Metrics>> {
    let topology = Topology::build(machine, &domain_options(Profile::DEFAULT, policy))?;
    let one = |seed: usize| {
        let settings = Settings {
            policy: policy.clone(),
            seed: seed as u64,
            task_group_depth: Settings::LOGIN_SESSION_DEPTH,
            limit_ns: 1_000_000_000_000,
        };
        Ok(Simulation::new(machine, &topology, workload, &settings, &mut NoTrace)?.run()?.metrics)
    };
    (1..=number).into_par_iter().map(one).collect()
}

/// The seeds of the two sides of comparison `i`, which have none in common: as in a comparison of two policies, whose
/// runs have nothing in common after their first different decision.
fn seeds(i: usize, size: usize) -> (Range<usize>, Range<usize>) {
    let start = 2 * size * i;
    (start..start + size, start + size..start + 2 * size)
}

fn comparisons(size: usize) -> usize {
    COMPARISONS * LARGEST / size
}

fn side(seed: u64, runs: Vec<Metrics>) -> Runs {
    Runs { seed, runs, ..Runs::default() }
}

fn compare(pool: &Pool, base: &[Metrics], variant: Vec<Metrics>) -> Comparison {
    Comparison::new("", &pool.headline, side(0, base.to_vec()), vec![side(1, variant)], vec![], vec![])
}

/// The metrics of runs with the change of a headline metric in percent.
fn planted(runs: &[Metrics], metric: Metric, percent: f64) -> Vec<Metrics> {
    let change = |run: &Metrics| {
        let mut run = run.clone();
        if let Some(value) = run.get(metric) {
            run.set(metric, value * (1.0 + percent / 100.0));
        }
        run
    };
    runs.iter().map(change).collect()
}

fn shown(comparison: &Comparison, metric: Metric) -> bool {
    comparison.variants[0].verdict(metric).is_some_and(Verdict::is_significant)
}

/// The share of comparisons of a size for which something holds, in percent.
fn share(size: usize, holds: impl Fn(Range<usize>, Range<usize>) -> bool + Sync) -> f64 {
    let all = comparisons(size);
    let count = (0..all).into_par_iter().filter(|i| {
        let (base, variant) = seeds(*i, size);
        holds(base, variant)
    });
    count.count() as f64 * 100.0 / all as f64
}

/// In how many comparisons of equal sides a headline metric is said to differ.
fn false_alarms(pool: &Pool, size: usize) -> f64 {
    share(size, |base, variant| {
        let comparison = compare(pool, &pool.base[base], pool.base[variant].to_vec());
        pool.headline.iter().any(|metric| shown(&comparison, *metric))
    })
}

/// The same if runs are added until the first headline metric is known to [`PRECISION`], and the mean number of runs.
fn sequential_false_alarms(pool: &Pool) -> (f64, f64) {
    // each comparison may use up to ten times the runs of the largest one
    let (most, number) = (LARGEST * 10, COMPARISONS / 10);
    let (mut alarms, mut runs) = (0, 0);
    for offset in 0..10 {
        for i in 0..number {
            // the same runs in ten different orders
            let order = |side: usize| {
                let start = (2 * i + side) * most;
                (0..most).map(move |run| start + (run * 7 + offset * (most / 10)) % most)
            };
            let take = |side, n| order(side).take(n).map(|i| pool.base[i].clone()).collect::<Vec<_>>();
            let mut n = sequential::FIRST_LOOK;
            let comparison = loop {
                let comparison = compare(pool, &take(0, n), take(1, n));
                match sequential::next_runs(&comparison, PRECISION) {
                    Some(next) if next <= most => n = next,
                    _ => break comparison,
                }
            };
            alarms += usize::from(pool.headline.iter().any(|metric| shown(&comparison, *metric)));
            runs += n;
        }
    }
    let all = (10 * number) as f64;
    (alarms as f64 * 100.0 / all, runs as f64 / all)
}

/// In how many comparisons a planted change of a metric is shown.
fn found(pool: &Pool, size: usize, metric: Metric, percent: f64) -> f64 {
    share(size, |base, variant| {
        shown(&compare(pool, &pool.base[base], planted(&pool.base[variant], metric, percent)), metric)
    })
}

/// In how many comparisons a change is shown that is as large as another comparison of equal sides said it would have
/// to be; and in how many comparisons of equal sides such a size is named.
fn promised(pool: &Pool, size: usize, metric: Metric) -> (f64, f64) {
    let named = |base: &Range<usize>, variant: &Range<usize>| {
        let equal = compare(pool, &pool.base[base.clone()], pool.base[variant.clone()].to_vec());
        equal.variants[0].detectable_pct.get(&metric).copied().flatten()
    };
    let promises = share(size, |base, variant| named(&base, &variant).is_some());
    let kept = share(size, |base, variant| {
        let Some(percent) = named(&base, &variant) else { return false };
        // another comparison of the same size, as the promise is about the next one
        let n = pool.base.len();
        let next =
            |range: Range<usize>| range.map(|i| pool.base[(i + n / 2) % n].clone()).collect::<Vec<_>>();
        shown(&compare(pool, &next(base), planted(&next(variant), metric, percent)), metric)
    });
    (kept * 100.0 / promises, promises)
}

fn mean(runs: &[Metrics], metric: Metric) -> f64 {
    runs.iter().filter_map(|run| run.get(metric)).sum::<f64>() / runs.len() as f64
}

/// How the change acts: its size over all runs, how often it is shown, and how often the interval holds its size.
fn real(pool: &Pool, metric: Metric) -> (f64, [f64; 3], [f64; 3]) {
    let change = coreward_metrics::stats::delta_pct(
        metric.better(),
        mean(&pool.base, metric),
        mean(&pool.changed, metric),
    );
    let change = change.unwrap_or(f64::NAN);
    let compared = |base: Range<usize>, variant: Range<usize>| {
        compare(pool, &pool.base[base], pool.changed[variant].to_vec())
    };
    let holds = |comparison: &Comparison| {
        let interval = comparison.variants[0].interval_pct.get(&metric).copied().flatten();
        interval.is_some_and(|(low, high)| (low..=high).contains(&change))
    };
    (
        change,
        SIZES.map(|size| share(size, |b, v| shown(&compared(b, v), metric))),
        SIZES.map(|size| share(size, |b, v| holds(&compared(b, v)))),
    )
}

/// Pearson's correlation of the two sides' runs of one seed.
fn correlation(pool: &Pool, metric: Metric) -> f64 {
    let (base, changed) = (mean(&pool.base, metric), mean(&pool.changed, metric));
    let (mut both, mut own, mut other) = (0.0, 0.0, 0.0);
    for (a, b) in pool.base.iter().zip(&pool.changed) {
        let (Some(a), Some(b)) = (a.get(metric), b.get(metric)) else { continue };
        both += (a - base) * (b - changed);
        own += (a - base).powi(2);
        other += (b - changed).powi(2);
    }
    both / (own * other).sqrt()
}

fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<_> = (0..header.len()).map(|i| if i < 2 { "---" } else { "---:" }.to_owned()).collect();
    let header: Vec<_> = header.iter().map(|cell| (*cell).to_owned()).collect();
    [header, rule].iter().chain(&rows).map(|row| line(row)).collect()
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn page(pools: &[Pool]) -> String {
    let named = || pools.iter().zip(WORKLOADS.map(|(name, machine, _)| format!("`{name}` on {machine}")));
    let metrics =
        || named().flat_map(|(pool, name)| pool.headline.map(|metric| (pool, name.clone(), metric)));

    let mut alarms = Vec::new();
    for (pool, name) in named() {
        let (sequential, runs) = sequential_false_alarms(pool);
        let mut row = vec![name, "either".into()];
        row.extend(SIZES.map(|size| percent(false_alarms(pool, size))));
        row.push(format!("{} ({runs:.0} runs)", percent(sequential)));
        alarms.push(row);
    }
    let mut planted = Vec::new();
    let mut kept = Vec::new();
    let mut acts = Vec::new();
    for (pool, name, metric) in metrics() {
        for size in SIZES {
            let mut row = vec![name.clone(), metric.name().into(), size.to_string()];
            row.extend(PLANTED.map(|change| format!("{:.0} %", found(pool, size, metric, change))));
            planted.push(row);
        }
        let mut row = vec![name.clone(), metric.name().into()];
        row.extend(SIZES.map(|size| {
            let (kept, promises) = promised(pool, size, metric);
            format!("{kept:.1} % of {promises:.0} %")
        }));
        kept.push(row);
        let (change, shown, holds) = real(pool, metric);
        let mut row = vec![name, metric.name().into(), format!("{change:+.1} %")];
        row.extend(shown.map(|share| format!("{share:.0} %")));
        row.extend(holds.map(percent));
        row.push(format!("{:+.3}", correlation(pool, metric)));
        acts.push(row);
    }
    let sizes = SIZES.map(|size| format!("{size} runs ({})", comparisons(size)));
    let size_header = |first: &[&str]| -> Vec<String> {
        first.iter().map(|cell| (*cell).to_owned()).chain(sizes.clone()).collect()
    };
    let with =
        |header: Vec<String>, rows| table(&header.iter().map(String::as_str).collect::<Vec<_>>(), rows);
    let mut alarm_header = size_header(&["workload", "metric"]);
    alarm_header.push(format!("--precision {PRECISION}%"));
    let planted_header: Vec<String> = ["workload", "metric", "runs"]
        .map(String::from)
        .into_iter()
        .chain(PLANTED.map(|change| format!("{change} %")))
        .collect();
    let [five, ten, thirty] = SIZES.map(|size| format!("shown, {size} runs"));
    let [holds_five, holds_ten, holds_thirty] = SIZES.map(|size| format!("in CI95, {size} runs"));
    let real_header = vec![
        "workload".into(),
        "metric".into(),
        "change".into(),
        five,
        ten,
        thirty,
        holds_five,
        holds_ten,
        holds_thirty,
        "correlation by seed".into(),
    ];
    format!(
        "\
# What a comparison finds, and what it does not

`make power` wrote this page (`crates/engine/examples/power.rs`); changes by hand are lost. It simulates {} runs a side of each \
workload, deals them out to comparisons whose answer is known, and counts what `coreward compare` says of their two headline \
metrics. In parentheses stands the number of comparisons.

## False alarms

Both sides are the same policy with other seeds. The share of comparisons in which either headline metric is said to differ; \
at most 5 % are allowed. In the last column, runs are added until CI95 of the first headline metric is narrower than ±{PRECISION} \
points.

{}
## Planted changes

The values of one side's metric are made larger by a known share. The share of comparisons that show it:

{}
## What \"would have been shown\" promises

Where no change is shown, a report names one that would have been, 8 times in 10. The share of comparisons of other runs in \
which a change of just that size is shown; after \"of\" stands the share of comparisons that name a size. It is worked out for \
a rise of a metric whose spread grows with it, as planted here, from how well this number of runs knows means and spreads.

{}
## A real change

The variant is linux-6.12 with {CHANGE}. The change is that of the mean of all runs, + is better; a CI95 should hold it in 95 % \
of the comparisons. The correlation is that of the two sides' runs with the same seed: it is nil, because runs have nothing \
in common after the first decision that differs. So runs of different policies are not compared in pairs unless most of them \
are the same on both sides.

{}",
        2 * LARGEST * COMPARISONS,
        with(alarm_header, alarms),
        with(planted_header, planted),
        with(size_header(&["workload", "metric"]), kept),
        with(real_header, acts),
    )
}
