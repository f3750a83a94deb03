/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether an entity that has just come to a queue runs at once, in place of the running one
 * (check_preempt_wakeup(), check_preempt_wakeup_fair() since 6.8, wakeup_preempt_fair() in 7.3).
 */
#ifndef CW_PREEMPT_H
#define CW_PREEMPT_H

#include "queue/fair.h"

/* Is this an answer that preempts? */
static inline bool preempts(u32 reason)
{
	return reason == CW_QUEUE_PREEMPT_IDLE_CURR || reason == CW_QUEUE_PREEMPT_PICKED ||
	       reason == CW_QUEUE_PREEMPT_SHORT || reason == CW_QUEUE_PREEMPT_BEHIND ||
	       reason == CW_QUEUE_PREEMPT_SYNC;
}

/* The decision by the policies of the two entities; CW_QUEUE_NONE if these do not decide. */
static inline u32 preempt_by_policy(const struct cw_fair_rq *cfs_rq, const struct cw_entity *pse)
{
	bool curr_idle = cfs_rq->curr.flags & CW_SE_IDLE, idle = pse->flags & CW_SE_IDLE;

	if (curr_idle && !idle)
		return CW_QUEUE_PREEMPT_IDLE_CURR;
	/* two idle groups compete like any others */
	if (idle && !(curr_idle && pse->flags & CW_SE_GROUP))
		return CW_QUEUE_PREEMPT_IDLE;
	return pse->flags & CW_SE_BATCH ? CW_QUEUE_PREEMPT_BATCH : CW_QUEUE_NONE;
}

static inline bool asks_for_less(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				 const struct cw_entity *pse)
{
	return sched_feat(sys, CW_FEAT_PREEMPT_SHORT) && pse->slice < cfs_rq->curr.slice;
}

static inline u32 preempt_cfs(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
			      const struct cw_entity *pse, u32 wake_flags, bool pending)
{
	struct cw_entity *curr = &cfs_rq->curr;
	bool crowded = nr_queued(cfs_rq) >= sched_nr_latency(sys);
	u32 reason;

	if (crowded && !(wake_flags & WF_FORK) && sched_feat(sys, CW_FEAT_NEXT_BUDDY))
		set_next_buddy(cfs_rq, pse);
	if (pending)
		return CW_QUEUE_PREEMPT_PENDING;
	reason = preempt_by_policy(cfs_rq, pse);
	if (reason == CW_QUEUE_NONE && !sched_feat(sys, CW_FEAT_WAKEUP_PREEMPTION))
		reason = CW_QUEUE_PREEMPT_OFF;
	if (reason == CW_QUEUE_NONE) {
		bool behind = wakeup_preempt_entity(sys, cfs_rq, curr->vruntime, pse->vruntime,
						    pse->weight) > 0;

		reason = behind ? CW_QUEUE_PREEMPT_BEHIND : CW_QUEUE_PREEMPT_CLOSE;
		if (behind)
			set_next_buddy(cfs_rq, pse);
	}
	if (preempts(reason) && crowded && !(curr->flags & (CW_SE_IDLE | CW_SE_GROUP)) &&
	    sched_feat(sys, CW_FEAT_LAST_BUDDY))
		cfs_rq->last = curr->id;
	return reason;
}

/* Without WAKEUP_PICK: the rules that decide before a pick; CW_QUEUE_NONE: the pick decides. */
static inline u32 preempt_before_pick(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				      const struct cw_entity *pse, u32 wake_flags, bool pending)
{
	u32 reason;

	if (sched_feat(sys, CW_FEAT_NEXT_BUDDY) && !(wake_flags & WF_FORK) &&
	    !(pse->flags & CW_SE_DELAYED))
		set_next_buddy(cfs_rq, pse);
	if (pending)
		return CW_QUEUE_PREEMPT_PENDING;
	if (!sched_feat(sys, CW_FEAT_WAKEUP_PREEMPTION))
		return CW_QUEUE_PREEMPT_OFF;
	reason = preempt_by_policy(cfs_rq, pse);
	if (reason == CW_QUEUE_PREEMPT_IDLE_CURR)
		cancel_protect_slice(sys, cfs_rq);
	return reason;
}

