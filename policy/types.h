/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state that the policy decides on, and the record that it returns.
 *
 * A host (simulator, shadow, live) owns one `struct cw_sys` and keeps it
 * current; the policy reads it, and writes only what the kernel's own decision
 * functions write (recent_used_cpu, wakee flips, has_idle_cores, balance
 * bookkeeping). Everything is a plain integer in a fixed-size array, so that
 * the same declarations serve native code and a BPF map.
 *
 * Units: time in ns, capacity and utilisation on the 0..1024 scale, load on
 * the scale where a nice-0 task that always runs is 1024.
 */
#ifndef CW_TYPES_H
#define CW_TYPES_H

#ifndef __VMLINUX_H__
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0
#endif

#define CW_MAX_CPUS 1024
#define CW_CPU_MASK (CW_MAX_CPUS - 1)
#define CW_MASK_WORDS (CW_MAX_CPUS / 64)
/* SMT, CLS, MC, PKG, NODE and as many NUMA distances as fit. */
#define CW_MAX_LEVELS 10
#define CW_MAX_DOMAINS 2048
#define CW_MAX_GROUPS 8192
/* SCHED_CACHE counts the tasks that prefer each LLC, for this many LLCs. */
#define CW_MAX_PREF_LLCS 128
/* How deep task groups may lie in each other around the tasks. */
#define CW_MAX_TG_DEPTH 16
#define CW_NONE 0xffffu
/* cw_cpu.exit_latency_us of a CPU that is in no idle state: awake, or without an idle driver */
#define CW_NO_IDLE_STATE 0xffffffffu
/* cw_task.numa_preferred_nid of a task that prefers no node */
#define NUMA_NO_NODE (-1)

#define CW_CAPACITY_SCALE 1024
#define CW_NICE_0_WEIGHT 1024

struct cw_cpumask {
	u64 bits[CW_MASK_WORDS];
};

/* Geometric averages of one task or of one runqueue; see pelt.h. */
struct cw_avg {
	u64 last_update_time;
	u64 load_sum;
	u64 runnable_sum;
	u64 load_avg;
	u64 runnable_avg;
	u64 util_avg;
	u32 util_sum;
	u32 period_contrib;
	u32 util_est; /* of a task: with UTIL_AVG_UNCHANGED; of a runqueue: the sum over runnable tasks */
	u32 pad;
};

/* Load of tasks that left a runqueue while they slept, still to be subtracted. */
struct cw_removed {
	u64 load_avg;
	u64 runnable_avg;
	u64 util_avg;
	u32 nr;
	u32 pad;
};

/* Domain flags, by the kernel's names and in the order in which it prints them. */
enum cw_sd_flag {
	SD_BALANCE_NEWIDLE = 1 << 0,
	SD_BALANCE_EXEC = 1 << 1,
	SD_BALANCE_FORK = 1 << 2,
	SD_BALANCE_WAKE = 1 << 3,
	SD_WAKE_AFFINE = 1 << 4,
	SD_ASYM_CPUCAPACITY = 1 << 5,
	SD_ASYM_CPUCAPACITY_FULL = 1 << 6,
	SD_SHARE_CPUCAPACITY = 1 << 7,
	SD_CLUSTER = 1 << 8,
	SD_SHARE_LLC = 1 << 9,
	SD_SERIALIZE = 1 << 10,
	SD_ASYM_PACKING = 1 << 11,
	SD_PREFER_SIBLING = 1 << 12,
	SD_OVERLAP = 1 << 13,
	SD_NUMA = 1 << 14,
};

/* One sched domain; CPUs whose span and groups agree share it. */
struct cw_domain {
	struct cw_cpumask span;
	u32 flags;
	u32 level;
	u32 weight; /* CPUs in the span */
	u32 imbalance_pct;
	u32 busy_factor;
	u32 min_interval_ms;
	u32 max_interval_ms;
	u32 cache_nice_tries;
	u32 imb_numa_nr;
	u32 nr_groups;
	u32 first_group; /* its groups are cw_sys.group[first_group..+nr_groups], in ring order */
	u32 llc; /* index in cw_sys.llc if SD_SHARE_LLC, else CW_NONE */
	/* as in cw_llc, for a domain with SD_ASYM_CPUCAPACITY_FULL that is not made of nodes */
	u32 has_idle_cores;
	u32 nr_idle_scan;
};

