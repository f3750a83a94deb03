//! Messages over sockets, one at a time on each, that their reader finds by epoll: what moves between two CPUs with them.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::sample::Sample;
use crate::thread::{elapsed_ns, pin};

/// Sockets between the two: what finding a message takes is shared by a few, as in a server.
const SOCKETS: usize = 8;
/// Turns of either side; with the first ones, the caches warm up.
const TURNS: u64 = 1_000;
const BYTES: usize = 100;

/// What the sockets are of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Unix,
    Tcp,
}

impl Family {
    fn pair(self) -> io::Result<(OwnedFd, OwnedFd)> {
        match self {
            Family::Unix => UnixStream::pair().map(|(a, b)| (a.into(), b.into())),
            Family::Tcp => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let a = TcpStream::connect(listener.local_addr()?)?;
                let (b, _) = listener.accept()?;
                a.set_nodelay(true)?;
                b.set_nodelay(true)?;
                Ok((a.into(), b.into()))
            }
        }
    }
}

/// The ends of one side.
struct Side {
    sockets: Vec<OwnedFd>,
    epoll: OwnedFd,
}

impl Side {
    fn new(sockets: Vec<OwnedFd>) -> io::Result<Side> {
        let epoll = epoll::create(epoll::CreateFlags::empty())?;
        for (number, socket) in (0..).zip(&sockets) {
            epoll::add(&epoll, socket, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
        }
        Ok(Side { sockets, epoll })
    }

    /// Sends a message on each socket.
    fn send(&self) -> io::Result<()> {
        for socket in &self.sockets {
            rustix::io::write(socket, &[0; BYTES])?;
        }
        Ok(())
    }

    /// Receives a message of each socket.
    fn receive(&self) -> io::Result<()> {
        let mut left = self.sockets.len();
        let mut events = [MaybeUninit::uninit(); SOCKETS];
        while left > 0 {
            let ready = match epoll::wait(&self.epoll, &mut events[..], None) {
                // the other side would wait for ever
                Err(Errno::INTR) => continue,
                found => found?.0,
            };
            for event in ready.iter() {
                rustix::io::read(&self.sockets[event.data.u64() as usize], &mut [0; BYTES])?;
                left -= 1;
            }
        }
        Ok(())
    }

    /// Takes turns with the other side, of which those that are `even` are its own: receives what that one has sent, and
    /// sends. Returns what a message takes.
    fn take_turns(&self, turns: &AtomicU64, even: bool) -> io::Result<Sample> {
        let mut took = Vec::new();
        for turn in (u64::from(!even)..2 * TURNS).step_by(2) {
            // both may be on one CPU
            while turns.load(Ordering::Acquire) < turn {
                rustix::thread::sched_yield();
            }
            let mut done = Ok(());
            let ns = elapsed_ns(|| {
                done = if turn > 0 { self.receive() } else { Ok(()) }.and_then(|()| self.send());
            });
            done?;
            took.push(ns / SOCKETS as f64);
            turns.store(turn + 1, Ordering::Release);
        }
        Ok(Sample::of(took))
    }
}

/// What it takes to receive a message and to send one, on either of two CPUs that take turns.
pub(crate) fn messages(family: Family, first: usize, second: usize) -> io::Result<Sample> {
    let pairs = (0..SOCKETS).map(|_| family.pair()).collect::<io::Result<Vec<_>>>()?;
    let (ours, theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let (ours, theirs) = (Side::new(ours)?, Side::new(theirs)?);
    let turns = AtomicU64::new(0);
    thread::scope(|scope| {
        let other = scope.spawn(|| pin(&[second]).and_then(|()| theirs.take_turns(&turns, false)));
        let own = pin(&[first]).and_then(|()| ours.take_turns(&turns, true))?;
        let other = other.join().expect("the other side does not panic")?;
        Ok(own.and(other).map(0.5))
    })
}
