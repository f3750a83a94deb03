//! `coreward matrix`: what one change does to many workloads on many machines.

mod cell;
mod page;
mod report;
mod state;
mod suite;
mod text;

use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use coreward_input::Printer;
use coreward_machine::Machine;
use indicatif::{ProgressBar, ProgressStyle};

use crate::assumed;
use crate::cli;
use crate::output::Outputs;
use crate::prepared;
use crate::shell;
use crate::standing;
use crate::unmet::Unmet;
use cell::{Cell, Plan};
use report::{Described, Frame, Report};
use state::State;
use suite::Row;

pub(crate) fn run(args: &cli::Matrix, out: &mut dyn Write) -> Result<()> {
    let Some(change) = &args.with else {
        // --print-suite, which clap takes in its place
        return Ok(out.write_all(suite::BUILT_IN.as_bytes())?);
    };
    let specs: Vec<String> = match args.machine.is_empty() {
        true => Machine::presets().into_iter().map(|(name, _)| name).collect(),
        false => args.machine.clone(),
    };
    let rows = suite::rows(args.suite.as_deref(), &args.workload)?;
    let machines = machines(&specs, args.strict)?;

    let inputs = specs.iter().filter_map(|spec| Machine::path(spec)).map(Path::to_owned);
    let inputs = inputs.chain(args.suite.clone()).chain(rows.iter().flat_map(Row::paths));
    let inputs: Vec<PathBuf> = inputs.chain(args.state.clone()).collect();
    let mut outputs = Outputs::new(inputs);
    let mut open = |option, target: &Option<PathBuf>| {
        let file = target.as_deref().filter(|target| *target != Path::new("-"));
        file.map(|target| outputs.create(option, target)).transpose()
    };
    let (json, text, html) =
        (open("--json", &args.json)?, open("--text", &args.text)?, open("--html", &args.html)?);

    let plans = plans(args, change, &specs, &machines, &rows)?;
    let state = args.state.as_deref().map_or_else(|| Ok(State::none()), State::open)?;
    let jobs = args
        .jobs
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize);
    let cells = finish(&plans, &state, jobs)?;
    let report = report(args, change, &plans, cells, machines, rows)?;

    let texts = text::render(&report, args.all);
    if let Some(mut file) = text {
        Printer::new(&mut file).write_all(texts.as_bytes())?;
        file.finish()?;
    }
    if let Some(mut file) = html {
        file.write_all(page::render(&report).as_bytes())?;
        file.finish()?;
    }
    if let Some(mut file) = json {
        report.json(&mut file)?;
        file.finish()?;
    }
    if args.json.as_deref() == Some(Path::new("-")) {
        report.json(out)?;
    } else {
        out.write_all(texts.as_bytes())?;
        out.flush()?;
    }
    let broken = if args.check { report.broken() } else { Vec::new() };
    Unmet::check(&broken)
}

fn machines(specs: &[String], strict: bool) -> Result<Vec<Machine>> {
    let mut machines: Vec<Machine> = Vec::new();
    for spec in specs {
        let machine = assumed::machine(spec, strict).context("--machine")?;
        if machines.iter().any(|other| other.name == machine.name) {
            bail!("--machine: {} is named twice", machine.name);
        }
        machines.push(machine);
    }
    Ok(machines)
}

/// All cells, machine by machine. Everything that can be refused is refused here, before the first run.
fn plans(
    args: &cli::Matrix,
    change: &str,
    specs: &[String],
    machines: &[Machine],
    rows: &[Row],
) -> Result<Vec<Plan>> {
    let mut plans = Vec::new();
    for (row, suite_row) in rows.iter().enumerate() {
        let fits = |machine: &&Machine| machine.nr_cpus() >= suite_row.min_cpus;
        match machines.iter().find(fits) {
            Some(machine) => {
                let workload = suite_row.on(machine.nr_cpus())?;
                assumed::of_workload(&workload.name, &workload, args.strict)?;
            }
            None => bail!("{} takes {} CPUs, which no machine has", suite_row.name, suite_row.min_cpus),
        }
        for (machine, described) in machines.iter().enumerate().filter(|(_, machine)| fits(machine)) {
            plans.push(Plan::new(args, change, (machine, &specs[machine], described), (row, suite_row))?);
        }
    }
    plans.sort_by_key(|plan| (plan.machine, plan.row));
    Ok(plans)
}

