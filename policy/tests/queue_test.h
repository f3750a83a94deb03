/* SPDX-License-Identifier: GPL-2.0-only */
/* One CPU's queue, built by hand: virtual times are in ms, for tasks of nice 0 those of real time. */
#ifndef CW_QUEUE_TEST_H
#define CW_QUEUE_TEST_H

#include "queue/preempt.h"
#include "tests/test.h"

#define MS 1000000LL
#define SLICE (3 * MS)

static struct cw_fair_rq rq;
static struct cw_waiting waiting[16];

/* An empty queue of one CPU, EEVDF's without any feature, or CFS's. */
static inline void begin(bool eevdf)
{
	memset(&sys, 0, sizeof(sys));
	sys.nr_cpus = 1;
	sys.tick_ns = 4 * MS;
	sys.tunable[CW_TUNE_base_slice_ns] = SLICE;
	sys.tunable[CW_TUNE_latency_ns] = 6 * MS;
	sys.tunable[CW_TUNE_min_granularity_ns] = MS;
	sys.tunable[CW_TUNE_wakeup_granularity_ns] = MS;
	set_feature(CW_FEAT_EEVDF, eevdf);
	set_feature(CW_FEAT_WAKEUP_PREEMPTION, true);
	cfs_rq_init(&rq);
}

static inline struct cw_entity entity(s32 id, s64 vruntime, s64 deadline, u32 weight)
{
	return (struct cw_entity){ .id = id, .vruntime = vruntime, .deadline = deadline,
				   .vprot = deadline, .slice = SLICE, .weight = weight };
}

/* It waits, in order. */
static inline void wait_entity(struct cw_entity se)
{
	s64 order = entity_order(&sys, &se);
	u32 i = rq.nr_waiting;

	for (; i > 0 && waiting[i - 1].order > order; i--)
		waiting[i] = waiting[i - 1];
	waiting[i] = (struct cw_waiting){ order, se.vruntime, se.weight, se.id };
	__enqueue_entity(&rq, &se);
	rq.leftmost = waiting[0].vruntime;
}

/* It waits no longer. */
static inline void leave(const struct cw_entity *se)
{
	u32 i = 0;

	while (waiting[i].id != se->id)
		i++;
	dequeue_waiting(&rq, se);
	memmove(waiting + i, waiting + i + 1, (rq.nr_waiting - i) * sizeof(waiting[0]));
}

/* It runs, and has been since 0. */
static inline void run_entity(struct cw_entity se)
{
	rq.curr = se;
	rq.curr.flags |= CW_SE_ON_RQ;
}

static inline s32 pick(void)
{
	struct cw_queue_decision d;

	pick_next_entity(&sys, &rq, waiting, &d);
	return d.id;
}

static inline u32 preempt(struct cw_entity se, u32 wake_flags, bool pending)
{
	struct cw_queue_decision d;

	wakeup_preempt_fair(&sys, &rq, &se, waiting, wake_flags, pending, 0, &d);
	CHECK_EQ(d.preempts, preempts(d.reason));
	return d.reason;
}

#endif /* CW_QUEUE_TEST_H */
