/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPU to pull from, and how much: one state for each pair of group types.
 *
 * Unless a test says otherwise there are two LLCs of 4 CPUs, 0-3 and 4-7, below
 * a package; CPU 0 or its group balances the package (imbalance_pct 117), whose
 * groups have a capacity of 4096 each.
 */
#include "balance_test.h"

static void two_llcs(void)
{
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
}

/* Two LLCs that do not spread tasks: each fills up before the other is used. */
static void two_llcs_apart(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
}

/* 8 tasks: util 4096 * 117 > 4096 * 100: overloaded. CPU 6 is the busiest. */
static void overload_other(void)
{
	make_tasks_on(4, 7, 2, 2048, 1024, 1024);
	make_tasks_on(4, 5, 2, 2048, 1000, 1000);
	make_tasks(7, 2, 2048, 1000, 1000);
}

static void test_spare_overloaded(void)
{
	two_llcs();
	overload_other();
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(6, UTIL, 4096); /* all that the idle group has room for */
	CHECK_EQ(d.groups_scanned, 2);
	CHECK_EQ(d.cpus_scanned, 8 + 4); /* statistics, then the runqueues of one group */
	CHECK_EQ(d.event, CW_BALANCE_NEWIDLE);
	CHECK_EQ(env.loop_max, 2);

	/* CPUs 1-3 run, CPU 0 has run until now: 4 * 1024 used, no room, but a task waits. */
	make_tasks_on(0, 3, 1, 1024, 1024, 1024);
	sys.cpu[0].nr_running = sys.cpu[0].cfs_nr_running = 0;
	sys.cpu[0].curr_is_idle = 1;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1); /* by number of tasks all are equal */

	/* Half an LLC's worth of room. */
	make_tasks_on(0, 3, 1, 512, 512, 512);
	make_idle(0);
	sys.cpu[0].avg.util_avg = 512;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(6, UTIL, 2048);
}

/* Below a common cache tasks are counted instead: CPUs 0-1 and 2-3 are clusters of an LLC. */
static void test_spare_overloaded_in_llc(void)
{
	SYS_BALANCE(4, { 2, LEVEL_FLAGS | SD_CLUSTER | SD_SHARE_LLC | SD_PREFER_SIBLING }, LEVEL_MC(4));
	make_tasks(2, 3, 3072, 1024, 1024);
	make_tasks(3, 2, 2048, 1024, 1024);
	find(0, 1, CW_IDLE);
	EXPECT_PULL(2, TASK, 2); /* (5 - 0) / 2 */
}

static void test_spare_fully_busy(void)
{
	two_llcs();
	make_tasks_on(4, 7, 1, 1024, 1024, 1024); /* 4 tasks on 4 CPUs, no capacity left */
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 2); /* (4 - 0) / 2, spread over the LLCs */
	CHECK_EQ(env.flags & LBF_SRC_HAS_WAITING, 0);

	two_llcs_apart();
	make_tasks_on(4, 7, 1, 1024, 1024, 1024);
	make_tasks(1, 1, 100, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1); /* (3 - 0) / 2 idle CPUs */
}

