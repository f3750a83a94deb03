//! Synthetic workloads of recorded ones: near what was recorded, and further from it the more one asks for.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{coreward, directory, stdout_noted, text};
use serde_json::Value;

/// Channels of a request, and of a client's answers.
const ASKED: u32 = 0;
const ANSWERED: u32 = 1;

fn run(workload: &str, machine: &str, more: &[&str]) -> Value {
    let args = ["run", workload, "--machine", machine, "--json"];
    serde_json::from_str(&stdout_noted(&[&args, more].concat())).unwrap()
}

fn metric(report: &Value, name: &str) -> f64 {
    report["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// What happens in a second: switches and wakeups.
fn rates(report: &Value) -> [f64; 2] {
    ["context_switches", "wakeups"].map(|name| metric(report, name) / metric(report, "runtime_s"))
}

/// A figure of a class.
fn of(report: &Value, class: &str, path: &str) -> f64 {
    let classes = report["classes"].as_array().unwrap();
    let class = classes.iter().find(|of| of["class"] == class).unwrap_or_else(|| panic!("{report}"));
    class.pointer(&format!("/simulated/{path}")).and_then(Value::as_f64).unwrap()
}

/// The largest ratio of two figures, less one.
fn farthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.max(*b) / a.min(*b) - 1.0).fold(0.0, f64::max)
}

#[test]
fn what_was_simulated_and_recorded_is_synthesized() {
    for (test, workload, machine) in [
        ("synth_pipe", "perf bench sched pipe -l 2000", "2c"),
        ("synth_cyclictest", "cyclictest -t 3 -i 500 -l 500", "2c"),
        ("synth_server", "server --threads 8 --time 1", "4c"),
        ("synth_schbench", "schbench -m 1 -t 4 -r 1", "4c"),
    ] {
        let dir = directory(test);
        let (ftrace, file) = (dir.join("run.txt"), dir.join("w.cww"));
        let original = rates(&run(workload, machine, &["--ftrace", text(&ftrace)]));
        stdout_noted(&["import", text(&ftrace), "--machine", machine, "-o", text(&file)]);
        let replayed = rates(&run(text(&file), machine, &[]));
        let synthetic = run(&format!("{} --synth", text(&file)), machine, &[]);
        assert!(metric(&synthetic, "events") > 100.0, "{workload}: turns are events");
        let synthetic = rates(&synthetic);
        println!("{workload}: {original:?}, replayed {replayed:?}, synthetic {synthetic:?}");
        assert!(farthest(&synthetic, &replayed) < 0.06, "{workload}: {synthetic:?}, replayed {replayed:?}");
        assert!(farthest(&synthetic, &original) < 0.12, "{workload}: {synthetic:?}, {original:?}");
    }
}

/// Four clients that think for some 1 ms and ask a server, which works for some 100 us; 50 rounds of each.
fn service(test: &str, change: impl Fn(&mut Vec<String>, usize)) -> PathBuf {
    let clients = 4;
    let task = |name: String, answers: Option<u32>, steps: &[String]| {
        let answers = answers.map(|channel| format!("\"answers\":{channel},")).unwrap_or_default();
        format!("{{\"name\":\"{name}\",\"process\":0,\"nice\":0,{answers}\"steps\":\"{}\"}}", steps.join(" "))
    };
    let mut tasks = Vec::new();
    for client in 0..clients {
        // a client's next thinking is unlike its last: of one that changes by 1 % at a time, a replay has fewer wakeups
        // than a synthesis, which draws each by itself, because clients that met keep meeting
        let round = |i: usize| {
            let own = ANSWERED + client as u32;
            let (think, work) =
                (800_000 + (i * 157_979 + client * 104_729) % 400_000, 15_000 + i * 7919 % 10_000);
            [format!("s{think}"), format!("r{work}"), format!("p{ASKED}"), format!("t{own}")]
        };
        let mut steps: Vec<String> = (0..50).flat_map(round).collect();
        change(&mut steps, client);
        tasks.push(task(format!("a client {client}-0"), Some(ANSWERED + client as u32), &steps));
    }
    let serve = |i: usize| [format!("q{ASKED}"), format!("r{}", 80_000 + i * 7919 % 40_000), "y".into()];
    let mut steps: Vec<String> = (0..50 * clients).flat_map(serve).collect();
    change(&mut steps, clients);
    tasks.push(task("server-0".into(), None, &steps));
    let file = directory(test).join("service.cww");
    let json = format!(
        "{{\"coreward_workload\":1,\"origin\":\"by hand\",\"assumptions\":[],\"tasks\":[{}]}}",
        tasks.join(",")
    );
    fs::write(&file, json).unwrap();
    file
}

