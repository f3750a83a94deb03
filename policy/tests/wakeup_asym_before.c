/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wakeups on Juno (seed 004) before the series, as the series has it, and as
 * kernels since 5.11 have it. Little CPUs 0-3 of 446, big CPUs 4 and 5 of 1024,
 * an L2 for each kind; a task fits a little CPU up to utilisation 356.
 */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

enum kernel { BEFORE, SERIES, LATER };

/* A task of `util` wakes on `this_cpu`; it last ran on `prev`. Everything is busy. */
static void setup(enum kernel kernel, s32 this_cpu, s32 prev, u32 util)
{
	s32 cpu;

	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_ASYM(8));
	sys.nr_cpus = 6;
	for (cpu = 0; cpu < 4; cpu++)
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = 446;
	sys.domain[0].span = sys.group[8].span = mask_range(0, 3);
	sys.domain[1].span = sys.group[9].span = mask_range(4, 5);
	sys.domain[2].span = mask_range(0, 5);
	sys.domain[1].weight = sys.domain[1].nr_groups = sys.group[9].weight = 2;
	sys.domain[2].weight = 6;
	for (cpu = 0; cpu < 4; cpu++)
		sys.group[cpu].capacity = sys.group[cpu].max_capacity = 446;
	sys.group[8].capacity = 4 * 446;
	sys.group[8].max_capacity = 446;
	sys.group[9].capacity = 2 * 1024;
	if (kernel == BEFORE)
		for (cpu = 0; cpu < 3; cpu++)
			sys.domain[cpu].flags |= SD_BALANCE_WAKE;
	set_feature(CW_FEAT_WAKE_CAP, kernel == BEFORE);
	set_feature(CW_FEAT_ASYM_WAKE_SCAN, kernel != BEFORE);
	set_feature(CW_FEAT_ASYM_WAKE_FITS, kernel == LATER);
	new_wakeup(WF_TTWU, this_cpu, prev);
	wakee.avg.util_avg = util;
}

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

/* 356 * 1280 is less than 446 * 1024, 357 * 1280 is not. */
static void test_wake_cap(void)
{
	setup(BEFORE, 0, 0, 356);
	CHECK(!wake_cap(&sys, &wakeup));
	setup(BEFORE, 0, 0, 357);
	CHECK(wake_cap(&sys, &wakeup));
	/* the smaller of the two CPUs counts */
	setup(BEFORE, 4, 0, 357);
	CHECK(wake_cap(&sys, &wakeup));
	setup(BEFORE, 0, 4, 357);
	CHECK(wake_cap(&sys, &wakeup));
	setup(BEFORE, 4, 5, 819);
	CHECK(!wake_cap(&sys, &wakeup));
	/* too big for every CPU, but both are as big as they get */
	setup(BEFORE, 4, 5, 1000);
	CHECK(!wake_cap(&sys, &wakeup));
	/* CPUs that differ by less than 1/8 of the biggest are alike */
	sys.cpu[5].capacity_orig = 897;
	CHECK(!wake_cap(&sys, &wakeup));
	sys.cpu[5].capacity_orig = 896;
	CHECK(wake_cap(&sys, &wakeup));
	/* only where CPUs differ, and only before the series */
	sys.asym_present = 0;
	CHECK(!wake_cap(&sys, &wakeup));
	setup(SERIES, 0, 0, 357);
	CHECK(!wake_cap(&sys, &wakeup));
	/* asleep for 32 periods of 1024 us it has become small */
	setup(BEFORE, 0, 0, 690);
	wakee.avg.last_update_time = 1ULL << 20;
	wakee.avg.util_sum = 690 * LOAD_AVG_MAX;
	sys.cpu[0].avg.last_update_time = 33ULL << 20;
	CHECK(!wake_cap(&sys, &wakeup));
}

