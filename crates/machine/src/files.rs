//! Reading files without trusting their size.

use std::path::Path;

use crate::error::MachineError;

/// Largest machine file, in KiB; one of 1024 CPUs takes a tenth. A parsed one takes a hundred times its text.
pub(crate) const MACHINE_KIB: u64 = 1 << 10;
/// Largest machine as JSON, in KiB; one of 1024 CPUs takes a fifth.
pub(crate) const JSON_KIB: u64 = 1 << 10;
/// Largest hwloc XML, in KiB; one of 1024 CPUs takes half, at 1 to 2 KB a CPU.
pub(crate) const HWLOC_KIB: u64 = 4 << 10;
/// Largest file of a sysfs tree, in KiB; most are shorter than a page.
pub(crate) const SYSFS_KIB: u64 = 64;

/// Reads a text file of at most `max_kib` KiB.
pub(crate) fn read_text(path: &Path, max_kib: u64) -> Result<String, MachineError> {
    coreward_input::read_text(path, max_kib)
        .map_err(|error| MachineError::Read { path: path.display().to_string(), reason: error.to_string() })
}
