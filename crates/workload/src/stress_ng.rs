//! Three stressors of stress-ng 0.15: `--cpu`, `--switch` and `--pipe`.
//!
//! Each worker of `--cpu` is a process that computes; what does not matter here, only that it never blocks. A worker of
//! `--switch` or `--pipe` is a process that writes packets (O_DIRECT) to a pipe, and its child that reads them. Other
//! stressors are refused: `--yield`, for instance, starts as many processes as the machine has CPUs.

use clap::Parser;
use coreward_input::within;

use crate::program::{Channel, ChannelKind, Footprint, Limits, Op, ProgramBuilder, Scale, Workload};
use crate::{Program, Role, WorkloadError, usage};

/// Stack, the used part of the kernel stack, and the data of a method. assumption.
const PRIVATE_BYTES: u64 = 16 << 10;
/// Text of a method. assumption.
const SHARED_BYTES: u64 = 8 << 10;
/// Work between two looks at whether the time is over, in ns. assumption.
const LOOP_NS: u64 = 100_000;
/// Bytes of a packet of `--switch`, and the buffers of its pipe, which is made as small as one byte (system calls of the tool).
const SWITCH: (u32, u8) = (1, 1);
/// Bytes of a packet of `--pipe`, and the buffers of a pipe (system calls of the tool, also with another
/// `--pipe-data-size`, which this version forgets).
const PIPE: (u32, u8) = (512, 16);
/// Filling a packet of `--pipe` byte by byte, in ns. assumption: a byte a cycle at 3.7 GHz.
const FILL_NS: u64 = 140;
/// The program of those that read packets.
const READER: u32 = 1;

const ALLOWED: &str = "one of --cpu N, --switch N and --pipe N, --timeout SECONDS or --switch-ops or --pipe-ops N, \
                       and --cpu-method, --pipe-data-size, --metrics, --metrics-brief, --quiet, which have no effect";

/// The most workers of a stressor that the tool starts (STRESS_PROCS_MAX).
const MAX_WORKERS: u32 = 8192;
/// The most operations of all workers of a stressor.
const MAX_OPS: u64 = 1_000_000_000_000;

/// The options of stress-ng that can be simulated.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "stress-ng", no_binary_name = true, disable_help_flag = true)]
#[command(group = clap::ArgGroup::new("stressor").required(true).args(["cpu", "switch", "pipe"]))]
#[command(group = clap::ArgGroup::new("length").required(true).multiple(true).args(["timeout", "switch_ops", "pipe_ops"]))]
pub struct StressNg {
    /// Processes that compute. The real tool takes the number of CPUs for 0.
    #[arg(short, long, value_parser = within(1u32..=MAX_WORKERS))]
    pub cpu: Option<u32>,
    /// Pairs of processes of which one writes a byte to the other whenever that has read the one before.
    #[arg(short, long, value_parser = within(1u32..=MAX_WORKERS))]
    pub switch: Option<u32>,
    /// Bytes that all pairs together write.
    #[arg(long, conflicts_with_all = ["cpu", "pipe"], value_parser = within(1u64..=MAX_OPS))]
    pub switch_ops: Option<u64>,
    /// Pairs of processes of which one fills a pipe that the other reads.
    #[arg(short, long, value_parser = within(1u32..=MAX_WORKERS))]
    pub pipe: Option<u32>,
    /// Packets that all pairs together write.
    #[arg(long, conflicts_with_all = ["cpu", "switch"], value_parser = within(1u64..=MAX_OPS))]
    pub pipe_ops: Option<u64>,
    /// Time in s.
    #[arg(short, long, value_parser = seconds)]
    pub timeout: Option<u64>,
    /// Shapes the output, which is not simulated.
    #[arg(short, long)]
    pub quiet: bool,
    /// The same.
    #[arg(long)]
    pub metrics: bool,
    /// The same.
    #[arg(long)]
    pub metrics_brief: bool,
}

/// What the workers of `--switch` and `--pipe` do.
struct Packets {
    /// The stressor.
    name: &'static str,
    workers: u32,
    /// Packets of all workers together; None as many as the time allows.
    ops: Option<u64>,
    bytes: u32,
    /// Work before each of them, in ns.
    fill_ns: u64,
    buffers: u8,
}

fn seconds(text: &str) -> Result<u64, String> {
    crate::seconds::seconds(text, "smhdwySMHDWY", 1)
}

impl StressNg {
    /// Reads the options, without the leading `stress-ng`.
    ///
    /// # Errors
    /// Another stressor, or no time.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        Self::try_parse_from(words).map_err(|e| usage("stress-ng", ALLOWED, &e))
    }

    /// The workload that these options mean, with the time, or the number of operations, shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let time_ns = self.timeout.map_or(u64::MAX, |s| scale.of(s * 1_000_000_000));
        let of_all = Workload {
            name: self.name(),
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            limits: Limits { time_ns, ..Limits::default() },
            ..Workload::default()
        };
        match self.packets() {
            Some(packets) => packets.workload(of_all, scale),
            None => Workload {
                programs: vec![main(self.cpu.unwrap_or_default()), hog()],
                roles: vec![Role::One("stress-ng".into()), Role::Each("stress-ng-cpu")],
                ..of_all
            },
        }
    }

    fn name(&self) -> String {
        let of_workers = [("cpu", self.cpu), ("switch", self.switch), ("pipe", self.pipe)];
        let options = of_workers.map(|(option, number)| (option, number.map(u64::from)));
        let of_all =
            [("switch-ops", self.switch_ops), ("pipe-ops", self.pipe_ops), ("timeout", self.timeout)];
        let given = options.into_iter().chain(of_all).filter_map(|(option, number)| Some((option, number?)));
        given.fold("stress-ng".into(), |name, (option, number)| format!("{name} --{option} {number}"))
    }

    fn packets(&self) -> Option<Packets> {
        let (switch_bytes, switch_buffers) = SWITCH;
        let (pipe_bytes, pipe_buffers) = PIPE;
        let switch = self.switch.map(|workers| Packets {
            name: "stress-ng-switch",
            workers,
            ops: self.switch_ops,
            bytes: switch_bytes,
            fill_ns: 0,
            buffers: switch_buffers,
        });
        switch.or(self.pipe.map(|workers| Packets {
            name: "stress-ng-pipe",
            workers,
            ops: self.pipe_ops,
            bytes: pipe_bytes,
            fill_ns: FILL_NS,
            buffers: pipe_buffers,
        }))
    }
}

