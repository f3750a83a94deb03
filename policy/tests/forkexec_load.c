/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The idlest group by load, before and after seed 001's patch. With an
 * imbalance_pct of 117 the margin is 1024 * 17 / 100 = 174, the factor 108 %.
 */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

/* CPU 0 forks or execs on a machine of four CPUs, each a group of its own. */
static void setup(u32 wake_flags, bool patched)
{
	sys_plain(1, 4);
	set_feature(CW_FEAT_IDLEST_BY_LOAD, true);
	set_feature(CW_FEAT_IDLEST_LOAD_AVG, patched);
	new_wakeup(wake_flags, 0, 0);
	wakee.avg = (struct cw_avg){ .load_avg = 1024 };
}

/* The CPU's queued tasks have this load, all its tasks that one. */
static void load(s32 cpu, u64 runnable, u64 avg)
{
	sys.runnable_load[cpu].load_avg = runnable;
	sys.cpu[cpu].avg.load_avg = avg;
}

static s32 place(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
	return d.cpu;
}

/* Where the fork goes with CPU 0 and CPU 1 like this, and CPUs 2 and 3 out of the question. */
static s32 between(bool patched, u64 runnable0, u64 avg0, u64 runnable1, u64 avg1)
{
	setup(WF_FORK, patched);
	load(0, runnable0, avg0);
	load(1, runnable1, avg1);
	allowed = mask_range(0, 1);
	return place();
}

/*
 * The seed's: "a scaling factor fails as soon as this_runnable_load == 0". CPU 1
 * has a load of 1, which is the same, and far fewer sleepers.
 */
static void test_seed_example(void)
{
	CHECK_EQ(between(false, 0, 500, 1, 100), 0);
	CHECK_EQ(between(true, 0, 500, 1, 100), 1);
	EXPECT(d, 1, SLOW_PATH);
	CHECK_EQ(d.groups_scanned, 2);
}

/*
 * Forks whose children sleep at once, as hackbench's: their load is left behind.
 * Before, they all land on one CPU; with the patch each goes to the next.
 */
static void test_fork_sequence(void)
{
	static const s32 before[] = { 1, 1, 1, 1, 1, 1 }, after[] = { 1, 2, 3, 1, 2, 3 };
	u32 i, patched;

	for (patched = 0; patched <= 1; patched++) {
		s32 cpu;

		setup(WF_FORK, patched);
		load(0, 1024, 1024);
		for (cpu = 1; cpu < 4; cpu++)
			load(cpu, 0, 0);
		for (i = 0; i < 6; i++) {
			cpu = place();
			CHECK_EQ(cpu, patched ? after[i] : before[i]);
			sys.cpu[cpu].avg.load_avg += 1024;
		}
	}
}

/* Before: remote if the local load is 108 % of the other or more. */
static void test_factor(void)
{
	CHECK_EQ(between(false, 107, 0, 100, 0), 0);
	CHECK_EQ(between(false, 108, 0, 100, 0), 1);
	CHECK_EQ(between(false, 0, 0, 0, 0), 1); /* 0 < 0 is not */
	CHECK_EQ(between(false, 108, 0, 100, 9999), 1); /* sleepers do not count */
	/* the first of the least loaded others */
	setup(WF_FORK, false);
	load(1, 300, 0);
	load(2, 299, 0);
	load(3, 299, 0);
	load(0, 1024, 0);
	CHECK_EQ(place(), 2);
}

/* After, local against remote. */
static void test_zones(void)
{
	/* the remote one is more loaded by more than the margin: stay, whatever sleeps here */
	CHECK_EQ(between(true, 100, 9999, 275, 0), 0);
	CHECK_EQ(between(true, 100, 9999, 274, 0), 1);
	/* the local one is, by the margin: leave, whatever sleeps there */
	CHECK_EQ(between(true, 274, 0, 100, 9999), 1);
	CHECK_EQ(between(true, 273, 0, 100, 9999), 0);
	/* between: the load average, by the factor */
	CHECK_EQ(between(true, 100, 107, 100, 100), 0);
	CHECK_EQ(between(true, 100, 108, 100, 100), 1);
	CHECK_EQ(between(true, 100, 0, 100, 0), 1);
	/* the margin follows the domain's imbalance_pct: 125 makes it 256 */
	setup(WF_FORK, true);
	allowed = mask_range(0, 1);
	sys.domain[0].imbalance_pct = 125;
	load(0, 355, 0);
	load(1, 100, 9999);
	CHECK_EQ(place(), 0);
	load(0, 356, 0);
	CHECK_EQ(place(), 1);
}

