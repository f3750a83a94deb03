//! Where the time of a machine's CPUs went: parts that add up to all of it.

use serde::{Serialize, Serializer};

/// Builds [`Part`] from the table below: one line per part, `Variant name: meaning;`.
macro_rules! parts {
    ($($variant:ident $name:ident: $meaning:literal;)+) => {
        /// What a CPU spends time on. At any time it is exactly one of these.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Part {
            $(#[doc = $meaning] $variant,)+
        }

        impl Part {
            /// Every part, in the order in which reports list them.
            pub const ALL: &[Part] = &[$(Part::$variant,)+];

            /// Name in JSON and tables.
            pub fn name(self) -> &'static str {
                match self { $(Part::$variant => stringify!($name),)+ }
            }

            /// What is counted.
            pub fn meaning(self) -> &'static str {
                match self { $(Part::$variant => $meaning,)+ }
            }
        }

        /// How many there are.
        pub const PARTS: usize = Part::ALL.len();
    };
}

parts! {
    Task task: "the tasks' own code and their system calls";
    Spin spin: "tasks that spin until a lock is free";
    ChannelLock channel_lock: "waiting for the locks of pipes and sockets";
    ChannelLines channel_lines: "cache lines of pipes, sockets and messages that come from other CPUs";
    FileLines file_lines: "cache lines of the reference counts of files that threads share, and waiting for them";
    FutexLines futex_lines: "cache lines of mutexes, futexes and other shared words, and waiting for them";
    Wakeup wakeup: "waking tasks: try_to_wake_up, interrupts that are sent, waiting for a task that still leaves its CPU";
    IdleScan idle_scan: "cache lines of the CPUs that a search for an idle one looks at";
    TaskLines task_lines: "cache lines of woken tasks and of runqueues, their locks included, that come from other CPUs";
    RqLock rq_lock: "waiting for the locks of runqueues";
    TgLoadAvg tg_load_avg: "the contended cache line of the task group's load average";
    Queue queue: "enqueue, dequeue and the choice of the next task";
    Switch switch: "context switches";
    MmCount mm_count: "the reference counts of the address spaces that idle CPUs keep, and waiting for their lines";
    Create create: "what new tasks do before their own code begins";
    Refill refill: "caches that are filled again after a switch or a migration";
    Balance balance: "load balancing of all kinds";
    LlcSearch llc_search: "searches for the last-level cache that a process prefers";
    Interrupt interrupt: "ticks and interrupts from other CPUs";
    IdleExit idle_exit: "leaving idle states";
    IdleWaiting idle_waiting: "idle while as many tasks waited elsewhere";
    Idle idle: "idle";
}

/// The time of all CPUs of a run by part, in ns. The parts add up to the number of CPUs times the time of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime([u64; PARTS]);

impl CpuTime {
    /// Time of these parts in ns, in the order of [`Part::ALL`].
    pub fn new(ns: [u64; PARTS]) -> CpuTime {
        CpuTime(ns)
    }

    /// The time of a part, in ns.
    pub fn ns(&self, part: Part) -> u64 {
        self.0[part as usize]
    }

    /// The time of all parts, in ns.
    pub fn total_ns(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl std::iter::Sum for CpuTime {
    fn sum<I: Iterator<Item = CpuTime>>(times: I) -> CpuTime {
        times.fold(CpuTime::default(), |sum, time| CpuTime(std::array::from_fn(|i| sum.0[i] + time.0[i])))
    }
}

/// As an object with the seconds of each part.
impl Serialize for CpuTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Part::ALL.iter().map(|part| (part.name(), self.ns(*part) as f64 / 1e9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_where_their_number_says() {
        for (i, part) in Part::ALL.iter().enumerate() {
            assert_eq!(*part as usize, i, "{}", part.name());
        }
    }

    #[test]
    fn times_add_up_part_by_part() {
        let one = CpuTime::new(std::array::from_fn(|i| i as u64));
        let sum: CpuTime = [one, one, one].into_iter().sum();
        assert_eq!(sum.ns(Part::Spin), 3);
        assert_eq!(sum.total_ns(), 3 * one.total_ns());
        let json = serde_json::to_value(CpuTime::new([1_500_000_000; PARTS])).unwrap();
        assert_eq!(json["idle_exit"], 1.5);
        assert_eq!(json.as_object().unwrap().len(), PARTS);
    }
}
