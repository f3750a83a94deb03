//! `coreward calibrate`: what things cost on this machine.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;

use anyhow::Result;
use coreward_calibrate::{Calibration, Contended, Refill, Sample, calibrate};
use coreward_machine::{Costs, Machine};
use indicatif::ProgressBar;
use serde_json::json;

use crate::caller;
use crate::cli;
use crate::output::{self, Outputs};

pub(crate) fn run(args: &cli::Calibrate, out: &mut dyn Write) -> Result<()> {
    let mut machine = Machine::load("sysfs")?;
    let before = machine.costs.clone();
    let mut outputs = Outputs::new([]);
    let file = args.out.as_deref().map(|path| outputs.create("--out", path)).transpose()?;
    let spinner = if stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let calibration = calibrate(&machine, args.passes, |what| {
        spinner.set_message(what.to_owned());
        spinner.tick();
        caller::go_on().is_ok()
    })?;
    spinner.finish_and_clear();
    apply(&calibration, &mut machine, args.out.as_deref());
    if let Some(mut file) = file {
        file.write_all(machine.to_toml().as_bytes())?;
        file.finish()?;
    }
    if args.json { json(out, &calibration, &machine) } else { text(out, &calibration, &before, &machine) }
}

/// The machine with what was measured, under the name of the file that it is written to.
pub(crate) fn apply(found: &Calibration, machine: &mut Machine, file: Option<&Path>) {
    found.apply(machine, &conditions());
    warn(found);
    if let Some(name) = file.and_then(Path::file_stem) {
        machine.name = name.to_string_lossy().into_owned();
    }
}

/// Says what was not measured well enough to be used, on standard error.
fn warn(found: &Calibration) {
    let mut by_doubt: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for cost in &found.costs {
        if let Some(doubt) = &cost.doubt {
            by_doubt.entry(doubt).or_default().push(cost.name);
        }
    }
    if let Some(doubt) = &found.idle_doubt {
        by_doubt.entry(doubt).or_default().push("the idle states");
    }
    for (doubt, names) in &by_doubt {
        caller::remark(&format!("kept as they were, because {doubt}: {}", names.join(", ")));
    }
    if !by_doubt.is_empty() {
        caller::remark("calibrate again when the machine is quiet");
    }
}

/// Under which kernel the costs were measured, and whether it guards against speculation.
fn conditions() -> String {
    let system = rustix::system::uname();
    let mitigated = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities").is_ok_and(|directory| {
        let states = directory.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
        states.into_iter().any(|state| state.starts_with("Mitigation"))
    });
    format!(
        "{} {}, mitigations {}",
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        if mitigated { "on" } else { "off" }
    )
}

fn text(out: &mut dyn Write, found: &Calibration, before: &Costs, machine: &Machine) -> Result<()> {
    writeln!(out, "{:20} {:>10} {:>8} {:>10}  how", "cost", "measured", "spread", "default")?;
    for cost in &found.costs {
        let default = before.get(cost.name).unwrap_or_default();
        let kept = if cost.doubt.is_some() { "not used: " } else { "" };
        writeln!(
            out,
            "{:20} {:>10.0} {:>8.0} {default:>10}  {kept}{}",
            cost.name, cost.sample.ns, cost.sample.spread_ns, cost.how
        )?;
    }
    writeln!(out, "\n{:20} {:>10} {:>10}  how", "idle state", "exit ns", "from ns")?;
    for state in &machine.idle_states {
        writeln!(
            out,
            "{:20} {:>10} {:>10}  {}",
            state.name, state.exit_ns, state.residency_ns, state.source
        )?;
    }
    together(out, found)?;
    writeln!(out, "\nnot measured here, and as before:")?;
    for open in &found.open {
        writeln!(out, "{:20} {}", open.name, open.why)?;
    }
    Ok(())
}

/// What is no cost of the table.
fn together(out: &mut dyn Write, found: &Calibration) -> Result<()> {
    let cell = |sample: Sample| format!("{:.1} ± {:.1}", sample.ns, sample.spread_ns);
    writeln!(out, "\n{:20} {:>20} {:>20}", "one line, by CPUs", "rmw ns each", "read ns each")?;
    for Contended { cpus, rmw, read } in &found.contended {
        writeln!(out, "{cpus:<20} {:>20} {:>20}", cell(*rmw), cell(*read))?;
    }
    writeln!(out, "\n{:20} {:>20}  where it is", "working set, KiB", "ns a line")?;
    for Refill { bytes, source, line } in &found.refills {
        writeln!(out, "{:<20} {:>20}  {source}", bytes >> 10, cell(*line))?;
    }
    Ok(())
}

fn json(out: &mut dyn Write, found: &Calibration, machine: &Machine) -> Result<()> {
    let costs = found.costs.iter().map(|cost| {
        let (value, spread) = (cost.sample.ns, cost.sample.spread_ns);
        let value = json!({"value": value, "spread": spread, "how": cost.how, "not_used": cost.doubt});
        (cost.name.to_owned(), value)
    });
    let costs: serde_json::Map<_, _> = costs.collect();
    let sample = |sample: Sample| json!({"ns": sample.ns, "spread": sample.spread_ns});
    let contended = found.contended.iter().map(|contended| {
        json!({"cpus": contended.cpus, "rmw": sample(contended.rmw), "read": sample(contended.read)})
    });
    let refills = found
        .refills
        .iter()
        .map(|refill| json!({"bytes": refill.bytes, "source": refill.source, "line": sample(refill.line)}));
    let open = found.open.iter().map(|open| (open.name.to_owned(), open.why.into()));
    output::json(
        out,
        &json!({
            "costs": costs,
            "contended_line": contended.collect::<Vec<_>>(),
            "refill": refills.collect::<Vec<_>>(),
            "not_measured": open.collect::<serde_json::Map<_, _>>(),
            "machine": machine,
        }),
    )
}
