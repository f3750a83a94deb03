/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The upkeep of the state that the policy decides on. A host reports what tasks and CPUs
 * do, and the functions below do what the kernel's fair class does at the same moment:
 *
 *	track_init_task()	a task is seen for the first time
 *	track_fork()		it was created by another one
 *	track_enqueue_task()	it is queued on a CPU: it woke up, is new, or was moved
 *	track_set_next_task()	the CPU switches to it
 *	track_task_tick()	a tick finds it running
 *	track_put_prev_task()	the CPU switches away from it
 *	track_dequeue_task()	it leaves the queue
 *	track_sleep()		it leaves because it waits for something
 *	track_delay_dequeue()	it waits for something, but stays queued (DELAY_DEQUEUE)
 *	track_requeue_delayed()	it is woken while it is still queued
 *	track_detach_task()	it has been dequeued to be moved
 *	track_set_task_cpu()	it sleeps, and will be queued on another CPU than before
 *	track_remove_task()	it has ended, or leaves the class
 *	set_next_task_idle()	the CPU goes idle
 *	put_prev_task_idle()	the CPU is no longer idle
 *	clear_tg_offline_cfs_rqs()	the CPU goes offline (task_group.h)
 *
 * A CPU's averages are written by the holder of its runqueue's lock. There is one
 * exception: a CPU that pulls a task takes it off another queue without that lock. It
 * therefore changes counters atomically (account.h), and subtracts averages by a note in
 * cw_removed, as for sleepers. Two CPUs may clear and write such a note at the same time;
 * what is lost then decays.
 *
 * The task groups around the tasks, where a host has any, follow in the same functions
 * (task_group.h).
 */
#ifndef CW_UPKEEP_H
#define CW_UPKEEP_H

#include "balance/misfit.h"
#include "balance/newidle.h"
#include "track/account.h"
#include "track/process.h"
#include "track/runnable_load.h"
#include "wakeup/select_idle.h"

/* The granularity of averages, ns: shorter times change nothing (update_load_sum()). */
#define CW_PELT_STEP 1024

static inline bool is_current(const struct cw_avg *avg, u64 clock)
{
	return clock - avg->last_update_time < CW_PELT_STEP;
}

/* Moves the clock of the CPU's averages to `now`. */
static inline u64 update_rq_clock(struct cw_sys *sys, s32 cpu, u64 now)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);
	s64 delta = (s64)(now - rq->clock_task);

	if (delta > 0) {
		rq->clock_task = now;
		update_rq_clock_pelt(rq, (u64)delta);
	}
	return rq->clock_pelt;
}

/* Brings the averages of the CPU's runqueue to its clock. */
CW_GLOBAL bool update_cfs_rq(struct cw_sys *sys CW_NONNULL, s32 cpu, u64 clock)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);

	if (sched_feat(sys, CW_FEAT_IDLEST_BY_LOAD))
		update_runnable_load(sys, clock, cpu);
	if (task_group_depth(sys))
		update_load_avg_groups(sys, cpu, clock);
	return update_cfs_rq_load_avg(clock, rq, rq->curr);
}

/* Brings the averages of the CPU's runqueue to `now`. */
static inline void update_blocked_averages(struct cw_sys *sys, s32 cpu, u64 now)
{
	if (update_cfs_rq(sys, cpu, update_rq_clock(sys, cpu, now)))
		update_task_groups(sys, cpu, true, false);
}

CW_GLOBAL bool update_se(struct cw_task *p CW_NONNULL, u64 clock, bool on_rq, bool running)
{
	return update_load_avg_se(clock, p, on_rq, running);
}

/* Brings a task's and its runqueue's averages to `now`; `on_rq`, `running`: its state until now. */
static inline bool update_load_avg(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now,
				   bool on_rq, bool running)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	u64 clock = update_rq_clock(sys, cpu, now);

	if (p->avg.last_update_time && !is_current(&p->avg, clock))
		update_se(p, clock, on_rq, running);
	if (is_current(&rq->avg, clock) && !rq->removed.nr)
		return false;
	return update_cfs_rq(sys, cpu, clock);
}

/* A task is seen for the first time, on `cpu`; its weight is known. */
static inline void track_init_task(struct cw_task *p, s32 cpu)
{
	p->numa_preferred_nid = NUMA_NO_NODE;
	p->recent_used_cpu = cpu;
	p->last_wakee = -1;
	p->cache_cpu = -1;
	p->cpu = cpu;
	p->queued.cpu = -1;
	p->queued.llc = CW_NONE;
	init_entity_runnable_average(p);
}

