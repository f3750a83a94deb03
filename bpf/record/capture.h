/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The capture file: what a kernel decided, and the state that it decided on.
 * docs/capture.md describes it; crates/parity reads it.
 *
 * A file is a header and frames; the last frame is CAPTURE_END. A frame is a struct
 * capture_frame and `length` bytes of payload, whose CRC-32 (as in zlib) is in the
 * frame. All integers are little-endian, structures have no holes, and lengths are
 * multiples of 8. A CPU set is `mask_words` words of 64 bits, as many as the CPUs of
 * the recorded machine need.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#ifdef __bpf__
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
#else
#include <stdint.h>
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
#endif

#define CAPTURE_MAGIC 0x6472617765726f63ULL /* "coreward" */
#define CAPTURE_VERSION 1
#define CAPTURE_MAX_CPUS 512
#define LINUX_5_10_MAX_CPUS 64 /* the limit where a BPF program loops over them itself */
#define CAPTURE_MASK_WORDS (CAPTURE_MAX_CPUS / 64)
#define CAPTURE_MAX_LEVELS 10
#define CAPTURE_MAX_GROUPS 1024 /* of one domain */
#define CAPTURE_COMM 16

struct capture_header {
	u64 magic;
	u32 version;
	u32 pad;
};

enum capture_type {
	CAPTURE_HOST = 1, /* text: lines of a name, a tab and a value */
	CAPTURE_CPU, /* struct capture_static_cpu and the CPUs of its SMT core: one for each CPU */
	CAPTURE_DOMAIN, /* struct capture_domain, its span, then its groups: one for each CPU and level */
	CAPTURE_PLACEMENT, /* struct capture_placement and what it announces */
	CAPTURE_BALANCE, /* struct capture_balance and what it announces */
	CAPTURE_QUEUE, /* struct capture_queue */
	CAPTURE_END, /* struct capture_end: the last frame */
	CAPTURE_STEP, /* struct capture_step and what it announces */
};

struct capture_frame {
	u32 type;
	u32 length;
	u32 checksum;
	u32 pad;
};

struct capture_end {
	u64 placements;
	u64 balances;
	u64 queues;
	u64 lost; /* decisions for which the ring buffer had no room */
	u64 steps; /* not there in files without any */
};

struct capture_static_cpu {
	u32 cpu;
	u32 capacity_orig; /* arch_scale_cpu_capacity() */
	u32 node;
	u32 llc_id; /* sd_llc_id: equal if the last-level cache is */
};

/* Followed by: the span, then nr_groups times a struct capture_group, its span and its balance mask. */
struct capture_domain {
	u32 cpu;
	u32 index; /* 0 at the bottom */
	u32 flags; /* the kernel's; the host frame names the bits */
	u32 level; /* sd->level */
	u32 imbalance_pct;
	u32 busy_factor;
	u32 min_interval_ms;
	u32 max_interval_ms;
	u32 cache_nice_tries;
	u32 imb_numa_nr;
	u32 nr_groups;
	u32 pad;
};

struct capture_group {
	u32 weight;
	u32 cores;
	u32 flags; /* the kernel's */
	u32 pad;
};

/* The state of a group that changes. Every group of every domain is the own group of some CPU. */
struct capture_group_state {
	u32 capacity;
	u32 min_capacity;
	u32 max_capacity;
	u32 imbalance;
	u64 next_update; /* jiffies */
};

/* What placement and balancing read of a CPU. */
struct capture_cpu {
	u32 nr_running;
	u32 h_nr_queued; /* fair tasks, delayed dequeues included */
	u32 h_nr_runnable; /* fair tasks, without them */
	u32 h_nr_idle; /* fair tasks of idle entities */
	u32 flags; /* enum capture_cpu_flag */
	u32 capacity;
	u32 util_est;
	u32 exit_latency; /* of its idle state, us; valid with CAPTURE_CPU_IDLE_STATE */
	u64 load_avg;
	u64 runnable_avg;
	u64 util_avg;
	u64 misfit_task_load;
	u64 idle_stamp;
	u32 has_idle_cores; /* of its LLC */
	u32 nr_idle_scan; /* of its LLC; until 5.10 what its scans take on average, ns (sd_llc->avg_scan_cost) */
	u32 llc_util_avg; /* of its LLC (cache-aware balancing, 7.3) */
	u32 llc_capacity;
	u32 nr_numa_running;
	u32 nr_preferred_running;
	u32 nr_pref_dst_llc; /* of its tasks, those that prefer the LLC of the balancing CPU (7.3) */
	u32 asym_has_idle_cores; /* of its domain of asymmetric capacity; CAPTURE_NO_SHARED: it has none */
	u32 asym_nr_idle_scan; /* likewise */
	u32 avg_idle; /* how long it idles on average, ns; only until 5.10 */
};

#define CAPTURE_NO_SHARED 0xffffffffu

enum capture_cpu_flag {
	CAPTURE_CPU_CURR_IDLE = 1 << 0, /* rq->curr == rq->idle */
	CAPTURE_CPU_TTWU_PENDING = 1 << 1,
	CAPTURE_CPU_IDLE_STATE = 1 << 2, /* it is in a cpuidle state */
};

