//! hackbench, as rt-tests 2.4 has it.
//!
//! Each group has `fds` receivers, each with a channel of its own, and `fds`
//! senders; every sender writes `loops` times one message to every receiver of
//! its group. All tasks report ready, wait for one byte on a shared pipe that
//! none of them reads, and start together. The time is from that byte to the
//! end of the last task.

use crate::program::{Channel, ChannelKind, Footprint, Op, ProgramBuilder, Scale, Workload};
use crate::{Program, Role, WorkloadError, usage};
use clap::Parser;
use coreward_input::within;

/// Channel on which workers report that they are ready.
const READY: u32 = 0;
/// Channel on which workers wait for the start.
const START: u32 = 1;
/// The first channel of the first group.
const FIRST: u32 = 2;

/// Hot bytes of one worker: message buffer and user stack (1 KiB), the used
/// part of the kernel stack (about 2 KiB), and the touched lines of
/// task_struct, its sched_entity, files and signal structures (about 5 KiB).
/// assumption: counted from the structures' sizes, not measured.
const PRIVATE_BYTES: u64 = 8 << 10;
/// Hot bytes shared by a process: text and data of the tool and libc that the loops touch.
/// assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;

/// The loop around a read or write. Measured: CPU time of a pair on one CPU, less the operations and switches that it
/// makes, Linux 6.18 guest on Sapphire Rapids, gcc 12 -O2.
const MESSAGE_NS: u64 = 15;

const ALLOWED: &str = "-g -f -l -s, -P or -T, --pipe or --sockets";

/// The options of hackbench that can be simulated, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "hackbench", no_binary_name = true, disable_help_flag = true)]
pub struct Hackbench {
    /// Receivers and senders per group.
    #[arg(short, long, default_value_t = 20, value_parser = within(1u32..=10_000))]
    pub fds: u32,
    /// Groups.
    #[arg(short, long, default_value_t = 10, value_parser = within(1u32..=100_000))]
    pub groups: u32,
    /// Messages from each sender to each receiver.
    #[arg(short, long, default_value_t = 100, value_parser = within(1u64..=100_000_000))]
    pub loops: u64,
    /// Bytes per message.
    #[arg(short = 's', long, default_value_t = 100, value_parser = within(1u32..=1_048_576))]
    pub datasize: u32,
    /// Pipes instead of sockets.
    #[arg(short, long, conflicts_with = "sockets")]
    pub pipe: bool,
    /// AF_UNIX stream sockets (the default).
    #[arg(long)]
    pub sockets: bool,
    /// Threads instead of processes.
    #[arg(short = 'T', long, conflicts_with = "process")]
    pub threads: bool,
    /// Processes (the default).
    #[arg(short = 'P', long)]
    pub process: bool,
}

impl Hackbench {
    /// Reads the options, without the leading `hackbench`.
    ///
    /// # Errors
    /// An option that the tool does not have, that is out of range, or that
    /// cannot be simulated (`--fifo`, `--inet`).
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        let parsed = Self::try_parse_from(words).map_err(|e| usage("hackbench", ALLOWED, &e))?;
        let workers = u64::from(parsed.fds) * 2 * u64::from(parsed.groups);
        if workers > MAX_WORKERS {
            return Err(WorkloadError::Usage(format!(
                "hackbench: {} groups of 2 x {} workers are {workers} tasks (allowed: up to {MAX_WORKERS})",
                parsed.groups, parsed.fds
            )));
        }
        Ok(parsed)
    }

    /// The workload that these options mean, with `loops` shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let loops = scale.of(self.loops);
        let kind = if self.pipe { ChannelKind::Pipe } else { ChannelKind::UnixStream };
        let mut channels = vec![Channel { kind: ChannelKind::Pipe }; FIRST as usize];
        channels.resize((FIRST + self.groups * self.fds) as usize, Channel { kind });
        Workload {
            name: self.command(),
            channels,
            first_message_channel: FIRST,
            programs: vec![self.main(), self.receiver(loops), self.sender(loops)],
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            message_ns: MESSAGE_NS,
            roles: vec![
                Role::One("hackbench".into()),
                Role::OfGroup { name: "receiver", first: FIRST, channels: self.fds },
                Role::OfGroup { name: "sender", first: FIRST, channels: self.fds },
            ],
            messages: loops * u64::from(self.fds) * u64::from(self.fds) * u64::from(self.groups),
            ..Workload::default()
        }
    }

    fn main(&self) -> Program {
        let process = !self.threads;
        let mut main = ProgramBuilder::default();
        for group in 0..self.groups {
            let first = FIRST + group * self.fds;
            for fd in 0..self.fds {
                main = main.op(Op::Spawn { program: 1, base: first + fd, process });
            }
            for _ in 0..self.fds {
                main = main.op(Op::Spawn { program: 2, base: first, process });
            }
        }
        main.repeat(u64::from(self.groups) * u64::from(self.fds) * 2, |b| {
            b.op(Op::ReadFrom { channel: READY, bytes: 1 })
        })
        .op(Op::MarkStart)
        .op(Op::WriteTo { channel: START, bytes: 1 })
        .op(Op::WaitChildren)
        .op(Op::MarkEnd)
        .build()
    }

    fn receiver(&self, loops: u64) -> Program {
        let read = Op::Read { channel: 0, bytes: self.datasize };
        worker().repeat(loops * u64::from(self.fds), |b| b.op(read)).build()
    }

    fn sender(&self, loops: u64) -> Program {
        worker()
            .repeat(loops, |b| {
                (0..self.fds).fold(b, |b, channel| b.op(Op::Write { channel, bytes: self.datasize }))
            })
            .build()
    }

    fn command(&self) -> String {
        format!(
            "hackbench -g {} -f {} {} {} -l {} -s {}",
            self.groups,
            self.fds,
            if self.threads { "--threads" } else { "--process" },
            if self.pipe { "--pipe" } else { "--sockets" },
            self.loops,
            self.datasize
        )
    }
}

