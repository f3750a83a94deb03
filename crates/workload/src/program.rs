//! Programs of tasks, and what they share.

use std::sync::Arc;

/// One step of a task. Channel operands count from the task's base, which its
/// parent gave it when it spawned it, so that many tasks share one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes for `ns` nanoseconds of work: the time it takes at capacity 1024 on an idle core.
    Run {
        /// Work in ns.
        ns: u64,
    },
    /// Sleeps for `ns` on a timer.
    Sleep {
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
    /// Starts a task that runs `program` on channels from `base`.
    Spawn {
        /// Index in [`Workload::programs`].
        program: u32,
        /// First channel of the new task.
        base: u32,
        /// Fork a process (true) or start a thread of this process (false).
        process: bool,
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
}

/// The steps of a task, shared by all tasks that do the same.
pub type Program = Arc<[Op]>;

/// How a channel blocks and wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A pipe: 16 buffers of 4096 bytes (PIPE_DEF_BUFFERS); small writes are merged into the last one.
    Pipe,
    /// A connected pair of AF_UNIX stream sockets with the default send buffer (net.core.wmem_default 212992).
    UnixStream,
}

/// A channel between tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its kind.
    pub kind: ChannelKind,
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
    /// What the tasks touch.
    pub footprint: Footprint,
    /// Messages between [`Op::MarkStart`] and [`Op::MarkEnd`], 0 if it has none.
    pub messages: u64,
    /// Messages of the whole run, of which [`Scale`] has left `messages`.
    pub unscaled_messages: u64,
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
        assert!(!matches!(op, Op::Repeat { .. } | Op::End), "use repeat()");
        self.ops.push(op);
        self
    }

    /// Appends `times` repetitions of what `body` adds.
    pub fn repeat(mut self, times: u64, body: impl FnOnce(Self) -> Self) -> Self {
        self.ops.push(Op::Repeat { times });
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
