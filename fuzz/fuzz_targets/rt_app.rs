//! rt-app's workload files.
#![no_main]

use coreward_workload::{CpuChoice, Op, Scale, Workload, rt_app};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match rt_app::from_text("fuzz.json", text, Scale::FULL) {
        Ok(workload) => check(&workload),
        Err(error) => {
            let line = error.to_string();
            let line = line.strip_prefix("rt-app: fuzz.json:").expect("the file is named");
            let number: usize = line.split(':').next().expect("a line").parse().expect("its number");
            assert!((1..=text.split('\n').count()).contains(&number), "there is no line {number}");
        }
    }
});

/// Every task that is spawned has its program, and every step what it works on.
fn check(workload: &Workload) {
    let Workload { programs, attributes, shared, cpu_sets, .. } = workload;
    assert_eq!(programs.len(), attributes.len());
    for op in programs.iter().flat_map(|program| program.iter()) {
        match *op {
            Op::Spawn { program, .. } => assert!((program as usize) < programs.len()),
            Op::Lock { mutex } | Op::Unlock { mutex } => assert!(mutex < shared.mutexes),
            Op::Signal { cond } | Op::Broadcast { cond } => assert!(cond < shared.conds),
            Op::CondWait { cond, mutex } => {
                assert!(cond < shared.conds as u32 && mutex < shared.mutexes);
            }
            Op::SetAffinity { set: Some(set) } => match &cpu_sets[set as usize] {
                CpuChoice::These(cpus) => assert!(!cpus.is_empty()),
                CpuChoice::InTurn(_) => {}
            },
            // one of tasks of which none is started waits for none
            Op::Barrier { barrier, .. } => assert!((barrier as usize) < shared.barriers.len()),
            _ => {}
        }
    }
}
