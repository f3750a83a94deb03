/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPU a wakeup searches around: waker and wakee, wake_affine(), domains and flags. */
#include "test.h"

#include "track/upkeep.h"
#include "wakeup/wakeup.h"

static struct cw_decision d;

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

static void test_record_wakee(void)
{
	const u64 second = 1000000000;

	sys_plain(2, 4);
	new_wakeup(WF_TTWU, 0, 1);
	waker.wakee_flips = 8;
	waker.wakee_flip_decay_ts = 500;
	wakeup.now = 500 + second; /* not yet later than a second */
	record_wakee(&wakeup);
	CHECK_EQ(waker.wakee_flips, 8);
	CHECK_EQ(waker.wakee_flip_decay_ts, 500);

	wakeup.now++;
	record_wakee(&wakeup);
	CHECK_EQ(waker.wakee_flips, 4);
	CHECK_EQ(waker.wakee_flip_decay_ts, 501 + second);

	waker.last_wakee = 7;
	record_wakee(&wakeup);
	CHECK_EQ(waker.wakee_flips, 5);
	CHECK_EQ(waker.last_wakee, 2);
	record_wakee(&wakeup);
	CHECK_EQ(waker.wakee_flips, 5);
}

static void test_wake_wide(void)
{
	static const struct {
		u32 waker, wakee;
		bool wide;
	} cases[] = {
		{ 0, 0, false },   { 16, 3, false }, /* fewer flips than the 4 CPUs of the LLC */
		{ 15, 4, false },  { 16, 4, true },  { 4, 16, true },
		{ 19, 5, false },  { 20, 5, true },
	};
	u32 i;

	sys_plain(2, 4);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		new_wakeup(WF_TTWU, 0, 5);
		waker.wakee_flips = cases[i].waker;
		wakee.wakee_flips = cases[i].wakee;
		CHECK_EQ(wake_wide(&sys, &wakeup), cases[i].wide);
	}

	/* the idle waker's CPU would be searched, but for the many partners */
	new_wakeup(WF_TTWU | WF_SYNC, 0, 5);
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	CHECK(!(d.notes & CW_NOTE_WAKE_WIDE));
	waker.wakee_flips = 16;
	wakee.wakee_flips = 4;
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	CHECK(d.notes & CW_NOTE_WAKE_WIDE);
	CHECK(!(d.notes & CW_NOTE_WAKE_AFFINE_TRIED));
}

static void test_current_cpu(void)
{
	sys_plain(1, 4);
	new_wakeup(WF_TTWU | WF_CURRENT_CPU, 2, 1);
	make_idle(1);
	decide_wakeup();
	EXPECT(d, 2, CURRENT_CPU);

	allowed = mask_range(0, 1); /* not allowed on the waker's CPU: an ordinary wakeup */
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	CHECK(d.notes & CW_NOTE_AFFINITY);
	CHECK(!(d.notes & CW_NOTE_WAKE_AFFINE_TRIED));
}

