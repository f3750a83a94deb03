/* SPDX-License-Identifier: GPL-2.0-only */
/* The estimate of a task's utilisation, and its sum over a runqueue. */
#include "test.h"

#include "track/pelt.h"

static struct cw_cpu *rq;
static struct cw_task p;

/* A task that has run alone, so that it is runnable for as long as it runs, goes to sleep. */
static void build(u32 estimate, u32 util)
{
	sys_plain(1, 2);
	rq = &sys.cpu[0];
	p = (struct cw_task){ .pid = 1, .weight = 1024 };
	p.avg.util_avg = p.avg.runnable_avg = util;
	p.avg.util_est = estimate;
}

static u32 update(void)
{
	util_est_update(&sys, rq, &p);
	return p.avg.util_est;
}

static void test_up_at_once(void)
{
	build(100, 300);
	CHECK_EQ(update(), 300 | UTIL_AVG_UNCHANGED);
	build(0, 1);
	CHECK_EQ(update(), 1 | UTIL_AVG_UNCHANGED);
	/* up counts whatever the CPU's capacity, and whether it had to wait */
	build(100, 600);
	rq->capacity_orig = 446;
	p.avg.runnable_avg = 1024;
	CHECK_EQ(update(), 600 | UTIL_AVG_UNCHANGED);
}

static void test_down_by_a_quarter(void)
{
	/* (4 * 400 - 100) / 4 = 375 */
	build(400, 300);
	CHECK_EQ(update(), 375 | UTIL_AVG_UNCHANGED);
	/* (4 * 400 - 399) / 4 = 300.25 */
	build(400, 1);
	CHECK_EQ(update(), 300 | UTIL_AVG_UNCHANGED);
	/* again and again it comes down to the margin above the new value: 10 is 1 % of 1024 */
	build(1024, 0);
	while (task_util_est_raw(&p) >= 10) {
		u32 before = task_util_est_raw(&p);

		p.avg.util_est &= ~UTIL_AVG_UNCHANGED;
		update();
		CHECK_EQ(task_util_est_raw(&p), before - (before + 3) / 4);
	}
	p.avg.util_est &= ~UTIL_AVG_UNCHANGED;
	CHECK_EQ(update(), 9 | UTIL_AVG_UNCHANGED);
}

static void test_margin(void)
{
	/* a difference of 9 is not worth it, one of 10 is: (4 * 400 - 10) / 4 = 397.5 */
	build(400, 391);
	CHECK_EQ(update(), 400 | UTIL_AVG_UNCHANGED);
	build(400, 390);
	CHECK_EQ(update(), 397 | UTIL_AVG_UNCHANGED);
	build(400, 400);
	CHECK_EQ(update(), 400 | UTIL_AVG_UNCHANGED);
}

static void test_unchanged(void)
{
	struct cw_avg before;

	/* its utilisation has not been updated since the last time: nothing to learn */
	build(400 | UTIL_AVG_UNCHANGED, 100);
	CHECK_EQ(update(), 400 | UTIL_AVG_UNCHANGED);
	build(100 | UTIL_AVG_UNCHANGED, 400);
	CHECK_EQ(update(), 100 | UTIL_AVG_UNCHANGED);
	/* an update within a period leaves the flag, one that moves the averages clears it */
	p.avg.last_update_time = 1 << 20;
	before = p.avg;
	update_load_avg_se((1 << 20) + (1000 << 10), &p, true, true);
	CHECK_EQ(p.avg.util_est, before.util_est);
	update_load_avg_se((1 << 20) + (1024 << 10), &p, true, true);
	CHECK_EQ(p.avg.util_est, 100);
}

static void test_beyond_capacity(void)
{
	/* more than the CPU has: the utilisation there is not its own, nothing is learnt */
	build(700, 447);
	rq->capacity_orig = 446;
	CHECK_EQ(update(), 700);
	build(700, 446);
	rq->capacity_orig = 446;
	CHECK_EQ(update(), (700 * 4 - 254) / 4 | UTIL_AVG_UNCHANGED);
	/* what other classes take of it does not matter */
	build(700, 446);
	rq->capacity = 100;
	CHECK_EQ(update(), (700 * 4 - 254) / 4 | UTIL_AVG_UNCHANGED);
}

static void test_had_to_wait(void)
{
	/* runnable by more than the margin longer than it ran: keep the estimate, but note it */
	build(400, 300);
	p.avg.runnable_avg = 311;
	CHECK_EQ(update(), 400 | UTIL_AVG_UNCHANGED);
	build(400, 300);
	p.avg.runnable_avg = 310;
	CHECK_EQ(update(), 375 | UTIL_AVG_UNCHANGED);
}

static void test_sum(void)
{
	build(400 | UTIL_AVG_UNCHANGED, 300);
	rq->avg.util_est = 50;
	util_est_enqueue(&sys, rq, &p);
	CHECK_EQ(rq->avg.util_est, 450); /* without the flag */
	util_est_dequeue(&sys, rq, &p);
	CHECK_EQ(rq->avg.util_est, 50);
	/* more leaves than came: 0, not 4 billion */
	util_est_dequeue(&sys, rq, &p);
	CHECK_EQ(rq->avg.util_est, 0);
}

static void test_feature(void)
{
	build(100, 300);
	set_feature(CW_FEAT_UTIL_EST, false);
	CHECK_EQ(update(), 100);
	rq->avg.util_est = 50;
	util_est_enqueue(&sys, rq, &p);
	CHECK_EQ(rq->avg.util_est, 50);
	util_est_dequeue(&sys, rq, &p);
	CHECK_EQ(rq->avg.util_est, 50);
}

int main(void)
{
	test_up_at_once();
	test_down_by_a_quarter();
	test_margin();
	test_unchanged();
	test_beyond_capacity();
	test_had_to_wait();
	test_sum();
	test_feature();
	return test_report("pelt_util_est");
}
