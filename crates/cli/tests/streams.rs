//! Standard output whose reader leaves, and standard error that is full: neither changes what a command does.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

/// A comparison that gets worse, with its options.
const WORSE: [&str; 8] = [
    "compare",
    "hackbench -g 2 -f 4 --threads --pipe -l 100",
    "--machine",
    "2n2l4c2t",
    "--with",
    "WAKEUP_BIAS_PREV",
    "--runs",
    "5",
];

fn coreward(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coreward"));
    command.args(args);
    command
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let writer = reader.stdin.take().unwrap();
    reader.wait().unwrap();
    writer.into()
}

#[test]
fn a_reader_that_leaves_changes_neither_files_nor_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.json");
    let json = format!("--json={}", file.display());
    let args = [&WORSE[..], &["--fail-if-worse", "--all", &json]].concat();
    let status = coreward(&args).stdout(closed()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1), "it is worse");
    assert!(file.exists());
}

#[test]
fn an_output_whose_reader_leaves_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut reader = Command::new("head");
    let reader = reader.args(["-c", "1"]).arg(&fifo).stdout(Stdio::null()).spawn().unwrap();
    // more than fits into a pipe
    let args = ["run", "hackbench -g 4 -f 10 -l 200 --pipe", "--machine", "8c", "--ftrace"];
    let output = coreward(&args).arg(&fifo).output().unwrap();
    reader.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("fifo") && said.contains("Broken pipe"), "{said}");
}

#[test]
fn full_standard_error_ends_no_command() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    assert!(full().write_all(b"x").is_err());
    // a note of the workload, and what is wrong
    let noted =
        coreward(&["run", "cyclictest -t 1 -l 10", "--machine", "2c"]).stderr(full()).output().unwrap();
    assert!(noted.status.success() && !noted.stdout.is_empty());
    let refused = coreward(&["topology", "nix"]).stderr(full()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    for args in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let ran = coreward(args).stdout(full()).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        let start = "coreward: cannot write to standard output: No space left";
        assert!(ran.status.code() == Some(2) && said.starts_with(start), "{args:?}: {said}");
    }
}

/// Phases that do nothing, over and over.
#[test]
fn a_loop_of_nothing_takes_time() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("idle.json");
    let text = r#"{"tasks": {"a": {"phases": {"p": {"loop": 0, "run": 1}}}}, "global": {"duration": 1}}"#;
    std::fs::write(&file, text).unwrap();
    let workload = format!("rt-app {}", file.display());
    let output = coreward(&["run", &workload, "--machine", "1c"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8(output.stdout).unwrap().contains("runtime_s                            1.0"));
}
