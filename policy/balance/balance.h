/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a CPU that balances one of its domains pulls tasks from: whether it is the one
 * to balance, which group is the busiest, and which of the group's CPUs is. This is the
 * first half of the kernel's sched_balance_rq(); detach.h is the second half and
 * outcome.h the end.
 */
#ifndef CW_BALANCE_H
#define CW_BALANCE_H

#include "balance/imbalance.h"

/*
 * One CPU of a group balances for all of it: the first idle CPU whose core is
 * idle (LB_IDLE_CORE), else the first idle one, else the first. Newly idle CPUs balance for
 * themselves, as long as no work has come meanwhile.
 */
CW_GLOBAL bool should_we_balance(struct cw_sys *sys CW_NONNULL,
				 const struct cw_balance *env CW_NONNULL,
				 struct cw_decision *d CW_NONNULL)
{
	const struct cw_domain *sd = env_domain(sys, env);
	const struct cw_group *group = env_local_group(sys, env);
	s32 cpu, idle_smt = -1;

	if (!env_considers(env, env->dst_cpu) || !cpumask_test_cpu(env->dst_cpu, &sd->span))
		return false;
	if (env->idle == CW_NEWLY_IDLE) {
		const struct cw_cpu *rq = cpu_rq(sys, env->dst_cpu);

		return !rq->nr_running && !rq->ttwu_pending;
	}
	for_each_cpu_and(sys, cpu, &group->balance_mask, &sd->span) {
		if (!env_considers(env, cpu))
			continue;
		d->cpus_scanned++;
		if (!idle_cpu(sys, cpu))
			continue;
		if (sd->flags & SD_SHARE_CPUCAPACITY || !sched_feat(sys, CW_FEAT_LB_IDLE_CORE) ||
		    is_core_idle(sys, cpu))
			return cpu == env->dst_cpu;
		if (idle_smt < 0)
			idle_smt = cpu;
	}
	if (idle_smt >= 0)
		return idle_smt == env->dst_cpu;
	return cpumask_first(sys, &group->balance_mask) == env->dst_cpu;
}

/* Utilisation that, with LB_UTIL_BOOST, also counts time spent waiting, at most the CPU's capacity. */
static inline u64 src_rq_util(struct cw_sys *sys, s32 cpu)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	u64 util = cpu_util(sys, cpu);

	if (sched_feat(sys, CW_FEAT_LB_UTIL_BOOST))
		util = pelt_max(util, rq->avg.runnable_avg);

	return util < rq->capacity_orig ? util : rq->capacity_orig;
}

/*
 * Would it be useless to move the only task of `cpu`, because the CPU is no bigger? With
 * ASYM_LB, the task still gains if it shares its core with others, and tasks are to be spread
 * between clusters of the same capacity.
 */
static inline bool asym_keeps_task(struct cw_sys *sys, const struct cw_balance *env, s32 cpu)
{
	if (!sched_feat(sys, CW_FEAT_LB_CAPACITY_GREATER))
		return capacity_of(sys, env->dst_cpu) < capacity_of(sys, cpu);
	if (capacity_greater(capacity_of(sys, env->dst_cpu), capacity_of(sys, cpu)))
		return false;
	if (!sched_feat(sys, CW_FEAT_ASYM_LB))
		return true;
	if (sys->smt_present && !is_core_idle(sys, cpu))
		return false;
	return !sys->cluster_present ||
	       cpu_rq(sys, env->dst_cpu)->capacity_orig != cpu_rq(sys, cpu)->capacity_orig;
}

/* May a task of `cpu` be moved to dst_cpu for more than the worse? */
CW_GLOBAL bool src_rq_qualifies(struct cw_sys *sys CW_NONNULL,
				const struct cw_balance *env CW_NONNULL, s32 cpu)
{
	const struct cw_domain *sd = env_domain(sys, env);
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	u32 nr_running = lb_nr_running(sys, rq);

	if (fbq_classify_rq(rq) > env->fbq_type)
		return false;
	if (!nr_running)
		return !sched_feat(sys, CW_FEAT_LB_SKIP_EMPTY);
	if (nr_running > 1)
		return true;
	if (sd->flags & SD_ASYM_CPUCAPACITY && asym_keeps_task(sys, env, cpu))
		return false;
	return !sched_asym(sys, sd, cpu, env->dst_cpu);
}