/* A task that is too big: before it goes the slow path, to the group that it fits. */
static void test_slow_path(void)
{
	setup(BEFORE, 0, 0, 400);
	make_idle(1);
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 5, SLOW_PATH);
	CHECK(d.notes & CW_NOTE_WAKE_CAP);
	CHECK_EQ(d.groups_scanned, 2 + 2); /* clusters, big CPUs */
	/* one that fits looks in its cache only, even if the idle CPU is elsewhere */
	setup(BEFORE, 0, 0, 100);
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	CHECK(!(d.notes & CW_NOTE_WAKE_CAP));
	/* the waker has many partners: the slow path, whatever its size */
	waker.wakee_flips = 100;
	wakee.wakee_flips = 10;
	decide_wakeup();
	EXPECT(d, 5, SLOW_PATH);
	CHECK(d.notes & CW_NOTE_WAKE_WIDE);
	/* the kernel asks for no size in the cache: too big, and yet on its idle little CPU */
	setup(BEFORE, 4, 5, 1000);
	make_idle(5);
	sys.cpu[5].capacity = 300;
	decide_wakeup();
	EXPECT(d, 5, TARGET_IDLE);
	CHECK(!(d.notes & CW_NOTE_NO_FIT));
}

/* A wakeup from little CPU 0 with big CPU 5 idle: found by the search, at no other cost. */
static void test_scan(void)
{
	setup(SERIES, 0, 0, 100);
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 5, ASYM_IDLE_FITS);
	CHECK_EQ(d.groups_scanned, 0);
	CHECK_EQ(d.cpus_scanned, 6);
	/* nothing idle: the target, without a look at the cache */
	setup(SERIES, 0, 0, 100);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	CHECK_EQ(d.cpus_scanned, 6);
	/* sched-idle CPUs will do */
	make_sched_idle(3);
	decide_wakeup();
	EXPECT(d, 3, ASYM_IDLE_FITS);
	/* a hog fits nowhere: the idle CPU of most capacity */
	setup(SERIES, 0, 0, 1000);
	make_idle(1);
	make_idle(4);
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 4, ASYM_IDLE_BIGGEST);
	sys.cpu[4].capacity = 1000;
	decide_wakeup();
	EXPECT(d, 5, ASYM_IDLE_BIGGEST);
	/* the machine's other CPUs are alike: no search of the domain */
	setup(SERIES, 0, 0, 100);
	sys.cpu[0].asym_sd = CW_NONE;
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
}

/* The series bails out after its search; later kernels try the near CPUs first. */
static void test_shortcuts(void)
{
	/* target 1 is idle and so is the previous CPU 0 */
	setup(SERIES, 1, 0, 100);
	make_idle(0);
	make_idle(1);
	decide_wakeup();
	EXPECT(d, 0, ASYM_IDLE_FITS);
	setup(LATER, 1, 0, 100);
	make_idle(0);
	make_idle(1);
	decide_wakeup();
	EXPECT(d, 0, TARGET_IDLE);
	/* prev 3 is idle beside target 0, where the search starts: it finds 1 first */
	setup(SERIES, 0, 3, 100);
	make_idle(1);
	make_idle(3);
	set_feature(CW_FEAT_WA_IDLE, false);
	set_feature(CW_FEAT_WA_WEIGHT, false);
	decide_wakeup();
	EXPECT(d, 3, ASYM_IDLE_FITS); /* the target is 3 */
	CHECK_EQ(d.cpus_scanned, 1);
	/* the recent CPU is taken by the later kernel only, and noted by it only */
	setup(SERIES, 0, 0, 100);
	make_idle(1);
	make_idle(3);
	wakee.recent_used_cpu = 3;
	decide_wakeup();
	EXPECT(d, 1, ASYM_IDLE_FITS);
	CHECK_EQ(wakee.recent_used_cpu, 3);
	setup(LATER, 0, 0, 100);
	make_idle(1);
	make_idle(3);
	wakee.recent_used_cpu = 3;
	decide_wakeup();
	EXPECT(d, 3, RECENT_IDLE);
	CHECK_EQ(wakee.recent_used_cpu, 0);
	/* a per-CPU kthread's work is handed back to its CPU by the later kernel only */
	setup(SERIES, 0, 0, 100);
	make_idle(1);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	decide_wakeup();
	EXPECT(d, 1, ASYM_IDLE_FITS);
	setup(LATER, 0, 0, 100);
	make_idle(1);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	decide_wakeup();
	EXPECT(d, 0, PERCPU_KTHREAD);
}

int main(void)
{
	test_wake_cap();
	test_slow_path();
	test_scan();
	test_shortcuts();
	return test_report("wakeup_asym_before");
}
