/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scans for an idle CPU: a whole core, an SMT sibling, any CPU of a last-level cache, or one
 * that is big enough (kernel/sched/fair.c, 6.12). Each returns the CPU, or -1.
 */
#ifndef CW_SELECT_IDLE_H
#define CW_SELECT_IDLE_H

#include "mask.h"
#include "topology.h"
#include "types.h"
#include "util.h"

/*
 * Where the existence of an idle core is recorded for `cpu`: with its last-level
 * cache, or with the domain that is searched where CPUs differ in capacity (7.3; not
 * if that consists of nodes, which may overlap). NULL: nowhere.
 */
static inline u32 *idle_cores_note(struct cw_sys *sys, s32 cpu)
{
	struct cw_domain *asym_sd = sd_asym_cpucapacity(sys, cpu);

	if (asym_sd && !(asym_sd->flags & SD_NUMA) && sched_feat(sys, CW_FEAT_ASYM_IDLE_CORE))
		return &asym_sd->has_idle_cores;
	return sd_llc(sys, cpu) ? &llc_of(sys, cpu)->has_idle_cores : NULL;
}

/* Does the cache of `cpu` have a core without tasks, as far as is known? */
static inline bool test_idle_cores(struct cw_sys *sys, s32 cpu)
{
	const u32 *note = idle_cores_note(sys, cpu);

	return note && *note;
}

static inline void set_idle_cores(struct cw_sys *sys, s32 cpu, bool value)
{
	u32 *note = idle_cores_note(sys, cpu);

	if (note)
		*note = value;
}

/* `cpu` goes idle: if its siblings are idle too, its cache has an idle core. */
static inline void update_idle_core(struct cw_sys *sys, s32 cpu)
{
	const struct cw_cpumask *smt = &sys->smt_mask[cpu & CW_CPU_MASK];
	s32 sibling;

	if (!sys->smt_present || test_idle_cores(sys, cpu))
		return;
	for_each_cpu(sys, sibling, smt)
		if (sibling != cpu && !available_idle_cpu(sys, sibling))
			return;
	set_idle_cores(sys, cpu, true);
}

/* A budget that no scan uses up. */
#define SCAN_ALL (2 * CW_MAX_CPUS)

/* One search of a last-level cache. */
struct cw_idle_scan {
	const struct cw_cpumask *llc;
	const struct cw_cpumask *allowed;
	const struct cw_task *p;
	s32 start; /* the scan begins here, ascends and wraps */
	s32 budget; /* CPUs that may be looked at, plus one; not for cores */
	s32 idle_cpu; /* first idle CPU seen while looking for a core */
	bool has_idle_core;
};

static inline bool scan_may_use(const struct cw_idle_scan *scan, s32 cpu)
{
	return cpumask_test_cpu(cpu, scan->llc) && cpumask_test_cpu(cpu, scan->allowed);
}

/* How far the wrapping scan goes before it meets `cpu`. */
static inline u32 scan_distance(const struct cw_idle_scan *scan, s32 cpu)
{
	return (u32)(cpu - scan->start) & (2 * CW_MAX_CPUS - 1);
}

/* Has the scan met the core of `cpu` before, by a sibling? */
static inline bool core_scanned(struct cw_sys *sys, const struct cw_idle_scan *scan, s32 cpu)
{
	const struct cw_cpumask *smt = &sys->smt_mask[cpu & CW_CPU_MASK];
	s32 sibling;

	for_each_cpu_and(sys, sibling, smt, scan->allowed)
		if (cpumask_test_cpu(sibling, scan->llc) &&
		    scan_distance(scan, sibling) < scan_distance(scan, cpu))
			return true;
	return false;
}

/* `core` if all of its CPUs are idle; else remember an idle one that the task may use. */
static inline s32 select_idle_core(struct cw_sys *sys, struct cw_decision *d,
				   struct cw_idle_scan *scan, s32 core)
{
	const struct cw_cpumask *smt = &sys->smt_mask[core & CW_CPU_MASK];
	bool whole = true;
	s32 cpu;

