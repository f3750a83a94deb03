//! The experiments that come with the program.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::stdout;
use coreward_cli::experiment::Experiment;

fn experiment(name: &str) -> String {
    format!("{}/../../experiments/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// A feature that cannot do anything, and a change that is none, are reported as no difference.
#[test]
fn negative_controls() {
    for (name, variant) in [("negative-one-llc", "WAKEUP_BIAS_PREV"), ("negative-no-op", "no-op")] {
        let report = stdout(&["compare", &experiment(name)]);
        assert!(report.contains(&format!("\n{variant}: no difference\n")), "{report}");
    }
}

/// Seed 000's experiment, too short to mean anything: what was published stands beside what was simulated.
#[test]
fn wakeup_bias_prev() {
    let path = experiment("wakeup-bias-prev");
    let report = stdout(&["compare", &path, "--runs", "1", "--scale", "0.00001"]);
    for part in [
        "side      WAKEUP_BIAS_PREV: linux-6.5 with WAKEUP_BIAS_PREV\n",
        "\nruntime_extrapolated_s     |     49.0000     29.0000   40.82% |",
        "\ncpu_migrations_per_s       |     9286.00      701.00   92.45% |",
        "\nnote: scaled: 0.00001 of the workload's loops were run, ",
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
