/* SPDX-License-Identifier: GPL-2.0-only */
/* When domains are due, and which CPU balances for idle ones. LLCs 0-3 and 4-7. */
#include "balance_test.h"

#include "balance/nohz.h"
#include "balance/periodic.h"

static const u64 ms = 1000000, second = 1000000000;

static struct cw_periodic walk;
static struct cw_cpu_sd *sd;

/* Intervals of 4 and 8 ms, ticks of 4 ms, busy factor 16. */
static void setup(void)
{
	SYS_BALANCE(8, LEVEL_MC(4), LEVEL_PKG(8));
	sd = sys.cpu_sd[0];
}

static void test_interval(void)
{
	setup();
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[0], false), 1);
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[1], false), 2);
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[0], true), 15); /* 64 ms, less a tick */
	sd[0].balance_interval_ms = 5; /* rounded up to 2 ticks; 80 ms */
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[0], false), 2);
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[0], true), 19);
	sd[0].balance_interval_ms = 100;
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[0], true), 200); /* 0.1 s for each of 8 CPUs */
	sd[0].balance_interval_ms = 0;
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[0], true), 1);
	sys.tick_ns = 0; /* unknown: HZ 250 */
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[1], false), 2);
	sys.tick_ns = 1000000;
	CHECK_EQ(get_sd_balance_interval(&sys, &sd[1], false), 8);
}

static void test_due(void)
{
	setup();
	sd[1].last_balance = second + 3 * ms; /* in the tick that began at 1 s */
	CHECK(!balance_due(&sys, 0, 1, CW_IDLE, second + 8 * ms - 1));
	CHECK(balance_due(&sys, 0, 1, CW_IDLE, second + 8 * ms));
	/* Busy: 8 * 16 = 128 ms are 32 ticks, less one. */
	CHECK(!balance_due(&sys, 0, 1, CW_NOT_IDLE, second + 124 * ms - 1));
	CHECK(balance_due(&sys, 0, 1, CW_NOT_IDLE, second + 124 * ms));
	/* With SCHED_IDLE tasks only, a CPU is not busy. */
	make_sched_idle(0);
	CHECK(balance_due(&sys, 0, 1, CW_NOT_IDLE, second + 8 * ms));
}

static void test_walk(void)
{
	setup();
	sd[0].last_balance = sd[1].last_balance = second;
	periodic_begin(&sys, &walk, 0, CW_IDLE, second + 4 * ms);
	CHECK_EQ(periodic_next(&sys, &walk), 0);
	sd[0].last_balance = second + 4 * ms;
	periodic_account(&sys, &walk, 0, true);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE); /* 2 ticks have not passed */
	CHECK_EQ(walk.next_balance, 252);

	/* Another CPU balances: the walk is over. */
	periodic_begin(&sys, &walk, 0, CW_IDLE, second + 16 * ms);
	CHECK_EQ(periodic_next(&sys, &walk), 0);
	periodic_account(&sys, &walk, 0, false);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE);

	/* A task was moved here, so the CPU has become busy for the levels above. */
	periodic_begin(&sys, &walk, 0, CW_IDLE, second + 16 * ms);
	CHECK_EQ(periodic_next(&sys, &walk), 0);
	sd[0].last_balance = second + 16 * ms;
	make_tasks(0, 1, 1024, 1024, 1024);
	periodic_account(&sys, &walk, 1, true);
	CHECK_EQ(walk.idle, CW_NOT_IDLE);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE);
	CHECK_EQ(walk.next_balance, 254 + 15);
}

