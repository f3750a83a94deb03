//! Commands that list, describe and print machines.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use coreward_input::within;
use coreward_machine::{MAX_CPUS, Partition, RelaxSemantics};

use super::common::MACHINE_HELP;

#[derive(Args)]
pub(crate) struct Machines {
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct MachineFile {
    #[command(subcommand)]
    pub(crate) command: MachineCommand,
}

#[derive(Subcommand)]
pub(crate) enum MachineCommand {
    /// Write CPUs, caches, capacities, idle states, the kernel's version and its scheduler's features to a file that
    /// --machine takes; it has no names, addresses or serial numbers
    Save(MachineSave),
}

#[derive(Args)]
pub(crate) struct MachineSave {
    /// The file
    #[arg(value_name = "F.toml", value_parser = machine_path)]
    pub(crate) file: PathBuf,
    /// Take the costs and idle states from a file that coreward calibrate --out wrote on this machine [default: those of
    /// a typical machine, and what sysfs says]
    #[arg(long, value_name = "M.toml")]
    pub(crate) calibrated: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Topology {
    #[arg(help = MACHINE_HELP)]
    pub(crate) machine: String,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON, which can be read back as a machine from a file ending in .json [default: text]
    #[arg(long, conflicts_with = "toml")]
    pub(crate) json: bool,
    /// Print a machine file, which can be read back from a file ending in .toml [default: text]
    #[arg(long)]
    pub(crate) toml: bool,
}

#[derive(Args)]
pub(crate) struct Domains {
    #[arg(help = MACHINE_HELP)]
    pub(crate) machine: String,
    /// Refuse a description that leaves something open, instead of assuming it and saying so [default: assume]
    #[arg(long)]
    pub(crate) strict: bool,
    /// The CPU whose domains are printed
    #[arg(long, value_name = "C", default_value_t = 0,
          value_parser = within(0..=MAX_CPUS - 1))]
    pub(crate) cpu: usize,
    /// Print names and flags as this kernel does: linux-6.1 or 6.1 [default: that of the machine sysfs or of a
    /// machine file that names one, or the nearest older one; otherwise linux-6.12]
    #[arg(long, value_name = "P")]
    pub(crate) profile: Option<String>,
    /// Assume a kernel built without CONFIG_SCHED_CLUSTER, like Debian's 6.12 for arm64 [default: with]
    #[arg(long)]
    pub(crate) no_sched_cluster: bool,
    /// cpuset.sched_relax_domain_level: which domains newidle balance searches [default: no request]
    #[arg(long, value_name = "N", value_parser = within(-1..=i32::MAX))]
    pub(crate) relax_domain_level: Option<i32>,
    /// CPUs with domains of their own, like those of an exclusive cpuset, and their relax_domain_level; the
    /// remaining CPUs form one more partition [default: one partition]
    #[arg(long, value_name = "CPUS[:LEVEL]")]
    pub(crate) partition: Vec<Partition>,
    /// What the request means: before or after Linux 6.10 [default: as in the profile's kernel]
    #[arg(long, value_name = "WHEN")]
    pub(crate) relax_semantics: Option<Semantics>,
    /// Print the CPU masks of the domains too, as /proc/schedstat does [default: no]
    #[arg(long)]
    pub(crate) schedstat: bool,
    /// Print JSON [default: text]
    #[arg(long, conflicts_with = "schedstat")]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Semantics {
    /// A domain up to level N is searched; 0 acts as 1
    Before,
    /// A domain below level N is searched; 0 is no search
    After,
}

impl From<Semantics> for RelaxSemantics {
    fn from(semantics: Semantics) -> Self {
        match semantics {
            Semantics::Before => RelaxSemantics::Before,
            Semantics::After => RelaxSemantics::After,
        }
    }
}

/// The name of a machine's file, by which `--machine` knows it.
pub(super) fn machine_path(text: &str) -> Result<PathBuf, String> {
    if text.ends_with(".toml") {
        Ok(text.into())
    } else {
        Err("allowed are names that end with .toml".into())
    }
}
