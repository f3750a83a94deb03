//! Wakeups from one CPU on another one: interrupts, and how deep the other one sleeps.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::{MembarrierCommand, membarrier};

use crate::sample::Sample;
use crate::thread::{Class, elapsed_ns, pin, set_class, thread_cpu_ns};

/// Wakeups of each kind, and the time in which there may be more: after short sleeps, they are fast and slow in turn for
/// some hundred wakeups.
const WAKEUPS: std::ops::RangeInclusive<usize> = 60..=1_000;
const WAKEUP_TIME: Duration = Duration::from_millis(60);

/// Interrupts that are sent to a busy CPU.
const INTERRUPTS: usize = 300;

/// What messages go through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Pipe,
    /// Local sockets, as many as a group of hackbench by default has half of.
    Sockets,
}

impl Channel {
    /// Channels, and messages that each takes in a turn.
    fn turn(self) -> (usize, usize) {
        match self {
            // of STREAM_BYTES, a pipe has room for 64
            Channel::Pipe => (1, 50),
            Channel::Sockets => (10, 20),
        }
    }

    /// The ends to read from and to write to.
    fn open(self) -> io::Result<(OwnedFd, OwnedFd)> {
        Ok(match self {
            Channel::Pipe => rustix::pipe::pipe()?,
            Channel::Sockets => {
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?
            }
        })
    }
}

/// A write and a read of a message.
pub(crate) struct Turns {
    pub(crate) write: Sample,
    pub(crate) read: Sample,
}

/// Messages of `bytes` that a thread on `from` writes and one on `to` reads. They take turns, so that neither waits for the
/// other within one.
pub(crate) fn turns(channel: Channel, from: usize, to: usize, bytes: usize) -> io::Result<Turns> {
    // enough to warm up, and 40,000 messages or more
    let turns = if channel == Channel::Pipe { 2_000 } else { 500 };
    let (channels, messages) = channel.turn();
    let ends = (0..channels).map(|_| channel.open()).collect::<io::Result<Vec<_>>>()?;
    let each = (channels * messages) as f64;
    let (written, read) = (AtomicU64::new(0), AtomicU64::new(0));
    // both may be on one CPU
    let wait_for = |turns: &AtomicU64, turn| {
        while turns.load(Ordering::Acquire) < turn {
            rustix::thread::sched_yield();
        }
    };
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            pin(&[from])?;
            let message = vec![0; bytes];
            let writes = (1..=turns).map(|turn| {
                let ns = elapsed_ns(|| {
                    for (_, writer) in &ends {
                        for _ in 0..messages {
                            assert_eq!(
                                rustix::io::write(writer, &message),
                                Ok(bytes),
                                "there is room for it"
                            );
                        }
                    }
                });
                written.store(turn, Ordering::Release);
                wait_for(&read, turn);
                ns / each
            });
            io::Result::Ok(Sample::of(writes.collect()))
        });
        pin(&[to])?;
        let mut message = vec![0; bytes];
        let reads = (1..=turns).map(|turn| {
            wait_for(&written, turn);
            let ns = elapsed_ns(|| {
                for (reader, _) in &ends {
                    for _ in 0..messages {
                        assert_eq!(
                            rustix::io::read(reader, &mut message),
                            Ok(bytes),
                            "all of it was written"
                        );
                    }
                }
            });
            read.store(turn, Ordering::Release);
            ns / each
        });
        let read = Sample::of(reads.collect());
        let write = writing.join().expect("the writer does not panic")?;
        Ok(Turns { write, read })
    })
}

/// A message of `bytes` in a pipe from a thread on `from` to one on `to`. Both are always busy, and the reader is always
/// some messages behind.
pub(crate) fn stream(from: usize, to: usize, bytes: usize) -> io::Result<Sample> {
    const BATCHES: usize = 200;
    const MESSAGES: usize = 250;
    // a pipe has room for twice as many
    const BEHIND: u64 = 300;
    let (reader, writer) = rustix::pipe::pipe()?;
    let written = AtomicU64::new(0);
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            pin(&[to])?;
            while written.load(Ordering::Acquire) < BEHIND {
                std::hint::spin_loop();
            }
            let mut message = vec![0; bytes];
            for _ in 0..BATCHES * MESSAGES {
                assert_eq!(
                    rustix::io::read(&reader, &mut message),
                    Ok(bytes),
                    "messages are read as they were written"
                );
            }
            io::Result::Ok(())
        });
        pin(&[from])?;
        let message = vec![0; bytes];
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let start = Instant::now();
            for _ in 0..MESSAGES {
                rustix::io::write(&writer, &message)?;
                written.fetch_add(1, Ordering::Release);
            }
            batches.push(start.elapsed().as_nanos() as f64 / MESSAGES as f64);
        }
        reading.join().expect("the reader does not panic")?;
        Ok(Sample::of(batches))
    })
}

/// Turns of which the mean is taken: single ones scatter more than the figure, because the CPU has stopped its tick or not.
const TURNS: usize = 25;

/// A wakeup on another CPU.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    /// The write that wakes, in the waker.
    pub(crate) wake: Sample,
    /// From the start of that write until the woken task is back in user space.
    pub(crate) latency: Sample,
    /// CPU time of the woken task from one return to user space to the next.
    pub(crate) turn: Sample,
}

/// One such wakeup: its times in ns, as in [`Remote`].
struct Woken {
    wake: f64,
    latency: f64,
    turn: f64,
}

/// The woken task, which says when it was back.
struct Sleeper {
    origin: Instant,
    woken_at: AtomicU64,
    /// CPU time of its last turn, in ns.
    turn: AtomicU64,
}

