//! The page that lists the metrics.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use coreward_metrics::{Better, Metric};

fn page() -> String {
    let mut page = "# Metrics\n\n\
        What `coreward run` prints, and what `--json`, experiments (`headline`) and tables call it. Times and counts are of the \
        measured part of the run and of all CPUs. A metric that a workload does not have is left out. `coreward compare` says of \
        a change in the better direction that it is better; of metrics without one it only says by how much they changed.\n\n\
        | metric | unit | better | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for metric in Metric::ALL {
        let better = match metric.better() {
            Better::Lower => "less",
            Better::Higher => "more",
            Better::Neutral => "",
        };
        writeln!(page, "| `{}` | {} | {better} | {} |", metric.name(), metric.unit(), metric.help()).unwrap();
    }
    page
}

#[test]
fn the_page_lists_all_metrics() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if env::var_os("COREWARD_BLESS").is_some() {
        fs::write(&file, page()).unwrap();
    }
    assert_eq!(page(), fs::read_to_string(&file).unwrap(), "COREWARD_BLESS=1 writes it");
}
