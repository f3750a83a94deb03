/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Statistics of a domain for balancing: the sums of each group, the type of group that
 * follows from them, and the busiest group.
 */
#ifndef CW_LB_STATS_H
#define CW_LB_STATS_H

#include "balance/asym_packing.h"
#include "wakeup/cache_aware.h"
#include "balance/fbq.h"
#include "balance/interval.h"
#include "balance/lb_env.h"
#include "balance/llc_balance.h"

/* One CPU is more capable than another only if by more than 5 % (1078/1024). */
static inline bool capacity_greater(u64 a, u64 b)
{
	return a * 1024 > b * 1078;
}

/* Do other classes take a part of the CPU that imbalance_pct calls noticeable? */
static inline bool check_cpu_capacity(const struct cw_cpu *rq, const struct cw_domain *sd)
{
	return (u64)rq->capacity * sd->imbalance_pct < (u64)rq->capacity_orig * 100;
}

/*
 * Bring the local group's capacity up to date with its CPUs', by way of the
 * child's groups. Those of a NUMA domain may overlap, so its CPUs are summed up.
 */
static inline void update_group_capacity(struct cw_sys *sys, const struct cw_balance *env)
{
	struct cw_group *group = env_local_group(sys, env);
	u64 interval = get_sd_balance_interval(sys, env_sd(sys, env), false);
	const struct cw_domain *child = NULL;
	u32 capacity = 0, min = ~0u, max = 0;

	group->next_update = jiffies_of(sys, env->now) + interval;
	if (env->level)
		child = sd_domain(sys, cpu_sd(sys, env->this_cpu, env->level - 1));
	if (child && !(child->flags & SD_NUMA)) {
		for (u32 i = unknown(0); i < child->nr_groups && may_loop(); i++) {
			const struct cw_group *part = sd_group(sys, child->first_group + i);

			capacity += part->capacity;
			min = part->min_capacity < min ? part->min_capacity : min;
			max = part->max_capacity > max ? part->max_capacity : max;
		}
	} else {
		s32 cpu;

		for_each_cpu(sys, cpu, &group->span) {
			u32 cap = capacity_of(sys, cpu);

			capacity += cap;
			min = cap < min ? cap : min;
			max = cap > max ? cap : max;
		}
	}
	if (!capacity)
		return;
	group->capacity = capacity;
	group->min_capacity = min;
	group->max_capacity = max;
}

/* Does the group hold tasks that should move to the preferred dst_cpu? */
static inline bool sched_group_asym(struct cw_sys *sys, const struct cw_balance *env,
				    const struct cw_domain *sd, const struct cw_sg_stats *sgs,
				    const struct cw_group *group)
{
	/* A core with several busy siblings needs help from any CPU, preferred or not. */
	if (group->flags & SD_SHARE_CPUCAPACITY && sgs->group_weight - sgs->idle_cpus != 1)
		return false;
	return sched_asym(sys, sd, env->dst_cpu, asym_prefer_cpu(sys, group));
}

/* Does the group hold tasks that share a core, one of which an idle CPU may take? */
static inline bool smt_balance(const struct cw_sys *sys, const struct cw_balance *env,
			       const struct cw_sg_stats *sgs, const struct cw_group *group)
{
	return sched_feat(sys, CW_FEAT_LB_SMT_BALANCE) && env->idle != CW_NOT_IDLE &&
	       group->flags & SD_SHARE_CPUCAPACITY && sgs->sum_h_nr_running > 1;
}

/* The load of a task that the CPU is too small for, or has become too small for. */
static inline u64 cpu_misfit_load(const struct cw_sys *sys, const struct cw_balance *env,
				  const struct cw_domain *sd, s32 cpu)
{
	const struct cw_cpu *rq = &sys->cpu[cpu & CW_CPU_MASK];

	if (sd->flags & SD_ASYM_CPUCAPACITY)
		return rq->misfit_task_load;
	/* With more than one task the group counts as overloaded anyway. */
	if (env->idle != CW_NOT_IDLE && lb_nr_running(sys, rq) == 1 && check_cpu_capacity(rq, sd))
		return cpu_load(sys, cpu);
	return 0;
}

/*
 * Can dst_cpu help the group's misfits? With ASYM_LB those that it cannot help
 * do not count, so that they do not hide what else it could do for the group.
 */
static inline bool misfit_counts(struct cw_sys *sys, const struct cw_balance *env,
				 const struct cw_domain *sd, const struct cw_group *group)
{
	return !(sd->flags & SD_ASYM_CPUCAPACITY) || !sched_feat(sys, CW_FEAT_ASYM_LB) ||
	       capacity_greater(capacity_of(sys, env->dst_cpu), group->max_capacity);
}

/*
 * The group's type, from its sums and extremes. Not inlined, because the caller's values
 * would otherwise not fit on the stack of a BPF program.
 */
