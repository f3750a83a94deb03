//! `coreward validate`: benchmarks on this machine beside their simulation.

mod real;
mod report;
mod score;
mod task_group;

use std::io::{IsTerminal, Write, stderr};

use anyhow::{Context, Result, bail};
use coreward_engine::{NoTrace, Outcome};
use coreward_machine::Machine;
use coreward_metrics::Metric;
use coreward_policy::Tunable;
use coreward_workload::{Scale, Workload};
use indicatif::ProgressBar;
use rayon::prelude::*;

use crate::cli;
use crate::policy::Policy;
use crate::setup::{self, Host};
use crate::unmet::Unmet;
use real::Benchmark;
use report::Report;
use score::{Figures, Pair};

/// What is run unless the user names something: few and many tasks, threads and processes, pipes and sockets,
/// small and large messages, yields. Each takes about a second on a small machine.
const WORKLOADS: [&str; 20] = [
    "hackbench -g 1 -f 3 -l 150000 -T -p",
    "hackbench -g 1 -f 7 -l 30000 -P -p",
    "hackbench -g 1 -f 20 -l 4000 -T -p",
    "hackbench -g 1 -f 20 -l 4000 -P -p",
    "hackbench -g 2 -f 5 -l 20000 -P -p",
    "hackbench -g 3 -f 20 -l 2500 -T -p",
    "hackbench -g 8 -f 20 -l 700 -T -p",
    "hackbench -g 10 -f 2 -l 30000 -T -p",
    "hackbench -g 1 -f 10 -l 8000 -s 1000 -T -p",
    "hackbench -g 1 -f 20 -l 2000 -T",
    "hackbench -g 2 -f 10 -l 4000 -P",
    "hackbench -g 1 -f 4 -l 50000 -T",
    "perf bench sched messaging -g 4 -l 800 -p -t",
    "perf bench sched messaging -g 2 -l 1500 -p",
    "perf bench sched messaging -g 2 -l 1500",
    "perf bench sched pipe -l 50000 -T",
    "perf bench sched pipe -l 50000",
    "sysbench threads --threads=2 --thread-yields=1000 --thread-locks=2 --events=1000 --time=0 run",
    "sysbench threads --threads=4 --thread-yields=1000 --thread-locks=4 --events=1000 --time=0 run",
    "sysbench threads --threads=8 --thread-yields=100 --thread-locks=4 --events=10000 --time=0 run",
];

pub(crate) fn run(args: &cli::Validate, out: &mut dyn Write) -> Result<()> {
    let host = host(args)?;
    let lines: Vec<&str> = match args.workloads.is_empty() {
        true => WORKLOADS.to_vec(),
        false => args.workloads.iter().map(String::as_str).collect(),
    };
    let mut benchmarks = lines.into_iter().map(Benchmark::new).collect::<Result<Vec<_>>>()?;
    let progress = progress(benchmarks.len() as u64 * (u64::from(args.rounds) + 1));
    // first what needs the machine for itself
    real::run_all(&mut benchmarks, args.rounds, &progress)?;
    progress.set_message("simulating");
    let pairs = benchmarks
        .par_iter()
        .filter(|benchmark| benchmark.missing.is_none())
        .map(|benchmark| {
            let simulated = simulate(&host, &benchmark.workload, args.rounds)?;
            Ok(Pair { benchmark: benchmark.line.clone(), real: benchmark.figures(), simulated })
        })
        .collect::<Result<Vec<_>>>()?;
    progress.finish_and_clear();
    if pairs.is_empty() {
        let missing: Vec<_> =
            benchmarks.iter().filter_map(|benchmark| benchmark.missing.as_deref()).collect();
        bail!("there is nothing to compare: {}", missing.join("; "));
    }
    let report = Report::new(&host, &benchmarks, &pairs, args.rounds);
    if args.json {
        report.json(out)?
    } else {
        report.text(out)?
    }
    Unmet::check(&report.unmet())
}

/// This machine under the policy of its kernel.
fn host(args: &cli::Validate) -> Result<Host> {
    // whatever file describes it, it is this machine
    let mut policy = Policy::new(setup::profile(args.profile.as_deref(), "sysfs")?);
    policy.changes = args.options.changes(policy.code).map_err(anyhow::Error::msg)?;
    for cost in &args.cost {
        policy.cost(&cost.name, cost.value).map_err(|what| anyhow::anyhow!("--cost: {what}"))?;
    }
    if policy.settings().tunables[Tunable::relax_domain_level as usize] >= 0 {
        bail!("--set: relax_domain_level is a request of cpusets, which validate does not change");
    }
    let machine = Machine::load(&args.machine).context("--machine")?;
    let (described, here) = (machine.nr_cpus(), Machine::load("sysfs")?.nr_cpus());
    if described != here {
        bail!("--machine: {} has {described} CPUs, this machine has {here}", args.machine);
    }
    let mut host = Host::new(machine, policy)?;
    host.task_group_depth = args.task_group_depth.unwrap_or_else(task_group::depth);
    Ok(host)
}

fn simulate(host: &Host, workload: &Workload, rounds: u32) -> Result<Figures> {
    let outcomes: Vec<Outcome> =
        (1..=u64::from(rounds)).map(|seed| host.run(workload, seed, &mut NoTrace)).collect::<Result<_>>()?;
    let of = |outcome: &Outcome| {
        let metric = |metric| outcome.metrics.get(metric).unwrap_or(0.0);
        Figures::new(
            metric(Metric::runtime_s),
            metric(Metric::busy_s),
            (metric(Metric::context_switches_voluntary), metric(Metric::context_switches_involuntary)),
            Some(metric(Metric::cpu_migrations)),
            real::operations(workload, metric(Metric::events)),
        )
    };
    Ok(Figures::median(&outcomes.iter().map(of).collect::<Vec<_>>()))
}

fn progress(steps: u64) -> ProgressBar {
    if stderr().is_terminal() { ProgressBar::new(steps) } else { ProgressBar::hidden() }
}

/// Reads the benchmark's command line as it will be simulated.
fn workload(line: &str) -> Result<Workload> {
    Ok(coreward_workload::parse(line, Scale::FULL)?)
}
