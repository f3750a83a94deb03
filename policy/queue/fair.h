/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fair class's queue, for either discipline: what happens at each step of an entity's
 * life. The host keeps a store of the waiting entities, and their sums by
 * __enqueue_entity() and __dequeue_entity(). It calls:
 *
 *	task_fork_fair()	for a new task, on its parent's CPU, before it is placed
 *	migrate_task_rq_fair()	when a sleeper is about to come to another queue
 *	enqueue_entity()	when an entity comes; it then enters the sums and the store
 *	dequeue_entity()	when an entity leaves or goes to sleep; it then leaves the sums
 *				and the store, unless the function returns false: its dequeue
 *				is delayed
 *	set_next_entity()	when an entity has left them to run
 *	put_prev_entity()	when the running entity is switched out; with CW_SE_ON_RQ it
 *				returns to them
 *	update_curr()		before anything else at a moment: charges the running entity
 *	entity_tick()		at the tick
 *	wakeup_preempt_fair()	after enqueue_entity(): does the entity run at once?
 *	pick_next_entity()	for the entity to run next
 *	yield_task_fair()	for sched_yield
 */
#ifndef CW_FAIR_H
#define CW_FAIR_H

#include "queue/buddies.h"
#include "queue/cfs.h"
#include "queue/eevdf.h"

/* Why an entity comes to a queue. */
enum cw_enqueue {
	CW_ENQUEUE_WAKEUP = 1 << 0, /* it slept */
	CW_ENQUEUE_INITIAL = 1 << 1, /* it is new */
};

static inline void cfs_rq_init(struct cw_fair_rq *cfs_rq)
{
	*cfs_rq = (struct cw_fair_rq){ .next = CW_NO_ENTITY, .last = CW_NO_ENTITY, .skip = CW_NO_ENTITY };
	cfs_rq->curr.id = CW_NO_ENTITY;
}

/* Charges the running entity for `delta` ns, until `now`. */
CW_GLOBAL bool charge_delta(const struct cw_sys *sys CW_NONNULL, struct cw_fair_rq *cfs_rq CW_NONNULL,
			    u64 delta, u64 now)
{
	struct cw_entity *curr = &cfs_rq->curr;
	bool served;

	curr->exec_start = now;
	curr->sum_exec_runtime += delta;
	curr->vruntime += (s64)calc_delta_fair(sys, cfs_rq, delta, curr);
	if (!sched_feat(sys, CW_FEAT_EEVDF)) {
		update_min_vruntime(cfs_rq);
		return false;
	}
	served = update_deadline(sys, cfs_rq);
	return turn_is_over(sys, cfs_rq, served);
}

/*
 * Charges the running entity for its time until `now`. True if its turn is over in case others wait.
 * Of the charges in one switch, only the first has anything to do.
 */
static inline bool charge_curr(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, u64 now)
{
	s64 delta = (s64)(now - cfs_rq->curr.exec_start);

	return cfs_rq->curr.weight && delta > 0 && charge_delta(sys, cfs_rq, (u64)delta, now);
}

/*
 * The same. True if its turn is over, and it is not the only one of the queue; one that is leaving
 * it does not count.
 */
static inline bool update_curr(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, u64 now)
{
	if (!charge_curr(sys, cfs_rq, now) || nr_queued(cfs_rq) == 1)
		return false;
	clear_buddies(cfs_rq, cfs_rq->curr.id);
	return true;
}

static inline void task_fork_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				  struct cw_entity *se)
{
	if (sched_feat(sys, CW_FEAT_EEVDF))
		return;
	place_child(sys, cfs_rq, se);
	leave_min_vruntime(cfs_rq, se);
}

static inline void migrate_task_rq_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
					struct cw_entity *se)
{
	if (!sched_feat(sys, CW_FEAT_EEVDF))
		leave_min_vruntime(cfs_rq, se);
}

/* Places an entity that comes to the queue; `why`: enum cw_enqueue. */
static inline void enqueue_entity(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				  struct cw_entity *se, u32 why)
{
	if (sched_feat(sys, CW_FEAT_EEVDF)) {
		place_eevdf(sys, cfs_rq, se, why & CW_ENQUEUE_INITIAL);
	} else {
		join_min_vruntime(cfs_rq, se);
		if (why & CW_ENQUEUE_WAKEUP)
			place_sleeper(sys, cfs_rq, se);
	}
	se->flags |= CW_SE_ON_RQ;
}

/* Subtracts a waiting entity from the sums. */
static inline void dequeue_waiting(struct cw_fair_rq *cfs_rq, const struct cw_entity *se)
{
	__dequeue_entity(cfs_rq, se->vruntime - cfs_rq->zero_vruntime, se->weight);
}

/*
 * An entity leaves the queue: the running one (`se` is cw_fair_rq.curr), or a waiting one,
 * which stays in the sums until the host subtracts it. `sleep`: its task sleeps or ends.
 * Returns false if it stays queued, asleep, until its lag is no longer negative; `may_delay`
 * allows that.
 */
