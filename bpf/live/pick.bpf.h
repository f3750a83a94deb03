/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which task runs next on a CPU, and whether one that has just come runs at once.
 */
#ifndef CW_PICK_BPF_H
#define CW_PICK_BPF_H

/* How many tasks at the head of a queue are checked for eligibility. */
#define PICK_MAX 32

/*
 * The first task that waits for `cpu`; NULL if there is none, and before 7.1, where the kernel
 * could miss it. Most questions end with this task, and need no iterator over the others.
 */
static inline struct task_struct *first_waiting(s32 cpu)
{
	if (!bpf_ksym_exists(scx_bpf_dsq_peek) || LINUX_KERNEL_VERSION < KERNEL_VERSION(7, 1, 0))
		return NULL;
	return scx_bpf_dsq_peek(cpu);
}

/* Is `le`, which is about to wait for `cpu`, due before every eligible task that waits there? */
static inline bool is_best(const struct live_entity *le, s32 cpu)
{
	struct task_struct *p = first_waiting(cpu);
	u32 asked = unknown(0u);

	if (p && (s64)p->scx.dsq_vtime >= le->se.deadline)
		return true;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct live_task *t = lookup_task(p);

		if (asked++ == PICK_MAX || !t || (s64)p->scx.dsq_vtime >= le->se.deadline)
			break;
		if (may_run(&t->se, cpu))
			return false;
	}
	return true;
}

/*
 * Looks for the task that is to run next among those that wait for `cpu`, in the order of their
 * deadlines. Not inline: verifiers until 7.0 count its iterator for everything that
 * live_dispatch() calls, which would then be too much.
 */
static __noinline bool pick_among(s32 cpu, bool curr_eligible)
{
	const struct cw_fair_rq *rq = fair_rq(cpu);
	struct task_struct *p;
	u32 asked = unknown(0u);

	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct live_task *t = lookup_task(p);

		if (asked++ == PICK_MAX)
			break;
		if (!t || !may_run_here(p, cpu) || !may_run(&t->se, cpu))
			continue;
		if (curr_eligible && entity_before(rq->curr.deadline, (s64)p->scx.dsq_vtime))
			return false;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	/* while other CPUs take tasks off, the sums do not match the tasks for a moment: the first task will do */
	return !curr_eligible && scx_bpf_dsq_move_to_local(cpu, 0);
}

/*
 * Moves the task that is to run next from the tasks that wait for `cpu` to its local queue.
 * Returns false if `prev` continues.
 */
static inline bool pick_waiting(s32 cpu, struct task_struct *prev)
{
	const struct cw_fair_rq *rq = fair_rq(cpu);
	bool curr_eligible = prev && entity_eligible(rq, &rq->curr);
	struct task_struct *p = first_waiting(cpu);
	struct live_task *t = p ? lookup_task(p) : NULL;

	if (t && may_run_here(p, cpu) && may_run(&t->se, cpu)) {
		if (curr_eligible && entity_before(rq->curr.deadline, (s64)p->scx.dsq_vtime))
			return false;
		if (scx_bpf_dsq_move_to_local(cpu, 0))
			return true;
	}
	return pick_among(cpu, curr_eligible);
}

/*
 * Takes `cpu` from its running task. In a kernel of the lazy preemption model, this is
 * done as the fair class does it there: not at once, but when the task leaves the kernel,
 * at the latest at its next tick. Where sched_ext does not offer that, there are two
 * cases. A task that an interrupt woke preempts at once, because most interrupted tasks
 * are about to leave the kernel or are not in it. So does any task if the request of the
 * running task is served, which is rare. Any other task waits for the tick: otherwise
 * tasks would be preempted in their system calls, perhaps while holding a lock, which
 * made hackbench twice as slow.
 */
static inline void resched_curr_lazy(s32 cpu, bool at_once)
{
	/* 0 if the kernel does not have it */
	u64 lazy = SCX_KICK_PREEMPT_LAZY;

	if (!CONFIG_PREEMPT_LAZY || (!lazy && at_once))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	else if (lazy)
		scx_bpf_kick_cpu(cpu, lazy);
	else
		queue_of(cpu)->resched = 1;
}

/* Is the task, which has just been queued on `cpu`, to run in place of the running one? */
static inline bool wakeup_preempt(struct live_task *t, s32 cpu, u64 now)
{
	enum live_preempt preempt = check_preempt(&t->se, cpu, t->ran_on < 0 ? WF_FORK : 0, now);

	/* if another task is to run before this one, this one waits for the tick, unless an interrupt woke it */
	if (preempt == LIVE_PREEMPT_IF_BEST && (t->by_interrupt || is_best(&t->se, cpu)))
		preempt = LIVE_PREEMPT_YES;
	if (preempt != LIVE_PREEMPT_YES)
		preempt_refused(cpu);
	return preempt == LIVE_PREEMPT_YES;
}

#endif /* CW_PICK_BPF_H */
