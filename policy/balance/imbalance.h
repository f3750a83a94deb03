/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether the statistics of a domain show an imbalance that is worth moving tasks for,
 * in which unit, and how much to move.
 */
#ifndef CW_IMBALANCE_H
#define CW_IMBALANCE_H

#include "balance/lb_stats.h"

/*
 * How many more tasks the busiest group runs than its share, where a core
 * counts the same in both groups; before LB_SMT_BALANCE, than the local group.
 * Half of these are to be moved.
 */
static inline u64 sibling_imbalance(struct cw_sys *sys, const struct cw_balance *env)
{
	const struct cw_sg_stats *busiest = &env->sds.busiest_stat, *local = &env->sds.local_stat;
	u64 ncores_busiest = sd_group(sys, env->sds.busiest)->cores;
	u64 ncores_local = sd_group(sys, env->sds.local)->cores;
	u64 ncores = ncores_busiest + ncores_local, imbalance;

	if (!sched_feat(sys, CW_FEAT_LB_SMT_BALANCE))
		return pelt_sub_positive(busiest->sum_nr_running, local->sum_nr_running);
	if (env->idle == CW_NOT_IDLE || !busiest->sum_nr_running)
		return 0;
	if (ncores_busiest == ncores_local)
		return pelt_sub_positive(busiest->sum_nr_running, local->sum_nr_running);

	imbalance = pelt_sub_positive(ncores_local * busiest->sum_nr_running,
				      ncores_busiest * local->sum_nr_running);
	/* Twice the tasks above the common ratio, rounded to the nearest. */
	imbalance = (2 * imbalance + ncores) / (ncores ? ncores : 1);
	/* An empty group takes one of several tasks whatever the ratio. */
	if (imbalance <= 1 && !local->sum_nr_running && busiest->sum_nr_running > 1)
		imbalance = 2;
	return imbalance;
}

/* How many of these tasks are to be moved: half of them, but between nodes a pair may stay together. */
static inline u64 tasks_to_move(struct cw_sys *sys, const struct cw_balance *env, u64 imbalance)
{
	const struct cw_domain *sd = env_domain(sys, env);

	if (!(sd->flags & SD_NUMA))
		return imbalance >> 1;
	if (sched_feat(sys, CW_FEAT_IMB_NUMA_NR))
		return adjust_numa_imbalance(imbalance, env->sds.local_stat.sum_nr_running + 1,
					     sd->imb_numa_nr) >> 1;
	if (sched_feat(sys, CW_FEAT_IMB_NUMA_QUARTER)) {
		const struct cw_sg_stats *local = &env->sds.local_stat;

		imbalance >>= 1;
		return imbalance <= NUMA_IMBALANCE_MIN &&
				       allow_numa_imbalance(local->sum_nr_running + 1, local->group_weight) ?
			       0 :
			       imbalance;
	}
	return env->sds.busiest_stat.sum_nr_running <= NUMA_IMBALANCE_MIN ? 0 : imbalance >> 1;
}

static inline void set_imbalance(struct cw_balance *env, enum cw_migration_type type, u64 amount)
{
	env->migration_type = type;
	env->imbalance = (s64)amount;
}

/* The local group has spare capacity: fill it, but neither overload it nor empty the busiest. */
static inline void calculate_imbalance_spare(struct cw_sys *sys, struct cw_balance *env)
{
	const struct cw_sg_stats *busiest = &env->sds.busiest_stat, *local = &env->sds.local_stat;
	const struct cw_domain *sd = env_domain(sys, env);
	u64 tasks;

	if (busiest->group_type > group_fully_busy && !(sd->flags & SD_SHARE_LLC)) {
		u64 room = pelt_sub_positive(local->group_capacity, local->group_util);

		/* No room by the averages, yet this CPU is idle and a task waits: take one. */
		if (!room && env->idle != CW_NOT_IDLE)
			set_imbalance(env, CW_MIGRATE_TASK, 1);
		else
			set_imbalance(env, CW_MIGRATE_UTIL, room);
		return;
	}
	if (busiest->group_weight == 1 || env->sds.prefer_sibling)
		tasks = sibling_imbalance(sys, env);
	else /* unsigned as in the kernel: with more idle CPUs in the busiest it is huge */
		tasks = local->idle_cpus - busiest->idle_cpus;
	set_imbalance(env, CW_MIGRATE_TASK, tasks_to_move(sys, env, tasks));
}

/* Load per capacity over the whole domain, 1024-scaled. */
static inline u64 sd_avg_load(const struct cw_sd_stats *sds)
{
	return sds->total_load * CW_CAPACITY_SCALE /
	       (sds->total_capacity ? sds->total_capacity : 1);
}

/*
 * Both groups are overloaded, or will be: move load until one of them is at the
 * domain's average.
 */
