/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SCHED_CACHE in the balancer: LLCs 0-3 and 4-7 of a package, without SMT, so
 * that 75 % of 4096 is when an LLC counts as busy: 3072.
 */
#include "balance_test.h"

static struct cw_llc *here, *there;

/* CPU 4 runs `nr` tasks, of which `prefer` prefer LLC 0-3; the LLCs are used this much. */
static void setup(u32 nr, u32 prefer, u64 util_here, u64 util_there)
{
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	set_feature(CW_FEAT_SCHED_CACHE, true);
	make_tasks(4, nr, 1024, 400, 400);
	sys.cpu[4].nr_pref_dst_llc = prefer;
	here = &sys.llc[sys.cpu[0].llc];
	there = &sys.llc[sys.cpu[4].llc];
	here->util_avg = util_here;
	there->util_avg = util_there;
	here->capacity = there->capacity = 4096;
}

static enum cw_llc_mig migrate(u64 util, bool to_pref)
{
	return can_migrate_llc(&sys, 4, 0, util, to_pref);
}

static void test_can_migrate_llc(void)
{
	/* There is room. */
	setup(2, 1, 3071, 100);
	CHECK_EQ(migrate(0, true), CW_LLC_MIG_LLC);
	/* 1 more makes it busy, which is forbidden if it is 20 % busier than the other: 3072 * 100 > 2559 * 120. */
	CHECK_EQ(migrate(1, true), CW_LLC_MIG_FORBID);
	setup(2, 1, 3072, 2559);
	CHECK_EQ(migrate(0, true), CW_LLC_MIG_FORBID);
	setup(2, 1, 3072, 2560);
	CHECK_EQ(migrate(0, true), CW_LLC_MIG_LLC);
	/* Both busy: load decides. */
	setup(2, 1, 3072, 3072);
	CHECK_EQ(migrate(0, true), CW_LLC_MIG_UNRESTRICTED);
	CHECK_EQ(migrate(1, true), CW_LLC_MIG_LLC); /* 3071 there without the task */

	/* Away from the preferred LLC: only if that is busy, and busier by more than 20 %. */
	setup(2, 1, 2560, 3072);
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_FORBID);
	setup(2, 1, 2559, 3072);
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_LLC);
	CHECK_EQ(migrate(1, false), CW_LLC_MIG_FORBID);

	/* With SMT 50 % is busy. */
	sys.smt_present = 1;
	setup(2, 1, 0, 2048);
	sys.smt_present = 1;
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_LLC);
	setup(2, 1, 0, 2047);
	sys.smt_present = 1;
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_FORBID);
	/* An LLC of one CPU has no statistics. */
	there->domain = CW_NONE;
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_UNRESTRICTED);
}

/* Both thresholds follow their tunables. */
static void test_tunables(void)
{
	/* Busy from 40 % and half as much on, 2457.6, instead of from 3072 on. */
	setup(2, 1, 0, 2458);
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_FORBID);
	sys.tunable[CW_TUNE_llc_overaggr_pct] = 40;
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_LLC);
	there->util_avg = 2457;
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_FORBID);

	/* 3072 is busier than 2560 by 20 %, which is more than 19. */
	setup(2, 1, 2560, 3072);
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_FORBID);
	sys.tunable[CW_TUNE_llc_imb_pct] = 19;
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_LLC);
	here->util_avg = 2582; /* 2582 * 119 > 307200 */
	CHECK_EQ(migrate(0, false), CW_LLC_MIG_FORBID);
}

static void test_llc_balance(void)
{
	/* Two tasks on CPU 4: even a pair of LLCs in balance is unbalanced if one is on the wrong side. */
	setup(2, 0, 0, 400);
	make_tasks(1, 2, 1024, 400, 400);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
	setup(2, 1, 0, 400);
	make_tasks(1, 2, 1024, 400, 400);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_PULL(4, LLC_TASK, 1);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_llc_balance);

	/* The queue with the most that prefer it, not the one with the most. */
	make_tasks(5, 1, 1024, 400, 400);
	sys.cpu[5].nr_pref_dst_llc = 2;
	find(0, 1, CW_NOT_IDLE);
	EXPECT_PULL(5, LLC_TASK, 1);

	/* After cache_nice_tries + 1 failures load decides: 0 of 2 idle CPUs' difference. */
	sys.cpu_sd[0][1].nr_balance_failed = 1;
	find(0, 1, CW_NOT_IDLE);
	CHECK_EQ(env.migration_type, CW_MIGRATE_LLC_TASK);
	sys.cpu_sd[0][1].nr_balance_failed = 2;
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();

	/* No room. */
	setup(2, 1, 3072, 400);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_has_spare);

	/* Off. */
	setup(2, 1, 0, 400);
	make_tasks(1, 2, 1024, 400, 400);
	set_feature(CW_FEAT_SCHED_CACHE, false);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();

	/* Within the LLC preferences mean nothing. */
	setup(1, 1, 0, 400);
	find(5, 0, CW_NEWLY_IDLE);
	EXPECT_BALANCED();

	/* Overload is dealt with first. */
	setup(2, 1, 0, 400);
	make_tasks_on(4, 7, 3, 3072, 1024, 1024);
	find(0, 1, CW_NOT_IDLE);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_overloaded);
	CHECK_EQ(env.migration_type, CW_MIGRATE_UTIL);
}

