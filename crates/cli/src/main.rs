//! The `coreward` command; see the library `coreward_cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coreward_cli::main()
}