static void test_spare_spare(void)
{
	two_llcs();
	make_tasks_on(4, 6, 1, 100, 100, 100);
	make_tasks(1, 1, 100, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1); /* (3 - 1) / 2 */

	/* One task less: the difference of 1 is no imbalance, and CPUs 3 <= 2 + 1 are idle. */
	make_idle(6);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	CHECK_EQ(env.imbalance, 0);

	/* Nothing runs anywhere. */
	two_llcs();
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();

	/* One task: pulling it would only move the imbalance. */
	two_llcs_apart();
	make_tasks(4, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* Two on one CPU, although the other LLC has as many idle CPUs less one. */
	make_tasks(4, 2, 2048, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED(); /* 4 idle <= 3 idle + 1 */
	make_tasks(5, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1); /* 4 idle against 2 */
}

/* Groups of one CPU: no idle CPU needs to stay idle. */
static void test_single_cpus(void)
{
	two_llcs();
	make_tasks(1, 2, 2048, 500, 500);
	find(0, 0, CW_NEWLY_IDLE);
	EXPECT_PULL(1, TASK, 1);
	make_tasks(1, 1, 1024, 500, 500);
	find(0, 0, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
}

/* A busy CPU leaves it to an idle one, unless the other group is overloaded. */
static void test_not_idle(void)
{
	two_llcs();
	make_tasks_on(0, 7, 1, 1024, 1024, 1024);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED(); /* fully busy, both */
	make_tasks_on(0, 3, 1, 100, 100, 100);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED(); /* has spare, fully busy */
	overload_other();
	find(0, 1, CW_NOT_IDLE);
	EXPECT_PULL(6, UTIL, 4096 - 400);
	CHECK_EQ(d.event, CW_BALANCE_BUSY);

	/* Nor does it fill the idle CPUs of a group that runs less. */
	two_llcs_apart();
	make_tasks_on(0, 3, 1, 100, 100, 100);
	make_tasks(4, 2, 100, 100, 100);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
}

/*
 * Average loads: 4 * 1024 * 1024 / 4096 = 1024 here, 2048 there, and
 * (4096 + 8192) * 1024 / 8192 = 1536 of all. Either group is 512 off, which is
 * 512 * 4096 / 1024 = 2048 of load.
 */
static void test_fully_busy_overloaded(void)
{
	two_llcs();
	make_tasks_on(0, 3, 1, 1024, 1024, 1024);
	make_tasks_on(4, 7, 2, 2000, 1024, 2048);
	make_tasks(5, 2, 2192, 1024, 2048);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_PULL(5, LOAD, 2048);

	/* Here the loads are 2048, too: no more than there. */
	make_tasks_on(0, 3, 1, 2048, 1024, 1024);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
}

static void test_overloaded_overloaded(void)
{
	two_llcs();
	make_tasks_on(4, 7, 2, 2048, 1024, 2048);

	/* 100 * 2048 <= 117 * 1751: no more than imbalance_pct. */
	make_tasks_on(0, 3, 2, 1751, 1024, 2048);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();

	/* 204800 > 117 * 1750; of all (7000 + 8192) / 8 = 1899: 149 * 4096 / 1024 = 596. */
	make_tasks_on(0, 3, 2, 1750, 1024, 2048);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_PULL(4, LOAD, 596);

	/* 100 * 1989 = 117 * 1700. */
	make_tasks_on(0, 3, 2, 1700, 1024, 2048);
	make_tasks_on(4, 7, 2, 1989, 1024, 2048);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
	make_tasks(4, 2, 1990, 1024, 2048);
	make_tasks_on(5, 7, 2, 1990, 1024, 2048);
	find(0, 1, CW_NOT_IDLE);
	CHECK_EQ(d.cpu, 4);

	/* More load here than there. */
	make_tasks_on(0, 3, 2, 3000, 1024, 2048);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();

	/* Overloaded, the other only fully busy. */
	make_tasks_on(4, 7, 1, 4096, 1024, 1024);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
}

/*
 * The average over all is below the local group's: 1000 here, 1200 in the other
 * overloaded group, 0 in a third.
 */
static void test_above_average(void)
{
	SYS_BALANCE(6, LEVEL_MC(2), LEVEL_PKG(6));
	make_tasks_on(0, 1, 2, 1000, 1024, 2048);
	make_tasks_on(2, 3, 2, 1200, 1024, 2048);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
	/* 2000 in the third, without overload: 1400 is the average. */
	make_tasks_on(4, 5, 1, 2000, 1024, 1024);
	find(0, 1, CW_NOT_IDLE);
	/* min of 1200 - 1400, which wraps, and (1400 - 1000) * 2048 / 1024 = 800. */
	EXPECT_PULL(2, LOAD, 800);
}

static void test_imbalanced(void)
{
	two_llcs();
	make_tasks_on(0, 7, 1, 1024, 1024, 1024);
	sys.group[sys.cpu_sd[4][1].local_group].imbalance = 1;
	find(0, 1, CW_NOT_IDLE);
	EXPECT_PULL(4, TASK, 1);
	/* In the local group it means nothing. */
	sys.group[sys.cpu_sd[4][1].local_group].imbalance = 0;
	sys.group[sys.cpu_sd[0][1].local_group].imbalance = 1;
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();
}

static void test_asym_packing(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), { 8, LEVEL_FLAGS | SD_ASYM_PACKING });
	make_tasks(7, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(7, TASK, 1);
	/* The other way round nothing is gained. */
	make_idle(7);
	make_tasks(0, 1, 1024, 1024, 1024);
	find(4, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* Nor is it by a busy CPU. */
	make_tasks_on(0, 7, 1, 1024, 1024, 1024);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();

	/* Between cores the preference counts only if the whole core is idle. */
	SYS_BALANCE(4, LEVEL_SMT(2), { 4, LEVEL_FLAGS | SD_SHARE_LLC | SD_ASYM_PACKING });
	make_tasks(3, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(3, TASK, 1);
	make_tasks(1, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* Between siblings it always counts. */
	sys.domain[sys.cpu_sd[0][0].domain].flags |= SD_ASYM_PACKING;
	find(0, 0, CW_NEWLY_IDLE);
	EXPECT_PULL(1, TASK, 1);
	/* Nor does it relieve a core with two busy siblings; that is for SMT balance. */
	make_idle(1);
	make_tasks(2, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(2, TASK, 1);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_smt_balance);
}

static void test_smt_balance(void)
{
	/* Cores 0-1, 2-3, 4-5, 6-7. */
	SYS_BALANCE(8, LEVEL_SMT(2), LEVEL_MC(8));
	make_tasks_on(2, 3, 1, 1024, 512, 512);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(2, TASK, 1);

	/* A busy sibling here: 1 idle CPU <= 0 + 1. */
	make_tasks(1, 1, 1024, 512, 512);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* But a core without siblings pulls even then. */
	sys.group[sys.cpu_sd[0][1].local_group].flags = 0;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(2, TASK, 1);
	/* Where tasks are spread over cores, one task more is not enough, either. */
	SYS_BALANCE(8, SPREAD_SMT(2), LEVEL_MC(8));
	make_tasks_on(1, 3, 1, 1024, 512, 512);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_smt_balance);
	EXPECT_BALANCED();

	/* One task on its core is not worth moving. */
	SYS_BALANCE(8, LEVEL_SMT(2), LEVEL_MC(8));
	make_tasks(2, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
}

static void big_little(void)
{
	s32 cpu;

	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_ASYM(8));
	for (cpu = 4; cpu < 8; cpu++)
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = 446;
	for (u32 i = 0; i < CW_MAX_GROUPS && sys.group[i].weight; i++) {
		struct cw_group *group = &sys.group[i];

		if (!cpumask_test_cpu(4, &group->span) && cpumask_first(&sys, &group->span) < 4)
			continue;
		group->capacity = 446 * group->weight;
		group->min_capacity = group->max_capacity = 446;
	}
}

static void test_misfit(void)
{
	big_little();
	make_tasks(5, 1, 1024, 446, 446);
	make_tasks(6, 1, 1024, 446, 446);
	sys.cpu[5].misfit_task_load = 700;
	sys.cpu[6].misfit_task_load = 800;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(6, MISFIT, 1);
	CHECK_EQ(sys.overloaded, 1); /* a misfit counts as overload */

	/* No room for it. */
	make_tasks_on(1, 3, 1, 1024, 1024, 1024);
	make_tasks(0, 1, 1024, 1024, 1024);
	find(0, 1, CW_NOT_IDLE);
	EXPECT_BALANCED();

	/* A little CPU does not help a big one, even if that calls its task a misfit. */
	big_little();
	make_tasks(0, 1, 1024, 1024, 1024);
	sys.cpu[0].misfit_task_load = 700;
	find(4, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();

	/* Nor does it take the tasks of big CPUs that have one each. */
	make_tasks_on(0, 3, 1, 1024, 1024, 1024);
	find(4, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* With more than one it does. */
	make_tasks_on(0, 3, 2, 2048, 1024, 2048);
	find(4, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(0, UTIL, 4 * 446);
}

/* CPU 4 has lost half of its capacity to other classes: 500 * 117 < 1024 * 100. */
static void test_reduced_capacity(void)
{
	two_llcs_apart();
	make_tasks(4, 1, 700, 500, 500);
	sys.cpu[4].capacity = 500;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, LOAD, 700);
	CHECK(need_active_balance(&sys, &env));

	/* 876 * 117 = 102492: not noticeable. */
	sys.cpu[4].capacity = 876;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	sys.cpu[4].capacity = 875; /* 102375 */
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, LOAD, 700);
}

int main(void)
{
	test_spare_overloaded();
	test_spare_overloaded_in_llc();
	test_spare_fully_busy();
	test_spare_spare();
	test_single_cpus();
	test_not_idle();
	test_fully_busy_overloaded();
	test_overloaded_overloaded();
	test_above_average();
	test_imbalanced();
	test_asym_packing();
	test_smt_balance();
	test_misfit();
	test_reduced_capacity();
	return test_report("balance_groups");
}
