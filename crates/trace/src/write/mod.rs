//! Events as recordings of other tools, so that what reads a real machine's reads a simulated one's.

mod perf;
mod text;

use std::io;

use crate::event::{Leaving, Task};
pub use perf::PerfWriter;
pub use text::TextWriter;

/// Where and in whose context an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// When, in ns.
    pub at: u64,
    /// The CPU.
    pub cpu: usize,
    /// The task that runs there.
    pub current: Task,
    /// Its process.
    pub tgid: i32,
    /// It happens in an interrupt of that task.
    pub in_interrupt: bool,
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// `place.current` leaves the CPU, and another task comes (`sched_switch`).
    Switch {
        /// Why it leaves.
        leaving: Leaving,
        /// The task that comes.
        next: Task,
    },
    /// A wakeup of a task begins (`sched_waking`).
    Waking {
        /// The task.
        task: Task,
        /// The CPU that it is to run on.
        target: usize,
    },
    /// A new task becomes runnable (`sched_wakeup_new`).
    WakeupNew {
        /// The task.
        task: Task,
        /// The CPU that it is to run on.
        target: usize,
    },
    /// `place.current` forks a task (`sched_process_fork`).
    Fork {
        /// The task.
        child: Task,
    },
    /// `place.current` ends (`sched_process_exit`).
    Exit,
    /// A task is moved to another CPU (`sched_migrate_task`).
    Migrate {
        /// The task.
        task: Task,
        /// The CPU that it was on.
        from: usize,
        /// The CPU that it goes to.
        to: usize,
    },
}

/// Writes a recording, event by event, in the order of their times.
pub trait EventWriter {
    /// Says that there is a task, and its process, before any event names it.
    ///
    /// # Errors
    /// The output cannot be written; so of all.
    fn task(&mut self, at: u64, task: &Task, tgid: i32) -> io::Result<()>;
    /// Writes an event.
    ///
    /// # Errors
    /// See there.
    fn event(&mut self, place: &Place, event: &Written) -> io::Result<()>;
}
