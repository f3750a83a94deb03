/* SPDX-License-Identifier: GPL-2.0-only */
/* Wakeups where CPUs differ in capacity: 0-3 little (512), 4-7 big (1024), an LLC each. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

/* All busy; a task of utilisation `util` that ran on `prev` is woken from `this_cpu`. */
static void build(s32 this_cpu, s32 prev, u32 util)
{
	s32 cpu;

	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_ASYM(8));
	for (cpu = 0; cpu < 4; cpu++)
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = 512;
	new_wakeup(WF_TTWU | (this_cpu != prev ? WF_SYNC : 0), this_cpu, prev);
	wakee.avg.util_avg = util;
}

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

static void test_fits(void)
{
	/* 409 * 1.25 is less than 512, 410 * 1.25 is not */
	build(0, 0, 409);
	CHECK(task_fits_cpu(&sys, &wakee, 0));
	wakee.avg.util_avg = 410;
	CHECK(!task_fits_cpu(&sys, &wakee, 0));
	CHECK(task_fits_cpu(&sys, &wakee, 4));
	/* the estimate counts if it is higher, without its flag */
	wakee.avg.util_avg = 100;
	wakee.avg.util_est = 410 | UTIL_AVG_UNCHANGED;
	CHECK(!task_fits_cpu(&sys, &wakee, 0));
	wakee.avg.util_est = 409 | UTIL_AVG_UNCHANGED;
	CHECK(task_fits_cpu(&sys, &wakee, 0));
	/* the margin is a tunable, and other classes' share counts */
	sys.tunable[CW_TUNE_capacity_margin] = 1282;
	CHECK(!task_fits_cpu(&sys, &wakee, 0));
	sys.tunable[CW_TUNE_capacity_margin] = 1024;
	CHECK(task_fits_cpu(&sys, &wakee, 0));
	sys.cpu[0].capacity = 409;
	CHECK(!task_fits_cpu(&sys, &wakee, 0));
}

static void clamp_to(u32 min, u32 max)
{
	wakee.flags |= CW_TASK_UCLAMP;
	wakee.uclamp_min = min;
	wakee.uclamp_max = max;
}

static void test_clamps(void)
{
	/* capped at what the little CPU can do, it fits whatever it uses */
	build(0, 0, 900);
	clamp_to(0, 512);
	CHECK(task_fits_cpu(&sys, &wakee, 0));
	clamp_to(0, 513);
	CHECK(!task_fits_cpu(&sys, &wakee, 0));
	/* the biggest cap nothing: 900 * 1.25 is more than 1024 */
	clamp_to(0, 1024);
	CHECK(!task_fits_cpu(&sys, &wakee, 4));
	clamp_to(0, 1023);
	CHECK(task_fits_cpu(&sys, &wakee, 4));
	/* boosted beyond the little CPU, however little it uses; not beyond its cap */
	wakee.avg.util_avg = 100;
	clamp_to(513, 1024);
	CHECK_EQ(util_fits_cpu(&sys, 100, 513, 1024, 0), -1);
	CHECK(!task_fits_cpu(&sys, &wakee, 0));
	CHECK(task_fits_cpu(&sys, &wakee, 4));
	CHECK_EQ(util_fits_cpu(&sys, 100, 513, 512, 0), 1);
	CHECK_EQ(util_fits_cpu(&sys, 100, 512, 1024, 0), 1);
	CHECK_EQ(util_fits_cpu(&sys, 513, 513, 1024, 0), 0);
	/* the target is idle, but for the boost the task goes to a big CPU */
	build(1, 1, 100);
	make_idle(1);
	make_idle(6);
	clamp_to(600, 1024);
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	wakee.flags &= ~(u32)CW_TASK_UCLAMP;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	/* only little ones idle: the one that lacks nothing but performance comes first */
	clamp_to(600, 1024);
	make_busy(6, 1024, 1024);
	make_idle(2);
	sys.cpu[1].capacity = 100;
	decide_wakeup();
	EXPECT(d, 2, ASYM_IDLE_BIGGEST);
}