/* A balance that is not newidle notes how busy each LLC is, after it has decided on it. */
static void test_record(void)
{
	setup(2, 1, 7, 8);
	make_tasks(1, 1, 1024, 300, 300);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(here->util_avg, 7);
	find(0, 0, CW_IDLE); /* not a domain of LLCs */
	CHECK_EQ(here->util_avg, 7);
	find(0, 1, CW_IDLE);
	CHECK_EQ(here->util_avg, 300);
	CHECK_EQ(there->util_avg, 400);
	CHECK_EQ(there->capacity, 4096);

	/* The local LLC's figure is new when the other's tasks are judged, theirs is old. */
	setup(2, 1, 0, 0);
	make_tasks_on(1, 3, 1, 1024, 1024, 1024);
	find(0, 1, CW_IDLE);
	CHECK_EQ(here->util_avg, 3072);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_has_spare); /* 3072 * 100 > 0 */
}

/* More groups: the one with the most tasks to fetch. */
static void test_pick(void)
{
	SYS_BALANCE(6, LEVEL_MC(2), LEVEL_PKG(6));
	set_feature(CW_FEAT_SCHED_CACHE, true);
	for (s32 cpu = 0; cpu < 6; cpu += 2)
		sys.llc[sys.cpu[cpu].llc].capacity = 2048;
	make_tasks_on(2, 5, 1, 1024, 200, 200);
	sys.cpu[2].nr_pref_dst_llc = 1;
	sys.cpu[4].nr_pref_dst_llc = sys.cpu[5].nr_pref_dst_llc = 1;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, LLC_TASK, 1);
	/* As many: the first. */
	sys.cpu[3].nr_pref_dst_llc = 1;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(2, LLC_TASK, 1);
}

/* A task of utilisation 100 on CPU 4, cache cold, whose process prefers the LLC of `cpu`. */
static struct cw_task prefers(s32 cpu)
{
	return (struct cw_task){
		.flags = CW_TASK_CACHE_CPU | CW_TASK_PREFERRED_LLC,
		.cache_cpu = cpu,
		.preferred_llc = sys.cpu[cpu].llc,
		.numa_preferred_nid = NUMA_NO_NODE,
		.avg = { .util_avg = 100 },
	};
}

/* May it go from CPU 4 to CPU 0 in a balance of this kind? */
static bool may_go(struct cw_task p, enum cw_idle_type idle, enum cw_migration_type type, u32 flags)
{
	struct cw_cpumask all = mask_range(0, 7);

	balance_begin(&env, 0, 1, idle, 1000000000);
	env.src_cpu = 4;
	env.migration_type = type;
	env.flags = flags;
	return can_migrate_task(&sys, &env, &p, &all, false);
}

