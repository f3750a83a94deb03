/* SPDX-License-Identifier: GPL-2.0-only */
/* Small systems to balance, and one attempt at it. */
#ifndef CW_BALANCE_TEST_H
#define CW_BALANCE_TEST_H

#include "test.h"

#include "balance/outcome.h"

/* As the kernel has it: all levels but NUMA spread tasks over their parent's groups. */
#define SPREAD_SMT(size) { size, LEVEL_FLAGS | SD_SHARE_CPUCAPACITY | SD_SHARE_LLC | SD_PREFER_SIBLING }
#define SPREAD_MC(size) { size, LEVEL_FLAGS | SD_SHARE_LLC | SD_PREFER_SIBLING }

static struct cw_balance env;
static struct cw_decision d;

/* All idle, nothing ever balanced, intervals as the kernel sets them up. */
static inline void balance_setup(void)
{
	u32 threads = sys.smt_present ? 2 : 1, cpu, level, i;

	sys.tick_ns = 4000000;
	sys.overloaded = 1;
	for (i = 0; i < CW_MAX_DOMAINS && sys.domain[i].weight; i++) {
		struct cw_domain *sd = &sys.domain[i];

		sd->busy_factor = 16;
		sd->min_interval_ms = sd->weight;
		sd->max_interval_ms = 2 * sd->weight;
		sd->cache_nice_tries = 1;
	}
	for (i = 0; i < CW_MAX_GROUPS && sys.group[i].weight; i++)
		sys.group[i].cores = sys.group[i].weight > threads ?
					     sys.group[i].weight / threads :
					     1;
	for (cpu = 0; cpu < sys.nr_cpus; cpu++) {
		make_idle((s32)cpu);
		sys.cpu[cpu].max_idle_balance_cost = 500000;
		sys.cpu[cpu].avg_idle = 1000000;
		for (level = 0; level < sys.cpu[cpu].nr_sd; level++)
			sys.cpu_sd[cpu][level].balance_interval_ms =
				sys.domain[sys.cpu_sd[cpu][level].domain].min_interval_ms;
	}
}

#define SYS_BALANCE(nr_cpus, ...)                                              \
	do {                                                                   \
		SYS_LEVELS(nr_cpus, __VA_ARGS__);                              \
		balance_setup();                                               \
	} while (0)

/* `nr` tasks on the CPU, of this load, utilisation and time of being runnable together. */
static inline void make_tasks(s32 cpu, u32 nr, u32 load, u32 util, u32 runnable)
{
	make_busy(cpu, load, util);
	sys.cpu[cpu].nr_running = sys.cpu[cpu].cfs_nr_running = nr;
	sys.cpu[cpu].avg.runnable_avg = runnable;
}

static inline void make_tasks_on(s32 first, s32 last, u32 nr, u32 load, u32 util, u32 runnable)
{
	s32 cpu;

	for (cpu = first; cpu <= last; cpu++)
		make_tasks(cpu, nr, load, util, runnable);
}

/* One attempt at the time 1 s; returns the source. */
static inline s32 find(s32 cpu, u32 level, enum cw_idle_type idle)
{
	balance_begin(&env, cpu, level, idle, 1000000000);
	return sched_balance_find_src(&sys, &env, &d);
}

static inline void check_imbalance(const char *file, int line, u32 type, s64 imbalance)
{
	check_eq(file, line, "migration type", env.migration_type, type);
	check_eq(file, line, "imbalance", env.imbalance, imbalance);
}

/* find() chose `cpu`, to move `amount` of LOAD, UTIL, TASK or MISFIT. */
#define EXPECT_PULL(cpu, type, amount)                                         \
	do {                                                                   \
		EXPECT(d, cpu, BALANCE_PULL);                                  \
		check_imbalance(__FILE__, __LINE__, CW_MIGRATE_##type, amount); \
	} while (0)

#define EXPECT_BALANCED() EXPECT(d, -1, BALANCE_BALANCED)

#endif /* CW_BALANCE_TEST_H */
