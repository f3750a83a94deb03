//! The tables of docs/results/validation*.md and the line of README.md about accuracy say what the JSON files beside them
//! say. `make validation` measures these; with COREWARD_BLESS=1 this test writes what follows from them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

/// The machines, by their names in files and for people.
const MACHINES: [(&str, &str); 3] =
    [("granite-rapids", "Granite Rapids"), ("zen-4", "Zen 4"), ("zen-5", "Zen 5")];

/// What is between these lines is generated.
const BEGIN: &str = "<!-- make validation: from here -->\n";
const END: &str = "<!-- make validation: to here -->\n";
/// Likewise within a paragraph.
const LINE_BEGIN: &str = "<!-- accuracy -->";
const LINE_END: &str = "<!-- /accuracy -->";

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results").join(file)
}

fn json(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(docs(file)).unwrap()).unwrap()
}

/// Compares the marked part of a page with what it has to be, or writes it.
fn marked(page: &Path, (begin, end): (&str, &str), generated: &str) {
    let text = fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(begin).expect("the mark of the begin");
    let (now, after) = rest.split_once(end).expect("the mark of the end");
    if env::var_os("COREWARD_BLESS").is_some() {
        fs::write(page, format!("{before}{begin}{generated}{end}{after}")).unwrap();
    } else {
        assert_eq!(now, generated, "{} is out of date: run make docs", page.display());
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// How far off, in percent, where more than a factor of 1000 is not told apart.
fn off(pct: f64) -> String {
    if pct >= 99_900.0 { "a factor of 1000 or more".into() } else { format!("{pct:.0} %") }
}

fn scores(validation: &Value) -> String {
    let mut out = String::from(
        "## How far the simulation is off\n\n| figure | benchmarks | median | worst | allowed | |\n|---|---|---|---|---|---|\n",
    );
    for score in validation["scores"].as_array().unwrap() {
        let worst =
            score["allowed_worst_pct"].as_f64().map_or(String::new(), |pct| format!(", {pct:.0} % at worst"));
        _ = writeln!(
            out,
            "| {} | {} | {:.0} % | {} (`{}`) | {:.0} %{worst} | {} |",
            score["name"].as_str().unwrap(),
            score["benchmarks"],
            number(&score["median_pct"]),
            off(number(&score["worst_pct"])),
            score["worst"].as_str().unwrap(),
            number(&score["allowed_median_pct"]),
            if score["met"] == true { "met" } else { "not met" },
        );
    }
    out
}

/// A cell of both figures.
fn both(benchmark: &Value, of: impl Fn(&Value) -> &Value, decimals: usize) -> String {
    let text =
        |side: &str| of(&benchmark[side]).as_f64().map_or("-".into(), |value| format!("{value:.decimals$}"));
    format!("{} / {}", text("real"), text("simulated"))
}

/// What a line took from one CPU to another, from the least to the most, around the rounds.
fn line_ns(benchmark: &Value) -> String {
    let rounds = benchmark["transfers"].as_array().map_or(&[][..], Vec::as_slice);
    let ns: Vec<f64> =
        rounds.iter().flat_map(|round| round.as_object().unwrap().values()).map(number).collect();
    let least = ns.iter().copied().reduce(f64::min);
    let most = ns.iter().copied().reduce(f64::max);
    least.zip(most).map_or("-".into(), |(least, most)| format!("{least:.0} to {most:.0}"))
}

fn waits(benchmark: &Value) -> String {
    let Some(waits) = benchmark["real"]["observed"]["waits_pct"].as_object() else { return "-".into() };
    let mut waits: Vec<_> = waits.iter().map(|(what, pct)| (what, number(pct))).collect();
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown =
        waits.iter().take(2).filter(|(_, pct)| *pct >= 1.0).map(|(what, pct)| format!("{what} {pct:.0}"));
    shown.collect::<Vec<_>>().join(", ")
}

fn benchmarks(validation: &Value) -> String {
    let benchmarks = validation["benchmarks"].as_array().unwrap();
    let rounds = &validation["rounds"];
    let mut out = format!(
        "\nEach cell is real / simulated, medians of {rounds} rounds. An operation is a message, or an event that the \
         benchmark counts. The last column is what a line took from one CPU to the other around these rounds, which the \
         simulated ones have, too.\n\n| benchmark | time, s | CPU us an operation | operations a switch | preempted, % | \
         migrations | a line, ns |\n|---|---|---|---|---|---|---|\n"
    );
    for benchmark in benchmarks {
        _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} |",
            benchmark["benchmark"].as_str().unwrap(),
            both(benchmark, |f| &f["time_s"], 2),
            both(benchmark, |f| &f["cpu_us_per_operation"], 2),
            both(benchmark, |f| &f["operations_per_switch"], 1),
            both(benchmark, |f| &f["involuntary_pct"], 0),
            both(benchmark, |f| &f["migrations"], 0),
            line_ns(benchmark),
        );
    }
    out += "\nWhat tracepoints show, in every second round again. Recording costs CPU time, which is part of the \
            latencies and run lengths, real and simulated:\n\n| benchmark | wakeup latency p50, us | p99, us | \
            run length p50, us | p90, us | recording, % | waited for, % of the real blocking switches |\n\
            |---|---|---|---|---|---|---|\n";
    for benchmark in benchmarks {
        _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {:+.0} | {} |",
            benchmark["benchmark"].as_str().unwrap(),
            both(benchmark, |f| &f["observed"]["wakeup_us_p50"], 1),
            both(benchmark, |f| &f["observed"]["wakeup_us_p99"], 0),
            both(benchmark, |f| &f["observed"]["run_us_p50"], 1),
            both(benchmark, |f| &f["observed"]["run_us_p90"], 0),
            number(&benchmark["real"]["observed"]["recording_pct"]),
            waits(benchmark),
        );
    }
    for note in validation["notes"].as_array().unwrap() {
        _ = writeln!(out, "\nNote: {}.", note.as_str().unwrap());
    }
    out
}

