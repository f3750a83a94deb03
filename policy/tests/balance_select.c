/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPU balances, which of several groups is the busiest, and what the statistics
 * leave behind: rd->overloaded, the limit of idle CPU scans, group capacity.
 */
#include "balance_test.h"

static void test_should_we_balance(void)
{
	/* Cores 0-1, 2-3 | 4-5, 6-7; all CPUs of the second LLC have work to give. */
	SYS_BALANCE(8, SPREAD_SMT(2), SPREAD_MC(4), LEVEL_PKG(8));
	make_tasks_on(4, 7, 2, 2048, 1024, 2048);

	/* All idle: the first CPU of the group. */
	find(0, 2, CW_IDLE);
	CHECK_EQ(d.reason, CW_REASON_BALANCE_PULL);
	find(1, 2, CW_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);
	CHECK(env.flags & LBF_NOT_MINE);
	CHECK_EQ(d.groups_scanned, 0);

	/* CPU 1 is idle, but its core is not: CPU 2 comes first. */
	make_tasks(0, 1, 1024, 1024, 1024);
	find(1, 2, CW_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);
	find(2, 2, CW_IDLE);
	CHECK_EQ(d.reason, CW_REASON_BALANCE_PULL);

	/* No idle core: the first idle CPU. */
	make_tasks(2, 1, 1024, 1024, 1024);
	find(1, 2, CW_IDLE);
	CHECK_EQ(d.reason, CW_REASON_BALANCE_PULL);
	find(3, 2, CW_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);

	/* Of two idle CPUs on busy cores the first. */
	make_tasks(1, 1, 1024, 1024, 1024);
	make_idle(0);
	find(0, 2, CW_IDLE);
	CHECK_EQ(d.reason, CW_REASON_BALANCE_PULL);
	find(3, 2, CW_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);
	CHECK_EQ(d.cpus_scanned, 4);

	/* Nothing idle: the first CPU of the group, whichever that is. */
	make_tasks_on(0, 3, 1, 1024, 1024, 1024);
	find(0, 2, CW_NOT_IDLE);
	CHECK_EQ(d.reason, CW_REASON_BALANCE_PULL);
	find(2, 2, CW_NOT_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);

	/* Between siblings the state of the core does not matter. */
	make_idle(1);
	find(1, 0, CW_IDLE);
	EXPECT_BALANCED();

	/* A CPU that an earlier round has left out does not. */
	balance_begin(&env, 1, 0, CW_IDLE, 0);
	env_exclude(&env, 1);
	sched_balance_find_src(&sys, &env, &d);
	EXPECT(d, -1, BALANCE_NOT_MINE);

	/* Nor does it stand in the way of the next one. */
	balance_begin(&env, 3, 2, CW_IDLE, 0);
	env_exclude(&env, 1);
	make_idle(3);
	sched_balance_find_src(&sys, &env, &d);
	CHECK_EQ(d.reason, CW_REASON_BALANCE_PULL);

	/* A newly idle CPU always balances, unless work has come. */
	make_idle(3);
	find(3, 2, CW_NEWLY_IDLE);
	CHECK_EQ(d.reason, CW_REASON_BALANCE_PULL);
	sys.cpu[3].ttwu_pending = 1;
	find(3, 2, CW_NEWLY_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);
	sys.cpu[3].ttwu_pending = 0;
	make_tasks(3, 1, 1024, 1024, 1024);
	find(3, 2, CW_NEWLY_IDLE);
	EXPECT(d, -1, BALANCE_NOT_MINE);
}

/* Three LLCs of two CPUs, 0-1, 2-3 and 4-5: which of the other two is the busier? */
static void three_llcs(void)
{
	SYS_BALANCE(6, LEVEL_MC(2), LEVEL_PKG(6));
}

