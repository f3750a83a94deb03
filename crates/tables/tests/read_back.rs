//! Other libraries read what is written: `make check-tables` installs them and runs this.

use std::env;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

use coreward_tables::{Format, Row, SCHEMA_VERSION, Table};

/// More than two groups of rows, and dictionaries whose numbers take one, two and three bytes.
const ROWS: u64 = 150_000;

fn row<'a>(i: u64, side: &'a str, workload: &'a str) -> Row<'a> {
    let some = |n: u64, value: f64| (i % n == 0).then_some(value);
    Row {
        schema_version: SCHEMA_VERSION,
        coreward_version: "0.1.0",
        command: "sweep",
        experiment: (i < 100_000).then_some("Zürich, \"quoted\"\nsecond line"),
        case: None,
        machine: if i % 1000 < 999 { "2c" } else { "" },
        cpus: 2,
        workload,
        scale: 1.0,
        task_group_depth: 3,
        profile: "linux-6.12",
        role: "variant",
        side,
        changes: "",
        run: i % 70_000,
        seed: u64::MAX - i,
        metric: "runtime_s",
        value: -1.0 / (i + 1) as f64,
        unit: "s",
        better: "lower",
        delta_pct: some(2, 1e300),
        ci95_low_pct: some(3, -5e-324),
        ci95_high_pct: None,
        p_value: some(1000, i as f64),
        verdict: (i % 7 != 0).then_some("worse"),
    }
}

#[test]
#[ignore = "needs libraries that make check-tables installs"]
fn every_reader_finds_the_same() {
    let python = env::var("PYTHON").expect("PYTHON names a Python with pyarrow and duckdb");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (ending, format) in Format::ALL {
        let file = File::create(dir.join("t").with_extension(ending)).unwrap();
        let mut table = Table::new(format, BufWriter::new(file)).unwrap();
        for i in 0..ROWS {
            table.push(&row(i, &(i % 300).to_string(), &(i / 10).to_string())).unwrap();
        }
        table.finish().unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_back.py");
    let ran = Command::new(python).arg(script).current_dir(dir).output().expect("it starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{ROWS} rows\n"));
}
