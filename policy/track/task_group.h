/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The task groups that lie around all tasks, one in the other: those of a login session, or
 * its autogroup.
 *
 * A group has a queue on each CPU, and an entity that stands for it in the queue of the
 * group above. The outermost group's entity is the only one in the CPU's own queue, so its
 * load is the CPU's (cpu_load()). A group has the weight of one task on all CPUs together,
 * and its entity on a CPU has a share of that (calc_group_shares()):
 *
 *	                        L
 *	1024 * ---------------------------------
 *	       tg->load_avg - its contribution + L
 *
 * where L is the weight of the tasks queued on the CPU, or their load average if that is
 * larger, and tg->load_avg the sum of all CPUs' load averages as far as they were told. So
 * the load of a CPU follows its queue at once, also downwards, and where many CPUs share a
 * group, it is a small integer.
 *
 * The entities of a CPU are queued and leave together, so one geometric sum says for all of
 * them how long there were tasks. Tasks that come and leave take their part along
 * (update_tg_cfs_load()).
 */
#ifndef CW_TASK_GROUP_H
#define CW_TASK_GROUP_H

#include "track/pelt.h"

#define CW_TG_SHARES 1024
/* An entity weighs at least this (scale_load_down()). */
#define CW_TG_MIN_WEIGHT 2
/* TG_LOAD_AVG_RATELIMIT: a CPU updates tg->load_avg at most this often, ns. */
#define CW_TG_UPDATE_NS 1000000

static inline struct cw_tg_cpu *tg_cpu(struct cw_sys *sys, s32 cpu)
{
	return &sys->tg_cpu[cpu & CW_CPU_MASK];
}

/* The entity's load follows its weight and the time for which its queue had tasks. */
static inline void update_group_load(const struct cw_tg_cpu *tg, struct cw_group_entity *se)
{
	se->load_avg = se->weight * tg->avg.load_sum / get_pelt_divider(&tg->avg);
}

static inline void update_group_loads(const struct cw_sys *sys, struct cw_tg_cpu *tg)
{
	u32 level;

	for (level = 0; level < task_group_depth(sys); level++)
		update_group_load(tg, &tg->level[level]);
}

/* Brings the sum to `clock`, before the averages of the CPU's queue are brought there. */
static inline void update_load_avg_groups(struct cw_sys *sys, s32 cpu, u64 clock)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	struct cw_tg_cpu *tg = tg_cpu(sys, cpu);

	if (rq->removed.nr)
		tg->prop_runnable_sum -= (s64)(rq->removed.runnable_avg * get_pelt_divider(&rq->avg) /
					       CW_CAPACITY_SCALE);
	if (update_load_sum(clock, &tg->avg, rq->load_weight != 0, 0, false))
		update_group_loads(sys, tg);
}

/* A task comes to the CPU with `runnable_sum`, or leaves it with that if it is negative. */
static inline void add_tg_cfs_propagate(struct cw_sys *sys, s32 cpu, s64 runnable_sum)
{
	if (task_group_depth(sys))
		tg_cpu(sys, cpu)->prop_runnable_sum += runnable_sum;
}

/*
 * The sum follows tasks that came and left. Theirs do not overlap as far as there is room;
 * what is left without the latter is estimated by the average task that is queued, and is
 * at least the time that tasks ran.
 */
static inline void propagate_entity_load_avg(struct cw_sys *sys, s32 cpu)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	struct cw_tg_cpu *tg = tg_cpu(sys, cpu);
	u64 sum = tg->avg.load_sum, limit;

	if (!tg->prop_runnable_sum)
		return;
	if (tg->prop_runnable_sum > 0) {
		sum += (u64)tg->prop_runnable_sum;
		limit = get_pelt_divider(&tg->avg);
	} else {
		limit = rq->load_weight ? rq->avg.load_sum / rq->load_weight : 0;
	}
	tg->prop_runnable_sum = 0;
	tg->avg.load_sum = pelt_max(sum < limit ? sum : limit, rq->avg.util_sum / CW_CAPACITY_SCALE);
	update_group_loads(sys, tg);
}

