//! Names of commands and cgroups.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

/// Where cgroup v2 is mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// A command's name: what stands before the first zero.
pub(super) fn comm(key: &[u8]) -> String {
    let end = key.iter().position(|b| *b == 0).unwrap_or(key.len());
    String::from_utf8_lossy(&key[..end]).into_owned()
}

/// The cgroups that there are, by their ids, which are the inode numbers of their directories.
pub(super) fn cgroups() -> HashMap<u64, String> {
    let mut names = HashMap::new();
    let mut todo = vec![PathBuf::from(ROOT)];
    while let Some(directory) = todo.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                names.insert(entry.ino(), name(&entry.path()));
                todo.push(entry.path());
            }
        }
    }
    names
}

fn name(path: &Path) -> String {
    format!("/{}", path.strip_prefix(ROOT).unwrap_or(path).display())
}

/// The id of the root.
const ROOT_ID: u64 = 1;

/// A cgroup's name, or its number if it has gone.
pub(super) fn cgroup(names: &HashMap<u64, String>, key: &[u8]) -> String {
    let id = key.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    match names.get(&id) {
        Some(name) => name.clone(),
        None if id == ROOT_ID => "/".to_owned(),
        None => format!("cgroup {id}"),
    }
}
