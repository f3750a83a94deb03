//! Experiment files.
#![no_main]

use coreward_cli::experiment::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = Experiment::parse("fuzz.toml", text) {
        assert!(error.to_string().starts_with("fuzz.toml"), "{error}");
    }
});
