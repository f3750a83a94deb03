//! One pass of a calibration: what is measured, and what is subtracted from what.

use std::io;
use std::time::Duration;

use coreward_engine::{CHANNEL_LINES, CURR_LINES, RQ_LINES, SWITCH_LINES, WAKEE_LINES, remote_socket_ns};
use coreward_machine::Machine;

use crate::cpuidle::{self, Exit, IDLE_US};
use crate::local::{self, Handover};
use crate::message::Family;
use crate::pairs::Pairs;
use crate::remote::{self, Channel};
use crate::sample::Sample;
use crate::{
    CalibrateError, Calibration, Measured, Transfers, contended, kernel, memory, message, process, refill,
    refused, thread, tick, timer,
};
/// Largest buffer that is walked for the latency of memory, in bytes.
const WALK_BYTES: u64 = 512 << 20;

/// Data of a message that goes from one CPU to another.
const DATA_LINES: usize = 2;
/// A short message, of as many lines.
pub(crate) const MESSAGE_BYTES: usize = 100;
/// A message of so many lines that all but the first come in a stream.
const STREAM_BYTES: usize = 1024;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// A copy that takes a hundredth of what its lines take alone takes nothing that could be measured.
const MOST_STREAMS: f64 = 100.0;

/// What is measured while others have a larger share of the CPUs than this is not used.
/// assumption: with less, the middle half of the batches is still without them.
const BUSY: f64 = 0.25;

/// A line takes this many times as long only if the host of a virtual machine has moved its CPUs. Measured: 27 or 33 ns on
/// most moments, 165 to 184 on the others, two CPUs of a Zen 4 guest (docs/results/validation-zen-4.md).
const MOVED: f64 = 2.0;

/// Costs that consist of the way of lines.
const OF_LINES: [&str; 11] = [
    "transfer_smt_ns",
    "transfer_llc_ns",
    "transfer_package_ns",
    "transfer_remote_ns",
    "llc_line_ns",
    "dram_line_ns",
    "dram_remote_line_ns",
    "stream_pct",
    "lookahead_ns",
    "socket_remote_pct",
    "message_lines",
];

impl Calibration {
    /// What CPUs do to each other.
    pub(crate) fn together(&mut self, machine: &Machine, cpus: &Pairs) -> Result<(), CalibrateError> {
        self.contended = contended::line(&cpus.allowed).map_err(refused("a contended line"))?;
        if let Some((_, (a, b))) = cpus.by_distance.iter().find(|(name, _)| *name == "transfer_smt_ns") {
            let share = contended::smt_share(*a, *b).map_err(refused("two siblings of a core"))?;
            self.cost("smt_pct", share, "loads and arithmetic on two siblings together, against one alone");
        }
        thread::pin(&[cpus.first]).map_err(refused("a CPU of its own"))?;
        self.refills = refill::refills(&machine.caches, cpus.first, cpus.other)
            .map_err(refused("working sets that move"))?;
        Ok(())
    }

    pub(crate) fn cost(&mut self, name: &'static str, sample: Sample, how: &'static str) {
        self.costs.push(Measured { name, sample, how, doubt: None });
    }

    /// Others had this share of the CPUs while the last costs were measured.
    pub(crate) fn doubt_if_busy(&mut self, others: f64) {
        let last = self.costs.split_off(self.judged);
        let busy = (others > BUSY)
            .then(|| format!("other programs had {:.0} % of the CPUs meanwhile", others * 100.0));
        let exits = self.exits.len() > std::mem::replace(&mut self.judged_exits, self.exits.len());
        if exits && self.idle_doubt.is_none() {
            self.idle_doubt = busy.clone();
        }
        let doubted = |cost: Measured| Measured { doubt: cost.doubt.or_else(|| busy.clone()), ..cost };
        self.costs.extend(last.into_iter().map(doubted));
        self.judged = self.costs.len();
    }

