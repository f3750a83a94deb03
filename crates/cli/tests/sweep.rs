//! `coreward sweep`: however it is run, its results are the same bytes; every key of its file moves something.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::{coreward, directory, stdout};
use serde_json::Value;

const SWEEP: &str = r#"name = "small"
machines = ["2n2l2c1t", "1n2l4c2t"]
workloads = ["hackbench -g <cpus/4> -f 4 -T --pipe -l 30", "perf bench sched pipe -l 400"]
profile = "linux-6.5"
runs = 3
list = ["WAKEUP_BIAS_PREV"]

[grid]
SIS_UTIL = [true, false]
base_slice_ns = [700000, "3ms"]

[latin_hypercube]
points = 3
[latin_hypercube.vary]
pipe_op_ns = { from = 200, to = 5000, log = true }
"#;

fn file(dir: &Path, text: &str) -> String {
    let path = dir.join("sweep.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn json(file: &str) -> Value {
    serde_json::from_str(&stdout(&["sweep", file, "--json"])).unwrap()
}

fn keys(state: &Path) -> Vec<String> {
    let text = fs::read_to_string(state).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["key"].as_str().unwrap().to_owned()).collect()
}

/// Nine sides of two workloads on two machines, three runs of each; SIS_UTIL is on already.
const RUNS: usize = 9 * 2 * 2 * 3;

#[test]
fn whole_sharded_and_killed_sweeps_give_the_same_bytes() {
    let dir = directory("sweep_ways");
    let file = file(&dir, SWEEP);
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let whole = stdout(&["sweep", &file, "--json", "--jobs", "1"]);
    assert_eq!(stdout(&["sweep", &file, "--json", "--jobs", "5"]), whole);
    let report: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(report["summary"]["points"], RUNS);

    let shards: Vec<String> = (0..4).map(|i| path(&format!("shard{i}"))).collect();
    for (i, state) in shards.iter().enumerate() {
        let said = stdout(&["sweep", &file, "--shard", &format!("{i}/4"), "--state", state]);
        assert_eq!(said, format!("shard {i}/4: {} runs are kept\n", RUNS / 4));
    }
    let all = path("all");
    let mut merge = vec!["sweep", &file, "--json", "--state", &all];
    merge.extend(shards.iter().flat_map(|state| ["--merge", state]));
    let read = |names: &[String]| names.iter().map(|name| fs::read(name).unwrap()).collect::<Vec<_>>();
    let before = read(&shards);
    assert_eq!(stdout(&merge), whole);
    assert_eq!(read(&shards), before, "files that are merged are only read");
    // of two runs that everything which decides them makes equal, one was made
    let distinct = keys(Path::new(&all)).len();
    assert!((RUNS * 7 / 9..RUNS).contains(&distinct), "{distinct}");

    let killed = path("killed");
    let line = ["sweep", &file, "--json", "--jobs", "1", "--state", &killed];
    for percent in [30, 60, 90] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coreward"));
        let mut child = command.args(line).stdout(Stdio::null()).spawn().unwrap();
        while keys(Path::new(&killed)).len() < distinct * percent / 100 && child.try_wait().unwrap().is_none()
        {
            sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(keys(Path::new(&killed)).len() >= distinct * percent / 100);
    }
    assert_eq!(stdout(&line), whole);
    let kept = keys(Path::new(&killed));
    assert_eq!(
        (kept.len(), kept.iter().collect::<BTreeSet<_>>().len()),
        (distinct, distinct),
        "nothing twice"
    );
    let bytes = fs::read(&killed).unwrap();
    assert_eq!(stdout(&line), whole);
    assert_eq!(fs::read(&killed).unwrap(), bytes, "nothing was left to do");
    // a sweep that was extended makes only what is new: the baseline and three settings have a fourth run, and there is one
    // setting more
    fs::write(&file, SWEEP.replace("[\"WAKEUP_BIAS_PREV\"]", "[\"WAKEUP_BIAS_PREV\", \"NO_TTWU_QUEUE\"]"))
        .unwrap();
    stdout(&line);
    assert_eq!(keys(Path::new(&killed)).len(), distinct + 2 * 2 * 3);
}