/* Tells the group of the load of its queue, if that has changed by more than 1/64. */
static inline void update_tg_load_avg(struct cw_sys *sys, s32 cpu, u32 level, u64 load_avg)
{
	struct cw_tg_cpu *tg = tg_cpu(sys, cpu);
	struct cw_group_entity *se = &tg->level[level];
	u64 contrib = se->tg_load_avg_contrib;
	u64 now = cpu_rq(sys, cpu)->clock_task;

	if (sched_feat(sys, CW_FEAT_TG_LOAD_AVG_RATELIMIT) &&
	    now - se->last_update_tg_load_avg < CW_TG_UPDATE_NS)
		return;
	if ((load_avg > contrib ? load_avg - contrib : contrib - load_avg) <= contrib / 64)
		return;
	sys->tg_load_avg[level] += load_avg - contrib;
	se->tg_load_avg_contrib = load_avg;
	se->last_update_tg_load_avg = now;
	tg->written |= 1u << level;
}

/* The group's share of the CPU, where `load` is the larger of its queue's weight and load average. */
static inline u64 calc_group_shares(const struct cw_sys *sys, const struct cw_group_entity *se, u32 level,
				    u64 load)
{
	u64 tg_load = sys->tg_load_avg[level] - se->tg_load_avg_contrib + load;
	u64 shares = tg_load ? CW_TG_SHARES * load / tg_load : CW_TG_SHARES;

	return shares > CW_TG_MIN_WEIGHT ? shares : CW_TG_MIN_WEIGHT;
}

/*
 * The groups follow the CPU's queue, from the innermost outwards. `changed`: its load average
 * has changed. `reweight`: so do their entities' shares of the CPU (update_cfs_group()).
 * The weight of a group without tasks is kept, as since 6.12.
 */
static inline void update_task_groups(struct cw_sys *sys, s32 cpu, bool changed, bool reweight)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	struct cw_tg_cpu *tg = tg_cpu(sys, cpu);
	u64 told = rq->avg.load_avg, load = told, weight = rq->load_weight;
	u32 level = task_group_depth(sys);

	if (level)
		propagate_entity_load_avg(sys, cpu);
	while (level--) {
		struct cw_group_entity *se = &tg->level[level];

		if (changed)
			update_tg_load_avg(sys, cpu, level, told);
		told = se->load_avg;
		if (reweight && weight) {
			se->weight = calc_group_shares(sys, se, level, pelt_max(weight, load));
			update_group_load(tg, se);
			weight = se->weight;
		}
		load = se->load_avg;
	}
}

/* The CPU goes offline: the groups forget what it contributed. */
static inline void clear_tg_offline_cfs_rqs(struct cw_sys *sys, s32 cpu)
{
	struct cw_tg_cpu *tg = tg_cpu(sys, cpu);
	u32 level;

	for (level = 0; level < task_group_depth(sys); level++) {
		sys->tg_load_avg[level] -= tg->level[level].tg_load_avg_contrib;
		tg->level[level].tg_load_avg_contrib = 0;
	}
}

/* The part of the CPU's load that the innermost group's queue has, computed once per jiffy. */
static inline u64 update_cfs_rq_h_load(struct cw_sys *sys, s32 cpu, u64 now)
{
	struct cw_tg_cpu *tg = tg_cpu(sys, cpu);
	u64 jiffy = now / (sys->tick_ns ? sys->tick_ns : 1);
	u32 level;

	if (tg->last_h_load_update == jiffy)
		return tg->h_load;
	tg->last_h_load_update = jiffy;
	tg->h_load = tg->level[0].load_avg;
	for (level = 0; level < task_group_depth(sys); level++)
		tg->h_load = tg->h_load * tg->level[level].load_avg / (tg->level[level].load_avg + 1);
	return tg->h_load;
}

#endif /* CW_TASK_GROUP_H */
