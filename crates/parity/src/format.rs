//! The structures of a capture file, with the same fields as in `bpf/record/capture.h`, which gives their meaning and
//! units.
//!
//! All integers are little-endian, and structures have no holes.

#![allow(missing_docs)] // one description is enough: bpf/record/capture.h

/// The first eight bytes of a file: "coreward".
pub const MAGIC: u64 = u64::from_le_bytes(*b"coreward");
/// The version that this reader and writer know.
pub const VERSION: u32 = 1;
/// The most CPUs that a file may have.
pub const MAX_CPUS: usize = 512;
/// The most domains that a CPU may have.
pub const MAX_LEVELS: usize = 10;
/// The most groups that a domain may have.
pub const MAX_GROUPS: usize = 1024;
/// The length of an end frame where there are no steps: it does not count them.
pub const END_WITHOUT_STEPS: usize = End::SIZE - 8;
/// A CPU has no domain of asymmetric capacity, or that domain keeps no note.
pub const NO_SHARED: u32 = u32::MAX;

pub const CPU_CURR_IDLE: u32 = 1 << 0;
pub const CPU_TTWU_PENDING: u32 = 1 << 1;
pub const CPU_IDLE_STATE: u32 = 1 << 2;

pub const TASK_PERCPU_KTHREAD: u32 = 1 << 0;
pub const TASK_SCHED_IDLE: u32 = 1 << 1;
pub const TASK_EXITING: u32 = 1 << 2;
/// [`PlacementHead::flags`]: not from an interrupt.
pub const PLACEMENT_IN_TASK: u32 = 1 << 0;
/// [`PlacementHead::flags`]: jiffies went on while the kernel decided.
pub const PLACEMENT_TICKED: u32 = 1 << 1;

/// The most entities that wait in a step.
pub const MAX_WAITING: usize = 64;

pub const STEP_NEED_RESCHED: u32 = 1 << 0;
pub const STEP_RESCHED: u32 = 1 << 1;
pub const STEP_RESCHED_LAZY: u32 = 1 << 2;
pub const STEP_CHARGED_RESCHED: u32 = 1 << 3;
pub const STEP_IN_TICK: u32 = 1 << 4;
pub const STEP_CUT: u32 = 1 << 5;
pub const STEP_TASK_BATCH: u32 = 1 << 6;
pub const STEP_TASK_IDLE: u32 = 1 << 7;
pub const STEP_CURR_TASK_IDLE: u32 = 1 << 8;

pub const ENTITY_ON_RQ: u32 = 1 << 0;
pub const ENTITY_DELAYED: u32 = 1 << 1;
pub const ENTITY_REL_DEADLINE: u32 = 1 << 2;
pub const ENTITY_CUSTOM_SLICE: u32 = 1 << 3;
pub const ENTITY_GROUP: u32 = 1 << 4;
pub const ENTITY_IDLE: u32 = 1 << 5;
pub const ENTITY_BATCH: u32 = 1 << 6;

/// What the fair class does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    Place = 1,
    Requeue,
    Dequeue,
    Preempt,
    Pick,
    Charge,
    Tick,
    Yield,
    SetNext,
    Reweight,
}

impl StepKind {
    /// All kinds, in the order of their numbers, which begin with 1.
    pub const ALL: [StepKind; 10] = [
        StepKind::Place,
        StepKind::Requeue,
        StepKind::Dequeue,
        StepKind::Preempt,
        StepKind::Pick,
        StepKind::Charge,
        StepKind::Tick,
        StepKind::Yield,
        StepKind::SetNext,
        StepKind::Reweight,
    ];

    /// The kind of that number.
    pub fn from_number(number: u32) -> Option<StepKind> {
        Self::ALL.get((number as usize).checked_sub(1)?).copied()
    }
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameType {
    Host = 1,
    Cpu,
    Domain,
    Placement,
    Balance,
    Queue,
    End,
    Step,
}

impl FrameType {
    /// All types, in the order of their numbers, which begin with 1.
    const ALL: [FrameType; 8] = [
        FrameType::Host,
        FrameType::Cpu,
        FrameType::Domain,
        FrameType::Placement,
        FrameType::Balance,
        FrameType::Queue,
        FrameType::End,
        FrameType::Step,
    ];

    /// The type of that number.
    pub fn from_number(number: u32) -> Option<FrameType> {
        Self::ALL.get((number as usize).checked_sub(1)?).copied()
    }

    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        ["host", "cpu", "domain", "placement", "balance", "queue", "end", "step"][self as usize - 1]
    }
}

/// A value of the file: what it takes in bytes, and both directions.
pub trait Field: Sized {
    /// Bytes in the file.
    const SIZE: usize;
    /// Takes the value off the front of `bytes`; `None` if they are too few.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
    /// Adds the value to the end of `bytes`.
    fn put(&self, bytes: &mut Vec<u8>);
}

macro_rules! integers {
    ($($type:ty)+) => { $(
        impl Field for $type {
            const SIZE: usize = size_of::<$type>();
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(<$type>::from_le_bytes(*first))
            }
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    )+ };
}

