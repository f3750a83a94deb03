//! Threads and processes: making them, their first steps, their end.

use std::io;
use std::sync::Barrier;
use std::thread;

use crate::sample::Sample;
use crate::thread::{process_cpu_ns, thread_cpu_ns};

const BATCHES: usize = 50;
/// Processes of a batch.
const CHILDREN: usize = 10;

/// CPU time of the life of a thread.
pub(crate) struct Thread {
    /// In its creator.
    pub(crate) create: Sample,
    /// In itself, before its own code begins.
    pub(crate) start: Sample,
    /// In itself, after its own code has ended.
    pub(crate) exit: Sample,
}

/// Threads that live at the same time: more than the library keeps stacks for (40 MB, glibc's nptl/allocatestack.c),
/// so that each gets a new one, as the threads of a program do that creates all of them at its start.
const THREADS: usize = 20;
const STACK_BYTES: usize = 8 << 20;

/// Creates threads that do nothing, and lets them end when all are there.
pub(crate) fn threads() -> io::Result<Thread> {
    let (mut create, mut start, mut exit) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        let all_there = Barrier::new(THREADS + 1);
        let (all, own) = (process_cpu_ns(), thread_cpu_ns());
        let of_children: f64 = thread::scope(|scope| {
            let mut children = Vec::new();
            for _ in 0..THREADS {
                let before = thread_cpu_ns();
                let child = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
                    let started = thread_cpu_ns();
                    all_there.wait();
                    (started, thread_cpu_ns())
                })?;
                create.push(thread_cpu_ns() - before);
                children.push(child);
            }
            all_there.wait();
            let times =
                children.into_iter().map(|child| child.join().expect("it does nothing that could panic"));
            let (started, ended): (Vec<_>, Vec<_>) = times.unzip();
            start.extend(started);
            io::Result::Ok(ended.into_iter().sum())
        })?;
        let after_end = (process_cpu_ns() - all) - (thread_cpu_ns() - own) - of_children;
        exit.push(after_end / THREADS as f64);
    }
    Ok(Thread { create: Sample::of(create), start: Sample::of(start), exit: Sample::of(exit) })
}

/// `fork()`, in the parent: CPU time. The child ends at once. A fork copies the page tables, also those of memory that
/// was freed but not given back.
pub(crate) fn fork() -> io::Result<Sample> {
    // SAFETY: it may be called at any time
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let mut failed = None;
    let sample = Sample::repeat(BATCHES, || {
        let mut ns = 0.0;
        for _ in 0..CHILDREN {
            let before = thread_cpu_ns();
            // SAFETY: the child only calls _exit(), which may be called whatever other threads held
            let child = unsafe { libc::fork() };
            match child {
                0 => unsafe { libc::_exit(0) },
                -1 => failed = Some(io::Error::last_os_error()),
                _ => {
                    ns += thread_cpu_ns() - before;
                    // SAFETY: it is a child of this process; no status is wanted
                    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                }
            }
        }
        ns / CHILDREN as f64
    });
    failed.map_or(Ok(sample), Err)
}
