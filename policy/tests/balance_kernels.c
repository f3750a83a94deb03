/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * States on which Linux 6.12 and 7.3 balance differently, each with the rule
 * off and on, and the states that only a captured kernel has: NUMA balancing's
 * counts and cache-aware preferences.
 */
#include "balance_test.h"

#include "balance/nohz.h"

/* One more of its tasks sleeps and waits to be dequeued. */
static void make_delayed(s32 cpu)
{
	sys.cpu[cpu].nr_running++;
	sys.cpu[cpu].cfs_nr_running++;
	sys.cpu[cpu].cfs_nr_delayed++;
}

static void test_runnable(void)
{
	/* CPU 1 runs a task, and one is delayed there: is that a task to pull? */
	SYS_BALANCE(4, LEVEL_MC(4));
	make_tasks(1, 1, 1024, 500, 500);
	make_delayed(1);
	find(0, 0, CW_NEWLY_IDLE);
	EXPECT_PULL(1, TASK, 1);
	set_feature(CW_FEAT_LB_RUNNABLE, true);
	find(0, 0, CW_NEWLY_IDLE);
	EXPECT_BALANCED(); /* busiest->sum_h_nr_running is 1 */

	/* The queue with the most: CPU 6 has 3 that run, CPU 5 has 2 and 2 delayed. */
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	make_tasks(5, 2, 1024, 200, 200);
	make_delayed(5);
	make_delayed(5);
	make_tasks(6, 3, 1024, 200, 200);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 5);
	set_feature(CW_FEAT_LB_RUNNABLE, true);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 6);
	/* The sums over all classes count delayed ones either way: (7 - 0) / 2. */
	EXPECT_PULL(6, TASK, 3);
}

static void test_group_runnable(void)
{
	/* Two tasks on each CPU of the second LLC run little and wait for long: overloaded? */
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	make_tasks_on(4, 7, 2, 2048, 200, 1500);
	make_tasks_on(1, 3, 1, 1024, 200, 200);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_overloaded);
	set_feature(CW_FEAT_GROUP_RUNNABLE, false);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_has_spare);
}

/* Nodes 0-3 and 4-7, each an LLC; 10 tasks on the second. */
static void two_nodes(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_NUMA(8));
	make_tasks_on(4, 7, 2, 2048, 1000, 1000);
	make_tasks(5, 3, 3072, 1010, 1010);
	make_tasks(6, 3, 3072, 1024, 1024);
}

static void numa_counts(s32 cpu, u32 numa, u32 preferred)
{
	sys.cpu[cpu].nr_numa_running = numa;
	sys.cpu[cpu].nr_preferred_running = preferred;
}

static void test_fbq(void)
{
	/* Without NUMA balancing the busiest it is. */
	two_nodes();
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(6, UTIL, 4096);
	CHECK_EQ(env.fbq_type, CW_FBQ_REGULAR);

	/* All of CPU 6's tasks prefer a node: queues with others come first. */
	numa_counts(6, 3, 0);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(d.cpu, 5);

	/* Everybody prefers a node: 10 tasks, of which 9 are where they want to be. */
	two_nodes();
	numa_counts(4, 2, 1);
	numa_counts(5, 3, 3);
	numa_counts(6, 3, 3);
	numa_counts(7, 2, 2);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.fbq_type, CW_FBQ_REMOTE);
	CHECK_EQ(d.cpu, 4);

	/* All are: then nothing sets the queues apart. */
	numa_counts(4, 2, 2);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.fbq_type, CW_FBQ_ALL);
	CHECK_EQ(d.cpu, 6);

	/* Tasks of other classes make a queue regular, as rq->nr_running counts them. */
	CHECK_EQ(fbq_classify_rq(&sys.cpu[6]), CW_FBQ_ALL);
	sys.cpu[6].nr_running++;
	CHECK_EQ(fbq_classify_rq(&sys.cpu[6]), CW_FBQ_REGULAR);

	/* Within a node it does not matter. */
	two_nodes();
	numa_counts(6, 3, 0);
	find(4, 0, CW_NOT_IDLE);
	CHECK_EQ(env.fbq_type, CW_FBQ_ALL);
}

