/* SPDX-License-Identifier: GPL-2.0-only */
/* The LLC that a process prefers: LLCs 0-3 and 4-7, epochs of 10 ms. */
#include "test.h"

#include "track/process.h"

static const u64 ms = 1000000;

static struct cw_process process, other;
static u32 nr_running; /* threads of `process` */

static void setup(void)
{
	sys_plain(2, 4);
	process_init(&sys, &process, 0);
	process_init(&sys, &other, 0);
	process.nr_threads = other.nr_threads = 8;
}

/* In the first epoch the process ran `own` us of `all` us on the CPU. */
static void ran(s32 cpu, u64 own, u64 all)
{
	account_process(&sys, &process, cpu, own * 1000, 9 * ms);
	account_process(&sys, &other, cpu, (all - own) * 1000, 9 * ms);
}

static s32 find_llc(u64 now)
{
	process_find_llc(&sys, &process, 0, nr_running, now);
	return process.cache_cpu;
}

static void test_decay(void)
{
	struct cw_runtime r = { .runtime = 4000, .epoch = 10 };

	decay_runtime(&r, 10);
	CHECK_EQ(r.runtime, 4000);
	decay_runtime(&r, 13);
	CHECK_EQ(r.runtime, 500);
	CHECK_EQ(r.epoch, 13);
	decay_runtime(&r, 76); /* 63 epochs */
	CHECK_EQ(r.runtime, 0);
	r.runtime = ~0ULL;
	decay_runtime(&r, 139);
	CHECK_EQ(r.runtime, 1);
	r.runtime = ~0ULL;
	decay_runtime(&r, 203); /* 64 */
	CHECK_EQ(r.runtime, 0);

	/* 4 ms in epoch 0 are 2 in epoch 1; then 3 more */
	setup();
	account_process(&sys, &process, 5, 4 * ms, 9 * ms);
	account_process(&sys, &process, 5, 3 * ms, 10 * ms);
	CHECK_EQ(process.runtime[5].runtime, 5 * ms);
	CHECK_EQ(sys.runtime[5].runtime, 5 * ms);
	/* another process's time counts for the CPU only; a kernel thread's not at all */
	account_process(&sys, &other, 5, ms, 19 * ms);
	account_process(&sys, NULL, 5, ms, 19 * ms);
	CHECK_EQ(process.runtime[5].runtime, 5 * ms);
	CHECK_EQ(sys.runtime[5].runtime, 6 * ms);
	/* shorter epochs */
	setup();
	sys.tunable[CW_TUNE_llc_epoch_period] = 5 * (s64)ms;
	account_process(&sys, &process, 5, 4 * ms, 4 * ms);
	account_process(&sys, &process, 5, 3 * ms, 14 * ms);
	CHECK_EQ(process.runtime[5].runtime, 4 * ms);
}

static void test_occupancy(void)
{
	s32 most;

	setup();
	ran(4, 1000, 4000);
	ran(5, 2000, 4000);
	CHECK_EQ(cpu_occupancy(&sys, &process, 4, 0), (1 << 18) - 1); /* a quarter, by 1 ns less */
	CHECK_EQ(cpu_occupancy(&sys, &process, 6, 0), 0);
	CHECK_EQ(llc_occupancy(&sys, &process, sd_llc(&sys, 4), 0, &most),
		 ((1 << 18) + (1 << 19) - 2) / 4);
	CHECK_EQ(most, 5);
	/* an epoch later both have decayed, and the part is the same */
	CHECK_EQ(cpu_occupancy(&sys, &process, 4, 1), (1 << 18) - 1);
}

static void test_find(void)
{
	setup();
	CHECK_EQ(find_llc(9 * ms), -1);
	ran(5, 4000, 4000);
	ran(6, 1000, 4000);
	CHECK_EQ(find_llc(9 * ms), 5);
	/* of the same LLC another CPU */
	ran(6, 8000, 8000);
	ran(5, 0, 8000);
	CHECK_EQ(find_llc(9 * ms), 6);

	/* 1/32 of the LLC's four CPUs: an eighth of one, which is not quite reached */
	setup();
	ran(5, 1000, 8000);
	CHECK_EQ(find_llc(9 * ms), -1);
	ran(5, 1, 1);
	CHECK_EQ(find_llc(9 * ms), 5);
	/* that it prefers it already is no help */
	ran(5, 0, 100);
	CHECK_EQ(find_llc(9 * ms), -1);
	sys.tunable[CW_TUNE_llc_min_occupancy] = 31;
	CHECK_EQ(find_llc(9 * ms), 5);

	/* exactly 1/32: 512 of 4095 + 1 ns on one of four CPUs */
	setup();
	account_process(&sys, &process, 5, 512, 9 * ms);
	account_process(&sys, &other, 5, 4095 - 512, 9 * ms);
	CHECK_EQ(find_llc(9 * ms), 5);

	/* CPUs that share no cache */
	SYS_LEVELS(8, LEVEL_PKG(8));
	process_init(&sys, &process, 0);
	ran(5, 4000, 4000);
	CHECK_EQ(find_llc(9 * ms), -1);
}

