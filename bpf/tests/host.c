/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What hosts in BPF keep (host.bpf.h), natively: sequences of events whose queue lengths
 * and averages can be worked out by hand.
 */
#include <string.h>

/* the tests of the policy have a system of their own */
#define sys policy_test_sys
#include "tests/test.h"
#undef sys

/* what host.bpf.h takes from the kernel */
#define PF_KTHREAD 0x00200000
struct cpumask {
	unsigned long bits[1];
};
struct task_struct {
	int pid, static_prio, nr_cpus_allowed;
	unsigned int flags, policy;
};

static u32 this_cpu;

static u32 bpf_get_smp_processor_id(void)
{
	return this_cpu;
}

static long bpf_probe_read_kernel(void *to, u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

#include "common/host.bpf.h"

/* One period of the averages, which halve in 32. */
#define PERIOD (1024ULL * 1024)
#define START (1000 * PERIOD)
#define NICE_0 120
#define NICE_5 125 /* weight 335 */

static struct task_struct kernel_task[2];
static struct host_task task[2];

/* Two idle CPUs of a cache each, and two tasks that have slept for long. */
static void begin(void)
{
	int i;

	memset(&sys, 0, sizeof(sys));
	memset(host_cpu, 0, sizeof(host_cpu));
	memset(task, 0, sizeof(task));
	sys.nr_cpus = 2;
	sys.mask_words = 1;
	sys.features[CW_FEAT_UTIL_EST / 64] = 1ULL << CW_FEAT_UTIL_EST % 64;
	for (i = 0; i < 2; i++) {
		sys.cpu[i].capacity_orig = sys.cpu[i].capacity = 1024;
		sys.cpu[i].curr_is_idle = 1;
		sys.cpu[i].llc = i;
		sys.cpu[i].asym_sd = CW_NONE;
		sys.llc[i].domain = CW_NONE;
		kernel_task[i] = (struct task_struct){ .pid = i + 1, .static_prio = NICE_0 };
		host_init_task(&task[i], &kernel_task[i], false);
		/* no load of its own to begin with */
		task[i].policy.avg.load_avg = 0;
	}
}

static void run(int i, s32 cpu, u64 now)
{
	host_set_next_task(&task[i], cpu, now);
}

static void sleep_now(int i, s32 cpu, u64 now)
{
	host_put_prev_task(&task[i], cpu, now);
	host_dequeue_task(&task[i], now, true);
	host_set_idle(cpu, true, now);
}

/* A task wakes, runs for 32 periods and sleeps for 32. */
static void test_one_task(void)
{
	const struct cw_cpu *rq = &sys.cpu[0];

	begin();
	CHECK(idle_cpu(&sys, 0));
	host_enqueue_task(&task[0], 0, START);
	CHECK_EQ(rq->nr_running, 1);
	CHECK_EQ(rq->cfs_nr_running, 1);
	CHECK_EQ(rq->load_weight, 1024);
	CHECK(!idle_cpu(&sys, 0));
	run(0, 0, START);
	CHECK_EQ(rq->nr_running, 1); /* it was counted before */
	CHECK(!rq->curr_is_idle);
	sleep_now(0, 0, START + 32 * PERIOD);
	/* 1024 (1 - 1/2), rounded down on the way */
	CHECK(rq->avg.util_avg >= 510 && rq->avg.util_avg <= 512);
	CHECK_EQ(task[0].policy.avg.util_avg, rq->avg.util_avg);
	CHECK_EQ(rq->nr_running, 0);
	CHECK_EQ(rq->load_weight, 0);
	CHECK_EQ(rq->avg.util_est, 0);
	CHECK_EQ(task_util_est_raw(&task[0].policy), task[0].policy.avg.util_avg);
	CHECK(idle_cpu(&sys, 0));
	CHECK_EQ(rq->idle_stamp, START + 32 * PERIOD);
	host_enqueue_task(&task[0], 0, START + 64 * PERIOD);
	CHECK(rq->avg.util_avg >= 254 && rq->avg.util_avg <= 256);
	CHECK_EQ(rq->avg.util_est, task_util_est_raw(&task[0].policy));
}

/* One runs while the other waits: both are runnable, one is running. */
static void test_two_tasks(void)
{
	const struct cw_cpu *rq = &sys.cpu[0];

	begin();
	kernel_task[1].static_prio = NICE_5;
	host_set_weight(&task[1], &kernel_task[1]);
	host_enqueue_task(&task[0], 0, START);
	host_enqueue_task(&task[1], 0, START);
	host_enqueue_task(&task[1], 0, START); /* as when it is woken again */
	run(0, 0, START);
	CHECK_EQ(rq->nr_running, 2);
	CHECK_EQ(rq->load_weight, 1024 + 335);
	sleep_now(0, 0, START + 32 * PERIOD);
	CHECK(rq->avg.util_avg >= 510 && rq->avg.util_avg <= 512);
	/* twice as many were runnable: 2 * 512 */
	CHECK(rq->avg.runnable_avg >= 1020 && rq->avg.runnable_avg <= 1024);
	/* (1024 + 335) / 2 */
	CHECK(rq->avg.load_avg >= 676 && rq->avg.load_avg <= 680);
	CHECK_EQ(rq->nr_running, 1);
	CHECK_EQ(rq->load_weight, 335);
}

/* A balance moves a task that waits; and its weight changes before it leaves. */
static void test_queued_moves(void)
{
	begin();
	host_enqueue_task(&task[0], 0, START);
	host_enqueue_task(&task[1], 0, START);
	host_enqueue_task(&task[1], 1, START + 32 * PERIOD);
	CHECK_EQ(sys.cpu[0].nr_running, 1);
	CHECK_EQ(sys.cpu[1].nr_running, 1);
	CHECK_EQ(sys.cpu[0].load_weight, 1024);
	kernel_task[1].static_prio = NICE_5;
	host_set_weight(&task[1], &kernel_task[1]);
	host_dequeue_task(&task[1], START + 32 * PERIOD, false);
	CHECK_EQ(sys.cpu[1].nr_running, 0);
	CHECK_EQ(sys.cpu[1].load_weight, 0);
	host_dequeue_task(&task[1], START + 32 * PERIOD, false); /* it is gone already */
	CHECK_EQ(sys.cpu[1].nr_running, 0);
}

/* A sleeper wakes elsewhere: what it used follows it. */
static void test_sleeper_moves(void)
{
	u64 now = START + 32 * PERIOD;

	begin();
	run(0, 0, START);
	sleep_now(0, 0, now);
	host_set_task_cpu(&task[0], 1);
	CHECK_EQ(sys.cpu[0].removed.nr, 1);
	host_enqueue_task(&task[0], 1, now);
	CHECK(sys.cpu[1].avg.util_avg >= 510 && sys.cpu[1].avg.util_avg <= 512);
	/* CPU 0 learns of it when it is next brought up to date */
	CHECK(sys.cpu[0].avg.util_avg >= 510);
	host_enqueue_task(&task[1], 0, now);
	CHECK_EQ(sys.cpu[0].avg.util_avg, 0);
	CHECK_EQ(sys.cpu[0].removed.nr, 0);
}

/* A new task begins with half of the capacity that nobody uses. */
static void test_new_task(void)
{
	begin();
	task[0].is_new = 1;
	host_enqueue_task(&task[0], 0, START);
	CHECK_EQ(task[0].policy.avg.util_avg, 512);
	CHECK_EQ(sys.cpu[0].avg.util_avg, 512);
	/* the other one has a share of CPU 0 by weight, as its part of what is used */
	task[1].is_new = 1;
	task[1].policy.avg.load_avg = 1024;
	host_enqueue_task(&task[1], 0, START);
	CHECK_EQ(task[1].policy.avg.util_avg, 256);
}

int main(void)
{
	test_one_task();
	test_two_tasks();
	test_queued_moves();
	test_sleeper_moves();
	test_new_task();
	return test_report("host");
}
