/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The load of a runqueue's queued tasks only. Kernels until 5.4 compared CPUs by it
 * (runnable_load_avg). Later kernels use the load average, in which sleepers count until
 * they have decayed. It is the same geometric series: a task adds its load when it is
 * queued, and subtracts its load when it leaves.
 *
 * It is maintained only under IDLEST_BY_LOAD, so it is stored apart from the data that is
 * always read.
 */
#ifndef CW_RUNNABLE_LOAD_H
#define CW_RUNNABLE_LOAD_H

#include "util.h"

static inline struct cw_avg *runnable_load_of(struct cw_sys *sys, s32 cpu)
{
	return &sys->runnable_load[cpu & CW_CPU_MASK];
}

/* Bring it to `now` of the runqueue's clock, over which the queue did not change. */
static inline void update_runnable_load(struct cw_sys *sys, u64 now, s32 cpu)
{
	struct cw_avg *sa = runnable_load_of(sys, cpu);

	if (update_load_sum(now, sa, cpu_rq(sys, cpu)->load_weight, 0, false))
		sa->load_avg = sa->load_sum / get_pelt_divider(sa);
}

/* `p`, whose averages are up to date, is queued on `cpu`. */
static inline void enqueue_runnable_load(struct cw_sys *sys, s32 cpu, const struct cw_task *p)
{
	struct cw_avg *sa = runnable_load_of(sys, cpu);

	sa->load_avg += p->avg.load_avg;
	sa->load_sum += (u64)p->weight * p->avg.load_sum;
}

/* `p`, whose averages are up to date, leaves the queue of `cpu`. */
static inline void dequeue_runnable_load(struct cw_sys *sys, s32 cpu, const struct cw_task *p)
{
	struct cw_avg *sa = runnable_load_of(sys, cpu);

	sa->load_avg = pelt_sub_positive(sa->load_avg, p->avg.load_avg);
	sa->load_sum = pelt_sub_positive(sa->load_sum, (u64)p->weight * p->avg.load_sum);
}

/* The same of a CPU: as much of its load as its queue's tasks have of the queue's. */
static inline u64 cpu_runnable_load(struct cw_sys *sys, s32 cpu)
{
	u64 queued = runnable_load_of(sys, cpu)->load_avg;

	if (!task_group_depth(sys))
		return queued;
	return queued * cpu_load(sys, cpu) / pelt_max(cpu_rq(sys, cpu)->avg.load_avg, 1);
}

#endif /* CW_RUNNABLE_LOAD_H */
