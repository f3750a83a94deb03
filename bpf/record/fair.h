/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The members of a fair-class queue, under every name that kernels have for them. For
 * a member that the running kernel lacks, bpf_core_field_exists() is false. The
 * members that other programs read, too, are in common/kernel.h.
 */
#ifndef CAPTURE_FAIR_H
#define CAPTURE_FAIR_H

#include "common/kernel.h"

#define SCHED_BATCH 3

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct load_weight___fair {
	unsigned long weight;
	u32 inv_weight;
};

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};

struct autogroup {
	unsigned long id;
};

struct cgroup_subsys_state {
	int id;
};

struct task_group {
	struct cgroup_subsys_state css;
	struct autogroup *autogroup; /* CONFIG_SCHED_AUTOGROUP */
};

struct rq___fair;
struct cfs_rq___fair;

struct sched_entity___fair {
	struct load_weight___fair load;
	struct load_weight___fair h_load; /* 7.3 */
	struct rb_node run_node;
	u64 deadline; /* EEVDF */
	u64 min_slice; /* 6.12 */
	u64 max_slice; /* 7.3 */
	unsigned char on_rq; /* an int until 6.11 */
	unsigned char sched_delayed; /* 6.12 */
	unsigned char rel_deadline; /* 6.12 */
	unsigned char custom_slice; /* 6.12 */
	u64 exec_start;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
	u64 vruntime;
	s64 vlag; /* EEVDF */
	u64 vprot; /* 6.17 */
	u64 slice; /* EEVDF */
	int depth;
	struct sched_entity___fair *parent;
	struct cfs_rq___fair *cfs_rq;
	struct cfs_rq___fair *my_q;
};

struct cfs_rq___fair {
	struct load_weight___fair load;
	unsigned int nr_queued; /* 6.14 */
	unsigned int nr_running; /* before */
	unsigned int h_nr_queued; /* 6.12.y */
	unsigned int h_nr_running; /* before */
	unsigned int h_nr_runnable; /* 6.12.y */
	u64 min_vruntime; /* until 6.12 */
	u64 zero_vruntime; /* 6.12.y */
	s64 avg_vruntime; /* 6.6 */
	u64 avg_load; /* 6.6 */
	s64 sum_w_vruntime; /* 7.0 */
	u64 sum_weight; /* 7.0 */
	unsigned int sum_shift; /* 7.2 */
	struct rb_root_cached tasks_timeline;
	struct sched_entity___fair *curr;
	struct sched_entity___fair *next;
	struct sched_entity___fair *last; /* CFS */
	struct sched_entity___fair *skip; /* CFS */
	struct sched_entity___fair *h_curr; /* 7.3 */
	int idle; /* 5.15 */
	struct rq___fair *rq;
	struct task_group *tg;
};

struct thread_info___fair {
	unsigned long flags;
};

struct task_struct___fair {
	struct thread_info___fair thread_info;
	unsigned int policy;
	int pid;
	struct sched_entity___fair se;
};

struct rq___fair {
	struct cfs_rq___fair cfs;
	struct task_struct___fair *curr;
	u64 clock_task;
	int cpu;
};

#pragma clang attribute pop

#endif /* CAPTURE_FAIR_H */