static void test_pick_busiest(void)
{
	u32 *flags;

	/* Overloaded: the higher average load, the first if equal. */
	three_llcs();
	make_tasks_on(2, 3, 2, 2048, 1024, 2048);
	make_tasks_on(4, 5, 2, 2049, 1024, 2048);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 4);
	make_tasks_on(4, 5, 2, 2048, 1024, 2048);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 2);
	/* The ring of groups starts at the local one: from CPU 2 the first is 4-5. */
	make_tasks_on(0, 1, 2, 2048, 1024, 2048);
	make_idle(2);
	make_idle(3);
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 4);

	/* Type goes before load. */
	three_llcs();
	make_tasks_on(2, 3, 1, 9000, 1024, 1024);
	make_tasks_on(4, 5, 2, 100, 1024, 2048);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 4);
	make_tasks_on(2, 3, 2, 100, 1024, 2048);
	make_tasks_on(4, 5, 1, 9000, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 2);

	/* Imbalanced: the first. */
	three_llcs();
	make_tasks_on(2, 5, 1, 1024, 1024, 1024);
	sys.group[sys.cpu_sd[2][1].local_group].imbalance = 1;
	sys.group[sys.cpu_sd[4][1].local_group].imbalance = 1;
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 2);

	/* Fully busy: the last, but siblings are not replaced. */
	three_llcs();
	make_tasks_on(2, 5, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 4);
	flags = &sys.group[sys.cpu_sd[2][1].local_group].flags;
	*flags |= SD_SHARE_CPUCAPACITY;
	find(0, 1, CW_NOT_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[2][1].local_group);

	/* Spare capacity: fewer idle CPUs, then more tasks. */
	three_llcs();
	make_tasks(3, 2, 1024, 100, 100);
	make_tasks_on(4, 5, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 4);
	make_tasks(3, 2, 1024, 100, 100);
	make_tasks(2, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 3);
	make_tasks(3, 1, 1024, 100, 100); /* equal: the first */
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 2);

	/* A CPU to which a wakeup is on its way is not idle. */
	three_llcs();
	make_tasks(2, 1, 1024, 100, 100);
	make_tasks(4, 1, 1024, 100, 100);
	sys.cpu[5].ttwu_pending = 1;
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[4][1].local_group);

	/* A lone task of a sibling is left, if there is another group. */
	three_llcs();
	flags = &sys.group[sys.cpu_sd[4][1].local_group].flags;
	*flags |= SD_SHARE_CPUCAPACITY;
	make_tasks(4, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[4][1].local_group);
	make_tasks(2, 1, 1024, 100, 100);
	make_tasks(4, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[2][1].local_group);

	/* Cores that share: fewer idle siblings, then the first. */
	SYS_BALANCE(12, LEVEL_SMT(4), LEVEL_MC(12));
	make_tasks_on(4, 5, 1, 1024, 100, 100);
	make_tasks_on(8, 10, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(8, TASK, 1);
	make_tasks_on(4, 6, 1, 1024, 100, 100);
	make_tasks_on(8, 11, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(8, TASK, 1);
	make_idle(11);
	make_tasks(7, 2, 2048, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(7, TASK, 1);
	make_tasks_on(4, 11, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);

	/* Misfits: the bigger. */
	three_llcs();
	sys.domain[sys.cpu_sd[0][1].domain].flags |= SD_ASYM_CPUCAPACITY;
	for (s32 cpu = 2; cpu < 6; cpu++) {
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = 446;
		sys.group[sys.cpu_sd[cpu][1].local_group].max_capacity = 446;
	}
	make_tasks_on(3, 4, 1, 446, 446, 446);
	sys.cpu[3].misfit_task_load = 500;
	sys.cpu[4].misfit_task_load = 501;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, MISFIT, 1);
	sys.cpu[3].misfit_task_load = 501;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(3, MISFIT, 1);
}

/* CPUs 2-3 are bigger than the others: tasks stay there while each has a CPU. */
static void test_bigger_groups(void)
{
	struct cw_group *group;

	three_llcs();
	sys.domain[sys.cpu_sd[0][1].domain].flags |= SD_ASYM_CPUCAPACITY;
	sys.cpu[0].capacity = sys.cpu[0].capacity_orig = 446;
	group = &sys.group[sys.cpu_sd[2][1].local_group];
	make_tasks_on(2, 3, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, CW_NONE);
	group->min_capacity = 446; /* as big as CPU 0, some of them */
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[2][1].local_group);
	CHECK_EQ(d.cpu, -1); /* but not those that have the tasks */
	CHECK_EQ(sys.overloaded, 0); /* no misfit, nobody waits */

	/* Fully busy, too. */
	group->min_capacity = 1024;
	make_tasks_on(2, 3, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[2][1].local_group); /* its type goes first */
	make_tasks_on(4, 5, 1, 1024, 1024, 1024);
	sys.group[sys.cpu_sd[4][1].local_group].min_capacity = 446;
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[4][1].local_group);
	sys.group[sys.cpu_sd[4][1].local_group].min_capacity = 1024;
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[2][1].local_group);

	/* Misfits in the local group, or left behind on an idle CPU, do not count. */
	three_llcs();
	sys.domain[sys.cpu_sd[0][1].domain].flags |= SD_ASYM_CPUCAPACITY;
	make_tasks(1, 1, 1024, 1024, 1024);
	sys.cpu[1].misfit_task_load = sys.cpu[2].misfit_task_load = 500;
	make_tasks(3, 1, 1024, 100, 100);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.local_stat.group_type, group_has_spare);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[3][1].local_group);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_has_spare);
}

