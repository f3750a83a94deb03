//! Temporary names, which are removed when the process ends, even if a signal ends it. A program that calls coreward as a
//! function handles its signals itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::{fs, io, thread};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::caller;

/// All temporary names of this process.
static NAMES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn names() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of a file until it is renamed; the file is removed if that never happens.
pub(super) struct TemporaryName(Option<PathBuf>);

impl TemporaryName {
    /// Creates a file beside `path` under a new name.
    pub(super) fn make<T>(
        path: &Path,
        make: impl FnMut(&Path) -> io::Result<T>,
    ) -> io::Result<(TemporaryName, T)> {
        watch_signals();
        let directory = path.parent().unwrap_or(path);
        // the set is locked meanwhile, so a signal finds the name in it if the file exists
        let mut names = names();
        // not the file's own name and more, which may be too long
        let made = tempfile::Builder::new().prefix(".coreward-").make_in(directory, make)?;
        let (made, name) = made.into_parts();
        let name = name.keep()?;
        names.insert(name.clone());
        Ok((TemporaryName(Some(name)), made))
    }

    /// Gives the file its final name, replacing any file that has it.
    pub(super) fn rename(mut self, path: &Path) -> io::Result<()> {
        self.end(|name| fs::rename(name, path))
    }

    fn end(&mut self, end: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let Some(name) = &self.0 else { return Ok(()) };
        let mut names = names();
        end(name)?;
        names.remove(name);
        self.0 = None;
        Ok(())
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        // it is already failing: there is no better place to report this
        let _ = self.end(|name| fs::remove_file(name));
    }
}

/// Starts a thread that waits for the signals that would end the process, removes the files, and then ends it.
fn watch_signals() {
    if caller::is_program() {
        return; // its signals are its own
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ignored = ignored_signals();
        let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
        let signals = signals.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        // without it a signal leaves a file behind, which is no reason not to write it
        let Ok(mut signals) = Signals::new(signals) else { return };
        thread::spawn(move || {
            for signal in signals.forever() {
                // never unlocked again, so that no further file is created
                let names = names();
                for name in &*names {
                    let _ = fs::remove_file(name);
                }
                let _ = emulate_default_handler(signal);
            }
        });
    });
}

/// The set of signals that this process was started to ignore (as by nohup), 1 being bit 0.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}
