/* SPDX-License-Identifier: GPL-2.0-only */
/* The averages of a runqueue: what comes and goes with tasks, and the clock that they follow. */
#include "test.h"

#include "track/pelt.h"

#define PERIOD_NS (1024ULL << 10)

static struct cw_cpu rq;
static struct cw_task p;

/* A runqueue 100 us into a period, with one task of nice 0 that has run there for `periods`. */
static void build(u64 periods)
{
	rq = (struct cw_cpu){ .capacity = 1024, .capacity_orig = 1024, .load_weight = 1024 };
	rq.cfs_nr_running = rq.nr_running = 1;
	rq.avg.last_update_time = PERIOD_NS;
	update_cfs_rq_load_avg(PERIOD_NS * (periods + 1) + (100 << 10), &rq, true);
}

/* A task that is new to the runqueue, with these averages. */
static void build_task(u32 weight, u32 load, u32 runnable, u32 util)
{
	p = (struct cw_task){ .pid = 1, .weight = weight };
	p.avg.load_avg = load;
	p.avg.runnable_avg = runnable;
	p.avg.util_avg = util;
}

static void test_runqueue_signals(void)
{
	/* 32 periods: 511 + 22848 us as for a task, and 100 more; divider 46718 + 100 */
	build(32);
	CHECK_EQ(rq.avg.period_contrib, 100);
	CHECK_EQ(rq.avg.util_sum, 1024 * 23459);
	CHECK_EQ(rq.avg.util_avg, 1024 * 23459 / 46818);
	/* load is the weight of all, runnable their number */
	build(0);
	rq.load_weight = 3 * 1024 + 335;
	rq.cfs_nr_running = 4;
	update_cfs_rq_load_avg(rq.avg.last_update_time + 345 * PERIOD_NS, &rq, true);
	CHECK(rq.avg.load_avg >= 3404 && rq.avg.load_avg <= 3407); /* of 3407 */
	CHECK(rq.avg.runnable_avg >= 4092 && rq.avg.runnable_avg <= 4096);
	CHECK(rq.avg.util_avg >= 1023 && rq.avg.util_avg <= 1024);
	/* without load nothing is runnable or running, whatever the host says */
	build(0);
	rq.load_weight = 0;
	rq.avg = (struct cw_avg){ .last_update_time = PERIOD_NS };
	update_cfs_rq_load_avg(32 * PERIOD_NS, &rq, true);
	CHECK_EQ(rq.avg.runnable_sum, 0);
	CHECK_EQ(rq.avg.util_sum, 0);
	/* nothing changes before a us has passed */
	CHECK(!update_cfs_rq_load_avg(rq.avg.last_update_time + 1023, &rq, true));
}

static void test_attach(void)
{
	struct cw_avg before;

	build(32);
	before = rq.avg;
	build_task(1024, 400, 300, 200);
	attach_entity_load_avg(&rq, &p);
	CHECK_EQ(rq.avg.load_avg, before.load_avg + 400);
	CHECK_EQ(rq.avg.runnable_avg, before.runnable_avg + 300);
	CHECK_EQ(rq.avg.util_avg, before.util_avg + 200);
	/* sums restart from the averages at the runqueue's place in its period */
	CHECK_EQ(p.avg.last_update_time, rq.avg.last_update_time);
	CHECK_EQ(p.avg.period_contrib, 100);
	CHECK_EQ(p.avg.util_sum, 200 * 46818);
	CHECK_EQ(p.avg.runnable_sum, 300 * 46818);
	CHECK_EQ(p.avg.load_sum, 400 * 46818 / 1024);
	CHECK_EQ(rq.avg.util_sum, before.util_sum + 200 * 46818);
	CHECK_EQ(rq.avg.runnable_sum, before.runnable_sum + 300 * 46818);
	CHECK_EQ(rq.avg.load_sum, before.load_sum + 1024 * (400 * 46818 / 1024));
	/* and detaching leaves what was there */
	detach_entity_load_avg(&rq, &p);
	CHECK_EQ(memcmp(&rq.avg, &before, sizeof(before)), 0);
}

/* A load sum is never 0 while the task weighs something, or its load could not grow by weight. */
static void test_attach_edges(void)
{
	build(32);
	build_task(88761, 1, 0, 0); /* nice -20: 1 * 46818 is less than its weight */
	attach_entity_load_avg(&rq, &p);
	CHECK_EQ(p.avg.load_sum, 1);
	build_task(0, 10, 0, 0);
	attach_entity_load_avg(&rq, &p);
	CHECK_EQ(p.avg.load_sum, 10 * 46818);
}

