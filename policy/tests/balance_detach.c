/* SPDX-License-Identifier: GPL-2.0-only */
/* Which tasks of the source go. Cores 0-1 and 2-3 are an LLC, whose domain CPU 0 balances. */
#include "balance_test.h"

#define NR_TASKS 40

static struct cw_task tasks[NR_TASKS];
static struct cw_cpumask masks[NR_TASKS];

/* CPU 2 has `nr` tasks of this load and utilisation, cold, that may run anywhere. */
static void setup(u32 nr, u32 load, u32 util)
{
	SYS_BALANCE(4, LEVEL_SMT(2), LEVEL_MC(4));
	make_tasks(2, nr, load * nr, util * nr, util * nr);
	for (u32 i = 0; i < NR_TASKS; i++) {
		tasks[i] = (struct cw_task){ .pid = (s32)i, .weight = 1024, .nr_cpus_allowed = 4 };
		tasks[i].avg.load_avg = load;
		tasks[i].avg.util_avg = util;
		masks[i] = mask_range(0, 3);
	}
}

/* An attempt at 1 s that wants `amount` from CPU 2 to CPU 0. */
static void start(enum cw_idle_type idle, enum cw_migration_type type, s64 amount)
{
	u32 nr = sys.cpu[2].nr_running;

	balance_begin(&env, 0, 1, idle, 1000000000);
	env.src_cpu = 2;
	env.flags = LBF_ALL_PINNED | (nr > 1 ? LBF_SRC_HAS_WAITING : 0);
	env.migration_type = type;
	env.imbalance = amount;
	env.loop_max = nr < 32 ? nr : 32;
}

/* Offer task `i`; the running one is `running`. */
static enum cw_detach offer(u32 i, u32 running)
{
	enum cw_detach step = detach_task_step(&sys, &env, &tasks[i], &masks[i], i == running);

	if (step == CW_DETACH_TAKE) {
		sys.cpu[2].nr_running--;
		sys.cpu[2].cfs_nr_running--;
	}
	return step;
}

/* Offer `nr` tasks, of which the last runs. Returns how many were taken. */
static u32 offer_all(u32 nr)
{
	for (u32 i = 0; i < nr; i++)
		if (offer(i, nr - 1) == CW_DETACH_STOP)
			break;
	return env.detached;
}

static void test_task_hot(void)
{
	const u64 now = 1000000000, cost = 500000;

	setup(2, 100, 100);
	start(CW_IDLE, CW_MIGRATE_TASK, 1);
	tasks[0].exec_start = now - cost;
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	tasks[0].exec_start = now - cost + 1;
	CHECK(task_hot(&sys, &env, &tasks[0]));
	tasks[0].exec_start = now;
	CHECK(task_hot(&sys, &env, &tasks[0]));

	tasks[0].flags = CW_TASK_SCHED_IDLE;
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	tasks[0].flags = 0;
	env.level = 0; /* SMT siblings share the cache */
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	env.level = 1;
	sys.tunable[CW_TUNE_migration_cost_ns] = 0;
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	tasks[0].exec_start = now + 5;
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	/* A buddy is hot if the destination has work. */
	tasks[0].flags = CW_TASK_BUDDY;
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	sys.cpu[0].nr_running = 1;
	CHECK(task_hot(&sys, &env, &tasks[0]));
	set_feature(CW_FEAT_CACHE_HOT_BUDDY, false);
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	set_feature(CW_FEAT_CACHE_HOT_BUDDY, true);
	tasks[0].flags = 0;
	CHECK(!task_hot(&sys, &env, &tasks[0]));
	sys.cpu[0].nr_running = 0;

	/* Hot tasks go after more than cache_nice_tries = 1 failures. */
	sys.tunable[CW_TUNE_migration_cost_ns] = (s64)cost;
	tasks[0].exec_start = now;
	CHECK(!can_migrate_task(&sys, &env, &tasks[0], &masks[0], false));
	sys.cpu_sd[0][1].nr_balance_failed = 1;
	CHECK(!can_migrate_task(&sys, &env, &tasks[0], &masks[0], false));
	sys.cpu_sd[0][1].nr_balance_failed = 2;
	CHECK(can_migrate_task(&sys, &env, &tasks[0], &masks[0], false));
	sys.cpu_sd[0][1].nr_balance_failed = 0;
	env.flags = LBF_ACTIVE_LB;
	CHECK(can_migrate_task(&sys, &env, &tasks[0], &masks[0], false));
}

