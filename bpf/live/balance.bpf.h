/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Moving tasks between dispatch queues. The policy names the source and says of
 * each of its waiting tasks whether it goes (policy/balance/lb_env.h); this offers them
 * in the order of the queue and moves those that go.
 *
 * Who pulls holds the runqueue lock of its own CPU, not that of the task. So a
 * task may have run elsewhere, or sleep, when it is to be moved: then it is not
 * moved, and only if it is, is it accounted.
 */
#ifndef CW_BALANCE_BPF_H
#define CW_BALANCE_BPF_H

#include "balance/nohz.h"
#include "balance/outcome.h"
#include "balance/periodic.h"

/* The attempt that each CPU is at, and its walk up the domains. */
struct cw_balance balance_env[CW_MAX_CPUS];
struct cw_newidle newidle_walk[CW_MAX_CPUS];
struct cw_periodic periodic_walk[CW_MAX_CPUS];

/* When each CPU's domains are to be balanced, and what it has to do for that in its next dispatch. */
struct balance_state {
	u64 next_balance; /* the tick at which the first of its domains is due */
	u64 next_rescue; /* the tick from which it looks for a waiting task that starves */
	u64 next_kthread; /* the tick from which one of the kernel's threads is to run */
	u32 kthreads; /* some may wait (crowd.bpf.h) */
	s32 looked_at; /* the CPU that it last looked at, whether that idles though tasks wait */
	u32 due; /* balance them */
	u32 exec; /* ask where its running task is to go, which has begun another program */
	u32 push_to; /* active balance, exec: 1 + the CPU that its running task is to go to */
} balance_state[CW_MAX_CPUS];

/* A domain with SD_SERIALIZE is being balanced. */
u32 serialized;
/* The tick from which idle CPUs are to be woken to balance again. */
u64 nohz_next_balance;

static inline struct balance_state *balance_state_of(s32 cpu)
{
	return &balance_state[cpu & CW_CPU_MASK];
}

static inline struct cw_balance *env_of(s32 cpu)
{
	return &balance_env[cpu & CW_CPU_MASK];
}

/* An idle CPU of the top domain of `cpu`, one whose core is idle if there is one, or -1. */
CW_GLOBAL s32 find_ilb(s32 cpu)
{
	const struct cw_domain *sd = cpu_domain(&sys, cpu, cpu_rq(&sys, cpu)->nr_sd - 1);

	return sd ? find_new_ilb(&sys, &sd->span, &sd->span, cpu) : -1;
}

/* The steps of balancing, each of which the verifier follows by itself. */
CW_GLOBAL s32 lb_find_src(s32 cpu)
{
	return sched_balance_find_src(&sys, env_of(cpu), &decision[cpu & CW_CPU_MASK]);
}

CW_GLOBAL u32 lb_detach_step(s32 cpu, const struct cw_task *p CW_NONNULL,
			     const struct cw_cpumask *allowed CW_NONNULL)
{
	return detach_task_step(&sys, env_of(cpu), p, allowed, false);
}

CW_GLOBAL u32 lb_next_step(s32 cpu)
{
	return balance_next_step(&sys, env_of(cpu));
}

CW_GLOBAL bool lb_done(s32 cpu, u32 moved)
{
	return balance_done(&sys, env_of(cpu), moved, true);
}

CW_GLOBAL bool lb_newidle_begin(s32 cpu, u64 now, u32 random)
{
	return newidle_begin(&sys, &newidle_walk[cpu & CW_CPU_MASK], cpu, now, random);
}

CW_GLOBAL u32 lb_newidle_next(s32 cpu, u64 now)
{
	return newidle_next(&sys, &newidle_walk[cpu & CW_CPU_MASK], now);
}

CW_GLOBAL bool lb_newidle_account(s32 cpu, u64 cost, u32 moved, u64 now)
{
	newidle_account(&sys, &newidle_walk[cpu & CW_CPU_MASK], cost, moved,
			!(env_of(cpu)->flags & LBF_NOT_MINE), now);
	return moved;
}

CW_GLOBAL bool lb_periodic_begin(s32 cpu, u32 idle, u64 now)
{
	periodic_begin(&sys, &periodic_walk[cpu & CW_CPU_MASK], cpu, idle, now);
	return true;
}

CW_GLOBAL u32 lb_periodic_next(s32 cpu)
{
	return periodic_next(&sys, &periodic_walk[cpu & CW_CPU_MASK]);
}

CW_GLOBAL bool lb_periodic_account(s32 cpu, u32 moved)
{
	periodic_account(&sys, &periodic_walk[cpu & CW_CPU_MASK], moved,
			 !(env_of(cpu)->flags & LBF_NOT_MINE));
	return moved;
}

/* The task has been moved from the queue of `src`: takes it off the sums, and the host's counters to `dst`. */
CW_GLOBAL bool account_move(struct live_task *t CW_NONNULL, s32 src, s32 dst, u64 now)
{
	if (t->se.cpu == src)
		update_entity_lag(&sys, fair_rq(src), &t->se.se);
	queue_leave(&t->se);
	return track_enqueue_task(&sys, &t->host.policy, dst, now);
}

