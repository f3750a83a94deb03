//! `sysbench threads`, as sysbench 1.0.20 has it.
//!
//! All threads and main meet at a barrier, which starts the clock. Then each
//! thread does events as long as the time is not over and not all events have
//! begun. An event takes the next number of a counter that all threads share; the
//! number modulo the locks says which mutex it uses. It locks that mutex, yields
//! the CPU, and unlocks the mutex, `--thread-yields` times over.
//!
//! sysbench reports the events, their rate, and their latency as minimum, mean,
//! maximum and 95th percentile, and as fairness the standard deviation of the
//! threads' numbers of events: the metrics `events`, `events_per_s`,
//! `event_latency_us_*` and `events_per_task_stddev`.

use crate::program::{Footprint, Limits, Op, ProgramBuilder, Scale, Shared, Workload};
use crate::{Program, Role, WorkloadError, usage};
use clap::Parser;
use coreward_input::within;

/// Stack, the used part of the kernel stack, and the touched lines of task_struct and its entity.
/// assumption: as for hackbench, less the message.
const PRIVATE_BYTES: u64 = 7 << 10;
/// Text and data of the tool and libc that the loop touches. assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;

/// sizeof(pthread_mutex_t) of glibc on 64-bit x86 (48 on arm64); sysbench allocates one array of them (sb_threads.c), so
/// a cache line holds parts of two. On two CPUs of a Linux 6.18 guest on Sapphire Rapids, two threads that lock and yield
/// with neighbouring mutexes take 430 ns a turn each, and one of them alone 250 ns.
const MUTEX_BYTES: u32 = 40;
/// Where malloc() puts the array of mutexes, from the begin of a cache line, by the number of threads modulo 4: seen with 2 to 64
/// threads and 1 to 16 mutexes, Debian 12's sysbench 1.0.20 on x86-64.
const MUTEXES_AT: [u32; 4] = [32, 32, 48, 16];

const ALLOWED: &str = "threads run --threads --time --events --thread-yields --thread-locks, \
                       or the old --test=threads --num-threads --max-time --max-requests";

/// The options of `sysbench threads` that can be simulated, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "sysbench", no_binary_name = true, disable_help_flag = true)]
pub struct Sysbench {
    /// The test's name and the command, `threads run`.
    words: Vec<String>,
    /// The test's name, as it was given before 1.0.
    #[arg(long)]
    test: Option<String>,
    /// Threads.
    #[arg(long, alias = "num-threads", default_value_t = 1, value_parser = within(1u32..=100_000))]
    pub threads: u32,
    /// Time limit in s, 0 for none.
    #[arg(long, alias = "max-time", default_value_t = 10, value_parser = within(0u64..=1_000_000))]
    pub time: u64,
    /// Limit on events; 0, or -1 as it was given before 1.0, for none.
    #[arg(long, alias = "max-requests", default_value_t = 0, allow_negative_numbers = true,
          value_parser = within(-1i64..=1_000_000_000_000))]
    pub events: i64,
    /// Yields per event.
    #[arg(long, default_value_t = 1000, value_parser = within(1u64..=1_000_000_000))]
    pub thread_yields: u64,
    /// Mutexes that the events use in turn.
    #[arg(long, default_value_t = 8, value_parser = within(1u32..=1_000_000))]
    pub thread_locks: u32,
}