/* The newidle costs decay on the way, and the CPU's own with them. */
static void test_decay(void)
{
	setup();
	sd[0].max_newidle_lb_cost = 2560000;
	sd[1].max_newidle_lb_cost = 256000;
	sd[0].last_balance = sd[1].last_balance = 3 * second;
	sys.cpu[0].max_idle_balance_cost = 9000000;
	periodic_begin(&sys, &walk, 0, CW_NOT_IDLE, 3 * second);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE);
	periodic_end(&sys, &walk);
	CHECK_EQ(sd[0].max_newidle_lb_cost, 2530000);
	CHECK_EQ(sd[1].max_newidle_lb_cost, 253000);
	CHECK_EQ(sys.cpu[0].max_idle_balance_cost, 2783000);

	/* Not below migration_cost_ns. */
	sd[0].max_newidle_lb_cost = sd[1].max_newidle_lb_cost = 0;
	periodic_begin(&sys, &walk, 0, CW_NOT_IDLE, 5 * second);
	periodic_next(&sys, &walk);
	periodic_end(&sys, &walk);
	CHECK_EQ(sys.cpu[0].max_idle_balance_cost, 500000);

	/* It goes on decaying where another CPU balances. */
	sd[0].last_balance = 0;
	sd[1].max_newidle_lb_cost = 256000;
	periodic_begin(&sys, &walk, 0, CW_NOT_IDLE, 7 * second);
	CHECK_EQ(periodic_next(&sys, &walk), 0);
	periodic_account(&sys, &walk, 0, false);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE);
	CHECK_EQ(sd[1].max_newidle_lb_cost, 253000);

	/* But only as far as there is something to decay. */
	SYS_BALANCE(8, LEVEL_MC(2), LEVEL_MC(4), LEVEL_PKG(8));
	sd[2].max_newidle_lb_cost = 256000;
	sd[1].last_decay_max_lb_cost = 9 * second;
	periodic_begin(&sys, &walk, 0, CW_NOT_IDLE, 9 * second);
	CHECK_EQ(periodic_next(&sys, &walk), 0);
	periodic_account(&sys, &walk, 0, false);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE);
	CHECK_EQ(sd[2].max_newidle_lb_cost, 256000);
	sd[0].last_decay_max_lb_cost = sd[1].last_decay_max_lb_cost = 0;
	periodic_begin(&sys, &walk, 0, CW_NOT_IDLE, 9 * second);
	CHECK_EQ(periodic_next(&sys, &walk), 0);
	periodic_account(&sys, &walk, 0, false);
	CHECK_EQ(periodic_next(&sys, &walk), CW_NONE);
	CHECK_EQ(sd[2].max_newidle_lb_cost, 253000);

	/* The top level did not decay: the CPU's own cost stays. */
	setup();
	sys.cpu[0].max_idle_balance_cost = 9000000;
	sd[1].last_decay_max_lb_cost = 9 * second;
	periodic_begin(&sys, &walk, 0, CW_NOT_IDLE, 9 * second);
	while (periodic_next(&sys, &walk) != CW_NONE)
		periodic_account(&sys, &walk, 0, true);
	periodic_end(&sys, &walk);
	CHECK_EQ(sys.cpu[0].max_idle_balance_cost, 9000000);
}

static void test_ilb(void)
{
	struct cw_cpumask idle, all;

	setup();
	idle = mask_range(2, 6);
	all = mask_range(0, 7);
	CHECK_EQ(find_new_ilb(&sys, &idle, &all, 0), 2);
	CHECK_EQ(find_new_ilb(&sys, &idle, &all, 2), 3); /* not the one that asks */
	make_tasks(2, 1, 1024, 1024, 1024); /* it has been woken */
	CHECK_EQ(find_new_ilb(&sys, &idle, &all, 0), 3);
	all = mask_range(5, 7);
	CHECK_EQ(find_new_ilb(&sys, &idle, &all, 0), 5);
	all = mask_range(7, 7);
	CHECK_EQ(find_new_ilb(&sys, &idle, &all, 0), -1);
}

static void test_kick(void)
{
	struct cw_cpumask idle;

	setup();
	idle = mask_range(4, 7);
	make_tasks(1, 1, 1024, 1024, 1024);
	sys.llc[sys.cpu[1].llc].nr_busy_cpus = 1;
	CHECK(!nohz_balancer_kick(&sys, 1, &idle));
	sys.llc[sys.cpu[1].llc].nr_busy_cpus = 2;
	CHECK(nohz_balancer_kick(&sys, 1, &idle));

	/* With asymmetric capacity only misfits count. */
	sys.cpu[1].asym_sd = 0;
	CHECK(!nohz_balancer_kick(&sys, 1, &idle));
	sys.cpu[1].misfit_task_load = 1;
	CHECK(nohz_balancer_kick(&sys, 1, &idle));
	sys.cpu[1].misfit_task_load = 0;

	sys.cpu[1].nr_running = 2;
	CHECK(nohz_balancer_kick(&sys, 1, &idle));
	sys.cpu[1].nr_running = 1;

	sys.cpu[1].capacity = 875; /* 875 * 117 < 1024 * 100 <= 876 * 117 */
	CHECK(nohz_balancer_kick(&sys, 1, &idle));
	sys.cpu[1].capacity = 876;
	CHECK(!nohz_balancer_kick(&sys, 1, &idle));

	/* A preferred CPU is idle, in the highest domain that packs. */
	sys.domain[sys.cpu_sd[1][1].domain].flags |= SD_ASYM_PACKING;
	CHECK(!nohz_balancer_kick(&sys, 1, &idle));
	idle = mask_range(0, 0);
	CHECK(nohz_balancer_kick(&sys, 1, &idle));
}

int main(void)
{
	test_interval();
	test_due();
	test_walk();
	test_decay();
	test_ilb();
	test_kick();
	return test_report("balance_periodic");
}