/* After, one remote group against the next. The local CPU is out of the question. */
static s32 among(u64 runnable2, u64 avg2, u64 runnable3, u64 avg3)
{
	setup(WF_FORK, true);
	load(0, 9999, 9999);
	load(1, 200, 500);
	load(2, runnable2, avg2);
	load(3, runnable3, avg3);
	return place();
}

static void test_idlest(void)
{
	/* less by more than the margin: 200 > 25 + 174 */
	CHECK_EQ(among(25, 9999, 999, 999), 2);
	CHECK_EQ(among(26, 9999, 999, 999), 1);
	/* close: 100 * 500 > 108 * 462 */
	CHECK_EQ(among(373, 462, 999, 999), 2);
	CHECK_EQ(among(373, 463, 999, 999), 1);
	CHECK_EQ(among(374, 0, 999, 999), 1);
	/* CPU 2 won by its sleepers: the runnable load to beat is still CPU 1's */
	CHECK_EQ(among(373, 400, 373, 300), 3);
	CHECK_EQ(among(373, 400, 374, 300), 2);
	CHECK_EQ(among(373, 400, 26, 400), 2);
	CHECK_EQ(among(373, 400, 25, 9999), 3);
}

/* Loads count per capacity of the group. */
static void test_capacity(void)
{
	setup(WF_FORK, false);
	allowed = mask_range(0, 1);
	sys.group[1].capacity = 512;
	load(0, 216, 0);
	load(1, 100, 0); /* 200 per 1024 */
	CHECK_EQ(place(), 1);
	load(0, 215, 0);
	CHECK_EQ(place(), 0);
	sys.group[1].capacity = 0; /* counts as 1 */
	load(0, 1024, 0);
	CHECK_EQ(place(), 0);
}

/* An exec of a task of utilisation 200 looks for room for half of it first, a fork does not. */
static s32 spare(u32 wake_flags, bool patched, u64 spare0, u64 spare1)
{
	setup(wake_flags, patched);
	allowed = mask_range(0, 1);
	wakee.avg = (struct cw_avg){ .util_avg = 200 };
	make_busy(0, 0, (u32)(1024 - spare0));
	make_busy(1, 0, (u32)(1024 - spare1));
	load(0, 500, 500);
	load(1, 500, 500);
	return place();
}

static void test_spare_capacity(void)
{
	u32 patched;

	for (patched = 0; patched <= 1; patched++) {
		/* 108 * 300 against 100 * 324 */
		CHECK_EQ(spare(WF_EXEC, patched, 300, 323), 0);
		CHECK_EQ(spare(WF_EXEC, patched, 300, 324), 1);
		CHECK_EQ(spare(WF_FORK, patched, 300, 324), 0);
		/* room for more than 100 */
		CHECK_EQ(spare(WF_EXEC, patched, 100, 101), 1);
		CHECK_EQ(spare(WF_EXEC, patched, 100, 100), 0); /* by load */
		CHECK_EQ(spare(WF_EXEC, patched, 101, 100), 0);
		load(0, 9999, 9999);
		CHECK_EQ(place(), 0);
	}
	/* of two with as much room the first */
	setup(WF_EXEC, true);
	make_idle(2);
	make_idle(3);
	CHECK_EQ(place(), 2);
	/* the task's own part of its CPU is room for it: 108 * (1024 - (275 - 200)) > 100 * 1024 */
	setup(WF_EXEC, false);
	set_feature(CW_FEAT_UTIL_EST, false);
	allowed = mask_range(0, 1);
	wakee.avg = (struct cw_avg){ .last_update_time = 1, .util_avg = 200 };
	make_idle(1);
	make_busy(0, 0, 275);
	sys.cpu[0].avg.last_update_time = 1;
	CHECK_EQ(place(), 0);
	sys.cpu[0].avg.util_avg = 276;
	CHECK_EQ(place(), 1);
	sys.cpu[0].avg.util_avg = 275;
	wakeup.task_cpu = 2;
	CHECK_EQ(place(), 1);
}

