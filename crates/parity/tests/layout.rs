//! Structures of another capture file than this one are found: `src/format/layout.c` does not compile.

use std::fs;
use std::path::Path;
use std::process::Command;

const LAYOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/format/layout.c");
const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/record/capture.h");

/// What the C compiler says of the structures with this header; empty if they fit.
fn compile(name: &str, header: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("capture.h"), header).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let ran = Command::new(compiler)
        .args(["-std=c11", "-fsyntax-only", "-I"])
        .arg(&folder)
        .arg(LAYOUT)
        .output()
        .unwrap();
    String::from_utf8(ran.stderr).unwrap()
}

/// The type and the name of a field whose declaration is this line.
fn field(line: &str) -> Option<(&str, &str)> {
    let (declared, _) = line.strip_prefix('\t')?.split_once(';')?;
    declared.rsplit_once(' ')
}

/// `header` with two neighbouring fields of one type exchanged, and their names, for each such two that are written.
fn exchanges(header: &str) -> Vec<(String, String)> {
    let known = fs::read_to_string(LAYOUT).unwrap();
    let lines: Vec<&str> = header.lines().collect();
    let mut structure = "";
    let mut exchanges = Vec::new();
    for (i, two) in lines.windows(2).enumerate() {
        if let Some(name) = two[0].strip_prefix("struct ").and_then(|rest| rest.strip_suffix(" {")) {
            structure = name;
        } else if two[0].starts_with('}') {
            structure = "";
        }
        if structure.is_empty() || !known.contains(&format!("SIZE(struct {structure},")) {
            continue;
        }
        let (Some((of, a)), Some((same, b))) = (field(two[0]), field(two[1])) else { continue };
        if of == same {
            let mut exchanged = lines.clone();
            exchanged.swap(i, i + 1);
            exchanges.push((exchanged.join("\n") + "\n", format!("{structure}: {a}, {b}")));
        }
    }
    exchanges
}

#[test]
fn the_structures_are_those_of_the_header() {
    assert_eq!(compile("as-it-is", &fs::read_to_string(HEADER).unwrap()), "");
}

#[test]
fn two_exchanged_fields_do_not_compile() {
    let header = fs::read_to_string(HEADER).unwrap();
    let mut seen = Vec::new();
    for (exchanged, names) in exchanges(&header) {
        assert!(compile("exchanged", &exchanged).contains("make bindings"), "{names}");
        seen.push(names);
    }
    assert!(seen.contains(&"capture_balance: now, jiffies".to_owned()), "{seen:?}");
    assert!(seen.len() > 70, "{} exchanges", seen.len());
}

#[test]
fn another_number_does_not_compile() {
    let header = fs::read_to_string(HEADER).unwrap();
    for (from, to) in [
        ("#define CAPTURE_VERSION 1", "#define CAPTURE_VERSION 2"),
        ("CAPTURE_TASK_EXITING = 1 << 2", "CAPTURE_TASK_EXITING = 1 << 3"),
        ("\tCAPTURE_STEP_PICK,", "\tCAPTURE_STEP_OTHER, CAPTURE_STEP_PICK,"),
    ] {
        assert!(header.contains(from), "{from}");
        assert!(compile("changed", &header.replace(from, to)).contains("make bindings"), "{to}");
    }
}
