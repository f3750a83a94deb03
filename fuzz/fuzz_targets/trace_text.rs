//! Text of ftrace, trace-cmd and perf script: whatever is read is imported and simulated, or refused with a message.
#![no_main]

use coreward_fuzz::recording::imports;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    imports(bytes.to_vec());
});
