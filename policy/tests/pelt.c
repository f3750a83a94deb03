/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The geometric averages by themselves, against worked examples and against a
 * slow reference that goes period by period and finds y by its own arithmetic.
 */
#include "test.h"

#include "track/pelt.h"

typedef unsigned __int128 u128;

#define PERIOD_NS (1024ULL << 10)
#define MS 1000000ULL
/* The real 1024 / (1 - y) is 47788.08: LOAD_AVG_MAX rounds down a little more than sums do. */
#define FULL_SUM (47789ULL * CW_CAPACITY_SCALE)

/* ---- the reference ------------------------------------------------------ */

/* y^n in 1/2^64, n > 0; n = 0 is one too large for it. */
static u64 y_power[PELT_HALFLIFE + 1];

static u64 mul_q64(u64 a, u64 b)
{
	return (u64)((u128)a * b >> 64);
}

/* The largest y of which the 32nd power, five times squared, is not above 1/2. */
static void find_y(void)
{
	u64 y = 0;
	int bit, n;

	for (bit = 63; bit >= 0; bit--) {
		u64 power = y | 1ULL << bit;

		for (n = 0; n < 5; n++)
			power = mul_q64(power, power);
		if (power <= 1ULL << 63)
			y |= 1ULL << bit;
	}
	y_power[1] = y;
	for (n = 2; n <= PELT_HALFLIFE; n++)
		y_power[n] = mul_q64(y_power[n - 1], y);
}

/* val * y, rounded down, with y = floor((2^32 - 1) y) / 2^32 as in the kernel's table. */
static u64 decay_once(u64 val)
{
	return (u64)((u128)val * mul_q64(y_power[1], 0xffffffff) >> 32);
}

/* A task's utilisation, us by us. */
struct slow {
	u64 sum; /* us * 1024, as of the last boundary or update */
	u64 head; /* us of running since */
	u32 contrib; /* part of the current period, us */
};

/* `us` pass; at each boundary the sum and what the period added last decay, each rounded down. */
static void slow_run(struct slow *s, u64 us, bool running)
{
	while (us--) {
		s->head += running;
		if (++s->contrib < PELT_PERIOD)
			continue;
		s->sum = decay_once(s->sum) + 1024 * decay_once(s->head);
		s->head = 0;
		s->contrib = 0;
	}
	s->sum += 1024 * s->head;
	s->head = 0;
}

/* ---- tables ------------------------------------------------------------- */

static void test_table(void)
{
	int n;

	CHECK_EQ(runnable_avg_yN_inv[0], 0xffffffffu);
	/* floor((2^32 - 1) * y^n); the reference is below y^n by less than n / 2^64 */
	for (n = 1; n < PELT_HALFLIFE; n++)
		CHECK_EQ(runnable_avg_yN_inv[n], mul_q64(y_power[n], 0xffffffff));
	/* y = 0.978572062..., so that y^32 = 1/2 */
	CHECK_EQ(runnable_avg_yN_inv[1], 4202935002u);
	CHECK(y_power[32] > (1ULL << 63) - 64 && y_power[32] <= 1ULL << 63);
}

static void test_decay_load(void)
{
	u64 n;

	/* 32 periods halve: 0xffffffff / 2^32 of what is left takes one off at n = 0 mod 32 */
	CHECK_EQ(decay_load(1ULL << 32, 32), (1ULL << 31) - 1);
	CHECK_EQ(decay_load(2048, 32), 1023);
	CHECK_EQ(decay_load(2049, 32), 1023);
	CHECK_EQ(decay_load(4096, 64), 1023);
	CHECK_EQ(decay_load(0, 5), 0);
	/* 1024 y = 1002.06, 1024 y^31 = 523.21, 47742 y^31 = 24393.71 */
	CHECK_EQ(decay_load(1024, 1), 1002);
	CHECK_EQ(decay_load(1024, 31), 523);
	CHECK_EQ(decay_load(47742, 31), 24393);
	/* nothing is left of anything after 63 half-lives, and what is huge does not wrap */
	CHECK_EQ(decay_load(~0ULL, 32 * 63), 0);
	CHECK_EQ(decay_load(~0ULL, 32 * 63 + 1), 0);
	CHECK_EQ(decay_load(~0ULL, 32 * 64), 0);
	CHECK_EQ(decay_load(~0ULL, ~0ULL), 0);
	CHECK_EQ(decay_load(1ULL << 63, 1) >> 32, 0xfa83b2daULL >> 1);
	for (n = 0; n < 32 * 63; n++)
		CHECK(decay_load(1ULL << 63, n + 1) <= decay_load(1ULL << 63, n));
}

