/* SPDX-License-Identifier: GPL-2.0-only */
/* How far a newly idle CPU looks for work, and the misfit mark of a CPU. LLCs 0-3 and 4-7. */
#include "balance_test.h"

#include "balance/newidle.h"

static const u64 second = 1000000000;

static struct cw_newidle walk;
static struct cw_cpu *rq;
static struct cw_cpu_sd *sd;

/* CPU 0 is usually idle for 100 us; searching its domains costs 30 and 60 us at most. */
static void setup(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	set_feature(CW_FEAT_NI_RANDOM, false);
	rq = &sys.cpu[0];
	sd = sys.cpu_sd[0];
	rq->avg_idle = 100000;
	sd[0].max_newidle_lb_cost = 30000;
	sd[1].max_newidle_lb_cost = 60000;
}

static void test_begin(void)
{
	setup();
	CHECK(newidle_begin(&sys, &walk, 0, 5000, 0));
	CHECK_EQ(rq->idle_stamp, 5000);

	/* The lowest domain's cost: less is too little, as much is enough. */
	rq->avg_idle = 29999;
	CHECK(!newidle_begin(&sys, &walk, 0, 6000, 0));
	CHECK_EQ(rq->idle_stamp, 6000); /* it is idle all the same */
	rq->avg_idle = 30000;
	CHECK(newidle_begin(&sys, &walk, 0, 5000, 0));

	/* Nobody waits. */
	sys.overloaded = 0;
	CHECK(!newidle_begin(&sys, &walk, 0, 7000, 0));
	CHECK_EQ(rq->idle_stamp, 7000);

	/* A wakeup is on its way: this is no idle period. */
	setup();
	rq->ttwu_pending = 1;
	CHECK(!newidle_begin(&sys, &walk, 0, 5000, 0));
	CHECK_EQ(rq->idle_stamp, 0);
}

/* Seed 002's regression: until 5.15 a CPU that is usually idle for less than 500 us does not search. */
static void test_min_idle(void)
{
	setup();
	rq->avg_idle = 499999;
	CHECK(newidle_begin(&sys, &walk, 0, 5000, 0));
	set_feature(CW_FEAT_NEWIDLE_MIN_IDLE, true);
	CHECK(!newidle_begin(&sys, &walk, 0, 5000, 0));
	CHECK_EQ(rq->idle_stamp, 5000);
	rq->avg_idle = 500000;
	CHECK(newidle_begin(&sys, &walk, 0, 5000, 0));
	/* sched_migration_cost is a sysctl */
	sys.tunable[CW_TUNE_migration_cost_ns] = 500001;
	CHECK(!newidle_begin(&sys, &walk, 0, 5000, 0));
	/* nor does it search where it would cost too much */
	sys.tunable[CW_TUNE_migration_cost_ns] = 0;
	rq->avg_idle = 29999;
	CHECK(!newidle_begin(&sys, &walk, 0, 5000, 0));
	rq->avg_idle = 30000;
	CHECK(newidle_begin(&sys, &walk, 0, 5000, 0));
}

/* A newidle balance of the lowest domain, two seconds after its cost of 30000 ns last decayed. */
static void balance_late(bool decays, u64 cost)
{
	setup();
	set_feature(CW_FEAT_NEWIDLE_COST_DECAY, decays);
	sd[0].last_decay_max_lb_cost = 0;
	newidle_begin(&sys, &walk, 0, 2 * second, 0);
	newidle_next(&sys, &walk, 2 * second);
	newidle_account(&sys, &walk, cost, 0, true, 2 * second);
}

/* Until 5.15 only periodic balance decays, whatever came since it last did. */
static void test_cost_decay(void)
{
	balance_late(true, 29000);
	CHECK_EQ(sd[0].max_newidle_lb_cost, 30000 * 253 / 256);
	balance_late(false, 29000);
	CHECK_EQ(sd[0].max_newidle_lb_cost, 30000);

	balance_late(true, 31000);
	CHECK_EQ(sd[0].max_newidle_lb_cost, 31000);
	CHECK(!update_newidle_cost(&sys, &sd[0], 0, 2 * second));
	balance_late(false, 31000);
	CHECK_EQ(sd[0].max_newidle_lb_cost, 31000);
	CHECK(update_newidle_cost(&sys, &sd[0], 0, 2 * second));
}

