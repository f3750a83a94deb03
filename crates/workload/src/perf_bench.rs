//! `perf bench sched pipe` and `perf bench sched messaging`, as perf of Linux 6.12 has them.
//!
//! **pipe**: two tasks pass an int through two pipes, to and fro, `--loop` times. As
//! processes (the default) the parent is one of them, as threads both are children. An
//! operation is one round trip; perf's ops/sec are the metric `messages_per_s`, which
//! counts the messages of one direction. The time includes the start of the tasks.
//!
//! **messaging** is hackbench with 20 senders and 20 receivers a group, messages of 100
//! bytes, and options of its own.

use crate::hackbench::Hackbench;
use crate::program::{Attributes, Channel, ChannelKind, Footprint, Op, ProgramBuilder, Scale, Workload};
use crate::{Program, Role, WorkloadError, usage};
use clap::Parser;
use coreward_input::within;

/// Bytes of an int.
const MESSAGE: u32 = 4;
/// From the parent (or the second thread) to the child (or the first).
const THERE: u32 = 0;
/// And back; its messages are counted.
const BACK: u32 = 1;
/// Hot bytes of a task: as for hackbench, less the message buffer. assumption.
const PRIVATE_BYTES: u64 = 7 << 10;
/// Hot text and data of the tool and libc. assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;
/// Memory that a process of perf has mapped and touches at its end, in percent of a small program's. Measured by what the end
/// of each of 400 processes takes with one message: 600 to 690 us of CPU time, and 75 to 82 us for children of a small program
/// that only end; Zen 4 guests, Linux 6.18. A good half of it are the destructors of perf's libraries, with 125 page faults
/// (exceptions:page_fault_user before sys_enter_exit_group). Of `perf bench sched pipe`, which has two, it is left out.
const MAPPED_PCT: u32 = 800;

/// The options of `perf bench sched pipe`, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "pipe", no_binary_name = true, disable_help_flag = true)]
pub struct PerfPipe {
    /// Round trips.
    #[arg(short, long = "loop", default_value_t = 1_000_000, value_parser = within(1u64..=2_147_483_647))]
    pub loops: u64,
    /// Threads instead of processes.
    #[arg(short = 'T', long)]
    pub threaded: bool,
}

/// The options of `perf bench sched messaging`, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "messaging", no_binary_name = true, disable_help_flag = true)]
pub struct PerfMessaging {
    /// Pipes instead of sockets.
    #[arg(short, long)]
    pub pipe: bool,
    /// Threads instead of processes.
    #[arg(short, long)]
    pub thread: bool,
    /// Groups.
    #[arg(short, long, default_value_t = 10, value_parser = within(1u32..=100_000))]
    pub group: u32,
    /// Messages from each sender to each receiver.
    #[arg(short = 'l', long = "nr_loops", default_value_t = 100, value_parser = within(1u64..=100_000_000))]
    pub loops: u64,
}

/// Reads the words after `perf`: `bench sched pipe|messaging [options]`.
///
/// # Errors
/// Another collection or benchmark, or options that it does not have.
pub(crate) fn parse<'a>(
    mut words: impl Iterator<Item = &'a str>,
    scale: Scale,
) -> Result<Workload, WorkloadError> {
    let (bench, sched, name) = (words.next(), words.next(), words.next());
    match (bench, sched, name) {
        (Some("bench"), Some("sched"), Some("pipe")) => {
            let parsed = PerfPipe::try_parse_from(words);
            Ok(parsed.map_err(|e| usage("perf bench sched pipe", "-l -T", &e))?.workload(scale))
        }
        (Some("bench"), Some("sched"), Some("messaging")) => {
            let parsed = PerfMessaging::try_parse_from(words);
            Ok(parsed.map_err(|e| usage("perf bench sched messaging", "-p -t -g -l", &e))?.workload(scale))
        }
        _ => {
            let given: Vec<&str> = [bench, sched, name].into_iter().flatten().collect();
            Err(WorkloadError::Usage(format!(
                "perf: '{}' cannot be simulated (allowed: bench sched pipe, bench sched messaging)",
                given.join(" ")
            )))
        }
    }
}

