/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last-level cache that a process prefers: the one whose CPUs spent the
 * greatest part of their time on its threads lately.
 *
 * Run time is added up per CPU, for each process and for all, and halved each
 * epoch (10 ms). The process occupies a CPU by its part of the sum,
 *
 *	occupancy = 1024 * process's run time / all processes' run time
 *
 * and an LLC by the mean over its CPUs. Once per epoch, from the tick of one of
 * its threads, it looks for the LLC that it occupies most.
 *
 * From the first patches of the RFC that seed 003 is part of (2025); from 7.3
 * the margin by which another LLC has to be better (llc_switch_pct).
 *
 * The host calls, for each process:
 *
 *	process_init()		when it starts
 *	account_process()	when a thread of it has run
 *	process_tick()		from the tick of a CPU that runs a thread of it;
 *				if that says so, process_find_llc() on the thread's
 *				way out of the kernel
 *	task_cache_cpu()	before the policy is asked about one of its tasks
 */
#ifndef CW_PROCESS_H
#define CW_PROCESS_H

#include "mask.h"
#include "topology.h"
#include "types.h"

/* Bits behind the point of an occupancy while it is worked out. */
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
	for (u32 cpu = 0; cpu < CW_MAX_CPUS; cpu++)
		process->runtime[cpu] = (struct cw_runtime){ .epoch = epoch };
}

/*
 * A thread of `process` (NULL for a kernel thread) ran on `cpu` for `delta` ns
 * until `now`. A process of one thread, or that has not looked for an LLC for
 * too long, prefers none.
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
	    process->nr_threads <= 1)
		process->cache_cpu = -1;
}

/* Is it time to look for an LLC? Then the caller is the one to do it. */
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

/* The mean over the CPUs of an LLC; `*most` becomes the CPU that is occupied most, or -1. */
static inline u64 llc_occupancy(struct cw_sys *sys, struct cw_process *process,
				const struct cw_domain *llc, u64 epoch, s32 *most)
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
	return llc->weight ? sum / llc->weight : 0;
}

/*
 * Find the LLC that the process occupies most. It has to occupy llc_min_occupancy
 * of it, and an LLC other than the one it prefers already has to be better by
 * llc_switch_pct. CPUs that have their cache for themselves do not count.
 */
static inline void process_find_llc(struct cw_sys *sys, struct cw_process *process, u64 now)
{
	u64 epoch = cache_epoch(sys, now), best = 0, preferred = 0, enough;
	s32 best_cpu = -1, cpu, old = process->cache_cpu;

	for (cpu = 0; cpu < CW_MAX_CPUS && cpu < (s32)sys->nr_cpus; cpu++) {
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
	if (best < enough)
		process->cache_cpu = -1;
	else if (best * 100 > preferred * (u64)tunable(sys, CW_TUNE_llc_switch_pct) ||
		 (best_cpu >= 0 && old >= 0 && cpus_share_cache(sys, best_cpu, old)))
		process->cache_cpu = best_cpu;
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
