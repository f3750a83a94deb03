/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a domain learns from an attempt to balance it: how often balancing has failed, how
 * long to wait before the next attempt, and whether to push the source's running task
 * away (active balance).
 */
#ifndef CW_OUTCOME_H
#define CW_OUTCOME_H

#include "balance/detach.h"

/* While all tasks are pinned the interval (ms) doubles up to here at least. */
#define MAX_PINNED_INTERVAL 512

/*
 * Is it worth moving the running task? If dst_cpu is preferred to src_cpu; if a
 * task imbalance, before LB_ACTIVE_TASK any, has persisted for more than
 * cache_nice_tries + 2 attempts; if
 * the source's one task would get clearly more capacity; or for a misfit or a
 * task that prefers the LLC of dst_cpu. Unless it is on the one that it prefers.
 */
static inline bool need_active_balance(struct cw_sys *sys, const struct cw_balance *env)
{
	const struct cw_domain *sd = env_domain(sys, env);
	const struct cw_cpu *src = cpu_rq(sys, env->src_cpu), *dst = cpu_rq(sys, env->dst_cpu);

	if (env->idle != CW_NOT_IDLE && sched_use_asym_prio(sys, sd, env->dst_cpu) &&
	    (sched_asym_prefer(env->dst_cpu, env->src_cpu) ||
	     !sched_use_asym_prio(sys, sd, env->src_cpu)))
		return true;
	if (alb_break_llc(sys, env))
		return false;
	if ((env->migration_type == CW_MIGRATE_TASK || !sched_feat(sys, CW_FEAT_LB_ACTIVE_TASK)) &&
	    env_sd(sys, env)->nr_balance_failed > sd->cache_nice_tries + 2)
		return true;
	if (env->idle != CW_NOT_IDLE && lb_nr_running(sys, src) == 1 && check_cpu_capacity(src, sd) &&
	    (u64)src->capacity * sd->imbalance_pct < (u64)dst->capacity * 100)
		return true;
	return env->migration_type == CW_MIGRATE_MISFIT ||
	       env->migration_type == CW_MIGRATE_LLC_TASK;
}

/* Nothing could be done: wait longer before the next periodic attempt. */
static inline void increase_balance_interval(struct cw_sys *sys, const struct cw_balance *env)
{
	struct cw_cpu_sd *sd = env_sd(sys, env);

	/* Newidle heeds no interval, and a misfit says nothing about the load. */
	if (env->idle == CW_NEWLY_IDLE || env->migration_type == CW_MIGRATE_MISFIT)
		return;
	if (sd->balance_interval_ms < env_domain(sys, env)->max_interval_ms ||
	    (env->flags & LBF_ALL_PINNED && sd->balance_interval_ms < MAX_PINNED_INTERVAL))
		sd->balance_interval_ms *= 2;
}

/* Balanced, or not this CPU's turn: the children's trouble with affinity is over. */
static inline void balance_was_balanced(struct cw_sys *sys, const struct cw_balance *env)
{
	if (env_has_parent(sys, env) && !(env->flags & LBF_ALL_PINNED)) {
		struct cw_group *group = sd_group(
			sys, cpu_sd(sys, env->this_cpu, env->level + 1)->local_group);

		if (group->imbalance)
			group->imbalance = 0;
	}
	env_sd(sys, env)->nr_balance_failed = 0;
	increase_balance_interval(sys, env);
}

/*
 * Nothing was moved although there is an imbalance. Returns whether active
 * balance is to be started; `curr_allowed` as in balance_done().
 */
static inline bool balance_has_failed(struct cw_sys *sys, struct cw_balance *env,
				      bool curr_allowed)
{
	struct cw_cpu_sd *sd = env_sd(sys, env);
	bool active;

	/*
	 * Newidle is too frequent to count, a misfit has nothing to do with load, and
	 * that a task stays on the LLC that it prefers is no failure.
	 */
	if (env->idle != CW_NEWLY_IDLE && env->migration_type != CW_MIGRATE_MISFIT &&
	    !(env->flags & LBF_LLC_PINNED))
		sd->nr_balance_failed++;
	active = need_active_balance(sys, env);
	if (active && !curr_allowed) {
		increase_balance_interval(sys, env);
		return false;
	}
	sd->balance_interval_ms = env_domain(sys, env)->min_interval_ms;
	return active;
}

/*
 * End an attempt that moved `moved` tasks. Returns whether the host is to start
 * active balance: stop src_cpu and push its running task to this_cpu, unless
 * that is under way already. `curr_allowed`: the task that src_cpu runs may run
 * on this_cpu.
 */
static inline bool balance_done(struct cw_sys *sys, struct cw_balance *env, u32 moved,
				bool curr_allowed)
{
	struct cw_cpu_sd *sd = env_sd(sys, env);

	if (env->idle != CW_NEWLY_IDLE)
		sd->last_balance = env->now;
	if (env->src_cpu < 0) {
		balance_was_balanced(sys, env);
		return false;
	}
	if (env->flags & LBF_SRC_HAS_WAITING && env->flags & LBF_ALL_PINNED) {
		sd->nr_balance_failed = 0;
		increase_balance_interval(sys, env);
		return false;
	}
	if (!moved)
		return balance_has_failed(sys, env, curr_allowed);
	sd->nr_balance_failed = 0;
	sd->balance_interval_ms = env_domain(sys, env)->min_interval_ms;
	return false;
}

/*
 * Active balance: src_cpu has stopped, its task is queued, and it may go to dst_cpu.
 * Prepares `env` for active_balance_task(). `for_llc`: the attempt that led to it was to
 * move tasks to the LLC that they prefer. False if the two CPUs share no domain.
 */
static inline bool active_balance_begin(struct cw_sys *sys, struct cw_balance *env, s32 src_cpu,
					s32 dst_cpu, bool for_llc, u64 now)
{
	const struct cw_domain *sd;
	u32 level;

	for_each_domain(sys, dst_cpu, level, sd) {
		if (!cpumask_test_cpu(src_cpu, &sd->span))
			continue;
		balance_begin(env, dst_cpu, level, CW_IDLE, now);
		env->src_cpu = src_cpu;
		env->flags = LBF_ACTIVE_LB | (for_llc ? LBF_ACTIVE_LB_LLC : 0);
		return true;
	}
	return false;
}

/* May it go? Then the host moves it, and the domain's failures are forgotten. */
static inline bool active_balance_task(struct cw_sys *sys, struct cw_balance *env,
				       const struct cw_task *p, const struct cw_cpumask *cpus_ptr)
{
	if (!can_migrate_task(sys, env, p, cpus_ptr, false))
		return false;
	env_sd(sys, env)->nr_balance_failed = 0;
	return true;
}

#endif /* CW_OUTCOME_H */