/* The busiest of CPUs 2 and 3 for CPU 0, by each measure. */
static s32 find_rq(enum cw_migration_type type, s64 imbalance)
{
	balance_begin(&env, 0, 1, CW_IDLE, 0);
	env.migration_type = type;
	env.imbalance = imbalance;
	return sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[2][1].local_group, &d);
}

static void test_find_src_rq(void)
{
	/* A lone task heavier than the imbalance stays, one as heavy goes. */
	three_llcs();
	make_tasks(2, 1, 1001, 900, 900);
	make_tasks(3, 1, 1000, 800, 800);
	CHECK_EQ(find_rq(CW_MIGRATE_LOAD, 1000), 3);
	CHECK_EQ(find_rq(CW_MIGRATE_LOAD, 999), -1);
	CHECK_EQ(find_rq(CW_MIGRATE_LOAD, 1001), 2);
	make_tasks(2, 2, 1001, 900, 900);
	CHECK_EQ(find_rq(CW_MIGRATE_LOAD, 999), 2);
	/* It counts for more on a CPU of less capacity: 1000 / 1000 < 1001 / 1024 is false. */
	sys.cpu[3].capacity = 1000;
	CHECK_EQ(find_rq(CW_MIGRATE_LOAD, 1001), 3);
	/* What is left of sleepers is no reason. */
	make_idle(2);
	sys.cpu[2].avg.load_avg = 5000;
	CHECK_EQ(find_rq(CW_MIGRATE_LOAD, 9000), 3);

	/* Utilisation needs a task that waits; waiting counts. */
	three_llcs();
	make_tasks(2, 1, 1024, 900, 900);
	CHECK_EQ(find_rq(CW_MIGRATE_UTIL, 1), -1);
	make_tasks(2, 2, 1024, 700, 700);
	make_tasks(3, 2, 1024, 600, 800);
	CHECK_EQ(find_rq(CW_MIGRATE_UTIL, 1), 3);

	/* A CPU that is left out. */
	balance_begin(&env, 0, 1, CW_IDLE, 0);
	env.migration_type = CW_MIGRATE_TASK;
	env_exclude(&env, 2);
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[2][1].local_group, &d), 3);

	/* A lone task stays on a CPU that is no smaller, or is preferred; several do not. */
	sys.domain[sys.cpu_sd[0][1].domain].flags |= SD_ASYM_CPUCAPACITY;
	make_tasks(2, 1, 1024, 600, 600);
	make_idle(3);
	sys.cpu[2].capacity = 973; /* 1024 * 1024 < 973 * 1078 */
	CHECK_EQ(find_rq(CW_MIGRATE_TASK, 1), -1);
	sys.cpu[2].capacity = 972;
	CHECK_EQ(find_rq(CW_MIGRATE_TASK, 1), 2);
	sys.cpu[2].capacity = 1024;
	make_tasks(2, 2, 1024, 600, 600);
	CHECK_EQ(find_rq(CW_MIGRATE_TASK, 1), 2);
	make_tasks(0, 1, 1024, 600, 600);
	sys.domain[sys.cpu_sd[0][1].domain].flags = SD_ASYM_PACKING;
	balance_begin(&env, 4, 1, CW_IDLE, 0);
	env.migration_type = CW_MIGRATE_TASK;
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[0][1].local_group, &d), -1);
	make_tasks(0, 2, 1024, 600, 600);
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[0][1].local_group, &d), 0);
}