/*
 * How much of what env->migration_type moves does `cpu` have? Load counts per
 * *capacity, which is 1 for the other measures. 0: nothing that could be moved.
 */
static inline u64 src_rq_value(struct cw_sys *sys, const struct cw_balance *env,
			       const struct cw_domain *sd, s32 cpu, u64 *capacity)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	u32 nr_running = lb_nr_running(sys, rq);
	u64 load = cpu_load(sys, cpu);

	*capacity = 1;
	switch (env->migration_type) {
	case CW_MIGRATE_LOAD:
		/* Its one task is too much, unless the CPU has lost capacity. */
		if (nr_running == 1 && load > (u64)env->imbalance && !check_cpu_capacity(rq, sd))
			return 0;
		*capacity = rq->capacity;
		return load;
	case CW_MIGRATE_UTIL:
		return nr_running > 1 ? src_rq_util(sys, cpu) : 0;
	case CW_MIGRATE_TASK:
		return nr_running;
	case CW_MIGRATE_LLC_TASK:
		return rq->nr_pref_dst_llc;
	default:
		return rq->misfit_task_load;
	}
}

/* The busiest CPU of the group by the measure of env->migration_type, -1 if none is suitable. */
CW_GLOBAL s32 sched_balance_find_src_rq(struct cw_sys *sys CW_NONNULL,
					const struct cw_balance *env CW_NONNULL, u32 group,
					struct cw_decision *d CW_NONNULL)
{
	const struct cw_domain *sd = env_domain(sys, env);
	u64 max = 0, max_capacity = 1;
	s32 cpu, busiest = -1;

	for_each_cpu_and(sys, cpu, &sd_group(sys, group)->span, &sd->span) {
		u64 value, capacity;

		if (!env_considers(env, cpu))
			continue;
		d->cpus_scanned++;
		if (!src_rq_qualifies(sys, env, cpu))
			continue;
		value = src_rq_value(sys, env, sd, cpu, &capacity);
		if (value * max_capacity > max * capacity) {
			max = value;
			max_capacity = capacity;
			busiest = cpu;
		}
	}
	return busiest;
}

static inline void balance_record(const struct cw_balance *env, struct cw_decision *d)
{
	*d = (struct cw_decision){
		.now = env->now,
		.pid = -1,
		.this_cpu = env->this_cpu,
		.prev_cpu = -1,
		.target = env->dst_cpu,
		.cpu = -1,
		.event = CW_BALANCE_BUSY << env->idle,
		.reason = CW_REASON_BALANCE_BALANCED,
	};
}

/*
 * Decide where to pull tasks from. Returns the CPU, or -1 if there is nothing
 * to pull; then balance_done() follows at once. The decision record tells why
 * (reason BALANCE_PULL, BALANCE_BALANCED or BALANCE_NOT_MINE), how many groups
 * were looked at, and how many CPUs were read, one read more than once counted
 * each time.
 */
static inline s32 sched_balance_find_src(struct cw_sys *sys, struct cw_balance *env,
					 struct cw_decision *d)
{
	u32 group, nr_running, limit = tunable(sys, CW_TUNE_nr_migrate);
	s32 cpu;

	balance_record(env, d);
	env->src_cpu = -1;
	env->flags &= ~(u32)(LBF_SRC_HAS_WAITING | LBF_NOT_MINE);
	if (!should_we_balance(sys, env, d)) {
		env->flags |= LBF_NOT_MINE;
		d->reason = CW_REASON_BALANCE_NOT_MINE;
		return -1;
	}
	group = sched_balance_find_src_group(sys, env, d);
	if (group == CW_NONE)
		return -1;
	cpu = sched_balance_find_src_rq(sys, env, group, d);
	if (cpu < 0)
		return -1;

	env->src_cpu = cpu;
	nr_running = cpu_rq(sys, cpu)->nr_running;
	env->flags |= LBF_ALL_PINNED;
	if (nr_running > 1)
		env->flags |= LBF_SRC_HAS_WAITING;
	env->loop_max = nr_running < limit ? nr_running : limit;
	d->cpu = cpu;
	d->reason = CW_REASON_BALANCE_PULL;
	return cpu;
}

#endif /* CW_BALANCE_H */
