//! `coreward run --skip-steady`.

mod common;

use common::{coreward, stdout};

#[test]
fn a_run_says_what_it_skipped_and_how_well_the_rest_is_known() {
    let run = ["run", "netperf -t TCP_RR -l 4", "--machine", "2c"];
    let skipped = stdout(&[&run[..], &["--skip-steady", "2%"]].concat());
    assert!(skipped.contains("note      2."), "{skipped}");
    assert!(skipped.contains("s were skipped: steady from 0.1"), "{skipped}");
    let runtime = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("runtime_s")).unwrap().to_string();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
    };
    assert!((runtime(&skipped) - runtime(&stdout(&run))).abs() < 0.001);
    let short = ["run", "netperf -t TCP_RR -l 1", "--machine", "2c", "--skip-steady", "2"];
    assert!(stdout(&short).contains("note      nothing was skipped"));
}

#[test]
fn what_cannot_be_skipped_or_traced_is_refused() {
    let run = ["run", "hackbench -g 1", "--machine", "2c", "--skip-steady"];
    for wrong in ["0", "50", "abc"] {
        let ran = coreward(&[&run[..], &[wrong]].concat());
        assert_eq!(ran.status, 2, "{wrong}");
        assert!(ran.stderr.contains("allowed are 0.1 to 20"), "{}", ran.stderr);
    }
    for other in [["--intervals", "1"], ["--trace", "/dev/null"]] {
        let ran = coreward(&[&run[..], &["2"], &other].concat());
        assert_eq!(ran.status, 2, "{other:?}");
        assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    }
}

/// All sides of a comparison skip, and the report says how well the worst of the runs is known.
#[test]
fn a_comparison_says_what_its_runs_skipped() {
    let workload = "netperf -t TCP_RR -l 4";
    let compare =
        ["compare", workload, "--machine", "2c", "--with", "tcp_send_ns=9us", "--runs", "2", "--skip-steady"];
    let skipped = stdout(&[&compare[..], &["2"]].concat());
    let note = "note: 4 of 4 runs skipped their steady middle: steady from 0.10 s or earlier, measured for 1.00 s or longer";
    assert!(skipped.contains(note), "{skipped}");
    assert!(skipped.contains(" --skip-steady 2 "), "the command repeats it: {skipped}");
    let whole = stdout(&compare[..compare.len() - 1]);
    let rate = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("Amean    messages_per_s")).unwrap().to_string();
        line.split_whitespace().nth(2).unwrap().parse::<f64>().unwrap()
    };
    assert!((rate(&skipped) / rate(&whole) - 1.0).abs() < 0.02, "{skipped}{whole}");
    let short = [
        "compare",
        "netperf -l 1",
        "--machine",
        "2c",
        "--with",
        "tcp_send_ns=9us",
        "--runs",
        "1",
        "--skip-steady",
        "2",
    ];
    assert!(stdout(&short).contains("note: all runs were simulated whole: "));
}
