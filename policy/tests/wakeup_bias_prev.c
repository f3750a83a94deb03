/* SPDX-License-Identifier: GPL-2.0-only */
/* WAKEUP_BIAS_PREV (seed 000): its conditions, its threshold, and what it does when all is busy. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

/* Target 0 idle, previous CPU `prev` runs tasks of this estimated utilisation. */
static void wake_bias(s32 prev, u32 util_est)
{
	new_wakeup(WF_TTWU | WF_SYNC, 0, prev);
	make_busy(prev, 1024, 1024);
	sys.cpu[prev].avg.util_est = util_est;
	decide_wakeup();
}

static void test_off(void)
{
	sys_plain(2, 4);
	make_idle(2);
	wake_bias(3, 0);
	EXPECT(d, 2, IDLE_CPU);
	CHECK(!(d.notes & (CW_NOTE_BIAS_NO_CACHE | CW_NOTE_BIAS_NO_SPARE)));
}

/* Each half of the bias does what the whole does, in its own half of the cases. */
static void test_halves(void)
{
	/* prev has room, another CPU is idle: the first half keeps the task, the second does not care */
	sys_plain(2, 4);
	make_idle(2);
	set_feature(CW_FEAT_UTIL_FITS_CAPACITY, true);
	wake_bias(3, 0);
	EXPECT(d, 3, BIAS_PREV);
	set_feature(CW_FEAT_UTIL_FITS_CAPACITY, false);
	set_feature(CW_FEAT_SELECT_BIAS_PREV, true);
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
	/* nothing is idle, prev is full: the other way round */
	make_busy(2, 1024, 1024);
	wake_bias(3, 1024);
	EXPECT(d, 3, BIAS_PREV_BUSY);
	set_feature(CW_FEAT_SELECT_BIAS_PREV, false);
	set_feature(CW_FEAT_UTIL_FITS_CAPACITY, true);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
}

static void test_spare_capacity(void)
{
	sys_plain(2, 4);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	make_idle(2);
	/* three quarters of 1024 may be used */
	wake_bias(3, 768);
	EXPECT(d, 3, BIAS_PREV);
	CHECK_EQ(d.cpus_scanned, 0);
	wake_bias(3, 769);
	EXPECT(d, 2, IDLE_CPU);
	CHECK(d.notes & CW_NOTE_BIAS_NO_SPARE);

	/* the estimate of what is runnable counts, not the average with sleepers */
	wake_bias(3, 768);
	sys.cpu[3].avg.util_avg = 0;
	sys.cpu[3].avg.util_est = 769;
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
	/* the threshold, and the CPU's full capacity whatever other classes take of it */
	sys.tunable[CW_TUNE_spare_capacity_threshold] = 255;
	decide_wakeup();
	EXPECT(d, 3, BIAS_PREV);
	sys.tunable[CW_TUNE_spare_capacity_threshold] = 1024;
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
	wake_bias(3, 0);
	EXPECT(d, 3, BIAS_PREV);
	sys.tunable[CW_TUNE_spare_capacity_threshold] = 512;
	sys.cpu[3].capacity_orig = 512;
	wake_bias(3, 256);
	EXPECT(d, 3, BIAS_PREV);
	sys.cpu[3].capacity = 1;
	wake_bias(3, 256);
	EXPECT(d, 3, BIAS_PREV);
	wake_bias(3, 257);
	EXPECT(d, 2, IDLE_CPU);
}

static void test_needs_util_est(void)
{
	sys_plain(2, 4);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	set_feature(CW_FEAT_UTIL_EST, false);
	make_idle(2);
	wake_bias(3, 0);
	EXPECT(d, 2, IDLE_CPU);
	CHECK(d.notes & CW_NOTE_BIAS_NO_SPARE);
	/* an idle previous CPU needs no estimate */
	make_idle(3);
	decide_wakeup();
	EXPECT(d, 3, BIAS_PREV);
}

