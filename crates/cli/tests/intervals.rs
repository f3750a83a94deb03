//! `coreward run --intervals`.

mod common;

use std::fs;

use common::{coreward, directory, stdout};
use serde_json::Value;

// with a seed where no part of the time ends at half a microsecond: each interval rounds the parts of its last segments to ns
const RUN: [&str; 6] =
    ["run", "hackbench -g 2 -f 4 -T --pipe -l 1000", "--machine", "2n2l4c2t", "--seed", "1"];

#[test]
fn a_line_for_each_interval_comes_after_the_metrics_of_the_run() {
    let with = stdout(&[&RUN[..], &["--intervals", "0.001"]].concat());
    let plain = stdout(&RUN);
    let without_table: String = {
        let table = with.split_once("        to s").unwrap();
        let after = table.1.split_once("\n\n").unwrap().1;
        format!("{}{after}", table.0.trim_end_matches(' '))
    };
    assert_eq!(without_table, plain, "everything else is as before");
    let rows =
        with.lines().skip_while(|line| !line.contains("to s")).skip(1).take_while(|line| !line.is_empty());
    let ends: Vec<f64> = rows.map(|row| row.split_whitespace().next().unwrap().parse().unwrap()).collect();
    let json: Value =
        serde_json::from_str(&stdout(&[&RUN[..], &["--intervals", "0.001", "--json"]].concat())).unwrap();
    assert_eq!(json["intervals"].as_array().unwrap().len(), ends.len());
    assert!((ends.last().unwrap() - json["metrics"]["runtime_s"].as_f64().unwrap()).abs() < 2e-6);
    assert_eq!(json["intervals"][1]["from_s"], 0.001);
    assert!(json["intervals"][0]["metrics"]["wakeups"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_interval_that_is_no_time_is_refused() {
    for wrong in ["0", "-1", "abc", "2000"] {
        let ran = coreward(&[&RUN[..], &["--intervals", wrong]].concat());
        assert_eq!(ran.status, 2, "{wrong}");
        assert!(ran.stderr.contains("0.000001 to 1000") || wrong == "-1", "{}", ran.stderr);
    }
}

#[test]
fn the_page_draws_the_intervals() {
    let dir = directory("page_of_intervals");
    let page = |name: &str, options: &[&str]| {
        let file = dir.join(name);
        let with_page = stdout(&[&RUN[..], options, &["--html", file.to_str().unwrap()]].concat());
        assert_eq!(with_page, stdout(&[&RUN[..], options].concat()), "the report is as without");
        fs::read_to_string(file).unwrap()
    };
    let drawn = page("intervals.html", &["--intervals", "0.001"]);
    assert_eq!(drawn.matches("<svg").count(), 6, "messages, switches, wakeups, latencies, migrations, CPUs");
    assert_eq!(drawn.matches("role=\"img\" aria-label=\"").count(), 6);
    assert!(drawn.contains("color-scheme: light dark") && drawn.contains("Wakeup latency, us over 0.00"));
    assert!(!drawn.contains("NaN") && !drawn.contains("<script") && !drawn.contains("http"), "{drawn}");
    let whole = page("whole.html", &[]);
    assert!(!whole.contains("<svg") && whole.contains("cpu_migrations") && whole.ends_with("</html>\n"));
}
