//! Published figures beside simulated ones: what `coreward fidelity` says of them.

mod common;

use std::fs;

use common::{coreward, directory, stdout};
use serde_json::Value;

/// `slow` makes the run longer whatever the model says, `same` is the baseline.
const EXPERIMENT: &str = r#"name = "tiny"
source = "a table"
family = "pipes"
machine = "1n2l2c1t"
runs = 2
headline = ["runtime_s", "messages_per_s"]
published = [
    { id = "T-1", case = "small", metric = "runtime_s", baseline = 10, patched = 20, spread_pct = 3 },
    { id = "T-2", case = "small", metric = "messages_per_s", delta_pct = 50, spread_pct = 3 },
    { id = "T-3", case = "small", metric = "runtime_s", delta_pct = 1, spread_pct = 1 },
    { id = "T-4", case = "small", variant = "same", metric = "runtime_s", delta_pct = -3.9 },
    { id = "T-5", case = "small", variant = "same", metric = "runtime_s", delta_pct = -4.1 },
    { id = "T-6", case = "large", metric = "events_per_s", delta_pct = 9 },
    { id = "T-7", case = "large", metric = "stalled_cycles", delta_pct = 9 },
    { id = "T-8", case = "large", metric = "runtime_s", baseline = 0, patched = 9 },
    { id = "T-9", case = "large", metric = "runtime_s", statistic = "max", delta_pct = -80, spread_pct = 30 },
]
[baseline]
label = "fast"
cost = { pipe_op_ns = 0 }
[[variant]]
label = "slow"
cost = { pipe_op_ns = 100000 }
[[variant]]
label = "same"
[[case]]
label = "small"
workload = "hackbench -g 1 -f 2 -l 10 -T --pipe"
[[case]]
label = "large"
workload = "hackbench -g 2 -f 2 -l 10 -T --pipe"
[[ablation]]
label = "no pipe cost"
cost = { pipe_op_ns = 0 }
"#;

