//! `coreward validate`: benchmarks on this machine beside their simulation.

mod observed;
mod page;
mod real;
mod report;
mod score;
mod stored;
mod task_group;

use std::io::{IsTerminal, Write, stderr};
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use coreward_calibrate::{Calibration, Transfers};
use coreward_engine::{NoTrace, Outcome};
use coreward_machine::{HERE, Machine};
use coreward_measure::{Tool, Tracer};
use coreward_metrics::Metric;
use coreward_policy::Tunable;
use coreward_workload::{Scale, Workload};
use indicatif::ProgressBar;
use rayon::prelude::*;

use crate::assumed;
use crate::calibrate;
use crate::caller;
use crate::cli;
use crate::look;
use crate::output::{self, Outputs};
use crate::prepared;
use crate::setup::{self, Host};
use crate::unmet::Unmet;
use observed::{Observed, Observer};
use real::{Benchmark, Ran};
use report::Report;
use score::{Figures, Pair};
use stored::Stored;

/// The most rounds of a validation.
pub(crate) const MAX_ROUNDS: u32 = 100;

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
    let lines: Vec<&str> = match args.workloads.is_empty() {
        true => WORKLOADS.to_vec(),
        false => args.workloads.iter().map(String::as_str).collect(),
    };
    let inputs = setup::inputs(&args.machine, lines.iter().copied());
    let mut outputs = Outputs::new(inputs.into_iter().chain(args.real.iter().cloned()));
    let mut open = |option, file: Option<&PathBuf>| file.map(|file| outputs.create(option, file)).transpose();
    let html = open("--html", args.html.as_ref())?;
    let save = open("--save-real", args.save_real.as_ref())?;
    let json_only = args.json.as_deref() == Some(Path::new("-"));
    let json = open("--json", args.json.as_ref().filter(|_| !json_only))?;
    let calibrated = open("--calibrate", args.calibrate.as_ref())?;

    let stored = Stored::read(&args.real, &args.workloads)?;
    let machine = assumed::machine(&args.machine, args.strict).context("--machine")?;
    let mut host = host(args, machine.clone(), stored.as_ref())?;
    let mut passes = Vec::new();
    let stored = stored.map_or_else(|| measure(args, &lines, &host, &mut passes), Ok)?;
    if let Some(mut file) = calibrated {
        let mut machine = machine;
        let found = Calibration::of_passes(&passes, &machine);
        calibrate::apply(&found, &mut machine, args.calibrate.as_deref());
        file.write_all(machine.to_toml().as_bytes())?;
        file.finish()?;
        // the kernel is still the one that runs here
        host = self::host(args, machine, None)?;
    }
    if let Some(mut file) = save {
        output::json(&mut file, &stored)?;
        return file.finish();
    }
    let progress = progress(stored.benchmarks.len() as u64);
    progress.set_message("simulating");
    let pairs = stored.benchmarks.par_iter().map(|ran| {
        let pair = simulate(&host, ran, &stored);
        progress.inc(1);
        pair
    });
    // threads of its own: those of a global pool would be missing in a fork of a program that calls this
    let pairs = prepared::pool(None)?.install(|| pairs.collect::<Result<Vec<_>>>())?;
    progress.finish_and_clear();
    let report = Report::new(&host, &stored, &pairs);
    let mut files = Vec::new();
    if let Some(mut file) = html {
        let mut data = Vec::new();
        report.json(&mut data)?;
        let (benchmark, drawn) = look(&host, &pairs)?;
        file.write_all(page::render(&report, (benchmark, &drawn), &String::from_utf8(data)?).as_bytes())?;
        files.push(file.complete()?);
    }
    if let Some(mut file) = json {
        report.json(&mut file)?;
        files.push(file.complete()?);
    }
    output::place(files)?;
    if json_only {
        report.json(out)?
    } else {
        report.text(out)?
    }
    Unmet::check(&report.unmet())
}

/// The benchmark that moves most tasks in the simulation, and its first run there, drawn.
fn look<'a>(host: &Host, pairs: &'a [Pair]) -> Result<(&'a str, String)> {
    let moves = |pair: &Pair| pair.simulated.migrations.unwrap_or(0.0);
    let most = pairs.iter().max_by(|a, b| moves(a).total_cmp(&moves(b)));
    let pair = most.context("there is a benchmark")?;
    let side = look::Side { label: host.policy.profile.name(), seed: 1, host };
    let drawn = look::runs(iter::once(side), &workload(&pair.benchmark)?, pair.simulated.time_s)?;
    Ok((&pair.benchmark, drawn))
}

