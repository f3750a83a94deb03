/* SPDX-License-Identifier: GPL-2.0-only */
/* Which step of a balance follows which. LLCs 0-3 and 4-7. */
#include "balance_test.h"

#include "balance/loop.h"
#include "balance/nohz.h"

static const u64 ms = 1000000, second = 1000000000;

static struct cw_lb lb;
static struct cw_task p;
static struct cw_cpumask mask;

static void setup(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	mask = mask_range(0, 7);
	p = (struct cw_task){ .weight = 1024, .nr_cpus_allowed = 8, .avg.load_avg = 1024 };
	sys.tunable[CW_TUNE_migration_cost_ns] = 500000;
	set_feature(CW_FEAT_NI_RANDOM, false);
	sys.nohz_next_balance = 0;
	sys.balance_running = 0;
}

#define STEP(name) CHECK_EQ(lb_next(&sys, &lb), CW_LB_##name)

/* Two tasks on each CPU of the other cache: idle CPU 0 finds nothing in its own, and one task beyond it. */
static void test_newidle(void)
{
	setup();
	make_tasks_on(4, 7, 2, 2048, 1024, 2048);
	sys.cpu[0].next_balance = ~0ULL;
	CHECK(lb_newidle(&sys, &lb, 0, second, 0));
	STEP(BEGIN);
	CHECK_EQ(lb.env.level, 0);
	STEP(DECIDED);
	CHECK_EQ(lb.decision.cpu, -1);
	STEP(END);
	lb.cost = 3000;
	STEP(BEGIN);
	CHECK_EQ(lb.env.level, 1);
	CHECK_EQ(sys.cpu_sd[0][0].max_newidle_lb_cost, 3000);
	STEP(DECIDED);
	CHECK_EQ(lb.decision.cpu, 4);
	STEP(DETACH);
	CHECK_EQ(detach_task(&sys, &lb.env, &p, &mask, false), CW_DETACH_TAKE);
	sys.cpu[4].nr_running--;
	lb.moved++;
	STEP(END);
	lb.cost = 8000;
	STEP(DONE);
	CHECK(lb.found);
	/* each domain has what it cost itself */
	CHECK_EQ(sys.cpu_sd[0][1].max_newidle_lb_cost, 5000);
	CHECK_EQ(sys.cpu[0].max_idle_balance_cost, 500000);
	/* an idle CPU is due earlier than it was */
	CHECK(sys.cpu[0].next_balance < ~0ULL);
}

/* Nobody waits anywhere: the search does not begin, and yet ends as one. */
static void test_newidle_refused(void)
{
	setup();
	sys.overloaded = 0;
	lb.found = 1;
	CHECK(!lb_newidle(&sys, &lb, 0, second, 0));
	STEP(DONE);
	CHECK(!lb.found);
}

/* The task may not run on CPU 0 but on CPU 1, for which CPU 0 goes on to balance. */
static void test_pinned(void)
{
	setup();
	make_tasks_on(4, 7, 3, 3072, 1024, 3072);
	mask = mask_range(1, 1);
	lb_periodic(&sys, &lb, 0, CW_IDLE, 10 * second);
	STEP(BEGIN);
	STEP(DECIDED);
	STEP(END);
	STEP(BEGIN);
	STEP(DECIDED);
	STEP(DETACH);
	CHECK_EQ(detach_task(&sys, &lb.env, &p, &mask, false), CW_DETACH_SKIP);
	STEP(DETACH);
	CHECK_EQ(lb.env.dst_cpu, 1);
	CHECK_EQ(detach_task(&sys, &lb.env, &p, &mask, false), CW_DETACH_TAKE);
}

