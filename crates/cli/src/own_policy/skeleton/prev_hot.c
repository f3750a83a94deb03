/* SPDX-License-Identifier: GPL-2.0-only */
/* PREV_HOT: each of its conditions, and its threshold from both sides. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

/* CPU 0 wakes a task that ran on idle CPU 5, in the other LLC, until `away` ns ago. */
static void wake(u64 away)
{
	new_wakeup(WF_TTWU, 0, 5);
	make_idle(5);
	wakeup.now = 1000000000;
	wakee.exec_start = wakeup.now - away;
	select_task_rq_fair(&sys, &wakeup, &d);
}

static void machine(void)
{
	sys_plain(2, 4);
	sys.tunable[CW_TUNE_prev_hot_ns] = 500000;
	set_feature(CW_FEAT_PREV_HOT, true);
}

static void test_threshold(void)
{
	machine();
	wake(499999);
	EXPECT(d, 5, PREV_HOT);
	wake(500000);
	CHECK(d.reason != CW_REASON_PREV_HOT);
}

static void test_conditions(void)
{
	machine();
	set_feature(CW_FEAT_PREV_HOT, false);
	wake(0);
	CHECK(d.reason != CW_REASON_PREV_HOT);

	machine();
	wake(0);
	make_busy(5, 1024, 1024);
	select_task_rq_fair(&sys, &wakeup, &d);
	CHECK(d.reason != CW_REASON_PREV_HOT);

	machine();
	wake(0);
	allowed = mask_range(0, 3);
	select_task_rq_fair(&sys, &wakeup, &d);
	CHECK(d.reason != CW_REASON_PREV_HOT);
}

int main(void)
{
	test_threshold();
	test_conditions();
	return test_report("prev_hot");
}
