//! How tasks execute their ops, one after the other.

use crate::channel::Side;
use crate::contention::Moment;
use crate::cpu::Activity;
use crate::segment::Work;
use crate::sim::Simulation;
use crate::task::{State, WaitsIn};
use coreward_metrics::Part;
use coreward_policy::Feature;
use coreward_workload::{ChannelKind, Op};
use std::cmp::Reverse;

/// Cache lines of a channel that every operation on it writes: the lock with the
/// ring's indices, the wait queue heads, and the buffer's descriptor (fs/pipe.c:
/// struct pipe_inode_info and pipe_buffer; net/unix: the socket's queue and lock).
pub const CHANNEL_LINES: u64 = 3;

/// Cache lines of a queued message that its receiver reads, and that its sender writes, beside its data, and that come one
/// after the other: struct sk_buff says where the data and struct skb_shared_info are (include/linux/skbuff.h), and the
/// allocator's line which object is the next one. More lines than these come, but together with them.
const SOCKET_READ_LINES: u64 = 4;
const SOCKET_WRITE_LINES: u64 = 1;

/// The part of an operation on a socket that the allocator's slow path takes, in percent, on either side: memory that one CPU
/// takes and another one gives back does not go through the lists that each CPU has for itself (mm/slub.c).
///
/// The three constants are chosen from what was measured of processes on two CPUs that take turns, less turns on one CPU: how
/// much longer a read and a write take, in ns. Granite Rapids (a line takes 60): turns of one message on each of 4 or 10
/// sockets, 350 to 450, 260 to 300; of 20 or 100 on one socket, 265, 210; of 20 to 100 on each of 10, 310 to 490, 310 to 340.
/// Zen 4 (33), 20 or 100 on one socket: 220 to 280, 140 to 260; Sapphire Rapids (37): 280, 130. So most of it is not the way of
/// lines. Here a read takes 370 ns longer on the first of these, and a write 190, which is little: with 60 ns more, hackbench
/// on sockets takes up to 9 % longer there than the real one, which blocks more seldom (docs/results/validation-granite-rapids.md).
const SOCKET_ALLOCATOR_PCT: u64 = 30;

/// What a write and a read of a message on a socket take longer together if another CPU has had it last, in ns, with a
/// `socket_remote_pct` of 100: given a line's transfer, and `socket_op_ns`.
pub fn remote_socket_ns(transfer_ns: f64, socket_op_ns: f64) -> f64 {
    (SOCKET_READ_LINES + SOCKET_WRITE_LINES) as f64 * transfer_ns
        + 2.0 * socket_op_ns * SOCKET_ALLOCATOR_PCT as f64 / 100.0
}

/// What a message on a socket takes longer that is no longer in the private cache of the CPU that wrote it, since as much is
/// queued as these caches hold: lines from the LLC, one after the other, and percents of an operation on a socket, for the
/// translations and for what comes together with those lines. Measured: one process that fills up to 40 sockets with up to 200
/// messages and empties them, with several MB queued and with little. A read takes 316 ns longer on Zen 4 and 256 on Granite
/// Rapids, a write 134 and 100, where a line from the LLC takes 20 and 47 ns and an operation 514 and 254
/// (docs/results/validation-granite-rapids.md).
const COLD_READ: (u64, u64) = (4, 40);
const COLD_WRITE: (u64, u64) = (2, 15);

/// A page that a pipe takes from the allocator, or gives back to it, in bytes that are copied in the same time: the cost of
/// copying was measured with messages that fill pages, and contains it.
/// Measured: 16 packets of 1 to 4096 bytes written, then read, on one CPU of a Zen 4 guest, Linux 6.18: a write takes 295 ns
/// longer than one into the last page, a read 325, and two of 16 pages are those that the pipe keeps. So a page takes 340
/// and 370 ns, where 1024 bytes take 106.
const PAGE_COPY_BYTES: u64 = 3430;

/// How long an operation on a local socket holds the lock of the queue of messages, in ns. It makes or frees the message and
/// copies it without that lock (unix_stream_sendmsg(), unix_stream_read_generic(), net/unix/af_unix.c).
/// assumption: two locked instructions and the list's pointers. Measured: a sender and a receiver on two CPUs hold each other
/// up so little that a message takes 1.05 us, as long as either takes for its part (docs/results/pinned.md).
const SOCKET_LOCKED_NS: u64 = 40;