fn calibrations(first: &Value, second: &Value) -> String {
    let mut out = String::from(
        "\n## What a calibration finds, twice\n\nValues are means of the middle half, and ± is its range. One was made \
         before the benchmarks and one after them; what was simulated was measured between their rounds.\n\n| cost | first | second | differ by |\n|---|---|---|---|\n",
    );
    let cell = |cost: &Value| {
        let unused = if cost["not_used"].is_string() { ", not used" } else { "" };
        format!("{:.0} ± {:.0}{unused}", number(&cost["value"]), number(&cost["spread"]))
    };
    for (name, one) in first["costs"].as_object().unwrap() {
        let other = &second["costs"][name];
        let (a, b) = (number(&one["value"]), number(&other["value"]));
        let differ = 100.0 * (a - b).abs() / a.min(b);
        let differ = if differ.is_finite() { format!("{differ:.0} %") } else { "-".into() };
        _ = writeln!(out, "| `{name}` | {} | {} | {differ} |", cell(one), cell(other));
    }
    out += "\n| one line, by CPUs | read-modify-write each, ns | read each, ns |\n|---|---|---|\n";
    let pairs = |key: &str| {
        let list = |of: &Value| of[key].as_array().unwrap().clone();
        list(first).into_iter().zip(list(second))
    };
    let twice = |a: &Value, b: &Value| format!("{:.1}, {:.1}", number(&a["ns"]), number(&b["ns"]));
    for (a, b) in pairs("contended_line") {
        _ = writeln!(
            out,
            "| {} | {} | {} |",
            a["cpus"],
            twice(&a["rmw"], &b["rmw"]),
            twice(&a["read"], &b["read"])
        );
    }
    out += "\n| working set, KiB | where it is | a line, ns |\n|---|---|---|\n";
    for (a, b) in pairs("refill") {
        let kib = a["bytes"].as_u64().unwrap() >> 10;
        _ = writeln!(
            out,
            "| {kib} | {} | {} |",
            a["source"].as_str().unwrap(),
            twice(&a["line"], &b["line"])
        );
    }
    out += "\n| idle state | exit, us |\n|---|---|\n";
    for state in first["machine"]["idle_states"].as_array().unwrap() {
        _ = writeln!(out, "| {} | {:.1} |", state["name"].as_str().unwrap(), number(&state["exit_ns"]) / 1e3);
    }
    out += "\nNot measured on this machine, and left as assumptions:\n\n";
    for (name, why) in first["not_measured"].as_object().unwrap() {
        _ = writeln!(out, "- `{name}`: {}", why.as_str().unwrap());
    }
    out
}

/// The median of a score, in percent.
fn median(validation: &Value, name: &str) -> f64 {
    let scores = validation["scores"].as_array().unwrap();
    number(&scores.iter().find(|score| score["name"] == name).expect(name)["median_pct"])
}

/// The scores of all machines in one table.
fn overview(machines: &[Value]) -> String {
    let names: Vec<_> =
        MACHINES.iter().map(|(file, name)| format!("[{name}](validation-{file}.md)")).collect();
    let mut out =
        format!("| figure | allowed | {} |\n|---|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for score in machines[0]["scores"].as_array().unwrap() {
        let name = score["name"].as_str().unwrap();
        let medians: Vec<_> = machines.iter().map(|of| format!("{:.0} %", median(of, name))).collect();
        let allowed = number(&score["allowed_median_pct"]);
        _ = writeln!(out, "| {name} | {allowed:.0} % | {} |", medians.join(" | "));
    }
    out
}

/// "one, two and three".
fn enumeration(of: &[String]) -> String {
    let (last, others) = of.split_last().unwrap();
    format!("{} and {last}", others.join(", "))
}

/// The accuracy in a sentence.
fn accuracy(machines: &[Value]) -> String {
    let medians = |name: &str| {
        let medians: Vec<_> = machines.iter().map(|of| format!("{:.0}", median(of, name))).collect();
        enumeration(&medians)
    };
    let names = enumeration(&MACHINES.map(|(_, name)| name.to_string()));
    format!(
        "Beside {} benchmarks that really ran on {} machines of {} CPUs, {names}, its times are off by {} % in the median, \
         switches by {} %, migrations by {} %, and median wakeup latencies by {} %",
        machines[0]["benchmarks"].as_array().unwrap().len(),
        machines.len(),
        machines[0]["cpus"],
        medians("time"),
        medians("operations a switch"),
        medians("migrations"),
        medians("wakeup latency p50"),
    )
}

#[test]
fn the_pages_and_the_readme_say_what_was_measured() {
    let machines = MACHINES.map(|(file, _)| json(&format!("validation-{file}.json")));
    for ((file, _), validation) in MACHINES.iter().zip(&machines) {
        let calibration = |n| json(&format!("calibration-{file}-{n}.json"));
        let tables = scores(validation)
            + &benchmarks(validation)
            + &calibrations(&calibration(1), &calibration(2))
            + "\n";
        marked(&docs(&format!("validation-{file}.md")), (BEGIN, END), &tables);
    }
    marked(&docs("validation.md"), (BEGIN, END), &overview(&machines));
    let readme = docs("../../README.md");
    marked(&readme, (LINE_BEGIN, LINE_END), &accuracy(&machines));
    let first_screen = fs::read_to_string(readme).unwrap().lines().position(|line| line.contains(LINE_BEGIN));
    assert!(first_screen.is_some_and(|line| line < 20), "the accuracy stands on the first screen");
}
