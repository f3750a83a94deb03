//! `coreward-live parity`: lets the policy decide on recorded states both natively and in BPF.

use std::cell::RefCell;
use std::mem::{MaybeUninit, size_of};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use coreward_parity::{BalanceRules, Reader, Replay};
use coreward_policy::{Balance, Code, CpuMask, Decision, Placement, System, Task, feature_words, layout};
use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use crate::kernel;
use crate::skel::place::{PlaceSkel, PlaceSkelBuilder};

#[derive(Args)]
pub(crate) struct Parity {
    /// Captures, as coreward record --decisions writes them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The programs, and the results of the repeated decisions.
struct Both {
    skel: PlaceSkel<'static>,
    /// Features that are switched in BPF only, to test that a difference is detected.
    switched: u128,
    decisions: u64,
    /// Each one's description.
    differences: Vec<String>,
}

thread_local! {
    // where the rules of a replay, which are plain functions, find the programs
    static BOTH: RefCell<Option<Both>> = const { RefCell::new(None) };
}

/// Makes every decision of the files in both ways.
///
/// # Errors
/// A file cannot be read, the kernel does not load the programs, or a decision differs.
pub(crate) fn run(args: &Parity) -> Result<()> {
    let both = compare(&args.files, 0)?;
    for difference in &both.differences {
        println!("{difference}");
    }
    println!("{} decisions, {} differ", both.decisions, both.differences.len());
    if !both.differences.is_empty() {
        bail!("the policy does not decide the same in BPF");
    }
    Ok(())
}

/// Makes every decision of the files in both ways, with these features switched in BPF only.
fn compare(files: &[PathBuf], switched: u128) -> Result<Both> {
    kernel::has_bpf()?;
    BOTH.set(Some(Both { skel: load()?, switched, decisions: 0, differences: Vec::new() }));
    for file in files {
        replay(file)?;
    }
    BOTH.take().context("the programs are gone")
}

fn load() -> Result<PlaceSkel<'static>> {
    // the programs stay until this process ends
    let object = Box::leak(Box::new(MaybeUninit::uninit()));
    let skel = PlaceSkelBuilder::default().open(object)?;
    skel.load().context("the kernel does not load the programs")
}

fn replay(file: &std::path::Path) -> Result<()> {
    let mut reader = Reader::open(file)?;
    let host = &reader.machine().host;
    let policy = host.settings(Code::built_in(), host.profile().0);
    let replay = Replay::new(reader.machine(), &policy);
    let mut replay = replay
        .map_err(|what| anyhow::anyhow!("{}: {what}", file.display()))?
        .with_rule(select_task_rq_fair)
        .with_balance_rules(BalanceRules { group: find_src_group, queue: find_src_rq });
    for record in &mut reader {
        replay.compare(&record?);
    }
    Ok(())
}

/// Copies a structure of plain integers to its twin.
///
/// # Panics
/// Their sizes differ: the programs were compiled with another layout.
fn put<To, From>(to: &mut To, from: &From) {
    assert_eq!(size_of::<To>(), size_of::<From>());
    // SAFETY: the same C structure, integers only, seen by two compilers
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const *from).cast::<u8>(),
            (&raw mut *to).cast::<u8>(),
            size_of::<To>(),
        );
    }
}

/// Do both structures have the same bytes?
fn same<A, B>(a: &A, b: &B) -> bool {
    // SAFETY: the structures have no padding, so that all of their bytes are initialised
    let bytes = |start: *const u8, size| unsafe { std::slice::from_raw_parts(start, size) };
    bytes((&raw const *a).cast(), size_of::<A>()) == bytes((&raw const *b).cast(), size_of::<B>())
}

impl Both {
    fn compare(&mut self, what: &str, native: &Decision, sys: &System, twins: &[(&str, bool)]) {
        self.decisions += 1;
        let Some(bss) = self.skel.maps.bss_data.as_ref() else { return };
        let state = same::<layout::Sys, _>(sys, &bss.sys);
        let record = same(native, &bss.decision);
        let different: Vec<_> = [("record", record), ("state", state)]
            .iter()
            .chain(twins)
            .filter(|(_, same)| !same)
            .map(|(name, _)| *name)
            .collect();
        if !different.is_empty() {
            let mut bpf = Decision::default();
            put(&mut bpf, &bss.decision);
            let difference =
                format!("{what}: {} differ: native {native:?}, BPF {bpf:?}", different.join(" and "));
            self.differences.push(difference);
        }
    }
}

