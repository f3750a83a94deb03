//! Pipes and local stream sockets: when they block, and which tasks they wake.
//!
//! Channels hold only counts, no bytes. [`Channel::write`] and [`Channel::read`]
//! transfer as much as fits and return what has to happen next. The wait queues are
//! kept here; the scheduler does the waking.

use crate::contention::{Line, Lock};
use coreward_workload::ChannelKind;
use std::collections::VecDeque;

/// Buffers of a pipe (PIPE_DEF_BUFFERS, include/linux/pipe_fs_i.h).
const PIPE_BUFFERS: usize = 16;
/// Bytes of a pipe's buffer: one page.
const PAGE: u32 = 4096;
/// Pages that a pipe keeps for its next writes when a reader has emptied them (`tmp_page`, fs/pipe.c; one until 6.14).
const TMP_PAGES: u8 = 2;
/// Send buffer of a socket: net.core.wmem_default.
const SNDBUF: u32 = 212_992;
/// Send buffer of a TCP connection that has sent a lot: the maximum that net.ipv4.tcp_wmem allows
/// (4 MiB; 3.9 MB could be sent to a receiver that does not read, on Linux 6.18).
const TCP_SNDBUF: u32 = 4 << 20;
/// What a queued message is charged for its sk_buff and, in the same allocation as its
/// data (a power of two), for its skb_shared_info (include/linux/skbuff.h, SKB_TRUESIZE).
const SK_BUFF: u32 = 256;
const SKB_SHARED_INFO: u32 = 320;

/// The result of one attempt to write or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Bytes transferred.
    pub(crate) bytes: u32,
    /// Wake the other side's first waiter (pipe) or all of its waiters (socket).
    pub(crate) wake_other: bool,
    /// Wake the next waiter of the same side: there is still room, or still data.
    pub(crate) wake_next: bool,
}

/// The side of a channel that tasks wait on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Readers,
    Writers,
}

/// The buffers of a channel.
enum Buffers {
    Pipe(Pipe),
    Socket(Socket),
}

/// The buffers of a pipe.
struct Pipe {
    ring: [PipeBuffer; PIPE_BUFFERS],
    /// How many of them it has.
    buffers: usize,
    /// Small writes go into the last buffer, too, as long as they fit there.
    merges: bool,
    tail: usize,
    used: usize,
    /// Emptied pages that it keeps.
    tmp_pages: u8,
}

#[derive(Clone, Copy, Default)]
struct PipeBuffer {
    /// Bytes that were written into it, and bytes that were read of them.
    written: u16,
    read: u16,
    /// Its page is one that the pipe had kept, so its lines go to and fro between the CPUs of readers and writers. Those of
    /// a page that comes from the allocator cost neither of them time.
    kept: bool,
}

/// The queue of a socket. Messages of one size that follow each other take no more memory than one: with thousands of
/// sockets, the caches would hold nothing else.
#[derive(Default)]
struct Socket {
    /// The first messages; none if nothing is queued.
    first: Alike,
    /// Those after them.
    others: VecDeque<Alike>,
    /// How many bytes of the first message were read.
    read: u32,
    /// The memory that all are charged for.
    charged: u32,
}

/// Messages of one size that follow each other.
#[derive(Default)]
struct Alike {
    bytes: u32,
    /// The memory that each is charged for.
    charge: u32,
    messages: u32,
}

/// A channel with its wait queues. Its fields lie in this order: what each read and write uses shares the first cache lines.
#[repr(C)]
pub(crate) struct Channel {
    /// The kernel's lock on it, and the CPU that had its lines last.
    pub(crate) lock: Lock,
    /// The CPU that wrote last, where the data is, and the one that read last: it has the memory that the next message is
    /// written to.
    last_cpu: [u32; 2],
    kind: ChannelKind,
    /// Nothing will be written any more.
    pub(crate) closed: bool,
    /// The reference counts of its open files, that to read from and that to write to, by [`Side`].
    pub(crate) files: [Line; 2],
    buffers: Buffers,
    /// The locks of its wait queues, of readers and of writers: a waker holds one
    /// while it wakes (__wake_up_common_lock, kernel/sched/wait.c).
    pub(crate) wait_lock: [Lock; 2],
    /// Tasks that wait for data.
    readers: VecDeque<u32>,
    /// Tasks that wait for room.
    writers: VecDeque<u32>,
    /// Tasks in poll().
    pub(crate) pollers: Vec<u32>,
}