static void test_maximum(void)
{
	u64 sum = 1024, last = 0;

	/* full periods added one at a time stop growing at the integer 1024 / (1 - y) */
	while (sum != last) {
		last = sum;
		sum = decay_once(sum) + 1024;
	}
	CHECK_EQ(sum, LOAD_AVG_MAX);
	/* one boundary has no full periods between: 47742 - floor(47742 y) - 1024 = 47742 - 46718 - 1024 */
	CHECK_EQ(LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, 1) - PELT_PERIOD, 0);
}

/* ---- worked examples ---------------------------------------------------- */

static struct cw_task new_task(void)
{
	return (struct cw_task){ .pid = 1, .weight = 1024, .avg.last_update_time = PERIOD_NS };
}

/* A task that runs from 0 for `n` times `step`, brought up to date at once or after each step. */
static struct cw_avg alone(u64 step, u64 n, bool each)
{
	struct cw_task p = new_task();
	u64 i;

	for (i = each ? 1 : n; i <= n; i++)
		update_load_avg_se(PERIOD_NS + i * step, &p, true, true);
	return p.avg;
}

static void test_alone(void)
{
	/*
	 * Worked out with 60-digit decimals. With p boundaries crossed and d us of
	 * the last period, one update makes
	 *   sum = 1024 (floor(1024 y^p) + (47742 - floor(47742 y^p) - 1024) + d)
	 *   avg = floor(sum / (46718 + d))
	 * and the real value is 1024 (1 - y^t), t in periods. For 100 periods, with
	 * y^100 = y^4 / 8: floor(128 y^4) is 117, floor(5967 y^4) is 5471, so the sum
	 * is 117 + (47742 - 5471 - 1024) = 41364 us, and 41364 * 1024 / 46718 = 906.6.
	 */
	static const struct {
		u64 step, n;
		u32 sum_once, avg_once, sum_each, avg_each; /* real value */
	} cases[] = {
		{ PERIOD_NS, 1, 1026048, 21, 1026048, 21 }, /* 21.94 */
		{ PERIOD_NS, 10, 9316352, 199, 9325570, 199 }, /* 199.43 */
		{ PERIOD_NS, 100, 42356736, 906, 42394947, 907 }, /* 906.62 */
		{ PERIOD_NS, 345, 47812608, 1023, 47856424, 1024 }, /* 1023.42 */
		/* 1 ms is 976 us of 1024 ns: no period has ended, so no average follows yet */
		{ MS, 1, 999424, 0, 999424, 0 }, /* 20.94 */
		{ MS, 10, 9035776, 191, 9036263, 191 }, /* 191.11 */
		{ MS, 100, 42113024, 894, 42135012, 894 }, /* 894.23 */
		{ MS, 345, 47819776, 1023, 47840778, 1023 }, /* 1023.18 */
	};
	u32 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_avg a = alone(cases[i].step, cases[i].n, false);

		CHECK_EQ(a.util_sum, cases[i].sum_once);
		CHECK_EQ(a.util_avg, cases[i].avg_once);
		/* it never waits, and its weight is that of nice 0: all three signals are one */
		CHECK_EQ(a.runnable_sum, cases[i].sum_once);
		CHECK_EQ(a.runnable_avg, cases[i].avg_once);
		CHECK_EQ(a.load_sum * 1024, cases[i].sum_once);
		CHECK_EQ(a.load_avg, cases[i].avg_once);
		a = alone(cases[i].step, cases[i].n, true);
		CHECK_EQ(a.util_sum, cases[i].sum_each);
		CHECK_EQ(a.util_avg, cases[i].avg_each);
	}
}

