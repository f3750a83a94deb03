/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Placement by load, for fork and exec and for wakeups in a domain that asks
 * for it: from the top domain down, the idlest group, in it the idlest CPU
 * (kernel/sched/fair.c, 6.12; the group types since 5.5, what was before in idlest_load.h).
 */
#ifndef CW_FORKEXEC_H
#define CW_FORKEXEC_H

#include "group.h"
#include "idlest_load.h"
#include "mask.h"
#include "topology.h"
#include "types.h"
#include "util.h"

/* How busy `group` is without the task that `w` places. */
static inline void update_sg_wakeup_stats(struct cw_sys *sys, const struct cw_wakeup *w,
					  const struct cw_domain *sd, const struct cw_group *group,
					  struct cw_sg_stats *sgs)
{
	const struct cw_cpumask *cpus =
		sched_feat(sys, CW_FEAT_DST_GROUP_ALLOWED) ? w->cpus_ptr : &group->span;
	bool asym = sd->flags & SD_ASYM_CPUCAPACITY;
	s32 cpu;

	*sgs = (struct cw_sg_stats){
		.group_capacity = group->capacity,
		.group_weight = group->weight,
		/* until a CPU is found that the task fits */
		.group_misfit_task_load = asym,
	};
	for_each_cpu_and(sys, cpu, &group->span, cpus) {
		const struct cw_cpu *rq = cpu_rq(sys, cpu);
		u32 local = task_running_on_cpu(w, cpu);
		u32 nr_running = rq->nr_running - local;

		sgs->group_load += cpu_load_without(sys, cpu, w);
		sgs->group_util += cpu_util_without(sys, cpu, w);
		sgs->group_runnable += cpu_runnable_without(sys, cpu, w);
		sgs->sum_h_nr_running += rq->cfs_nr_running - local;
		sgs->sum_nr_running += nr_running;
		if (!nr_running && idle_cpu_without(sys, cpu, w))
			sgs->idle_cpus++;
		if (sgs->group_misfit_task_load && task_fits_cpu(sys, w->p, cpu))
			sgs->group_misfit_task_load = 0;
	}
	sgs->group_type = group_classify(sd->imbalance_pct, group, sgs);
	if (sgs->group_type == group_fully_busy || sgs->group_type == group_overloaded)
		sgs->avg_load = group_avg_load(sgs);
}

