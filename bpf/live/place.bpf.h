/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task goes that wakes, is new, or has executed another program. An idle CPU is
 * claimed for the task that is placed there, so that no other task is until it has run.
 */
#ifndef CW_PLACE_BPF_H
#define CW_PLACE_BPF_H

/* Claims an idle CPU for a task that has just been placed there. */
static inline bool claim_idle_cpu(s32 cpu)
{
	struct cw_cpu *rq = cpu_rq(&sys, cpu);

	if (!rq->curr_is_idle || !idle_cpu(&sys, cpu) ||
	    __sync_lock_test_and_set(&claimed[cpu & CW_CPU_MASK], 1))
		return false;
	rq->ttwu_pending = 1;
	return true;
}

/* Claims the CPU of a waker that is about to sleep for the task that it wakes, which runs next there. */
static inline bool claim_waker_cpu(s32 cpu, const struct cw_decision *d)
{
	if (d->reason != CW_REASON_SYNC_WAKER ||
	    __sync_lock_test_and_set(&claimed[cpu & CW_CPU_MASK], 1))
		return false;
	cpu_rq(&sys, cpu)->ttwu_pending = 1;
	return true;
}

static inline void release_cpu(s32 cpu)
{
	claimed[cpu & CW_CPU_MASK] = 0;
	cpu_rq(&sys, cpu)->ttwu_pending = 0;
}

/* Makes the task run on the CPU that it is placed on at that CPU's next switch. */
static inline void insert_local(struct task_struct *p, u64 enq_flags)
{
	stats_of(bpf_get_smp_processor_id())->direct++;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, base_slice(&sys), enq_flags);
}

/* The bits of preempt_count() that count interrupts, until about 7.1 and in later kernels (include/linux/preempt.h). */
#define HARDIRQ_MASK_OLD 0x000f0000
#define HARDIRQ_MASK_NEW 0x0f000000
/* Which of them this kernel has; 0 until a tick, which is an interrupt, has shown that. */
u32 hardirq_mask;

static inline void learn_hardirq_mask(void)
{
	u32 count = (u32)get_preempt_count();

	if (count & HARDIRQ_MASK_NEW)
		hardirq_mask = HARDIRQ_MASK_NEW;
	else if (count & HARDIRQ_MASK_OLD)
		hardirq_mask = HARDIRQ_MASK_OLD;
}

/* Does the current task itself do this, and not an interrupt or a softirq? */
static inline bool is_in_task(const struct task_struct *current)
{
	return !(current->flags & PF_IDLE) &&
	       !((u32)get_preempt_count() & (hardirq_mask | SOFTIRQ_OFFSET));
}

/* Asks the policy for a CPU for the task, which last ran on `prev_cpu`. */
static __noinline s32 place_task(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_struct *current = bpf_get_current_task_btf();
	s32 this_cpu = bpf_get_smp_processor_id(), cpu;
	struct cw_decision *d = &decision[this_cpu & CW_CPU_MASK];
	struct live_task *t = lookup_task(p), *waker;
	struct cw_wakeup w;

	if (!t)
		return prev_cpu;
	/* no waker for an idle CPU's interrupts, nor for tasks of other schedulers */
	waker = lookup_task(current);
	/* a waker that exits does not make room */
	if (current->flags & PF_EXITING)
		wake_flags &= ~(u64)WF_SYNC;
	if (cache_aware())
		task_cache_cpu(&t->host.policy, lookup_process(p));
	w = (struct cw_wakeup){
		.p = &t->host.policy,
		.waker = waker ? &waker->host.policy : &swapper[this_cpu & CW_CPU_MASK],
		.cpus_ptr = &t->host.allowed,
		.this_cpu = this_cpu,
		.prev_cpu = prev_cpu,
		.task_cpu = t->host.policy.cpu,
		.wake_flags = (u32)wake_flags,
		.in_task = is_in_task(current),
		.random = host_random(this_cpu),
		.now = scx_bpf_now(),
	};
	cpu = select_task_rq_fair(&sys, &w, d);
	count_decision(d);
	if (wake_flags & WF_EXEC)
		return cpu;
	t->woken_at = w.now;
	t->by_interrupt = !w.in_task;
	if (waker && wake_flags & WF_SYNC)
		note_sync_wakeup(&waker->host.policy, w.now);
	if (cpumask_test_cpu(cpu, &t->host.allowed) &&
	    (claim_idle_cpu(cpu) || claim_waker_cpu(cpu, d)))
		insert_local(p, 0);
	return cpu;
}

#endif /* CW_PLACE_BPF_H */