/// What the command writes as JSON; what it says on standard error is only how long things took.
fn report(dir: &std::path::Path, options: &[&str]) -> Value {
    let ran = coreward(&[&["fidelity", dir.to_str().unwrap(), "--json"][..], options].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.lines().all(|line| line.ends_with(" s")), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_row_of_each_kind() {
    let dir = directory("fidelity_rows");
    fs::write(dir.join("tiny.toml"), EXPERIMENT).unwrap();
    // without published figures: left out
    let silent = EXPERIMENT.split("published").next().unwrap().replace("tiny", "silent").to_owned();
    fs::write(dir.join("silent.toml"), silent + &EXPERIMENT[EXPERIMENT.find("[baseline]").unwrap()..])
        .unwrap();
    let report = report(&dir, &[]);
    let family = &report["families"][0];
    assert_eq!((&family["name"], report["families"].as_array().unwrap().len()), (&"pipes".into(), 1));
    let rows = family["rows"].as_array().unwrap();
    let verdicts: Vec<_> =
        rows.iter().map(|row| [&row["id"], &row["verdict"]].map(|v| v.as_str().unwrap())).collect();
    assert_eq!(
        verdicts,
        [
            ["T-1", "right_sign"],
            ["T-2", "wrong_sign"],
            ["T-3", "null_missed"],
            ["T-4", "null_ok"],
            ["T-5", "wrong_sign"],
            ["T-6", "no_figure"],
            ["T-7", "not_simulated"],
            ["T-8", "no_published_change"],
            ["T-9", "right_sign"],
        ]
    );
    assert_eq!(rows[0]["published_pct"], -100.0);
    assert_eq!(rows[3]["simulated_pct"], 0.0, "the same seeds");
    let score = |name: &str| report["overall"][name].as_u64().unwrap();
    assert_eq!(
        ["compared", "scored", "right", "null", "null_ok", "not_compared"].map(score),
        [7, 5, 2, 2, 1, 2]
    );
}

/// Both sides are the same: no effect is found, and nothing where there is nothing.
#[test]
fn negative_control() {
    let dir = directory("fidelity_control");
    let same = EXPERIMENT.replace("100000", "0");
    fs::write(dir.join("tiny.toml"), same).unwrap();
    let report = report(&dir, &[]);
    for row in report["families"][0]["rows"].as_array().unwrap() {
        let verdict = row["verdict"].as_str().unwrap();
        assert!(
            ["wrong_sign", "null_ok", "no_figure", "not_simulated", "no_published_change"].contains(&verdict),
            "{row}"
        );
    }
    assert_eq!((&report["overall"]["right"], &report["overall"]["null_ok"]), (&0.into(), &2.into()));
}

#[test]
fn the_page_is_the_same_whatever_the_jobs() {
    let dir = directory("fidelity_page");
    fs::write(dir.join("tiny.toml"), EXPERIMENT).unwrap();
    let (experiment, page) = (dir.join("tiny.toml"), dir.join("page.md"));
    let write = |jobs: &str| {
        let (experiment, page) = (experiment.to_str().unwrap(), page.to_str().unwrap());
        let options = ["--output", page, "--jobs", jobs, "--ablations", "--revision", "abc"];
        let ran = coreward(&[&["fidelity", experiment], &options[..]].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("tiny: ") && ran.stderr.ends_with(" s\n"), "{}", ran.stderr);
        fs::read_to_string(page).unwrap()
    };
    let once = write("1");
    assert_eq!(write("2"), once);
    let record = dir.join("record.json");
    let options = ["--record", record.to_str().unwrap(), "--revision", "abc"];
    let with_record =
        coreward(&[&["fidelity", experiment.to_str().unwrap(), "--ablations"], &options[..]].concat());
    assert_eq!(with_record.stdout, once);
    let scores: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    let family = &scores["families"]["pipes"];
    assert_eq!((&family["revision"], &family["compared"]), (&"abc".into(), &7.into()));
    assert_eq!(&scores["overall"]["compared"], &family["compared"]);
    assert_eq!(family["model"].as_str().unwrap().len(), 8);
    fs::remove_file(&record).unwrap();
    let shown = coreward(&["fidelity", experiment.to_str().unwrap(), "--ablations", "--revision", "abc"]);
    assert_eq!(shown.stdout, once, "on standard output without --output");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);

    let mut rest = once.as_str();
    for part in [
        "# Published and simulated changes\n",
        "\n## Summary\n",
        "\n| pipes ",
        "\n| **all** ",
        "\n## pipes\n",
        "\n| T-1 | tiny: small       | runtime_s      | right sign          |    -100.0 |    3.0 |",
        "\n| T-4 | tiny: small: same | runtime_s      | null ok             |      -3.9 |  2.0\\* |",
        "\n| T-6 | tiny: large       | events_per_s   | no figure           |      +9.0 |  2.0\\* | ",
        "\n| T-9 | tiny: large       | runtime_s max  | right sign          |     -80.0 |   30.0 | ",
        "\n## Which mechanism carries the effect\n",
        "\n### tiny: small\n\n| switched off | variant |",
        "\n| nothing      | slow    | -",
        "\n| nothing      | same    |",
        "\n| no pipe cost | slow    |",
    ] {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} is not in its place in\n{once}")).1;
    }
    assert!(!rest.contains("tiny: large"), "ablations are of the first case");

    let other = coreward(&["fidelity", experiment.to_str().unwrap(), "--runs", "1", "--scale", "0.5"]).stdout;
    assert!(
        other.contains("\nThese runs are not those that the experiments ask for: --runs 1 --scale 0.5.\n")
    );
}

#[test]
fn intervals_show_what_a_change_hangs_on() {
    let dir = directory("fidelity_intervals");
    fs::write(dir.join("tiny.toml"), EXPERIMENT).unwrap();
    let rows = |options: &[&str]| {
        let report = report(&dir, options);
        let rows = report["families"][0]["rows"].as_array().unwrap().clone();
        let count = |name: &str| report["overall"][name].as_u64().unwrap();
        (rows, [count("with_interval"), count("covered")])
    };
    let (without, counts) = rows(&[]);
    assert!(without.iter().all(|row| row.get("interval_pct").is_none()) && counts == [0, 0]);
    assert_eq!(rows(&["--intervals"]), (without.clone(), counts), "the experiment names no points");
    let (with, counts) = rows(&["--intervals=10"]);
    let file = dir.join("tiny.toml");
    fs::write(&file, EXPERIMENT.replace("runs = 2", "runs = 2\npoints = 10")).unwrap();
    assert_eq!(rows(&["--intervals"]), (with.clone(), counts), "now it does");
    // T-1 is of the variant that is slow whatever the other costs are, T-4 of one that is the baseline
    let ends = |i: usize| [0, 1].map(|end| with[i]["interval_pct"][end].as_f64().unwrap());
    assert!(ends(0)[0] < ends(0)[1] && ends(0)[1] < -100.0, "{:?}", ends(0));
    assert_eq!(ends(3), [0.0, 0.0]);
    assert!(with[8].get("interval_pct").is_none(), "the largest of many runs");
    assert_eq!(with[0]["at_points_pct"].as_array().unwrap().len(), 10);
    assert_eq!(counts, [5, 0], "of no row is the published change in it");
    let same = |row: &Value| {
        let mut row = row.clone();
        let of_interval = ["interval_pct", "interval_part", "at_points_pct"];
        row.as_object_mut().unwrap().retain(|key, _| !of_interval.contains(&key.as_str()));
        row
    };
    assert_eq!(with.iter().map(same).collect::<Vec<_>>(), without);

    // shorter runs at the points: another interval of the same change, and it says so
    fs::write(&file, EXPERIMENT.replace("runs = 2", "runs = 2\npoints = 10\npoints_scale = 0.3")).unwrap();
    let (shorter, _) = rows(&["--intervals"]);
    assert_eq!(shorter.iter().map(same).collect::<Vec<_>>(), without);
    assert_ne!(shorter[0]["interval_pct"], with[0]["interval_pct"]);
    assert_eq!((&shorter[0]["interval_part"], with[0].get("interval_part")), (&Value::from(0.3), None));
    let page = coreward(&["fidelity", dir.to_str().unwrap(), "--intervals"]).stdout;
    assert!(page.lines().any(|line| line.starts_with("| T-4 ") && line.ends_with("+0.0 to +0.0 (0.3) |")));
}