#[test]
fn each_run_that_is_left_can_be_made_by_itself() {
    let dir = directory("sweep_left");
    let file = file(&dir, SWEEP);
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (all, few) = (path("all"), path("few"));
    let whole = stdout(&["sweep", &file, "--json", "--state", &all]);
    let distinct = keys(Path::new(&all));
    let left = |states: &[&str]| stdout(&[&["sweep", &file, "--left"], states].concat());
    assert_eq!(left(&["--state", &all]), "");

    let before = left(&[]);
    assert_eq!(before.lines().count(), distinct.len(), "of equal runs one is named");
    let first = "0/108 hackbench -g 2 -f 4 --threads --pipe -l 30 -s 100 on 2n2l2c1t, baseline, seed 1";
    assert!(before.lines().any(|line| line == first), "{before}");

    let shards: Vec<&str> = before.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    let mut line = vec!["sweep", &file, "--state", &few];
    line.extend(shards[..5].iter().flat_map(|shard| ["--shard", shard]));
    assert!(stdout(&line).ends_with(": 5 runs are kept\n"));
    assert_eq!(keys(Path::new(&few)).len(), 5);
    let rest: Vec<&str> = before.lines().skip(5).collect();
    assert_eq!(left(&["--state", &few]).lines().collect::<Vec<_>>(), rest);
    assert_eq!(left(&["--merge", &few]).lines().collect::<Vec<_>>(), rest);
    assert_eq!(stdout(&["sweep", &file, "--json", "--state", &few]), whole);
    assert_eq!(keys(Path::new(&few)).iter().collect::<BTreeSet<_>>(), distinct.iter().collect());
}

#[test]
fn a_cell_is_what_compare_prints() {
    // shorter ones, since the command has to tell that, too
    let report = json(&file(&directory("sweep_cell"), &SWEEP.replace("runs = 3", "runs = 3\nscale = 0.5")));
    assert_eq!(report["scale"], 0.5);
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8 * 2 * 2);
    for cell in [&cells[0], &cells[12], &cells[31]] {
        let command = cell["command"].as_str().unwrap();
        // a workload of several words is in quotes
        let words: Vec<&str> = command.split('"').collect();
        let [head, workload, rest] = words[..] else { panic!("{command}") };
        let mut line = vec![head.split_whitespace().nth(1).unwrap(), workload];
        line.extend(rest.split_whitespace().chain(["--json"]));
        let compared: Value = serde_json::from_str(&stdout(&line)).unwrap();
        let variant = &compared["variants"][0];
        assert_eq!(variant["label"], cell["setting"]);
        for figure in cell["figures"].as_array().unwrap() {
            let metric = figure["metric"].as_str().unwrap();
            for field in ["delta_pct", "interval_pct", "p_value"] {
                assert_eq!(figure[field], variant[field][metric], "{command}: {metric}");
            }
        }
    }
}

#[test]
fn every_key_moves_something() {
    let dir = directory("sweep_keys");
    let of = |text: &str| json(&file(&dir, text));
    let usual = of(SWEEP);
    let hash = |report: &Value| report["summary"]["results_sha256"].clone();
    for (from, to) in [
        ("\"2n2l2c1t\"", "\"2n2l2c2t\""),
        ("-l 400", "-l 500"),
        ("linux-6.5", "linux-6.12"),
        ("runs = 3", "runs = 4"),
        ("runs = 3", "runs = 3\nseed = 7"),
        ("runs = 3", "runs = 3\nscale = 0.5"),
        ("runs = 3", "runs = 3\nbaseline = \"NO_TTWU_QUEUE\""),
        ("[\"WAKEUP_BIAS_PREV\"]", "[\"NO_WAKEUP_PREEMPTION\"]"),
        ("700000", "100000"),
        ("points = 3", "points = 4"),
        ("from = 200", "from = 2000"),
    ] {
        assert!(SWEEP.contains(from));
        assert_ne!(hash(&of(&SWEEP.replace(from, to))), hash(&usual), "{to}");
    }
    let order = of(&SWEEP.replace("points = 3", "points = 3\nseed = 2"));
    assert_eq!(hash(&order), hash(&of(&SWEEP.replace("points = 3", "points = 3\nseed = 2"))));
    assert_ne!(hash(&order), hash(&usual), "another seed of the hypercube is another order");
    let figures = |report: &Value| report["cells"][0]["figures"].as_array().unwrap().len();
    let other = of(&SWEEP.replace("runs = 3", "runs = 3\nmetrics = [\"runtime_s\"]"));
    assert_eq!((figures(&usual), figures(&other)), (2, 1));
    // other metrics of the same runs
    assert_eq!(hash(&other), hash(&usual));
}

/// What cannot be overlooked is found and is last, what does nothing is said to do nothing, and what has no effect but
/// chance is rarely beyond noise.
#[test]
fn the_worst_setting_is_last_and_an_idle_one_is_the_same() {
    let text = "name = \"control\"\nmachines = [\"1n2l4c2t\"]\nruns = 4\n\
                workloads = [\"hackbench -g 2 -f 4 -T --pipe -l 30\"]\n\
                list = [\"pipe_op_ns=90000\", \"NO_ASYM_WAKE_SCAN\"]\n";
    let dir = directory("sweep_control");
    let path = file(&dir, text);
    let report = json(&path);
    let settings: Vec<_> =
        report["settings"].as_array().unwrap().iter().map(|s| s["setting"].as_str().unwrap()).collect();
    assert_eq!(settings, ["NO_ASYM_WAKE_SCAN", "pipe_op_ns=90000"]);
    assert_eq!(report["settings"][1]["worse"], 1);
    assert_eq!((&report["cells"][1]["same_runs"], &report["summary"]["same"]), (&4.into(), &1.into()));
    let text = stdout(&["sweep", &path, "--all"]);
    assert!(text.contains("      0      1  pipe_op_ns=90000"), "{text}");
    assert!(text.contains("        =") && text.contains("messages_per_s: NO_ASYM_WAKE_SCAN"), "{text}");
    assert_eq!(coreward(&["sweep", &path, "--check"]).status, 0, "no invariant is broken");
    let out = dir.join("report.json");
    stdout(&["sweep", &path, &format!("--json={}", out.display())]);
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(out).unwrap()).unwrap(), report);
}

