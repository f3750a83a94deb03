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
    let experiment = experiment.to_str().unwrap();
    let table = stdout(&["compare", experiment]);
    assert_eq!(stdout(&["compare", experiment, "--html", page.to_str().unwrap()]), table);
    let text = fs::read_to_string(page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
    assert_eq!(names(&dir), ["e.html", "e.toml"]);
}

/// Table, JSON and page of one run; and every one of them says what was run and how to repeat it.
#[test]
fn all_outputs_at_once_with_the_whole_recipe() {
    let dir = directory("all_outputs");
    fs::write(dir.join("e.toml"), EXPERIMENT).unwrap();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (experiment, json_file, page) =
        (path("e.toml"), format!("--json={}", path("e.json")), path("e.html"));
    let compare = ["compare", &experiment, "--cost", "pipe_op_ns=900", "--scale", "0.5"];
    let table = stdout(&[&compare[..], &[&json_file, "--html", &page]].concat());
    assert_eq!(table, stdout(&compare));
    let json_text = fs::read_to_string(path("e.json")).unwrap();
    assert_eq!(
        json_text,
        stdout(&[&compare[..], &["--json", "--html", &page]].concat()),
        "instead of the table"
    );

    let command = format!("coreward compare {experiment} --cost pipe_op_ns=900 --runs 2 --scale 0.5");
    let html = fs::read_to_string(&page).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json_text).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for part in [
        "1n2l2c1t",
        "hackbench -g 1 -f 2 --threads",
        &command,
        "linux-6.12 with WAKEUP_BIAS_PREV, pipe_op_ns=900",
        version,
    ] {
        assert!(table.contains(part), "{part} is not in {table}");
        assert!(html.contains(part), "{part} is not in {html}");
    }
    assert!(html.contains("; 2 runs, seeds 1 to 2<"), "{html}");
    // a look at a run of each side: the machine, its moves, the time
    assert_eq!(html.matches("class=\"floor\"").count(), 2, "{html}");
    assert_eq!(html.matches("from LLC, to").count(), 2, "{html}");
    assert_eq!(html.matches("<summary>Over time</summary>").count(), 2, "{html}");
    assert!(!html.contains("<script") && html.contains("All figures, as JSON"), "{html}");
    let recipe = &json["recipe"];
    assert_eq!((&recipe["command"], &recipe["version"]), (&command.into(), &version.into()));
    assert_eq!(recipe["machine"], "1n2l2c1t: 1 node of 2 LLCs of 2 cores of 1 thread");
    assert_eq!(recipe["scale"], "0.5");
    for side in [&json["baseline"], &json["variants"][0]] {
        assert_eq!(
            (&side["profile"], &side["seed"], &side["runs"]),
            (&"linux-6.12".into(), &1.into(), &2.into())
        );
        assert_eq!(side["values"]["runtime_s"].as_array().unwrap().len(), 2);
    }
    // the command makes the same runs
    let words: Vec<_> = json["recipe"]["command"].as_str().unwrap().split(' ').skip(1).collect();
    assert_eq!(stdout(&words), table);
}

