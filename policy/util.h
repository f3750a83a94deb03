/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What placement reads of CPUs and tasks: idleness, load, utilisation, capacity. Nothing
 * here writes; pelt.h keeps the averages.
 */
#ifndef CW_UTIL_H
#define CW_UTIL_H

#include "mask.h"
#include "track/task_group.h"
#include "types.h"

/* The idle task runs and no task is queued or on its way. */
CW_GLOBAL bool idle_cpu(struct cw_sys *sys CW_NONNULL, s32 cpu)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);

	return rq->curr_is_idle && !rq->nr_running && !rq->ttwu_pending;
}

/* idle_cpu(), and no hypervisor has taken the CPU away, which no host can tell. */
static inline bool available_idle_cpu(struct cw_sys *sys, s32 cpu)
{
	return idle_cpu(sys, cpu);
}

/* Only SCHED_IDLE tasks run there, and at least one. */
CW_GLOBAL bool sched_idle_cpu(struct cw_sys *sys CW_NONNULL, s32 cpu)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);

	return rq->nr_running && rq->nr_running == rq->idle_nr_running;
}

/* Would `p` run there at once, before the SCHED_IDLE tasks? */
static inline bool choose_sched_idle_cpu(struct cw_sys *sys, s32 cpu, const struct cw_task *p)
{
	if ((p->flags & CW_TASK_SCHED_IDLE) && sched_feat(sys, CW_FEAT_SCHED_IDLE_AVOIDS_PEERS))
		return false;
	return sched_idle_cpu(sys, cpu);
}

/* Is the CPU as good as idle for `p`? */
CW_GLOBAL bool choose_idle_cpu(struct cw_sys *sys CW_NONNULL, s32 cpu, const struct cw_task *p CW_NONNULL)
{
	return available_idle_cpu(sys, cpu) || choose_sched_idle_cpu(sys, cpu, p);
}

/* Are all SMT siblings of `cpu` idle? Its own state does not count. */
CW_GLOBAL bool is_core_idle(struct cw_sys *sys CW_NONNULL, s32 cpu)
{
	const struct cw_cpumask *siblings = &sys->smt_mask[cpu & CW_CPU_MASK];
	s32 sibling;

	for_each_cpu(sys, sibling, siblings) {
		if (sibling != cpu && !idle_cpu(sys, sibling))
			return false;
	}
	return true;
}

/* 1..1024: the CPU's full capacity. */
static inline u32 arch_scale_cpu_capacity(struct cw_sys *sys, s32 cpu)
{
	return cpu_rq(sys, cpu)->capacity_orig;
}

/* 1..1024: the capacity that other scheduling classes and interrupts leave. */
static inline u32 capacity_of(struct cw_sys *sys, s32 cpu)
{
	return cpu_rq(sys, cpu)->capacity;
}

/* Does `util` leave the margin (20 % by default, seed 004) of `capacity` free? */
static inline bool fits_capacity(const struct cw_sys *sys, u64 util, u64 capacity)
{
	return util * (u64)tunable(sys, CW_TUNE_capacity_margin) < capacity * CW_CAPACITY_SCALE;
}

static inline u64 task_util(const struct cw_task *p)
{
	return p->avg.util_avg;
}

static inline u64 task_util_est(const struct cw_task *p)
{
	return pelt_max(task_util(p), task_util_est_raw(p));
}

/* A task's share of its CPU's load: its part of its task group's load there, or its whole load. */
static inline u64 task_h_load(struct cw_sys *sys, const struct cw_task *p, u64 now)
{
	u64 load_avg, h_load;

	if (p->flags & CW_TASK_CFS_RQ) {
		load_avg = p->cfs_rq.load_avg;
		h_load = p->cfs_rq.h_load;
	} else if (task_group_depth(sys)) {
		load_avg = cpu_rq(sys, p->cpu)->avg.load_avg;
		h_load = update_cfs_rq_h_load(sys, p->cpu, now);
	} else {
		return p->avg.load_avg;
	}
	return p->avg.load_avg * h_load / pelt_max(load_avg + 1, 1);
}

static inline u32 uclamp_min(const struct cw_task *p)
{
	return p->flags & CW_TASK_UCLAMP ? p->uclamp_min : 0;
}

static inline u32 uclamp_max(const struct cw_task *p)
{
	return p->flags & CW_TASK_UCLAMP ? p->uclamp_max : CW_CAPACITY_SCALE;
}

/*
 * Does a task with this utilisation and these clamps fit the CPU? 1: yes; 0: no; -1: yes,
 * but the CPU cannot give it its minimum performance. A task whose utilisation is capped at
 * the CPU's capacity fits, however much it would use; the biggest CPUs cap nothing. Effects
 * that lower frequencies (hw_load_avg(), cpufreq pressure) are not known and are assumed to
 * be absent.
 */
CW_GLOBAL s32 util_fits_cpu(struct cw_sys *sys CW_NONNULL, u64 util, u32 clamp_min, u32 clamp_max,
			    s32 cpu)
{
	u32 capacity_orig = arch_scale_cpu_capacity(sys, cpu);
	bool biggest = capacity_orig == CW_CAPACITY_SCALE && clamp_max == CW_CAPACITY_SCALE;

	if (!fits_capacity(sys, util, capacity_of(sys, cpu)) &&
	    (biggest || clamp_max > capacity_orig))
		return 0;
	if (clamp_min > clamp_max)
		clamp_min = clamp_max;
	return util < clamp_min && clamp_min > capacity_orig ? -1 : 1;
}

static inline bool task_fits_cpu(struct cw_sys *sys, const struct cw_task *p, s32 cpu)
{
	return util_fits_cpu(sys, task_util_est(p), uclamp_min(p), uclamp_max(p), cpu) > 0;
}

static inline u64 cpu_load(const struct cw_sys *sys, s32 cpu)
{
	cpu &= CW_CPU_MASK;
	return task_group_depth(sys) ? sys->tg_cpu[cpu].level[0].load_avg : sys->cpu[cpu].avg.load_avg;
}

static inline u64 cpu_runnable(const struct cw_cpu *rq)
{
	return rq->avg.runnable_avg;
}

/* The larger of average and estimated utilisation, at most the CPU's capacity. */
static inline u64 cpu_util(struct cw_sys *sys, s32 cpu)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	u64 util = rq->avg.util_avg;

	if (sched_feat(sys, CW_FEAT_UTIL_EST))
		util = pelt_max(util, rq->avg.util_est);
	return util < rq->capacity_orig ? util : rq->capacity_orig;
}

#endif /* CW_UTIL_H */
