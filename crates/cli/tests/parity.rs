//! `coreward parity` and `coreward record`.

mod common;

use std::fs;
use std::path::Path;

use common::{coreward, directory, stdout};
use coreward_parity::{Reader, Record, Writer};
use serde_json::Value;

fn recording(kernel: &str) -> String {
    format!("{}/../parity/tests/data/hackbench-{kernel}.cwc", env!("CARGO_MANIFEST_DIR"))
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).expect("JSON")
}

fn refused(args: &[&str], message: &str) {
    let ran = coreward(args);
    assert_eq!(ran.stderr, format!("coreward: {message}\n"), "{args:?}");
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
}

#[test]
fn the_report_has_every_path_and_its_disagreements() {
    let file = recording("6.12");
    let text = stdout(&["parity", &file]);
    assert!(text.contains("Linux 6.12.107+deb13-amd64, 4 CPUs; profile linux-6.12\n"), "{text}");
    assert!(text.contains(" decisions, 0 lost\n"), "{text}");
    for path in
        ["wakeup: target idle", "wakeup: scan", "fork", "exec", "newidle: group", "busy: queue", "all wakeup"]
    {
        assert!(text.lines().any(|line| line.starts_with(path)), "{path} is missing:\n{text}");
    }
    assert!(text.contains("\ndisagreements"), "{text}");
    assert_eq!(text, stdout(&["parity", &file]), "it differs when run twice");
}

#[test]
fn json_has_the_same_numbers() {
    let (old, new) = (recording("6.12"), recording("7.3"));
    let report = json(&["parity", &old, &new, "--json"]);
    assert_eq!(report["files"][1]["profile"], "linux-7.3");
    let all = |class: &str| {
        let of = |value: &Value| value["classes"][class]["all"].as_u64().unwrap();
        assert_eq!(
            of(&report["files"][0]["parity"]) + of(&report["files"][1]["parity"]),
            of(&report["total"])
        );
        of(&report["total"])
    };
    let by_path = report["total"]["paths"].as_array().unwrap().iter().map(|p| p["all"].as_u64().unwrap());
    assert_eq!(all("wakeup") + all("fork") + all("exec") + all("balance"), by_path.sum::<u64>());
    let both = stdout(&["parity", &old, &new]);
    assert!(both.contains("\n2 files\n"), "{both}");
}

/// The wakeups of a recording whose kernel seems to choose the CPU after the one that it did choose.
fn other_kernel() -> String {
    let mut reader = Reader::open(Path::new(&recording("6.12"))).unwrap();
    let mut writer = Writer::new(Vec::new(), &reader.machine().clone()).unwrap();
    for record in &mut reader {
        if let Record::Placement(mut placement) = record.unwrap() {
            if !placement.head.is_slow() && placement.states.changed.is_empty() {
                placement.head.chosen = (placement.head.chosen + 1) % 4;
                writer.record(&Record::Placement(placement)).unwrap();
            }
        }
    }
    let file = directory("parity-other").join("other.cwc");
    fs::write(&file, writer.finish(0).unwrap()).unwrap();
    file.display().to_string()
}

#[test]
fn requirements_are_met_or_exit_1() {
    let file = recording("7.3");
    let met = coreward(&["parity", &file, "--require", "wakeup=99.9,fork=99,exec=99,balance=95"]);
    assert_eq!((met.status, met.stderr.as_str()), (0, ""));
    let other = coreward(&["parity", &other_kernel(), "--require", "wakeup=50,fork=99"]);
    assert_eq!(
        (other.status, other.stderr.as_str()),
        (
            1,
            "coreward: Linux 6.12.107+deb13-amd64: 0 of 17 stable wakeup decisions agree, required are 50 %; \
             Linux 6.12.107+deb13-amd64: there is no stable fork decision, required are 99 %\n"
        )
    );
    assert!(!other.stdout.is_empty());
    refused(
        &["parity", &file, "--require", "scan=1"],
        "invalid value 'scan=1' for '--require <CLASS=PERCENT>': allowed is CLASS=PERCENT or PATH=PERCENT, where CLASS \
         is one of wakeup, fork, exec, balance, queue, PATH one of the report, and PERCENT 0 to 100",
    );
}

