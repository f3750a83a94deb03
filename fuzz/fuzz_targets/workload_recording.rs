//! The events of `coreward record --workload`: whatever is read is imported, or refused with a message.
#![no_main]

use coreward_fuzz::recording::{imports, recorded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|events: &[u8]| imports(recorded(events)));
