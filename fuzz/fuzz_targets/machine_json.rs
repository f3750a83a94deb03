//! Machines as `coreward topology --json` prints them.
#![no_main]

use coreward_machine::Machine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| coreward_fuzz::check(Machine::from_json_str("fuzz.json", text)));
