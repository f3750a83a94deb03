//! Shorthands like `2n4l8c2t`.
#![no_main]

use coreward_machine::Machine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| coreward_fuzz::check(Machine::from_shorthand(text)));
