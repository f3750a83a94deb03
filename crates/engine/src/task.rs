//! A task: its program, its place in virtual time, its load, its whereabouts.

use crate::cache::Residence;
use crate::fork::Children;
use crate::segment::Work;
use coreward_policy::layout::{NICE_0_WEIGHT, TASK_DELAYED, TASK_NEW};
use coreward_policy::{Entity, Task as PolicyTask};
use coreward_workload::Op;

/// Depth of nested [`Op::Repeat`] that a program may have.
pub(crate) const MAX_DEPTH: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// Waits on a runqueue.
    Queued,
    /// Waits for something other than a CPU.
    Sleeping,
    /// Woken, on its way to a runqueue.
    Waking,
    /// Has left its runqueue because its group has used up its quota.
    Throttled,
    Dead,
}

/// The system call in which a task waits for something, as a profile of its CPU would show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitsIn {
    /// Pipes, sockets, children.
    #[default]
    Other,
    Futex,
    Nanosleep,
}

#[derive(Clone, Copy, Debug, Default)]
struct Loop {
    body: u32,
    left: u64,
    /// Ends also when the workload stops.
    until_stopped: bool,
}

/// Its fields lie in this order: what each of its ops uses shares the first cache lines.
#[repr(C)]
pub(crate) struct Task<'w> {
    /// The current op; None at the end of its program.
    pub(crate) op: Option<&'w Op>,
    /// Those of its program.
    ops: &'w [Op],
    pub(crate) program: u32,
    /// First channel of its relative operands.
    pub(crate) base: u32,
    pc: u32,
    pub(crate) process: u32,
    /// Bytes of the current message that have been transferred.
    pub(crate) done_bytes: u32,
    depth: u8,
    /// The current op has entered the kernel and blocked there.
    pub(crate) in_syscall: bool,
    /// The current op on a socket found nothing to read or no room, so it has no other effect than to wait.
    pub(crate) only_looks: bool,
    /// It has to search for the LLC that its process prefers.
    pub(crate) cache_work: bool,
    /// It has given back what it has, and is about to end.
    pub(crate) exits: bool,
    /// The rest of the current op after a preemption.
    pub(crate) left: Option<Work>,
    loops: [Loop; MAX_DEPTH],
    /// Its state for ops on shared objects.
    pub(crate) sync: SyncState,
    /// The policy's data about the task.
    pub(crate) policy: PolicyTask,
    pub(crate) se: Entity,
    pub(crate) state: State,
    pub(crate) parent: Option<u32>,
    /// Where it waits, or waited last.
    pub(crate) waits_in: WaitsIn,
    /// How many times it has drawn from distributions.
    pub(crate) draws: u64,
    /// Of each request that it has taken and not answered, where its sender awaits the answer.
    pub(crate) requests: Vec<Option<u32>>,
    /// Work before its program begins; 0 once it has run.
    pub(crate) start_ns: u64,
    pub(crate) children: Children,
    pub(crate) waits_for_children: bool,
    /// When it was last woken, until it runs.
    pub(crate) woken_at: Option<u64>,
    /// When its waker began to wake it, by the waker's own clock.
    pub(crate) waking_at: u64,
    /// The CPU that woke it, until it runs: the lines of the task that a waker writes are there.
    pub(crate) woken_by: Option<usize>,
    /// When it last began to wait on a runqueue.
    pub(crate) queued_at: u64,
    /// When it began to wait for a CPU, on whatever runqueue.
    pub(crate) waits_since: u64,
    pub(crate) residence: Residence,
    /// Order in which the tasks of a queue last came or ran: balancing takes the oldest.
    pub(crate) list_order: u64,
    /// Index of the mask of CPUs that it may use.
    pub(crate) allowed: usize,
    /// Its weight by its nice value and policy.
    pub(crate) own_weight: u32,
    /// The task group inside the workload's that it is in.
    pub(crate) group: Option<usize>,
}

/// The state of a task for ops on shared objects, and for ops that take a given time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SyncState {
    /// The step of the current op; each op that has steps defines them.
    pub(crate) step: u8,
    /// Its turn, see [`Op::TakeTurn`].
    pub(crate) turn: u32,
    /// It has called the kernel to wait for a mutex, and the kernel has yet to look at the mutex.
    pub(crate) calls_wait: bool,
    /// When the current op has lasted long enough.
    pub(crate) until: u64,
    /// Where its timers begin, see [`Op::Origin`].
    pub(crate) origin: Option<u64>,
    /// When the current event began.
    pub(crate) event_at: u64,
    /// The CPU whose lock it holds or spins on.
    pub(crate) cpu_lock: Option<u32>,
    /// Events that it has ended.
    pub(crate) events: u64,
}

