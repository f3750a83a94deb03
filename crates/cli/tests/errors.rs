//! Wrong input: one line that says what is wrong and what is allowed, exit status 2, nothing on standard output.

mod common;

use std::fs;

use common::{coreward, directory};
use coreward_policy::Profile;

const WORKLOADS: &str = "hackbench, sysbench threads, perf bench sched pipe, perf bench sched messaging, schbench, \
                         schbench-old, cyclictest, stress-ng, netperf, tbench, rt-app, encoder, server, each with its \
                         options, and FILE.cww, FILE.cww.toml or FILE.cww.json, which coreward import writes";

const RUN: [&str; 4] = ["run", "hackbench -g 1 -f 1 -l 1 --pipe", "--machine", "1n1l2c1t"];

fn refused(args: &[&str], message: &str) {
    let ran = coreward(args);
    assert_eq!(ran.stderr, format!("coreward: {message}\n"), "{args:?}");
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
}

fn refused_option(options: &[&str], message: &str) {
    refused(&[&RUN[..], options].concat(), message);
}

const PRESETS: &str = "arm-2x4, e5-10c-2s, e5-2680v3-2s, epyc-7543-2s, epyc-7543-2s-nps1, epyc-9654-2s, epyc-zen4-2x128, hikey, \
                       juno-r0, pixel3, pixel3-phantom, power10, power10-12c, power10-46c, thunderx2-2s, xeon-32c-2s, xeon-56c-2s, xeon-60c-2s";

#[test]
fn machines() {
    let sources = format!(
        "give a preset ({PRESETS}), a path ending in .toml or .json, sysfs for this machine, sysfs:DIR, hwloc:FILE or a shorthand like 2n4l8c2t"
    );
    let unknown = format!(
        "unknown machine `epyc`: did you mean `epyc-7543-2s`, `epyc-9654-2s` or `epyc-zen4-2x128`? {sources}"
    );
    refused(&["topology", "epyc"], &unknown);
    refused(&["run", "hackbench", "--machine", "epyc"], &format!("--machine: {unknown}"));
    refused(&["topology", "no.toml"], "cannot read no.toml: No such file or directory (os error 2)");
    let ran = coreward(&["domains", "sysfs:/nowhere"]);
    assert!(ran.stderr.starts_with("coreward: cannot read /nowhere"), "{}", ran.stderr);
}

#[test]
fn domains() {
    let e5 = "e5-2680v3-2s";
    refused(&["domains", e5, "--cpu", "48"], "--cpu is 48, allowed are 0 to 47 on e5-2680v3-2s");
    // Levels 0, 2 and 5: the refused values of seed 002.
    refused(
        &["domains", e5, "--relax-domain-level", "7"],
        "relax_domain_level is 7, allowed are -1 (no request) to 6 on this machine, whose top level is 5",
    );
    refused(
        &["domains", e5, "--relax-domain-level", "5", "--relax-semantics", "before"],
        "relax_domain_level is 5, allowed are -1 (no request) to 4 on this machine, whose top level is 5",
    );
    refused(
        &["domains", e5, "--relax-semantics", "during"],
        "invalid value 'during' for '--relax-semantics <WHEN>' [possible values: before, after]",
    );
    refused_option(
        &["--relax-domain-level", "99999"],
        "relax_domain_level is 99999, allowed are -1 (no request) to 3 on this machine, whose top level is 2",
    );
}

#[test]
fn profiles_and_features() {
    let profiles = format!("allowed are {}", Profile::ALL.join(", "));
    refused(&["features", "--profile", "linux-2.4"], &format!("unknown profile `linux-2.4`, {profiles}"));
    refused_option(&["--profile", "6.4"], &format!("--profile: unknown profile `6.4`, {profiles}"));
    let ran = coreward(&[&RUN[..], &["--sched-feat", "NO_SUCH"]].concat());
    assert_eq!(ran.status, 2);
    assert_eq!(
        ran.stderr,
        "coreward: --sched-feat: unknown feature `SUCH`, `coreward features` lists all, each also with NO_ before it\n"
    );
}

