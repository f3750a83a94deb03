/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a domain learns from an attempt: failures, intervals, active balance.
 * LLCs 0-3 and 4-7; CPU 0 balances the package, whose interval is 8 to 16 ms.
 */
#include "balance_test.h"

static struct cw_cpu_sd *sd;

/* CPU 4 has two tasks more than the others have. */
static void setup(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(4, 3, 3072, 1024, 1024);
	make_tasks(5, 1, 1024, 1024, 1024);
	sd = &sys.cpu_sd[0][1];
}

/* An attempt that finds CPU 4, but moves nothing although its tasks are not pinned. */
static bool fail(enum cw_idle_type idle, bool curr_allowed)
{
	CHECK_EQ(find(0, 1, idle), 4);
	env.flags &= ~(u32)LBF_ALL_PINNED;
	return balance_done(&sys, &env, 0, curr_allowed);
}

/* An attempt that finds CPU 4 and moves a task. */
static void succeed(enum cw_idle_type idle)
{
	CHECK_EQ(find(0, 1, idle), 4);
	env.flags &= ~(u32)LBF_ALL_PINNED;
	CHECK(!balance_done(&sys, &env, 1, true));
}

static void test_failures(void)
{
	setup();
	CHECK(!fail(CW_IDLE, true));
	CHECK_EQ(sd->nr_balance_failed, 1);
	CHECK_EQ(sd->last_balance, 1000000000);
	sd->last_balance = 7;
	fail(CW_NEWLY_IDLE, true); /* does not count, and is no periodic balance */
	CHECK_EQ(sd->nr_balance_failed, 1);
	CHECK_EQ(sd->last_balance, 7);

	succeed(CW_IDLE);
	CHECK_EQ(sd->nr_balance_failed, 0);

	/* CPU 0 is a source like any other. */
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(0, 3, 3072, 1024, 1024);
	make_tasks(1, 1, 1024, 1024, 1024);
	CHECK_EQ(find(4, 1, CW_IDLE), 0);
	env.flags &= ~(u32)LBF_ALL_PINNED;
	balance_done(&sys, &env, 0, true);
	CHECK_EQ(sys.cpu_sd[4][1].nr_balance_failed, 1);

	/* Balance, too, forgets the failures. */
	setup();
	sd->nr_balance_failed = 3;
	make_idle(4);
	CHECK_EQ(find(0, 1, CW_NEWLY_IDLE), -1);
	balance_done(&sys, &env, 0, true);
	CHECK_EQ(sd->nr_balance_failed, 0);
}

/* A task imbalance that persists for more than cache_nice_tries + 2 = 3 attempts. */
static void test_active_by_failures(void)
{
	setup();
	sd->nr_balance_failed = 2;
	CHECK(!fail(CW_IDLE, true)); /* the third */
	CHECK(fail(CW_IDLE, true)); /* the fourth */
	CHECK_EQ(sd->nr_balance_failed, 4);
	CHECK_EQ(sd->balance_interval_ms, 8);

	/* The running task may not come here: that is no failure of the interval. */
	CHECK(!fail(CW_IDLE, false));
	CHECK_EQ(sd->nr_balance_failed, 5);
	CHECK_EQ(sd->balance_interval_ms, 16);

	/* Only an imbalance in tasks counts, except before 5.12. */
	env.migration_type = CW_MIGRATE_LOAD;
	CHECK(!need_active_balance(&sys, &env));
	set_feature(CW_FEAT_LB_ACTIVE_TASK, false);
	CHECK(need_active_balance(&sys, &env));
	sd->nr_balance_failed = 3; /* cache_nice_tries + 2 */
	CHECK(!need_active_balance(&sys, &env));
}