static __attribute__((noinline)) void classify_sg(struct cw_sys *sys, const struct cw_balance *env,
						  const struct cw_group *group, bool local,
						  struct cw_sg_stats *sgs)
{
	const struct cw_domain *sd = env_domain(sys, env);

	if (!local) {
		sgs->group_asym_packing = env->idle != CW_NOT_IDLE && sgs->sum_h_nr_running &&
					  sched_group_asym(sys, env, sd, sgs, group);
		sgs->group_smt_balance = smt_balance(sys, env, sgs, group);
		sgs->group_llc_balance = llc_balance(sys, env, sgs, group);
	}
	sgs->group_type = group_classify(sd->imbalance_pct, group, sgs);
	record_sg_llc_stats(sys, env, sgs, group);
	update_sg_if_llc(sys, env, sgs, group);
	if (sgs->group_type == group_overloaded)
		sgs->avg_load = group_avg_load(sgs);
}

/*
 * Sum up the CPUs of group `index`, in sds.local_stat if it is the local one, else in
 * sds.candidate. Returns whether one of them has a task that waits or does not fit:
 * rd->overloaded is derived from that.
 */
CW_GLOBAL bool update_sg_lb_stats(struct cw_sys *sys CW_NONNULL, struct cw_balance *env CW_NONNULL,
				  struct cw_decision *d CW_NONNULL, u32 index, bool local)
{
	struct cw_sg_stats *sgs = local ? &env->sds.local_stat : &env->sds.candidate;
	const struct cw_group *group = sd_group(sys, index);
	const struct cw_domain *sd = env_domain(sys, env);
	bool overloaded = false;
	s32 cpu;

	*sgs = (struct cw_sg_stats){ 0 };
	for_each_cpu_and(sys, cpu, &group->span, &sd->span) {
		const struct cw_cpu *rq = cpu_rq(sys, cpu);
		u64 misfit;

		if (!env_considers(env, cpu))
			continue;
		d->cpus_scanned++;
		sgs->group_load += cpu_load(sys, cpu);
		sgs->group_util += cpu_util(sys, cpu);
		sgs->group_runnable += cpu_runnable(rq);
		sgs->sum_h_nr_running += lb_nr_running(sys, rq);
		sgs->sum_nr_running += rq->nr_running;
		sgs->nr_numa_running += rq->nr_numa_running;
		sgs->nr_preferred_running += rq->nr_preferred_running;
		if (!cpus_share_cache(sys, cpu, env->dst_cpu))
			sgs->nr_pref_dst_llc += rq->nr_pref_dst_llc;
		overloaded |= rq->nr_running > 1;
		if (!rq->nr_running && idle_cpu(sys, cpu)) {
			sgs->idle_cpus++;
			continue;
		}
		if (local)
			continue;
		misfit = cpu_misfit_load(sys, env, sd, cpu);
		overloaded |= misfit && sd->flags & SD_ASYM_CPUCAPACITY;
		if (sgs->group_misfit_task_load < misfit && misfit_counts(sys, env, sd, group))
			sgs->group_misfit_task_load = misfit;
	}
	/* checked here, because a branch in the loop doubles the work of BPF's verifier */
	if (!sched_feat(sys, CW_FEAT_GROUP_RUNNABLE))
		sgs->group_runnable = 0;
	if (!(sd->flags & SD_ASYM_CPUCAPACITY) && !sched_feat(sys, CW_FEAT_LB_REDUCED_CAPACITY))
		sgs->group_misfit_task_load = 0;
	sgs->group_capacity = group->capacity;
	sgs->group_weight = group->weight;
	classify_sg(sys, env, group, local, sgs);
	return overloaded;
}

/* Does one of the two groups consist of SMT siblings, and the other not? */
static inline bool smt_vs_nonsmt_groups(struct cw_sys *sys, u32 a, u32 b)
{
	if (a == CW_NONE || b == CW_NONE)
		return false;
	return (sd_group(sys, a)->flags ^ sd_group(sys, b)->flags) & SD_SHARE_CPUCAPACITY;
}

/* Fewer idle CPUs, then more tasks, make the busier of two groups that are not overloaded. */
static inline bool has_less_spare(const struct cw_sg_stats *sgs, const struct cw_sg_stats *busiest)
{
	if (sgs->idle_cpus != busiest->idle_cpus)
		return sgs->idle_cpus < busiest->idle_cpus;
	return sgs->sum_nr_running > busiest->sum_nr_running;
}

/*
 * The candidate and the busiest group so far are of the same type: is the
 * candidate the busier? `*final` is set if the answer stands whatever the
 * capacity of the group.
 */