#[test]
fn lists_number_the_decisions_that_explain_shows() {
    let file = recording("6.12");
    let all = stdout(&["parity", &file, "--list", "all"]);
    let count = |which: &str| stdout(&["parity", &file, "--list", which]).lines().count();
    assert!(0 < count("disagreements") && count("disagreements") <= count("unstable"));
    assert!(count("unstable") < count("all"));
    let list = json(&["parity", &file, "--list", "all", "--json"]);
    assert_eq!(list.as_array().unwrap().len(), all.lines().count());
    for (outcome, line) in list.as_array().unwrap().iter().zip(all.lines()) {
        let number = outcome["number"].to_string();
        assert!(line.starts_with(&format!("#{number} ")), "{line}");
        let shown = stdout(&["parity", &file, "--explain", &number]);
        assert!(shown.starts_with(&format!("decision {number}: ")), "{shown}");
        let kernel = format!(
            "kernel: {} ({})",
            outcome["kernel"].as_str().unwrap(),
            outcome["kernel_reason"].as_str().unwrap()
        );
        assert!(shown.contains(&kernel), "{shown}");
        assert_eq!(shown.contains("unstable: "), !outcome["stable"].as_bool().unwrap());
    }
    let last = json(&["parity", &file, "--list", "all", "--json"])[0]["number"].clone();
    assert!(json(&["parity", &file, "--explain", &last.to_string(), "--json"]).is_array());
}

#[test]
fn a_what_if_counts_what_it_changes() {
    let file = recording("6.12");
    let changed = |options: &[&str]| -> u64 {
        let report = json(&[&["parity", &file, "--json"], options].concat());
        let paths = report["total"]["what_if"]["paths"].as_array().unwrap().clone();
        paths.iter().map(|path| path["changed"].as_u64().unwrap()).sum()
    };
    assert!(changed(&["--sched-feat", "WAKEUP_BIAS_PREV"]) > 0);
    // without spare capacity to ask for, more tasks stay
    let eager = changed(&["--sched-feat", "WAKEUP_BIAS_PREV", "--set", "spare_capacity_threshold=0"]);
    assert!(eager >= changed(&["--sched-feat", "WAKEUP_BIAS_PREV"]));
    // what no placement reads changes none
    assert_eq!(changed(&["--sched-feat", "NO_RUN_TO_PARITY"]), 0);
    let text = stdout(&["parity", &file, "--sched-feat", "WAKEUP_BIAS_PREV"]);
    assert!(
        text.contains("\nwhat if WAKEUP_BIAS_PREV\n") && text.contains("to another CPU, same core"),
        "{text}"
    );
}

#[test]
fn what_changes_nothing_is_no_what_if() {
    let file = recording("6.12");
    refused(
        &["parity", &file, "--sched-feat", "WA_IDLE"],
        &format!("{file}: WA_IDLE is what the kernel had already: there is nothing to compare"),
    );
    refused(
        &["parity", &file, "--set", "relax_domain_level=1"],
        "--set: relax_domain_level acts when domains are built, those of a recording are what they are",
    );
    refused(
        &["parity", &file, "--set", "nr_migrate=0"],
        "--set: nr_migrate is 0, allowed are 1 to 128 (tasks)",
    );
}

#[test]
fn wrong_files() {
    let file = recording("6.12");
    refused(&["parity", "/no/such.cwc"], "cannot read /no/such.cwc: No such file or directory (os error 2)");
    let damaged = directory("parity").join("d.cwc");
    let name = damaged.display().to_string();
    let mut bytes = fs::read(&file).unwrap();
    let whole = bytes.len();
    bytes.truncate(whole - 1);
    fs::write(&damaged, &bytes).unwrap();
    for options in [&[][..], &["--json"], &["--list", "all"], &["--explain", "1"]] {
        let ran = coreward(&[&["parity", name.as_str()], options].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert!(ran.stderr.contains("it is truncated"), "{}", ran.stderr);
    }
    fs::write(&damaged, b"# a text file, and not a capture").unwrap();
    refused(
        &["parity", &name],
        &format!(
            "{name}: byte 0: this is not a capture file: it does not begin with `coreward` or `cwrecord`"
        ),
    );
    let count = stdout(&["parity", &file]).lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    refused(
        &["parity", &file, "--explain", "1000"],
        &format!("--explain is 1000, allowed are 1 to {count} in {file}"),
    );
    refused(&["parity", &file, &file, "--explain", "1"], "--explain takes one file, given are 2");
}

#[test]
fn record_needs_to_know_what_and_the_recorder() {
    refused(&["record", "--", "true"], "record what? --decisions, --queue or --workload");
    let missing = std::process::Command::new(env!("CARGO_BIN_EXE_coreward"))
        .args(["record", "--decisions", "--", "true"])
        .env("PATH", "/no/such/directory")
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(missing.stderr).unwrap(),
        "coreward: coreward-record is neither beside this program nor in PATH: build it with `make record`, which \
         needs clang and libbpf\n"
    );
}

#[cfg(unix)]
#[test]
fn record_hands_its_options_to_the_recorder() {
    use std::os::unix::fs::PermissionsExt;
    let dir = directory("record");
    let recorder = dir.join("coreward-record");
    fs::write(&recorder, "#!/bin/sh\necho \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_coreward"))
        .args(["record", "--decisions", "-o", "x.cwc", "--limit", "5", "--", "hackbench", "-g", "1"])
        .env("PATH", format!("{}:{}", dir.display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(7), "its exit status is that of the recorder");
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap(),
        "--output x.cwc --buffer 64 --limit 5 -- hackbench -g 1\n"
    );
}

