/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle load balancing: CPUs whose tick is stopped do not balance themselves, so the tick
 * of a busy CPU asks one of them to balance for all.
 */
#ifndef CW_NOHZ_H
#define CW_NOHZ_H

#include "balance/lb_stats.h"
#include "balance/misfit.h"
#include "track/upkeep.h"

/*
 * Which CPU balances for the idle ones: the first idle housekeeping CPU other
 * than `cpu`, or -1. With ILB_IDLE_CORE one whose siblings are idle comes first.
 */
static inline s32 find_new_ilb(struct cw_sys *sys, const struct cw_cpumask *nohz_idle,
			       const struct cw_cpumask *housekeeping, s32 cpu)
{
	bool want_core = sys->smt_present && sched_feat(sys, CW_FEAT_ILB_IDLE_CORE);
	s32 ilb, fallback = unknown(-1);

	for_each_cpu_and(sys, ilb, nohz_idle, housekeeping) {
		if (ilb == cpu || !idle_cpu(sys, ilb))
			continue;
		if (!want_core || is_core_idle(sys, ilb))
			return ilb;
		if (fallback < 0) {
			/* or Linux 6.18's verifier, going back from a bound of one to the other, ends in a bug */
			fallback = unknown(ilb);
		}
	}
	return fallback;
}

/* Is an idle CPU better to run on than `cpu`, where the domain packs tasks on some CPUs? */
static inline bool nohz_finds_preferred(struct cw_sys *sys, s32 cpu,
					const struct cw_cpumask *nohz_idle)
{
	const struct cw_domain *sd, *packing = NULL;
	u32 level;
	s32 idle;

	for_each_domain(sys, cpu, level, sd)
		if (sd->flags & SD_ASYM_PACKING)
			packing = sd;
	if (!packing)
		return false;
	for_each_cpu_and(sys, idle, &packing->span, nohz_idle) {
		if (sched_asym(sys, packing, idle, cpu))
			return true;
	}
	return false;
}

/*
 * At a tick of `cpu`, which is not idle: is there work that an idle CPU should
 * be asked to look for? A second task; a CPU that has lost capacity; an idle
 * CPU that is preferred; a task that does not fit; or, without asymmetric
 * capacity, more than one busy CPU in its last-level cache.
 */
static inline bool nohz_balancer_kick(struct cw_sys *sys, s32 cpu,
				      const struct cw_cpumask *nohz_idle)
{
	const struct cw_cpu *rq = cpu_rq(sys, cpu);
	const struct cw_domain *lowest = cpu_domain(sys, cpu, 0);

	if (rq->nr_running >= 2)
		return true;
	if (lowest && lb_nr_running(sys, rq) >= 1 && check_cpu_capacity(rq, lowest))
		return true;
	if (nohz_finds_preferred(sys, cpu, nohz_idle))
		return true;
	if (rq->asym_sd != CW_NONE)
		return check_misfit_status(rq);
	return sd_llc(sys, cpu) && llc_of(sys, cpu)->nr_busy_cpus > 1;
}

/*
 * At a tick of `cpu`, which is not idle: the CPU of `nohz_idle` that is to balance for the
 * idle ones, or -1. None is asked twice in a tick, nor after it has done so before the
 * first of them is due again, which the host then notes in sys->nohz_next_balance.
 */
CW_GLOBAL s32 kick_ilb(struct cw_sys *sys CW_NONNULL, s32 cpu,
		       const struct cw_cpumask *nohz_idle CW_NONNULL, u64 now)
{
	u64 jiffies = jiffies_of(sys, now);

	if (jiffies < sys->nohz_next_balance || cpumask_first(sys, nohz_idle) >= CW_MAX_CPUS ||
	    !nohz_balancer_kick(sys, cpu, nohz_idle))
		return -1;
	sys->nohz_next_balance = jiffies + 1;
	/* every CPU is a housekeeping CPU */
	return find_new_ilb(sys, nohz_idle, nohz_idle, cpu);
}

/* The averages of idle CPUs, which no tick brings up to date, are this old at most, in ms (LOAD_AVG_PERIOD). */
#define CW_NOHZ_STATS_MS 32

/* Are they that old, unless they have all decayed to nothing? */
static inline bool nohz_stats_due(const struct cw_sys *sys, u64 now)
{
	return sys->nohz_has_blocked && jiffies_of(sys, now) >= sys->nohz_next_blocked;
}

/* At a tick of `cpu`, which is not idle: the CPU of `nohz_idle` that is to update them all, or -1. */
static inline s32 kick_nohz_stats(struct cw_sys *sys, s32 cpu, const struct cw_cpumask *nohz_idle, u64 now)
{
	if (!nohz_stats_due(sys, now) || cpumask_first(sys, nohz_idle) >= CW_MAX_CPUS)
		return -1;
	return find_new_ilb(sys, nohz_idle, nohz_idle, cpu);
}

/* Is `cpu`, which goes idle, to update them all itself? Yes if it is usually idle for so long (nohz_newidle_balance()). */
static inline bool nohz_newidle_stats(const struct cw_sys *sys, s32 cpu, u64 now)
{
	s64 avg_idle = (s64)sys->cpu[cpu & CW_CPU_MASK].avg_idle;

	return avg_idle >= tunable(sys, CW_TUNE_migration_cost_ns) && nohz_stats_due(sys, now);
}

/* Brings the averages of an idle CPU to `now`; whether it has any (update_nohz_stats()). */
static inline bool update_nohz_stats(struct cw_sys *sys, s32 cpu, u64 now)
{
	const struct cw_avg *avg = &cpu_rq(sys, cpu)->avg;

	if (!avg->load_avg && !avg->util_avg)
		return false;
	update_blocked_averages(sys, cpu, now);
	return avg->load_avg || avg->util_avg;
}

/* All of them have been brought to `now`; `has_blocked`: some have not decayed to nothing. */
static inline void nohz_stats_done(struct cw_sys *sys, u64 now, bool has_blocked)
{
	sys->nohz_has_blocked = has_blocked;
	sys->nohz_next_blocked = jiffies_of(sys, now + CW_NOHZ_STATS_MS * 1000000ULL);
}

#endif /* CW_NOHZ_H */