#[test]
fn tunables_and_costs() {
    refused_option(&["--cost", "tick_ns=1", "--cost", "tick_ns=2"], "--cost: tick_ns is there twice");
    refused_option(&["--set", "nr_migrate=0"], "--set: nr_migrate is 0, allowed are 1 to 128 (tasks)");
    refused_option(
        &["--set", "slice_ns=6"],
        "--set: unknown tunable `slice_ns`, did you mean `base_slice_ns`? `coreward features` lists all",
    );
    for wrong in ["nr_migrate", "nr_migrate=", "nr_migrate=4.5", "nr_migrate=99999999999999999999"] {
        let what = "allowed is NAME=VALUE with an integer value, for a time also like 2ms";
        refused_option(
            &["--set", wrong],
            &format!("invalid value '{wrong}' for '--set <TUNABLE=VALUE>': {what}"),
        );
    }
    let compare = ["compare", "hackbench -g 1", "--machine", "2c", "--with", "NO_SIS_UTIL"];
    for (options, message) in [
        (&["--runs", "-1"][..], "invalid value '-1' for '--runs <N>': allowed are 1 to 1000"),
        (&["--scale", "-1"], "invalid value '-1' for '--scale <X>': scale is -1, allowed are "),
        (
            &["--precision", "-1%"],
            "invalid value '-1%' for '--precision <PERCENT>': allowed are 0.01% to 100%",
        ),
        (&["--budget", "-5s"], "invalid value '-5s' for '--budget <TIME>': allowed are 1s to 168h"),
        (&["--ablations"], "--ablations are those of an experiment file, and there is none"),
    ] {
        let ran = coreward(&[&compare[..], options].concat());
        assert_eq!(ran.status, 2);
        assert!(ran.stderr.starts_with(&format!("coreward: {message}")), "{}", ran.stderr);
    }
    for value in ["-1", "1000001"] {
        let message = format!("--cost: tick_ns is {value}, allowed are 0 to 1000000");
        refused_option(&["--cost", &format!("tick_ns={value}")], &message);
    }
    for value in ["-1", "5"] {
        let ran = coreward(&[&RUN[..], &["--cost", &format!("tick={value}")]].concat());
        assert_eq!(ran.status, 2);
        assert!(ran.stderr.starts_with(
            "coreward: --cost: unknown cost `tick`, did you mean `tick_ns`? `coreward topology 1c --toml` lists all"
        ));
    }
}

#[test]
fn numbers() {
    for wrong in ["0", "1.5", "1e-3", "0.0000001"] {
        refused_option(
            &["--scale", wrong],
            &format!(
                "invalid value '{wrong}' for '--scale <X>': scale is {wrong}, allowed are 0.000001 to 1, with at most 6 decimals"
            ),
        );
    }
    refused_option(
        &["--time-limit", "0"],
        "invalid value '0' for '--time-limit <SECONDS>': allowed are 1 to 1000000",
    );
    refused_option(
        &["--schedstat", "s", "--schedstat-version", "14"],
        "invalid value '14' for '--schedstat-version <V>': allowed are 15, 16, 17",
    );
    refused(
        &["compare", "x.toml", "--jobs", "0"],
        "invalid value '0' for '--jobs <J>': allowed are 1 to 1024",
    );
    let no_change =
        "--machine: an experiment names its own machine; a workload needs --with, the change to compare";
    refused(&["compare", "x.toml", "--machine", RUN[3]], no_change);
    refused(&["compare", "hackbench", "-g", "1", "--machine", RUN[3]], no_change);
    refused(
        &["compare", "x.toml", "--runs", "0"],
        "invalid value '0' for '--runs <N>': allowed are 1 to 1000",
    );
    refused(
        &["explain", RUN[1], "--machine", RUN[3], "--cpu", "2"],
        "--cpu is 2, allowed are 0 to 1 on 1n1l2c1t",
    );
    refused(
        &["explain", RUN[1], "--machine", RUN[3], "--pid", "99999"],
        "no decision of this run is about task 99999 (--pid)",
    );
    let headline = |metrics: &[&str], message: &str| {
        let with = ["compare", RUN[1], "--machine", RUN[3], "--runs", "1", "--with", "NO_TTWU_QUEUE"];
        let ran = coreward(&[&with[..], metrics].concat());
        assert_eq!((ran.status, ran.stderr), (2, format!("coreward: --headline: {message}\n")));
        assert_eq!(ran.stdout, "");
    };
    headline(&["--headline", "runtime_s", "--headline", "runtime_s"], "runtime_s is there twice");
    headline(
        &["--headline", "reply_latency_us_p99"],
        "no run has reply_latency_us_p99, which is not measured in such a workload",
    );
    let compare = ["compare", RUN[1], "--machine", RUN[3], "--with", "NO_TTWU_QUEUE", "--runs", "1"];
    refused(
        &[&compare[..], &["--fail-if-worse"]].concat(),
        "--fail-if-worse: one run a side is not tested, allowed are two or more",
    );
    let matrix = ["matrix", "--with", "NO_TTWU_QUEUE", "--machine", "2c"];
    let twice = ["--workload", "perf-pipe", "--workload", "perf-pipe"];
    refused(&[&matrix[..], &twice].concat(), "--workload: `perf-pipe` is named twice");
}

