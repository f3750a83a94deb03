//! The paths to a decision by which parity is reported.

use coreward_policy::Reason;

use crate::format::StepKind;

/// The kind of a decision; `--require` uses these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A task wakes.
    Wakeup,
    /// A new task starts.
    Fork,
    /// A task starts another program.
    Exec,
    /// A CPU looks for tasks to pull.
    Balance,
    /// A CPU's queue changes.
    Queue,
}

impl Class {
    /// All classes, in the order of reports.
    pub const ALL: [Class; 5] = [Class::Wakeup, Class::Fork, Class::Exec, Class::Balance, Class::Queue];

    /// The name.
    pub fn name(self) -> &'static str {
        ["wakeup", "fork", "exec", "balance", "queue"][self as usize]
    }
}

/// One path to a decision, which is a line of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(usize);

/// All paths, in the order of reports.
const PATHS: [(Class, &str); 33] = [
    (Class::Wakeup, "wakeup: target idle"),
    (Class::Wakeup, "wakeup: previous CPU idle"),
    (Class::Wakeup, "wakeup: per-CPU kthread"),
    (Class::Wakeup, "wakeup: recent CPU"),
    (Class::Wakeup, "wakeup: idle core"),
    (Class::Wakeup, "wakeup: SMT"),
    (Class::Wakeup, "wakeup: scan"),
    (Class::Wakeup, "wakeup: asymmetric capacity"),
    (Class::Wakeup, "wakeup: fallback"),
    (Class::Wakeup, "wakeup: waker's CPU"),
    (Class::Wakeup, "wakeup: previous-CPU bias"),
    (Class::Wakeup, "wakeup: other"),
    (Class::Fork, "fork"),
    (Class::Exec, "exec"),
    (Class::Balance, "newidle: group"),
    (Class::Balance, "newidle: imbalance"),
    (Class::Balance, "newidle: queue"),
    (Class::Balance, "idle: group"),
    (Class::Balance, "idle: imbalance"),
    (Class::Balance, "idle: queue"),
    (Class::Balance, "busy: group"),
    (Class::Balance, "busy: imbalance"),
    (Class::Balance, "busy: queue"),
    (Class::Queue, "queue: place"),
    (Class::Queue, "queue: requeue"),
    (Class::Queue, "queue: dequeue"),
    (Class::Queue, "queue: preempt"),
    (Class::Queue, "queue: pick"),
    (Class::Queue, "queue: charge"),
    (Class::Queue, "queue: tick"),
    (Class::Queue, "queue: yield"),
    (Class::Queue, "queue: set next"),
    (Class::Queue, "queue: reweight"),
];

/// Which part of a balance is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Group,
    Imbalance,
    Queue,
}

impl Path {
    /// Fork.
    pub(crate) const FORK: Path = Path(12);
    /// Exec.
    pub(crate) const EXEC: Path = Path(13);

    /// All paths, in the order of reports.
    pub fn all() -> impl Iterator<Item = Path> {
        (0..PATHS.len()).map(Path)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        PATHS[self.0].1
    }

    /// The class that it belongs to.
    pub fn class(self) -> Class {
        PATHS[self.0].0
    }

    /// The path of a wakeup by the policy's reason.
    pub(crate) fn of_wakeup(reason: Reason) -> Path {
        Path(match reason.name {
            "TARGET_IDLE" => 0,
            "PREV_IDLE" => 1,
            "PERCPU_KTHREAD" => 2,
            "RECENT_IDLE" => 3,
            "IDLE_CORE" => 4,
            "IDLE_SMT" => 5,
            "IDLE_CPU" | "CLUSTER_IDLE" => 6,
            "ASYM_IDLE_FITS" | "ASYM_IDLE_BIGGEST" => 7,
            "TARGET_BUSY" => 8,
            "CURRENT_CPU" => 9,
            "BIAS_PREV" | "BIAS_PREV_BUSY" => 10,
            _ => 11,
        })
    }

    /// The path of a step of a queue.
    pub(crate) fn of_step(kind: StepKind) -> Path {
        Path(22 + kind as usize)
    }

    /// The path of a part of a balance by the kernel's `enum cpu_idle_type`.
    pub(crate) fn of_balance(idle: u32, part: Part) -> Path {
        let first = match idle {
            2 => 14,
            1 => 17,
            _ => 20,
        };
        Path(first + part as usize)
    }
}
