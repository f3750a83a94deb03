//! `coreward compare --intervals`: what a figure hangs on.

mod common;

use std::fs;

use common::{coreward, directory, stdout};
use serde_json::Value;

const PIPE: &str = "perf bench sched pipe -l 200";

fn compare(machine: &str, change: &str, options: &[&str]) -> Value {
    let args = ["compare", PIPE, "--machine", machine, "--with", change, "--runs", "1", "--json"];
    serde_json::from_str(&stdout(&[&args[..], options].concat())).unwrap()
}

/// A machine of one CPU, on which no lines travel, with bounds of its own for some costs.
fn machine(name: &str, cost: &str) -> String {
    let file = directory(name).join("m.toml");
    fs::write(&file, format!("shape = \"1c\"\n[caches]\nl1d_bytes = 32768\nl2_bytes = 1048576\nllc_bytes = 33554432\nline_bytes = 64\n[costs]\n{cost}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_change_without_effect_has_no_interval() {
    let args =
        ["compare", PIPE, "--machine", "2c", "--with", "tcp_send_ns=9us", "--runs", "2", "--intervals=10"];
    let report = stdout(&args);
    let said =
        "tcp_send_ns=9us: messages_per_s: no change, wherever the costs are in their bounds (10 samples)\n";
    assert!(report.contains(said), "{report}");
}

#[test]
fn an_absurd_cost_is_the_first_cause() {
    for cost in ["wakeup_ns", "context_switch_ns"] {
        let machine = machine(cost, &format!("{cost} = {{ value = 700, low = 0, high = 100000 }}"));
        let found = &compare(&machine, "pipe_op_ns=2us", &["--intervals=40"])["variants"][0]["uncertainty"]["messages_per_s"];
        assert_eq!(found["movers"][0]["cost"], cost, "{found}");
        assert!(found["movers"][0]["index"].as_f64().unwrap() > 0.5, "{found}");
        assert_eq!(found["points"], 40);
        // pipes become slower for certain, but nobody knows by how much
        let end = |name: &str| found[name].as_f64().unwrap();
        assert!(end("high_pct") < 0.0 && end("low_pct") < 1.5 * end("high_pct"), "{found}");
    }
}

#[test]
fn narrow_bounds_make_a_narrow_interval() {
    let width = |machine: &str| {
        let report = compare(machine, "pipe_op_ns=2us", &["--intervals"]);
        let found = &report["variants"][0]["uncertainty"]["messages_per_s"];
        assert_eq!(found["points"], 64);
        found["high_pct"].as_f64().unwrap() - found["low_pct"].as_f64().unwrap()
    };
    // what is measured is known better than what is assumed
    let costs = [
        "context_switch_ns",
        "wakeup_ns",
        "enqueue_ns",
        "dequeue_ns",
        "pick_next_ns",
        "syscall_ns",
        "pipe_op_ns",
    ];
    let measured: Vec<_> =
        costs.iter().map(|cost| format!("{cost} = {{ value = 300, low = 295, high = 305 }}")).collect();
    let (known, assumed) = (width(&machine("known", &measured.join("\n"))), width("1c"));
    assert!(known < 0.6 * assumed, "{known} {assumed}");
}

#[test]
fn a_cost_that_is_given_is_not_varied() {
    let varied = |options: &[&str]| {
        let report = compare("2c", "pipe_op_ns=2us", &[&["--intervals=10"], options].concat());
        let note = report["notes"][0].as_str().unwrap().to_owned();
        note.split_whitespace().find_map(|word| word.parse::<u32>().ok()).unwrap()
    };
    assert_eq!(varied(&["--cost", "wakeup_ns=300"]), varied(&[]) - 1);
}

#[test]
fn too_few_points_are_refused() {
    for wrong in ["9", "4097", "x"] {
        let intervals = format!("--intervals={wrong}");
        let ran = coreward(&["compare", PIPE, "--machine", "2c", "--with", "NO_TTWU_QUEUE", &intervals]);
        assert_eq!(ran.status, 2, "{wrong}");
        assert!(ran.stderr.contains("10") && ran.stderr.contains("4096"), "{}", ran.stderr);
    }
}
