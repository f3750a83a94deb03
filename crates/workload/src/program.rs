//! Programs of tasks, and what they share.

use std::sync::Arc;

use crate::{Role, TaskGroup};

/// One step of a task. Channel operands count from the task's base, which its
/// parent gave it when it spawned it, so that many tasks share one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes for `ns` nanoseconds of work: the time it takes at capacity 1024 on an idle core.
    Run {
        /// Work in ns.
        ns: u64,
    },
    /// Computes, as [`Op::Run`], for a time that is drawn from a distribution.
    RunDrawn {
        /// Index in [`Shared::distributions`].
        of: u32,
    },
    /// Sleeps, as [`Op::Sleep`] or [`Op::Device`], for a time that is drawn from a distribution.
    SleepDrawn {
        /// Index in [`Shared::distributions`].
        of: u32,
        /// A device ends it.
        device: bool,
    },
    /// Sleeps for `ns` on a timer.
    Sleep {
        /// Time in ns.
        ns: u64,
    },
    /// Waits for a device, which interrupts after `ns`.
    Device {
        /// Time in ns.
        ns: u64,
    },
    /// Writes a message; blocks while the channel is full.
    Write {
        /// Channel, relative to the task's base.
        channel: u32,
        /// Size of the message.
        bytes: u32,
    },
    /// Reads until `bytes` have come; blocks while the channel is empty.
    Read {
        /// Channel, relative to the task's base.
        channel: u32,
        /// Bytes to read.
        bytes: u32,
    },
    /// Waits until the channel can be read, and reads nothing (`poll`). The channel's number is absolute.
    Poll {
        /// Channel, absolute.
        channel: u32,
    },
    /// Writes to a channel by its absolute number.
    WriteTo {
        /// Channel, absolute.
        channel: u32,
        /// Size of the message.
        bytes: u32,
    },
    /// Reads from a channel by its absolute number.
    ReadFrom {
        /// Channel, absolute.
        channel: u32,
        /// Bytes to read.
        bytes: u32,
    },
    /// Closes a channel (`close`): a task that reads it when it is empty, or waits to read it, leaves its
    /// innermost loop. It has to be in one.
    Close {
        /// Channel, relative to the task's base.
        channel: u32,
    },
    /// Starts a task that runs `program` on channels from `base`.
    Spawn {
        /// Index in [`Workload::programs`].
        program: u32,
        /// First channel of the new task.
        base: u32,
        /// Fork a process (true) or start a thread of this process (false).
        process: bool,
    },
    /// Starts a process that runs `program`, and goes on with the next op in the same system call (`vfork`): nothing
    /// preempts it in between.
    Vfork {
        /// Index in [`Workload::programs`].
        program: u32,
    },
    /// Waits until all tasks that this one spawned have ended.
    WaitChildren,
    /// Repeats the ops up to the matching [`Op::End`] `times` times.
    Repeat {
        /// Repetitions, 0 skips the body.
        times: u64,
    },
    /// Ends the body of a [`Op::Repeat`].
    End,
    /// The measured time begins.
    MarkStart,
    /// The measured time ends.
    MarkEnd,
    /// Gives the CPU away if another task waits (`sched_yield`).
    Yield,
    /// Enters the kernel and leaves it at once, as a write to /dev/null does.
    Syscall,
    /// Writes `bytes` of memory of its own, one after the other.
    Memset {
        /// Number of bytes.
        bytes: u64,
    },
    /// The task, and those that it spawns, may from now on run only on the CPUs of a set (`sched_setaffinity`).
    SetAffinity {
        /// Index in [`Workload::cpu_sets`]; `None` for all CPUs that the workload may use.
        set: Option<u32>,
    },
    /// The task has another nice value from now on (`setpriority`).
    SetNice {
        /// -20 to 19.
        nice: i8,
    },
    /// The task moves to another task group (`cgroup.procs`).
    SetGroup {
        /// Index in [`Workload::groups`]; `None` for the workload's own.
        group: Option<u32>,
    },
    /// Keeps the CPU busy until `ns` of time have passed, whatever the CPU's speed and however
    /// much of that time the task was preempted.
    Spin {
        /// Time in ns.
        ns: u64,
    },
    /// Sleeps for `ns` and up to `jitter_ns` more, uniformly at random.
    SleepJitter {
        /// Least time in ns.
        ns: u64,
        /// Below this much more, in ns.
        jitter_ns: u64,
    },
    /// Sleeps until a timer's next expiry, which is `period_ns` after its last one, or at first
    /// after the task's [`Op::Origin`]. If that has passed already, goes on at once.
    Timer {
        /// Timer.
        timer: u32,
        /// Period in ns.
        period_ns: u64,
        /// An expiry that was missed counts from the present instead of from when it was due.
        relative: bool,
    },
    /// Takes the next number of a counter that all tasks share, modulo `of`: the task's turn,
    /// which [`Op::Lock`] and [`Op::Unlock`] add to their mutex. Turns are 0 until then.
    TakeTurn {
        /// Number of turns, at least 1.
        of: u32,
    },
    /// Locks a mutex as glibc's normal `pthread_mutex_lock` does: in user space if it is free, else
    /// by waiting on a futex. A woken task has to compete for it again.
    Lock {
        /// Mutex, before the task's turn is added.
        mutex: u32,
    },
    /// Unlocks a mutex (`pthread_mutex_unlock`), and wakes one waiter.
    Unlock {
        /// Mutex, before the task's turn is added.
        mutex: u32,
    },
    /// Unlocks a mutex, waits for a condition, and locks the mutex again (`pthread_cond_wait`).
    CondWait {
        /// Condition.
        cond: u32,
        /// Mutex.
        mutex: u32,
    },
    /// Wakes the first task that waits for a condition (`pthread_cond_signal`).
    Signal {
        /// Condition.
        cond: u32,
    },
    /// Wakes all tasks that wait for a condition (`pthread_cond_broadcast`).
    Broadcast {
        /// Condition.
        cond: u32,
    },
    /// Waits until as many tasks as the barrier is for have come; the last one wakes the others.
    Barrier {
        /// Barrier.
        barrier: u32,
        /// The measured time begins when the last one comes.
        starts: bool,
    },
    /// Makes a flag unset.
    Clear {
        /// Flag, relative to the task's base.
        flag: u32,
    },
    /// Sets a flag, by its absolute number, if it is unset, and wakes the task that waits for it.
    Post {
        /// Flag, absolute.
        flag: u32,
    },
    /// Waits until a flag is set, and makes it unset. Once the workload has stopped, does not wait.
    Await {
        /// Flag, relative to the task's base.
        flag: u32,
    },
    /// Puts a message on a semaphore, and wakes the task that waits for one. What entering the kernel costs is not
    /// counted: a recorded run contains it.
    Up {
        /// Semaphore.
        semaphore: u32,
        /// The semaphore on which the sender awaits the answer, if it does.
        reply: Option<u32>,
    },
    /// Takes the oldest messages from a semaphore; waits while there are not so many. Once the workload has stopped, leaves
    /// the loop instead of waiting.
    Down {
        /// Semaphore.
        semaphore: u32,
        /// How many messages.
        count: u32,
        /// Each message is a request, which an [`Op::Answer`] answers.
        request: bool,
    },
    /// As [`Op::Up`], on the semaphore on which the sender of the last request that the task has not answered yet awaits
    /// the answer. Does nothing if that one awaits none, or if there is no request.
    Answer,
    /// Gives back what it has, as it does otherwise at its end (`do_exit()`, which wakes others after that). What follows
    /// are the wakeups of its end.
    Exit,
    /// Puts the flag of the task's base on a list, from which [`Op::PostListed`] takes it.
    Enlist {
        /// List.
        list: u32,
    },
    /// Takes all flags that are on a list, youngest first, notes the time, and sets them one by one:
    /// a task that waits for one of them measures from then on how long it takes to run again.
    PostListed {
        /// List.
        list: u32,
    },
    /// Gives a request to the task whose flag is the next of `count` from `first`, in turn, and sets
    /// the flag. A task that has 128 requests waiting gets none; the giver sleeps 100 us instead.
    /// Once the workload has stopped, leaves the loop instead.
    SendRequest {
        /// The first flag, absolute.
        first: u32,
        /// Number of flags.
        count: u32,
    },
    /// Takes a request that waits at the flag of the task's base. If there is none, waits for the flag and tries again.
    /// Once the workload has stopped, leaves the loop instead.
    TakeRequest,
    /// Locks the lock that the program keeps for the CPU that the task runs on, spinning until it is free.
    LockCpu,
    /// Unlocks what [`Op::LockCpu`] has locked.
    UnlockCpu,
    /// Repeats the ops up to the matching [`Op::End`] until the workload stops (see [`Limits`] and
    /// [`Op::Stop`]), which is looked at before each repetition, but at most `times` times.
    RepeatUntilStopped {
        /// The most repetitions; [`u64::MAX`] for no such limit.
        times: u64,
    },
    /// Stops the workload, and wakes all tasks that wait for conditions, barriers, flags and semaphores, for good.
    Stop,
    /// The task's timers begin here, instead of with their first use.
    Origin,
    /// An event (request, transaction) begins.
    EventStart,
    /// An event ends: it counts, and its time since [`Op::EventStart`] is its latency.
    EventEnd,
}