    pub(crate) fn calls(&mut self) -> Result<Calls, CalibrateError> {
        let syscall = kernel::system_call();
        self.cost("syscall_ns", syscall, "getppid()");
        let pick = kernel::yield_alone().without(syscall);
        self.cost("pick_next_ns", pick, "sched_yield() alone on its CPU, less getppid()");
        let (small, large) = (MESSAGE_BYTES, 1000);
        let pipe = |bytes| kernel::pipe(bytes).map_err(refused("pipes"));
        let (short, long) = (pipe(small)?, pipe(large)?);
        let per_byte = long.mean().without(short.mean()).map(1.0 / (large - small) as f64);
        self.cost("copy_ns_per_kib", per_byte.map(1024.0), "pipe messages of 1000 bytes less those of 100");
        let warm = |message: Sample| message.without(syscall).without(per_byte.map(small as f64));
        let times = kernel::pipe_times(small, short).map_err(refused("pipes with times"))?;
        if times.contained {
            let read = warm(short.read).without(times.read);
            self.cost(
                "pipe_op_ns",
                read,
                "100 reads of 100 bytes that set no time, less system calls and copies",
            );
            self.cost(
                "pipe_read_ns",
                read.map(0.0),
                "pipe_op_ns is that of a read here, which contains this",
            );
            self.cost("pipe_mtime_ns", times.write, "100 writes, less 100 such reads");
            self.cost("pipe_atime_ns", times.read, "100 reads, less 100 that set no time");
        } else {
            self.cost(
                "pipe_op_ns",
                warm(short.write),
                "100 writes of 100 bytes, less system calls and copies",
            );
            self.cost("pipe_read_ns", short.read_longer(), "100 reads of 100 bytes, less 100 writes");
            self.cost("pipe_mtime_ns", times.write, "100 writes to a FIFO, less those to a pipe");
            self.cost("pipe_atime_ns", times.read, "100 reads of a FIFO, less those of a pipe");
        }
        let shared = kernel::pipe_of_threads(small).map_err(refused("pipes"))?;
        let shared_file = shared.mean().without(short.mean());
        self.cost("shared_file_ns", shared_file, "pipe messages beside an idle thread, less those without");
        let sent = kernel::socket(small).map_err(refused("sockets"))?;
        self.cost(
            "socket_op_ns",
            warm(sent.shorter()),
            "100 sends of 100 bytes, or 100 receives if they take less, less system calls and copies",
        );
        self.cost("socket_read_ns", sent.read_longer(), "100 receives of 100 bytes, less 100 sends");
        self.cost("socket_send_ns", sent.write_longer(), "100 sends of 100 bytes, less 100 receives");
        for (name, wait, how) in [
            ("futex_wait_ns", true, "FUTEX_WAIT for a word with another value, less getppid()"),
            ("futex_wake_ns", false, "FUTEX_WAKE where nobody waits, less getppid()"),
        ] {
            self.cost(name, kernel::futex(wait).without(syscall), how);
        }
        let socket = |sample: io::Result<Sample>| sample.map_err(refused("sockets"));
        let unix = socket(kernel::unix())?;
        let (tcp, udp) = (socket(kernel::tcp())?, socket(kernel::udp())?);
        self.cost("tcp_send_ns", tcp.without(unix), "a byte over loopback TCP, less one over a local socket");
        self.cost("udp_send_ns", udp.without(unix), "a byte over loopback UDP, less one over a local socket");
        let (write, read) = (warm(short.write), warm(short.read));
        Ok(Calls {
            syscall,
            write,
            read,
            pick,
            message: shared.mean(),
            socket: warm(sent.shorter()),
            shared_file,
        })
    }

