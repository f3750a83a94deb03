/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel structures and members that the programs read. Their offsets come
 * from the running kernel's BTF when the programs are loaded. A structure whose
 * members have other names in some kernels has variants with a suffix, which the
 * loader ignores.
 */
#ifndef CAPTURE_KERNEL_H
#define CAPTURE_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define SCHED_IDLE 5
#define SCHED_EXT 7
#define MAX_RT_PRIO 100
#define WF_SYNC_5_10 0x01
#define UTIL_AVG_UNCHANGED 0x80000000
#define TASK_DEAD 0x80
#define CSD_FLAG_TYPE_MASK 0xf0
#define CSD_TYPE_TTWU 0x30
#ifndef CW_TYPES_H /* the policy has them */
#define WF_EXEC 0x02
#define WF_FORK 0x04
#define WF_SYNC 0x10
#endif

/* the definitions that bpf_helper_defs.h expects from the kernel's headers */
typedef u16 __u16;
typedef u32 __u32;
typedef s32 __s32;
typedef u64 __u64;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

#define BPF_F_CURRENT_CPU 0xffffffffULL
struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

enum cpu_idle_type { CPU_IDLE };
enum fbq_type { regular };
enum migration_type { migrate_load };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_avg {
	u64 last_update_time;
	u64 load_sum;
	u64 runnable_sum;
	u32 util_sum;
	u32 period_contrib;
	unsigned long load_avg;
	unsigned long runnable_avg;
	unsigned long util_avg;
	unsigned int util_est;
};

struct rq;

struct cfs_rq {
	struct rq *rq; /* CONFIG_FAIR_GROUP_SCHED */
	unsigned int h_nr_queued;
	unsigned int h_nr_runnable;
	struct sched_avg avg;
	unsigned long h_load;
};

struct cfs_rq___h_nr_running { /* until 6.13, or 6.12.y */
	unsigned int h_nr_running;
};

struct util_est { /* until 6.7 */
	unsigned int enqueued;
	unsigned int ewma;
};

struct sched_avg___util_est {
	struct util_est util_est;
};

struct cfs_rq___util_est {
	struct sched_avg___util_est avg;
};

struct cfs_rq___idle_h_nr_running { /* until 6.14 */
	unsigned int idle_h_nr_running;
};

struct cfs_rq___h_nr_idle {
	unsigned int h_nr_idle;
};

struct load_weight {
	unsigned long weight;
};

struct sched_entity {
	struct load_weight load;
	unsigned char sched_delayed; /* 6.12 and later */
	struct cfs_rq *cfs_rq;
	struct sched_avg avg;
};

struct thread_info {
	u32 cpu;
};

struct __call_single_node {
	unsigned int u_flags;
};

struct __call_single_data {
	struct __call_single_node node;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct signal_struct {
	int nr_threads;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned int on_cpu; /* a byte in 7.3, where loads are made shorter since it has no sign */
	unsigned int on_rq; /* likewise */
	int wake_cpu;
	int prio;
	int static_prio;
	unsigned short migration_disabled;
	unsigned in_execve : 1;
	struct css_set *cgroups;
	int recent_used_cpu;
	unsigned int wakee_flips;
	unsigned long wakee_flip_decay_ts;
	struct task_struct *last_wakee;
	unsigned int policy;
	int nr_cpus_allowed;
	int numa_preferred_nid;
	const struct cpumask *cpus_ptr;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	char comm[16];
	struct sched_entity se;
};

struct task_struct___cpu { /* until 5.15 */
	unsigned int cpu;
};

enum { UCLAMP_MIN, UCLAMP_MAX };

struct uclamp_se {
	unsigned int value : 11;
	unsigned int active : 1;
};

struct task_group___uclamp {
	struct task_group___uclamp *parent;
	struct autogroup *autogroup;
	struct uclamp_se uclamp[2];
};

struct task_struct___uclamp { /* CONFIG_UCLAMP_TASK */
	struct task_group___uclamp *sched_task_group;
	struct uclamp_se uclamp_req[2];
	struct uclamp_se uclamp[2];
};

struct cpuidle_state {
	unsigned int exit_latency;
};

struct sched_domain_shared {
	int has_idle_cores;
	int nr_idle_scan;
};

struct sched_domain_shared___cache { /* CONFIG_SCHED_CACHE, 7.2 and later */
	unsigned long util_avg;
	unsigned long capacity;
};

struct sched_group_capacity {
	unsigned long capacity;
	unsigned long min_capacity;
	unsigned long max_capacity;
	unsigned long next_update;
	int imbalance;
	unsigned long cpumask[];
};

struct sched_group {
	struct sched_group *next;
	unsigned int group_weight;
	unsigned int cores;
	struct sched_group_capacity *sgc;
	int flags;
	unsigned long cpumask[];
};

struct sched_domain {
	struct sched_domain *parent;
	struct sched_domain *child;
	struct sched_domain_shared *shared;
	struct sched_group *groups;
	unsigned long min_interval;
	unsigned long max_interval;
	unsigned int busy_factor;
	unsigned int imbalance_pct;
	unsigned int cache_nice_tries;
	unsigned int imb_numa_nr;
	int flags;
	int level;
	unsigned int nr_balance_failed;
	unsigned int span_weight;
	unsigned int lb_nobusyq[3]; /* CONFIG_SCHEDSTATS */
};

struct sched_domain___span { /* 7.2 and before; later the span follows the structure */
	unsigned long span[];
};

struct sched_domain___scan_cost { /* until 6.6 */
	u64 avg_scan_cost;
};

struct sched_domain___cache { /* CONFIG_SCHED_CACHE, 7.2 and later */
	unsigned int llc_max;
	unsigned int *llc_counts;
};

struct rq {
	unsigned int nr_running;
	unsigned int nr_numa_running;
	unsigned int nr_preferred_running;
	unsigned int ttwu_pending;
	unsigned long cpu_capacity;
	struct cfs_rq cfs;
	struct task_struct *curr;
	struct task_struct *idle;
	struct sched_domain *sd;
	unsigned long misfit_task_load;
	u64 idle_stamp;
	u64 avg_idle;
	struct cpuidle_state *idle_state;
	int cpu;
};

struct lb_env {
	struct sched_domain *sd;
	int src_cpu;
	int dst_cpu;
	enum cpu_idle_type idle;
	long imbalance;
	struct cpumask *cpus;
	enum fbq_type fbq_type;
	enum migration_type migration_type;
};

struct pcpu_hot { /* x86, 6.2 to 6.14 */
	int preempt_count;
};

struct thread_info___arm64 {
	u64 preempt_count;
};

struct task_struct___arm64 {
	struct thread_info___arm64 thread_info;
};

#pragma clang attribute pop

/* Not in BTF, because it is an array; unchanged since its introduction in 5.10. */
struct sd_flag_debug {
	unsigned int meta_flags;
	char *name;
};

#endif /* CAPTURE_KERNEL_H */
