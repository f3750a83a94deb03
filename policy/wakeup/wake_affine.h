/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a wakeup searches around the waker's CPU or around the task's previous one
 * (kernel/sched/fair.c, 6.12; WA_EFFECTIVE_LOAD: 4.8).
 */
#ifndef CW_WAKE_AFFINE_H
#define CW_WAKE_AFFINE_H

#include "track/runnable_load.h"
#include "topology.h"
#include "types.h"
#include "util.h"

/* Flips older than this count half. */
#define WAKEE_FLIP_DECAY_NS 1000000000ULL

/* Note the wakee: how often it changes tells how many partners the waker has. */
static inline void record_wakee(const struct cw_wakeup *w)
{
	struct cw_task *waker = w->waker;

	if (w->now > waker->wakee_flip_decay_ts + WAKEE_FLIP_DECAY_NS) {
		waker->wakee_flips >>= 1;
		waker->wakee_flip_decay_ts = w->now;
	}
	if (waker->last_wakee != w->p->pid) {
		waker->last_wakee = w->p->pid;
		waker->wakee_flips++;
	}
}

/* Do the two have more partners than the waker's last-level cache has CPUs? */
static inline bool wake_wide(struct cw_sys *sys, const struct cw_wakeup *w)
{
	u32 many = w->waker->wakee_flips, few = w->p->wakee_flips;
	u32 factor = llc_of(sys, w->this_cpu)->weight;

	if (many < few) {
		many = w->p->wakee_flips;
		few = w->waker->wakee_flips;
	}
	return few >= factor && many >= few * factor;
}

/*
 * WAKE_CAP, the state before seed 004: is the task too big for the smaller of the waker's
 * and the previous CPU, where CPUs differ by an eighth or more of the biggest?
 */
static inline bool wake_cap(struct cw_sys *sys, const struct cw_wakeup *w)
{
	u32 this_cap = arch_scale_cpu_capacity(sys, w->this_cpu);
	u32 prev_cap = arch_scale_cpu_capacity(sys, w->prev_cpu);
	u32 min_cap = this_cap < prev_cap ? this_cap : prev_cap;

	if (!sched_feat(sys, CW_FEAT_WAKE_CAP) || !sys->asym_present)
		return false;
	if (min_cap + sys->max_cpu_capacity / 8 > sys->max_cpu_capacity)
		return false;
	sync_entity_load_avg(cpu_rq(sys, w->task_cpu), w->p);
	return !fits_capacity(sys, task_util_est(w->p), min_cap);
}

/* By current idleness: the waker's CPU, the previous one, or -1 if that does not decide. */
static inline s32 wake_affine_idle(struct cw_sys *sys, const struct cw_wakeup *w)
{
	s32 this_cpu = w->this_cpu, prev_cpu = w->prev_cpu;
	const struct cw_cpu *rq = cpu_rq(sys, this_cpu);

	/* An idle waker CPU means an interrupt, which must not draw tasks to another cache. */
	if (available_idle_cpu(sys, this_cpu) && cpus_share_cache(sys, this_cpu, prev_cpu))
		return available_idle_cpu(sys, prev_cpu) ? prev_cpu : this_cpu;
	/* A sync waker is about to sleep and leaves its CPU. */
	if ((w->wake_flags & WF_SYNC) && rq->nr_running - rq->cfs_nr_delayed == 1)
		return this_cpu;
	if (sched_feat(sys, CW_FEAT_WA_IDLE_PREV) && available_idle_cpu(sys, prev_cpu))
		return prev_cpu;
	return -1;
}

/*
 * By load: the waker's CPU if it is less loaded with the task than the
 * previous one without it, each weighed by the other's capacity, else -1.
 */
static inline s32 wake_affine_weight(struct cw_sys *sys, const struct cw_wakeup *w,
				     const struct cw_domain *sd)
{
	bool sync = w->wake_flags & WF_SYNC;
	s64 this_load = (s64)cpu_load(sys, w->this_cpu);
	s64 prev_load = (s64)cpu_load(sys, w->prev_cpu);
	s64 task_load = (s64)task_h_load(sys, w->p, w->now);

	if (sync) {
		s64 waker_load = (s64)task_h_load(sys, w->waker, w->now);

		if (waker_load > this_load)
			return w->this_cpu;
		this_load -= waker_load;
	}
	this_load += task_load;
	prev_load -= task_load;
	if (sched_feat(sys, CW_FEAT_WA_BIAS)) {
		this_load *= 100;
		prev_load *= 100 + (sd->imbalance_pct - 100) / 2;
	}
	this_load *= capacity_of(sys, w->prev_cpu);
	prev_load *= capacity_of(sys, w->this_cpu);
	/* A tie goes to the waker's CPU if the waker leaves it. */
	return this_load < prev_load + sync ? w->this_cpu : -1;
}

/*
 * WA_EFFECTIVE_LOAD, until 4.13: may the waker's CPU take the task, by the load of
 * queued tasks? It may if its load with the task, weighed by the other's capacity,
 * is at most the previous CPU's, with half of what imbalance_pct allows; and if
 * nothing is queued there besides a waker that leaves, the capacities decide.
 */
static inline bool wake_affine_effective_load(struct cw_sys *sys, const struct cw_wakeup *w,
					      const struct cw_domain *sd)
{
	s64 this_load = (s64)cpu_runnable_load(sys, w->this_cpu);
	s64 prev_load = (s64)cpu_runnable_load(sys, w->prev_cpu);
	s64 this_eff = 100 * (s64)capacity_of(sys, w->prev_cpu);
	s64 prev_eff = (100 + (s64)(sd->imbalance_pct - 100) / 2) * capacity_of(sys, w->this_cpu);

	if (w->wake_flags & WF_SYNC)
		this_load -= (s64)task_h_load(sys, w->waker, w->now);
	if (this_load > 0) {
		this_eff *= this_load + (s64)task_h_load(sys, w->p, w->now);
		prev_eff *= prev_load;
	}
	return this_eff <= prev_eff;
}

/* The CPU whose cache to search for an idle CPU: the waker's or the previous one. */
static inline s32 wake_affine(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d,
			      const struct cw_domain *sd)
{
	s32 target = -1;

	d->notes |= CW_NOTE_WAKE_AFFINE_TRIED;
	if (sched_feat(sys, CW_FEAT_WA_EFFECTIVE_LOAD)) {
		if (!wake_affine_effective_load(sys, w, sd))
			return w->prev_cpu;
		d->notes |= CW_NOTE_WA_WEIGHT;
		return w->this_cpu;
	}
	if (sched_feat(sys, CW_FEAT_WA_IDLE)) {
		target = wake_affine_idle(sys, w);
		if (target >= 0)
			d->notes |= CW_NOTE_WA_IDLE;
	}
	if (target < 0 && sched_feat(sys, CW_FEAT_WA_WEIGHT)) {
		target = wake_affine_weight(sys, w, sd);
		if (target >= 0)
			d->notes |= CW_NOTE_WA_WEIGHT;
	}
	return target == w->this_cpu ? w->this_cpu : w->prev_cpu;
}

#endif /* CW_WAKE_AFFINE_H */
