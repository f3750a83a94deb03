//! Text from files and arguments reaches a terminal without what could command it.

mod common;

use std::fs;

use common::{coreward, directory};

/// As it may stand in a string of TOML or JSON: ESC, OSC, CSI of 8 bits, and an override of the order of letters.
const NASTY: &str = r"x\u001b[31m\u001b]0;owned\u0007\u009b2J\u202eevil";

fn harmless(text: &str) -> bool {
    !text.chars().any(|c| c != '\n' && coreward_input::commands(c))
}

/// Whatever comes of it, nothing in it commands a terminal, and what would have is shown as `shown`.
fn shows(args: &[&str], shown: &str) -> String {
    let ran = coreward(args);
    assert!(harmless(&ran.stdout) && harmless(&ran.stderr), "{args:?}: {:?}{:?}", ran.stdout, ran.stderr);
    assert!((ran.stdout.clone() + &ran.stderr).contains(shown), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

fn experiment(name: &str, label: &str) -> String {
    format!(
        "name = \"{name}\"\ntitle = \"{NASTY}\"\ndescription = \"{NASTY}\"\nsource = \"{NASTY}\"\nfamily = \"{NASTY}\"\n\
         machine = \"1n1l2c1t\"\nworkload = \"hackbench -g 1 -f 2 -l 10\"\nruns = 1\nheadline = [\"runtime_s\"]\n\
         published = [{{ metric = \"{NASTY}\", delta_pct = 1, source = \"{NASTY}\", note = \"{NASTY}\" }}]\n\
         baseline.label = \"a\"\nvariant = [{{ label = \"{label}\" }}]\n"
    )
}

#[test]
fn reports() {
    let dir = directory("terminal_reports");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let file = path("e.toml");
    fs::write(&file, experiment("e", "b")).unwrap();
    let shown = "x\\u{1b}[31m\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}evil";
    shows(&["compare", &file], shown);
    let json = shows(&["compare", &file, "--json"], "x\\u001b[31m\\u001b]0;owned\\u0007\\u009b2J\\u202eevil");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["published"][0]["note"], "x\u{1b}[31m\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}evil");
    shows(&["fidelity", &file], "x \\[31m \\]0;owned  2J evil");
    for (option, output) in [("fidelity", ["-o", &path("e.md")]), ("compare", ["--html", &path("e.html")])] {
        assert_eq!(coreward(&[option, &file, output[0], output[1]]).status, 0);
        assert!(harmless(&fs::read_to_string(output[1]).unwrap()), "{option}");
    }
}

#[test]
fn names() {
    let dir = directory("terminal_names");
    let file = dir.join("e.toml").to_str().unwrap().to_owned();
    for (name, label, line, field, which) in [
        (NASTY, "b", 1, "name", "U+001B"),
        ("e", r"b\u202e", 12, "label", "U+202E"),
        ("a\\nb", "b", 1, "name", "U+000A"),
    ] {
        fs::write(&file, experiment(name, label)).unwrap();
        let ran = coreward(&["compare", &file]);
        let what = format!("{field}: {which} stands in it, allowed are characters that print");
        assert_eq!((ran.status, ran.stderr), (2, format!("coreward: {file}:{line}: {what}\n")));
    }
}

#[test]
fn machines() {
    let dir = directory("terminal_machines");
    let file = dir.join("m.toml").to_str().unwrap().to_owned();
    let text = format!("name = \"{NASTY}\"\ndescription = \"{NASTY}\"\nshape = \"1n1l2c1t\"\n");
    fs::write(&file, text).unwrap();
    shows(&["topology", &file], "x\\u{1b}[31m");
    shows(&["topology", &file, "--json"], "x\\u001b[31m");
    shows(&["domains", &file, "--cpu", "9"], "x\\u{1b}[31m");
    shows(&["run", "hackbench -g 1 -f 2 -l 10", "--machine", &file], "x\\u{1b}[31m");
    shows(&["run", "hackbench -g 1 -f 2 -l 10", "--machine", &file, "--json"], "x\\u001b[31m");
}

#[test]
fn arguments() {
    shows(&["topology", "\u{1b}]0;owned\u{7}"], "\\u{1b}]0;owned\\u{7}");
    shows(&["domains", "1n1l2c1t", "--cpu", "\u{9b}2J\u{202e}"], "\\u{9b}2J\\u{202e}");
    shows(&["run", "rt-app \u{1b}[31m", "--machine", "1n1l2c1t"], "rt-app: \\u{1b}[31m");
    let dir = directory("terminal_arguments\u{1b}[31m");
    let file = dir.join("w.json").to_str().unwrap().to_owned();
    let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/rt_app/phases.json");
    fs::copy(seed, &file).unwrap();
    shows(&["run", &format!("rt-app {file}"), "--machine", "1n1l2c1t"], "terminal_arguments\\u{1b}[31m");
}
