/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Placement by load, for fork and exec, and for wakeups in a domain that asks for it: from
 * the top domain down, the idlest group, and in it the idlest CPU (kernel/sched/fair.c,
 * 6.12; group types exist since 5.5, idlest_load.h has the earlier rules).
 */
#ifndef CW_FORKEXEC_H
#define CW_FORKEXEC_H

#include "wakeup/dst_search.h"
#include "wakeup/group.h"
#include "wakeup/idlest_load.h"
#include "mask.h"
#include "topology.h"
#include "types.h"
#include "util.h"

/*
 * How busy the CPUs of `group` that are `allowed` are without `task`, not yet classified.
 * Returns how many of them are idle.
 */
CW_GLOBAL u32 add_wakeup_stats(struct cw_sys *sys CW_NONNULL,
			       const struct cw_contribution *task CW_NONNULL,
			       const struct cw_group *group CW_NONNULL,
			       const struct cw_cpumask *allowed CW_NONNULL,
			       struct cw_sg_stats *sgs CW_NONNULL)
{
	u64 util_est = pelt_max(task->util, task->util_est);
	s32 cpu;

	*sgs = (struct cw_sg_stats){
		.group_capacity = group->capacity,
		.group_weight = group->weight,
		/* until a CPU is found that the task fits */
		.group_misfit_task_load = 1,
	};
	for_each_cpu_and(sys, cpu, &group->span, allowed) {
		const struct cw_cpu *rq = cpu_rq(sys, cpu);
		u32 local = task_running_on_cpu(task, cpu);
		u32 nr_running = rq->nr_running - local;

		sgs->group_load += cpu_load_without(sys, cpu, task);
		sgs->group_util += cpu_util_without(sys, cpu, task);
		sgs->group_runnable += cpu_runnable_without(sys, cpu, task);
		sgs->sum_h_nr_running += rq->cfs_nr_running - local;
		sgs->sum_nr_running += nr_running;
		if (!nr_running && idle_cpu_without(sys, cpu, task))
			sgs->idle_cpus++;
		if (sgs->group_misfit_task_load &&
		    util_fits_cpu(sys, util_est, task->uclamp_min, task->uclamp_max, cpu) > 0)
			sgs->group_misfit_task_load = 0;
	}
	/* 5.5 did not set the number of CPUs, nor the load of the groups for which it counts */
	if (!sched_feat(sys, CW_FEAT_DST_GROUP_STATS))
		sgs->group_weight = sgs->group_load = 0;
	if (!sched_feat(sys, CW_FEAT_GROUP_RUNNABLE))
		sgs->group_runnable = 0;
	return sgs->idle_cpus;
}

/* Classifies the result of add_wakeup_stats() as a group type of domain `sd`. */
CW_GLOBAL u32 classify_wakeup_stats(const struct cw_domain *sd CW_NONNULL,
				    const struct cw_group *group CW_NONNULL,
				    struct cw_sg_stats *sgs CW_NONNULL)
{
	if (!(sd->flags & SD_ASYM_CPUCAPACITY))
		sgs->group_misfit_task_load = 0;
	sgs->group_type = group_classify(sd->imbalance_pct, group, sgs);
	if (sgs->group_type == group_fully_busy || sgs->group_type == group_overloaded)
		sgs->avg_load = group_avg_load(sgs);
	return sgs->group_type;
}

/* Is `group` idler than `idlest`, whose statistics are `idlest_sgs`? */
static inline bool idler(const struct cw_group *idlest, const struct cw_sg_stats *idlest_sgs,
			 const struct cw_group *group, const struct cw_sg_stats *sgs)
{
	if (sgs->group_type != idlest_sgs->group_type)
		return sgs->group_type < idlest_sgs->group_type;

	switch (sgs->group_type) {
	case group_overloaded:
	case group_fully_busy:
		return sgs->avg_load < idlest_sgs->avg_load;
	case group_misfit_task:
		return group->max_capacity > idlest->max_capacity;
	case group_has_spare:
		if (sgs->idle_cpus != idlest_sgs->idle_cpus)
			return sgs->idle_cpus > idlest_sgs->idle_cpus;
		return sgs->group_util < idlest_sgs->group_util;
	default:
		return false;
	}
}

