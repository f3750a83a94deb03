//! Partitions on the command line, and the file of domains after a run.

mod common;

use std::fs;

use common::{coreward, directory, stdout};

const E5: &str = "e5-2680v3-2s";
const RUN: [&str; 4] = ["run", "hackbench -g 2 -l 60", "--machine", E5];

#[test]
fn domains_of_a_partition() {
    let of = |options: &[&str]| stdout(&[&["domains", E5, "--profile", "linux-6.12"], options].concat());
    let divided = of(&["--partition", "0-11,24-35:0", "--cpu", "12"]);
    assert!(divided.contains("cpu12/domain1/name:MC\n") && !divided.contains("domain2"), "{divided}");
    let lines = |text: &str| text.lines().filter(|line| line.contains("/flags:SD_BALANCE_NEWIDLE")).count();
    assert_eq!(lines(&divided), 2, "the rest of the machine has no request");
    assert_eq!(lines(&of(&["--partition", "0-11,24-35:0"])), 0);
    let default = of(&["--partition", "0-11,24-35", "--relax-domain-level", "1"]);
    assert_eq!(lines(&default), 1, "the machine's level");
}

#[test]
fn a_run_in_a_partition() {
    let dir = directory("a_run_in_a_partition");
    let path = dir.join("domains").to_str().unwrap().to_owned();
    let options = ["--partition", "0-11,24-35:1", "--domains", &path];
    let text = stdout(&[&RUN[..], &options].concat());
    assert!(text.contains("changed   partition=0-11,24-35:1\n"), "{text}");
    let file = fs::read_to_string(&path).unwrap();
    let cost = |cpu: usize, domain: usize| -> u64 {
        let start = format!("cpu{cpu}/domain{domain}/max_newidle_lb_cost:");
        let line = file.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no {start}")).parse().unwrap()
    };
    assert!((0..12).any(|cpu| cost(cpu, 0) > 0));
    assert!((0..12).all(|cpu| cost(cpu, 1) == 0), "level 1 leaves MC out");
    assert!((12..24).all(|cpu| cost(cpu, 0) == 0), "nothing runs in the rest");
    for line in ["cpu0/domain0/name:SMT", "cpu47/domain1/level:2", "cpu12/avg_idle:1000000"] {
        assert!(file.lines().any(|l| l == line), "{line}\n{file}");
    }
    assert!(!file.contains("domain2"));

    let json = |options: &[&str]| -> serde_json::Value {
        serde_json::from_str(&stdout(&[&RUN[..], &["--json"], options].concat())).unwrap()
    };
    assert_eq!(json(&["--partition", "0-11,24-35:1"])["partitions"][0]["cpus"], "0-11,24-35");
    assert!(json(&[]).get("partitions").is_none());
}

#[test]
fn what_is_refused() {
    let refused = |options: &[&str], message: &str| {
        let ran = coreward(&[&RUN[..], options].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{options:?}");
        assert_eq!(ran.stderr, format!("coreward: {message}\n"), "{options:?}");
    };
    refused(&["--partition", "0-48"], "a partition has CPU 48, allowed are 0 to 47");
    refused(&["--partition", "0-3", "--partition", "3"], "CPU 3 is in two partitions, it may be in one only");
    refused(
        &["--partition", "0-3:7"],
        "relax_domain_level is 7, allowed are -1 (no request) to 6 on this machine, whose top level is 5",
    );
    refused(
        &["--partition", "0-3:a"],
        "invalid value '0-3:a' for '--partition <CPUS[:LEVEL]>': the level `a` is not an integer, allowed is CPUS[:LEVEL]",
    );
    refused(&["--domains", "x", "--trace", "x"], "--domains and --trace name the same file");
}
