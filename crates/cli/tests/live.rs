//! `live`, `shadow`, `top`, `get` and `set`: what they say without coreward-live, and what they hand to it.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use common::directory;

/// Runs `coreward` where there is no coreward-live, except in `path`.
fn coreward(path: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_coreward")).args(args).env("PATH", path).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn help_needs_no_other_program() {
    for (command, about, option) in [
        ("live", "Schedule this machine with the policy, through sched_ext", "--partial"),
        (
            "shadow",
            "Watch where this kernel places tasks, and show where the policy would have placed",
            "--by",
        ),
        ("top", "Show what the running scheduler does", "--interval"),
        ("get", "Print the settings of the running scheduler", "[NAME]"),
        ("set", "Change settings of the running scheduler", "<NAME=VALUE>"),
    ] {
        let ran = coreward("/no/such/directory", &[command, "--help"]);
        let help = text(ran.stdout);
        assert!(ran.status.success() && help.contains(about) && help.contains(option), "{command}: {help}");
        assert_eq!(text(ran.stderr), "");
    }
}

#[test]
fn wrong_arguments_need_no_other_program() {
    for args in [
        &["live", "--stats", "0"][..],
        &["shadow", "--by", "colour"],
        &["top", "--interval", "0"],
        &["set"],
        &["set", "SIS_UTIL"],
        &["get", "a", "b"],
    ] {
        let ran = coreward("/no/such/directory", args);
        let refused = text(ran.stderr);
        assert_eq!((ran.status.code(), text(ran.stdout).as_str()), (Some(2), ""), "{args:?}: {refused}");
        assert!(refused.starts_with("coreward: ") && refused.lines().count() == 1, "{args:?}: {refused}");
        assert!(!refused.contains("coreward-live"), "{args:?}: {refused}");
    }
}

#[test]
fn the_missing_program_is_named_with_what_building_it_takes() {
    for args in [&["live"][..], &["shadow", "--duration", "1"], &["top"], &["get"], &["set", "SIS_UTIL=0"]] {
        let ran = coreward("/no/such/directory", args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}");
        assert_eq!(
            text(ran.stderr),
            "coreward: coreward-live is neither beside this program nor in PATH: build it with `make live`, which needs \
             clang 19 and libelf, and takes three to four minutes of one core because it compiles libbpf and 230 crates\n"
        );
    }
}

#[test]
fn arguments_are_handed_on_as_they_are() {
    let dir = directory("live");
    let program = dir.join("coreward-live");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    let args = ["shadow", "--sched-feat", "NO_SIS_UTIL", "--set=nr_migrate=8", "--duration", "0.5", "--json"];
    let ran = coreward(&path, &args);
    assert_eq!(ran.status.code(), Some(7), "its exit status");
    assert_eq!(text(ran.stdout), format!("{}\n", args.join(" ")));
}
