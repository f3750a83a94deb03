//! `coreward policy check`: does a directory's policy compile, pass its tests, leave the other rules as they are, and
//! agree with a kernel?

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

use anyhow::{Context, Error, Result};
use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_machine::Machine;
use coreward_policy::{Code, Decision, Profile, Tree};
use coreward_state::Options;
use coreward_workload::Scale;

use crate::policy::Policy;
use crate::setup::Host;
use crate::unmet::Unmet;
use crate::{cli, parity};

/// A run in which every kind of decision occurs.
const MACHINE: &str = "2n2l4c2t";
const WORKLOAD: &str = "hackbench -g 2 -l 100";

pub(crate) fn run(args: &cli::PolicyCheck, out: &mut dyn Write) -> Result<()> {
    let code = Code::of_directory(&args.directory).map_err(Error::msg)?;
    let shown = args.directory.display();
    writeln!(out, "{shown}: compiles; its own are {}", own(code))?;
    tests(args, out)?;
    writeln!(out, "{shown}: {}", like_built_in(code)?)?;
    if args.files.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let parity = cli::Parity {
        files: args.files.clone(),
        profile: None,
        policy: Some(args.directory.clone()),
        list: None,
        explain: None,
        require: Vec::new(),
        json: false,
        what_if: Options::default(),
    };
    parity::run(&parity, out)
}

/// What it has besides the built-in policy's, by name.
fn own(code: &Code) -> String {
    let names = |code: &Code| -> BTreeSet<String> {
        let features = code.features().iter().map(|f| format!("feature {}", f.name));
        let tunables = code.tunables().iter().map(|t| format!("tunable {}", t.name));
        let reasons = code.reasons().map(|r| format!("reason {}", r.name));
        features.chain(tunables).chain(reasons).collect()
    };
    let own: Vec<_> = names(code).difference(&names(Code::built_in())).cloned().collect();
    if own.is_empty() { "no features, tunables or reasons".into() } else { own.join(", ") }
}

/// Runs the tests of its `tests/`, by the policy's own Makefile.
fn tests(args: &cli::PolicyCheck, out: &mut dyn Write) -> Result<()> {
    let shown = args.directory.display();
    let tree = Tree::of(&args.directory).map_err(Error::msg)?;
    let scratch = tempfile::tempdir().context("cannot create a directory to compile tests in")?;
    tree.write(scratch.path()).context("cannot write tests to compile")?;
    let jobs = std::thread::available_parallelism().map_or(1, |n| n.get());
    let ran = Command::new("make")
        .args(["--silent", "--no-print-directory", &format!("--jobs={jobs}"), "check", "BUILD=build"])
        .current_dir(scratch.path())
        .env("LC_ALL", "C")
        .output()
        .context("the tests need make")?;
    out.write_all(&ran.stdout)?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let lines = said.lines().filter(|line| !line.starts_with("make"));
    let first = lines.take(4).collect::<Vec<_>>().join("; ");
    Unmet::check(&[format!("{shown}: its tests fail: {first}")])
}

/// Whether a run differs from one under the built-in policy while its own features are off.
fn like_built_in(code: &'static Code) -> Result<String> {
    let (own, built_in) = (decisions(code)?, decisions(Code::built_in())?);
    let run = format!("{WORKLOAD} on {MACHINE}");
    let Some(first) = own.iter().zip(&built_in).position(|(own, built_in)| own != built_in) else {
        return Ok(format!(
            "its rules are the built-in policy's unless a feature is switched: {} decisions of {run} are equal",
            built_in.len()
        ));
    };
    Ok(format!(
        "its rules differ from the built-in policy's though no feature is switched: decision {} of {run} is another \
         one (coreward explain shows both)",
        first + 1
    ))
}

fn decisions(code: &'static Code) -> Result<Vec<Decision>> {
    let machine = Machine::load(MACHINE)?;
    let workload = coreward_workload::parse(WORKLOAD, Scale::FULL)?;
    let mut all = Decisions::default();
    Host::new(machine, Policy::of(code, Profile::DEFAULT))?.run(&workload, 1, &mut all)?;
    Ok(all.0)
}

#[derive(Default)]
struct Decisions(Vec<Decision>);

impl Trace for Decisions {
    fn fork(&mut self, _: u64, _: i32, _: i32, _: u32, _: u32) {}
    fn waking(&mut self, _: Moment, _: usize, _: Waker, _: i32, _: usize, _: bool) {}
    fn migrate(&mut self, _: u64, _: usize, _: i32, _: usize, _: usize) {}
    fn switch(&mut self, _: Moment, _: usize, _: i32, _: Leaving, _: i32) {}

    fn decision(&mut self, d: &Decision) {
        self.0.push(*d);
    }
}
