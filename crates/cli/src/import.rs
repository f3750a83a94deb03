//! `coreward import`: the workload behind a recording, or a workload in another form.

use std::io::{IsTerminal, Write, stderr};
use std::path::Path;

use anyhow::{Context, Result, bail};
use coreward_machine::Machine;
use coreward_trace::import::{Cause, Causes, Class, Import, Options, Report};
use coreward_trace::{ReadError, Recording};
use coreward_workload::recorded::{Form, Recorded};
use indicatif::ProgressBar;

use crate::assumed;
use crate::caller;
use crate::cli;
use crate::output::{self, OutputFile, Outputs};

/// Events from one sign of life to the next.
const PROGRESS: u64 = 100_000;

pub(crate) fn run(args: &cli::Import, out: &mut dyn Write) -> Result<()> {
    if Form::of(&args.file.to_string_lossy()).is_some() {
        return convert(args, out);
    }
    let name = args.file.display();
    let machine =
        args.machine.as_deref().map(|machine| assumed::machine(machine, false).context("--machine"));
    let machine = machine.transpose()?;
    if args.to.is_some_and(|to| to <= args.from) {
        bail!("--to: it has to be later than --from");
    }
    let of_machine = args.machine.as_deref().and_then(Machine::path);
    let inputs = [args.file.clone()].into_iter().chain(of_machine.map(Into::into));
    let mut outputs = Outputs::new(inputs);
    let file = args.output.as_deref().map(|path| outputs.create("--output", path)).transpose()?;
    let options = Options {
        machine,
        only: args.only.clone(),
        without: args.without.clone(),
        open_loop: args.open_loop,
        any_cpu: args.any_cpu,
        from_ns: args.from,
        to_ns: args.to.unwrap_or(u64::MAX),
    };
    let (recorded, report) = read(args, options).with_context(|| name.to_string())?;
    if let (Some(path), Some(file)) = (&args.output, file) {
        let waits = &report.waits;
        if waits.unknown * 2 > waits.all() && !args.force {
            bail!(
                "{name}: it does not say what ended {} of {} waits, so that the workload would be a schedule and not what \
                 caused it (needed: sched_waking; --force writes it all the same)",
                waits.unknown,
                waits.all()
            );
        }
        write(&recorded, path, file)?;
    }
    if args.json {
        return output::json(out, &report);
    }
    writeln!(out, "{name}: {}, {} events", recorded.origin, report.events)?;
    summary(out, &recorded, &report)?;
    if args.explain {
        classes(out, &report)?;
    }
    for (kind, said) in [("lacks", &report.lacks), ("fault", &report.faults)] {
        said.iter().try_for_each(|what| writeln!(out, "{kind:8}{what}"))?;
    }
    args.output.as_deref().map_or(Ok(()), |path| is_written(path, out))
}

/// Writes a workload in another form.
fn convert(args: &cli::Import, out: &mut dyn Write) -> Result<()> {
    let name = args.file.display();
    for (option, given) in [
        ("--explain", args.explain),
        ("--machine", args.machine.is_some()),
        ("--only", !args.only.is_empty()),
        ("--without", !args.without.is_empty()),
        ("--open-loop", args.open_loop),
        ("--any-cpu", args.any_cpu),
        ("--from", args.from != 0),
        ("--to", args.to.is_some()),
        ("--force", args.force),
        ("--json", args.json),
    ] {
        if given {
            bail!("{option}: {name} is a workload, not a recording (allowed: --output)");
        }
    }
    let Some(path) = &args.output else {
        bail!("{name}: it is a workload already (--output writes it in another form)");
    };
    let file = Outputs::new([args.file.clone()]).create("--output", path)?;
    let recorded =
        Recorded::read(&args.file).map_err(anyhow::Error::msg).with_context(|| name.to_string())?;
    write(&recorded, path, file)?;
    is_written(path, out)
}

fn write(recorded: &Recorded, path: &Path, mut file: OutputFile) -> Result<()> {
    recorded.write(&mut file, Form::of(&path.to_string_lossy()).unwrap_or_default())?;
    file.finish()
}

