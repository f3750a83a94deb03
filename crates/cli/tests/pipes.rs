//! Only regular files are read: a pipe without a writer would block the command for ever.

mod common;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{coreward, directory};

fn refused(args: &[&str], place: &str) {
    let start = Instant::now();
    let ran = coreward(args);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
    assert_eq!(ran.stderr, format!("coreward: {place}: it is not a regular file\n"), "{args:?}");
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn pipes_are_refused() {
    let dir = directory("pipes");
    let pipe = |name: &str| {
        let pipe = dir.join(name);
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        pipe.to_str().unwrap().to_owned()
    };
    let (toml, xml, json, capture) = (pipe("in/f.toml"), pipe("f.xml"), pipe("f.json"), pipe("f.cwc"));
    let run = "hackbench -g 1 -f 1 -l 1";
    refused(&["topology", &toml], &format!("cannot read {toml}"));
    refused(&["domains", &toml], &format!("cannot read {toml}"));
    refused(&["run", run, "--machine", &toml], &format!("--machine: cannot read {toml}"));
    refused(&["topology", &format!("hwloc:{xml}")], &format!("cannot read {xml}"));
    refused(&["compare", &toml], &format!("cannot read {toml}"));
    refused(&["compare", dir.join("in").to_str().unwrap()], &format!("cannot read {toml}"));
    refused(&["fidelity", &toml], &format!("cannot read {toml}"));
    refused(&["parity", &capture], &format!("cannot read {capture}"));
    refused(&["parity", &capture, "--list", "all"], &format!("cannot read {capture}"));
    refused(&["parity", &capture, "--explain", "1"], &format!("cannot read {capture}"));
    refused(&["run", &format!("rt-app {json}"), "--machine", "1n1l1c1t"], &format!("rt-app: {json}"));
    refused(&["import", &capture], &capture);
    refused(&["sweep", &toml], &format!("cannot read {toml}"));
    refused(&["sweep", &toml, "--left"], &format!("cannot read {toml}"));
    refused(&["matrix", "--with", "WA_BIAS", "--suite", &toml], &format!("--suite: cannot read {toml}"));
    refused(&["validate", "--real", &json, "--machine", "1n1l1c1t"], &format!("--real: {json}"));
    let sweep = dir.join("sweep.toml");
    let axes = "name = \"s\"\nmachines = [\"1n1l1c1t\"]\nworkloads = [\"hackbench -g 1 -f 1 -l 1\"]\n\
                profile = \"linux-6.12\"\n[grid]\nWA_BIAS = [true]\n";
    fs::write(&sweep, axes).unwrap();
    let (sweep, state) = (sweep.to_str().unwrap(), dir.join("state"));
    refused(
        &["sweep", sweep, "--state", state.to_str().unwrap(), "--merge", &json],
        &format!("--merge: cannot open {json}"),
    );
    let table = pipe("own/features.def");
    let own = dir.join("own").to_str().unwrap().to_owned();
    refused(&["run", run, "--machine", "1n1l1c1t", "--policy", &own], &format!("--policy: {table}"));
    refused(&["policy", "check", &own], &table);
    let recorded = pipe("f.cww");
    refused(&["run", &recorded, "--machine", "1n1l1c1t"], &recorded);
    let online = pipe("tree/devices/system/cpu/online");
    refused(
        &["topology", &format!("sysfs:{}", dir.join("tree").display())],
        &format!("cannot read {online}"),
    );
}
