//! `coreward import`: a recording becomes a workload that runs like any other.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{coreward, directory, names, stdout, stdout_noted, text};
use serde_json::Value;

/// A client that asks a server 200 times, and thinks on a timer; in the form of ftrace.
fn recording(test: &str, waking: &str) -> PathBuf {
    let mut text = String::from("# tracer: nop\n");
    let mut line = |us: u64, cpu: u32, current: &str, flags: &str, event: &str| {
        text += &format!("{current:>16} (    7) [00{cpu}] {flags} 5.{us:06}: {event}\n");
    };
    let switch = |prev: &str, state: &str, next: &str| {
        let task =
            |word: &str| word.rsplit_once('-').map(|(comm, pid)| (comm.to_owned(), pid.to_owned())).unwrap();
        let ((prev, prev_pid), (next, next_pid)) = (task(prev), task(next));
        format!(
            "sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 prev_state={state} ==> next_comm={next} \
             next_pid={next_pid} next_prio=120"
        )
    };
    let (idle, client, server) = ("<idle>-0", "client-7", "server-8");
    for us in (0..200).map(|i| i * 1000) {
        let wake = |comm: &str, pid: u32| format!("{waking}: comm={comm} pid={pid} prio=120 target_cpu=000");
        line(us, 0, idle, "d.h3.", &wake("client", 7));
        line(us + 5, 0, idle, "d..2.", &switch(idle, "R", client));
        line(us + 105, 0, client, "d..4.", &wake("server", 8));
        line(us + 110, 1, idle, "d..2.", &switch(idle, "R", server));
        line(us + 125, 0, client, "d..2.", &switch(client, "S", idle));
        line(us + 310, 1, server, "d..4.", &wake("client", 7));
        line(us + 315, 0, idle, "d..2.", &switch(idle, "R", client));
        line(us + 330, 1, server, "d..2.", &switch(server, "S", idle));
        line(us + 365, 0, client, "d..2.", &switch(client, "S", idle));
    }
    let file = directory(test).join("recording.txt");
    fs::write(&file, text).unwrap();
    file
}

fn metric(run: &str, machine: &str, name: &str) -> f64 {
    let report: Value =
        serde_json::from_str(&stdout_noted(&["run", run, "--machine", machine, "--json"])).unwrap();
    report["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {report}"))
}

#[test]
fn a_recording_is_imported_and_run() {
    let file = recording("import", "sched_waking");
    let workload = file.with_file_name("w.cww");
    let said = stdout(&["import", text(&file), "-o", text(&workload), "--machine", "2c", "--explain"]);
    for part in [
        "ftrace text, 0.199 s on 2 CPUs (2c), 1800 events",
        "tasks   2 with ",
        "waits   600, ended by task: 400, interrupt: 200",
        "client                    1 ",
        "is written: coreward run ",
    ] {
        assert!(said.contains(part), "no `{part}` in\n{said}");
    }
    let run = text(&workload);
    // 200 rounds of a millisecond, with three waits each
    let runtime = metric(run, "2c", "runtime_s");
    assert!((runtime / 0.2 - 1.0).abs() < 0.03, "{runtime}");
    let wakeups = metric(run, "2c", "wakeups");
    assert!((wakeups / 600.0 - 1.0).abs() < 0.02, "{wakeups}");
    let busy = metric(run, "2c", "busy_s");
    assert!((busy / 0.074 - 1.0).abs() < 0.1, "{busy}");
    let compared =
        stdout_noted(&["compare", run, "--machine", "2c", "--with", "base_slice_ns=8ms", "--runs", "2"]);
    assert!(compared.contains("w.cww"), "{compared}");
}