static inline void calculate_imbalance_load(struct cw_balance *env)
{
	struct cw_sg_stats *busiest = &env->sds.busiest_stat, *local = &env->sds.local_stat;
	u64 surplus, deficit;

	if (local->group_type < group_overloaded) {
		local->avg_load = group_avg_load(local);
		if (local->avg_load >= busiest->avg_load) {
			env->imbalance = 0;
			return;
		}
		env->sds.avg_load = sd_avg_load(&env->sds);
		if (local->avg_load >= env->sds.avg_load) {
			env->imbalance = 0;
			return;
		}
	}
	/* Either may wrap, as in the kernel: then the other one is the smaller. */
	surplus = (busiest->avg_load - env->sds.avg_load) * busiest->group_capacity;
	deficit = (env->sds.avg_load - local->avg_load) * local->group_capacity;
	set_imbalance(env, CW_MIGRATE_LOAD,
		      (surplus < deficit ? surplus : deficit) / CW_CAPACITY_SCALE);
}

/* How much to move from the busiest group, and in which unit. */
static inline void calculate_imbalance(struct cw_sys *sys, struct cw_balance *env)
{
	const struct cw_sg_stats *busiest = &env->sds.busiest_stat;

	switch (busiest->group_type) {
	case group_misfit_task:
		if (env_domain(sys, env)->flags & SD_ASYM_CPUCAPACITY)
			set_imbalance(env, CW_MIGRATE_MISFIT, 1);
		else /* the one task of a CPU that other classes use */
			set_imbalance(env, CW_MIGRATE_LOAD, busiest->group_misfit_task_load);
		return;
	case group_asym_packing:
		set_imbalance(env, CW_MIGRATE_TASK, busiest->sum_h_nr_running);
		return;
	case group_llc_balance:
		set_imbalance(env, CW_MIGRATE_LLC_TASK, 1);
		return;
	case group_smt_balance:
	case group_imbalanced: /* averages say nothing under affinity: try one task */
		set_imbalance(env, CW_MIGRATE_TASK, 1);
		return;
	default:
		break;
	}
	if (env->sds.local_stat.group_type == group_has_spare)
		calculate_imbalance_spare(sys, env);
	else
		calculate_imbalance_load(env);
}

/* The two groups are overloaded: is the busiest so by more than imbalance_pct? */
static inline bool overload_differs(struct cw_sys *sys, struct cw_balance *env)
{
	const struct cw_sg_stats *busiest = &env->sds.busiest_stat, *local = &env->sds.local_stat;

	if (local->avg_load >= busiest->avg_load)
		return false;
	env->sds.avg_load = sd_avg_load(&env->sds);
	if (local->avg_load >= env->sds.avg_load)
		return false;
	return 100 * busiest->avg_load > env_domain(sys, env)->imbalance_pct * local->avg_load;
}

/*
 * Do the types of the two groups call for a move at all?
 *
 * A misfit, a better CPU and trouble with affinity always do. Otherwise the
 * local group must not be of a busier type. Then an overloaded group is relieved,
 * by one that is overloaded itself only if the average loads differ enough. From
 * any other group only an idle CPU pulls, if its own group has at least two idle
 * CPUs more, and if the busiest has more than one task.
 */
static inline bool is_imbalanced(struct cw_sys *sys, struct cw_balance *env)
{
	const struct cw_sg_stats *busiest = &env->sds.busiest_stat, *local = &env->sds.local_stat;

	if (busiest->group_type == group_misfit_task ||
	    busiest->group_type == group_asym_packing || busiest->group_type == group_imbalanced)
		return true;
	if (local->group_type > busiest->group_type)
		return false;
	if (local->group_type == group_overloaded && !overload_differs(sys, env))
		return false;
	if (env->sds.prefer_sibling && local->group_type == group_has_spare &&
	    (busiest->group_type == group_llc_balance || sibling_imbalance(sys, env) > 1))
		return true;
	if (busiest->group_type == group_overloaded)
		return true;
	if (env->idle == CW_NOT_IDLE)
		return false;
	/* A CPU with a core of its own takes a task from a core that is shared. */
	if (busiest->group_type == group_smt_balance &&
	    smt_vs_nonsmt_groups(sys, env->sds.local, env->sds.busiest))
		return true;
	if (busiest->group_weight > 1 && local->idle_cpus <= busiest->idle_cpus + 1)
		return false;
	return busiest->sum_h_nr_running != 1;
}

/*
 * The busiest group, as an index in cw_sys.group, or CW_NONE if the domain is
 * balanced. Sets env->imbalance and env->migration_type.
 */
static inline u32 sched_balance_find_src_group(struct cw_sys *sys, struct cw_balance *env,
					       struct cw_decision *d)
{
	env->imbalance = 0;
	update_sd_lb_stats(sys, env, d);
	if (env->sds.busiest == CW_NONE || env->sds.local == CW_NONE)
		return CW_NONE;
	if (!is_imbalanced(sys, env))
		return CW_NONE;
	calculate_imbalance(sys, env);
	return env->imbalance ? env->sds.busiest : CW_NONE;
}

#endif /* CW_IMBALANCE_H */
