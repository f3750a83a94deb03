/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tasks of the source move: the kernel's detach_tasks(), one task per step, and
 * what follows when affinity prevents a move.
 *
 * Not modelled: the node that a task prefers under NUMA balancing, which only the
 * choice of the source considers; bandwidth throttling and core scheduling, which are
 * off in a default kernel's root group.
 */
#ifndef CW_DETACH_H
#define CW_DETACH_H

#include "balance/balance.h"

enum cw_detach {
	CW_DETACH_SKIP, /* leave the task, offer the next */
	CW_DETACH_TAKE, /* move it to dst_cpu, offer the next */
	CW_DETACH_STOP, /* no more; this task was not looked at */
	CW_DETACH_BREAK, /* drop the source's lock, then offer the same task again */
};

/*
 * Is the task's working set still in the cache? It ran less than
 * migration_cost_ns ago, or the cache is the one that its process prefers
 * (CACHE_AWARE_HOT), or it is to run next and dst_cpu need not wait for it
 * (CACHE_HOT_BUDDY). SMT siblings share all caches. Tasks of policy SCHED_IDLE do
 * not matter, and with a cost of 0 nothing but CACHE_HOT_BUDDY does.
 */
static inline bool task_hot(struct cw_sys *sys, const struct cw_balance *env,
			    const struct cw_task *p)
{
	s64 cost = tunable(sys, CW_TUNE_migration_cost_ns);

	if (p->flags & CW_TASK_SCHED_IDLE)
		return false;
	if (env_domain(sys, env)->flags & SD_SHARE_CPUCAPACITY)
		return false;
	if (p->flags & CW_TASK_BUDDY && sched_feat(sys, CW_FEAT_CACHE_HOT_BUDDY) &&
	    cpu_rq(sys, env->dst_cpu)->nr_running)
		return true;
	if (!cost)
		return false;
	return cache_hot(sys, env, p) || (s64)(env->now - p->exec_start) < cost;
}

/* The task may not run on dst_cpu: note that, and another CPU of the group on which it may. */
static inline void note_pinned(struct cw_sys *sys, struct cw_balance *env,
			       const struct cw_cpumask *cpus_ptr)
{
	const struct cw_domain *sd = env_domain(sys, env);
	s32 cpu;

	env->flags |= LBF_SOME_PINNED;
	if (env->idle == CW_NEWLY_IDLE || env->flags & (LBF_DST_PINNED | LBF_ACTIVE_LB))
		return;
	for_each_cpu_and(sys, cpu, &env_local_group(sys, env)->balance_mask, cpus_ptr) {
		if (cpumask_test_cpu(cpu, &sd->span) && env_considers(env, cpu)) {
			env->flags |= LBF_DST_PINNED;
			env->new_dst_cpu = cpu;
			return;
		}
	}
}

/*
 * Is the task not worth moving yet? With LB_RUNNABLE a sleeper whose dequeue is
 * delayed is nothing but load; with LB_ELIGIBLE a task that may not run here may
 * not run there either, if others wait there, which does not count any more once
 * an attempt of this domain has failed.
 */
static inline bool may_not_run(struct cw_sys *sys, const struct cw_balance *env,
			       const struct cw_task *p)
{
	if (p->flags & CW_TASK_DELAYED && sched_feat(sys, CW_FEAT_LB_RUNNABLE) &&
	    env->migration_type != CW_MIGRATE_LOAD)
		return true;
	return p->flags & CW_TASK_INELIGIBLE && sched_feat(sys, CW_FEAT_LB_ELIGIBLE) &&
	       sched_feat(sys, CW_FEAT_PLACE_LAG) && !env_sd(sys, env)->nr_balance_failed &&
	       cpu_rq(sys, env->dst_cpu)->cfs_nr_running;
}

/*
 * May the task, which is queued on src_cpu, go to dst_cpu? `running`: it is
 * current there. A hot task, or one that prefers the LLC of src_cpu, goes only
 * after more than cache_nice_tries failed attempts of this domain; under
 * LBF_ACTIVE_LB that does not count.
 */
static inline bool can_migrate_task(struct cw_sys *sys, struct cw_balance *env,
				    const struct cw_task *p, const struct cw_cpumask *cpus_ptr,
				    bool running)
{
	if (p->flags & CW_TASK_PERCPU_KTHREAD || may_not_run(sys, env, p))
		return false;
	if (!cpumask_test_cpu(env->dst_cpu, cpus_ptr)) {
		note_pinned(sys, env, cpus_ptr);
		return false;
	}
	env->flags &= ~(u32)LBF_ALL_PINNED;
	if (running)
		return false;
	if (env->flags & LBF_ACTIVE_LB)
		return !migrate_llc_task_wrong_dst(sys, env, p);
	if (migrate_degrades_llc(sys, env, p)) {
		if (env->migration_type != CW_MIGRATE_LLC_TASK)
			env->flags |= LBF_LLC_PINNED;
		return false;
	}
	if (!task_hot(sys, env, p))
		return true;
	return env_sd(sys, env)->nr_balance_failed > env_domain(sys, env)->cache_nice_tries;
}

/* The task's size, which counts half for each failed attempt of this domain. */
static inline bool exceeds_imbalance(struct cw_sys *sys, const struct cw_balance *env, u64 size)
{
	u32 failed = env_sd(sys, env)->nr_balance_failed;

	return size >> (failed < 63 ? failed : 63) > (u64)env->imbalance;
}