static void test_tasks(void)
{
	struct cw_task stays, goes, neither;

	setup(2, 1, 0, 400);
	stays = prefers(4);
	goes = prefers(0);
	neither = (struct cw_task){ .numa_preferred_nid = NUMA_NO_NODE };

	/* For the LLC's sake only those that prefer it; to leave out others is a failure. */
	CHECK(may_go(goes, CW_IDLE, CW_MIGRATE_LLC_TASK, 0));
	CHECK(!may_go(stays, CW_IDLE, CW_MIGRATE_LLC_TASK, 0));
	CHECK(!may_go(neither, CW_IDLE, CW_MIGRATE_LLC_TASK, 0));
	CHECK(!(env.flags & LBF_LLC_PINNED));
	/* For load's sake all but those that prefer to stay, which is none. */
	CHECK(may_go(goes, CW_IDLE, CW_MIGRATE_TASK, 0));
	CHECK(may_go(neither, CW_IDLE, CW_MIGRATE_TASK, 0));
	CHECK(!may_go(stays, CW_IDLE, CW_MIGRATE_TASK, 0));
	CHECK(env.flags & LBF_LLC_PINNED);
	/* Its LLC is busy and busier: 3172 - 100 is not less than 3072. */
	there->util_avg = 3171;
	CHECK(!may_go(stays, CW_IDLE, CW_MIGRATE_TASK, 0));
	there->util_avg = 3172;
	CHECK(may_go(stays, CW_IDLE, CW_MIGRATE_TASK, 0));
	/* The other one would be busy, and busier: 2972 + 100. */
	setup(2, 1, 2972, 400);
	CHECK(!may_go(goes, CW_IDLE, CW_MIGRATE_TASK, 0));
	here->util_avg = 2971;
	CHECK(may_go(goes, CW_IDLE, CW_MIGRATE_TASK, 0));
	/* What is counted is what the process preferred when the task ran. */
	goes.cache_cpu = 4;
	CHECK(!may_go(goes, CW_IDLE, CW_MIGRATE_LLC_TASK, 0));
	goes.flags &= ~(u32)CW_TASK_CACHE_CPU;
	CHECK(may_go(goes, CW_IDLE, CW_MIGRATE_LLC_TASK, 0));

	/* After cache_nice_tries + 1 failures it does not count. */
	setup(2, 1, 0, 400);
	sys.cpu_sd[0][1].nr_balance_failed = 1;
	CHECK(!may_go(stays, CW_IDLE, CW_MIGRATE_TASK, 0));
	sys.cpu_sd[0][1].nr_balance_failed = 2;
	CHECK(may_go(stays, CW_IDLE, CW_MIGRATE_TASK, 0));
	/* Nor without the feature. */
	setup(2, 1, 0, 400);
	set_feature(CW_FEAT_SCHED_CACHE, false);
	CHECK(may_go(stays, CW_IDLE, CW_MIGRATE_TASK, 0));

	/* Active balance takes any task, or for the LLC's sake those that prefer it. */
	setup(2, 1, 0, 400);
	CHECK(may_go(stays, CW_IDLE, CW_MIGRATE_LOAD, LBF_ACTIVE_LB));
	CHECK(!may_go(stays, CW_IDLE, CW_MIGRATE_LOAD, LBF_ACTIVE_LB | LBF_ACTIVE_LB_LLC));
	goes = prefers(0);
	CHECK(may_go(goes, CW_IDLE, CW_MIGRATE_LOAD, LBF_ACTIVE_LB | LBF_ACTIVE_LB_LLC));

	/* A CPU that all prefer, if it is idle, as its LLC is. */
	setup(2, 1, 0, 400);
	sys.domain[sys.cpu_sd[0][1].domain].flags |= SD_ASYM_PACKING;
	CHECK(!may_go(stays, CW_NOT_IDLE, CW_MIGRATE_TASK, 0));
	CHECK(may_go(stays, CW_IDLE, CW_MIGRATE_TASK, 0));

	/* A little CPU is no good for a task of 100, whatever the task prefers. */
	setup(2, 1, 0, 400);
	sys.domain[sys.cpu_sd[0][1].domain].flags |= SD_ASYM_CPUCAPACITY;
	CHECK(may_go(goes, CW_IDLE, CW_MIGRATE_TASK, 0));
	sys.cpu[0].capacity_orig = sys.cpu[0].capacity = 64;
	CHECK(!may_go(goes, CW_IDLE, CW_MIGRATE_TASK, 0));
}

/* Is the running task of CPU 4 to be pushed to CPU 0 after this many failures? */
static bool active(u32 failed, enum cw_migration_type type, u32 flags)
{
	balance_begin(&env, 0, 1, CW_IDLE, 0);
	env.src_cpu = 4;
	env.migration_type = type;
	env.flags = flags;
	sys.cpu_sd[0][1].nr_balance_failed = failed;
	return balance_done(&sys, &env, 0, true);
}

static void test_active(void)
{
	setup(1, 0, 0, 400);
	CHECK(active(3, CW_MIGRATE_TASK, 0));
	CHECK_EQ(sys.cpu_sd[0][1].nr_balance_failed, 4);
	/* It was left there for the LLC's sake: no failure. */
	CHECK(!active(3, CW_MIGRATE_TASK, LBF_LLC_PINNED));
	CHECK_EQ(sys.cpu_sd[0][1].nr_balance_failed, 3);
	/* It prefers to stay, and is alone. */
	sys.cpu[4].nr_pref_llc_running = 1;
	CHECK(!active(3, CW_MIGRATE_TASK, 0));
	CHECK(active(3, CW_MIGRATE_MISFIT, 0));
	/* One of two does. */
	setup(2, 0, 0, 400);
	sys.cpu[4].nr_pref_llc_running = 1;
	CHECK(active(3, CW_MIGRATE_TASK, 0));
	/* Both: as long as their LLC is not busy. */
	sys.cpu[4].nr_pref_llc_running = 2;
	CHECK(!active(3, CW_MIGRATE_TASK, 0));
	there->util_avg = 3072;
	CHECK(active(3, CW_MIGRATE_TASK, 0));
	/* Without the feature nobody counts. */
	there->util_avg = 400;
	set_feature(CW_FEAT_SCHED_CACHE, false);
	CHECK(active(3, CW_MIGRATE_TASK, 0));
	/* For the LLC's sake at once. */
	setup(1, 1, 0, 400);
	CHECK(active(0, CW_MIGRATE_LLC_TASK, 0));
	CHECK(active_balance_begin(&sys, &env, 4, 0, true, 0));
	CHECK_EQ(env.flags, LBF_ACTIVE_LB | LBF_ACTIVE_LB_LLC);
}

int main(void)
{
	test_tasks();
	test_active();
	test_can_migrate_llc();
	test_tunables();
	test_llc_balance();
	test_record();
	test_pick();
	return test_report("balance_llc");
}