static void test_wake_affine_idle(void)
{
	/* interrupt on an idle CPU, same cache: the idle previous CPU, else the interrupted one */
	sys_plain(2, 4);
	make_idle(0);
	make_idle(1);
	new_wakeup(WF_TTWU, 0, 1);
	decide_wakeup();
	CHECK_EQ(d.target, 1);
	CHECK(d.notes & CW_NOTE_WA_IDLE);
	make_busy(1, 1024, 1024);
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	CHECK(d.notes & CW_NOTE_WA_IDLE);

	/* another cache: not by idleness, and the previous CPU if it is idle */
	new_wakeup(WF_TTWU, 0, 5);
	CHECK_EQ(wake_affine_idle(&sys, &wakeup), -1);
	make_idle(5);
	CHECK_EQ(wake_affine_idle(&sys, &wakeup), 5);

	/* a sync waker alone on its CPU leaves it, unless another task waits there */
	make_busy(0, 1024, 1024);
	CHECK_EQ(wake_affine_idle(&sys, &wakeup), 5);
	wakeup.wake_flags |= WF_SYNC;
	CHECK_EQ(wake_affine_idle(&sys, &wakeup), 0);
	sys.cpu[0].nr_running = 2;
	CHECK_EQ(wake_affine_idle(&sys, &wakeup), 5);
	make_busy(5, 1024, 1024);
	CHECK_EQ(wake_affine_idle(&sys, &wakeup), -1);

	/* a SCHED_IDLE task is not idleness here */
	make_sched_idle(5);
	CHECK_EQ(wake_affine_idle(&sys, &wakeup), -1);

	/* without the feature load decides: 0 carries more */
	new_wakeup(WF_TTWU | WF_SYNC, 0, 5);
	make_busy(0, 2000, 1024);
	make_busy(5, 1024, 1024);
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	set_feature(CW_FEAT_WA_IDLE, false);
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	CHECK(!(d.notes & (CW_NOTE_WA_IDLE | CW_NOTE_WA_WEIGHT)));
}

/* Is the waker's CPU 0 chosen by the load of queued tasks over the previous CPU 5? */
static bool effective_load_chooses_waker(u64 this_load, u64 prev_load)
{
	sys.runnable_load[0].load_avg = this_load;
	sys.runnable_load[5].load_avg = prev_load;
	decide_wakeup();
	return d.target == 0;
}

static void test_wake_affine_effective_load(void)
{
	sys_plain(2, 4);
	set_feature(CW_FEAT_WA_EFFECTIVE_LOAD, true);
	new_wakeup(WF_TTWU, 0, 5);
	wakee.avg.load_avg = 100;
	cpu_domain(&sys, 0, 1)->imbalance_pct = 125; /* 112 % of the previous CPU's load */

	/* 100 * (1020 + 100) = 112 * 1000: a tie goes to the waker's CPU */
	CHECK(effective_load_chooses_waker(1020, 1000));
	CHECK(d.notes & CW_NOTE_WA_WEIGHT);
	CHECK(!effective_load_chooses_waker(1021, 1000));
	CHECK(!(d.notes & (CW_NOTE_WA_WEIGHT | CW_NOTE_WA_IDLE)));
	CHECK(d.notes & CW_NOTE_WAKE_AFFINE_TRIED);
	/* an idle previous CPU does not keep the task, and sleepers' load does not count */
	make_idle(5);
	sys.cpu[0].avg.load_avg = 9999;
	CHECK(effective_load_chooses_waker(0, 0));
	CHECK(!effective_load_chooses_waker(1, 0));

	/* a sync waker takes its load with it: then nothing is queued, and the capacities decide */
	wakeup.wake_flags |= WF_SYNC;
	waker.avg.load_avg = 300;
	CHECK(effective_load_chooses_waker(300, 0));
	CHECK(!effective_load_chooses_waker(301, 0));
	sys.cpu[0].capacity = sys.cpu[0].capacity_orig = 512;
	CHECK(!effective_load_chooses_waker(300, 0));
	CHECK(!effective_load_chooses_waker(300, 5000));
	sys.cpu[0].capacity = 915; /* 112 * 915 = 102480, 100 * 1024 = 102400 */
	CHECK(effective_load_chooses_waker(300, 0));
	sys.cpu[0].capacity = 914;
	CHECK(!effective_load_chooses_waker(300, 0));
}

/* Is the waker's CPU 0 chosen by weight over the previous CPU 5? */
static bool weight_chooses_waker(u32 this_load, u32 prev_load)
{
	make_busy(0, this_load, 1024);
	make_busy(5, prev_load, 1024);
	return wake_affine_weight(&sys, &wakeup, cpu_domain(&sys, 0, 1)) == 0;
}

