/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sums over the tasks of each queue: their number, weight and estimated utilisation, and
 * with SCHED_CACHE the last-level caches that they prefer.
 *
 * A task subtracts exactly what it added (struct cw_queued), whatever has happened to it
 * since. The first CPU that gets to it adds it, and the first one subtracts it: on a
 * running kernel, a CPU that moves a task to another one's queue does so without the lock
 * of that queue, and the task may run there, or be moved on, before it is counted.
 */
#ifndef CW_ACCOUNT_H
#define CW_ACCOUNT_H

#include "atomic.h"
#include "topology.h"
#include "track/pelt.h"

/* Counts the task, which is queued and not delayed, among those that prefer their CPU's LLC; -1 ends that. */
static inline void account_pref_llc_running(struct cw_sys *sys, const struct cw_task *p, s32 n)
{
	struct cw_cpu *rq = cpu_rq(sys, p->queued.cpu);

	if (p->queued.llc == rq->llc)
		cw_add(&rq->nr_pref_llc_running, n);
}

/*
 * SCHED_CACHE: counts the task, if it is queued, for the LLC that it prefers; -1 subtracts
 * it again.
 */
static inline void account_llc(struct cw_sys *sys, struct cw_task *p, s32 n)
{
	if (p->queued.cpu < 0)
		return;
	if (n > 0)
		p->queued.llc = p->flags & CW_TASK_PREFERRED_LLC ? p->preferred_llc : CW_NONE;
	if (p->queued.llc >= CW_MAX_PREF_LLCS)
		return;
	cw_add(&sys->nr_pref_llc[p->queued.llc][p->queued.cpu & CW_CPU_MASK], n);
	if (!(p->flags & CW_TASK_DELAYED))
		account_pref_llc_running(sys, p, n);
}

/* SCHED_CACHE: the task is counted for the LLC of `cache_cpu` from now on, or for none if that is -1. */
static inline void set_preferred_llc(struct cw_sys *sys, struct cw_task *p, s32 cache_cpu)
{
	u32 llc = cache_cpu < 0 ? CW_NONE : cpu_rq(sys, cache_cpu)->llc;
	u32 counted = p->flags & CW_TASK_PREFERRED_LLC ? p->preferred_llc : CW_NONE;

	if (llc == counted)
		return;
	account_llc(sys, p, -1);
	p->preferred_llc = llc;
	if (llc == CW_NONE)
		p->flags &= ~(u32)CW_TASK_PREFERRED_LLC;
	else
		p->flags |= CW_TASK_PREFERRED_LLC;
	account_llc(sys, p, 1);
}

/* SCHED_CACHE: how many tasks of each CPU prefer the LLC of `dst`, which is to balance its domain at `level`. */
CW_GLOBAL bool note_pref_dst_llc(struct cw_sys *sys CW_NONNULL, s32 dst, u32 level)
{
	const struct cw_domain *sd = cpu_domain(sys, dst, level);
	u32 llc = cpu_rq(sys, dst)->llc;
	s32 cpu;

	if (!sched_cache_enabled(sys) || !sd || sd->flags & SD_SHARE_LLC ||
	    llc >= CW_MAX_PREF_LLCS)
		return false;
	for_each_cpu(sys, cpu, &sd->span)
		cpu_rq(sys, cpu)->nr_pref_dst_llc = sys->nr_pref_llc[llc][cpu & CW_CPU_MASK];
	return true;
}

/* The task comes to the queue of `cpu`; a sleeper whose dequeue is delayed only changes queues. */
static inline void account_entity_enqueue(struct cw_sys *sys, struct cw_task *p, s32 cpu)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);
	struct cw_queued *q = &p->queued;
	bool delayed = p->flags & CW_TASK_DELAYED;

	q->weight = p->weight;
	q->util_est = !delayed && sched_feat(sys, CW_FEAT_UTIL_EST) ? task_util_est_raw(p) : 0;
	q->sched_idle = !!(p->flags & CW_TASK_SCHED_IDLE);
	if (cw_cmpxchg(&q->cpu, -1, cpu) >= 0)
		return;
	cw_add(&rq->load_weight, q->weight);
	cw_add(&rq->cfs_nr_running, 1);
	if (delayed)
		cw_add(&rq->cfs_nr_delayed, 1);
	if (q->util_est)
		cw_add(&rq->avg.util_est, q->util_est);
	if (q->sched_idle)
		cw_add(&rq->idle_nr_running, 1);
	if (cw_add(&rq->nr_running, 1) == 1 && !sys->overloaded)
		sys->overloaded = 1;
	account_llc(sys, p, 1);
}

/* The task leaves its queue, if it is in one. */
static inline void account_entity_dequeue(struct cw_sys *sys, struct cw_task *p)
{
	const struct cw_queued *q = &p->queued;
	struct cw_cpu *rq;
	s32 cpu;

	account_llc(sys, p, -1);
	cpu = cw_xchg(&p->queued.cpu, -1);
	if (cpu < 0)
		return;
	rq = cpu_rq(sys, cpu);
	cw_add(&rq->load_weight, -(u64)q->weight);
	cw_add(&rq->cfs_nr_running, -1);
	if (p->flags & CW_TASK_DELAYED)
		cw_add(&rq->cfs_nr_delayed, -1);
	if (q->util_est)
		cw_add(&rq->avg.util_est, -q->util_est);
	if (q->sched_idle)
		cw_add(&rq->idle_nr_running, -1);
	cw_add(&rq->nr_running, -1);
}

/* The task, which is queued, sleeps: it stays, but only its weight counts from now on. */
static inline void set_delayed(struct cw_sys *sys, struct cw_task *p)
{
	struct cw_cpu *rq = cpu_rq(sys, p->queued.cpu);

	p->flags |= CW_TASK_DELAYED;
	cw_add(&rq->cfs_nr_delayed, 1);
	cw_add(&rq->avg.util_est, -p->queued.util_est);
	p->queued.util_est = 0;
	account_pref_llc_running(sys, p, -1);
}

/* It has been woken before it left the queue. */
static inline void clear_delayed(struct cw_sys *sys, struct cw_task *p)
{
	struct cw_cpu *rq = cpu_rq(sys, p->queued.cpu);

	p->flags &= ~(u32)CW_TASK_DELAYED;
	cw_add(&rq->cfs_nr_delayed, -1);
	if (sched_feat(sys, CW_FEAT_UTIL_EST))
		p->queued.util_est = task_util_est_raw(p);
	cw_add(&rq->avg.util_est, p->queued.util_est);
	account_pref_llc_running(sys, p, 1);
}

#endif /* CW_ACCOUNT_H */
