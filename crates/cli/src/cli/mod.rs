//! The command line: subcommands and their options.

mod common;
mod compare;
mod host;
mod machine;
mod policy;
mod recording;
mod run;
mod search;
mod shell;

use clap::{Parser, Subcommand};
use coreward_live_args as live;

pub(crate) use compare::{Compare, ExperimentCommand, ExperimentFile, Fidelity, Matrix};
pub(crate) use host::{Calibrate, Validate};
pub(crate) use machine::{Domains, MachineCommand, MachineFile, MachineSave, Machines, Topology};
pub(crate) use policy::{Features, PolicyCheck, PolicyCommand, PolicyNew};
pub(crate) use recording::{Import, Listed, Parity, Record};
pub(crate) use run::{Explain, Run, Simulated};
pub(crate) use search::{Sweep, Tune};
pub(crate) use shell::{Completions, Manual};

/// A CPU-placement policy laboratory for Linux: what would this scheduler change do on that machine?
#[derive(Parser)]
#[command(name = "coreward", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the machines that come with the program
    Machines(Machines),
    /// Describe this machine in a file, for others to simulate
    Machine(MachineFile),
    /// Print the nodes, caches, cores and CPUs of a machine
    Topology(Topology),
    /// Print the sched domains of a CPU as the kernel's debugfs does
    Domains(Domains),
    /// List the features and tunables of the policy
    Features(Features),
    /// Run a workload on a machine
    Run(Run),
    /// Compare variants of the policy with a baseline
    Compare(Compare),
    /// Show what one change does to many workloads on many machines, sorted by damage
    Matrix(Matrix),
    /// Try many settings on many machines under many workloads, in shares that other computers may take
    Sweep(Sweep),
    /// Search for the settings that serve workloads on machines best; it needs the Python package (see docs/tuning.md)
    Tune(Tune),
    /// Write an experiment file to start from, or print the format of such files
    Experiment(ExperimentFile),
    /// Compare published figures with simulated ones, and score the agreement
    Fidelity(Fidelity),
    /// Print the first decisions of a run, with the reason for each
    Explain(Explain),
    /// Measure what things cost on this machine
    Calibrate(Calibrate),
    /// Run benchmarks on this machine, simulate the same, and compare
    Validate(Validate),
    /// Compare recorded decisions of a kernel with the policy's
    Parity(Parity),
    /// Run a command and record what the kernel decides while it runs, or what all tasks do
    Record(Record),
    /// Make a workload of a recording of the scheduler: who ran how long, who woke whom
    Import(Import),
    /// Write or check a policy of your own, for --policy
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Print a script with which a shell completes coreward's commands and options
    Completions(Completions),
    /// Write a manual page for each command
    Manual(Manual),
    /// Schedule this machine with the policy, through sched_ext
    Live(live::Live),
    /// Watch where this kernel places tasks, and show where the policy would have placed them
    Shadow(live::Shadow),
    /// Show what the running scheduler does
    Top(live::Top),
    /// Print the settings of the running scheduler
    Get(live::Get),
    /// Change settings of the running scheduler
    Set(live::Set),
}
