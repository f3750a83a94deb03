/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Earliest eligible virtual deadline first: the fair class's queue since 6.6.
 *
 * An entity requests one slice at a time. Its virtual deadline is the vruntime at which
 * that request is served. Of the eligible entities (lag.h), the one with the earliest
 * deadline runs. The running entity is protected for a while, so that not every wakeup
 * takes the CPU from it (RUN_TO_PARITY): up to its deadline, or for less time if others
 * request shorter slices. (kernel/sched/fair.c)
 */
#ifndef CW_EEVDF_H
#define CW_EEVDF_H

#include "queue/lag.h"
#include "queue/reasons.h"

/* The default size of a request, ns. */
static inline u64 base_slice(const struct cw_sys *sys)
{
	return (u64)tunable(sys, CW_TUNE_base_slice_ns) * sysctl_factor(sys);
}

static inline void set_base_slice(const struct cw_sys *sys, struct cw_entity *se)
{
	if (!(se->flags & CW_SE_CUSTOM_SLICE))
		se->slice = base_slice(sys);
}

/* Is `a` due before `b`? */
static inline bool entity_before(s64 a, s64 b)
{
	return a - b < 0;
}

/*
 * Places an entity that comes to the queue and is not in its sums yet: at V minus the lag
 * with which it left its last queue. Its own weight will move V, so the lag is scaled up to
 * have its old value once the entity is in. `initial`: the entity is new, and begins with
 * half a request, because the others are halfway through theirs on average.
 */
static inline void place_eevdf(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			       struct cw_entity *se, bool initial)
{
	s64 weight, sum = queue_sum(cfs_rq, &weight), lag = 0;
	u64 slice;

	set_base_slice(sys, se);
	se->vruntime = cfs_rq->zero_vruntime;
	if (weight) {
		if (sched_feat(sys, CW_FEAT_PLACE_LAG) && se->vlag)
			lag = se->vlag + div_trunc(se->vlag * avg_vruntime_weight(cfs_rq, se->weight), weight);
		se->vruntime += div_floor(sum, weight) - lag;
	}
	if (sched_feat(sys, CW_FEAT_PLACE_REL_DEADLINE) && se->flags & CW_SE_REL_DEADLINE) {
		se->deadline += se->vruntime;
		se->flags &= ~(u32)CW_SE_REL_DEADLINE;
		return;
	}
	slice = calc_delta_fair(sys, cfs_rq, se->slice, se);
	if (initial && sched_feat(sys, CW_FEAT_PLACE_DEADLINE_INITIAL))
		slice /= 2;
	se->deadline = se->vruntime + (s64)slice;
}

/* If the request of the running entity is served, starts a new one; returns whether it was. */
static inline bool update_deadline(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	struct cw_entity *curr = &cfs_rq->curr;

	if (entity_before(curr->vruntime, curr->deadline))
		return false;
	set_base_slice(sys, curr);
	curr->deadline = curr->vruntime + (s64)calc_delta_fair(sys, cfs_rq, curr->slice, curr);
	return true;
}

static inline s64 min_vruntime(s64 a, s64 b)
{
	return entity_before(a, b) ? a : b;
}

/* The first vruntime at which the running entity would no longer be eligible. */
static inline s64 ineligible_vruntime(const struct cw_fair_rq *cfs_rq)
{
	s64 v = 0;

	if (cfs_rq->sum_weight)
		v = div_floor(cfs_rq->sum_w_vruntime, cfs_rq->sum_weight);
	return cfs_rq->zero_vruntime + v + 1;
}

