//! The unit of contrib/ is one that systemd understands, and that leaves the service few rights; the step of a CI fails if
//! something is worse.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::directory;

/// What `systemd-analyze` says of a unit, and whether it accepts it; None where there is no systemd.
fn analyze(arguments: &[&str], unit: &Path) -> Option<(bool, String)> {
    let ran = Command::new("systemd-analyze").args(arguments).arg(unit).output();
    let Ok(ran) = ran else {
        eprintln!("contrib: skipped, systemd-analyze is missing");
        return None;
    };
    Some((ran.status.success(), String::from_utf8_lossy(&ran.stderr).into_owned()))
}

#[test]
fn systemd_takes_the_unit_and_finds_it_confined() {
    let unit = include_str!("../../../contrib/coreward.service");
    // a program that is installed
    let unit = unit.replace("/usr/local/bin/coreward-live", "/bin/sh");
    let dir = directory("contrib");
    let file = |name: &str, text: &str| {
        let file = dir.join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let own = file("coreward.service", &unit);
    let Some(verified) = analyze(&["verify"], &own) else { return };
    assert_eq!(verified, (true, String::new()));
    let misspelt = file("misspelt.service", &unit.replace("SystemCallFilter=", "SystemCallFilters="));
    let (_, what) = analyze(&["verify"], &misspelt).unwrap();
    assert!(what.contains("Unknown key") && what.contains("SystemCallFilters"), "{what}");

    // the exposure in tenths, of 100
    let security = |unit: &Path| analyze(&["security", "--offline=true", "--threshold=20"], unit).unwrap();
    let (confined, what) = security(&own);
    assert!(confined, "{what}");
    let open = unit.lines().filter(|line| !line.starts_with("CapabilityBoundingSet="));
    let open = file("open.service", &open.collect::<Vec<_>>().join("\n"));
    assert!(!security(&open).0);
}

/// What the step of contrib/action does, without the installation, which contrib/action/test.sh runs, too.
#[test]
fn the_step_of_a_ci_fails_if_something_is_worse() {
    let dir = directory("contrib_action");
    let program = Path::new(env!("CARGO_BIN_EXE_coreward")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let step = |arguments: &str| {
        let ran = Command::new("bash")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/action/gate.sh"))
            .current_dir(&dir)
            .env("PATH", &path)
            .env("COREWARD_ARGUMENTS", arguments)
            .env("COREWARD_REPORT", dir.join("report"))
            .env("GITHUB_STEP_SUMMARY", dir.join("summary"))
            .output()
            .unwrap();
        ran.status.code().unwrap()
    };
    let compare =
        "compare \"hackbench -g 1 -f 2 -l 50 -T --pipe\" --machine 2c --runs 4 --headline runtime_s";
    assert_eq!(step(&format!("{compare} --with pipe_op_ns=90000")), 1);
    assert_eq!(step(&format!("{compare} --with seed=100")), 0);
    // an argument is not carried out
    assert_eq!(step(&format!("{compare} --with '$(touch carried_out)'")), 2);
    assert!(!dir.join("carried_out").exists());
    assert!(fs::read(dir.join("report/runs.parquet")).unwrap().starts_with(b"PAR1"));
    let summary = fs::read_to_string(dir.join("summary")).unwrap();
    assert!(summary.contains("pipe_op_ns=90000: runtime_s ") && summary.contains("% worse"), "{summary}");
}
