//! The commands of README.md, docs/guide.md, docs/sweep.md and docs/variant.md do what these pages say.
//!
//! `make docs` writes what the commands print into the pages; these tests fail when that would change a page. A block
//! marked `sh` whose text starts with `coreward` is run, and a `text` block that follows is what it prints, a line `…`
//! standing for lines left out. `make docs` keeps the lines that are shown, with their present figures. A `toml` block
//! that starts with `# NAME.toml` is a file that the page asks for. After `sh` may stand
//! - `setup`: lines of shell that print nothing,
//! - `shown on: M`: the command is run as it stands, on a machine file of this machine; what the page shows is what it
//!   prints on M, as every machine prints something else,
//! - `refused`: the command ends with status 2, and the text is its message,
//! - `test: OPTIONS`: the command takes too long for a test, which runs it with these options instead. What it prints
//!   then is in `golden/`, and the page is compared by its words only: it is out of date if the former changes,
//! - `skip: REASON`: not run here.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use common::directory;

/// The line that stands for others.
const GAP: &str = "…";

/// The machine file that a reader makes.
const HERE: &str = "here.toml";

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

/// How a block's command is run.
enum Mark<'a> {
    Plain,
    Refused,
    /// With these options in a test.
    Shortened(&'a str),
    Setup,
    /// On this machine.
    Elsewhere(&'a str),
}

impl Block<'_> {
    /// None if it is no command that can be run here.
    fn mark(&self) -> Option<Mark<'_>> {
        let mark = self.info.strip_prefix("sh")?.trim();
        if mark == "setup" {
            return Some(Mark::Setup);
        }
        if !self.text.starts_with("coreward") || mark.starts_with("skip: ") {
            return None;
        }
        Some(match (mark, mark.split_once(": ")) {
            (_, Some(("test", options))) => Mark::Shortened(options),
            (_, Some(("shown on", machine))) => Mark::Elsewhere(machine),
            ("refused", None) => Mark::Refused,
            ("", None) => Mark::Plain,
            _ => panic!("line {}: `{mark}` is not understood", self.line),
        })
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the tree that this is in")
}

/// Runs a line of shell in `dir`, where `coreward` is the program under test; what it printed, or why it refused.
fn shell(dir: &Path, line: &str, status: i32) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_coreward")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), env::var("PATH").expect("a path to find sh in"));
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).env("XDG_CACHE_HOME", dir);
    let output = command.output().expect("it starts");
    let [printed, refused] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    assert_eq!(output.status.code(), Some(status), "{line}\n{printed}{refused}");
    if status == 0 { printed } else { refused }
}

/// The words of a line, without figures: a word has a letter.
fn words(line: &str) -> String {
    let words = line.split_whitespace().filter(|word| word.contains(char::is_alphabetic));
    words.collect::<Vec<_>>().join(" ")
}

/// Its first two words, by which a row of a table is known.
fn beginning(line: &str) -> String {
    words(line).split(' ').take(2).collect()
}

/// What the page is to show of what was printed: all, or the lines that it showed before, known by their words.
fn excerpt(shown: &str, printed: &str) -> String {
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    if !shown.lines().any(|line| line == GAP) {
        return printed.iter().map(|line| format!("{line}\n")).collect();
    }
    let mut kept = String::new();
    let mut next = 0;
    for line in shown.lines().map(str::trim_end).filter(|line| *line != GAP) {
        let same = |other: &&str| *other == line;
        let rest = &printed[next..];
        // a line without words, as below the head of a table, has to be where it was
        let near = if words(line).is_empty() { &rest[..rest.len().min(1)] } else { rest };
        let alike = |other: &&str| words(other) == words(line);
        let begins_alike = |other: &&str| beginning(other) == beginning(line);
        let position = rest.iter().position(same).or_else(|| near.iter().position(alike));
        let Some(skipped) = position.or_else(|| near.iter().position(begins_alike)) else {
            continue; // it is not printed any more
        };
        let gap = if skipped > 0 { format!("{GAP}\n") } else { String::new() };
        kept += &format!("{gap}{}\n", rest[skipped]);
        next += skipped + 1;
    }
    if next < printed.len() {
        kept += &format!("{GAP}\n");
    }
    kept
}

/// Compares with a golden file, or writes it.
fn golden(name: &str, text: &str, write: bool) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if write {
        fs::write(&file, text).expect("the tree can be written");
    }
    let before = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, before, "the figures of the page are out of date: run make docs");
}