static inline bool pick_busiest_of_type(struct cw_sys *sys, const struct cw_balance *env,
					u32 candidate, bool *final)
{
	const struct cw_sd_stats *sds = &env->sds;
	const struct cw_sg_stats *sgs = &sds->candidate, *busiest = &sds->busiest_stat;

	*final = false;
	switch (sgs->group_type) {
	case group_overloaded:
		*final = true;
		return sgs->avg_load > busiest->avg_load;
	case group_llc_balance:
		*final = true;
		return sgs->nr_pref_dst_llc > busiest->nr_pref_dst_llc;
	case group_imbalanced:
		return false; /* the first one will do */
	case group_asym_packing:
		*final = true; /* relieve the least preferred CPU */
		return sched_asym_prefer(asym_prefer_cpu(sys, sd_group(sys, sds->busiest)),
					 asym_prefer_cpu(sys, sd_group(sys, candidate)));
	case group_misfit_task:
		*final = true;
		if (sgs->group_misfit_task_load == busiest->group_misfit_task_load)
			return !sched_feat(sys, CW_FEAT_LB_MISFIT_FIRST);
		return sgs->group_misfit_task_load > busiest->group_misfit_task_load;
	case group_smt_balance:
		if (sgs->idle_cpus || busiest->idle_cpus)
			return has_less_spare(sgs, busiest);
		break;
	case group_has_spare:
		if (sched_feat(sys, CW_FEAT_LB_SMT_BALANCE) &&
		    smt_vs_nonsmt_groups(sys, sds->busiest, candidate)) {
			/* A task that is alone on its core is well placed. */
			*final = true;
			return !(sd_group(sys, candidate)->flags & SD_SHARE_CPUCAPACITY &&
				 sgs->sum_h_nr_running <= 1);
		}
		return has_less_spare(sgs, busiest);
	default:
		break;
	}
	/*
	 * Fully busy, or SMT siblings all busy. avg_load is not computed for
	 * these and equal, so the first group is kept, since LB_BUSIEST_SIBLING
	 * unless it is not made of SMT siblings: those need help more.
	 */
	return sched_feat(sys, CW_FEAT_LB_BUSIEST_SIBLING) &&
	       !(sd_group(sys, sds->busiest)->flags & SD_SHARE_CPUCAPACITY);
}

/*
 * Has dst_cpu clearly more capacity than any CPU of the group? Before
 * LB_CAPACITY_GREATER the biggest CPU of its own group had to have.
 */
static inline bool dst_is_bigger(struct cw_sys *sys, const struct cw_balance *env,
				 const struct cw_group *group)
{
	if (sched_feat(sys, CW_FEAT_LB_CAPACITY_GREATER))
		return capacity_greater(capacity_of(sys, env->dst_cpu), group->max_capacity);
	return fits_capacity(sys, group->max_capacity, sd_group(sys, env->sds.local)->max_capacity);
}

/* Has every CPU of the group clearly more capacity than dst_cpu, or than the smallest of its group? */
static inline bool dst_is_smaller(struct cw_sys *sys, const struct cw_balance *env,
				  const struct cw_group *group)
{
	if (sched_feat(sys, CW_FEAT_LB_CAPACITY_GREATER))
		return capacity_greater(group->min_capacity, capacity_of(sys, env->dst_cpu));
	return fits_capacity(sys, sd_group(sys, env->sds.local)->min_capacity, group->min_capacity);
}

/*
 * A misfit task is of no use to a CPU that is no bigger, or has no room. With
 * ASYM_LB a sibling that is busy takes too much of it, too.
 */
static inline bool misfit_helps(struct cw_sys *sys, const struct cw_balance *env,
				const struct cw_group *group)
{
	if (sched_feat(sys, CW_FEAT_ASYM_LB) && !env->dst_core_idle)
		return false;
	return dst_is_bigger(sys, env, group) &&
	       env->sds.local_stat.group_type == group_has_spare;
}

/* Is the candidate, whose statistics are in sds.candidate, busier than the busiest so far? */
CW_GLOBAL bool update_sd_pick_busiest(struct cw_sys *sys CW_NONNULL,
				      const struct cw_balance *env CW_NONNULL, u32 candidate)
{
	const struct cw_sd_stats *sds = &env->sds;
	const struct cw_sg_stats *sgs = &sds->candidate;
	const struct cw_group *group = sd_group(sys, candidate);
	bool asym = env_domain(sys, env)->flags & SD_ASYM_CPUCAPACITY, final;
	/* With at most one task per CPU, tasks stay on the bigger CPUs. */
	bool stays = asym && sgs->group_type <= group_fully_busy &&
		     dst_is_smaller(sys, env, group);

	if (!sgs->sum_h_nr_running)
		return false;
	if (asym && sgs->group_type == group_misfit_task && !misfit_helps(sys, env, group))
		return false;
	if (stays && sched_feat(sys, CW_FEAT_ASYM_LB))
		return false;
	if (sgs->group_type != sds->busiest_stat.group_type)
		return sgs->group_type > sds->busiest_stat.group_type;
	if (!pick_busiest_of_type(sys, env, candidate, &final))
		return false;
	return final || !stays;
}

