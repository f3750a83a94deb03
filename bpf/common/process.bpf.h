/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last-level cache that each process prefers: what policy/track/process.h has to be
 * told of processes and their threads, on machines with more than one such cache.
 * A process is kept from its second thread on, where the host says: by
 * find_process() and new_process(), which are defined before this is included and
 * give NULL if it is not there, or there is no memory.
 */
#ifndef CW_PROCESS_BPF_H
#define CW_PROCESS_BPF_H

#include "host.bpf.h"

/* Does a feature ask what processes prefer, and is there anything to prefer? */
static inline bool cache_aware(void)
{
	return sys.nr_llcs > 1 &&
	       (sched_feat(&sys, CW_FEAT_SCHED_CACHE) || sched_feat(&sys, CW_FEAT_CACHE_AWARE_WAKEUP) ||
		sched_feat(&sys, CW_FEAT_CACHE_AWARE_HOT));
}

/* The process of a task; NULL for one of a single thread, or while nobody asks. */
static inline struct cw_process *lookup_process(struct task_struct *p)
{
	struct cw_process *process;
	struct task_struct *leader;
	u32 threads;

	if (!cache_aware() || (threads = (u32)p->signal->nr_threads) < 2)
		return NULL;
	leader = p->group_leader;
	process = leader ? find_process(leader) : NULL;
	if (process)
		process->nr_threads = threads;
	return process;
}

CW_GLOBAL bool host_process_init(struct cw_process *process CW_NONNULL, u64 now)
{
	process_init(&sys, process, now);
	return true;
}

/* A thread is created; the second one makes its process one that may prefer a cache. */
static inline void sched_cache_fork(struct task_struct *p, u64 now)
{
	struct task_struct *leader = p->group_leader;
	struct cw_process *process;

	if (sys.nr_llcs < 2 || !leader || p->pid == p->tgid || find_process(leader))
		return;
	process = new_process(leader);
	if (process)
		host_process_init(process, now);
}

/* The task is counted for another LLC from now on, or for none. */
static inline void set_preferred_llc(struct host_task *t, const struct cw_process *process)
{
	s32 cpu = process->cache_cpu;
	u32 llc = cpu < 0 ? CW_NONE : cpu_rq(&sys, cpu)->llc;
	u32 counted = t->policy.flags & CW_TASK_PREFERRED_LLC ? t->policy.preferred_llc : CW_NONE;

	if (llc == counted)
		return;
	host_count_llc(t, -1);
	t->policy.preferred_llc = llc;
	if (llc == CW_NONE)
		t->policy.flags &= ~(u32)CW_TASK_PREFERRED_LLC;
	else
		t->policy.flags |= CW_TASK_PREFERRED_LLC;
	host_count_llc(t, 1);
}

CW_GLOBAL bool account_mm_sched(struct host_task *t CW_NONNULL, struct cw_process *process CW_NONNULL,
				s32 cpu, u64 delta, u64 now)
{
	account_process(&sys, process, cpu, delta, now);
	if (sched_feat(&sys, CW_FEAT_SCHED_CACHE))
		set_preferred_llc(t, process);
	return true;
}

/* How many CPUs run threads of the process. */
CW_GLOBAL u32 nr_running_threads(u32 tgid)
{
	u32 nr = 0;

	for (u32 cpu = 0; cpu < sys.nr_cpus && cpu < CW_MAX_CPUS && may_loop(); cpu++)
		nr += host_cpu_of(cpu)->curr == tgid;
	return nr;
}

CW_GLOBAL bool task_cache_work(struct cw_process *process CW_NONNULL, s32 cpu, u32 tgid, u64 now)
{
	return process_find_llc(&sys, process, cpu, nr_running_threads(tgid), now);
}

/* At a tick: is it time for the running task to look for an LLC? */
static inline void task_tick_cache(struct task_struct *p, s32 cpu, u64 now)
{
	struct cw_process *process = lookup_process(p);

	if (process && process_tick(&sys, process, now))
		task_cache_work(process, cpu, (u32)p->tgid, now);
}

#endif /* CW_PROCESS_BPF_H */
