//! Workloads: what tasks do, without a word on where or when they do it.
//!
//! A [`Workload`] is a set of [`Channel`]s and [`Program`]s and the program
//! that the first task runs; everything else is spawned from there, as on a
//! real system. [`parse`] reads a benchmark's own command line.

mod cyclictest;
mod encoder;
mod group;
mod hackbench;
mod netperf;
mod output_options;
mod perf_bench;
mod program;
pub mod recorded;
mod role;
pub mod rt_app;
mod schbench;
mod seconds;
mod server;
mod stress_ng;
mod sysbench;
mod tbench;

use std::path::Path;

use coreward_input::did_you_mean;

pub use cyclictest::Cyclictest;
pub use encoder::Encoder;
pub use group::{DEFAULT_WEIGHT, TaskGroup};
pub use hackbench::Hackbench;
pub use netperf::{Netperf, Test as NetperfTest};
pub use perf_bench::{PerfMessaging, PerfPipe};
pub use program::{
    Attributes, Channel, ChannelKind, CpuChoice, Footprint, Limits, Op, Policy, Program, ProgramBuilder,
    Scale, Shared, Workload,
};
pub use role::{Role, TaskNames};
pub use schbench::{Schbench, SchbenchOld};
pub use server::Server;
pub use stress_ng::StressNg;
pub use sysbench::Sysbench;
pub use tbench::Tbench;

/// How many task groups deep the tasks of a login session are: under systemd 252 and later it runs in
/// `user.slice/user-N.slice/session-M.scope`, and as `user@.service` delegates the cpu controller
/// (`Delegate=pids memory cpu`), each of the three is a task group.
pub const LOGIN_SESSION_DEPTH: u32 = 3;

/// Why a workload's text was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// The first word names no known workload.
    #[error("workload '{0}' is not known, {hint}allowed are {KNOWN}", hint = did_you_mean(.0, TOOLS))]
    Unknown(String),
    /// An option of a known workload is wrong.
    #[error("{0}")]
    Usage(String),
}

const KNOWN: &str = "hackbench, sysbench threads, perf bench sched pipe, perf bench sched messaging, schbench, \
                     schbench-old, cyclictest, stress-ng, netperf, tbench, rt-app, encoder, server, each with its options, and FILE.cww, FILE.cww.toml or FILE.cww.json, \
                     which coreward import writes";

/// The first word of each.
const TOOLS: [&str; 12] = [
    "hackbench",
    "sysbench",
    "perf",
    "schbench",
    "schbench-old",
    "cyclictest",
    "stress-ng",
    "netperf",
    "tbench",
    "rt-app",
    "encoder",
    "server",
];

/// Whether a text begins with the name of a benchmark, which may be a path.
pub fn is_benchmark(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| TOOLS.contains(&tool(word)))
}

/// Reads the command line of a benchmark, such as `hackbench -g 4 --pipe`. Of `rt-app FILE...` it reads the files, and
/// of `FILE.cww` (or another [`recorded::Form`]) the recorded workload. The name may be a path.
///
/// # Errors
/// The name is not known, or an option is not one that the real tool has or
/// that coreward can simulate; the message says which are allowed.
pub fn parse(text: &str, scale: Scale) -> Result<Workload, WorkloadError> {
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or_default();
    if recorded::Form::of(program).is_some() {
        return recorded::parse(program, words, scale);
    }
    let name = tool(program);
    let (words, notes) = output_options::taken(name, words)?;
    let mut workload = parse_words(name, words.into_iter(), scale)?;
    workload.notes.extend(notes);
    Ok(workload)
}

/// Reads the words after a tool's name.
fn parse_words<'a>(
    name: &str,
    words: impl Iterator<Item = &'a str>,
    scale: Scale,
) -> Result<Workload, WorkloadError> {
    match name {
        "hackbench" => Ok(Hackbench::parse(words)?.workload(scale)),
        "sysbench" => Ok(Sysbench::parse(words)?.workload(scale)),
        "perf" => perf_bench::parse(words, scale),
        "netperf" => Ok(Netperf::parse(words)?.workload(scale)),
        "tbench" => Ok(Tbench::parse(words)?.workload(scale)),
        "encoder" => Ok(Encoder::parse(words)?.workload(scale)),
        "server" => Ok(Server::parse(words)?.workload(scale)),
        "cyclictest" => Ok(Cyclictest::parse(words)?.workload(scale)),
        "stress-ng" => Ok(StressNg::parse(words)?.workload(scale)),
        "rt-app" => rt_app::parse(words, scale),
        "schbench" => Ok(Schbench::parse(words)?.workload(scale)),
        "schbench-old" => Ok(SchbenchOld::parse(words)?.workload(scale)),
        other => Err(WorkloadError::Unknown(other.to_owned())),
    }
}

/// The files that [`parse`] reads for a benchmark's command line.
pub fn paths(text: &str) -> impl Iterator<Item = &Path> {
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or_default();
    let read = tool(program) == "rt-app";
    let recorded = Some(program).filter(|program| recorded::Form::of(program).is_some());
    recorded.into_iter().chain(words.filter(move |_| read)).map(Path::new)
}

/// The name of a program without its directory.
fn tool(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// What is wrong with a tool's command line, in one line that says what is allowed.
fn usage(tool: &str, allowed: &str, error: &clap::Error) -> WorkloadError {
    let message = error.render().to_string();
    // what is missing is listed in lines of its own
    let paragraph: Vec<&str> = message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let what = paragraph.join(" ");
    WorkloadError::Usage(format!("{tool}: {} (allowed: {allowed})", what.trim_start_matches("error: ")))
}
