//! Commands for those who install coreward: completions and manual pages.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell, as in: coreward completions bash >/usr/share/bash-completion/completions/coreward
    pub(crate) shell: Shell,
}

#[derive(Args)]
pub(crate) struct Manual {
    /// The directory, which has to exist, like /usr/local/share/man/man1
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
