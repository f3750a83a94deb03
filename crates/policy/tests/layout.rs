//! Bindings of another policy than this one are found: `src/generated/layout.c` does not compile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LAYOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/generated/layout.c");

fn policy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy")
}

/// Every header and `.def` file of the policy, by its path there.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(policy().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if policy().join(&path).is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "h" || e == "def") {
            found.push(path);
        }
    }
    found
}

/// A copy of the policy's headers.
struct Copy(PathBuf);

impl Copy {
    fn new(name: &str) -> Copy {
        let copy = Copy(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        for path in sources(Path::new("")) {
            let text = fs::read_to_string(policy().join(&path)).unwrap();
            copy.write(&path, &text);
        }
        copy
    }

    fn write(&self, path: &Path, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What the C compiler says of the bindings of this policy; empty if they are.
    fn compile(&self) -> String {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let ran = Command::new(compiler)
            .args(["-std=c11", "-fsyntax-only", "-Wno-unused-function", "-I"])
            .arg(&self.0)
            .arg(LAYOUT)
            .output()
            .unwrap();
        String::from_utf8(ran.stderr).unwrap()
    }
}

/// The type and the name of a field whose declaration is this line.
fn field(line: &str) -> Option<(&str, &str)> {
    let (declared, _) = line.strip_prefix('\t')?.split_once(';')?;
    declared.rsplit_once(' ')
}

/// `text` with two neighbouring fields of one type exchanged, and their names, for each two that
/// the bindings know.
fn exchanges(text: &str) -> Vec<(String, String)> {
    let known = fs::read_to_string(LAYOUT).unwrap();
    let lines: Vec<&str> = text.lines().collect();
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
            exchanges.push((exchanged.join("\n"), format!("{structure}: {a}, {b}")));
        }
    }
    exchanges
}

#[test]
fn the_bindings_are_those_of_this_policy() {
    assert_eq!(Copy::new("as-it-is").compile(), "");
}

#[test]
fn two_exchanged_fields_do_not_compile() {
    let copy = Copy::new("exchanged");
    let mut seen = Vec::new();
    for path in sources(Path::new("")) {
        let text = fs::read_to_string(policy().join(&path)).unwrap();
        for (exchanged, names) in exchanges(&text) {
            copy.write(&path, &exchanged);
            assert!(copy.compile().contains("make bindings"), "{} with {names} exchanged", path.display());
            seen.push(names);
        }
        copy.write(&path, &text);
    }
    assert!(seen.contains(&"cw_cpu: avg_idle, max_idle_balance_cost".to_owned()), "{seen:?}");
    assert!(seen.len() > 90, "{} exchanges", seen.len());
}

#[test]
fn another_value_type_or_table_does_not_compile() {
    let changes = [
        ("types.h", "u64 avg_idle;", "s64 avg_idle;"),
        ("types.h", "#define CW_NONE 0xffffu", "#define CW_NONE 0xfffeu"),
        ("types.h", "WF_SYNC = 0x10", "WF_SYNC = 0x20"),
        ("reasons.def", "REASON(IDLE_CORE, \"idle core\")\n", ""),
        ("notes.def", "NOTE(NO_FIT, 5,", "NOTE(NO_FIT, 15,"),
        ("features.def", "FEATURE(WA_IDLE,", "FEATURE(NEW, \"\", \"\", \"\")\nFEATURE(WA_IDLE,"),
        ("balance/detach.h", "CW_DETACH_SKIP,", "CW_DETACH_NEW, CW_DETACH_SKIP,"),
    ];
    for (path, from, to) in changes {
        let copy = Copy::new("changed");
        let text = fs::read_to_string(policy().join(path)).unwrap();
        assert!(text.contains(from), "{path}: {from}");
        copy.write(Path::new(path), &text.replace(from, to));
        assert!(copy.compile().contains("make bindings"), "{path}: {to}");
    }
}
