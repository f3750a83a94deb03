/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State that the kernel's ticks and balances keep current and that no event reports:
 * the averages of a CPU whose task keeps running or that idles, the limit of scans,
 * and how busy LLCs are. Each is brought up to date before a decision if it is old.
 *
 * This is done without the runqueue's lock. If the CPU itself does the same at the
 * same moment, part of a period may count twice; the error decays.
 */
#ifndef CW_STALE_BPF_H
#define CW_STALE_BPF_H

#include "wakeup/cache_aware.h"
#include "common/host.bpf.h"
#include "balance/lb_stats.h"

/* When the scan limit of each LLC was computed, and when its load was saved. */
u64 host_scan_limit_at[CW_MAX_CPUS];
u64 host_llc_load_at[CW_MAX_CPUS];

/* The averages of `cpu`, if they are older than a tick; its utilisation then. */
CW_GLOBAL u64 host_refresh_cpu(s32 cpu, u64 now)
{
	if ((s64)(now - cpu_rq(&sys, cpu)->clock_task) >= (s64)sys.tick_ns)
		update_blocked_averages(&sys, cpu, now);
	return cpu_util(&sys, cpu);
}

/* The domain of `cpu` that is its LLC. */
static inline u32 llc_level(s32 cpu, const struct cw_domain *llc)
{
	struct cw_domain *sd;
	u32 level;

	for_each_domain(&sys, cpu, level, sd)
		if (sd == llc)
			break;
	return level;
}

/*
 * Updates the number of CPUs of the LLC of `cpu` that a wakeup may look at (SIS_UTIL), if it
 * was computed longer ago than the interval at which an idle CPU balances the LLC. `env` is
 * scratch memory.
 */
static inline void host_refresh_scan_limit(struct cw_balance *env, s32 cpu, u64 now)
{
	const struct cw_domain *llc = sd_llc(&sys, cpu);
	u64 *at = &host_scan_limit_at[cpu_rq(&sys, cpu)->llc & CW_CPU_MASK];
	u64 util = 0;
	s32 other;

	if (!llc || now - *at < llc->min_interval_ms * 1000000ULL)
		return;
	*at = now;
	for_each_cpu(&sys, other, &llc->span)
		util += host_refresh_cpu(other, now);
	env->this_cpu = env->dst_cpu = cpu;
	env->level = llc_level(cpu, llc);
	env->idle = CW_IDLE;
	env->sds.total_util = util;
	update_idle_cpu_scan(&sys, env);
}

/* CACHE_AWARE: updates how busy the LLC of `cpu` is, if that was saved longer ago than the balance interval of LLCs. */
static inline void host_refresh_llc_load(s32 cpu, u64 now)
{
	const struct cw_domain *llc = sd_llc(&sys, cpu), *above;
	u64 *at = &host_llc_load_at[cpu_rq(&sys, cpu)->llc & CW_CPU_MASK];
	u64 util = 0, nr_running = 0;
	s32 other;

	if (!llc)
		return;
	above = cpu_domain(&sys, cpu, llc_level(cpu, llc) + 1);
	if (!above || now - *at < above->min_interval_ms * 1000000ULL)
		return;
	*at = now;
	for_each_cpu(&sys, other, &llc->span) {
		util += host_refresh_cpu(other, now);
		nr_running += cpu_rq(&sys, other)->cfs_nr_running;
	}
	save_llc_load(llc_of(&sys, cpu), util, nr_running);
}

/* Updates the state that the decision on `w` looks at. */
static inline void host_refresh(struct cw_balance *env, const struct cw_wakeup *w)
{
	s32 cpu;

	if (w->wake_flags & WF_TTWU) {
		host_refresh_cpu(w->this_cpu, w->now);
		host_refresh_cpu(w->prev_cpu, w->now);
		host_refresh_scan_limit(env, w->this_cpu, w->now);
		host_refresh_scan_limit(env, w->prev_cpu, w->now);
		if (w->p->flags & CW_TASK_CACHE_CPU)
			host_refresh_llc_load(w->p->cache_cpu, w->now);
		return;
	}
	for (cpu = unknown(0); cpu < CW_MAX_CPUS && cpu < (s32)sys.nr_cpus && may_loop(); cpu++)
		host_refresh_cpu(cpu, w->now);
}

#endif /* CW_STALE_BPF_H */
