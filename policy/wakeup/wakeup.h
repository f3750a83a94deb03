/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task goes when it wakes, forks or execs: mainline's select_task_rq_fair() without
 * an energy model, and the previous-CPU bias of seed 000 as WAKEUP_BIAS_PREV.
 *
 * As in the kernel, the caller asks only for tasks with more than one allowed CPU, clears
 * WF_SYNC if the waker is exiting, and replaces a CPU that is not in cpus_ptr (the previous
 * CPU may have been taken away while p slept).
 */
#ifndef CW_WAKEUP_H
#define CW_WAKEUP_H

#include "wakeup/cache_aware.h"
#include "wakeup/forkexec.h"
#include "wakeup/select_idle.h"
#include "topology.h"
#include "types.h"
#include "util.h"
#include "wakeup/vcpu_pack.h"
#include "wakeup/wake_affine.h"

static inline s32 decide(struct cw_decision *d, s32 cpu, enum cw_reason reason)
{
	d->reason = reason;
	return cpu;
}

/*
 * Is `cpu` big enough for the task, and all of its core idle? Asked only on
 * machines whose CPUs differ in capacity, by kernels that ask (ASYM_WAKE_FITS).
 */
static inline bool asym_fits_cpu(struct cw_sys *sys, const struct cw_wakeup *w,
				 struct cw_decision *d, s32 cpu)
{
	if (!sys->asym_present || !sched_feat(sys, CW_FEAT_ASYM_WAKE_FITS))
		return true;
	if (!task_fits_cpu(sys, w->p, cpu)) {
		d->notes |= CW_NOTE_NO_FIT;
		return false;
	}
	return !sched_feat(sys, CW_FEAT_ASYM_IDLE_CORE) || !sys->smt_present ||
	       is_core_idle(sys, cpu);
}

/*
 * Do the tasks that are runnable on `cpu` leave the threshold of its capacity
 * free (seed 000)? Sleeping tasks do not count, nor do other classes.
 */
static inline bool spare_capacity_cpu(struct cw_sys *sys, s32 cpu)
{
	u64 used = CW_CAPACITY_SCALE - (u64)tunable(sys, CW_TUNE_spare_capacity_threshold);

	if (!sched_feat(sys, CW_FEAT_UTIL_EST))
		return false;
	return (u64)cpu_rq(sys, cpu)->avg.util_est * CW_CAPACITY_SCALE <=
	       arch_scale_cpu_capacity(sys, cpu) * used;
}

/* WAKEUP_BIAS_PREV: may the task stay on its previous CPU, whatever other CPUs are idle? */
static inline bool bias_prev(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d,
			     s32 target)
{
	s32 prev = w->prev_cpu;

	if (!cpus_share_cache(sys, prev, target)) {
		d->notes |= CW_NOTE_BIAS_NO_CACHE;
		return false;
	}
	if (!choose_idle_cpu(sys, prev, w->p) && !spare_capacity_cpu(sys, prev)) {
		d->notes |= CW_NOTE_BIAS_NO_SPARE;
		return false;
	}
	return asym_fits_cpu(sys, w, d, prev);
}

/* A CPU other than the target that may be taken because it is idle, big enough and near. */
static inline bool idle_candidate(struct cw_sys *sys, const struct cw_wakeup *w,
				  struct cw_decision *d, s32 cpu, s32 target)
{
	return cpu != target && cpus_share_cache(sys, cpu, target) &&
	       choose_idle_cpu(sys, cpu, w->p) && asym_fits_cpu(sys, w, d, cpu);
}

/* Is `cpu` as near to `target` as CPUs get here? */
static inline bool same_cluster(struct cw_sys *sys, s32 cpu, s32 target)
{
	return !sys->cluster_present || cpus_share_resources(sys, cpu, target);
}

/* The waker is a per-CPU kthread that finished work which the task queued on this CPU. */
static inline bool stack_on_kthread(struct cw_sys *sys, const struct cw_wakeup *w)
{
	return (w->waker->flags & CW_TASK_PERCPU_KTHREAD) && w->in_task &&
	       w->prev_cpu == w->this_cpu && cpu_rq(sys, w->this_cpu)->nr_running <= 1;
}

/*
 * The recently used CPU if it may be taken, else -1. The previous CPU becomes the
 * recent one, before RECENT_USED_PREV only in exchange for that.
 */
static inline s32 take_recent_used_cpu(struct cw_sys *sys, const struct cw_wakeup *w,
				       struct cw_decision *d, s32 target)
{
	s32 recent = w->p->recent_used_cpu;