static void test_shortcuts_need_fit(void)
{
	/* target */
	build(1, 1, 410);
	make_idle(1);
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 5, ASYM_IDLE_FITS);
	CHECK(d.notes & CW_NOTE_NO_FIT);
	wakee.avg.util_avg = 409;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	/* previous CPU */
	build(0, 2, 410);
	make_idle(2);
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 5, ASYM_IDLE_FITS);
	wakee.avg.util_avg = 409;
	decide_wakeup();
	EXPECT(d, 2, PREV_IDLE);
	/* kthread's CPU */
	build(0, 0, 410);
	make_idle(5);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	decide_wakeup();
	EXPECT(d, 5, ASYM_IDLE_FITS);
	wakee.avg.util_avg = 409;
	decide_wakeup();
	EXPECT(d, 0, PERCPU_KTHREAD);
	/* recently used CPU */
	build(0, 0, 410);
	make_idle(3);
	make_idle(5);
	wakee.recent_used_cpu = 3;
	decide_wakeup();
	EXPECT(d, 5, ASYM_IDLE_FITS);
	wakee.recent_used_cpu = 3;
	wakee.avg.util_avg = 409;
	decide_wakeup();
	EXPECT(d, 3, RECENT_IDLE);
}

static void test_scan(void)
{
	/* from the target itself, over both caches; the first that fits */
	build(2, 2, 410);
	make_idle(0);
	make_idle(3);
	make_idle(6);
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	CHECK_EQ(d.cpus_scanned, 5); /* 2..6 */
	wakee.avg.util_avg = 100;
	decide_wakeup();
	EXPECT(d, 3, ASYM_IDLE_FITS);
	make_sched_idle(3);
	decide_wakeup();
	EXPECT(d, 3, ASYM_IDLE_FITS);

	/* none fits: the one of most capacity, the first of equals */
	wakee.avg.util_avg = 1000;
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_BIGGEST);
	CHECK_EQ(d.cpus_scanned, 8);
	make_idle(7);
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_BIGGEST);
	sys.cpu[6].capacity = 900; /* what other classes leave */
	decide_wakeup();
	EXPECT(d, 7, ASYM_IDLE_BIGGEST);
	/* among the allowed */
	allowed = mask_range(0, 4);
	decide_wakeup();
	EXPECT(d, 3, ASYM_IDLE_BIGGEST);

	/* nothing idle, and the SIS_UTIL limit has no say */
	build(2, 2, 100);
	sys.llc[0].nr_idle_scan = 0;
	decide_wakeup();
	EXPECT(d, 2, TARGET_BUSY);
	CHECK(!(d.notes & CW_NOTE_SIS_UTIL_STOP));
	make_idle(6);
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
}

static void test_sync_before_fit(void)
{
	/* asleep for 32 periods of 1024 us: 800 is now about 400 and fits a little CPU */
	build(1, 1, 800);
	make_idle(1);
	wakee.avg.last_update_time = 1ULL << 20;
	wakee.avg.util_sum = 800 * LOAD_AVG_MAX;
	sys.cpu[1].avg.last_update_time = 33ULL << 20;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	CHECK(wakee.avg.util_avg > 395 && wakee.avg.util_avg < 410);
	/* where all CPUs are alike nobody asks, so nothing is decayed */
	sys_plain(1, 4);
	make_idle(1);
	new_wakeup(WF_TTWU, 1, 1);
	wakee.avg.util_avg = 800;
	sys.cpu[1].avg.last_update_time = 33ULL << 20;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	CHECK_EQ(wakee.avg.util_avg, 800);
}

int main(void)
{
	test_fits();
	test_clamps();
	test_shortcuts_need_fit();
	test_scan();
	test_sync_before_fit();
	return test_report("wakeup_asym");
}