/// A gate on a metric that no run has would never close.
#[test]
fn metrics_that_are_not_measured() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let said = "no run has event_latency_us_p99, which is not measured in such a workload";
    let experiment = "name = 'e'\nmachine = '2c'\nworkload = 'hackbench -g 1 -f 1 -l 5'\nruns = 2\n";
    let sides = "[baseline]\nlabel = 'a'\n[[variant]]\nlabel = 'b'\nset = { nr_migrate = 8 }\n";
    let of = |headline: &str| file("e.toml", &format!("{experiment}headline = {headline}\n{sides}"));
    let e = of("['event_latency_us_p99']");
    refused(&["compare", &e, "--fail-if-worse"], &format!("e: headline: {said}"));
    let e = of("['runtime_s', 'runtime_s']");
    refused(&["compare", &e], &format!("{e}:5: headline: runtime_s is there twice"));
    let row = "[[row]]\nname = 'a'\nworkload = 'hackbench -g 1 -f 1 -l 5'\nreason = 'r'\n";
    let suite = file("suite.toml", &format!("{row}metrics = ['event_latency_us_p99']\n"));
    let matrix = ["matrix", "--suite", &suite, "--machine", "2c", "--with", "NO_TTWU_QUEUE", "--runs", "2"];
    refused(&matrix, &format!("a: {said}"));
    file("suite.toml", &format!("{row}metrics = ['runtime_s', 'runtime_s']\n"));
    refused(&matrix, &format!("{suite}:1: metrics: runtime_s is there twice"));
    let sweep = "name = 's'\nmachines = ['2c']\nworkloads = ['hackbench -g 1 -f 1 -l 5']\nruns = 2\n";
    let of =
        |metrics: &str| file("s.toml", &format!("{sweep}metrics = {metrics}\n[grid]\nnr_migrate = [8]\n"));
    let s = of("['event_latency_us_p99']");
    refused(&["sweep", &s], &format!("workload-1: {said}"));
    let s = of("['runtime_s', 'runtime_s']");
    refused(&["sweep", &s], &format!("{s}:5: metrics: runtime_s is there twice"));
}

/// On the command line the last word counts; in a file, one of two would do nothing.
#[test]
fn a_feature_that_a_file_names_twice() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("e.toml");
    let variant = "[[variant]]\nlabel = 'b'\nsched_feat = ['UTIL_EST', 'NO_UTIL_EST']\n";
    let text = format!(
        "name = 'e'\nmachine = '2c'\nworkload = 'hackbench -l 1'\n[baseline]\nlabel = 'a'\n{variant}"
    );
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    refused(&["compare", path], &format!("{path}:8: variant.sched_feat: UTIL_EST is named twice"));
}

#[test]
fn workloads() {
    let run = |workload| ["run", workload, "--machine", "1n1l2c1t"];
    refused(
        &run("hackbnch -g 1"),
        &format!("workload 'hackbnch' is not known, did you mean `hackbench`? allowed are {WORKLOADS}"),
    );
    refused(&run(""), &format!("workload '' is not known, allowed are {WORKLOADS}"));
    let ran = coreward(&run("hackbench -g 0"));
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("coreward: hackbench: invalid value '0' for '--groups"), "{}", ran.stderr);
}

