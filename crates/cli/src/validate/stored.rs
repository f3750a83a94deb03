//! What benchmarks did here, in a file: with it their simulation can be repeated, elsewhere and later.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use coreward_machine::Preemption;
use serde::{Deserialize, Serialize};

use super::real::Ran;

/// Largest file that is read, in KiB.
const MAX_KIB: u64 = 16 << 10;

/// What benchmarks did on a machine. `--json` prints these fields among others, and can be read as well.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    /// The kernel that ran.
    pub(super) kernel: String,
    /// The profile that stands for it.
    pub(super) profile: String,
    /// How it preempted, if that could be known.
    #[serde(default)]
    pub(super) preemption: Option<Preemption>,
    pub(super) task_group_depth: u32,
    pub(super) rounds: u32,
    /// What the record of a switch took the CPU that it happened on, in ns. None if there were no recorded rounds, or if
    /// it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) record_ns: Option<f64>,
    /// Likewise of a wakeup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) record_wakeup_ns: Option<f64>,
    pub(super) benchmarks: Vec<Ran>,
    /// What a reader has to know about the figures.
    pub(super) notes: Vec<String>,
}

impl Stored {
    /// Reads files, which together are one validation, and keeps the benchmarks that are named; all of them if none is.
    /// None without files.
    pub(super) fn read(files: &[PathBuf], named: &[String]) -> Result<Option<Stored>> {
        let mut all: Option<Stored> = None;
        for file in files {
            let name = || format!("--real: {}", file.display());
            let text =
                coreward_input::read_text(file, MAX_KIB).map_err(anyhow::Error::msg).with_context(name)?;
            let one: Stored = serde_json::from_str(&text).with_context(name)?;
            match &mut all {
                None => all = Some(one),
                Some(all) if (&all.kernel, all.task_group_depth) != (&one.kernel, one.task_group_depth) => {
                    bail!("{}: it is of another kernel or task group than the files before it", name())
                }
                Some(all) => {
                    all.rounds = all.rounds.min(one.rounds);
                    all.benchmarks.extend(one.benchmarks);
                    all.notes.extend(
                        one.notes.into_iter().filter(|note| !all.notes.contains(note)).collect::<Vec<_>>(),
                    );
                }
            }
        }
        if let Some(all) = &mut all {
            if let Some(missing) =
                named.iter().find(|name| all.benchmarks.iter().all(|ran| ran.benchmark != **name))
            {
                bail!("--real: no file has the benchmark `{missing}`");
            }
            all.benchmarks.retain(|ran| named.is_empty() || named.contains(&ran.benchmark));
        }
        Ok(all)
    }
}