#[test]
fn a_killed_command_continues_with_what_is_finished() {
    let dir = directory("fidelity_state");
    let (first, second) = (dir.join("first.toml"), dir.join("second.toml"));
    for file in [&first, &second] {
        let name = file.file_stem().unwrap().to_str().unwrap();
        fs::write(file, EXPERIMENT.replace("name = \"tiny\"", &format!("name = \"{name}\""))).unwrap();
    }
    let state = dir.join("state.jsonl");
    let [first, second, state] = [&first, &second, &state].map(|path| path.to_str().unwrap());
    let run = |files: &[&str], options: &[&str]| {
        let ran = coreward(&[&["fidelity"], files, &["--state", state], options].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let names: String =
            ran.stderr.lines().filter_map(|line| line.split_once(':')).map(|(n, _)| n).collect();
        (names, ran.stdout)
    };
    assert_eq!(run(&[first], &[]).0, "first");
    let (made, page) = run(&[first, second], &[]);
    assert_eq!(made, "second", "the first one is kept");
    assert_eq!(page, coreward(&["fidelity", first, second]).stdout, "nothing shows that it was");
    assert_eq!(run(&[first, second], &["--runs", "1"]).0, "firstsecond", "these are other runs");
    fs::write(first, fs::read_to_string(first).unwrap() + "\n# a change\n").unwrap();
    assert_eq!(run(&[first, second], &[]).0, "first");
    let ran = coreward(&["matrix", "--with", "NO_SIS_UTIL", "--state", state]);
    assert_eq!((ran.status, ran.stderr.contains(state)), (2, true), "{}", ran.stderr);
}

#[test]
fn a_few_experiments_are_run_again_and_the_page_is_of_all() {
    let dir = directory("fidelity_results");
    let experiment = |name: &str, family: &str| {
        let file = dir.join(format!("{name}.toml"));
        let named = EXPERIMENT.replace("name = \"tiny\"", &format!("name = \"{name}\""));
        let named = named.replace("runs = 2", "runs = 1");
        fs::write(&file, named.replace("\"pipes\"", &format!("\"{family}\""))).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (first, second, third) = (experiment("a", "one"), experiment("b", "one"), experiment("c", "two"));
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (results, record) = (path("results.jsonl"), path("record.json"));
    let run = |files: &[&str], revision: &str| {
        let options = ["--results", &results, "--record", &record, "--revision", revision];
        let ran = coreward(&[&["fidelity"], files, &options[..]].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let revisions = |family: &str| {
            let start = format!("| {family} ");
            let row = ran.stdout.lines().find(|line| line.starts_with(&start)).unwrap().to_owned();
            row.rsplit('|').nth(1).unwrap().trim().to_owned()
        };
        (ran.stderr.lines().count(), [revisions("one"), revisions("two")], ran.stdout.clone())
    };
    let revisions = |one: &str, two: &str| [one.to_owned(), two.to_owned()];
    let (ran, of, page) = run(&[&first, &second, &third], "old");
    assert_eq!((ran, of), (3, revisions("old", "old")));
    let (ran, of, again) = run(&[&second], "new");
    assert_eq!((ran, of), (1, revisions("old, new", "old")));
    let scores: Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    assert_eq!(scores["families"]["one"]["revision"], "old, new");
    assert_eq!(again.matches("\n| T-1 ").count(), 3, "{again}");
    assert_eq!(run(&[&third, &first, &second], "old"), (3, revisions("old", "old"), page));

    let kept = fs::read_to_string(&results).unwrap();
    let one = kept.lines().next().unwrap();
    for (text, message) in [
        (kept.replacen("\"family\"", "\"kind\"", 1), "1: no result of an experiment, column "),
        (format!("{one}\n{one}\n"), "2: a is there twice\n"),
        (format!("{one}\n\n"), "2: no result of an experiment, column 0\n"),
    ] {
        fs::write(&results, &text).unwrap();
        let ran = coreward(&["fidelity", &first, "--results", &results]);
        let start = format!("coreward: --results: {results}:{message}");
        assert!(ran.status == 2 && ran.stderr.starts_with(&start), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&results).unwrap(), text, "it is left as it was");
    }
    let ran = coreward(&["fidelity", &first, "--results", &results, "--scale", "0.5"]);
    assert!(ran.status == 2 && ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
}

#[test]
fn ablations_of_a_comparison() {
    let dir = directory("ablations");
    let file = dir.join("tiny.toml");
    fs::write(&file, format!("ablation_cases = ['large']\n{EXPERIMENT}")).unwrap();
    let path = file.to_str().unwrap();
    let report = stdout(&["compare", path, "--ablations"]);
    let (_, table) = report.split_once("\n\ntiny: large: change in percent ± spread of the runs\n").unwrap();
    assert_eq!(table.lines().count(), 2 + 4, "{table}");
    let json: Value = serde_json::from_str(&stdout(&["compare", path, "--ablations", "--json"])).unwrap();
    let changes = &json["ablations"][0]["changes"];
    assert_eq!(changes[2]["ablation"], "no pipe cost");
    assert_eq!(changes[2]["metrics"][0]["delta_pct"], 0.0);
    assert!(changes[0]["metrics"][0]["delta_pct"].as_f64().unwrap() < -10.0);
    assert_eq!(json["cases"].as_array().unwrap().len(), 2);
    // one case of the two
    let one: Value = serde_json::from_str(&stdout(&["compare", path, "--case", "large", "--json"])).unwrap();
    assert_eq!(one["cases"].as_array().unwrap()[..], json["cases"].as_array().unwrap()[1..]);
    assert!(one.get("ablations").is_none());
}

#[test]
fn what_is_refused() {
    let dir = directory("fidelity_refused");
    let file = dir.join("tiny.toml");
    let (path, page) = (file.to_str().unwrap(), dir.join("page.md"));
    let page = page.to_str().unwrap();
    let refused = |args: &[&str], message: &str| {
        let ran = coreward(args);
        assert_eq!(ran.stderr, format!("coreward: {message}\n"), "{args:?}");
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left");
    };
    let head = EXPERIMENT.split("published").next().unwrap();
    fs::write(&file, format!("{head}{}", &EXPERIMENT[EXPERIMENT.find("[baseline]").unwrap()..])).unwrap();
    refused(
        &["fidelity", path, "--output", page],
        &format!("{path}: there are no published figures to compare with"),
    );

    // only the ablation does not end in time: 2,000 messages of a millisecond each way
    let limited = EXPERIMENT
        .replace("-l 10 -T", "-l 500 -T")
        .replace("runs = 2", "runs = 1\ntime_limit = 1")
        .replace("100000", "0")
        .replace(
            "\"no pipe cost\"\ncost = { pipe_op_ns = 0",
            "\"slow pipes\"\ncost = { pipe_op_ns = 1000000",
        );
    fs::write(&file, limited).unwrap();
    let ran = coreward(&["fidelity", path, "--output", page, "--ablations"]);
    let message = "coreward: tiny: small: slow pipes: fast, seed 1: the workload did not end within 1 s of \
                   simulated time (--time-limit, or time_limit of an experiment, allowed are 1 to 1000000)\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (2, message));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left");

    fs::write(&file, EXPERIMENT).unwrap();
    let link = dir.join("twice.toml");
    fs::hard_link(&file, &link).unwrap();
    let ran = coreward(&["fidelity", path, link.to_str().unwrap()]);
    let message = format!("coreward: {}: {path} has an experiment of the same name, too\n", link.display());
    assert_eq!((ran.status, ran.stderr), (2, message));
    fs::remove_file(&link).unwrap();

    let nowhere = dir.join("no/page.md");
    let nowhere = nowhere.to_str().unwrap();
    refused(
        &["fidelity", path, "--output", nowhere],
        &format!("--output: cannot write {nowhere}: No such file or directory (os error 2)"),
    );
    refused(&["compare", path, "--case", "medium"], "tiny: unknown case `medium`, allowed are small, large");

    fs::write(&file, EXPERIMENT.replace("-l 10 -T", "-l 0 -T")).unwrap();
    let ran = coreward(&["fidelity", path]);
    assert!(
        ran.stderr.starts_with(&format!("coreward: {path}:28: case.workload: hackbench: ")),
        "{}",
        ran.stderr
    );
}