fn unchanged(_: &mut Vec<String>, _: usize) {}

/// Of both classes: turns in a second, and time on a CPU in a second.
fn score(report: &Value) -> [f64; 4] {
    let runtime = metric(report, "runtime_s");
    ["a client *", "server"]
        .map(|class| [of(report, class, "wakeups") / runtime, of(report, class, "cpu_s") / runtime])
        .concat()
        .try_into()
        .unwrap()
}

#[test]
fn each_option_moves_what_it_is_for() {
    let file = service("synth_options", unchanged);
    let w = |options: &str| format!("{} {options}", text(&file));
    // a replay has some 120 wakeups of the server: the mean of ten is known to 3 %; and its tasks have to be created
    let mut replayed = [0.0; 4];
    for seed in 1..=10 {
        let one = score(&run(text(&file), "4c", &["--seed", &seed.to_string()]));
        for (sum, one) in replayed.iter_mut().zip(one) {
            *sum += one / 10.0;
        }
    }
    let base = run(&w("--time 0.5"), "4c", &["--seed", "1"]);
    assert!(farthest(&score(&base), &replayed) < 0.06, "{:?} {replayed:?}", score(&base));
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.1, "{got}, not {wanted}");
    near(metric(&base, "runtime_s"), 0.5);
    near(metric(&run(&w("--time 1 --synth"), "4c", &["--scale", "0.5"]), "runtime_s"), 0.5);
    // a second, where the file says nothing
    near(metric(&run(&w("--synth"), "4c", &[]), "runtime_s"), 1.0);
    // the ratio of a figure to that without options
    let moves = |options: &str, class: &str, path: &str| {
        of(&run(&w(&format!("--time 0.5 {options}")), "4c", &[]), class, path) / of(&base, class, path)
    };
    let (client, server) = ("a client *", "server");
    near(moves("--tasks a_client_*=8", client, "tasks"), 2.0);
    // twice the clients, which a server with 70 % of a CPU makes wait a little
    near(moves("--tasks a_client_*=8", server, "cpu_s"), 1.9);
    near(moves("--tasks a_client_*=2", server, "cpu_s"), 0.5);
    near(moves("--tasks server=2", server, "tasks"), 2.0);
    near(moves("--tasks server=2", server, "cpu_s"), 1.0);
    // but for what the kernel does, which stays
    near(moves("--work a_client_*=2", client, "cpu_s"), 1.75);
    near(moves("--work server=0.5", server, "cpu_s"), 0.5);
    near(moves("--sleep a_client_*=3", server, "cpu_s"), 0.4);
    // with so much work the server is the bottleneck, and a second one helps
    let slow = moves("--work server=8", client, "requests");
    assert!(slow < 0.4, "{slow}");
    near(moves("--work server=8 --tasks server=2", client, "requests") / slow, 1.7);
}

#[test]
fn what_is_taken_at_once_is_waited_for_once() {
    // wakeups for each round of the giver, which sleeps once in it
    let wakeups = |name: &str, taker: &str, options: &str| {
        let file = directory(name).join("w.cww.json");
        let steps = |round: &str| [round; 50].join(" ");
        let json = format!(
            "{{\"coreward_workload\": 1, \"origin\": \"by hand\", \"assumptions\": [], \"duration_s\": 0.1, \"tasks\": [\
             {{\"name\": \"giver\", \"process\": 0, \"nice\": 0, \"steps\": \"{}\"}}, \
             {{\"name\": \"taker\", \"process\": 1, \"nice\": 0, \"steps\": \"{}\"}}]}}",
            steps("s500000 r500000 p0 r500000 p0 r500000 p0"),
            steps(taker)
        );
        fs::write(&file, json).unwrap();
        metric(&run(&format!("{}{options}", text(&file)), "4c", &[]), "wakeups") / 50.0
    };
    for options in ["", " --synth"] {
        let [at_once, one_by_one] =
            [("synth_at_once", "t0 t0 t0 r1000"), ("synth_apart", "t0 r300 t0 r300 t0 r400")]
                .map(|(name, taker)| wakeups(name, taker, options));
        assert!((at_once - 2.0).abs() < 0.2, "{options}: {at_once} of 2 wakeups a round");
        assert!((one_by_one - 4.0).abs() < 0.4, "{options}: {one_by_one} of 4 wakeups a round");
    }
}

