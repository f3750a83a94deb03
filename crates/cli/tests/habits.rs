//! Habits of a good command line: exit statuses, silence, terminals, completions, manual pages.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use common::{coreward, directory, names, stdout};

const WORKLOAD: &str = "hackbench -g 1 -f 2 -l 50 -T --pipe";
const WORSE: &str = "pipe_op_ns=90000";
const BETTER: &str = "pipe_op_ns=10";
const OTHER_SEEDS: &str = "seed=100";

/// The arguments of each command that compares a change.
fn comparing(test: &str, change: &str) -> Vec<Vec<String>> {
    let dir = directory(&format!("habits_{test}"));
    let sweep = dir.join("s.toml");
    let settings = format!(
        "name = \"s\"\nmachines = [\"2c\"]\nworkloads = [\"{WORKLOAD}\"]\nruns = 4\nmetrics = [\"runtime_s\"]\n\
         list = [\"{change}\"]\n"
    );
    fs::write(&sweep, settings).unwrap();
    let with = ["--with", change, "--machine", "2c", "--runs", "4"];
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    vec![
        words(&[&["compare", WORKLOAD, "--headline", "runtime_s"], &with[..]].concat()),
        words(&[&["matrix", "--workload", WORKLOAD], &with[..]].concat()),
        words(&["sweep", sweep.to_str().unwrap()]),
    ]
}

fn ran(arguments: &[String], options: &[&str]) -> common::Ran {
    let words: Vec<&str> = arguments.iter().map(String::as_str).chain(options.iter().copied()).collect();
    coreward(&words)
}

#[test]
fn the_status_is_1_if_something_is_worse_and_that_was_asked_for() {
    for arguments in comparing("worse", WORSE) {
        assert_eq!(ran(&arguments, &[]).status, 0, "{arguments:?}");
        let failed = ran(&arguments, &["--fail-if-worse"]);
        assert_eq!(failed.status, 1, "{arguments:?}");
        assert!(failed.stderr.contains(" worse") && !failed.stdout.is_empty(), "{}", failed.stderr);
        assert_eq!(failed.stderr.lines().count(), 1, "{}", failed.stderr);
    }
    for arguments in comparing("better", BETTER) {
        assert_eq!(ran(&arguments, &["--fail-if-worse"]).status, 0, "{arguments:?}");
    }
    // a sweep varies no seeds
    for arguments in &comparing("chance", OTHER_SEEDS)[..2] {
        assert_eq!(ran(arguments, &["--fail-if-worse"]).status, 0, "{arguments:?}");
    }
    for arguments in comparing("refused", "nonsense=1") {
        assert_eq!(ran(&arguments, &["--fail-if-worse"]).status, 2, "{arguments:?}");
    }
}

#[test]
fn the_help_says_what_the_status_means() {
    for command in ["compare", "matrix", "sweep"] {
        let help = stdout(&[command, "--help"]);
        let (_, statuses) = help.split_once("\nExit status:\n").unwrap();
        for status in ["  0  ", "  1  ", "  2  "] {
            assert!(statuses.contains(status), "{command}: {statuses}");
        }
    }
}

#[test]
fn who_wants_silence_has_it() {
    let dir = directory("habits_silence");
    let file = dir.join("r.json").to_str().unwrap().to_owned();
    let machine = concat!("hwloc:", env!("CARGO_MANIFEST_DIR"), "/../machine/tests/data/two-nodes.xml");
    let run = ["run", WORKLOAD, "--machine", machine].map(str::to_owned).to_vec();
    assert!(ran(&run, &[]).stderr.starts_with("coreward: note: "), "there is something to be silent about");
    for arguments in comparing("quiet", WORSE).into_iter().chain([run]) {
        let loud = ran(&arguments, &[]);
        assert!(!loud.stdout.is_empty());
        for option in ["-q", "--quiet"] {
            let quiet = ran(&arguments, &[option, "--output", &file.replace("json", "csv")]);
            let (status, printed, said) = (quiet.status, quiet.stdout.as_str(), quiet.stderr.as_str());
            assert_eq!((status, printed, said), (0, "", ""), "{arguments:?}");
        }
        // what was asked for is printed
        assert!(ran(&arguments, &["--quiet", "--json"]).stdout.starts_with('{'));
    }
    assert_eq!(coreward(&["run", "nonsense", "--machine", "2c", "--quiet"]).stderr.lines().count(), 1);
}

/// What a line of shell prints on a terminal.
fn on_a_terminal(line: &str) -> String {
    let coreward = env!("CARGO_BIN_EXE_coreward");
    let line = line.replace("coreward", coreward);
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    String::from_utf8(command.env_remove("NO_COLOR").output().expect("script is there").stdout).unwrap()
}

#[test]
fn a_terminal_has_colours_unless_they_are_not_wanted() {
    assert!(on_a_terminal("coreward run --help").contains('\u{1b}'), "the control");
    assert!(!on_a_terminal("NO_COLOR=1 coreward run --help").contains('\u{1b}'));
}

#[test]
fn help_is_as_wide_as_the_terminal() {
    let longest = |columns: u32| {
        let text = on_a_terminal(&format!("stty rows 24 cols {columns}; NO_COLOR=1 coreward compare --help"));
        let (_, options) = text.split_once("Options:").unwrap();
        options.lines().map(|line| line.trim_end().chars().count()).max().unwrap()
    };
    // a word that is too long stays whole
    assert!(longest(60) <= 70 && (81..=100).contains(&longest(100)), "{} and {}", longest(60), longest(100));
}

/// All commands and their subcommands, as the help lists them.
fn commands() -> Vec<String> {
    let help = stdout(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let list = list.lines().take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&["completions", shell]);
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
        assert!(script.contains("fail-if-worse") && script.contains("save"), "{shell}");
    }
    let script = directory("habits_completions").join("coreward.bash");
    fs::write(&script, stdout(&["completions", "bash"])).unwrap();
    let complete = format!(
        ". {}; COMP_WORDS=(coreward comp); COMP_CWORD=1; _coreward coreward comp coreward; echo \"${{COMPREPLY[*]}}\"",
        script.display()
    );
    let ran = Command::new("bash").args(["-c", &complete]).output().unwrap();
    let found: BTreeSet<_> =
        String::from_utf8(ran.stdout).unwrap().split_whitespace().map(str::to_owned).collect();
    assert_eq!(found, ["compare", "completions"].map(str::to_owned).into());
    assert_eq!(coreward(&["completions", "nonsense"]).status, 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = directory("habits_manual");
    let written = || -> Vec<(String, String)> {
        stdout(&["manual", dir.to_str().unwrap()]);
        names(&dir)
            .into_iter()
            .map(|name| (name.clone(), fs::read_to_string(dir.join(name)).unwrap()))
            .collect()
    };
    let pages = written();
    assert_eq!(pages, written(), "the same each time");
    let page = |name: &str| {
        let found = pages.iter().find(|(page, _)| *page == format!("{name}.1"));
        &found.unwrap_or_else(|| panic!("no page for {name}")).1
    };
    let listed = page("coreward");
    for command in commands() {
        assert!(listed.contains(&format!("coreward\\-{command}(1)")), "{command}");
        page(&format!("coreward-{command}"));
    }
    assert!(page("coreward-compare").contains("Exit status:"));
    assert!(page("coreward-machine-save").contains("\\-\\-calibrated"));
    let nowhere = coreward(&["manual", "/nowhere"]);
    assert_eq!(nowhere.status, 2);
    assert!(nowhere.stderr.starts_with("coreward: cannot write to /nowhere: "), "{}", nowhere.stderr);
}
