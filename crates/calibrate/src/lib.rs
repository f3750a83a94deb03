//! What things cost on the machine that this runs on.
//!
//! [`calibrate`] measures, on some of the CPUs that the process may use, what the simulator takes for the costs of a
//! machine ([`coreward_machine::Costs`]). Costs that come together are measured together and told apart by
//! subtraction, so that nothing is counted twice: a write to a pipe contains a system call, and a wakeup contains the
//! write that causes it. Every time is the mean of the middle half of many short batches: what else the machine
//! does now and then does not move it. Everything is measured in several passes, of which again the middle half counts,
//! because a machine is not the same for long: clocks change, and a hypervisor moves its guest's CPUs. The calls go through the C library, as
//! those of programs do: where the kernel guards its returns against speculation, the way back through the library
//! costs more than the library's own instructions (48 ns of 164 on Zen 4, Linux 6.18). What cannot be measured here
//! stays what it was.

mod contended;
mod cpuidle;
mod kernel;
mod local;
mod memory;
mod open;
mod others;
mod pairs;
mod passes;
mod process;
mod refill;
mod remote;
mod sample;
#[cfg(test)]
mod tests;
mod thread;
mod tick;
mod timer;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use coreward_engine::{CHANNEL_LINES, CURR_LINES, RQ_LINES, SWITCH_LINES, WAKEE_LINES, remote_socket_ns};
use coreward_machine::{Costs, IdleState, Machine, Preemption};
use cpuidle::{Exit, IDLE_US};
use local::Handover;
use others::Others;

pub use contended::Contended;
pub use open::Open;
use pairs::Pairs;
pub use refill::Refill;
use remote::Channel;
pub use sample::Sample;

/// Largest buffer that is walked for the latency of memory, in bytes.
const WALK_BYTES: u64 = 512 << 20;

/// Data of a message that goes from one CPU to another.
const DATA_LINES: usize = 2;
/// A short message, of as many lines.
const MESSAGE_BYTES: usize = 100;
/// A message of so many lines that all but the first come in a stream.
const STREAM_BYTES: usize = 1024;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// A copy that takes a hundredth of what its lines take alone takes nothing that could be measured.
const MOST_STREAMS: f64 = 100.0;

/// What is measured while others have a larger share of the CPUs than this is not used.
const BUSY: f64 = 0.25;

/// One cost, as measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Name of the cost.
    pub name: &'static str,
    /// Its value, in the unit of the cost.
    pub sample: Sample,
    /// How it was measured.
    pub how: &'static str,
    /// Why it is not used, if it is not.
    pub doubt: Option<String>,
}

impl Measured {
    /// A figure that does not rule out what is assumed without it is not used.
    fn doubt_if_vague(self, machine: &Machine) -> Measured {
        let assumed = machine.costs.get(self.name).expect("it is the name of a cost");
        let vague = self.sample.is_vague(assumed);
        let vague =
            vague.then(|| "the spread is wider than the figure, and has the default in it".to_owned());
        let doubt = self.doubt.or(vague);
        Measured { doubt, ..self }
    }
}

/// What a calibration found.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// Costs, in the order in which they were measured.
    pub costs: Vec<Measured>,
    /// Idle states as they were met, shallowest first; empty if there is only one CPU.
    pub idle_states: Vec<IdleState>,
    /// Why the idle states are not used, if they are not.
    pub idle_doubt: Option<String>,
    /// Accesses to one line by more and more CPUs. The simulation derives them from transfers; they are here to be
    /// compared.
    pub contended: Vec<Contended>,
    /// Loads of working sets by size and place, likewise.
    pub refills: Vec<Refill>,
    /// The costs that stay as they were.
    pub open: Vec<Open>,
    /// What the idle states are told from.
    exits: Vec<Exit>,
    /// So many costs were judged by how busy the machine was.
    judged: usize,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The kernel refuses what a measurement needs.
    #[error("cannot measure {what}: {source}")]
    Refused {
        /// What was to be measured.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The progress was answered so.
    #[error("the measurement was interrupted")]
    Interrupted,
}

