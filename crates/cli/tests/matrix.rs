//! `coreward matrix`: every option moves something, a change without effect shows none, and a killed matrix continues.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::{coreward, directory, stdout};
use serde_json::Value;

/// A suite of short rows, of which the last fits large machines only.
const SUITE: &str = r#"
[[row]]
name = "pipes"
workload = "hackbench -g <cpus/4> -f 4 -T --pipe -l 40"
metrics = ["runtime_s"]
reason = "short"

[[row]]
name = "periodic"
workload = "rt-app p.json"
rt_app = '{"global": {"duration": 1}, "tasks": {"a": {"instance": <cpus>, "run": 700, "timer": {"ref": "unique", "period": 9000}}}}'
metrics = ["wakeup_latency_us_p99", "event_latency_us_p99"]
reason = "an rt-app file"

[[row]]
name = "large"
workload = "hackbench -g 1 -f 2 -l 5"
metrics = ["runtime_s"]
reason = "fits few"
min_cpus = 9
"#;

fn suite(dir: &Path) -> String {
    let path = dir.join("suite.toml");
    fs::write(&path, SUITE).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A small matrix of two machines with these options.
fn arguments<'a>(suite: &'a str, change: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let small =
        ["matrix", "--with", change, "--suite", suite, "--machine", "2n2l2c1t", "--machine", "1n2l4c2t"];
    let runs: &[&str] = if options.contains(&"--runs") { &[] } else { &["--runs", "4"] };
    [&small, runs, options].concat()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[arguments, &["--json"]].concat())).unwrap()
}

fn cells(report: &Value) -> &Vec<Value> {
    report["cells"].as_array().unwrap()
}

#[test]
fn a_cell_is_what_compare_prints() {
    let suite = suite(&directory("matrix_cell"));
    let report = json(&arguments(&suite, "WAKEUP_BIAS_PREV", &["--profile", "linux-6.5"]));
    assert_eq!(cells(&report).len(), 5, "three rows, of which one fits one machine");
    let cell =
        cells(&report).iter().find(|cell| cell["name"] == "pipes" && cell["machine"] == "2n2l2c1t").unwrap();
    assert_eq!(cell["workload"], "hackbench -g 2 -f 4 --threads --pipe -l 40 -s 100");
    let command = cell["command"].as_str().unwrap();
    assert!(command.ends_with("--headline runtime_s --runs 4"), "{command}");
    let workload = "hackbench -g 2 -f 4 -T --pipe -l 40";
    let compare = [
        "compare",
        workload,
        "--machine",
        "2n2l2c1t",
        "--profile",
        "linux-6.5",
        "--with",
        "WAKEUP_BIAS_PREV",
    ];
    let compared: Value = serde_json::from_str(&stdout(
        &[&compare[..], &["--headline", "runtime_s", "--runs", "4", "--json"]].concat(),
    ))
    .unwrap();
    let (figure, variant) = (&cell["figures"][0], &compared["variants"][0]);
    assert_eq!(figure["delta_pct"], variant["delta_pct"]["runtime_s"]);
    assert_eq!(figure["interval_pct"], variant["interval_pct"]["runtime_s"]);
    assert_eq!(figure["p_value"], variant["p_value"]["runtime_s"]);
    // all published effects of the family are of hackbench
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fidelity.json");
    let record: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let scored = &record["families"]["bias_prev"]["scored"];
    assert!(scored.as_u64().unwrap() > 0);
    assert_eq!(&cell["record"]["scored"], scored);
    assert_eq!(report["record"]["family"], "bias_prev");
}

