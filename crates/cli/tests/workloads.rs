//! Every option of every workload changes a run, and the same command gives the same bytes.

mod common;

use std::fs;

use common::{coreward, directory, stdout};
use serde_json::Value;

const MACHINE: &str = "2l2c2t";

fn run(workload: &str) -> Value {
    let json = stdout(&["run", workload, "--machine", MACHINE, "--json"]);
    serde_json::from_str(&json).unwrap()
}

/// The base and each of the commands differ in their metrics, one from all others.
fn all_differ(base: &str, options: &[&str]) {
    let commands: Vec<String> =
        std::iter::once(base.to_owned()).chain(options.iter().map(|o| format!("{base} {o}"))).collect();
    let metrics: Vec<Value> = commands.iter().map(|c| run(c)["metrics"].clone()).collect();
    for (i, a) in metrics.iter().enumerate() {
        for (j, b) in metrics.iter().enumerate().skip(i + 1) {
            assert_ne!(a, b, "{} and {}", commands[i], commands[j]);
        }
    }
    assert_eq!(run(base)["metrics"], metrics[0]);
}

fn metric(report: &Value, name: &str) -> f64 {
    report["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {report}"))
}

#[test]
fn sysbench() {
    let base = "sysbench threads run --threads=12 --time=1 --events=60";
    let report = run(base);
    assert_eq!(metric(&report, "events"), 60.0);
    let rate = metric(&report, "events_per_s") * metric(&report, "runtime_s");
    assert!((rate - 60.0).abs() < 0.001, "{rate}");
    let mean = metric(&report, "event_latency_us_avg");
    assert!(
        metric(&report, "event_latency_us_min") <= mean && mean <= metric(&report, "event_latency_us_max")
    );
    for options in ["--threads=11", "--events=61", "--thread-yields=900", "--thread-locks=3"] {
        let (name, _) = options.split_once('=').unwrap();
        let kept: Vec<&str> = base.split(' ').filter(|word| !word.starts_with(&format!("{name}="))).collect();
        assert_ne!(run(&format!("{} {options}", kept.join(" ")))["metrics"], report["metrics"], "{options}");
    }
    let timed = stdout(&["run", "sysbench threads run --time=1", "--machine", MACHINE, "--scale", "0.01"]);
    assert!(timed.contains("a shorter benchmark, with 0.01 of"), "{timed}");
}

#[test]
fn a_workload_needs_no_quotes() {
    let quoted = stdout(&["run", "hackbench -g 1 -f 2 -l 3 --pipe", "--machine", MACHINE, "--seed", "7"]);
    let words = ["hackbench", "-g", "1", "-f", "2", "-l", "3", "--pipe"];
    let own = ["--machine", MACHINE, "--seed", "7"];
    for line in [
        [&["run"], &words[..], &own].concat(),
        [&["run"], &own[..], &words].concat(),
        [&["run"], &own[..], &["--"], &words].concat(),
        [&["run"], &words[..3], &own, &words[3..]].concat(),
    ] {
        assert_eq!(stdout(&line), quoted, "{line:?}");
    }
    let either = coreward(&["run", "schbench", "-t", "2", "--json", "--machine", MACHINE]);
    assert_eq!(
        (either.status, either.stderr.as_str()),
        (
            2,
            "coreward: `--json` is an option of schbench and of coreward: put it before `schbench` if it is coreward's, \
             or all of schbench's command line after `--`\n"
        )
    );
}

#[test]
fn perf_bench() {
    all_differ("perf bench sched pipe -l 300", &["-T"]);
    assert_ne!(run("perf bench sched pipe -l 300"), run("perf bench sched pipe -l 301"));
    all_differ("perf bench sched messaging -l 3", &["-g 2", "-g 3", "-g 2 -p", "-g 2 -t"]);
}

#[test]
fn schbench() {
    let base = "schbench-old -t 12 -r 1";
    all_differ(base, &["-m 1", "-c 20000", "-s 20000", "-C 20000"]);
    assert_ne!(run("schbench-old -t 2 -r 2 -w 0"), run("schbench-old -t 2 -r 2 -w 1"));
    assert!(metric(&run(base), "reply_latency_us_p99") > 0.0);
    let base = "schbench -t 12 -r 1";
    all_differ(base, &["-m 2", "-F 64", "-n 2", "-s 0", "-R 100", "-L"]);
    assert_ne!(run("schbench -t 2 -r 2"), run("schbench -t 2 -r 2 -w 1"));
    let paced = run("schbench -t 12 -r 1 -R 100");
    assert!((metric(&paced, "events_per_s") - 100.0).abs() < 5.0, "{paced}");
    assert_ne!(run("schbench -t 12 -r 1"), run("schbench -t 13 -r 1"));
    // a preempted holder keeps the others of its CPU spinning
    assert!(metric(&run("schbench -t 24 -r 1 -L"), "events") > metric(&run("schbench -t 24 -r 1"), "events"));
}

