//! `stress-ng --cpu`, as stress-ng 0.15 has it: processes that compute until the time is over.
//!
//! What they compute does not matter here, only that they never block. Other stressors are refused: `--switch` and
//! `--pipe` pass packets (O_DIRECT), which the simulated pipes do not have, and `--yield` starts as many processes as
//! the machine has CPUs.

use clap::Parser;
use coreward_input::within;

use crate::program::{Footprint, Limits, Op, ProgramBuilder, Scale, Workload};
use crate::{Program, Role, WorkloadError, usage};

/// Stack, the used part of the kernel stack, and the data of a method. assumption.
const PRIVATE_BYTES: u64 = 16 << 10;
/// Text of a method. assumption.
const SHARED_BYTES: u64 = 8 << 10;
/// Work between two looks at whether the time is over, in ns. assumption.
const LOOP_NS: u64 = 100_000;

const ALLOWED: &str =
    "--cpu N --timeout SECONDS, and --cpu-method, --metrics, --metrics-brief, --quiet, which have no effect";

/// The options of stress-ng that can be simulated.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "stress-ng", no_binary_name = true, disable_help_flag = true)]
pub struct StressNg {
    /// Processes that compute. The real tool takes the number of CPUs for 0.
    #[arg(short, long, required = true, value_parser = within(1u32..=100_000))]
    pub cpu: u32,
    /// Time in s.
    #[arg(short, long, required = true, value_parser = seconds)]
    pub timeout: u64,
}

/// `90`, `90s`, `2m` or `1h` in s.
fn seconds(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(digits) => (digits, &text[digits.len()..]),
        None => (text, "s"),
    };
    let unit = match unit {
        "m" => 60,
        "h" => 3600,
        _ => 1,
    };
    let seconds = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    seconds.filter(|s| (1..=1_000_000).contains(s)).ok_or_else(|| "allowed are 1 to 1000000 s".into())
}

impl StressNg {
    /// Reads the options, without the leading `stress-ng`.
    ///
    /// # Errors
    /// Another stressor, or no time.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        Self::try_parse_from(words).map_err(|e| usage("stress-ng", ALLOWED, &e))
    }

    /// The workload that these options mean, with the time shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        Workload {
            name: format!("stress-ng --cpu {} --timeout {}", self.cpu, self.timeout),
            programs: vec![self.main(), hog()],
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            roles: vec![Role::One("stress-ng".into()), Role::Each("stress-ng-cpu")],
            limits: Limits { time_ns: scale.of(self.timeout * 1_000_000_000), ..Limits::default() },
            ..Workload::default()
        }
    }

    fn main(&self) -> Program {
        ProgramBuilder::default()
            .op(Op::MarkStart)
            .repeat(u64::from(self.cpu), |b| b.op(Op::Spawn { program: 1, base: 0, process: true }))
            .op(Op::WaitChildren)
            .op(Op::MarkEnd)
            .build()
    }
}

fn hog() -> Program {
    ProgramBuilder::default().until_stopped(|b| b.op(Op::Run { ns: LOOP_NS })).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn times_are_read_as_the_tool_reads_them() {
        let time = |text: &str| seconds(text).ok();
        assert_eq!(
            [time("90"), time("90s"), time("2m"), time("1h")],
            [Some(90), Some(90), Some(120), Some(3600)]
        );
        assert_eq!([time("0"), time("s"), time("-1"), time("1x"), time("999999999999h")], [None; 5]);
        let w = parse("stress-ng -c 3 -t 2s --metrics-brief --cpu-method int64", Scale(500_000)).unwrap();
        assert_eq!((w.limits.time_ns, w.notes.len()), (1_000_000_000, 2), "{:?}", w.notes);
    }

    #[test]
    fn other_stressors_are_refused_by_name() {
        for (bad, part) in [
            ("--switch 2 -t 5", "'--switch'"),
            ("--cpu 2", "--timeout"),
            ("-t 5", "--cpu"),
            ("--cpu 0 -t 5", "allowed are 1 to 100000"),
        ] {
            let e = StressNg::parse(bad.split_whitespace()).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