#[test]
fn what_was_recorded_stands_beside_what_is_simulated() {
    let file = recording("import_classes", "sched_waking");
    let (workload, page) = (file.with_file_name("w.cww"), file.with_file_name("w.html"));
    let explained = stdout(&["import", text(&file), "-o", text(&workload), "--machine", "2c", "--explain"]);
    assert!(explained.contains("requests    p99 us"), "{explained}");
    let run = |machine: &str, more: &[&str]| {
        let args = ["run", text(&workload), "--machine", machine];
        stdout_noted(&[&args, more].concat())
    };
    let report: Value = serde_json::from_str(&run("2c", &["--json"])).unwrap();
    let of = |report: &Value, class: &str, path: &str| {
        let classes = report["classes"].as_array().unwrap();
        let class = classes.iter().find(|of| of["class"] == class).unwrap_or_else(|| panic!("{report}"));
        class.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}: {class}"))
    };
    // a request of the server begins 105 us after the client's, and ends 225 us later
    assert_eq!(of(&report, "server", "/recorded/requests"), 200.0);
    assert_eq!(of(&report, "server", "/recorded/request_us/p50"), 225.0);
    assert_eq!(of(&report, "server", "/recorded/wakeup_latency_us/p99"), 5.0);
    for (path, least) in [("tasks", 1.0), ("wakeups", 0.98), ("cpu_s", 0.9), ("requests", 0.98)] {
        let [recorded, simulated] =
            ["recorded", "simulated"].map(|side| of(&report, "server", &format!("/{side}/{path}")));
        let ratio = (simulated / recorded).min(recorded / simulated);
        assert!(ratio >= least, "{path}: {recorded} {simulated}");
    }
    // whatever is another machine's shows on the simulated side, and only there
    let slow = file.with_file_name("slow.toml");
    let machine = stdout(&["topology", "2c", "--toml"]);
    fs::write(&slow, machine.replace("\"0-1\" = 1024", "\"0-1\" = 512")).unwrap();
    let slower: Value = serde_json::from_str(&run(text(&slow), &["--json"])).unwrap();
    let p50 = |report: &Value, side: &str| of(report, "server", &format!("/{side}/request_us/p50"));
    assert_eq!(p50(&slower, "recorded"), p50(&report, "recorded"));
    assert!(p50(&slower, "simulated") > 1.7 * p50(&report, "simulated"));
    let table = run("2c", &["--html", text(&page)]);
    for (said, row) in [(table, "server recorded"), (fs::read_to_string(&page).unwrap(), "Classes of tasks")]
    {
        assert!(said.contains(row) && said.contains("simulated") && said.contains("225.0"), "{said}");
    }
}

#[test]
fn a_file_of_perf_has_the_events_of_the_text() {
    let dir = directory("import_perf_data");
    let (data, trace) = (dir.join("run.data"), dir.join("run.txt"));
    let run = ["run", "perf bench sched messaging -g 1 -l 20", "--machine", "4c"];
    stdout_noted(&[&run[..], &["--perf-data", text(&data)]].concat());
    stdout_noted(&[&run[..], &["--ftrace", text(&trace)]].concat());
    let report = |file: &Path| -> Value {
        serde_json::from_str(&stdout(&["import", text(file), "--machine", "4c", "--json"])).unwrap()
    };
    let (perf, text) = (report(&data), report(&trace));
    assert_eq!(perf["format"], "perf.data");
    for same in ["switches", "migrations", "waits", "classes", "wakeup_latency_us", "work_s"] {
        assert_eq!(perf[same], text[same], "{same}");
    }
    // the end of each wakeup
    assert_eq!(perf["kinds"]["sched_wakeup"], text["kinds"]["sched_waking"]);
}

#[test]
fn think_time_stays_and_work_shrinks() {
    let file = recording("import_capacity", "sched_waking");
    let slow = file.with_file_name("slow.toml");
    let machine = stdout(&["topology", "2c", "--toml"]);
    let halved = machine.replace("\"0-1\" = 1024", "\"0-1\" = 512");
    assert_ne!(halved, machine);
    fs::write(&slow, &halved).unwrap();
    let runtime = |machine: &str, name: &str| {
        let workload = file.with_file_name(name);
        stdout(&["import", text(&file), "--machine", machine, "-o", text(&workload)]);
        metric(text(&workload), "2c", "runtime_s")
    };
    // of a round of 1000 us, 350 are work that the next one waits for, and 635 are thinking: on a machine of twice the
    // capacity it takes 825
    let ratio = runtime(text(&slow), "faster.cww") / runtime("2c", "same.cww");
    assert!((ratio - 0.825).abs() < 0.02, "{ratio}");
}

#[test]
fn what_was_edited_is_run() {
    let file = recording("import_edited", "sched_waking");
    for (name, start, work, more) in [
        ("w.cww.json", "{\"coreward_workload\": 1,", "a1 r", "a1 r9"),
        ("w.cww.toml", "coreward_workload = 1\n", "a1\nr", "a1\nr9"),
    ] {
        let workload = file.with_file_name(name);
        stdout(&["import", text(&file), "-o", text(&workload)]);
        let written = fs::read_to_string(&workload).unwrap();
        assert!(written.starts_with(start), "{written}");
        let before = metric(text(&workload), "2c", "busy_s");
        let edited = written.replace(work, more);
        assert_ne!(edited, written);
        fs::write(&workload, edited).unwrap();
        assert!(metric(text(&workload), "2c", "busy_s") > before * 1.5, "{name}");
    }
}

