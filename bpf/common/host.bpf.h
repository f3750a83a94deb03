/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy's state on a running kernel, and its upkeep.
 *
 * User space fills in `sys` before the programs start: CPUs, caches, domains,
 * groups, features, tunables. From then on it follows what tasks do, by the
 * functions below, each of which stands for what the fair class does at the
 * same moment:
 *
 *	host_init_task()	a task is seen for the first time
 *	host_enqueue_task()	it is queued on a CPU: it woke up, is new, was moved
 *	host_set_next_task()	the CPU switches to it
 *	host_task_tick()	a tick finds it running
 *	host_put_prev_task()	the CPU switches away from it
 *	host_dequeue_task()	it leaves the queue
 *	host_set_task_cpu()	a sleeping task will be queued on another CPU than before
 *	host_set_idle()		the CPU goes idle, or is not idle any more
 *
 * A CPU's state is written by whoever holds its runqueue's lock. The exceptions
 * are what a CPU that pulls tasks takes off another one's queue: counters are
 * therefore changed atomically, each task takes off exactly what it had added,
 * and averages leave by the note in cw_removed, as those of sleepers do. Two
 * CPUs may clear and write such a note at once; what is lost then decays.
 */
#ifndef CW_HOST_BPF_H
#define CW_HOST_BPF_H

#include "balance/newidle.h"
#include "queue/entity.h"
#include "track/process.h"
#include "track/runnable_load.h"
#include "wakeup/wakeup.h"

struct cw_sys sys;

/* What the host keeps of a CPU beside the policy. */
struct host_cpu {
	u64 clock_task; /* ns until which clock_pelt was worked out */
	u64 clock_pelt; /* the clock of its averages: update_rq_clock_pelt() */
	u32 curr; /* the process of the task that it runs, if the host follows that task; else 0 */
	u32 random; /* state of its dice */
};

struct host_cpu host_cpu[CW_MAX_CPUS];

/* SCHED_CACHE looks at preferences for the first so many LLCs. */
#define HOST_MAX_LLCS 128
/* Tasks on the queue of each CPU that prefer each LLC. */
u32 llc_count[HOST_MAX_LLCS][CW_MAX_CPUS];

/* What the host keeps of a task, in the task's storage. */
struct host_task {
	struct cw_task policy;
	struct cw_cpumask allowed; /* where it may run */
	s32 cpu; /* the runqueue whose averages have a part of its own, if they were attached at all */
	s32 queued; /* CPU on whose queue it is counted, or -1 */
	/* what it is counted for there */
	u32 weight;
	u32 util_est;
	u32 sched_idle;
	u32 llc; /* SCHED_CACHE: the LLC that it is counted for, or CW_NONE */
	u32 is_new; /* it has not been queued yet */
	u32 process; /* its tgid where the host follows processes, else its own pid */
};

/* static_prio of nice -20: MAX_RT_PRIO, include/linux/sched/prio.h. */
#define HOST_MAX_RT_PRIO 100
/* SCHED_IDLE, include/uapi/linux/sched.h */
#define HOST_SCHED_IDLE 5

static inline struct host_cpu *host_cpu_of(s32 cpu)
{
	return &host_cpu[cpu & CW_CPU_MASK];
}

/* A random number for the policy's dice. The kernel's own take a hundred and fifty instructions. */
static inline u32 host_random(s32 cpu)
{
	struct host_cpu *c = host_cpu_of(cpu);

	/* a linear congruential generator (Numerical Recipes, ranqd1): its high bits are the good ones */
	c->random = c->random * 1664525 + 1013904223;
	return c->random;
}

/* Moves the clock of the CPU's averages to `now`. */
static inline u64 update_rq_clock(s32 cpu, u64 now)
{
	const struct cw_cpu *rq = cpu_rq(&sys, cpu);
	struct host_cpu *c = host_cpu_of(cpu);
	s64 delta = (s64)(now - c->clock_task);

	if (delta > 0) {
		c->clock_task = now;
		c->clock_pelt = update_rq_clock_pelt(c->clock_pelt, now, (u64)delta,
						     rq->capacity_orig, rq->curr_is_idle);
	}
	return c->clock_pelt;
}

