//! Reading files without trusting their size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::MachineError;

/// No description of 1024 CPUs comes near this size; hwloc XML is the largest, at 1 to 2 KB a CPU.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a text file of at most 16 MiB.
pub(crate) fn read_text(path: &Path) -> Result<String, MachineError> {
    let unreadable = |reason: String| MachineError::Read { path: path.display().to_string(), reason };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unreadable("it is larger than 16 MiB".to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
}
