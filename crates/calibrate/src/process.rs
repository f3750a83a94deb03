//! Threads and processes: making them, their first steps, their end.

use std::io;
use std::thread;

use crate::sample::Sample;
use crate::thread::{Gate, process_cpu_ns, thread_cpu_ns};

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
        let all_there = Gate::default();
        let (all, own) = (process_cpu_ns(), thread_cpu_ns());
        let of_children: f64 = thread::scope(|scope| {
            let child = |_| {
                let before = thread_cpu_ns();
                let child = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
                    let started = thread_cpu_ns();
                    all_there.pass();
                    (started, thread_cpu_ns())
                });
                create.push(thread_cpu_ns() - before);
                child
            };
            let children = all_there.open_for((0..THREADS).map(child).collect())?;
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

/// CPU time of the life of a process.
pub(crate) struct Process {
    /// In its parent.
    pub(crate) fork: Sample,
    /// In itself, after its own code has ended.
    pub(crate) exit: Sample,
}

/// Creates processes that end at once. A fork copies the page tables, also those of memory that was freed but not given
/// back, and the end of the child drops them.
pub(crate) fn processes() -> io::Result<Process> {
    // SAFETY: it may be called at any time
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    let lived = Shared::new()?;
    let (mut fork, mut exit) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        let (mut of_parent, mut of_ends) = (0.0, 0.0);
        for _ in 0..CHILDREN {
            let before = thread_cpu_ns();
            // SAFETY: the child only reads a clock, writes to the page and calls _exit(), whatever other threads held
            let child = match unsafe { libc::fork() } {
                0 => {
                    lived.set(thread_cpu_ns());
                    unsafe { libc::_exit(0) }
                }
                -1 => return Err(io::Error::last_os_error()),
                child => child,
            };
            of_parent += thread_cpu_ns() - before;
            of_ends += (cpu_ns_until_its_end(child)? - lived.get()).max(0.0);
        }
        fork.push(of_parent / CHILDREN as f64);
        exit.push(of_ends / CHILDREN as f64);
    }
    Ok(Process { fork: Sample::of(fork), exit: Sample::of(exit) })
}

/// Waits for a child, and returns its CPU time.
fn cpu_ns_until_its_end(child: libc::pid_t) -> io::Result<f64> {
    // SAFETY: all zeros is a valid rusage; it is a child of this process, whose status is not wanted
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(child, std::ptr::null_mut(), 0, &raw mut usage), usage)
    };
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    if waited == child {
        Ok(ns(usage.ru_utime) + ns(usage.ru_stime))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A number that this process and its children share.
struct Shared(*mut f64);

impl Shared {
    fn new() -> io::Result<Shared> {
        let (rw, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which nothing else uses
        let page = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<f64>(), rw, shared, -1, 0) };
        if page == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Shared(page.cast())) }
    }

    fn set(&self, value: f64) {
        // SAFETY: the mapping is writable, aligned, and lives as long as this
        unsafe { self.0.write_volatile(value) }
    }

    fn get(&self) -> f64 {
        // SAFETY: as above; no child writes any more when the parent reads
        unsafe { self.0.read_volatile() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size
        unsafe { libc::munmap(self.0.cast(), size_of::<f64>()) };
    }
}