impl Channel {
    pub(crate) fn new(kind: ChannelKind) -> Self {
        let buffers = match kind {
            ChannelKind::Pipe => Buffers::Pipe(Pipe::new(PIPE_BUFFERS, true)),
            ChannelKind::Packets { buffers } => Buffers::Pipe(Pipe::new(buffers.into(), false)),
            _ => Buffers::Socket(Socket::default()),
        };
        Channel {
            lock: Lock::default(),
            last_cpu: [0; 2],
            kind,
            closed: false,
            files: [Line::default(); 2],
            buffers,
            wait_lock: [Lock::default(); 2],
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            pollers: Vec::new(),
        }
    }

    /// The queue of tasks that wait on a side.
    pub(crate) fn waiting(&mut self, side: Side) -> &mut VecDeque<u32> {
        match side {
            Side::Readers => &mut self.readers,
            Side::Writers => &mut self.writers,
        }
    }

    pub(crate) fn kind(&self) -> ChannelKind {
        self.kind
    }

    /// `cpu` reads or writes a message now; returns the CPU that has the message's memory in its cache. That of a page from
    /// the allocator is nowhere where it would be missed: while two CPUs take turns with up to 600 messages of 100 bytes,
    /// reads and writes in the first two pages take 75 and 50 ns longer than on one CPU, and in the others no longer
    /// (Granite Rapids, Linux 6.18, where a line takes 65 ns).
    #[inline]
    pub(crate) fn visit(&mut self, cpu: usize, bytes: u32, read: bool) -> usize {
        let other = self.last_cpu[usize::from(!read)] as usize;
        self.last_cpu[usize::from(read)] = cpu as u32;
        let comes_from_other = match &self.buffers {
            Buffers::Pipe(pipe) => pipe.begins_in_kept_page(bytes, read),
            Buffers::Socket(_) => true,
        };
        [cpu, other][usize::from(comes_from_other)]
    }

    pub(crate) fn is_pipe(&self) -> bool {
        matches!(self.kind, ChannelKind::Pipe | ChannelKind::Packets { .. })
    }

    fn sndbuf(&self) -> u32 {
        if self.kind == ChannelKind::Tcp { TCP_SNDBUF } else { SNDBUF }
    }

    /// The memory that a queued message is charged for. TCP's data is in pages, not beside skb_shared_info.
    fn truesize(&self, bytes: u32) -> u32 {
        match self.kind {
            ChannelKind::Tcp => bytes + SK_BUFF + SKB_SHARED_INFO,
            _ => (bytes + SKB_SHARED_INFO).next_power_of_two() + SK_BUFF,
        }
    }

