/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sequence of steps by which a CPU balances, from the walk up its domains down to the
 * tasks that are moved. The host starts a newidle or a periodic balance and does what
 * each step asks of it until none is left:
 *
 *	lb_newidle(sys, lb, cpu, now, random); or lb_periodic(sys, lb, cpu, idle, now);
 *	while ((step = lb_next(sys, lb)) != CW_LB_DONE)
 *		...
 *
 * struct cw_lb holds the progress between steps, so each CPU that balances needs one of
 * its own. Callbacks would be simpler, but a host in BPF cannot be called back.
 */
#ifndef CW_LOOP_H
#define CW_LOOP_H

#include "atomic.h"
#include "balance/outcome.h"
#include "balance/periodic.h"
#include "track/upkeep.h"

/* What the host is to do now. */
enum cw_lb_step {
	CW_LB_DONE, /* nothing more; after newidle `found` says if there is work */
	CW_LB_BEGIN, /* the domain of `env` is about to be balanced */
	CW_LB_DECIDED, /* see `decision`: where tasks are pulled from, or why none are */
	CW_LB_DETACH, /* offer tasks of env.src_cpu to detach_task(), move those that it takes, count them in `moved` */
	CW_LB_PUSH, /* active balance: the task that env.src_cpu runs is to go to env.this_cpu */
	CW_LB_END, /* the domain is balanced: bring `now` and `cost` up to date */
};

/* Where it has come to. */
enum cw_lb_state {
	CW_LB_AT_START,
	CW_LB_AT_DOMAIN,
	CW_LB_AT_SOURCE,
	CW_LB_AT_OFFER,
	CW_LB_OFFERED,
	CW_LB_AT_OUTCOME,
	CW_LB_PUSHED,
	CW_LB_ENDED,
};

struct cw_lb {
	/* the host's */
	u64 now; /* ns */
	u64 cost; /* what balancing has taken so far, ns */
	u32 moved; /* tasks, in this domain */
	u32 found;
	u64 accounted; /* the part of the cost that has been charged to domains */
	s32 cpu;
	u32 state; /* enum cw_lb_state */
	bool is_newidle;
	bool serializes; /* it balances a domain with SD_SERIALIZE */
	struct cw_newidle newidle;
	struct cw_periodic periodic;
	struct cw_balance env;
	struct cw_decision decision;
};

static inline void lb_begin(struct cw_lb *lb, s32 cpu, bool is_newidle, u64 now)
{
	lb->now = now;
	lb->cost = 0;
	lb->found = 0;
	lb->accounted = 0;
	lb->cpu = cpu;
	lb->state = CW_LB_AT_START;
	lb->is_newidle = is_newidle;
	lb->serializes = false;
}

/*
 * `cpu` has nothing to run and is to look for a waiting task elsewhere. Returns whether it
 * does; lb_next() has to follow in either case. `random` decides NI_RANDOM's choices.
 */
CW_GLOBAL bool lb_newidle(struct cw_sys *sys CW_NONNULL, struct cw_lb *lb CW_NONNULL, s32 cpu, u64 now,
			  u32 random)
{
	lb_begin(lb, cpu, true, now);
	lb->newidle.stop = !newidle_begin(sys, &lb->newidle, cpu, now, random);
	return !lb->newidle.stop;
}

/* The domains of `cpu` that are due are to be balanced. */
CW_GLOBAL bool lb_periodic(struct cw_sys *sys CW_NONNULL, struct cw_lb *lb CW_NONNULL, s32 cpu, u32 idle,
			   u64 now)
{
	lb_begin(lb, cpu, false, now);
	periodic_begin(sys, &lb->periodic, cpu, idle, now);
	return true;
}

/* Takes the lock under which one domain with SD_SERIALIZE is balanced at a time; false if another CPU has it. */
static inline bool lb_serialize(struct cw_sys *sys, struct cw_lb *lb, u32 level)
{
	const struct cw_domain *sd = cpu_domain(sys, lb->cpu, level);

	if (!sd || !(sd->flags & SD_SERIALIZE))
		return true;
	lb->serializes = !cw_xchg(&sys->balance_running, 1);
	return lb->serializes;
}