/// Without an experiment file, and the command in the report repeats it.
#[test]
fn a_comparison_without_a_file() {
    let compare = |options: &[&str]| {
        let ad_hoc = ["compare", WORKLOAD, "--machine", "1n2l2c1t", "--with", "WAKEUP_BIAS_PREV"];
        stdout(&[&ad_hoc[..], options].concat())
    };
    let report =
        compare(&["--with", "NO_TTWU_QUEUE,base_slice_ns=2ms", "--runs", "3", "--headline", "wakeups"]);
    for part in [
        "side      linux-6.12: linux-6.12\nside      WAKEUP_BIAS_PREV: linux-6.12 with WAKEUP_BIAS_PREV\n\
         side      NO_TTWU_QUEUE,base_slice_ns=2ms: linux-6.12 with NO_TTWU_QUEUE, base_slice_ns=2000000\n",
        "command   coreward compare \"hackbench -g 1 -f 2 -l 10 -T --pipe\" --machine 1n2l2c1t --profile linux-6.12 \
         --with WAKEUP_BIAS_PREV --with NO_TTWU_QUEUE,base_slice_ns=2ms --seed 1 --headline wakeups --runs 3\n",
        "\nCI95     wakeups ",
    ] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    // the file that says the same
    let dir = directory("without_a_file");
    let file = dir.join("e.toml");
    fs::write(
        &file,
        EXPERIMENT
            .replace("label = \"a\"", "label = \"linux-6.12\"")
            .replace("\"b\"", "\"WAKEUP_BIAS_PREV\""),
    )
    .unwrap();
    let table = |report: &str| report[report.find("\nMin ").unwrap()..].to_owned();
    let by_file = stdout(&["compare", file.to_str().unwrap(), "--headline", "runtime_s"]);
    assert_eq!(table(&compare(&["--runs", "2", "--headline", "runtime_s"])), table(&by_file));
    // what is asked about unless something else is said
    let json: serde_json::Value = serde_json::from_str(&compare(&["--runs", "2", "--json"])).unwrap();
    assert_eq!(json["headline"], serde_json::json!(["messages_per_s", "cpu_migrations"]));
}

/// The file that `init` writes is an experiment, and nothing is overwritten.
#[test]
fn an_experiment_to_start_from() {
    let dir = directory("an_experiment_to_start_from");
    let file = dir.join("mine.toml");
    let path = file.to_str().unwrap();
    assert_eq!(stdout(&["experiment", "init", path]), "");
    assert!(
        stdout(&["compare", path, "--runs", "1"])
            .contains("WAKEUP_BIAS_PREV: not tested, it takes two runs a side\n")
    );
    fs::write(&file, "mine").unwrap();
    let ran = coreward(&["experiment", "init", path]);
    let message =
        format!("coreward: cannot write {path}: it exists already, allowed is the name of a new file\n");
    assert_eq!((ran.status, ran.stderr), (2, message));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
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
    let new = format!("{directory}/new/");
    for (target, reason) in [
        (inside.as_str(), "No such file or directory (os error 2)"),
        (directory, "it is a directory"),
        ("/", "it is a directory"),
        (new.as_str(), "it is not a file name"),
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
        "coreward  0.1.0\nmachine   1n2l2c1t\nworkload  hackbench -g 1 -f 2 ",
        "runs      2 a side, from seed 1\nside      a: linux-6.12\n",
        "\n\ne\n",
        "\n\ncoreward  0.1.0\nmachine   1n2l2c1t\nside      a: linux-6.12\n",
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

/// An older file is there until nothing can be wrong with any of the new ones.
#[test]
fn no_output_takes_its_place_if_another_one_cannot_be_written() {
    let dir = directory("no_output_takes_its_place");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (old, experiment, table) = (path("old"), path("e.toml"), path("full.csv"));
    std::os::unix::fs::symlink("/dev/full", &table).unwrap();
    fs::write(&experiment, EXPERIMENT).unwrap();
    let run = ["run", WORKLOAD, "--machine", "1n2l2c1t"];
    for command in [
        &[&run[..], &["--ftrace", &old, "--html", "/dev/full"]].concat()[..],
        &[&run[..], &["--trace", &old, "--schedstat", "/dev/full"]].concat(),
        &[&run[..], &["--html", &old, "--output", &table]].concat(),
        &["compare", &experiment, "--html", &old, "--json=/dev/full"],
    ] {
        fs::write(&old, "old").unwrap();
        let out = coreward(command);
        assert!(out.status == 2 && out.stderr.contains("full"), "{command:?}: {}", out.stderr);
        assert_eq!(fs::read_to_string(&old).unwrap(), "old", "{command:?}");
    }
}
