//! `cyclictest`, as rt-tests 2.4 has it, for the fair class.
//!
//! Each thread is bound to a CPU, which are taken in turn: that is what the tool does if neither `-a` nor `-S` is given
//! (strace of `cyclictest -t 4`). It sleeps until its timer expires, looks at the clock, and counts a cycle. The first
//! thread's interval is `-i` us, each further one's `-d` us longer. All end when the first thread has done `-l` cycles,
//! or after `-D` seconds; main looks every 10 ms.
//!
//! The latency that cyclictest prints begins with the expiry of the timer, which the slack of timers delays by up to
//! 50 us in the fair class. What the scheduler adds is `wakeup_latency_us_*`. A cycle is an event, so `events` is the
//! sum of what the tool prints as `C:`.

use clap::Parser;
use coreward_input::within;

use crate::program::{
    Attributes, CpuChoice, Footprint, Limits, Op, Policy, ProgramBuilder, Scale, Shared, Workload,
};
use crate::{Program, Role, WorkloadError, usage};

/// Stack, the used part of the kernel stack, and the touched lines of task_struct and its entity.
/// assumption: as for hackbench, less the message.
const PRIVATE_BYTES: u64 = 7 << 10;
/// Text and data of the tool and libc that the loop touches. assumption, as above.
const SHARED_BYTES: u64 = 8 << 10;
/// Work of a cycle in user space: two looks at the clock, a comparison, the statistics. assumption.
const CYCLE_NS: u64 = 1_000;
/// Period in which main looks whether a thread has ended, in ns.
const MAIN_NS: u64 = 10_000_000;

const ALLOWED: &str = "-t -i -d -l -D -h -H --policy=other|normal|batch|idle -m --default-system --laptop, and \
                       what shapes the output";

/// The options of cyclictest that can be simulated, with the real tool's defaults.
#[derive(Parser, Clone, Debug, PartialEq, Eq)]
#[command(name = "cyclictest", no_binary_name = true, disable_help_flag = true)]
pub struct Cyclictest {
    /// Threads. The real tool takes the number of CPUs for `-t` without a value; here it has to be given.
    #[arg(short, long, default_value_t = 1, value_parser = within(1u32..=100_000))]
    pub threads: u32,
    /// Interval of the first thread in us.
    #[arg(short, long, default_value_t = 1000, value_parser = within(1u64..=1_000_000_000))]
    pub interval: u64,
    /// How much longer the interval of each further thread is, in us.
    #[arg(short, long, default_value_t = 500, value_parser = within(0u64..=1_000_000_000))]
    pub distance: u64,
    /// Cycles of the first thread; 0 for no such limit.
    #[arg(short, long, default_value_t = 0, value_parser = within(0u64..=1_000_000_000))]
    pub loops: u64,
    /// Length of the run in s; 0 for no such limit.
    #[arg(short = 'D', long, default_value_t = 0, value_parser = seconds)]
    pub duration: u64,
    /// Print a histogram of so many us; 0 for none. With one, all threads have the first one's interval, whatever
    /// `-d` says (measured: `-t 3 -l 200 -h 5 -d 500` counts 200 cycles of each thread).
    #[arg(short = 'h', long, default_value_t = 0, value_parser = within(0u64..=1_000_000))]
    pub histogram: u64,
    /// The same, with a column for all threads together.
    #[arg(short = 'H', long, default_value_t = 0, value_parser = within(0u64..=1_000_000))]
    pub histofall: u64,
    /// Policy of the threads.
    #[arg(long, default_value = "other", value_parser = policy)]
    pub policy: PolicyOfThreads,
    /// Lock the memory, which has no effect here.
    #[arg(short, long)]
    pub mlockall: bool,
    /// Shapes the output, which is not simulated.
    #[arg(short, long)]
    pub quiet: bool,
    /// The same.
    #[arg(short = 'M', long = "refresh_on_max")]
    pub refresh_on_max: bool,
    /// The same.
    #[arg(short, long)]
    pub unbuffered: bool,
    /// The same.
    #[arg(short = 'N', long)]
    pub nsecs: bool,
    /// Leave idle states as they are.
    #[arg(long)]
    pub default_system: bool,
    /// The same.
    #[arg(long)]
    pub laptop: bool,
}

/// A policy by its name in cyclictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyOfThreads(Policy);

fn policy(name: &str) -> Result<PolicyOfThreads, String> {
    Ok(PolicyOfThreads(match name {
        "other" | "normal" => Policy::Other,
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        _ => return Err("other classes than the fair one are not simulated".into()),
    }))
}

fn seconds(text: &str) -> Result<u64, String> {
    crate::seconds::seconds(text, "smhd", 0)
}

