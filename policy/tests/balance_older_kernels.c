/* SPDX-License-Identifier: GPL-2.0-only */
/* States on which kernels before 6.12 balance otherwise, each with the rule on and off. */
#include "balance_test.h"

static void set_capacity(s32 first, s32 last, u32 capacity)
{
	for (s32 cpu = first; cpu <= last; cpu++)
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = capacity;
	for (u32 i = 0; i < CW_MAX_GROUPS && sys.group[i].weight; i++) {
		struct cw_group *group = &sys.group[i];

		if (cpumask_first(&sys, &group->span) < first ||
		    cpumask_first(&sys, &group->span) > last)
			continue;
		group->capacity = capacity * group->weight;
		group->min_capacity = group->max_capacity = capacity;
	}
}

/* Three clusters of two: big 0-1, middle 2-3 and 4-5. */
static void three_clusters(void)
{
	SYS_BALANCE(6, LEVEL_MC(2), LEVEL_ASYM(6));
	set_capacity(2, 5, 700);
}

/* The busiest CPU of the group of `cpu` in its second domain, for CPU 2. */
static s32 queue_near(s32 cpu, enum cw_migration_type type, s64 imbalance)
{
	balance_begin(&env, 2, 1, CW_NEWLY_IDLE, 1000000000);
	env.migration_type = type;
	env.imbalance = imbalance;
	return sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[cpu][1].local_group, &d);
}

static void test_smt_balance(void)
{
	/* Both threads of core 2-3 run; CPU 0 has a busy sibling, and a group that is not a core. */
	SYS_BALANCE(8, LEVEL_SMT(2), LEVEL_MC(8));
	make_tasks_on(1, 3, 1, 1024, 512, 512);
	sys.group[sys.cpu_sd[0][1].local_group].flags = 0;
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_smt_balance);
	EXPECT_PULL(2, TASK, 1);
	set_feature(CW_FEAT_LB_SMT_BALANCE, false);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_has_spare);
	EXPECT_BALANCED(); /* 1 idle CPU against none */

	/* Core 4-5 runs one task, core 6-7 too, which is no core to the balancer. */
	SYS_BALANCE(8, LEVEL_SMT(2), LEVEL_MC(8));
	make_tasks(4, 1, 1024, 512, 512);
	make_tasks(7, 1, 1024, 512, 512);
	sys.group[sys.cpu_sd[4][1].local_group].flags = 0;
	sys.cpu[6].nr_running = 1; /* of another class */
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[4][1].local_group);
	set_feature(CW_FEAT_LB_SMT_BALANCE, false);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[6][1].local_group);

	/* All CPUs are busy, two tasks more there: busy CPUs spread, too. */
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	make_tasks_on(0, 7, 1, 1024, 200, 200);
	make_tasks_on(4, 5, 2, 1024, 200, 200);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
	set_feature(CW_FEAT_LB_SMT_BALANCE, false);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_PULL(4, TASK, 1);

	/* Cores do not count: 2 of them here, 4 there, where 3 tasks are the fewer for each. */
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	sys.group[sys.cpu_sd[0][1].local_group].cores = 2;
	make_tasks_on(0, 0, 1, 1024, 200, 200);
	make_tasks_on(5, 7, 1, 1024, 200, 200);
	find(1, 1, CW_NEWLY_IDLE);
	CHECK_EQ(sibling_imbalance(&sys, &env), 1); /* (2 * (2 * 3 - 4 * 1) + 6) / 6 */
	set_feature(CW_FEAT_LB_SMT_BALANCE, false);
	CHECK_EQ(sibling_imbalance(&sys, &env), 2);
}