/// Runs the commands of a page. Returns how many that were, and the page as it is to be.
fn run_page(name: &str, page: &str, dir: &Path, write: bool) -> (usize, String) {
    let blocks = blocks(page);
    let (mut run, mut shortened) = (0, 0);
    let mut wanted = page.to_owned();
    for (i, block) in blocks.iter().enumerate() {
        if let ("toml", Some(file)) =
            (block.info, block.text.lines().next().and_then(|l| l.strip_prefix("# ")))
        {
            fs::write(dir.join(file), block.text).expect("a directory of our own");
        }
        let Some(mark) = block.mark() else { continue };
        let line = block.text.trim();
        if matches!(mark, Mark::Setup) {
            assert_eq!(shell(dir, line, 0), "", "{name}:{}", block.line);
            run += 1;
            continue;
        }
        assert_eq!(line.lines().count(), 1, "{name}:{}: one command a block", block.line);
        let shown = blocks.get(i + 1).filter(|next| next.info == "text");
        let new = match mark {
            Mark::Plain => shell(dir, line, 0),
            Mark::Refused => shell(dir, line, 2),
            Mark::Elsewhere(machine) => {
                shell(dir, line, 0);
                assert!(line.contains(HERE), "{name}:{}: it is about {HERE}", block.line);
                shell(dir, &line.replace(HERE, machine), 0)
            }
            Mark::Setup => unreachable!("it went before"),
            Mark::Shortened(options) => {
                shortened += 1;
                let printed = shell(dir, &format!("{line} {options}"), 0);
                let page = name.rsplit('/').next().unwrap_or(name);
                golden(&format!("{page}-{shortened}.txt"), &printed, write);
                if write { shell(dir, line, 0) } else { printed }
            }
        };
        run += 1;
        let Some(shown) = shown else { continue };
        let new = excerpt(shown.text, &new);
        if matches!(mark, Mark::Shortened(_)) && !write {
            let all = |text: &str| text.lines().map(words).collect::<Vec<_>>();
            assert_eq!(all(&new), all(shown.text), "{name}:{}: {line}", shown.line);
        } else {
            let fence = format!("```text\n{}```", shown.text);
            assert_eq!(page.matches(&fence).count(), 1, "{name}:{}: the block stands once", shown.line);
            wanted = wanted.replace(&fence, &format!("```text\n{new}```"));
        }
    }
    (run, wanted)
}

/// A directory in which the pages' commands find what they name.
fn workplace(test: &str) -> PathBuf {
    let dir = directory(test);
    for name in ["crates", "experiments"] {
        std::os::unix::fs::symlink(root().join(name), dir.join(name)).expect("a link");
    }
    dir
}

/// Runs a page, and compares it with what it is to be, or writes that.
fn follow(name: &str, dir: &Path) -> usize {
    let write = env::var_os("COREWARD_BLESS").is_some();
    let file = root().join(name);
    let page = fs::read_to_string(&file).expect(name);
    let (run, wanted) = run_page(name, &page, dir, write);
    if write {
        fs::write(&file, &wanted).expect("the tree can be written");
    } else {
        let differs = page.lines().zip(wanted.lines()).enumerate().find(|(_, (old, new))| old != new);
        let place = differs.map(|(line, (old, new))| format!(":{}:\n- {old}\n+ {new}", line + 1));
        assert!(page == wanted, "run make docs: {name}{}", place.unwrap_or_default());
    }
    run
}

#[test]
fn the_readme_can_be_followed() {
    assert!(follow("README.md", &workplace("readme")) >= 1);
}

#[test]
fn the_guide_can_be_followed() {
    assert!(follow("docs/guide.md", &workplace("guide")) >= 10);
}

#[test]
fn the_page_on_sweeps_can_be_followed() {
    assert!(follow("docs/sweep.md", &workplace("sweep")) >= 1);
}

#[test]
fn the_page_on_tables_can_be_followed() {
    assert!(follow("docs/tables.md", &workplace("tables")) >= 1);
}

#[test]
fn a_patch_becomes_a_variant() {
    assert!(follow("docs/variant.md", &workplace("variant")) >= 6);
}

#[test]
fn an_excerpt_keeps_its_lines_with_new_figures() {
    assert_eq!(excerpt("a 2\nb\n", "a 1\nc\n"), "a 1\nc\n", "without a gap it is everything");
    assert_eq!(excerpt("a 2 -\n…\n", "a 1.5\nb\n"), "a 1.5\n…\n");
    assert_eq!(excerpt("…\nb 2\n", "a\nb 1\nc\n"), "…\nb 1\n…\n", "what is left out is said");
    assert_eq!(excerpt("a\nc\n…\n", "a\nb\nc\n"), "a\n…\nc\n");
    assert_eq!(excerpt("a\n…\nc\n", "a\nc\n"), "a\nc\n", "and nothing else");
    assert_eq!(excerpt("a\nb\n…\n", "a\nc\nd\n"), "a\n…\n", "a line that is no longer printed");
    assert_eq!(
        excerpt("| a p50 |\n| --- |\n…\n", "| a p5 |\n| a p50 |\n| ---- |\nb"),
        "…\n| a p50 |\n| ---- |\n…\n"
    );
    assert_eq!(excerpt("…\nEX-1 a: wrong 1\n", "b\nEX-1 a: right 2\n"), "…\nEX-1 a: right 2\n");
    assert_eq!(excerpt("…\nx 1\n", "x 2\nx 1\n"), "…\nx 1\n", "the same line before one that is alike");
}

/// A command whose output is not the page's, first and then after it was written.
#[test]
fn a_page_that_is_out_of_date_is_noticed() {
    let dir = workplace("stale");
    let page = "```sh\ncoreward topology 1c\n```\n\n```text\n1c: 2 nodes of old\n…\n```\n";
    let (run, wanted) = run_page("a page", page, &dir, false);
    assert_eq!(run, 1);
    assert_ne!(wanted, page);
    assert_eq!(run_page("a page", &wanted, &dir, false).1, wanted);
    assert_eq!(blocks(page).len(), 2);
}
