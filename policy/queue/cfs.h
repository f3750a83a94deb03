/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The completely fair scheduler: the fair class's queue until 6.5.
 *
 * The entity with the least vruntime runs next. A sleeper returns a little behind the
 * others, and preempts the running entity if that is ahead of it by more than the wakeup
 * granularity. The running entity's turn ends at a tick. Two buddies are preferred to the
 * entity with the least vruntime, and one is passed over, as long as this puts no entity
 * back by more than the wakeup granularity. (kernel/sched/fair.c, 4.8 to 6.5)
 */
#ifndef CW_CFS_H
#define CW_CFS_H

#include "queue/buddies.h"
#include "queue/entity.h"
#include "queue/reasons.h"

/* A tunable in ns, scaled by the number of CPUs. */
static inline u64 scaled_ns(const struct cw_sys *sys, enum cw_tunable t)
{
	return (u64)tunable(sys, t) * sysctl_factor(sys);
}

/* Number of entities up to which each runs once in the latency. */
static inline u64 sched_nr_latency(const struct cw_sys *sys)
{
	u64 min = scaled_ns(sys, CW_TUNE_min_granularity_ns);

	return (scaled_ns(sys, CW_TUNE_latency_ns) + min - 1) / (min ? min : 1);
}

/* The length of an entity's turn: its part of a period by weight. The entity is queued, or about to be. */
static inline u64 sched_slice(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			      const struct cw_entity *se)
{
	bool queued = se->flags & CW_SE_ON_RQ;
	u64 nr = nr_queued(cfs_rq) + !queued, min = scaled_ns(sys, CW_TUNE_min_granularity_ns);
	u64 total = (u64)queue_weight(cfs_rq), slice;

	if (!queued)
		total += (u64)avg_vruntime_weight(cfs_rq, se->weight);
	if (cfs_rq->load_shift > cfs_rq->sum_shift)
		total >>= cfs_rq->load_shift - cfs_rq->sum_shift;
	slice = nr > sched_nr_latency(sys) ? nr * min : scaled_ns(sys, CW_TUNE_latency_ns);
	slice = calc_delta(slice, shift_weight(se->weight, cfs_rq->load_shift), inverse_weight(total));
	return sched_feat(sys, CW_FEAT_BASE_SLICE) && slice < min ? min : slice;
}

/* min_vruntime follows the least vruntime of all, and never goes back. */
static inline void update_min_vruntime(struct cw_fair_rq *cfs_rq)
{
	s64 least = cfs_rq->min_vruntime;

	if (curr_competes(cfs_rq))
		least = cfs_rq->curr.vruntime;
	if (cfs_rq->nr_waiting && (!curr_competes(cfs_rq) || cfs_rq->leftmost - least < 0))
		least = cfs_rq->leftmost;
	if (least - cfs_rq->min_vruntime > 0)
		cfs_rq->min_vruntime = least;
}

/* An entity between two queues counts its vruntime from min_vruntime. */
static inline void leave_min_vruntime(const struct cw_fair_rq *cfs_rq, struct cw_entity *se)
{
	if (se->flags & CW_SE_REL_VRUNTIME)
		return;
	se->vruntime -= cfs_rq->min_vruntime;
	se->flags |= CW_SE_REL_VRUNTIME;
}

static inline void join_min_vruntime(const struct cw_fair_rq *cfs_rq, struct cw_entity *se)
{
	if (!(se->flags & CW_SE_REL_VRUNTIME))
		return;
	se->vruntime += cfs_rq->min_vruntime;
	se->flags &= ~(u32)CW_SE_REL_VRUNTIME;
}

/* Places a sleeper a little behind the others, or leaves it where it is, so that a short sleep gains nothing. */
static inline void place_sleeper(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				 struct cw_entity *se)
{
	bool idle = se->flags & CW_SE_IDLE && sched_feat(sys, CW_FEAT_IDLE_SLEEPERS);
	u64 credit = scaled_ns(sys, idle ? CW_TUNE_min_granularity_ns : CW_TUNE_latency_ns);
	s64 vruntime;

	if (sched_feat(sys, CW_FEAT_GENTLE_FAIR_SLEEPERS))
		credit /= 2;
	vruntime = cfs_rq->min_vruntime - (s64)credit;
	if (vruntime - se->vruntime > 0)
		se->vruntime = vruntime;
}