integers! { u32 i32 u64 i64 }

impl Field for [u8; 16] {
    const SIZE: usize = 16;
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

macro_rules! structures {
    ($($(#[doc = $doc:literal])+ $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(pub $field: $type),+ }

        impl Field for $name {
            const SIZE: usize = 0 $(+ <$type as Field>::SIZE)+;
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: Field::take(bytes)?),+ })
            }
            fn put(&self, bytes: &mut Vec<u8>) {
                $(self.$field.put(bytes);)+
            }
        }
    )+ };
}

structures! {
    /// `struct capture_header`.
    Header { magic: u64, version: u32, pad: u32 }

    /// `struct capture_frame`.
    FrameHeader { kind: u32, length: u32, checksum: u32, pad: u32 }

    /// `struct capture_end`.
    End { placements: u64, balances: u64, queues: u64, lost: u64, steps: u64 }

    /// `struct capture_static_cpu`.
    StaticCpu { cpu: u32, capacity_orig: u32, node: u32, llc_id: u32 }

    /// `struct capture_domain`.
    DomainHead {
        cpu: u32, index: u32, flags: u32, level: u32, imbalance_pct: u32, busy_factor: u32,
        min_interval_ms: u32, max_interval_ms: u32, cache_nice_tries: u32, imb_numa_nr: u32,
        nr_groups: u32, pad: u32,
    }

    /// `struct capture_group`.
    GroupHead { weight: u32, cores: u32, flags: u32, pad: u32 }

    /// `struct capture_group_state`.
    GroupState { capacity: u32, min_capacity: u32, max_capacity: u32, imbalance: u32, next_update: u64 }

    /// `struct capture_cpu`.
    CpuState {
        nr_running: u32, h_nr_queued: u32, h_nr_runnable: u32, h_nr_idle: u32, flags: u32, capacity: u32,
        util_est: u32, exit_latency: u32, load_avg: u64, runnable_avg: u64, util_avg: u64,
        misfit_task_load: u64, idle_stamp: u64, has_idle_cores: u32, nr_idle_scan: u32, llc_util_avg: u32,
        llc_capacity: u32, nr_numa_running: u32, nr_preferred_running: u32, nr_pref_dst_llc: u32,
        asym_has_idle_cores: u32, asym_nr_idle_scan: u32, avg_idle: u32,
    }

    /// `struct capture_changed_cpu`.
    ChangedCpu { cpu: u32, pad: u32, after: CpuState }

    /// `struct capture_task`.
    TaskState {
        pid: i32, recent_used_cpu: i32, woke_task: u32, wakee_flips: u32, wakee_flip_decay_ts: u64,
        nr_cpus_allowed: u32, flags: u32, last_update_time: u64, load_sum: u64, runnable_sum: u64,
        util_sum: u32, period_contrib: u32, load_avg: u64, runnable_avg: u64, util_avg: u64, util_est: u32,
        weight: u32, cfs_rq_update_time: u64, cfs_rq_load_avg: u64, cfs_rq_h_load: u64,
        numa_preferred_nid: i32, uclamp: u32, comm: [u8; 16],
    }

    /// `struct capture_placement`.
    PlacementHead {
        now: u64, jiffies: u64, this_cpu: i32, prev_cpu: i32, chosen: i32, wake_flags: u32, flags: u32,
        nr_groups: u32, nr_changed: u32, task_cpu: i32, task: TaskState, waker: TaskState,
    }

    /// `struct capture_balance`.
    BalanceHead {
        sequence: u64, now: u64, jiffies: u64, imbalance: i64, dst_cpu: i32, span_weight: u32, idle: u32,
        migration_type: u32, fbq_type: u32, nr_balance_failed: u32, nr_groups: u32, nr_changed: u32,
    }

    /// `struct capture_queue`.
    Queue { sequence: u64, src_cpu: i32, pad: u32 }

    /// `struct capture_entity`.
    EntityState {
        id: i32, flags: u32, vruntime: i64, deadline: i64, vlag: i64, vprot: i64, slice: u64, exec_start: u64,
        sum_exec_runtime: u64, prev_sum_exec_runtime: u64, weight: u64, load: u64, inv_weight: u32, depth: u32,
    }

    /// `struct capture_waiting`.
    Waiting { id: i32, flags: u32, vruntime: i64, deadline: i64, slice: u64, weight: u64 }

    /// `struct capture_fair_rq`.
    FairRqState {
        nr_queued: u32, h_nr_queued: u32, h_nr_runnable: u32, sum_shift: u32, sum_w_vruntime: i64,
        sum_weight: i64, zero_vruntime: i64, min_vruntime: i64, load: u64, min_slice: u64, max_slice: u64,
        curr: i32, next: i32, last: i32, skip: i32,
    }

    /// `struct capture_step`.
    StepHead {
        now: u64, kind: u32, cpu: i32, argument: u32, flags: u32, result: i32, nr_waiting: u32, weight: u64,
        before: FairRqState, after: FairRqState, curr_before: EntityState, curr_after: EntityState,
        se_before: EntityState, se_after: EntityState,
    }
}