static void test_can_migrate(void)
{
	setup(3, 100, 100);
	start(CW_IDLE, CW_MIGRATE_TASK, 1);
	tasks[0].flags = CW_TASK_PERCPU_KTHREAD;
	CHECK_EQ(offer(0, 9), CW_DETACH_SKIP);
	CHECK(env.flags & LBF_ALL_PINNED);
	CHECK(!(env.flags & LBF_SOME_PINNED));

	CHECK_EQ(offer(1, 1), CW_DETACH_SKIP); /* running */
	CHECK(!(env.flags & LBF_ALL_PINNED));
	CHECK_EQ(offer(2, 1), CW_DETACH_TAKE);
	CHECK_EQ(offer(0, 1), CW_DETACH_STOP); /* done */
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_DONE);
	CHECK_EQ(sys.group[sys.cpu_sd[0][1].local_group].imbalance, 0);
}

/* The amount of each type runs down to 0. */
static void test_amounts(void)
{
	/* 250 of load: 100, 100, and 100 is more than the 50 that are left. */
	setup(6, 100, 40);
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 250);
	CHECK_EQ(offer_all(6), 2);
	CHECK_EQ(env.imbalance, 50);
	/* Half as heavy after a failure: 100 >> 1 <= 50, and then the amount is negative. */
	setup(6, 100, 40);
	sys.cpu_sd[0][1].nr_balance_failed = 1;
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 250);
	CHECK_EQ(offer_all(6), 3);
	CHECK_EQ(env.imbalance, -50);
	/* As heavy as the amount. */
	setup(6, 250, 40);
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 250);
	CHECK_EQ(offer_all(6), 1);
	/* Without any load a task counts 1. */
	setup(6, 0, 0);
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 2);
	CHECK_EQ(offer_all(6), 2);
	/* However many failures there were. */
	setup(6, 1000, 0);
	sys.cpu_sd[0][1].nr_balance_failed = 4000000000u;
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 1);
	CHECK_EQ(offer_all(6), 1);

	/* Utilisation: the estimate if that is larger. */
	setup(6, 100, 40);
	start(CW_NOT_IDLE, CW_MIGRATE_UTIL, 99);
	CHECK_EQ(offer_all(6), 2);
	CHECK_EQ(env.imbalance, 19);
	setup(6, 100, 40);
	tasks[0].avg.util_est = 100 | UTIL_AVG_UNCHANGED;
	start(CW_NOT_IDLE, CW_MIGRATE_UTIL, 99);
	CHECK_EQ(offer(0, 5), CW_DETACH_SKIP);
	CHECK_EQ(offer(1, 5), CW_DETACH_TAKE);
	/* Half as much after a failure, since 6.8. */
	setup(6, 100, 40);
	sys.cpu_sd[0][1].nr_balance_failed = 1;
	start(CW_NOT_IDLE, CW_MIGRATE_UTIL, 39);
	CHECK_EQ(offer_all(6), 1);
	start(CW_NOT_IDLE, CW_MIGRATE_UTIL, 39);
	set_feature(CW_FEAT_LB_UTIL_RELAX, false);
	CHECK_EQ(offer_all(6), 0);
	start(CW_NOT_IDLE, CW_MIGRATE_UTIL, 40);
	CHECK_EQ(offer_all(6), 1);

	setup(6, 100, 40);
	start(CW_NOT_IDLE, CW_MIGRATE_TASK, 4);
	CHECK_EQ(offer_all(6), 4);

	/* Misfit: 820 * 1280 > 1024 * 1024 does not fit, 819 does. One is enough. */
	setup(6, 100, 820);
	tasks[0].avg.util_avg = 819;
	start(CW_NOT_IDLE, CW_MIGRATE_MISFIT, 1);
	CHECK_EQ(offer(0, 5), CW_DETACH_SKIP);
	CHECK_EQ(offer(1, 5), CW_DETACH_TAKE);
	CHECK_EQ(offer(2, 5), CW_DETACH_STOP);
}

