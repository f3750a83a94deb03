//! The columns are as docs/ describes them.

use std::path::Path;
use std::{env, fs};

use coreward_tables::{COLUMNS, Format, Kind, schema};

fn docs(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[test]
fn the_schema_in_docs_is_current() {
    let file = docs("table.schema.json");
    let schema = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if env::var_os("COREWARD_BLESS").is_some() {
        fs::write(&file, &schema).unwrap();
    }
    assert_eq!(schema, fs::read_to_string(&file).unwrap(), "COREWARD_BLESS=1 writes it");
}

#[test]
fn the_page_describes_every_column() {
    let page = fs::read_to_string(docs("tables.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |column: &coreward_tables::Column| {
        let kind = match column.kind {
            Kind::Text => "text",
            Kind::Integer => "integer",
            Kind::Number => "number",
        };
        let or_none = if column.optional { " or none" } else { "" };
        format!("| `{}` | {kind}{or_none} | {} |", column.name, column.help)
    };
    assert_eq!(rows, COLUMNS.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn the_ending_is_the_format() {
    let of = |name: &str| Format::of(Path::new(name));
    assert_eq!(of("a.b/c.parquet"), Some(Format::Parquet));
    assert_eq!((of("c.csv"), of("c.jsonl")), (Some(Format::Csv), Some(Format::Jsonl)));
    for wrong in ["c", "csv", "c.csv.gz", "c.CSV", "c."] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}