#[test]
fn cyclictest() {
    let base = "cyclictest --default-system -l 200";
    all_differ(
        base,
        &["-t 2", "-t 3", "-t 3 -d 100", "-i 700", "-D 1 -i 6000", "-t 3 --policy=idle -i 5 -d 0"],
    );
    assert_ne!(run(base)["metrics"], run("cyclictest --default-system -l 201")["metrics"]);
    let report = run("cyclictest --laptop -t 2 -i 500 -l 400");
    // the second one has an interval twice as long, and main sees the end of the first after up to 10 ms
    let events = metric(&report, "events");
    assert!((600.0..=611.0).contains(&events), "{events}");
    assert!((metric(&report, "runtime_s") - 0.2).abs() < 0.012);
    assert!(metric(&report, "wakeup_latency_us_p50") > 0.0);
}

#[test]
fn stress_ng() {
    let base = "stress-ng --timeout 1 --cpu 9";
    let (nine, ten) = (run(base), run("stress-ng --timeout 1 --cpu 10"));
    assert_ne!(nine["metrics"], ten["metrics"]);
    assert_ne!(run("stress-ng --timeout 2 --cpu 9")["metrics"], nine["metrics"]);
    assert!(
        (metric(&nine, "runtime_s") - 1.0).abs() < 0.02 && metric(&nine, "cpus_utilized") > 7.9,
        "{nine}"
    );
    assert!(metric(&nine, "context_switches_involuntary") > 100.0, "nine tasks share eight CPUs");
}

#[test]
fn stress_ng_with_packets() {
    let base = "stress-ng --timeout 1";
    all_differ(&format!("{base} --switch 1"), &["--switch-ops 900", "--switch-ops 901"]);
    all_differ(&format!("{base} --pipe 2"), &["--pipe-ops 900", "--pipe-ops 902"]);
    assert_ne!(run(&format!("{base} --switch 1"))["metrics"], run(&format!("{base} --switch 2"))["metrics"]);
    assert_ne!(run(&format!("{base} --pipe 2"))["metrics"], run("stress-ng --timeout 2 --pipe 2")["metrics"]);
    let switches = |command: &str| metric(&run(command), "context_switches");
    // 900 bytes, each of which fills the pipe, or is all that was in it; and 450 packets of each worker
    assert!((1780.0..=1820.0).contains(&switches("stress-ng --switch 1 --switch-ops 900")));
    assert!(switches("stress-ng --pipe 2 --pipe-ops 900") < 900.0, "up to 16 are under way");
    let rate = metric(&run("stress-ng --pipe 2 --timeout 1"), "messages_per_s");
    assert!((1e5..1e7).contains(&rate), "{rate}");
}

#[test]
fn encoder_and_server() {
    let base = "encoder --time 1";
    let small = "--streams 2 --threads 6";
    let of = |options: &str| format!("{base} {options}");
    let metrics = |command: &str| run(command)["metrics"].clone();
    let usual = metrics(&of(small));
    for options in [
        "--streams 3 --threads 6",
        "--streams 2 --threads 5",
        "--streams 2 --threads 6 --fps 30",
        "--streams 2 --threads 6 --rows 4",
        "--streams 2 --threads 6 --row-us 100",
        "--streams 2 --threads 6 --serial-us 100",
    ] {
        assert_ne!(metrics(&of(options)), usual, "{options}");
    }
    let paced = run(&of(small));
    assert!((metric(&paced, "events_per_s") - 50.0).abs() < 3.0, "two streams of 25: {paced}");
    assert!(metric(&paced, "cpus_utilized") < 7.0, "a part is idle");
    let base = "server --time 1";
    all_differ(base, &["--threads 16", "--work-us 900", "--locked-us 500", "--locks 1", "--think-us 9000"]);
}

