/* SPDX-License-Identifier: GPL-2.0-only */
/* Wakeups and new tasks of a kernel that packs tasks on busy CPUs (vcpu_pack). */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

/* CPUs 0 and 2 have room, 1 and 3 are idle. */
static void new_case(s64 packed, u32 wake_flags, s32 this_cpu, s32 prev)
{
	sys_plain(1, 4);
	make_busy(0, 100, 200);
	make_busy(2, 100, 200);
	make_idle(1);
	make_idle(3);
	new_wakeup(wake_flags, this_cpu, prev);
	sys.tunable[CW_TUNE_vcpu_pack] = packed;
}

#define EXPECT_CPU(cpu, why)                                                   \
	do {                                                                   \
		select_task_rq_fair(&sys, &wakeup, &d);                        \
		EXPECT(d, cpu, why);                                           \
	} while (0)

static void test_off(void)
{
	new_case(0, WF_TTWU, 0, 1);
	EXPECT_CPU(1, TARGET_IDLE);
	/* none of the other bits is for this wakeup */
	new_case(VCPU_PACK_IDLE_WAKER | VCPU_PACK_SYNC | VCPU_PACK_FORK, WF_TTWU, 0, 1);
	EXPECT_CPU(1, TARGET_IDLE);
}

static void test_idle_waker(void)
{
	/* an interrupt on an idle CPU; tasks that may not run there do not */
	new_case(VCPU_PACK_IDLE_WAKER, WF_TTWU, 3, 1);
	EXPECT_CPU(3, VCPU_PACK);
	new_case(VCPU_PACK_IDLE_WAKER, WF_TTWU, 3, 1);
	allowed = mask_range(0, 2);
	EXPECT_CPU(1, TARGET_IDLE);
	/* a task is queued there already */
	new_case(VCPU_PACK_IDLE_WAKER, WF_TTWU, 3, 1);
	sys.cpu[3].nr_running = 1;
	EXPECT_CPU(1, TARGET_IDLE);
}

static void test_sync(void)
{
	new_case(VCPU_PACK_SYNC, WF_TTWU | WF_SYNC, 2, 1);
	EXPECT_CPU(2, VCPU_PACK);
	new_case(VCPU_PACK_SYNC, WF_TTWU | WF_SYNC, 2, 1);
	wakee.nr_cpus_allowed = 1;
	select_task_rq_fair(&sys, &wakeup, &d);
	CHECK(d.reason != CW_REASON_VCPU_PACK);
}

static void test_wakeup(void)
{
	/* the previous CPU, the waker's, the first other one */
	new_case(VCPU_PACK_WAKEUP, WF_TTWU, 0, 2);
	EXPECT_CPU(2, VCPU_PACK);
	new_case(VCPU_PACK_WAKEUP, WF_TTWU, 2, 1);
	EXPECT_CPU(2, VCPU_PACK);
	new_case(VCPU_PACK_WAKEUP, WF_TTWU, 2, 1);
	make_busy(2, 1024, 1024);
	EXPECT_CPU(0, VCPU_PACK);
	/* none */
	new_case(VCPU_PACK_WAKEUP, WF_TTWU, 2, 1);
	make_busy(2, 1024, 1024);
	make_busy(0, 1024, 1024);
	EXPECT_CPU(1, TARGET_IDLE);
}

static void test_room(void)
{
	/* 70 % of 1024 are 716.8: with the wakee's 100 on another CPU, and without on its own */
	new_case(VCPU_PACK_SYNC, WF_TTWU | WF_SYNC, 0, 1);
	make_busy(0, 100, 616);
	EXPECT_CPU(0, VCPU_PACK);
	make_busy(0, 100, 617);
	EXPECT_CPU(1, PREV_IDLE);
	new_case(VCPU_PACK_SYNC, WF_TTWU | WF_SYNC, 0, 0);
	make_busy(0, 100, 716);
	EXPECT_CPU(0, VCPU_PACK);
	/* a second runnable task, one of another class, one on its way; not a delayed sleeper */
	new_case(VCPU_PACK_SYNC, WF_TTWU | WF_SYNC, 0, 1);
	sys.cpu[0].nr_running = sys.cpu[0].cfs_nr_running = 2;
	EXPECT_CPU(1, TARGET_IDLE);
	sys.cpu[0].cfs_nr_delayed = 1;
	EXPECT_CPU(0, VCPU_PACK);
	new_case(VCPU_PACK_SYNC, WF_TTWU | WF_SYNC, 0, 1);
	sys.cpu[0].nr_running = 2;
	EXPECT_CPU(1, TARGET_IDLE);
	new_case(VCPU_PACK_SYNC, WF_TTWU | WF_SYNC, 0, 1);
	sys.cpu[0].ttwu_pending = 1;
	EXPECT_CPU(1, PREV_IDLE);
}

static void test_new_tasks(void)
{
	new_case(VCPU_PACK_FORK, WF_FORK, 0, 0);
	EXPECT_CPU(0, VCPU_PACK);
	new_case(VCPU_PACK_IDLE_WAKER | VCPU_PACK_SYNC | VCPU_PACK_WAKEUP, WF_FORK, 0, 0);
	select_task_rq_fair(&sys, &wakeup, &d);
	CHECK(d.cpu == 1 || d.cpu == 3);
	/* who calls exec runs there; with another one there is room for it, and not for a new task */
	new_case(VCPU_PACK_FORK, WF_EXEC, 0, 0);
	sys.cpu[0].nr_running = sys.cpu[0].cfs_nr_running = 2;
	EXPECT_CPU(0, VCPU_PACK);
	new_case(VCPU_PACK_FORK, WF_FORK, 0, 0);
	sys.cpu[0].nr_running = sys.cpu[0].cfs_nr_running = 2;
	select_task_rq_fair(&sys, &wakeup, &d);
	CHECK(d.cpu == 1 || d.cpu == 3);
}

int main(void)
{
	test_off();
	test_idle_waker();
	test_sync();
	test_wakeup();
	test_room();
	test_new_tasks();
	return test_report("wakeup_vcpu_pack");
}