/// More tasks than this would not fit a kernel's default pid space (PID_MAX_LIMIT is 4 Mi).
const MAX_WORKERS: u64 = 4 << 20;

/// What every worker does first: report ready, then wait for the start.
fn worker() -> ProgramBuilder {
    ProgramBuilder::default().op(Op::WriteTo { channel: READY, bytes: 1 }).op(Op::Poll { channel: START })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn words(s: &str) -> Result<Hackbench, WorkloadError> {
        Hackbench::parse(s.split_whitespace())
    }

    #[test]
    fn seed_000_command_means_six_billion_messages() {
        let w = parse("hackbench -g 32 -f 20 --threads --pipe -l 480000 -s 100", Scale::FULL).unwrap();
        assert_eq!(w.messages, 6_144_000_000);
        assert_eq!(w.programs.len(), 3);
        let spawns = w.programs[0].iter().filter(|op| matches!(op, Op::Spawn { process: false, .. })).count();
        assert_eq!(spawns, 1280);
        assert_eq!(w.channels.len(), 2 + 640);
        assert_eq!(w.name, "hackbench -g 32 -f 20 --threads --pipe -l 480000 -s 100");
    }

    #[test]
    fn defaults_are_the_real_tools() {
        let h = words("").unwrap();
        assert_eq!((h.groups, h.fds, h.loops, h.datasize), (10, 20, 100, 100));
        assert_eq!(h.command(), "hackbench -g 10 -f 20 --process --sockets -l 100 -s 100");
    }

    #[test]
    fn every_sender_feeds_every_receiver_of_its_group_and_no_other() {
        let w = words("-g 3 -f 4 -l 7 --pipe").unwrap().workload(Scale::FULL);
        let mut written = vec![0u64; w.channels.len()];
        let mut read = vec![0u64; w.channels.len()];
        for op in w.programs[0].iter() {
            if let Op::Spawn { program, base, .. } = *op {
                for inner in w.programs[program as usize].iter() {
                    match *inner {
                        Op::Write { channel, .. } => written[(base + channel) as usize] += 7,
                        Op::Read { channel, .. } => read[(base + channel) as usize] += 28,
                        _ => {}
                    }
                }
            }
        }
        assert_eq!(written, read);
        assert!(written[2..].iter().all(|n| *n == 28));
    }

    #[test]
    fn scale_shortens() {
        let w = parse("hackbench -g 1 -l 1000 --pipe", Scale(5_000)).unwrap();
        assert_eq!(w.messages, 5 * 400);
        assert_eq!(Scale(1).of(10), 1, "never to nothing");
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_name() {
        for (bad, part) in [
            ("--fifo", "'--fifo'"),
            ("--inet", "'--inet'"),
            ("-g x", "'x'"),
            ("-g 0", "allowed are 1 to 100000"),
            ("-P -T", "cannot be used with"),
            ("-g 100000 -f 10000", "2000000000 tasks"),
        ] {
            let e = words(bad).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
        assert!(parse("hackbnch", Scale::FULL).unwrap_err().to_string().contains("did you mean `hackbench`"));
    }
}
