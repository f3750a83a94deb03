/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle load balancing: CPUs whose tick is stopped do not balance themselves, so the tick
 * of a busy CPU asks one of them to balance for all.
 */
#ifndef CW_NOHZ_H
#define CW_NOHZ_H

#include "balance/lb_stats.h"
#include "balance/misfit.h"

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

#endif /* CW_NOHZ_H */
