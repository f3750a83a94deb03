/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How busy a group of CPUs is. Fork placement and load balancing gather the same figures,
 * each in its own way, and classify them by the same rules.
 */
#ifndef CW_GROUP_H
#define CW_GROUP_H

#include "types.h"

/* Ordered by a balancer's preference to pull from them, least first. */
enum group_type {
	group_has_spare, /* capacity is left for more tasks */
	group_fully_busy, /* fully used, but tasks do not compete for cycles */
	group_misfit_task, /* asymmetric capacity: a task needs a bigger CPU */
	group_smt_balance, /* more than one task on an SMT core while a core is idle */
	group_asym_packing, /* a CPU of higher priority is free */
	group_imbalanced, /* affinity kept an earlier balance from evening it out */
	group_llc_balance, /* tasks prefer the LLC of the CPU that balances */
	group_overloaded, /* tasks do not get the cycles that they need */
};

struct cw_sg_stats {
	u64 avg_load; /* load per capacity, 1024-scaled; only if fully busy or overloaded */
	u64 group_load;
	u64 group_util;
	u64 group_runnable;
	u64 group_misfit_task_load;
	u32 group_capacity;
	u32 group_weight; /* CPUs */
	u32 sum_nr_running; /* runnable tasks of all classes */
	u32 sum_h_nr_running; /* of these, fair tasks */
	u32 idle_cpus;
	u32 group_type; /* enum group_type */
	u32 nr_numa_running;
	u32 nr_preferred_running;
	u32 nr_pref_dst_llc;
	u8 group_asym_packing;
	u8 group_smt_balance;
	u8 group_llc_balance;
	u8 pad;
};

/* Room for another task: a CPU without one, or utilisation and waiting within the margin. */
static inline bool group_has_capacity(u32 imbalance_pct, const struct cw_sg_stats *sgs)
{
	u64 capacity = sgs->group_capacity;

	if (sgs->sum_nr_running < sgs->group_weight)
		return true;
	if (sgs->group_runnable * 100 > capacity * imbalance_pct)
		return false;
	return capacity * 100 > sgs->group_util * imbalance_pct;
}

/* More tasks than CPUs, and utilisation or waiting beyond the margin. */
static inline bool group_is_overloaded(u32 imbalance_pct, const struct cw_sg_stats *sgs)
{
	u64 capacity = sgs->group_capacity;

	if (sgs->sum_nr_running <= sgs->group_weight)
		return false;
	return capacity * 100 < sgs->group_util * imbalance_pct ||
	       capacity * imbalance_pct < sgs->group_runnable * 100;
}

static inline enum group_type group_classify(u32 imbalance_pct, const struct cw_group *group,
					     const struct cw_sg_stats *sgs)
{
	if (group_is_overloaded(imbalance_pct, sgs))
		return group_overloaded;
	if (sgs->group_llc_balance)
		return group_llc_balance;
	if (group->imbalance)
		return group_imbalanced;
	if (sgs->group_asym_packing)
		return group_asym_packing;
	if (sgs->group_smt_balance)
		return group_smt_balance;
	if (sgs->group_misfit_task_load)
		return group_misfit_task;
	return group_has_capacity(imbalance_pct, sgs) ? group_has_spare : group_fully_busy;
}

/* Load per capacity of the group, 1024-scaled. */
static inline u64 group_avg_load(const struct cw_sg_stats *sgs)
{
	u64 capacity = sgs->group_capacity ? sgs->group_capacity : 1;

	return sgs->group_load * CW_CAPACITY_SCALE / capacity;
}

/* Pairs of communicating tasks may stay on one node. */
#define NUMA_IMBALANCE_MIN 2

/*
 * The part of an imbalance in tasks between NUMA nodes that is worth acting
 * on: none while the destination runs few tasks and the imbalance is a pair.
 */
static inline u64 adjust_numa_imbalance(u64 imbalance, u32 dst_running, u32 imb_numa_nr)
{
	if (dst_running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN)
		return 0;
	return imbalance;
}

/* IMB_NUMA_QUARTER: is less than a quarter of a node's CPUs used, so that an imbalance is allowed there? */
static inline bool allow_numa_imbalance(u32 nr_running, u32 weight)
{
	return nr_running < weight >> 2;
}

#endif /* CW_GROUP_H */
