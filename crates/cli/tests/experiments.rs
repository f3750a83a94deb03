//! The experiments that come with the program.

mod common;

use common::stdout;

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
