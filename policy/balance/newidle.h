/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Newidle balance: a CPU that runs out of work searches for some, from its lowest domain
 * upwards, as long as its average idle time is longer than the cost of the search.
 * loop.h gives the sequence of steps. The cost of the first domain includes bringing the
 * CPU's own averages up to date, as it does by the kernel's clock.
 */
#ifndef CW_NEWIDLE_H
#define CW_NEWIDLE_H

#include "balance/interval.h"
#include "balance/misfit.h"

/*
 * Learn from an idle period that a wakeup ends: avg_idle moves 1/8 of the way
 * to its length, but not beyond twice the highest cost of a search, so that a
 * CPU that becomes busy again stops searching soon.
 */
static inline void update_avg_idle(struct cw_sys *sys, s32 cpu, u64 now)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);
	u64 max = 2 * rq->max_idle_balance_cost, idle = now - rq->idle_stamp;

	if (!rq->idle_stamp)
		return;
	/* Each way rounds towards the old average, as the kernel's signed division does. */
	if (idle > rq->avg_idle)
		rq->avg_idle += (idle - rq->avg_idle) / 8;
	else
		rq->avg_idle -= (rq->avg_idle - idle) / 8;
	if (rq->avg_idle > max)
		rq->avg_idle = max;
	rq->idle_stamp = 0;
}

/* NI_RANDOM: the number of calls after which a domain's success rate is computed again, and the counts are halved. */
#define NEWIDLE_CALLS 1024
#define NEWIDLE_SCALE 1024

/*
 * NI_RANDOM: count a newidle balance of the domain, and its value: a balance that is made
 * only once in n times counts n when it succeeds. Under NI_RATE, domains that are balanced
 * rarely are balanced with a higher probability: always (1024) if 512 calls took 4.3 s, which
 * is 1024 times 2^22 ns. The rate is capped only there; without NI_RATE, a success of a domain
 * with twice the full rate counts nothing.
 */
static inline void update_newidle_stats(const struct cw_sys *sys, struct cw_cpu_sd *sd,
					u32 success, u64 now)
{
	u64 ratio = sd->newidle_success += success;

	if (++sd->newidle_call < NEWIDLE_CALLS)
		return;
	if (sched_feat(sys, CW_FEAT_NI_RATE)) {
		if (now > sd->newidle_stamp)
			ratio += (now - sd->newidle_stamp) >> 22;
		ratio = ratio < NEWIDLE_SCALE ? ratio : NEWIDLE_SCALE;
	}
	sd->newidle_stamp = now;
	sd->newidle_ratio = (u32)ratio;
	sd->newidle_call /= 2;
	sd->newidle_success /= 2;
}

/*
 * Keep the highest cost (ns) of a newidle balance of one domain. It decays by
 * 3/256, about 1 %, when it was not exceeded for more than a second. Returns
 * whether it decayed. Without NEWIDLE_COST_DECAY only periodic balance calls it,
 * so the second counts from the last decay.
 */
static inline bool update_newidle_cost(const struct cw_sys *sys, struct cw_cpu_sd *sd, u64 cost,
				       u64 now)
{
	if (cost > sd->max_newidle_lb_cost) {
		sd->max_newidle_lb_cost = cost;
		sd->last_decay_max_lb_cost = now;
		return false;
	}
	if (jiffies_of(sys, now) <= jiffies_of(sys, sd->last_decay_max_lb_cost) +
					    CW_NSEC_PER_SEC / tick_nsec(sys))
		return false;
	sd->max_newidle_lb_cost = sd->max_newidle_lb_cost * 253 / 256;
	sd->last_decay_max_lb_cost = now;
	return true;
}

/* A newly idle CPU's walk up its domains. */
struct cw_newidle {
	s32 cpu;
	u32 level; /* the next to look at */
	u64 curr_cost; /* ns spent so far */
	u64 next_balance; /* result: the tick by which periodic balance of the idle CPU is due */
	u32 random; /* of the next dice */
	u32 weight; /* NI_RANDOM: what a success of the level named last counts */
	bool pulled; /* there is work now */
	bool stop;
};

/* Now that the CPU is idle, the domain is due earlier than before. */
static inline void newidle_note_due(struct cw_sys *sys, struct cw_newidle *walk,
				    const struct cw_cpu_sd *sd)
{
	u64 due = jiffies_of(sys, sd->last_balance) + get_sd_balance_interval(sys, sd, false);

	if (due < walk->next_balance)
		walk->next_balance = due;
}

/*
 * The CPU has nothing to run. Returns whether to search at all: not if a wakeup
 * is on its way here, if no runqueue of the machine has a task that waits, if
 * even the lowest domain costs more time than the CPU is usually idle, or, under
 * NEWIDLE_MIN_IDLE, if that is less than migration_cost_ns whatever it costs. The
 * random choices of the walk derive from `random`.
 */