#[test]
fn a_workload_has_three_forms() {
    let file = recording("import_forms", "sched_waking");
    let [compressed, toml, json, again] =
        ["w.cww", "w.cww.toml", "w.cww.json", "again.cww"].map(|name| file.with_file_name(name));
    stdout(&["import", text(&file), "-o", text(&compressed)]);
    for (from, to) in [(&compressed, &toml), (&toml, &json), (&json, &again)] {
        let said = stdout(&["import", text(from), "-o", text(to)]);
        assert_eq!(said, format!("{0} is written: coreward run {0} --machine M\n", text(to)));
    }
    assert_eq!(fs::read(&compressed).unwrap(), fs::read(&again).unwrap());
    let runs = [&compressed, &toml, &json].map(|file| {
        let run = stdout_noted(&["run", text(file), "--machine", "2c", "--json"]);
        let mut run: Value = serde_json::from_str(&run).unwrap();
        std::mem::take(&mut run["metrics"])
    });
    assert!(runs[0].is_object() && runs[0] == runs[1] && runs[0] == runs[2]);
    let more = stdout_noted(&["run", &format!("{} --tasks client=2", text(&toml)), "--machine", "2c"]);
    assert!(more.contains("w.cww.toml --tasks client=2"), "{more}");
}

#[test]
fn json_says_what_the_text_says() {
    let file = recording("import_json", "sched_waking");
    let report: Value = serde_json::from_str(&stdout(&["import", text(&file), "--json"])).unwrap();
    assert_eq!(report["waits"]["task"], 400);
    assert_eq!(report["classes"][0]["name"], "server");
}

#[test]
fn a_recording_without_causes_is_refused() {
    let file = recording("import_refused", "other");
    let output = file.with_file_name("w.cww");
    fs::write(&output, "what was there before").unwrap();
    let ran = coreward(&["import", text(&file), "-o", text(&output)]);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("does not say what ended 598 of 598 waits"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&output).unwrap(), "what was there before");
    stdout(&["import", text(&file), "-o", text(&output), "--force"]);
    assert_eq!(names(output.parent().unwrap()), ["recording.txt", "w.cww"]);
}

const STEPS: &str = "coreward_workload = 1
origin = ''
assumptions = []
[[tasks]]
name = 'n'
process = 0
nice = 0
steps = '''
r1 s2
x4'''
";

#[test]
fn wrong_input_is_one_line() {
    let file = recording("import_wrong", "sched_waking");
    let dir = file.parent().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).unwrap();
        text(&dir.join(name)).to_owned()
    };
    let (trace_dat, words) =
        (write("t.dat", b"\x17\x08\x44tracing6\0"), write("t.txt", b"once upon a time\n"));
    let (cut, workload) =
        (write("cut.txt", b"a-1 [000] 1.0: sched_switch: prev_comm=a\n"), write("w.cww", b"{}"));
    let (toml, typed) = (
        write("w.cww.toml", b"coreward_workload = 1\norigin = 7\n"),
        write("typed.cww.toml", STEPS.as_bytes()),
    );
    let file = text(&file);
    for (args, what) in [
        (&["import", "/no/such"][..], "/no/such: No such file or directory"),
        (&["import", &trace_dat], "t.dat: byte 12: the file ends before what its headers announce"),
        (&["import", dir.to_str().unwrap()], "it is a directory without pages of the ring buffer"),
        (&["import", &words], "it is not a recording (allowed: files of"),
        (&["import", &cut], "cut.txt: line 1: a scheduling event has other fields"),
        (&["import", file, "-o", "w.json"], "allowed are names that end with .cww, .cww.json or .cww.toml"),
        (&["import", &workload], "w.cww: it is a workload already (--output writes it in another form)"),
        (&["import", &workload, "-o", "o.cww.toml"], "w.cww: it is not a recorded workload: missing field"),
        (&["import", &workload, "-o", &workload], "it is an input"),
        (
            &["import", &workload, "-o", "o.cww.toml", "--any-cpu"],
            "--any-cpu: WORKLOAD is a workload, not a recording (allowed: --output)",
        ),
        (
            &["run", &toml, "--machine", "2c"],
            "w.cww.toml: line 2: invalid type: integer `7`, expected a string",
        ),
        (
            &["run", &typed, "--machine", "2c"],
            "task 0 (n): step 3, `x4`: there is no such step (allowed: r, w, a",
        ),
        (
            &["import", file, "--machine", "1c"],
            "an event is of CPU 1, but the machine of the recording has CPUs 0 to 0",
        ),
        (&["import", file, "--only", "nobody"], "no task is left: all are left out"),
        (&["import", file, "--from", "2", "--to", "1"], "--to: it has to be later than --from"),
        (&["import", file, "--from", "-1"], "'--from"),
        (&["import", file, "--force"], "--output"),
        (&["run", &workload, "--machine", "2c"], "w.cww: it is not a recorded workload: missing field"),
        (&["run", "no.cww", "--machine", "2c"], "no.cww: No such file or directory"),
        (
            &["run", &workload, "--machine", "2c", "--scale", "0.5"],
            "is not shortened (allowed: --scale 1, or",
        ),
        (&["run", &format!("{workload} x"), "--machine", "2c"], "w.cww: unexpected argument 'x'"),
    ] {
        let ran = coreward(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}: {}", ran.stderr);
        let what = what.replace("WORKLOAD", &workload);
        assert!(ran.stderr.contains(&what) && ran.stderr.lines().count() == 1, "{args:?}: {}", ran.stderr);
    }
}

