//! The structures of `policy/types.h`, field for field. The meaning and units
//! of each field stand there; a test compares sizes and offsets with C.

#![allow(missing_docs)] // one description is enough: policy/types.h

use crate::NR_TUNABLES;

pub const MAX_CPUS: usize = 1024;
pub const MASK_WORDS: usize = MAX_CPUS / 64;
pub const MAX_LEVELS: usize = 10;
pub const MAX_DOMAINS: usize = 2048;
pub const MAX_GROUPS: usize = 8192;
/// No domain, no LLC.
pub const NONE: u32 = 0xffff;
/// The CPU is in no idle state.
pub const NO_IDLE_STATE: u32 = u32::MAX;
/// The task prefers no node.
pub const NUMA_NO_NODE: i32 = -1;

pub const SD_BALANCE_NEWIDLE: u32 = 1 << 0;
pub const SD_BALANCE_EXEC: u32 = 1 << 1;
pub const SD_BALANCE_FORK: u32 = 1 << 2;
pub const SD_BALANCE_WAKE: u32 = 1 << 3;
pub const SD_SHARE_CPUCAPACITY: u32 = 1 << 7;
pub const SD_SHARE_LLC: u32 = 1 << 9;
pub const SD_SERIALIZE: u32 = 1 << 10;

pub const TASK_PERCPU_KTHREAD: u32 = 1 << 0;
pub const TASK_SCHED_IDLE: u32 = 1 << 1;
pub const TASK_CFS_RQ: u32 = 1 << 2;
pub const TASK_DELAYED: u32 = 1 << 3;
pub const TASK_INELIGIBLE: u32 = 1 << 4;
pub const TASK_CACHE_CPU: u32 = 1 << 5;
pub const TASK_BUDDY: u32 = 1 << 6;
pub const TASK_PREFERRED_LLC: u32 = 1 << 7;

pub const NOTE_CACHE_CPU: u32 = 1 << 11;
pub const NOTE_CACHE_CROWDED: u32 = 1 << 12;