/* A CPU whose state had changed when the decision had been made. */
struct capture_changed_cpu {
	u32 cpu;
	u32 pad;
	struct capture_cpu after;
};

struct capture_task {
	s32 pid;
	s32 recent_used_cpu;
	u32 woke_task; /* of the waker: the task is its last wakee */
	u32 wakee_flips;
	u64 wakee_flip_decay_ts; /* jiffies */
	u32 nr_cpus_allowed;
	u32 flags; /* enum capture_task_flag */
	u64 last_update_time; /* of se.avg; 0: new, or moved since */
	u64 load_sum;
	u64 runnable_sum;
	u32 util_sum;
	u32 period_contrib;
	u64 load_avg;
	u64 runnable_avg;
	u64 util_avg;
	u32 util_est;
	u32 weight; /* se.load.weight, 1024 for nice 0 */
	/* those of the queue that it belongs to, which may be a task group's */
	u64 cfs_rq_update_time;
	u64 cfs_rq_load_avg;
	u64 cfs_rq_h_load; /* read on return, because the kernel renews it on use */
	s32 numa_preferred_nid;
	u32 uclamp; /* effective clamps: the least utilisation, and the most shifted by 16; 0: not known */
	char comm[CAPTURE_COMM];
};

enum capture_task_flag {
	CAPTURE_TASK_PERCPU_KTHREAD = 1 << 0,
	CAPTURE_TASK_SCHED_IDLE = 1 << 1,
	CAPTURE_TASK_EXITING = 1 << 2,
};

enum capture_placement_flag {
	CAPTURE_PLACEMENT_IN_TASK = 1 << 0, /* not from an interrupt */
	CAPTURE_PLACEMENT_TICKED = 1 << 1, /* jiffies went on meanwhile */
};

/*
 * Followed by: the affinity (a CPU set), nr_cpus struct capture_cpu, nr_groups
 * struct capture_group_state, nr_changed struct capture_changed_cpu.
 */
struct capture_placement {
	u64 now; /* ns of the boot clock */
	u64 jiffies;
	s32 this_cpu;
	s32 prev_cpu;
	s32 chosen;
	u32 wake_flags; /* the kernel's */
	u32 flags; /* enum capture_placement_flag */
	u32 nr_groups; /* each CPU's own group, level by level from the bottom, CPU by CPU; 0 for wakeups */
	u32 nr_changed;
	s32 task_cpu; /* task_cpu(); mostly prev_cpu */
	struct capture_task task;
	struct capture_task waker;
};

/*
 * Followed by: env->cpus, the span of the group chosen (empty: none), nr_cpus
 * struct capture_cpu, nr_groups struct capture_group_state, nr_changed struct
 * capture_changed_cpu.
 */
struct capture_balance {
	u64 sequence;
	u64 now;
	u64 jiffies;
	s64 imbalance; /* afterwards */
	s32 dst_cpu;
	u32 span_weight; /* the domain's, which identifies it among those of dst_cpu */
	u32 idle; /* enum cpu_idle_type: 0 not idle, 1 idle, 2 newly idle */
	u32 migration_type; /* afterwards */
	u32 fbq_type; /* before */
	u32 nr_balance_failed;
	u32 nr_groups; /* as in a placement */
	u32 nr_changed;
};

/* The CPU that the balance of the same number chose. */
struct capture_queue {
	u64 sequence;
	s32 src_cpu; /* -1: none of its group would do */
	u32 pad;
};

/* The steps of the fair class on the queue of one CPU, by kernel function. */
enum capture_step_kind {
	CAPTURE_STEP_PLACE = 1, /* place_entity(): an entity joins the queue */
	CAPTURE_STEP_REQUEUE, /* requeue_delayed_entity(): a sleeper is woken before it has left the queue */
	CAPTURE_STEP_DEQUEUE, /* dequeue_entities(), __dequeue_task() in 7.3, dequeue_entity() of CFS: a task leaves, or goes to sleep */
	CAPTURE_STEP_PREEMPT, /* check_preempt_wakeup_fair(), wakeup_preempt_fair() in 7.3, check_preempt_wakeup() until 6.7 */
	CAPTURE_STEP_PICK, /* pick_task_fair(), pick_next_entity() of CFS: the next entity; once for each level of groups */
	CAPTURE_STEP_CHARGE, /* update_curr(): the running entity pays for its time */
	CAPTURE_STEP_TICK, /* task_tick_fair() */
	CAPTURE_STEP_YIELD, /* yield_task_fair() */
	CAPTURE_STEP_SET_NEXT, /* set_next_entity(), set_next_task_fair() in 7.3: it begins to run */
	CAPTURE_STEP_REWEIGHT, /* reweight_entity(), reweight_eevdf() in 7.3 */
	CAPTURE_STEP_KINDS
};