#[test]
fn every_option_moves_something() {
    let dir = directory("matrix_options");
    let suite = suite(&dir);
    let of = |change: &str, options: &[&str]| json(&arguments(&suite, change, options));
    let usual = of("WAKEUP_BIAS_PREV", &[]);
    for (change, options) in [
        ("NO_TTWU_QUEUE", &[][..]),
        ("WAKEUP_BIAS_PREV", &["--baseline-with", "NO_TTWU_QUEUE"]),
        ("WAKEUP_BIAS_PREV", &["--profile", "linux-6.5"]),
        ("WAKEUP_BIAS_PREV", &["--runs", "3"]),
        ("WAKEUP_BIAS_PREV", &["--seed", "7"]),
        ("WAKEUP_BIAS_PREV", &["--cost", "pipe_op_ns=9000"]),
        ("WAKEUP_BIAS_PREV", &["--task-group-depth", "0"]),
        ("WAKEUP_BIAS_PREV", &["--machine", "3c"]),
        ("WAKEUP_BIAS_PREV", &["--workload", "pipes"]),
        ("WAKEUP_BIAS_PREV", &["--workload", "hackbench -g 1 -l 10"]),
    ] {
        assert_ne!(of(change, options)["cells"], usual["cells"], "{change} {options:?}");
    }
    let names = |report: &Value| -> BTreeSet<String> {
        cells(report).iter().map(|cell| cell["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&of("NO_TTWU_QUEUE", &["--workload", "rt-app"])), ["periodic".to_owned()].into());
    // the suite that is printed is one
    let printed = stdout(&["matrix", "--print-suite"]);
    let other = dir.join("printed.toml");
    fs::write(&other, &printed).unwrap();
    let line =
        ["matrix", "--with", "NO_TTWU_QUEUE", "--machine", "3c", "--workload", "perf-pipe", "--runs", "2"];
    let built_in = json(&line);
    let from_file = json(&[&line[..], &["--suite", other.to_str().unwrap()]].concat());
    assert_eq!(built_in["cells"], from_file["cells"]);
    // the order of the work is not that of the report
    let jobs = |n| stdout(&arguments(&suite, "WAKEUP_BIAS_PREV", &["--json", "--jobs", n]));
    assert_eq!(jobs("1"), jobs("5"));
}

#[test]
fn shards_that_are_merged_give_the_bytes_of_the_whole() {
    let dir = directory("matrix_shards");
    let suite = suite(&dir);
    let of = |options: &[&str]| stdout(&arguments(&suite, "WAKEUP_BIAS_PREV", options));
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let whole = of(&["--json"]);
    let left = of(&["--left"]);
    let workload = "hackbench -g 2 -f 4 --threads --pipe -l 40 -s 100";
    let first = format!("0/5 {workload} on 2n2l2c1t, WAKEUP_BIAS_PREV, 4 runs a side");
    assert!(left.lines().any(|line| line == first), "{left}");
    assert_eq!(left.lines().count(), 5);

    let shards = [path("a"), path("b")];
    for (i, state) in shards.iter().enumerate() {
        let said = of(&["--shard", &format!("{i}/2"), "--state", state]);
        assert_eq!(said, format!("shard {i}/2: {} cells are kept\n", 3 - i));
    }
    assert_eq!(of(&["--left", "--merge", &shards[0]]).lines().count(), 2);
    let all = path("all");
    let merged = ["--merge", &shards[0], "--merge", &shards[1], "--state", &all];
    assert_eq!(of(&[&merged[..], &["--json"]].concat()), whole);
    let kept = fs::read(&all).unwrap();
    assert_eq!(of(&["--left", "--state", &all]), "");
    assert_eq!(of(&["--json", "--state", &all]), whole);
    assert_eq!(fs::read(&all).unwrap(), kept, "nothing was left to do");

    let refused = |options: &[&str]| coreward(&arguments(&suite, "WAKEUP_BIAS_PREV", options)).status;
    for wrong in
        [&["--shard", "0/2"][..], &["--left", "--json"], &["--shard", "0/2", "--state", &all, "--text"]]
    {
        assert_eq!(refused(wrong), 2, "{wrong:?}");
    }
}

#[test]
fn text_page_and_json_are_written_at_once() {
    let dir = directory("matrix_outputs");
    let suite = suite(&dir);
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let outputs = [format!("--json={}", path("j")), format!("--text={}", path("t"))];
    let line = arguments(&suite, "WAKEUP_BIAS_PREV", &["--profile", "linux-6.5"]);
    let text = stdout(&[&line[..], &[&outputs[0], &outputs[1], "--html", &path("h")]].concat());
    assert_eq!(fs::read_to_string(path("t")).unwrap(), text);
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(path("j")).unwrap()).unwrap(), json(&line));
    assert!(
        text.lines().all(|line| line.len() <= 80 && line.is_ascii()) && text.contains("\nLosses: "),
        "{text}"
    );
    assert_eq!(stdout(&[&line[..], &["--text"]].concat()), text);
    let page = fs::read_to_string(path("h")).unwrap();
    for what in ["<table class=\"heat\">", "<th scope=\"row\">2n2l2c1t</th>", "periodic", "Cells by damage"] {
        assert!(page.contains(what), "{what}");
    }
    // few lines of each list, unless all are asked for; of two figures, none is left out
    assert_eq!(stdout(&[&line[..], &["--all"]].concat()), text);
    assert_eq!(coreward(&[&line[..], &["--check"]].concat()).status, 0, "no invariant is broken");
}

/// The fields of the JSON are those that the guide explains.
#[test]
fn the_guide_names_every_field() {
    let guide =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide.md")).unwrap();
    let dir = directory("matrix_fields");
    let report = json(&arguments(&suite(&dir), "WAKEUP_BIAS_PREV", &["--runs", "2"]));
    let of = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let rows = report["workloads"].as_array().unwrap().iter().flat_map(of);
    let cell = &cells(&report)[0];
    let parts =
        [&report, &report["summary"], &report["machines"][0], cell, &cell["figures"][0], &cell["record"]];
    for field in parts.into_iter().flat_map(of).chain(rows) {
        assert!(guide.contains(&format!("`{field}`")), "`{field}` is not in the guide");
    }
}

/// Both sides are the same but for their seeds, so every cell beyond noise is a false alarm. In one matrix of twenty there
/// may be any; more than two of ten have one in a hundred cases.
#[test]
fn a_change_of_nothing_but_chance_is_rarely_beyond_noise() {
    let suite = suite(&directory("matrix_control"));
    let alarms = |seed: usize| {
        let (change, seed) = (format!("seed={}", 1000 * seed + 500), format!("{}", 1000 * seed));
        let report = json(&arguments(&suite, &change, &["--seed", &seed, "--runs", "4"]));
        assert_eq!(report["summary"]["same"], 0, "other seeds are other runs");
        report["summary"]["worse"].as_u64().unwrap() + report["summary"]["better"].as_u64().unwrap()
    };
    let with_any = (1..=10).filter(|seed| alarms(*seed) > 0).count();
    assert!(with_any <= 2, "{with_any} of 10");
    // a change that does nothing at all is said to do nothing: no CPU is smaller than another here
    let report = json(&arguments(&suite, "NO_ASYM_WAKE_SCAN", &[]));
    let summary = &report["summary"];
    assert_eq!((&summary["same"], &summary["tests"]), (&5.into(), &0.into()), "{summary}");
    // and one that cannot be overlooked is found
    let report = json(&arguments(&suite, "pipe_op_ns=90000", &["--workload", "pipes"]));
    assert_eq!(report["summary"]["worse"], 2);
    let delta = cells(&report)[0]["figures"][0]["delta_pct"].as_f64().unwrap();
    assert!(delta < -100.0, "{delta}");
}

/// How many cells a state file has.
fn kept(state: &Path) -> usize {
    fs::read_to_string(state).map_or(0, |text| text.matches('\n').count().saturating_sub(1))
}

#[test]
fn a_killed_matrix_continues_where_it_was() {
    let dir = directory("matrix_killed");
    let suite = suite(&dir);
    let state = dir.join("state");
    let line = arguments(&suite, "WAKEUP_BIAS_PREV", &["--json", "--jobs", "1", "--runs", "8"]);
    let whole = stdout(&line);
    let kept_line = [&line[..], &["--state", state.to_str().unwrap()]].concat();
    for enough in [1, 3] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coreward"));
        let mut child = command.args(&kept_line).stdout(Stdio::null()).spawn().unwrap();
        while kept(&state) < enough && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(kept(&state) >= enough);
    }
    assert_eq!(stdout(&kept_line), whole);
    let keys = |state: &PathBuf| -> Vec<String> {
        let text = fs::read_to_string(state).unwrap();
        let lines = text.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["key"].as_str().unwrap().to_owned()).collect()
    };
    let first = keys(&state);
    assert_eq!((first.len(), first.iter().collect::<BTreeSet<_>>().len()), (5, 5), "no cell is run twice");
    // all is there: nothing is run, and nothing written
    let before = fs::read(&state).unwrap();
    assert_eq!(stdout(&kept_line), whole);
    assert_eq!(fs::read(&state).unwrap(), before);
    // whatever decides the result makes another cell
    for options in [&["--seed", "2"][..], &["--cost", "pipe_op_ns=9000"], &["--profile", "linux-6.5"]] {
        let had = kept(&state);
        stdout(&[&kept_line[..], options].concat());
        assert_eq!(kept(&state), had + 5, "{options:?}");
    }
}