/* CPUs of this capacity from `first` on, and their groups. */
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

static void test_asym_misfit(void)
{
	/* CPU 4 has a misfit and a task beside it; CPU 2, which is as big, cannot help the misfit. */
	three_clusters();
	make_tasks(4, 2, 1024, 300, 300);
	make_tasks(5, 1, 1024, 300, 300);
	sys.cpu[4].misfit_task_load = 900;
	find(2, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED(); /* a group with a misfit is no source at all */
	CHECK_EQ(sys.overloaded, 1);
	set_feature(CW_FEAT_ASYM_LB, true);
	find(2, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, TASK, 1); /* 2 idle CPUs against none */
	sys.overloaded = 0;
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(sys.overloaded, 1); /* so that big CPUs look for it */

	/* What is more by 5 %: 700 * 1078 = 754600; 736 * 1024 = 753664, 737 * 1024 = 754688. */
	set_capacity(0, 1, 736);
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.migration_type, CW_MIGRATE_TASK);
	set_capacity(0, 1, 737);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(4, MISFIT, 1);
}

/* Cores of two threads: big 0-1 and 2-3, little 4-5 and 6-7. */
static void asym_smt(void)
{
	SYS_BALANCE(8, LEVEL_SMT(2), { 8, LEVEL_FLAGS | SD_ASYM_CPUCAPACITY });
	set_capacity(4, 7, 446);
}

static void test_asym_smt(void)
{
	/* A misfit on CPU 6; CPU 1, the sibling of CPU 0, is busy. */
	asym_smt();
	make_tasks(6, 1, 1024, 446, 446);
	sys.cpu[6].misfit_task_load = 700;
	make_tasks(1, 1, 1024, 500, 500);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(6, MISFIT, 1);
	set_feature(CW_FEAT_ASYM_LB, true);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_BALANCED();
	make_idle(1);
	find(0, 1, CW_NEWLY_IDLE);
	EXPECT_PULL(6, MISFIT, 1);

	/* Two big CPUs share a core, a little one is idle: a single task may leave. */
	asym_smt();
	make_tasks_on(2, 3, 1, 1024, 512, 512);
	env = (struct cw_balance){ .dst_cpu = 0, .fbq_type = CW_FBQ_ALL,
				   .migration_type = CW_MIGRATE_TASK, .level = 1 };
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[2][1].local_group, &d), -1);
	set_feature(CW_FEAT_ASYM_LB, true);
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[2][1].local_group, &d), 2);
	make_idle(3); /* it has the core for itself */
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, sys.cpu_sd[2][1].local_group, &d), -1);
}

/* Between clusters of one capacity single tasks move, if the machine has clusters at all. */
static void test_asym_cluster(void)
{
	u32 group;

	three_clusters();
	set_feature(CW_FEAT_ASYM_LB, true);
	make_tasks_on(4, 5, 1, 1024, 300, 300);
	group = sys.cpu_sd[4][1].local_group;
	balance_begin(&env, 2, 1, CW_NEWLY_IDLE, 1000000000);
	env.migration_type = CW_MIGRATE_TASK;
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, group, &d), -1);
	sys.cluster_present = 1;
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, group, &d), 4);
	sys.cpu[4].capacity_orig = 701;
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, group, &d), 5);
	set_feature(CW_FEAT_ASYM_LB, false);
	CHECK_EQ(sched_balance_find_src_rq(&sys, &env, group, &d), -1);
}

/*
 * CPU 2 is idle, CPU 4 runs one task more than it has CPUs for, the big ones are
 * fully busy. In 6.12 the big group, coming last in the ring from 4-5, is the
 * busiest by its type; 7.3 has refused it before.
 */
