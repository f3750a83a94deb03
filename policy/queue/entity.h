/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An entity of the fair class, one CPU's queue of entities, and virtual time.
 *
 * Each entity has a virtual time, vruntime, that advances at 1024 / weight of real time
 * while the entity runs. Entities whose vruntimes stay level have shared the CPU in
 * proportion to their weights. (kernel/sched/fair.c)
 *
 * A host keeps the waiting entities in order (entity_order()). The functions of this
 * folder get what they need to know about them as sums in struct cw_fair_rq and, where
 * they have to choose among them, as an array of struct cw_waiting. The running entity is
 * not among them; it is cw_fair_rq.curr while it runs.
 */
#ifndef CW_ENTITY_H
#define CW_ENTITY_H

#include "types.h"
#include "verifier.h"

enum cw_entity_flag {
	CW_SE_ON_RQ = 1 << 0, /* queued, or running and not about to sleep */
	CW_SE_DELAYED = 1 << 1, /* asleep, its dequeue is delayed (sched_delayed) */
	CW_SE_REL_DEADLINE = 1 << 2, /* `deadline` counts from `vruntime`: it is being moved */
	CW_SE_CUSTOM_SLICE = 1 << 3, /* `slice` was requested (sched_setattr) */
	CW_SE_IDLE = 1 << 4, /* SCHED_IDLE */
	CW_SE_BATCH = 1 << 5, /* SCHED_BATCH */
	CW_SE_GROUP = 1 << 6, /* a task group's on this CPU */
	CW_SE_REL_VRUNTIME = 1 << 7, /* CFS: `vruntime` counts from min_vruntime: it is between two queues */
};

/* No entity: a value of cw_entity.id and of fields that refer to it. */
#define CW_NO_ENTITY (-1)

struct cw_entity {
	s64 vruntime;
	s64 deadline; /* EEVDF: the vruntime at which its request, a slice, is served */
	s64 vlag; /* EEVDF: its lag when it last left a queue, in virtual ns */
	s64 vprot; /* EEVDF: while it runs, the virtual time up to which it is protected */
	u64 slice; /* EEVDF: the size of its request, ns */
	u64 exec_start; /* the time up to which its run time is accounted, ns */
	u64 sum_exec_runtime; /* ns that it has run */
	u64 prev_sum_exec_runtime; /* the same when it was last picked */
	u32 weight; /* 1024 << cw_fair_rq.load_shift for nice 0 */
	u32 flags; /* enum cw_entity_flag */
	s32 id; /* whatever the host knows it by */
	u32 pad;
};

struct cw_fair_rq {
	struct cw_entity curr; /* the running entity; weight 0 without one */
	/* EEVDF: virtual time is counted from here, so that the sum stays small */
	s64 zero_vruntime;
	s64 sum_w_vruntime; /* over waiting entities, of (vruntime - zero_vruntime) * weight */
	s64 sum_weight; /* over waiting entities */
	u64 min_slice; /* EEVDF: the shortest and the longest request of a waiting entity */
	u64 max_slice;
	s64 min_vruntime; /* CFS: the reference for placing entities; it never goes back */
	s64 leftmost; /* CFS: the least vruntime of a waiting entity, if there is one */
	u32 nr_waiting;
	u32 load_shift; /* 0, or 10 where weights have the kernel's resolution, as those of task groups do */
	s32 next; /* id of a woken entity that is to run next */
	s32 last; /* CFS: id of an entity that a woken one has preempted, and that is to continue after it */
	s32 skip; /* CFS: one that has yielded */
	u32 sum_shift; /* the right shift of weights in the sums: load_shift until 6.18, 0 in 7.3 */
	s64 next_deadline; /* of `next` */
	u64 next_slice;
};

/* A waiting entity as a choice sees it: an array of these, in order. */
struct cw_waiting {
	s64 order; /* entity_order() */
	s64 vruntime;
	u32 weight;
	s32 id;
};

/* The key by which waiting entities are ordered; equal ones are in the order in which they came. */
static inline s64 entity_order(const struct cw_sys *sys, const struct cw_entity *se)
{
	return sched_feat(sys, CW_FEAT_EEVDF) ? se->deadline : se->vruntime;
}