/// The steps of a task, shared by all tasks that do the same.
pub type Program = Arc<[Op]>;

/// How a channel blocks and wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A pipe: 16 buffers of 4096 bytes (PIPE_DEF_BUFFERS); small writes are merged into the last one.
    Pipe,
    /// A pipe in packet mode (`O_DIRECT`, pipe(2)): each write takes buffers of its own.
    Packets {
        /// How many buffers of 4096 bytes it has, 1 to 16 (`F_SETPIPE_SZ`).
        buffers: u8,
    },
    /// A connected pair of AF_UNIX stream sockets with the default send buffer (net.core.wmem_default 212992).
    UnixStream,
    /// A TCP connection over the loopback interface, one direction of it, with a send buffer that has grown
    /// to its limit (4 MiB, net.ipv4.tcp_wmem).
    Tcp,
    /// A pair of UDP sockets over the loopback interface, one direction of it, with a buffer of
    /// net.core.rmem_default (212992).
    Udp,
}

/// A channel between tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its kind.
    pub kind: ChannelKind,
}

/// How many there are of what tasks share besides channels; each kind is numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Mutexes.
    pub mutexes: u32,
    /// Bytes from one mutex to the next in the array that holds them; 0 if each has a cache line of its own.
    pub mutex_bytes: u32,
    /// Where that array begins, in bytes from the begin of a cache line.
    pub mutexes_at: u32,
    /// Condition variables.
    pub conds: u32,
    /// Of each barrier, how many tasks it waits for.
    pub barriers: Vec<u32>,
    /// Flags: futexes that are set or not.
    pub flags: u32,
    /// Semaphores, without messages at first.
    pub semaphores: u32,
    /// The last so many of the semaphores are channels of a recording. When nothing else can happen, a wait for one ends:
    /// another task may have taken what was meant for the one that waits.
    pub channels: u32,
    /// The semaphores that stand for sockets: their messages have lines that move between CPUs.
    pub sockets: Vec<u32>,
    /// Lists of flags.
    pub lists: u32,
    /// Timers.
    pub timers: u32,
    /// Distributions of times: values in ns, each as likely as the others. The n-th draw by a program's task depends on
    /// the seed only, so that it is the same under any policy.
    pub distributions: Vec<Vec<u64>>,
}

