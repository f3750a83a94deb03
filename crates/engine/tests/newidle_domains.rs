//! Which domains newidle balance searches, seen by what it has cost in them (seed 002), and
//! partitions.

mod support;

use coreward_engine::CpuSchedstat;
use coreward_machine::{DomainOptions, KernelStyle, Partition, RelaxSemantics, Topology};
use coreward_metrics::Metric;
use coreward_workload::Scale;
use support::{Event, Run, Setup, hackbench, spinners};

const MACHINE: &str = "e5-2680v3-2s";
const NODE_0: &str = "0-11,24-35";

/// Whether newidle balance has cost something anywhere, in SMT, MC and NUMA.
fn searched(run: &Run) -> [bool; 3] {
    let cpus = &run.outcome.schedstat;
    let max = |level: usize| cpus.iter().map(move |cpu| cpu.domains[level].max_newidle_lb_cost);
    [0, 1, 2].map(|level| max(level).any(|cost| cost > 0))
}

#[test]
fn only_domains_that_the_level_leaves_cost_something() {
    let setup = Setup::new(MACHINE, hackbench("-g 2 -l 60")).profile("linux-6.8");
    let with = |request: i32, semantics: RelaxSemantics| {
        let options = DomainOptions {
            relax_domain_level: Some(request),
            relax_semantics: semantics,
            names: KernelStyle::new(6, 8),
        };
        searched(&setup.run_with(&options).unwrap())
    };
    let after = [
        (-1, [true, true, true]),
        (0, [false, false, false]),
        (1, [true, false, false]),
        (3, [true, true, false]),
        (6, [true, true, true]),
    ];
    for (request, expected) in after {
        assert_eq!(with(request, RelaxSemantics::After), expected, "{request} after");
    }
    for (request, expected) in [(1, [true, false, false]), (2, [true, true, false]), (4, [true, true, false])]
    {
        assert_eq!(with(request, RelaxSemantics::Before), expected, "{request} before");
    }
}

#[test]
fn what_a_cpu_expects_of_its_idle_time_is_shown() {
    let setup = Setup::new(MACHINE, hackbench("-g 2 -l 60"));
    let outcome = setup.run().outcome;
    let cost = 500_000;
    for stat in &outcome.schedstat {
        assert_eq!(stat.max_idle_balance_cost, cost, "no search is as long as migration_cost_ns");
        assert!(stat.avg_idle <= 2 * cost);
    }
    assert!(outcome.schedstat.iter().any(|stat| stat.avg_idle < 2 * cost), "somebody's idle time was short");
}

fn divided(setup: &Setup, partitions: &[&str]) -> Topology {
    let partitions: Vec<Partition> = partitions.iter().map(|text| text.parse().unwrap()).collect();
    Topology::partitioned(&setup.machine, &DomainOptions::default(), &partitions).unwrap()
}

#[test]
fn tasks_stay_in_the_first_partition() {
    let setup = Setup::new(MACHINE, spinners(40, 5_000_000));
    let topology = divided(&setup, &[NODE_0]);
    let run = setup.run_on(&topology).unwrap();
    let used = |stat: &CpuSchedstat| stat.rq_cpu_time > 0;
    for (cpu, stat) in run.outcome.schedstat.iter().enumerate() {
        assert_eq!(used(stat), topology.partitions[0].contains(cpu), "CPU {cpu}");
    }
    assert!(run.events.iter().all(|event| match *event {
        Event::Waking { target, .. } => topology.partitions[0].contains(target),
        _ => true,
    }));
    let whole = setup.run();
    assert!(run.runtime_ns() > whole.runtime_ns() * 13 / 10, "half of the machine is slower");
    // up to 16 tasks wait: the CPUs that they may not use are not to blame
    let idle = run.get(Metric::idle_while_waiting_s) * 1e9;
    assert!(idle < 5.0 * run.runtime_ns() as f64, "{idle} ns");
}

#[test]
fn the_level_of_a_partition_is_its_own() {
    let setup = Setup::new(MACHINE, hackbench("-g 2 -l 60"));
    let searched = |partitions: &[&str]| {
        let outcome = setup.run_on(&divided(&setup, partitions)).unwrap().outcome;
        let max = |level: usize| {
            let domains = |cpu: &CpuSchedstat| cpu.domains.get(level).map_or(0, |d| d.max_newidle_lb_cost);
            outcome.schedstat.iter().map(domains).max()
        };
        [0, 1].map(|level| max(level) > Some(0))
    };
    assert_eq!(searched(&["0-11,24-35:0"]), [false, false]);
    assert_eq!(searched(&["0-11,24-35:1"]), [true, false]);
    assert_eq!(searched(&["0-11,24-35:6"]), [true, true]);
    assert_eq!(searched(&["0-11,24-35", "12-23,36-47:0"]), [true, true]);
}

/// A partition's edge cuts a last-level cache in two: neither half looks into the other.
#[test]
fn a_cache_may_be_divided() {
    let setup = Setup::new("8c", spinners(6, 3_000_000));
    let outcome = setup.run_on(&divided(&setup, &["1-3", "4-5"])).unwrap().outcome;
    let used: Vec<_> = (0..8).filter(|cpu| outcome.schedstat[*cpu].rq_cpu_time > 0).collect();
    assert_eq!(used, [1, 2, 3]);
}

/// Seed 002's profile: newidle balance below futex() and below nanosleep(), and none at level 0.
#[test]
fn the_time_in_newidle_is_that_of_the_calls_before_it() {
    let workload = coreward_workload::parse("encoder", Scale(20_000)).unwrap();
    let setup = Setup::new(MACHINE, workload).profile("linux-6.8");
    let shares = |run: &Run| {
        [Metric::newidle_pct, Metric::newidle_futex_pct, Metric::newidle_nanosleep_pct].map(|m| run.get(m))
    };
    let [all, futex, nanosleep] = shares(&setup.run());
    assert!(
        futex > 0.0 && nanosleep > 0.0 && futex + nanosleep <= all + 1e-9 && all < 100.0,
        "{all} {futex} {nanosleep}"
    );
    let options = DomainOptions { relax_domain_level: Some(0), ..DomainOptions::default() };
    assert_eq!(shares(&setup.run_with(&options).unwrap()), [0.0; 3]);
}
