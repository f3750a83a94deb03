//! What is assumed of a machine or workload is said on standard error, or refused.

mod common;

use std::fs;

use common::{coreward, directory, stdout};

const XML: &str = "<topology version=\"3.0\"><object type=\"Machine\"><object type=\"Package\">\
    <object type=\"PU\" os_index=\"0\"/><object type=\"PU\" os_index=\"1\"/></object></object></topology>";

#[test]
fn each_assumption_is_one_note() {
    let dir = directory("assumed");
    let file = dir.join("m.xml").display().to_string();
    fs::write(&file, XML).unwrap();
    let machine = format!("hwloc:{file}");
    let ran = coreward(&["topology", &machine]);
    let note = |what: &str| format!("coreward: note: {machine}: {what}\n");
    let notes = [
        "no caches are described: the CPUs of a package are taken to share one",
        "the file says nothing of capacities: all CPUs are taken as equally fast",
        "sizes of caches are not given: assumed are L1d 32 KiB, L2 1 MiB, LLC 32 MiB, cache line 64 B",
    ];
    assert_eq!((ran.status, ran.stderr), (0, notes.map(note).concat()));
    let refusal = format!("coreward: {machine}: {} (refused because of --strict)\n", notes[0]);
    for command in ["topology", "domains"] {
        let ran = coreward(&[command, &machine, "--strict"]);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{command}");
        assert_eq!(ran.stderr, refusal);
    }
    let workload = "hackbench -g 1 -f 1 -l 1 --pipe";
    for command in ["run", "explain"] {
        let ran = coreward(&[command, workload, "--machine", &machine, "--strict"]);
        let refusal = refusal.replace("coreward: ", "coreward: --machine: ");
        assert_eq!((ran.status, ran.stderr.as_str()), (2, refusal.as_str()), "{command}");
    }
    let experiment = dir.join("e.toml").display().to_string();
    let variant =
        "[baseline]\nlabel = \"b\"\n[[variant]]\nlabel = \"v\"\nsched_feat = [\"WAKEUP_BIAS_PREV\"]\n";
    let text =
        format!("name = \"e\"\nmachine = \"{machine}\"\nworkload = \"{workload}\"\nruns = 2\n{variant}");
    fs::write(&experiment, text).unwrap();
    let ran = coreward(&["compare", &experiment, "--strict"]);
    assert_eq!(ran.status, 2);
    assert!(
        ran.stderr.contains(notes[0]) && ran.stderr.ends_with("(refused because of --strict)\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_complete_description_is_taken_strictly() {
    stdout(&["topology", "epyc-9654-2s", "--strict"]);
    stdout(&["run", "hackbench -g 1 -f 1 -l 1 --pipe", "--machine", "e5-2680v3-2s", "--strict"]);
}

/// The whole way through files: what `topology` prints is the machine, and its text is the same.
#[test]
fn a_printed_topology_is_a_machine() {
    let dir = directory("printed");
    for format in ["json", "toml"] {
        let file = dir.join(format!("m.{format}")).display().to_string();
        for preset in ["juno-r0", "power10", "epyc-9654-2s"] {
            fs::write(&file, stdout(&["topology", preset, &format!("--{format}")])).unwrap();
            assert_eq!(stdout(&["topology", &file]), stdout(&["topology", preset]), "{preset}");
            let run =
                |machine: &str| stdout(&["run", "hackbench -g 1 -f 2 -l 5", "--machine", machine, "--json"]);
            assert_eq!(run(&file).replace(&file, preset), run(preset), "{preset}");
        }
    }
}
