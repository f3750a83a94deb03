//! Recorded workloads (`.cww`): what is accepted is written again as the same, and a message says what is refused.
#![no_main]

use coreward_workload::recorded::Recorded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Recorded::from_bytes(bytes) {
        Ok(recorded) => {
            let mut again = Vec::new();
            recorded.write(&mut again).expect("memory is written");
            assert!(Recorded::from_bytes(&again[..]).expect("what was written is read") == recorded);
        }
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
});
