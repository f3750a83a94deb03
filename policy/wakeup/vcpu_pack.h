/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vcpu_pack: a change of its own in kernels that some hosts of virtual machines give their
 * guests, in no kernel of kernel.org. It is switched on by the parameter sched_vcpu_pack=N. A
 * task shares a busy CPU that has room instead of taking an idle one, which the host would
 * have to run. (Read off the machine code of such a kernel, Linux 6.18.44.)
 */
#ifndef CW_VCPU_PACK_H
#define CW_VCPU_PACK_H

#include "util.h"

/* Bits of the tunable: the wakeups and new tasks that are packed. */
#define VCPU_PACK_IDLE_WAKER 1 /* an interrupt on an idle CPU wakes on that CPU */
#define VCPU_PACK_SYNC 2 /* a synchronous wakeup wakes on the waker's CPU */
#define VCPU_PACK_WAKEUP 4 /* a wakeup stays, or takes the waker's CPU or the first that is busy */
#define VCPU_PACK_FORK 8 /* fork and exec stay */

/* A CPU has room up to this part of its capacity, in percent. */
#define VCPU_PACK_UTIL_PCT 70

/*
 * Has the CPU at most `max_runnable` runnable tasks, all of them fair, and room for their
 * utilisation and that of `p`, which counts on task_cpu?
 */
CW_GLOBAL bool vcpu_pack_room(struct cw_sys *sys CW_NONNULL, const struct cw_task *p CW_NONNULL,
			      s32 cpu, s32 task_cpu, u32 max_runnable)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	u64 util = cpu_util(sys, cpu);

	if (rq->ttwu_pending || rq->nr_running != rq->cfs_nr_running ||
	    rq->cfs_nr_running - rq->cfs_nr_delayed > max_runnable)
		return false;
	if (cpu != task_cpu)
		util += task_util_est(p);
	return util * 100 < (u64)capacity_of(sys, cpu) * VCPU_PACK_UTIL_PCT;
}

/* May the task share the CPU with one other? A task that calls exec is one of those that run there. */
static inline bool can_pack(struct cw_sys *sys, const struct cw_wakeup *w, s32 cpu)
{
	u32 max_runnable = w->wake_flags & WF_EXEC && cpu == w->task_cpu ? 2 : 1;

	return cpumask_test_cpu(cpu, w->cpus_ptr) &&
	       vcpu_pack_room(sys, w->p, cpu, w->task_cpu, max_runnable);
}

/* The first busy CPU with room, or -1. */
static inline s32 first_with_room(struct cw_sys *sys, const struct cw_wakeup *w)
{
	s32 cpu;

	for_each_cpu(sys, cpu, w->cpus_ptr) {
		if (!idle_cpu(sys, cpu) && can_pack(sys, w, cpu))
			return cpu;
	}
	return -1;
}

/* The CPU that the task shares, or -1: the kernel's usual choice. */
static inline s32 vcpu_pack(struct cw_sys *sys, const struct cw_wakeup *w)
{
	u32 packed = (u32)tunable(sys, CW_TUNE_vcpu_pack);
	const struct cw_cpu *rq = cpu_rq(sys, w->this_cpu);

	if (!packed || w->p->nr_cpus_allowed == 1)
		return -1;
	if (!(w->wake_flags & WF_TTWU))
		return packed & VCPU_PACK_FORK && can_pack(sys, w, w->this_cpu) ? w->this_cpu : -1;
	if (packed & VCPU_PACK_IDLE_WAKER && rq->curr_is_idle && !rq->nr_running &&
	    cpumask_test_cpu(w->this_cpu, w->cpus_ptr))
		return w->this_cpu;
	if (packed & VCPU_PACK_SYNC && w->wake_flags & WF_SYNC && can_pack(sys, w, w->this_cpu))
		return w->this_cpu;
	if (!(packed & VCPU_PACK_WAKEUP))
		return -1;
	if (!idle_cpu(sys, w->prev_cpu) && can_pack(sys, w, w->prev_cpu))
		return w->prev_cpu;
	return can_pack(sys, w, w->this_cpu) ? w->this_cpu : first_with_room(sys, w);
}

#endif /* CW_VCPU_PACK_H */
