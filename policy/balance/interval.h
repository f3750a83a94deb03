/* SPDX-License-Identifier: GPL-2.0-only */
/* Time in ticks, the kernel's jiffies, and how many pass between balances of a domain. */
#ifndef CW_INTERVAL_H
#define CW_INTERVAL_H

#include "balance/lb_env.h"

/* The default length of a tick, if the host sets none: HZ 250. */
#define CW_DEFAULT_TICK_NS 4000000u
#define CW_NSEC_PER_SEC 1000000000u

static inline u32 tick_nsec(const struct cw_sys *sys)
{
	return sys->tick_ns ? sys->tick_ns : CW_DEFAULT_TICK_NS;
}

/* A time in ticks since the start: the kernel's jiffies. */
static inline u64 jiffies_of(const struct cw_sys *sys, u64 ns)
{
	return ns / tick_nsec(sys);
}

/*
 * How long (ticks) to wait after a balance of the domain. A busy CPU waits
 * busy_factor times longer, less a tick, so that the periods of the levels are
 * not multiples of each other. At most 0.1 s for each CPU of the machine.
 */
static inline u64 get_sd_balance_interval(struct cw_sys *sys, const struct cw_cpu_sd *sd, bool busy)
{
	u64 tick = tick_nsec(sys), max = CW_NSEC_PER_SEC / tick * sys->nr_cpus / 10;
	u64 interval = sd->balance_interval_ms;

	if (busy)
		interval *= sd_domain(sys, sd)->busy_factor;
	interval = (interval * 1000000 + tick - 1) / tick;
	if (busy && interval)
		interval--;
	if (interval > max)
		interval = max;
	return interval ? interval : 1;
}

#endif /* CW_INTERVAL_H */