static inline u32 preempt_eevdf(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				const struct cw_entity *pse, const struct cw_waiting *waiting,
				u32 wake_flags, bool pending)
{
	u32 reason = preempt_before_pick(sys, cfs_rq, pse, wake_flags, pending), ignored;
	bool is_short = asks_for_less(sys, cfs_rq, pse), protects = sched_feat(sys, CW_FEAT_PROTECT_SLICE);
	s32 picked;

	if (reason != CW_QUEUE_NONE)
		return reason;
	if (!protects && is_short && entity_eligible(cfs_rq, pse) &&
	    (entity_before(pse->deadline, cfs_rq->curr.deadline) ||
	     !entity_eligible(cfs_rq, &cfs_rq->curr)))
		cancel_protect_slice(sys, cfs_rq);
	picked = pick_eevdf(sys, cfs_rq, waiting, !is_short, &ignored);
	if (picked >= 0 && waiting[picked].id == pse->id) {
		if (protects && is_short)
			cancel_protect_slice(sys, cfs_rq);
		return CW_QUEUE_PREEMPT_PICKED;
	}
	if (protects && is_short && sched_feat(sys, CW_FEAT_RUN_TO_PARITY))
		update_protect_slice(sys, cfs_rq);
	return CW_QUEUE_PREEMPT_NOT_PICKED;
}

/* If the waker is about to sleep, the wakee preempts it only after it has run long enough for the caches to be stale. */
static inline u32 preempt_sync(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			       const struct cw_entity *pse, u64 now)
{
	s64 ran = (s64)(now - cfs_rq->curr.exec_start);

	if (entity_before(pse->deadline, cfs_rq->curr.deadline) &&
	    ran >= tunable(sys, CW_TUNE_migration_cost_ns))
		return CW_QUEUE_PREEMPT_SYNC;
	return CW_QUEUE_PREEMPT_NO_SYNC;
}

/* With WAKEUP_PICK: the rules that decide before a pick; CW_QUEUE_NONE: the pick decides. */
static inline u32 preempt_before_wakeup_pick(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
					     const struct cw_entity *pse, u32 wake_flags,
					     bool pending, u64 now)
{
	u32 reason;

	if (pending &&
	    !(sched_feat(sys, CW_FEAT_WAKEUP_PROTECT) && sched_feat(sys, CW_FEAT_PREEMPT_SHORT)))
		return CW_QUEUE_PREEMPT_PENDING;
	if (!sched_feat(sys, CW_FEAT_WAKEUP_PREEMPTION))
		return CW_QUEUE_PREEMPT_OFF;
	reason = preempt_by_policy(cfs_rq, pse);
	if (reason != CW_QUEUE_NONE)
		return reason;
	if (pse->flags & CW_SE_DELAYED)
		return CW_QUEUE_PREEMPT_DELAYED;
	if (asks_for_less(sys, cfs_rq, pse))
		return CW_QUEUE_NONE;
	if (wake_flags & WF_FORK)
		return CW_QUEUE_PREEMPT_FORK;
	if (sched_feat(sys, CW_FEAT_NEXT_BUDDY) &&
	    !(cfs_rq->next != CW_NO_ENTITY && entity_before(cfs_rq->next_deadline, pse->deadline))) {
		set_next_buddy(cfs_rq, pse);
		if (wake_flags & WF_SYNC)
			return preempt_sync(sys, cfs_rq, pse, now);
	}
	return CW_QUEUE_NONE;
}

