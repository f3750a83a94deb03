//! `coreward calibrate` on the machine that runs the tests.

mod common;

use common::{coreward, stdout};
use coreward_machine::{Costs, Machine};
use coreward_policy::Profile;
use serde_json::Value;

/// Figures differ from machine to machine; what they are of, and that they can be used, does not.
#[test]
fn what_was_measured_makes_a_machine_that_runs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("here.toml");
    let file = file.to_str().unwrap();
    let ran = coreward(&["calibrate", "--passes", "2", "--json", "--out", file]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let unused = json["costs"].as_object().unwrap().iter().filter(|(_, cost)| !cost["not_used"].is_null());
    for (name, _) in unused {
        assert!(ran.stderr.contains(name), "{name} is not used: {}", ran.stderr);
    }
    let machine = Machine::load(file).unwrap();
    assert_eq!(machine.nr_cpus(), Machine::load("sysfs").unwrap().nr_cpus());
    for name in ["syscall_ns", "pipe_op_ns", "socket_op_ns", "context_switch_ns", "wakeup_ns", "thread_ns"] {
        let measured = json["costs"][name]["value"].as_f64().unwrap();
        // a difference of two operations may come out as nothing on a busy machine, a plain one may not
        assert!(measured > 0.0 || name != "syscall_ns", "{name}");
        let source = &machine.sources[&format!("costs.{name}")];
        assert!(source.contains("Linux"), "{source}");
        // beside other tests, some are measured badly
        if json["costs"][name]["not_used"].is_null() {
            assert_eq!(machine.costs.get(name), Some(measured.round() as u64), "{name}");
            assert!(source.starts_with("measured: "), "{source}");
        } else {
            assert_eq!(machine.costs.get(name), Costs::default().get(name), "{name}");
            assert!(source.contains("; kept, because what was measured is not used: "), "{source}");
        }
    }
    // a context switch is no system call, and creating a thread is more than either
    let cost = |name| machine.costs.get(name).unwrap();
    assert!(cost("thread_ns") > cost("syscall_ns"));
    let why = &machine.sources["costs.jitter_pct"];
    assert!(why.starts_with("not measured here, because it belongs to the software"), "{why}");
    assert_eq!(json["not_measured"]["jitter_pct"], "it belongs to the software, not to the machine");
    let contended = json["contended_line"].as_array().unwrap();
    assert_eq!(contended[0]["cpus"], 1);
    assert!(contended.iter().all(|one| one["rmw"]["ns"].as_f64().unwrap() > 0.0), "{contended:?}");
    assert!(json["refill"].as_array().unwrap().len() >= 2 && machine.sources.contains_key("contended.1"));
    let report = stdout(&["run", "hackbench -g 1 -l 5", "--machine", file]);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(machine.kernel.as_deref(), Some(release.trim()));
    assert!(report.starts_with("machine   here\n"), "{report}");
    let profile = Profile::of_kernel(release.trim()).0.name();
    assert!(report.contains(&format!("\nprofile   {profile}\n")), "{report}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let ran = coreward(&["calibrate", "--out", "/nonexistent/here.toml"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("coreward: --out: cannot write /nonexistent/here.toml"), "{}", ran.stderr);
}