impl Cyclictest {
    /// Reads the options, without the leading `cyclictest`.
    ///
    /// # Errors
    /// An option that the tool does not have or that cannot be simulated (`-p`, `-a`, `-r`), one that is out of range, or
    /// no end at all.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, WorkloadError> {
        let mut parsed = Self::try_parse_from(words).map_err(|e| usage("cyclictest", ALLOWED, &e))?;
        if parsed.histogram > 0 || parsed.histofall > 0 {
            parsed.distance = 0;
        }
        if parsed.loops == 0 && parsed.duration == 0 {
            return Err(WorkloadError::Usage(format!(
                "cyclictest: neither -l nor -D: it would never end (allowed: {ALLOWED})"
            )));
        }
        Ok(parsed)
    }

    /// The workload that these options mean, with loops and duration shortened by `scale`.
    pub fn workload(&self, scale: Scale) -> Workload {
        let limit = |limit: u64| if limit == 0 { u64::MAX } else { scale.of(limit) };
        let mut programs = vec![self.main()];
        programs.extend((0..self.threads).map(|thread| self.thread(thread, limit(self.loops))));
        let threads =
            vec![Attributes { policy: self.policy.0, ..Attributes::default() }; self.threads as usize];
        let tunes = "cyclictest forbids deep idle states (/dev/cpu_dma_latency) unless --default-system or --laptop is \
                     given; here CPUs enter all that the machine has";
        let notes = if self.default_system || self.laptop { Vec::new() } else { vec![tunes.to_owned()] };
        Workload {
            name: self.command(),
            programs,
            footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
            attributes: std::iter::once(Attributes::default()).chain(threads).collect(),
            roles: std::iter::once(Role::One("cyclictest".into()))
                .chain((0..self.threads).map(|_| Role::Each("cyclictest thread")))
                .collect(),
            shared: Shared { barriers: vec![self.threads + 1], timers: self.threads, ..Shared::default() },
            limits: Limits { time_ns: limit(self.duration.saturating_mul(1_000_000_000)), events: u64::MAX },
            cpu_sets: (0..self.threads).map(CpuChoice::InTurn).collect(),
            notes,
            ..Workload::default()
        }
    }

    fn main(&self) -> Program {
        (0..self.threads)
            .fold(ProgramBuilder::default(), |b, thread| {
                b.op(Op::Spawn { program: 1 + thread, base: 0, process: false })
            })
            .op(Op::Barrier { barrier: 0, starts: true })
            .until_stopped(|b| b.op(Op::Sleep { ns: MAIN_NS }))
            .op(Op::WaitChildren)
            .op(Op::MarkEnd)
            .build()
    }

    fn thread(&self, thread: u32, loops: u64) -> Program {
        let period_ns = (self.interval + u64::from(thread) * self.distance) * 1000;
        ProgramBuilder::default()
            .op(Op::SetAffinity { set: Some(thread) })
            .op(Op::Barrier { barrier: 0, starts: true })
            .op(Op::Origin)
            .at_most_until_stopped(loops, |b| {
                b.op(Op::EventStart)
                    .op(Op::Timer { timer: thread, period_ns, relative: false })
                    .op(Op::Run { ns: CYCLE_NS })
                    .op(Op::EventEnd)
            })
            .op(Op::Stop)
            .build()
    }

    fn command(&self) -> String {
        let policy = match self.policy.0 {
            Policy::Other => "other",
            Policy::Batch => "batch",
            Policy::Idle => "idle",
        };
        format!(
            "cyclictest -t {} -i {} -d {} -l {} -D {} --policy={policy}",
            self.threads, self.interval, self.distance, self.loops, self.duration
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn defaults_are_the_real_tools() {
        let c = Cyclictest::parse(["-l", "5"].into_iter()).unwrap();
        assert_eq!((c.threads, c.interval, c.distance, c.loops, c.duration), (1, 1000, 500, 5, 0));
    }

    #[test]
    fn each_thread_has_a_longer_interval_than_the_one_before() {
        let w = parse("cyclictest -t 3 -i 200 -d 100 -l 10 -q --policy=batch", Scale::FULL).unwrap();
        let period = |program: &Program| {
            program.iter().find_map(|op| match op {
                Op::Timer { period_ns, .. } => Some(*period_ns),
                _ => None,
            })
        };
        let periods: Vec<_> = w.programs.iter().map(period).collect();
        assert_eq!(periods, [None, Some(200_000), Some(300_000), Some(400_000)]);
        assert_eq!(w.attributes(0).policy, Policy::Other, "main");
        assert!((1..=3).all(|program| w.attributes(program).policy == Policy::Batch));
        assert_eq!(w.notes.len(), 1, "the idle states: {:?}", w.notes);
        assert_eq!(parse("cyclictest -l 1000 --laptop", Scale(100_000)).unwrap().notes, [""; 0]);
    }

    #[test]
    fn options_of_one_letter_may_be_one_word_and_times_have_units() {
        let parse = |options: &str| parse(&format!("cyclictest {options}"), Scale::FULL).unwrap();
        assert_eq!(parse("-mqNMu -D 1m").limits.time_ns, 60_000_000_000);
        assert_eq!(parse("-mq -D 90").limits.time_ns, parse("-D 90s").limits.time_ns);
    }

    #[test]
    fn a_histogram_is_of_threads_with_one_interval() {
        let parse = |options: &str| parse(&format!("cyclictest -t 3 -l 10 {options}"), Scale::FULL).unwrap();
        let together = parse("-d 0");
        for option in ["-h 5 -d 700", "-h5", "--histogram=5", "-H 5", "--histofall 5"] {
            let w = parse(option);
            assert_eq!(
                (w.programs, w.notes),
                (together.programs.clone(), together.notes.clone()),
                "{option}"
            );
        }
        assert_ne!(parse("-h 0").programs, together.programs);
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_by_name() {
        for (bad, part) in [
            ("-l 5 -p 80", "'-p'"),
            ("-l 5 --policy=fifo", "other classes than the fair one are not simulated"),
            ("-l 5 -a 1", "'-a'"),
            ("-t 2", "it would never end"),
            ("-l 5 -t 0", "allowed are 1 to 100000"),
        ] {
            let e = Cyclictest::parse(bad.split_whitespace()).unwrap_err().to_string();
            assert!(e.contains(part) && e.contains("allowed: "), "{bad}: {e}");
        }
    }
}
