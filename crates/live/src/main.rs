//! The policy on running kernels: `coreward live` and related commands.

mod cli;
mod control;
mod counters;
mod kernel;
mod live;
mod machine;
mod metrics;
mod parity;
mod policy;
mod running;
mod setting;
mod shadow;
mod socket;
mod stats;
mod top;
#[cfg(test)]
mod verifier;
/// What libbpf-cargo generates from `bpf/`.
#[allow(
    missing_docs,
    clippy::all,
    dead_code,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub
)]
mod skel {
    pub(crate) mod live {
        include!(concat!(env!("OUT_DIR"), "/live_skel.rs"));
    }
    pub(crate) mod place {
        include!(concat!(env!("OUT_DIR"), "/place_skel.rs"));
    }
    pub(crate) mod shadow {
        include!(concat!(env!("OUT_DIR"), "/shadow_skel.rs"));
    }
}

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let done = match cli.command {
        cli::Command::Live(args) => live::run(&args),
        cli::Command::Shadow(args) => shadow::run(&args),
        cli::Command::Top(args) => top::run(&args),
        cli::Command::Get(args) => control::get(&args),
        cli::Command::Set(args) => control::set(&args),
        cli::Command::Parity(args) => parity::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coreward: {}", coreward_input::message(&format!("{error:#}")));
            // 2: what the user asked for cannot be meant; 1: this kernel or machine does not do it
            ExitCode::from(if error.is::<policy::WrongArgument>() { 2 } else { 1 })
        }
    }
}