/* Is `group` idler than the idlest found so far, if one was? Then *idlest_sgs becomes *sgs. */
CW_GLOBAL bool update_pick_idlest(const struct cw_group *idlest,
				  struct cw_sg_stats *idlest_sgs CW_NONNULL,
				  const struct cw_group *group CW_NONNULL,
				  const struct cw_sg_stats *sgs CW_NONNULL)
{
	if (idlest && !idler(idlest, idlest_sgs, group, sgs))
		return false;
	*idlest_sgs = *sgs;
	return true;
}

/* Is the load of `idlest` below that of `local` by more than the domain's margin? */
static inline bool idlest_load_wins(const struct cw_domain *sd, const struct cw_sg_stats *local,
				    const struct cw_sg_stats *idlest)
{
	u64 margin = (u64)CW_NICE_0_WEIGHT * (sd->imbalance_pct - 100) / 100;

	/* a remote node has to be idler by the margin even after it is added to its load */
	if ((sd->flags & SD_NUMA) && idlest->avg_load + margin >= local->avg_load)
		return false;
	if (idlest->avg_load >= local->avg_load + margin)
		return false;
	return 100 * local->avg_load > sd->imbalance_pct * idlest->avg_load;
}

/* The imbalance that nodes are allowed, in tasks: no more than the local CPUs that p may use. */
static inline u32 allowed_imb_numa_nr(struct cw_sys *sys, const struct cw_cpumask *cpus_ptr,
				      const struct cw_domain *sd, const struct cw_group *local)
{
	u32 nr = unknown(0);
	s32 cpu;

	if (!sched_feat(sys, CW_FEAT_IMB_NUMA_NR))
		return 0;
	for_each_cpu_and(sys, cpu, &local->span, cpus_ptr)
		if (++nr >= sd->imb_numa_nr)
			return sd->imb_numa_nr;
	return nr;
}

/* Does `idlest` have more idle CPUs than `local`, and on another node by enough? */
static inline bool idlest_spare_wins(const struct cw_domain *sd, const struct cw_sg_stats *local,
				     const struct cw_sg_stats *idlest, u32 imb_numa_nr)
{
	if (sd->flags & SD_NUMA) {
		u32 imbalance = local->idle_cpus > idlest->idle_cpus ?
					local->idle_cpus - idlest->idle_cpus :
					idlest->idle_cpus - local->idle_cpus;

		if (!adjust_numa_imbalance(imbalance, local->sum_nr_running + 1, imb_numa_nr))
			return false;
	}
	return idlest->idle_cpus > local->idle_cpus;
}

/* Without IMB_NUMA_NR: does a node keep the task whatever the other nodes have? */
static inline bool stays_on_node(struct cw_sys *sys, const struct cw_sg_stats *local)
{
	if (sched_feat(sys, CW_FEAT_IMB_NUMA_QUARTER))
		return allow_numa_imbalance(local->sum_nr_running + 1, local->group_weight);
	return local->idle_cpus;
}

/* Does the remote group win against the local one, which `search` has compared it with? */
static inline bool idlest_wins(struct cw_sys *sys, const struct cw_dst_search *search,
			       const struct cw_cpumask *cpus_ptr, const struct cw_domain *sd,
			       const struct cw_group *local, const struct cw_group *idlest)
{
	s32 node = search->numa_preferred_nid;

	if (search->local.group_type != search->idlest.group_type)
		return search->local.group_type > search->idlest.group_type;

	switch (search->local.group_type) {
	case group_overloaded:
	case group_fully_busy:
		return idlest_load_wins(sd, &search->local, &search->idlest);
	case group_misfit_task:
		return idlest->max_capacity > local->max_capacity;
	case group_has_spare:
		/* NUMA balancing wants the task on a node */
		if ((sd->flags & SD_NUMA) && cpu_rq(sys, search->cpu)->node == node)
			return false;
		if ((sd->flags & SD_NUMA) &&
		    cpu_rq(sys, cpumask_first(sys, &idlest->span))->node == node)
			return true;
		if ((sd->flags & SD_NUMA) && !sched_feat(sys, CW_FEAT_IMB_NUMA_NR) &&
		    stays_on_node(sys, &search->local))
			return false;
		return idlest_spare_wins(sd, &search->local, &search->idlest,
					 allowed_imb_numa_nr(sys, cpus_ptr, sd, local));
	default:
		return false;
	}
}

