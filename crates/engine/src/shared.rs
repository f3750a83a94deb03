//! Objects that tasks share besides channels: mutexes, conditions, barriers, flags, lists,
//! timers. This module has only their state; `sync` has the operations on them.

use crate::contention::{Line, Lock};
use coreward_workload::{Limits, Shared as Counts};
use std::collections::VecDeque;

/// How many requests may wait for a task before it gets no more (schbench's `batch`).
pub(crate) const MAX_REQUESTS: u32 = 128;

/// A futex: a word that is written in user space, and the tasks that wait for it in the kernel.
#[derive(Clone, Default)]
pub(crate) struct Futex {
    /// The word's line.
    pub(crate) line: Line,
    /// The lock of its hash bucket (kernel/futex/core.c).
    pub(crate) bucket: Lock,
    pub(crate) waiters: VecDeque<u32>,
}

/// The value of a mutex's word (glibc's low-level lock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MutexState {
    #[default]
    Free,
    Locked,
    /// Locked, and a task may be waiting: the task that unlocks it has to call the kernel.
    Contended,
}

#[derive(Clone, Default)]
pub(crate) struct Mutex {
    pub(crate) state: MutexState,
    pub(crate) futex: Futex,
}

#[derive(Clone)]
pub(crate) struct Barrier {
    pub(crate) needs: u32,
    pub(crate) arrived: u32,
    pub(crate) futex: Futex,
}

#[derive(Clone, Default)]
pub(crate) struct Flag {
    pub(crate) set: bool,
    /// Requests that wait to be taken.
    pub(crate) requests: u32,
    /// The time that the task which set it read from the clock.
    pub(crate) posted_at: Option<u64>,
    pub(crate) futex: Futex,
}

#[derive(Clone, Default)]
pub(crate) struct Semaphore {
    /// Of each message that nobody has taken yet, the semaphore on which its sender awaits the answer.
    pub(crate) messages: VecDeque<Option<u32>>,
    /// How often a wait ended although nothing had come; so many later additions do not count.
    pub(crate) owed: u64,
    /// Tasks, and how many messages each needs.
    pub(crate) waiters: VecDeque<(u32, u32)>,
    /// What it stands for is a socket, or several.
    pub(crate) socket: Option<Ends>,
}

/// The CPUs that have the lines of a socket.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ends {
    /// On which a message was sent last.
    pub(crate) sender: u32,
    /// On which one was received last.
    pub(crate) receiver: u32,
}

#[derive(Clone, Default)]
pub(crate) struct List {
    pub(crate) line: Line,
    pub(crate) flags: Vec<u32>,
    /// Flags taken from `flags` that have yet to be set.
    pub(crate) posting: Vec<u32>,
    /// When they were taken.
    pub(crate) taken_at: u64,
}

/// The spinlock that a program keeps for each CPU.
#[derive(Clone, Default)]
pub(crate) struct CpuLock {
    pub(crate) line: Line,
    pub(crate) locked: bool,
    pub(crate) spinners: Vec<u32>,
}

pub(crate) struct Shared {
    pub(crate) mutexes: Vec<Mutex>,
    mutex_bytes: u32,
    mutexes_at: u32,
    line_bytes: u32,
    /// The cache lines of the mutexes.
    pub(crate) mutex_lines: Vec<Line>,
    pub(crate) conds: Vec<Futex>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) semaphores: Vec<Semaphore>,
    /// The first of them that is a channel.
    pub(crate) first_channel: usize,
    pub(crate) lists: Vec<List>,
    /// Last expiry of each timer; None before its first use.
    pub(crate) timers: Vec<Option<u64>>,
    pub(crate) cpu_locks: Vec<CpuLock>,
    /// The counter of turns, and its line.
    pub(crate) turns: u32,
    pub(crate) turns_line: Line,
}

/// Where in a mutex its type is, in bytes: behind the lock, a counter, the owner and the users (glibc, struct
/// __pthread_mutex_s of x86-64 and arm64).
const MUTEX_TYPE_AT: u32 = 16;

impl Shared {
    pub(crate) fn new(counts: &Counts, nr_cpus: usize, line_bytes: u32) -> Self {
        let lines = counts.mutex_bytes.div_ceil(line_bytes).max(1) as usize;
        let barrier = |needs: &u32| Barrier { needs: *needs, arrived: 0, futex: Futex::default() };
        let mut semaphores = vec![Semaphore::default(); counts.semaphores as usize];
        for socket in &counts.sockets {
            semaphores[*socket as usize].socket = Some(Ends::default());
        }
        Shared {
            mutexes: vec![Mutex::default(); counts.mutexes as usize],
            mutex_bytes: counts.mutex_bytes,
            mutexes_at: counts.mutexes_at,
            line_bytes,
            mutex_lines: vec![Line::default(); counts.mutexes as usize * lines + 2],
            conds: vec![Futex::default(); counts.conds as usize],
            barriers: counts.barriers.iter().map(barrier).collect(),
            flags: vec![Flag::default(); counts.flags as usize],
            semaphores,
            first_channel: (counts.semaphores - counts.channels) as usize,
            lists: vec![List::default(); counts.lists as usize],
            timers: vec![None; counts.timers as usize],
            cpu_locks: vec![CpuLock::default(); nr_cpus],
            turns: 0,
            turns_line: Line::default(),
        }
    }

