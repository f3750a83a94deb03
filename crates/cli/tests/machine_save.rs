//! `coreward machine save`: the file describes this machine, and says nothing of whose it is.

mod common;

use std::fs;

use common::{coreward, directory, stdout, stdout_noted};

#[test]
fn what_is_saved_is_this_machine() {
    let dir = directory("machine_save");
    let file = dir.join("here.toml");
    let path = file.to_str().unwrap();
    let said = stdout_noted(&["machine", "save", path]);
    assert!(said.contains("here.toml is written: ") && said.contains("default costs"), "{said}");
    let text = fs::read_to_string(&file).unwrap();
    let kernel = text.lines().find(|line| line.starts_with("kernel = ")).unwrap();
    assert!(
        kernel
            .trim_start_matches("kernel = ")
            .trim_matches('"')
            .bytes()
            .all(|b| b == b'.' || b.is_ascii_digit())
    );
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(!text.contains(&format!("\"{}\"", host.trim())), "{text}");

    // it is what sysfs says, but for the names
    let of_sysfs = coreward(&["topology", "sysfs", "--toml"]).stdout;
    let named = |text: &str| {
        let kept = |line: &&str| !["name = ", "kernel = "].iter().any(|key| line.starts_with(key));
        text.lines().filter(kept).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(named(&text), named(&of_sysfs));
    stdout(&["topology", path]);

    // costs of a file of this machine are taken, those of another machine are not
    let measured = dir.join("measured.toml");
    fs::write(&measured, text.replace("tick_ns = 1000", "tick_ns = 1234")).unwrap();
    let said = stdout_noted(&["machine", "save", path, "--calibrated", measured.to_str().unwrap()]);
    assert!(said.contains("measured costs"), "{said}");
    assert!(fs::read_to_string(&file).unwrap().contains("tick_ns = 1234"));
    let other = coreward(&["machine", "save", path, "--calibrated", "64n16c"]);
    assert_eq!(other.status, 2);
    assert!(other.stderr.contains("--calibrated: 64n16c: it is of another machine"), "{}", other.stderr);
    assert!(fs::read_to_string(&file).unwrap().contains("tick_ns = 1234"), "what was there is kept");
}

#[test]
fn only_names_that_a_machine_may_have_are_taken() {
    for args in [
        &["machine", "save", "here.json"][..],
        &["machine", "save", "here"],
        &["calibrate", "--out", "here.json"],
    ] {
        let ran = coreward(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ran.stderr.ends_with(": allowed are names that end with .toml\n"), "{}", ran.stderr);
    }
}
