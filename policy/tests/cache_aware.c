/* SPDX-License-Identifier: GPL-2.0-only */
/* Seed 003: wakeups to the preferred LLC, tasks that stay there, and when it is crowded. */
#include "balance_test.h"

#include "wakeup/wakeup.h"

static struct cw_llc *here, *there;

/* A task of LLC 0-3 whose process, of 8 threads, prefers LLC 4-7, most of it CPU 5. */
static void setup(void)
{
	SYS_BALANCE(8, SPREAD_MC(4), LEVEL_PKG(8));
	set_feature(CW_FEAT_CACHE_AWARE_WAKEUP, true);
	set_feature(CW_FEAT_CACHE_AWARE_HOT, true);
	here = &sys.llc[sys.cpu[0].llc];
	there = &sys.llc[sys.cpu[4].llc];
	new_wakeup(WF_TTWU, 1, 0);
	wakee.flags = CW_TASK_CACHE_CPU;
	wakee.cache_cpu = 5;
	wakee.nr_threads = 8;
}

static s32 place(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
	return d.cpu;
}

static bool valid(u32 weight, u32 nr_threads, u64 util, u64 nr)
{
	there->weight = weight;
	wakee.nr_threads = nr_threads;
	there->util_avg = util;
	there->nr_avg = nr;
	return valid_target_cpu(&sys, &wakee, 5);
}

static void test_crowded(void)
{
	setup();
	/* the seed's Xeon, 120 CPUs an LLC: 25 % of 120 * 1024, and 40 tasks */
	CHECK(valid(120, 120, 30719, 39));
	CHECK(!valid(120, 120, 30720, 39));
	CHECK(!valid(120, 120, 30719, 40));
	/* processes of fewer threads than CPUs are exempt; in the reviewers' mode they are not */
	CHECK(valid(120, 119, 99999, 99));
	set_feature(CW_FEAT_CACHE_AWARE_CHECK_ALL, true);
	CHECK(valid(120, 119, 30719, 39));
	CHECK(!valid(120, 119, 30720, 39));
	CHECK(!valid(120, 119, 30719, 40));
	set_feature(CW_FEAT_CACHE_AWARE_CHECK_ALL, false);
	/* the thread's Power10, an LLC for a core of 4 threads: no more than one task */
	CHECK(valid(4, 4, 0, 1));
	CHECK(!valid(4, 4, 0, 2));
	/* the thresholds are tunables */
	sys.tunable[CW_TUNE_cache_util_divisor] = 2;
	CHECK(valid(120, 120, 61439, 39));
	CHECK(!valid(120, 120, 61440, 39));
	sys.tunable[CW_TUNE_cache_running_divisor] = 1;
	CHECK(valid(120, 120, 0, 119));
	CHECK(!valid(120, 120, 0, 120));
	/* a cache of one CPU has no figures */
	there->domain = CW_NONE;
	CHECK(!valid(120, 119, 0, 0));
}

static void test_wakeup(void)
{
	/* everything is idle: to the preferred LLC, or to the previous CPU without it */
	setup();
	CHECK_EQ(place(), 5);
	EXPECT(d, 5, TARGET_IDLE);
	CHECK(d.notes & CW_NOTE_CACHE_CPU);
	CHECK_EQ(d.prev_cpu, 0);
	CHECK_EQ(wakeup.prev_cpu, 0);
	set_feature(CW_FEAT_CACHE_AWARE_WAKEUP, false);
	CHECK_EQ(place(), 0);
	CHECK(!(d.notes & CW_NOTE_CACHE_CPU));
	/* from there the wakeup is a plain one: CPU 5 is busy, so another one of its cache */
	setup();
	make_busy(1, 1024, 1024);
	make_busy(5, 1024, 1024);
	CHECK_EQ(place(), 6);
	EXPECT(d, 6, IDLE_CPU);
	/* wake_affine may still prefer the waker's CPU */
	setup();
	make_busy(5, 1024, 1024);
	wakeup.wake_flags |= WF_SYNC;
	make_busy(1, 100, 100);
	CHECK_EQ(d.target, 5);
	place();
	CHECK_EQ(d.target, 1);

	/* crowded */
	setup();
	there->util_avg = 1024;
	CHECK_EQ(place(), 0);
	CHECK(d.notes & CW_NOTE_CACHE_CROWDED);
	there->util_avg = 1023;
	CHECK_EQ(place(), 5);

	/* already in the preferred LLC; no preference; nowhere else to go; not a wakeup */
	setup();
	wakeup.prev_cpu = wakeup.task_cpu = 6;
	there->util_avg = 9999;
	CHECK_EQ(place(), 6);
	CHECK(!(d.notes & (CW_NOTE_CACHE_CPU | CW_NOTE_CACHE_CROWDED)));
	setup();
	wakee.flags = 0;
	CHECK_EQ(place(), 0);
	setup();
	wakee.nr_cpus_allowed = 1;
	CHECK_EQ(place(), 0);
	setup();
	wakeup.wake_flags = WF_EXEC;
	place();
	CHECK(!(d.notes & CW_NOTE_CACHE_CPU));
}