/// When [`Op::RepeatUntilStopped`] ends without an [`Op::Stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time since the measured time began, in ns; [`u64::MAX`] for none.
    pub time_ns: u64,
    /// Repetitions of all tasks together; [`u64::MAX`] for none.
    pub events: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time_ns: u64::MAX, events: u64::MAX }
    }
}

/// The policy of a task of the fair class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER, also called SCHED_NORMAL.
    #[default]
    Other,
    /// SCHED_BATCH: it does not preempt when it wakes up.
    Batch,
    /// SCHED_IDLE: it runs where nothing else does, and has a small weight.
    Idle,
}

/// How the tasks of one program differ from a plain task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Policy.
    pub policy: Policy,
    /// Nice value, -20 to 19.
    pub nice: i8,
    /// Bytes that it touches again and again, if not [`Footprint::private_bytes`].
    pub private_bytes: Option<u64>,
    /// The task group that it is in, an index in [`Workload::groups`].
    pub group: Option<u32>,
    /// Memory that a process of it has mapped, in percent of a small program's: its end takes so much longer.
    pub mapped_pct: Option<u32>,
}

/// CPUs that tasks are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuChoice {
    /// These.
    These(Vec<u32>),
    /// One of those that the workload may use: they are taken in turn, and this is the turn.
    InTurn(u32),
}

/// Bytes that tasks touch again and again, and that a move makes cold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Of each task by itself.
    pub private_bytes: u64,
    /// Of each process, shared by its threads.
    pub shared_bytes: u64,
}

/// A part of a long run, in parts per million; 1,000,000 is all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(pub u32);

impl Scale {
    /// The whole run.
    pub const FULL: Scale = Scale(1_000_000);

    /// `n` shortened, at least 1 unless `n` is 0.
    pub fn of(self, n: u64) -> u64 {
        ((u128::from(n) * u128::from(self.0) / 1_000_000) as u64).max(n.min(1))
    }
}

