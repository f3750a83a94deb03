//! Operations in the kernel that block nobody: system calls, pipes, sockets, copies.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use rustix::thread::futex;

use crate::sample::Sample;
use crate::thread::elapsed_ns;

/// Batches of each measurement.
const BATCHES: usize = 200;
/// Messages in a batch: they fit into a pipe and into a socket's buffer.
const MESSAGES: usize = 100;

/// `getppid()`: into the kernel and out of it.
pub(crate) fn system_call() -> Sample {
    const CALLS: usize = 500;
    Sample::repeat(BATCHES, || {
        let ns = elapsed_ns(|| {
            for _ in 0..CALLS {
                std::hint::black_box(rustix::process::getppid());
            }
        });
        ns / CALLS as f64
    })
}

/// `sched_yield()` of the only task of a CPU: a system call and a pass through the scheduler.
pub(crate) fn yield_alone() -> Sample {
    const CALLS: usize = 100;
    Sample::repeat(BATCHES, || {
        elapsed_ns(|| (0..CALLS).for_each(|_| rustix::thread::sched_yield())) / CALLS as f64
    })
}

/// A futex call that neither waits nor wakes: to wait for a word that has another value, or to wake where nobody waits.
pub(crate) fn futex(wait: bool) -> Sample {
    const CALLS: usize = 200;
    let word = AtomicU32::new(0);
    Sample::repeat(BATCHES, || {
        let ns = elapsed_ns(|| {
            for _ in 0..CALLS {
                let woken_or_refused = match wait {
                    true => futex::wait(&word, futex::Flags::PRIVATE, 1, None).map(|()| 0),
                    false => futex::wake(&word, futex::Flags::PRIVATE, 1),
                };
                std::hint::black_box(woken_or_refused).ok();
            }
        });
        ns / CALLS as f64
    })
}

/// What a message takes.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    pub(crate) write: Sample,
    pub(crate) read: Sample,
    /// What the read takes longer; less than 0 if the write does.
    longer: Sample,
}

impl Message {
    /// Either of both.
    pub(crate) fn mean(self) -> Sample {
        self.write.and(self.read).map(0.5)
    }

    /// The shorter of both.
    pub(crate) fn shorter(self) -> Sample {
        if self.longer.ns < 0.0 { self.read } else { self.write }
    }

    /// What the read takes longer than the write, or 0.
    pub(crate) fn read_longer(self) -> Sample {
        Sample { ns: self.longer.ns.max(0.0), ..self.longer }
    }

    /// What the write takes longer than the read, or 0.
    pub(crate) fn write_longer(self) -> Sample {
        Sample { ns: (-self.longer.ns).max(0.0), ..self.longer }
    }
}

/// What reads and writes of a pipe take because of its inode's times.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) write: Sample,
    pub(crate) read: Sample,
    /// They are part of a message on this kernel, which is older than 6.15.
    pub(crate) contained: bool,
}

/// A message of `bytes` on a pipe by its only user: messages are written until there are
/// [`MESSAGES`], then read, as benchmarks do that have a buffer between two tasks.
pub(crate) fn pipe(bytes: usize) -> io::Result<Message> {
    let (reader, writer) = rustix::pipe::pipe()?;
    let messages = MESSAGES.min(60_000 / bytes.next_power_of_two());
    Ok(fill_and_drain(SingleThreaded(writer), SingleThreaded(reader), bytes, messages))
}

/// What the times of a pipe's inode take. Since Linux 6.15 a pipe has none, but a FIFO, which is a pipe otherwise. Before, a
/// reader can do without; what a write takes longer than such a read is taken for the writer's.
pub(crate) fn pipe_times(bytes: usize, message: Message) -> io::Result<Times> {
    let contained = !is_since_6_15(rustix::system::uname().release().to_str().unwrap_or_default());
    if contained {
        let (reader, writer) = rustix::pipe::pipe()?;
        rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NOATIME)?;
        let without = fill_and_drain(SingleThreaded(writer), SingleThreaded(reader), bytes, MESSAGES);
        return Ok(Times {
            write: without.write_longer(),
            read: message.read.without(without.read),
            contained,
        });
    }
    let fifo = Fifo::new()?;
    let open = || File::options().read(true).write(true).open(&fifo.0).map(SingleThreaded);
    let with = fill_and_drain(open()?, open()?, bytes, MESSAGES);
    Ok(Times { write: with.write.without(message.write), read: with.read.without(message.read), contained })
}

/// Is a kernel with this name, such as `6.12.9-amd64`, of 6.15 or later?
fn is_since_6_15(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next()) >= (6, 15)
}

/// A FIFO of its own among the temporary files, which is removed at the end.
struct Fifo(PathBuf);

impl Fifo {
    fn new() -> io::Result<Fifo> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("coreward-fifo-{}-{number}", std::process::id()));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
        Ok(Fifo(path))
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// The same in a process that has a second thread, which sleeps.
pub(crate) fn pipe_of_threads(bytes: usize) -> io::Result<Message> {
    let (reader, writer) = rustix::pipe::pipe()?;
    in_two_threads(|| Ok(fill_and_drain(File::from(writer), File::from(reader), bytes, MESSAGES)))
}