struct cw_group {
	struct cw_cpumask span;
	struct cw_cpumask balance_mask; /* CPUs that may balance on the group's behalf */
	u32 weight; /* CPUs */
	u32 cores; /* SMT cores */
	u32 flags; /* those of the child domain, 0 at the lowest level */
	u32 capacity; /* sum over its CPUs */
	u32 min_capacity; /* of one CPU */
	u32 max_capacity;
	u32 imbalance; /* set when affinity kept a balancer from evening it out */
	u32 pad;
	u64 next_update; /* the tick from which newidle balance has to bring `capacity` up to date */
};

/* The data of the kernel's sd_llc_shared: one for each last-level cache. */
struct cw_llc {
	u32 has_idle_cores;
	u32 nr_idle_scan; /* SIS_UTIL: how many CPUs a wakeup may look at */
	u32 nr_busy_cpus;
	u32 weight; /* CPUs: sd_llc_size */
	u32 domain; /* the LLC's top domain, CW_NONE if the LLC is one CPU */
	u32 capacity; /* SCHED_CACHE: of its CPUs, when it was last balanced with others */
	u64 util_avg; /* SCHED_CACHE, CACHE_AWARE: likewise, their utilisation */
	u64 nr_avg; /* CACHE_AWARE: average of their runnable tasks, over such balances */
	u64 bytes; /* SCHED_CACHE: size of the cache */
};

/* One CPU's view of one of its domains: what balancing remembers. */
struct cw_cpu_sd {
	u64 last_balance; /* when it was last balanced, ns */
	u64 max_newidle_lb_cost; /* ns */
	u64 last_decay_max_lb_cost; /* ns */
	u64 newidle_stamp; /* NI_RANDOM: when newidle_ratio was last computed, ns */
	u32 newidle_call; /* NI_RANDOM: newidle balances, including those that were skipped at random */
	u32 newidle_success; /* how many of these found a task, scaled as if none had been skipped */
	u32 newidle_ratio; /* the probability of a balance, 1024-scaled; initially 512, with 512 calls and 256 successes */
	u32 balance_interval_ms;
	u32 nr_balance_failed;
	u32 domain; /* index in cw_sys.domain, CW_NONE beyond the top */
	u32 local_group; /* index in cw_sys.group */
};

/* One CPU's runqueue, as far as placement looks at it. */
struct cw_cpu {
	u32 nr_running; /* runnable tasks of all classes, the running one included */
	u32 cfs_nr_running; /* of these, fair tasks (h_nr_running; delayed dequeues count as in 6.12) */
	u32 idle_nr_running; /* of these, SCHED_IDLE tasks */
	u8 curr_is_idle; /* the idle task is current */
	u8 ttwu_pending; /* a queued remote wakeup is on its way */
	u16 pad;
	u32 capacity_orig; /* arch_scale_cpu_capacity, 1..1024 */
	u32 capacity; /* what other classes leave of it, 1..1024 */
	u32 llc; /* index in cw_sys.llc */
	u32 core; /* lowest CPU of its SMT core */
	u32 nr_sd; /* valid entries of cw_sys.cpu_sd[cpu] */
	u32 asym_sd; /* lowest domain with SD_ASYM_CPUCAPACITY_FULL, CW_NONE without */
	s32 node; /* NUMA node */
	u32 exit_latency_us; /* of the idle state that it is in, 0 when polling, or CW_NO_IDLE_STATE */
	u64 idle_stamp; /* when it went idle; 0: running */
	u64 avg_idle; /* average idle duration, ns */
	u64 max_idle_balance_cost; /* ns */
	u64 avg_scan_cost; /* SIS_PROP: average time that its search for an idle CPU takes, ns */
	u64 load_weight; /* sum of weights of runnable fair tasks */
	u64 misfit_task_load;
	u32 cfs_nr_delayed; /* of cfs_nr_running: asleep, their dequeue is delayed */
	u32 nr_numa_running; /* tasks with a preferred NUMA node; NUMA balancing counts them */
	u32 nr_preferred_running; /* of these, on that node */
	u32 nr_pref_dst_llc; /* SCHED_CACHE: tasks that prefer the LLC of the CPU that balances */
	u32 nr_pref_llc_running; /* SCHED_CACHE: runnable tasks that prefer the LLC of this CPU */
	u32 curr; /* the process of the fair task that it runs, or 0 */
	u64 clock_task; /* the time up to which clock_pelt was computed, ns */
	u64 clock_pelt; /* the clock of its averages: update_rq_clock_pelt() */
	u64 lost_idle_time; /* by how much that clock is behind clock_task while it is idle, ns */
	u64 next_balance; /* the tick at which the first of its domains is due */
	u32 curr_util; /* of the task `curr` is about, when it was last worked out */
	u32 freq_capacity; /* arch_scale_freq_capacity, 1..1024 */
	struct cw_avg avg; /* of the queue that its fair tasks are in */
	struct cw_removed removed;
};