/* A task, or a group on one CPU. */
struct capture_entity {
	s32 id; /* the pid of a task; a negative number for a group; 0: there is no entity */
	u32 flags; /* enum capture_entity_flag */
	s64 vruntime;
	s64 deadline;
	s64 vlag;
	s64 vprot; /* the same, where it shares its place with vlag */
	u64 slice;
	u64 exec_start;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
	u64 weight; /* by which its virtual time runs: load.weight, h_load.weight in 7.3 */
	u64 load; /* load.weight: what it adds to the load of its queue */
	u32 inv_weight; /* inverse of `weight`; 0: not computed yet */
	u32 depth; /* 0: on a CPU's own queue */
};

enum capture_entity_flag {
	CAPTURE_ENTITY_ON_RQ = 1 << 0,
	CAPTURE_ENTITY_DELAYED = 1 << 1, /* sched_delayed */
	CAPTURE_ENTITY_REL_DEADLINE = 1 << 2,
	CAPTURE_ENTITY_CUSTOM_SLICE = 1 << 3,
	CAPTURE_ENTITY_GROUP = 1 << 4,
	CAPTURE_ENTITY_IDLE = 1 << 5, /* SCHED_IDLE, or an idle group */
	CAPTURE_ENTITY_BATCH = 1 << 6, /* SCHED_BATCH */
};

/* An entity that waits. */
struct capture_waiting {
	s32 id;
	u32 flags; /* enum capture_entity_flag */
	s64 vruntime;
	s64 deadline;
	u64 slice;
	u64 weight;
};

/* A queue: a CPU's own, or that of a group on it. */
struct capture_fair_rq {
	u32 nr_queued; /* entities that wait or run; nr_running until 6.13 */
	u32 h_nr_queued; /* tasks, including those of groups in it */
	u32 h_nr_runnable;
	u32 sum_shift; /* 7.3: weights in the sums are shifted by it */
	s64 sum_w_vruntime; /* over waiting entities; avg_vruntime until 6.19 */
	s64 sum_weight; /* likewise; avg_load */
	s64 zero_vruntime; /* the origin of virtual time; min_vruntime until 6.12.y. CFS: the least vruntime of a waiting entity, 0 if there are none */
	s64 min_vruntime; /* CFS: what entities are placed by */
	u64 load; /* load.weight */
	u64 min_slice; /* over waiting entities; 0 if there are none, or if the kernel does not maintain it */
	u64 max_slice;
	s32 curr; /* by id */
	s32 next;
	s32 last; /* CFS */
	s32 skip; /* CFS */
};

enum capture_step_flag {
	CAPTURE_STEP_NEED_RESCHED = 1 << 0, /* the CPU was about to switch before */
	CAPTURE_STEP_RESCHED = 1 << 1, /* the function called resched_curr(), not counting the deadline server */
	CAPTURE_STEP_RESCHED_LAZY = 1 << 2, /* likewise: resched_curr_lazy() */
	CAPTURE_STEP_CHARGED_RESCHED = 1 << 3, /* one of the two was called by update_curr() */
	CAPTURE_STEP_IN_TICK = 1 << 4, /* a charge by task_tick_fair() */
	CAPTURE_STEP_CUT = 1 << 5, /* not all that wait are there */
	CAPTURE_STEP_TASK_BATCH = 1 << 6, /* preempt: policy of the woken task, whose group may be what is compared */
	CAPTURE_STEP_TASK_IDLE = 1 << 7,
	CAPTURE_STEP_CURR_TASK_IDLE = 1 << 8, /* likewise of the running task */
};

/* Followed by nr_waiting struct capture_waiting: the waiting entities, in the order of the kernel's tree. */
struct capture_step {
	u64 now; /* rq->clock_task afterwards */
	u32 kind; /* enum capture_step_kind */
	s32 cpu; /* whose queue it is */
	u32 argument; /* the last argument of the kernel's function: flags of an enqueue, dequeue or wakeup, the initial of a CFS placement, the queued of a tick, the first of set_next; of a reweight whether the entity counts as queued */
	u32 flags; /* enum capture_step_flag */
	s32 result; /* pick: id of the next entity; dequeue: what the function returned; reweight: 0 */
	u32 nr_waiting;
	u64 weight; /* reweight: the new one */
	struct capture_fair_rq before;
	struct capture_fair_rq after;
	struct capture_entity curr_before; /* the entity that runs */
	struct capture_entity curr_after;
	struct capture_entity se_before; /* the entity that the step is about; none for a charge, tick, yield or pick */
	struct capture_entity se_after;
};

/* No more waiting entities than these are written. */
#define CAPTURE_MAX_WAITING 64

/* Between the recorder and the BPF programs; not part of the file. */

/* Set before loading. */
struct capture_setup {
	u32 nr_cpus;
	u32 mask_words;
	u32 interrupt_mask; /* bits of preempt_count() that are set while an interrupt is served */
	u32 need_resched; /* bits of thread_info.flags that are set when a CPU is about to switch */
};

struct capture_control {
	u64 recording; /* 1 while the command runs */
	u64 lost;
	u64 domains_changed; /* recording ended before its time */
	char name[32]; /* the answer of name_sd_flag() */
	s64 allowance; /* how many steps may still be recorded until the recorder looks again */
};

struct capture_question {
	u64 args[2];
};

#endif /* CAPTURE_H */