/* Take the task's size off the imbalance; false if the task is too big or is no misfit. */
static inline bool take_from_imbalance(struct cw_sys *sys, struct cw_balance *env,
				       const struct cw_task *p)
{
	u64 size;

	switch (env->migration_type) {
	case CW_MIGRATE_LOAD:
		size = task_h_load(sys, p, env->now);
		size = size ? size : 1; /* or the imbalance would never end */
		break;
	case CW_MIGRATE_UTIL:
		size = task_util_est(p);
		if (!sched_feat(sys, CW_FEAT_LB_UTIL_RELAX) && size > (u64)env->imbalance)
			return false;
		break;
	case CW_MIGRATE_TASK:
	case CW_MIGRATE_LLC_TASK:
		env->imbalance--;
		return true;
	default:
		if (task_fits_cpu(sys, p, env->src_cpu))
			return false;
		env->imbalance = 0;
		return true;
	}
	if (exceeds_imbalance(sys, env, size))
		return false;
	env->imbalance -= (s64)size;
	return true;
}

/* Has the source been emptied since it was chosen or since the last break? */
static inline bool src_emptied(struct cw_sys *sys, struct cw_balance *env)
{
	bool starts = !env->loop || env->flags & LBF_NEED_BREAK;

	env->flags &= ~(u32)LBF_NEED_BREAK;
	if (!starts || cpu_rq(sys, env->src_cpu)->nr_running > 1)
		return false;
	env->flags &= ~(u32)LBF_ALL_PINNED; /* because nothing is known about its tasks */
	return true;
}

/*
 * Offer a task of src_cpu, the least recently run first (the tail of the
 * kernel's cfs_tasks list; the running task is at its head). On TAKE the host
 * takes it off src_cpu at once, so that src_cpu's nr_running is right for the
 * next step; on SKIP it goes to the head of the list.
 */
static inline enum cw_detach detach_task_step(struct cw_sys *sys, struct cw_balance *env,
					      const struct cw_task *p,
					      const struct cw_cpumask *cpus_ptr, bool running)
{
	/* A source with one task is left for active balance. */
	if (!(env->flags & LBF_SRC_HAS_WAITING) || src_emptied(sys, env))
		return CW_DETACH_STOP;
	if (env->imbalance <= 0)
		return CW_DETACH_STOP;
	/* Newidle delays the wakeups of this CPU: one task will do. */
	if (env->idle == CW_NEWLY_IDLE && env->detached)
		return CW_DETACH_STOP;
	/* An idle CPU leaves the source a task; otherwise the task would be pulled back. */
	if (env->idle != CW_NOT_IDLE && cpu_rq(sys, env->src_cpu)->nr_running <= 1)
		return CW_DETACH_STOP;
	if (++env->loop > env->loop_max)
		return CW_DETACH_STOP;
	if (env->loop > env->loop_break) {
		env->loop_break += CW_NR_MIGRATE_BREAK;
		env->flags |= LBF_NEED_BREAK;
		return CW_DETACH_BREAK;
	}
	if (!can_migrate_task(sys, env, p, cpus_ptr, running) || !take_from_imbalance(sys, env, p))
		return CW_DETACH_SKIP;
	env->detached++;
	return CW_DETACH_TAKE;
}

/* Offers a task where no CPU waits for the source's lock, so that it need not be dropped. */
static inline enum cw_detach detach_task(struct cw_sys *sys, struct cw_balance *env,
					 const struct cw_task *p,
					 const struct cw_cpumask *cpus_ptr, bool running)
{
	enum cw_detach step = detach_task_step(sys, env, p, cpus_ptr, running);

	return step == CW_DETACH_BREAK ? detach_task_step(sys, env, p, cpus_ptr, running) : step;
}

/* How an attempt continues after the tasks of a source. */
enum cw_balance_step {
	CW_BALANCE_DONE,
	CW_BALANCE_MORE, /* offer the tasks of the same source again, to the new dst_cpu */
	CW_BALANCE_REDO, /* all tasks of the source are pinned: find another */
};

/* Is a CPU left that is not of the group that balances? */
static inline bool env_has_other_source(struct cw_sys *sys, const struct cw_balance *env)
{
	const struct cw_cpumask *own = &env_local_group(sys, env)->balance_mask;
	s32 cpu;

	for_each_cpu(sys, cpu, &env_domain(sys, env)->span) {
		if (env_considers(env, cpu) && !cpumask_test_cpu(cpu, own))
			return true;
	}
	return false;
}

/*
 * The tasks of src_cpu have been offered. If affinity kept some of them from
 * dst_cpu, another CPU of the group is tried, and after that another source;
 * the parent domain learns of it by the group's imbalance flag.
 */
static inline enum cw_balance_step balance_next_step(struct cw_sys *sys, struct cw_balance *env)
{
	if (!(env->flags & LBF_SRC_HAS_WAITING))
		return CW_BALANCE_DONE;
	if (env->flags & LBF_DST_PINNED && env->imbalance > 0) {
		env_exclude(env, env->dst_cpu);
		env->dst_cpu = env->new_dst_cpu;
		env->flags &= ~(u32)LBF_DST_PINNED;
		env_rewind(env);
		return CW_BALANCE_MORE;
	}
	if (env_has_parent(sys, env) && env->flags & LBF_SOME_PINNED && env->imbalance > 0)
		sd_group(sys, cpu_sd(sys, env->this_cpu, env->level + 1)->local_group)->imbalance =
			1;
	if (env->flags & LBF_ALL_PINNED) {
		env_exclude(env, env->src_cpu);
		if (env_has_other_source(sys, env)) {
			env_rewind(env);
			return CW_BALANCE_REDO;
		}
	}
	return CW_BALANCE_DONE;
}

#endif /* CW_DETACH_H */
