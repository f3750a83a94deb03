//! docs/json.md: what `--json` prints, field by field.

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::{coreward, directory};
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/json.md");

/// What the first column of a section's table names.
fn documented(section: &str) -> BTreeSet<&'static str> {
    let (_, text) = PAGE.split_once(&format!("\n{section}\n")).unwrap();
    let text = text.split("\n#").next().unwrap();
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    cells.flat_map(|cell| cell.split('`').step_by(2).filter(|name| !name.trim().is_empty())).collect()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&coreward(&[args, &["--json"]].concat()).stdout).unwrap()
}

fn fields(objects: &[&Value]) -> BTreeSet<String> {
    objects.iter().flat_map(|object| object.as_object().unwrap().keys().cloned()).collect()
}

/// All fields are described, and all that are described exist, except those that these runs do not have.
fn assert_page(section: &str, objects: &[&Value], others: &[&str]) {
    let mut found = fields(objects);
    found.extend(others.iter().map(|name| (*name).to_owned()));
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(documented(section), found, "{section}");
}

#[test]
fn the_fields_of_a_run() {
    let dir = directory("json_run");
    let file = dir.join("w.json");
    let tasks = r#"{"a": {"loop": -1, "taskgroup": "/a", "run": 1000, "sleep": 1000}}"#;
    fs::write(&file, format!(r#"{{"global": {{"duration": 1}}, "tasks": {tasks}}}"#)).unwrap();
    let workload = format!("rt-app {}", file.display());
    let threads =
        json(&["run", &workload, "--machine", "4c", "--event", "1ms offline 3", "--intervals", "0.5"]);
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gallery/postgres-1.cww");
    let classes = json(&["run", recorded, "--machine", "2c"]);
    assert_page("## A run", &[&threads, &classes], &["policy", "partitions"]);
    assert_eq!(documented("## Parts of the CPU time"), {
        let parts = threads["cpu_time_s"].as_object().unwrap();
        parts.keys().map(String::as_str).collect()
    });
}

#[test]
fn the_fields_of_a_comparison() {
    let dir = directory("json_compare");
    let file = dir.join("e.toml");
    let text = r#"name = "e"
machine = "2c"
runs = 2
published = [{ case = "a", metric = "runtime_s", delta_pct = 1, source = "s" }]
case = [{ label = "a", workload = "hackbench -g 1 -f 1 -l 5" }, { label = "b", workload = "hackbench -g 1 -f 2 -l 5" }]
ablation = [{ label = "free", cost = { syscall_ns = 0 } }]
[baseline]
label = "x"
[[variant]]
label = "y"
set = { nr_migrate = 1 }
"#;
    fs::write(&file, text).unwrap();
    let report = json(&["compare", file.to_str().unwrap(), "--ablations", "--intervals=10"]);
    assert_eq!(fields(&[&report]), ["ablations", "cases", "experiment"].map(String::from).into());
    let case = &report["cases"][0];
    assert_page("## A comparison", &[case], &["broken"]);
    let side = &case["baseline"];
    assert_page("### A side", &[side], &[]);
    let variant = &case["variants"][0];
    let own = fields(&[variant]).difference(&fields(&[side])).cloned().collect::<BTreeSet<_>>();
    assert_eq!(documented("### A variant"), own.iter().map(String::as_str).collect());
}