	if (sched_feat(sys, CW_FEAT_RECENT_USED_PREV))
		w->p->recent_used_cpu = w->prev_cpu;
	if (recent == w->prev_cpu || !idle_candidate(sys, w, d, recent, target))
		return -1;
	if (!cpumask_test_cpu(recent, w->cpus_ptr)) {
		d->notes |= CW_NOTE_AFFINITY;
		return -1;
	}
	w->p->recent_used_cpu = w->prev_cpu;
	return recent;
}

/* An idle CPU of the target's last-level cache, or -1. */
static inline s32 search_llc(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d,
			     s32 target)
{
	bool has_idle_core = false;

	if (!sched_feat(sys, CW_FEAT_SIS_ONE_SEARCH))
		return select_idle_in_turn(sys, w->p, w->cpus_ptr, d);
	if (sys->smt_present) {
		has_idle_core = test_idle_cores(sys, target);
		if (!has_idle_core && cpus_share_cache(sys, w->prev_cpu, target)) {
			s32 cpu = select_idle_smt(sys, w->p, w->cpus_ptr, d, w->prev_cpu);

			if (cpu >= 0)
				return cpu;
		}
	}
	return select_idle_cpu(sys, w->p, w->cpus_ptr, d, has_idle_core);
}

/*
 * The domain of CPUs of different capacities in which a wakeup searches for one
 * that is big enough; NULL where they are alike, or if the kernel does not search.
 */
static inline const struct cw_domain *wake_asym_sd(struct cw_sys *sys, s32 target)
{
	return sched_feat(sys, CW_FEAT_ASYM_WAKE_SCAN) ? sd_asym_cpucapacity(sys, target) : NULL;
}

/* The search of `asym_sd` ends the search for an idle CPU, whatever it finds. */
static inline s32 search_asym(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d,
			      const struct cw_domain *asym_sd, s32 target)
{
	s32 cpu = select_idle_capacity(sys, w->p, w->cpus_ptr, d, asym_sd);

	return cpu >= 0 ? cpu : decide(d, target, CW_REASON_TARGET_BUSY);
}

/* An idle CPU near `target`, or the next best one. */
static inline s32 select_idle_sibling(struct cw_sys *sys, const struct cw_wakeup *w,
				      struct cw_decision *d, s32 target)
{
	const struct cw_domain *asym_sd = wake_asym_sd(sys, target);
	const struct cw_domain *llc;
	bool bias = sched_feat(sys, CW_FEAT_WAKEUP_BIAS_PREV);
	bool bias_spare = bias || sched_feat(sys, CW_FEAT_UTIL_FITS_CAPACITY);
	bool bias_busy = bias || sched_feat(sys, CW_FEAT_SELECT_BIAS_PREV);
	s32 prev = w->prev_cpu, prev_aff = -1, recent, cpu;

	if (sys->asym_present)
		sync_entity_load_avg(cpu_rq(sys, w->task_cpu), w->p);
	if (bias_spare && bias_prev(sys, w, d, target))
		return decide(d, prev, CW_REASON_BIAS_PREV);
	if (asym_sd && !sched_feat(sys, CW_FEAT_ASYM_WAKE_FITS))
		return search_asym(sys, w, d, asym_sd, target);
	if (choose_idle_cpu(sys, target, w->p) && asym_fits_cpu(sys, w, d, target))
		return decide(d, target, CW_REASON_TARGET_IDLE);
	if (!bias_spare && idle_candidate(sys, w, d, prev, target)) {
		if (same_cluster(sys, prev, target))
			return decide(d, prev, CW_REASON_PREV_IDLE);
		prev_aff = prev;
	}
	if (stack_on_kthread(sys, w) && asym_fits_cpu(sys, w, d, prev))
		return decide(d, prev, CW_REASON_PERCPU_KTHREAD);
	recent = take_recent_used_cpu(sys, w, d, target);
	if (recent >= 0 && same_cluster(sys, recent, target))
		return decide(d, recent, CW_REASON_RECENT_IDLE);
	if (asym_sd)
		return search_asym(sys, w, d, asym_sd, target);
	llc = sd_llc(sys, target);
	if (!llc)
		return decide(d, target, CW_REASON_TARGET_BUSY);
	cpu = search_llc(sys, w, d, target);
	if (cpu >= 0)
		return cpu;
	/* idle, but in another cluster than the target */
	if (prev_aff >= 0)
		return decide(d, prev_aff, CW_REASON_PREV_IDLE);
	if (recent >= 0)
		return decide(d, recent, CW_REASON_RECENT_IDLE);
	if (bias_busy && prev != target && cpus_share_cache(sys, prev, target))
		return decide(d, prev, CW_REASON_BIAS_PREV_BUSY);
	return decide(d, target, CW_REASON_TARGET_BUSY);
}

