//! Recorded workloads as TOML (`.cww.toml`).
#![no_main]

use coreward_fuzz::recording::reads_back;
use coreward_workload::recorded::Form;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| reads_back(bytes, Form::Toml));
