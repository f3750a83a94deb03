//! Sysfs trees. The input has the form of the output of `grep -r . devices/system`: a line
//! `PATH:CONTENT` for each line of each file.
#![no_main]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use coreward_machine::Machine;
use libfuzzer_sys::fuzz_target;

/// Lines that are taken; they write a machine of some 16 CPUs.
const MAX_LINES: usize = 400;

fuzz_target!(|text: &str| {
    let tree = Tree::new();
    for (path, content) in text.lines().take(MAX_LINES).filter_map(|line| line.split_once(':')) {
        tree.append(path, content);
    }
    coreward_fuzz::check(Machine::load(&format!("sysfs:{}", tree.root.display())));
});

/// A directory that is gone when the input is done with.
struct Tree {
    root: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let shared_memory = Path::new("/dev/shm");
        let parent = if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() };
        let root = parent.join(format!("coreward-fuzz-{}", std::process::id()));
        // left over by a run that was killed
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("devices/system")).expect("the temporary directory can be written");
        Self { root }
    }

    /// Appends a line to a file. A path that leaves the tree or meets a file where it needs a
    /// directory is passed over.
    fn append(&self, path: &str, content: &str) {
        let plain =
            |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if path.len() > 200 || !path.split('/').all(plain) {
            return;
        }
        let path = self.root.join("devices/system").join(path);
        let directory = path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok());
        if let (true, Ok(mut file)) = (directory, OpenOptions::new().create(true).append(true).open(path)) {
            writeln!(file, "{content}").expect("the temporary directory can be written");
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