/// The fields of the JSON are those that the page explains.
#[test]
fn the_page_names_every_field() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sweep.md");
    let page = fs::read_to_string(page).unwrap();
    let report = json(&file(&directory("sweep_fields"), SWEEP));
    let of = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let cell = &report["cells"][0];
    for field in [&report, &report["summary"], &report["settings"][0], cell, &cell["figures"][0]]
        .into_iter()
        .flat_map(of)
    {
        assert!(page.contains(&format!("`{field}`")), "`{field}` is not in the page");
    }
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let dir = directory("sweep_refused");
    let path = file(&dir, SWEEP);
    let refused = |arguments: &[&str], message: &str| {
        let ran = coreward(arguments);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.stderr.starts_with(&format!("coreward: {message}")), "{message}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    };
    for (from, to, message) in [
        ("name =", "nam =", ":1: unknown field `nam`"),
        ("\"2n2l2c1t\"", "\"2n2l2c1t\", \"2n2l2c1t\"", ":2: machines: 2n2l2c1t is named twice"),
        ("\"2n2l2c1t\"", "\"epyc\"", ":2: machines: "),
        ("<cpus/4>", "<cpus-4>", ":3: --workload: `<cpus-4>`"),
        ("linux-6.5", "linux-9.9", ":4: profile: unknown profile `linux-9.9`"),
        ("runs = 3", "runs = 1", ":5: runs is 1, allowed are 2 to 1000"),
        ("runs = 3", "runs = 3\nscale = 2", ":6: scale is 2, allowed are 0.000001 to 1"),
        ("runs = 3", "runs = 3\nbaseline = \"X\"", ":6: baseline: unknown feature `X`"),
        (
            "runs = 3",
            "runs = 3\nmetrics = [\"wakeups\"]",
            ":6: metrics: neither direction of wakeups is better",
        ),
        ("WAKEUP_BIAS_PREV", "WAKEUP_BAIS_PREV", ":6: unknown feature `WAKEUP_BAIS_PREV`, did you mean"),
        ("[true, false]", "true", ":9: grid.SIS_UTIL: allowed is a list"),
        ("points = 3", "points = 0", ":13: latin_hypercube.points is 0"),
        ("from = 200", "from = 0", ":15: latin_hypercube.pipe_op_ns: allowed are a list"),
        ("to = 5000", "to = 5000000000000", ":13: pipe_op_ns is "),
    ] {
        assert!(SWEEP.contains(from));
        let wrong = dir.join("wrong.toml");
        fs::write(&wrong, SWEEP.replace(from, to)).unwrap();
        let wrong = wrong.to_str().unwrap();
        refused(&["sweep", wrong], &format!("{wrong}{message}"));
    }
    let other = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    refused(&["sweep", &other("none")], "cannot read ");
    refused(
        &["sweep", &path, "--shard", "0/4"],
        "the following required arguments were not provided: --state",
    );
    refused(
        &["sweep", &path, "--shard", "4/4", "--state", &other("s")],
        "invalid value '4/4' for '--shard <I/N>'",
    );
    refused(&["sweep", &path, "--merge", &other("none")], "--merge: cannot open ");
    refused(&["sweep", &path, "--state", &path], "--state: ");
    refused(&["sweep", &path, &format!("--json={path}")], "--json: cannot write ");
    assert_eq!(fs::read_to_string(&path).unwrap(), SWEEP);
    let left: BTreeSet<PathBuf> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_page_has_every_setting_and_all_figures() {
    let dir = directory("sweep_page");
    let (sweep, page) = (file(&dir, SWEEP), dir.join("s.html"));
    let printed = stdout(&["sweep", &sweep, "--html", page.to_str().unwrap()]);
    assert_eq!(printed, stdout(&["sweep", &sweep]), "a page does not change the report");
    let text = fs::read_to_string(page).unwrap();
    let report = json(&sweep);
    for setting in report["settings"].as_array().unwrap() {
        let row = format!("<th scope=\"row\">{}</th>", setting["setting"].as_str().unwrap());
        assert!(text.contains(&row), "{row}");
    }
    let (_, data) = text.split_once("<pre class=\"data\">").unwrap();
    let (data, _) = data.split_once("</pre>").unwrap();
    let data = data.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    assert_eq!(serde_json::from_str::<Value>(&data).unwrap(), report);
}