/* One CPU at a time balances a domain with SD_SERIALIZE; another one's is due again at once. */
static void test_serialize(void)
{
	setup();
	sys.domain[sys.cpu_sd[0][1].domain].flags |= SD_SERIALIZE;
	sys.balance_running = 1;
	lb_periodic(&sys, &lb, 0, CW_IDLE, 10 * second);
	STEP(BEGIN);
	CHECK_EQ(lb.env.level, 0);
	STEP(DECIDED);
	STEP(END);
	STEP(DONE);
	CHECK(sys.cpu[0].next_balance <= jiffies_of(&sys, 10 * second));
	CHECK_EQ(sys.balance_running, 1);

	sys.balance_running = 0;
	lb_periodic(&sys, &lb, 0, CW_IDLE, 11 * second);
	STEP(BEGIN);
	STEP(DECIDED);
	STEP(END);
	STEP(BEGIN);
	CHECK_EQ(sys.balance_running, 1);
	STEP(DECIDED);
	STEP(END);
	STEP(DONE);
	CHECK_EQ(sys.balance_running, 0);
}

/* An idle CPU is asked once in a tick, also if there is none, but not where none is without a tick. */
static void test_kick(void)
{
	struct cw_cpumask none = { { 0 } };

	setup();
	make_tasks(4, 2, 2048, 1024, 2048);
	CHECK_EQ(kick_ilb(&sys, 4, &none, second), -1);
	CHECK_EQ(sys.nohz_next_balance, 0);
	CHECK_EQ(kick_ilb(&sys, 4, &mask, second), 0);
	CHECK_EQ(kick_ilb(&sys, 4, &mask, second + 4 * ms - 1), -1);
	CHECK_EQ(kick_ilb(&sys, 4, &mask, second + 4 * ms), 0);
	make_tasks_on(0, 7, 2, 2048, 1024, 2048);
	CHECK_EQ(kick_ilb(&sys, 4, &mask, second + 8 * ms), -1);
	CHECK_EQ(sys.nohz_next_balance, jiffies_of(&sys, second) + 3);
}

/* The averages of idle CPUs: every 32 ms, as long as any of them is left. */
static void test_nohz_stats(void)
{
	setup();
	sys.nohz_has_blocked = 0;
	sys.nohz_next_blocked = 0;
	CHECK_EQ(kick_nohz_stats(&sys, 4, &mask, second), -1);
	sys.nohz_has_blocked = 1;
	make_tasks(4, 2, 2048, 1024, 2048);
	CHECK_EQ(kick_nohz_stats(&sys, 4, &mask, second), 0);
	nohz_stats_done(&sys, second, true);
	CHECK_EQ(kick_nohz_stats(&sys, 4, &mask, second + 31 * ms), -1);
	CHECK_EQ(kick_nohz_stats(&sys, 4, &mask, second + 32 * ms), 0);
	/* a newly idle CPU does it itself, if it is usually idle for a while */
	sys.cpu[1].avg_idle = 499999;
	CHECK(!nohz_newidle_stats(&sys, 1, second + 32 * ms));
	sys.cpu[1].avg_idle = 500000;
	CHECK(nohz_newidle_stats(&sys, 1, second + 32 * ms));
	CHECK(!nohz_newidle_stats(&sys, 1, second + 31 * ms));
	nohz_stats_done(&sys, second, false);
	CHECK(!nohz_newidle_stats(&sys, 1, second + 32 * ms));
}

static void test_update_nohz_stats(void)
{
	struct cw_cpu *rq = &sys.cpu[0];

	setup();
	rq->load_weight = rq->cfs_nr_running = rq->nr_running = rq->curr = 0;
	rq->avg = (struct cw_avg){ .last_update_time = second, .util_sum = 500 * 47000, .util_avg = 500 };
	rq->clock_task = rq->clock_pelt = second;
	rq->curr_is_idle = 1;
	rq->lost_idle_time = 0;
	CHECK(update_nohz_stats(&sys, 0, second + 64 * 1024 * 1024));
	CHECK(rq->avg.util_avg > 115 && rq->avg.util_avg < 130); /* a quarter */
	CHECK(!update_nohz_stats(&sys, 0, second + 64 * second));
	CHECK(!update_nohz_stats(&sys, 0, second + 64 * second));
}

int main(void)
{
	test_newidle();
	test_newidle_refused();
	test_pinned();
	test_serialize();
	test_kick();
	test_nohz_stats();
	test_update_nohz_stats();
	return test_report("balance_loop");
}