/// Runs the benchmarks, and calibrates before each round if that is asked for.
fn measure(
    args: &cli::Validate,
    lines: &[&str],
    host: &Host,
    passes: &mut Vec<Calibration>,
) -> Result<Stored> {
    let mut benchmarks = lines.iter().map(|line| Benchmark::new(line)).collect::<Result<Vec<_>>>()?;
    let progress = progress(benchmarks.len() as u64 * (u64::from(args.rounds) + 1));
    let calibrate = || {
        if args.calibrate.is_some() {
            progress.set_message("calibrating");
            let pass = Calibration::pass(&host.machine, |_| caller::go_on().is_ok())?;
            // this program grows with each round that it has recorded
            passes.push(if passes.is_empty() { pass } else { pass.without_forks() });
        }
        Ok(())
    };
    let mut notes = real::run_all(&mut benchmarks, args.rounds, &host.machine, &progress, calibrate)?;
    progress.finish_and_clear();
    let ran: Vec<Ran> = benchmarks.iter().filter_map(Benchmark::ran).collect();
    let missing =
        benchmarks.iter().filter_map(|b| Some(format!("left out: {}: {}", b.line, b.missing.as_ref()?)));
    if ran.is_empty() {
        let missing: Vec<_> =
            benchmarks.iter().filter_map(|benchmark| benchmark.missing.as_deref()).collect();
        bail!("there is nothing to compare: {}", missing.join("; "));
    }
    notes.extend(missing);
    notes.extend(ran.iter().filter(|ran| ran.disturbed > 0).map(|ran| {
        let Ran { benchmark, disturbed, .. } = ran;
        format!(
            "{benchmark}: other programs ran in {disturbed} of {} rounds, even when repeated",
            args.rounds
        )
    }));
    let here = Machine::load(HERE)?;
    Ok(Stored {
        kernel: setup::release(),
        profile: host.policy.profile.name().to_owned(),
        preemption: here.preemption,
        vcpu_pack: here.vcpu_pack,
        task_group_depth: host.task_group_depth,
        rounds: args.rounds,
        record_ns: record_ns(|| coreward_calibrate::switch_ns(&host.machine).ok(), host.machine.nr_cpus()),
        record_wakeup_ns: record_ns(
            || coreward_calibrate::wakeup_ns(&host.machine).ok(),
            host.machine.nr_cpus(),
        ),
        benchmarks: ran,
        notes,
    })
}

/// What recording adds to something that fires one tracepoint. The least of some tries counts, since other programs only
/// make them longer. None if the tracepoints cannot be recorded.
fn record_ns(fires: impl Fn() -> Option<f64>, nr_cpus: usize) -> Option<f64> {
    const TRIES: usize = 3;
    let recorded = || Tracer::new(nr_cpus).ok()?.during(&fires);
    let least = |of: &dyn Fn() -> Option<f64>| {
        (0..TRIES).map(|_| of()).collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::min)
    };
    Some((least(&recorded)? - least(&fires)?).max(0.0))
}

/// The machine under the policy of its kernel: this one, or that of which figures were stored.
fn host(args: &cli::Validate, machine: Machine, stored: Option<&Stored>) -> Result<Host> {
    // figures that were stored say less of their kernel than a machine file may
    let described = stored.is_some() && args.machine != HERE && machine.kernel.is_some();
    let kernel_of = if described { &args.machine } else { HERE };
    let default = match stored.filter(|_| !described && args.profile.is_none()) {
        Some(stored) => stored.policy()?,
        None => setup::policy(args.profile.as_deref(), kernel_of)?,
    };
    let setup::Default { mut policy, mut notes } = default;
    args.options.add_to(&mut policy.changes, policy.code).map_err(anyhow::Error::msg)?;
    policy.set_costs(&args.cost)?;
    notes.extend(args.profile.as_ref().and_then(|_| setup::left_out(&policy, kernel_of)));
    if policy.settings().tunables[Tunable::relax_domain_level as usize] >= 0 {
        bail!("--set: relax_domain_level is a request of cpusets, which validate does not change");
    }
    let (described, here) = (machine.nr_cpus(), Machine::load(HERE)?.nr_cpus());
    if stored.is_none() && described != here {
        bail!("--machine: {} has {described} CPUs, this machine has {here}", args.machine);
    }
    let mut host = Host::new(machine, policy)?;
    host.notes = notes;
    let depth = args.task_group_depth.or(stored.map(|stored| stored.task_group_depth));
    host.task_group_depth = depth.unwrap_or_else(task_group::depth);
    Ok(host)
}