/*
 * The fair runqueue that a task counts on: its task group's on the CPU that it
 * last ran on. The group's part of that CPU's load is h_load, which the kernel
 * computes once per jiffy.
 */
struct cw_cfs_rq {
	u64 last_update_time;
	u64 load_avg;
	u64 h_load;
};

/* A task group's queue on one CPU, and the entity that stands for it in the queue above. */
struct cw_group_entity {
	u64 weight; /* the group's share of the CPU */
	u64 load_avg; /* of the entity: `weight` as far as the queue had tasks */
	u64 tg_load_avg_contrib; /* what the queue has contributed to the group's load average */
	u64 last_update_tg_load_avg; /* when it last did, ns */
};

/* The entities of one CPU; see track/task_group.h. */
struct cw_tg_cpu {
	struct cw_avg avg; /* of all of them, load_sum only: for how long there were tasks */
	s64 prop_runnable_sum; /* by how much tasks that came or left change it */
	u64 h_load; /* the part of the CPU's load that the innermost group's queue has */
	u64 last_h_load_update; /* the jiffy in which h_load was computed */
	u32 written; /* levels whose tg->load_avg the CPU has written; a host that has taken note clears it */
	u32 pad;
	struct cw_group_entity level[CW_MAX_TG_DEPTH]; /* from the outermost group inwards */
};

/* What a queued task is counted for on its queue; see track/account.h. */
struct cw_queued {
	s32 cpu; /* on whose queue it is, or -1 */
	u32 weight;
	u32 util_est;
	u32 sched_idle;
	u32 llc; /* SCHED_CACHE: the LLC that it prefers, or CW_NONE */
	u32 pad;
};

/* One task, as far as placement looks at it, and its upkeep (track/upkeep.h). */
struct cw_task {
	s32 pid;
	s32 recent_used_cpu;
	s32 last_wakee; /* pid */
	u32 wakee_flips;
	u64 wakee_flip_decay_ts;
	u64 exec_start; /* when it last ran, ns; 0 once it is queued on another CPU: task_hot */
	u32 weight; /* 1024 for nice 0 */
	u32 nr_cpus_allowed;
	u32 flags; /* CW_TASK_* */
	u32 max_allowed_capacity; /* capacity_orig of the biggest CPU that it may use: misfit */
	s32 numa_preferred_nid; /* by NUMA balancing, else NUMA_NO_NODE */
	s32 cache_cpu; /* with CW_TASK_CACHE_CPU: its process's cw_process.cache_cpu */
	u32 nr_threads; /* of its process: CACHE_AWARE */
	u32 preferred_llc; /* with CW_TASK_PREFERRED_LLC: for which LLC its runqueue counts it */
	u32 uclamp_min; /* with CW_TASK_UCLAMP: the effective clamps of its utilisation */
	u32 uclamp_max;
	s32 cpu; /* the CPU whose averages it is part of, if they were attached at all */
	u32 process; /* a number of its process, never 0 */
	u64 sync_at; /* when it first woke another task synchronously since it last slept, ns; 0: it has not */
	struct cw_queued queued;
	struct cw_cfs_rq cfs_rq; /* with CW_TASK_CFS_RQ */
	struct cw_avg avg;
};