#[cfg(unix)]
#[test]
fn a_recording_that_cannot_be_imported_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let dir = directory("record_kept");
    let recorder = dir.join("coreward-record");
    fs::write(&recorder, "#!/bin/sh\necho called\necho no recording > \"$2\"\n").unwrap();
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |machine: &str| {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_coreward"))
            .args(["record", "--workload", "-o", "w.cww", "--machine", machine, "--", "x"])
            .env("PATH", format!("{}:{}", dir.display(), std::env::var("PATH").unwrap()))
            .current_dir(&dir)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(2));
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let (called, said) = run("nosuch.toml");
    assert!(called.is_empty() && said.contains("--machine: cannot read nosuch.toml"), "{called}{said}");
    for kept in ["w.1.cwr", "w.2.cwr"] {
        let (_, said) = run("1c");
        assert!(said.contains(&format!("the recording is in {kept}, but cannot be imported: ")), "{said}");
        assert_eq!(fs::read_to_string(dir.join(kept)).unwrap(), "no recording\n");
    }
}

#[cfg(unix)]
#[test]
fn a_workload_is_recorded_and_imported_at_once() {
    use std::os::unix::fs::PermissionsExt;
    let dir = directory("record_workload");
    let recorder = dir.join("coreward-record");
    let recorded = "a-1 (1) [000] d..2. 1.000000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> \
                    next_comm=swapper/0 next_pid=0 next_prio=120\n\
                    <idle>-0 (-) [000] d.h2. 1.001000: sched_waking: comm=a pid=1 prio=120 target_cpu=000\n";
    // what it is called with, and a recording
    let script =
        format!("#!/bin/sh\necho \"$@\"\n[ \"$2\" = w.cwr ] || printf '{recorded}' > \"$2\"\nexit 7\n");
    fs::write(&recorder, script).unwrap();
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |args: &[&str]| {
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_coreward"))
            .arg("record")
            .args(args)
            .env("PATH", format!("{}:{}", dir.display(), std::env::var("PATH").unwrap()))
            .current_dir(&dir)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(7), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(
        run(&[
            "--workload",
            "-o",
            "w.cwr",
            "--duration",
            "0.5",
            "--max-size",
            "7",
            "--tracepoints",
            "--",
            "x",
            "-y"
        ]),
        "--output w.cwr --buffer 64 --workload --max-size 7 --duration 0.5 --tracepoints -- x -y\n"
    );
    for (count, name) in ["w.cww", "w.cww.json"].into_iter().enumerate() {
        let said = run(&["--workload", "-o", name, "--machine", "1c", "--", "x"]);
        assert!(said.contains(&format!("{name} is written")) && said.contains("1 CPUs (1c)"), "{said}");
        let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2 + count, "the recording is not kept: {left:?}");
    }
    assert!(fs::read(dir.join("w.cww.json")).unwrap().starts_with(b"{"));
    refused(&["record", "--workload"], "the following required arguments were not provided: <COMMAND>...");
    refused(
        &["record", "--workload", "--duration", "0", "--", "x"],
        "invalid value '0' for '--duration <SECONDS>': allowed are 0.001 to 86400",
    );
    refused(
        &["record", "--workload", "--machine", "1c", "--", "x"],
        "--machine: it is of the import, so --output is needed (allowed: names that end with .cww, .cww.json or .cww.toml)",
    );
    let both = run(&["--workload", "--decisions", "--limit", "9", "-o", "w.cwr", "--", "x"]);
    assert_eq!(both, "--output w.cwr --buffer 64 --decisions --limit 9 --workload --max-size 1024 -- x\n");
    refused(
        &["record", "--workload", "--queue", "--tracepoints", "--", "x"],
        "the argument '--queue' cannot be used with '--tracepoints'",
    );
    refused(
        &["record", "--workload", "--queue", "-o", "w.cww", "--", "x"],
        "--output: w.cww would have no decisions (allowed: a name that ends in .cwr)",
    );
    refused(
        &["record", "--workload", "--limit", "9", "--", "x"],
        "--limit counts decisions, and none are recorded without --decisions or --queue",
    );
}

#[test]
fn one_file_has_a_workload_and_decisions() {
    let file = format!("{}/../parity/tests/data/queue-and-workload-6.12.cwr", env!("CARGO_MANIFEST_DIR"));
    let compared = stdout(&["parity", "--require", "queue=100", &file]);
    assert!(compared.contains("\nall queue                            52         52  100.00"), "{compared}");
    let imported = stdout(&["import", &file]);
    assert!(imported.contains("recording of coreward, 0.264 s on 8 CPUs, 1394 events"), "{imported}");
}
