//! The machine changes in the middle of a run: `--event`, and `events` of an experiment.

mod common;

use std::fs;

use common::{coreward, directory, stdout};
use serde_json::Value;

/// Four threads that compute for 0.3 s each.
const SPINNERS: &str = r#"{"tasks": {"t": {"instance": 4, "loop": 1, "phases": {"p": {"run": 300000}}}}}"#;

/// What a run on four CPUs with these events reports.
fn report(test: &str, events: &[&str]) -> Value {
    let dir = directory(test);
    let file = dir.join("w.json");
    fs::write(&file, SPINNERS).unwrap();
    let workload = format!("rt-app {}", file.display());
    let events = events.iter().flat_map(|event| ["--event", event]);
    let args: Vec<&str> =
        ["run", &workload, "--machine", "4c", "--json", "--check"].into_iter().chain(events).collect();
    serde_json::from_str(&stdout(&args)).expect("JSON")
}

#[test]
fn each_event_moves_the_run_time() {
    let seconds = |test: &str, events: &[&str]| {
        report(test, events)["metrics"]["runtime_s"].as_f64().expect("a number")
    };
    let whole = seconds("event_none", &[]);
    let half = seconds("event_offline", &["100ms offline 2-3"]);
    let shortly = seconds("event_online", &["100ms offline 2-3", "200ms online 2-3"]);
    let cpuset = seconds("event_cpus", &["100ms cpus 0-1"]);
    assert!(half > whole + 0.15 && cpuset > whole + 0.15, "{whole} {half} {cpuset}");
    assert!(whole + 0.03 < shortly && shortly < half - 0.05, "{whole} {shortly} {half}");
}

#[test]
fn the_report_names_the_events_and_those_that_did_not_happen() {
    let report = report("event_report", &["0.1s offline 3", "5s online 3"]);
    assert_eq!(report["events"], serde_json::json!(["0.1s offline 3", "5s online 3"]));
    let notes = report["notes"].to_string();
    assert!(notes.contains("of the events 1 did not happen: the run ended at 0."), "{notes}");
    let text = stdout(&["run", "hackbench -l 5", "--machine", "4c", "--event", "1ms offline 3"]);
    assert!(text.contains("\nchanged   event=0.001s offline 3\n"), "{text}");
}

#[test]
fn wrong_events_are_refused() {
    for (event, message) in [
        ("1s remove 3", "`remove` is not known, allowed is TIME offline|online|cpus CPUS"),
        ("soon offline 3", "`soon` is no time, allowed are 0s to 1000000s"),
        ("1s offline 4", "1s offline 4: there is no CPU 4, allowed are 0 to 3"),
        ("1s offline 0-3", "1s offline 0-3: the workload has no CPU left"),
    ] {
        let ran = coreward(&["run", "hackbench -l 5", "--machine", "4c", "--event", event]);
        assert_eq!(ran.status, 2, "{event}");
        assert!(ran.stderr.starts_with("coreward: ") && ran.stderr.contains(message), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    for option in [&["--skip-steady", "2"][..], &["--schedstat", "s"], &["--domains", "d"]] {
        let run = ["run", "hackbench -l 5", "--machine", "4c", "--event", "1s offline 3"];
        let ran = coreward(&[&run[..], option].concat());
        assert_eq!(ran.status, 2, "{option:?}");
        assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    }
}

#[test]
fn an_experiment_has_events_on_all_sides() {
    let dir = directory("events_of_an_experiment");
    let file = dir.join("e.toml");
    let compare = |events: &str| {
        let text = format!(
            "name = \"e\"\nmachine = \"4c\"\nworkload = \"hackbench -g 4 -l 100 -T --pipe\"\nruns = 2\n{events}\n\
             [baseline]\nlabel = \"a\"\n[[variant]]\nlabel = \"b\"\nsched_feat = [\"WAKEUP_BIAS_PREV\"]\n"
        );
        fs::write(&file, text).unwrap();
        coreward(&["compare", file.to_str().unwrap(), "--json"])
    };
    let (without, with) = (compare(""), compare("events = [\"1ms offline 1-3\"]"));
    assert_eq!((without.status, with.status), (0, 0), "{}", with.stderr);
    assert_ne!(without.stdout, with.stdout);
    let late = compare("events = [\"1ms offline 1-3\", \"9s online 1\"]").stdout;
    assert!(late.contains("of the events 1 did not happen: 4 of 4 runs ended before"), "{late}");
    let wrong = compare("events = [\"1ms offline 1-3\", \"1s stop 1\"]");
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("e.toml:5: events: `stop` is not known"), "{}", wrong.stderr);
    let gone = compare("events = [\"1ms offline 0-3\"]");
    assert_eq!(gone.status, 2);
    assert!(gone.stderr.contains("0.001s offline 0-3: the workload has no CPU left"), "{}", gone.stderr);
}

/// Two threads, each in a task group of its own, that compute on one CPU for a second.
const GROUPS: &str = r#"{"global": {"duration": 1}, "tasks": {
    "a": {"loop": -1, "taskgroup": "/a", "run": 1000}, "b": {"loop": -1, "taskgroup": "/b", "run": 1000}}}"#;

#[test]
fn task_groups_have_weights_and_quotas_and_are_reported() {
    let dir = directory("event_groups");
    fs::write(dir.join("w.json"), GROUPS).unwrap();
    let workload = format!("rt-app {}", dir.join("w.json").display());
    let run = |more: &[&str]| stdout(&[&["run", &workload, "--machine", "1c"][..], more].concat());
    let events = ["--event", "0s weight /a 300", "--event", "500ms max /b 5ms/50ms"];
    let report: Value = serde_json::from_str(&run(&[&events[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(report["events"], serde_json::json!(["0s weight /a 300", "0.5s max /b 0.005s/0.05s"]));
    let seconds = |group: usize| report["groups"][group]["cpu_time_s"].as_f64().expect("a number");
    // /b has a quarter of the first half, and a tenth of the second
    assert_eq!(report["groups"][2]["name"], "/b");
    assert!((seconds(2) - 0.175).abs() < 0.015, "{}", report["groups"]);
    assert!((seconds(1) - 0.825).abs() < 0.015, "{}", report["groups"]);
    assert!(report["groups"][2]["throttled_s"].as_f64() > Some(0.3), "{}", report["groups"]);
    assert_eq!(report["groups"][1]["throttled_s"], 0.0);
    let text = run(&events);
    let line = text.lines().find(|line| line.starts_with("group /b: ")).expect("a line");
    assert!(line.contains(" s of CPU time, throttled in ") && line.contains(" periods, for 0."), "{line}");
    let ran = coreward(&["run", &workload, "--machine", "1c", "--event", "0s weight /c 5"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("there is no task group /c, allowed are /, /a, /b"), "{}", ran.stderr);
}
