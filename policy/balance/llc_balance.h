/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The balancer's part of SCHED_CACHE. Tasks that prefer the LLC of the balancing CPU are
 * moved there, as long as that does not crowd the LLC. Tasks that prefer another LLC
 * stay there, as long as it is not crowded.
 *
 * The figures are the kernel's defaults: an LLC is busy from 50 % of its capacity on
 * (75 % without SMT), and much busier than another if the difference exceeds 20 %
 * (Linux 7.3, debugfs sched/llc_balancing/overaggr_pct and imb_pct).
 */
#ifndef CW_LLC_BALANCE_H
#define CW_LLC_BALANCE_H

#include "balance/asym_packing.h"
#include "balance/lb_env.h"

enum cw_llc_mig {
	CW_LLC_MIG_FORBID, /* leave the task where it is */
	CW_LLC_MIG_LLC, /* move it for the sake of the LLC */
	CW_LLC_MIG_UNRESTRICTED, /* let load decide */
};

static inline bool fits_llc_capacity(const struct cw_sys *sys, u64 util, u64 capacity)
{
	u64 percent = (u64)tunable(sys, CW_TUNE_llc_overaggr_pct);

	if (!sys->smt_present)
		percent = percent * 3 / 2;
	return util * 100 < capacity * percent;
}

static inline bool util_greater(const struct cw_sys *sys, u64 a, u64 b)
{
	return a * 100 > b * (100 + (u64)tunable(sys, CW_TUNE_llc_imb_pct));
}

/*
 * May utilisation `util` move from the LLC of src_cpu to that of dst_cpu? `to_pref`: the
 * latter is the preferred LLC; otherwise the former is.
 */
static inline enum cw_llc_mig can_migrate_llc(struct cw_sys *sys, s32 src_cpu, s32 dst_cpu,
					      u64 util, bool to_pref)
{
	const struct cw_llc *src = llc_of(sys, src_cpu), *dst = llc_of(sys, dst_cpu);
	u64 src_util = pelt_sub_positive(src->util_avg, util), dst_util = dst->util_avg + util;
	bool src_fits = fits_llc_capacity(sys, src_util, src->capacity);
	bool dst_fits = fits_llc_capacity(sys, dst_util, dst->capacity);

	if (src->domain == CW_NONE || dst->domain == CW_NONE || (!src_fits && !dst_fits))
		return CW_LLC_MIG_UNRESTRICTED;
	if (to_pref) {
		if (!dst_fits && util_greater(sys, dst_util, src_util))
			return CW_LLC_MIG_FORBID;
	} else if (src_fits || !util_greater(sys, src_util, dst_util)) {
		return CW_LLC_MIG_FORBID;
	}
	return CW_LLC_MIG_LLC;
}

/* Does the group, which is not the local one, hold tasks to be moved to the LLC they prefer? */
static inline bool llc_balance(struct cw_sys *sys, const struct cw_balance *env,
			       const struct cw_sg_stats *sgs, const struct cw_group *group)
{
	const struct cw_domain *sd = env_domain(sys, env);

	if (!sched_cache_enabled(sys) || sd->flags & SD_SHARE_LLC)
		return false;
	/* A CPU that the tasks fit, or that all tasks prefer, has priority. */
	if ((sd->flags & SD_ASYM_CPUCAPACITY && sgs->group_misfit_task_load) ||
	    sgs->group_asym_packing)
		return false;
	if (env_sd(sys, env)->nr_balance_failed >= sd->cache_nice_tries + 1)
		return false;
	return sgs->nr_pref_dst_llc &&
	       can_migrate_llc(sys, cpumask_first(sys, &group->span), env->dst_cpu, 0, true) ==
		       CW_LLC_MIG_LLC;
}

/*
 * Record how busy the group is, if it is an LLC. Newidle balance, which is frequent, does
 * not do this, nor does a balance that continues for another dst_cpu.
 */
static inline void record_sg_llc_stats(struct cw_sys *sys, const struct cw_balance *env,
				       const struct cw_sg_stats *sgs, const struct cw_group *group)
{
	struct cw_llc *llc = llc_of(sys, cpumask_first(sys, &group->span));

	if (!sched_cache_enabled(sys) || env->idle == CW_NEWLY_IDLE)
		return;
	if (!env->level || env->dst_cpu != env->this_cpu || llc->domain == CW_NONE)
		return;
	if (cpu_sd(sys, env->this_cpu, env->level - 1)->domain != llc_of(sys, env->dst_cpu)->domain)
		return;
	llc->util_avg = sgs->group_util;
	llc->capacity = sgs->group_capacity;
}

