//! What a result is known by: a hash of everything that decides it, so that equal results are found and others never.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::matrix::suite::Row;
use crate::setup::Host;

/// The SHA-256 of a value as a line of JSON, in hexadecimal digits.
pub(crate) fn of(value: &Value) -> String {
    sha256(value.to_string().as_bytes())
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

/// The SHA-256 of values as lines of JSON, in hexadecimal digits.
pub(crate) fn of_lines(values: impl Iterator<Item = Value>) -> String {
    let mut hash = Sha256::new();
    values.for_each(|value| hash.update(format!("{value}\n")));
    hexadecimal(hash)
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The program, the machine with its costs, and the policy.
///
/// # Errors
/// The program cannot be read.
pub(crate) fn of_host(host: &Host) -> Result<String> {
    let settings = host.policy.settings();
    Ok(of(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "program": program()?,
        "name": host.machine.name,
        "machine": host.machine.to_toml(),
        "profile": host.policy.profile.name(),
        "code": host.policy.code.key(),
        "features": host.policy.features().collect::<Vec<_>>(),
        "tunables": settings.tunables.to_vec(),
        "task_group_depth": host.task_group_depth,
        "time_limit_s": host.time_limit_s,
    })))
}

/// The SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// It cannot be read.
pub(crate) fn of_file(path: &Path) -> Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    coreward_input::open(path).with_context(cannot)?.read_to_end(&mut bytes).with_context(cannot)?;
    Ok(sha256(&bytes))
}

/// A row of a suite on a machine of so many CPUs, with the files that it reads.
///
/// # Errors
/// The row is refused, or a file cannot be read.
pub(crate) fn of_row(row: &Row, cpus: usize) -> Result<String> {
    let (workload, rt_app) = row.text(cpus).map_err(anyhow::Error::msg)?;
    let files = row.paths().iter().map(|path| of_file(path)).collect::<Result<Vec<_>>>()?;
    Ok(of(&json!({ "workload": workload, "rt_app": rt_app, "files": files })))
}

/// A checksum of this program, or of the library that this is in: another build may simulate something else under the same
/// version.
fn program() -> Result<&'static str> {
    static CHECKSUM: OnceLock<String> = OnceLock::new();
    if let Some(sum) = CHECKSUM.get() {
        return Ok(sum);
    }
    let file = own_file().unwrap_or_else(|| "/proc/self/exe".into());
    let sum = format!("{:08x}", crc32fast::hash(&fs::read(file).context("cannot read this program")?));
    Ok(CHECKSUM.get_or_init(|| sum))
}

/// The file that this function was loaded from.
fn own_file() -> Option<PathBuf> {
    let own = program as *const () as usize;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let address = |text: &str| usize::from_str_radix(text, 16).ok();
        range.and_then(|(from, to)| Some((address(from)?..address(to)?).contains(&own))).unwrap_or(false)
    })?;
    let path = Path::new(line.get(line.find('/')?..)?);
    path.is_file().then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn the_program_is_found() {
        assert_eq!(own_file(), std::env::current_exe().ok());
    }
}
