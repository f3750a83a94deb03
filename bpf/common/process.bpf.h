/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last-level cache that each process prefers, on machines with more than one
 * such cache. These functions report processes and their threads to
 * policy/track/process.h. A process is tracked from its second thread on. The
 * program that includes this file stores the processes: it defines find_process()
 * and new_process() first, which return NULL if the process is not there or no
 * memory is left.
 */
#ifndef CW_PROCESS_BPF_H
#define CW_PROCESS_BPF_H

#include "host.bpf.h"

/* Does a feature use the preferences of processes, and does the machine have several LLCs? */
static inline bool cache_aware(void)
{
	return sys.nr_llcs > 1 &&
	       (sched_cache_enabled(&sys) || sched_feat(&sys, CW_FEAT_CACHE_AWARE_WAKEUP) ||
		sched_feat(&sys, CW_FEAT_CACHE_AWARE_HOT));
}

/* The process of a task; NULL if it has a single thread, or while no feature asks. */
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

/* A thread is created. From its second thread on, a process may prefer a cache. */
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

/* At a tick: is it time for the running task to search for an LLC? */
static inline void task_tick_cache(struct task_struct *p, struct host_task *t, u64 now)
{
	struct cw_process *process = lookup_process(p);

	if (process && process_tick(&sys, process, now))
		task_cache_work(&sys, process, &t->policy, now);
}

#endif /* CW_PROCESS_BPF_H */