static void test_asym_bigger_group(void)
{
	three_clusters();
	make_tasks_on(0, 1, 1, 1024, 1024, 1024);
	make_tasks(4, 3, 1024, 100, 100);
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[0][1].local_group);
	CHECK_EQ(env.sds.busiest_stat.group_type, group_fully_busy);
	CHECK_EQ(d.cpu, -1); /* each of its queues has one task and is on a bigger CPU */
	set_feature(CW_FEAT_ASYM_LB, true);
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[4][1].local_group);
	CHECK_EQ(d.cpu, -1); /* 2 idle CPUs here, 1 there */
	/* A big group of which no CPU is more than 5 % bigger is not refused. */
	set_capacity(0, 1, 736);
	find(2, 1, CW_NEWLY_IDLE);
	CHECK_EQ(env.sds.busiest, sys.cpu_sd[0][1].local_group);
}

static bool may_migrate(u32 flags, enum cw_migration_type type)
{
	struct cw_cpumask all = mask_range(0, 7);
	struct cw_task p = { .weight = 1024, .flags = flags };

	env.migration_type = type;
	return can_migrate_task(&sys, &env, &p, &all, false);
}

static void test_detach(void)
{
	/* CPU 0 has a task; CPU 4 has two. */
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	make_tasks(0, 1, 1024, 500, 500);
	make_tasks(4, 2, 2048, 500, 500);
	balance_begin(&env, 0, 1, CW_NOT_IDLE, 1000000000);
	env.src_cpu = 4;

	CHECK(may_migrate(CW_TASK_DELAYED, CW_MIGRATE_TASK));
	set_feature(CW_FEAT_LB_RUNNABLE, true);
	CHECK(!may_migrate(CW_TASK_DELAYED, CW_MIGRATE_TASK));
	CHECK(may_migrate(CW_TASK_DELAYED, CW_MIGRATE_LOAD));
	CHECK(may_migrate(0, CW_MIGRATE_TASK));

	CHECK(may_migrate(CW_TASK_INELIGIBLE, CW_MIGRATE_TASK));
	set_feature(CW_FEAT_LB_ELIGIBLE, true);
	CHECK(!may_migrate(CW_TASK_INELIGIBLE, CW_MIGRATE_TASK));
	sys.cpu_sd[0][1].nr_balance_failed = 1;
	CHECK(may_migrate(CW_TASK_INELIGIBLE, CW_MIGRATE_TASK));
	sys.cpu_sd[0][1].nr_balance_failed = 0;
	set_feature(CW_FEAT_PLACE_LAG, false);
	CHECK(may_migrate(CW_TASK_INELIGIBLE, CW_MIGRATE_TASK));
	set_feature(CW_FEAT_PLACE_LAG, true);
	make_idle(0); /* there is nobody to wait for */
	CHECK(may_migrate(CW_TASK_INELIGIBLE, CW_MIGRATE_TASK));
}

/* Cores 0-1, 2-3, 4-5. CPU 2 is busy: CPU 3 is the first idle one, CPU 4 the first on an idle core. */
static void test_idle_load_balancer(void)
{
	struct cw_cpumask idle = mask_range(3, 5);

	SYS_BALANCE(6, LEVEL_SMT(2), LEVEL_MC(6));
	make_tasks(2, 1, 1024, 500, 500);
	CHECK_EQ(find_new_ilb(&sys, &idle, &idle, 0), 3);
	set_feature(CW_FEAT_ILB_IDLE_CORE, true);
	CHECK_EQ(find_new_ilb(&sys, &idle, &idle, 0), 4);
	make_tasks(5, 1, 1024, 500, 500);
	CHECK_EQ(find_new_ilb(&sys, &idle, &idle, 0), 3); /* better than none */
	make_tasks(4, 1, 1024, 500, 500);
	make_tasks(3, 1, 1024, 500, 500);
	CHECK_EQ(find_new_ilb(&sys, &idle, &idle, 0), -1);
}

int main(void)
{
	test_detach();
	test_idle_load_balancer();
	test_runnable();
	test_group_runnable();
	test_fbq();
	test_asym_misfit();
	test_asym_smt();
	test_asym_cluster();
	test_asym_bigger_group();
	return test_report("balance_kernels");
}