/// Runs `f` with the programs.
fn with_both<T>(f: impl FnOnce(&mut Both) -> T) -> T {
    BOTH.with_borrow_mut(|both| f(both.as_mut().expect("a replay runs after the programs are loaded")))
}

fn select_task_rq_fair(
    sys: &mut System,
    request: &Placement,
    task: &mut Task,
    mut waker: Option<&mut Task>,
    allowed: &CpuMask,
) -> Decision {
    with_both(|both| {
        let bss = both.skel.maps.bss_data.as_mut().expect("the programs have variables");
        put::<_, layout::Sys>(&mut bss.sys, sys);
        for (word, switched) in bss.sys.features.iter_mut().zip(feature_words(both.switched)) {
            *word ^= switched;
        }
        put(&mut bss.task, task);
        if let Some(waker) = &waker {
            put(&mut bss.waker, *waker);
        }
        put(&mut bss.allowed, allowed);
        let question = &mut bss.question;
        question.this_cpu = request.this_cpu as i32;
        question.prev_cpu = request.prev_cpu as i32;
        question.task_cpu = request.task_cpu as i32;
        question.wake_flags = request.wake_flags;
        question.in_task = u32::from(request.in_task);
        question.random = request.random;
        question.wakes_itself = u32::from(waker.is_none());
        question.now = request.now;
        both.skel.progs.place.test_run(ProgramInput::default()).expect("the program runs");
        let native = sys.select_task_rq_fair(request, task, waker.as_deref_mut(), allowed);
        let bss = both.skel.maps.bss_data.as_ref().expect("the programs have variables");
        let twins = [
            ("choice", bss.choice == native.cpu),
            ("task", same(task, &bss.task)),
            ("waker", waker.is_none_or(|waker| same(waker, &bss.waker))),
        ];
        both.compare("placement", &native, sys, &twins);
        native
    })
}

fn find_src_group(sys: &mut System, env: &mut Balance) -> (Option<u32>, Decision) {
    with_both(|both| {
        let bss = both.skel.maps.bss_data.as_mut().expect("the programs have variables");
        put::<_, layout::Sys>(&mut bss.sys, sys);
        put(&mut bss.env, env);
        both.skel.progs.find_src_group.test_run(ProgramInput::default()).expect("the program runs");
        let (group, native) = sys.sched_balance_find_src_group(env);
        let bss = both.skel.maps.bss_data.as_ref().expect("the programs have variables");
        let choice = group.unwrap_or(layout::NONE) as i32;
        let twins = [("choice", bss.choice == choice), ("statistics", same(env, &bss.env))];
        both.compare("busiest group", &native, sys, &twins);
        (group, native)
    })
}

fn find_src_rq(sys: &mut System, env: &Balance, group: u32) -> (Option<usize>, Decision) {
    with_both(|both| {
        let bss = both.skel.maps.bss_data.as_mut().expect("the programs have variables");
        put::<_, layout::Sys>(&mut bss.sys, sys);
        put(&mut bss.env, env);
        bss.question.group = group;
        both.skel.progs.find_src_rq.test_run(ProgramInput::default()).expect("the program runs");
        let (cpu, native) = sys.sched_balance_find_src_rq(env, group);
        let bss = both.skel.maps.bss_data.as_ref().expect("the programs have variables");
        let choice = cpu.map_or(-1, |cpu| cpu as i32);
        both.compare("busiest queue", &native, sys, &[("choice", bss.choice == choice)]);
        (cpu, native)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_policy::Feature;

    fn recordings() -> Vec<PathBuf> {
        let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../parity/tests/data"));
        ["hackbench-6.12.cwc", "hackbench-7.3.cwc", "hackbench-juno-r0-7.3.cwc"]
            .map(|name| data.join(name))
            .into()
    }

    #[test]
    fn bpf_decides_as_a_native_build_and_a_difference_is_noticed() {
        if let Err(why) = kernel::has_bpf() {
            eprintln!("not tested: {why}");
            return;
        }
        let same = compare(&recordings(), 0).unwrap();
        assert_eq!(same.decisions, 143);
        assert_eq!(same.differences, Vec::<String>::new());
        let other = compare(&recordings(), 1 << Feature::WAKEUP_BIAS_PREV as u32).unwrap();
        assert!(other.differences.iter().any(|d| d.contains("choice")), "{:?}", other.differences);
    }
}