/* The running entity has just been picked: it is protected until its request, or a shorter one, would be served. */
static inline void set_protect_slice(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	struct cw_entity *curr = &cfs_rq->curr;
	u64 slice = (u64)tunable(sys, CW_TUNE_base_slice_ns);
	s64 until;

	curr->vprot = curr->deadline;
	if (!sched_feat(sys, CW_FEAT_PROTECT_SLICE))
		return;
	if (sched_feat(sys, CW_FEAT_RUN_TO_PARITY))
		slice = cfs_rq_min_slice(cfs_rq);
	if (slice >= curr->slice)
		return;
	if (sched_feat(sys, CW_FEAT_WAKEUP_PROTECT) && sched_feat(sys, CW_FEAT_PREEMPT_SHORT))
		until = ineligible_vruntime(cfs_rq);
	else
		until = curr->vruntime + (s64)calc_delta_fair(sys, cfs_rq, slice, curr);
	curr->vprot = min_vruntime(curr->vprot, until);
}

/* An entity came that does not preempt: the running entity's protection is limited to the shortest request. */
static inline void update_protect_slice(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	struct cw_entity *curr = &cfs_rq->curr;
	s64 from = curr->vruntime;

	if (sched_feat(sys, CW_FEAT_WAKEUP_PROTECT))
		from = min_vruntime(from, avg_vruntime(cfs_rq));
	from += (s64)calc_delta_fair(sys, cfs_rq, cfs_rq_min_slice(cfs_rq), curr);
	curr->vprot = min_vruntime(curr->vprot, from);
}

static inline bool protect_slice(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq)
{
	const struct cw_entity *curr = &cfs_rq->curr;

	if (!sched_feat(sys, CW_FEAT_PROTECT_SLICE))
		return curr->vprot == curr->deadline;
	return entity_before(curr->vruntime, curr->vprot);
}

static inline void cancel_protect_slice(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	struct cw_entity *curr = &cfs_rq->curr;

	if (!protect_slice(sys, cfs_rq))
		return;
	curr->vprot = sched_feat(sys, CW_FEAT_PROTECT_SLICE) ? curr->vruntime : curr->deadline + 1;
}

/* The running entity has been charged: is its turn over if others wait? `served`: its request is served. */
static inline bool turn_is_over(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq, bool served)
{
	if (served)
		return true;
	if (sched_feat(sys, CW_FEAT_PROTECT_SLICE))
		return !protect_slice(sys, cfs_rq);
	return sched_feat(sys, CW_FEAT_PREEMPT_SHORT) && !protect_slice(sys, cfs_rq) &&
	       !entity_eligible(cfs_rq, &cfs_rq->curr);
}

/*
 * At the start of a pick: does the running entity go on, whatever waits? With `protect`
 * it does so until its protection ends.
 */
static inline bool pick_protected(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				  bool protect)
{
	if (!curr_competes(cfs_rq) || !entity_eligible(cfs_rq, &cfs_rq->curr))
		return false;
	if (!sched_feat(sys, CW_FEAT_PROTECT_SLICE))
		protect = sched_feat(sys, CW_FEAT_RUN_TO_PARITY);
	return protect && protect_slice(sys, cfs_rq);
}

/* The state of a pick that looks at waiting entities one by one, in order of their deadlines. */
enum cw_pick {
	CW_PICK_PASS, /* not this one */
	CW_PICK_TAKE,
	CW_PICK_CURR, /* the running entity is due before it and before all later ones */
};

static inline enum cw_pick pick_step(const struct cw_fair_rq *cfs_rq, bool curr_eligible,
				     s64 vruntime, s64 deadline)
{
	if (curr_eligible && entity_before(cfs_rq->curr.deadline, deadline))
		return CW_PICK_CURR;
	return vruntime_eligible(cfs_rq, vruntime) ? CW_PICK_TAKE : CW_PICK_PASS;
}

/* The buddy, if it may run: its index among the waiting entities, -1 for the running one; otherwise -2. */
static inline s32 pick_buddy(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			     const struct cw_waiting *waiting)
{
	u32 i;

	if (cfs_rq->next == CW_NO_ENTITY || !sched_feat(sys, CW_FEAT_PICK_BUDDY))
		return -2;
	if (curr_competes(cfs_rq) && cfs_rq->curr.id == cfs_rq->next)
		return entity_eligible(cfs_rq, &cfs_rq->curr) ? -1 : -2;
	for (i = 0; i < cfs_rq->nr_waiting && may_loop(); i++)
		if (waiting[i].id == cfs_rq->next)
			return vruntime_eligible(cfs_rq, waiting[i].vruntime) ? (s32)i : -2;
	return -2;
}

