//! Switches and wakeups on one CPU.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::measure::MESSAGE_BYTES;
use crate::sample::Sample;
use crate::thread::{Class, elapsed_ns, pin, set_class, switches, thread_cpu_ns};

const BATCHES: usize = 200;
/// Tasks that one batch wakes.
const SLEEPERS: usize = 16;

/// A context switch, given what a `sched_yield()` without one takes: two threads on a CPU yield to each other,
/// and the kernel counts how often that made them switch.
pub(crate) fn context_switch(cpu: usize, yield_alone: Sample) -> io::Result<Sample> {
    const YIELDS: usize = 100;
    let (done, others) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            pin(&[cpu])?;
            while !done.load(Ordering::Relaxed) {
                rustix::thread::sched_yield();
                others.fetch_add(1, Ordering::Relaxed);
            }
            io::Result::Ok(())
        });
        pin(&[cpu])?;
        let sample = Sample::repeat(BATCHES, || {
            let (before, yields) = (switches(), others.load(Ordering::Relaxed));
            let ns = elapsed_ns(|| (0..YIELDS).for_each(|_| rustix::thread::sched_yield()));
            let yields = YIELDS as i64 + others.load(Ordering::Relaxed) - yields;
            // each switch away from this thread is followed by one back to it
            let switched = 2 * (switches() - before);
            (ns - yields as f64 * yield_alone.ns) / switched.max(1) as f64
        });
        done.store(true, Ordering::Relaxed);
        other.join().expect("the other thread does not panic")?;
        Ok(sample)
    })
}

/// Tasks that take turns on a CPU: many more than the address spaces that it tells apart.
const SPACES: usize = 16;
/// Rounds of a batch.
const ROUNDS: usize = 5;

/// What a switch takes longer if the CPU holds no translations of the next task's address space any more: of [`SPACES`]
/// processes that pass a message around through pipes, as hackbench's do, against as many threads, which have to count
/// references to their files (`shared_file` for each call). Tasks that only yield touch half as much memory.
pub(crate) fn tlb_refill(cpu: usize, shared_file: Sample) -> io::Result<Sample> {
    pin(&[cpu])?;
    let ring = Ring::new()?;
    let threads = thread::scope(|scope| {
        for task in 1..SPACES {
            let ring = &ring;
            scope.spawn(move || ring.pass_on(task));
        }
        ring.hops()
    });
    let children = (1..SPACES).map(|task| ring.child(task)).collect::<Vec<_>>();
    let all = children.iter().all(Result::is_ok);
    let processes = all.then(|| ring.hops());
    for child in children.iter().flatten() {
        if !all {
            kill_process(*child, Signal::KILL)?;
        }
        waitpid(Some(*child), WaitOptions::empty())?;
    }
    children.into_iter().collect::<io::Result<Vec<_>>>()?;
    let processes = processes.expect("all children are there");
    Ok(processes.and(shared_file.map(2.0)).without(threads))
}

/// Pipes through which tasks pass a message around; each reads from its own, and writes to that of the next one.
struct Ring(Vec<(OwnedFd, OwnedFd)>);

/// Begins the last message.
const LAST: u8 = 1;

impl Ring {
    fn new() -> io::Result<Ring> {
        Ok(Ring((0..SPACES).map(|_| rustix::pipe::pipe()).collect::<Result<Vec<_>, _>>()?))
    }

    fn send(&self, from: usize, message: &[u8]) {
        let (_, writer) = &self.0[(from + 1) % SPACES];
        assert_eq!(rustix::io::write(writer, message), Ok(message.len()), "a pipe has room for it");
    }

    fn receive(&self, task: usize, message: &mut [u8]) {
        let (reader, _) = &self.0[task];
        assert_eq!(rustix::io::read(reader, &mut *message), Ok(message.len()), "it is written at once");
    }

    /// What a task does, until the last message has passed.
    fn pass_on(&self, task: usize) {
        let mut message = [0; MESSAGE_BYTES];
        while message[0] != LAST {
            self.receive(task, &mut message);
            self.send(task, &message);
        }
    }

    /// What the message takes from one task to the next; the caller is the first one. The others end.
    fn hops(&self) -> Sample {
        let mut message = [0; MESSAGE_BYTES];
        let mut round = |first| {
            message[0] = first;
            self.send(0, &message);
            self.receive(0, &mut message);
        };
        let sample = Sample::repeat(BATCHES, || {
            elapsed_ns(|| (0..ROUNDS).for_each(|_| round(0))) / (ROUNDS * SPACES) as f64
        });
        round(LAST);
        sample
    }

    /// A child that passes messages on, at most until this process ends.
    fn child(&self, task: usize) -> io::Result<Pid> {
        // SAFETY: the child only calls prctl(), read(), write() and _exit(), which it may whatever other threads held
        match unsafe { libc::fork() } {
            0 => unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                self.pass_on(task);
                libc::_exit(0)
            },
            child => Pid::from_raw(child).filter(|_| child > 0).ok_or_else(io::Error::last_os_error),
        }
    }
}

/// What a wakeup takes on the CPU of the waker, and what it takes to run the woken.
pub(crate) struct Woken {
    /// A write to a pipe that wakes its reader, which does not preempt.
    pub(crate) wake: Sample,
    /// From one such reader to the next: it returns from its read, reads again, blocks, and the next one runs.
    pub(crate) turn: Sample,
}

