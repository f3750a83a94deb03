//! Runs cases of [`coreward_fuzz::structure`] made of random bytes, without libFuzzer: `structure SECONDS [FIRST [LAST]]`.
//! Prints those that fail, and at the end how many there were of each kind. With FIRST, cases begin with that number;
//! with LAST, they end there, and each is printed whole.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use coreward_fuzz::structure::{self, Case, Source, Verdict, bytes};
use libfuzzer_sys::arbitrary::Unstructured;

/// A case that takes longer hangs.
const HANG: Duration = Duration::from_secs(60);

/// The number of the current case.
static CURRENT: AtomicU64 = AtomicU64::new(0);

fn kind(case: &Case) -> &'static str {
    match &case.workload {
        Source::RtApp(_) => "rt-app",
        Source::Command(line) => ["hackbench", "perf", "schbench", "sysbench"]
            .into_iter()
            .find(|tool| line.starts_with(tool))
            .unwrap_or("other"),
    }
}

fn watch() {
    loop {
        let before = CURRENT.load(Ordering::Relaxed);
        std::thread::sleep(HANG);
        if CURRENT.load(Ordering::Relaxed) == before {
            println!("hung: {before}");
            exit(1);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let seconds = Duration::from_secs(arguments.next().expect("SECONDS"));
    let first = arguments.next().unwrap_or(0);
    let last = arguments.next();
    std::thread::spawn(watch);
    let start = Instant::now();
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let (mut waiting, mut misfit, mut waited, mut events) = (0.0f64, 0.0f64, 0, 0);
    let mut number = first;
    while start.elapsed() < seconds && last.is_none_or(|last| number <= last) {
        CURRENT.store(number, Ordering::Relaxed);
        let bytes = bytes(number);
        let case = structure::case(&mut Unstructured::new(&bytes)).expect("enough bytes");
        if last.is_some() {
            println!("{}\n{case:#?}", case.machine);
        }
        let verdict = panic::catch_unwind(AssertUnwindSafe(|| structure::run(&case)));
        let what = match verdict {
            Err(_) => {
                println!("crashed: {number}");
                "crashed"
            }
            Ok(Verdict::Refused(why)) => {
                println!("refused: {number}: {why}");
                "refused"
            }
            Ok(Verdict::NoEnd(_)) => "no end",
            Ok(Verdict::Ran { checks, nr_cpus, events: n }) => {
                events += n;
                waited = waited.max(checks.waiting_ns);
                // in ms for each CPU
                let per_cpu = |ns: u64| ns as f64 / 1e6 / nr_cpus as f64;
                waiting = waiting.max(per_cpu(checks.idle_beside_waiting_ns));
                misfit = misfit.max(per_cpu(checks.idle_beside_misfit_ns));
                if last.is_some() {
                    println!("{checks:#?}");
                }
                for violation in &checks.violations {
                    let Case { profile, changes, partition, events, .. } = &case;
                    let settings = format!("{profile} {changes:?} {partition:?} {events:?}");
                    println!("violated: {number}: {violation}; {settings}");
                }
                if checks.violations.is_empty() { "accepted" } else { "violated" }
            }
        };
        *counts.entry((kind(&case), what)).or_default() += 1;
        number += 1;
    }
    println!("cases {first} to {}, {events} events", number.saturating_sub(1));
    for ((kind, what), n) in counts {
        println!("{kind:10} {what:10} {n:8}");
    }
    println!(
        "idle beside a waiting task: up to {waiting:.1} ms a CPU; beside a misfit: up to {misfit:.1} ms a CPU"
    );
    println!("waiting: up to {:.3} s", waited as f64 / 1e9);
}