static void test_idle_prev(void)
{
	sys_plain(2, 4);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	sys.tunable[CW_TUNE_spare_capacity_threshold] = 1024;
	wake_bias(3, 1024);
	EXPECT(d, 3, BIAS_PREV_BUSY);
	make_sched_idle(3);
	decide_wakeup();
	EXPECT(d, 3, BIAS_PREV);

	/* the previous CPU goes before an idle target, which mainline takes */
	make_idle(3);
	new_wakeup(WF_TTWU, 0, 3);
	make_idle(0);
	set_feature(CW_FEAT_WA_IDLE, false);
	make_busy(3, 5000, 768);
	sys.tunable[CW_TUNE_spare_capacity_threshold] = 256;
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	EXPECT(d, 3, BIAS_PREV);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, false);
	decide_wakeup();
	EXPECT(d, 0, TARGET_IDLE);

	/* also when the target is the previous CPU itself */
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	new_wakeup(WF_TTWU, 3, 3);
	decide_wakeup();
	EXPECT(d, 3, BIAS_PREV);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, false);
	decide_wakeup();
	EXPECT(d, 0, IDLE_CPU);
}

static void test_needs_cache(void)
{
	sys_plain(2, 4);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	make_idle(2);
	wake_bias(5, 0);
	EXPECT(d, 2, IDLE_CPU);
	CHECK(d.notes & CW_NOTE_BIAS_NO_CACHE);
	CHECK(!(d.notes & CW_NOTE_BIAS_NO_SPARE));
	/* all busy: not the previous CPU either */
	make_busy(2, 1024, 1024);
	wake_bias(5, 0);
	EXPECT(d, 0, TARGET_BUSY);
}

static void test_needs_fit(void)
{
	/* CPUs 0-3 of capacity 512, 4-7 of 1024, one cache */
	s32 cpu;

	SYS_LEVELS(8, LEVEL_ASYM(8));
	for (cpu = 0; cpu < 8; cpu++) {
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = cpu < 4 ? 512 : 1024;
		sys.cpu[cpu].llc = 0;
	}
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	make_idle(6);
	wake_bias(3, 0); /* the task needs 100 * 1.25 */
	EXPECT(d, 3, BIAS_PREV);
	wakee.avg.util_avg = 410; /* 410 * 1280 > 512 * 1024 */
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	CHECK(d.notes & CW_NOTE_NO_FIT);
	wakee.avg.util_avg = 409;
	decide_wakeup();
	EXPECT(d, 3, BIAS_PREV);
	/* the asymmetric search ends at the target, as before the patch */
	make_busy(6, 1024, 1024);
	wakee.avg.util_avg = 410;
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
}

static void test_all_busy(void)
{
	sys_plain(2, 4);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	wake_bias(3, 1024);
	EXPECT(d, 3, BIAS_PREV_BUSY);
	CHECK_EQ(d.cpus_scanned, 4);
	/* also when the scan did not start or ended early */
	sys.llc[0].nr_idle_scan = 0;
	decide_wakeup();
	EXPECT(d, 3, BIAS_PREV_BUSY);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, false);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	new_wakeup(WF_TTWU, 3, 3);
	decide_wakeup();
	EXPECT(d, 3, TARGET_BUSY); /* the same CPU, so the rule has nothing to do */

	/* idle CPUs are still found when the previous one is full */
	sys.llc[0].nr_idle_scan = 4;
	make_idle(2);
	wake_bias(3, 1024);
	EXPECT(d, 2, IDLE_CPU);
	/* and so is the recently used one */
	make_idle(1);
	wakee.recent_used_cpu = 2;
	decide_wakeup();
	EXPECT(d, 2, RECENT_IDLE);
}

static void test_rules_after_it(void)
{
	/* the kthread rule does not ask for spare capacity */
	sys_plain(1, 4);
	set_feature(CW_FEAT_WAKEUP_BIAS_PREV, true);
	make_idle(2);
	new_wakeup(WF_TTWU, 1, 1);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	decide_wakeup();
	EXPECT(d, 1, PERCPU_KTHREAD);

	/* forks are not biased */
	new_wakeup(WF_FORK, 1, 1);
	make_busy(1, 1024, 0);
	decide_wakeup();
	EXPECT(d, 2, SLOW_PATH);
}

int main(void)
{
	test_off();
	test_halves();
	test_spare_capacity();
	test_needs_util_est();
	test_idle_prev();
	test_needs_cache();
	test_needs_fit();
	test_all_busy();
	test_rules_after_it();
	return test_report("wakeup_bias_prev");
}
