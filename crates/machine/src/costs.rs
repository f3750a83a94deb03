//! The physical costs of a machine: one table, with one line for each cost.

use serde::{Deserialize, Serialize};

/// One entry of the table of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostField {
    /// Name, as in a machine file and in [`Costs`].
    pub name: &'static str,
    /// What it costs, in which unit.
    pub meaning: &'static str,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
    /// Value where a description gives none.
    pub default: u64,
    /// Where the default comes from.
    pub source: &'static str,
    /// In four of five cases, a machine without a figure of its own has a value from here.
    ///
    /// assumption: the spread of what the source names, and of what `coreward calibrate` found on other machines; where
    /// there is one figure or none, half of the default to two or three times of it, as kernel paths differ by
    /// mitigations, compilers and clock.
    pub low: u64,
    /// To here.
    pub high: u64,
}

macro_rules! costs {
    ($($(#[doc = $doc:literal])+ $name:ident = $default:literal ($low:literal..=$high:literal) in $min:literal..=$max:literal, $source:literal;)+) => {
        /// What things cost on a machine. All are integers; a name's ending gives the unit.
        ///
        /// Defaults, ranges and the sources of the defaults are in [`Costs::FIELDS`].
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Costs { $($(#[doc = $doc])+ pub $name: u64,)+ }

        impl Default for Costs {
            fn default() -> Self { Self { $($name: $default,)+ } }
        }

        impl Costs {
            /// All costs in the order of the documentation.
            pub const FIELDS: &'static [CostField] = &[$(CostField {
                name: stringify!($name),
                meaning: concat!($($doc),+),
                min: $min, max: $max, default: $default, source: $source, low: $low, high: $high,
            },)+];

            /// The value of a cost by name.
            pub fn get(&self, name: &str) -> Option<u64> {
                match name { $(stringify!($name) => Some(self.$name),)+ _ => None }
            }

            fn slot(&mut self, name: &str) -> Option<&mut u64> {
                match name { $(stringify!($name) => Some(&mut self.$name),)+ _ => None }
            }
        }
    };
}

costs! {
    /// Transfer of a modified cache line from the SMT sibling, one way, in ns.
    transfer_smt_ns = 8 (7..=10) in 0..=100_000,
        "core-to-core-latency README (github.com/nviennot/core-to-core-latency): 7.4 to 8.1 ns on Xeon, 9 to 10 on EPYC";
    /// Transfer of a modified cache line from another core of the same LLC, one way, in ns.
    transfer_llc_ns = 45 (22..=60) in 0..=100_000,
        "core-to-core-latency README: 44 to 51 ns on monolithic Xeon dies";
    /// Transfer of a modified cache line from another LLC of the same package, one way, in ns.
    transfer_package_ns = 100 (60..=160) in 0..=100_000,
        "core-to-core-latency issue 132 and README: 97 to 107 ns between the core complexes of EPYC Genoa and Milan";
    /// Transfer of a modified cache line from another package or node, one way, in ns.
    transfer_remote_ns = 130 (108..=210) in 0..=100_000,
        "core-to-core-latency README: 108 to 136 ns on two-socket Xeon";
    /// Load of a line that hits the core's own LLC, in ns.
    llc_line_ns = 15 (10..=40) in 0..=100_000,
        "7-cpu.com and AnandTech 14694: 34 to 50 cycles at about 3 GHz";
    /// Load of a line from the memory of the own node, in ns.
    dram_line_ns = 100 (80..=150) in 0..=100_000,
        "AnandTech 14694: 113 to 122 ns on EPYC Rome; 7-cpu.com: L3 + 67 ns on Westmere";
    /// Load of a line from the memory of another node, in ns.
    dram_remote_line_ns = 160 (120..=230) in 0..=100_000,
        "assumption: local latency plus 60 ns for the socket hop (7-cpu.com, Westmere: 105 against 67 ns above L3)";
    /// Memory-level parallelism of a refill in percent: 100 fetches one line after the other.
    mlp_pct = 200 (100..=400) in 100..=10_000,
        "assumption: two misses in flight; Ferdman et al., Clearing the Clouds, ASPLOS 2012, find the memory-level parallelism of server software to be low";
    /// Lines of a message that are copied from another CPU, from its second one on, in percent: 100 fetches one line after the
    /// other. The hardware fetches ahead of a sequential copy.
    stream_pct = 1_500 (800..=2_500) in 100..=10_000,
        "measured: messages of 500 to 4000 bytes in a pipe between two CPUs of a Granite Rapids guest, Linux 6.18: reads 1700 to 2200, writes 900 to 1800";
    /// Throughput of two busy SMT siblings together, relative to one alone, in percent.
    smt_pct = 115 (105..=150) in 100..=200,
        "kernel/sched/topology.c up to Linux 4.20: smt_gain 1178/1024 (about 15 %)";
    /// One context switch between two tasks on a CPU, without the choice of the next task, in ns.
    context_switch_ns = 700 (300..=1_100) in 0..=1_000_000,
        "assumption: 1.07 us for a thread switch on a pipe (11th-generation Core, Linux 6.6, ddumbying.vercel.app/experiments/ctx-switch-overhead), less two system calls";
    /// What a switch takes longer to a process of which the CPU holds no translations any more, in ns: an x86 CPU tells
    /// six address spaces apart. 0 where none is ever dropped.
    tlb_refill_ns = 350 (170..=700) in 0..=1_000_000,
        "assumption: half of the 620 to 780 ns by which 16 processes that pass messages round on a CPU take longer for each than 16 threads (Zen 5 guest, Linux 6.18): a guest's translations are walked in two dimensions; by processes that only yield, 300 to 480 ns were measured in guests on Zen 4, Zen 5 and Granite Rapids";
    /// One pass through the scheduler (`__schedule`): locks, clock and the choice of the next task, in ns.
    pick_next_ns = 160 (100..=250) in 0..=1_000_000,
        "measured: median of sched_yield() alone on its CPU less getppid(), 2000 each in a row, Linux 6.18 guest on Sapphire Rapids: 148 to 181 ns";
    /// Entering and leaving the kernel by a system call, in ns.
    syscall_ns = 100 (50..=250) in 0..=1_000_000,
        "assumption: 50 to 150 ns on current x86 with mitigations off";
    /// A wakeup in the waker (`try_to_wake_up`), without scan, queueing and lock contention, in ns.
    wakeup_ns = 175 (90..=600) in 0..=1_000_000,
        "assumption: 540 ns for the wake call to a polling CPU on AMD (lkml 035c23b4-118e-6a35-36d9-1b11e3d679f8), less a system call; of the rest, 39 % come before the runqueue's clock is read, as measured in a Granite Rapids guest, Linux 6.18 (docs/results/cfs.md)";
    /// Queueing a task on a runqueue, load tracking included (`activate_task`), and the rest of its wakeup, in ns.
    enqueue_ns = 275 (140..=500) in 0..=1_000_000,
        "assumption: the other 61 % of a wakeup (wakeup_ns)";
    /// Taking a task off a runqueue, load tracking included (`deactivate_task`), in ns. The next task's time has begun.
    dequeue_ns = 70 (35..=160) in 0..=1_000_000,
        "assumption: a seventh of the 1215 ns that ftrace showed on Juno, tracing included, less wait_ns";
    /// Queueing the entity of a task group, or taking it off its queue, in ns: at each level of groups, when the first of
    /// a group's tasks comes to a CPU or the last one leaves it.
    group_entity_ns = 120 (60..=250) in 0..=1_000_000,
        "measured: two processes that wake each other by pipes on one CPU, one of them in 1 to 5 nested groups; Zen 4 guest, Linux 6.18, mitigations on: 0.25 us a level for a wakeup and a sleep (docs/results/task-groups.md)";
    /// Gathering the statistics of one CPU in a load balance, in ns.
    balance_cpu_ns = 60 (25..=120) in 0..=100_000,
        "assumption: a few runqueue lines from other cores; seed 002 shows 2236 ns a newidle balance of a core, 3444 of 24 CPUs, 4590 of 48";
    /// One attempt to balance one domain, without gathering statistics, in ns.
    balance_ns = 600 (300..=1_500) in 0..=1_000_000,
        "seed 002: max_newidle_lb_cost 2236, 3444, 4590 ns for domains of 2, 24, 48 CPUs is 2.1 us plus 50 ns a CPU; a maximum, so the mean is taken to be a third (assumption)";
    /// Moving one task between runqueues in the balancer, in ns.
    detach_task_ns = 400 (200..=1_000) in 0..=1_000_000,
        "assumption: a dequeue, an enqueue and a lock hand-over";
    /// Sending an inter-processor interrupt, cost to the sender, in ns.
    ipi_send_ns = 150 (75..=600) in 0..=1_000_000,
        "assumption: an x2APIC register write and the call queue's line";
    /// From the start of sending an inter-processor interrupt until the receiver takes it, in ns. A virtual
    /// machine's sender may be busy with sending for longer than that.
    ipi_deliver_ns = 650 (300..=1_500) in 0..=1_000_000,
        "assumption: the sender's 150 ns, and half of the 1600 cycles of a cross call to an idle CPU, and back, on Westmere (lkml.indiana.edu/hypermail/linux/kernel/1202.0/02819.html)";
    /// Handling an inter-processor interrupt in the receiver, in ns.
    ipi_handle_ns = 300 (150..=1_000) in 0..=1_000_000,
        "assumption: interrupt entry and exit, call queue flush";
    /// One scheduler tick, in ns.
    tick_ns = 1_000 (500..=3_000) in 0..=1_000_000,
        "assumption: 1 to 2 us of timer interrupt, accounting and load tracking";
    /// Creating a thread (`pthread_create`), cost to the creator, in ns.
    thread_ns = 23_000 (11_000..=35_000) in 0..=100_000_000,
        "measured: medians of 1000 by CLOCK_THREAD_CPUTIME_ID, glibc 2.36, Linux 6.18 guest on Sapphire Rapids, with mitigations";
    /// What a new thread does before its own code begins, in ns.
    thread_start_ns = 5_000 (2_500..=10_000) in 0..=100_000_000,
        "measured: medians of 1000 by CLOCK_THREAD_CPUTIME_ID, glibc 2.36, Linux 6.18 guest on Sapphire Rapids, with mitigations";
    /// Forking a process (`fork`), cost to the parent, in ns.
    fork_ns = 70_000 (40_000..=150_000) in 0..=100_000_000,
        "measured: medians of 1000 by CLOCK_THREAD_CPUTIME_ID, glibc 2.36, Linux 6.18 guest on Sapphire Rapids, with mitigations";
    /// What a new process does before its own code begins, in ns: it copies the pages that it writes.
    fork_start_ns = 40_000 (20_000..=80_000) in 0..=100_000_000,
        "measured: medians of 1000 by CLOCK_THREAD_CPUTIME_ID, glibc 2.36, Linux 6.18 guest on Sapphire Rapids, with mitigations";
    /// Exit of a thread, in ns.
    exit_ns = 10_000 (5_000..=30_000) in 0..=100_000_000,
        "assumption: about two thirds of its creation";
    /// What the end of a process takes longer than that of a thread, in ns: it gives its memory back and closes its files.
    process_exit_ns = 65_000 (40_000..=130_000) in 0..=100_000_000,
        "measured: children of a small program that only end, their CPU time less that before the end of a thread (Zen 4 guest, Linux 6.18): 55 to 80 us";
    /// `wait()` for a child process that has ended, when it is found, in ns.
    reap_ns = 2_800 (2_000..=6_000) in 0..=100_000_000,
        "measured: CPU time of wait() for each of 100 processes that have ended (Zen 4 guest, Linux 6.18): 2.7 to 2.9 us";
    /// What `wait()` takes to look at one of the child processes, in ns.
    child_scan_ns = 20 (8..=33) in 0..=1_000_000,
        "measured: waitpid() that finds none of 50 to 800 children ended (Zen 4 guest, Linux 6.18): 8 ns for each, 33 ns if they are in no cache";
    /// The kernel's way out of the idle loop after the interrupt that ends it, in ns; part of the `exit_ns` of an idle state.
    idle_return_ns = 1_000 (500..=6_000) in 0..=100_000_000,
        "assumption: tick_nohz_idle_exit() and the programming of a timer; in a guest, where that leaves the guest, 5 us: by so much the time of a turn of perf bench sched pipe in /proc/PID/schedstat is longer than in perf's task-clock (Zen 4 guest, Linux 6.18)";
    /// What each read or write on a file takes longer in a process of several threads, in ns.
    shared_file_ns = 45 (30..=70) in 0..=1_000_000,
        "measured: pipe messages of a process with a second thread less those of one without, Linux 6.18 guest on Sapphire Rapids";
    /// One write to a pipe without bytes, warm, without entering the kernel and without the times of PIPE_TIMES, in ns.
    pipe_op_ns = 150 (60..=300) in 0..=1_000_000,
        "assumption: mutex, ring slot and page of an uncontended pipe";
    /// One send or receive on a local socket, whichever is shorter, without bytes, warm, without entering the kernel, in ns.
    socket_op_ns = 400 (250..=900) in 0..=1_000_000,
        "assumption: buffer allocation and queue lock above those of a pipe";
    /// A send through TCP and the loopback interface, above one on a local socket, in ns.
    tcp_send_ns = 1_800 (1_200..=2_400) in 0..=1_000_000,
        "measured: half the difference of round trips of a byte between two processes on a CPU, over TCP and over AF_UNIX, medians of 100 x 100, Linux 6.18 guest, with mitigations: 1.7 to 1.9 us";
    /// A send through UDP and the loopback interface, above one on a local socket, in ns.
    udp_send_ns = 550 (400..=800) in 0..=1_000_000,
        "measured: as for TCP: 0.4 to 0.65 us";
    /// Copying between user and kernel memory, in ns per KiB.
    copy_ns_per_kib = 60 (40..=120) in 0..=1_000_000,
        "assumption: about 16 GB/s warm";
    /// Uniform spread of each piece of user work, plus or minus, in percent.
    jitter_pct = 5 (2..=10) in 0..=100,
        "assumption: keeps repeated work from running in lockstep";
    /// What a read of a pipe takes longer than a write, in ns.
    pipe_read_ns = 8 (0..=20) in 0..=1_000_000,
        "measured: 100 writes, then 100 reads of 100 bytes; Zen 4 guest, Linux 6.18: 2 to 14 ns";
    /// What a receive on a local socket takes longer than a send, in ns.
    socket_read_ns = 45 (0..=90) in 0..=1_000_000,
        "measured: as for pipes: 10 to 80 ns";
    /// How long before it needs the lines of a pipe, a socket, a task or a runqueue an out-of-order core asks for them, in ns:
    /// so much of their transfer is hidden by the work before.
    lookahead_ns = 90 (40..=130) in 0..=100_000,
        "measured: a pipe operation between two busy CPUs takes 20 to 50 ns longer than on one CPU, where its lines take 45 to 57 ns each one after the other; Zen 4 guest, Linux 6.18 (docs/results/pinned.md)";
    /// A call to wait for a futex, without entering the kernel, queueing and switching, in ns.
    futex_wait_ns = 120 (60..=200) in 0..=1_000_000,
        "measured: FUTEX_WAIT that returns because the value is another one, less getppid(); Linux 6.18 guests: 93 ns on Zen 5, 142 on Zen 4";
    /// A call to wake those that wait for a futex, without entering the kernel and waking anybody, in ns.
    futex_wake_ns = 55 (25..=110) in 0..=1_000_000,
        "measured: FUTEX_WAKE where nobody waits, less getppid(); Linux 6.18 guests: 31 ns on Zen 5, 76 on Zen 4";
    /// Frequency with which a CPU runs when all cores of its last-level cache are busy, in percent of that which the
    /// kernel's load tracking takes for full speed. The costs are those at this frequency.
    all_core_freq_pct = 100 (100..=100) in 10..=100,
        "arch/x86/kernel/cpu/aperfmperf.c: on AMD, full speed is the middle between the base and the highest frequency, which all cores together reach; guests do not see the frequency";
    /// Arming a timer that expires before all others of its CPU, as a task does that sleeps for a short time, or an idle CPU that
    /// stops its tick, in ns: it is queued, and the clock's hardware is set.
    timer_arm_ns = 200 (100..=500) in 0..=1_000_000,
        "assumption: a locked queue, and a write to a register; in a guest, where the host sees that write, 7.7 us (Granite Rapids, Linux 6.18)";
    /// The interrupt of a timer, in ns, with the arming of the next one; the tick has its own cost.
    timer_ns = 500 (250..=1_500) in 0..=1_000_000,
        "assumption: interrupt entry and exit, and a timer that is armed; in a guest 17 us (Granite Rapids, Linux 6.18)";
    /// The part of each piece of the kernel's work that is exponentially distributed, in percent of the mean; the rest is constant.
    kernel_jitter_pct = 25 (15..=40) in 0..=100,
        "measured: standard deviations between tracepoints of wakeups and switches on one CPU, 21 to 44 % of the means; Granite Rapids guest, Linux 6.18 (docs/results/jitter.md)";
    /// What a write to a pipe takes longer because it sets the times of its inode (file_update_time()), in ns. With PIPE_TIMES.
    pipe_mtime_ns = 25 (10..=85) in 0..=1_000_000,
        "measured: writes to a FIFO, whose times are still set, less those to a pipe (Granite Rapids, Linux 6.18): 10 ns; Linux 6.1 runs three times as many instructions for that, by the time of emulated guests (docs/results/cfs.md). Bound: the ratios of a test of February 2025 (lkml 20250204132153.GA20921@redhat.com)";
    /// What a read of a pipe takes longer because of the time of its last access (touch_atime()), in ns. With PIPE_TIMES.
    pipe_atime_ns = 7 (3..=30) in 0..=1_000_000,
        "measured: as for writes: 8 ns; about as many instructions in Linux 6.1";
    /// What a send on a local socket takes longer than a receive, in ns.
    socket_send_ns = 0 (0..=20) in 0..=1_000_000,
        "measured: receives take longer instead (socket_read_ns) on Zen 4 and Granite Rapids, Linux 6.18";
    /// What a task that blocks does besides, while its own time still goes on, in ns: it queues itself on a wait queue, and leaves
    /// that when it is woken (prepare_to_wait(), finish_wait()).
    wait_ns = 100 (50..=250) in 0..=1_000_000,
        "measured: the CPU time that the kernel accounts to readers that block and to their wakers: 60 % of what a block takes beside the switch are the reader's, on Granite Rapids with Linux 6.18 as in an emulated guest with 6.1 (docs/results/cfs.md)";
    /// What a message on a socket costs that another CPU has had last, in percent of: 4 lines to read and 1 to write, and 30 % of
    /// `socket_op_ns` for either.
    socket_remote_pct = 100 (50..=150) in 0..=10_000,
        "measured: turns of two CPUs less turns of one, Linux 6.18 guests: about 110 % on Granite Rapids and Zen 4, 14 to 38 on Zen 5 (docs/results/pinned.md)";
    /// How many cache lines, one after the other, a message on a socket that its reader finds by epoll moves between the CPUs of its
    /// sender and of its receiver: half of them to either. In recorded workloads, whose work does not have them.
    message_lines = 23 (12..=35) in 0..=10_000,
        "measured: messages of 100 bytes on 8 sockets between two CPUs, less those on one CPU, Granite Rapids, Linux 6.18; of 80 and 2,300 bytes 33 over TCP, 24 over AF_UNIX (docs/results/pinned.md)";
}

impl CostField {
    /// The bounds of a `value` of this cost, if all that is known of it is where it comes from: as far from it as the
    /// default's are from the default if it is assumed, [`SOURCED_PCT`] to either side if it has a source.
    pub(crate) fn bounds_of(&self, value: u64, source: Option<&str>) -> (u64, u64) {
        let assumed = source.is_none_or(|source| source.contains("assum"));
        let of = |share: f64| (value as f64 * share).round() as u64;
        let by_default = |bound: u64| of(bound as f64 / self.default as f64);
        let (low, high) = match assumed {
            true => (by_default(self.low), by_default(self.high)),
            false => (of(1.0 - SOURCED_PCT / 100.0), of(1.0 + SOURCED_PCT / 100.0)),
        };
        (low.max(self.min), high.min(self.max))
    }
}

/// How far a cost with a source may be from the published or measured figure, in per cent.
///
/// assumption: of 24 costs that two calibrations of one host measured, 14 differ by at most 3 %, and two by more than 15 %
/// (`docs/results/validation-zen-4.md`). Others' machines differ by more than that one from itself, and fewer of them are known.
const SOURCED_PCT: f64 = 15.0;

impl Costs {
    /// A command that lists all.
    pub const LISTED: &str = "coreward topology 1c --toml";

    /// The table entry of a cost.
    pub fn field(name: &str) -> Option<&'static CostField> {
        Self::FIELDS.iter().find(|field| field.name == name)
    }

    /// Sets a cost by name.
    ///
    /// # Errors
    /// A message if there is no such cost (it names similar ones) or if the value is out of its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
        let (Some(field), Some(slot)) = (Self::field(name), self.slot(name)) else {
            let names = Self::FIELDS.iter().map(|field| field.name);
            return Err(coreward_input::unknown_of_many("cost", name, names, Self::LISTED));
        };
        if !(field.min..=field.max).contains(&value) {
            let (min, max) = (field.min, field.max);
            return Err(format!("{name} is {value}, allowed are {min} to {max}"));
        }
        *slot = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_older_version_lacks_costs_and_has_their_defaults() {
        let costs: Costs = serde_json::from_str(r#"{"syscall_ns": 7}"#).unwrap();
        assert_eq!(costs, Costs { syscall_ns: 7, ..Costs::default() });
        assert!(serde_json::from_str::<Costs>(r#"{"syscal_ns": 7}"#).is_err());
    }
}