#[test]
fn command_lines() {
    refused(&[], "no command given, see coreward --help");
    refused(&["policy"], "no command given, see coreward policy --help");
    refused(&["bench"], "unrecognized subcommand 'bench'");
    refused(&["run"], "the following required arguments were not provided: --machine <M> <WORKLOAD>");
    refused(&["machines", "--jsn"], "unexpected argument '--jsn' found, a similar argument exists: '--json'");
}

/// A comparison is of an experiment file or of a workload, and each has options of its own.
#[test]
fn what_is_compared() {
    for option in [["--seed", "3"], ["--with", "NO_TTWU_QUEUE"], ["--profile", "6.6"]] {
        let message =
            "is for a workload, with --machine and --with; an experiment has its own sides and seeds";
        refused(&[&["compare", "x.toml"][..], &option].concat(), &format!("{} {message}", option[0]));
    }
    refused(
        &["compare", "hackbench -g 1"],
        "hackbench -g 1: a workload needs --machine, and --with, the change to compare",
    );
    let of = ["--machine", "2c", "--with", "NO_TTWU_QUEUE", "--json", "out.json"];
    refused(
        &[&["compare", "hackbench -g 1"][..], &of].concat(),
        "--with takes one workload, given are `hackbench -g 1` and `out.json`; a workload is one argument, in quotes, \
         and a value that an option may have follows it in one word (--json=F)",
    );
}

/// An experiment that is right but for what a test changes in it.
const EXPERIMENT: &str = r#"name = "e"
machine = "1n1l2c1t"
workload = "hackbench -g 1 -f 1 -l 1 --pipe"
runs = 2
headline = ["runtime_s"]
[baseline]
label = "a"
sched_feat = ["NO_UTIL_EST"]
[[variant]]
label = "b"
set = { nr_migrate = 8 }
cost = { tick_ns = 0 }
"#;

