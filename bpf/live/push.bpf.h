/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Active balance and exec: how a running task leaves its CPU for another one.
 */
#ifndef CW_PUSH_BPF_H
#define CW_PUSH_BPF_H

/* Moves the running task of `cpu`, which has executed another program, to the CPU that the policy chooses. */
static inline void sched_exec(s32 cpu, struct task_struct *p)
{
	s32 dst = place_task(p, cpu, WF_EXEC);

	if (dst != cpu)
		__sync_val_compare_and_swap(&balance_state_of(cpu)->push_to, 0, dst + 1);
}

/*
 * Active balance: if the running task of `cpu` has been asked to move, it leaves the CPU. If
 * the CPU no longer runs a task, nothing moves.
 */
static inline bool ask_to_leave(s32 cpu, struct task_struct *running)
{
	u32 *push_to = &balance_state_of(cpu)->push_to, dst;
	struct live_task *t;

	if (!*push_to)
		return false;
	dst = __sync_lock_test_and_set(push_to, 0);
	t = running ? lookup_task(running) : NULL;
	if (!t)
		return false;
	t->push_to = dst;
	running->scx.slice = 0;
	return true;
}

/* If the task has been asked to leave `cpu`, moves it to the CPU that asked for it. */
static inline bool push_away(struct live_task *t, struct task_struct *p, s32 cpu, u64 enq_flags,
			     u64 now)
{
	u32 ask = t->push_to;
	s32 dst = (s32)(ask & PUSH_CPU) - 1;

	t->push_to = 0;
	if (dst < 0 || is_migration_disabled(p) || !cpumask_test_cpu(dst, &t->host.allowed) ||
	    offline[dst & CW_CPU_MASK])
		return false;
	if (ask & PUSH_ACTIVE && !may_be_pushed(t, cpu, dst, ask & PUSH_LLC, now))
		return false;
	account_move(t, cpu, dst, now);
	count_pull(bpf_get_smp_processor_id(), false);
	scx_bpf_dsq_insert_vtime(p, dst, base_slice(&sys), moved_deadline(dst, t->host.policy.weight),
				 enq_flags);
	scx_bpf_kick_cpu(dst, SCX_KICK_IDLE);
	return true;
}

#endif /* CW_PUSH_BPF_H */
