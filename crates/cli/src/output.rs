//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file that replaces its target only when it is finished: until then it is a
/// temporary file beside it, which goes away if it is dropped.
pub(crate) struct OutputFile {
    target: PathBuf,
    temporary: PathBuf,
    /// `None` once it is finished.
    file: Option<BufWriter<File>>,
}

impl OutputFile {
    /// Opens the temporary file, so that a target that cannot be written is found before any work is done.
    pub(crate) fn create(target: &Path) -> Result<OutputFile> {
        let cannot = || format!("cannot write {}", target.display());
        let name = target.file_name().with_context(|| format!("{}: it is not a file name", cannot()))?;
        if target.is_dir() {
            anyhow::bail!("{}: it is a directory", cannot());
        }
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        let file = File::create_new(&temporary).with_context(cannot)?;
        Ok(OutputFile { target: target.to_owned(), temporary, file: Some(BufWriter::new(file)) })
    }

    /// Puts the finished file in the target's place.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.put_in_place().with_context(|| format!("cannot write {}", self.target.display()))
    }

    fn put_in_place(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.as_mut() {
            file.flush()?;
        }
        fs::rename(&self.temporary, &self.target)?;
        self.file = None;
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // it is already failing: there is no better place to report this
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Prints a value as JSON, indented, with a newline at the end.
pub(crate) fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(writeln!(out, "{text}")?)
}
