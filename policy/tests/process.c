/* SPDX-License-Identifier: GPL-2.0-only */
/* The LLC that a process prefers: LLCs 0-3 and 4-7, epochs of 10 ms. */
#include "test.h"

#include "../process.h"

static const u64 ms = 1000000;

static struct cw_process process, other;

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
	process_find_llc(&sys, &process, now);
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
	test_task();
	return test_report("process");
}