/* NUMA balancing wants it on node 0, where not all tasks want to be. */
static void test_preferred_node(void)
{
	s32 cpu;

	setup();
	for (cpu = 4; cpu < 8; cpu++)
		sys.cpu[cpu].node = 1;
	wakee.numa_preferred_nid = 0;
	sys.cpu[0].nr_running = 1;
	CHECK(place() < 4);
	CHECK(d.notes & CW_NOTE_CACHE_NODE);
	sys.cpu[0].nr_preferred_running = 1;
	place();
	CHECK(d.notes & CW_NOTE_CACHE_CPU);
	sys.cpu[0].nr_preferred_running = 0;
	wakee.numa_preferred_nid = 1;
	place();
	CHECK(d.notes & CW_NOTE_CACHE_CPU);
	wakee.numa_preferred_nid = 0;
	sys.cpu[5].node = 0;
	place();
	CHECK(d.notes & CW_NOTE_CACHE_CPU);
}

/* Would the balance of CPU 4 or 0 take the task from `src`? It last ran long ago. */
static bool taken(s32 dst, s32 src)
{
	struct cw_task p = wakee;

	p.exec_start = 0;
	balance_begin(&env, dst, 1, CW_IDLE, 1000000000);
	env.src_cpu = src;
	return can_migrate_task(&sys, &env, &p, &allowed, false);
}

static void test_hot(void)
{
	/* out of the preferred LLC 4-7 to one that is crowded */
	setup();
	here->util_avg = 1024;
	CHECK(!taken(0, 4));
	here->util_avg = 1023;
	CHECK(taken(0, 4));
	here->nr_avg = 2;
	CHECK(!taken(0, 4));
	/* after more than cache_nice_tries failures it goes */
	sys.cpu_sd[0][1].nr_balance_failed = 1;
	CHECK(!taken(0, 4));
	sys.cpu_sd[0][1].nr_balance_failed = 2;
	CHECK(taken(0, 4));
	/* into it, and within it */
	setup();
	here->util_avg = there->util_avg = 9999;
	CHECK(taken(4, 0));
	CHECK(taken(5, 4));
	/* without a preference, a cost, or the feature */
	CHECK(!taken(0, 4));
	wakee.flags = 0;
	CHECK(taken(0, 4));
	wakee.flags = CW_TASK_CACHE_CPU;
	sys.tunable[CW_TUNE_migration_cost_ns] = 0;
	CHECK(taken(0, 4));
	sys.tunable[CW_TUNE_migration_cost_ns] = 500000;
	set_feature(CW_FEAT_CACHE_AWARE_HOT, false);
	CHECK(taken(0, 4));
}

/* What the balance between LLCs saves is what wakeups see until the next one. */
static void test_saved(void)
{
	setup();
	make_tasks_on(4, 7, 2, 2048, 300, 300);
	CHECK_EQ(there->util_avg, 0);
	place();
	CHECK(d.notes & CW_NOTE_CACHE_CPU); /* it has filled up meanwhile */
	find(0, 1, CW_NEWLY_IDLE);
	CHECK_EQ(there->util_avg, 0);
	find(0, 0, CW_IDLE); /* not a domain of LLCs */
	CHECK_EQ(there->util_avg, 0);
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->util_avg, 1200);
	CHECK_EQ(there->nr_avg, 1); /* 8 / 8 */
	CHECK_EQ(here->nr_avg, 0);
	place();
	CHECK(d.notes & CW_NOTE_CACHE_CROWDED);
	/* and it has emptied: the next wakeups still stay away */
	make_tasks_on(4, 7, 0, 0, 0, 0);
	place();
	CHECK(d.notes & CW_NOTE_CACHE_CROWDED);
	find(0, 1, CW_NOT_IDLE);
	place();
	CHECK(d.notes & CW_NOTE_CACHE_CPU);

	/* the average of tasks: (16 - 1) / 8, (16 - 2) / 8; seven more or less do not move it */
	make_tasks_on(4, 7, 4, 4096, 300, 300);
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->nr_avg, 2);
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->nr_avg, 3);
	there->nr_avg = 9;
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->nr_avg, 9);
	there->nr_avg = 23;
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->nr_avg, 23);
	there->nr_avg = 24;
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->nr_avg, 23);

	/* SMT cores are groups of a domain that shares the cache: nothing of theirs is saved */
	SYS_BALANCE(8, SPREAD_SMT(2), SPREAD_MC(8));
	set_feature(CW_FEAT_CACHE_AWARE_WAKEUP, true);
	make_tasks_on(0, 7, 1, 1024, 300, 300);
	find(0, 1, CW_IDLE);
	CHECK_EQ(sys.llc[0].util_avg, 0);

	/* one feature is enough, none saves nothing */
	setup();
	make_tasks_on(4, 7, 4, 4096, 300, 300);
	set_feature(CW_FEAT_CACHE_AWARE_WAKEUP, false);
	there->util_avg = 7;
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->util_avg, 1200);
	set_feature(CW_FEAT_CACHE_AWARE_HOT, false);
	there->util_avg = 7;
	find(0, 1, CW_IDLE);
	CHECK_EQ(there->util_avg, 7);
}

int main(void)
{
	test_crowded();
	test_wakeup();
	test_preferred_node();
	test_hot();
	test_saved();
	return test_report("cache_aware");
}
