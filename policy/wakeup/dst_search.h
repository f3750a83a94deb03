/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data of a search for the idlest group.
 *
 * The task that is being placed still counts on the CPU that it last ran on, so a
 * comparison of CPUs has to subtract it there: the *_without() functions. The task is
 * queued only during an exec, not on wakeup and fork. The kernel uses 32 bits for load and
 * runnable time there.
 */
#ifndef CW_DST_SEARCH_H
#define CW_DST_SEARCH_H

#include "wakeup/group.h"
#include "track/pelt.h"
#include "types.h"
#include "util.h"

/* What the task that is being placed contributes, and to which CPU. */
struct cw_contribution {
	u64 load;
	u64 runnable;
	u64 util;
	u64 util_est;
	u32 uclamp_min;
	u32 uclamp_max;
	s32 cpu; /* the CPU whose averages it counts in; -1: none, as for a new task */
	u32 queued; /* 1: it is queued there, too */
};

static inline struct cw_contribution task_contribution(struct cw_sys *sys, const struct cw_wakeup *w)
{
	return (struct cw_contribution){
		.load = task_h_load(sys, w->p, w->now),
		.runnable = w->p->avg.runnable_avg,
		.util = task_util(w->p),
		.util_est = task_util_est_raw(w->p),
		.uclamp_min = uclamp_min(w->p),
		.uclamp_max = uclamp_max(w->p),
		.cpu = w->p->avg.last_update_time ? w->task_cpu : -1,
		.queued = !!(w->wake_flags & WF_EXEC),
	};
}

/* Is the task queued on `cpu`? */
static inline bool task_running_on_cpu(const struct cw_contribution *task, s32 cpu)
{
	return cpu == task->cpu && task->queued;
}

static inline u64 cpu_load_without(struct cw_sys *sys, s32 cpu, const struct cw_contribution *task)
{
	u64 load = cpu_load(sys, cpu);

	return cpu == task->cpu ? pelt_sub_positive((u32)load, (u32)task->load) : load;
}

static inline u64 cpu_runnable_without(struct cw_sys *sys, s32 cpu,
				       const struct cw_contribution *task)
{
	u64 runnable = cpu_runnable(cpu_rq(sys, cpu));

	return cpu == task->cpu ? pelt_sub_positive((u32)runnable, (u32)task->runnable) : runnable;
}

static inline u64 cpu_util_without(struct cw_sys *sys, s32 cpu, const struct cw_contribution *task)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	u64 util, util_est;

	if (cpu != task->cpu)
		return cpu_util(sys, cpu);
	util = pelt_sub_positive(rq->avg.util_avg, task->util);
	if (sched_feat(sys, CW_FEAT_UTIL_EST)) {
		/* only the estimates of queued tasks are summed */
		util_est = rq->avg.util_est;
		if (task->queued)
			util_est = pelt_sub_positive(util_est, task->util_est);
		util = pelt_max(util, util_est);
	}
	return util < rq->capacity_orig ? util : rq->capacity_orig;
}

/* Would `cpu` be idle without the task, given that nothing else is queued there? */
static inline bool idle_cpu_without(struct cw_sys *sys, s32 cpu, const struct cw_contribution *task)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);

	return (rq->curr_is_idle || task_running_on_cpu(task, cpu)) && !rq->ttwu_pending;
}

/* One step of the search: its place, and what it compares. */
struct cw_dst_search {
	struct cw_contribution task;
	s32 cpu; /* whose domain is searched */
	u32 level; /* that domain */
	u32 wake_flags;
	s32 numa_preferred_nid; /* of the task */
	struct cw_sg_stats group; /* the group that is looked at */
	struct cw_sg_stats idlest; /* the idlest remote group so far */
	struct cw_sg_stats local;
};

#endif /* CW_DST_SEARCH_H */