/// A file that is read and written as by a process that never had a second thread. In one that had, the C library makes each
/// `read()` and `write()` a cancellation point for good, even in its children: 25 ns on a Xeon with Linux 6.18. `syscall()` of
/// the same library is none, and takes as long as `write()` did before the first thread, within a nanosecond.
struct SingleThreaded<F>(F);

impl<F: AsRawFd> SingleThreaded<F> {
    fn call(&self, number: libc::c_long, buffer: *const u8, bytes: usize) -> io::Result<usize> {
        // SAFETY: the callers have the buffer
        let done = unsafe { libc::syscall(number, self.0.as_raw_fd(), buffer, bytes) };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }
}

impl<F: AsRawFd> Read for SingleThreaded<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call(libc::SYS_read, buffer.as_ptr(), buffer.len())
    }
}

impl<F: AsRawFd> Write for SingleThreaded<F> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.call(libc::SYS_write, buffer.as_ptr(), buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes `messages` of `bytes`, then reads them.
fn fill_and_drain(mut writer: impl Write, mut reader: impl Read, bytes: usize, messages: usize) -> Message {
    let mut buffer = vec![0; bytes];
    let [write, read, longer] = Sample::repeat_all(BATCHES, || {
        let write = elapsed_ns(|| {
            for _ in 0..messages {
                writer.write_all(&buffer).expect("there is room");
            }
        });
        let read = elapsed_ns(|| {
            for _ in 0..messages {
                reader.read_exact(&mut buffer).expect("there is a message");
            }
        });
        [write, read, read - write].map(|ns| ns / messages as f64)
    });
    Message { write, read, longer }
}

/// A measurement while the process has a second thread, which sleeps.
fn in_two_threads<T>(measure: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (wake, asleep) = mpsc::channel::<()>();
        scope.spawn(move || asleep.recv());
        let result = measure();
        drop(wake);
        result
    })
}

/// The same as [`pipe`] on a pair of local stream sockets.
pub(crate) fn socket(bytes: usize) -> io::Result<Message> {
    let (sender, receiver) = UnixStream::pair()?;
    Ok(fill_and_drain(SingleThreaded(sender), SingleThreaded(receiver), bytes, MESSAGES))
}

/// A byte there and received, over TCP on the loopback interface.
pub(crate) fn tcp() -> io::Result<Sample> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let sender = TcpStream::connect(listener.local_addr()?)?;
    sender.set_nodelay(true)?;
    let (receiver, _) = listener.accept()?;
    Ok(one_by_one(sender, receiver))
}

/// A byte there and received, over a pair of local stream sockets.
pub(crate) fn unix() -> io::Result<Sample> {
    let (sender, receiver) = UnixStream::pair()?;
    Ok(one_by_one(sender, receiver))
}

fn one_by_one(mut sender: impl Write, mut receiver: impl Read) -> Sample {
    let mut byte = [0];
    Sample::repeat(BATCHES, || {
        let ns = elapsed_ns(|| {
            for _ in 0..MESSAGES {
                sender.write_all(&byte).expect("the socket has room");
                receiver.read_exact(&mut byte).expect("the byte has arrived");
            }
        });
        ns / MESSAGES as f64
    })
}

/// A byte there and received, over UDP on the loopback interface.
pub(crate) fn udp() -> io::Result<Sample> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    let mut byte = [0];
    Ok(Sample::repeat(BATCHES, || {
        let ns = elapsed_ns(|| {
            for _ in 0..MESSAGES {
                sender.send(&byte).expect("loopback takes it");
                receiver.recv(&mut byte).expect("the byte has arrived");
            }
        });
        ns / MESSAGES as f64
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_have_no_times_since_6_15() {
        for (release, since) in [
            ("6.1.0-50-amd64", false),
            ("6.14.11", false),
            ("6.15.0-rc1+", true),
            ("6.18", true),
            ("7.3.4-generic", true),
            ("5.19", false),
            ("", false),
        ] {
            assert_eq!(is_since_6_15(release), since, "{release}");
        }
    }

    #[test]
    fn either_the_read_or_the_write_takes_longer() {
        let sample = |ns| Sample { ns, spread_ns: 3.0 };
        let message =
            |longer| Message { write: sample(100.0), read: sample(100.0 + longer), longer: sample(longer) };
        let (slow, fast) = (message(7.0), message(-9.0));
        assert_eq!([slow.read_longer().ns, slow.write_longer().ns, slow.shorter().ns], [7.0, 0.0, 100.0]);
        assert_eq!([fast.read_longer().ns, fast.write_longer().ns, fast.shorter().ns], [0.0, 9.0, 91.0]);
    }

    #[test]
    fn a_fifo_leaves_nothing_behind() {
        let path = {
            let fifo = Fifo::new().unwrap();
            assert!(fifo.0.exists());
            fifo.0.clone()
        };
        assert!(!path.exists());
    }
}
