//! Commands about the policy: what it has, and one's own.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use coreward_policy::Profile;

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    /// Write a copy of the policy to a new directory, with an example of a new rule and what to do next
    New(PolicyNew),
    /// Compile a directory's policy, run its tests, compare it with the built-in policy and with recorded decisions
    Check(PolicyCheck),
}

#[derive(Args)]
pub(crate) struct PolicyNew {
    /// The directory to create
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

#[derive(Args)]
pub(crate) struct PolicyCheck {
    /// A directory with files of the policy that were changed or added
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Files that coreward record wrote: how the policy agrees with them
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Columns: the value in the kernel of --profile; that in linux-6.12, the default profile; the unit of a tunable; \
                  the published change that it belongs to (docs/results/seeds.md); and what it does. VARIANT stands for a \
                  change that kernels made without a feature of that name, with the kernels that have it."
)]
pub(crate) struct Features {
    /// The kernel whose values are listed
    #[arg(long, value_name = "P", default_value = Profile::DEFAULT.name())]
    pub(crate) profile: String,
    /// A directory with headers and tables of the policy that are to be used instead of the built-in ones (see
    /// coreward policy) [default: the built-in policy]
    #[arg(long, value_name = "DIR")]
    pub(crate) policy: Option<PathBuf>,
    /// Print JSON [default: text]
    #[arg(long)]
    pub(crate) json: bool,
}