static void test_signals(void)
{
	struct cw_task p = new_task();

	/* queued but not running: load and runnable grow, utilisation does not */
	update_load_avg_se(PERIOD_NS + 32 * PERIOD_NS, &p, true, false);
	CHECK_EQ(p.avg.util_avg, 0);
	/* half a life: 512 us of the first, then 47742 - 23870 - 1024 = 22848 full ones */
	CHECK_EQ(p.avg.load_sum, 511 + 22848 + 0);
	CHECK_EQ(p.avg.load_avg, 1024 * 23359 / 46718);
	CHECK_EQ(p.avg.runnable_avg, 512);
	/* a sleeper's all decay, whatever it is said to have run */
	update_load_avg_se(PERIOD_NS + 64 * PERIOD_NS, &p, false, true);
	CHECK_EQ(p.avg.load_sum, 11678); /* 11679, less one by 0xffffffff / 2^32 */
	CHECK_EQ(p.avg.load_avg, 255);
	CHECK_EQ(p.avg.runnable_avg, 255);
	CHECK_EQ(p.avg.util_avg, 0);
	/* load is by weight: nice 5 weighs 335 */
	p = new_task();
	p.weight = 335;
	update_load_avg_se(PERIOD_NS + 32 * PERIOD_NS, &p, true, true);
	CHECK_EQ(p.avg.load_avg, 335 * 23359 / 46718);
	CHECK_EQ(p.avg.util_avg, 512);
}

static void test_clock(void)
{
	struct cw_task p = new_task();

	/* what is less than a us is kept for later */
	CHECK(!update_load_avg_se(PERIOD_NS + 1023, &p, true, true));
	CHECK_EQ(p.avg.last_update_time, PERIOD_NS);
	CHECK(!update_load_avg_se(PERIOD_NS + 2047, &p, true, true));
	CHECK_EQ(p.avg.last_update_time, PERIOD_NS + 1024);
	CHECK_EQ(p.avg.period_contrib, 1);
	CHECK_EQ(p.avg.util_sum, 1024);
	/* a clock that steps back restarts it, and counts nothing */
	CHECK(!update_load_avg_se(5, &p, true, true));
	CHECK_EQ(p.avg.last_update_time, 5);
	CHECK_EQ(p.avg.util_sum, 1024);
	/* the boundary itself: at 1023 us the period is not over, at 1024 it is */
	p = new_task();
	CHECK(!update_load_avg_se(PERIOD_NS + (1023 << 10), &p, true, true));
	CHECK(update_load_avg_se(PERIOD_NS + (1024 << 10), &p, true, true));
	CHECK_EQ(p.avg.period_contrib, 0);
	/* a year is not too long for one update */
	CHECK(update_load_avg_se(365ULL * 86400 * 1000 * MS, &p, true, true));
	CHECK(p.avg.util_avg >= 1022 && p.avg.util_avg <= 1024);
	CHECK(update_load_avg_se(2 * 365ULL * 86400 * 1000 * MS, &p, false, false));
	CHECK_EQ(p.avg.util_sum, 0);
}

/* ---- sequences ---------------------------------------------------------- */

/* Updates at most a period apart, at odd places of the periods: equal to the reference, us by us. */
static void test_against_reference(void)
{
	static const u32 steps[] = { 1, 1023, 1024, 7, 1017, 511, 513, 1000, 997, 3, 1021, 640, 384, 2 };
	struct cw_task p = new_task();
	struct slow s = { 0, 0, 0 };
	u64 now = PERIOD_NS;
	u32 i, n = sizeof(steps) / sizeof(steps[0]);

	for (i = 0; i < 5000; i++) {
		u32 us = steps[(i + i / 97) % n];
		bool running = i % 7 < 4 - i / 2000;

		now += (u64)us << 10;
		update_load_avg_se(now, &p, running, running);
		slow_run(&s, us, running);
		CHECK_EQ(p.avg.util_sum, s.sum);
		CHECK_EQ(p.avg.runnable_sum, s.sum);
		CHECK_EQ(p.avg.period_contrib, s.contrib);
		if (p.avg.period_contrib < us)
			CHECK_EQ(p.avg.util_avg, s.sum / (46718 + s.contrib));
	}
}

/*
 * Updates that cross many boundaries at once lose little against one that
 * crosses them one by one. Each rounds down at other places, by less than a us
 * at each of the parts of an update, and the reference by less than one at
 * every boundary; these decay too, so at most 1 / (1 - y) = 47 of them are there.
 */