static void test_wake_affine_weight(void)
{
	/* the task carries 100; the previous CPU counts (117 - 100) / 2 = 8 % more */
	sys_plain(2, 4);
	new_wakeup(WF_TTWU, 0, 5);
	set_feature(CW_FEAT_WA_IDLE, false);
	/* (400 + 100) * 100 = 50000 against (p - 100) * 108: 49896 and 50004 */
	CHECK(!weight_chooses_waker(400, 562));
	CHECK(weight_chooses_waker(400, 563));
	/* without the bias 500 against p - 100 */
	set_feature(CW_FEAT_WA_BIAS, false);
	CHECK(!weight_chooses_waker(400, 600));
	CHECK(weight_chooses_waker(400, 601));
	/* a sync waker's 100 goes, and it wins a tie */
	wakeup.wake_flags |= WF_SYNC;
	CHECK(weight_chooses_waker(500, 600));
	CHECK(!weight_chooses_waker(501, 600));
	/* nothing left on its CPU */
	CHECK(weight_chooses_waker(99, 0));
	CHECK(!weight_chooses_waker(100, 0));
	/* the previous CPU has half the capacity: 250 weighs there as 500 here */
	wakeup.wake_flags &= ~WF_SYNC;
	sys.cpu[5].capacity = 512;
	CHECK(!weight_chooses_waker(400, 350));
	CHECK(weight_chooses_waker(400, 351));

	decide_wakeup();
	CHECK_EQ(d.target, 0);
	CHECK(d.notes & CW_NOTE_WA_WEIGHT);
	set_feature(CW_FEAT_WA_WEIGHT, false);
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	CHECK(d.notes & CW_NOTE_WAKE_AFFINE_TRIED);
}

static void test_domains(void)
{
	/* same CPU: nothing to weigh */
	sys_plain(2, 4);
	new_wakeup(WF_TTWU, 3, 3);
	decide_wakeup();
	CHECK_EQ(d.target, 3);
	CHECK(!(d.notes & CW_NOTE_WAKE_AFFINE_TRIED));

	/* waker not allowed */
	new_wakeup(WF_TTWU | WF_SYNC, 0, 5);
	allowed = mask_range(4, 7);
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	CHECK(d.notes & CW_NOTE_AFFINITY);

	/* the only domain with both CPUs has no SD_WAKE_AFFINE, as nodes farther than 30 have */
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_NUMA_FAR(8));
	new_wakeup(WF_TTWU | WF_SYNC, 0, 5);
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	CHECK(!(d.notes & CW_NOTE_WAKE_AFFINE_TRIED));

	/* a CPU without domains, and a previous CPU in no common one */
	sys.cpu[0].nr_sd = 0;
	decide_wakeup();
	EXPECT(d, 5, TARGET_BUSY);
}

static void test_balance_wake(void)
{
	/* SD_BALANCE_WAKE asks for the slow path; wake_affine goes before it */
	sys_plain(2, 4);
	sys.domain[0].flags |= SD_BALANCE_WAKE;
	make_idle(3);
	new_wakeup(WF_TTWU, 0, 1);
	wakee.wakee_flips = 4;
	waker.wakee_flips = 16;
	decide_wakeup();
	EXPECT(d, 3, SLOW_PATH);
	waker.wakee_flips = 0;
	decide_wakeup();
	EXPECT(d, 3, IDLE_CPU);
	/* a common domain higher up too */
	make_idle(6);
	new_wakeup(WF_TTWU, 0, 5);
	decide_wakeup();
	EXPECT(d, 6, IDLE_CPU);
	/* affine, but the previous CPU is beyond the domains with SD_WAKE_AFFINE */
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_NUMA_FAR(8));
	sys.domain[0].flags |= SD_BALANCE_WAKE;
	make_idle(3);
	new_wakeup(WF_TTWU, 0, 5);
	decide_wakeup();
	EXPECT(d, 3, SLOW_PATH);
}

