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

int main(void)
{
	test_can_migrate_llc();
	test_llc_balance();
	test_record();
	test_pick();
	return test_report("balance_llc");
}
