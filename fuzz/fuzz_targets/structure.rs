//! Machines, workloads and settings that are valid by construction: they are accepted, simulated, and no invariant is broken.
#![no_main]

use coreward_fuzz::structure::{self, Verdict};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(case) = structure::case(&mut Unstructured::new(bytes)) else { return };
    match structure::run(&case) {
        Verdict::Refused(why) => panic!("{why}\n{case:#?}"),
        Verdict::Ran { checks, .. } => {
            assert!(checks.violations.is_empty(), "{:#?}\n{case:#?}", checks.violations)
        }
        Verdict::NoEnd(_) => {}
    }
});
