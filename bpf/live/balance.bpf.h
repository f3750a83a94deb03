/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moving tasks between dispatch queues. The policy drives the balance: it names the
 * source and decides for each waiting task whether to move it (policy/balance/loop.h).
 * The functions here offer it the tasks in the order of the queue and move those that
 * it takes.
 *
 * A CPU that pulls holds its own runqueue lock, but not the lock of the task's
 * runqueue. The task may therefore have run elsewhere, or gone to sleep, before it is
 * moved. In that case it is not moved, and only a task that was moved is accounted. Once it
 * has moved to another CPU, it may run there and go to sleep before it is accounted.
 */
#ifndef CW_BALANCE_BPF_H
#define CW_BALANCE_BPF_H

#include "balance/loop.h"
#include "balance/nohz.h"

/* The progress of each CPU's balance. */
struct cw_lb load_balance[CW_MAX_CPUS];

/* A request to a task to leave its CPU: 1 + the CPU that it is to go to. */
#define PUSH_CPU 0xffffu
#define PUSH_ACTIVE (1u << 16) /* by active balance, otherwise for an exec */
#define PUSH_LLC (1u << 17) /* for the sake of the LLC that it prefers */

/* What each CPU has to do in its next dispatch, and when it is to look for starving tasks. */
struct balance_state {
	u64 next_rescue; /* when it looks for a starving task, ns of its runqueue's clock */
	u64 next_kthread; /* the tick from which a kernel thread is to run */
	u32 kthreads; /* kernel threads may be waiting in their own queue (crowd.bpf.h) */
	u32 kthreads_among_tasks; /* likewise, in the queue of all tasks */
	s32 looked_at; /* the CPU that it last checked for idling although tasks wait */
	u32 due; /* balance them */
	u32 exec; /* ask where its running task is to go, which has executed another program */
	u32 push_to; /* active balance, exec: where its running task is to go, PUSH_* */
} balance_state[CW_MAX_CPUS];

static inline struct balance_state *balance_state_of(s32 cpu)
{
	return &balance_state[cpu & CW_CPU_MASK];
}

static inline struct cw_lb *lb_of(s32 cpu)
{
	return &load_balance[cpu & CW_CPU_MASK];
}

CW_GLOBAL u32 offer_task(s32 cpu, const struct cw_task *p CW_NONNULL,
			 const struct cw_cpumask *allowed CW_NONNULL)
{
	return detach_task(&sys, &lb_of(cpu)->env, p, allowed, false);
}

/* The task has been moved from the queue of `src`: subtract it from the sums, and move the policy's counters to `dst`. */
CW_GLOBAL bool account_move(struct live_task *t CW_NONNULL, s32 src, s32 dst, u64 now)
{
	if (t->se.cpu == src)
		update_entity_lag(&sys, fair_rq(src), &t->se.se);
	queue_leave(&t->se);
	track_enqueue_task(&sys, &t->host.policy, dst, now);
	return true;
}

static inline u32 dequeues_of(struct live_task *t)
{
	return __sync_fetch_and_add(&t->dequeues, 0);
}

/*
 * The task, which had left the queues `dequeues` times when it was taken, has been moved. If
 * it has left since, it must not be counted. Who leaves raises the number first and then
 * subtracts itself: either that happens after it was counted here, or the number has changed.
 */
static inline void account_pull(struct live_task *t, s32 src, s32 dst, u64 now, u32 dequeues)
{
	if (dequeues_of(t) != dequeues)
		return;
	account_move(t, src, dst, now);
	if (dequeues_of(t) != dequeues)
		account_entity_dequeue(&sys, &t->host.policy);
}

/* Offers the tasks that wait for env->src_cpu; returns how many moved to env->dst_cpu. */
static __noinline u32 detach_tasks(s32 this_cpu)
{
	struct cw_balance *env = &lb_of(this_cpu)->env;
	s32 src = env->src_cpu & CW_CPU_MASK, dst = env->dst_cpu & CW_CPU_MASK;
	struct task_struct *p;
	u32 moved = 0;

	/* tasks that wait there would not run */
	if (offline[dst])
		return 0;
	bpf_for_each(scx_dsq, p, src, 0) {
		struct live_task *t = lookup_task(p);
		u32 step, dequeues;
		bool went;

		if (!t || is_migration_disabled(p))
			continue;
		dequeues = dequeues_of(t);
		if (cache_aware())
			task_cache_cpu(&t->host.policy, lookup_process(p));
		if (may_run(&t->se, src))
			t->host.policy.flags &= ~(u32)CW_TASK_INELIGIBLE;
		else
			t->host.policy.flags |= CW_TASK_INELIGIBLE;
		step = offer_task(this_cpu, &t->host.policy, &t->host.allowed);
		if (step == CW_DETACH_STOP)
			break;
		if (step != CW_DETACH_TAKE)
			continue;
		if (dst == this_cpu && env->idle == CW_NEWLY_IDLE) {
			/* it runs next */
			went = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		} else {
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER,
						   moved_deadline(dst, t->host.policy.weight));
			went = scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dst, 0);
		}
		if (!went) {
			env->detached--;
			continue;
		}
		moved++;
		account_pull(t, src, dst, env->now, dequeues);
		count_pull(this_cpu, env->idle == CW_NEWLY_IDLE);
		/* which may be idle, and would not check its queue */
		if (dst != this_cpu)
			scx_bpf_kick_cpu(dst, SCX_KICK_IDLE);
	}
	return moved;
}

