//! The page that lists the costs.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use coreward_machine::Costs;

fn page() -> String {
    let mut page = "# Costs\n\n\
        What things cost on a simulated machine, by the names of machine files (`[costs]`), `--cost NAME=VALUE` and experiments \
        (`cost`). Names that end in `_ns` are ns and those that end in `_pct` percent; `message_lines` are lines. A machine that gives no value of its own has \
        the default; `coreward topology MACHINE --toml` prints what it has. *In four of five* is the range that `--intervals` \
        varies a cost over where the machine names no other; one without a range is not varied. [model.md](model.md) says where \
        each cost is charged, and `coreward calibrate` measures most of them.\n\n\
        | cost | default | in four of five | allowed | what it is | where the default comes from |\n|---|---|---|---|---|---|\n"
        .to_owned();
    let cell = |text: &str| text.trim().replace('|', "\\|");
    for field in Costs::FIELDS {
        let range =
            if field.low < field.high { format!("{} to {}", field.low, field.high) } else { String::new() };
        writeln!(
            page,
            "| `{}` | {} | {range} | {} to {} | {} | {} |",
            field.name,
            field.default,
            field.min,
            field.max,
            cell(field.meaning),
            cell(field.source)
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_lists_all_costs() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/costs.md");
    if env::var_os("COREWARD_BLESS").is_some() {
        fs::write(&file, page()).unwrap();
    }
    assert_eq!(page(), fs::read_to_string(&file).unwrap(), "COREWARD_BLESS=1 writes it");
}
