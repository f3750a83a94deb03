/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last-level cache that a process prefers: the one whose CPUs recently spent the
 * greatest part of their time on its threads.
 *
 * Run time is summed per CPU, for each process and for all processes, and halved each
 * epoch (10 ms). A process occupies a CPU by its part of the sum,
 *
 *	occupancy = 1024 * process's run time / all processes' run time
 *
 * and an LLC by the mean over its CPUs. Once per epoch, from the tick of one of its
 * threads, a process searches for the LLC that it occupies most.
 *
 * This is the RFC that seed 003 is part of (2025), except for the margin by which another
 * LLC has to be better (llc_switch_pct). With SCHED_CACHE it is as in Linux 7.3: an LLC
 * counts by the sum over its CPUs, however small it is, and a process that would not fit
 * into one (llc_aggr_tolerance) prefers none.
 *
 * The host calls, for each process:
 *
 *	process_init()		when it starts
 *	account_mm_sched()	when one of its threads has run (upkeep.h)
 *	process_tick()		from the tick of a CPU that runs one of its threads; if it
 *				returns true, task_cache_work() on the thread's way out of
 *				the kernel (upkeep.h)
 *	task_cache_cpu()	before the policy is asked about one of its tasks
 */
#ifndef CW_PROCESS_H
#define CW_PROCESS_H

#include "mask.h"
#include "topology.h"
#include "types.h"

/* Fractional bits of an occupancy while it is computed. */
#define CW_OCCUPANCY_SHIFT 20

static inline u64 cache_epoch(const struct cw_sys *sys, u64 now)
{
	u64 period = (u64)tunable(sys, CW_TUNE_llc_epoch_period);

	return now / (period ? period : 1);
}

/* Halve it for each epoch until `epoch`. */
static inline void decay_runtime(struct cw_runtime *r, u64 epoch)
{
	u64 n = epoch > r->epoch ? epoch - r->epoch : 0;

	r->runtime = n < 64 ? r->runtime >> n : 0;
	r->epoch = epoch;
}

static inline void process_init(const struct cw_sys *sys, struct cw_process *process, u64 now)
{
	u64 epoch = cache_epoch(sys, now);

	process->cache_cpu = -1;
	process->nr_threads = 1;
	process->epoch = epoch;
	process->nr_running_avg = 0;
	process->footprint = 0;
	for (u32 cpu = 0; cpu < CW_MAX_CPUS; cpu++)
		process->runtime[cpu] = (struct cw_runtime){ .epoch = epoch };
}

/*
 * Is the process too small or too big for the LLC of `cpu`? A single thread has
 * nothing to gather. With SCHED_CACHE, its running threads, counted as one core each,
 * may use up to 4/5 of the CPUs, times the tolerance. Its footprint may be as large as
 * the cache at tolerance 1, and larger by 256 times that for each further step
 * (Linux 7.3: debugfs sched/llc_balancing/aggr_tolerance).
 */
static inline bool exceeds_llc(struct cw_sys *sys, const struct cw_process *process, s32 cpu)
{
	u64 tolerance = (u64)tunable(sys, CW_TUNE_llc_aggr_tolerance);
	u64 threads = sys->smt_threads ? sys->smt_threads : 1;
	u64 caches = tolerance ? 1 + (tolerance - 1) * 256 : 0;
	const struct cw_llc *llc = llc_of(sys, cpu);

	if (process->nr_threads <= 1)
		return true;
	if (!sched_cache_enabled(sys) || tolerance >= 100)
		return false;
	return process->nr_running_avg * threads * 5 >= tolerance * llc->weight * 4 ||
	       process->footprint > caches * llc->bytes;
}

/*
 * A thread of `process` (NULL for a kernel thread) ran on `cpu` for `delta` ns
 * until `now`. A process that does not fit the LLC, or that has not looked for
 * one for too long, prefers none.
 */
static inline void account_process(struct cw_sys *sys, struct cw_process *process, s32 cpu,
				   u64 delta, u64 now)
{
	u64 epoch = cache_epoch(sys, now);
	struct cw_runtime *all = &sys->runtime[cpu & CW_CPU_MASK], *own;

	if (!process)
		return;
	own = &process->runtime[cpu & CW_CPU_MASK];
	decay_runtime(all, epoch);
	decay_runtime(own, epoch);
	all->runtime += delta;
	own->runtime += delta;
	if (epoch > process->epoch + (u64)tunable(sys, CW_TUNE_llc_epoch_affinity_timeout) ||
	    exceeds_llc(sys, process, cpu))
		process->cache_cpu = -1;
}

/* Is it time to search for an LLC? If so, the caller has to do it. */
static inline bool process_tick(const struct cw_sys *sys, struct cw_process *process, u64 now)
{
	u64 epoch = cache_epoch(sys, now);

	if (process->epoch >= epoch)
		return false;
	process->epoch = epoch;
	return true;
}

