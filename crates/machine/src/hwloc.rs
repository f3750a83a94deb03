//! TODO
use crate::error::MachineError;
use crate::machine::Machine;
pub(crate) fn read(path: &str, _text: &str) -> Result<Machine, MachineError> {
    Err(MachineError::invalid(path, "not yet"))
}