	for_each_cpu(sys, cpu, smt) {
		bool idle = available_idle_cpu(sys, cpu);

		d->cpus_scanned++;
		whole &= idle;
		if (scan->idle_cpu < 0 && (idle || choose_sched_idle_cpu(sys, cpu, scan->p)) &&
		    scan_may_use(scan, cpu))
			scan->idle_cpu = cpu;
		if (!idle && scan->idle_cpu >= 0)
			break;
	}
	return whole ? core : -1;
}

/* An idle SMT sibling of the previous CPU in the cache of the target, d->target. */
CW_GLOBAL s32 select_idle_smt(struct cw_sys *sys CW_NONNULL, const struct cw_task *p CW_NONNULL,
			      const struct cw_cpumask *cpus_ptr CW_NONNULL,
			      struct cw_decision *d CW_NONNULL, s32 prev)
{
	const struct cw_domain *llc = sd_llc(sys, d->target);
	s32 cpu;

	if (!llc)
		return -1;
	for_each_cpu_and(sys, cpu, &sys->smt_mask[prev & CW_CPU_MASK], cpus_ptr) {
		if (cpu == prev || !cpumask_test_cpu(cpu, &llc->span))
			continue;
		d->cpus_scanned++;
		if (choose_idle_cpu(sys, cpu, p)) {
			d->reason = CW_REASON_IDLE_SMT;
			return cpu;
		}
	}
	return -1;
}

/* Search `span` except `skip`: for a core if one is idle, else for any CPU within the budget. */
static inline s32 scan_span(struct cw_sys *sys, struct cw_decision *d, struct cw_idle_scan *scan,
			    const struct cw_cpumask *span, const struct cw_group *skip)
{
	bool wrapped;
	s32 cpu;

	for_each_cpu_wrap_and(sys, cpu, scan->start, wrapped, span, scan->allowed) {
		if (skip && cpumask_test_cpu(cpu, &skip->span))
			continue;
		if (scan->has_idle_core) {
			if (!core_scanned(sys, scan, cpu) &&
			    select_idle_core(sys, d, scan, cpu) >= 0) {
				d->reason = CW_REASON_IDLE_CORE;
				return cpu;
			}
			continue;
		}
		if (--scan->budget <= 0) {
			d->notes |= CW_NOTE_SCAN_LIMIT;
			return -1;
		}
		d->cpus_scanned++;
		if (choose_idle_cpu(sys, cpu, scan->p)) {
			d->reason = CW_REASON_IDLE_CPU;
			return cpu;
		}
	}
	return -1;
}

/* How many CPUs SIS_UTIL lets a scan look at, plus one; 0 if a scan is not worthwhile. */
static inline s32 scan_budget(struct cw_decision *d, u32 nr_idle_scan)
{
	if (!nr_idle_scan) {
		/* an overloaded domain has neither an idle core nor an idle CPU */
		d->notes |= CW_NOTE_SIS_UTIL_STOP;
		return 0;
	}
	return unknown((s32)(nr_idle_scan < CW_MAX_CPUS ? nr_idle_scan : CW_MAX_CPUS) + 1);
}

/* Search the last-level cache of the target, d->target, its cluster first. */
CW_GLOBAL s32 select_idle_cpu(struct cw_sys *sys CW_NONNULL, const struct cw_task *p CW_NONNULL,
			      const struct cw_cpumask *cpus_ptr CW_NONNULL,
			      struct cw_decision *d CW_NONNULL, bool has_idle_core)
{
	s32 target = d->target;
	const struct cw_domain *llc = sd_llc(sys, target);
	struct cw_idle_scan scan = {
		.allowed = cpus_ptr,
		.p = p,
		.start = target + 1,
		.budget = unknown(SCAN_ALL),
		.idle_cpu = -1,
		.has_idle_core = has_idle_core,
	};
	struct cw_group *cluster = NULL;
	s32 cpu = -1;