/// The machine as it was during a round of real runs: of the rounds that are given in turn, this one.
fn during(host: &Host, rounds: &[Transfers], round: usize) -> Host {
    let Some(transfers) = rounds.get(round % rounds.len().max(1)) else { return host.clone() };
    let mut costs = host.machine.costs.clone();
    for (name, ns) in transfers {
        // a figure that no machine can have says nothing
        let _ = costs.set(name, ns.round() as u64);
    }
    host.with_costs(&costs)
}

/// The machine while its tracepoints are recorded. Where only a switch's record was measured, a wakeup's is taken to be as
/// long.
fn recording(mut host: Host, stored: &Stored) -> Host {
    let switch_ns = stored.record_ns.unwrap_or(0.0);
    host.machine.costs.context_switch_ns += switch_ns.round() as u64;
    host.machine.costs.wakeup_ns += stored.record_wakeup_ns.unwrap_or(switch_ns).round() as u64;
    host
}

/// Simulates a benchmark that ran, as often as it was run, and on the machine that records it.
fn simulate(host: &Host, ran: &Ran, stored: &Stored) -> Result<Pair> {
    let workload = workload(&ran.benchmark)?;
    let overhead = shortest(&ran.benchmark)?;
    let figures = |round: u32| -> Result<Figures> {
        let (seed, round) = (u64::from(round) + 1, round as usize);
        let recorded =
            if ran.recorded_transfers.is_empty() { &ran.transfers } else { &ran.recorded_transfers };
        let recording = recording(during(host, recorded, round), stored);
        let host = during(host, &ran.transfers, round);
        let outcome = host.run(&workload, seed, &mut NoTrace)?;
        let mut observer = Observer::new(&recording.machine);
        recording.run(&workload, seed, &mut observer)?;
        let overhead = overhead.as_ref().map(|w| host.run(w, seed, &mut NoTrace)).transpose()?;
        let metric = |metric| outcome.metrics.get(metric).unwrap_or(0.0);
        // without what start and end take, as of the real one
        let beyond =
            |m| (metric(m) - overhead.as_ref().and_then(|run| run.metrics.get(m)).unwrap_or(0.0)).max(0.0);
        let time_s = metric(Metric::runtime_s);
        let mut figures = Figures::new(
            time_s,
            (accounted_s(&outcome) - overhead.as_ref().map_or(0.0, accounted_s)).max(0.0),
            (beyond(Metric::context_switches_voluntary), beyond(Metric::context_switches_involuntary)),
            Some(beyond(Metric::cpu_migrations)),
            ran.operation.count(&workload, metric(Metric::events), time_s),
        );
        figures.observed = Some(Observed::of(&observer.scheduling));
        Ok(figures)
    };
    let runs = (0..stored.rounds).map(figures).collect::<Result<Vec<_>>>()?;
    Ok(Pair {
        benchmark: ran.benchmark.clone(),
        real: ran.real.clone(),
        simulated: Figures::median(&runs),
        operation: ran.operation,
        fixed_time: real::has_fixed_time(&ran.benchmark, &workload),
        spread_pct: ran.spread_pct.clone(),
    })
}

fn progress(steps: u64) -> ProgressBar {
    if stderr().is_terminal() { ProgressBar::new(steps) } else { ProgressBar::hidden() }
}

/// A line on standard error for those who do not see the progress bar.
fn say(progress: &ProgressBar, what: &str) {
    if progress.is_hidden() {
        caller::progress(what);
    }
}

/// The CPU time that the kernel accounts to the tasks, as getrusage(2) returns it, in s. It begins before the switch where
/// a wakeup has set the runqueue's clock.
fn accounted_s(outcome: &Outcome) -> f64 {
    outcome.schedstat.iter().map(|cpu| cpu.rq_cpu_time).sum::<u64>() as f64 / 1e9
}

/// The benchmark with as little to do as it can have; None if it runs for a given time.
fn shortest(line: &str) -> Result<Option<Workload>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let shortest = Tool::of(&words).and_then(|tool| tool.shortest(&words));
    shortest.map(|words| workload(&words.join(" "))).transpose()
}

/// Reads the benchmark's command line as it will be simulated.
fn workload(line: &str) -> Result<Workload> {
    Ok(coreward_workload::parse(line, Scale::FULL)?)
}
