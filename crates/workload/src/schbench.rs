//! schbench in its two forms.
//!
//! **Old** (`schbench-old`; until commit 2eef447 of December 2021, which the EPYC figures of seed 003 were measured with:
//! benchmarks/schbench.sh of github.com/yu-chen-surf/schedtests, April 2025): a worker spins for `-c` us of time, puts
//! itself on its message thread's list, wakes the message thread and waits. The message thread spins for `-C` us, sleeps
//! for `-s` us and up to a quarter more, notes the time, and wakes all on its list. Before October 2020 there was neither
//! `-C` nor `-w`: `-C 0 -w 0`. That commit's latencies end after the spin, less its length, and here before it, which
//! differs if the worker is preempted at the end of its spin.
//!
//! **New** (`schbench`; since 2023 under the same name): the message thread answers at
//! once; a worker that has been answered sleeps for `-s` us and then multiplies matrices
//! that fill `-F` KiB together, `-n` times, under a lock of the CPU that it is on (`-L`: without).
//! With `-R` the message thread hands out that many requests each second instead.
//!
//! What was measured in the first `-w` seconds is forgotten.
//!
//! The wakeup latency that schbench prints is the metric `reply_latency_us_*`: from the
//! message thread's look at the clock before it wakes the first of its list to the
//! worker's running. A request's latency is `event_latency_us_*` (new), the requests
//! per second are `events_per_s`, and `events_per_s_p20` and so on their percentiles over
//! the seconds (what mmtests prints as `Lat 20.0th-qrtle`); for the old form an event is one round of a worker.

use crate::program::{Attributes, Footprint, Op, ProgramBuilder, Scale, Shared, Workload};
use crate::{Program, Role, WorkloadError, usage};
use clap::Parser;
use coreward_input::within;

/// Stack, the used part of the kernel stack, and the touched lines of task_struct and its entity.
/// assumption: as for hackbench, less the message.
const PRIVATE_BYTES: u64 = 7 << 10;
/// Text and data of the tool and libc that the loops touch. assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;
/// One step of the innermost loop of the multiplication, in ps.
/// Source: seed 003, two Xeons of 60 cores: one worker did 266 requests a second, each of which
/// sleeps for 100 us and then does 5 x 104^3 steps: (1/266 s - 100 us - 6 us of wakeup) / 5,624,320.
const STEP_PS: u64 = 650;
/// Longest work of a request.
const MAX_WORK_NS: u64 = 1_000_000_000_000;
/// Tasks that fit, well below PID_MAX_LIMIT.
const MAX_TASKS: u64 = 1 << 20;

/// The options of the new schbench that can be simulated, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "schbench", no_binary_name = true, disable_help_flag = true)]
pub struct Schbench {
    /// Message threads.
    #[arg(short, long, default_value_t = 1, value_parser = within(1u32..=10_000))]
    pub message_threads: u32,
    /// Workers per message thread. The real tool's default is the number of CPUs; here it has to be given.
    #[arg(short, long, required = true, value_parser = within(1u32..=100_000))]
    pub threads: u32,
    /// Run time in s.
    #[arg(short, long, default_value_t = 30, value_parser = within(1u64..=1_000_000))]
    pub runtime: u64,
    /// KiB that a worker's three matrices take.
    #[arg(short = 'F', long = "cache_footprint", default_value_t = 256, value_parser = within(1u64..=1_048_576))]
    pub cache_footprint: u64,
    /// Multiplications per request.
    #[arg(short = 'n', long, default_value_t = 5, value_parser = within(1u64..=1_000_000))]
    pub operations: u64,
    /// Sleep before a request's work, in us.
    #[arg(short = 's', long = "sleep_usec", default_value_t = 100, value_parser = within(0u64..=1_000_000_000))]
    pub sleep_usec: u64,
    /// Requests per second, of all message threads together; 0: as fast as they come.
    #[arg(short = 'R', long, default_value_t = 0, value_parser = within(0u64..=100_000_000))]
    pub rps: u64,
    /// No lock around the work.
    #[arg(short = 'L', long)]
    pub no_locking: bool,
    /// Seconds after which what was measured is forgotten; not if the run ends before.
    #[arg(short, long, default_value_t = 0, value_parser = within(0u64..=1_000_000))]
    pub warmuptime: u64,
}