static inline bool newidle_begin(struct cw_sys *sys, struct cw_newidle *walk, s32 cpu, u64 now,
				 u32 random)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);

	walk->cpu = cpu;
	walk->level = 0;
	walk->curr_cost = 0;
	walk->next_balance = jiffies_of(sys, now + CW_NSEC_PER_SEC);
	walk->random = random;
	walk->weight = 1;
	walk->pulled = false;
	walk->stop = false;

	update_misfit_status(sys, NULL, cpu);
	if (rq->ttwu_pending)
		return false;
	/* Before the search: its time counts as idle time. */
	rq->idle_stamp = now;
	if (!rq->nr_sd)
		return false;
	newidle_note_due(sys, walk, cpu_sd(sys, cpu, 0));
	if (sched_feat(sys, CW_FEAT_NEWIDLE_MIN_IDLE) &&
	    (s64)rq->avg_idle < tunable(sys, CW_TUNE_migration_cost_ns))
		return false;
	return sys->overloaded && rq->avg_idle >= cpu_sd(sys, cpu, 0)->max_newidle_lb_cost;
}

/* NI_RANDOM: is the domain balanced this time? The rarer that is, the more a success counts. */
static inline bool newidle_dice(struct cw_sys *sys, struct cw_newidle *walk, struct cw_cpu_sd *sd,
				u64 now)
{
	u32 d1k = walk->random >> 22;

	walk->weight = 1;
	if (!sched_feat(sys, CW_FEAT_NI_RANDOM))
		return true;
	if (sched_feat(sys, CW_FEAT_NI_RATE) && sd->newidle_ratio >= NEWIDLE_SCALE)
		return true;
	/* a linear congruential generator (Numerical Recipes, ranqd1), whose high bits are the good ones */
	walk->random = walk->random * 1664525 + 1013904223;
	walk->weight = 1 + sd->newidle_ratio;
	if (d1k > walk->weight) {
		update_newidle_stats(sys, sd, 0, now);
		return false;
	}
	walk->weight = (NEWIDLE_SCALE + walk->weight / 2) / walk->weight;
	return true;
}

/*
 * The level to balance next, or CW_NONE. A domain without SD_BALANCE_NEWIDLE
 * (relax_domain_level), or one that is not chosen this time (NI_RANDOM), is skipped. A domain
 * that would cost more than the rest of the average idle time ends the walk, even if it would
 * be skipped.
 */
static inline u32 newidle_next(struct cw_sys *sys, struct cw_newidle *walk, u64 now)
{
	struct cw_cpu *rq = cpu_rq(sys, walk->cpu);

	while (!walk->stop && walk->level < rq->nr_sd && walk->level < CW_MAX_LEVELS && may_loop()) {
		struct cw_cpu_sd *sd = cpu_sd(sys, walk->cpu, walk->level);

		newidle_note_due(sys, walk, sd);
		if (rq->avg_idle < walk->curr_cost + sd->max_newidle_lb_cost)
			break;
		walk->level++;
		if (sd_domain(sys, sd)->flags & SD_BALANCE_NEWIDLE &&
		    newidle_dice(sys, walk, sd, now))
			return walk->level - 1;
	}
	walk->stop = true;
	return CW_NONE;
}

/*
 * Account the balance of the domain that newidle_next() named: it took `cost`
 * ns, brought `moved` tasks, and ends at `now`. `may_go_on` is false if
 * should_we_balance() refused, because work has come meanwhile (LBF_NOT_MINE).
 */
static inline void newidle_account(struct cw_sys *sys, struct cw_newidle *walk, u64 cost,
				   u32 moved, bool may_go_on, u64 now)
{
	struct cw_cpu_sd *sd = cpu_sd(sys, walk->cpu, walk->level - 1);

	if (!walk->level)
		return;
	if (cost)
		update_newidle_stats(sys, sd, moved ? walk->weight : 0, now);
	if (sched_feat(sys, CW_FEAT_NEWIDLE_COST_DECAY))
		update_newidle_cost(sys, sd, cost, now);
	else if (cost > sd->max_newidle_lb_cost)
		sd->max_newidle_lb_cost = cost;
	walk->curr_cost += cost;
	walk->pulled = moved;
	if (moved || !may_go_on)
		walk->stop = true;
}

/*
 * End the walk. Returns whether the CPU has something to run, in which case its
 * idle period never began.
 */
static inline bool newidle_end(struct cw_sys *sys, const struct cw_newidle *walk)
{
	struct cw_cpu *rq = cpu_rq(sys, walk->cpu);
	bool busy = walk->pulled || rq->nr_running;

	if (walk->curr_cost > rq->max_idle_balance_cost)
		rq->max_idle_balance_cost = walk->curr_cost;
	if (busy)
		rq->idle_stamp = 0;
	return busy;
}

#endif /* CW_NEWIDLE_H */