    /// Are writers woken with this much in use? Yes with at most a quarter of the buffer in use
    /// (unix_write_space), or if at least half as much as is in use is free (sk_stream_is_writeable).
    fn wakes_writers(&self, charged: u32) -> bool {
        match self.kind {
            ChannelKind::Tcp => self.sndbuf().saturating_sub(charged) >= charged / 2,
            _ => charged <= self.sndbuf() / 4,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match &self.buffers {
            Buffers::Pipe(pipe) => pipe.used == 0,
            Buffers::Socket(socket) => socket.first.messages == 0,
        }
    }

    /// The memory of all queued messages, in bytes; of a pipe none, which holds little.
    pub(crate) fn charged(&self) -> u64 {
        match &self.buffers {
            Buffers::Pipe(_) => 0,
            Buffers::Socket(socket) => u64::from(socket.charged),
        }
    }

    /// How many pages the next write of `bytes` takes from the allocator, or the next read gives back to it, beyond those that
    /// the pipe keeps. Only in packet mode, where each write takes some: of other pipes and of sockets, the cost of
    /// copying contains it.
    #[inline]
    pub(crate) fn fresh_pages(&self, bytes: u32, read: bool) -> u64 {
        match &self.buffers {
            Buffers::Pipe(pipe) if !pipe.merges => pipe.fresh_pages(bytes, read),
            _ => 0,
        }
    }

    /// Is there no room for even one byte (pipe) or message (socket)?
    pub(crate) fn is_full(&self) -> bool {
        match &self.buffers {
            Buffers::Pipe(pipe) => pipe.is_full(),
            Buffers::Socket(socket) => socket.charged >= self.sndbuf(),
        }
    }

    /// Whether a reader finds something, or the end, or whether a writer finds room.
    pub(crate) fn is_ready(&self, read: bool) -> bool {
        if read { self.closed || !self.is_empty() } else { !self.is_full() }
    }

    /// Writes up to `bytes`, fewer if the channel becomes full. A socket wakes its reader for each message, a pipe for the
    /// first one.
    pub(crate) fn write(&mut self, bytes: u32) -> Transfer {
        let (sndbuf, charge) = (self.sndbuf(), self.truesize(bytes));
        match &mut self.buffers {
            Buffers::Pipe(pipe) => {
                let was_empty = pipe.used == 0;
                let done = pipe.write(bytes);
                Transfer {
                    bytes: done,
                    wake_other: done > 0 && was_empty,
                    wake_next: done == bytes && !pipe.is_full(),
                }
            }
            Buffers::Socket(socket) if socket.charged < sndbuf => {
                socket.write(bytes, charge);
                Transfer { bytes, wake_other: bytes > 0, wake_next: false }
            }
            Buffers::Socket(_) => Transfer::default(),
        }
    }

    /// Reads up to `bytes`, fewer if the channel becomes empty.
    ///
    /// A pipe's reader wakes a writer if the pipe was full when it came; with
    /// `wake_while_full`, as before 6.14, even if it has freed no buffer.
    pub(crate) fn read(&mut self, bytes: u32, wake_while_full: bool) -> Transfer {
        match &mut self.buffers {
            Buffers::Pipe(pipe) => {
                let (was_full, before) = (pipe.is_full(), pipe.used);
                let done = pipe.read(bytes);
                Transfer {
                    bytes: done,
                    wake_other: was_full && (wake_while_full || pipe.used < before),
                    wake_next: done == bytes && pipe.used > 0,
                }
            }
            Buffers::Socket(socket) => {
                let (done, freed) = socket.read(bytes);
                let charged = socket.charged;
                Transfer {
                    bytes: done,
                    wake_other: freed > 0 && self.wakes_writers(charged),
                    wake_next: false,
                }
            }
        }
    }
}

impl Pipe {
    fn new(buffers: usize, merges: bool) -> Pipe {
        let ring = [PipeBuffer::default(); PIPE_BUFFERS];
        Pipe { ring, buffers: buffers.min(PIPE_BUFFERS), merges, tail: 0, used: 0, tmp_pages: 0 }
    }

    fn is_full(&self) -> bool {
        self.used == self.buffers
    }

    fn fresh_pages(&self, bytes: u32, read: bool) -> u64 {
        let (pages, kept) = (bytes.div_ceil(PAGE), u32::from(self.tmp_pages));
        let (waits, room) =
            if read { (self.used == 0, u32::from(TMP_PAGES) - kept) } else { (self.is_full(), kept) };
        u64::from(if waits { 0 } else { pages.saturating_sub(room) })
    }

    /// The last buffer, and whether the remainder of a message beyond whole pages fits into it.
    #[inline]
    fn mergeable(&self, bytes: u32) -> (usize, bool) {
        let rest = bytes % PAGE;
        let last = (self.tail + self.used + PIPE_BUFFERS - 1) % PIPE_BUFFERS;
        let fits = u32::from(self.ring[last].written) + rest <= PAGE;
        (last, self.merges & (self.used > 0) & (rest > 0) & fits)
    }

    /// Does the next read or write begin in a page that the pipe had kept? Without branches, as it differs from one to the
    /// next.
    #[inline]
    fn begins_in_kept_page(&self, bytes: u32, read: bool) -> bool {
        let (last, fits) = self.mergeable(bytes);
        let buffer = [last, self.tail][usize::from(read)] % PIPE_BUFFERS;
        [self.tmp_pages > 0, self.ring[buffer].kept][usize::from(read | fits)]
    }

    fn write(&mut self, bytes: u32) -> u32 {
        let mut left = bytes;
        let (last, fits) = self.mergeable(bytes);
        if fits {
            self.ring[last].written += (bytes % PAGE) as u16;
            left -= bytes % PAGE;
        }
        while left > 0 && self.used < self.buffers {
            let part = left.min(PAGE);
            let kept = self.tmp_pages > 0;
            self.tmp_pages -= u8::from(kept);
            self.ring[(self.tail + self.used) % PIPE_BUFFERS] =
                PipeBuffer { written: part as u16, read: 0, kept };
            self.used += 1;
            left -= part;
        }
        bytes - left
    }