enum cw_task_flag {
	CW_TASK_PERCPU_KTHREAD = 1 << 0, /* is_per_cpu_kthread() */
	CW_TASK_SCHED_IDLE = 1 << 1, /* SCHED_IDLE policy */
	CW_TASK_CFS_RQ = 1 << 2, /* cfs_rq is known; without, the task counts on the CPU itself */
	CW_TASK_DELAYED = 1 << 3, /* asleep, its dequeue is delayed (se.sched_delayed) */
	CW_TASK_INELIGIBLE = 1 << 4, /* queued with negative lag: it had more than its share */
	CW_TASK_CACHE_CPU = 1 << 5, /* its process prefers an LLC */
	CW_TASK_BUDDY = 1 << 6, /* CFS will prefer it at the next switch (cfs_rq->next or ->last) */
	CW_TASK_PREFERRED_LLC = 1 << 7, /* SCHED_CACHE: when it last ran, its process preferred an LLC */
	CW_TASK_SLEEPS_AFTER_SYNC = 1 << 8, /* SYNC_ON_WAKER: it slept at once after its last synchronous wakeup */
	CW_TASK_NEW = 1 << 9, /* it has not been queued yet */
	CW_TASK_UCLAMP = 1 << 10, /* its clamps are known; without, it has none */
};

/* Wake flags, as the kernel's WF_*. */
enum cw_wake_flag {
	WF_EXEC = SD_BALANCE_EXEC,
	WF_FORK = SD_BALANCE_FORK,
	WF_TTWU = SD_BALANCE_WAKE,
	WF_SYNC = 0x10,
	WF_CURRENT_CPU = 0x40,
};

/* Run time on one CPU, in ns; it still has to be halved for each epoch since `epoch`. */
struct cw_runtime {
	u64 runtime;
	u64 epoch;
};

/*
 * One process: where its threads ran lately, and the LLC that it prefers as a
 * result. process.h maintains it; its tasks carry copies of cache_cpu and nr_threads.
 */
struct cw_process {
	s32 cache_cpu; /* the CPU that it occupies most of its preferred LLC, -1 without one */
	u32 nr_threads;
	u64 epoch; /* when it last looked for one */
	u64 nr_running_avg; /* SCHED_CACHE: average number of its running threads, over such searches */
	u64 footprint; /* SCHED_CACHE: bytes that NUMA balancing saw it use, 0 where there is none */
	struct cw_runtime runtime[CW_MAX_CPUS];
};

/* One placement to decide: a wakeup, a fork or an exec. */
struct cw_wakeup {
	struct cw_task *p;
	struct cw_task *waker; /* current on this_cpu; the parent for a fork, p itself for an exec */
	const struct cw_cpumask *cpus_ptr; /* where p may run */
	s32 this_cpu; /* the waker's CPU */
	s32 prev_cpu; /* where p last ran, or where NUMA balancing wants it to wake (wake_cpu) */
	s32 task_cpu; /* the CPU whose averages p is part of: where it last ran */
	u32 wake_flags;
	u32 in_task; /* the wakeup comes from task context, not from an interrupt */
	u32 random;
	u64 now;
};

/* Why a CPU was chosen. */
enum cw_reason {
#define REASON(name, text) CW_REASON_##name,
#include "reasons.def"
#undef REASON
	CW_NR_REASONS
};

/* What kept a rule from acting, or which rule chose the target: bits of cw_decision.notes. */
enum cw_note {
#define NOTE(name, bit, text) CW_NOTE_##name = 1 << bit,
#include "notes.def"
#undef NOTE
};

/* The decision record, which every host and report uses. */
struct cw_decision {
	u64 now;
	s32 pid;
	s32 this_cpu;
	s32 prev_cpu;
	s32 target; /* what wake_affine chose, before the search for an idle CPU */
	s32 cpu; /* the choice; for balancing the busiest CPU, -1 if none */
	u32 event; /* wake flags of a placement, enum cw_balance_event of a balance */
	u32 reason;
	u32 notes;
	u32 cpus_scanned; /* CPUs whose state was read in scans */
	u32 groups_scanned;
};

/* Indices of the features and tunables of features.def. */
enum cw_feature {
#define FEATURE(name, ...) CW_FEAT_##name,
#define TUNABLE(...)
#include "features.def"
#undef FEATURE
#undef TUNABLE
	CW_NR_FEATURES
};