fn refused(arguments: &[&str], message: &str) {
    let ran = coreward(arguments);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{arguments:?}");
    assert!(ran.stderr.starts_with(&format!("coreward: {message}")), "{arguments:?}: {}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let dir = directory("matrix_refused");
    let suite = suite(&dir);
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    refused(&["matrix"], "the following required arguments were not provided: --with");
    let with = ["matrix", "--with", "WAKEUP_BIAS_PREV"];
    for (options, message) in [
        (&["--machine", "epyc"][..], "--machine: "),
        (&["--machine", "3c", "--machine", "3c"], "--machine: 3c is named twice"),
        (
            &["--machine", "3c", "--workload", "hackbnch"],
            "--workload: no row of the suite is called `hackbnch`",
        ),
        (&["--machine", "3c", "--workload", "hackbench -g 0"], "--workload: workload: hackbench: "),
        (&["--machine", "3c", "--runs", "1"], "invalid value '1' for '--runs <N>'"),
        (&["--machine", "3c", "--suite", &path("none")], "--suite: cannot read "),
        (
            &["--machine", "3c", "--suite", &suite, "--workload", "large"],
            "large takes 9 CPUs, which no machine has",
        ),
        (&["--machine", "3c", "--state", &suite], "--state: "),
        (&["--machine", "3c", "--suite", &suite, &format!("--json={suite}")], "--json: cannot write "),
        (
            &["--machine", "3c", "--html", &path("x"), &format!("--text={}", path("x"))],
            "--text and --html name the same",
        ),
        (&["--machine", "3c", "--text", "--json"], "--json, --text: one of them can be printed"),
        (&["--machine", "3c", "--profile", "linux-99"], "--profile: "),
        (&["--print-suite"], "the argument '--print-suite' cannot be used with"),
    ] {
        refused(&[&with[..], options].concat(), message);
    }
    refused(&["matrix", "--with", "WAKEUP_BAIS_PREV", "--machine", "3c"], "--with: unknown feature");
    assert_eq!(fs::read_to_string(&suite).unwrap(), SUITE, "what was there is still there");
}