    pub(crate) fn local(
        &mut self,
        cpu: usize,
        calls: &Calls,
        preempts_lazily: bool,
    ) -> Result<Local, CalibrateError> {
        let yields = calls.syscall.and(calls.pick);
        let switch = local::context_switch(cpu, yields).map_err(refused("context switches"))?;
        self.cost(
            "context_switch_ns",
            switch,
            "two threads that yield to each other, less yields without a switch",
        );
        let refill =
            local::tlb_refill(cpu, calls.shared_file).map_err(refused("processes that take turns"))?;
        self.cost(
            "tlb_refill_ns",
            refill,
            "messages that 16 processes pass around, less those of 16 threads without shared_file_ns",
        );
        let woken = local::wakeups(cpu).map_err(refused("wakeups"))?;
        // a turn of a reader is one system call, two looks into the pipe, a switch, and what it takes to block
        let own = calls.syscall.and(calls.read.map(2.0)).and(calls.pick).and(switch);
        let block = woken.turn.without(own);
        let wake = woken.wake.without(calls.syscall).without(calls.write);
        let accounted = |handover, others: Sample| {
            let found = local::accounted(cpu, handover).map_err(refused("the CPU time of wakeups"))?;
            Ok(found.woken_of(woken.wake.ns + woken.turn.ns + others.ns).without(own))
        };
        let switches = calls.pick.and(switch);
        let wait = accounted(Handover::Yield, calls.syscall.and(switches))?.at_most(block);
        self.cost(
            "wait_ns",
            wait,
            "CPU time that the kernel accounts to readers, less their calls and switches",
        );
        let dequeue = block.without(wait);
        self.cost(
            "dequeue_ns",
            dequeue,
            "turns of readers that block, less their calls and switches, and wait_ns",
        );
        let (enqueue, how) = if preempts_lazily {
            (wake.map(0.5), "taken for half of a wakeup, because the kernel preempts lazily")
        } else {
            let woken = accounted(Handover::Preemption, switches)?;
            (woken.without(wait).at_most(wake), "what is accounted to readers if they preempt their wakers")
        };
        self.cost("enqueue_ns", enqueue, how);
        let wakeup = wake.without(enqueue);
        self.cost("wakeup_ns", wakeup, "writes that wake a reader, less the write and the enqueue");
        thread::pin(&[cpu]).map_err(refused("a CPU of its own"))?;
        Ok(Local { wake: woken.wake, turn: woken.turn, switch })
    }

    pub(crate) fn processes(&mut self) -> Result<(), CalibrateError> {
        let threads = process::threads().map_err(refused("threads"))?;
        self.cost("thread_ns", threads.create, "CPU time of the creator");
        self.cost("thread_start_ns", threads.start, "CPU time of the thread when its own code begins");
        self.cost(
            "exit_ns",
            threads.exit,
            "CPU time of the process beyond that of the creator and the thread's own",
        );
        let processes = process::processes().map_err(refused("forks"))?;
        self.cost("fork_ns", processes.fork, "CPU time of the parent, this program");
        self.cost(
            "process_exit_ns",
            processes.exit.without(threads.exit),
            "CPU time of children that only end, this program, less the end of a thread",
        );
        Ok(())
    }

    pub(crate) fn timers(&mut self, calls: &Calls) -> Result<(), CalibrateError> {
        let timer = timer::timer().map_err(refused("timers"))?;
        let arm = timer.arm.without(calls.syscall);
        self.cost("timer_arm_ns", arm, "timers that are armed to expire before all others, less getppid()");
        self.cost(
            "timer_ns",
            timer.interrupt,
            "the longest interruption of a busy task when such a timer expires",
        );
        Ok(())
    }

    pub(crate) fn tick(&mut self, cpu: usize, hz: u32) -> Result<(), CalibrateError> {
        if let Some(tick) = tick::tick(cpu, hz).map_err(refused("the tick"))? {
            self.cost("tick_ns", tick, "periodic interruptions of a busy task");
        }
        Ok(())
    }

    /// A line takes much longer or shorter now, `after` all: costs of lines are of two machines. Interrupts take thousands of
    /// ns in a guest whatever a line takes, so what was measured of them is better than any assumption.
    pub(crate) fn doubt_if_moved(&mut self, after: &Transfers) {
        let moved = self.costs.iter().find_map(|cost| {
            let (before, after) = (cost.sample.ns, *after.get(cost.name)?);
            (before.max(after) > MOVED * before.min(after)).then(|| {
                format!("a line between two CPUs took {before:.0} ns before and {after:.0} ns afterwards: the host moved them")
            })
        });
        let of_lines = |cost: &&mut Measured| OF_LINES.contains(&cost.name) && cost.doubt.is_none();
        for cost in self.costs.iter_mut().filter(of_lines) {
            cost.doubt.clone_from(&moved);
        }
    }