/* Attached tasks and the runqueue decay in step: after any time the one is the sum of the others. */
static void test_in_step(void)
{
	static const u32 steps[] = { 3, 1021, 1024, 5000, 100, 32768, 2047 };
	struct cw_task a, b;
	u32 i;

	build(0);
	rq.load_weight = 2048 + 512;
	rq.cfs_nr_running = 2;
	rq.avg = (struct cw_avg){ .last_update_time = PERIOD_NS };
	build_task(2048, 900, 500, 300);
	attach_entity_load_avg(&rq, &p);
	a = p;
	build_task(512, 70, 200, 150);
	attach_entity_load_avg(&rq, &p);
	b = p;
	for (i = 0; i < 200; i++) {
		u64 now = rq.avg.last_update_time + ((u64)steps[i % 7] << 10);
		s64 util, load, runnable;

		/* a runs, b waits */
		update_load_avg_se(now, &a, true, true);
		update_load_avg_se(now, &b, true, false);
		update_cfs_rq_load_avg(now, &rq, true);
		util = (s64)rq.avg.util_avg - (s64)(a.avg.util_avg + b.avg.util_avg);
		load = (s64)rq.avg.load_avg - (s64)(a.avg.load_avg + b.avg.load_avg);
		runnable = (s64)rq.avg.runnable_avg - (s64)(a.avg.runnable_avg + b.avg.runnable_avg);
		/* each of the averages rounds down once; a task's load rounds by its weight at each boundary */
		CHECK(util >= -2 && util <= 2);
		CHECK(runnable >= -2 && runnable <= 2);
		CHECK(load >= -4 && load <= 4);
	}
}

static void test_detach_edges(void)
{
	/* a task that counts for more than is there takes all, not more */
	build(32);
	build_task(1024, 5000, 5000, 5000);
	p.avg.util_sum = ~0u;
	p.avg.runnable_sum = p.avg.load_sum = 1ULL << 40;
	detach_entity_load_avg(&rq, &p);
	CHECK_EQ(rq.avg.util_avg, 0);
	CHECK_EQ(rq.avg.util_sum, 0);
	CHECK_EQ(rq.avg.load_avg, 0);
	CHECK_EQ(rq.avg.load_sum, 0);
	CHECK_EQ(rq.avg.runnable_avg, 0);
	CHECK_EQ(rq.avg.runnable_sum, 0);
	/* a sum never falls below what its average stands for at the start of a period */
	build(32);
	build_task(1024, 0, 0, 0);
	p.avg.util_sum = ~0u;
	p.avg.runnable_sum = p.avg.load_sum = 1ULL << 40;
	detach_entity_load_avg(&rq, &p);
	CHECK_EQ(rq.avg.util_sum, rq.avg.util_avg * 46718);
	CHECK_EQ(rq.avg.runnable_sum, rq.avg.runnable_avg * 46718);
	CHECK_EQ(rq.avg.load_sum, rq.avg.load_avg * 46718);
}

static void test_removed(void)
{
	struct cw_avg before;
	u64 now;

	build(32);
	before = rq.avg;
	build_task(1024, 400, 300, 200);
	attach_entity_load_avg(&rq, &p);
	/* the sleeper goes: only a note is left, the averages stay until the next update */
	remove_entity_load_avg(&rq, &p);
	CHECK_EQ(rq.removed.nr, 1);
	CHECK_EQ(rq.removed.util_avg, 200);
	CHECK_EQ(rq.avg.util_avg, before.util_avg + 200);
	/* a second one adds to the note */
	p.avg.load_avg = 7;
	p.avg.runnable_avg = 6;
	p.avg.util_avg = 5;
	remove_entity_load_avg(&rq, &p);
	CHECK_EQ(rq.removed.nr, 2);
	CHECK_EQ(rq.removed.load_avg, 407);
	CHECK_EQ(rq.removed.runnable_avg, 306);
	CHECK_EQ(rq.removed.util_avg, 205);
	/* the next update subtracts it, though no time has passed */
	now = rq.avg.last_update_time;
	CHECK(update_cfs_rq_load_avg(now, &rq, true));
	CHECK_EQ(rq.removed.nr, 0);
	CHECK_EQ(rq.avg.load_avg, before.load_avg - 7);
	CHECK_EQ(rq.avg.runnable_avg, before.runnable_avg - 6);
	CHECK_EQ(rq.avg.util_avg, before.util_avg - 5);
	CHECK_EQ(rq.avg.util_sum, before.util_sum - 5 * 46818);
	/* once: a further update at the same time changes nothing */
	before = rq.avg;
	CHECK(!update_cfs_rq_load_avg(now, &rq, true));
	CHECK_EQ(memcmp(&rq.avg, &before, sizeof(before)), 0);
}

