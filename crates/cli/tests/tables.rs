//! `--output`: tables of all commands have the columns of the schema and the figures of the reports.

mod common;

use std::fs;
use std::path::Path;

use common::{coreward, directory, stdout};
use serde_json::{Map, Value};

const WORKLOAD: &str = "hackbench -g 1 -f 2 -l 20 -T --pipe";
const SWEEP: &str = "name = \"small\"\nmachines = [\"1n2l2c1t\", \"2c\"]\n\
    workloads = [\"hackbench -g 1 -f 2 -T --pipe -l 20\", \"perf bench sched pipe -l 50\"]\nruns = 3\n\
    list = [\"WAKEUP_BIAS_PREV\", \"NO_TTWU_QUEUE\"]\n";

/// The rows of a table in lines of JSON, each of which fits the schema.
fn rows(file: &Path) -> Vec<Map<String, Value>> {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/table.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let columns = schema["properties"].as_object().unwrap();
    let text = fs::read_to_string(file).unwrap();
    let rows: Vec<Map<String, Value>> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in &rows {
        assert!(row.keys().eq(columns.keys()), "{row:?}");
        for (name, value) in row {
            let kind = match value {
                Value::Null => "null",
                Value::String(_) => "string",
                Value::Number(number) if number.is_u64() => "integer",
                _ => "number",
            };
            let column = &columns[name];
            let allows = |kind: &str| match &column["type"] {
                Value::Array(kinds) => kinds.contains(&kind.into()),
                one => one == kind,
            };
            assert!(allows(kind), "{name}: {value}");
            let named = column["enum"].as_array().is_none_or(|values| values.contains(value));
            assert!(named && column.get("const").is_none_or(|only| only == value), "{name}: {value}");
        }
    }
    rows
}

/// The table that a command writes beside its JSON, and the JSON.
fn table(test: &str, arguments: &[&str]) -> (Vec<Map<String, Value>>, Value) {
    let dir = directory(&format!("tables_{test}"));
    let file = |ending: &str| dir.join("t").with_extension(ending).to_str().unwrap().to_owned();
    let (jsonl, csv, parquet) = (file("jsonl"), file("csv"), file("parquet"));
    let outputs = ["--output", &jsonl, "--output", &csv, "--output", &parquet];
    let printed = stdout(&[arguments, &["--json"], &outputs[..]].concat());
    assert_eq!(printed, stdout(&[arguments, &["--json"]].concat()), "a table does not change the report");
    let rows = rows(Path::new(&jsonl));
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), rows.len() + 1, "a head and the rows");
    let bytes = fs::read(parquet).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    (rows, serde_json::from_str(&printed).unwrap())
}

/// The mean of a metric on a side.
fn mean(rows: &[Map<String, Value>], place: &[(&str, &Value)]) -> f64 {
    let here = |row: &&Map<String, Value>| place.iter().all(|(name, value)| row[*name] == **value);
    let values: Vec<f64> = rows.iter().filter(here).map(|row| row["value"].as_f64().unwrap()).collect();
    assert!(!values.is_empty(), "{place:?}");
    values.iter().sum::<f64>() / values.len() as f64
}

fn close(a: f64, b: &Value) -> bool {
    (a - b.as_f64().unwrap()).abs() <= 1e-9 * a.abs()
}

#[test]
fn a_run_has_a_row_for_each_metric() {
    let options = ["--machine", "2c", "--seed", "7", "--scale", "0.5", "--sched-feat", "NO_TTWU_QUEUE"];
    let (rows, report) = table("run", &[&["run", WORKLOAD], &options[..]].concat());
    let metrics = report["metrics"].as_object().unwrap();
    assert_eq!(rows.len(), metrics.len());
    for (row, (metric, value)) in rows.iter().zip(metrics) {
        assert_eq!((&row["metric"], &row["value"]), (&metric.as_str().into(), value));
        assert_eq!((&row["seed"], &row["scale"], &row["role"]), (&7.into(), &0.5.into(), &"single".into()));
        assert_eq!((&row["side"], &row["changes"]), (&"NO_TTWU_QUEUE".into(), &"NO_TTWU_QUEUE".into()));
    }
}

