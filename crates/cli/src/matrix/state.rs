//! The file of finished cells: a killed matrix continues with it, and no cell is run twice.
//!
//! A line is a cell with its key, and is written at once when the cell is finished. The last line of a killed process may
//! lack its end; it is dropped. Cells of other matrices stay where they are, and cost nothing but their lines.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::cell::Cell;

/// The first line of a state file.
const HEAD: &str = "{\"coreward_matrix\":1}";
/// Largest file, in bytes; a cell takes about 1 KiB.
const MAX_BYTES: u64 = 1 << 30;

/// Cells that are kept, in a file or only in memory.
pub(super) struct State {
    /// `None` if nothing is kept.
    file: Option<Mutex<File>>,
    finished: BTreeMap<String, Cell>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    cell: Cell,
}

impl State {
    /// Nothing is kept.
    pub(super) fn none() -> State {
        State { file: None, finished: BTreeMap::new() }
    }

    /// Reads the file, or begins a new one.
    ///
    /// # Errors
    /// It cannot be read or written, is no such file, or another process has it open.
    pub(super) fn open(path: &Path) -> Result<State> {
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
            bail!("--state: {shown} is in use by another coreward matrix");
        }
        if file.metadata().with_context(cannot)?.len() > MAX_BYTES {
            bail!("{}: it is larger than {} MiB", cannot(), MAX_BYTES >> 20);
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(cannot)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let cut = &text[whole..];
        let mut lines = text[..whole].lines();
        match lines.next() {
            Some(HEAD) => {}
            None if HEAD.starts_with(cut.trim_end()) => {}
            _ => bail!("--state: {shown} is no file of coreward matrix, which begins with {HEAD}"),
        }
        let mut finished = BTreeMap::new();
        for (number, line) in lines.enumerate() {
            let Line { key, cell } = serde_json::from_str(line)
                .map_err(|error| anyhow!("--state: {shown}:{}: it is damaged: {error}", number + 2))?;
            finished.insert(key, cell);
        }
        file.set_len(whole as u64).with_context(cannot)?;
        file.seek(SeekFrom::End(0)).with_context(cannot)?;
        if whole == 0 {
            writeln!(file, "{HEAD}").with_context(cannot)?;
        }
        Ok(State { file: Some(Mutex::new(file)), finished })
    }

    /// The cell with a key, if it is finished.
    pub(super) fn get(&self, key: &str) -> Option<&Cell> {
        self.finished.get(key)
    }

    /// Keeps a cell.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn keep(&self, key: &str, cell: &Cell) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut line = serde_json::to_string(&Line { key: key.to_owned(), cell: cell.clone() })?;
        line.push('\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).context("--state: cannot write to it")
    }
}

/// A checksum of this program: another build may simulate something else under the same version.
pub(super) fn program() -> Result<u32> {
    static CHECKSUM: OnceLock<u32> = OnceLock::new();
    if let Some(sum) = CHECKSUM.get() {
        return Ok(*sum);
    }
    let sum = crc32fast::hash(&fs::read("/proc/self/exe").context("cannot read this program")?);
    Ok(*CHECKSUM.get_or_init(|| sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(n: usize) -> Cell {
        Cell { workload: "w".into(), command: "c".into(), same_runs: n, figures: vec![], broken: vec![] }
    }

    #[test]
    fn what_was_kept_is_found_and_a_line_without_its_end_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let state = State::open(&path).unwrap();
        let error = State::open(&path).err().unwrap().to_string();
        assert!(error.ends_with("is in use by another coreward matrix"), "{error}");
        state.keep("a", &cell(1)).unwrap();
        state.keep("b", &cell(2)).unwrap();
        drop(state);
        let text = fs::read_to_string(&path).unwrap();
        // killed at any byte: what was finished by then is there, and the file can be continued
        for end in 0..=text.len() {
            fs::write(&path, &text[..end]).unwrap();
            let state = State::open(&path).unwrap();
            let lines = text[..end].matches('\n').count();
            assert_eq!((state.get("a").is_some(), state.get("b").is_some()), (lines > 1, lines > 2), "{end}");
            state.keep("c", &cell(3)).unwrap();
            drop(state);
            assert_eq!(State::open(&path).unwrap().get("c"), Some(&cell(3)), "{end}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        for text in ["my notes\n", "my notes", "{}\n"] {
            fs::write(&path, text).unwrap();
            let error = State::open(&path).err().unwrap().to_string();
            assert!(error.contains("is no file of coreward matrix"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, format!("{HEAD}\n{{\"key\": 1}}\n")).unwrap();
        let error = State::open(&path).err().unwrap().to_string();
        assert!(error.contains("notes:2: it is damaged: "), "{error}");
        assert!(State::open(dir.path()).is_err());
    }
}