static void test_limits(void)
{
	/* Newidle takes one task. */
	setup(6, 100, 40);
	start(CW_NEWLY_IDLE, CW_MIGRATE_TASK, 4);
	CHECK_EQ(offer_all(6), 1);
	CHECK_EQ(env.imbalance, 3);

	/* An idle CPU leaves the source one, a busy one does not. */
	setup(3, 100, 40);
	start(CW_IDLE, CW_MIGRATE_TASK, 9);
	CHECK_EQ(offer(0, 9), CW_DETACH_TAKE);
	CHECK_EQ(offer(1, 9), CW_DETACH_TAKE);
	CHECK_EQ(offer(2, 9), CW_DETACH_STOP);
	setup(3, 100, 40);
	start(CW_NOT_IDLE, CW_MIGRATE_TASK, 9);
	CHECK_EQ(offer(0, 9), CW_DETACH_TAKE);
	CHECK_EQ(offer(1, 9), CW_DETACH_TAKE);
	CHECK_EQ(offer(2, 9), CW_DETACH_TAKE);

	/* No more than loop_max are looked at. */
	setup(NR_TASKS, 100, 10);
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 50);
	CHECK_EQ(env.loop_max, 32);
	for (u32 i = 0; i < 32; i++)
		CHECK_EQ(offer(i, NR_TASKS), CW_DETACH_SKIP);
	CHECK_EQ(offer(32, NR_TASKS), CW_DETACH_STOP);

	/* With a higher limit the lock is dropped after 32; that counts as a look. */
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 50);
	env.loop_max = 34;
	for (u32 i = 0; i < 32; i++)
		CHECK_EQ(offer(i, NR_TASKS), CW_DETACH_SKIP);
	CHECK_EQ(offer(32, NR_TASKS), CW_DETACH_BREAK);
	CHECK_EQ(offer(32, NR_TASKS), CW_DETACH_SKIP);
	CHECK_EQ(offer(33, NR_TASKS), CW_DETACH_STOP);

	/* While the lock is dropped the source may be emptied. */
	start(CW_NOT_IDLE, CW_MIGRATE_LOAD, 50);
	env.loop_max = 34;
	for (u32 i = 0; i < 32; i++)
		offer(i, NR_TASKS);
	CHECK_EQ(offer(32, NR_TASKS), CW_DETACH_BREAK);
	env.flags |= LBF_ALL_PINNED;
	sys.cpu[2].nr_running = 1;
	CHECK_EQ(offer(32, NR_TASKS), CW_DETACH_STOP);
	CHECK(!(env.flags & LBF_ALL_PINNED));

	/* The tunable is what limits. */
	setup(6, 1024, 1024);
	make_tasks(3, 1, 1024, 1024, 1024);
	sys.tunable[CW_TUNE_nr_migrate] = 3;
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 2);
	CHECK_EQ(env.loop_max, 3);

	/* A source with one task is not looked at. */
	setup(1, 100, 40);
	start(CW_NOT_IDLE, CW_MIGRATE_TASK, 1);
	CHECK_EQ(offer(0, 9), CW_DETACH_STOP);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_DONE);
	CHECK_EQ(env.nr_excluded, 0);
}

