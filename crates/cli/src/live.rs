//! `coreward live` and related commands: starts coreward-live, which is a separate program because it
//! needs libbpf.

use std::env;

use anyhow::Result;

use crate::sibling;

/// What building the program takes.
const BUILD: &str = "`make live`, which needs clang 19 and libelf, and takes three to four minutes of one core because it \
                     compiles libbpf and 230 crates";

/// Becomes coreward-live with the arguments of this process, which are known to be right.
pub(crate) fn run() -> Result<()> {
    let mut command = sibling::command("coreward-live", BUILD)?;
    command.args(env::args_os().skip(1));
    Err(sibling::exec(command))
}