/// The options of the old schbench that can be simulated, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "schbench-old", no_binary_name = true, disable_help_flag = true)]
pub struct SchbenchOld {
    /// Message threads.
    #[arg(short, long, default_value_t = 2, value_parser = within(1u32..=10_000))]
    pub message_threads: u32,
    /// Workers per message thread.
    #[arg(short, long, default_value_t = 16, value_parser = within(1u32..=100_000))]
    pub threads: u32,
    /// Run time in s.
    #[arg(short, long, default_value_t = 30, value_parser = within(1u64..=1_000_000))]
    pub runtime: u64,
    /// Sleep of a message thread before it answers, in us.
    #[arg(short, long, default_value_t = 30_000, value_parser = within(0u64..=10_000_000))]
    pub sleeptime: u64,
    /// Time for which a worker spins, in us.
    #[arg(short, long, default_value_t = 30_000, value_parser = within(0u64..=1_000_000_000))]
    pub cputime: u64,
    /// Time for which a message thread spins before it sleeps, in us.
    #[arg(short = 'C', long = "message_cputime", default_value_t = 30_000, value_parser = within(0u64..=1_000_000_000))]
    pub message_cputime: u64,
    /// Seconds after which what was measured is forgotten; not if the run ends before.
    #[arg(short, long, default_value_t = 5, value_parser = within(0u64..=1_000_000))]
    pub warmuptime: u64,
}

/// A message thread and its workers: the message thread has the group's first flag,
/// the workers those behind it, and the group's number is its list.
struct Group {
    message_threads: u32,
    threads: u32,
    runtime: u64,
    warmuptime: u64,
    /// What a worker does once it has been answered, or before it asks.
    work: Vec<Op>,
    /// A worker works before it asks (old) or after (new).
    works_first: bool,
    /// What a message thread does before it answers.
    delay: Vec<Op>,
    /// Requests per second of one message thread, 0 for answers instead.
    rps: u64,
    worker_bytes: u64,
}

impl Schbench {
    /// Reads the options, without the leading `schbench`.
    ///
    /// # Errors
    /// An option that the tool does not have, that is out of range, or that cannot be simulated (`-A`, `-p`, pinning).
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        let parsed = Self::try_parse_from(words)
            .map_err(|e| usage("schbench", "-m -t (has to be given) -r -w -F -n -s -R -L", &e))?;
        refuse_too_many("schbench", parsed.message_threads, parsed.threads)?;
        if parsed.work_ns() > MAX_WORK_NS {
            return Err(WorkloadError::Usage(format!(
                "schbench: a request of {} multiplications of {} KiB takes {} s (allowed: up to {} s)",
                parsed.operations,
                parsed.cache_footprint,
                parsed.work_ns() / 1_000_000_000,
                MAX_WORK_NS / 1_000_000_000
            )));
        }
        if parsed.rps > 0 && parsed.rps < u64::from(parsed.message_threads) {
            return Err(WorkloadError::Usage(format!(
                "schbench: -R {} is less than one request for each of {} message threads (allowed: 0, or at least -m)",
                parsed.rps, parsed.message_threads
            )));
        }
        Ok(parsed)
    }

    /// The workload that these options mean, with the run time shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let mut work = vec![Op::EventStart];
        if self.sleep_usec > 0 {
            work.push(Op::Sleep { ns: self.sleep_usec * 1000 });
        }
        if !self.no_locking {
            work.push(Op::LockCpu);
        }
        work.push(Op::Run { ns: self.work_ns() });
        if !self.no_locking {
            work.push(Op::UnlockCpu);
        }
        work.push(Op::EventEnd);
        let group = Group {
            message_threads: self.message_threads,
            threads: self.threads,
            runtime: self.runtime,
            warmuptime: self.warmuptime,
            work,
            works_first: false,
            delay: Vec::new(),
            rps: self.rps / u64::from(self.message_threads),
            worker_bytes: PRIVATE_BYTES + 3 * 8 * self.matrix_size().pow(2),
        };
        group.workload(self.command(), scale)
    }

    /// Rows of a matrix: three of 8-byte numbers fill the footprint.
    fn matrix_size(&self) -> u64 {
        (self.cache_footprint * 1024 / 3 / 8).isqrt()
    }

    /// Work of a request in ns.
    fn work_ns(&self) -> u64 {
        (self.operations * self.matrix_size().pow(3)).saturating_mul(STEP_PS) / 1000
    }

    fn command(&self) -> String {
        format!(
            "schbench -m {} -t {} -r {} -F {} -n {} -s {} -R {}{}{}",
            self.message_threads,
            self.threads,
            self.runtime,
            self.cache_footprint,
            self.operations,
            self.sleep_usec,
            self.rps,
            if self.no_locking { " -L" } else { "" },
            if self.warmuptime > 0 { format!(" -w {}", self.warmuptime) } else { String::new() }
        )
    }
}