impl Sysbench {
    /// Reads the options, without the leading `sysbench`.
    ///
    /// # Errors
    /// Another test or command, an option that the tool does not have or that
    /// cannot be simulated (`--rate`), one that is out of range, or no limit at all.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        let parsed = Self::try_parse_from(words).map_err(|e| usage("sysbench", ALLOWED, &e))?;
        let refuse =
            |what: String| Err(WorkloadError::Usage(format!("sysbench: {what} (allowed: {ALLOWED})")));
        let mut words = parsed.words.iter().map(String::as_str);
        let test = match &parsed.test {
            Some(test) => Some(test.as_str()),
            None => words.next(),
        };
        if test != Some("threads") {
            return refuse(format!("the test '{}' cannot be simulated", test.unwrap_or("")));
        }
        let command = words.next();
        if command != Some("run") || words.next().is_some() {
            return refuse(format!("the command after 'threads' is '{}', not 'run'", command.unwrap_or("")));
        }
        if parsed.time == 0 && parsed.events <= 0 {
            return refuse("--time=0 and --events=0: it would never end".into());
        }
        Ok(parsed)
    }

    /// The workload that these options mean, with time and events shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let unlimited = |limit: u64| if limit == 0 { u64::MAX } else { scale.of(limit) };
        Workload {
            name: self.command(),
            programs: vec![self.main(), self.thread()],
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            roles: vec![Role::One("sysbench".into()), Role::Each("sysbench thread")],
            shared: Shared {
                mutexes: self.thread_locks,
                mutex_bytes: MUTEX_BYTES,
                mutexes_at: MUTEXES_AT[self.threads as usize % 4],
                barriers: vec![self.threads + 1],
                ..Shared::default()
            },
            limits: Limits {
                time_ns: unlimited(self.time * 1_000_000_000),
                events: unlimited(u64::try_from(self.events).unwrap_or(0)),
            },
            ..Workload::default()
        }
    }

    fn main(&self) -> Program {
        ProgramBuilder::default()
            .repeat(u64::from(self.threads), |b| b.op(Op::Spawn { program: 1, base: 0, process: false }))
            .op(Op::Barrier { barrier: 0, starts: true })
            .op(Op::WaitChildren)
            .op(Op::MarkEnd)
            .build()
    }

    fn thread(&self) -> Program {
        ProgramBuilder::default()
            .op(Op::Barrier { barrier: 0, starts: true })
            .until_stopped(|b| {
                b.op(Op::TakeTurn { of: self.thread_locks })
                    .op(Op::EventStart)
                    .repeat(self.thread_yields, |b| {
                        b.op(Op::Lock { mutex: 0 }).op(Op::Yield).op(Op::Unlock { mutex: 0 })
                    })
                    .op(Op::EventEnd)
            })
            .build()
    }

    fn command(&self) -> String {
        format!(
            "sysbench threads --threads={} --time={} --events={} --thread-yields={} --thread-locks={} run",
            self.threads,
            self.time,
            self.events.max(0),
            self.thread_yields,
            self.thread_locks
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn words(s: &str) -> Result<Sysbench, WorkloadError> {
        Sysbench::parse(s.split_whitespace())
    }

    #[test]
    fn seed_004s_command_is_read_as_it_was_written() {
        let old = words("--max-time=5 --max-requests=-1 --test=threads --num-threads=6 run").unwrap();
        let new = words("threads --time=5 --threads=6 run").unwrap();
        assert_eq!(old.workload(Scale::FULL).name, new.workload(Scale::FULL).name);
        let w = old.workload(Scale::FULL);
        assert_eq!(w.limits, Limits { time_ns: 5_000_000_000, events: u64::MAX });
        assert_eq!((w.shared.mutexes, w.shared.barriers), (8, vec![7]));
        assert_eq!(
            w.name,
            "sysbench threads --threads=6 --time=5 --events=0 --thread-yields=1000 --thread-locks=8 run"
        );
    }

    #[test]
    fn defaults_are_the_real_tools() {
        let s = words("threads run").unwrap();
        assert_eq!((s.threads, s.time, s.events, s.thread_yields, s.thread_locks), (1, 10, 0, 1000, 8));
    }

    #[test]
    fn scale_shortens_time_and_events() {
        let w = parse("sysbench threads --time=10 --events=50 run", Scale(100_000)).unwrap();
        assert_eq!(w.limits, Limits { time_ns: 1_000_000_000, events: 5 });
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_name() {
        for (bad, part) in [
            ("cpu run", "'cpu'"),
            ("", "the test ''"),
            ("threads prepare", "'prepare'"),
            ("threads", "the command after 'threads' is ''"),
            ("threads run now", "'run'"),
            ("threads --rate=5 run", "'--rate'"),
            ("threads --threads=0 run", "allowed are 1 to 100000"),
            ("threads --time=0 run", "would never end"),
            ("threads --events=-2 run", "allowed are -1 to "),
        ] {
            let e = words(bad).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
