//! A video encoder as the reporter of seed 002 describes it, not a real tool: hundreds to
//! thousands of threads on mutexes, condition variables and nanosleep, on a machine of
//! which a part is kept idle.
//!
//! Each stream has a pacer and `--threads` workers. The pacer sleeps until the next frame
//! is due (nanosleep), releases its workers, codes the frame's serial part and waits until all
//! are done; both meetings are barriers, that is a mutex with a condition variable. A worker takes
//! `--rows` rows, each from the stream's queue under its mutex, and encodes them.
//! A frame is an event: `events_per_s` is the throughput, `event_latency_us_*` the time of a frame.
//!
//! The description gives no numbers but those of threads; the defaults are an assumption, and
//! keep about half of the 48 CPUs of seed 002's machine busy.

use crate::program::{Footprint, Op, ProgramBuilder, Scale, Shared, Workload};
use crate::{Program, Role, WorkloadError, usage};
use clap::Parser;
use coreward_input::within;

/// A row with its reference rows, coefficients and tables. assumption.
const PRIVATE_BYTES: u64 = 64 << 10;
/// Text and tables of the encoder that the loops touch. assumption.
const SHARED_BYTES: u64 = 64 << 10;
/// How long the queue's mutex is held, in ns. assumption.
const QUEUE_NS: u64 = 500;
/// Tasks that fit, well below PID_MAX_LIMIT.
const MAX_TASKS: u64 = 1 << 20;
const ALLOWED: &str = "--streams --threads --fps --rows --row-us --serial-us --time";

/// The options of the encoder.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "encoder", no_binary_name = true, disable_help_flag = true)]
pub struct Encoder {
    /// Streams that are encoded at once.
    #[arg(long, default_value_t = 24, value_parser = within(1u32..=10_000))]
    pub streams: u32,
    /// Workers per stream.
    #[arg(long, default_value_t = 32, value_parser = within(1u32..=10_000))]
    pub threads: u32,
    /// Frames per second of each stream; 0: as fast as they can be encoded.
    #[arg(long, default_value_t = 25, value_parser = within(0u64..=1_000_000))]
    pub fps: u64,
    /// Rows per worker and frame.
    #[arg(long, default_value_t = 8, value_parser = within(1u64..=10_000))]
    pub rows: u64,
    /// Work of a row, in us.
    #[arg(long, default_value_t = 150, value_parser = within(1u64..=1_000_000))]
    pub row_us: u64,
    /// Work of a frame's serial part, in us.
    #[arg(long, default_value_t = 200, value_parser = within(1u64..=1_000_000))]
    pub serial_us: u64,
    /// Run time in s.
    #[arg(long, default_value_t = 10, value_parser = within(1u64..=1_000_000))]
    pub time: u64,
}

impl Encoder {
    /// Reads the options, without the leading `encoder`.
    ///
    /// # Errors
    /// An option that there is not or that is out of range.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        let parsed = Self::try_parse_from(words).map_err(|e| usage("encoder", ALLOWED, &e))?;
        let tasks = u64::from(parsed.streams) * (u64::from(parsed.threads) + 1);
        if tasks > MAX_TASKS {
            return Err(WorkloadError::Usage(format!(
                "encoder: {} streams with {} workers each are {tasks} tasks (allowed: up to {MAX_TASKS})",
                parsed.streams, parsed.threads
            )));
        }
        Ok(parsed)
    }

    /// The workload that these options mean, with the time shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let mut programs = vec![self.main(scale)];
        for stream in 0..self.streams {
            programs.extend([self.pacer(stream), self.worker(stream)]);
        }
        Workload {
            name: format!(
                "encoder --streams {} --threads {} --fps {} --rows {} --row-us {} --serial-us {} --time {}",
                self.streams, self.threads, self.fps, self.rows, self.row_us, self.serial_us, self.time
            ),
            programs,
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            roles: self.roles(),
            shared: Shared {
                mutexes: self.streams,
                barriers: vec![self.threads + 1; 2 * self.streams as usize],
                timers: self.streams,
                ..Shared::default()
            },
            ..Workload::default()
        }
    }

    fn roles(&self) -> Vec<Role> {
        let of_streams = (1..=self.streams).flat_map(|stream| {
            let whole = format!("stream {stream}");
            [Role::One(whole.clone()), Role::Of { name: "worker", whole }]
        });
        std::iter::once(Role::One("encoder".into())).chain(of_streams).collect()
    }

    fn main(&self, scale: Scale) -> Program {
        let mut main = ProgramBuilder::default();
        for stream in 0..self.streams {
            main = main.op(Op::Spawn { program: 1 + 2 * stream, base: 0, process: false });
        }
        main.op(Op::MarkStart)
            .op(Op::Sleep { ns: scale.of(self.time * 1_000_000_000) })
            .op(Op::MarkEnd)
            .op(Op::Stop)
            .op(Op::WaitChildren)
            .build()
    }

    fn pacer(&self, stream: u32) -> Program {
        let (begin, end) = (2 * stream, 2 * stream + 1);
        let worker = Op::Spawn { program: 2 + 2 * stream, base: 0, process: false };
        ProgramBuilder::default()
            .repeat(u64::from(self.threads), |b| b.op(worker))
            .op(Op::Origin)
            .until_stopped(|b| {
                let period_ns = 1_000_000_000u64.checked_div(self.fps);
                let timer = |period_ns| Op::Timer { timer: stream, period_ns, relative: true };
                let b = period_ns.into_iter().fold(b, |b, ns| b.op(timer(ns)));
                b.op(Op::EventStart)
                    .op(Op::Barrier { barrier: begin, starts: false })
                    .op(Op::Run { ns: self.serial_us * 1000 })
                    .op(Op::Barrier { barrier: end, starts: false })
                    .op(Op::EventEnd)
            })
            .op(Op::WaitChildren)
            .build()
    }

    fn worker(&self, stream: u32) -> Program {
        ProgramBuilder::default()
            .until_stopped(|b| {
                b.op(Op::Barrier { barrier: 2 * stream, starts: false })
                    .repeat(self.rows, |b| {
                        b.op(Op::Lock { mutex: stream })
                            .op(Op::Run { ns: QUEUE_NS })
                            .op(Op::Unlock { mutex: stream })
                            .op(Op::Run { ns: self.row_us * 1000 })
                    })
                    .op(Op::Barrier { barrier: 2 * stream + 1, starts: false })
            })
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_stream_has_a_pacer_its_workers_and_two_meetings() {
        let w = parse("encoder --streams 3 --threads 5", Scale::FULL).unwrap();
        assert_eq!(w.programs.len(), 7);
        assert_eq!(w.shared.barriers, [6; 6]);
        assert!(w.programs[1].contains(&Op::Timer { timer: 0, period_ns: 40_000_000, relative: true }));
        let unpaced = parse("encoder --fps 0", Scale::FULL).unwrap();
        assert!(!unpaced.programs[1].iter().any(|op| matches!(op, Op::Timer { .. })));
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        for (bad, part) in [
            ("encoder --frames 3", "'--frames'"),
            ("encoder --rows 0", "allowed are 1 to "),
            ("encoder --streams 10000 --threads 10000", "100010000 tasks"),
        ] {
            let e = parse(bad, Scale::FULL).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