/*
 * Groups of different size: CPUs 0-1 are two cores, CPUs 2-5 four. With no task
 * here and 4 there: 2 * 4 = 8 above the ratio, (2 * 8 + 6) / 6 = 3, half of it 1.
 */
static void test_sibling_imbalance(void)
{
	struct cw_group *big;

	SYS_BALANCE(6, SPREAD_MC(2), LEVEL_PKG(6));
	big = &sys.group[sys.cpu_sd[2][1].local_group];
	big->span = mask_range(2, 5);
	big->weight = big->cores = 4;
	big->capacity = 4096;
	sys.domain[sys.cpu_sd[0][1].domain].nr_groups = 2;
	make_tasks_on(2, 5, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(2, TASK, 1);
	CHECK_EQ(sibling_imbalance(&sys, &env), 3);

	/* 2 tasks there: (2 * 4 + 6) / 6 = 2, without the rule for an empty group. */
	make_idle(4);
	make_idle(5);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(sibling_imbalance(&sys, &env), 2);
	/* One here: 2 * 2 - 4 * 1 = 0 above, (0 + 6) / 6 = 1. */
	make_tasks(1, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(sibling_imbalance(&sys, &env), 1);
	EXPECT_BALANCED();
	/* A busy CPU sees none. */
	make_tasks_on(2, 5, 9, 1024, 1024, 1024);
	find(0, 1, CW_IDLE);
	CHECK(sibling_imbalance(&sys, &env) > 1);
	env.idle = CW_NOT_IDLE;
	CHECK_EQ(sibling_imbalance(&sys, &env), 0);

	/* One core and six: (2 * (1 * 2) + 7) / 7 = 1, but an empty group takes one of two. */
	env.idle = CW_IDLE;
	sys.group[env.sds.local].cores = 1;
	sys.group[env.sds.busiest].cores = 6;
	env.sds.local_stat.sum_nr_running = 0;
	env.sds.busiest_stat.sum_nr_running = 2;
	CHECK_EQ(sibling_imbalance(&sys, &env), 2);
	env.sds.busiest_stat.sum_nr_running = 1;
	CHECK_EQ(sibling_imbalance(&sys, &env), 1);
}

/* Nodes 0-3 and 4-7. */
static void test_numa_imbalance(void)
{
	struct cw_domain *sd;

	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_NUMA(8));
	sd = &sys.domain[sys.cpu_sd[0][1].domain];

	/* Idle CPUs: 4 here, 2 there. The first task may run here while 1 <= imb_numa_nr. */
	make_tasks_on(4, 5, 1, 1024, 1024, 1024);
	sd->imb_numa_nr = 0;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);
	sd->imb_numa_nr = 1;
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	/* 3 are too many to be a pair. */
	make_tasks(6, 1, 1024, 1024, 1024);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1);
}

/* rd->overloaded is what the top level of any balance saw. */
static void test_overloaded_flag(void)
{
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	sys.overloaded = 1;
	find(0, 0, CW_NEWLY_IDLE); /* not the top */
	CHECK_EQ(sys.overloaded, 1);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(sys.overloaded, 0);
	make_tasks(0, 1, 1024, 1024, 1024);
	make_tasks(7, 1, 1024, 1024, 1024);
	find(1, 1, CW_NEWLY_IDLE);
	CHECK_EQ(sys.overloaded, 0); /* running is not waiting */
	make_tasks(0, 2, 1024, 1024, 1024);
	find(1, 0, CW_NEWLY_IDLE);
	CHECK_EQ(sys.overloaded, 0);
	find(1, 1, CW_NEWLY_IDLE);
	CHECK_EQ(sys.overloaded, 1); /* the local group counts */
}