/// Measures the machine that this runs on, which `machine` describes, in so many passes, of which each takes a few
/// seconds; at least 1. `progress` is told what comes
/// next, and whether that shall come is its answer.
///
/// # Errors
/// The kernel refuses a pipe, a socket, a thread, or a CPU that the process asks for; or `progress` answers no.
pub fn calibrate(
    machine: &Machine,
    passes: u32,
    mut progress: impl FnMut(&str) -> bool,
) -> Result<Calibration, CalibrateError> {
    let pass = |n| Calibration::pass(machine, |what| progress(&format!("{what}, pass {n} of {passes}")));
    let found = (1..=passes).map(pass).collect::<Result<Vec<_>, _>>()?;
    Ok(Calibration::of_passes(&found, machine))
}

/// What two threads on one CPU take to yield to each other, the system call included, in ns: what is beyond a
/// calibration's figures is the cost of something that goes on meanwhile, such as recording.
///
/// # Errors
/// The kernel refuses a thread, or a CPU that the process asks for.
pub fn switch_ns(machine: &Machine) -> Result<f64, CalibrateError> {
    let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
    let cpus = Pairs::of(machine, thread::is_allowed);
    let nothing = Sample { ns: 0.0, spread_ns: 0.0 };
    let switch = local::context_switch(cpus.first, nothing).map_err(refused("context switches"))?;
    Ok(switch.ns)
}

/// What a task takes to wake one on its own CPU that does not preempt it, the write to a pipe included, in ns; it serves
/// as [`switch_ns`] does.
///
/// # Errors
/// As of [`switch_ns`].
pub fn wakeup_ns(machine: &Machine) -> Result<f64, CalibrateError> {
    let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
    let cpus = Pairs::of(machine, thread::is_allowed);
    Ok(local::wakeups(cpus.first).map_err(refused("wakeups"))?.wake.ns)
}

/// A line takes this many times as long only if the host of a virtual machine has moved its CPUs. Measured: 27 or 33 ns on
/// most moments, 165 to 184 on the others, two CPUs of a Zen 4 guest (docs/results/validation-zen-4.md).
const MOVED: f64 = 2.0;

/// Costs that consist of the way of lines.
const OF_LINES: [&str; 10] = [
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
];

/// The costs of moving a line from one CPU to another, by name, in ns.
pub type Transfers = BTreeMap<String, f64>;

/// How long a line takes now from one CPU to another, for each distance that the machine has; takes some milliseconds. In
/// a virtual machine that depends on where the host runs the CPUs at the moment.
///
/// # Errors
/// The kernel refuses a thread, or a CPU that the process asks for.
pub fn transfers(machine: &Machine) -> Result<Transfers, CalibrateError> {
    let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
    transfers_between(&Pairs::of(machine, thread::is_allowed))
}

fn transfers_between(cpus: &Pairs) -> Result<Transfers, CalibrateError> {
    let between = |(name, (a, b)): &(&str, (usize, usize))| {
        memory::transfer(*a, *b).map(|sample| ((*name).to_owned(), sample.ns))
    };
    let measured = cpus.by_distance.iter().map(between).collect::<io::Result<_>>();
    measured.map_err(refused("transfers between CPUs"))
}

/// What is refused if a thread cannot know where it may run.
const OWN_CPUS: &str = "the CPUs of the thread";

impl Calibration {
    /// The same without what was measured by forks of this program. They cost more the more memory it has.
    #[must_use]
    pub fn without_forks(mut self) -> Calibration {
        self.costs.retain(|cost| !["fork_ns", "process_exit_ns"].contains(&cost.name));
        self
    }