static inline bool dequeue_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				  struct cw_entity *se, bool sleep, bool may_delay)
{
	clear_buddies(cfs_rq, se->id);
	if (!sched_feat(sys, CW_FEAT_EEVDF)) {
		se->flags &= ~(u32)CW_SE_ON_RQ;
		if (!sleep)
			leave_min_vruntime(cfs_rq, se);
		else if (se == &cfs_rq->curr)
			update_min_vruntime(cfs_rq);
		return true;
	}
	if (sleep && may_delay && !(se->flags & CW_SE_DELAYED) && delays_dequeue(sys, cfs_rq, se)) {
		if (sched_feat(sys, CW_FEAT_DELAY_KEEPS_LAG))
			update_entity_lag(sys, cfs_rq, se);
		se->flags |= CW_SE_DELAYED;
		return false;
	}
	update_entity_lag(sys, cfs_rq, se);
	if (sleep && se->flags & CW_SE_DELAYED) {
		se->flags &= ~(u32)CW_SE_DELAYED;
		if (se->vlag > 0 && sched_feat(sys, CW_FEAT_DELAY_ZERO))
			se->vlag = 0;
	}
	if (!sleep && sched_feat(sys, CW_FEAT_PLACE_REL_DEADLINE)) {
		se->deadline -= se->vruntime;
		se->flags |= CW_SE_REL_DEADLINE;
	}
	se->flags &= ~(u32)CW_SE_ON_RQ;
	return true;
}

/*
 * A sleeper whose dequeue was delayed is woken where it is queued. Returns true if it has been
 * placed again and has left the sums for that; the host then removes it from its store and
 * queues it again.
 */
static inline bool requeue_delayed_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
					  struct cw_entity *se)
{
	bool zero = sched_feat(sys, CW_FEAT_DELAY_ZERO), moves;

	update_entity_lag(sys, cfs_rq, se);
	se->flags &= ~(u32)CW_SE_DELAYED;
	if (sched_feat(sys, CW_FEAT_DELAY_KEEPS_LAG))
		moves = avg_vruntime(cfs_rq) - se->vlag != se->vruntime;
	else
		moves = zero && se->vlag > 0;
	if (!moves)
		return false;
	dequeue_waiting(cfs_rq, se);
	if (zero && se->vlag > 0)
		se->vlag = 0;
	place_eevdf(sys, cfs_rq, se, false);
	return true;
}

/*
 * The weight of an entity changes; the running entity has been charged until now. A waiting
 * entity leaves the sums and returns to them. The host then moves it in its store, because its
 * deadline has changed.
 */
static inline void reweight_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				   struct cw_entity *se, u32 weight)
{
	bool queued = se->flags & CW_SE_ON_RQ, waits = queued && se != &cfs_rq->curr;
	bool eevdf = sched_feat(sys, CW_FEAT_EEVDF);
	struct cw_entity old = *se;

	if (eevdf)
		reweight_eevdf(sys, cfs_rq, se, weight);
	else
		se->weight = weight;
	if (waits)
		dequeue_waiting(cfs_rq, &old);
	if (queued && eevdf && sched_feat(sys, CW_FEAT_REWEIGHT_PLACES))
		place_eevdf(sys, cfs_rq, se, false);
	if (waits)
		__enqueue_entity(cfs_rq, se);
}

/* An entity that has left the sums runs from `now` on. */
static inline void set_next_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				   const struct cw_entity *se, u64 now)
{
	struct cw_entity *curr = &cfs_rq->curr;

	clear_buddies(cfs_rq, se->id);
	*curr = *se;
	curr->exec_start = now;
	curr->prev_sum_exec_runtime = curr->sum_exec_runtime;
	if (sched_feat(sys, CW_FEAT_EEVDF))
		set_protect_slice(sys, cfs_rq);
}

/* The running entity, charged until now, is switched out and copied to `se`. If it is queued, it waits from now on. */
static inline void put_prev_entity(struct cw_fair_rq *cfs_rq, struct cw_entity *se)
{
	*se = cfs_rq->curr;
	cfs_rq->curr.weight = 0;
	cfs_rq->curr.id = CW_NO_ENTITY;
}

/* At a tick, once update_curr() has charged the running entity: does CFS end its turn? */
static inline bool entity_tick(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	return !sched_feat(sys, CW_FEAT_EEVDF) && cfs_rq->nr_waiting && curr_competes(cfs_rq) &&
	       check_preempt_tick(sys, cfs_rq);
}

/* sched_yield of the running entity, charged until now. */
static inline void yield_task_fair(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	s32 id = cfs_rq->curr.id;

	if (!cfs_rq->nr_waiting)
		return;
	clear_buddies(cfs_rq, id);
	if (sched_feat(sys, CW_FEAT_EEVDF))
		yield_eevdf(sys, cfs_rq);
	else
		cfs_rq->skip = id;
}

/*
 * Which entity runs next: the index of one of `waiting`, or -1 for the running entity, or
 * if nothing is queued. If the dequeue of the picked entity is delayed, it is due now: the
 * host completes it and asks again.
 */
static inline s32 pick_next_entity(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				   const struct cw_waiting *waiting, struct cw_queue_decision *d)
{
	d->event = CW_QUEUE_PICK;
	d->curr = cfs_rq->curr.id;
	d->preempts = 0;
	if (nr_queued(cfs_rq) <= 1) {
		d->reason = CW_QUEUE_PICK_ONLY;
		d->picked = cfs_rq->nr_waiting ? 0 : -1;
	} else if (!sched_feat(sys, CW_FEAT_EEVDF)) {
		d->picked = pick_cfs(sys, cfs_rq, waiting, &d->reason);
	} else {
		d->reason = CW_QUEUE_PICK_BUDDY;
		d->picked = pick_buddy(sys, cfs_rq, waiting);
		if (d->picked < -1)
			d->picked = pick_eevdf(sys, cfs_rq, waiting, true, &d->reason);
	}
	d->id = d->picked < 0 ? d->curr : waiting[d->picked].id;
	return d->picked;
}

#endif /* CW_FAIR_H */
