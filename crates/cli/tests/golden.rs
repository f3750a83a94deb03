//! What the listing commands print, and what the help says.
//!
//! `COREWARD_BLESS=1 cargo test -p coreward --test golden` rewrites the files in `golden/`, for a look at their diff.

mod common;

use std::path::Path;
use std::{env, fs};

use common::{coreward, stdout};
use coreward_policy::Profile;

/// Compares what a command prints with a file.
fn golden(name: &str, args: &[&str]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let text = stdout(args);
    if env::var_os("COREWARD_BLESS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&file).unwrap(), "{args:?}");
}

#[test]
fn machines() {
    golden("machines.txt", &["machines"]);
}

#[test]
fn features() {
    golden("features.txt", &["features"]);
    let old = stdout(&["features", "--profile", "linux-4.8"]);
    let util_est = old.lines().find(|line| line.starts_with("UTIL_EST ")).unwrap();
    assert_eq!(util_est.split_whitespace().collect::<Vec<_>>()[1..3], ["off", "on"], "4.8, and the default");
    let last_line = |profile| stdout(&["features", "--profile", profile]).lines().last().unwrap().to_owned();
    assert_eq!(
        last_line("linux-6.1"),
        "linux-6.1: placement, balance and the steps of the run queue agree with recordings of Linux 6.1.176"
    );
    let between = last_line("linux-6.5");
    assert!(
        between.starts_with("linux-6.5: not compared with recordings; it is linux-6.1 with NO_NI_RANDOM ")
    );
    assert!(between.ends_with(" LB_BUSIEST_SIBLING LB_UTIL_BOOST"), "{between}");
    for profile in Profile::ALL {
        let evidence = last_line(profile);
        let says = [" agree with recordings of Linux ", ": not compared with recordings; it is linux-"];
        assert!(
            evidence.starts_with(profile) && says.iter().any(|what| evidence.contains(what)),
            "{evidence}"
        );
    }
}

/// Seed 002's machine and request, as its kernel prints them.
#[test]
fn domains() {
    let args =
        ["domains", "e5-2680v3-2s", "--profile", "linux-6.8", "--relax-domain-level", "2", "--schedstat"];
    golden("domains.txt", &args);
}

#[test]
fn json_lists_what_the_text_lists() {
    let parse = |args: &[&str]| serde_json::from_str::<serde_json::Value>(&stdout(args)).unwrap();
    let names = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let first_words = |text: &str| -> Vec<String> {
        let list = text.lines().take_while(|line| !line.is_empty());
        list.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&parse(&["machines", "--json"])), first_words(&stdout(&["machines"])));
    assert_eq!(names(&parse(&["features", "--json"])), first_words(&stdout(&["features"]))[1..]);
    let domains = parse(&["domains", "e5-2680v3-2s", "--cpu", "12", "--json"]);
    assert_eq!(names(&domains["domains"]), ["SMT", "MC", "NUMA"]);
    // the local group comes first: node 1 has CPUs 12-23 and 36-47
    assert_eq!(domains["domains"][2]["groups"][0]["span"], "12-23,36-47");
    let topology = parse(&["topology", "e5-2680v3-2s", "--json"]);
    assert_eq!(topology["cpus"].as_array().unwrap().len(), 48);
}

#[test]
fn a_run_reports_what_was_run() {
    let args = [
        "run",
        "hackbench -g 1 -f 2 -l 1000 -T --pipe",
        "--machine",
        "1n2l2c1t",
        "--profile",
        "linux-6.5",
        "--sched-feat",
        "WAKEUP_BIAS_PREV",
        "--set",
        "spare_capacity_threshold=128",
        "--cost",
        "tick_ns=2000",
        "--scale",
        "0.25",
        "--seed",
        "7",
    ];
    let text = stdout(&args);
    let head = "machine   1n2l2c1t\n\
                workload  hackbench -g 1 -f 2 --threads --pipe -l 1000 -s 100\n\
                profile   linux-6.5\n\
                changed   WAKEUP_BIAS_PREV, spare_capacity_threshold=128, tick_ns=2000\n\
                seed      7\n\
                note      this is a shorter benchmark, with 0.25 of the workload's repetitions or of its time: \
                no estimate of the whole one\n\n\
                runtime_s ";
    assert!(text.starts_with(head), "{text}");

    let json: serde_json::Value = serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat())).unwrap();
    let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "machine",
        "workload",
        "profile",
        "features",
        "tunables",
        "costs",
        "task_group_depth",
        "seed",
        "scale",
        "metrics",
        "cpu_time_s",
        "checks",
        "reasons",
        "notes",
    ];
    assert_eq!(keys, expected);
    assert_eq!((&json["scale"], &json["seed"]), (&0.25.into(), &7.into()));
    assert_eq!(json["features"][0], "WAKEUP_BIAS_PREV");
    assert_eq!(json["tunables"]["spare_capacity_threshold"], 128);
    assert_eq!(json["costs"]["tick_ns"], 2000);
    let metric = |name: &str| json["metrics"][name].as_f64().unwrap();
    let cpu_time: f64 = json["cpu_time_s"].as_object().unwrap().values().filter_map(|s| s.as_f64()).sum();
    assert!((cpu_time - 4.0 * metric("runtime_s")).abs() < 1e-9, "four CPUs: {cpu_time}");
    // a quarter of 2 senders x 1000 loops x 2 receivers
    assert_eq!((metric("messages_per_s") * metric("runtime_s")).round(), 1000.0);
}