static void test_busiest_sibling(void)
{
	/* Three tasks on CPU 4: their group wants them spread, the domain below CPU 0's does not. */
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	sys.group[sys.cpu_sd[4][1].local_group].flags |= SD_PREFER_SIBLING;
	make_tasks(4, 3, 1024, 300, 300);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);
	set_feature(CW_FEAT_LB_BUSIEST_SIBLING, false);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED(); /* 4 idle CPUs against 3 */
	sys.domain[sys.cpu_sd[0][0].domain].flags |= SD_PREFER_SIBLING;
	sys.group[sys.cpu_sd[4][1].local_group].flags = 0;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);
	/* At the lowest level there is none below. */
	find(5, 0, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.prefer_sibling, 0);

	/* Two LLCs are fully busy. */
	SYS_BALANCE(12, LEVEL_MC(4), LEVEL_PKG(12));
	make_tasks_on(4, 11, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(8, TASK, 2);
	set_feature(CW_FEAT_LB_BUSIEST_SIBLING, false);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 2);
}

static void test_util_boost(void)
{
	/* CPU 5 is used more, the tasks of CPU 6 wait longer. */
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(5, 3, 3072, 600, 600);
	make_tasks(6, 3, 3072, 500, 700);
	CHECK_EQ(queue_near(4, CW_MIGRATE_UTIL, 100), 6);
	set_feature(CW_FEAT_LB_UTIL_BOOST, false);
	CHECK_EQ(queue_near(4, CW_MIGRATE_UTIL, 100), 5);
}

static void test_misfit_tie(void)
{
	three_clusters();
	make_tasks(2, 1, 1024, 700, 700);
	make_tasks(4, 1, 1024, 700, 700);
	sys.cpu[2].misfit_task_load = sys.cpu[4].misfit_task_load = 900;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(2, MISFIT, 1);
	set_feature(CW_FEAT_LB_MISFIT_FIRST, false);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, MISFIT, 1);
	sys.cpu[2].misfit_task_load = 901;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(2, MISFIT, 1);
}

static void test_capacity_margin(void)
{
	/* A misfit on CPU 4: 700 * 1280 = 896000 = 875 * 1024. */
	three_clusters();
	set_capacity(0, 1, 875);
	make_tasks(4, 1, 1024, 700, 700);
	sys.cpu[4].misfit_task_load = 900;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, MISFIT, 1);
	set_feature(CW_FEAT_LB_CAPACITY_GREATER, false);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	set_capacity(0, 1, 876);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, MISFIT, 1);
	/* The group is asked, whatever has become of the CPU. */
	sys.cpu[0].capacity = 500;
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[4][1].local_group);
	CHECK_EQ(d.cpu, -1); /* but not of a CPU that has more by now */
	set_feature(CW_FEAT_LB_CAPACITY_GREATER, true);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, CW_NONE);

	/* A big group that has room: is it out of the question for a middle CPU? */
	three_clusters();
	make_tasks(0, 2, 2048, 100, 100);
	set_capacity(0, 1, 875);
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, CW_NONE);
	set_feature(CW_FEAT_LB_CAPACITY_GREATER, false);
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[0][1].local_group);
	set_capacity(0, 1, 876);
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, CW_NONE);

	/* The one task of a CPU that is as big, or by a little bigger. */
	three_clusters();
	make_tasks(4, 1, 1024, 500, 500);
	CHECK_EQ(queue_near(4, CW_MIGRATE_TASK, 1), -1);
	set_feature(CW_FEAT_LB_CAPACITY_GREATER, false);
	CHECK_EQ(queue_near(4, CW_MIGRATE_TASK, 1), 4);
	sys.cpu[4].capacity = 701;
	CHECK_EQ(queue_near(4, CW_MIGRATE_TASK, 1), -1);
}