impl<'w> Task<'w> {
    pub(crate) fn new(
        pid: u32,
        (program, ops): (u32, &'w [Op]),
        base: u32,
        process: u32,
        parent: Option<u32>,
    ) -> Self {
        let weight = NICE_0_WEIGHT;
        Task {
            op: None,
            ops,
            program,
            base,
            pc: 0,
            process,
            done_bytes: 0,
            depth: 0,
            in_syscall: false,
            only_looks: false,
            cache_work: false,
            exits: false,
            left: None,
            loops: [Loop::default(); MAX_DEPTH],
            sync: SyncState::default(),
            policy: PolicyTask {
                pid: pid as i32 + 1,
                process: process + 1,
                weight,
                flags: TASK_NEW,
                ..PolicyTask::default()
            },
            se: Entity { weight, id: pid as i32, ..Entity::default() },
            state: State::Waking,
            parent,
            waits_in: WaitsIn::default(),
            draws: 0,
            requests: Vec::new(),
            start_ns: 0,
            children: Children::default(),
            waits_for_children: false,
            woken_at: None,
            waking_at: 0,
            woken_by: None,
            queued_at: 0,
            waits_since: 0,
            residence: Residence::default(),
            list_order: 0,
            allowed: 0,
            own_weight: weight,
            group: None,
        }
    }

    /// The CPU that it runs on, is queued on, or last ran on.
    #[inline]
    pub(crate) fn cpu(&self) -> usize {
        self.policy.cpu as usize
    }

    /// Does it sleep, but is still queued until it is eligible (DELAY_DEQUEUE)?
    #[inline]
    pub(crate) fn is_delayed(&self) -> bool {
        self.policy.flags & TASK_DELAYED != 0
    }

    /// Follows loops to the op to do now, and stores it in `op`. `goes_on` says if there is
    /// another repetition of a loop that lasts until the workload stops.
    #[inline]
    pub(crate) fn fetch_op(&mut self, mut goes_on: impl FnMut() -> bool) -> Option<&'w Op> {
        let op = loop {
            match self.ops.get(self.pc as usize) {
                Some(Op::Repeat { times }) => self.enter_loop(*times > 0, *times, false),
                Some(Op::RepeatUntilStopped { times }) => {
                    let enters = *times > 0 && goes_on();
                    self.enter_loop(enters, *times, true);
                }
                Some(Op::End) => {
                    let innermost = &mut self.loops[self.depth as usize - 1];
                    innermost.left -= 1;
                    if innermost.left > 0 && (!innermost.until_stopped || goes_on()) {
                        self.pc = innermost.body;
                    } else {
                        self.depth -= 1;
                        self.pc += 1;
                    }
                }
                op => break op,
            }
        };
        self.op = op;
        op
    }

    #[inline]
    fn enter_loop(&mut self, enters: bool, left: u64, until_stopped: bool) {
        self.pc += 1;
        if enters {
            self.loops[self.depth as usize] = Loop { body: self.pc, left, until_stopped };
            self.depth += 1;
        } else {
            self.skip_body();
        }
    }

    /// Is what it does counted in events?
    pub(crate) fn has_events(&self) -> bool {
        self.ops.contains(&Op::EventEnd)
    }

    /// Does it compute or spin, outside the kernel?
    pub(crate) fn is_in_user_space(&self) -> bool {
        self.start_ns == 0
            && matches!(self.op, Some(Op::Run { .. } | Op::RunDrawn { .. } | Op::Spin { .. } | Op::LockCpu))
    }

    /// Other threads of its process, besides this task with this id, may have the same files open. (Also the first thread
    /// of a process with others has them so; it hardly uses them in any workload.)
    #[inline]
    pub(crate) fn shares_files(&self, id: usize) -> bool {
        self.process as usize != id
    }

    /// The current op is done.
    pub(crate) fn advance(&mut self) {
        self.pc += 1;
        self.in_syscall = false;
        self.done_bytes = 0;
        self.sync.step = 0;
    }

    /// Continues after its innermost loop.
    pub(crate) fn leave_loop(&mut self) {
        self.skip_body();
        self.depth -= 1;
        self.advance();
        self.pc -= 1;
    }

    /// Of the outermost loop that it is in: how often it repeats in all, and how often from now on. None if it is in no
    /// loop, Some(None) if only the workload's stop ends the loop.
    pub(crate) fn outermost_loop(&self) -> Option<Option<(u64, u64)>> {
        let outermost = self.loops[..self.depth as usize].first()?;
        match self.ops[outermost.body as usize - 1] {
            Op::Repeat { times } | Op::RepeatUntilStopped { times } if times < u64::MAX => {
                Some(Some((times, outermost.left)))
            }
            _ => Some(None),
        }
    }

    /// Leaves out that many repetitions of its outermost loop, fewer than there are left.
    pub(crate) fn skip_repetitions(&mut self, times: u64) {
        self.loops[0].left -= times;
    }

    fn skip_body(&mut self) {
        let mut open = 1;
        while open > 0 {
            match self.ops[self.pc as usize] {
                Op::Repeat { .. } | Op::RepeatUntilStopped { .. } => open += 1,
                Op::End => open -= 1,
                _ => {}
            }
            self.pc += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_workload::ProgramBuilder;

    #[test]
    fn loops_run_their_bodies_as_often_as_they_say() {
        let run = |ns| Op::Run { ns };
        let ops = ProgramBuilder::default()
            .op(run(1))
            .repeat(2, |b| b.op(run(2)).repeat(3, |b| b.op(run(3))).repeat(0, |b| b.op(run(9))))
            .op(run(4))
            .build();
        let mut t = Task::new(0, (0, &ops), 0, 0, None);
        let mut seen = Vec::new();
        while let Some(Op::Run { ns }) = t.fetch_op(|| false) {
            seen.push(*ns);
            t.advance();
        }
        assert_eq!(seen, [1, 2, 3, 3, 3, 2, 3, 3, 3, 4]);
    }

    #[test]
    fn a_loop_until_stopped_asks_before_each_repetition() {
        let run = |ns| Op::Run { ns };
        let ops = ProgramBuilder::default()
            .until_stopped(|b| b.op(run(1)).repeat(2, |b| b.op(run(2))))
            .until_stopped(|b| b.op(run(8)).repeat(2, |b| b.op(run(9))))
            .op(run(3))
            .build();
        let mut t = Task::new(0, (0, &ops), 0, 0, None);
        let (mut seen, mut asked) = (Vec::new(), 0);
        let mut goes_on = || {
            asked += 1;
            asked <= 2
        };
        while let Some(Op::Run { ns }) = t.fetch_op(&mut goes_on) {
            seen.push(*ns);
            t.advance();
        }
        assert_eq!((seen, asked), (vec![1, 2, 2, 1, 2, 2, 3], 4));
    }
}