/*
 * The group to move to of the domain that `search` names, as an index in cw_sys.group;
 * CW_NONE to stay in the CPU's own.
 */
CW_GLOBAL u32 sched_balance_find_dst_group(struct cw_sys *sys CW_NONNULL,
					   struct cw_dst_search *search CW_NONNULL,
					   const struct cw_cpumask *cpus_ptr CW_NONNULL,
					   struct cw_decision *d CW_NONNULL)
{
	struct cw_domain *sd = cpu_domain(sys, search->cpu, search->level);
	struct cw_group *idlest = NULL, *local = NULL, *group;
	u32 found = CW_NONE, start, i;

	if (!sd)
		return CW_NONE;
	start = local_group_index(sys, search->cpu, search->level);
	for (i = unknown(0); (group = group_in_ring(sys, sd, start, i)) && may_loop(); i++) {
		const struct cw_cpumask *cpus = &group->span;

		if (!cpumask_intersects(sys, cpus, cpus_ptr))
			continue;
		d->groups_scanned++;
		d->cpus_scanned += group->weight;
		if (sched_feat(sys, CW_FEAT_DST_GROUP_ALLOWED))
			cpus = cpus_ptr;
		add_wakeup_stats(sys, &search->task, group, cpus, &search->group);
		classify_wakeup_stats(sd, group, &search->group);
		if (cpumask_test_cpu(search->cpu, &group->span)) {
			local = group;
			search->local = search->group;
		} else if (update_pick_idlest(idlest, &search->idlest, group, &search->group)) {
			idlest = group;
			found = group_index_in_ring(sd, start, i);
		}
	}
	/* the task may run in only one of the two, or the two are compared */
	if (!idlest || !local || idlest_wins(sys, search, cpus_ptr, sd, local, idlest))
		return found;
	return CW_NONE;
}

/* By type, or as before 5.5. */
static inline u32 find_dst_group(struct cw_sys *sys, struct cw_dst_search *search,
				 const struct cw_cpumask *cpus_ptr, struct cw_decision *d)
{
	if (sched_feat(sys, CW_FEAT_IDLEST_BY_LOAD))
		return find_idlest_group_by_load(sys, search, cpus_ptr, d);
	return sched_balance_find_dst_group(sys, search, cpus_ptr, d);
}

/* The load by which busy CPUs are compared. */
static inline u64 dst_cpu_load(struct cw_sys *sys, s32 cpu)
{
	return sched_feat(sys, CW_FEAT_IDLEST_BY_LOAD) ? cpu_runnable_load(sys, cpu) : cpu_load(sys, cpu);
}

/* The idle CPU that wakes fastest, so far. */
struct cw_shallowest {
	u64 idle_stamp;
	u32 exit_latency_us;
	s32 cpu;
};

/*
 * Does the idle CPU of `rq` wake faster, or as fast and went idle later (so that its cache is
 * warmer)? If it is in no idle state, only that time counts.
 */
static inline bool wakes_faster(const struct cw_cpu *rq, const struct cw_shallowest *best)
{
	if (rq->exit_latency_us < best->exit_latency_us)
		return true;
	return (rq->exit_latency_us == CW_NO_IDLE_STATE ||
		rq->exit_latency_us == best->exit_latency_us) &&
	       rq->idle_stamp > best->idle_stamp;
}

/*
 * The CPU of `group` for `p` to start on: one that runs only SCHED_IDLE tasks, else the
 * idle one that wakes fastest, else the least loaded; -1 if it may use none of them.
 */