/* Without WAKEUP_PROTECT: the effect of the answer on the running entity's protection. */
static inline void preempt_pick_done(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				     const struct cw_entity *pse, u32 reason)
{
	if (reason == CW_QUEUE_PREEMPT_IDLE_CURR ||
	    (reason == CW_QUEUE_PREEMPT_PICKED && asks_for_less(sys, cfs_rq, pse)))
		cancel_protect_slice(sys, cfs_rq);
	else if (reason == CW_QUEUE_PREEMPT_NOT_PICKED && sched_feat(sys, CW_FEAT_RUN_TO_PARITY))
		update_protect_slice(sys, cfs_rq);
}

/* With WAKEUP_PROTECT: the same. */
static inline void preempt_done(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				const struct cw_entity *pse, u32 reason)
{
	if (preempts(reason)) {
		bool is_short = reason != CW_QUEUE_PREEMPT_IDLE_CURR && asks_for_less(sys, cfs_rq, pse);

		cancel_protect_slice(sys, cfs_rq);
		if (is_short && !(cfs_rq->next != CW_NO_ENTITY && cfs_rq->next_slice < pse->slice))
			set_next_buddy(cfs_rq, pse);
	} else if (reason != CW_QUEUE_PREEMPT_PENDING && reason != CW_QUEUE_PREEMPT_OFF &&
		   reason != CW_QUEUE_PREEMPT_NO_SYNC && sched_feat(sys, CW_FEAT_RUN_TO_PARITY)) {
		update_protect_slice(sys, cfs_rq);
	}
}

static inline u32 preempt_wakeup_pick(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				      const struct cw_entity *pse, const struct cw_waiting *waiting,
				      u32 wake_flags, bool pending, u64 now, s32 *picked)
{
	bool is_short = asks_for_less(sys, cfs_rq, pse);
	u32 reason = preempt_before_wakeup_pick(sys, cfs_rq, pse, wake_flags, pending, now), ignored;

	if (reason == CW_QUEUE_NONE) {
		*picked = is_short ? -2 : pick_buddy(sys, cfs_rq, waiting);
		if (*picked < -1)
			*picked = pick_eevdf(sys, cfs_rq, waiting, !is_short, &ignored);
		if (*picked >= 0 && waiting[*picked].id == pse->id)
			reason = CW_QUEUE_PREEMPT_PICKED;
		else if (is_short && sched_feat(sys, CW_FEAT_WAKEUP_PROTECT) &&
			 entity_eligible(cfs_rq, pse))
			reason = CW_QUEUE_PREEMPT_SHORT;
		else
			reason = CW_QUEUE_PREEMPT_NOT_PICKED;
	}
	if (sched_feat(sys, CW_FEAT_WAKEUP_PROTECT))
		preempt_done(sys, cfs_rq, pse, reason);
	else
		preempt_pick_done(sys, cfs_rq, pse, reason);
	return reason;
}

/*
 * `pse` has come to the queue, and is among `waiting` now. `pending`: the CPU is
 * about to switch anyway. The running entity has been charged until `now`.
 */
static inline bool wakeup_preempt_fair(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
				       const struct cw_entity *pse, const struct cw_waiting *waiting,
				       u32 wake_flags, bool pending, u64 now,
				       struct cw_queue_decision *d)
{
	d->now = now;
	d->event = CW_QUEUE_PREEMPT;
	d->curr = cfs_rq->curr.id;
	d->id = pse->id;
	d->picked = -1;
	if (!sched_feat(sys, CW_FEAT_EEVDF))
		d->reason = preempt_cfs(sys, cfs_rq, pse, wake_flags, pending);
	else if (!sched_feat(sys, CW_FEAT_WAKEUP_PICK))
		d->reason = preempt_eevdf(sys, cfs_rq, pse, waiting, wake_flags, pending);
	else
		d->reason = preempt_wakeup_pick(sys, cfs_rq, pse, waiting, wake_flags, pending, now,
						&d->picked);
	d->preempts = preempts(d->reason);
	return d->preempts;
}

#endif /* CW_PREEMPT_H */