enum cw_tunable {
#define FEATURE(...)
#define TUNABLE(name, ...) CW_TUNE_##name,
#include "features.def"
#undef FEATURE
#undef TUNABLE
	CW_NR_TUNABLES
};

/* There is room for more than there are, so that a variant that adds some has the same layout. */
#define CW_FEATURE_WORDS 2
#define CW_MAX_TUNABLES 32
_Static_assert(CW_NR_FEATURES <= 64 * CW_FEATURE_WORDS, "more features than bits");
_Static_assert(CW_NR_TUNABLES <= CW_MAX_TUNABLES, "more tunables than CW_MAX_TUNABLES");

struct cw_sys {
	u32 nr_cpus;
	u32 mask_words; /* words of a cpumask in use: ceil(nr_cpus / 64) */
	u32 nr_llcs;
	u32 smt_present;
	u32 overloaded; /* some runqueue has a waiting task: rd->overloaded */
	u32 cluster_present; /* some domain has SD_CLUSTER */
	u32 tick_ns; /* a jiffy: 1 s / HZ; balance intervals are counted in these */
	u32 asym_present; /* some domain has SD_ASYM_CPUCAPACITY */
	u32 max_cpu_capacity; /* capacity_orig of the biggest CPU */
	u32 smt_threads; /* CPUs of a core; 0 stands for 1 */
	u32 balance_running; /* some CPU balances a domain with SD_SERIALIZE */
	u32 sched_cache_present; /* some LLC has several CPUs, and a domain of its CPUs contains others */
	u64 nohz_next_balance; /* the tick from which an idle CPU may be asked to balance: nohz.next_balance */
	u64 features[CW_FEATURE_WORDS]; /* bit i of all: enum cw_feature */
	s64 tunable[CW_MAX_TUNABLES]; /* in the order of enum cw_tunable */
	struct cw_cpu cpu[CW_MAX_CPUS];
	struct cw_cpu_sd cpu_sd[CW_MAX_CPUS][CW_MAX_LEVELS];
	struct cw_cpumask smt_mask[CW_MAX_CPUS];
	struct cw_llc llc[CW_MAX_CPUS];
	struct cw_domain domain[CW_MAX_DOMAINS];
	struct cw_group group[CW_MAX_GROUPS];
	struct cw_runtime runtime[CW_MAX_CPUS]; /* CACHE_AWARE: of all processes */
	struct cw_avg runnable_load[CW_MAX_CPUS]; /* IDLEST_BY_LOAD: of queued tasks */
	u32 nr_pref_llc[CW_MAX_PREF_LLCS][CW_MAX_CPUS]; /* SCHED_CACHE: tasks on each CPU's queue that prefer each LLC */
	u32 task_group_depth; /* task groups around all tasks, at most CW_MAX_TG_DEPTH; hosts in BPF have none */
	u32 nohz_has_blocked; /* an idle CPU's averages may still decay: nohz.has_blocked; set by the host when one goes idle */
	u64 nohz_next_blocked; /* the tick from which they are to be brought up to date: nohz.next_blocked */
	u64 tg_load_avg[CW_MAX_TG_DEPTH]; /* from the outermost group inwards */
	struct cw_tg_cpu tg_cpu[CW_MAX_CPUS];
};

static inline bool sched_feat(const struct cw_sys *sys, enum cw_feature f)
{
	return sys->features[f / 64] >> f % 64 & 1;
}

/*
 * Do tasks prefer the LLC of their process? 7.3 asks for a partition with a second LLC, and
 * for LLCs of more than one CPU (sched_cache_set()).
 */
static inline bool sched_cache_enabled(const struct cw_sys *sys)
{
	return sys->sched_cache_present && sched_feat(sys, CW_FEAT_SCHED_CACHE);
}

static inline s64 tunable(const struct cw_sys *sys, enum cw_tunable t)
{
	return sys->tunable[t];
}

/* A program in BPF does not carry the code of task groups. */
static inline u32 task_group_depth(const struct cw_sys *sys)
{
#ifdef __bpf__
	return 0;
#else
	return sys->task_group_depth;
#endif
}

static inline struct cw_cpu *cpu_rq(struct cw_sys *sys, s32 cpu)
{
	return &sys->cpu[cpu & CW_CPU_MASK];
}

#endif /* CW_TYPES_H */