static void test_hysteresis(void)
{
	/* 95 % of one CPU there; 189 % here is not twice that, 191 % is more */
	setup();
	ran(5, 950, 1000);
	CHECK_EQ(find_llc(9 * ms), 5);
	ran(0, 950, 1000);
	ran(1, 940, 1000);
	CHECK_EQ(find_llc(9 * ms), 5);
	ran(2, 20, 1000);
	CHECK_EQ(find_llc(9 * ms), 0);
	/* the RFC's first form: more will do */
	setup();
	sys.tunable[CW_TUNE_llc_switch_pct] = 100;
	ran(5, 500, 1000);
	CHECK_EQ(find_llc(9 * ms), 5);
	ran(0, 500, 1000);
	CHECK_EQ(find_llc(9 * ms), 5);
	ran(1, 10, 1000);
	CHECK_EQ(find_llc(9 * ms), 0);
	/* nothing preferred: any will do */
	setup();
	ran(5, 500, 1000);
	ran(0, 501, 1000);
	CHECK_EQ(find_llc(9 * ms), 0);
}

static void test_tick_and_timeout(void)
{
	setup();
	CHECK(!process_tick(&sys, &process, 9 * ms));
	CHECK(process_tick(&sys, &process, 10 * ms));
	CHECK(!process_tick(&sys, &process, 19 * ms)); /* one thread is enough */
	CHECK(process_tick(&sys, &process, 40 * ms));
	CHECK_EQ(process.epoch, 4);
	CHECK(!process_tick(&sys, &process, 30 * ms));

	/* five epochs after the last look, not six */
	process.cache_cpu = 5;
	account_process(&sys, &process, 0, ms, 99 * ms);
	CHECK_EQ(process.cache_cpu, 5);
	account_process(&sys, &process, 0, ms, 100 * ms);
	CHECK_EQ(process.cache_cpu, -1);
	sys.tunable[CW_TUNE_llc_epoch_affinity_timeout] = 6;
	process.cache_cpu = 5;
	account_process(&sys, &process, 0, ms, 100 * ms);
	CHECK_EQ(process.cache_cpu, 5);
	/* a single thread has no use for it */
	process.nr_threads = 1;
	account_process(&sys, &process, 0, ms, 100 * ms);
	CHECK_EQ(process.cache_cpu, -1);
}

/* With SCHED_CACHE: as in 7.3. LLCs of four CPUs and 1000 bytes. */
static void setup_7_3(void)
{
	setup();
	set_feature(CW_FEAT_SCHED_CACHE, true);
	for (s32 cpu = 0; cpu < 8; cpu++)
		sys.llc[sys.cpu[cpu].llc].bytes = 1000;
	nr_running = 0;
}

/* What it prefers after it ran on CPU 5 for a whole epoch, with these averages. */
static s32 tolerated(s64 tolerance, u64 running, u64 footprint)
{
	setup_7_3();
	sys.tunable[CW_TUNE_llc_aggr_tolerance] = tolerance;
	process.nr_running_avg = running;
	process.footprint = footprint;
	ran(5, 1000, 1000);
	return find_llc(9 * ms);
}

static void test_tolerance(void)
{
	/* 4/5 of four CPUs are 3.2; the whole cache */
	CHECK_EQ(tolerated(1, 3, 1000), 5);
	CHECK_EQ(tolerated(1, 4, 1000), -1);
	CHECK_EQ(tolerated(1, 3, 1001), -1);
	/* twice as many threads, 257 times as much */
	CHECK_EQ(tolerated(2, 6, 257000), 5);
	CHECK_EQ(tolerated(2, 7, 257000), -1);
	CHECK_EQ(tolerated(2, 6, 257001), -1);
	CHECK_EQ(tolerated(0, 0, 0), -1);
	CHECK_EQ(tolerated(99, 1000, 1000), -1);
	CHECK_EQ(tolerated(100, 1000, 1000000000), 5);
	/* a thread takes a core: two CPUs with SMT */
	tolerated(1, 1, 0);
	sys.smt_threads = 2;
	CHECK_EQ(find_llc(9 * ms), 5);
	process.nr_running_avg = 2;
	CHECK_EQ(find_llc(9 * ms), -1);
	/* that is noticed when a thread runs, too */
	process.nr_running_avg = 1;
	CHECK_EQ(find_llc(9 * ms), 5);
	process.nr_running_avg = 2;
	account_process(&sys, &process, 5, 1, 9 * ms);
	CHECK_EQ(process.cache_cpu, -1);
	/* without SCHED_CACHE one thread is too few, and none too many */
	setup();
	process.nr_running_avg = 1000;
	process.footprint = 1000;
	ran(5, 1000, 1000);
	CHECK_EQ(find_llc(9 * ms), 5);
	process.nr_threads = 1;
	CHECK_EQ(find_llc(9 * ms), -1);
}