    /// Measures everything once; see [`calibrate`]. `progress` likewise.
    ///
    /// # Errors
    /// As those of [`calibrate`].
    pub fn pass(
        machine: &Machine,
        mut progress: impl FnMut(&str) -> bool,
    ) -> Result<Calibration, CalibrateError> {
        let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
        let cpus = Pairs::of(machine, thread::is_allowed);
        let mut found = Calibration::default();
        let nr_cpus = machine.nr_cpus();
        let mut quiet = Others::since_now();
        let mut next = |found: &mut Calibration, what: &str| {
            found.doubt_if_busy(quiet.share(nr_cpus));
            quiet = Others::since_now();
            if progress(what) { Ok(()) } else { Err(CalibrateError::Interrupted) }
        };
        next(&mut found, "system calls, pipes and sockets")?;
        thread::pin(&[cpus.first]).map_err(refused("a CPU of its own"))?;
        let calls = found.calls()?;
        next(&mut found, "switches and wakeups")?;
        let local = found.local(cpus.first, &calls, machine.preemption == Some(Preemption::Lazy))?;
        next(&mut found, "threads and processes")?;
        found.processes()?;
        next(&mut found, "timers and the tick")?;
        found.timers(&calls)?;
        found.tick(cpus.first, machine.hz)?;
        next(&mut found, "caches and memory")?;
        let near = found.memory(machine, &cpus)?;
        if let (Some(other), Some(transfer)) = (cpus.other, near) {
            next(&mut found, "interrupts and idle CPUs")?;
            found.remote((cpus.first, other), transfer, &calls, &local, machine)?;
        }
        next(&mut found, "contended lines and moved working sets")?;
        found.together(machine, &cpus)?;
        found.doubt_if_busy(quiet.share(nr_cpus));
        // of all pairs, although the thread has only one CPU now
        let after = transfers_between(&cpus)?;
        found.doubt_if_moved(&after);
        Ok(found)
    }

    /// The machine with what was measured; each figure says how and when. What was measured badly stays as it is, and
    /// says so. The bounds of a cost are as far from its mean as the middle half of its batches is wide: if they are
    /// spread as a normal distribution is, four of five batches lie between.
    pub fn apply(&self, machine: &mut Machine, when: &str) {
        for cost in &self.costs {
            let field = Costs::field(cost.name).expect("only costs of the table are measured");
            if let Some(doubt) = &cost.doubt {
                let (ns, spread) = (cost.sample.ns, cost.sample.spread_ns);
                let path = format!("costs.{}", cost.name);
                let before = machine.source(&path).unwrap_or("given").to_owned();
                let source = format!(
                    "{before}; kept, because what was measured is not used: {doubt} (mean {ns:.0}, middle half within \
                     {spread:.0}; {when})"
                );
                machine.sources.insert(path, source);
                continue;
            }
            let value = (cost.sample.ns.round() as u64).clamp(field.min, field.max);
            machine.costs.set(cost.name, value).expect("it is in the range of the cost");
            let source = format!(
                "measured: {}; mean {:.0}, middle half within {:.0}; {when}",
                cost.how, cost.sample.ns, cost.sample.spread_ns
            );
            machine.sources.insert(format!("costs.{}", cost.name), source);
            let spread = (cost.sample.spread_ns.ceil() as u64).max(1);
            let bounds = (value.saturating_sub(spread).max(field.min), (value + spread).min(field.max));
            machine.own_bounds.insert(cost.name.to_owned(), bounds);
        }
        if !self.idle_states.is_empty() && self.idle_doubt.is_none() {
            machine.idle_states = self.idle_states.clone();
            machine
                .idle_states
                .iter_mut()
                .for_each(|state| state.source = format!("{}; {when}", state.source));
        }
        self.record_others(machine, when);
    }

