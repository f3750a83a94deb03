//! The commands of README.md, docs/guide.md and docs/variant.md do what these pages say.
//!
//! A block marked `sh` whose text starts with `coreward` is run; a `text` block that follows is what it prints, `…`
//! standing for lines left out. A `toml` block that starts with `# NAME.toml` is a file that the page asks for. After
//! `sh` may stand
//! - `refused`: the command ends with status 2, and the text is its message,
//! - `test: OPTIONS`: added here, so that the test does not take long; the text is compared by its words only,
//! - `skip: REASON`: not run here.
//!
//! Figures of simulations are left out of the comparison: they move when the model does.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use common::directory;

/// A fenced block of a page.
struct Block<'a> {
    /// What stands after the fence.
    info: &'a str,
    text: &'a str,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    const FENCE: &str = "```";
    let mut blocks = Vec::new();
    let mut open: Option<(usize, &str, usize)> = None; // line, info, first byte of the text
    let mut at = 0;
    for (i, line) in page.split_inclusive('\n').enumerate() {
        if let Some(info) = line.strip_prefix(FENCE) {
            open = match open {
                None => Some((i + 1, info.trim(), at + line.len())),
                Some((line, info, start)) => {
                    blocks.push(Block { info, text: &page[start..at], line });
                    None
                }
            };
        }
        at += line.len();
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the tree that this is in")
}

/// Runs a line of shell in `dir`, where `coreward` is the program under test; its status and what it printed.
fn shell(dir: &Path, line: &str) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_coreward")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), env::var("PATH").expect("a path to find sh in"));
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).env("XDG_CACHE_HOME", dir);
    let output = command.output().expect("it starts");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().expect("it ends by itself"), String::from_utf8(printed).expect("text"))
}

/// What of a line is compared: all, or of a simulation's only the words.
fn essence(line: &str, simulated: bool) -> String {
    if !simulated {
        return line.trim_end().to_owned();
    }
    let words = line.split(|c: char| !(c.is_alphabetic() || c == '_')).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Whether `shown` is `printed` with lines left out where it has `…`.
fn shows(shown: &str, printed: &str, simulated: bool) -> Result<(), String> {
    let mut rest = printed.trim_end().lines().map(|line| essence(line, simulated)).peekable();
    let mut gap = false;
    for line in shown.lines() {
        if line == "…" {
            gap = true;
            continue;
        }
        let wanted = essence(line, simulated);
        let found = if gap { rest.any(|line| line == wanted) } else { rest.next().as_ref() == Some(&wanted) };
        if !found {
            return Err(format!("`{line}` is not printed there"));
        }
        gap = false;
    }
    match rest.next() {
        Some(line) if !gap => Err(format!("`{line}` is printed too")),
        _ => Ok(()),
    }
}

/// Runs the commands of a page, and returns how many that were.
fn run_page(name: &str, dir: &Path) -> usize {
    let page = fs::read_to_string(root().join(name)).expect(name);
    let blocks = blocks(&page);
    let mut run = 0;
    for (i, block) in blocks.iter().enumerate() {
        let place = format!("{name}:{}", block.line);
        if let ("toml", Some(file)) =
            (block.info, block.text.lines().next().and_then(|l| l.strip_prefix("# ")))
        {
            fs::write(dir.join(file), block.text).expect("a directory of our own");
        }
        let Some(mark) = block.info.strip_prefix("sh").map(str::trim) else { continue };
        if !block.text.starts_with("coreward") || mark.starts_with("skip: ") {
            continue;
        }
        let (options, status) = match (mark, mark.strip_prefix("test: ")) {
            (_, Some(options)) => (options, 0),
            ("refused", None) => ("", 2),
            ("", None) => ("", 0),
            _ => panic!("{place}: `{mark}` is not understood"),
        };
        let line = block.text.trim();
        assert_eq!(line.lines().count(), 1, "{place}: one command a block");
        let (ended, printed) = shell(dir, &format!("{line} {options}"));
        assert_eq!(ended, status, "{place}: {line}\n{printed}");
        if let Some(text) = blocks.get(i + 1).filter(|next| next.info == "text") {
            let simulated = ["run", "compare", "fidelity", "explain", "policy"]
                .contains(&line.split(' ').nth(1).unwrap_or(""));
            if let Err(what) = shows(text.text, &printed, simulated) {
                panic!("{name}:{}: {what}. {line} prints\n{printed}", text.line);
            }
        }
        run += 1;
    }
    run
}

/// A directory in which the pages' commands find what they name.
fn workplace(test: &str) -> PathBuf {
    let dir = directory(test);
    std::os::unix::fs::symlink(root().join("experiments"), dir.join("experiments")).expect("a link");
    let recording = root().join("crates/parity/tests/data/hackbench-6.12.cwc");
    std::os::unix::fs::symlink(recording, dir.join("hackbench-6.12.cwc")).expect("a link");
    dir
}

#[test]
fn the_readme_can_be_followed() {
    assert!(run_page("README.md", &workplace("readme")) >= 1);
}

#[test]
fn the_guide_can_be_followed() {
    assert!(run_page("docs/guide.md", &workplace("guide")) >= 10);
}

#[test]
fn a_patch_becomes_a_variant() {
    assert!(run_page("docs/variant.md", &workplace("variant")) >= 6);
}

#[test]
fn a_wrong_page_is_noticed() {
    assert_eq!(shows("a 1\n…\nc\n", "a 1\nb\nc\n", false), Ok(()));
    assert!(shows("a 2\n…\n", "a 1\n", false).is_err(), "another figure");
    assert_eq!(shows("a 2 -\n…\n", "a 1.5\n", true), Ok(()), "a figure of a simulation");
    assert!(shows("b 1\n…\n", "a 1\n", true).is_err(), "another name");
    assert!(shows("…\nc\na\n", "a\nb\nc\n", false).is_err(), "another order");
    assert!(shows("a\n", "a\nb\n", false).is_err(), "more is printed");
    assert!(shows("a\nc\n", "a\nb\nc\n", false).is_err(), "a line left out unseen");
    assert_eq!(blocks("x\n```sh\ncoreward a\n```\n").len(), 1);
}