/// All cells in the order of the plans: those that are kept, and the others run, the largest first, so that no thread is
/// left with one at the end.
fn finish(plans: &[Plan], state: &State, jobs: usize) -> Result<Vec<Cell>> {
    let mut cells: Vec<Option<Result<Cell>>> =
        plans.iter().map(|plan| state.get(&plan.key).cloned().map(Ok)).collect();
    let mut left: Vec<usize> = (0..plans.len()).filter(|i| cells[*i].is_none()).collect();
    left.sort_by_key(|i| std::cmp::Reverse(plans[*i].weight));
    let progress = progress(plans, &left);
    let (next, made) = (AtomicUsize::new(0), Mutex::new(&mut cells));
    let work = || -> Result<()> {
        // a cell is run by one thread: the cells are many, and are kept the sooner
        let pool = prepared::pool(Some(1))?;
        while let Some(&i) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
            let cell = plans[i].run(&pool).and_then(|cell| {
                state.keep(&plans[i].key, &cell)?;
                Ok(cell)
            });
            if cell.is_err() {
                next.store(left.len(), Ordering::Relaxed);
            }
            made.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(cell);
            progress.inc(plans[i].weight);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.min(left.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    progress.finish_and_clear();
    // if one failed, those after it may be missing
    cells.into_iter().flatten().collect()
}

/// On standard error, and only if that is a terminal. Cells count by how much work they are.
fn progress(plans: &[Plan], left: &[usize]) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {percent} %, {elapsed}, {eta} left");
    let message = format!("{} of {} cells to run", left.len(), plans.len());
    let bar = ProgressBar::new(left.iter().map(|i| plans[*i].weight).sum()).with_message(message);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn report(
    args: &cli::Matrix,
    change: &str,
    plans: &[Plan],
    cells: Vec<Cell>,
    machines: Vec<Machine>,
    rows: Vec<Row>,
) -> Result<Report> {
    let mut baseline: Vec<String> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for plan in plans {
        let experiment = plan.experiment();
        let label = &experiment.baseline.label;
        baseline.extend((!baseline.contains(label)).then(|| label.clone()));
        let new = experiment.notes.iter().filter(|note| !notes.contains(note)).cloned().collect::<Vec<_>>();
        notes.extend(new);
    }
    let record = standing::Book::read()?;
    let first = plans.first().context("there is a cell")?.experiment();
    let described = |machine: &Machine| Described {
        name: machine.name.clone(),
        description: machine.description.clone(),
        cpus: machine.nr_cpus(),
    };
    let of = |plan: &Plan| record.hits(first, &rows[plan.row].benchmark());
    let cells =
        plans.iter().zip(cells).map(|(plan, cell)| (plan.machine, plan.row, of(plan), cell)).collect();
    let frame = Frame {
        command: command(args, change),
        change: change.to_owned(),
        baseline,
        runs: args.runs,
        seed: args.seed,
        record: record.standing(first)?,
        machines: machines.iter().map(described).collect(),
        workloads: rows,
        notes,
    };
    Ok(Report::new(frame, cells))
}

/// The command line that makes the same matrix.
fn command(args: &cli::Matrix, change: &str) -> String {
    let mut words = vec!["coreward".to_owned(), "matrix".into(), "--with".into(), change.to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    args.baseline_with.iter().for_each(|changes| option("--baseline-with", changes.clone()));
    args.profile.iter().for_each(|profile| option("--profile", profile.clone()));
    args.machine.iter().for_each(|machine| option("--machine", machine.clone()));
    args.workload.iter().for_each(|workload| option("--workload", workload.clone()));
    args.suite.iter().for_each(|suite| option("--suite", suite.display().to_string()));
    args.cost.iter().for_each(|cost| option("--cost", format!("{}={}", cost.name, cost.value)));
    args.task_group_depth.iter().for_each(|depth| option("--task-group-depth", depth.to_string()));
    option("--runs", args.runs.to_string());
    option("--seed", args.seed.to_string());
    shell::line(words.iter().map(String::as_str))
}