/* SYNC_ON_WAKER: the waker's CPU, if the waker is alone there and known to sleep, though prev idles. */
static void test_sync_on_waker(void)
{
	sys_plain(2, 4);
	set_feature(CW_FEAT_SYNC_ON_WAKER, true);
	make_idle(1);
	new_wakeup(WF_TTWU | WF_SYNC, 0, 1);
	/* it slept 10 us after the first such wakeup, then sooner */
	note_sync_wakeup(&waker, 5000);
	track_sleep(&sys, &waker, 15000);
	decide_wakeup();
	EXPECT(d, 1, PREV_IDLE);
	note_sync_wakeup(&waker, 5000);
	note_sync_wakeup(&waker, 6000);
	track_sleep(&sys, &waker, 14999);
	decide_wakeup();
	EXPECT(d, 0, SYNC_WAKER);

	/* another task waits there, or is on its way */
	sys.cpu[0].nr_running = 2;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	sys.cpu[0].nr_running = 1;
	sys.cpu[0].ttwu_pending = 1;
	decide_wakeup();
	EXPECT(d, 1, PREV_IDLE);
	sys.cpu[0].ttwu_pending = 0;

	/* a waker that went on last time, an interrupt, no promise, a CPU that is not allowed */
	waker.flags = 0;
	decide_wakeup();
	EXPECT(d, 1, PREV_IDLE);
	waker.flags = CW_TASK_SLEEPS_AFTER_SYNC;
	wakeup.in_task = 0;
	decide_wakeup();
	EXPECT(d, 1, PREV_IDLE);
	wakeup.in_task = 1;
	wakeup.wake_flags = WF_TTWU;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	wakeup.wake_flags = WF_TTWU | WF_SYNC;
	allowed = mask_range(1, 7);
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);

	/* the task leaves its cache, also for a waker with many wakees */
	make_idle(5);
	new_wakeup(WF_TTWU | WF_SYNC, 0, 5);
	waker.flags = CW_TASK_SLEEPS_AFTER_SYNC;
	waker.wakee_flips = 1000;
	wakee.wakee_flips = 100;
	decide_wakeup();
	EXPECT(d, 0, SYNC_WAKER);
	/* but not its node */
	sys.cpu[5].node = 1;
	decide_wakeup();
	EXPECT(d, 5, TARGET_IDLE);
	sys.cpu[5].node = 0;
	/* nor a CPU that is big enough for one that is not */
	sys.asym_present = 1;
	sys.cpu[0].capacity = sys.cpu[0].capacity_orig = 512;
	wakee.avg.util_avg = 600;
	decide_wakeup();
	CHECK(d.reason != CW_REASON_SYNC_WAKER);

	/* off in every kernel */
	sys_plain(2, 4);
	make_idle(1);
	new_wakeup(WF_TTWU | WF_SYNC, 0, 1);
	waker.flags = CW_TASK_SLEEPS_AFTER_SYNC;
	set_feature(CW_FEAT_SYNC_ON_WAKER, false);
	decide_wakeup();
	EXPECT(d, 1, PREV_IDLE);
}

static void test_record(void)
{
	sys_plain(2, 4);
	make_idle(5);
	new_wakeup(WF_TTWU, 0, 5);
	decide_wakeup();
	CHECK_EQ(d.now, 1000);
	CHECK_EQ(d.pid, 2);
	CHECK_EQ(d.this_cpu, 0);
	CHECK_EQ(d.prev_cpu, 5);
	CHECK_EQ(d.target, 5);
	CHECK_EQ(d.event, WF_TTWU);
	CHECK_EQ(d.cpus_scanned, 0);
	CHECK_EQ(d.groups_scanned, 0);
	CHECK_EQ(d.notes, CW_NOTE_WAKE_AFFINE_TRIED | CW_NOTE_WA_IDLE);
}

int main(void)
{
	test_record_wakee();
	test_wake_wide();
	test_current_cpu();
	test_wake_affine_idle();
	test_wake_affine_effective_load();
	test_wake_affine_weight();
	test_domains();
	test_balance_wake();
	test_sync_on_waker();
	test_record();
	return test_report("wakeup_affine");
}
