//! Command lines of benchmarks.
#![no_main]

use coreward_workload::{Op, Scale, Workload, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // a file is another input
    if text.trim_start().starts_with("rt-app") {
        return;
    }
    let Ok(workload) = parse(text, Scale::FULL) else {
        return;
    };
    check(&workload);
    let Workload { name, messages, .. } = workload;
    let again = parse(&name, Scale(1)).expect("the command that it stands for is read again");
    assert_eq!(again.name, name);
    assert!(again.messages <= messages);
});

/// Every task that is spawned has its program and its channels.
fn check(workload: &Workload) {
    for op in workload.programs[0].iter() {
        if let Op::Spawn { program, base, .. } = *op {
            let program = &workload.programs[program as usize];
            let operands = program.iter().filter_map(|op| match *op {
                Op::Read { channel, .. } | Op::Write { channel, .. } => Some(channel),
                _ => None,
            });
            if let Some(highest) = operands.take(1).max() {
                assert!(((base + highest) as usize) < workload.channels.len());
            }
        }
    }
}
