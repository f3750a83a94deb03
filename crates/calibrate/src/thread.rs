//! Threads as the measurements need them: pinned, of a scheduling class, timed.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Scheduling classes below the normal one.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    /// Its wakeups preempt nobody.
    Batch = libc::SCHED_BATCH as isize,
    /// Every wakeup preempts it.
    Idle = libc::SCHED_IDLE as isize,
}

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// The kernel refuses, for instance because a cpuset leaves these CPUs out.
pub(crate) fn pin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// The CPUs on which the calling thread may run, which it gets back when this is dropped.
pub(crate) struct Allowed(CpuSet);

impl Allowed {
    /// Those that it has now.
    ///
    /// # Errors
    /// The kernel does not say: the machine has more CPUs than fit into a set.
    pub(crate) fn now() -> io::Result<Allowed> {
        Ok(Allowed(sched_getaffinity(None)?))
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        // the kernel allowed them before
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// May the calling thread run on this CPU?
pub(crate) fn is_allowed(cpu: usize) -> bool {
    sched_getaffinity(None).is_ok_and(|set| set.is_set(cpu))
}

/// Changes the scheduling class of the calling thread.
pub(crate) fn set_class(class: Class) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure outlives the call, and 0 is the calling thread
    match unsafe { libc::sched_setscheduler(0, class as i32, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Threads wait here until all are there.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    threads: usize,
    open: bool,
}

impl Gate {
    /// Waits until it is opened.
    pub(crate) fn pass(&self) {
        let mut state = self.lock();
        state.threads += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| !state.open));
    }

    /// Opens it when all of the threads that were started for it wait. If one of them could not be started, it opens at
    /// once, so that the others end.
    pub(crate) fn open_for<T>(&self, started: io::Result<Vec<T>>) -> io::Result<Vec<T>> {
        let expected = started.as_ref().map_or(0, Vec::len);
        let all_there = self.changed.wait_while(self.lock(), |state| state.threads < expected);
        all_there.expect(UNPOISONED).open = true;
        self.changed.notify_all();
        started
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "nothing panics with the lock";

fn clock_ns(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// CPU time of the calling thread, in ns.
pub(crate) fn thread_cpu_ns() -> f64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of the process, in ns.
pub(crate) fn process_cpu_ns() -> f64 {
    clock_ns(ClockId::ProcessCPUTime)
}

/// How long `work` takes, in ns.
pub(crate) fn elapsed_ns(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

/// Context switches of the calling thread so far, of its own accord or not.
pub(crate) fn switches() -> i64 {
    // SAFETY: all zeros is a valid rusage, which the call overwrites
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: as above
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nvcsw + usage.ru_nivcsw
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_pass_a_gate_together_or_if_one_of_them_cannot_be_started() {
        let refused = || io::Error::from(io::ErrorKind::WouldBlock);
        for failed in [false, true] {
            let gate = Gate::default();
            let passed = thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| gate.pass())).collect();
                gate.open_for(if failed { Err(refused()) } else { Ok(threads) }).is_ok()
            });
            assert_eq!(passed, !failed);
        }
    }
}
