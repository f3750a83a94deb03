/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Between NUMA nodes, tasks on their preferred node are moved last. A group is
 * classified by its tasks, and a queue of it can be the source only if it is of this
 * type or a better one. Without NUMA balancing, no task prefers a node, and everything
 * is regular.
 */
#ifndef CW_FBQ_H
#define CW_FBQ_H

#include "balance/lb_env.h"

static inline enum cw_fbq_type fbq_classify(u32 nr_running, u32 nr_numa, u32 nr_preferred)
{
	if (nr_running > nr_numa)
		return CW_FBQ_REGULAR;
	return nr_running > nr_preferred ? CW_FBQ_REMOTE : CW_FBQ_ALL;
}

static inline enum cw_fbq_type fbq_classify_group(const struct cw_sg_stats *sgs)
{
	return fbq_classify(sgs->sum_h_nr_running, sgs->nr_numa_running,
			    sgs->nr_preferred_running);
}

/* Tasks of all classes count here. */
static inline enum cw_fbq_type fbq_classify_rq(const struct cw_cpu *rq)
{
	return fbq_classify(rq->nr_running, rq->nr_numa_running, rq->nr_preferred_running);
}

#endif /* CW_FBQ_H */
