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
    "arm-2x4",
    "e5-10c-2s",
    "e5-2680v3-2s",
    "epyc-7543-2s",
    "epyc-7543-2s-nps1",
    "epyc-9654-2s",
    "epyc-zen4-2x128",
    "hikey",
    "juno-r0",
    "pixel3",
    "pixel3-phantom",
    "power10",
    "power10-12c",
    "power10-46c",
    "thunderx2-2s",
    "xeon-32c-2s",
    "xeon-56c-2s",
    "xeon-60c-2s",
];

/// The names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

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