static void test_walk(void)
{
	/* Both domains: 40 spent + 60 = 100 us, no more than usual. */
	setup();
	newidle_begin(&sys, &walk, 0, 5000, 0);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	newidle_account(&sys, &walk, 40000, 0, true, 5000);
	CHECK_EQ(sd[0].max_newidle_lb_cost, 40000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 1);
	newidle_account(&sys, &walk, 10000, 0, true, 5000);
	CHECK_EQ(sd[1].max_newidle_lb_cost, 60000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);
	CHECK(!newidle_end(&sys, &walk));
	CHECK_EQ(rq->idle_stamp, 5000);
	CHECK_EQ(rq->max_idle_balance_cost, 500000);

	/* A nanosecond more, and the second is too dear. */
	setup();
	newidle_begin(&sys, &walk, 0, 5000, 0);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	newidle_account(&sys, &walk, 40001, 0, true, 5000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);

	/* It has found a task. */
	setup();
	newidle_begin(&sys, &walk, 0, 5000, 0);
	newidle_next(&sys, &walk, 5000);
	newidle_account(&sys, &walk, 600000, 1, true, 5000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);
	CHECK(newidle_end(&sys, &walk));
	CHECK_EQ(rq->idle_stamp, 0);
	CHECK_EQ(rq->max_idle_balance_cost, 600000);

	/* Work has come by itself. */
	setup();
	newidle_begin(&sys, &walk, 0, 5000, 0);
	newidle_next(&sys, &walk, 5000);
	newidle_account(&sys, &walk, 1000, 0, false, 5000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);
	CHECK(!newidle_end(&sys, &walk));
	rq->nr_running = 1;
	CHECK(newidle_end(&sys, &walk));
	CHECK_EQ(rq->idle_stamp, 0);

	/* No domain. */
	setup();
	rq->nr_sd = 0;
	CHECK(!newidle_begin(&sys, &walk, 0, 5000, 0));
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);
	newidle_account(&sys, &walk, 1000, 0, true, 5000); /* nothing to account */
	CHECK_EQ(sd[0].max_newidle_lb_cost, 30000);
}

/* relax_domain_level: a domain without SD_BALANCE_NEWIDLE is passed over. */
static void test_relaxed(void)
{
	setup();
	sys.domain[sd[0].domain].flags &= ~(u32)SD_BALANCE_NEWIDLE;
	newidle_begin(&sys, &walk, 0, 5000, 0);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 1);
	newidle_account(&sys, &walk, 70000, 0, true, 5000);
	CHECK_EQ(sd[0].max_newidle_lb_cost, 30000);
	CHECK_EQ(sd[1].max_newidle_lb_cost, 70000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);

	setup();
	sys.domain[sd[1].domain].flags &= ~(u32)SD_BALANCE_NEWIDLE;
	newidle_begin(&sys, &walk, 0, 5000, 0);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	newidle_account(&sys, &walk, 10, 0, true, 5000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);

	/* One that is too dear ends the walk even if it would be passed over. */
	SYS_BALANCE(8, LEVEL_MC(2), LEVEL_MC(4), LEVEL_PKG(8));
	set_feature(CW_FEAT_NI_RANDOM, false);
	sys.domain[sd[1].domain].flags &= ~(u32)SD_BALANCE_NEWIDLE;
	sd[1].max_newidle_lb_cost = rq->avg_idle;
	newidle_begin(&sys, &walk, 0, 5000, 0);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	newidle_account(&sys, &walk, 0, 0, true, 5000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 2);
	newidle_begin(&sys, &walk, 0, 5000, 0);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	newidle_account(&sys, &walk, 1, 0, true, 5000);
	CHECK_EQ(newidle_next(&sys, &walk, 5000), CW_NONE);
}

/* The highest cost decays by 3/256 when more than 250 ticks of 4 ms have passed. */
static void test_cost(void)
{
	setup();
	CHECK(!update_newidle_cost(&sys, &sd[0], 30001, 3000));
	CHECK_EQ(sd[0].max_newidle_lb_cost, 30001);
	CHECK_EQ(sd[0].last_decay_max_lb_cost, 3000);
	CHECK(!update_newidle_cost(&sys, &sd[0], 100, second + 3999999)); /* tick 250 */
	CHECK_EQ(sd[0].max_newidle_lb_cost, 30001);
	CHECK(update_newidle_cost(&sys, &sd[0], 100, second + 4000000)); /* tick 251 */
	CHECK_EQ(sd[0].max_newidle_lb_cost, 29649); /* 30001 * 253 / 256 = 29649.4 */
	CHECK(!update_newidle_cost(&sys, &sd[0], 100, second + 5000000));
	/* At HZ 1000 a second has 1000 ticks. */
	sys.tick_ns = 1000000;
	sd[0].last_decay_max_lb_cost = 0;
	CHECK(!update_newidle_cost(&sys, &sd[0], 100, second + 999999));
	CHECK(update_newidle_cost(&sys, &sd[0], 100, second + 1000000));
}