/// What a machine is to run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The command line that it stands for.
    pub name: String,
    /// All channels.
    pub channels: Vec<Channel>,
    /// Channels from here on carry the workload's messages, those before its control.
    pub first_message_channel: u32,
    /// All programs; the first task runs number 0.
    pub programs: Vec<Program>,
    /// `wakee_flips` of the first task, which it has from whoever started it; the other tasks have them from it.
    pub wakee_flips: u32,
    /// What the tasks touch.
    pub footprint: Footprint,
    /// Work of a task in user space around each message, in ns at capacity 1024.
    pub message_ns: u64,
    /// Of each program, how its tasks differ from plain ones; programs beyond its end do not.
    pub attributes: Vec<Attributes>,
    /// Of each program, how its tasks are called.
    pub roles: Vec<Role>,
    /// Sets of CPUs for [`Op::SetAffinity`].
    pub cpu_sets: Vec<CpuChoice>,
    /// The task groups in the workload's own.
    pub groups: Vec<TaskGroup>,
    /// What tasks share besides channels.
    pub shared: Shared,
    /// When [`Op::RepeatUntilStopped`] ends.
    pub limits: Limits,
    /// Messages between [`Op::MarkStart`] and [`Op::MarkEnd`], 0 if it has none.
    pub messages: u64,
    /// What had to be assumed because the command line or file does not say it, one sentence each.
    pub assumptions: Vec<String>,
    /// What of the command line or file has no effect here, one sentence each.
    pub notes: Vec<String>,
}

/// No task, and what most benchmarks have: plain tasks, no channels, no limits, a shell that starts it.
impl Default for Workload {
    fn default() -> Self {
        Workload {
            name: String::new(),
            channels: Vec::new(),
            first_message_channel: 0,
            programs: Vec::new(),
            wakee_flips: Workload::SHELL_WAKEE_FLIPS,
            footprint: Footprint { private_bytes: 0, shared_bytes: 0 },
            message_ns: 0,
            attributes: Vec::new(),
            roles: Vec::new(),
            cpu_sets: Vec::new(),
            groups: Vec::new(),
            shared: Shared::default(),
            limits: Limits::default(),
            messages: 0,
            assumptions: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Workload {
    /// What a shell hands on to the programs that it starts. Measured when benchmarks were executed on a Zen 4 guest with
    /// Linux 6.18: 4 from a shell, 3 from Python and perf, 1 to 5 from `coreward validate`.
    pub const SHELL_WAKEE_FLIPS: u32 = 4;

    /// Whether its threads have names of their own, and so are looked at one by one.
    pub fn tells_threads_apart(&self) -> bool {
        self.roles.iter().any(|role| matches!(role, Role::Instance(_)))
    }

    /// How the tasks of a program differ from plain ones.
    pub fn attributes(&self, program: u32) -> Attributes {
        self.attributes.get(program as usize).copied().unwrap_or_default()
    }

    /// Bytes that a task of a program touches again and again.
    pub fn private_bytes(&self, program: u32) -> u64 {
        self.attributes(program).private_bytes.unwrap_or(self.footprint.private_bytes)
    }
}

/// Builds a [`Program`] and refuses unbalanced loops.
#[derive(Default)]
pub struct ProgramBuilder {
    ops: Vec<Op>,
    open: usize,
}

impl ProgramBuilder {
    /// Appends one op.
    pub fn op(mut self, op: Op) -> Self {
        let opens = matches!(op, Op::Repeat { .. } | Op::RepeatUntilStopped { .. } | Op::End);
        assert!(!opens, "use repeat() or until_stopped()");
        self.ops.push(op);
        self
    }

    /// Appends `times` repetitions of what `body` adds.
    pub fn repeat(self, times: u64, body: impl FnOnce(Self) -> Self) -> Self {
        self.enclose(Op::Repeat { times }, body)
    }

    /// Appends repetitions of what `body` adds until the workload stops.
    pub fn until_stopped(self, body: impl FnOnce(Self) -> Self) -> Self {
        self.at_most_until_stopped(u64::MAX, body)
    }

    /// Appends up to `times` repetitions of what `body` adds, fewer if the workload stops.
    pub fn at_most_until_stopped(self, times: u64, body: impl FnOnce(Self) -> Self) -> Self {
        self.enclose(Op::RepeatUntilStopped { times }, body)
    }

    fn enclose(mut self, head: Op, body: impl FnOnce(Self) -> Self) -> Self {
        self.ops.push(head);
        self.open += 1;
        let mut built = body(self);
        built.ops.push(Op::End);
        built.open -= 1;
        built
    }

    /// The program.
    pub fn build(self) -> Program {
        assert_eq!(self.open, 0, "every repeat is closed by its closure");
        self.ops.into()
    }
}