/*
 * SYNC_ON_WAKER: will the waker's CPU be free for the task because the waker is about to
 * sleep? Another CPU, even an idle one, would start the task later: it has to be woken,
 * and both CPUs switch to idle and back. A synchronous wakeup promises that sleep, but
 * pipes promise it for every write. A waker that goes on instead is recognized by its
 * last synchronous wakeup. A waker with many wakees does not sleep at once, so
 * wake_wide() is not asked. As with wake_affine() for such a waker, the task may leave
 * its cache, but not its node.
 */
static inline bool sync_on_waker(struct cw_sys *sys, const struct cw_wakeup *w)
{
	const struct cw_cpu *rq = cpu_rq(sys, w->this_cpu);

	return sched_feat(sys, CW_FEAT_SYNC_ON_WAKER) && (w->wake_flags & WF_SYNC) && w->in_task &&
	       (w->waker->flags & CW_TASK_SLEEPS_AFTER_SYNC) && rq->nr_running == 1 &&
	       !rq->ttwu_pending && rq->node == cpu_rq(sys, w->prev_cpu)->node &&
	       cpumask_test_cpu(w->this_cpu, w->cpus_ptr) &&
	       (!sys->asym_present || task_fits_cpu(sys, w->p, w->this_cpu));
}

/* May the waker's CPU be the target? If not, domains with SD_BALANCE_WAKE place the task. */
static inline bool want_affine(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d)
{
	if (wake_wide(sys, w)) {
		d->notes |= CW_NOTE_WAKE_WIDE;
		return false;
	}
	if (wake_cap(sys, w)) {
		d->notes |= CW_NOTE_WAKE_CAP;
		return false;
	}
	if (cpumask_test_cpu(w->this_cpu, w->cpus_ptr))
		return true;
	d->notes |= CW_NOTE_AFFINITY;
	return false;
}

static inline s32 find_cpu(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d)
{
	u32 sd_flag = w->wake_flags & (WF_EXEC | WF_FORK | WF_TTWU);
	bool affine = false;
	struct cw_domain *sd;
	s32 slow = -1, packed = vcpu_pack(sys, w);
	u32 level;

	if (packed >= 0)
		return decide(d, packed, CW_REASON_VCPU_PACK);
	if (w->wake_flags & WF_TTWU) {
		record_wakee(w);
		if ((w->wake_flags & WF_CURRENT_CPU) && cpumask_test_cpu(w->this_cpu, w->cpus_ptr))
			return decide(d, w->this_cpu, CW_REASON_CURRENT_CPU);
		if (sync_on_waker(sys, w))
			return decide(d, w->this_cpu, CW_REASON_SYNC_WAKER);
		affine = want_affine(sys, w, d);
	}
	for_each_domain(sys, w->this_cpu, level, sd) {
		if (affine && (sd->flags & SD_WAKE_AFFINE) &&
		    cpumask_test_cpu(w->prev_cpu, &sd->span)) {
			if (w->this_cpu != w->prev_cpu)
				d->target = wake_affine(sys, w, d, sd);
			slow = -1;
			break;
		}
		if (sd->flags & sd_flag)
			slow = (s32)level;
		else if (!affine)
			break;
	}
	if (slow >= 0)
		return sched_balance_find_dst_cpu(sys, w, d, (u32)slow, sd_flag);
	if (w->wake_flags & WF_TTWU) {
		s32 cpu = select_idle_sibling(sys, w, d, d->target);

		if (affine && !sched_feat(sys, CW_FEAT_RECENT_USED_PREV))
			w->waker->recent_used_cpu = w->this_cpu;
		return cpu;
	}
	return decide(d, w->prev_cpu, CW_REASON_NONE);
}

/*
 * The CPU for the task of `w`; `*d` becomes the record of how it was found.
 * `w->waker` is never NULL: an interrupt on an idle CPU wakes with the idle
 * task as its waker.
 */
static inline s32 select_task_rq_fair(struct cw_sys *sys, const struct cw_wakeup *w,
				      struct cw_decision *d)
{
	struct cw_wakeup from = *w;

	*d = (struct cw_decision){
		.now = w->now,
		.pid = w->p->pid,
		.this_cpu = w->this_cpu,
		.prev_cpu = w->prev_cpu,
		.event = w->wake_flags,
	};
	if (w->wake_flags & WF_TTWU)
		from.prev_cpu = select_cache_cpu(sys, w, d);
	d->target = from.prev_cpu;
	d->cpu = find_cpu(sys, &from, d);
	return d->cpu;
}

#endif /* CW_WAKEUP_H */