#[test]
fn a_comparison_has_the_runs_of_all_sides_and_what_they_show() {
    let with = [
        "--machine",
        "2n2l2c1t",
        "--runs",
        "3",
        "--seed",
        "5",
        "--with",
        "WAKEUP_BIAS_PREV",
        "--with",
        "SIS_UTIL",
    ];
    let (rows, report) = table("compare", &[&["compare", WORKLOAD], &with[..]].concat());
    let sides = report["variants"].as_array().unwrap().iter().chain([&report["baseline"]]);
    let mut values = 0;
    for side in sides {
        for (metric, of_runs) in side["values"].as_object().unwrap() {
            let own = rows.iter().filter(|row| row["side"] == side["label"] && row["metric"] == **metric);
            let own: Vec<_> = own.collect();
            assert!(
                own.iter().map(|row| &row["value"]).eq(of_runs
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|v| !v.is_null()))
            );
            values += own.len();
            for row in own {
                assert_eq!(row["seed"].as_u64().unwrap(), 5 + row["run"].as_u64().unwrap());
                let null = Value::Null;
                let of = |what: &str| side.get(what).and_then(|map| map.get(metric)).unwrap_or(&null);
                for (column, value) in [
                    ("delta_pct", of("delta_pct")),
                    ("p_value", of("p_value")),
                    ("verdict", of("verdict")),
                    ("ci95_low_pct", of("interval_pct").get(0).unwrap_or(&null)),
                    ("ci95_high_pct", of("interval_pct").get(1).unwrap_or(&null)),
                ] {
                    assert_eq!(&row[column], value, "{column} of {metric}");
                }
            }
        }
    }
    assert_eq!(values, rows.len());
    assert!(rows.iter().any(|row| !row["verdict"].is_null()));
}

#[test]
fn a_matrix_and_a_sweep_have_the_runs_of_all_cells() {
    let dir = directory("tables_sweep_file");
    let file = dir.join("s.toml");
    fs::write(&file, SWEEP).unwrap();
    let matrix = [
        "matrix",
        "--with",
        "WAKEUP_BIAS_PREV",
        "--runs",
        "3",
        "--machine",
        "1n2l2c1t",
        "--machine",
        "2c",
        "--workload",
        WORKLOAD,
    ];
    for (arguments, sides, label) in
        [(&["sweep", file.to_str().unwrap()][..], 3, "setting"), (&matrix[..], 2, "change")]
    {
        let (rows, report) = table(arguments[0], arguments);
        let cells = report["cells"].as_array().unwrap();
        let runs = rows.iter().filter(|row| row["metric"] == "runtime_s").count();
        assert_eq!(runs, cells.len() / (sides - 1) * sides * 3, "{arguments:?}");
        for cell in cells {
            for figure in cell["figures"].as_array().unwrap() {
                let side = if label == "setting" { &cell["setting"] } else { &report["change"] };
                let mut place = vec![
                    ("machine", &cell["machine"]),
                    ("case", &cell["name"]),
                    ("side", side),
                    ("metric", &figure["metric"]),
                ];
                assert!(close(mean(&rows, &place), &figure["changed"]), "{place:?}");
                let row = rows.iter().find(|row| place.iter().all(|(name, v)| row[*name] == **v)).unwrap();
                assert_eq!((&row["delta_pct"], &row["verdict"]), (&figure["delta_pct"], &figure["verdict"]));
                let baseline = Value::from("baseline");
                place[2] = ("role", &baseline);
                assert!(close(mean(&rows, &place), &figure["baseline"]), "{place:?}");
            }
        }
    }
}

/// Whatever is kept, and however many threads there are.
#[test]
fn the_same_command_writes_the_same_bytes() {
    let dir = directory("tables_same");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    fs::write(path("s.toml"), SWEEP).unwrap();
    let bytes = |name: &str, options: &[&str]| {
        let (sweep, table) = (path("s.toml"), path(name));
        stdout(&[&["sweep", &sweep, "--output", &table], options].concat());
        fs::read(table).unwrap()
    };
    let (one, two) = (path("0.state"), path("1.state"));
    for (state, shard) in [(&one, "0/2"), (&two, "1/2")] {
        stdout(&["sweep", &path("s.toml"), "--state", state, "--shard", shard]);
    }
    let whole = bytes("whole.parquet", &["--jobs", "1"]);
    assert_eq!(whole, bytes("shares.parquet", &["--jobs", "2", "--merge", &one, "--merge", &two]));
}

#[test]
fn what_is_refused() {
    let dir = directory("tables_refused");
    let old = dir.join("old.csv").to_str().unwrap().to_owned();
    fs::write(&old, "old").unwrap();
    for (arguments, what) in [
        (
            &["--output", "t.txt"][..],
            "invalid value 't.txt' for '--output <F.parquet|F.csv|F.jsonl>': allowed are names",
        ),
        (&["--output", &old, "--output", &old], "--output and --output name the same file"),
        (&["--output", "/nowhere/t.csv"], "--output: cannot write /nowhere/t.csv"),
        (&["--output", &old, "--time-limit", "1", "--machine", "1c"], "--machine"),
    ] {
        let ran = coreward(&[&["run", WORKLOAD, "--machine", "2c"], arguments].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
    }
    let shard = coreward(&["sweep", "s.toml", "--state", "f", "--shard", "0/2", "--output", &old]);
    assert!(shard.stderr.contains("cannot be used with '--output"), "{}", shard.stderr);
    // what was there is lost by no run that fails
    let failed = ["hackbench -g 2 -l 100000", "--machine", "2c", "--time-limit", "1", "--output", &old];
    assert_eq!(coreward(&[&["run"], &failed[..]].concat()).status, 2);
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
}