/* The part of the time of `cpu` that went to the process, with CW_OCCUPANCY_SHIFT bits. */
static inline u64 cpu_occupancy(struct cw_sys *sys, struct cw_process *process, s32 cpu, u64 epoch)
{
	struct cw_runtime *all = &sys->runtime[cpu & CW_CPU_MASK];
	struct cw_runtime *own = &process->runtime[cpu & CW_CPU_MASK];

	decay_runtime(all, epoch);
	decay_runtime(own, epoch);
	/* at most two epochs' time in it, so this does not overflow */
	return (own->runtime << CW_OCCUPANCY_SHIFT) / (all->runtime + 1);
}

/* The mean, or the sum, over the CPUs of an LLC; `*most` becomes the CPU that is occupied most, or -1. */
CW_GLOBAL u64 llc_occupancy(struct cw_sys *sys CW_NONNULL, struct cw_process *process CW_NONNULL,
			    const struct cw_domain *llc CW_NONNULL, u64 epoch, s32 *most CW_NONNULL)
{
	u64 sum = 0, max = 0;
	s32 cpu;

	*most = -1;
	for_each_cpu(sys, cpu, &llc->span) {
		u64 occupancy = cpu_occupancy(sys, process, cpu, epoch);

		sum += occupancy;
		if (occupancy > max) {
			max = occupancy;
			*most = cpu;
		}
	}
	if (sched_cache_enabled(sys))
		return sum;
	return llc->weight ? sum / llc->weight : 0;
}

/* Move the average of running threads a part of the way: 1/8, or more for an LLC of fewer than 32 CPUs. */
static inline void update_nr_running_avg(struct cw_sys *sys, struct cw_process *process, s32 cpu,
					 u32 nr_running)
{
	u32 divisor = llc_of(sys, cpu)->weight / 4;
	u64 avg = process->nr_running_avg;

	divisor = divisor < 2 ? 2 : divisor > 8 ? 8 : divisor;
	if (nr_running > avg)
		process->nr_running_avg += (nr_running - avg) / divisor;
	else
		process->nr_running_avg -= (avg - nr_running) / divisor;
}

/*
 * Find the LLC that the process occupies most. It has to occupy llc_min_occupancy
 * of it (not with SCHED_CACHE), and an LLC other than the preferred one has to be
 * better by llc_switch_pct. CPUs that do not share their cache do not count.
 *
 * A thread on `this_cpu` searches while `nr_running` threads run. As in 7.3, a process
 * that does not fit does not search, so its average stays until the tolerance is raised.
 * Returns whether it searched.
 */
static inline bool process_find_llc(struct cw_sys *sys, struct cw_process *process, s32 this_cpu,
				    u32 nr_running, u64 now)
{
	u64 epoch = cache_epoch(sys, now), best = 0, preferred = 0, enough;
	s32 best_cpu = -1, cpu, old = process->cache_cpu;

	if (exceeds_llc(sys, process, this_cpu)) {
		process->cache_cpu = -1;
		return false;
	}
	for (cpu = unknown(0); cpu < (s32)sys->nr_cpus && may_loop(); cpu++) {
		const struct cw_domain *llc = sd_llc(sys, cpu);
		u64 occupancy;
		s32 most;

		/* once for each LLC */
		if (!llc || cpumask_first(sys, &llc->span) != cpu)
			continue;
		occupancy = llc_occupancy(sys, process, llc, epoch, &most);
		if (occupancy > best) {
			best = occupancy;
			best_cpu = most;
		}
		if (old >= 0 && cpus_share_cache(sys, cpu, old))
			preferred = occupancy;
	}
	enough = (u64)tunable(sys, CW_TUNE_llc_min_occupancy) << (CW_OCCUPANCY_SHIFT - 10);
	if (sched_cache_enabled(sys))
		enough = 0;
	if (best < enough)
		process->cache_cpu = -1;
	else if (best * 100 > preferred * (u64)tunable(sys, CW_TUNE_llc_switch_pct) ||
		 (best_cpu >= 0 && old >= 0 && cpus_share_cache(sys, best_cpu, old)))
		process->cache_cpu = best_cpu;
	update_nr_running_avg(sys, process, this_cpu, nr_running);
	return true;
}

/* Let `p` carry what its process prefers; `process` is NULL for a kernel thread. */
static inline void task_cache_cpu(struct cw_task *p, const struct cw_process *process)
{
	p->flags &= ~(u32)CW_TASK_CACHE_CPU;
	if (!process)
		return;
	p->nr_threads = process->nr_threads;
	p->cache_cpu = process->cache_cpu;
	if (process->cache_cpu >= 0)
		p->flags |= CW_TASK_CACHE_CPU;
}

#endif /* CW_PROCESS_H */
