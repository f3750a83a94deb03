//! Running the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run of the command left: exit status, standard output and standard error.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn coreward(args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_coreward")).args(args).output().expect("it starts");
    Ran {
        status: output.status.code().expect("it ends by itself"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The standard output of a command that has to succeed in silence.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn stdout(args: &[&str]) -> String {
    let ran = coreward(args);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{args:?}");
    ran.stdout
}

/// The standard output of a command that has to succeed, and may say on standard error what it assumed.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn stdout_noted(args: &[&str]) -> String {
    let ran = coreward(args);
    let notes = ran.stderr.lines().all(|line| line.starts_with("coreward: note: "));
    assert!(ran.status == 0 && notes, "{args:?}: {}", ran.stderr);
    ran.stdout
}

/// A new, empty directory for a test.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn directory(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a directory of our own");
    dir
}

/// A path as an argument.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a name of our own")
}

/// What is in a directory, in alphabetical order.
#[allow(dead_code, reason = "not every test file needs it")]
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}