#[test]
fn what_is_made_wrongly_is_further_off() {
    let right = service("synth_right", unchanged);
    let synthetic = |file: &Path| score(&run(&format!("{} --synth", text(file)), "4c", &[]));
    let replayed = score(&run(text(&right), "4c", &[]));
    let error = farthest(&synthetic(&right), &replayed);
    // the distributions of the classes exchanged: what they compute, or how long they think
    let exchanged = service("synth_exchanged", |steps, _| {
        for step in steps.iter_mut() {
            match step.strip_prefix('r').map(|ns| ns.parse::<u64>().unwrap()) {
                Some(ns) if ns > 50_000 => *step = format!("r{}", ns / 5),
                Some(ns) => *step = format!("r{}", ns * 5),
                None => {}
            }
        }
    });
    // the clients send to each other instead of to the server, which they wake once before
    let shuffled = service("synth_shuffled", |steps, client| {
        let next = ANSWERED + (client as u32 + 1) % 4;
        let posts = steps.iter_mut().filter(|step| **step == format!("p{ASKED}"));
        posts.skip(1).for_each(|step| *step = format!("p{next}"));
    });
    for (what, file) in [("distributions", exchanged), ("channels", shuffled)] {
        let wrong = farthest(&synthetic(&file), &replayed);
        println!("{what}: {wrong}, as recorded {error}");
        assert!(wrong > 3.0 * error, "{what} exchanged are as near: {wrong}, {error}");
    }
}

#[test]
fn draws_are_of_the_seed() {
    let file = service("synth_seeds", unchanged);
    let w = format!("{} --synth --time 0.2", text(&file));
    let with = |seed: &str| stdout_noted(&["run", &w, "--machine", "2c", "--seed", seed]);
    assert_eq!(with("1"), with("1"));
    let busy = |seed: &str| metric(&run(&w, "2c", &["--seed", seed]), "busy_s");
    assert_ne!(busy("1"), busy("2"));
}

#[test]
fn it_is_a_workload_like_any_other() {
    let file = service("synth_commands", unchanged);
    let w = format!("{} --tasks a_client_*=6 --time 0.1", text(&file));
    let compared =
        stdout_noted(&["compare", &w, "--machine", "2c", "--with", "base_slice_ns=8ms", "--runs", "2"]);
    assert!(compared.contains(&format!("workload  {w}")), "{compared}");
    let explained = stdout_noted(&["explain", &w, "--machine", "2c"]);
    // the one that starts the others, six clients and the server
    assert!(explained.contains("fork of task 8") && !explained.contains("fork of task 9"), "{explained}");
    let suite = file.with_file_name("suite.toml");
    let sized = w.replace("=6", "=<cpus*2>");
    let row = format!(
        "[[row]]\nname = \"synthetic\"\nworkload = \"{sized}\"\nmetrics = [\"events_per_s\"]\nreason = \"x\"\n"
    );
    fs::write(&suite, row).unwrap();
    let args = ["matrix", "--with", "base_slice_ns=8ms", "--suite", text(&suite), "--machine", "2c"];
    assert!(stdout_noted(&args).contains("synthetic"));
}

#[test]
fn wrong_options_are_refused() {
    let file = service("synth_wrong", unchanged);
    for (options, what) in [
        ("--taks server=2", "service.cww: unexpected argument '--taks'"),
        ("x", "unexpected argument 'x' found (allowed: --synth --tasks CLASS=N --work CLASS=X"),
        (
            "--tasks sever=2",
            "--tasks: unknown class `sever`, did you mean `server`? allowed are a_client_*, server",
        ),
        ("--work a=2", "--work: unknown class `a`, allowed are a_client_*, server"),
        ("--sleep server", "it has to be CLASS=VALUE"),
        ("--tasks server=0", "allowed are 1 to 100000"),
        ("--work server=0", "allowed are 0.001 to 1000"),
        ("--sleep server=x", "allowed are 0.001 to 1000"),
        ("--time 0", "allowed are 0.001 to 1000000"),
        ("--work server=2 --work server=3", "--work: class `server` is given twice"),
        ("--tasks a_client_*=90000 --tasks server=90000", "it has 180000 tasks with"),
    ] {
        let ran = coreward(&["run", &format!("{} {options}", text(&file)), "--machine", "2c"]);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options}: {}", ran.stderr);
        assert!(ran.stderr.contains(what) && ran.stderr.lines().count() == 1, "{options}: {}", ran.stderr);
    }
}