/// What an op moves, and through which channel.
#[derive(Clone, Copy)]
struct Message {
    channel: u32,
    bytes: u32,
    read: bool,
}

/// The message of an op whose relative channels count from `base`; None if it moves nothing. Whether tasks read or write
/// changes from event to event, so the processor would predict a branch wrongly.
#[inline]
fn message(op: &Op, base: u32) -> Option<Message> {
    let (Op::Write { channel, bytes }
    | Op::Read { channel, bytes }
    | Op::WriteTo { channel, bytes }
    | Op::ReadFrom { channel, bytes }) = *op
    else {
        return None;
    };
    let read = matches!(op, Op::Read { .. } | Op::ReadFrom { .. });
    let relative = matches!(op, Op::Read { .. } | Op::Write { .. });
    Some(Message { channel: channel + base * u32::from(relative), bytes, read })
}

/// The side of a channel that reads, or that writes.
#[inline]
fn side(read: bool) -> Side {
    if read { Side::Readers } else { Side::Writers }
}

/// A number that looks random, the same for the same `n`.
/// Source: SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

impl Simulation<'_> {
    /// The current task of `cpu` continues with the rest of a preempted op, or with its next op.
    pub(crate) fn resume(&mut self, cpu: usize) {
        let task = self.cpus[cpu].curr.expect("only a CPU with a task resumes one");
        self.task_cache_work(cpu, task);
        let task = task as usize;
        let work = match self.tasks[task].left.take() {
            Some(left) => left,
            None => self.op_work(cpu, task),
        };
        self.begin_segment(cpu, Activity::Task, work);
    }

    /// The work of the task's next op. Its effect comes at the end, in [`Self::finish_op`].
    fn op_work(&mut self, cpu: usize, task: usize) -> Work {
        let t = &mut self.tasks[task];
        let (stop, now) = (&mut self.stop, self.now);
        let Some(op) = t.fetch_op(|| stop.goes_on(now)) else {
            let ns = if t.exits { 0 } else { self.exit_ns(task) };
            return self.jittered(ns);
        };
        // after blocking it is in the kernel already
        let enters = !t.in_syscall;
        let entry = if enters { self.costs.syscall_ns } else { 0 };
        if let Some(message) = message(op, t.base) {
            let references = enters && t.shares_files(task);
            let mut entry = entry + self.workload.message_ns;
            let mut m = self.moment(cpu);
            if references {
                entry += self.costs.shared_file_ns;
                m.at += self.count_reference(cpu, message, m);
            }
            return self.channel_work(cpu, task, message, entry, m);
        }
        match *op {
            Op::Run { ns } => self.jittered(ns),
            Op::RunDrawn { of } => {
                let ns = self.draw(task, of);
                self.jittered(ns)
            }
            Op::Vfork { .. } => self.jittered(entry + self.costs.fork_ns),
            Op::Spawn { process, .. } => {
                let ns = if process { self.costs.fork_ns } else { self.costs.thread_ns };
                self.jittered(entry + ns)
            }
            Op::Memset { bytes } => {
                let ns = u128::from(bytes) * u128::from(self.costs.copy_ns_per_kib) / 1024;
                self.jittered(ns as u64)
            }
            Op::Sleep { .. }
            | Op::Device { .. }
            | Op::SleepDrawn { .. }
            | Op::Poll { .. }
            | Op::Close { .. }
            | Op::Yield
            | Op::Syscall
            | Op::SetAffinity { .. }
            | Op::SetNice { .. }
            | Op::SetGroup { .. } => self.jittered(entry),
            Op::WaitChildren => {
                let ns = self.wait_ns(task);
                self.jittered(entry + ns)
            }
            Op::Exit => {
                let ns = self.exit_ns(task);
                self.jittered(ns)
            }
            Op::MarkStart | Op::MarkEnd => Work::default(),
            _ => self.sync_work(cpu, task, op, entry),
        }
    }

    /// A thread takes a reference to the file that it reads or writes, or gives it back (fdget, fdput), since another one
    /// may close it meanwhile. All threads that write to a channel have one file, and so have those that read from it. What
    /// counting takes without company is part of `shared_file_ns`. Returns how long the thread waits, in ns.
    #[inline]
    fn count_reference(&mut self, cpu: usize, message: Message, m: Moment) -> u64 {
        let file = &mut self.channels[message.channel as usize].files[side(message.read) as usize];
        let got = file.modify(&self.distances, cpu, m, 0);
        let ns = got.waited + got.transfer;
        if ns > 0 {
            self.charge_stall(cpu, Part::FileLines, ns);
        }
        ns
    }

    /// An operation on a channel: enter the kernel, get the lock and the lines, copy. If a socket has no message for its
    /// reader or no room for its writer, that is seen before anything else is done.
    fn channel_work(&mut self, cpu: usize, task: usize, message: Message, entry: u64, m: Moment) -> Work {
        let Message { channel, bytes, read } = message;
        let data_lines = (u64::from(bytes) + (1 << self.line_shift) - 1) >> self.line_shift;
        let ch = &mut self.channels[channel as usize];
        let kind = ch.kind();
        let is_pipe = ch.is_pipe();
        let only_looks = !is_pipe && !ch.is_ready(read);
        let (other, data_lines) =
            if only_looks { (cpu, 0) } else { (ch.visit(cpu, bytes, read), data_lines) };
        self.tasks[task].only_looks = only_looks;
        let owner = ch.lock.owner();
        let got = ch.lock.acquire(&self.distances, cpu, m, 1);
        // with the lock's line comes the turn, then the others together
        let others = self.distances.fetch(owner, cpu, CHANNEL_LINES - 1)
            + self.distances.stream(other, cpu, data_lines);
        let mut lines_ns = got.lines_with(others, &self.distances);
        let copied = u64::from(bytes) + ch.fresh_pages(bytes, read) * PAGE_COPY_BYTES;
        let mut op_ns = copied * self.costs.copy_ns_per_kib / 1024;
        let locked_ns = if is_pipe {
            let locked_ns = op_ns + self.costs.pipe_op_ns + u64::from(read) * self.costs.pipe_read_ns;
            // after the lock has been given back
            op_ns = locked_ns + self.pipe_times_ns(read);
            locked_ns
        } else if only_looks {
            op_ns = SOCKET_LOCKED_NS;
            SOCKET_LOCKED_NS
        } else {
            op_ns += self.socket_ns(kind, read);
            lines_ns += self.socket_buffer_ns(read, other, cpu);
            SOCKET_LOCKED_NS
        };
        let stall = got.waited + lines_ns;
        let locked = Work { work: locked_ns, stall: 0 }.duration(self.cpus[cpu].rate);
        self.channels[channel as usize].lock.release(m.at + stall + locked);
        self.cpus[cpu].bill.stalls([(Part::ChannelLock, got.waited), (Part::ChannelLines, lines_ns)]);
        let mut work = self.jittered(entry + op_ns);
        work.stall = stall;
        work
    }

    /// What it takes to set the times of a pipe's inode.
    fn pipe_times_ns(&self, read: bool) -> u64 {
        let times_ns = [self.costs.pipe_mtime_ns, self.costs.pipe_atime_ns];
        if self.feature(Feature::PIPE_TIMES) { times_ns[usize::from(read)] } else { 0 }
    }

    /// What an operation on a socket takes beside the copy. The sender takes its message through the stack and up to the
    /// receiver's socket.
    fn socket_ns(&self, kind: ChannelKind, read: bool) -> u64 {
        let costs = &self.costs;
        let way_ns = match kind {
            _ if read => costs.socket_read_ns,
            ChannelKind::Tcp => costs.tcp_send_ns,
            ChannelKind::Udp => costs.udp_send_ns,
            ChannelKind::Pipe | ChannelKind::Packets { .. } | ChannelKind::UnixStream => costs.socket_send_ns,
        };
        costs.socket_op_ns + way_ns
    }

    /// What a queued message takes that another CPU has had last, and what it takes if its lines have fallen out of the private
    /// caches into the LLC.
    fn socket_buffer_ns(&self, read: bool, other: usize, cpu: usize) -> u64 {
        let (lines, (cold_lines, cold_pct)) =
            if read { (SOCKET_READ_LINES, COLD_READ) } else { (SOCKET_WRITE_LINES, COLD_WRITE) };
        let op_ns = self.costs.socket_op_ns;
        let allocator = if other == cpu { 0 } else { op_ns * SOCKET_ALLOCATOR_PCT / 100 };
        (lines * self.distances.transfer(other, cpu) + allocator) * self.costs.socket_remote_pct / 100
            + self.caches.fallen_out(cold_lines, op_ns * cold_pct / 100, self.queued.most())
    }

    /// The next value of a distribution for a task; 0 if it has none.
    fn draw(&mut self, task: usize, of: u32) -> u64 {
        let values = &self.workload.shared.distributions[of as usize];
        let t = &mut self.tasks[task];
        t.draws += 1;
        let random = mix(mix(self.seed ^ u64::from(t.program)) ^ t.draws);
        let index = (u128::from(random) * values.len() as u128) >> 64;
        values.get(index as usize).copied().unwrap_or(0)
    }

    /// The current task of `cpu` has completed its op: applies its effect, and continues.
    pub(crate) fn finish_op(&mut self, cpu: usize) {
        let id = self.cpus[cpu].curr.expect("a task's segment has a task");
        let t = &self.tasks[id as usize];
        let op = t.op;
        let goes_on = match (op, op.and_then(|op| message(op, t.base))) {
            (_, Some(message)) => self.transfer(cpu, id, message),
            (Some(op), None) => self.effect(cpu, id, op),
            (None, None) => {
                self.exit(cpu, id);
                false
            }
        };
        let may_preempt = || !matches!(op, Some(Op::Vfork { .. }));
        if !goes_on || (self.cpus[cpu].need_resched && may_preempt()) {
            self.schedule(cpu);
        } else {
            self.resume(cpu);
        }
    }

    /// The effect of an op that moves no message. False if the task blocks or yields the CPU.
    fn effect(&mut self, cpu: usize, id: u32, op: &Op) -> bool {
        let task = id as usize;
        match *op {
            Op::Run { .. } | Op::RunDrawn { .. } | Op::Syscall | Op::Memset { .. } => {}
            Op::Exit => self.tasks[task].exits = true,
            Op::SetAffinity { set } => return self.set_affinity(cpu, id, set),
            Op::SetNice { nice } => self.set_user_nice(cpu, id, nice),
            Op::SetGroup { group } => self.move_task(cpu, id, group),
            Op::Poll { channel } => {
                if self.channels[channel as usize].is_empty() {
                    self.channels[channel as usize].pollers.push(id);
                    return self.block(task, WaitsIn::Other);
                }
            }
            Op::Close { channel } => {
                let channel = (self.tasks[task].base + channel) as usize;
                self.channels[channel].closed = true;
                self.wake_up_side(cpu, channel, Side::Readers, true);
            }
            Op::Sleep { ns } => {
                if !self.tasks[task].in_syscall {
                    return self.sleep_until(self.now + ns, id);
                }
            }
            Op::Device { ns } => {
                if !self.tasks[task].in_syscall {
                    return self.wait_for_device(self.now + ns, id);
                }
            }
            Op::SleepDrawn { of, device } => {
                if !self.tasks[task].in_syscall {
                    let until = self.now + self.draw(task, of);
                    return match device {
                        true => self.wait_for_device(until, id),
                        false => self.sleep_until(until, id),
                    };
                }
            }
            Op::Spawn { program, base, process } => self.spawn(cpu, id, program, base, process),
            Op::Vfork { program } => self.spawn(cpu, id, program, 0, true),
            Op::WaitChildren => {
                let t = &mut self.tasks[task];
                let reaped = t.children.reap();
                if t.children.any() {
                    if reaped {
                        t.in_syscall = false;
                        return true; // the next call, for the next child
                    }
                    t.waits_for_children = true;
                    return self.block(task, WaitsIn::Other);
                }
            }
            Op::MarkStart => self.mark_start(),
            Op::MarkEnd => {
                if self.measured.is_none() {
                    self.measured = Some(self.measure());
                }
            }
            Op::Yield => {
                self.tasks[task].advance();
                self.yield_task(cpu);
                return false;
            }
            _ => return self.sync_effect(cpu, id, op),
        }
        self.tasks[task].advance();
        true
    }

    /// A task starts another one.
    fn spawn(&mut self, cpu: usize, parent: u32, program: u32, base: u32, process: bool) {
        let child = self.new_task(program, base, process, Some(parent), cpu);
        self.tasks[parent as usize].children.spawned(process);
        self.wake_up_new_task(child, cpu);
    }

    /// The task waits for a timer of its own, which is set in the hardware if it is the next one. The tick is one, too.
    pub(crate) fn sleep_until(&mut self, at: u64, id: u32) -> bool {
        let cpu = self.tasks[id as usize].cpu();
        if at < self.cpus[cpu].tick_at {
            self.charge_work(cpu, Part::Task, self.costs.timer_arm_ns);
        }
        self.interrupt_at(at, id);
        self.block(id as usize, WaitsIn::Nanosleep)
    }

    /// The task waits for a device.
    fn wait_for_device(&mut self, at: u64, id: u32) -> bool {
        self.interrupt_at(at, id);
        self.block(id as usize, WaitsIn::Other)
    }

    /// The CPU that the task runs on is interrupted then, and wakes it.
    fn interrupt_at(&mut self, at: u64, id: u32) {
        self.sleepers.push(Reverse((at, id)));
        self.reprogram_sleepers();
    }

    /// The task waits in the kernel until it is woken.
    pub(crate) fn block(&mut self, task: usize, waits_in: WaitsIn) -> bool {
        self.charge_work(self.tasks[task].cpu(), Part::Queue, self.costs.wait_ns);
        self.tasks[task].in_syscall = true;
        self.tasks[task].waits_in = waits_in;
        self.tasks[task].state = State::Sleeping;
        false
    }

    /// Writes or reads as much of a message as possible, wakes the tasks that wait for that, and blocks for the rest.
    fn transfer(&mut self, cpu: usize, id: u32, message: Message) -> bool {
        let Message { channel, bytes, read } = message;
        let ch = channel as usize;
        let wake_while_full = self.feature(Feature::PIPE_WAKE_WHILE_FULL);
        let t = &mut self.tasks[id as usize];
        let left = bytes - t.done_bytes;
        let c = &mut self.channels[ch];
        if c.closed && read && c.is_empty() {
            return self.leave_loop(id as usize);
        }
        // a message, or room, that came in the meantime is for another attempt, which has its full price
        if t.only_looks && c.is_ready(read) {
            t.in_syscall = true;
            return true;
        }
        let before = c.charged();
        let did = if read { c.read(left, wake_while_full) } else { c.write(left) };
        let after = c.charged();
        if after != before {
            self.queued.change(before, after);
        }
        t.done_bytes += did.bytes;
        let done = did.bytes == left;
        // only a task that has waited passes its turn on
        let wake_next = did.wake_next && t.in_syscall;
        let (own, other) = (side(read), side(!read));
        if did.wake_other {
            let all = !self.channels[ch].is_pipe();
            self.wake_up_side(cpu, ch, other, all);
        }
        if wake_next {
            self.wake_up_side(cpu, ch, own, false);
        }
        if !done {
            return self.wait_on(cpu, id, ch, own);
        }
        let counts = read & (channel >= self.workload.first_message_channel);
        self.counters.messages += u64::from(counts);
        if self.tasks[id as usize].shares_files(id as usize) {
            self.count_reference(cpu, message, self.moment(cpu));
        }
        self.tasks[id as usize].advance();
        true
    }

    /// Wakes the first waiter of a side, or all, and the tasks that poll for it: the last to come
    /// first, because poll() waits at the head of the wait queue (`add_wait_queue()`), and reads
    /// and writes at its end. Pipes and sockets use synchronous wakeups, which say that the waker
    /// is about to sleep.
    fn wake_up_side(&mut self, cpu: usize, ch: usize, side: Side, all: bool) {
        self.lock_wait_queue(cpu, ch, side);
        if side == Side::Readers {
            for poller in std::mem::take(&mut self.channels[ch].pollers).into_iter().rev() {
                self.try_to_wake_up(poller, cpu, true);
            }
        }
        while let Some(task) = self.channels[ch].waiting(side).pop_front() {
            self.try_to_wake_up(task, cpu, true);
            if !all {
                break;
            }
        }
        let at = self.local_now(cpu);
        self.channels[ch].wait_lock[side as usize].release(at);
    }

    fn lock_wait_queue(&mut self, cpu: usize, ch: usize, side: Side) {
        let m = self.moment(cpu);
        let got = self.channels[ch].wait_lock[side as usize].acquire(&self.distances, cpu, m, 1);
        self.charge_stall(cpu, Part::ChannelLock, got.waited);
        self.charge_stall(cpu, Part::ChannelLines, got.lines_with(0, &self.distances));
    }

    /// The task queues up to wait on a side of a channel, and blocks.
    fn wait_on(&mut self, cpu: usize, id: u32, ch: usize, side: Side) -> bool {
        self.lock_wait_queue(cpu, ch, side);
        let at = self.local_now(cpu);
        let channel = &mut self.channels[ch];
        channel.wait_lock[side as usize].release(at);
        channel.waiting(side).push_back(id);
        self.block(id as usize, WaitsIn::Other)
    }
}
