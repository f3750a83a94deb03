//! Output files are written whole or not at all.

mod common;

use std::fs;

use common::{coreward, directory, names, stdout};

const WORKLOAD: &str = "hackbench -g 1 -f 2 -l 10 -T --pipe";
const EXPERIMENT: &str = r#"name = "e"
machine = "1n2l2c1t"
workload = "hackbench -g 1 -f 2 -l 10 -T --pipe"
runs = 2
headline = ["runtime_s"]
[baseline]
label = "a"
[[variant]]
label = "b"
sched_feat = ["WAKEUP_BIAS_PREV"]
"#;

#[test]
fn files_are_written_beside_the_report() {
    let dir = directory("files_are_written");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let run = ["run", WORKLOAD, "--machine", "1n2l2c1t"];
    let (trace, schedstat) = (path("t.pftrace"), path("s"));
    fs::write(&schedstat, "old").unwrap();
    let with_files = stdout(&[&run[..], &["--trace", &trace, "--schedstat", &schedstat]].concat());
    assert_eq!(with_files, stdout(&run), "observing a run does not change it");
    assert_eq!(names(&dir), ["s", "t.pftrace"]);

    let text = fs::read_to_string(&schedstat).unwrap();
    assert!(text.starts_with("version 16\ntimestamp "), "the version of Linux 6.12");
    assert_eq!(text.lines().filter(|line| line.starts_with("cpu")).count(), 4);
    let bytes = fs::read(&trace).unwrap();
    assert_eq!(bytes[0], 0x0a, "a packet of Perfetto's Trace message");
    let contains = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    assert!(contains(b"hackbench") && contains(b"swapper"));
}

#[test]
fn the_schedstat_version_is_that_of_the_kernel_unless_asked_for() {
    let dir = directory("schedstat_version");
    let file = dir.join("s");
    let run = ["run", WORKLOAD, "--machine", "1n2l2c1t", "--schedstat", file.to_str().unwrap()];
    for (options, version) in [
        (&["--profile", "linux-6.8"][..], "version 15\n"),
        (&["--profile", "linux-7.3"], "version 17\n"),
        (&["--profile", "linux-7.3", "--schedstat-version", "15"], "version 15\n"),
    ] {
        stdout(&[&run[..], options].concat());
        assert!(fs::read_to_string(&file).unwrap().starts_with(version), "{options:?}");
    }
}

