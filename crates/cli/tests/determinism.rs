//! Same input and seed, same bytes, whatever the jobs. And a seed, a feature, a tunable, a cost has to make a difference.

mod common;

use std::fs;

use common::{directory, stdout};

const EXPERIMENT: &str = r#"name = "e"
machine = "2n2l2c2t"
workload = "hackbench -g 2 -f 3 -l 50 --threads --pipe"
runs = 4
headline = ["runtime_s"]
[baseline]
label = "a"
[[variant]]
label = "b"
sched_feat = ["WAKEUP_BIAS_PREV"]
[[variant]]
label = "c"
cost = { pipe_op_ns = 0 }
"#;

#[test]
fn comparisons() {
    let dir = directory("comparisons");
    let file = dir.join("e.toml");
    fs::write(&file, EXPERIMENT).unwrap();
    let compare = |options: &[&str]| {
        let json = stdout(&[&["compare", file.to_str().unwrap(), "--json"][..], options].concat());
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
        json
    };
    let once = compare(&["--jobs", "1"]);
    assert_eq!(compare(&["--jobs", "2"]), once);
    assert_eq!(compare(&["--jobs", "1"]), once);
    assert_eq!(compare(&["--jobs", "2", "--runs", "4", "--scale", "1"]), once);
    assert_ne!(compare(&["--runs", "3"]), once);
    assert_ne!(compare(&["--scale", "0.5"]), once);

    let both = stdout(&["compare", file.to_str().unwrap(), dir.to_str().unwrap(), "--json"]);
    let both: Vec<serde_json::Value> = serde_json::from_str(&both).unwrap();
    let once: serde_json::Value = serde_json::from_str(&once).unwrap();
    assert_eq!(both, [once.clone(), once], "a file, and the directory that it is in");
}

#[test]
fn runs() {
    let run = |options: &[&str]| {
        let run = ["run", "hackbench -g 4 -f 5 -l 200 -T --pipe", "--machine", "2n2l2c2t", "--json"];
        let json = stdout(&[&run[..], options].concat());
        serde_json::from_str::<serde_json::Value>(&json).unwrap()
    };
    let once = run(&[]);
    assert_eq!(run(&[]), once);
    assert_eq!(run(&["--seed", "1", "--scale", "1.0", "--profile", "linux-6.12"]), once);
    for options in [
        &["--seed", "2"][..],
        &["--scale", "0.5"],
        &["--profile", "linux-5.5"],
        &["--sched-feat", "NO_WAKEUP_PREEMPTION"],
        &["--set", "base_slice_ns=100000"],
        &["--cost", "pipe_op_ns=0"],
        &["--task-group-depth", "0"],
        &["--relax-domain-level", "0"],
    ] {
        assert_ne!(run(options)["metrics"], once["metrics"], "{options:?}");
    }
}