    fn read(&mut self, bytes: u32) -> u32 {
        let mut left = bytes;
        while left > 0 && self.used > 0 {
            let buf = &mut self.ring[self.tail];
            let part = left.min(u32::from(buf.written - buf.read));
            buf.read += part as u16;
            left -= part;
            if buf.written == buf.read {
                self.tail = (self.tail + 1) % PIPE_BUFFERS;
                self.used -= 1;
                self.tmp_pages = (self.tmp_pages + 1).min(TMP_PAGES);
            }
        }
        bytes - left
    }
}

impl Socket {
    fn write(&mut self, bytes: u32, charge: u32) {
        self.charged += charge;
        let last = self.others.back_mut().unwrap_or(&mut self.first);
        if last.messages == 0 {
            *last = Alike { bytes, charge, messages: 1 };
        } else if last.bytes == bytes {
            last.messages += 1;
        } else {
            self.others.push_back(Alike { bytes, charge, messages: 1 });
        }
    }

    /// (bytes read, charge given back)
    fn read(&mut self, bytes: u32) -> (u32, u32) {
        let mut left = bytes;
        let mut freed = 0;
        while left > 0 && self.first.messages > 0 {
            let first = &mut self.first;
            let part = left.min(first.bytes - self.read);
            self.read += part;
            left -= part;
            if self.read == first.bytes {
                self.read = 0;
                freed += first.charge;
                first.messages -= 1;
                if first.messages == 0 {
                    self.first = self.others.pop_front().unwrap_or_default();
                }
            }
        }
        self.charged -= freed;
        (bytes - left, freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fill(kind: ChannelKind, bytes: u32) -> (Channel, u32) {
        let mut c = Channel::new(kind);
        let mut n = 0;
        while c.write(bytes).bytes == bytes {
            n += 1;
        }
        (c, n)
    }

    #[test]
    fn a_pipe_holds_640_messages_of_100_bytes() {
        // 40 to a page of 4096 (the 41st does not fit in the 96 bytes left), 16 pages
        let (c, n) = fill(ChannelKind::Pipe, 100);
        assert_eq!(n, 640);
        assert!(c.is_full());
        assert_eq!(fill(ChannelKind::Pipe, 1).1, 65_536);
    }

    /// Which CPU has the memory of each of `n` messages when CPU 0 writes them and CPU 1 reads them, then.
    fn memory_of(c: &mut Channel, n: usize) -> (Vec<usize>, Vec<usize>) {
        let visits = |c: &mut Channel, read| {
            let visit = |_| {
                let at = c.visit(usize::from(read), 100, read);
                if read {
                    c.read(100, false)
                } else {
                    c.write(100)
                };
                at
            };
            (0..n).map(visit).collect()
        };
        (visits(c, false), visits(c, true))
    }

    #[test]
    fn the_two_pages_that_a_pipe_keeps_go_to_and_fro() {
        let mut c = Channel::new(ChannelKind::Pipe);
        c.visit(1, 100, true);
        assert_eq!(memory_of(&mut c, 100), (vec![0; 100], vec![1; 100]), "all pages are new");
        let first_80 = |kept, new| [vec![kept; 80], vec![new; 20]].concat();
        assert_eq!(memory_of(&mut c, 100), (first_80(1, 0), first_80(0, 1)));
        assert_eq!(memory_of(&mut c, 1), (vec![1], vec![0]));
        let mut s = Channel::new(ChannelKind::UnixStream);
        s.visit(1, 100, true);
        assert_eq!(memory_of(&mut s, 100), (vec![1; 100], vec![0; 100]), "a socket has no pages");
    }

    #[test]
    fn a_socket_holds_278_messages_of_100_bytes() {
        // 100 bytes and 320 of shared info take 512, the sk_buff 256: 768 each of 212,992
        assert_eq!(fill(ChannelKind::UnixStream, 100).1, 278);
    }

    #[test]
    fn a_pipes_reader_is_woken_by_the_first_message_only() {
        let mut c = Channel::new(ChannelKind::Pipe);
        assert!(c.write(100).wake_other);
        assert!(!c.write(100).wake_other);
        let mut s = Channel::new(ChannelKind::UnixStream);
        assert!(s.write(100).wake_other);
        assert!(s.write(100).wake_other, "a socket calls for each");
    }

    #[test]
    fn a_pipes_writer_is_woken_when_a_buffer_is_free_or_before_6_14_on_every_read_of_a_full_pipe() {
        let (mut c, _) = fill(ChannelKind::Pipe, 100);
        for _ in 0..39 {
            assert!(!c.read(100, false).wake_other);
        }
        assert!(c.read(100, false).wake_other, "the 40th message empties the page");
        assert!(!c.read(100, false).wake_other, "it was not full any more");
        let (mut old, _) = fill(ChannelKind::Pipe, 100);
        assert!(old.read(100, true).wake_other);
    }

    #[test]
    fn a_sockets_writers_are_woken_at_a_quarter() {
        let (mut c, n) = fill(ChannelKind::UnixStream, 100);
        let woken_at = (1..=n).find(|_| c.read(100, false).wake_other).unwrap();
        // 69 * 768 = 52,992 is the most that is at most 53,248
        assert_eq!(n - woken_at, 69);
    }

    #[test]
    fn a_tcp_connections_writers_are_woken_when_half_as_much_as_is_in_use_is_free() {
        // 16,384 bytes and 576: the 248th message is the first beyond 4,194,304
        let (mut c, n) = fill(ChannelKind::Tcp, 16_384);
        assert_eq!(n, 248);
        let woken_at = (1..=n).find(|_| c.read(16_384, false).wake_other).unwrap();
        // 164 * 16,960 = 2,781,440 leave 1,412,864, 165 less than half of themselves
        assert_eq!(n - woken_at, 164);
        assert_eq!(fill(ChannelKind::Udp, 100).1, 278, "as a local socket's");
    }

    #[test]
    fn a_packet_takes_a_buffer_of_its_own() {
        assert_eq!(fill(ChannelKind::Packets { buffers: 1 }, 1).1, 1);
        let (mut c, n) = fill(ChannelKind::Packets { buffers: 16 }, 512);
        assert_eq!((n, c.is_full()), (16, true));
        let t = c.read(512, false);
        assert_eq!((t.bytes, t.wake_other), (512, true), "each frees a buffer");
        assert!(!c.read(512, false).wake_other, "it was not full any more");
        assert_eq!(fill(ChannelKind::Packets { buffers: 16 }, 5000).1, 8, "two buffers each");
    }

    #[test]
    fn packets_take_pages_beyond_the_two_that_are_kept() {
        let mut c = Channel::new(ChannelKind::Packets { buffers: 16 });
        let pages = |c: &mut Channel, read| {
            let pages = c.fresh_pages(512, read);
            let _ = if read { c.read(512, false) } else { c.write(512) };
            pages
        };
        for writes in [[1, 1, 1], [0, 0, 1]] {
            assert_eq!([(); 3].map(|()| pages(&mut c, false)), writes);
            assert_eq!([(); 3].map(|()| pages(&mut c, true)), [0, 0, 1], "two are kept");
        }
        assert_eq!(c.fresh_pages(512, true), 0, "there is nothing to read");
        let (full, _) = fill(ChannelKind::Packets { buffers: 16 }, 512);
        assert_eq!(full.fresh_pages(512, false), 0, "there is no room");
        let (stream, _) = fill(ChannelKind::Pipe, 512);
        assert_eq!(stream.fresh_pages(512, true), 0);
    }

    #[test]
    fn a_long_message_blocks_in_the_middle() {
        let mut c = Channel::new(ChannelKind::Pipe);
        assert_eq!(c.write(100_000).bytes, 65_536);
        assert!(c.is_full());
        let t = c.read(4096, false);
        assert_eq!((t.bytes, t.wake_other), (4096, true));
        assert_eq!(c.write(34_464).bytes, 4096);
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(kind in prop::bool::ANY, ops in prop::collection::vec((prop::bool::ANY, 1u32..9000), 1..200)) {
            let mut c = Channel::new(if kind { ChannelKind::Pipe } else { ChannelKind::UnixStream });
            let mut inside = 0u64;
            for (write, bytes) in ops {
                if write {
                    inside += u64::from(c.write(bytes).bytes);
                } else {
                    let got = c.read(bytes, true).bytes;
                    prop_assert_eq!(u64::from(got), inside.min(u64::from(bytes)));
                    inside -= u64::from(got);
                }
                prop_assert_eq!(c.is_empty(), inside == 0);
            }
        }
    }
}