	if (!llc)
		return -1;
	scan.llc = &llc->span;
	if (sched_feat(sys, CW_FEAT_SIS_UTIL)) {
		scan.budget = scan_budget(d, llc_of(sys, target)->nr_idle_scan);
		if (!scan.budget)
			return -1;
	}
	if (sched_feat(sys, CW_FEAT_SIS_KEEP_IDLE_CORES) &&
	    !cpumask_intersects(sys, scan.llc, scan.allowed))
		return -1;
	if (sys->cluster_present)
		cluster = cluster_group(sys, target);
	if (cluster) {
		cpu = scan_span(sys, d, &scan, &cluster->span, NULL);
		if (cpu >= 0 && d->reason == CW_REASON_IDLE_CPU)
			d->reason = CW_REASON_CLUSTER_IDLE;
	}
	if (cpu < 0)
		cpu = scan_span(sys, d, &scan, &llc->span, cluster);
	if (cpu >= 0 || !has_idle_core)
		return cpu;
	set_idle_cores(sys, target, false);
	d->reason = CW_REASON_IDLE_CPU;
	return scan.idle_cpu;
}

/*
 * CPUs that SIS_PROP lets a waker on this CPU look at, plus one: as many as take the
 * 512th part of the time that it usually idles, by what its scans took so far; four at least.
 */
static inline s32 sis_prop_budget(struct cw_sys *sys, s32 this_cpu, u32 llc_weight)
{
	const struct cw_cpu *rq = cpu_rq(sys, this_cpu);
	u64 span_avg = llc_weight * (rq->avg_idle / 512), nr = 4;

	if (span_avg > 4 * (rq->avg_scan_cost + 1))
		nr = span_avg / (rq->avg_scan_cost + 1);
	return unknown((s32)(nr < SCAN_ALL ? nr : SCAN_ALL));
}

/*
 * Without SIS_ONE_SEARCH: in the last-level cache of the target, d->target, an idle
 * core if one is noted, else an idle CPU within the budget, else an idle sibling.
 */
CW_GLOBAL s32 select_idle_in_turn(struct cw_sys *sys CW_NONNULL, const struct cw_task *p CW_NONNULL,
				  const struct cw_cpumask *cpus_ptr CW_NONNULL,
				  struct cw_decision *d CW_NONNULL)
{
	s32 target = d->target;
	const struct cw_domain *llc = sd_llc(sys, target);
	struct cw_idle_scan scan = {
		.allowed = cpus_ptr,
		.p = p,
		.start = target,
		.budget = unknown(SCAN_ALL),
		.idle_cpu = target, /* a busy sibling ends the look at a core */
		.has_idle_core = sys->smt_present && test_idle_cores(sys, target),
	};
	s32 cpu;

	if (!llc)
		return -1;
	scan.llc = &llc->span;
	if (scan.has_idle_core) {
		cpu = scan_span(sys, d, &scan, &llc->span, NULL);
		if (cpu >= 0)
			return cpu;
		set_idle_cores(sys, target, false);
		scan.has_idle_core = false;
	}
	if (sched_feat(sys, CW_FEAT_SIS_PROP))
		scan.budget = sis_prop_budget(sys, d->this_cpu, llc->weight);
	/* what scans take is noted with the cache of the waker's CPU */
	cpu = sd_llc(sys, d->this_cpu) ? scan_span(sys, d, &scan, &llc->span, NULL) : -1;
	if (cpu >= 0)
		return cpu;
	for_each_cpu_and(sys, cpu, &sys->smt_mask[target & CW_CPU_MASK], cpus_ptr) {
		if (!sys->smt_present || !cpumask_test_cpu(cpu, &llc->span))
			continue;
		d->cpus_scanned++;
		if (choose_idle_cpu(sys, cpu, p)) {
			d->reason = CW_REASON_IDLE_SMT;
			return cpu;
		}
	}
	return -1;
}

/* SIS_PROP: the search that ended with this wakeup took so long. One that its budget ended tells nothing. */
static inline void update_avg_scan_cost(struct cw_sys *sys, const struct cw_decision *d, u64 ns)
{
	struct cw_cpu *rq = cpu_rq(sys, d->this_cpu);

	if (!(d->event & WF_TTWU) || !d->cpus_scanned || d->notes & CW_NOTE_SCAN_LIMIT)
		return;
	if (d->reason == CW_REASON_IDLE_CPU || d->reason == CW_REASON_IDLE_SMT ||
	    d->reason == CW_REASON_TARGET_BUSY)
		rq->avg_scan_cost += (u64)(((s64)ns - (s64)rq->avg_scan_cost) / 8);
}

