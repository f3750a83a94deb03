/* SPDX-License-Identifier: GPL-2.0-only */
/* Fork and exec placement: the idlest CPU of a group, and the way down the domains. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

/* A task forks on `this_cpu`; the child has no history. */
static void fork_on(s32 this_cpu)
{
	new_wakeup(WF_FORK, this_cpu, this_cpu);
	wakee.avg = (struct cw_avg){ .load_avg = 1024 };
}

static void place(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

/* The idlest CPU of CPUs 0-7, seen from CPU 0. */
static s32 idlest_cpu(void)
{
	struct cw_group group = { .span = mask_range(0, 7), .weight = 8 };

	return sched_balance_find_dst_group_cpu(&sys, &wakee, &allowed, &d, &group);
}

static void test_find_dst_group_cpu(void)
{
	sys_plain(2, 4);
	fork_on(0);
	/* none idle: the least loaded, the first of equals */
	make_busy(3, 900, 0);
	make_busy(5, 900, 0);
	CHECK_EQ(idlest_cpu(), 3);
	make_busy(6, 899, 0);
	CHECK_EQ(idlest_cpu(), 6);
	allowed = mask_range(0, 5);
	CHECK_EQ(idlest_cpu(), 3);
	allowed = mask_range(0, 7);

	/* an idle one before any load */
	make_idle(7);
	sys.cpu[7].exit_latency_us = 133;
	CHECK_EQ(idlest_cpu(), 7);
	/* the shallower state before the later stamp */
	make_idle(2);
	sys.cpu[2].exit_latency_us = 133;
	sys.cpu[2].idle_stamp = 50;
	sys.cpu[7].idle_stamp = 40;
	CHECK_EQ(idlest_cpu(), 2); /* equal states: idle later */
	sys.cpu[7].idle_stamp = 60;
	CHECK_EQ(idlest_cpu(), 7);
	sys.cpu[2].exit_latency_us = 132;
	CHECK_EQ(idlest_cpu(), 2);
	/* equal in both: the first */
	sys.cpu[2].exit_latency_us = 133;
	sys.cpu[2].idle_stamp = 60;
	CHECK_EQ(idlest_cpu(), 2);
	/* polling is the shallowest */
	make_idle(5);
	CHECK_EQ(idlest_cpu(), 5);
	/* a CPU with SCHED_IDLE tasks only needs no wakeup from idle at all */
	make_sched_idle(6);
	CHECK_EQ(idlest_cpu(), 6);
	/* a task on its way: not idle */
	make_busy(6, 1024, 0);
	sys.cpu[5].ttwu_pending = 1;
	CHECK_EQ(idlest_cpu(), 2);

	/* a group of one CPU is not asked */
	{
		struct cw_group one = { .span = mask_range(4, 4), .weight = 1 };

		CHECK_EQ(sched_balance_find_dst_group_cpu(&sys, &wakee, &allowed, &d, &one), 4);
	}

	/* none that the task may use */
	{
		struct cw_group low = { .span = mask_range(0, 3), .weight = 4 };

		allowed = mask_range(4, 7);
		CHECK_EQ(sched_balance_find_dst_group_cpu(&sys, &wakee, &allowed, &d, &low), -1);
	}
}

static void test_descent(void)
{
	/* 2 LLCs of 4 cores of 2 threads: to the idlest LLC, then to its idlest core */
	sys_smt(2, 4);
	fork_on(0);
	make_idle(3);
	make_idle(9); /* its sibling is busy */
	make_idle(12);
	make_idle(13);
	place();
	EXPECT(d, 12, SLOW_PATH);
	CHECK_EQ(d.event, WF_FORK);
	/* 2 LLCs; then within LLC 1 from the idle CPU found there, its 4 cores, and 2 threads */
	CHECK_EQ(d.groups_scanned, 2 + 4 + 2);

	/* the other LLC has no more idle CPUs: stay, and go to the core of this one that has */
	make_busy(12, 1024, 1024);
	make_busy(13, 1024, 1024);
	place();
	EXPECT(d, 3, SLOW_PATH);
	/* nothing idle anywhere: stay */
	make_busy(3, 1024, 1024);
	make_busy(9, 1024, 1024);
	place();
	EXPECT(d, 0, SLOW_PATH_LOCAL);
	CHECK_EQ(d.groups_scanned, 2 + 4 + 2);
}

static void test_flags(void)
{
	s32 cpu;

	/* far nodes take no part: no SD_BALANCE_FORK there */
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_NUMA_FAR(8));
	for (cpu = 4; cpu < 8; cpu++)
		make_idle(cpu);
	make_idle(2);
	fork_on(0);
	place();
	EXPECT(d, 2, SLOW_PATH);
	CHECK_EQ(d.groups_scanned, 4);
	/* the walk up stops at the first domain without the flag: only the core is searched */
	sys_smt(2, 2);
	for (cpu = 4; cpu < 8; cpu++)
		make_idle(cpu);
	sys.domain[4].flags &= ~(u32)SD_BALANCE_FORK; /* of CPUs 0-3 */
	place();
	EXPECT(d, 0, SLOW_PATH_LOCAL);
	CHECK_EQ(d.groups_scanned, 2);
	/* on the way down a domain without it is passed over: two LLCs, then a core's threads */
	sys.domain[4].flags |= SD_BALANCE_FORK;
	sys.domain[5].flags &= ~(u32)SD_BALANCE_FORK; /* of CPUs 4-7 */
	place();
	EXPECT(d, 4, SLOW_PATH);
	CHECK_EQ(d.groups_scanned, 2 + 2);
	/* exec looks at its own flag */
	new_wakeup(WF_EXEC, 0, 0);
	place();
	CHECK_EQ(d.reason, CW_REASON_SLOW_PATH);
	CHECK(d.cpu >= 4);

	/* no domain: the previous CPU */
	sys.cpu[0].nr_sd = 0;
	place();
	EXPECT(d, 0, NONE);
}

