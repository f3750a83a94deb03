/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Periodic balance: when a domain is due, and a CPU's walk up its domains, from the tick
 * or by the idle load balancer on its behalf. loop.h gives the sequence of steps.
 */
#ifndef CW_PERIODIC_H
#define CW_PERIODIC_H

#include "balance/newidle.h"

/* Does the CPU count as busy? One that runs only SCHED_IDLE tasks does not. */
static inline bool balance_is_busy(struct cw_sys *sys, s32 cpu, enum cw_idle_type idle)
{
	return idle != CW_IDLE && !sched_idle_cpu(sys, cpu);
}

/* The tick at which the domain is due. */
static inline u64 balance_due_at(struct cw_sys *sys, s32 cpu, u32 level, enum cw_idle_type idle)
{
	const struct cw_cpu_sd *sd = cpu_sd(sys, cpu, level);

	return jiffies_of(sys, sd->last_balance) +
	       get_sd_balance_interval(sys, sd, balance_is_busy(sys, cpu, idle));
}

/* Has the domain's interval passed at `now`? */
static inline bool balance_due(struct cw_sys *sys, s32 cpu, u32 level, enum cw_idle_type idle,
			       u64 now)
{
	return jiffies_of(sys, now) >= balance_due_at(sys, cpu, level, idle);
}

/* The walk of one CPU up its domains. */
struct cw_periodic {
	s32 cpu;
	u32 level; /* the next to look at */
	u32 idle; /* enum cw_idle_type, for the balance of the level that is due */
	bool may_go_on;
	bool need_decay; /* of the domain last visited */
	u64 now;
	u64 max_cost; /* sum of the newidle costs of the domains visited, ns */
	u64 next_balance; /* result: the tick at which the first domain is due again */
};

/*
 * Start a walk at `now`. The host may leave out the walks before the tick that
 * the last one gave as next_balance, if it forgets that tick when the CPU goes
 * idle, since the intervals of an idle CPU are shorter.
 */
static inline void periodic_begin(struct cw_sys *sys, struct cw_periodic *walk, s32 cpu,
				  enum cw_idle_type idle, u64 now)
{
	walk->cpu = cpu;
	walk->level = 0;
	walk->idle = idle;
	walk->may_go_on = true;
	walk->need_decay = false;
	walk->now = now;
	walk->max_cost = 0;
	walk->next_balance = jiffies_of(sys, now + 60ULL * CW_NSEC_PER_SEC);
}

static inline void periodic_note_due(struct cw_periodic *walk, u64 due)
{
	if (due < walk->next_balance)
		walk->next_balance = due;
}

/*
 * The next level that is due, or CW_NONE. All domains on the way have their
 * newidle cost decayed, even after another CPU was found to be the one to
 * balance, as long as there is something to decay.
 */
static inline u32 periodic_next(struct cw_sys *sys, struct cw_periodic *walk)
{
	u32 nr_sd = cpu_rq(sys, walk->cpu)->nr_sd;

	while (walk->level < nr_sd && walk->level < CW_MAX_LEVELS && may_loop()) {
		u32 level = walk->level++;
		struct cw_cpu_sd *sd = cpu_sd(sys, walk->cpu, level);
		u64 due;

		walk->need_decay = update_newidle_cost(sys, sd, 0, walk->now);
		walk->max_cost += sd->max_newidle_lb_cost;
		if (!walk->may_go_on) {
			if (!walk->need_decay)
				break;
			continue;
		}
		due = balance_due_at(sys, walk->cpu, level, walk->idle);
		if (jiffies_of(sys, walk->now) >= due)
			return level;
		periodic_note_due(walk, due);
	}
	walk->level = CW_MAX_LEVELS;
	return CW_NONE;
}

/*
 * Account the balance of the level that periodic_next() named. `may_go_on` is
 * false if another CPU is the one to balance (LBF_NOT_MINE). After balance_done().
 */
static inline void periodic_account(struct cw_sys *sys, struct cw_periodic *walk, u32 moved,
				    bool may_go_on)
{
	walk->may_go_on = may_go_on;
	if (moved)
		walk->idle = idle_cpu(sys, walk->cpu) ? CW_IDLE : CW_NOT_IDLE;
	if (walk->level && walk->level <= CW_MAX_LEVELS)
		periodic_note_due(walk, balance_due_at(sys, walk->cpu, walk->level - 1,
						       walk->idle));
}

/* End the walk: the CPU's cost of newidle decays with its domains', down to migration_cost_ns. */
static inline void periodic_end(struct cw_sys *sys, const struct cw_periodic *walk)
{
	u64 min = (u64)tunable(sys, CW_TUNE_migration_cost_ns);

	if (walk->need_decay)
		cpu_rq(sys, walk->cpu)->max_idle_balance_cost = pelt_max(walk->max_cost, min);
}

#endif /* CW_PERIODIC_H */