/* Asks the running task of `src` to come to `dst`, unless another CPU has asked for it. */
static inline void active_load_balance(s32 src, s32 dst, bool for_llc)
{
	u32 ask = (u32)(dst + 1) | PUSH_ACTIVE | (for_llc ? PUSH_LLC : 0);

	if (src == dst || __sync_val_compare_and_swap(&balance_state_of(src)->push_to, 0, ask))
		return;
	scx_bpf_kick_cpu(src, SCX_KICK_PREEMPT);
}

/* May the task, which `src` has been running, move to `dst` by active balance? */
CW_GLOBAL bool may_be_pushed(struct live_task *t CW_NONNULL, s32 src, s32 dst, bool for_llc, u64 now)
{
	struct cw_balance *env = &lb_of(src)->env;

	return active_balance_begin(&sys, env, src, dst, for_llc, now) &&
	       active_balance_task(&sys, env, &t->host.policy, &t->host.allowed);
}

/* Carries out the balance of `cpu` that begins at `now`. */
static __noinline void do_balance(s32 cpu, u64 now)
{
	struct cw_lb *lb = lb_of(cpu);
	/* the clock of `now` stands still while the CPU schedules; this one has another epoch */
	u64 start = bpf_ktime_get_ns();
	u32 step;

	while ((step = lb_next(&sys, lb)) != CW_LB_DONE && may_loop()) {
		switch (step) {
		case CW_LB_DETACH:
			lb->moved += detach_tasks(cpu);
			break;
		case CW_LB_PUSH:
			active_load_balance(lb->env.src_cpu, cpu,
					    lb->env.migration_type == CW_MIGRATE_LLC_TASK);
			break;
		case CW_LB_END:
			lb->cost = bpf_ktime_get_ns() - start;
			lb->now = now + lb->cost;
		}
	}
}

/* `cpu` has nothing to run and looks for a waiting task elsewhere. */
static inline void sched_balance_newidle(s32 cpu)
{
	u64 now = scx_bpf_now();

	lb_newidle(&sys, lb_of(cpu), cpu, now, host_random(cpu));
	do_balance(cpu, now);
}

/* Balances the domains of `cpu` that are due. */
static inline void sched_balance_domains(s32 cpu, u32 idle)
{
	u64 now = scx_bpf_now();

	lb_periodic(&sys, lb_of(cpu), cpu, idle, now);
	do_balance(cpu, now);
}

/* Makes an idle CPU of the top domain of `cpu` look for work. */
static inline void nohz_balance(s32 cpu, u64 now)
{
	const struct cw_domain *sd = cpu_domain(&sys, cpu, cpu_rq(&sys, cpu)->nr_sd - 1);
	s32 ilb = sd ? kick_ilb(&sys, cpu, &sd->span, now) : -1;

	if (ilb < 0)
		return;
	balance_state_of(ilb)->due = 1;
	scx_bpf_kick_cpu(ilb, SCX_KICK_IDLE);
}

/*
 * Called from the tick of `cpu`, which is busy. Returns true if its domains are due; the
 * CPU then has to dispatch, because only a dispatch may move tasks. A CPU with more work
 * than it can do also makes an idle one look for work.
 */
static __noinline bool sched_balance_trigger(s32 cpu, u64 now)
{
	struct balance_state *own = balance_state_of(cpu);

	if (cpu_rq(&sys, cpu)->nr_running >= 2)
		nohz_balance(cpu, now);
	if (jiffies_of(&sys, now) >= cpu_rq(&sys, cpu)->next_balance)
		own->due = 1;
	return own->due;
}

#endif /* CW_BALANCE_BPF_H */