#[test]
fn a_page_is_written() {
    let dir = directory("a_page");
    fs::write(dir.join("e.toml"), EXPERIMENT).unwrap();
    let (experiment, page) = (dir.join("e.toml"), dir.join("e.html"));
    assert_eq!(stdout(&["compare", experiment.to_str().unwrap(), "--html", page.to_str().unwrap()]), "");
    let text = fs::read_to_string(page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
    assert_eq!(names(&dir), ["e.html", "e.toml"]);
}

/// A run that fails half-way: nothing is left of its files, and what was there before stays.
#[test]
fn a_failed_run_leaves_nothing() {
    let dir = directory("a_failed_run");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    fs::write(dir.join("old"), "old").unwrap();
    let endless = "hackbench -g 1 -f 2 -l 100000000 --pipe";
    let (trace, old) = (path("t.pftrace"), path("old"));
    let ran = coreward(&[
        "run",
        endless,
        "--machine",
        "1n1l1c1t",
        "--time-limit",
        "1",
        "--trace",
        &trace,
        "--schedstat",
        &old,
    ]);
    assert_eq!(ran.status, 2);
    assert_eq!(names(&dir), ["old"]);
    assert_eq!(fs::read_to_string(dir.join("old")).unwrap(), "old");
}

#[test]
fn a_failed_comparison_leaves_nothing() {
    let dir = directory("a_failed_comparison");
    let endless = EXPERIMENT
        .replace("-l 10", "-l 100000000")
        .replace("runs = 2", "runs = 1\ntime_limit = 1")
        .replace("1n2l2c1t", "1n1l1c1t");
    fs::write(dir.join("e.toml"), endless).unwrap();
    let (experiment, page) = (dir.join("e.toml"), dir.join("e.html"));
    let ran = coreward(&["compare", experiment.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    let message = "coreward: e: a, seed 1: the workload did not end within 1 s of simulated time (--time-limit, or time_limit of an \
                   experiment, allowed are 1 to 1000000)\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (2, message), "the first side, whichever ends first");
    assert_eq!(names(&dir), ["e.toml"]);
}

/// Found before anything is run: the workload of this test would not end.
#[test]
fn a_target_that_cannot_be_written_is_refused_at_once() {
    let dir = directory("cannot_be_written");
    let run = ["run", "hackbench -g 100 -l 100000000", "--machine", "1n2l2c1t"];
    let inside = dir.join("no/t.pftrace").to_str().unwrap().to_owned();
    let directory = dir.to_str().unwrap();
    for (target, reason) in [
        (inside.as_str(), "No such file or directory (os error 2)"),
        (directory, "it is a directory"),
        ("/", "it is a directory"),
    ] {
        let ran = coreward(&[&run[..], &["--trace", target]].concat());
        assert_eq!(ran.stderr, format!("coreward: --trace: cannot write {target}: {reason}\n"));
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    }
    assert!(names(&dir).is_empty());
}

/// An experiment of two cases, in a directory of its own.
const CASES: &str = r#"name = "cases"
machine = "1n2l2c1t"
runs = 2
headline = ["runtime_s"]
published = [
    { id = "T-1", case = "small", metric = "runtime_s", delta_pct = 5, source = "a table" },
    { id = "T-2", case = "large", variant = "c", metric = "runtime_s", statistic = "p75", delta_pct = 7, source = "a table" },
]
[baseline]
label = "a"
[[variant]]
label = "b"
sched_feat = ["WAKEUP_BIAS_PREV"]
[[variant]]
label = "c"
[[case]]
label = "small"
workload = "hackbench -g 1 -f 2 -l 10 -T --pipe"
[[case]]
label = "large"
workload = "hackbench -g 2 -f 2 -l 20 -T --pipe"
runs = 3
"#;

#[test]
fn cases_are_sections_of_the_report() {
    let dir = directory("cases");
    fs::create_dir_all(dir.join("b/c")).unwrap();
    fs::write(dir.join("b/c/cases.toml"), CASES).unwrap();
    fs::write(dir.join("a.toml"), EXPERIMENT).unwrap();
    fs::write(dir.join("b/notes.txt"), "not an experiment").unwrap();
    let report = stdout(&["compare", dir.to_str().unwrap()]);
    let mut rest = report.as_str();
    for part in [
        "machine   1n2l2c1t\nworkload  hackbench -g 1 -f 2 ",
        "runs      2 a side, from seed 1\nside      a: linux-6.12\n",
        "\n\ne\n",
        "\n\nmachine   1n2l2c1t\nside      a: linux-6.12\n",
        "\nside      c: linux-6.12\n\ncase      small\nworkload  hackbench -g 1 -f 2 ",
        "\nruns      2 a side, from seed 1\n\ncases: small\n",
        "\nruntime_s |           -           -    5.00% |",
        "T-1: a table\n\ncase      large\nworkload  hackbench -g 2 -f 2 ",
        "\nruns      3 a side, from seed 1\n\ncases: large\n",
        // variant c is the baseline
        "\nruntime_s p75 |           -           -    7.00% |",
        "    0.00% |   -7.00  c: T-2: a table\n",
    ] {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} is not in its place in\n{report}")).1;
    }

    let json: serde_json::Value =
        serde_json::from_str(&stdout(&["compare", dir.to_str().unwrap(), "--json"])).unwrap();
    assert_eq!(json[0]["baseline"]["label"], "a");
    assert_eq!(json[1]["experiment"], "cases");
    assert_eq!(
        (&json[1]["cases"][0]["case"], &json[1]["cases"][1]["case"]),
        (&"small".into(), &"large".into())
    );
    assert_eq!(json[1]["cases"][1]["published"][0]["statistic"], "p75");
    assert_eq!(json[1]["cases"][1]["published"].as_array().unwrap().len(), 1);

    let page = dir.join("e.html");
    let file = dir.join("b/c/cases.toml");
    stdout(&["compare", file.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<h1>small</h1>") && page.contains("<h1>large</h1>"));
}
