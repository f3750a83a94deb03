//! One CPU: its activity, its queue, its clocks.

use crate::asid::Asids;
use crate::balance::NohzKick;
use crate::contention::Lock;
use crate::ledger::Bill;
use crate::queue::NEVER;
use crate::segment::{Segment, Work};
use crate::sim::START_NS;
use crate::timeline::Timeline;
use std::collections::VecDeque;

/// The activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Runs its current task.
    Task,
    /// Found nothing to run and is on its way to idle: newidle balance, the switch.
    GoingIdle,
    /// Idle; nothing happens until an interrupt or a remote write ends it.
    Idle,
    /// Leaves the idle state.
    Waking,
}

/// A woken task, the CPU that it goes to, and when its waker gets to that CPU's lock.
pub(crate) struct Activation {
    pub(crate) at: u64,
    pub(crate) task: u32,
    pub(crate) target: usize,
}

/// Its fields lie in this order: what the events of an undisturbed task use shares the first cache lines.
#[repr(C)]
pub(crate) struct Cpu {
    pub(crate) activity: Activity,
    pub(crate) need_resched: bool,
    pub(crate) curr: Option<u32>,
    /// Current speed; 1024 is full speed.
    pub(crate) rate: u64,
    pub(crate) tick_at: u64,
    /// When the request of its current task is served (HRTICK).
    pub(crate) hrtick_at: u64,
    pub(crate) ipi_at: u64,
    /// Valid unless idle.
    pub(crate) segment: Segment,
    /// Kernel work of the current event, with which the next segment starts.
    pub(crate) pending: Work,
    /// What its time is spent on.
    pub(crate) bill: Bill,
    pub(crate) fair: Timeline,
    pub(crate) lock: Lock,
    /// The clock of its runqueue: the time up to which the current task is accounted, or when it began.
    pub(crate) clock: u64,
    /// A wakeup has just advanced it and asked for a switch, so schedule() does not advance it again
    /// (rq_clock_skip_update()): the next task is charged from the wakeup on.
    pub(crate) skips_clock_update: bool,
    /// Tasks that it has woken and has yet to put on the queue of another CPU.
    pub(crate) activations: VecDeque<Activation>,
    /// Remote wakeups queued for this CPU (rq->ttwu_pending).
    pub(crate) wakelist: Vec<u32>,
    /// Sleepers whose timers fire while it leaves its idle state.
    pub(crate) expired: Vec<u32>,
    /// The task that it switches away from, and when that task will have left it (on_cpu).
    pub(crate) leaving: Option<u32>,
    pub(crate) left_at: u64,
    /// While it is idle: the process whose address space it keeps.
    pub(crate) lazy_mm: Option<u32>,
    /// Address spaces of which it holds translations.
    pub(crate) asids: Asids,
    /// The CPU that the last task went to which could not stay here.
    pub(crate) distributed: usize,
    /// What it is to do for all idle CPUs.
    pub(crate) nohz_kick: NohzKick,
    /// From when on its current task's task-clock has yet to be counted.
    pub(crate) clocked_at: u64,
    pub(crate) idle_state: usize,
    /// It was asked to run something by its flag alone, without an interrupt.
    pub(crate) flagged: bool,
    /// When it is in its idle state: until then it still stops its tick, and no interrupt gets through.
    pub(crate) asleep_at: u64,
    /// When it last ran a task; it may have woken to balance since.
    pub(crate) idle_since: u64,
    /// Other hardware threads of its core.
    pub(crate) siblings: Vec<usize>,
    pub(crate) active_siblings: u32,
}

impl Cpu {
    /// An idle CPU.
    pub(crate) fn new(siblings: Vec<usize>, rate: u64, fair: Timeline) -> Self {
        Cpu {
            activity: Activity::Idle,
            need_resched: false,
            curr: None,
            rate,
            tick_at: NEVER,
            hrtick_at: NEVER,
            ipi_at: NEVER,
            segment: Segment::new(0, Work::default(), 1024),
            pending: Work::default(),
            bill: Bill::new(START_NS),
            fair,
            lock: Lock::default(),
            clock: 0,
            skips_clock_update: false,
            activations: VecDeque::new(),
            wakelist: Vec::new(),
            expired: Vec::new(),
            leaving: None,
            left_at: 0,
            lazy_mm: None,
            asids: Asids::default(),
            distributed: 0,
            nohz_kick: NohzKick::default(),
            clocked_at: START_NS,
            idle_state: 0,
            flagged: false,
            asleep_at: START_NS,
            idle_since: START_NS,
            siblings,
            active_siblings: 0,
        }
    }

    /// When it gets to the next of its activations.
    #[inline]
    pub(crate) fn activation_at(&self) -> u64 {
        self.activations.front().map_or(NEVER, |next| next.at)
    }

    /// When the next thing happens here.
    #[inline]
    pub(crate) fn next_event(&self) -> u64 {
        let segment = if self.activity == Activity::Idle { NEVER } else { self.segment.end() };
        segment.min(self.tick_at).min(self.ipi_at).min(self.hrtick_at).min(self.activation_at())
    }
}