/* Offers the tasks that wait for env->src_cpu; returns how many went to env->dst_cpu. */
static __noinline u32 detach_tasks(s32 this_cpu)
{
	struct cw_balance *env = env_of(this_cpu);
	s32 src = env->src_cpu & CW_CPU_MASK, dst = env->dst_cpu & CW_CPU_MASK;
	struct task_struct *p;
	u32 moved = 0;

	/* what waits there would not be run */
	if (offline[dst])
		return 0;
	bpf_for_each(scx_dsq, p, src, 0) {
		struct live_task *t = lookup_task(p);
		u32 step;
		bool went;

		if (!t || is_migration_disabled(p))
			continue;
		if (cache_aware())
			task_cache_cpu(&t->host.policy, lookup_process(p));
		if (may_run(&t->se, src))
			t->host.policy.flags &= ~(u32)CW_TASK_INELIGIBLE;
		else
			t->host.policy.flags |= CW_TASK_INELIGIBLE;
		step = lb_detach_step(this_cpu, &t->host.policy, &t->host.allowed);
		/* there is no lock that others wait for */
		if (step == CW_DETACH_BREAK)
			step = lb_detach_step(this_cpu, &t->host.policy, &t->host.allowed);
		if (step == CW_DETACH_STOP)
			break;
		if (step != CW_DETACH_TAKE)
			continue;
		if (dst == this_cpu && env->idle == CW_NEWLY_IDLE) {
			/* it is what runs next */
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
		account_move(t, src, dst, env->now);
		count_pull(this_cpu, env->idle == CW_NEWLY_IDLE);
		/* which may be idle, and would not look */
		if (dst != this_cpu)
			scx_bpf_kick_cpu(dst, SCX_KICK_IDLE);
	}
	return moved;
}

/* Has the running task of `src` come to `dst`, unless another CPU has asked for it. */
static inline void active_load_balance(s32 src, s32 dst)
{
	if (src == dst || __sync_val_compare_and_swap(&balance_state_of(src)->push_to, 0, dst + 1))
		return;
	scx_bpf_kick_cpu(src, SCX_KICK_PREEMPT);
}

/* One attempt of `cpu` to balance its domain at `level`; returns how many tasks moved. */
static __noinline u32 sched_balance_rq(s32 cpu, u32 level, u32 idle, u64 now)
{
	u32 moved = 0, step = CW_BALANCE_DONE;

	balance_begin(env_of(cpu), cpu, level, idle, now);
	note_pref_dst_llc(&sys, cpu, level);
	do {
		if (lb_find_src(cpu) < 0)
			break;
		do {
			moved += detach_tasks(cpu);
			step = lb_next_step(cpu);
		} while (step == CW_BALANCE_MORE && may_loop());
	} while (step == CW_BALANCE_REDO && may_loop());
	if (lb_done(cpu, moved))
		active_load_balance(env_of(cpu)->src_cpu, cpu);
	return moved;
}

/* `cpu` has nothing to run: it looks for a waiting task elsewhere. */
static __noinline void sched_balance_newidle(s32 cpu)
{
	u64 now = scx_bpf_now(), start;
	u32 level;

	if (lb_newidle_begin(cpu, now, host_random(cpu))) {
		/* the clock above stands still while the CPU schedules; this one has another origin */
		start = bpf_ktime_get_ns();
		/* the CPU's averages are brought up to date before others read them */
		update_blocked_averages(&sys, cpu, now);
		while ((level = lb_newidle_next(cpu, now)) != CW_NONE && may_loop()) {
			u32 moved = sched_balance_rq(cpu, level, CW_NEWLY_IDLE, now);
			u64 end = bpf_ktime_get_ns();

			now += end - start;
			lb_newidle_account(cpu, end - start, moved, now);
			start = end;
		}
	}
	newidle_end(&sys, &newidle_walk[cpu & CW_CPU_MASK]);
}

/* Balances the domains of `cpu` that are due. */
static __noinline void sched_balance_domains(s32 cpu, u32 idle)
{
	struct cw_periodic *walk = &periodic_walk[cpu & CW_CPU_MASK];
	u64 now = scx_bpf_now();
	u32 level;

	update_blocked_averages(&sys, cpu, now);
	lb_periodic_begin(cpu, idle, now);
	while ((level = lb_periodic_next(cpu)) != CW_NONE && may_loop()) {
		struct cw_domain *sd = cpu_domain(&sys, cpu, level);
		bool serialize = sd && sd->flags & SD_SERIALIZE;

		if (serialize && __sync_lock_test_and_set(&serialized, 1))
			continue;
		lb_periodic_account(cpu, sched_balance_rq(cpu, level, walk->idle, now));
		if (serialize)
			serialized = 0;
	}
	periodic_end(&sys, walk);
	balance_state_of(cpu)->next_balance = walk->next_balance;
}

/*
 * From the tick of `cpu`, which is busy: true if its domains are due. Then it has
 * to dispatch, since only that may move tasks. A CPU with more work than it can
 * do has an idle one look for work, too.
 */
static __noinline bool sched_balance_trigger(s32 cpu, u64 now)
{
	struct balance_state *own = balance_state_of(cpu);
	u64 jiffies = jiffies_of(&sys, now);
	s32 ilb;

	if (cpu_rq(&sys, cpu)->nr_running >= 2 && jiffies >= nohz_next_balance) {
		nohz_next_balance = jiffies + 1;
		ilb = find_ilb(cpu);
		if (ilb >= 0) {
			balance_state_of(ilb)->due = 1;
			scx_bpf_kick_cpu(ilb, SCX_KICK_IDLE);
		}
	}
	if (jiffies >= own->next_balance)
		own->due = 1;
	return own->due;
}

#endif /* CW_BALANCE_BPF_H */
