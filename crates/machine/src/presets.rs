//! The machines that come with the program, one file each in `machines/`.

use crate::error::MachineError;
use crate::machine::Machine;

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        /// Name and text of each preset, in alphabetical order.
        const PRESETS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),+];
    };
}

presets![
    "e5-2680v3-2s",
    "epyc-7543-2s",
    "epyc-9654-2s",
    "hikey",
    "juno-r0",
    "pixel3",
    "pixel3-phantom",
    "power10",
    "xeon-60c-2s",
];

/// The preset of this name, if there is one.
pub(crate) fn load(name: &str) -> Option<Result<Machine, MachineError>> {
    let (name, text) = PRESETS.iter().find(|(preset, _)| *preset == name)?;
    Some(Machine::from_toml_str(name, text))
}

/// Names and descriptions.
pub(crate) fn list() -> Vec<(String, String)> {
    let machines = PRESETS.iter().filter_map(|(name, text)| Machine::from_toml_str(name, text).ok());
    machines.map(|machine| (machine.name, machine.description)).collect()
}