/*
 * A new task was created by `parent`. A fork copies the whole task (dup_task_struct(), kernel/fork.c), with
 * whom it woke last and how often that was another one.
 */
static inline void track_fork(struct cw_task *p, const struct cw_task *parent)
{
	p->last_wakee = parent->last_wakee;
	p->wakee_flips = parent->wakee_flips;
	p->wakee_flip_decay_ts = parent->wakee_flip_decay_ts;
}

/* The task, which is not queued, ends or goes elsewhere: its averages leave the CPU that they are part of. */
static inline void track_remove_task(struct cw_sys *sys, struct cw_task *p)
{
	if (!p->avg.last_update_time)
		return;
	remove_entity_load_avg(cpu_rq(sys, p->cpu), p);
	p->avg.last_update_time = 0;
}

/* A task that is not queued will be queued on `cpu`: it takes its averages along. */
static inline void track_set_task_cpu(struct cw_sys *sys, struct cw_task *p, s32 cpu)
{
	if (p->cpu == cpu)
		return;
	track_remove_task(sys, p);
	p->cpu = cpu;
}

/* The task was dequeued by the holder of the queue's lock, to be queued on another CPU. */
static inline void track_detach_task(struct cw_sys *sys, struct cw_task *p)
{
	detach_entity_load_avg(cpu_rq(sys, p->cpu), p);
	add_tg_cfs_propagate(sys, p->cpu, -(s64)p->avg.load_sum);
	update_task_groups(sys, p->cpu, true, false);
	p->avg.last_update_time = 0;
}

/* A queued task is taken away by another CPU, which does not hold the lock of the queue. */
static inline void steal_task(struct cw_sys *sys, struct cw_task *p)
{
	if (p->avg.last_update_time)
		update_load_avg_se(cpu_rq(sys, p->cpu)->avg.last_update_time, p, true, false);
	account_entity_dequeue(sys, p);
	track_remove_task(sys, p);
}

/* The task, which is not queued on `cpu`, is from now on. */
CW_GLOBAL bool enqueue_load(struct cw_sys *sys CW_NONNULL, struct cw_task *p CW_NONNULL, s32 cpu, u64 now)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);
	bool changed;

	update_avg_idle(sys, cpu, now);
	if (p->queued.cpu >= 0)
		steal_task(sys, p);
	track_set_task_cpu(sys, p, cpu);
	if (p->flags & CW_TASK_NEW) {
		p->flags &= ~(u32)CW_TASK_NEW;
		post_init_entity_util_avg(rq, p);
	}
	changed = update_load_avg(sys, p, cpu, now, false, false);
	if (!p->avg.last_update_time) {
		attach_entity_load_avg(rq, p);
		add_tg_cfs_propagate(sys, cpu, (s64)p->avg.load_sum);
		/* it has come from another CPU and has nothing in this one's caches (task_hot) */
		p->exec_start = 0;
		changed = true;
	}
	if (sched_feat(sys, CW_FEAT_IDLEST_BY_LOAD))
		enqueue_runnable_load(sys, cpu, p);
	account_entity_enqueue(sys, p, cpu);
	update_task_groups(sys, cpu, changed, true);
	return true;
}

/* The task is queued on `cpu`, on which it may not have been before. Nothing happens if it is there. */
static inline void track_enqueue_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	if (p->queued.cpu != cpu)
		enqueue_load(sys, p, cpu, now);
}

/* The task leaves the queue, if it is in one; `running`: it is current until now. */
static inline void track_dequeue_task(struct cw_sys *sys, struct cw_task *p, u64 now, bool running)
{
	s32 cpu = p->queued.cpu;
	bool changed;

	if (cpu < 0)
		return;
	changed = update_load_avg(sys, p, cpu, now, true, running);
	if (sched_feat(sys, CW_FEAT_IDLEST_BY_LOAD))
		dequeue_runnable_load(sys, cpu, p);
	account_entity_dequeue(sys, p);
	update_task_groups(sys, cpu, changed, true);
}

/* The task sleeps, but stays queued until it is eligible, or is woken before. */
static inline void track_delay_dequeue(struct cw_sys *sys, struct cw_task *p, u64 now)
{
	update_load_avg(sys, p, p->queued.cpu, now, true, true);
	set_delayed(sys, p);
}

/* A sleeper that is still queued is woken. */
static inline void track_requeue_delayed(struct cw_sys *sys, struct cw_task *p, u64 now)
{
	update_load_avg(sys, p, p->queued.cpu, now, true, false);
	clear_delayed(sys, p);
}

