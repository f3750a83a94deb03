//! Reads the JSON of a machine, as `coreward topology --json` prints it.

use crate::error::MachineError;
use crate::machine::Machine;

/// Reads the text of a JSON file.
pub(crate) fn read(path: &str, text: &str) -> Result<Machine, MachineError> {
    let machine: Machine = serde_json::from_str(text).map_err(|error| {
        // the parser appends the place
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        MachineError::invalid(format!("{path}:{}", error.line()), what)
    })?;
    // The same machine as a machine file: what is wrong with a figure is said in one place.
    match Machine::from_toml_str(path, &machine.to_toml()) {
        Ok(checked) if checked == machine => Ok(machine),
        Ok(_) => {
            let what = "cores, clusters, LLCs and packages are not numbered in the order of their CPUs";
            Err(MachineError::invalid(path, what))
        }
        Err(MachineError::Invalid { what, .. }) => Err(MachineError::invalid(path, what)),
        Err(error) => Err(error),
    }
}