/* How well an idle CPU that is not ideal suits, where CPUs differ in capacity; best first. */
enum asym_idle_rank {
	ASYM_IDLE_CORE_BOOST_MISFIT, /* big enough, except for the requested minimum performance */
	ASYM_IDLE_CORE_MISFIT, /* too small, but its core is idle */
	ASYM_IDLE_THREAD_FITS, /* big enough, but an SMT sibling is busy */
	ASYM_IDLE_THREAD_BOOST_MISFIT,
	ASYM_IDLE_THREAD_MISFIT,
};

CW_GLOBAL enum asym_idle_rank asym_idle_rank(s32 fits, bool core)
{
	if (fits > 0)
		return ASYM_IDLE_THREAD_FITS;
	if (fits < 0)
		return core ? ASYM_IDLE_CORE_BOOST_MISFIT : ASYM_IDLE_THREAD_BOOST_MISFIT;
	return core ? ASYM_IDLE_CORE_MISFIT : ASYM_IDLE_THREAD_MISFIT;
}

/*
 * The first idle CPU of `sd`, from d->target on, that is big enough, on an idle core if
 * there is one; otherwise the one that ranks best, and among equals has the most
 * capacity.
 */
CW_GLOBAL s32 select_idle_capacity(struct cw_sys *sys CW_NONNULL, const struct cw_task *p CW_NONNULL,
				   const struct cw_cpumask *cpus_ptr CW_NONNULL,
				   struct cw_decision *d CW_NONNULL,
				   const struct cw_domain *sd CW_NONNULL)
{
	s32 target = d->target;
	bool want_core = sched_feat(sys, CW_FEAT_ASYM_IDLE_CORE) && sys->smt_present &&
			 test_idle_cores(sys, target);
	u32 best_rank = unknown(ASYM_IDLE_THREAD_MISFIT), best_cap = unknown(0);
	s32 budget = unknown(SCAN_ALL), best_cpu = unknown(-1), cpu;
	u64 util = task_util_est(p);
	bool wrapped;

	if (sched_feat(sys, CW_FEAT_ASYM_SIS_UTIL) && sched_feat(sys, CW_FEAT_SIS_UTIL) &&
	    !(sd->flags & SD_NUMA)) {
		budget = scan_budget(d, sd->nr_idle_scan);
		if (!budget)
			return -1;
	}
	for_each_cpu_wrap_and(sys, cpu, target, wrapped, &sd->span, cpus_ptr) {
		u32 cap = capacity_of(sys, cpu);
		s32 fits;
		bool core;
		u32 rank;

		if (!want_core && --budget <= 0) {
			d->notes |= CW_NOTE_SCAN_LIMIT;
			break;
		}
		d->cpus_scanned++;
		if (!choose_idle_cpu(sys, cpu, p))
			continue;
		fits = util_fits_cpu(sys, util, uclamp_min(p), uclamp_max(p), cpu);
		core = !want_core || is_core_idle(sys, cpu);
		if (fits > 0 && core) {
			d->reason = CW_REASON_ASYM_IDLE_FITS;
			return cpu;
		}
		if (fits <= 0)
			d->notes |= CW_NOTE_NO_FIT;
		if (fits < 0)
			cap = arch_scale_cpu_capacity(sys, cpu);
		rank = asym_idle_rank(fits, core);
		if (rank < best_rank || (rank == best_rank && cap > best_cap)) {
			best_rank = rank;
			best_cap = cap;
			best_cpu = cpu;
		}
	}
	if (want_core && best_rank > ASYM_IDLE_CORE_MISFIT)
		set_idle_cores(sys, target, false);
	d->reason = best_rank == ASYM_IDLE_THREAD_FITS ? CW_REASON_ASYM_IDLE_FITS :
							 CW_REASON_ASYM_IDLE_BIGGEST;
	return best_cpu;
}

#endif /* CW_SELECT_IDLE_H */