/* Brings the runqueue's averages to its clock. */
CW_GLOBAL bool host_update_cfs_rq(s32 cpu, u64 clock)
{
	if (sched_feat(&sys, CW_FEAT_IDLEST_BY_LOAD))
		update_runnable_load(&sys, clock, cpu);
	return update_cfs_rq_load_avg(clock, cpu_rq(&sys, cpu), host_cpu_of(cpu)->curr != 0);
}

/* The steps in which averages are kept, ns: what is shorter changes nothing (update_load_sum()). */
#define HOST_PELT_STEP 1024

static inline bool is_current(const struct cw_avg *avg, u64 clock)
{
	return (s64)(clock - avg->last_update_time) < HOST_PELT_STEP;
}

CW_GLOBAL bool host_update_task(struct host_task *t CW_NONNULL, u64 clock, bool on_rq, bool running)
{
	return update_load_avg_se(clock, &t->policy, on_rq, running);
}

/* Brings a task's and its runqueue's averages to `now`; `on_rq`, `running`: what it did until now. */
static inline void update_load_avg(struct host_task *t, s32 cpu, u64 now, bool on_rq, bool running)
{
	const struct cw_cpu *rq = cpu_rq(&sys, cpu);
	u64 clock = update_rq_clock(cpu, now);

	if (t->policy.avg.last_update_time && !is_current(&t->policy.avg, clock))
		host_update_task(t, clock, on_rq, running);
	if (!is_current(&rq->avg, clock) || rq->removed.nr)
		host_update_cfs_rq(cpu, clock);
}

/* The task's nice value or policy has changed. */
static inline void host_set_weight(struct host_task *t, const struct task_struct *p)
{
	bool idle = p->policy == HOST_SCHED_IDLE;

	t->policy.weight = task_weight(p->static_prio - HOST_MAX_RT_PRIO - 20, idle);
	t->policy.flags &= ~(u32)CW_TASK_SCHED_IDLE;
	if (idle)
		t->policy.flags |= CW_TASK_SCHED_IDLE;
}

/* The task may run on the CPUs of `allowed` from now on. */
static inline void host_set_cpus_allowed(struct host_task *t, const struct task_struct *p,
					 const struct cpumask *allowed)
{
	u32 bytes = sys.mask_words * sizeof(u64);
	s32 cpu;

	if (bytes > sizeof(t->allowed))
		bytes = sizeof(t->allowed);
	bpf_probe_read_kernel(&t->allowed, bytes, allowed);
	t->policy.nr_cpus_allowed = (u32)p->nr_cpus_allowed;
	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)
		t->policy.flags |= CW_TASK_PERCPU_KTHREAD;
	else
		t->policy.flags &= ~(u32)CW_TASK_PERCPU_KTHREAD;
	t->policy.max_allowed_capacity = sys.max_cpu_capacity;
	if (!sys.asym_present)
		return;
	t->policy.max_allowed_capacity = 0;
	for_each_cpu(&sys, cpu, &t->allowed) {
		if (cpu_rq(&sys, cpu)->capacity_orig > t->policy.max_allowed_capacity)
			t->policy.max_allowed_capacity = cpu_rq(&sys, cpu)->capacity_orig;
	}
}

/* A task is seen for the first time; `is_new`: it has just been forked. */
static inline void host_init_task(struct host_task *t, const struct task_struct *p, bool is_new)
{
	t->policy.pid = p->pid;
	t->policy.numa_preferred_nid = NUMA_NO_NODE;
	t->policy.recent_used_cpu = bpf_get_smp_processor_id();
	t->policy.cache_cpu = -1;
	t->cpu = t->policy.recent_used_cpu;
	t->queued = -1;
	t->llc = CW_NONE;
	t->process = (u32)p->pid;
	t->is_new = is_new;
	host_set_weight(t, p);
	init_entity_runnable_average(&t->policy);
}

