//! `coreward policy new`: a copy of the policy with an example of a rule.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use coreward_policy::Tree;

use crate::cli;

/// Files that are added to the policy.
const ADDED: [(&str, &str); 4] = [
    ("README.md", include_str!("skeleton/README.md")),
    ("experiment.toml", include_str!("skeleton/experiment.toml")),
    ("tests/prev_hot.c", include_str!("skeleton/prev_hot.c")),
    ("wakeup/prev_hot.h", include_str!("skeleton/prev_hot.h")),
];

/// Lines that are added to its files: each below the last line that begins so.
const BELOW: [(&str, &str, &str); 4] = [
    (
        "features.def",
        "FEATURE(",
        "FEATURE(PREV_HOT, \"\", \"\", \"a woken task stays on its idle previous CPU if it ran there less than prev_hot_ns ago\")",
    ),
    (
        "features.def",
        "TUNABLE(",
        "TUNABLE(prev_hot_ns, 500000, 0, 1000000000, \"ns\", \"PREV_HOT: how long a task's data stays in the cache of its previous CPU\")",
    ),
    (
        "reasons.def",
        "REASON(",
        "REASON(PREV_HOT, \"previous CPU idle, and the task ran there a moment ago\")",
    ),
    ("wakeup/wakeup.h", "#include", "#include \"wakeup/prev_hot.h\""),
];

/// Where the rule is asked: before the line that begins so.
const ASKED_BEFORE: (&str, &str) = ("wakeup/wakeup.h", "\t\taffine = want_affine(");
const ASKED: &str = "\t\tif (prev_hot(sys, w))\n\t\t\treturn decide(d, w->prev_cpu, CW_REASON_PREV_HOT);\n";

pub(crate) fn run(args: &cli::PolicyNew, out: &mut dyn Write) -> Result<()> {
    let directory = &args.directory;
    let shown = directory.display();
    let entries = fs::read_dir(directory).map(|mut entries| entries.next().is_some());
    match entries {
        Ok(true) => {
            bail!("{shown}: it is not empty; allowed is a directory that is, or a name that is not taken")
        }
        Err(e) if e.kind() != ErrorKind::NotFound => bail!("cannot read {shown}: {e}"),
        _ => {}
    }
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_err();
    let new = directory.ancestors().take_while(is_new).last();
    for (name, text) in files() {
        if let Err(error) = write(&directory.join(name), &text) {
            remove(directory, new);
            return Err(error);
        }
    }
    writeln!(out, "{shown}: a copy of the policy, with PREV_HOT as an example of a new rule")?;
    writeln!(out, "What to do next is in {shown}/README.md")?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).with_context(cannot)?;
    fs::write(path, text).with_context(cannot)
}

/// Leaves no part of a copy: `new` is the uppermost directory that was not there before, and there was nothing else in
/// `directory`. What cannot be removed stays; that it could not be written is told.
fn remove(directory: &Path, new: Option<&Path>) {
    if let Some(new) = new {
        let _ = fs::remove_dir_all(new);
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
    }
}

/// All files of the directory.
fn files() -> impl Iterator<Item = (&'static str, String)> {
    let policy = Tree::changeable().map(|(name, text)| (name, with_example(name, text)));
    policy.chain(ADDED.map(|(name, text)| (name, text.to_owned())))
}

fn with_example(name: &str, text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    for (_, start, line) in BELOW.iter().filter(|(file, ..)| *file == name) {
        let last = lines.iter().rposition(|line| line.starts_with(start));
        lines.insert(last.map_or(lines.len(), |last| last + 1), line);
    }
    let mut out = String::new();
    for line in lines {
        if name == ASKED_BEFORE.0 && line.starts_with(ASKED_BEFORE.1) {
            out += ASKED;
        }
        out += line;
        out.push('\n');
    }
    if name == "Makefile" { out.replace("../target/policy", "build") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_example_finds_its_place() {
        let policy: Vec<_> = Tree::changeable().collect();
        for (file, start, _) in BELOW {
            let (_, text) = policy.iter().find(|(name, _)| *name == file).unwrap();
            assert!(text.lines().any(|line| line.starts_with(start)), "{file}: {start}");
        }
        let (file, start) = ASKED_BEFORE;
        let (_, text) = policy.iter().find(|(name, _)| *name == file).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with(start)).count(), 1);
    }
}
