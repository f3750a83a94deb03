/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CACHE_AWARE, seed 003's form of cache-aware placement (RFC of 2025): a wakeup goes to the
 * last-level cache that its process prefers (process.h), and the balancer leaves the task
 * there, unless the cache in question is crowded.
 *
 * Whether a cache is crowded was determined by the last balance between LLCs, which may be
 * a while ago. Until the next one, wakeups keep going there although it has filled up.
 */
#ifndef CW_CACHE_AWARE_H
#define CW_CACHE_AWARE_H

#include "balance/lb_env.h"

/*
 * May the task go to the LLC of `cpu`? Not if a quarter of its capacity is used or it has
 * tasks for a third of its CPUs. A process with fewer threads than that third always may,
 * except under CACHE_AWARE_CHECK_ALL.
 */
static inline bool valid_target_cpu(struct cw_sys *sys, const struct cw_task *p, s32 cpu)
{
	const struct cw_llc *llc = llc_of(sys, cpu);
	u64 capacity = (u64)llc->weight * CW_CAPACITY_SCALE;

	if (llc->domain == CW_NONE)
		return false;
	if (p->nr_threads < llc->weight && !sched_feat(sys, CW_FEAT_CACHE_AWARE_CHECK_ALL))
		return true;
	return llc->util_avg * (u64)tunable(sys, CW_TUNE_cache_util_divisor) < capacity &&
	       llc->nr_avg * (u64)tunable(sys, CW_TUNE_cache_running_divisor) < llc->weight;
}

/*
 * Would the move take the task off the node that NUMA balancing wants it on,
 * where not all tasks want to be? (migrate_degrades_locality(); faults by node
 * are not modelled.)
 */
static inline bool leaves_preferred_node(struct cw_sys *sys, const struct cw_task *p, s32 src_cpu,
					 s32 dst_cpu)
{
	const struct cw_cpu *src = cpu_rq(sys, src_cpu);

	return src->node == p->numa_preferred_nid && src->node != cpu_rq(sys, dst_cpu)->node &&
	       src->nr_running > src->nr_preferred_running;
}

/* The CPU that replaces the previous one in a wakeup: one in the preferred LLC, if it is suitable. */
static inline s32 select_cache_cpu(struct cw_sys *sys, const struct cw_wakeup *w,
				   struct cw_decision *d)
{
	const struct cw_task *p = w->p;

	if (!sched_feat(sys, CW_FEAT_CACHE_AWARE_WAKEUP))
		return w->prev_cpu;
	if (!(p->flags & CW_TASK_CACHE_CPU) || p->nr_cpus_allowed == 1 ||
	    cpus_share_cache(sys, w->prev_cpu, p->cache_cpu))
		return w->prev_cpu;
	if (!valid_target_cpu(sys, p, p->cache_cpu)) {
		d->notes |= CW_NOTE_CACHE_CROWDED;
		return w->prev_cpu;
	}
	if (leaves_preferred_node(sys, p, w->prev_cpu, p->cache_cpu)) {
		d->notes |= CW_NOTE_CACHE_NODE;
		return w->prev_cpu;
	}
	d->notes |= CW_NOTE_CACHE_CPU;
	return p->cache_cpu;
}

/*
 * Is the task hot because it is in its preferred LLC? As in the RFC, only while the LLC of
 * dst_cpu is crowded: a task may leave for an LLC that is not.
 */
static inline bool cache_hot(struct cw_sys *sys, const struct cw_balance *env,
			     const struct cw_task *p)
{
	return sched_feat(sys, CW_FEAT_CACHE_AWARE_HOT) && p->flags & CW_TASK_CACHE_CPU &&
	       cpus_share_cache(sys, env->src_cpu, p->cache_cpu) &&
	       !cpus_share_cache(sys, env->src_cpu, env->dst_cpu) &&
	       !valid_target_cpu(sys, p, env->dst_cpu);
}

/*
 * Save how busy an LLC is: its current utilisation, and an average of its tasks that moves
 * 1/8 of the way. Rounding favours the old average, so it can stay up to 7 tasks away.
 */
static inline void save_llc_load(struct cw_llc *llc, u64 util, u64 nr_running)
{
	llc->util_avg = util;
	if (nr_running > llc->nr_avg)
		llc->nr_avg += (nr_running - llc->nr_avg) / 8;
	else
		llc->nr_avg -= (llc->nr_avg - nr_running) / 8;
}

/* Save how busy the group is, if it is an LLC of a domain of several. Newidle balance saves nothing. */
static inline void update_sg_if_llc(struct cw_sys *sys, const struct cw_balance *env,
				    const struct cw_sg_stats *sgs, const struct cw_group *group)
{
	struct cw_llc *llc = llc_of(sys, cpumask_first(sys, &group->span));
	u32 child;

	if (!sched_feat(sys, CW_FEAT_CACHE_AWARE_WAKEUP) &&
	    !sched_feat(sys, CW_FEAT_CACHE_AWARE_HOT))
		return;
	if (env->idle == CW_NEWLY_IDLE || !env->level || llc->domain == CW_NONE)
		return;
	child = sd_domain(sys, cpu_sd(sys, env->this_cpu, env->level - 1))->flags;
	if (!(child & SD_SHARE_LLC) || env_domain(sys, env)->flags & SD_SHARE_LLC)
		return;
	save_llc_load(llc, sgs->group_util, sgs->sum_nr_running);
}

#endif /* CW_CACHE_AWARE_H */