/* Weight of each nice value from -20 to 19: a step is about a tenth of the CPU (kernel/sched/core.c). */
static const u32 sched_prio_to_weight[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
	1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
	110,   87,    70,    56,    45,    36,	  29,	 23,	18,    15,
};
/* The weight of a SCHED_IDLE entity (kernel/sched/sched.h). */
#define WEIGHT_IDLEPRIO 3

/* The weight of a task; a nice value out of range counts as the nearest value in range. */
static inline u32 task_weight(s32 nice, bool idle)
{
	u32 prio = nice < -20 ? 0 : nice > 19 ? 39 : (u32)(nice + 20);

	return idle ? WEIGHT_IDLEPRIO : sched_prio_to_weight[prio];
}

/* a * b >> shift, for shift of at most 32. */
static inline u64 mul_u64_u32_shr(u64 a, u32 b, u32 shift)
{
	u64 low = (a & 0xffffffff) * b >> shift;

	return low + ((a >> 32) * b << (32 - shift));
}

/* delta * weight * inverse / 2^32, where weight * inverse is first reduced to 32 bits. */
CW_GLOBAL u64 calc_delta(u64 delta, u64 weight, u32 inverse)
{
	u64 factor = weight * inverse;
	u32 high = (u32)(factor >> 32), excess = high ? 32 - (u32)__builtin_clz(high) : 0;

	return mul_u64_u32_shr(delta, (u32)(factor >> excess), 32 - excess);
}

/* 2^32 / weight, rounded down, as the kernel computes it for weights that belong to no nice value. */
static inline u32 inverse_weight(u64 weight)
{
	return weight > 0xffffffff ? 1 : weight ? (u32)(0xffffffff / weight) : 0xffffffff;
}

/* A weight shifted right by this many bits; a weight above 0 stays above 0. */
static inline u32 shift_weight(u32 weight, u32 shift)
{
	if (!shift || !weight)
		return weight;
	return weight >> shift > 2 ? weight >> shift : 2;
}

/* The weight of an entity in the sums of its queue. */
static inline s64 avg_vruntime_weight(const struct cw_fair_rq *cfs_rq, u32 weight)
{
	return shift_weight(weight, cfs_rq->sum_shift);
}

/* Of nice 13, from which on the kernel's table of nice values rounds inverses down; it rounds others to the nearest. */
#define WEIGHT_INVERSE_DOWN 56

/* 2^32 / weight of a task, as in that table (sched_prio_to_wmult). */
static inline u32 inverse_task_weight(u32 weight)
{
	return (u32)(((1ULL << 32) + (weight > WEIGHT_INVERSE_DOWN ? weight / 2 : 0)) / weight);
}

/* Real time to the virtual time of an entity. */
static inline u64 calc_delta_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
				  u64 delta, const struct cw_entity *se)
{
	u64 nice_0 = (u64)CW_NICE_0_WEIGHT << cfs_rq->load_shift;
	u32 weight = shift_weight(se->weight, cfs_rq->load_shift), inverse;

	if (se->weight == nice_0 || !weight)
		return delta;
	if (sched_feat(sys, CW_FEAT_EXACT_DELTA))
		return delta * nice_0 / se->weight;
	if (se->flags & CW_SE_GROUP)
		inverse = inverse_weight(weight);
	else
		inverse = inverse_task_weight(weight);
	return calc_delta(delta, CW_NICE_0_WEIGHT, inverse);
}

/* Does the queue have a running entity that competes with the waiting ones? */
static inline bool curr_competes(const struct cw_fair_rq *cfs_rq)
{
	return cfs_rq->curr.weight && cfs_rq->curr.flags & CW_SE_ON_RQ;
}

/* Entities that wait or run. */
static inline u32 nr_queued(const struct cw_fair_rq *cfs_rq)
{
	return cfs_rq->nr_waiting + curr_competes(cfs_rq);
}

/* Their weight. */
static inline s64 queue_weight(const struct cw_fair_rq *cfs_rq)
{
	if (!curr_competes(cfs_rq))
		return cfs_rq->sum_weight;
	return cfs_rq->sum_weight + avg_vruntime_weight(cfs_rq, cfs_rq->curr.weight);
}

/* The factor of the queue's tunables: 1 + log2(min(CPUs, 8)) (get_update_sysctl_factor). */
static inline u64 sysctl_factor(const struct cw_sys *sys)
{
	u32 n = sys->nr_cpus;

	return n >= 8 ? 4 : n >= 4 ? 3 : n >= 2 ? 2 : 1;
}

#endif /* CW_ENTITY_H */