/*
 * The entity to run: the index of a waiting entity, in order of their deadlines, or -1 for
 * the running one. `protect`: as in pick_protected().
 */
static inline s32 pick_eevdf(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			     const struct cw_waiting *waiting, bool protect, u32 *reason)
{
	bool curr_eligible = curr_competes(cfs_rq) && entity_eligible(cfs_rq, &cfs_rq->curr);
	u32 i;

	*reason = CW_QUEUE_PICK_PROTECTED;
	if (pick_protected(sys, cfs_rq, protect))
		return -1;
	*reason = CW_QUEUE_PICK_DEADLINE;
	for (i = 0; i < cfs_rq->nr_waiting && may_loop(); i++) {
		enum cw_pick pick = pick_step(cfs_rq, curr_eligible, waiting[i].vruntime,
					      waiting[i].order);

		if (pick == CW_PICK_TAKE)
			return (s32)i;
		if (pick == CW_PICK_CURR)
			break;
	}
	*reason = CW_QUEUE_PICK_CURR;
	return -1;
}

/*
 * sched_yield: the running entity gives up the rest of its request, and with YIELD_FORFEITS
 * its time, too, unless it has had more than its share.
 */
static inline void yield_eevdf(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	struct cw_entity *curr = &cfs_rq->curr;

	if (!sched_feat(sys, CW_FEAT_YIELD_FORFEITS)) {
		curr->deadline += (s64)calc_delta_fair(sys, cfs_rq, curr->slice, curr);
	} else if (entity_eligible(cfs_rq, curr)) {
		curr->vruntime = curr->deadline;
		update_deadline(sys, cfs_rq);
	}
}

/* Does an entity that goes to sleep stay in the queue until its lag is no longer negative? */
static inline bool delays_dequeue(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				  const struct cw_entity *se)
{
	return sched_feat(sys, CW_FEAT_DELAY_DEQUEUE) && !entity_eligible(cfs_rq, se);
}

/*
 * The weight of an entity of the queue, or between two, changes: its lag and request stay what they are in real time,
 * and so does what is left of the running one's protection. With REWEIGHT_PLACES one of the queue is to be placed
 * afterwards, and keeps no protection.
 */
static inline void reweight_eevdf(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				  struct cw_entity *se, u32 weight)
{
	s64 v = avg_vruntime(cfs_rq), lag;
	bool is_protected = sched_feat(sys, CW_FEAT_PROTECT_SLICE) && se == &cfs_rq->curr &&
			    protect_slice(sys, cfs_rq);

	if (se->flags & CW_SE_ON_RQ && sched_feat(sys, CW_FEAT_REWEIGHT_PLACES)) {
		se->vlag = div_trunc(entity_lag(sys, cfs_rq, se) * se->weight, weight);
		se->vprot = se->vlag; /* they are one field */
		se->deadline = div_trunc((se->deadline - se->vruntime) * se->weight, weight);
		se->flags |= CW_SE_REL_DEADLINE;
	} else if (se->flags & CW_SE_ON_RQ) {
		lag = div_trunc(entity_lag(sys, cfs_rq, se) * se->weight, weight);
		if (v != se->vruntime)
			se->vruntime = v - lag;
		se->deadline = v + div_trunc((se->deadline - v) * se->weight, weight);
		if (is_protected)
			se->vprot = v + div_trunc((se->vprot - v) * se->weight, weight);
	} else {
		se->vlag = div_trunc(se->vlag * se->weight, weight);
		if (se->flags & CW_SE_REL_DEADLINE && sched_feat(sys, CW_FEAT_REWEIGHT_DEADLINE))
			se->deadline = div_trunc(se->deadline * se->weight, weight);
	}
	se->weight = weight;
}

#endif /* CW_EEVDF_H */