/// Wakes [`SLEEPERS`] readers of pipes, one after the other, then lets them run. They are of a class
/// whose wakeups preempt nobody, and on the CPU of the waker.
pub(crate) fn wakeups(cpu: usize) -> io::Result<Woken> {
    let pipes = (0..SLEEPERS).map(|_| rustix::pipe::pipe()).collect::<Result<Vec<_>, _>>()?;
    let (readers, writers): (Vec<OwnedFd>, Vec<OwnedFd>) = pipes.into_iter().unzip();
    let (done, all_done) = rustix::pipe::pipe()?;
    thread::scope(|scope| {
        let sleepers: Vec<_> = readers
            .into_iter()
            .enumerate()
            .map(|(index, reader)| {
                let all_done = (index == SLEEPERS - 1).then_some(&all_done);
                scope.spawn(move || sleeper(cpu, &reader, all_done))
            })
            .collect();
        pin(&[cpu])?;
        // until all of them sleep
        thread::sleep(std::time::Duration::from_millis(20));
        let [wake, turn] = Sample::repeat_all(BATCHES, || {
            let start = Instant::now();
            for writer in &writers {
                rustix::io::write(writer, &[1]).expect("the reader is there");
            }
            let woken = start.elapsed().as_nanos() as f64;
            rustix::io::read(&done, &mut [0]).expect("the last sleeper writes");
            let turns = start.elapsed().as_nanos() as f64 - woken;
            [woken / SLEEPERS as f64, turns / (SLEEPERS + 1) as f64]
        });
        // end of file ends the sleepers
        drop(writers);
        for sleeper in sleepers {
            sleeper.join().expect("a sleeper does not panic")?;
        }
        Ok(Woken { wake, turn })
    })
}

/// How a reader gets the CPU from the task that has woken it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handover {
    /// The waker yields.
    Yield,
    /// The woken one preempts it.
    Preemption,
}

/// The CPU time that the kernel accounts to either of two tasks for one wakeup, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accounted {
    pub(crate) waker: Sample,
    pub(crate) woken: Sample,
}

impl Accounted {
    /// What the woken one has of a `total` that both have together.
    pub(crate) fn woken_of(self, total: f64) -> Sample {
        self.woken.map(total / (self.waker.ns + self.woken.ns))
    }
}

/// Wakes a reader of a pipe again and again, which reads a byte, and blocks, on the same CPU.
pub(crate) fn accounted(cpu: usize, handover: Handover) -> io::Result<Accounted> {
    const WAKEUPS: u64 = 50;
    let (reader, writer) = rustix::pipe::pipe()?;
    let (read, cpu_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let (reader, read, cpu_ns) = (&reader, &read, &cpu_ns);
        let woken = scope.spawn(move || {
            pin(&[cpu])?;
            if handover == Handover::Yield {
                set_class(Class::Batch)?;
            }
            while rustix::io::read(reader, &mut [0])? == 1 {
                let bytes = read.fetch_add(1, Ordering::Relaxed) + 1;
                if bytes % WAKEUPS == 0 {
                    cpu_ns.store(thread_cpu_ns() as u64, Ordering::Relaxed);
                }
            }
            io::Result::Ok(())
        });
        let waker = scope.spawn(move || {
            pin(&[cpu])?;
            if handover == Handover::Preemption {
                set_class(Class::Idle)?;
            }
            // until the reader sleeps
            thread::sleep(std::time::Duration::from_millis(20));
            let (mut written, mut before) = (0, None);
            let [waker, woken] = Sample::repeat_all(BATCHES, || {
                let start = thread_cpu_ns();
                for _ in 0..WAKEUPS {
                    rustix::io::write(&writer, &[1]).expect("the reader is there");
                    written += 1;
                    while read.load(Ordering::Relaxed) < written {
                        rustix::thread::sched_yield();
                    }
                }
                let all = cpu_ns.load(Ordering::Relaxed);
                let woken = all - before.replace(all).unwrap_or(all);
                [thread_cpu_ns() - start, woken as f64].map(|ns| ns / WAKEUPS as f64)
            });
            // end of file ends the reader
            drop(writer);
            io::Result::Ok(Accounted { waker, woken })
        });
        let accounted = waker.join().expect("the waker does not panic")?;
        woken.join().expect("the reader does not panic")?;
        Ok(accounted)
    })
}

/// Reads bytes until the pipe is closed; the last sleeper of a batch tells that it has run.
fn sleeper(cpu: usize, reader: &OwnedFd, all_done: Option<&OwnedFd>) -> io::Result<()> {
    pin(&[cpu])?;
    set_class(Class::Batch)?;
    while rustix::io::read(reader, &mut [0])? == 1 {
        if let Some(all_done) = all_done {
            rustix::io::write(all_done, &[1])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_is_divided_as_it_is_accounted() {
        let sample = |ns| Sample { ns, spread_ns: 8.0 };
        let found = Accounted { waker: sample(600.0), woken: sample(200.0) };
        assert_eq!(found.woken_of(1000.0), Sample { ns: 250.0, spread_ns: 10.0 });
    }

    #[test]
    fn both_tasks_of_a_wakeup_have_cpu_time() {
        for handover in [Handover::Yield, Handover::Preemption] {
            let found = accounted(0, handover).unwrap();
            assert!(found.waker.ns > 100.0 && found.woken.ns > 100.0, "{found:?}");
        }
    }
}