/*
 * SCHED_CACHE: counts the task, which is queued, for the LLC that it prefers, or
 * with -1 takes off what it is counted for.
 */
static inline void host_count_llc(struct host_task *t, s32 n)
{
	struct cw_cpu *rq = cpu_rq(&sys, t->queued);

	if (t->queued < 0)
		return;
	if (n > 0)
		t->llc = t->policy.flags & CW_TASK_PREFERRED_LLC ? t->policy.preferred_llc : CW_NONE;
	if (t->llc >= HOST_MAX_LLCS)
		return;
	__sync_fetch_and_add(&llc_count[t->llc][t->queued & CW_CPU_MASK], n);
	if (t->llc == rq->llc)
		__sync_fetch_and_add(&rq->nr_pref_llc_running, n);
}

/* SCHED_CACHE: how many tasks of each CPU prefer the LLC of `dst`, which is to balance its domain at `level`. */
CW_GLOBAL bool host_note_pref_dst_llc(s32 dst, u32 level)
{
	const struct cw_domain *sd = cpu_domain(&sys, dst, level);
	u32 llc = cpu_rq(&sys, dst)->llc;
	s32 cpu;

	if (!sd || sd->flags & SD_SHARE_LLC || llc >= HOST_MAX_LLCS ||
	    !sched_feat(&sys, CW_FEAT_SCHED_CACHE))
		return false;
	for_each_cpu(&sys, cpu, &sd->span)
		cpu_rq(&sys, cpu)->nr_pref_dst_llc = llc_count[llc][cpu & CW_CPU_MASK];
	return true;
}

/* Counts the task on the queue of `cpu`. */
static inline void host_count(struct host_task *t, s32 cpu)
{
	struct cw_cpu *rq = cpu_rq(&sys, cpu);

	t->weight = t->policy.weight;
	t->util_est = sched_feat(&sys, CW_FEAT_UTIL_EST) ? task_util_est_raw(&t->policy) : 0;
	t->sched_idle = !!(t->policy.flags & CW_TASK_SCHED_IDLE);
	t->queued = cpu;
	__sync_fetch_and_add(&rq->load_weight, t->weight);
	__sync_fetch_and_add(&rq->cfs_nr_running, 1);
	if (t->util_est)
		__sync_fetch_and_add(&rq->avg.util_est, t->util_est);
	if (t->sched_idle)
		__sync_fetch_and_add(&rq->idle_nr_running, 1);
	if (__sync_fetch_and_add(&rq->nr_running, 1) && !sys.overloaded)
		sys.overloaded = 1;
	host_count_llc(t, 1);
}

/* Takes off what the task is counted for; the CPU on whose queue that was, or -1. */
static inline s32 host_uncount(struct host_task *t)
{
	struct cw_cpu *rq;
	s32 cpu;

	host_count_llc(t, -1);
	cpu = __sync_lock_test_and_set(&t->queued, -1);
	if (cpu < 0)
		return cpu;
	rq = cpu_rq(&sys, cpu);
	__sync_fetch_and_add(&rq->load_weight, -(u64)t->weight);
	__sync_fetch_and_add(&rq->cfs_nr_running, -1);
	if (t->util_est)
		__sync_fetch_and_add(&rq->avg.util_est, -t->util_est);
	if (t->sched_idle)
		__sync_fetch_and_add(&rq->idle_nr_running, -1);
	__sync_fetch_and_add(&rq->nr_running, -1);
	return cpu;
}

/* A task that is not queued leaves the averages of the CPU that it was part of. */
static inline void host_set_task_cpu(struct host_task *t, s32 cpu)
{
	if (t->cpu == cpu)
		return;
	if (t->policy.avg.last_update_time) {
		remove_entity_load_avg(cpu_rq(&sys, t->cpu), &t->policy);
		t->policy.avg.last_update_time = 0;
	}
	t->cpu = cpu;
}

