//! `coreward machine save`: this machine as a file for others.

use std::io::Write;

use anyhow::{Context, Result, bail};
use coreward_machine::Machine;

use crate::assumed;
use crate::cli;
use crate::output::Outputs;

pub(crate) fn run(args: &cli::MachineSave, out: &mut dyn Write) -> Result<()> {
    let mut machine = assumed::machine("sysfs", false)?;
    if let Some(path) = &args.calibrated {
        let spec = path.to_str().context("--calibrated: the name is not UTF-8")?;
        let calibrated = Machine::load(spec).context("--calibrated")?;
        measured(&mut machine, calibrated).with_context(|| format!("--calibrated: {}", path.display()))?;
    }
    anonymise(&mut machine);
    if let Some(name) = args.file.file_stem() {
        machine.name = name.to_string_lossy().into_owned();
    }
    let mut outputs = Outputs::new(args.calibrated.clone());
    let mut file = outputs.create("machine save", &args.file)?;
    file.write_all(machine.to_toml().as_bytes())?;
    file.finish()?;
    writeln!(
        out,
        "{} is written: {}, Linux {}, {} costs, {} features of the scheduler",
        args.file.display(),
        machine.description,
        machine.kernel.as_deref().unwrap_or("of unknown version"),
        if args.calibrated.is_some() { "measured" } else { "default" },
        if machine.features.is_empty() { "unknown".into() } else { machine.features.len().to_string() },
    )?;
    Ok(())
}

/// Takes over what was measured.
fn measured(machine: &mut Machine, calibrated: Machine) -> Result<()> {
    if calibrated.cpus != machine.cpus {
        bail!(
            "it is of another machine, with {} CPUs or other caches, not of this one with {}",
            calibrated.nr_cpus(),
            machine.nr_cpus()
        );
    }
    machine.costs = calibrated.costs;
    machine.idle_states = calibrated.idle_states;
    machine.sources.extend(calibrated.sources);
    Ok(())
}

/// Leaves of the kernel's release its numbers: what distributions and owners append may name them.
fn anonymise(machine: &mut Machine) {
    let Some(release) = machine.kernel.take() else { return };
    let end = release.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(release.len());
    let numbers = release[..end].trim_end_matches('.').to_owned();
    for source in machine.sources.values_mut() {
        *source = source.replace(&release, &numbers);
    }
    for state in &mut machine.idle_states {
        state.source = state.source.replace(&release, &numbers);
    }
    machine.kernel = Some(numbers).filter(|numbers| !numbers.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_kernel_only_numbers_are_left() {
        let mut machine = Machine::load("2c").unwrap();
        for (release, numbers) in
            [("6.18.44-acme-v1", Some("6.18.44")), ("5.14.0-503.el9", Some("5.14.0")), ("acme-tree", None)]
        {
            machine.kernel = Some(release.to_owned());
            machine.sources.insert("costs.tick_ns".into(), format!("Linux {release}, mitigations on"));
            anonymise(&mut machine);
            assert_eq!(machine.kernel.as_deref(), numbers);
            assert!(!machine.to_toml().contains(release), "{release}");
        }
    }

    #[test]
    fn what_was_measured_is_taken_from_the_same_machine_only() {
        let (mut machine, mut calibrated) = (Machine::load("2c").unwrap(), Machine::load("2c").unwrap());
        calibrated.costs.set("tick_ns", 4321).unwrap();
        calibrated.idle_states.pop();
        measured(&mut machine, calibrated.clone()).unwrap();
        assert_eq!((machine.costs, machine.idle_states), (calibrated.costs, calibrated.idle_states));
        let other = Machine::load("4c").unwrap();
        let error = measured(&mut Machine::load("2c").unwrap(), other).unwrap_err().to_string();
        assert!(error.contains("it is of another machine, with 4 CPUs"), "{error}");
    }
}
