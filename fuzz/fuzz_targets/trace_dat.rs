//! Files of trace-cmd: whatever is read is imported and simulated, or refused with a message.
#![no_main]

use coreward_fuzz::recording::{begun_with, imports};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    imports(begun_with(b"\x17\x08\x44tracing", bytes));
});