/* The level to balance next, or CW_NONE. */
static inline u32 lb_next_level(struct cw_sys *sys, struct cw_lb *lb)
{
	u32 level;

	if (lb->is_newidle)
		return newidle_next(sys, &lb->newidle, lb->now);
	while ((level = periodic_next(sys, &lb->periodic)) != CW_NONE && may_loop()) {
		if (lb_serialize(sys, lb, level))
			break;
		/* it is due at the next tick again */
		periodic_note_due(&lb->periodic,
				  balance_due_at(sys, lb->cpu, level, lb->periodic.idle));
	}
	return level;
}

static inline void lb_account(struct cw_sys *sys, struct cw_lb *lb)
{
	bool may_go_on = !(lb->env.flags & LBF_NOT_MINE);

	if (lb->is_newidle)
		newidle_account(sys, &lb->newidle, lb->cost - lb->accounted, lb->moved, may_go_on,
				lb->now);
	else
		periodic_account(sys, &lb->periodic, lb->moved, may_go_on);
	lb->accounted = lb->cost;
	if (lb->serializes)
		sys->balance_running = 0;
	lb->serializes = false;
}

static inline void lb_end(struct cw_sys *sys, struct cw_lb *lb)
{
	struct cw_cpu *rq = cpu_rq(sys, lb->cpu);

	if (!lb->is_newidle) {
		periodic_end(sys, &lb->periodic);
		rq->next_balance = lb->periodic.next_balance;
		return;
	}
	lb->found = newidle_end(sys, &lb->newidle);
	if (lb->newidle.next_balance < rq->next_balance)
		rq->next_balance = lb->newidle.next_balance;
}

/* The next step. */
CW_GLOBAL u32 lb_next(struct cw_sys *sys CW_NONNULL, struct cw_lb *lb CW_NONNULL)
{
	struct cw_balance *env = &lb->env;
	u32 level, step;

	if (lb->state == CW_LB_AT_START) {
		if (!lb->is_newidle || !lb->newidle.stop)
			update_blocked_averages(sys, lb->cpu, lb->now);
		lb->state = CW_LB_AT_DOMAIN;
	}
	if (lb->state == CW_LB_ENDED) {
		lb_account(sys, lb);
		lb->state = CW_LB_AT_DOMAIN;
	}
	if (lb->state == CW_LB_AT_DOMAIN) {
		level = lb_next_level(sys, lb);
		if (level == CW_NONE) {
			lb_end(sys, lb);
			return CW_LB_DONE;
		}
		balance_begin(env, lb->cpu, level, lb->is_newidle ? CW_NEWLY_IDLE : lb->periodic.idle,
			      lb->now);
		note_pref_dst_llc(sys, lb->cpu, level);
		lb->moved = 0;
		lb->state = CW_LB_AT_SOURCE;
		return CW_LB_BEGIN;
	}
	if (lb->state == CW_LB_OFFERED) {
		step = balance_next_step(sys, env);
		if (step == CW_BALANCE_MORE)
			return CW_LB_DETACH;
		lb->state = step == CW_BALANCE_REDO ? CW_LB_AT_SOURCE : CW_LB_AT_OUTCOME;
	}
	if (lb->state == CW_LB_AT_SOURCE) {
		bool found = sched_balance_find_src(sys, env, &lb->decision) >= 0;

		lb->state = found ? CW_LB_AT_OFFER : CW_LB_AT_OUTCOME;
		return CW_LB_DECIDED;
	}
	if (lb->state == CW_LB_AT_OFFER) {
		lb->state = CW_LB_OFFERED;
		return CW_LB_DETACH;
	}
	if (lb->state == CW_LB_AT_OUTCOME && balance_done(sys, env, lb->moved, true)) {
		lb->state = CW_LB_PUSHED;
		return CW_LB_PUSH;
	}
	lb->state = CW_LB_ENDED;
	return CW_LB_END;
}

#endif /* CW_LOOP_H */