/* Within a group the CPU of least queued load, where nothing is idle. */
static void test_cpu_of_group(void)
{
	struct cw_group group = { .span = mask_range(0, 3), .weight = 4 };

	setup(WF_FORK, false);
	load(0, 300, 0);
	load(1, 200, 900);
	load(2, 100, 999);
	load(3, 100, 0);
	CHECK_EQ(sched_balance_find_dst_group_cpu(&sys, &wakee, &allowed, &d, &group), 2);
	set_feature(CW_FEAT_IDLEST_BY_LOAD, false);
	CHECK_EQ(sched_balance_find_dst_group_cpu(&sys, &wakee, &allowed, &d, &group), 0);
}

/* Later kernels compare by type: a group with an idle CPU wins over any load. */
static void test_group_type_differs(void)
{
	setup(WF_FORK, true);
	allowed = mask_range(0, 1);
	make_idle(1);
	load(0, 0, 0);
	load(1, 0, 100);
	CHECK_EQ(place(), 0);
	set_feature(CW_FEAT_IDLEST_BY_LOAD, false);
	CHECK_EQ(place(), 1);
	/* IDLEST_LOAD_AVG alone does nothing */
	set_feature(CW_FEAT_IDLEST_LOAD_AVG, false);
	CHECK_EQ(place(), 1);
}

static const u64 period = 1 << 20;

/* While all tasks stay queued it is the load average; what sleeps leaves it at once. */
static void test_runnable_load(void)
{
	struct cw_task p = { .weight = 1024 };
	struct cw_cpu *rq = &sys.cpu[0];
	struct cw_avg *queued = &sys.runnable_load[0];
	u64 now;

	sys_plain(1, 2);
	*rq = (struct cw_cpu){ .capacity_orig = 1024 };
	init_entity_runnable_average(&p);
	attach_entity_load_avg(rq, &p);
	enqueue_runnable_load(&sys, 0, &p);
	CHECK_EQ(queued->load_avg, 1024);
	rq->load_weight = p.weight;
	rq->cfs_nr_running = 1;
	for (now = period; now <= 40 * period; now += period) {
		update_load_avg_se(now, &p, true, true);
		update_runnable_load(&sys, now, 0);
		update_cfs_rq_load_avg(now, rq, true);
		CHECK_EQ(queued->load_avg, rq->avg.load_avg);
		CHECK_EQ(queued->load_sum, rq->avg.load_sum);
	}
	dequeue_runnable_load(&sys, 0, &p);
	rq->load_weight = rq->cfs_nr_running = 0;
	CHECK_EQ(queued->load_avg, 0);
	CHECK_EQ(rq->avg.load_avg, p.avg.load_avg);
	/* after the half-life half of it is left in the load average */
	update_cfs_rq_load_avg(72 * period, rq, false);
	CHECK(rq->avg.load_avg >= p.avg.load_avg / 2 - 1 && rq->avg.load_avg <= p.avg.load_avg / 2 + 1);
	/* a remainder never turns negative */
	dequeue_runnable_load(&sys, 0, &p);
	CHECK_EQ(queued->load_avg, 0);
	CHECK_EQ(queued->load_sum, 0);
}

int main(void)
{
	test_seed_example();
	test_fork_sequence();
	test_factor();
	test_zones();
	test_idlest();
	test_capacity();
	test_spare_capacity();
	test_cpu_of_group();
	test_group_type_differs();
	test_runnable_load();
	return test_report("forkexec_load");
}