/*
 * SIS_UTIL: how many CPUs of the LLC a wakeup may look at for an idle one,
 *
 *	nr_scan = weight * (1 - (x * imbalance_pct / 100)^2)
 *
 * where x is the part of the LLC that is utilised; with 117 it is 0 from 85 %
 * on. Only periodic balance of the LLC's top domain writes it: newidle balance
 * runs too often for a cache line that all wakeups read. The same for the
 * domain that is searched where CPUs differ in capacity, unless its CPUs are
 * those of nodes (ASYM_SIS_UTIL).
 */
static inline void update_idle_cpu_scan(struct cw_sys *sys, const struct cw_balance *env)
{
	struct cw_domain *sd = env_domain(sys, env);
	struct cw_llc *llc = llc_of(sys, env->dst_cpu);
	u64 x, missing, scan;

	if (!sched_feat(sys, CW_FEAT_SIS_UTIL) || env->idle == CW_NEWLY_IDLE || !sd->weight)
		return;
	x = env->sds.total_util / sd->weight;
	missing = x * x * sd->imbalance_pct * sd->imbalance_pct / (10000 * CW_CAPACITY_SCALE);
	if (missing > CW_CAPACITY_SCALE)
		missing = CW_CAPACITY_SCALE;
	scan = (CW_CAPACITY_SCALE - missing) * sd->weight / CW_CAPACITY_SCALE;
	if (llc->domain != CW_NONE && llc->weight == sd->weight)
		llc->nr_idle_scan = scan;
	if ((sd->flags & SD_ASYM_CPUCAPACITY_FULL) && !(sd->flags & SD_NUMA))
		sd->nr_idle_scan = scan;
}

/*
 * Are tasks to be spread over the groups? A group's flags are those of its child
 * domain; before LB_BUSIEST_SIBLING the child of the balancing CPU's domain was asked.
 */
static inline bool prefer_sibling(struct cw_sys *sys, const struct cw_balance *env)
{
	u32 flags = 0;

	if (sched_feat(sys, CW_FEAT_LB_BUSIEST_SIBLING))
		flags = env->sds.busiest == CW_NONE ? 0 : sd_group(sys, env->sds.busiest)->flags;
	else if (env->level)
		flags = sd_domain(sys, cpu_sd(sys, env->this_cpu, env->level - 1))->flags;
	return flags & SD_PREFER_SIBLING;
}

/* Collect the statistics of the domain, group by group from the local one. */
static inline void update_sd_lb_stats(struct cw_sys *sys, struct cw_balance *env,
				      struct cw_decision *d)
{
	const struct cw_domain *sd = env_domain(sys, env);
	u32 start = env_sd(sys, env)->local_group - sd->first_group;
	struct cw_sd_stats *sds = &env->sds;
	bool overloaded = false;

	sds->busiest = sds->local = CW_NONE;
	sds->total_load = sds->total_capacity = sds->total_util = sds->avg_load = 0;
	sds->busiest_stat =
		(struct cw_sg_stats){ .group_type = group_has_spare, .idle_cpus = ~0u };
	sds->local_stat.group_type = group_has_spare;

	env->dst_core_idle = !sys->smt_present || is_core_idle(sys, env->dst_cpu);
	if (env->idle != CW_NEWLY_IDLE ||
	    jiffies_of(sys, env->now) >= env_local_group(sys, env)->next_update)
		update_group_capacity(sys, env);

	for (u32 i = unknown(0); i < sd->nr_groups && may_loop(); i++) {
		u32 at = start + i < sd->nr_groups ? start + i : start + i - sd->nr_groups;
		u32 index = sd->first_group + at;
		bool local = cpumask_test_cpu(env->dst_cpu, &sd_group(sys, index)->span);
		const struct cw_sg_stats *sgs = local ? &sds->local_stat : &sds->candidate;

		d->groups_scanned++;
		if (local)
			sds->local = index;
		overloaded |= update_sg_lb_stats(sys, env, d, index, local);
		if (!local && update_sd_pick_busiest(sys, env, index)) {
			sds->busiest = index;
			sds->busiest_stat = sds->candidate;
		}
		sds->total_load += sgs->group_load;
		sds->total_capacity += sgs->group_capacity;
		sds->total_util += sgs->group_util;
	}
	sds->prefer_sibling = prefer_sibling(sys, env);
	if (sd->flags & SD_NUMA)
		env->fbq_type = fbq_classify_group(&sds->busiest_stat);
	if (!env_has_parent(sys, env) && sys->overloaded != overloaded)
		sys->overloaded = overloaded;
	update_idle_cpu_scan(sys, env);
}

#endif /* CW_LB_STATS_H */
