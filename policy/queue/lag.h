/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EEVDF: which entities have had less than their share, and which have had more.
 *
 * V is the weighted mean of all vruntimes. An entity's lag is V - vruntime, which is what
 * it is owed, in virtual time. An entity is eligible to run while its lag is not negative.
 * (Stoica and Abdel-Wahab, Earliest Eligible Virtual Deadline First, 1995.)
 *
 * The sums count vruntimes from zero_vruntime, which may be anywhere: V is the same,
 * including rounding. zero_vruntime is moved to V now and then, because the product of a
 * vruntime and a weight has to fit in 64 bits.
 */
#ifndef CW_LAG_H
#define CW_LAG_H

#include "atomic.h"
#include "queue/entity.h"

/* sum / weight, rounded down; weight > 0. BPF divides without signs. */
static inline s64 div_floor(s64 sum, s64 weight)
{
	if (sum >= 0)
		return (s64)((u64)sum / (u64)weight);
	return -(s64)(((u64)-sum + (u64)weight - 1) / (u64)weight);
}

/* The same, rounded towards zero. */
static inline s64 div_trunc(s64 sum, s64 weight)
{
	return sum >= 0 ? (s64)((u64)sum / (u64)weight) : -(s64)((u64)-sum / (u64)weight);
}

/* (vruntime - zero_vruntime) * weight, summed over all entities; `*weight` is the sum of their weights. */
static inline s64 queue_sum(const struct cw_fair_rq *cfs_rq, s64 *weight)
{
	const struct cw_entity *curr = &cfs_rq->curr;
	s64 curr_weight = curr_competes(cfs_rq) ? avg_vruntime_weight(cfs_rq, curr->weight) : 0;

	*weight = cfs_rq->sum_weight + curr_weight;
	return cfs_rq->sum_w_vruntime + (curr->vruntime - cfs_rq->zero_vruntime) * curr_weight;
}

/* V. */
static inline s64 avg_vruntime(const struct cw_fair_rq *cfs_rq)
{
	s64 weight, sum = queue_sum(cfs_rq, &weight);

	if (!weight)
		return cfs_rq->zero_vruntime;
	return cfs_rq->zero_vruntime + div_floor(sum, weight);
}

/* Moves zero_vruntime to V. Not while other CPUs may take entities off the sums. */
static inline void update_zero_vruntime(struct cw_fair_rq *cfs_rq)
{
	s64 v = avg_vruntime(cfs_rq);

	cfs_rq->sum_w_vruntime -= (v - cfs_rq->zero_vruntime) * cfs_rq->sum_weight;
	cfs_rq->zero_vruntime = v;
}

/* Is sum >= key * weight? */
static inline bool reaches(s64 sum, s64 key, s64 weight)
{
#ifdef __bpf__
	return sum >= key * weight;
#else
	/* fine weights need the room */
	return sum >= (__int128)key * weight;
#endif
}

/* Is the lag at this vruntime not negative? V rounded down would say so too rarely. */
static inline bool vruntime_eligible(const struct cw_fair_rq *cfs_rq, s64 vruntime)
{
	s64 weight, sum = queue_sum(cfs_rq, &weight);

	return reaches(sum, vruntime - cfs_rq->zero_vruntime, weight);
}

static inline bool entity_eligible(const struct cw_fair_rq *cfs_rq, const struct cw_entity *se)
{
	return vruntime_eligible(cfs_rq, se->vruntime);
}

/* The requests of waiting and running entities. */
static inline u64 cfs_rq_min_slice(const struct cw_fair_rq *cfs_rq)
{
	u64 slice = curr_competes(cfs_rq) ? cfs_rq->curr.slice : ~0ULL;

	return cfs_rq->nr_waiting && cfs_rq->min_slice < slice ? cfs_rq->min_slice : slice;
}

static inline u64 cfs_rq_max_slice(const struct cw_fair_rq *cfs_rq)
{
	u64 slice = curr_competes(cfs_rq) ? cfs_rq->curr.slice : 0;

	return cfs_rq->nr_waiting && cfs_rq->max_slice > slice ? cfs_rq->max_slice : slice;
}

/* The lag of an entity of the queue, limited in both directions by the time in which others may have been served. */
static inline s64 entity_lag(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			     const struct cw_entity *se)
{
	s64 lag = avg_vruntime(cfs_rq) - se->vruntime, limit;
	u64 slice = 2 * se->slice;

	if (sched_feat(sys, CW_FEAT_LAG_MAX_SLICE))
		slice = cfs_rq_max_slice(cfs_rq) + sys->tick_ns;
	else if (slice < sys->tick_ns)
		slice = sys->tick_ns;
	limit = (s64)calc_delta_fair(sys, cfs_rq, slice, se);
	return lag > limit ? limit : lag < -limit ? -limit : lag;
}

/* Saves the lag of an entity of the queue that is about to leave it or to be placed again. */
static inline void update_entity_lag(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				     struct cw_entity *se)
{
	s64 lag = entity_lag(sys, cfs_rq, se);

	if (se->flags & CW_SE_DELAYED && sched_feat(sys, CW_FEAT_DELAY_KEEPS_LAG)) {
		/* the lag that it had when it went to sleep */
		if (lag < se->vlag)
			lag = se->vlag;
		if (lag > 0 && sched_feat(sys, CW_FEAT_DELAY_ZERO))
			lag = 0;
	}
	se->vlag = lag;
}

/* An entity joins those that wait. */
static inline void __enqueue_entity(struct cw_fair_rq *cfs_rq, const struct cw_entity *se)
{
	s64 weight = avg_vruntime_weight(cfs_rq, se->weight);

	if (!cfs_rq->nr_waiting || se->slice < cfs_rq->min_slice)
		cfs_rq->min_slice = se->slice;
	if (!cfs_rq->nr_waiting || se->slice > cfs_rq->max_slice)
		cfs_rq->max_slice = se->slice;
	cw_add(&cfs_rq->sum_w_vruntime, (se->vruntime - cfs_rq->zero_vruntime) * weight);
	cw_add(&cfs_rq->sum_weight, weight);
	cw_add(&cfs_rq->nr_waiting, 1);
}

/*
 * An entity leaves the sums; `key` is its vruntime minus zero_vruntime when it joined. The
 * extremes of slices stay, so they are exact only if all slices are equal.
 */
static inline void __dequeue_entity(struct cw_fair_rq *cfs_rq, s64 key, u32 weight)
{
	s64 in_sums = avg_vruntime_weight(cfs_rq, weight);

	cw_add(&cfs_rq->sum_w_vruntime, -(key * in_sums));
	cw_add(&cfs_rq->sum_weight, -in_sums);
	cw_add(&cfs_rq->nr_waiting, -1);
}

#endif /* CW_LAG_H */
