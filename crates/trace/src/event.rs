//! What a recording of the scheduler's tracepoints consists of, whatever its format.

use std::fmt;

/// A task's name, as the kernel keeps it: at most 15 bytes (`TASK_COMM_LEN`).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm {
    bytes: [u8; 15],
    length: u8,
}

impl Comm {
    /// A name; what does not fit is cut off.
    pub fn new(name: &[u8]) -> Comm {
        let length = name.len().min(15);
        let mut bytes = [0; 15];
        bytes[..length].copy_from_slice(&name[..length]);
        Comm { bytes, length: length as u8 }
    }

    /// The name's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.bytes()))
    }
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Thread id; 0 is the idle task of any CPU.
    pub pid: i32,
    /// Name.
    pub comm: Comm,
    /// The kernel's priority: 120 + nice for fair tasks, less than 100 for real-time ones.
    pub prio: i32,
}

/// What the previous task of a switch goes on to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It is still runnable: it was preempted, or it yielded.
    Runnable,
    /// It waits for something.
    Blocked,
    /// It has ended.
    Dead,
}

/// An interrupt's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// A timer's.
    Timer,
    /// The network's.
    Network,
    /// A block device's.
    Block,
    /// Any other.
    Other,
}

/// What a task sleeps on in its system call. A number tells apart objects of one kind; it means nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// A futex.
    Futex(u32),
    /// The data of a pipe, which a reader waits for.
    PipeData(u32),
    /// The space in a pipe, which a writer waits for.
    PipeSpace(u32),
    /// A socket.
    Socket(u32),
    /// An instance of epoll.
    Epoll(u32),
    /// An eventfd or another file that is in no file system.
    Anonymous(u32),
    /// Several files at once (`poll`, `select`): the task's own.
    Poll,
    /// A child.
    Child,
    /// Nothing but a time.
    Time,
    /// A file of a file system, or a system call that is none of these.
    Other,
}

/// CPUs that a task may run on: bit n of word n / 64, up to CPU 511.
pub type CpuSet = [u64; 8];

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// `sched_switch`.
    Switch {
        /// The task that leaves.
        prev: Task,
        /// Why it leaves.
        leaving: Leaving,
        /// The task that comes.
        next: Task,
    },
    /// `sched_waking`: a wakeup begins, in the context of whoever wakes.
    Waking {
        /// The task that is woken.
        task: Task,
    },
    /// `sched_wakeup`: a wakeup ends, possibly on the CPU of the woken task.
    Wakeup {
        /// The woken task.
        task: Task,
    },
    /// `sched_wakeup_new`: a new task becomes runnable.
    WakeupNew {
        /// The new task.
        task: Task,
    },
    /// `sched_process_fork`.
    Fork {
        /// Thread id of the parent.
        parent: i32,
        /// Thread id of the child.
        child: i32,
        /// Name of the child.
        comm: Comm,
    },
    /// `sched_process_exit`.
    Exit {
        /// Thread id.
        pid: i32,
    },
    /// `sched_process_exec`: the current task runs another program.
    Exec {
        /// Thread id.
        pid: i32,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// Thread id.
        pid: i32,
    },
    /// How fast the CPU was on average since its previous switch, as its cycles say. The next switch follows.
    Speed {
        /// Its cycles in a ms.
        khz: u32,
        /// That of its fastest times in the recording.
        fastest_khz: u32,
    },
    /// The current task is about to sleep on something. The switch away from it follows.
    WaitsOn {
        /// What it sleeps on.
        channel: Channel,
    },
    /// `sk_data_ready`: data arrived at a socket that had none, sent by whoever the event is of. If a task sleeps there, it is
    /// woken next.
    Arrived {
        /// The number that [`Channel::Socket`] has.
        socket: u32,
    },
    /// `sock_recv_length`: the current task received all data that a socket had.
    Received {
        /// The socket.
        socket: u32,
    },
    /// A task may run on these CPUs only, from now on or since before the recording; its children inherit that.
    Allowed {
        /// Thread id.
        pid: i32,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// A task is in a task group, from now on or since before the recording; its children inherit that.
    Grouped {
        /// Thread id.
        pid: i32,
        /// The group's number in the recording (`Recording::group`); `None` for the root group.
        group: Option<u32>,
    },
    /// An interrupt's handler begins (`irq_handler_entry`, `softirq_entry`, `hrtimer_expire_entry`, `timer_expire_entry`).
    HandlerEntry(Handler),
    /// It ends.
    HandlerExit,
    /// The recorder had no room for events of this CPU.
    Lost {
        /// How many; 0 if it does not say.
        events: u64,
    },
    /// Any other event.
    Other,
}

impl What {
    /// The tracepoint, or what it stands for.
    pub fn name(&self) -> &'static str {
        match self {
            What::Switch { .. } => "sched_switch",
            What::Waking { .. } => "sched_waking",
            What::Wakeup { .. } => "sched_wakeup",
            What::WakeupNew { .. } => "sched_wakeup_new",
            What::Fork { .. } => "sched_process_fork",
            What::Exit { .. } => "sched_process_exit",
            What::Exec { .. } => "sched_process_exec",
            What::Migrate { .. } => "sched_migrate_task",
            What::Speed { .. } => "speed",
            What::WaitsOn { .. } => "sleep",
            What::Arrived { .. } => "sk_data_ready",
            What::Received { .. } => "sock_recv_length",
            What::Allowed { .. } => "affinity",
            What::Grouped { .. } => "task group",
            What::HandlerEntry(_) => "interrupt entry",
            What::HandlerExit => "interrupt exit",
            What::Lost { .. } => "lost",
            What::Other => "other",
        }
    }
}

/// An event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in ns of the recording's clock.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
    /// The task that ran there, which an interrupt may have interrupted.
    pub pid: i32,
    /// Its process, if the recording says it.
    pub tgid: Option<i32>,
    /// Its name.
    pub comm: Comm,
    /// Did it happen in an interrupt? `None` if the recording does not say it.
    pub in_interrupt: Option<bool>,
    /// What happened.
    pub what: What,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_at_most_15_bytes() {
        assert_eq!(Comm::new(b"kworker/u12:1-events").to_string(), "kworker/u12:1-e");
        assert_eq!(Comm::new(b"").to_string(), "");
        assert_eq!(Comm::new(b"a b").bytes(), b"a b");
    }
}