static void test_active_by_type(void)
{
	setup();
	find(0, 1, CW_IDLE);
	env.migration_type = CW_MIGRATE_MISFIT;
	CHECK(need_active_balance(&sys, &env));
	env.flags &= ~(u32)LBF_ALL_PINNED;
	CHECK(balance_done(&sys, &env, 0, true));
	CHECK_EQ(sd->nr_balance_failed, 0); /* a misfit does not count */

	/* Capacity: 500 * 117 = 585 * 100; both are less than 1024 * 100. */
	setup();
	make_tasks(4, 1, 1024, 400, 400);
	sys.cpu[0].capacity = 585;
	sys.cpu[4].capacity = 499;
	balance_begin(&env, 0, 1, CW_IDLE, 0);
	env.src_cpu = 4;
	CHECK(need_active_balance(&sys, &env));
	sys.cpu[4].capacity = 500;
	CHECK(!need_active_balance(&sys, &env));
	sys.cpu[4].capacity = 499;
	env.idle = CW_NOT_IDLE;
	CHECK(!need_active_balance(&sys, &env));
	env.idle = CW_IDLE;
	sys.cpu[4].cfs_nr_running = 2;
	CHECK(!need_active_balance(&sys, &env));

	/* Preference. */
	setup();
	sys.domain[sd->domain].flags |= SD_ASYM_PACKING;
	balance_begin(&env, 0, 1, CW_NEWLY_IDLE, 0);
	env.src_cpu = 4;
	CHECK(need_active_balance(&sys, &env));
	balance_begin(&env, 4, 1, CW_NEWLY_IDLE, 0);
	env.src_cpu = 0;
	CHECK(!need_active_balance(&sys, &env));
}

static void test_active_balance(void)
{
	static struct cw_task p;
	static struct cw_cpumask mask;

	setup();
	mask = mask_range(0, 7);
	p.exec_start = 1000000000; /* it ran just now */
	CHECK(active_balance_begin(&sys, &env, 4, 0, false, 1000000000));
	CHECK_EQ(env.level, 1);
	sd->nr_balance_failed = 4;
	p.flags = CW_TASK_PERCPU_KTHREAD;
	CHECK(!active_balance_task(&sys, &env, &p, &mask));
	CHECK_EQ(sd->nr_balance_failed, 4);
	p.flags = 0;
	CHECK(active_balance_task(&sys, &env, &p, &mask));
	CHECK_EQ(sd->nr_balance_failed, 0);

	CHECK(active_balance_begin(&sys, &env, 3, 0, false, 1000000000));
	CHECK_EQ(env.level, 0); /* the lowest that has both */
	sys.cpu[0].nr_sd = 1;
	CHECK(!active_balance_begin(&sys, &env, 4, 0, false, 1000000000));
}

static void balanced(enum cw_idle_type idle)
{
	find(0, 1, idle);
	CHECK_EQ(env.src_cpu, -1);
	balance_done(&sys, &env, 0, true);
}

static void test_interval(void)
{
	setup();
	make_idle(4);
	make_idle(5);
	CHECK_EQ(sd->balance_interval_ms, 8);
	balanced(CW_NEWLY_IDLE);
	CHECK_EQ(sd->balance_interval_ms, 8);
	balanced(CW_IDLE);
	CHECK_EQ(sd->balance_interval_ms, 16);
	balanced(CW_IDLE);
	CHECK_EQ(sd->balance_interval_ms, 16); /* the highest */

	/* An imbalance resets it, whether or not something was moved, by newidle, too. */
	make_tasks(4, 3, 3072, 1024, 1024);
	make_tasks(5, 1, 1024, 1024, 1024);
	fail(CW_IDLE, true);
	CHECK_EQ(sd->balance_interval_ms, 8);
	sd->balance_interval_ms = 16;
	succeed(CW_NEWLY_IDLE);
	CHECK_EQ(sd->balance_interval_ms, 8);

	/* All pinned: up to 512, beyond the domain's highest. */
	for (u32 i = 0; i < 12; i++) {
		find(0, 1, CW_IDLE);
		sd->nr_balance_failed = 9;
		CHECK(!balance_done(&sys, &env, 0, true)); /* LBF_ALL_PINNED from the start */
		CHECK_EQ(sd->nr_balance_failed, 0);
	}
	CHECK_EQ(sd->balance_interval_ms, 512);
}

int main(void)
{
	test_failures();
	test_active_by_failures();
	test_active_by_type();
	test_active_balance();
	test_interval();
	return test_report("balance_outcome");
}