impl Sleeper {
    fn run(&self, cpu: usize, reader: &OwnedFd) -> io::Result<()> {
        pin(&[cpu])?;
        let mut before = thread_cpu_ns();
        while rustix::io::read(reader, &mut [0])? == 1 {
            let woken_at = self.origin.elapsed().as_nanos() as u64;
            let now = thread_cpu_ns();
            self.turn.store((now - before) as u64, Ordering::Relaxed);
            before = now;
            self.woken_at.store(woken_at, Ordering::Release);
        }
        Ok(())
    }

    /// Wakes it from this CPU after it has slept for about `idle`.
    fn wake(&self, writer: &OwnedFd, idle: Duration) -> Woken {
        let asleep = Instant::now();
        while asleep.elapsed() < idle {
            std::hint::spin_loop();
        }
        self.woken_at.store(0, Ordering::Relaxed);
        let start = self.origin.elapsed().as_nanos() as u64;
        let wake = elapsed_ns(|| assert_eq!(rustix::io::write(writer, &[1]), Ok(1), "the sleeper is there"));
        let woken_at = loop {
            match self.woken_at.load(Ordering::Acquire) {
                0 => std::hint::spin_loop(),
                at => break at,
            }
        };
        Woken {
            wake,
            latency: woken_at.saturating_sub(start) as f64,
            turn: self.turn.load(Ordering::Relaxed) as f64,
        }
    }
}

/// Wakes a task on `to` from `from`, for each of the times that it has slept before.
/// With `busy` a task that every wakeup preempts runs there meanwhile, so that the CPU is not idle.
pub(crate) fn wakeups(from: usize, to: usize, slept: &[Duration], busy: bool) -> io::Result<Vec<Remote>> {
    let (reader, writer) = rustix::pipe::pipe()?;
    let sleeper = Sleeper { origin: Instant::now(), woken_at: AtomicU64::new(0), turn: AtomicU64::new(0) };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sleeping = scope.spawn(|| sleeper.run(to, &reader));
        let spinning = busy.then(|| scope.spawn(|| spin(to, &done)));
        pin(&[from])?;
        thread::sleep(Duration::from_millis(20));
        let remotes = slept.iter().map(|slept| {
            let fit = WAKEUP_TIME.as_nanos() / slept.as_nanos().max(1);
            let wakeups = (fit as usize).clamp(*WAKEUPS.start(), *WAKEUPS.end());
            let woken: Vec<_> = (0..wakeups).map(|_| sleeper.wake(&writer, *slept)).collect();
            let mean_turn = |turns: &[Woken]| turns.iter().map(|w| w.turn).sum::<f64>() / turns.len() as f64;
            Remote {
                wake: Sample::of(woken.iter().map(|w| w.wake).collect()),
                latency: Sample::of(woken.iter().map(|w| w.latency).collect()),
                turn: Sample::of(woken.chunks(TURNS).map(mean_turn).collect()),
            }
        });
        let remotes = remotes.collect();
        done.store(true, Ordering::Relaxed);
        drop(writer);
        sleeping.join().expect("the sleeper does not panic")?;
        spinning.map_or(Ok(()), |spinning| spinning.join().expect("the spinner does not panic"))?;
        Ok(remotes)
    })
}

fn spin(cpu: usize, done: &AtomicBool) -> io::Result<()> {
    pin(&[cpu])?;
    set_class(Class::Idle)?;
    while !done.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    Ok(())
}

/// What a busy task on `to` loses to an interrupt. `from` interrupts it by a barrier that all threads of the process
/// take part in. None where the kernel has none (CONFIG_MEMBARRIER).
pub(crate) fn interrupt(from: usize, to: usize) -> io::Result<Option<Sample>> {
    if membarrier(MembarrierCommand::RegisterPrivateExpedited).is_err() {
        return Ok(None);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| gaps(to, &done));
        pin(&[from])?;
        thread::sleep(Duration::from_millis(5));
        let mut sent = Vec::new();
        for _ in 0..INTERRUPTS {
            // one at a time, so that each makes a gap of its own
            thread::sleep(Duration::from_micros(200));
            sent.push(Instant::now());
            membarrier(MembarrierCommand::PrivateExpedited)?;
        }
        done.store(true, Ordering::Relaxed);
        let gaps = receiving.join().expect("the receiver does not panic")?;
        let of = |sent: &Instant| {
            let near = gaps.iter().filter(|gap| gap.end > *sent && gap.start < *sent + NEAR);
            near.map(|gap| (gap.end - gap.start).as_nanos() as f64).max_by(f64::total_cmp)
        };
        let handled: Vec<f64> = sent.iter().filter_map(of).collect();
        Ok((!handled.is_empty()).then(|| Sample::of(handled)))
    })
}

/// A time in which a busy thread did not get on.
struct Gap {
    start: Instant,
    end: Instant,
}

/// A gap that begins within this time of an interrupt is because of it.
const NEAR: Duration = Duration::from_micros(40);

fn gaps(cpu: usize, done: &AtomicBool) -> io::Result<Vec<Gap>> {
    pin(&[cpu])?;
    let (mut gaps, mut start) = (Vec::new(), Instant::now());
    while !done.load(Ordering::Relaxed) {
        let end = Instant::now();
        if end - start > SHORTEST_GAP {
            gaps.push(Gap { start, end });
        }
        start = end;
    }
    Ok(gaps)
}

/// Two readings of the clock are closer together than this unless an interrupt comes between.
const SHORTEST_GAP: Duration = Duration::from_nanos(250);