    /// Which lines a mutex has its type and its lock on.
    pub(crate) fn lines_of_mutex(&self, mutex: u32) -> [usize; 2] {
        let line = |at: u32| match self.mutex_bytes {
            0 => mutex as usize,
            bytes => ((self.mutexes_at + mutex * bytes + at) / self.line_bytes) as usize,
        };
        [line(MUTEX_TYPE_AT), line(0)]
    }

    /// Removes all tasks that wait for a condition, a barrier, a flag or a semaphore.
    pub(crate) fn take_waiters(&mut self) -> Vec<u32> {
        let semaphores =
            self.semaphores.iter_mut().flat_map(|semaphore| std::mem::take(&mut semaphore.waiters));
        let semaphores: Vec<u32> = semaphores.map(|(task, _)| task).collect();
        let conds = self.conds.iter_mut();
        let barriers = self.barriers.iter_mut().map(|b| &mut b.futex);
        let flags = self.flags.iter_mut().map(|f| &mut f.futex);
        let futexes = conds.chain(barriers).chain(flags).flat_map(|futex| std::mem::take(&mut futex.waiters));
        futexes.chain(semaphores).collect()
    }
}

/// Decides when loops that last until the workload stops end.
pub(crate) struct Stop {
    limits: Limits,
    started_at: Option<u64>,
    repetitions: u64,
    pub(crate) stopped: bool,
}

impl Stop {
    pub(crate) fn new(limits: Limits) -> Self {
        Stop { limits, started_at: None, repetitions: 0, stopped: false }
    }

    /// The measured time begins.
    pub(crate) fn start(&mut self, now: u64) {
        self.started_at = Some(now);
    }

    /// Repetitions so far.
    pub(crate) fn repetitions(&self) -> u64 {
        self.repetitions
    }

    /// How many times as long as `ns` it takes until a limit is reached, with that many repetitions in `ns`; infinite
    /// without a limit.
    pub(crate) fn left(&self, now: u64, ns: f64, repetitions: f64) -> f64 {
        let Limits { time_ns, events } = self.limits;
        let elapsed = self.started_at.map_or(0, |start| now - start);
        let by_time =
            if time_ns == u64::MAX { f64::INFINITY } else { time_ns.saturating_sub(elapsed) as f64 / ns };
        let by_events = if events == u64::MAX {
            f64::INFINITY
        } else {
            events.saturating_sub(self.repetitions) as f64 / repetitions
        };
        by_time.min(by_events)
    }

    /// The limits come nearer.
    pub(crate) fn skip(&mut self, ns: u64, repetitions: u64) {
        if self.limits.time_ns < u64::MAX {
            self.limits.time_ns -= ns;
        }
        self.repetitions += repetitions;
    }

    /// Is there another repetition? If so, counts it. Few ops ask, so this is kept off the path of all others.
    #[inline(never)]
    pub(crate) fn goes_on(&mut self, now: u64) -> bool {
        let over = self.started_at.is_some_and(|start| now - start >= self.limits.time_ns);
        if self.stopped || over || self.repetitions >= self.limits.events {
            return false;
        }
        self.repetitions += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_stops_by_time_by_events_or_by_order() {
        let mut s = Stop::new(Limits { time_ns: 100, events: 3 });
        assert!(s.goes_on(5000), "the time has not begun");
        s.start(5000);
        assert!(s.goes_on(5099));
        assert!(!s.goes_on(5100));
        assert!(s.goes_on(5050));
        assert!(!s.goes_on(5050), "three it was");
        let mut s = Stop::new(Limits::default());
        assert!(s.goes_on(u64::MAX));
        s.stopped = true;
        assert!(!s.goes_on(0));
    }

    #[test]
    fn a_mutex_may_have_its_type_on_the_line_of_the_next_ones_lock() {
        // locks at bytes 48, 88, 128, 168, and the types 16 bytes behind them
        let counts = Counts { mutexes: 4, mutex_bytes: 40, mutexes_at: 48, ..Counts::default() };
        let s = Shared::new(&counts, 1, 64);
        assert_eq!([0, 1, 2, 3].map(|i| s.lines_of_mutex(i)), [[1, 0], [1, 1], [2, 2], [2, 2]]);
        let s = Shared::new(&Counts { mutexes: 2, ..Counts::default() }, 1, 64);
        assert_eq!([0, 1].map(|i| s.lines_of_mutex(i)), [[0, 0], [1, 1]], "a line for each");
    }
}
