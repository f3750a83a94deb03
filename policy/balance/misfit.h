/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Misfit: on machines whose CPUs differ in capacity, a task that is too big for its CPU
 * marks the CPU, so that a bigger one pulls the task.
 */
#ifndef CW_MISFIT_H
#define CW_MISFIT_H

#include "types.h"
#include "util.h"

/*
 * Note whether `cpu` runs a task that is too big for it. `p` is the task that
 * it is about to run or that the tick found running, or null if it goes idle.
 * A task that no bigger CPU may take is no misfit.
 */
static inline void update_misfit_status(struct cw_sys *sys, const struct cw_task *p, s32 cpu)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);
	u64 load;

	if (rq->asym_sd == CW_NONE)
		return;
	rq->misfit_task_load = 0;
	if (!p || p->nr_cpus_allowed == 1 || rq->capacity_orig == p->max_allowed_capacity ||
	    task_fits_cpu(sys, p, cpu))
		return;
	load = task_h_load(sys, p, rq->clock_task);
	rq->misfit_task_load = load ? load : 1; /* so small a load may round to nothing */
}

/* Does the CPU run a task that is too big for it? */
static inline bool check_misfit_status(const struct cw_cpu *rq)
{
	return rq->misfit_task_load;
}

#endif /* CW_MISFIT_H */
