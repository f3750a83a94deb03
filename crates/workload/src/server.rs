//! A many-threaded server that is CPU-bound, not a real tool: a reviewer of seed 003 reports that
//! Daytrader, an application on a Java server with many threads, did not change.
//!
//! Each thread handles one request after the other: it computes, then computes under
//! one of `--locks` mutexes in turn (a connection pool), then waits for the next request for
//! `--think-us` and up to as much again. A request is an event: `events_per_s` is the
//! throughput, `event_latency_us_*` the time of a request.
//!
//! The report gives no numbers; the defaults are an assumption.

use crate::program::{Footprint, Limits, Op, ProgramBuilder, Scale, Shared, Workload};
use crate::{Role, WorkloadError, usage};
use clap::Parser;
use coreward_input::within;

/// Objects and stack of a request. assumption.
const PRIVATE_BYTES: u64 = 256 << 10;
/// Compiled methods and shared objects that a request touches. assumption.
const SHARED_BYTES: u64 = 1 << 20;
const ALLOWED: &str = "--threads --work-us --locked-us --locks --think-us --time";

/// The options of the server.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "server", no_binary_name = true, disable_help_flag = true)]
pub struct Server {
    /// Threads.
    #[arg(long, default_value_t = 256, value_parser = within(1u32..=100_000))]
    pub threads: u32,
    /// Work of a request, in us.
    #[arg(long, default_value_t = 5000, value_parser = within(1u64..=100_000_000))]
    pub work_us: u64,
    /// Work of a request under a mutex, in us.
    #[arg(long, default_value_t = 50, value_parser = within(1u64..=100_000_000))]
    pub locked_us: u64,
    /// Mutexes.
    #[arg(long, default_value_t = 32, value_parser = within(1u32..=100_000))]
    pub locks: u32,
    /// Least time between two requests of a thread, in us.
    #[arg(long, default_value_t = 1000, value_parser = within(0u64..=4_000_000))]
    pub think_us: u64,
    /// Run time in s.
    #[arg(long, default_value_t = 10, value_parser = within(1u64..=1_000_000))]
    pub time: u64,
}

impl Server {
    /// Reads the options, without the leading `server`.
    ///
    /// # Errors
    /// An option that there is not or that is out of range.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        Self::try_parse_from(words).map_err(|e| usage("server", ALLOWED, &e))
    }

    /// The workload that these options mean, with the time shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let main = ProgramBuilder::default()
            .repeat(u64::from(self.threads), |b| b.op(Op::Spawn { program: 1, base: 0, process: false }))
            .op(Op::Barrier { barrier: 0, starts: true })
            .op(Op::WaitChildren)
            .op(Op::MarkEnd)
            .build();
        let think = Op::SleepJitter { ns: self.think_us * 1000, jitter_ns: self.think_us * 1000 };
        let thread = ProgramBuilder::default()
            .op(Op::Barrier { barrier: 0, starts: true })
            .until_stopped(|b| {
                b.op(Op::TakeTurn { of: self.locks })
                    .op(Op::EventStart)
                    .op(Op::Run { ns: self.work_us * 1000 })
                    .op(Op::Lock { mutex: 0 })
                    .op(Op::Run { ns: self.locked_us * 1000 })
                    .op(Op::Unlock { mutex: 0 })
                    .op(Op::EventEnd)
                    .op(think)
            })
            .build();
        Workload {
            name: format!(
                "server --threads {} --work-us {} --locked-us {} --locks {} --think-us {} --time {}",
                self.threads, self.work_us, self.locked_us, self.locks, self.think_us, self.time
            ),
            programs: vec![main, thread],
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            roles: vec![Role::One("server".into()), Role::Each("server thread")],
            shared: Shared { mutexes: self.locks, barriers: vec![self.threads + 1], ..Shared::default() },
            limits: Limits { time_ns: scale.of(self.time * 1_000_000_000), ..Limits::default() },
            ..Workload::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_server_is_its_threads_and_their_locks() {
        let w = parse("server --threads 7 --locks 3 --time 4", Scale(500_000)).unwrap();
        assert_eq!((w.shared.mutexes, w.shared.barriers), (3, vec![8]));
        assert_eq!(w.limits.time_ns, 2_000_000_000);
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        for (bad, part) in [("server --users 3", "'--users'"), ("server --locks 0", "allowed are 1 to ")] {
            let e = parse(bad, Scale::FULL).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