static void test_avg_idle(void)
{
	setup();
	rq->idle_stamp = 1000;
	update_avg_idle(&sys, 0, 1000 + 180000); /* 100000 + 80000 / 8 */
	CHECK_EQ(rq->avg_idle, 110000);
	CHECK_EQ(rq->idle_stamp, 0);
	update_avg_idle(&sys, 0, 999999999); /* it was not idle */
	CHECK_EQ(rq->avg_idle, 110000);

	rq->idle_stamp = 1000;
	update_avg_idle(&sys, 0, 1000 + 109991); /* -9 / 8 = -1 */
	CHECK_EQ(rq->avg_idle, 109999);
	rq->idle_stamp = 1000;
	update_avg_idle(&sys, 0, 1000 + 109992); /* -7 / 8 = 0 */
	CHECK_EQ(rq->avg_idle, 109999);

	rq->idle_stamp = 1000;
	update_avg_idle(&sys, 0, 60 * second); /* at most twice the cost */
	CHECK_EQ(rq->avg_idle, 1000000);
}

static void test_misfit(void)
{
	struct cw_task p = { .nr_cpus_allowed = 8, .max_allowed_capacity = 1024 };

	SYS_BALANCE(8, LEVEL_ASYM(8));
	rq = &sys.cpu[0];
	rq->capacity = rq->capacity_orig = 446;
	p.avg.load_avg = 600;
	p.avg.util_avg = 357; /* 357 * 1280 > 446 * 1024, 356 * 1280 is not */
	update_misfit_status(&sys, &p, 0);
	CHECK_EQ(rq->misfit_task_load, 600);
	CHECK(check_misfit_status(rq));
	CHECK(rq->misfit_task_load);

	p.avg.util_avg = 356;
	update_misfit_status(&sys, &p, 0);
	CHECK(!check_misfit_status(rq));
	p.avg.util_est = 357;
	p.avg.load_avg = 0;
	update_misfit_status(&sys, &p, 0);
	CHECK_EQ(rq->misfit_task_load, 1);

	p.nr_cpus_allowed = 1;
	update_misfit_status(&sys, &p, 0);
	CHECK_EQ(rq->misfit_task_load, 0);
	p.nr_cpus_allowed = 4;
	p.max_allowed_capacity = 446; /* no bigger CPU may take it */
	update_misfit_status(&sys, &p, 0);
	CHECK_EQ(rq->misfit_task_load, 0);

	/* Going idle clears it. */
	rq->misfit_task_load = 600;
	newidle_begin(&sys, &walk, 0, 1, 0);
	CHECK_EQ(rq->misfit_task_load, 0);

	/* Where all CPUs are equal there is nothing to do. */
	setup();
	rq->misfit_task_load = 600;
	update_misfit_status(&sys, NULL, 0);
	CHECK_EQ(rq->misfit_task_load, 600);
}

/*
 * LLC balanced at tick 100, package at tick 90, with intervals of 4 and 8 ms, 1
 * and 2 ticks: due at 101 and 92. It is tick 250, so 500 is as late as may be.
 */
static void test_next_balance(void)
{
	u64 now = second, tick = 4000000;

	setup();
	sd[0].last_balance = 100 * tick;
	sd[1].last_balance = 90 * tick;
	newidle_begin(&sys, &walk, 0, now, 0);
	CHECK_EQ(walk.next_balance, 101);
	newidle_next(&sys, &walk, now);
	CHECK_EQ(walk.next_balance, 101);
	newidle_next(&sys, &walk, now);
	CHECK_EQ(walk.next_balance, 92);

	/* Even if nobody waits; a domain that is too dear counts, those above it do not. */
	sys.overloaded = 0;
	newidle_begin(&sys, &walk, 0, now, 0);
	CHECK_EQ(walk.next_balance, 101);
	sys.overloaded = 1;
	sd[1].max_newidle_lb_cost = rq->avg_idle + 1;
	newidle_begin(&sys, &walk, 0, now, 0);
	newidle_next(&sys, &walk, now);
	newidle_next(&sys, &walk, now);
	CHECK_EQ(walk.next_balance, 92);
	sd[0].max_newidle_lb_cost = rq->avg_idle + 1;
	newidle_begin(&sys, &walk, 0, now, 0);
	newidle_next(&sys, &walk, now);
	CHECK_EQ(walk.next_balance, 101);

	/* Long intervals, and no domain. */
	sd[0].last_balance = 700 * tick;
	newidle_begin(&sys, &walk, 0, now, 0);
	CHECK_EQ(walk.next_balance, 500);
	rq->nr_sd = 0;
	newidle_begin(&sys, &walk, 0, now, 0);
	CHECK_EQ(walk.next_balance, 500);
}