impl SchbenchOld {
    /// Reads the options, without the leading `schbench-old`.
    ///
    /// # Errors
    /// As for [`Schbench::parse`] (`-a`, `-p`, `-R` and `-l` cannot be simulated).
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        let parsed =
            Self::try_parse_from(words).map_err(|e| usage("schbench-old", "-m -t -r -s -c -C -w", &e))?;
        refuse_too_many("schbench-old", parsed.message_threads, parsed.threads)?;
        Ok(parsed)
    }

    /// The workload that these options mean, with the run time shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let spin = (self.message_cputime > 0).then_some(Op::Spin { ns: self.message_cputime * 1000 });
        let (ns, jitter_ns) = (self.sleeptime * 1000, self.sleeptime / 4 * 1000);
        let sleep = (self.sleeptime > 0).then_some(Op::SleepJitter { ns, jitter_ns });
        let group = Group {
            message_threads: self.message_threads,
            threads: self.threads,
            runtime: self.runtime,
            warmuptime: self.warmuptime,
            work: vec![Op::EventStart, Op::Spin { ns: self.cputime * 1000 }],
            works_first: true,
            delay: spin.into_iter().chain(sleep).collect(),
            rps: 0,
            worker_bytes: PRIVATE_BYTES,
        };
        let name = format!(
            "schbench-old -m {} -t {} -r {} -s {} -c {} -C {} -w {}",
            self.message_threads,
            self.threads,
            self.runtime,
            self.sleeptime,
            self.cputime,
            self.message_cputime,
            self.warmuptime
        );
        group.workload(name, scale)
    }
}

fn refuse_too_many(tool: &str, message_threads: u32, threads: u32) -> Result<(), WorkloadError> {
    let tasks = u64::from(message_threads) * (u64::from(threads) + 1);
    if tasks <= MAX_TASKS {
        return Ok(());
    }
    Err(WorkloadError::Usage(format!(
        "{tool}: {message_threads} message threads with {threads} workers each are {tasks} tasks (allowed: up to {MAX_TASKS})"
    )))
}

impl Group {
    /// Program 0 is main's, then come a message thread's and its workers' for each group.
    fn workload(&self, name: String, scale: Scale) -> Workload {
        let mut programs = vec![self.main(scale)];
        let mut attributes = vec![Attributes::default()];
        let tool = name.split(' ').next().unwrap_or_default();
        let mut roles = vec![Role::One(tool.to_owned())];
        for group in 0..self.message_threads {
            programs.extend([self.message_thread(group), self.worker(group)]);
            let worker = Attributes { private_bytes: Some(self.worker_bytes), ..Attributes::default() };
            attributes.extend([Attributes::default(), worker]);
            let whole = format!("message thread {}", group + 1);
            roles.extend([Role::One(whole.clone()), Role::Of { name: "worker", whole }]);
        }
        Workload {
            name,
            programs,
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            attributes,
            roles,
            shared: Shared {
                flags: self.message_threads * (self.threads + 1),
                lists: self.message_threads,
                timers: self.message_threads,
                ..Shared::default()
            },
            ..Workload::default()
        }
    }

    fn first_flag(&self, group: u32) -> u32 {
        group * (self.threads + 1)
    }

    fn main(&self, scale: Scale) -> Program {
        let groups = 0..self.message_threads;
        let warmuptime = if self.warmuptime < self.runtime { self.warmuptime } else { 0 };
        let seconds = |s: u64| Op::Sleep { ns: scale.of(s * 1_000_000_000) };
        let mut main = ProgramBuilder::default();
        if warmuptime == 0 {
            main = main.op(Op::MarkStart);
        }
        for group in groups.clone() {
            main =
                main.op(Op::Spawn { program: 1 + 2 * group, base: self.first_flag(group), process: false });
        }
        if warmuptime > 0 {
            main = main.op(seconds(warmuptime)).op(Op::MarkStart);
        }
        main = main.op(seconds(self.runtime - warmuptime)).op(Op::MarkEnd).op(Op::Stop);
        for group in groups {
            main = main.op(Op::Post { flag: self.first_flag(group) });
        }
        main.op(Op::WaitChildren).build()
    }

