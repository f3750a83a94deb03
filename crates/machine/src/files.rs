//! Reading files without trusting their size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::MachineError;

/// Largest machine file, in KiB; one of 1024 CPUs takes a tenth. A parsed one takes a hundred times its text.
pub(crate) const MACHINE_KIB: u64 = 1 << 10;

/// Largest hwloc XML, in KiB; one of 1024 CPUs takes half, at 1 to 2 KB a CPU.
pub(crate) const HWLOC_KIB: u64 = 4 << 10;

/// Largest file of a sysfs tree, in KiB; most are shorter than a page.
pub(crate) const SYSFS_KIB: u64 = 64;

/// Reads a text file of at most `max_kib` KiB.
pub(crate) fn read_text(path: &Path, max_kib: u64) -> Result<String, MachineError> {
    let unreadable = |reason: String| MachineError::Read { path: path.display().to_string(), reason };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let max = max_kib << 10;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > max {
        return Err(unreadable(format!("it is larger than {max_kib} KiB")));
    }
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
}