/*
 * An LLC of 4 CPUs, half utilised: x = 2048 / 4 = 512,
 * 512^2 * 117^2 / (10000 * 1024) = 350; (1024 - 350) * 4 / 1024 = 2.
 */
static void test_idle_cpu_scan(void)
{
	u32 *scan;

	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	scan = &sys.llc[sys.cpu[0].llc].nr_idle_scan;
	*scan = 99;
	make_tasks_on(2, 3, 1, 1024, 1024, 1024);
	find(0, 0, CW_NEWLY_IDLE);
	CHECK_EQ(*scan, 99);
	find(0, 1, CW_IDLE); /* not the LLC's domain */
	CHECK_EQ(*scan, 99);
	find(0, 0, CW_IDLE);
	CHECK_EQ(*scan, 2);

	/* 875 of 1024 each, 85 %: 875^2 * 117^2 / 10240000 = 1023; 1 * 4 / 1024 = 0. */
	make_tasks_on(0, 3, 1, 875, 875, 875);
	find(0, 0, CW_NOT_IDLE);
	CHECK_EQ(*scan, 0);
	/* Nothing utilised: all of them. */
	for (s32 cpu = 0; cpu < 4; cpu++)
		make_idle(cpu);
	find(0, 0, CW_IDLE);
	CHECK_EQ(*scan, 4);
	CHECK_EQ(sys.llc[sys.cpu[4].llc].nr_idle_scan, 4); /* the other is left alone */

	set_feature(CW_FEAT_SIS_UTIL, false);
	*scan = 99;
	find(0, 0, CW_IDLE);
	CHECK_EQ(*scan, 99);
}

/* A CPU's capacity reaches the group of each level when that level is balanced. */
static void test_group_capacity(void)
{
	struct cw_group *core, *llc;

	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	core = &sys.group[sys.cpu_sd[0][0].local_group];
	llc = &sys.group[sys.cpu_sd[0][1].local_group];
	sys.cpu[0].capacity = 600;
	/* Newidle balance only does it when it is due: now is tick 250. */
	core->next_update = 251;
	find(0, 0, CW_NEWLY_IDLE);
	CHECK_EQ(core->capacity, 1024);
	CHECK_EQ(core->next_update, 251);
	core->next_update = 250;
	find(0, 0, CW_NEWLY_IDLE);
	CHECK_EQ(core->capacity, 600);
	CHECK_EQ(core->next_update, 251); /* its interval of 4 ms is a tick */

	core->capacity = 1024;
	find(0, 1, CW_IDLE);
	CHECK_EQ(llc->next_update, 252);
	CHECK_EQ(llc->capacity, 4096); /* its child does not know yet */
	find(0, 0, CW_IDLE);
	CHECK_EQ(core->capacity, 600);
	find(0, 1, CW_IDLE);
	CHECK_EQ(llc->capacity, 3072 + 600);
	CHECK_EQ(llc->min_capacity, 600);
	CHECK_EQ(llc->max_capacity, 1024);
}

/* Negative control: CPUs outside of the domain have no part in it. */
static void test_other_domains(void)
{
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	make_tasks_on(4, 7, 9, 9999, 1024, 9999);
	find(0, 0, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	CHECK_EQ(d.cpus_scanned, 4);
	CHECK_EQ(d.groups_scanned, 4);
}

int main(void)
{
	test_should_we_balance();
	test_pick_busiest();
	test_bigger_groups();
	test_find_src_rq();
	test_sibling_imbalance();
	test_numa_imbalance();
	test_overloaded_flag();
	test_idle_cpu_scan();
	test_group_capacity();
	test_other_domains();
	return test_report("balance_select");
}