/* A sleeper that moves is first decayed to where its old runqueue is, without touching that. */
static void test_removed_is_synced(void)
{
	struct cw_avg before;

	build(32);
	build_task(1024, 400, 300, 200);
	attach_entity_load_avg(&rq, &p);
	rq.load_weight = rq.cfs_nr_running = 0;
	update_cfs_rq_load_avg(rq.avg.last_update_time + 32 * PERIOD_NS, &rq, false);
	before = rq.avg;
	CHECK_EQ(p.avg.util_avg, 200);
	remove_entity_load_avg(&rq, &p);
	CHECK_EQ(p.avg.last_update_time, rq.avg.last_update_time);
	/* half, and 99.99 rounds down */
	CHECK_EQ(rq.removed.util_avg, 99);
	CHECK_EQ(rq.removed.runnable_avg, 149);
	CHECK_EQ(rq.removed.load_avg, 199);
	CHECK_EQ(memcmp(&rq.avg, &before, sizeof(before)), 0);
	/* more noted than there is: nothing wraps */
	rq.removed.load_avg = rq.removed.util_avg = rq.removed.runnable_avg = 1 << 20;
	update_cfs_rq_load_avg(rq.avg.last_update_time, &rq, false);
	CHECK_EQ(rq.avg.util_avg, 0);
	CHECK_EQ(rq.avg.util_sum, 0);
	CHECK_EQ(rq.avg.load_sum, 0);
	CHECK_EQ(rq.avg.runnable_sum, 0);
}

static void test_new_task(void)
{
	p = (struct cw_task){ .pid = 1, .weight = 335 };
	init_entity_runnable_average(&p);
	CHECK_EQ(p.avg.load_avg, 335);
	CHECK_EQ(p.avg.util_avg, 0);
	/* on an idle CPU half of its capacity */
	build(0);
	rq.avg.util_avg = 0;
	rq.capacity_orig = 446;
	post_init_entity_util_avg(&rq, &p);
	CHECK_EQ(p.avg.util_avg, 223);
	CHECK_EQ(p.avg.runnable_avg, 223);
	/* beside others its share by weight: 300 * 1024 / (1023 + 1) = 300, at most (1024 - 300) / 2 */
	rq.capacity_orig = 1024;
	rq.avg.util_avg = 300;
	rq.avg.load_avg = 1023;
	p.weight = 1024;
	post_init_entity_util_avg(&rq, &p);
	CHECK_EQ(p.avg.util_avg, 300);
	p.weight = 2048;
	post_init_entity_util_avg(&rq, &p);
	CHECK_EQ(p.avg.util_avg, 362);
	/* nothing is left: it starts with nothing */
	init_entity_runnable_average(&p);
	rq.avg.util_avg = 1500;
	post_init_entity_util_avg(&rq, &p);
	CHECK_EQ(p.avg.util_avg, 0);
}

/* ---- the clock ---------------------------------------------------------- */

/* A CPU's clocks, and a task that runs and sleeps there. */
struct clocked {
	struct cw_cpu rq;
	struct cw_task p;
};

static void pass(struct clocked *c, u64 ns, bool running)
{
	c->rq.curr_is_idle = !running;
	c->rq.clock_task += ns;
	update_rq_clock_pelt(&c->rq, ns);
	update_load_avg_se(c->rq.clock_pelt, &c->p, running, running);
}

static struct clocked new_clocked(u32 capacity, u32 freq_capacity)
{
	struct clocked c = {
		.rq = { .clock_task = PERIOD_NS, .clock_pelt = PERIOD_NS,
			.capacity_orig = capacity, .freq_capacity = freq_capacity },
		.p = { .weight = 1024, .avg.last_update_time = PERIOD_NS },
	};

	return c;
}

