/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * IDLEST_BY_LOAD: the idlest group as kernels before 5.5 found it. They had no group types
 * and compared groups by spare capacity, otherwise by load per capacity (seed 001).
 *
 * Before seed 001's patch (4.10), only the load of queued tasks counted, compared by a
 * factor, which is of no use near 0. The patch, IDLEST_LOAD_AVG, has three zones. If the
 * two loads differ by an absolute margin or more, they decide. If they are closer, the load
 * average decides, which still includes tasks that were forked there and already sleep.
 */
#ifndef CW_IDLEST_LOAD_H
#define CW_IDLEST_LOAD_H

#include "wakeup/dst_search.h"
#include "mask.h"
#include "track/runnable_load.h"
#include "topology.h"
#include "util.h"

struct cw_group_load {
	u64 runnable_load; /* of queued tasks, per capacity, 1024-scaled */
	u64 avg_load; /* of all tasks, likewise */
	u64 max_spare_cap; /* of one CPU, without the task */
};

/* What counts as noticeable in a domain. */
struct cw_load_margin {
	u64 pct; /* one load is this part of the other: 100 + half of what imbalance_pct is above 100 */
	u64 load; /* absolute */
};

static inline struct cw_load_margin load_margin(const struct cw_domain *sd)
{
	u64 above = sd->imbalance_pct > 100 ? sd->imbalance_pct - 100 : 0;

	return (struct cw_load_margin){
		.pct = 100 + above / 2,
		.load = CW_NICE_0_WEIGHT * above / 100,
	};
}

/* The load of `group`; returns max_spare_cap. */
CW_GLOBAL u64 group_load(struct cw_sys *sys CW_NONNULL, const struct cw_contribution *task CW_NONNULL,
			 const struct cw_group *group CW_NONNULL, struct cw_group_load *load CW_NONNULL)
{
	u64 capacity = group->capacity ? group->capacity : 1;
	s32 cpu;

	*load = (struct cw_group_load){ 0 };
	for_each_cpu(sys, cpu, &group->span) {
		u64 spare = pelt_sub_positive(arch_scale_cpu_capacity(sys, cpu),
					      cpu_util_without(sys, cpu, task));

		load->runnable_load += cpu_runnable_load(sys, cpu);
		load->avg_load += cpu_load(sys, cpu);
		load->max_spare_cap = pelt_max(load->max_spare_cap, spare);
	}
	load->runnable_load = load->runnable_load * CW_CAPACITY_SCALE / capacity;
	load->avg_load = load->avg_load * CW_CAPACITY_SCALE / capacity;
	return load->max_spare_cap;
}

/*
 * Is `a` less loaded than the idlest remote group so far? With IDLEST_LOAD_AVG a
 * group that wins by its load average leaves the runnable load to beat as it is.
 */
CW_GLOBAL bool less_loaded(const struct cw_sys *sys CW_NONNULL,
			   const struct cw_load_margin *margin CW_NONNULL,
			   const struct cw_group_load *a CW_NONNULL,
			   struct cw_group_load *idlest CW_NONNULL)
{
	if (!sched_feat(sys, CW_FEAT_IDLEST_LOAD_AVG)) {
		if (a->runnable_load >= idlest->runnable_load)
			return false;
		*idlest = *a;
		return true;
	}
	if (idlest->runnable_load > a->runnable_load + margin->load) {
		*idlest = *a;
		return true;
	}
	if (a->runnable_load >= idlest->runnable_load + margin->load ||
	    100 * idlest->avg_load <= margin->pct * a->avg_load)
		return false;
	idlest->avg_load = a->avg_load;
	return true;
}

/* Is the local group not noticeably more loaded than the idlest remote one? */
static inline bool local_load_wins(const struct cw_sys *sys, const struct cw_load_margin *margin,
				   const struct cw_group_load *local,
				   const struct cw_group_load *idlest)
{
	if (!sched_feat(sys, CW_FEAT_IDLEST_LOAD_AVG))
		return 100 * local->runnable_load < margin->pct * idlest->runnable_load;
	if (idlest->runnable_load > local->runnable_load + margin->load)
		return true;
	return local->runnable_load < idlest->runnable_load + margin->load &&
	       100 * local->avg_load < margin->pct * idlest->avg_load;
}

/*
 * The group to move to of the domain that `search` names, as an index in cw_sys.group;
 * CW_NONE to stay in the CPU's own.
 */
CW_GLOBAL u32 find_idlest_group_by_load(struct cw_sys *sys CW_NONNULL,
					const struct cw_dst_search *search CW_NONNULL,
					const struct cw_cpumask *cpus_ptr CW_NONNULL,
					struct cw_decision *d CW_NONNULL)
{
	struct cw_domain *sd = cpu_domain(sys, search->cpu, search->level);
	struct cw_group_load idlest_load = { .runnable_load = ~0ULL }, local = { 0 };
	u64 enough = search->task.util / 2, most_spare = 0;
	u32 idlest = CW_NONE, roomiest = CW_NONE, start, i;
	struct cw_load_margin margin;
	struct cw_group *group;

	if (!sd)
		return CW_NONE;
	margin = load_margin(sd);
	start = local_group_index(sys, search->cpu, search->level);
	for (i = unknown(0); (group = group_in_ring(sys, sd, start, i)) && may_loop(); i++) {
		struct cw_group_load load;

		if (!cpumask_intersects(sys, &group->span, cpus_ptr))
			continue;
		d->groups_scanned++;
		d->cpus_scanned += group->weight;
		group_load(sys, &search->task, group, &load);
		if (cpumask_test_cpu(search->cpu, &group->span)) {
			local = load;
			continue;
		}
		if (less_loaded(sys, &margin, &load, &idlest_load))
			idlest = group_index_in_ring(sd, start, i);
		if (load.max_spare_cap > most_spare) {
			most_spare = load.max_spare_cap;
			roomiest = group_index_in_ring(sd, start, i);
		}
	}
	/* half of what the task uses is room enough; a new task's use is not known yet */
	if (!(search->wake_flags & WF_FORK)) {
		if (local.max_spare_cap > enough &&
		    margin.pct * local.max_spare_cap > 100 * most_spare)
			return CW_NONE;
		if (most_spare > enough)
			return roomiest;
	}
	if (idlest == CW_NONE || local_load_wins(sys, &margin, &local, &idlest_load))
		return CW_NONE;
	return idlest;
}

#endif /* CW_IDLEST_LOAD_H */