#[test]
fn experiments() {
    let dir = directory("experiments");
    let file = dir.join("e.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, EXPERIMENT).unwrap();
    assert_eq!(coreward(&["compare", path]).status, 0, "it is right as it is");

    let relax =
        "relax_domain_level is 7, allowed are -1 (no request) to 3 on this machine, whose top level is 2";
    let profiles = format!("allowed are {}", Profile::ALL.join(", "));
    for (old, new, message) in [
        ("runs = 2", "runs = 0", "4: runs: runs is 0, allowed are 1 to 1000".to_owned()),
        ("runs = 2", "time_limit = 0", "4: time_limit: time_limit is 0, allowed are 1 to 1000000".to_owned()),
        ("runs = 2", "runs = -1", "4: runs: runs is -1, allowed are 1 to 1000".to_owned()),
        ("runs = 2", "skip_steady = 50", "4: skip_steady: it is 50, allowed are 0.1 to 20".into()),
        ("runs = 2", "points = 9", "4: points: it is 9, allowed are 10 to 4096".into()),
        ("runs = 2", "skip_steady = nan", "4: skip_steady: it is NaN, allowed are 0.1 to 20".into()),
        ("runs = 2", "relax_domain_level = 7", format!(" a: {relax}")),
        (
            "runs = 2",
            "relax_domain_level = 11",
            "4: relax_domain_level: relax_domain_level is 11, allowed are -1 to 10 (level)".to_owned(),
        ),
        ("nr_migrate = 8", "nr_migrate = 0", "11: variant.set: nr_migrate is 0, allowed are 1 to 128 (tasks)".to_owned()),
        (
            "tick_ns = 0",
            "tick_ns = -5",
            "12: variant.cost: tick_ns is -5, allowed are 0 to 1000000".to_owned(),
        ),
        (
            "label = \"a\"",
            "label = \"a\"\nprofile = \"x\"",
            format!("8: baseline.profile: unknown profile `x`, {profiles}"),
        ),
        ("1n1l2c1t", "1n1lxc1t", "2: machine: ".to_owned()),
        ("hackbench", "x", format!("3: workload: workload 'x' is not known, allowed are {WORKLOADS}")),
        ("NO_UTIL_EST", "NO_UTIL", "8: baseline.sched_feat: unknown feature `UTIL`, did you mean `UTIL_EST`, `SIS_UTIL` or `ASYM_SIS_UTIL`? ".to_owned()),
        (
            "label = \"b\"",
            "lable = \"b\"",
            "10: unknown field `lable`, did you mean `label`? expected one of `label`, `profile`, `policy`, `sched_feat`, `set`, `cost`, `seed`".to_owned(),
        ),
        ("name", "nmae", "1: unknown field `nmae`, did you mean `name`? expected one of `name`, `title`, ".to_owned()),
        ("machine =", "#", "1: missing field `machine`".to_owned()),
        ("runtime_s", "runtime", "5: unknown variant `runtime`, did you mean `runtime_s`? expected one of `runtime_s`, ".to_owned()),
        ("[[variant]]", "[[published]]", "10: unknown field `label`, expected one of `id`, `case`, `variant`, `metric`, ".to_owned()),
        ("runs = 2", "runs = \"2\"", "4: invalid type: string \"2\", expected i64".to_owned()),
        ("runs = 2", "runs =", "4: ".to_owned()),
    ] {
        let text = EXPERIMENT.replacen(old, new, 1);
        assert_ne!(text, EXPERIMENT, "{old}");
        fs::write(&file, text).unwrap();
        let ran = coreward(&["compare", path]);
        let start = format!("coreward: {path}:{message}");
        assert!(ran.stderr.starts_with(&start), "{new}: {} is not {start}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{new}");
    }
}

#[test]
fn experiment_files() {
    let dir = directory("experiment_files");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let missing = path("missing.toml");
    refused(
        &["compare", &missing],
        &format!("cannot read {missing}: No such file or directory (os error 2)"),
    );
    fs::create_dir(dir.join("empty")).unwrap();
    let empty = path("empty");
    refused(&["compare", &empty], &format!("{empty}: there is no *.toml file in it"));
    let text = path("bytes.toml");
    fs::write(&text, b"name = \"\xff\"").unwrap();
    refused(&["compare", &text], &format!("cannot read {text}: it is not UTF-8 text"));
    fs::write(&text, " ".repeat((1 << 20) + 1)).unwrap();
    refused(&["compare", &text], &format!("cannot read {text}: it is larger than 1024 KiB"));
    refused(&["compare", "/dev/zero"], "cannot read /dev/zero: it is not a regular file");
    fs::write(&text, EXPERIMENT).unwrap();
    refused(
        &["compare", &text, &text, "--html", &path("o.html")],
        "--html takes one experiment, given are 2",
    );
    refused(
        &["compare", &text, "--ablations"],
        &format!("--ablations: {text} has none of the cases that are run"),
    );
    let events = path("events.toml");
    fs::write(&events, format!("events = [\"1s offline 1\"]\nskip_steady = 5\n{EXPERIMENT}")).unwrap();
    let both =
        "events: each has its time, which skip_steady (--skip-steady) may skip; allowed is one of them";
    refused(&["compare", &events], &format!("{events}: {both}"));
    // a machine whose costs are known exactly has none that could vary
    let shown = coreward(&["topology", "2c", "--toml"]).stdout;
    let (shape, costs) = shown.split_once("[costs]\n").unwrap();
    let (costs, _) = costs.split_once("\n[[idle]]").unwrap();
    let exact = |line: &str| match line.split_once(" = ") {
        Some((name, value)) if value.parse::<u64>().is_ok() => {
            format!("{name} = {{ value = {value}, low = {value}, high = {value} }}\n")
        }
        _ => format!("{line}\n"),
    };
    let machine = path("exact.toml");
    fs::write(&machine, format!("{shape}[costs]\n{}", costs.lines().map(exact).collect::<String>())).unwrap();
    let sides = ["compare", RUN[1], "--machine", &machine, "--with", "seed=5", "--runs", "2", "--quiet"];
    let none = "--intervals: no cost of 2c has bounds between which it may lie";
    refused(&[&sides[..], &["--intervals=10"]].concat(), none);
}

#[test]
fn numbers_out_of_all_ranges() {
    let many = "99999999999999999999";
    for (option, field, allowed) in [
        ("--seed", "--seed <S>", "0 to 18446744073709551615"),
        ("--time-limit", "--time-limit <SECONDS>", "1 to 1000000"),
        ("--relax-domain-level", "--relax-domain-level <N>", "-1 to 2147483647"),
        ("--task-group-depth", "--task-group-depth <N>", "0 to 16"),
    ] {
        for value in [many, "x", "1.5"] {
            let message = format!("invalid value '{value}' for '{field}': allowed are {allowed}");
            refused_option(&[option, value], &message);
        }
    }
    let ran = coreward(&["run", &format!("hackbench -g {many}"), "--machine", "1n1l1c1t"]);
    assert!(ran.stderr.contains("'--groups <GROUPS>': allowed are 1 to 100000 "), "{}", ran.stderr);

    let dir = directory("out_of_all_ranges");
    let file = dir.join("f.toml");
    let path = file.to_str().unwrap();
    for (text, line, what) in [
        (format!("x = {}", "[".repeat(200)), 1, "it is nested too deeply, allowed are 80 levels"),
        (
            format!("\nhz = {many}"),
            2,
            "the integer is out of range, allowed are -9223372036854775808 to 9223372036854775807",
        ),
    ] {
        fs::write(&file, text).unwrap();
        for command in ["topology", "compare"] {
            refused(&[command, path], &format!("{path}:{line}: {what}"));
        }
    }
    fs::write(&file, "name = 'e'\nseed = -5").unwrap();
    refused(
        &["compare", path],
        &format!("{path}:2: invalid value: integer `-5`, allowed are 0 to 9223372036854775807"),
    );
}

#[test]
fn long_names_are_shortened() {
    let name = format!("{}{}", "a".repeat(5000), "z".repeat(5000));
    let short = format!("{}…{}", "a".repeat(99), "z".repeat(98));
    let ran = coreward(&["topology", &name]);
    assert!(ran.stderr.starts_with(&format!("coreward: unknown machine `{short}`: give")), "{}", ran.stderr);
    let dir = directory("long_names");
    let file = dir.join("w.json");
    fs::write(&file, format!("{{ \"tasks\": {{ \"{name}\": {{ \"phases\": 1 }} }} }}")).unwrap();
    let ran = coreward(&["run", &format!("rt-app {}", file.display()), "--machine", "1n1l1c1t"]);
    assert!(ran.status == 2 && ran.stderr.len() < 1000 && ran.stderr.contains("z.phases"), "{}", ran.stderr);
    let ran = coreward(&["run", &"hackbench ".repeat(10_000), "--machine", "1n1l1c1t"]);
    assert!(ran.status == 2 && ran.stderr.len() < 5000, "{}", ran.stderr);
}

#[test]
fn a_stuck_run_names_a_task_and_what_it_waits_for() {
    let dir = directory("stuck");
    let file = dir.join("w.json");
    let text = r#"{ "tasks": { "a": { "loop": 1, "phases": { "p": { "run": 10, "lock": "m", "wait": { "ref": "c", "mutex": "m" } } } } } }"#;
    fs::write(&file, text).unwrap();
    let ran = coreward(&["run", &format!("rt-app {}", file.display()), "--machine", "1n1l1c1t"]);
    let what = "2 tasks wait and nothing will wake them: task 2 waits for condition 0\n";
    assert!(ran.status == 2 && ran.stderr.ends_with(what), "{}", ran.stderr);
}

#[test]
fn a_workload_that_does_not_end_in_time() {
    refused(
        &["run", "hackbench -g 1 -f 2 -l 100000000 --pipe", "--machine", "1n1l1c1t", "--time-limit", "1"],
        "the workload did not end within 1 s of simulated time (--time-limit, or time_limit of an experiment, allowed are 1 to 1000000)",
    );
}

#[test]
fn an_experiment_of_too_many_variants() {
    let dir = directory("too_many_variants");
    let file = dir.join("e.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, EXPERIMENT.to_owned() + &"[[variant]]\nlabel = \"c\"\n".repeat(64)).unwrap();
    refused(&["compare", path], &format!("{path}: variant: 65 variants, allowed are 1 to 64"));
    let none = EXPERIMENT.split("[[variant]]").next().unwrap();
    fs::write(&file, format!("variant = []\n{none}")).unwrap();
    refused(&["compare", path], &format!("{path}: variant: 0 variants, allowed are 1 to 64"));
}
