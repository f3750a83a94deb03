//! The file of finished results: a killed matrix, sweep or fidelity continues with it, and nothing is run twice.
//!
//! A line is a result with its key ([`mod@crate::address`]), and is written at once when the result is there. The last
//! line of a killed process may lack its end; it is dropped. Results of other commands stay where they are, and cost
//! nothing but their lines.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Largest file, in bytes; a result takes 1 to 3 KiB.
const MAX_BYTES: u64 = 1 << 32;

/// Results of a command that are kept, in a file or only in memory.
pub(crate) struct State<T> {
    command: &'static str,
    /// `None` if nothing is kept.
    file: Option<Mutex<File>>,
    finished: BTreeMap<String, T>,
}

#[derive(Serialize, Deserialize)]
struct Line<T> {
    key: String,
    result: T,
}

impl<T: Serialize + DeserializeOwned> State<T> {
    /// Nothing is kept.
    pub(crate) fn none(command: &'static str) -> State<T> {
        State { command, file: None, finished: BTreeMap::new() }
    }

    /// Reads the file of a command (`matrix`, `sweep` or `fidelity`), or begins a new one; without a path nothing is kept.
    ///
    /// # Errors
    /// It cannot be read or written, is no such file, or another process has it open.
    pub(crate) fn open(command: &'static str, path: Option<&Path>) -> Result<State<T>> {
        let Some(path) = path else { return Ok(State::none(command)) };
        let shown = path.display();
        let cannot = || format!("--state: cannot open {shown}");
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            bail!("{}: it is no regular file", cannot());
        }
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(cannot)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("--state: {shown} is in use by another coreward {command}");
        }
        let (finished, whole) = read("--state", command, path, &mut file)?;
        file.set_len(whole).with_context(cannot)?;
        file.seek(SeekFrom::End(0)).with_context(cannot)?;
        if whole == 0 {
            writeln!(file, "{}", head(command)).with_context(cannot)?;
        }
        Ok(State { command, file: Some(Mutex::new(file)), finished })
    }

    /// Adds the results of other files, which other processes wrote and may still write.
    ///
    /// # Errors
    /// One of them cannot be read or is no such file, or the state's own cannot be written.
    pub(crate) fn merge(&mut self, others: &[PathBuf]) -> Result<()> {
        for path in others {
            let mut other = coreward_input::open(path)
                .with_context(|| format!("--merge: cannot open {}", path.display()))?;
            let (found, _) = read::<T>("--merge", self.command, path, &mut other)?;
            let mut new = String::new();
            for (key, result) in found {
                if let Entry::Vacant(place) = self.finished.entry(key) {
                    new.push_str(&line(place.key(), &result)?);
                    place.insert(result);
                }
            }
            self.write(&new)?;
        }
        Ok(())
    }

    /// The result with a key, if it is finished.
    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        self.finished.get(key)
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(&self, key: &str, result: &T) -> Result<()> {
        if self.file.is_some() { self.write(&line(key, result)?) } else { Ok(()) }
    }

    fn write(&self, lines: &str) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(lines.as_bytes())
            .and_then(|()| file.sync_data())
            .context("--state: cannot write to it")
    }
}

/// The first line of a command's file.
fn head(command: &str) -> String {
    format!("{{\"coreward_{command}\":1}}")
}

fn line<T: Serialize>(key: &str, result: &T) -> Result<String> {
    // a reference is written as what it refers to
    let mut line = serde_json::to_string(&Line { key: key.to_owned(), result })?;
    line.push('\n');
    Ok(line)
}

/// The results in a file that an option names, and the length of its whole lines.
fn read<T: DeserializeOwned>(
    option: &str,
    command: &str,
    path: &Path,
    file: &mut File,
) -> Result<(BTreeMap<String, T>, u64)> {
    let shown = path.display();
    let cannot = || format!("{option}: cannot open {shown}");
    if file.metadata().with_context(cannot)?.len() > MAX_BYTES {
        bail!("{}: it is larger than {} MiB", cannot(), MAX_BYTES >> 20);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(cannot)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    // a line that is not whole may have been cut within a character
    let text = String::from_utf8_lossy(&bytes[..whole]);
    let (head, mut lines) = (head(command), text.lines());
    match lines.next() {
        Some(first) if first == head => {}
        None if head.as_bytes().starts_with(bytes.trim_ascii_end()) => {}
        _ => bail!("{option}: {shown} is no file of coreward {command}, which begins with {head}"),
    }
    let mut finished = BTreeMap::new();
    for (number, line) in lines.enumerate() {
        let Line { key, result } = serde_json::from_str(line)
            .map_err(|error| anyhow!("{option}: {shown}:{}: it is damaged: {error}", number + 2))?;
        finished.insert(key, result);
    }
    Ok((finished, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<State<u64>> {
        State::open("matrix", Some(path))
    }

    #[test]
    fn what_was_kept_is_found_and_a_line_without_its_end_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let state = open(&path).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.ends_with("is in use by another coreward matrix"), "{error}");
        state.keep("a", &1).unwrap();
        state.keep("b\u{e9}", &2).unwrap();
        drop(state);
        let text = fs::read(&path).unwrap();
        // killed at any byte: what was finished by then is there, and the file can be continued
        for end in 0..=text.len() {
            fs::write(&path, &text[..end]).unwrap();
            let state = open(&path).unwrap();
            let lines = text[..end].iter().filter(|byte| **byte == b'\n').count();
            let kept = (state.get("a").is_some(), state.get("b\u{e9}").is_some());
            assert_eq!(kept, (lines > 1, lines > 2), "{end}");
            state.keep("c", &3).unwrap();
            drop(state);
            assert_eq!(open(&path).unwrap().get("c"), Some(&3), "{end}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        for text in ["my notes\n", "my notes", "{}\n"] {
            fs::write(&path, text).unwrap();
            let error = open(&path).err().unwrap().to_string();
            assert!(error.contains("is no file of coreward matrix"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, format!("{}\n{{\"key\": 1}}\n", head("matrix"))).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains("notes:2: it is damaged: "), "{error}");
        fs::write(&path, [head("matrix").as_bytes(), b"\n\xff\xff\n\n"].concat()).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains("notes:2: it is damaged: "), "{error}");
        assert!(open(dir.path()).is_err());
    }

    #[test]
    fn other_files_are_added_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for (name, results) in [("a", [("x", 1), ("y", 2)]), ("b", [("y", 2), ("z", 3)])] {
            let state = open(&path(name)).unwrap();
            results.iter().for_each(|(key, result)| state.keep(key, result).unwrap());
        }
        // one that is still written
        let before = fs::read_to_string(path("b")).unwrap();
        fs::write(path("b"), format!("{before}{{\"key\": \"w")).unwrap();
        let mut all = open(&path("all")).unwrap();
        all.merge(&[path("a"), path("b")]).unwrap();
        assert_eq!(["x", "y", "z"].map(|key| all.get(key).copied()), [Some(1), Some(2), Some(3)]);
        drop(all);
        assert_eq!(open(&path("all")).unwrap().get("z"), Some(&3));
        assert_eq!(fs::read_to_string(path("all")).unwrap().lines().count(), 4);
        let refused = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
            open(&path("all")).unwrap().merge(&paths).unwrap_err().to_string()
        };
        assert!(refused(&["none"]).starts_with("--merge: cannot open "));
        fs::write(path("notes"), "notes\n").unwrap();
        assert!(refused(&["notes"]).contains("is no file of coreward matrix"));
    }
}