static void test_running_avg(void)
{
	/* half of the way with four CPUs, rounded towards the old value */
	setup_7_3();
	ran(5, 1000, 1000);
	nr_running = 3;
	find_llc(9 * ms);
	CHECK_EQ(process.nr_running_avg, 1);
	find_llc(9 * ms);
	CHECK_EQ(process.nr_running_avg, 2);
	find_llc(9 * ms);
	CHECK_EQ(process.nr_running_avg, 2);
	nr_running = 0;
	find_llc(9 * ms);
	CHECK_EQ(process.nr_running_avg, 1);
	/* a third with 12, an eighth with 32 and more */
	sys.llc[sys.cpu[0].llc].weight = 12;
	nr_running = 7;
	find_llc(9 * ms);
	CHECK_EQ(process.nr_running_avg, 3);
	sys.llc[sys.cpu[0].llc].weight = 64;
	nr_running = 19;
	find_llc(9 * ms);
	CHECK_EQ(process.nr_running_avg, 5);
	/* a process that does not fit does not search any more */
	process.nr_running_avg = 60;
	find_llc(9 * ms);
	CHECK_EQ(process.nr_running_avg, 60);
	nr_running = 0;
}

static void test_sum(void)
{
	/* a little of one CPU is enough, and goes by the sum: 0.55 of four CPUs beat 0.5 of two, though not by the mean */
	setup_7_3();
	ran(5, 1, 1000);
	CHECK_EQ(find_llc(9 * ms), 5);
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_PKG(8));
	process_init(&sys, &process, 0);
	process.nr_threads = 8;
	sys.domain[sys.llc[sys.cpu[4].llc].domain].weight = 2;
	ran(0, 550, 1000);
	ran(5, 500, 1000);
	CHECK_EQ(find_llc(9 * ms), 5);
	set_feature(CW_FEAT_SCHED_CACHE, true);
	process.cache_cpu = -1;
	CHECK_EQ(find_llc(9 * ms), 0);
}

/* SCHED_CACHE needs an LLC of several CPUs in a domain that has others. */
static void test_enabled(void)
{
	SYS_LEVELS(8, LEVEL_MC(8));
	set_feature(CW_FEAT_SCHED_CACHE, true);
	CHECK(!sched_cache_enabled(&sys));
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_PKG(8));
	CHECK(!sched_cache_enabled(&sys));
	set_feature(CW_FEAT_SCHED_CACHE, true);
	CHECK(sched_cache_enabled(&sys));
	SYS_LEVELS(8, LEVEL_MC(1), LEVEL_PKG(8));
	set_feature(CW_FEAT_SCHED_CACHE, true);
	CHECK(!sched_cache_enabled(&sys));
}

static void test_task(void)
{
	struct cw_task p = { .flags = CW_TASK_SCHED_IDLE };

	setup();
	process.cache_cpu = 3;
	task_cache_cpu(&p, &process);
	CHECK_EQ(p.flags, CW_TASK_SCHED_IDLE | CW_TASK_CACHE_CPU);
	CHECK_EQ(p.cache_cpu, 3);
	CHECK_EQ(p.nr_threads, 8);
	process.cache_cpu = -1;
	task_cache_cpu(&p, &process);
	CHECK_EQ(p.flags, CW_TASK_SCHED_IDLE);
	p.flags |= CW_TASK_CACHE_CPU;
	task_cache_cpu(&p, NULL);
	CHECK_EQ(p.flags, CW_TASK_SCHED_IDLE);
}

int main(void)
{
	test_decay();
	test_occupancy();
	test_find();
	test_hysteresis();
	test_tick_and_timeout();
	test_tolerance();
	test_running_avg();
	test_sum();
	test_enabled();
	test_task();
	return test_report("process");
}
