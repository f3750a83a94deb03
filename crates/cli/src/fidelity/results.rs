//! The file of results: what came of each experiment when it was last run.
//!
//! A run of all experiments takes hours. With this file, a few can be run again, and the page is still of all.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use coreward_metrics::fidelity::Outcome;

/// Largest file, in KiB; an experiment takes 1 to 70 KiB.
const MAX_KIB: u64 = 64 << 10;

/// By the name of the experiment.
pub(super) type Results = BTreeMap<String, Outcome>;

/// The results in a file; none if it is not there.
///
/// # Errors
/// It cannot be read, or a line is no result.
pub(super) fn read(path: &Path) -> Result<Results> {
    let cannot = || format!("--results: cannot read {}", path.display());
    if !path.try_exists().with_context(cannot)? {
        return Ok(Results::new());
    }
    let text = coreward_input::read_text(path, MAX_KIB).with_context(cannot)?;
    let mut results = Results::new();
    for (index, line) in text.lines().enumerate() {
        let refused = |what: &str| anyhow!("--results: {}:{}: {what}", path.display(), index + 1);
        let outcome: Outcome = serde_json::from_str(line)
            .map_err(|error| refused(&format!("no result of an experiment, column {}", error.column())))?;
        if let Some(twice) = results.insert(outcome.experiment.clone(), outcome) {
            return Err(refused(&format!("{} is there twice", twice.experiment)));
        }
    }
    Ok(results)
}

/// Writes a line for each result, so that a change of one changes one line.
pub(super) fn write(results: &Results, out: &mut dyn Write) -> Result<()> {
    for outcome in results.values() {
        writeln!(out, "{}", serde_json::to_string(outcome)?)?;
    }
    Ok(())
}
