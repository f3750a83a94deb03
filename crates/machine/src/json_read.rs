//! Reads the JSON of a machine, as `coreward topology --json` prints it.

use crate::costs::Costs;
use crate::error::MachineError;
use crate::machine::Machine;

/// Reads the text of a JSON file.
pub(crate) fn read(path: &str, text: &str) -> Result<Machine, MachineError> {
    // some editors put a byte order mark before the text
    let text = text.trim_start_matches('\u{feff}');
    let machine: Machine = serde_json::from_str(text).map_err(|error| {
        // the parser appends the place
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        MachineError::invalid(format!("{path}:{}", error.line()), what)
    })?;
    if machine.cpus.is_empty() {
        return Err(MachineError::invalid(path, "cpus has none"));
    }
    // The same machine as a machine file: what is wrong with a figure is said in one place.
    match Machine::from_toml_str(path, &machine.to_toml()) {
        Ok(checked) if checked == machine => Ok(machine),
        Ok(checked) => Err(MachineError::invalid(path, difference(&machine, &checked))),
        Err(MachineError::Invalid { what, .. }) => Err(MachineError::invalid(path, what)),
        Err(error) => Err(error),
    }
}

/// What a machine file could not say of the machine, in spite of which it could be read.
fn difference(machine: &Machine, checked: &Machine) -> String {
    if let Some(name) = machine.own_bounds.keys().find(|name| Costs::field(name).is_none()) {
        return format!("own_bounds.{name}: there is no such cost");
    }
    if machine.nodes != checked.nodes {
        return format!("nodes is {}, but the CPUs are in {}", machine.nodes, checked.nodes);
    }
    "cores, clusters, LLCs and packages are not numbered in the order of their CPUs".into()
}