/*
 * A waker that sleeps within this time, ns, counts as sleeping at once. An assumption: the
 * time that an idle CPU takes to leave its idle state and to enter it again, a few us each.
 */
#define CW_SYNC_SLEEP_NS 10000

/* SYNC_ON_WAKER: the task wakes another one synchronously. */
static inline void note_sync_wakeup(struct cw_task *p, u64 now)
{
	if (!p->sync_at)
		p->sync_at = now;
}

/*
 * The task sleeps, with or without a delayed dequeue. Its utilisation this time becomes part
 * of its estimate. If it has woken others synchronously since it last slept, the time until
 * now shows whether it sleeps as such a wakeup promises (SYNC_ON_WAKER).
 */
static inline void track_sleep(const struct cw_sys *sys, struct cw_task *p, u64 now)
{
	util_est_update(sys, &sys->cpu[p->cpu & CW_CPU_MASK], p);
	if (!p->sync_at)
		return;
	if ((s64)(now - p->sync_at) < CW_SYNC_SLEEP_NS)
		p->flags |= CW_TASK_SLEEPS_AFTER_SYNC;
	else
		p->flags &= ~(u32)CW_TASK_SLEEPS_AFTER_SYNC;
	p->sync_at = 0;
}

/* `cpu` goes idle. */
static inline void set_next_task_idle(struct cw_sys *sys, s32 cpu, u64 now)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);

	/* until now its clock ran as that of a busy CPU */
	update_rq_clock(sys, cpu, now);
	update_idle_rq_clock_pelt(rq);
	rq->curr_is_idle = 1;
	rq->ttwu_pending = 0;
	if (!rq->idle_stamp)
		rq->idle_stamp = now;
	update_idle_core(sys, cpu);
}

/* `cpu` is not idle any more. */
static inline void put_prev_task_idle(struct cw_sys *sys, s32 cpu, u64 now)
{
	update_rq_clock(sys, cpu, now);
	cpu_rq(sys, cpu)->curr_is_idle = 0;
}

/* Updates the data about the running task of `cpu`, whose averages have just been brought to now. */
static inline void note_curr(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	p->exec_start = now;
	cpu_rq(sys, cpu)->curr_util = (u32)p->avg.util_avg;
	update_misfit_status(sys, p, cpu);
}

/* `cpu`, on whose queue the task is, switches to it. */
static inline void track_set_next_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);

	if (rq->curr_is_idle)
		put_prev_task_idle(sys, cpu, now);
	if (update_load_avg(sys, p, cpu, now, true, false))
		update_task_groups(sys, cpu, true, false);
	note_curr(sys, p, cpu, now);
	rq->curr = p->process;
}

/* A tick of `cpu` finds the task running. */
static inline void track_task_tick(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	update_task_groups(sys, cpu, update_load_avg(sys, p, cpu, now, true, true), true);
	note_curr(sys, p, cpu, now);
}

/* `cpu` switches away from the task, which waits, is about to leave the queue, or has left it. */
static inline void track_put_prev_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	p->exec_start = now;
	if (p->queued.cpu == cpu)
		update_load_avg(sys, p, cpu, now, true, true);
	cpu_rq(sys, cpu)->curr = 0;
	cpu_rq(sys, cpu)->curr_util = 0;
}

/* The number of CPUs that run threads of the process. */
CW_GLOBAL u32 nr_running_threads(const struct cw_sys *sys CW_NONNULL, u32 process)
{
	u32 nr = unknown(0u);
	s32 cpu;

	for (cpu = unknown(0); cpu < (s32)sys->nr_cpus && may_loop(); cpu++)
		nr += sys->cpu[cpu & CW_CPU_MASK].curr == process;
	return nr;
}

/* The running task has run for `delta` ns until `now`. */
CW_GLOBAL bool account_mm_sched(struct cw_sys *sys CW_NONNULL, struct cw_process *process CW_NONNULL,
				struct cw_task *p CW_NONNULL, u64 delta, u64 now)
{
	account_process(sys, process, p->cpu, delta, now);
	if (sched_cache_enabled(sys))
		set_preferred_llc(sys, p, process->cache_cpu);
	return true;
}

/* The running task searches for the LLC that its process is to prefer; false if it need not. */
CW_GLOBAL bool task_cache_work(struct cw_sys *sys CW_NONNULL, struct cw_process *process CW_NONNULL,
			       const struct cw_task *p CW_NONNULL, u64 now)
{
	return process_find_llc(sys, process, p->cpu, nr_running_threads(sys, p->process), now);
}

#endif /* CW_UPKEEP_H */