    fn message_thread(&self, group: u32) -> Program {
        let (first, list) = (self.first_flag(group), group);
        let mut b = ProgramBuilder::default();
        for worker in 0..self.threads {
            b = b.op(Op::Spawn { program: 2 + 2 * group, base: first + 1 + worker, process: false });
        }
        b = if self.rps > 0 {
            let timer = Op::Timer { timer: group, period_ns: 1_000_000_000, relative: true };
            b.op(Op::Origin).until_stopped(|b| {
                b.repeat(self.rps, |b| b.op(Op::SendRequest { first: first + 1, count: self.threads }))
                    .op(timer)
            })
        } else {
            b.until_stopped(|b| {
                let b = b.op(Op::Clear { flag: 0 }).op(Op::PostListed { list }).op(Op::Await { flag: 0 });
                self.delay.iter().fold(b, |b, op| b.op(*op))
            })
            .op(Op::PostListed { list })
        };
        for worker in 0..self.threads {
            b = b.op(Op::Post { flag: first + 1 + worker });
        }
        b.op(Op::WaitChildren).build()
    }

    fn worker(&self, group: u32) -> Program {
        let work = |b: ProgramBuilder| self.work.iter().fold(b, |b, op| b.op(*op));
        let ask = |b: ProgramBuilder| {
            if self.rps > 0 {
                return b.op(Op::TakeRequest);
            }
            b.op(Op::Clear { flag: 0 })
                .op(Op::Enlist { list: group })
                .op(Op::Post { flag: self.first_flag(group) })
                .op(Op::Await { flag: 0 })
        };
        ProgramBuilder::default()
            .until_stopped(|b| if self.works_first { ask(work(b)).op(Op::EventEnd) } else { work(ask(b)) })
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn defaults_are_the_real_tools() {
        let name = |text: &str| parse(text, Scale::FULL).unwrap().name;
        assert_eq!(name("schbench -t 8"), "schbench -m 1 -t 8 -r 30 -F 256 -n 5 -s 100 -R 0");
        assert_eq!(name("schbench-old"), "schbench-old -m 2 -t 16 -r 30 -s 30000 -c 30000 -C 30000 -w 5");
        assert_eq!(name("schbench -t 8 -w 2"), "schbench -m 1 -t 8 -r 30 -F 256 -n 5 -s 100 -R 0 -w 2");
    }

    #[test]
    fn three_matrices_fill_the_footprint() {
        let s = Schbench::parse("-t 1".split_whitespace()).unwrap();
        assert_eq!(s.matrix_size(), 104, "104 squared times 24 bytes are 259,584 of 262,144");
        assert_eq!(s.work_ns(), 3_655_808, "3.66 ms: 266 of them and of the sleeps fill a second");
        let w = s.workload(Scale::FULL);
        assert_eq!(w.private_bytes(2), PRIVATE_BYTES + 259_584);
        assert_eq!(w.private_bytes(1), PRIVATE_BYTES, "the message thread has no matrices");
    }

    #[test]
    fn every_worker_has_a_flag_of_its_own() {
        let w = parse("schbench-old -m 3 -t 4", Scale::FULL).unwrap();
        let bases = |program: usize| -> Vec<u32> {
            let spawns = w.programs[program].iter();
            spawns.filter_map(|op| if let Op::Spawn { base, .. } = op { Some(*base) } else { None }).collect()
        };
        let mut all: Vec<u32> = [0, 1, 3, 5].into_iter().flat_map(bases).collect();
        all.sort_unstable();
        assert_eq!(all, (0..15).collect::<Vec<_>>());
        assert_eq!(w.shared.flags, 15);
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_name() {
        for (bad, part) in [
            ("schbench", "not provided"),
            ("schbench -t 4 -A 50", "'-A'"),
            ("schbench -t 4 -p 100", "'-p'"),
            ("schbench -t 4 -F 1048576 -n 1000000", "takes"),
            ("schbench -t 4 -m 8 -R 5", "-R 5 is less"),
            ("schbench -t 100000 -m 10000", "1000010000 tasks"),
            ("schbench-old -t 0", "allowed are 1 to "),
            ("schbench-old -R 5", "'-R'"),
        ] {
            let e = parse(bad, Scale::FULL).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