CW_GLOBAL s32 sched_balance_find_dst_group_cpu(struct cw_sys *sys CW_NONNULL,
					       const struct cw_task *p CW_NONNULL,
					       const struct cw_cpumask *cpus_ptr CW_NONNULL,
					       struct cw_decision *d CW_NONNULL,
					       const struct cw_group *group CW_NONNULL)
{
	struct cw_shallowest best = { .exit_latency_us = CW_NO_IDLE_STATE, .cpu = -1 };
	u64 min_load = ~0ULL;
	s32 least_loaded_cpu = -1, cpu;

	if (group->weight == 1)
		return cpumask_first(sys, &group->span) & CW_CPU_MASK;

	for_each_cpu_and(sys, cpu, &group->span, cpus_ptr) {
		const struct cw_cpu *rq = cpu_rq(sys, cpu);

		d->cpus_scanned++;
		if (choose_sched_idle_cpu(sys, cpu, p))
			return cpu;
		if (available_idle_cpu(sys, cpu)) {
			if (!wakes_faster(rq, &best))
				continue;
			best.cpu = cpu;
			best.idle_stamp = rq->idle_stamp;
			if (rq->exit_latency_us != CW_NO_IDLE_STATE)
				best.exit_latency_us = rq->exit_latency_us;
		} else if (best.cpu < 0 && dst_cpu_load(sys, cpu) < min_load) {
			min_load = dst_cpu_load(sys, cpu);
			least_loaded_cpu = cpu;
		}
	}
	return best.cpu >= 0 ? best.cpu : least_loaded_cpu;
}

/* The highest domain of `cpu` with `sd_flag` below a domain of `weight` CPUs; -1 if none. */
CW_GLOBAL s32 highest_level_below(struct cw_sys *sys CW_NONNULL, s32 cpu, u32 weight, u32 sd_flag)
{
	struct cw_domain *sd;
	s32 found = -1;
	u32 level;

	for_each_domain(sys, cpu, level, sd) {
		if (weight <= sd->weight)
			break;
		if (sd->flags & sd_flag)
			found = (s32)level;
	}
	return found;
}

/* The idlest CPU, searched from domain `top` of this_cpu down. */
static inline s32 sched_balance_find_dst_cpu(struct cw_sys *sys, const struct cw_wakeup *w,
					     struct cw_decision *d, u32 top, u32 sd_flag)
{
	struct cw_dst_search *search = cw_scratch(struct cw_dst_search, w->this_cpu);
	s32 cpu = w->this_cpu, level = (s32)top, steps;
	struct cw_domain *sd = cpu_domain(sys, cpu, top);

	d->reason = CW_REASON_SLOW_PATH_LOCAL;
	if (!sd || !cpumask_intersects(sys, &sd->span, w->cpus_ptr)) {
		d->notes |= CW_NOTE_AFFINITY;
		return w->prev_cpu;
	}
	/* p is taken off its CPU's averages below, so both have to be of one time */
	if (!(sd_flag & SD_BALANCE_FORK))
		sync_entity_load_avg(cpu_rq(sys, w->task_cpu), w->p);
	search->task = task_contribution(sys, w);
	search->wake_flags = w->wake_flags;
	search->numa_preferred_nid = w->p->numa_preferred_nid;

	/* each step goes down a level or to a smaller domain of another CPU */
	for (steps = unknown(0); level >= 0 && steps < 2 * CW_MAX_LEVELS && may_loop(); steps++) {
		struct cw_group *group = NULL;
		s32 new_cpu = -1;

		search->cpu = cpu;
		search->level = (u32)level;
		sd = cpu_domain(sys, cpu, (u32)level);
		if (sd && (sd->flags & sd_flag))
			group = group_at(sys, find_dst_group(sys, search, w->cpus_ptr, d));
		if (group)
			new_cpu = sched_balance_find_dst_group_cpu(sys, w->p, w->cpus_ptr, d, group);
		if (!sd || new_cpu < 0 || new_cpu == cpu) {
			level--;
			continue;
		}
		cpu = new_cpu;
		level = highest_level_below(sys, cpu, sd->weight, sd_flag);
		d->reason = CW_REASON_SLOW_PATH;
	}
	return cpu;
}

#endif /* CW_FORKEXEC_H */