static void test_empty_queue(void)
{
	/* What slept on CPU 5 was more load than waits on CPU 6. */
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(6, 2, 2048, 1000, 1000);
	sys.cpu[5].avg.load_avg = 3000;
	CHECK_EQ(queue_near(4, CW_MIGRATE_LOAD, 1000), 6);
	set_feature(CW_FEAT_LB_SKIP_EMPTY, false);
	CHECK_EQ(queue_near(4, CW_MIGRATE_LOAD, 1000), 5);
	CHECK_EQ(queue_near(4, CW_MIGRATE_TASK, 1), 6);
	sys.cpu[6].nr_running = sys.cpu[6].cfs_nr_running = 0;
	CHECK_EQ(queue_near(4, CW_MIGRATE_TASK, 1), -1);
}

static void test_reduced_capacity(void)
{
	/* CPU 4 has lost half of its capacity to other classes: 500 * 117 < 1024 * 100. */
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(4, 1, 700, 500, 500);
	sys.cpu[4].capacity = 500;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, LOAD, 700);
	set_feature(CW_FEAT_LB_REDUCED_CAPACITY, false);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* Misfits are older. */
	three_clusters();
	set_feature(CW_FEAT_LB_REDUCED_CAPACITY, false);
	make_tasks(4, 1, 1024, 700, 700);
	sys.cpu[4].misfit_task_load = 900;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, MISFIT, 1);
}

static void test_idle_core_balances(void)
{
	/* CPU 0 is idle and CPU 1, its sibling, is not; core 2-3 is idle. */
	SYS_BALANCE(8, LEVEL_SMT(2), LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks(1, 1, 1024, 500, 500);
	find(0, 2, CW_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);
	set_feature(CW_FEAT_LB_IDLE_CORE, false);
	find(0, 2, CW_IDLE);
	EXPECT_BALANCED();
	find(2, 2, CW_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);
}

/* Nodes 0-3 and 4-7. */
static void test_imb_numa_nr(void)
{
	struct cw_domain *sd;

	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_NUMA(8));
	sd = &sys.domain[sys.cpu_sd[0][1].domain];
	/* Idle CPUs: 4 here, 2 there; that node runs two tasks, or four. */
	make_tasks_on(4, 5, 1, 1024, 300, 300);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);
	set_feature(CW_FEAT_IMB_NUMA_NR, false);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	make_tasks_on(4, 5, 2, 2048, 300, 300);
	sd->imb_numa_nr = 2;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);
	set_feature(CW_FEAT_IMB_NUMA_NR, true);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* Within a node they are moved either way. */
	sd->flags &= ~(u32)SD_NUMA;
	make_tasks_on(4, 5, 1, 1024, 300, 300);
	set_feature(CW_FEAT_IMB_NUMA_NR, false);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);
}

/* Nodes of 32 CPUs: two tasks more stay while a node runs fewer than eight, the pulled one included. */
static void test_imb_numa_quarter(void)
{
	SYS_BALANCE(64, LEVEL_MC(32), LEVEL_NUMA(64));
	set_feature(CW_FEAT_IMB_NUMA_NR, false);
	make_tasks_on(32, 35, 1, 1024, 300, 300);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(32, TASK, 2);
	set_feature(CW_FEAT_IMB_NUMA_QUARTER, true);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* three are moved at once */
	make_tasks_on(36, 37, 1, 1024, 300, 300);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(32, TASK, 3);
	/* a quarter of the node is used */
	make_tasks_on(1, 7, 1, 1024, 300, 300);
	make_tasks_on(38, 42, 1, 1024, 300, 300);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(32, TASK, 2);
	make_idle(7);
	make_idle(42);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* within a node they are moved */
	sys.domain[sys.cpu_sd[0][1].domain].flags &= ~(u32)SD_NUMA;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(32, TASK, 2);
	set_feature(CW_FEAT_IMB_NUMA_QUARTER, false);
}

int main(void)
{
	test_smt_balance();
	test_busiest_sibling();
	test_util_boost();
	test_misfit_tie();
	test_capacity_margin();
	test_empty_queue();
	test_reduced_capacity();
	test_idle_core_balances();
	test_imb_numa_nr();
	test_imb_numa_quarter();
	return test_report("balance_older_kernels");
}
