//! The unit of contrib/ is one that systemd understands, and that leaves the service few rights.

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
