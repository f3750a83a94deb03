//! Every knob of the command line reaches the simulation.

mod common;

use std::process::Command;

use common::stdout;
use coreward_machine::Costs;
use coreward_policy::{FEATURES, Profile, TUNABLES};
use serde_json::Value;

const WORKLOAD: &str = "hackbench -g 2 -f 4 -l 40 -T --pipe";

/// `coreward run` with these options, as JSON.
fn run(options: &[&str]) -> Value {
    let base = ["run", WORKLOAD, "--json"];
    let machine = if options.contains(&"--machine") { &[][..] } else { &["--machine", "2l2c2t"] };
    let mut command = Command::new(env!("CARGO_BIN_EXE_coreward"));
    let output = command.args(base).args(machine).args(options).output().unwrap();
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn metric(report: &Value, name: &str) -> f64 {
    report["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name}"))
}

/// What the run was, as far as it shows; its settings left out.
fn results(report: &Value) -> (&Value, &Value) {
    (&report["metrics"], &report["reasons"])
}

#[test]
fn every_feature_can_be_switched_either_way() {
    let names = |report: &Value| -> Vec<String> {
        report["features"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<String> = FEATURES.iter().flat_map(|f| ["--sched-feat".into(), f.name.into()]).collect();
    let none: Vec<String> =
        FEATURES.iter().flat_map(|f| ["--sched-feat".into(), format!("NO_{}", f.name)]).collect();
    let of = |options: &[String]| run(&options.iter().map(String::as_str).collect::<Vec<_>>());
    let on = of(&all);
    assert_eq!(names(&on), FEATURES.iter().map(|f| f.name.to_owned()).collect::<Vec<_>>());
    let off = of(&none);
    assert!(names(&off).is_empty());
    assert_ne!(results(&on), results(&off));
    // the last word counts
    let again = of(&[all, none].concat());
    assert_eq!(results(&again), results(&off));
}

#[test]
fn the_default_profile_is_that_of_the_machines_kernel() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let (running, nearest) = Profile::of_kernel(release.trim());
    let here = run(&["--machine", "sysfs"]);
    assert_eq!(here["profile"], running.name());
    let says =
        here["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains(release.trim()));
    assert_eq!(says, nearest, "{}", here["notes"]);
    assert_eq!(run(&["--machine", "2c"])["profile"], Profile::DEFAULT.name());
    let named = run(&["--machine", "sysfs", "--profile", "6.1"]);
    assert_eq!(named["profile"], "linux-6.1");
    assert!(!named["notes"].to_string().contains(release.trim()), "{}", named["notes"]);
}

/// A machine file that names its kernel, as `calibrate` writes it: the profile and the model of preemption follow.
#[test]
fn a_machine_file_knows_its_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = dir.path().join("own.toml");
        std::fs::write(&path, format!("shape = \"1n2l2c1t\"\n{text}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let of = |text: &str| run(&["--machine", &file(text)]);
    let is_on = |report: &Value, name: &str| report["features"].as_array().unwrap().iter().any(|f| f == name);

    let lazy = of("kernel = \"6.18.44+deb13-amd64\"");
    assert_eq!((&lazy["profile"], is_on(&lazy, "PREEMPT_LAZY")), (&"linux-6.18.44".into(), true));
    assert_eq!(lazy["notes"], Value::Array(Vec::new()));
    let none = of("kernel = \"6.18.44+deb13-amd64\"\npreemption = \"none\"");
    assert_eq!((&none["profile"], is_on(&none, "PREEMPT_LAZY")), (&"linux-6.18.44".into(), false));
    let earlier = of("kernel = \"6.18.15+deb13-amd64\"");
    assert_eq!((&earlier["profile"], &earlier["notes"]), (&"linux-6.18".into(), &Value::Array(Vec::new())));
    let note = "the machine's kernel runs with preempt=none: NO_PREEMPT_LAZY, unlike the profile";
    assert_eq!(none["notes"], serde_json::json!([note]));
    let full = of("kernel = \"6.12.1\"\npreemption = \"full\"");
    assert_eq!((&full["profile"], is_on(&full, "PREEMPT_FULL")), (&"linux-6.12".into(), true));
    let voluntary = of("kernel = \"6.12.1\"\npreemption = \"voluntary\"");
    assert_eq!(voluntary["notes"], Value::Array(Vec::new()));

    let listed = of("kernel = \"6.18.44\"\nfeatures = \"NO_SIS_UTIL TTWU_QUEUE NO_SUCH_FEATURE\"");
    assert!(!is_on(&listed, "SIS_UTIL") && is_on(&lazy, "SIS_UTIL"));
    let other = "the machine's kernel runs with NO_SIS_UTIL, unlike the profile";
    assert_eq!(listed["notes"], serde_json::json!([other]));

    // a named profile is that of no machine, and options go before both
    let machine = file("kernel = \"6.18.44\"\npreemption = \"none\"");
    let newer = run(&["--machine", &machine, "--profile", "7.3"]);
    let left_out = "--profile leaves out what the machine's kernel runs with: NO_PREEMPT_LAZY";
    assert_eq!((is_on(&newer, "PREEMPT_LAZY"), &newer["notes"]), (true, &serde_json::json!([left_out])));
    let older = run(&["--machine", &machine, "--profile", "6.6"]);
    assert_eq!(older["notes"], serde_json::json!([]), "6.6 has no lazy preemption");
    assert!(is_on(&run(&["--machine", &machine, "--sched-feat", "PREEMPT_LAZY"]), "PREEMPT_LAZY"));
    let same = run(&["--machine", &machine, "--profile", "6.18.44"]);
    assert_eq!((is_on(&same, "PREEMPT_LAZY"), &same["notes"]), (true, &serde_json::json!([left_out])));

    // the command that a comparison names makes the same runs
    let compare = |command: &[&str]| -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_coreward")).args(command).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let options = ["--with", "NO_SIS_UTIL", "--runs", "2", "--json"];
    let report = compare(&[&["compare", WORKLOAD, "--machine", &machine][..], &options].concat());
    assert_eq!(report["notes"], serde_json::json!([note]));
    let named = ["--profile", "linux-6.18.44", "--baseline-with", "NO_PREEMPT_LAZY"];
    let command = report["recipe"]["command"].as_str().unwrap();
    assert!(command.contains(&named.join(" ")), "{command}");
    let again = compare(&[&["compare", WORKLOAD, "--machine", &machine][..], &named, &options].concat());
    assert_eq!(again["variants"][0]["values"], report["variants"][0]["values"]);
    assert_eq!(again["notes"], serde_json::json!([]), "nothing is left out");
}

#[test]
fn every_tunable_can_be_set() {
    for t in TUNABLES.iter().filter(|t| t.name != "relax_domain_level") {
        for value in [t.min, t.max] {
            let report = run(&["--set", &format!("{}={value}", t.name)]);
            assert_eq!(report["tunables"][t.name], value, "{}", t.name);
        }
    }
    assert_ne!(results(&run(&["--set", "migration_cost_ns=0"])), results(&run(&[])));
}

#[test]
fn every_cost_can_be_set() {
    let all: Vec<String> =
        Costs::FIELDS.iter().flat_map(|c| ["--cost".into(), format!("{}={}", c.name, c.min)]).collect();
    let free = run(&all.iter().map(String::as_str).collect::<Vec<_>>());
    for c in Costs::FIELDS {
        assert_eq!(free["costs"][c.name], c.min, "{}", c.name);
    }
    assert!(metric(&free, "runtime_s") < metric(&run(&[]), "runtime_s") / 2.0);
}

#[test]
fn a_relaxed_level_is_not_searched() {
    let attempts = |options: &[&str]| metric(&run(options), "newidle_time_s");
    let usual = attempts(&[]);
    assert!(attempts(&["--relax-domain-level", "0"]) < usual);
    assert_eq!(attempts(&["--set", "relax_domain_level=0"]), attempts(&["--relax-domain-level", "0"]));
    assert_eq!(attempts(&["--relax-domain-level", "-1"]), usual);
}

#[test]
fn every_profile_runs_and_some_differ() {
    let all: Vec<Value> = Profile::ALL.iter().map(|name| run(&["--profile", name])).collect();
    for (name, report) in Profile::ALL.iter().zip(&all) {
        assert_eq!(report["profile"], *name);
    }
    // from 6.5 to 6.8 the task group is told less often, and 6.12 delays dequeues
    let of = |name| results(&all[Profile::ALL.iter().position(|known| *known == name).unwrap()]);
    assert_ne!(of("linux-6.5"), of("linux-6.8"));
    assert_ne!(of("linux-6.8"), of("linux-6.12"));
}

#[test]
fn seed_group_and_scale_reach_the_run() {
    let usual = run(&[]);
    assert_eq!(results(&run(&["--seed", "1"])), results(&usual));
    assert_ne!(results(&run(&["--seed", "2"])), results(&usual));
    assert!(metric(&usual, "tg_load_avg_wait_s") > 0.0);
    assert_eq!(metric(&run(&["--task-group-depth", "0"]), "tg_load_avg_wait_s"), 0.0);
    let half = run(&["--scale", "0.5"]);
    let messages = |r: &Value| (metric(r, "messages_per_s") * metric(r, "runtime_s")).round();
    assert_eq!(messages(&usual), 1280.0);
    assert_eq!(messages(&half), 640.0);
}

#[test]
fn why_explains_the_whole_difference() {
    let compare = |options: &[&str]| {
        let args = ["compare", "hackbench -g 1 -f 2 -l 100 -T --pipe", "--machine", "2l4c2t", "--runs", "2"];
        stdout(&[&args[..], &["--with", "NO_TTWU_QUEUE"], options].concat())
    };
    let explanation = |text: &str| text.find("why NO_TTWU_QUEUE differs").map(|at| text[at..].to_owned());
    assert_eq!(explanation(&compare(&[])), None);
    let text = explanation(&compare(&["--why"])).unwrap();
    let share = |line: &str| line.split_whitespace().nth(3)?.strip_suffix('%')?.parse::<f64>().ok();
    let shares: Vec<f64> = text.lines().filter_map(share).collect();
    let (all, parts) = shares.split_last().unwrap();
    assert_eq!(*all, 100.0, "{text}");
    assert!(parts.len() > 5 && (parts.iter().sum::<f64>() - 100.0).abs() < 1.0, "{text}");
}