/* The dice of 1024 sides: `side` of the first throw. */
static u32 throw(u32 side)
{
	return side << 22;
}

static void test_dice(void)
{
	/* A rate of 9 in 1024: 10 is let through, 11 is not, and the next domain has its own dice. */
	setup();
	set_feature(CW_FEAT_NI_RANDOM, true);
	sd[0].newidle_ratio = 9;
	sd[1].newidle_ratio = 1024; /* always */
	newidle_begin(&sys, &walk, 0, 5000, throw(10));
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	CHECK_EQ(walk.weight, (1024 + 5) / 10);
	newidle_account(&sys, &walk, 1, 1, true, 5000);
	CHECK_EQ(sd[0].newidle_call, 1);
	CHECK_EQ(sd[0].newidle_success, 102);

	newidle_begin(&sys, &walk, 0, 5000, throw(11));
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 1);
	CHECK_EQ(sd[0].newidle_call, 2); /* forbidden ones count as well */
	CHECK_EQ(sd[0].newidle_success, 102);
	CHECK_EQ(walk.weight, 1);
	newidle_account(&sys, &walk, 0, 1, true, 5000);
	CHECK_EQ(sd[1].newidle_call, 0); /* it took no time */
	newidle_account(&sys, &walk, 1, 1, true, 5000);
	CHECK_EQ(sd[1].newidle_call, 1);
	CHECK_EQ(sd[1].newidle_success, 1);

	/* Twice the full rate: (1024 + 1024) / 2049. NI_RATE knows no such rate, and does not throw. */
	sd[0].newidle_ratio = 2048;
	newidle_begin(&sys, &walk, 0, 5000, throw(1023));
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	CHECK_EQ(walk.weight, 0);
	set_feature(CW_FEAT_NI_RATE, true);
	newidle_begin(&sys, &walk, 0, 5000, throw(1023));
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
	CHECK_EQ(walk.weight, 1);
	CHECK_EQ(walk.random, throw(1023));
	set_feature(CW_FEAT_NI_RATE, false);
	sd[0].newidle_ratio = 9;

	/* Off: no dice. */
	set_feature(CW_FEAT_NI_RANDOM, false);
	newidle_begin(&sys, &walk, 0, 5000, throw(11));
	CHECK_EQ(newidle_next(&sys, &walk, 5000), 0);
}

static void test_rate(void)
{
	/* The 1024th call: half is forgotten, the successes are the new rate. */
	setup();
	sd[0].newidle_call = 1022;
	sd[0].newidle_success = 300;
	sd[0].newidle_ratio = 512;
	update_newidle_stats(&sys, sd, 1, second);
	CHECK_EQ(sd[0].newidle_ratio, 512);
	update_newidle_stats(&sys, sd, 1, second);
	CHECK_EQ(sd[0].newidle_ratio, 302);
	CHECK_EQ(sd[0].newidle_call, 512);
	CHECK_EQ(sd[0].newidle_success, 151);
	CHECK_EQ(sd[0].newidle_stamp, second);

	/* No cap. */
	sd[0].newidle_call = 1023;
	sd[0].newidle_success = 3000;
	update_newidle_stats(&sys, sd, 2, second);
	CHECK_EQ(sd[0].newidle_ratio, 3002);
	sd[0].newidle_success = 151;

	/* NI_RATE: a second is 238 * 2^22 ns. */
	set_feature(CW_FEAT_NI_RATE, true);
	sd[0].newidle_call = 1023;
	update_newidle_stats(&sys, sd, 0, 2 * second);
	CHECK_EQ(sd[0].newidle_ratio, 151 + 238);
	/* At most always; and time does not run backwards. */
	sd[0].newidle_call = 1023;
	update_newidle_stats(&sys, sd, 0, 7 * second);
	CHECK_EQ(sd[0].newidle_ratio, 1024);
	sd[0].newidle_call = 1023;
	sd[0].newidle_success = 5;
	update_newidle_stats(&sys, sd, 0, second);
	CHECK_EQ(sd[0].newidle_ratio, 5);
}

int main(void)
{
	test_next_balance();
	test_dice();
	test_rate();
	test_begin();
	test_min_idle();
	test_cost_decay();
	test_walk();
	test_relaxed();
	test_cost();
	test_avg_idle();
	test_misfit();
	return test_report("balance_newidle");
}
