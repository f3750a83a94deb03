//! `coreward calibrate`: what things cost on this machine.

use std::io::{IsTerminal, Write, stderr};

use anyhow::Result;
use coreward_calibrate::{Calibration, calibrate};
use coreward_machine::{Costs, Machine};
use indicatif::ProgressBar;
use serde_json::json;

use crate::cli;
use crate::output::{self, Outputs};

pub(crate) fn run(args: &cli::Calibrate, out: &mut dyn Write) -> Result<()> {
    let mut machine = Machine::load("sysfs")?;
    let before = machine.costs.clone();
    let mut outputs = Outputs::new([]);
    let file = args.out.as_deref().map(|path| outputs.create("--out", path)).transpose()?;
    let spinner = if stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let calibration = calibrate(&machine, |what| {
        spinner.set_message(what.to_owned());
        spinner.tick();
    })?;
    spinner.finish_and_clear();
    calibration.apply(&mut machine, &conditions());
    if let Some(mut file) = file {
        file.write_all(machine.to_toml().as_bytes())?;
        file.finish()?;
    }
    if args.json { json(out, &calibration, &machine) } else { text(out, &calibration, &before, &machine) }
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
        writeln!(
            out,
            "{:20} {:>10.0} {:>8.0} {default:>10}  {}",
            cost.name, cost.sample.ns, cost.sample.spread_ns, cost.how
        )?;
    }
    if let Some(hz) = found.hz {
        writeln!(out, "\nticks a second: {hz}")?;
    }
    writeln!(out, "\n{:20} {:>10} {:>10}  how", "idle state", "exit ns", "from ns")?;
    for state in &machine.idle_states {
        writeln!(
            out,
            "{:20} {:>10} {:>10}  {}",
            state.name, state.exit_ns, state.residency_ns, state.source
        )?;
    }
    let assumed = Costs::FIELDS.iter().filter(|field| found.costs.iter().all(|cost| cost.name != field.name));
    let assumed: Vec<_> = assumed.map(|field| field.name).collect();
    Ok(writeln!(out, "\nnot measured, and as before: {}", assumed.join(", "))?)
}

fn json(out: &mut dyn Write, found: &Calibration, machine: &Machine) -> Result<()> {
    let costs = found.costs.iter().map(|cost| {
        let value = json!({"value": cost.sample.ns, "spread": cost.sample.spread_ns, "how": cost.how});
        (cost.name.to_owned(), value)
    });
    let costs: serde_json::Map<_, _> = costs.collect();
    output::json(out, &json!({"costs": costs, "hz": found.hz, "machine": machine}))
}
