/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy's state on a running kernel.
 *
 * User space fills in `sys` before the programs start: CPUs, caches, domains,
 * groups, features, tunables. From then on, the functions of track/upkeep.h and
 * those below keep it current as tasks run.
 */
#ifndef CW_HOST_BPF_H
#define CW_HOST_BPF_H

#include "queue/entity.h"
#include "track/upkeep.h"
#include "wakeup/wakeup.h"

struct cw_sys sys;

/* The state of each CPU's dice. */
u32 random_state[CW_MAX_CPUS];

/* The host's data about a task, in the task's storage. */
struct host_task {
	struct cw_task policy;
	struct cw_cpumask allowed; /* where it may run */
};

/* static_prio of nice -20: MAX_RT_PRIO, include/linux/sched/prio.h. */
#define HOST_MAX_RT_PRIO 100
/* SCHED_IDLE, include/uapi/linux/sched.h */
#define HOST_SCHED_IDLE 5

/* A random number for the policy. The kernel's own generator takes a hundred and fifty instructions. */
static inline u32 host_random(s32 cpu)
{
	u32 *state = &random_state[cpu & CW_CPU_MASK];

	/* a linear congruential generator (Numerical Recipes, ranqd1), whose high bits are the good ones */
	*state = *state * 1664525 + 1013904223;
	return *state;
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
static inline void host_init_task(struct host_task *t, const struct task_struct *p, bool is_new,
				  u64 now)
{
	t->policy.pid = p->pid;
	t->policy.process = (u32)p->tgid;
	if (is_new)
		t->policy.flags |= CW_TASK_NEW;
	host_set_weight(t, p);
	track_init_task(&t->policy, bpf_get_smp_processor_id());
	t->policy.wakee_flips = p->wakee_flips;
	t->policy.wakee_flip_decay_ts = now;
}

/* The task leaves its queue, if it is in one. `sleeps`: it does so because it waits for something, or ends. */
static inline void host_dequeue_task(struct host_task *t, u64 now, bool sleeps)
{
	if (t->policy.queued.cpu < 0)
		return;
	track_dequeue_task(&sys, &t->policy, now, false);
	if (sleeps)
		track_sleep(&sys, &t->policy, now);
}

/* What its frequency leaves of each CPU's speed, where the kernel finds that out (arch_scale_freq_tick()). */
extern const unsigned long arch_freq_scale __ksym __weak;

static inline void host_scale_freq(s32 cpu)
{
	const unsigned long *scale;

	if (!&arch_freq_scale)
		return;
	scale = bpf_per_cpu_ptr(&arch_freq_scale, cpu);
	if (scale)
		cpu_rq(&sys, cpu)->freq_capacity = (u32)*scale;
}

/* `cpu` goes idle, or is no longer idle. */
static inline void host_set_idle(s32 cpu, bool idle, u64 now)
{
	if (cpu_rq(&sys, cpu)->curr_is_idle == idle)
		return;
	if (idle)
		set_next_task_idle(&sys, cpu, now);
	else
		put_prev_task_idle(&sys, cpu, now);
	cw_add(&llc_of(&sys, cpu)->nr_busy_cpus, idle ? -1 : 1);
}

/* `cpu` switches to the task, which may not have been seen on its queue. */
static inline void host_set_next_task(struct host_task *t, s32 cpu, u64 now)
{
	host_scale_freq(cpu);
	track_enqueue_task(&sys, &t->policy, cpu, now);
	host_set_idle(cpu, false, now);
	track_set_next_task(&sys, &t->policy, cpu, now);
}

#endif /* CW_HOST_BPF_H */