/// It ends with the last decision that was asked for, and before the limit.
#[test]
fn explain_runs_no_longer_than_it_has_to() {
    let long = ["explain", "hackbench -g 1 -l 1000000", "--machine", "2c", "--time-limit", "1"];
    let text = stdout(&[&long[..], &["--first", "3"]].concat());
    assert_eq!(text.lines().count(), 3, "{text}");
    let nobody = [&["explain", "stress-ng --cpu 1 --timeout 9", "--machine", "1c"][..], &["--first", "9999"]];
    let ran = coreward(&[&nobody.concat()[..], &["--time-limit", "1"]].concat());
    assert!(ran.status == 2 && ran.stderr.contains("did not end within 1 s"), "{}", ran.stderr);
}

#[test]
fn explanations_are_of_what_was_asked_for() {
    let args = ["explain", "hackbench -g 1 -f 2 -l 10 -T --pipe", "--machine", "1n2l2c1t", "--json"];
    let decisions = |options: &[&str]| {
        let json = stdout(&[&args[..], options].concat());
        serde_json::from_str::<Vec<serde_json::Value>>(&json).unwrap()
    };
    assert_eq!(decisions(&[]).len(), 10);
    assert_eq!(decisions(&["--first", "3"]), decisions(&[])[..3]);
    let of_task = decisions(&["--pid", "2"]);
    assert!(!of_task.is_empty() && of_task.iter().all(|d| d["pid"] == 2));
    assert_eq!(of_task[0]["event"], "fork");
    let cpu = &of_task[0]["cpu"];
    let at_cpu = decisions(&["--cpu", &cpu.to_string(), "--first", "1000"]);
    assert!(at_cpu.contains(&of_task[0]));
    assert!(at_cpu.iter().all(|d| ["this_cpu", "prev_cpu", "cpu"].iter().any(|field| d[field] == *cpu)));
    assert_ne!(at_cpu, decisions(&["--first", "1000"]));
    let text = stdout(&["explain", args[1], "--machine", args[3]]);
    assert_eq!(text.lines().count(), 10);
}

/// Every option says what happens without it.
#[test]
fn help_mentions_the_defaults() {
    for command in [
        "machines", "topology", "domains", "features", "run", "compare", "matrix", "fidelity", "explain",
        "parity", "record",
    ] {
        let help = stdout(&[command, "--help"]);
        let (_, options) = help.split_once("Options:\n").unwrap();
        // an option starts with two blanks and dashes; its text goes on in lines that start with more
        let mut texts: Vec<String> = Vec::new();
        for line in options.lines() {
            if ["--", "-h"].iter().any(|dash| line.trim_start().starts_with(dash)) {
                texts.push(String::new());
            }
            if let Some(text) = texts.last_mut() {
                text.push_str(line.trim());
                text.push(' ');
            }
        }
        let silent = ["--help", "--machine", "--with <"];
        for text in texts.iter().filter(|text| !silent.iter().any(|option| text.contains(option))) {
            assert!(text.contains("[default: "), "{command}: {text}");
        }
        assert!(texts.len() >= 2, "{command}");
    }
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_coreward"))
        .args(["topology", "epyc-9654-2s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // closed unread; the output is larger than a pipe
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(coreward(&["--version"]).stdout, format!("coreward {}\n", env!("CARGO_PKG_VERSION")));
}
