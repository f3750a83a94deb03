//! The experiments that come with the program.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::{coreward, stdout};
use coreward_cli::experiment::Experiment;

fn experiment(name: &str) -> String {
    format!("{}/../../experiments/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// A feature that cannot do anything, and a change that is none, are not shown to do anything.
#[test]
fn negative_controls() {
    let report = stdout(&["compare", &experiment("negative-one-llc")]);
    assert!(
        report.contains("\nWAKEUP_BIAS_PREV: all 10 runs equal the baseline's in every metric\n"),
        "{report}"
    );
    let report = stdout(&["compare", &experiment("negative-no-op")]);
    for metric in ["runtime_s", "cpu_migrations", "context_switches"] {
        let line = format!("\nno-op: {metric}: no change shown with 10 runs");
        assert!(report.contains(&line), "{report}");
    }
}

/// Few runs show a large effect on what is asked about, however many metrics stand beside it; and they say of what they
/// do not show how large it could be.
#[test]
fn five_runs_show_a_large_effect() {
    let compare = [
        "compare",
        "hackbench -g 2 -f 10 -l 1000 --pipe",
        "--machine",
        "1n2l4c2t",
        "--with",
        "WAKEUP_BIAS_PREV",
        "--headline",
        "cpu_migrations",
        "--headline",
        "newidle_time_s",
        "--seed",
        "5",
    ];
    let report = stdout(&[&compare[..], &["--runs", "5"]].concat());
    assert!(report.contains("\nWAKEUP_BIAS_PREV: cpu_migrations "), "{report}");
    assert!(report.contains("% better (CI95: "), "{report}");
    assert!(
        report.contains("\nWAKEUP_BIAS_PREV: newidle_time_s: no change shown with 5 runs; one of "),
        "{report}"
    );
    assert!(report.contains(" % or more would have been, 8 times in 10\n"), "{report}");
}

/// Runs are added until the interval is narrow enough, whatever the jobs; and the command that is named makes the same.
#[test]
fn runs_are_added_until_the_interval_is_narrow() {
    let workload = "hackbench -g 2 -f 3 -T --pipe -l 200";
    let compare = ["compare", workload, "--machine", "1n2l2c1t", "--with", "WAKEUP_BIAS_PREV"];
    let json = |options: &[&str]| -> serde_json::Value {
        let ran = coreward(&[&compare[..], &["--json"], options].concat());
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        // each round is reported while it goes on
        let said: Vec<_> = ran.stderr.lines().collect();
        let adds = options[0] != "--runs";
        assert_eq!(!said.is_empty(), adds, "{options:?}: {said:?}");
        if let (true, Some(last)) = (adds, said.last()) {
            let runs = &report["baseline"]["runs"];
            let start = format!("coreward: {runs} runs a side, CI95 of messages_per_s is ±");
            assert!(last.starts_with(&start), "{last}");
        }
        report
    };
    let width = |report: &serde_json::Value| {
        let ends = report["variants"][0]["interval_pct"]["messages_per_s"].as_array().unwrap().clone();
        (ends[1].as_f64().unwrap() - ends[0].as_f64().unwrap()) / 2.0
    };
    let few = json(&["--runs", "5"]);
    let target = width(&few) / 2.0;
    let precision = format!("{target:.2}%");
    let enough = json(&["--precision", &precision, "--jobs", "1"]);
    assert_eq!(json(&["--precision", &precision, "--jobs", "2"]), enough);
    let runs = enough["baseline"]["runs"].as_u64().unwrap();
    assert!(runs > 5 && width(&enough) <= target + 0.01 && width(&few) > target, "{runs}");
    let mut repeated = json(&["--runs", &runs.to_string()]);
    let note = &enough["notes"][0];
    assert!(
        note.as_str().unwrap().starts_with(&format!("runs were added until there were {runs} a side; ")),
        "{note}"
    );
    repeated["notes"] = enough["notes"].clone();
    assert_eq!(repeated, enough);

    // a budget that is over at once leaves the first runs
    let hasty = json(&["--budget", "1s", "--runs", "7"]);
    assert!(hasty["baseline"]["runs"].as_u64().unwrap() >= 7);
    assert!(hasty["notes"][0].as_str().unwrap().contains("when the budget ended"));
}

/// A change of the baseline is one of the variants, too; the command that is named makes the same runs.
#[test]
fn the_baseline_can_be_changed() {
    let compare = |with: &[&str]| -> serde_json::Value {
        let base = [
            "compare",
            "perf bench sched messaging -g 1 -l 20",
            "--machine",
            "2l4c2t",
            "--runs",
            "2",
            "--json",
        ];
        serde_json::from_str(&stdout(&[&base[..], with].concat())).unwrap()
    };
    let plain = compare(&["--with", "WAKEUP_BIAS_PREV"]);
    let changed = compare(&["--baseline-with", "WAKEUP_BIAS_PREV", "--with", "base_slice_ns=6ms"]);
    assert_eq!(changed["baseline"]["values"], plain["variants"][0]["values"]);
    assert_ne!(changed["baseline"]["values"], plain["baseline"]["values"]);
    assert_eq!(
        changed["variants"][0]["changes"],
        serde_json::json!(["WAKEUP_BIAS_PREV", "base_slice_ns=6000000"])
    );
    let command = changed["recipe"]["command"].as_str().unwrap();
    assert!(command.contains(" --baseline-with WAKEUP_BIAS_PREV --with base_slice_ns=6ms "), "{command}");
    let refused = coreward(&[
        "compare",
        "hackbench",
        "--machine",
        "2c",
        "--with",
        "SIS_UTIL",
        "--baseline-with",
        "SIS_UTLI",
    ]);
    assert_eq!(refused.status, 2);
    assert!(
        refused
            .stderr
            .starts_with("coreward: --baseline-with: unknown feature `SIS_UTLI`, did you mean `SIS_UTIL`? ")
    );
}

#[test]
fn exploratory_metrics_are_a_dozen_or_all() {
    let rows = |options: &[&str]| {
        let base = [
            "compare",
            "hackbench -g 1 -f 4 -l 50",
            "--machine",
            "2l2c",
            "--with",
            "WAKEUP_BIAS_PREV",
            "--runs",
            "3",
        ];
        let report = stdout(&[&base[..], options].concat());
        report.lines().filter(|line| line.starts_with("Amean")).count()
    };
    assert_eq!(rows(&[]), 2 + 12);
    assert!(rows(&["--all"]) > 30);
}

/// A comparison is printed with the model's record at such comparisons.
#[test]
fn the_models_record_stands_beside_the_figures() {
    let record = |with: &str| {
        let report = stdout(&[
            "compare",
            "hackbench -g 1 -f 1 -l 1",
            "--machine",
            "1n1l2c1t",
            "--with",
            with,
            "--runs",
            "1",
        ]);
        report.lines().find_map(|line| line.strip_prefix("the model's record: ").map(str::to_owned)).unwrap()
    };
    let json = include_str!("../../../docs/fidelity.json");
    let scores: serde_json::Value = serde_json::from_str(json).unwrap();
    let score = &scores["families"]["bias_prev"];
    let bias = record("WAKEUP_BIAS_PREV");
    let start = format!(
        "bias_prev: of {} published changes the sign is right in {} (",
        score["scored"], score["right"]
    );
    assert!(bias.starts_with(&start), "{bias}");
    assert!(bias.contains(" (docs/fidelity.md, revision "), "{bias}");
    assert_eq!(record("NO_SIS_UTIL"), "no published figures of this kind were checked");
}

/// The schema that editors read is that of the parser.
#[test]
fn the_schema_beside_the_experiments_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/experiment.schema.json");
    let schema = stdout(&["experiment", "schema"]);
    if std::env::var_os("COREWARD_BLESS").is_some() {
        fs::write(&file, &schema).unwrap();
    }
    assert_eq!(schema, fs::read_to_string(&file).unwrap(), "COREWARD_BLESS=1 writes it");
}

/// Seed 000's experiment, too short to mean anything: what was published stands beside what was simulated.
#[test]
fn wakeup_bias_prev() {
    let path = experiment("wakeup-bias-prev");
    let report = stdout(&["compare", &path, "--runs", "1", "--scale", "0.00001"]);
    for part in [
        "side      WAKEUP_BIAS_PREV: linux-6.5 with WAKEUP_BIAS_PREV\n",
        "\nruntime_s                  |     49.0000     29.0000   40.82% |",
        "\ncpu_migrations_per_s       |     9286.00      701.00   92.45% |",
        "\nnote: this is a shorter benchmark, with 0.00001 of the workload's repetitions or of its time: no estimate of ",
    ] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
}

/// All experiment files, those in directories too.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Of each experiment one case, too short to mean anything.
#[test]
fn every_experiment_runs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files = files(&directory);
    assert!(files.len() >= 3);
    for file in &files {
        let path = file.to_str().unwrap();
        let text = fs::read_to_string(file).unwrap();
        Experiment::parse(path, &text).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let cases = table.get("case").and_then(toml::Value::as_array);
        let mut args = vec!["compare", path, "--runs", "1", "--scale", "0.00001"];
        if let Some(case) = cases.and_then(|cases| cases.first()) {
            args.extend(["--case", case["label"].as_str().unwrap()]);
        }
        let report = stdout(&args);
        assert!(report.contains("\nside  ") && report.contains("\nAmean  "), "{path}: {report}");
    }
}

/// A row of a collection that two experiments had would be scored twice.
#[test]
fn a_published_row_is_in_one_experiment() {
    let mut ids = BTreeSet::new();
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")) {
        let table: toml::Table = fs::read_to_string(&file).unwrap().parse().unwrap();
        let rows = table.get("published").and_then(toml::Value::as_array).into_iter().flatten();
        for id in rows.filter_map(|row| row.get("id").and_then(toml::Value::as_str)) {
            assert!(ids.insert(id.to_owned()), "{id} is in {} and in a file before it", file.display());
        }
    }
}