impl Packets {
    fn workload(&self, of_all: Workload, scale: Scale) -> Workload {
        // stress-ng shares them out equally, rounded up
        let each = self.ops.map_or(u64::MAX, |ops| scale.of(ops).div_ceil(self.workers.into()));
        let kind = ChannelKind::Packets { buffers: self.buffers };
        let reader = ProgramBuilder::default()
            .repeat(u64::MAX, |b| b.op(Op::Read { channel: 0, bytes: self.bytes }))
            .build();
        // a task says on which channels its child works, so each worker has a program of its own
        let writer = |base| {
            ProgramBuilder::default()
                .op(Op::Spawn { program: READER, base, process: true })
                .at_most_until_stopped(each, |b| {
                    let filled = if self.fill_ns > 0 { b.op(Op::Run { ns: self.fill_ns }) } else { b };
                    filled.op(Op::Write { channel: 0, bytes: self.bytes })
                })
                .op(Op::Close { channel: 0 })
                .op(Op::WaitChildren)
                .build()
        };
        let start = (0..self.workers).fold(ProgramBuilder::default().op(Op::MarkStart), |b, base| {
            b.op(Op::Spawn { program: READER + 1 + base, base, process: true })
        });
        let main = start.op(Op::WaitChildren).op(Op::MarkEnd).build();
        let names = (1..=self.workers).map(|n| Role::One(format!("{} {n}", self.name)));
        Workload {
            channels: vec![Channel { kind }; self.workers as usize],
            programs: [main, reader].into_iter().chain((0..self.workers).map(writer)).collect(),
            roles: [Role::One("stress-ng".into()), Role::Each("reader")].into_iter().chain(names).collect(),
            // the time may be over before all are written
            messages: if of_all.limits.time_ns == u64::MAX { each * u64::from(self.workers) } else { 0 },
            ..of_all
        }
    }
}

fn main(workers: u32) -> Program {
    ProgramBuilder::default()
        .op(Op::MarkStart)
        .repeat(u64::from(workers), |b| b.op(Op::Spawn { program: 1, base: 0, process: true }))
        .op(Op::WaitChildren)
        .op(Op::MarkEnd)
        .build()
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
            [time("90"), time("90s"), time("2M"), time("1h"), time("1w")],
            [Some(90), Some(90), Some(120), Some(3600), Some(604_800)]
        );
        assert_eq!([time("0"), time("s"), time("-1"), time("1x"), time("999999999999h")], [None; 5]);
        let w = parse("stress-ng -c 3 -t 2s --metrics-brief --cpu-method int64", Scale(500_000)).unwrap();
        assert_eq!((w.limits.time_ns, w.notes.len()), (1_000_000_000, 1), "{:?}", w.notes);
    }

    #[test]
    fn operations_are_shared_out_and_packets_have_the_size_of_the_tool() {
        let parse = |line: &str| parse(line, Scale::FULL).unwrap();
        let w = parse("stress-ng --switch 3 --switch-ops 10000");
        assert_eq!((w.messages, w.channels.len(), w.limits.time_ns), (3 * 3334, 3, u64::MAX));
        assert_eq!(w.channels[2].kind, ChannelKind::Packets { buffers: 1 });
        assert!(w.programs[4].contains(&Op::RepeatUntilStopped { times: 3334 }));
        assert!(w.programs[4].contains(&Op::Write { channel: 0, bytes: 1 }));
        assert!(w.programs[4].contains(&Op::Spawn { program: READER, base: 2, process: true }));
        let w = parse("stress-ng -p 1 -t 2");
        assert_eq!((w.messages, w.limits.time_ns), (0, 2_000_000_000));
        assert_eq!(parse("stress-ng -p 1 -t 2 --pipe-ops 5").messages, 0, "perhaps fewer");
        assert_eq!(w.channels[0].kind, ChannelKind::Packets { buffers: 16 });
        assert!(w.programs[READER as usize].contains(&Op::Read { channel: 0, bytes: 512 }));
        assert_eq!(w.name, "stress-ng --pipe 1 --timeout 2");
    }

    #[test]
    fn other_stressors_are_refused_by_name() {
        for (bad, part) in [
            ("--yield 2 -t 5", "'--yield'"),
            ("--cpu 2", "--timeout"),
            ("-t 5", "--cpu"),
            ("--cpu 2 --switch 2 -t 5", "cannot be used with"),
            ("--cpu 2 --pipe-ops 5", "cannot be used with"),
            ("--cpu 0 -t 5", "allowed are 1 to 8192"),
        ] {
            let e = StressNg::parse(bad.split_whitespace()).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