pub const WF_EXEC: u32 = SD_BALANCE_EXEC;
pub const WF_FORK: u32 = SD_BALANCE_FORK;
pub const WF_TTWU: u32 = SD_BALANCE_WAKE;
pub const WF_SYNC: u32 = 0x10;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuMask {
    pub bits: [u64; MASK_WORDS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Avg {
    pub last_update_time: u64,
    pub load_sum: u64,
    pub runnable_sum: u64,
    pub load_avg: u64,
    pub runnable_avg: u64,
    pub util_avg: u64,
    pub util_sum: u32,
    pub period_contrib: u32,
    pub util_est: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Removed {
    pub load_avg: u64,
    pub runnable_avg: u64,
    pub util_avg: u64,
    pub nr: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Domain {
    pub span: CpuMask,
    pub flags: u32,
    pub level: u32,
    pub weight: u32,
    pub imbalance_pct: u32,
    pub busy_factor: u32,
    pub min_interval_ms: u32,
    pub max_interval_ms: u32,
    pub cache_nice_tries: u32,
    pub imb_numa_nr: u32,
    pub nr_groups: u32,
    pub first_group: u32,
    pub llc: u32,
    pub has_idle_cores: u32,
    pub nr_idle_scan: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    pub span: CpuMask,
    pub balance_mask: CpuMask,
    pub weight: u32,
    pub cores: u32,
    pub flags: u32,
    pub capacity: u32,
    pub min_capacity: u32,
    pub max_capacity: u32,
    pub imbalance: u32,
    pub pad: u32,
    pub next_update: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Llc {
    pub has_idle_cores: u32,
    pub nr_idle_scan: u32,
    pub nr_busy_cpus: u32,
    pub weight: u32,
    pub domain: u32,
    pub capacity: u32,
    pub util_avg: u64,
    pub nr_avg: u64,
    pub bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuSd {
    pub last_balance: u64,
    pub max_newidle_lb_cost: u64,
    pub last_decay_max_lb_cost: u64,
    pub newidle_stamp: u64,
    pub newidle_call: u32,
    pub newidle_success: u32,
    pub newidle_ratio: u32,
    pub balance_interval_ms: u32,
    pub nr_balance_failed: u32,
    pub domain: u32,
    pub local_group: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    pub nr_running: u32,
    pub cfs_nr_running: u32,
    pub idle_nr_running: u32,
    pub curr_is_idle: u8,
    pub ttwu_pending: u8,
    pub pad: u16,
    pub capacity_orig: u32,
    pub capacity: u32,
    pub llc: u32,
    pub core: u32,
    pub nr_sd: u32,
    pub asym_sd: u32,
    pub node: i32,
    pub exit_latency_us: u32,
    pub idle_stamp: u64,
    pub avg_idle: u64,
    pub max_idle_balance_cost: u64,
    pub load_weight: u64,
    pub misfit_task_load: u64,
    pub cfs_nr_delayed: u32,
    pub nr_numa_running: u32,
    pub nr_preferred_running: u32,
    pub nr_pref_dst_llc: u32,
    pub nr_pref_llc_running: u32,
    pub pad2: u32,
    pub avg: Avg,
    pub removed: Removed,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CfsRq {
    pub last_update_time: u64,
    pub load_avg: u64,
    pub h_load: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    pub pid: i32,
    pub recent_used_cpu: i32,
    pub last_wakee: i32,
    pub wakee_flips: u32,
    pub wakee_flip_decay_ts: u64,
    pub exec_start: u64,
    pub weight: u32,
    pub nr_cpus_allowed: u32,
    pub flags: u32,
    pub max_allowed_capacity: u32,
    pub numa_preferred_nid: i32,
    pub cache_cpu: i32,
    pub nr_threads: u32,
    pub preferred_llc: u32,
    pub cfs_rq: CfsRq,
    pub avg: Avg,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Runtime {
    pub runtime: u64,
    pub epoch: u64,
}

#[repr(C)]
#[derive(Clone, Debug)]
pub struct Process {
    pub cache_cpu: i32,
    pub nr_threads: u32,
    pub epoch: u64,
    pub nr_running_avg: u64,
    pub footprint: u64,
    pub runtime: [Runtime; MAX_CPUS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    pub p: *mut Task,
    pub waker: *mut Task,
    pub cpus_ptr: *const CpuMask,
    pub this_cpu: i32,
    pub prev_cpu: i32,
    pub task_cpu: i32,
    pub wake_flags: u32,
    pub in_task: u32,
    pub random: u32,
    pub now: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub now: u64,
    pub pid: i32,
    pub this_cpu: i32,
    pub prev_cpu: i32,
    pub target: i32,
    pub cpu: i32,
    pub event: u32,
    pub reason: u32,
    pub notes: u32,
    pub cpus_scanned: u32,
    pub groups_scanned: u32,
}

/// `struct cw_sg_stats` of `policy/wakeup/group.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SgStats {
    pub avg_load: u64,
    pub group_load: u64,
    pub group_util: u64,
    pub group_runnable: u64,
    pub group_misfit_task_load: u64,
    pub group_capacity: u32,
    pub group_weight: u32,
    pub sum_nr_running: u32,
    pub sum_h_nr_running: u32,
    pub idle_cpus: u32,
    pub group_type: u32,
    pub nr_numa_running: u32,
    pub nr_preferred_running: u32,
    pub nr_pref_dst_llc: u32,
    pub group_asym_packing: u8,
    pub group_smt_balance: u8,
    pub group_llc_balance: u8,
    pub pad: u8,
}

/// `enum group_type` of `policy/wakeup/group.h`, by name.
pub const GROUP_TYPES: [&str; 8] = [
    "has_spare",
    "fully_busy",
    "misfit_task",
    "smt_balance",
    "asym_packing",
    "imbalanced",
    "llc_balance",
    "overloaded",
];

/// `struct cw_sd_stats` of `policy/balance/lb_env.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SdStats {
    pub busiest: u32,
    pub local: u32,
    pub prefer_sibling: u32,
    pub pad: u32,
    pub total_load: u64,
    pub total_capacity: u64,
    pub total_util: u64,
    pub avg_load: u64,
    pub busiest_stat: SgStats,
    pub local_stat: SgStats,
    pub candidate: SgStats,
}

/// `struct cw_balance` of `policy/balance/lb_env.h`; [`System::balance_begin`](crate::System::balance_begin)
/// fills it in.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Balance {
    pub now: u64,
    pub this_cpu: i32,
    pub level: u32,
    pub idle: u32,
    pub flags: u32,
    pub dst_cpu: i32,
    pub src_cpu: i32,
    pub new_dst_cpu: i32,
    pub migration_type: u32,
    pub imbalance: i64,
    pub loop_: u32,
    pub loop_break: u32,
    pub loop_max: u32,
    pub detached: u32,
    pub nr_excluded: u32,
    pub fbq_type: u32,
    pub dst_core_idle: u32,
    pub curr_util: u32,
    pub excluded: CpuMask,
    pub sds: SdStats,
}

/// `enum cw_migration_type` of `policy/balance/lb_env.h`, by name.
pub const MIGRATION_TYPES: [&str; 5] = ["load", "util", "task", "misfit", "llc_task"];

/// `struct cw_newidle` of `policy/balance/newidle.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Newidle {
    pub cpu: i32,
    pub level: u32,
    pub curr_cost: u64,
    pub next_balance: u64,
    pub random: u32,
    pub weight: u32,
    pub pulled: bool,
    pub stop: bool,
}

/// `struct cw_periodic` of `policy/balance/periodic.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Periodic {
    pub cpu: i32,
    pub level: u32,
    pub idle: u32,
    pub may_go_on: bool,
    pub need_decay: bool,
    pub now: u64,
    pub max_cost: u64,
    pub next_balance: u64,
}

/// Of [`MIGRATION_TYPES`]: tasks that prefer the LLC of the CPU that balances.
pub const MIGRATE_LLC_TASK: u32 = 4;

pub const LBF_ALL_PINNED: u32 = 1 << 0;
pub const LBF_NOT_MINE: u32 = 1 << 8;

pub const CPU_NOT_IDLE: u32 = 0;
pub const CPU_IDLE: u32 = 1;
pub const CPU_NEWLY_IDLE: u32 = 2;

#[repr(C)]
pub struct Sys {
    pub nr_cpus: u32,
    pub mask_words: u32,
    pub nr_llcs: u32,
    pub smt_present: u32,
    pub overloaded: u32,
    pub cluster_present: u32,
    pub tick_ns: u32,
    pub asym_present: u32,
    pub max_cpu_capacity: u32,
    pub smt_threads: u32,
    pub features: u64,
    pub tunable: [i64; NR_TUNABLES],
    pub cpu: [Cpu; MAX_CPUS],
    pub cpu_sd: [[CpuSd; MAX_LEVELS]; MAX_CPUS],
    pub smt_mask: [CpuMask; MAX_CPUS],
    pub llc: [Llc; MAX_CPUS],
    pub domain: [Domain; MAX_DOMAINS],
    pub group: [Group; MAX_GROUPS],
    pub runtime: [Runtime; MAX_CPUS],
    pub runnable_load: [Avg; MAX_CPUS],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    unsafe extern "C" {
        fn cw_sizeof(i: u32) -> u64;
        fn cw_last_offset(i: u32) -> u64;
    }

    #[test]
    fn mirrors_have_the_layout_of_c() {
        let mirrors = [
            (size_of::<CpuMask>(), 0),
            (size_of::<Avg>(), offset_of!(Avg, util_est)),
            (size_of::<Removed>(), offset_of!(Removed, nr)),
            (size_of::<CfsRq>(), offset_of!(CfsRq, h_load)),
            (size_of::<Domain>(), offset_of!(Domain, nr_idle_scan)),
            (size_of::<Group>(), offset_of!(Group, next_update)),
            (size_of::<Llc>(), offset_of!(Llc, bytes)),
            (size_of::<CpuSd>(), offset_of!(CpuSd, local_group)),
            (size_of::<Cpu>(), offset_of!(Cpu, removed)),
            (size_of::<Task>(), offset_of!(Task, avg)),
            (size_of::<Wakeup>(), offset_of!(Wakeup, now)),
            (size_of::<Decision>(), offset_of!(Decision, groups_scanned)),
            (size_of::<SgStats>(), offset_of!(SgStats, pad)),
            (size_of::<SdStats>(), offset_of!(SdStats, candidate)),
            (size_of::<Balance>(), offset_of!(Balance, sds)),
            (size_of::<Newidle>(), offset_of!(Newidle, stop)),
            (size_of::<Periodic>(), offset_of!(Periodic, next_balance)),
            (size_of::<Runtime>(), offset_of!(Runtime, epoch)),
            (size_of::<Process>(), offset_of!(Process, runtime)),
            (size_of::<Sys>(), offset_of!(Sys, runnable_load)),
        ];
        for (i, (size, offset)) in mirrors.iter().enumerate() {
            // SAFETY: both functions only read constants.
            let c = unsafe { (cw_sizeof(i as u32), cw_last_offset(i as u32)) };
            assert_eq!((*size as u64, *offset as u64), c, "mirror {i}");
        }
        // SAFETY: as above.
        assert_eq!(unsafe { cw_sizeof(mirrors.len() as u32) }, 0, "a structure without a mirror");
    }
}