/// What tells two recordings apart: the tasks, how often they are switched to, and their waits by cause.
fn counts(file: &Path, machine: &str) -> [f64; 4] {
    let report = stdout(&["import", text(file), "--machine", machine, "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let of = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}"));
    // the task that starts all others when a recording begins is not one of it
    let own = |class: &&Value| !class["name"].as_str().unwrap().starts_with("start of the ");
    let classes = report["classes"].as_array().unwrap().iter().filter(own);
    let tasks = classes.map(|class| class["tasks"].as_f64().unwrap()).sum();
    [tasks, of("/switches"), of("/waits/task"), of("/waits/interrupt")]
}

/// How far two counts are apart, as a part of the first, or of a hundred: the start of the replay wakes each task that
/// was there before.
fn farthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (b - a).abs() / a.max(100.0)).fold(0.0, f64::max)
}

/// A workload is simulated, written as text, imported, and simulated again.
struct RoundTrip {
    dir: PathBuf,
    machine: &'static str,
    first: [f64; 4],
}

impl RoundTrip {
    fn new(test: &str, workload: &str, machine: &'static str) -> RoundTrip {
        let dir = directory(test);
        let ftrace = dir.join("first.txt");
        stdout_noted(&["run", workload, "--machine", machine, "--ftrace", text(&ftrace)]);
        stdout(&["import", text(&ftrace), "--machine", machine, "-o", text(&dir.join("w.cww.json"))]);
        RoundTrip { first: counts(&ftrace, machine), dir, machine }
    }

    /// What the second run counts, with the steps of the workload's tasks changed; None if that cannot run.
    fn second(&self, change: fn(String) -> Option<String>) -> Option<[f64; 4]> {
        let mut value: Value =
            serde_json::from_str(&fs::read_to_string(self.dir.join("w.cww.json")).unwrap()).unwrap();
        for task in value["tasks"].as_array_mut().unwrap() {
            let steps = task["steps"].as_str().unwrap().split(' ').map(str::to_owned);
            task["steps"] = steps.filter_map(change).collect::<Vec<_>>().join(" ").into();
        }
        let edited = self.dir.join("edited.cww");
        fs::write(&edited, value.to_string()).unwrap();
        let ftrace = self.dir.join("second.txt");
        let ran = coreward(&["run", text(&edited), "--machine", self.machine, "--ftrace", text(&ftrace)]);
        (ran.status == 0).then(|| counts(&ftrace, self.machine))
    }

    fn error(&self, change: fn(String) -> Option<String>) -> f64 {
        self.second(change).map_or(f64::INFINITY, |second| farthest(&self.first, &second))
    }
}

#[test]
fn a_simulated_workload_makes_the_round_trip() {
    let mut controls = [false; 2];
    for (test, workload, machine) in [
        ("trip_pipe", "perf bench sched pipe -l 2000", "2c"),
        ("trip_cyclictest", "cyclictest -t 3 -i 500 -l 500", "2c"),
        ("trip_server", "server --threads 4 --time 1", "4c"),
    ] {
        let trip = RoundTrip::new(test, workload, machine);
        let second = trip.second(Some).unwrap_or_else(|| panic!("{workload} is stuck"));
        let error = farthest(&trip.first, &second);
        println!("{workload}: {error}: {:?} {second:?}", trip.first);
        assert!(error < 0.02, "{workload}: {error}: {:?} {second:?}", trip.first);
        // negative controls, where there are such waits: nobody wakes anybody, and think time is work
        let [_, _, woken, timed] = trip.first;
        if woken > 100.0 {
            let error = trip.error(|step| (!step.starts_with(['a', 'w'])).then_some(step));
            assert!(error > 0.1, "{workload}: without who wakes whom it is as near: {error}");
        }
        if timed > 100.0 {
            let error = trip.error(|step| Some(step.replace(['s', 'u'], "r")));
            assert!(error > 0.1, "{workload}: with thinking as work it is as near: {error}");
        }
        controls = [controls[0] || woken > 100.0, controls[1] || timed > 100.0];
    }
    assert_eq!(controls, [true; 2]);
}