static void test_long_updates(void)
{
	static const u32 steps[] = { 1025, 2047, 2049, 3333, 10007, 32768, 32767, 65537, 345 * 1024 + 1 };
	struct cw_task p = new_task();
	struct slow s = { 0, 0, 0 };
	u64 now = PERIOD_NS;
	u32 i, n = sizeof(steps) / sizeof(steps[0]);

	for (i = 0; i < 400; i++) {
		u32 us = steps[(i + i / 31) % n];
		s64 off;

		now += (u64)us << 10;
		update_load_avg_se(now, &p, i & 1, i & 1);
		slow_run(&s, us, i & 1);
		CHECK_EQ(p.avg.period_contrib, s.contrib);
		off = (s64)p.avg.util_sum - (s64)s.sum;
		CHECK(off > -48 * 1024 && off < 48 * 1024);
		CHECK(p.avg.util_sum <= FULL_SUM);
		CHECK(p.avg.util_avg <= 1024);
	}
}

/* ---- an hour ------------------------------------------------------------ */

struct band {
	u64 min, max;
};

/* `cycles` of `on` ns running and `off` ns asleep: the extremes of the utilisation. */
static struct band cycle(struct cw_task *p, u64 *now, u64 on, u64 off, u64 cycles)
{
	struct band band = { ~0ULL, 0 };
	u64 i;

	for (i = 0; i < cycles; i++) {
		update_load_avg_se(*now += on, p, true, true);
		if (p->avg.util_avg > band.max)
			band.max = p->avg.util_avg;
		CHECK(p->avg.util_sum <= FULL_SUM && p->avg.runnable_sum <= FULL_SUM);
		update_load_avg_se(*now += off, p, false, false);
		if (p->avg.util_avg < band.min)
			band.min = p->avg.util_avg;
	}
	return band;
}

/*
 * Cycles of whole ms repeat their place in the periods every 2^20 * 15625 ns =
 * 16.384 s. After a few of these the state has to repeat, and may not have moved
 * an hour later.
 */
static void check_hour(u64 on_ms, u64 off_ms, u64 min, u64 max)
{
	u64 cycles = 16384 / (on_ms + off_ms), now = PERIOD_NS, i;
	struct cw_task p = new_task();
	struct cw_avg settled;
	struct band first, last = { 0, 0 };

	CHECK_EQ(16384 % (on_ms + off_ms), 0);
	for (i = 0; i < 3; i++)
		first = cycle(&p, &now, on_ms * MS, off_ms * MS, cycles);
	settled = p.avg;
	for (; i < 220; i++)
		last = cycle(&p, &now, on_ms * MS, off_ms * MS, cycles);
	CHECK(now > 3600 * 1000 * MS);
	CHECK_EQ(first.min, last.min);
	CHECK_EQ(first.max, last.max);
	CHECK_EQ(p.avg.util_sum, settled.util_sum);
	CHECK_EQ(p.avg.runnable_sum, settled.runnable_sum);
	CHECK_EQ(p.avg.load_sum, settled.load_sum);
	CHECK_EQ(p.avg.period_contrib, settled.period_contrib);
	CHECK(last.min >= min && last.max <= max);
}

static void test_hour(void)
{
	/*
	 * In the steady state of t_on and t_off periods the peak is
	 * 1024 (1 - y^on) / (1 - y^(on + off)) and the trough y^off of it. Averages
	 * follow when a period ends, so they show the state up to a period ago, which
	 * is 1024 (1 - y) = 22 either way.
	 * 1/1: peak 517, trough 507.  1/3: 264 and 248.  16/16: 596 and 428.
	 */
	check_hour(1, 1, 507 - 22, 517 + 22);
	check_hour(1, 3, 248 - 22, 264 + 22);
	check_hour(16, 16, 428 - 22, 596 + 22);
	/* 1 ms in 32: peak 43, trough 22 */
	check_hour(1, 31, 0, 43 + 22);
	/* always on: the highest that the average can be, and no more after an hour */
	check_hour(1, 0, 1022, 1024);
}

int main(void)
{
	find_y();
	test_table();
	test_decay_load();
	test_maximum();
	test_alone();
	test_signals();
	test_clock();
	test_against_reference();
	test_long_updates();
	test_hour();
	return test_report("pelt");
}