static void test_clock_pelt(void)
{
	struct clocked little = new_clocked(446, 1024), big = new_clocked(1024, 1024);
	u32 i;

	/* 10.24 ms at 446 / 1024 of the speed are 4.46 ms of work: the clock says so */
	pass(&little, 10240000, true);
	CHECK_EQ(little.rq.clock_pelt - PERIOD_NS, 4460000);
	CHECK_EQ(little.rq.clock_task - PERIOD_NS, 10240000);
	/* half the work takes half the time there; idle, the clock catches up */
	pass(&little, 5120000, true);
	CHECK_EQ(little.rq.clock_pelt - PERIOD_NS, 6690000);
	pass(&little, 1, false);
	CHECK_EQ(little.rq.clock_pelt, little.rq.clock_task);
	/* the same work every 20 ms: the same utilisation on either, whenever the work ends */
	little = new_clocked(446, 1024);
	for (i = 0; i < 100; i++) {
		pass(&little, 10240000, true);
		pass(&big, 4460000, true);
		CHECK_EQ(little.p.avg.util_sum, big.p.avg.util_sum);
		CHECK_EQ(little.p.avg.util_avg, big.p.avg.util_avg);
		pass(&little, 20000000 - 10240000, false);
		pass(&big, 20000000 - 4460000, false);
		CHECK_EQ(little.p.avg.util_sum, big.p.avg.util_sum);
	}
	/* 4.46 of 20 ms: at most 1024 (1 - y^4.25) / (1 - y^19.07) = 266, just after it has run */
	CHECK(big.p.avg.util_avg >= 193 - 22 && big.p.avg.util_avg <= 266);
	/* half the work at half the speed: the same busy time, half the utilisation */
	little = new_clocked(512, 1024);
	big = new_clocked(1024, 1024);
	for (i = 0; i < 100; i++) {
		pass(&little, 8 * PERIOD_NS, true);
		pass(&big, 4 * PERIOD_NS, true);
		CHECK_EQ(little.p.avg.util_sum, big.p.avg.util_sum);
		pass(&little, 8 * PERIOD_NS, false);
		pass(&big, 12 * PERIOD_NS, false);
	}
}

/* A lower frequency is like a lower capacity, and both together are lower still. */
static void test_clock_frequency(void)
{
	struct clocked slow = new_clocked(1024, 512), little = new_clocked(512, 512);

	pass(&slow, 1000000, true);
	CHECK_EQ(slow.rq.clock_pelt - PERIOD_NS, 500000);
	pass(&little, 1000000, true);
	CHECK_EQ(little.rq.clock_pelt - PERIOD_NS, 250000);
	pass(&slow, 1, false);
	CHECK_EQ(slow.rq.clock_pelt, slow.rq.clock_task);
}

/* The time by which the clock of a slow CPU is behind counts as idle unless it has always been busy. */
static void test_lost_idle_time(void)
{
	struct cw_cpu rq = { .clock_task = 1000, .clock_pelt = 700, .curr_is_idle = 1 };

	/* 1024 (47742 - 1024) - 47742 */
	rq.avg.util_sum = 47791489;
	update_idle_rq_clock_pelt(&rq);
	CHECK_EQ(rq.lost_idle_time, 0);
	rq.avg.util_sum++;
	update_idle_rq_clock_pelt(&rq);
	CHECK_EQ(rq.lost_idle_time, 300);
	/* it idles for 50 ns: no more than these pass */
	rq.clock_task = 1050;
	update_rq_clock_pelt(&rq, 50);
	CHECK_EQ(rq.clock_pelt, 750);
}

/* Accounted in pieces, the scaled clock loses less than 1 ns a piece. */
static void test_clock_in_pieces(void)
{
	struct clocked whole = new_clocked(446, 1024), pieces = new_clocked(446, 1024);
	u32 i;

	pass(&whole, 1000000007ULL, true);
	for (i = 0; i < 1000; i++)
		pass(&pieces, 1000000, true);
	pass(&pieces, 7, true);
	CHECK(pieces.rq.clock_pelt <= whole.rq.clock_pelt);
	CHECK(whole.rq.clock_pelt - pieces.rq.clock_pelt <= 1001);
	CHECK(whole.p.avg.util_avg - pieces.p.avg.util_avg + 1 <= 2);
	/* always busy: a small CPU's task reaches full utilisation too, only later */
	CHECK_EQ(whole.p.avg.util_avg, 1023);
}

int main(void)
{
	test_runqueue_signals();
	test_attach();
	test_attach_edges();
	test_in_step();
	test_detach_edges();
	test_removed();
	test_removed_is_synced();
	test_new_task();
	test_clock_pelt();
	test_clock_frequency();
	test_lost_idle_time();
	test_clock_in_pieces();
	return test_report("pelt_rq");
}
