//! `coreward tune`: starts the search, which is part of the Python package because the libraries for it are.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::sibling;

/// Says what is missing in the words of this program.
const START: &str = "\
import sys
try:
    from coreward.tune.__main__ import main
except ModuleNotFoundError as error:
    print(f'coreward: tune needs the Python package coreward, which {sys.executable} does not have: make wheel builds it, '
          'see docs/python.md', file=sys.stderr)
    sys.exit(2)
sys.exit(main())
";

/// Becomes the search, by the python3 in PATH, with the arguments of this process, which are known to be right.
pub(crate) fn run() -> Result<()> {
    let mut command = Command::new("python3");
    command.args(["-c", START]).args(env::args_os().skip(2));
    Err(sibling::exec(command))
}