/* A balance for LLC preferences moves only tasks that are counted for the LLC of dst_cpu. */
static inline bool migrate_llc_task_wrong_dst(struct cw_sys *sys, const struct cw_balance *env,
					      const struct cw_task *p)
{
	if (!sched_cache_enabled(sys) ||
	    (env->migration_type != CW_MIGRATE_LLC_TASK && !(env->flags & LBF_ACTIVE_LB_LLC)))
		return false;
	return !(p->flags & CW_TASK_PREFERRED_LLC) ||
	       p->preferred_llc != cpu_rq(sys, env->dst_cpu)->llc;
}

/* Would a move to the preferred LLC make a misfit of a task that fits where it is? */
static inline bool task_misfits_asym_cpu(struct cw_sys *sys, const struct cw_balance *env,
					 const struct cw_task *p)
{
	return env_domain(sys, env)->flags & SD_ASYM_CPUCAPACITY &&
	       !task_fits_cpu(sys, p, env->dst_cpu) && task_fits_cpu(sys, p, env->src_cpu);
}

/*
 * Do the preferences of its process allow the task to move? Whether the process still fits
 * the LLC is checked when its threads run (process.h), not again here.
 */
static inline enum cw_llc_mig can_migrate_llc_task(struct cw_sys *sys, const struct cw_balance *env,
						   const struct cw_task *p)
{
	if (task_misfits_asym_cpu(sys, env, p))
		return CW_LLC_MIG_FORBID;
	if (!(p->flags & CW_TASK_CACHE_CPU) || cpus_share_cache(sys, env->src_cpu, env->dst_cpu))
		return CW_LLC_MIG_UNRESTRICTED;
	/* A CPU that all tasks prefer has priority. */
	if (env->idle != CW_NOT_IDLE &&
	    sched_asym(sys, env_domain(sys, env), env->dst_cpu, env->src_cpu))
		return CW_LLC_MIG_UNRESTRICTED;
	if (cpus_share_cache(sys, env->dst_cpu, p->cache_cpu))
		return can_migrate_llc(sys, env->src_cpu, env->dst_cpu, task_util(p), true);
	if (cpus_share_cache(sys, env->src_cpu, p->cache_cpu))
		return can_migrate_llc(sys, env->src_cpu, env->dst_cpu, task_util(p), false);
	return CW_LLC_MIG_UNRESTRICTED;
}

/* Is the task to stay in its preferred LLC? Not after more than cache_nice_tries failed attempts. */
static inline bool migrate_degrades_llc(struct cw_sys *sys, const struct cw_balance *env,
					const struct cw_task *p)
{
	if (!sched_cache_enabled(sys))
		return false;
	if (env_sd(sys, env)->nr_balance_failed >= env_domain(sys, env)->cache_nice_tries + 1)
		return false;
	return migrate_llc_task_wrong_dst(sys, env, p) ||
	       can_migrate_llc_task(sys, env, p) == CW_LLC_MIG_FORBID;
}

/*
 * Would active balance take a task off an LLC that all tasks of src_cpu prefer? A single task
 * stays; one of several stays if the LLC is not busy. A misfit may move.
 */
static inline bool alb_break_llc(struct cw_sys *sys, const struct cw_balance *env)
{
	const struct cw_cpu *src = cpu_rq(sys, env->src_cpu);

	if (!sched_cache_enabled(sys) ||
	    cpus_share_cache(sys, env->src_cpu, env->dst_cpu))
		return false;
	if (!src->nr_pref_llc_running || src->nr_pref_llc_running != lb_nr_running(sys, src))
		return false;
	if (env->migration_type == CW_MIGRATE_MISFIT)
		return false;
	return src->nr_running <= 1 || can_migrate_llc(sys, env->src_cpu, env->dst_cpu,
						       src->curr_util, false) == CW_LLC_MIG_FORBID;
}

#endif /* CW_LLC_BALANCE_H */
