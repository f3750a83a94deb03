//! TODO
use crate::error::MachineError;
use crate::machine::Machine;
use std::path::Path;
pub(crate) fn read(dir: &Path) -> Result<Machine, MachineError> {
    Err(MachineError::invalid(dir.display().to_string(), "not yet"))
}
