//! `coreward validate` with benchmarks of the tests' own, which print what they are told.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::{Ran, coreward, stdout_noted};
use serde_json::Value;

const WORKLOAD: &str = "hackbench -g 1 -f 4 -l 2000 -T -p";

/// Costs that are measured around each round unless they are given.
const TRANSFERS: [&str; 8] = [
    "--cost",
    "transfer_smt_ns=8",
    "--cost",
    "transfer_llc_ns=45",
    "--cost",
    "transfer_package_ns=100",
    "--cost",
    "transfer_remote_ns=130",
];

/// Runs validate where hackbench is a script, the kernel one of 6.18, and a line takes as long as it is told.
fn validate(script: &str, args: &[&str]) -> Ran {
    validate_here(script, &[&["--profile", "linux-6.18"], &TRANSFERS[..], args].concat())
}

/// The same with the running kernel.
fn validate_here(script: &str, args: &[&str]) -> Ran {
    let bin = tempfile::tempdir().unwrap();
    let hackbench = bin.path().join("hackbench");
    fs::write(&hackbench, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&hackbench, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let output = Command::new(env!("CARGO_BIN_EXE_coreward"))
        .env("PATH", path)
        .args(["validate", WORKLOAD, "--rounds", "1", "--task-group-depth", "1"])
        .args(args)
        .output()
        .unwrap();
    Ran {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn simulated_s() -> f64 {
    let run = [
        "run",
        WORKLOAD,
        "--machine",
        "sysfs",
        "--profile",
        "linux-6.18",
        "--task-group-depth",
        "1",
        "--json",
    ];
    let json: Value = serde_json::from_str(&stdout_noted(&[&run[..], &TRANSFERS].concat())).unwrap();
    json["metrics"]["runtime_s"].as_f64().unwrap()
}

fn time_of(ran: &Ran) -> Value {
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    json["scores"].as_array().unwrap().iter().find(|score| score["name"] == "time").unwrap().clone()
}

#[test]
fn a_benchmark_that_takes_as_long_as_simulated_is_met_and_one_that_takes_twice_as_long_is_not() {
    let simulated = simulated_s();
    let met = validate(&format!("echo Time: {simulated}"), &["--json"]);
    assert_eq!(time_of(&met)["met"], true, "{}", met.stdout);
    assert!(time_of(&met)["median_pct"].as_f64().unwrap() < 1.0);
    let unmet = validate(&format!("echo Time: {}", 2.0 * simulated), &["--json"]);
    assert_eq!(time_of(&unmet)["met"], false);
    assert_eq!(time_of(&unmet)["worst"], WORKLOAD);
    assert_eq!(unmet.status, 1);
    assert!(unmet.stderr.contains("\ncoreward: further off than allowed: time"), "{}", unmet.stderr);
}

/// The negative controls: what is wrong in the description of the machine or of the kernel shows.
#[test]
fn a_cost_that_is_doubled_and_a_feature_that_is_off_are_seen() {
    let script = format!("echo Time: {}", simulated_s());
    let cost = validate(&script, &["--json", "--cost", "syscall_ns=400"]);
    assert_eq!(time_of(&cost)["met"], false, "{}", cost.stdout);
    let figures = |ran: &Ran| {
        let json: Value = serde_json::from_str(&ran.stdout).unwrap();
        json["benchmarks"][0]["simulated"].clone()
    };
    let without = validate(&script, &["--json", "--sched-feat", "NO_WAKEUP_PREEMPTION"]);
    assert_ne!(figures(&without), figures(&validate(&script, &["--json"])));
}

#[test]
fn the_text_has_both_figures_and_says_what_is_missing() {
    let ran = validate("echo Time: 12.34", &[]);
    assert!(ran.stdout.contains("12.34 / "), "{}", ran.stdout);
    assert!(ran.stdout.contains("not met  time: off by"), "{}", ran.stdout);
    let missing = coreward(&["validate", "tbench 1", "--rounds", "1"]);
    assert_eq!(missing.status, 2);
    let says = "coreward: there is nothing to compare: tbench is not installed\n";
    assert!(missing.stderr.ends_with(says), "{}", missing.stderr);
}

/// What was measured between the rounds is what is simulated, and what the file says.
#[test]
fn the_machine_is_calibrated_between_the_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("here.toml");
    let file = file.to_str().unwrap();
    let script = "echo Time: 0.01";
    let ran = validate_here(script, &["--calibrate", file, "--json"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["machine"], "here", "{}", ran.stderr);
    let real = directory.path().join("real.json");
    fs::write(&real, &ran.stdout).unwrap();
    let again = coreward(&["validate", "--real", real.to_str().unwrap(), "--machine", file, "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(json["benchmarks"][0]["simulated"]["time_s"], again["benchmarks"][0]["simulated"]["time_s"]);
    let both = validate(script, &["--calibrate", file, "--machine", "sysfs"]);
    assert_eq!(both.status, 2);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

#[test]
fn a_machine_that_is_calibrated_keeps_the_kernel_that_runs_here() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("here.toml");
    let kernel = |args: &[&str]| {
        let json = validate_here("echo Time: 0.01", &[&["--json"], args].concat()).stdout;
        let json: Value = serde_json::from_str(&json).unwrap();
        [json["profile"].clone(), json["changed"].clone()]
    };
    assert_eq!(kernel(&["--calibrate", file.to_str().unwrap()]), kernel(&[]));
}

#[test]
fn a_machine_that_is_not_this_one_and_a_benchmark_that_fails_are_refused() {
    let ran = coreward(&["validate", "--machine", "epyc-9654-2s"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("coreward: --machine: epyc-9654-2s has 384 CPUs, this machine has "));
    let ran = validate("echo out of memory; exit 1", &[]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.ends_with("failed: out of memory\n"), "{}", ran.stderr);
}

/// What a virtual machine with two CPUs of a Sapphire Rapids did, and what things cost there (docs/results/validation.md).
const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/measured.json");
const MACHINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/measured.toml");
/// A benchmark of it, of which the simulation meets some figures.
const SOCKETS: &str = "hackbench -g 1 -f 20 -l 2000 -T";

/// Holds the simulation of a machine against what was measured of a benchmark. Each scored figure, and if it is met.
fn against_measured(benchmark: &str, machine: &str, options: &[&str]) -> (Vec<(String, bool)>, String) {
    let args = ["validate", benchmark, "--real", MEASURED, "--machine", machine, "--json"];
    let ran = coreward(&[&args[..], options].concat());
    let json: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let score = |score: &Value| (score["name"].as_str().unwrap().to_owned(), score["met"] == true);
    let scores: Vec<_> = json["scores"].as_array().unwrap().iter().map(score).collect();
    assert_eq!(ran.status, i32::from(scores.iter().any(|(_, met)| !met)));
    (scores, ran.stderr)
}

fn is_met(scores: &[(String, bool)], figure: &str) -> bool {
    scores.iter().find(|(name, _)| name == figure).unwrap_or_else(|| panic!("no {figure}: {scores:?}")).1
}

#[test]
fn a_cost_that_is_doubled_by_hand_fails_against_what_was_measured_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let doubled = dir.path().join("doubled.toml");
    let text = fs::read_to_string(MACHINE).unwrap();
    assert_eq!(text.matches("socket_op_ns = { value = 329,").count(), 1);
    fs::write(&doubled, text.replace("socket_op_ns = { value = 329,", "socket_op_ns = { value = 658,"))
        .unwrap();
    let (as_measured, _) = against_measured(SOCKETS, MACHINE, &[]);
    assert!(is_met(&as_measured, "CPU time an operation") && is_met(&as_measured, "time"), "{as_measured:?}");
    let (wrong, said) = against_measured(SOCKETS, doubled.to_str().unwrap(), &[]);
    assert!(!is_met(&wrong, "CPU time an operation"), "{wrong:?}");
    assert!(said.contains("CPU time an operation (") && said.contains(&format!("of `{SOCKETS}`")), "{said}");
}

#[test]
fn a_feature_that_the_kernel_has_and_the_simulation_has_not_fails_and_says_where() {
    let (as_measured, _) = against_measured(SOCKETS, MACHINE, &[]);
    assert!(is_met(&as_measured, "preemptions"), "{as_measured:?}");
    let (without, said) = against_measured(SOCKETS, MACHINE, &["--sched-feat", "NO_WAKEUP_PREEMPTION"]);
    assert!(!is_met(&without, "preemptions"), "{without:?}");
    assert!(said.contains("preemptions (") && said.contains(&format!("of `{SOCKETS}`")), "{said}");
}

/// The same as text, as JSON, as a page, and from a file.
#[test]
fn every_form_of_the_report_has_the_same_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let script = format!("echo Time: {}", 2.0 * simulated_s());
    let saved = validate_here(&script, &["--profile", "linux-6.18", "--save-real", &path("real.json")]);
    assert_eq!((saved.status, saved.stdout.as_str()), (0, ""), "{}", saved.stderr);

    let again = |options: &[&str]| {
        let stored =
            ["validate", "--real", &path("real.json"), "--machine", "sysfs", "--profile", "linux-6.18"];
        coreward(&[&stored, &TRANSFERS[..], options].concat())
    };
    let json = format!("--json={}", path("out.json"));
    let text = again(&["--html", &path("page.html"), &json]);
    assert_eq!(text.status, 1, "{}", text.stderr);
    assert!(text.stdout.contains("profile   linux-6.18, for Linux "), "{}", text.stdout);
    let json: Value = serde_json::from_str(&fs::read_to_string(path("out.json")).unwrap()).unwrap();
    let time = &json["benchmarks"][0]["compared"][0];
    assert_eq!((&time["figure"], &time["within"]), (&"time".into(), &false.into()));
    assert!((time["ratio"].as_f64().unwrap() - 0.5).abs() < 1e-3, "{time}");
    let page = fs::read_to_string(path("page.html")).unwrap();
    assert!(page.contains("<td class=\"bad\">0.50 !</td>"), "{page}");
    assert!(page.contains(WORKLOAD) && page.ends_with("</html>\n") && !page.contains("<script"));

    // what --json writes can be read as well
    let stored = ["validate", "--real", &path("out.json"), "--machine", "sysfs", "--profile", "linux-6.18"];
    let from_json = coreward(&[&stored, &TRANSFERS[..]].concat());
    assert_eq!(from_json.stdout, text.stdout);
    let other = again(&["hackbench -g 9"]);
    assert_eq!(
        (other.status, other.stderr.as_str()),
        (2, "coreward: --real: no file has the benchmark `hackbench -g 9`\n")
    );
}

#[test]
fn rounds_are_spread_and_a_damaged_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("real.json");
    let name = file.to_str().unwrap();
    // each run takes longer than the one before
    let script = format!("n=$(cat {name}.n || echo 1); echo $((n + 1)) > {name}.n; echo Time: $n");
    let saved = validate_here(&script, &["--profile", "linux-6.18", "--save-real", name]);
    assert_eq!(saved.status, 0, "{}", saved.stderr);
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(json["benchmarks"][0]["spread_pct"], serde_json::json!({}), "one round has no spread");
    let refused = |json: &Value, message: &str| {
        fs::write(&file, json.to_string()).unwrap();
        let ran = coreward(&["validate", "--real", name]);
        assert_eq!(ran.status, 2, "{message}");
        let start = format!("coreward: --real: {name}: {message}");
        assert!(ran.stderr.starts_with(&start), "{message}: {}", ran.stderr);
    };
    for (pointer, value, message) in [
        ("/task_group_depth", 20_000.into(), "task_group_depth is 20000, allowed are 0 to 16"),
        ("/rounds", 0.into(), "rounds is 0, allowed are 1 to 100"),
        ("/rounds", 101.into(), "rounds is 101, "),
        ("/profile", "banana".into(), "profile: unknown profile `banana`"),
        ("/benchmarks", Vec::<Value>::new().into(), "benchmarks is empty"),
        (
            "/benchmarks/0/real/switches",
            (-1).into(),
            &format!("{WORKLOAD}: switches is -1, allowed are 0 to "),
        ),
        ("/benchmarks/0/real/involuntary_pct", 101.into(), &format!("{WORKLOAD}: involuntary_pct is 101, ")),
        ("/benchmarks/0/real/time_s", "long".into(), "invalid type: string \"long\", expected f64"),
    ] {
        let mut json = json.clone();
        *json.pointer_mut(pointer).unwrap() = value;
        refused(&json, message);
    }
    json["record_ns"] = 1e18.into();
    refused(&json, "record_ns is 1000000000000000000, allowed are 0 to 1000000");
    json["record_ns"] = Value::Null;
    json["benchmarks"][0]["transfers"] = serde_json::json!([{ "transfer_far_ns": 1 }]);
    refused(&json, &format!("{WORKLOAD}: there is no cost `transfer_far_ns`"));
    json["benchmarks"][0]["transfers"] = serde_json::json!([]);
    fs::write(&file, json.to_string()).unwrap();
    let ran = coreward(&["validate", "--real", name, "--real", name]);
    let twice = format!("coreward: --real: the benchmark `{WORKLOAD}` is there twice\n");
    assert_eq!((ran.status, ran.stderr), (2, twice));
    let other = dir.path().join("other.json");
    json["vcpu_pack"] = 7.into();
    fs::write(&other, json.to_string()).unwrap();
    let ran = coreward(&["validate", "--real", name, "--real", other.to_str().unwrap()]);
    assert!(ran.stderr.contains("other.json: it is of another kernel, profile, "), "{}", ran.stderr);
    // what --json writes can be read again, and means the same
    let args = ["validate", "--machine", "2c", "--real", other.to_str().unwrap(), "--json"];
    let again: Value = serde_json::from_str(&coreward(&args).stdout).unwrap();
    assert_eq!(again["vcpu_pack"], 7);
}

/// The host of a virtual machine moves its CPUs, and with them what a line takes from one to another.
#[test]
fn simulated_rounds_have_the_transfers_that_were_measured_around_the_real_ones() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("real.json");
    let name = file.to_str().unwrap();
    let saved = validate_here("echo Time: 0.01", &["--profile", "linux-6.18", "--save-real", name]);
    assert_eq!(saved.status, 0, "{}", saved.stderr);
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let measured = json["benchmarks"][0]["transfers"].as_array().unwrap().clone();
    assert_eq!(measured.len(), 1);
    assert!(measured[0].as_object().unwrap().values().all(|ns| ns.as_f64().unwrap() > 0.0), "{measured:?}");

    let mut simulated_s = |ns: u64, options: &[&str]| {
        for rounds in ["transfers", "recorded_transfers"] {
            json["benchmarks"][0][rounds] = serde_json::json!([{ "transfer_llc_ns": ns }]);
        }
        fs::write(&file, json.to_string()).unwrap();
        let args = ["validate", "--real", name, "--machine", "2c", "--profile", "linux-6.18"];
        let text = coreward(&[&args[..], options].concat()).stdout;
        let out: Value =
            serde_json::from_str(&coreward(&[&args[..], &["--json"], options].concat()).stdout).unwrap();
        (out["benchmarks"][0]["simulated"]["time_s"].as_f64().unwrap(), text)
    };
    let (near, text) = simulated_s(20, &[]);
    assert!(text.contains("note     transfer_llc_ns was 20 to 20 around the rounds; "), "{text}");
    let (far, _) = simulated_s(400, &[]);
    assert!(far > 1.1 * near, "{far} {near}");
    let given = ["--cost", "transfer_llc_ns=20"];
    assert_eq!(simulated_s(400, &given).0, near, "a cost that is given stays");
}

/// The machine file says which kernel the stored figures are of, and how it preempts.
#[test]
fn stored_figures_are_simulated_with_the_kernel_of_the_machine_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("here.toml");
    let text = fs::read_to_string(MACHINE).unwrap();
    let arch = "arch = \"x86\"\n";
    let kernel = format!("{arch}kernel = \"6.18.44\"\npreemption = \"none\"\n");
    fs::write(&file, text.replace(arch, &kernel)).unwrap();
    let report =
        |machine: &str| coreward(&["validate", SOCKETS, "--real", MEASURED, "--machine", machine]).stdout;
    let changed = "\nchanged   NO_PREEMPT_LAZY\n";
    let said = report(file.to_str().unwrap());
    assert!(said.contains(changed), "{said}");
    assert!(!report(MACHINE).contains(changed));
    // and where it does not, the stored figures do
    let stored = dir.path().join("real.json");
    let text = fs::read_to_string(MEASURED).unwrap();
    fs::write(&stored, text.replacen('{', r#"{"preemption": "none", "vcpu_pack": 15,"#, 1)).unwrap();
    let said =
        coreward(&["validate", SOCKETS, "--real", stored.to_str().unwrap(), "--machine", MACHINE]).stdout;
    assert!(said.contains("\nchanged   NO_PREEMPT_LAZY, vcpu_pack=15\n"), "{said}");
}