/* Places a new entity with its parent, which runs; with START_DEBIT a turn behind the others. */
static inline void place_child(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			       struct cw_entity *se)
{
	s64 vruntime = cfs_rq->min_vruntime;

	if (cfs_rq->curr.weight)
		se->vruntime = cfs_rq->curr.vruntime;
	if (sched_feat(sys, CW_FEAT_START_DEBIT))
		vruntime += (s64)calc_delta_fair(sys, cfs_rq, sched_slice(sys, cfs_rq, se), se);
	if (vruntime - se->vruntime > 0)
		se->vruntime = vruntime;
}

/* Is an entity at vruntime `curr` ahead of `se`: not (-1), by up to a wakeup granularity (0), or by more (1)? */
static inline s32 wakeup_preempt_entity(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
					s64 curr, s64 vruntime, u32 weight)
{
	struct cw_entity se = { .weight = weight };
	s64 ahead = curr - vruntime;

	if (ahead <= 0)
		return -1;
	return ahead > (s64)calc_delta_fair(sys, cfs_rq,
					    scaled_ns(sys, CW_TUNE_wakeup_granularity_ns), &se);
}

/* At a tick: has the running entity used up its turn, or got ahead of the leftmost one by a turn? */
static inline bool check_preempt_tick(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	const struct cw_entity *curr = &cfs_rq->curr;
	u64 slice = sched_slice(sys, cfs_rq, curr);
	u64 ran = curr->sum_exec_runtime - curr->prev_sum_exec_runtime;

	if (ran > slice) {
		/* otherwise it would be picked again as a buddy */
		clear_buddies(cfs_rq, curr->id);
		return true;
	}
	if (ran < scaled_ns(sys, CW_TUNE_min_granularity_ns))
		return false;
	return curr->vruntime - cfs_rq->leftmost > (s64)slice;
}

/* May waiting entity `i` (-1: the running one) run although `left` has the least vruntime? */
static inline bool is_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			   const struct cw_waiting *waiting, s32 i, s32 left)
{
	const struct cw_entity *curr = &cfs_rq->curr;

	return wakeup_preempt_entity(sys, cfs_rq, i < 0 ? curr->vruntime : waiting[i].vruntime,
				     left < 0 ? curr->vruntime : waiting[left].vruntime,
				     left < 0 ? curr->weight : waiting[left].weight) < 1;
}

/* The index of the entity with this id among the waiting ones, -1 if it runs, otherwise -2. */
static inline s32 index_of(const struct cw_fair_rq *cfs_rq, const struct cw_waiting *waiting, s32 id)
{
	u32 i;

	if (id == CW_NO_ENTITY)
		return -2;
	for (i = 0; i < cfs_rq->nr_waiting && may_loop(); i++)
		if (waiting[i].id == id)
			return (s32)i;
	return curr_competes(cfs_rq) && cfs_rq->curr.id == id ? -1 : -2;
}

/* The entity to run, as pick_eevdf() returns it; `waiting` in order of vruntime. */
static inline s32 pick_cfs(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			   const struct cw_waiting *waiting, u32 *reason)
{
	bool runs = curr_competes(cfs_rq);
	s64 curr = cfs_rq->curr.vruntime;
	u32 nr = cfs_rq->nr_waiting;
	s32 left = nr && !(runs && curr - waiting[0].vruntime < 0) ? 0 : -1, second = -2, buddy;

	*reason = CW_QUEUE_PICK_BUDDY;
	buddy = index_of(cfs_rq, waiting, cfs_rq->next);
	if (buddy > -2 && is_fair(sys, cfs_rq, waiting, buddy, left))
		return buddy;
	buddy = index_of(cfs_rq, waiting, cfs_rq->last);
	if (buddy > -2 && is_fair(sys, cfs_rq, waiting, buddy, left))
		return buddy;
	if (index_of(cfs_rq, waiting, cfs_rq->skip) == left) {
		if (left < 0)
			second = nr ? 0 : -2;
		else if (nr > 1 && !(runs && curr - waiting[1].vruntime < 0))
			second = 1;
		else if (runs)
			second = -1;
		*reason = CW_QUEUE_PICK_SECOND;
		if (second > -2 && is_fair(sys, cfs_rq, waiting, second, left))
			return second;
	}
	*reason = CW_QUEUE_PICK_LEFTMOST;
	return left;
}

#endif /* CW_CFS_H */