fn is_written(path: &Path, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{} is written: coreward run {0} --machine M", path.display())?;
    Ok(())
}

fn read(args: &cli::Import, options: Options) -> Result<(Recorded, Report)> {
    let mut recording = Recording::open(&args.file)?;
    let mut import = Import::new(options);
    let bar = if stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let mut events = 0u64;
    while let Some(event) = recording.next_event()? {
        if !import.event(&event)? {
            break;
        }
        events += 1;
        if events % PROGRESS == 0 {
            caller::go_on()?;
            bar.set_message(format!("{events} events"));
            bar.tick();
        }
    }
    bar.finish_and_clear();
    if events == 0 {
        // text without a single event may be anything
        let nothing = if recording.unknown().is_some() { ReadError::Unknown } else { ReadError::Empty };
        return Err(nothing.into());
    }
    Ok(import.finish(&recording)?)
}

fn summary(out: &mut dyn Write, recorded: &Recorded, report: &Report) -> Result<()> {
    let steps: usize = recorded.tasks.iter().map(|task| task.steps.len()).sum();
    writeln!(
        out,
        "tasks   {} with {steps} steps, {} names left out",
        recorded.tasks.len(),
        report.left_out.len()
    )?;
    writeln!(
        out,
        "work    {:.3} s, and {:.3} s of the kernel's, which a simulation adds by itself ({:.3} s more than there was)",
        report.work_s, report.kernel_s, report.kernel_missing_s
    )?;
    if let Some(pct) = report.speed_pct {
        writeln!(out, "speed   {pct:.1} % of the CPUs' fastest: the work is what it would take at that")?;
    }
    writeln!(out, "waits   {}, ended by {}", report.waits.all(), ended(&report.waits))?;
    if report.channels[0] > 0 {
        let [channels, shared] = report.channels;
        writeln!(
            out,
            "objects {channels} that tasks sleep on; of {shared} any of several tasks may take what comes"
        )?;
    }
    if report.messages > 0 {
        writeln!(out, "sockets {} messages whose readers were awake", report.messages)?;
    }
    if !report.groups.is_empty() {
        writeln!(out, "groups  {} that tasks were in", report.groups.len())?;
    }
    if report.answers > 0 {
        writeln!(out, "answers {} that go to whoever made the request that was taken", report.answers)?;
    }
    writeln!(
        out,
        "seen    {} switches to these tasks, {} migrations, {} tasks woken before they slept, {} waits for a periodic timer",
        report.switches, report.migrations, report.woken_awake, report.periodic
    )?;
    let [median, p99] = report.wakeup_latency_us;
    writeln!(
        out,
        "latency from a wakeup to running {median:.1} us in the median, {p99:.1} us in the 99th percentile"
    )?;
    Ok(())
}

fn ended(waits: &Causes) -> String {
    let causes = Cause::ALL.iter().filter(|cause| waits.of(**cause) > 0);
    let all: Vec<_> = causes.map(|cause| format!("{}: {}", cause.name(), waits.of(*cause))).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

fn classes(out: &mut dyn Write, report: &Report) -> Result<()> {
    let name = "class";
    writeln!(
        out,
        "\n{name:20} {:>6} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9}  waits ended by",
        "tasks", "cpu s", "queued s", "blocked s", "explained", "requests", "p99 us"
    )?;
    for class in &report.classes {
        let Class { name, tasks, cpu_s, queued_s, blocked_s, explained_pct, requests, .. } = class;
        let (ended, p99) = (ended(&class.waits), class.request_us[1]);
        writeln!(
            out,
            "{name:20} {tasks:>6} {cpu_s:>9.4} {queued_s:>9.4} {blocked_s:>9.4} {explained_pct:>8.1} % {requests:>9} \
             {p99:>9.1}  {ended}"
        )?;
    }
    writeln!(out)?;
    report.groups.iter().try_for_each(|group| writeln!(out, "task group {group}"))?;
    for left in &report.left_out {
        writeln!(out, "{:20} {:>6} {:>9.4}  left out: {}", left.name, "", left.cpu_s, left.why)?;
    }
    if !report.left_out.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}
