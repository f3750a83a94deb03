//! What benchmarks did here, in a file: with it their simulation can be repeated, elsewhere and later.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use coreward_engine::Settings;
use coreward_machine::{Costs, Preemption, VCPU_PACK_MAX};
use coreward_policy::Profile;
use serde::{Deserialize, Serialize};

use super::MAX_ROUNDS;
use super::real::Ran;
use crate::policy::Policy;
use crate::setup;

/// Largest file that is read, in KiB.
const MAX_KIB: u64 = 16 << 10;
/// The longest record of a switch or a wakeup that is believed, in ns: a thousand times what it takes.
const MAX_RECORD_NS: f64 = 1e6;

fn longer(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

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
    /// How it packed tasks on busy CPUs, if it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vcpu_pack: Option<u8>,
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
    /// None without files. The least rounds of the files are those of all, and the longest records.
    pub(super) fn read(files: &[PathBuf], named: &[String]) -> Result<Option<Stored>> {
        let mut all: Option<Stored> = None;
        for file in files {
            let name = || format!("--real: {}", file.display());
            let text =
                coreward_input::read_text(file, MAX_KIB).map_err(anyhow::Error::msg).with_context(name)?;
            let one: Stored = serde_json::from_str(&text).with_context(name)?;
            one.check().map_err(anyhow::Error::msg).with_context(name)?;
            match &mut all {
                None => all = Some(one),
                Some(all) if all.kernel_as_it_ran() != one.kernel_as_it_ran() => {
                    bail!(
                        "{}: it is of another kernel, profile, preemption, vcpu_pack or task group than the files before it",
                        name()
                    )
                }
                Some(all) => {
                    all.rounds = all.rounds.min(one.rounds);
                    all.record_ns = longer(all.record_ns, one.record_ns);
                    all.record_wakeup_ns = longer(all.record_wakeup_ns, one.record_wakeup_ns);
                    all.benchmarks.extend(one.benchmarks);
                    all.notes.extend(
                        one.notes.into_iter().filter(|note| !all.notes.contains(note)).collect::<Vec<_>>(),
                    );
                }
            }
        }
        if let Some(all) = &mut all {
            let twice = |(i, ran): &(usize, &Ran)| {
                all.benchmarks[..*i].iter().any(|it| it.benchmark == ran.benchmark)
            };
            if let Some((_, ran)) = all.benchmarks.iter().enumerate().find(twice) {
                bail!("--real: the benchmark `{}` is there twice", ran.benchmark);
            }
            if let Some(missing) =
                named.iter().find(|name| all.benchmarks.iter().all(|ran| ran.benchmark != **name))
            {
                bail!("--real: no file has the benchmark `{missing}`");
            }
            all.benchmarks.retain(|ran| named.is_empty() || named.contains(&ran.benchmark));
        }
        Ok(all)
    }

    /// What has to be the same of all files.
    fn kernel_as_it_ran(&self) -> (&str, &str, Option<Preemption>, Option<u8>, u32) {
        (&self.kernel, &self.profile, self.preemption, self.vcpu_pack, self.task_group_depth)
    }

    /// The policy of the kernel that ran.
    ///
    /// # Errors
    /// There is no profile of that name.
    pub(super) fn policy(&self) -> Result<setup::Default> {
        let profile = Profile::named(&self.profile).map_err(anyhow::Error::msg)?;
        let mut default = setup::Default { policy: Policy::new(profile), notes: Vec::new() };
        if let Some(preemption) = self.preemption {
            default.preempts_as(preemption);
        }
        if let Some(bits) = self.vcpu_pack {
            default.packs(bits);
        }
        Ok(default)
    }

    /// Could it have been measured?
    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: f64, [least, most]: [f64; 2]| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(format!("{name} is {value}, allowed are {least} to {most}")),
        };
        Profile::named(&self.profile).map_err(|what| format!("profile: {what}"))?;
        within("task_group_depth", self.task_group_depth.into(), [0.0, Settings::MAX_DEPTH.into()])?;
        within("rounds", self.rounds.into(), [1.0, MAX_ROUNDS.into()])?;
        if self.benchmarks.is_empty() {
            return Err("benchmarks is empty".into());
        }
        within("vcpu_pack", self.vcpu_pack.unwrap_or(0).into(), [0.0, VCPU_PACK_MAX.into()])?;
        for (name, ns) in [("record_ns", self.record_ns), ("record_wakeup_ns", self.record_wakeup_ns)] {
            within(name, ns.unwrap_or(0.0), [0.0, MAX_RECORD_NS])?;
        }
        for Ran { benchmark, real, transfers, recorded_transfers, .. } in &self.benchmarks {
            let named = |what: String| format!("{benchmark}: {what}");
            super::workload(benchmark).map_err(|what| format!("{what:#}"))?;
            for (name, value) in real.by_name() {
                let most = if name.ends_with("_pct") { 100.0 } else { f64::MAX };
                within(name, value, [0.0, most]).map_err(named)?;
            }
            for (name, ns) in transfers.iter().chain(recorded_transfers).flatten() {
                let field = Costs::field(name).ok_or_else(|| named(format!("there is no cost `{name}`")))?;
                within(name, *ns, [field.min as f64, field.max as f64]).map_err(named)?;
            }
        }
        Ok(())
    }
}
