/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks, and small systems built by hand to check decisions on.
 *
 * CPUs are numbered in blocks: the SMT siblings of a core, the cores of a
 * cluster, the clusters of an LLC and so on follow each other.
 */
#ifndef CW_TEST_H
#define CW_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wakeup/dst_search.h"
#include "types.h"

static unsigned int nr_checks, nr_failed;

static inline void check_eq(const char *file, int line, const char *what, long long is,
			    long long expected)
{
	nr_checks++;
	if (is == expected)
		return;
	nr_failed++;
	fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", file, line, what, is, expected);
}

#define CHECK_EQ(is, expected)                                                 \
	check_eq(__FILE__, __LINE__, #is, (long long)(is), (long long)(expected))
#define CHECK(condition) CHECK_EQ(!!(condition), 1)

static inline const char *reason_name(u32 reason)
{
	static const char *const names[] = {
#define REASON(name, text) #name,
#include "reasons.def"
#undef REASON
	};

	return reason < CW_NR_REASONS ? names[reason] : "?";
}

static inline void check_decision(const char *file, int line, const struct cw_decision *d, s32 cpu,
				  u32 reason)
{
	nr_checks++;
	if (d->cpu == cpu && d->reason == reason)
		return;
	nr_failed++;
	fprintf(stderr, "%s:%d: CPU %d because of %s, expected CPU %d because of %s\n", file, line,
		d->cpu, reason_name(d->reason), cpu, reason_name(reason));
}

/* The decision is `cpu`, for this reason (a name of reasons.def). */
#define EXPECT(d, cpu, reason)                                                 \
	check_decision(__FILE__, __LINE__, &(d), cpu, CW_REASON_##reason)

static inline int test_report(const char *name)
{
	printf("%-22s %u checks, %u failed\n", name, nr_checks, nr_failed);
	return nr_failed ? 1 : 0;
}

/* The system under test. */
static struct cw_sys sys;

static inline void mask_set(struct cw_cpumask *m, s32 cpu)
{
	m->bits[cpu / 64] |= 1ULL << (cpu % 64);
}

static inline struct cw_cpumask mask_range(s32 first, s32 last)
{
	struct cw_cpumask m = { { 0 } };
	s32 cpu;

	for (cpu = first; cpu <= last; cpu++)
		mask_set(&m, cpu);
	return m;
}

/* Nothing runs on the CPU, and nothing has for long. */
static inline void make_idle(s32 cpu)
{
	struct cw_cpu *rq = &sys.cpu[cpu];

	rq->nr_running = rq->cfs_nr_running = rq->cfs_nr_delayed = rq->idle_nr_running = 0;
	rq->curr_is_idle = 1;
	rq->avg = (struct cw_avg){ .last_update_time = 1 };
}

/* One task runs there, with this load and utilisation (averaged and estimated). */
static inline void make_busy(s32 cpu, u32 load, u32 util)
{
	struct cw_cpu *rq = &sys.cpu[cpu];

	make_idle(cpu);
	rq->nr_running = rq->cfs_nr_running = 1;
	rq->curr_is_idle = 0;
	rq->avg.load_avg = load;
	rq->avg.util_avg = rq->avg.util_est = rq->avg.runnable_avg = util;
}

/* A SCHED_IDLE task runs there. */
static inline void make_sched_idle(s32 cpu)
{
	make_busy(cpu, 3, 1024);
	sys.cpu[cpu].idle_nr_running = 1;
}

static inline void set_feature(enum cw_feature f, bool on)
{
	if (on)
		sys.features[f / 64] |= 1ULL << f % 64;
	else
		sys.features[f / 64] &= ~(1ULL << f % 64);
}

/* A domain level: blocks of `size` CPUs. */
struct level {
	u32 size;
	u32 flags;
};

#define LEVEL_FLAGS (SD_BALANCE_NEWIDLE | SD_BALANCE_EXEC | SD_BALANCE_FORK | SD_WAKE_AFFINE)
#define LEVEL_SMT(size) { size, LEVEL_FLAGS | SD_SHARE_CPUCAPACITY | SD_SHARE_LLC }
#define LEVEL_CLS(size) { size, LEVEL_FLAGS | SD_CLUSTER | SD_SHARE_LLC }
#define LEVEL_MC(size) { size, LEVEL_FLAGS | SD_SHARE_LLC }
#define LEVEL_PKG(size) { size, LEVEL_FLAGS }
#define LEVEL_ASYM(size) { size, LEVEL_FLAGS | SD_ASYM_CPUCAPACITY | SD_ASYM_CPUCAPACITY_FULL }
#define LEVEL_NUMA(size) { size, LEVEL_FLAGS | SD_NUMA }
#define LEVEL_NUMA_FAR(size) { size, SD_NUMA }

static inline void build_group(struct cw_group *group, s32 first, u32 size, u32 flags)
{
	group->span = group->balance_mask = mask_range(first, first + (s32)size - 1);
	group->weight = group->cores = size;
	group->flags = flags;
	group->capacity = size * CW_CAPACITY_SCALE;
	group->min_capacity = group->max_capacity = CW_CAPACITY_SCALE;
}

/* One block of level `l`: its domain, its groups and its CPUs' views of them. */
static inline void build_block(const struct level *levels, u32 l, s32 first, u32 domain,
			       u32 *nr_groups)
{
	struct cw_domain *sd = &sys.domain[domain];
	u32 child = l ? levels[l - 1].size : 1, i;

	sd->span = mask_range(first, first + (s32)levels[l].size - 1);
	sd->flags = levels[l].flags;
	sd->level = l;
	sd->weight = levels[l].size;
	sd->imbalance_pct = sd->flags & SD_SHARE_CPUCAPACITY ? 110 : 117;
	sd->nr_idle_scan = sd->weight;
	sd->nr_groups = sd->weight / child;
	sd->first_group = *nr_groups;
	for (i = 0; i < sd->nr_groups; i++)
		build_group(&sys.group[(*nr_groups)++], first + (s32)(i * child), child,
			    l ? levels[l - 1].flags : 0);
	for (i = 0; i < sd->weight; i++) {
		struct cw_cpu *rq = &sys.cpu[first + (s32)i];
		struct cw_cpu_sd *view = &sys.cpu_sd[first + (s32)i][l];

		view->domain = domain;
		view->local_group = sd->first_group + i / child;
		rq->nr_sd = l + 1;
		if (sd->flags & SD_SHARE_LLC)
			sys.llc[rq->llc = (u32)first].domain = domain;
		if ((sd->flags & SD_ASYM_CPUCAPACITY_FULL) && rq->asym_sd == CW_NONE)
			rq->asym_sd = domain;
	}
}

/* A kernel's version as a number that grows with it. */
static inline u32 kernel(u32 major, u32 minor, u32 patch)
{
	return major << 16 | minor << 8 | patch;
}

/* Reads a version such as 6.18 or 6.18.44, and leaves `*text` behind it. */
static inline u32 read_kernel(const char **text)
{
	u32 major = (u32)strtoul(*text, (char **)text, 10);
	u32 minor = (u32)strtoul(*text + 1, (char **)text, 10), patch = 0;

	if ((*text)[0] == '.' && (*text)[1] != '.')
		patch = (u32)strtoul(*text + 1, (char **)text, 10);
	return kernel(major, minor, patch);
}

/* Is the version in the list of ranges of a FEATURE line? */
static inline bool in_kernels(const char *kernels, u32 version)
{
	while (*kernels) {
		u32 first = *kernels == '.' ? 0 : read_kernel(&kernels), last = first;

		if (*kernels == '.') {
			kernels += 2;
			last = *kernels && *kernels != ' ' ? read_kernel(&kernels) : ~0u;
		}
		if (first <= version && version <= last)
			return true;
		kernels += *kernels == ' ';
	}
	return false;
}

/* Features as in that kernel's profile. */
static inline void set_kernel(u32 major, u32 minor)
{
	memset(sys.features, 0, sizeof(sys.features));
#define FEATURE(name, kernels, ...)                                            \
	if (in_kernels(kernels, kernel(major, minor, 0)))                      \
		set_feature(CW_FEAT_##name, true);
#define TUNABLE(...)
#include "features.def"
#undef FEATURE
#undef TUNABLE
}

/* `nr_cpus` CPUs, all busy with one task of load and utilisation 1024; features as in 6.12. */
static inline void sys_levels(u32 nr_cpus, const struct level *levels, u32 nr_levels)
{
	static const s64 tunables[] = {
#define FEATURE(...)
#define TUNABLE(name, value, ...) value,
#include "features.def"
#undef FEATURE
#undef TUNABLE
	};
	u32 threads = levels[0].flags & SD_SHARE_CPUCAPACITY ? levels[0].size : 1;
	u32 domains = 0, groups = 0, cpu, l, first;

	memset(&sys, 0, sizeof(sys));
	sys.nr_cpus = nr_cpus;
	sys.mask_words = (nr_cpus + 63) / 64;
	set_kernel(6, 12);
	memcpy(sys.tunable, tunables, sizeof(tunables));
	sys.smt_present = threads > 1;
	sys.max_cpu_capacity = CW_CAPACITY_SCALE;
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		struct cw_cpu *rq = &sys.cpu[cpu];
		s32 core = (s32)(cpu - cpu % threads);

		make_busy((s32)cpu, 1024, 1024);
		rq->capacity = rq->capacity_orig = rq->freq_capacity = CW_CAPACITY_SCALE;
		rq->core = (u32)core;
		rq->llc = cpu;
		rq->asym_sd = CW_NONE;
		sys.smt_mask[cpu] = mask_range(core, core + (s32)threads - 1);
		sys.llc[cpu].domain = CW_NONE;
	}
	for (l = 0; l < nr_levels; l++) {
		if (levels[l].flags & SD_CLUSTER)
			sys.cluster_present = 1;
		if (levels[l].flags & SD_ASYM_CPUCAPACITY)
			sys.asym_present = 1;
		if (l && levels[l - 1].flags & SD_SHARE_LLC && !(levels[l].flags & SD_SHARE_LLC) &&
		    levels[l - 1].size > 1 && levels[l].size > levels[l - 1].size)
			sys.sched_cache_present = 1;
		for (first = 0; first < nr_cpus; first += levels[l].size)
			build_block(levels, l, (s32)first, domains++, &groups);
	}
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		struct cw_llc *llc = &sys.llc[sys.cpu[cpu].llc];

		llc->weight = llc->domain == CW_NONE ? 1 : sys.domain[llc->domain].weight;
		llc->nr_idle_scan = llc->weight;
	}
}

#define SYS_LEVELS(nr_cpus, ...)                                               \
	do {                                                                   \
		static const struct level list[] = { __VA_ARGS__ };            \
		sys_levels(nr_cpus, list, sizeof(list) / sizeof(list[0]));     \
	} while (0)

/* `llcs` last-level caches of `cores` cores with one thread each. */
static inline void sys_plain(u32 llcs, u32 cores)
{
	struct level levels[] = { LEVEL_MC(cores), LEVEL_PKG(llcs * cores) };

	sys_levels(llcs * cores, levels, llcs > 1 ? 2 : 1);
}

/* `llcs` last-level caches of `cores` cores with two threads each. */
static inline void sys_smt(u32 llcs, u32 cores)
{
	struct level levels[] = { LEVEL_SMT(2), LEVEL_MC(2 * cores), LEVEL_PKG(2 * llcs * cores) };

	sys_levels(2 * llcs * cores, levels, llcs > 1 ? 3 : 2);
}

/* The wakeup under test; new_wakeup() resets it. */
static struct cw_task wakee, waker;
static struct cw_cpumask allowed;
static struct cw_wakeup wakeup;

/* Task 2, of load and utilisation 100, last ran on `prev`; task 1 on `this_cpu` places it. */
static inline void new_wakeup(u32 wake_flags, s32 this_cpu, s32 prev)
{
	allowed = mask_range(0, (s32)sys.nr_cpus - 1);
	waker = (struct cw_task){ .pid = 1, .last_wakee = 2, .weight = 1024 };
	waker.avg = (struct cw_avg){ .last_update_time = 1, .load_avg = 100, .util_avg = 100 };
	wakee = waker;
	wakee.pid = 2;
	wakee.recent_used_cpu = prev;
	wakee.nr_cpus_allowed = sys.nr_cpus;
	wakee.numa_preferred_nid = NUMA_NO_NODE;
	wakeup = (struct cw_wakeup){
		.p = &wakee,
		.waker = wake_flags & WF_EXEC ? &wakee : &waker,
		.cpus_ptr = &allowed,
		.this_cpu = this_cpu,
		.prev_cpu = prev,
		.task_cpu = prev,
		.wake_flags = wake_flags,
		.in_task = 1,
		.now = 1000,
	};
}

/* The contribution of the task that `wakeup` places. */
static inline const struct cw_contribution *placed(void)
{
	static struct cw_contribution contribution;

	contribution = task_contribution(&sys, &wakeup);
	return &contribution;
}

#endif /* CW_TEST_H */