    /// The transfer of a line within an LLC is passed back.
    pub(crate) fn memory(
        &mut self,
        machine: &Machine,
        cpus: &Pairs,
    ) -> Result<Option<Sample>, CalibrateError> {
        let mut within_llc = None;
        for (name, pair) in &cpus.by_distance {
            let sample = memory::transfer(pair.0, pair.1).map_err(refused("transfers between CPUs"))?;
            self.cost(name, sample, "half a round trip of a line between two CPUs");
            if *name == "transfer_llc_ns" {
                within_llc = Some(sample);
            }
        }
        thread::pin(&[cpus.first]).map_err(refused("a CPU of its own"))?;
        let caches = &machine.caches;
        let llc = (4 * caches.l2_bytes).min(caches.llc_bytes.midpoint(caches.l2_bytes));
        self.cost(
            "llc_line_ns",
            memory::hits(llc as usize),
            "loads in random order from four times the L2, the fastest of five walks",
        );
        let beyond = 2 * caches.llc_bytes;
        if beyond <= WALK_BYTES {
            let load = memory::load(beyond as usize);
            self.cost("dram_line_ns", load, "loads in random order from twice the LLC");
        }
        Ok(within_llc)
    }

    pub(crate) fn remote(
        &mut self,
        (from, to): (usize, usize),
        transfer: Sample,
        calls: &Calls,
        local: &Local,
        machine: &Machine,
    ) -> Result<(), CalibrateError> {
        let turns = |channel, from, to, bytes| {
            remote::turns(channel, from, to, bytes).map_err(refused("remote messages"))
        };
        let reads = |from, to| Ok(turns(Channel::Pipe, from, to, STREAM_BYTES)?.read);
        // the first read of a turn also fetches the pipe itself, which is little for each of fifty
        let data = reads(to, from)?.without(reads(from, from)?);
        let alone = transfer.map((STREAM_BYTES / LINE_BYTES - 1) as f64);
        let pct = streams(data.without(transfer), alone);
        self.cost("stream_pct", pct, "lines of pipe messages from another CPU, against one line at a time");
        let parallel = 100.0 / machine.costs.mlp_pct as f64;
        let assumed = &machine.costs;
        let stream_pct = if pct.is_vague(assumed.stream_pct) { assumed.stream_pct as f64 } else { pct.ns };
        let streamed = 1.0 + (DATA_LINES - 1) as f64 * 100.0 / stream_pct;
        let in_turn = transfer.map(1.0 + (CHANNEL_LINES - 1) as f64 * parallel + streamed);
        let both = remote::stream(from, to, MESSAGE_BYTES).map_err(refused("remote pipes"))?;
        let lookahead = in_turn.without(both.without(calls.message));
        self.cost(
            "lookahead_ns",
            lookahead,
            "the lines of a pipe message one after the other, less what it takes longer between two busy CPUs",
        );
        let vague = lookahead.is_vague(assumed.lookahead_ns);
        let ahead = if vague { assumed.lookahead_ns as f64 } else { lookahead.ns };
        let ahead = Sample { ns: ahead, spread_ns: 0.0 };
        let sockets = |from, to| -> Result<Sample, CalibrateError> {
            let turns = turns(Channel::Sockets, from, to, MESSAGE_BYTES)?;
            Ok(turns.write.and(turns.read))
        };
        let longer = sockets(to, from)?.without(sockets(from, from)?);
        // either side also waits for the data, as on a pipe
        let longer = longer.without(transfer.map(streamed).without(ahead).map(2.0));
        let assumed_ns = remote_socket_ns(transfer.ns, calls.socket.ns);
        self.cost(
            "socket_remote_pct",
            longer.map(100.0 / assumed_ns),
            "messages on ten sockets from another CPU, less those from the same one and the lines of their data, against what \
             they take by default",
        );
        let messages = |family| -> Result<Sample, CalibrateError> {
            let of = |first, second| {
                message::messages(family, first, second).map_err(refused("messages between CPUs"))
            };
            Ok(of(from, to)?.without(of(from, from)?))
        };
        let longer = messages(Family::Tcp)?.and(messages(Family::Unix)?).map(0.5);
        self.cost(
            "message_lines",
            longer.map(1.0 / transfer.ns.max(1.0)),
            "messages on eight sockets, over TCP and local ones, that are found by epoll on another CPU, less those on the same \
             one, against a line",
        );
        let busy = remote::wakeups(from, to, &[Duration::from_micros(200)], true);
        let busy = busy.map_err(refused("remote wakeups"))?[0];
        // as the simulator moves lines: that of a lock alone, the others together, all of them asked for ahead
        let lines = |alone: u64, together: u64| {
            transfer.map(alone as f64 + together as f64 * parallel).without(ahead)
        };
        let (wakee, woken) = (lines(0, WAKEE_LINES), lines(0, SWITCH_LINES));
        let queues = lines(1, RQ_LINES - 1 + CURR_LINES).and(lines(1, CHANNEL_LINES - 1)).and(lines(1, 0));
        let send = busy.wake.without(local.wake).without(wakee).without(queues);
        self.cost(
            "ipi_send_ns",
            send,
            "wakeups of a task on a busy CPU, less local ones and the transfer of lines",
        );
        let Some(handled) = remote::interrupt(from, to).map_err(refused("interrupts"))? else {
            return Ok(());
        };
        self.cost("ipi_handle_ns", handled, "what a busy task loses to a memory barrier of another CPU");
        // the woken task's way back to user space, after the interrupt
        let way_back = calls.pick.and(local.switch).and(calls.read).and(woken);
        let before_send = busy.wake.without(send);
        let flight = busy.latency.without(before_send).without(handled).without(way_back);
        self.cost(
            "ipi_deliver_ns",
            flight,
            "latency of a wakeup on a busy CPU, less all that is known of it",
        );
        for us in IDLE_US {
            let before = cpuidle::Usage::of_cpu(to);
            let slept = [Duration::from_micros(us)];
            let idle = remote::wakeups(from, to, &slept, false).map_err(refused("wakeups of idle CPUs"))?[0];
            let entered = cpuidle::Usage::of_cpu(to).most_since(&before).map(str::to_owned);
            self.exits.push(Exit { exit: idle.latency.without(busy.latency), entered });
            if us == IDLE_US[0] {
                let turn = idle.turn.without(calls.syscall).without(local.turn).without(woken);
                self.cost(
                    "idle_return_ns",
                    turn,
                    "CPU time of turns of a task that a CPU leaves idle for, less that on a busy CPU",
                );
            }
        }
        Ok(())
    }
}

/// How many lines a copy from another CPU has in flight, in percent, if its lines take `data` more than a CPU's own
/// and would take `alone` one after the other. It spreads as the part of `alone` that the copy takes does: by its own inverse, a
/// copy that takes next to nothing would be known too badly to be used (docs/results/validation-zen-4.md).
pub(crate) fn streams(data: Sample, alone: Sample) -> Sample {
    let pct = 100.0 * alone.ns / data.ns.max(alone.ns / MOST_STREAMS);
    Sample { ns: pct, spread_ns: pct * data.spread_ns / alone.ns }
}

/// Calls that are part of other measurements.
pub(crate) struct Calls {
    syscall: Sample,
    /// A write to a pipe and a read, without the system call and the copy.
    write: Sample,
    read: Sample,
    pick: Sample,
    /// A whole read or write of [`MESSAGE_BYTES`] on a pipe, in a process of several threads.
    message: Sample,
    /// `socket_op_ns`.
    socket: Sample,
    /// `shared_file_ns`.
    shared_file: Sample,
}

/// What a wakeup takes without another CPU.
pub(crate) struct Local {
    /// The whole write that wakes.
    wake: Sample,
    /// The whole turn of a reader that blocks.
    turn: Sample,
    switch: Sample,
}