static void test_affinity(void)
{
	s32 cpu;

	sys_plain(2, 4);
	for (cpu = 0; cpu < 8; cpu++)
		make_idle(cpu);
	/* only the other LLC is allowed: no local group, the other one it is */
	fork_on(0);
	allowed = mask_range(5, 6);
	make_busy(5, 1024, 1024);
	place();
	EXPECT(d, 6, SLOW_PATH);
	CHECK_EQ(d.groups_scanned, 3); /* LLC 1, then CPUs 5 and 6 there */
	/* only this LLC is allowed: no other group */
	make_busy(0, 1024, 1024);
	allowed = mask_range(0, 1);
	place();
	EXPECT(d, 1, SLOW_PATH);
	/* nothing of the domain is allowed */
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_NUMA_FAR(8));
	fork_on(0);
	allowed = mask_range(4, 7);
	place();
	EXPECT(d, 0, SLOW_PATH_LOCAL);
	CHECK(d.notes & CW_NOTE_AFFINITY);
}

static void test_own_contribution(void)
{
	/* exec on CPU 0, where only the task itself runs: without it CPU 0 is idle */
	sys_plain(1, 4);
	new_wakeup(WF_EXEC, 0, 0);
	make_idle(2);
	make_busy(0, 100, 100);
	place();
	EXPECT(d, 0, SLOW_PATH_LOCAL);
	/* with another task queued it is not */
	sys.cpu[0].nr_running = 2;
	place();
	EXPECT(d, 2, SLOW_PATH);
	/* a task on its way there */
	sys.cpu[0].nr_running = 1;
	sys.cpu[0].ttwu_pending = 1;
	place();
	EXPECT(d, 2, SLOW_PATH);

	/* what is taken off, and when */
	make_busy(0, 150, 250);
	CHECK_EQ(cpu_load_without(&sys, 0, placed()), 50);
	CHECK_EQ(cpu_load_without(&sys, 1, placed()), 1024);
	make_busy(0, 50, 250);
	CHECK_EQ(cpu_load_without(&sys, 0, placed()), 0);
	wakee.avg.runnable_avg = 200;
	CHECK_EQ(cpu_runnable_without(&sys, 0, placed()), 50);
	CHECK_EQ(cpu_runnable_without(&sys, 1, placed()), 1024);
	/* utilisation 250 - 100; its estimate only while the task is queued, which is in an exec */
	wakee.avg.util_est = 180 | UTIL_AVG_UNCHANGED;
	CHECK_EQ(cpu_util_without(&sys, 0, placed()), 150); /* max(150, 250 - 180) */
	wakeup.wake_flags = WF_TTWU;
	CHECK_EQ(cpu_util_without(&sys, 0, placed()), 250);
	set_feature(CW_FEAT_UTIL_EST, false);
	CHECK_EQ(cpu_util_without(&sys, 0, placed()), 150);
	/* capped by the capacity, and a new task takes nothing */
	sys.cpu[0].capacity_orig = 120;
	CHECK_EQ(cpu_util_without(&sys, 0, placed()), 120);
	CHECK_EQ(cpu_util(&sys, 0), 120);
	wakee.avg.last_update_time = 0;
	CHECK_EQ(cpu_load_without(&sys, 0, placed()), 50);
	CHECK_EQ(cpu_runnable_without(&sys, 0, placed()), 250);
}

static void test_sync(void)
{
	/* an exec brings the task to its runqueue's time before it is taken off, a fork does not */
	sys_plain(1, 4);
	sys.cpu[0].avg.last_update_time = 33ULL << 20;
	new_wakeup(WF_EXEC, 0, 0);
	wakee.avg.last_update_time = 1ULL << 20;
	wakee.avg.util_sum = 100 * LOAD_AVG_MAX;
	place();
	CHECK(wakee.avg.util_avg < 60);
	new_wakeup(WF_FORK, 0, 0);
	wakee.avg.last_update_time = 1ULL << 20;
	place();
	CHECK_EQ(wakee.avg.util_avg, 100);
}

int main(void)
{
	test_find_dst_group_cpu();
	test_descent();
	test_flags();
	test_affinity();
	test_own_contribution();
	test_sync();
	return test_report("forkexec");
}
