/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Newidle balance: a CPU that runs out of work looks for some, domain by domain
 * upwards, as long as its usual idle time is longer than what the search costs.
 *
 *	newidle_begin() ... while ((level = newidle_next()) != CW_NONE) {
 *		balance the domain with CW_NEWLY_IDLE;
 *		newidle_account(what it took, what it brought);
 *	} newidle_end();
 *
 * The cost that the host reports for the first domain includes bringing the
 * CPU's own averages up to date, as the kernel's clock does.
 */
#ifndef CW_NEWIDLE_H
#define CW_NEWIDLE_H

#include "interval.h"
#include "misfit.h"

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

/*
 * Keep the highest cost (ns) of a newidle balance of one domain. It decays by
 * 3/256, about 1 %, when it was not exceeded for more than a second. Returns
 * whether it decayed.
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

/* The walk of one newly idle CPU up its domains. */
struct cw_newidle {
	s32 cpu;
	u32 level; /* the next to look at */
	u64 curr_cost; /* ns spent so far */
	bool pulled; /* there is work now */
	bool stop;
};

/*
 * The CPU has nothing to run. Returns whether to search at all: not if a wakeup
 * is on its way here, if no runqueue of the machine has a task that waits, or
 * if even the lowest domain costs more time than the CPU is usually idle.
 */
static inline bool newidle_begin(struct cw_sys *sys, struct cw_newidle *walk, s32 cpu, u64 now)
{
	struct cw_cpu *rq = cpu_rq(sys, cpu);

	walk->cpu = cpu;
	walk->level = 0;
	walk->curr_cost = 0;
	walk->pulled = false;
	walk->stop = false;

	update_misfit_status(sys, NULL, cpu);
	if (rq->ttwu_pending)
		return false;
	/* Before the search: its time counts as idle time. */
	rq->idle_stamp = now;
	if (!sys->overloaded)
		return false;
	return !rq->nr_sd || rq->avg_idle >= cpu_sd(sys, cpu, 0)->max_newidle_lb_cost;
}

/*
 * The level to balance next, or CW_NONE. A domain without SD_BALANCE_NEWIDLE
 * (relax_domain_level) is passed over; one that would cost more than what is
 * left of the usual idle time ends the walk, even if it would be passed over.
 */
static inline u32 newidle_next(struct cw_sys *sys, struct cw_newidle *walk)
{
	struct cw_cpu *rq = cpu_rq(sys, walk->cpu);

	while (!walk->stop && walk->level < rq->nr_sd && walk->level < CW_MAX_LEVELS) {
		struct cw_cpu_sd *sd = cpu_sd(sys, walk->cpu, walk->level);

		if (rq->avg_idle < walk->curr_cost + sd->max_newidle_lb_cost)
			break;
		walk->level++;
		if (sd_domain(sys, sd)->flags & SD_BALANCE_NEWIDLE)
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
	if (!walk->level)
		return;
	update_newidle_cost(sys, cpu_sd(sys, walk->cpu, walk->level - 1), cost, now);
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