/* A queued task is taken away by another CPU. */
static inline void host_detach_task(struct host_task *t, s32 cpu)
{
	struct cw_cpu *rq = cpu_rq(&sys, t->cpu);

	if (t->policy.avg.last_update_time)
		update_load_avg_se(rq->avg.last_update_time, &t->policy, true, false);
	host_uncount(t);
	host_set_task_cpu(t, cpu);
}

/* The task is queued on `cpu`, on which it may not have been before. */
CW_GLOBAL s32 host_enqueue_task(struct host_task *t CW_NONNULL, s32 cpu, u64 now)
{
	struct cw_cpu *rq = cpu_rq(&sys, cpu);

	if (t->queued == cpu)
		return cpu;
	update_avg_idle(&sys, cpu, now);
	if (t->queued >= 0)
		host_detach_task(t, cpu);
	host_set_task_cpu(t, cpu);
	update_load_avg(t, cpu, now, false, false);
	if (t->is_new) {
		post_init_entity_util_avg(rq, &t->policy);
		t->is_new = 0;
	}
	if (!t->policy.avg.last_update_time)
		attach_entity_load_avg(rq, &t->policy);
	if (sched_feat(&sys, CW_FEAT_IDLEST_BY_LOAD))
		enqueue_runnable_load(&sys, cpu, &t->policy);
	host_count(t, cpu);
	return cpu;
}

/* The task leaves the queue; `sleeps`: because it waits for something, or ends. */
static inline void host_dequeue_task(struct host_task *t, u64 now, bool sleeps)
{
	s32 cpu = t->queued;

	if (cpu < 0)
		return;
	update_load_avg(t, cpu, now, true, false);
	if (sched_feat(&sys, CW_FEAT_IDLEST_BY_LOAD))
		dequeue_runnable_load(&sys, cpu, &t->policy);
	host_uncount(t);
	if (sleeps)
		util_est_update(&sys, cpu_rq(&sys, cpu), &t->policy);
}

/* `cpu` goes idle, or is not idle any more. */
static inline void host_set_idle(s32 cpu, bool idle, u64 now)
{
	struct cw_cpu *rq = cpu_rq(&sys, cpu);

	if (rq->curr_is_idle == idle)
		return;
	/* the clock ran as of a busy CPU until now, or as of an idle one */
	update_rq_clock(cpu, now);
	rq->curr_is_idle = idle;
	__sync_fetch_and_add(&llc_of(&sys, cpu)->nr_busy_cpus, idle ? -1 : 1);
	if (!idle)
		return;
	rq->ttwu_pending = 0;
	if (!rq->idle_stamp)
		rq->idle_stamp = now;
	update_idle_core(&sys, cpu);
}

/* `cpu` switches to the task. */
static inline void host_set_next_task(struct host_task *t, s32 cpu, u64 now)
{
	host_enqueue_task(t, cpu, now);
	host_set_idle(cpu, false, now);
	update_load_avg(t, cpu, now, true, false);
	update_misfit_status(&sys, &t->policy, cpu);
	t->policy.exec_start = now;
	host_cpu_of(cpu)->curr = t->process;
}

/* A tick of `cpu` finds the task running. */
static inline void host_task_tick(struct host_task *t, s32 cpu, u64 now)
{
	t->policy.exec_start = now;
	update_load_avg(t, cpu, now, true, true);
	update_misfit_status(&sys, &t->policy, cpu);
}

/* `cpu` switches away from the task, which goes on waiting, or leaves the queue next. */
static inline void host_put_prev_task(struct host_task *t, s32 cpu, u64 now)
{
	t->policy.exec_start = now;
	update_load_avg(t, cpu, now, true, true);
	host_cpu_of(cpu)->curr = 0;
}

#endif /* CW_HOST_BPF_H */