#[test]
fn netperf_and_tbench() {
    let short = |workload: &str| -> Value {
        let json = stdout(&["run", workload, "--machine", MACHINE, "--scale", "0.01", "--json"]);
        serde_json::from_str(&json).unwrap()
    };
    let metrics = |workload: &str| short(workload)["metrics"].clone();
    let base = "netperf -t TCP_RR --clients 3 -l 1";
    let usual = metrics(base);
    for other in [
        "netperf -t UDP_RR --clients 3 -l 1",
        "netperf -t TCP_STREAM --clients 3 -l 1",
        "netperf -t TCP_RR --clients 4 -l 1",
        "netperf -t TCP_RR --clients 3 -l 2",
        "netperf -t TCP_RR --clients 3 -l 1 -r 4000,1",
        "netperf -t TCP_RR --clients 3 -l 1 -r 1,4000",
    ] {
        assert_ne!(metrics(other), usual, "{other}");
    }
    assert_eq!(metrics(&format!("{base} -- -r 1,1")), usual);
    // a count, which --scale shortens as a time: of transactions, or of bytes in messages of 1000
    let whole =
        |workload: &str| metric(&run(workload), "messages_per_s") * metric(&run(workload), "runtime_s");
    assert!((whole("netperf -t TCP_RR --clients 3 -l -500") - 1500.0).abs() < 1e-6);
    assert!((whole("netperf -m 1000 -l -99001") - 100.0).abs() < 1e-6);
    assert_eq!(metrics("netperf -t TCP_RR -l -5000"), run("netperf -t TCP_RR -l -50")["metrics"]);
    assert_ne!(metrics("netperf -l 1"), metrics("netperf -l 1 -m 1000"));
    let rate = |workload: &str| metric(&short(workload), "messages_per_s");
    assert!(rate("netperf -t UDP_RR -l 1") > rate("netperf -t TCP_RR -l 1"), "TCP costs more");
    assert!((usual["runtime_s"].as_f64().unwrap() - 0.01).abs() < 0.001, "{usual}");

    let usual = short("tbench -t 2 4");
    assert!(metric(&usual, "events_per_s") > 1000.0 && metric(&usual, "event_latency_us_avg") > 1.0);
    assert_ne!(short("tbench -t 2 5")["metrics"], usual["metrics"]);
    assert_ne!(short("tbench -t 3 4")["metrics"], usual["metrics"]);
    assert_eq!(short("tbench -t 2 4 127.0.0.1"), usual);
}

#[test]
fn rt_app() {
    let dir = directory("rt-app");
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        format!("rt-app {}", path.display())
    };
    let text = r#"{"global": {"duration": 1},
 "tasks": {"tick": {"instance": 2, "run": 2000, "timer": {"ref": "unique", "period": 10000}},
           "boss": {"resume": "worker", "runtime": 1000, "sleep": 4000},
           "worker": {"suspend": "", "lock": "m", "run": 500, "unlock": "m"}}}"#;
    let report = run(&file("a.json", text));
    // 2 x 100 ticks, 200 rounds of the boss and of the worker
    let events = metric(&report, "events");
    assert!((590.0..=606.0).contains(&events), "{events}");
    for (part, other) in [
        ("2000", "3000"),
        ("10000", "20000"),
        ("1000", "2000"),
        ("4000", "3000"),
        ("500", "700"),
        ("\"instance\": 2", "\"instance\": 3"),
    ] {
        assert_ne!(
            run(&file("b.json", &text.replacen(part, other, 1)))["metrics"],
            report["metrics"],
            "{part}"
        );
    }
    // each thread by itself; one that works more is not the one that waits for less
    let names: Vec<_> =
        report["threads"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tick-0", "tick-1", "boss-0", "worker-0"]);
    let of = |thread: usize, latency: &str, value: &str| {
        report["threads"][thread][latency][value].as_f64().unwrap()
    };
    let counted: f64 = (0..4).map(|thread| of(thread, "event_latency_us", "count")).sum();
    assert_eq!(counted, events);
    assert!(of(0, "event_latency_us", "p50") >= 2000.0 && of(3, "event_latency_us", "p50") < 6000.0);
    assert!((0..4).all(|i| of(i, "wakeup_latency_us", "max") >= of(i, "wakeup_latency_us", "p50")));
    let printed = stdout(&["run", &file("a.json", text), "--machine", MACHINE]);
    assert!(printed.contains("\ntick-1 "), "{printed}");
    assert!(run("hackbench -g 1 -l 5").get("threads").is_none());
    let output = coreward(&["run", &file("c.json", &text.replace("sleep", "slep")), "--machine", MACHINE]);
    assert_eq!(output.status, 2);
    let message = output.stderr;
    assert!(
        message.starts_with("coreward: rt-app: ")
            && message.contains("c.json:3: tasks.boss.slep is not known"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1);
}
