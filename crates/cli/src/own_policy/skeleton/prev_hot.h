/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PREV_HOT: an idle previous CPU on which the task ran a moment ago still has its data in
 * the cache, so the task wakes there, wherever its waker is.
 */
#ifndef CW_PREV_HOT_H
#define CW_PREV_HOT_H

#include "util.h"

static inline bool prev_hot(struct cw_sys *sys, const struct cw_wakeup *w)
{
	u64 away = w->now - w->p->exec_start;

	return sched_feat(sys, CW_FEAT_PREV_HOT) && cpumask_test_cpu(w->prev_cpu, w->cpus_ptr) &&
	       choose_idle_cpu(sys, w->prev_cpu, w->p) &&
	       away < (u64)tunable(sys, CW_TUNE_prev_hot_ns) &&
	       (!sys->asym_present || task_fits_cpu(sys, w->p, w->prev_cpu));
}

#endif /* CW_PREV_HOT_H */