impl PerfPipe {
    /// The workload that these options mean, with the loops shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let loops = scale.of(self.loops);
        let first = ProgramBuilder::default().repeat(loops, |b| {
            b.op(Op::ReadFrom { channel: THERE, bytes: MESSAGE })
                .op(Op::WriteTo { channel: BACK, bytes: MESSAGE })
        });
        let programs = if self.threaded {
            vec![self.main_of_threads(), first.build(), second(ProgramBuilder::default(), loops).build()]
        } else {
            vec![self.parent(loops), first.build()]
        };
        let roles: &[&str] = match self.threaded {
            true => &["perf", "thread that reads first", "thread that writes first"],
            false => &["perf, writes first", "perf, reads first"],
        };
        Workload {
            name: format!(
                "perf bench sched pipe -l {}{}",
                self.loops,
                if self.threaded { " -T" } else { "" }
            ),
            channels: vec![Channel { kind: ChannelKind::Pipe }; 2],
            first_message_channel: BACK,
            programs,
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            roles: roles.iter().map(|role| Role::One((*role).into())).collect(),
            messages: loops,
            ..Workload::default()
        }
    }

    fn main_of_threads(&self) -> Program {
        ProgramBuilder::default()
            .op(Op::MarkStart)
            .op(Op::Spawn { program: 1, base: 0, process: false })
            .op(Op::Spawn { program: 2, base: 0, process: false })
            .op(Op::WaitChildren)
            .op(Op::MarkEnd)
            .build()
    }

    fn parent(&self, loops: u64) -> Program {
        let forked =
            ProgramBuilder::default().op(Op::MarkStart).op(Op::Spawn { program: 1, base: 0, process: true });
        second(forked, loops).op(Op::WaitChildren).op(Op::MarkEnd).build()
    }
}

/// The task that writes first.
fn second(b: ProgramBuilder, loops: u64) -> ProgramBuilder {
    b.repeat(loops, |b| {
        b.op(Op::WriteTo { channel: THERE, bytes: MESSAGE })
            .op(Op::ReadFrom { channel: BACK, bytes: MESSAGE })
    })
}

impl PerfMessaging {
    /// The workload that these options mean, with the loops shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let hackbench = Hackbench {
            fds: 20,
            groups: self.group,
            loops: self.loops,
            datasize: 100,
            pipe: self.pipe,
            sockets: !self.pipe,
            threads: self.thread,
            process: !self.thread,
        };
        let name = format!(
            "perf bench sched messaging -g {} -l {}{}{}",
            self.group,
            self.loops,
            if self.pipe { " -p" } else { "" },
            if self.thread { " -t" } else { "" }
        );
        let workload = hackbench.workload(scale);
        let big = Attributes { mapped_pct: Some(MAPPED_PCT), ..Attributes::default() };
        Workload { name, attributes: vec![big; workload.programs.len()], ..workload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn defaults_are_the_real_tools() {
        let pipe = parse("perf bench sched pipe", Scale::FULL).unwrap();
        assert_eq!((pipe.name.as_str(), pipe.messages), ("perf bench sched pipe -l 1000000", 1_000_000));
        let messaging = parse("perf bench sched messaging", Scale::FULL).unwrap();
        assert_eq!(messaging.name, "perf bench sched messaging -g 10 -l 100");
        assert_eq!(messaging.messages, 10 * 20 * 20 * 100);
        assert_eq!(messaging.channels[2].kind, ChannelKind::UnixStream);
    }

    #[test]
    fn the_parent_is_one_of_two_processes_and_none_of_two_threads() {
        let spawned = |text: &str| -> Vec<bool> {
            let w = parse(text, Scale::FULL).unwrap();
            let spawns = w.programs[0].iter();
            spawns
                .filter_map(|op| if let Op::Spawn { process, .. } = op { Some(*process) } else { None })
                .collect()
        };
        assert_eq!(spawned("perf bench sched pipe"), [true]);
        assert_eq!(spawned("perf bench sched pipe -T"), [false, false]);
        assert_eq!(spawned("perf bench sched messaging -t -g 1"), [false; 40]);
    }

    #[test]
    fn every_message_that_is_written_is_read() {
        for text in ["perf bench sched pipe -l 5", "perf bench sched pipe -l 5 -T"] {
            let w = parse(text, Scale::FULL).unwrap();
            let count =
                |wanted: Op| w.programs.iter().flat_map(|p| p.iter()).filter(|op| **op == wanted).count();
            for channel in [THERE, BACK] {
                let (bytes, one) = (MESSAGE, 1);
                assert_eq!(count(Op::WriteTo { channel, bytes }), one, "{text}");
                assert_eq!(count(Op::ReadFrom { channel, bytes }), one, "{text}");
            }
        }
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_name() {
        for (bad, part) in [
            ("perf", "''"),
            ("perf stat", "'stat'"),
            ("perf bench futex hash", "'bench futex hash'"),
            ("perf bench sched pipe -G a,b", "'-G'"),
            ("perf bench sched pipe -l 0", "allowed are 1 to "),
            ("perf bench sched messaging -f 3", "'-f'"),
        ] {
            let e = parse(bad, Scale::FULL).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