/* A task that may not run on CPU 0 but on CPU 1, of the same group. */
static void test_other_destination(void)
{
	setup(3, 100, 40);
	masks[0] = mask_range(1, 1);
	start(CW_IDLE, CW_MIGRATE_TASK, 2);
	CHECK_EQ(offer(0, 2), CW_DETACH_SKIP);
	CHECK(env.flags & LBF_SOME_PINNED);
	CHECK(env.flags & LBF_DST_PINNED);
	CHECK_EQ(offer(1, 2), CW_DETACH_TAKE);
	CHECK_EQ(env.imbalance, 1);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_MORE);
	CHECK_EQ(env.dst_cpu, 1);
	CHECK_EQ(env.loop, 0);
	CHECK_EQ(offer(0, 2), CW_DETACH_TAKE);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_DONE);

	/* Enough was moved without it, and the parent need not know. */
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(2, 3, 3072, 1024, 1024);
	masks[0] = mask_range(1, 1);
	balance_begin(&env, 0, 0, CW_IDLE, 1000000000);
	env.src_cpu = 2;
	env.flags = LBF_ALL_PINNED | LBF_SRC_HAS_WAITING | LBF_DST_PINNED;
	env.imbalance = 1;
	env.migration_type = CW_MIGRATE_TASK;
	env.loop_max = 3;
	CHECK_EQ(offer(0, 2), CW_DETACH_SKIP);
	CHECK_EQ(offer(1, 2), CW_DETACH_TAKE);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_DONE);
	CHECK_EQ(sys.group[sys.cpu_sd[0][1].local_group].imbalance, 0);
	/* Nor where all that was left could move. */
	make_tasks(2, 3, 3072, 1024, 1024);
	start(CW_IDLE, CW_MIGRATE_TASK, 9);
	env.level = 0;
	CHECK_EQ(offer(1, 2), CW_DETACH_TAKE);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_DONE);
	CHECK_EQ(sys.group[sys.cpu_sd[0][1].local_group].imbalance, 0);

	/* CPU 0 is not tried a second time. */
	setup(3, 100, 40);
	masks[0] = mask_range(1, 1);
	masks[1] = mask_range(0, 0);
	start(CW_IDLE, CW_MIGRATE_TASK, 2);
	offer(0, 2);
	balance_next_step(&sys, &env);
	CHECK_EQ(offer(1, 2), CW_DETACH_SKIP);
	CHECK(!(env.flags & LBF_DST_PINNED));

	/* Newidle does not help others. */
	start(CW_NEWLY_IDLE, CW_MIGRATE_TASK, 2);
	CHECK_EQ(offer(0, 2), CW_DETACH_SKIP);
	CHECK(!(env.flags & LBF_DST_PINNED));
	CHECK(env.flags & LBF_SOME_PINNED);
}

/* All tasks of CPU 2 are pinned there: the attempt goes on with CPU 3, and ends with it. */
static void test_all_pinned(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(2, 3, 3072, 1024, 3072);
	make_tasks(3, 2, 2048, 1024, 2048);
	make_tasks(1, 1, 1024, 1024, 1024);
	masks[0] = mask_range(2, 3);
	CHECK_EQ(find(0, 0, CW_NEWLY_IDLE), 2);
	CHECK_EQ(detach_task_step(&sys, &env, &tasks[0], &masks[0], false), CW_DETACH_SKIP);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_REDO);
	CHECK_EQ(sys.group[sys.cpu_sd[0][1].local_group].imbalance, 1); /* the parent is told */
	CHECK_EQ(sched_balance_find_src(&sys, &env, &d), 3);
	CHECK_EQ(detach_task_step(&sys, &env, &tasks[0], &masks[0], false), CW_DETACH_SKIP);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_REDO);
	/* CPU 1 has nothing to wait for: balanced, but the flag stays. */
	CHECK_EQ(sched_balance_find_src(&sys, &env, &d), -1);
	EXPECT_BALANCED();
	CHECK_EQ(balance_done(&sys, &env, 0, true), 0);
	CHECK_EQ(sys.group[sys.cpu_sd[0][1].local_group].imbalance, 1);

	/* No other source is left: the attempt ends, and waits longer for the next. */
	setup(3, 100, 40);
	make_tasks(1, 3, 3072, 1024, 1024);
	masks[0] = mask_range(1, 1);
	CHECK_EQ(find(0, 0, CW_IDLE), 1);
	CHECK_EQ(detach_task_step(&sys, &env, &tasks[0], &masks[0], false), CW_DETACH_SKIP);
	CHECK_EQ(balance_next_step(&sys, &env), CW_BALANCE_DONE);
	CHECK_EQ(sys.cpu_sd[0][0].balance_interval_ms, 2);
	balance_done(&sys, &env, 0, true);
	CHECK_EQ(sys.cpu_sd[0][0].balance_interval_ms, 4);
}

/* The parent's flag goes with the next attempt that finds balance without pinned tasks. */
static void test_flag_cleared(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	sys.group[sys.cpu_sd[0][1].local_group].imbalance = 1;
	CHECK_EQ(find(0, 0, CW_NEWLY_IDLE), -1);
	balance_done(&sys, &env, 0, true);
	CHECK_EQ(sys.group[sys.cpu_sd[0][1].local_group].imbalance, 0);
}

int main(void)
{
	test_task_hot();
	test_can_migrate();
	test_amounts();
	test_limits();
	test_other_destination();
	test_all_pinned();
	test_flag_cleared();
	return test_report("balance_detach");
}
