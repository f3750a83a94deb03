//! A recorded queue in the policy's form.

use coreward_policy::layout::{
    NO_ENTITY, SE_BATCH, SE_CUSTOM_SLICE, SE_DELAYED, SE_GROUP, SE_IDLE, SE_ON_RQ, SE_REL_DEADLINE,
};
use coreward_policy::{Entity, FairRq, System, Waiting};

use crate::format::{self, EntityState, FairRqState};
use crate::host::Host;
use crate::record::Step;

/// Differences between kernels in the meaning of numbers and fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    /// The queue is CFS's (until 6.5).
    cfs: bool,
    /// Tasks of groups stand in the CPU's own queue, and weights are as fine there as in the kernel (7.3).
    flat: bool,
    /// The flags of enqueueing and dequeueing have the numbers of 6.19.
    renumbered: bool,
    /// The protection of the running entity has a field, which it may share with the lag (6.17).
    has_vprot: bool,
}

/// Weights are 1024 times finer in the kernel than a nice value's.
const LOAD_SHIFT: u32 = 10;

impl Kernel {
    pub(crate) fn of(host: &Host) -> Kernel {
        let version = host.version();
        Kernel {
            cfs: version < (6, 6),
            flat: version >= (7, 3),
            renumbered: version >= (6, 19),
            has_vprot: version >= (6, 17),
        }
    }

    /// Is the queue CFS's?
    pub(crate) fn is_cfs(self) -> bool {
        self.cfs
    }

    /// Is that the placement of a new task?
    pub(crate) fn is_initial(self, argument: u32) -> bool {
        let initial = match self {
            Kernel { cfs: true, .. } => 1,
            Kernel { renumbered: true, .. } => 0x8_0000,
            _ => 0x80,
        };
        argument & initial != 0
    }

    /// Is it that of a sleeper? CFS places no others that are not new.
    pub(crate) fn is_wakeup(self, argument: u32) -> bool {
        self.cfs && argument == 0 || !self.cfs && argument & 1 != 0
    }

    /// Is the entity that is being placed already in the counts of the queue?
    pub(crate) fn is_counted(self, argument: u32) -> bool {
        self.flat && argument & 0x20_0000 != 0
    }

    /// May a dequeue with these flags be delayed if its task sleeps?
    pub(crate) fn may_delay(self, argument: u32) -> bool {
        argument & if self.renumbered { 0x3_0000 } else { 0x810 } == 0
    }

    /// Does the dequeue complete a delayed one?
    pub(crate) fn completes(self, argument: u32) -> bool {
        argument & if self.renumbered { 0x20 } else { 0x200 } != 0
    }

    /// Does the entity of a dequeue with these flags come back at once, to where it was (`DEQUEUE_SAVE` without
    /// `DEQUEUE_MOVE`)? For CFS only.
    pub(crate) fn comes_back(self, argument: u32) -> bool {
        argument & 0x6 == 0x2
    }

    /// Are groups' tasks in queues of their own?
    pub(crate) fn has_levels(self) -> bool {
        !self.flat
    }

    /// A weight as the policy takes it.
    pub(crate) fn weight(self, weight: u64) -> u32 {
        weight.min(u32::MAX.into()) as u32
    }

    /// The end of the running entity's protection. Before there was a field for it, the deadline with
    /// which the entity was picked was in the place of its lag.
    pub(crate) fn vprot(self, entity: &EntityState) -> i64 {
        if self.has_vprot { entity.vprot } else { entity.vlag }
    }

    pub(crate) fn entity(self, entity: &EntityState) -> Entity {
        Entity {
            vruntime: entity.vruntime,
            deadline: entity.deadline,
            vlag: entity.vlag,
            vprot: self.vprot(entity),
            slice: entity.slice,
            exec_start: entity.exec_start,
            sum_exec_runtime: entity.sum_exec_runtime,
            prev_sum_exec_runtime: entity.prev_sum_exec_runtime,
            weight: self.weight(entity.weight),
            flags: flags(entity.flags),
            id: id(entity.id),
            pad: 0,
        }
    }

    /// The queue before the step. Its waiting entities are `waiting` if the step has them.
    pub(crate) fn queue(self, sys: &System, step: &Step, counted: u32) -> FairRq {
        let state = &step.head.before;
        let mut rq = sys.fair_rq();
        if step.head.curr_before.id != 0 {
            rq.curr = self.entity(&step.head.curr_before);
        }
        rq.zero_vruntime = state.zero_vruntime;
        rq.sum_w_vruntime = state.sum_w_vruntime;
        rq.sum_weight = state.sum_weight;
        rq.min_vruntime = state.min_vruntime;
        rq.min_slice = state.min_slice;
        rq.max_slice = state.max_slice;
        rq.nr_waiting =
            self.nr_queued(state).saturating_sub(counted).saturating_sub(u32::from(rq.curr_competes()));
        rq.load_shift = LOAD_SHIFT;
        rq.sum_shift = if self.flat { state.sum_shift.min(31) } else { LOAD_SHIFT };
        rq.next = id(state.next);
        rq.last = id(state.last);
        rq.skip = id(state.skip);
        if self.cfs {
            // it keeps no sums; its queue's load has the weights in full
            rq.leftmost = state.zero_vruntime;
            rq.sum_shift = 0;
            let running = if rq.curr_competes() { step.head.curr_before.load } else { 0 };
            rq.sum_weight = state.load.saturating_sub(running) as i64;
        }
        rq
    }

    /// Entities that wait or run, as the kernel's functions ask for them.
    pub(crate) fn nr_queued(self, state: &FairRqState) -> u32 {
        if self.flat { state.h_nr_queued } else { state.nr_queued }
    }

    pub(crate) fn waiting(self, waiting: &format::Waiting, by_deadline: bool) -> Waiting {
        Waiting {
            order: if by_deadline { waiting.deadline } else { waiting.vruntime },
            vruntime: waiting.vruntime,
            weight: self.weight(waiting.weight),
            id: id(waiting.id),
        }
    }
}

/// Flags of an entity as the policy numbers them.
pub(crate) fn flags(recorded: u32) -> u32 {
    const FLAGS: [(u32, u32); 7] = [
        (format::ENTITY_ON_RQ, SE_ON_RQ),
        (format::ENTITY_DELAYED, SE_DELAYED),
        (format::ENTITY_REL_DEADLINE, SE_REL_DEADLINE),
        (format::ENTITY_CUSTOM_SLICE, SE_CUSTOM_SLICE),
        (format::ENTITY_GROUP, SE_GROUP),
        (format::ENTITY_IDLE, SE_IDLE),
        (format::ENTITY_BATCH, SE_BATCH),
    ];
    FLAGS.iter().filter(|(file, _)| recorded & file != 0).map(|(_, policy)| policy).sum()
}

/// An entity's number as the policy has it: none is 0 in the file.
pub(crate) fn id(recorded: i32) -> i32 {
    match recorded {
        0 => NO_ENTITY,
        // autogroup 0
        NO_ENTITY => i32::MIN,
        id => id,
    }
}

/// The number in the file.
pub(crate) fn recorded_id(id: i32) -> i32 {
    match id {
        NO_ENTITY => 0,
        i32::MIN => NO_ENTITY,
        id => id,
    }
}