/* Is `group` idler than the idlest found so far? */
static inline bool update_pick_idlest(const struct cw_group *idlest,
				      const struct cw_sg_stats *idlest_sgs,
				      const struct cw_group *group, const struct cw_sg_stats *sgs)
{
	if (!idlest)
		return true;
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
static inline u32 allowed_imb_numa_nr(struct cw_sys *sys, const struct cw_wakeup *w,
				      const struct cw_domain *sd, const struct cw_group *local)
{
	u32 nr = 0;
	s32 cpu;

	for_each_cpu_and(sys, cpu, &local->span, w->cpus_ptr)
		if (++nr >= sd->imb_numa_nr)
			return sd->imb_numa_nr;
	return nr;
}

/* Has `idlest` more idle CPUs than `local`, and on another node enough more? */
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

/* Is `cpu` on the node that NUMA balancing wants the task on? */
static inline bool on_preferred_node(struct cw_sys *sys, const struct cw_wakeup *w, s32 cpu)
{
	return cpu_rq(sys, cpu)->node == w->p->numa_preferred_nid;
}

/* The group of domain `level` of `cpu` to move to, or NULL to stay in the CPU's own. */
static inline struct cw_group *
sched_balance_find_dst_group(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d,
			     s32 cpu, u32 level)
{
	struct cw_domain *sd = cpu_domain(sys, cpu, level);
	struct cw_group *idlest = NULL, *local = NULL, *group;
	struct cw_sg_stats idlest_sgs = { 0 }, local_sgs = { 0 }, sgs;
	u32 start, i, imb_numa_nr;

	if (!sd || level >= CW_MAX_LEVELS)
		return NULL;
	if (sched_feat(sys, CW_FEAT_IDLEST_BY_LOAD))
		return find_idlest_group_by_load(sys, w, d, cpu, level);
	start = sys->cpu_sd[cpu & CW_CPU_MASK][level].local_group;
	for (i = 0; (group = group_in_ring(sys, sd, start, i)); i++) {
		if (!cpumask_intersects(sys, &group->span, w->cpus_ptr))
			continue;
		d->groups_scanned++;
		d->cpus_scanned += group->weight;
		if (cpumask_test_cpu(cpu, &group->span)) {
			local = group;
			update_sg_wakeup_stats(sys, w, sd, group, &local_sgs);
			continue;
		}
		update_sg_wakeup_stats(sys, w, sd, group, &sgs);
		if (update_pick_idlest(idlest, &idlest_sgs, group, &sgs)) {
			idlest = group;
			idlest_sgs = sgs;
		}
	}
	/* the task may run in one of the two only */
	if (!idlest || !local)
		return idlest;
	if (local_sgs.group_type != idlest_sgs.group_type)
		return local_sgs.group_type > idlest_sgs.group_type ? idlest : NULL;

	switch (local_sgs.group_type) {
	case group_overloaded:
	case group_fully_busy:
		return idlest_load_wins(sd, &local_sgs, &idlest_sgs) ? idlest : NULL;
	case group_misfit_task:
		return idlest->max_capacity > local->max_capacity ? idlest : NULL;
	case group_has_spare:
		if ((sd->flags & SD_NUMA) && on_preferred_node(sys, w, cpu))
			return NULL;
		if ((sd->flags & SD_NUMA) &&
		    on_preferred_node(sys, w, cpumask_first(sys, &idlest->span)))
			return idlest;
		imb_numa_nr = allowed_imb_numa_nr(sys, w, sd, local);
		return idlest_spare_wins(sd, &local_sgs, &idlest_sgs, imb_numa_nr) ? idlest : NULL;
	default:
		return NULL;
	}
}

/* The load by which busy CPUs are compared. */
static inline u64 dst_cpu_load(struct cw_sys *sys, s32 cpu)
{
	return sched_feat(sys, CW_FEAT_IDLEST_BY_LOAD) ? cpu_runnable_load(sys, cpu)->load_avg :
							  cpu_load(cpu_rq(sys, cpu));
}

/* The idle CPU that wakes fastest, so far. */
struct cw_shallowest {
	u64 idle_stamp;
	u32 exit_latency_us;
	s32 cpu;
};

/*
 * Does the idle CPU of `rq` wake faster, or as fast and went idle later (its
 * cache is warmer)? Of one in no idle state only the time counts.
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
 * The CPU of `group` to start on: one that runs only SCHED_IDLE tasks, else the
 * idle one that wakes fastest, else the least loaded.
 */
static inline s32 sched_balance_find_dst_group_cpu(struct cw_sys *sys, const struct cw_wakeup *w,
						   struct cw_decision *d,
						   const struct cw_group *group, s32 this_cpu)
{
	struct cw_shallowest best = { .exit_latency_us = CW_NO_IDLE_STATE, .cpu = -1 };
	u64 min_load = ~0ULL;
	s32 least_loaded_cpu = this_cpu, cpu;

	if (group->weight == 1)
		return cpumask_first(sys, &group->span) & CW_CPU_MASK;

	for_each_cpu_and(sys, cpu, &group->span, w->cpus_ptr) {
		const struct cw_cpu *rq = cpu_rq(sys, cpu);

		d->cpus_scanned++;
		if (choose_sched_idle_cpu(sys, cpu, w->p))
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
static inline s32 highest_level_below(struct cw_sys *sys, s32 cpu, u32 weight, u32 sd_flag)
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

	/* each step goes down a level or to a smaller domain of another CPU */
	for (steps = 0; level >= 0 && steps < 2 * CW_MAX_LEVELS; steps++) {
		struct cw_group *group = NULL;
		s32 new_cpu = cpu;

		sd = cpu_domain(sys, cpu, (u32)level);
		if (sd && (sd->flags & sd_flag))
			group = sched_balance_find_dst_group(sys, w, d, cpu, (u32)level);
		if (group)
			new_cpu = sched_balance_find_dst_group_cpu(sys, w, d, group, cpu);
		if (!sd || new_cpu == cpu) {
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