    /// Adds to the machine's sources what is no cost, and why other costs were not measured.
    fn record_others(&self, machine: &mut Machine, when: &str) {
        let text =
            |sample: Sample| format!("{:.1} ns, middle half within {:.1}", sample.ns, sample.spread_ns);
        for Contended { cpus, rmw, read } in &self.contended {
            let source = format!(
                "measured: one line by {cpus} CPUs at a time: read-modify-write {}; read {}; {when}",
                text(*rmw),
                text(*read)
            );
            machine.sources.insert(format!("contended.{cpus}"), source);
        }
        for Refill { bytes, source, line } in &self.refills {
            let place = source.replace(' ', "_");
            let source = format!("measured: a line of {bytes} bytes, {source}: {}; {when}", text(*line));
            machine.sources.insert(format!("refill.{place}.{bytes}"), source);
        }
        for Open { name, why } in &self.open {
            let path = format!("costs.{name}");
            let assumed = machine.source(&path).unwrap_or("given").to_owned();
            machine.sources.insert(path, format!("not measured here, because {why}; {assumed}"));
        }
    }

    /// What CPUs do to each other.
    fn together(&mut self, machine: &Machine, cpus: &Pairs) -> Result<(), CalibrateError> {
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

    fn cost(&mut self, name: &'static str, sample: Sample, how: &'static str) {
        self.costs.push(Measured { name, sample, how, doubt: None });
    }

    /// Others had this share of the CPUs while the last costs were measured.
    fn doubt_if_busy(&mut self, others: f64) {
        let last = self.costs.split_off(self.judged);
        let busy = (others > BUSY)
            .then(|| format!("other programs had {:.0} % of the CPUs meanwhile", others * 100.0));
        if !self.exits.is_empty() && self.idle_doubt.is_none() {
            self.idle_doubt = busy.clone();
        }
        let doubted = |cost: Measured| Measured { doubt: cost.doubt.or_else(|| busy.clone()), ..cost };
        self.costs.extend(last.into_iter().map(doubted));
        self.judged = self.costs.len();
    }

    fn calls(&mut self) -> Result<Calls, CalibrateError> {
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

    fn local(&mut self, cpu: usize, calls: &Calls, preempts_lazily: bool) -> Result<Local, CalibrateError> {
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

    fn processes(&mut self) -> Result<(), CalibrateError> {
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

    fn timers(&mut self, calls: &Calls) -> Result<(), CalibrateError> {
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

    fn tick(&mut self, cpu: usize, hz: u32) -> Result<(), CalibrateError> {
        if let Some(tick) = tick::tick(cpu, hz).map_err(refused("the tick"))? {
            self.cost("tick_ns", tick, "periodic interruptions of a busy task");
        }
        Ok(())
    }

    /// A line takes much longer or shorter now, `after` all: costs of lines are of two machines. Interrupts take thousands of
    /// ns in a guest whatever a line takes, so what was measured of them is better than any assumption.
    fn doubt_if_moved(&mut self, after: &Transfers) {
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
    fn memory(&mut self, machine: &Machine, cpus: &Pairs) -> Result<Option<Sample>, CalibrateError> {
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
        let beyond = (2 * caches.llc_bytes).min(WALK_BYTES);
        if beyond > caches.llc_bytes {
            self.cost(
                "dram_line_ns",
                memory::load(beyond as usize),
                "loads in random order from twice the LLC",
            );
        }
        Ok(within_llc)
    }

    fn remote(
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
/// and would take `alone` one after the other. It spreads as the part of `alone` that the copy takes does.
fn streams(data: Sample, alone: Sample) -> Sample {
    let pct = 100.0 * alone.ns / data.ns.max(alone.ns / MOST_STREAMS);
    Sample { ns: pct, spread_ns: pct * data.spread_ns / alone.ns }
}

/// Calls that are part of other measurements.
struct Calls {
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
struct Local {
    /// The whole write that wakes.
    wake: Sample,
    /// The whole turn of a reader that blocks.
    turn: Sample,
    switch: Sample,
}

fn refused(what: &'static str) -> impl FnOnce(io::Error) -> CalibrateError {
    move |source| CalibrateError::Refused { what, source }
}
