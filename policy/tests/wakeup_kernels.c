/* SPDX-License-Identifier: GPL-2.0-only */
/* Wakeups: where 7.3 differs from 6.12, and state that only a kernel's snapshot has. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

static void expect_either(enum cw_feature f, s32 without, u32 why, s32 with, u32 why_with)
{
	struct cw_task p = wakee, w = waker;

	set_feature(f, false);
	decide_wakeup();
	check_decision(__FILE__, __LINE__, &d, without, why);
	wakee = p;
	waker = w;
	set_feature(f, true);
	decide_wakeup();
	check_decision(__FILE__, __LINE__, &d, with, why_with);
	wakee = p;
	waker = w;
}

/* The decision without and with the feature, on the same state. */
#define EXPECT_EITHER(f, without, why, with, why_with)                         \
	expect_either(CW_FEAT_##f, without, CW_REASON_##why, with, CW_REASON_##why_with)

static void test_sync_waker_beside_a_delayed_sleeper(void)
{
	/* the waker and another are queued on its CPU; the other is but a sleeper */
	sys_plain(2, 4);
	set_feature(CW_FEAT_WA_WEIGHT, false);
	new_wakeup(WF_TTWU | WF_SYNC, 0, 5);
	sys.cpu[0].nr_running = sys.cpu[0].cfs_nr_running = 2;
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	sys.cpu[0].cfs_nr_delayed = 1;
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	CHECK(d.notes & CW_NOTE_WA_IDLE);
	/* two sleepers and the waker; then one sleeper, the waker and another */
	sys.cpu[0].nr_running = sys.cpu[0].cfs_nr_running = 3;
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	sys.cpu[0].cfs_nr_delayed = 2;
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	/* the stacking rule counts them: only the waker may be queued there */
	sys_plain(1, 4);
	make_idle(2);
	new_wakeup(WF_TTWU, 0, 0);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	sys.cpu[0].nr_running = sys.cpu[0].cfs_nr_running = 2;
	sys.cpu[0].cfs_nr_delayed = 1;
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
}

static void in_group(struct cw_task *p, u64 load_avg, u64 group_load, u64 h_load)
{
	p->flags |= CW_TASK_CFS_RQ;
	p->avg.load_avg = load_avg;
	p->cfs_rq = (struct cw_cfs_rq){ .load_avg = group_load, .h_load = h_load };
}

static void test_task_h_load(void)
{
	struct cw_task p = { .avg = { .load_avg = 1000 } };

	CHECK_EQ(task_h_load(&sys, &p, 0), 1000);
	in_group(&p, 1000, 1999, 500); /* half of its group, which has 500 of the CPU's load */
	CHECK_EQ(task_h_load(&sys, &p, 0), 250);
	in_group(&p, 1000, 999, 500); /* alone in it: the +1 makes it less than 500 */
	CHECK_EQ(task_h_load(&sys, &p, 0), 500);
	in_group(&p, 1000, 1000, 500);
	CHECK_EQ(task_h_load(&sys, &p, 0), 499);
	in_group(&p, 1000, 1000, 0);
	CHECK_EQ(task_h_load(&sys, &p, 0), 0);
	in_group(&p, 1000, ~0ULL, 500); /* no kernel says so, but a file may */
	CHECK_EQ(task_h_load(&sys, &p, 0), 500000);

	/* wake_affine() by load, of the whole CPUs 500 + share against 900 - share with 8 % more */
	sys_plain(2, 4);
	sys.cpu[0].avg.load_avg = 500;
	sys.cpu[5].avg.load_avg = 900;
	new_wakeup(WF_TTWU, 0, 5);
	in_group(&wakee, 400, 399, 226); /* 726 * 100 < 674 * 108 */
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	in_group(&wakee, 400, 399, 227); /* 727 * 100 > 673 * 108 */
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	in_group(&wakee, 400, 400, 227); /* 400 * 227 / 401 = 226 */
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	/* the sync waker's own share comes off; more than the CPU's load: its CPU at once */
	wakeup.wake_flags |= WF_SYNC;
	sys.cpu[0].nr_running = 2;
	in_group(&wakee, 400, 399, 400);
	in_group(&waker, 400, 399, 100);
	decide_wakeup();
	CHECK_EQ(d.target, 5); /* (500 - 100 + 400) * 100 against 500 * 108 */
	in_group(&waker, 400, 399, 360);
	decide_wakeup();
	CHECK_EQ(d.target, 0); /* 54000 against 54000 + 1 */
	in_group(&waker, 400, 399, 359);
	decide_wakeup();
	CHECK_EQ(d.target, 5);
	in_group(&waker, 400, 399, 501);
	decide_wakeup();
	CHECK_EQ(d.target, 0);
}

static void test_sched_idle_avoids_peers(void)
{
	/* target, previous CPU, recently used one, any: for a SCHED_IDLE task none is idle */
	sys_plain(1, 4);
	make_sched_idle(1);
	new_wakeup(WF_TTWU, 1, 1);
	EXPECT_EITHER(SCHED_IDLE_AVOIDS_PEERS, 1, TARGET_IDLE, 1, TARGET_IDLE);
	wakee.flags = CW_TASK_SCHED_IDLE;
	EXPECT_EITHER(SCHED_IDLE_AVOIDS_PEERS, 1, TARGET_IDLE, 1, TARGET_BUSY);
	make_idle(3);
	EXPECT_EITHER(SCHED_IDLE_AVOIDS_PEERS, 1, TARGET_IDLE, 3, IDLE_CPU);
	new_wakeup(WF_TTWU | WF_SYNC, 0, 1);
	wakee.flags = CW_TASK_SCHED_IDLE;
	EXPECT_EITHER(SCHED_IDLE_AVOIDS_PEERS, 1, PREV_IDLE, 3, IDLE_CPU);
	new_wakeup(WF_TTWU, 0, 0);
	wakee.flags = CW_TASK_SCHED_IDLE;
	wakee.recent_used_cpu = 1;
	EXPECT_EITHER(SCHED_IDLE_AVOIDS_PEERS, 1, RECENT_IDLE, 3, IDLE_CPU);
	wakee.recent_used_cpu = 0;
	EXPECT_EITHER(SCHED_IDLE_AVOIDS_PEERS, 1, IDLE_CPU, 3, IDLE_CPU);

	/* the sibling; and the second best of a search for an idle core */
	sys_smt(1, 4);
	make_sched_idle(1);
	make_idle(6);
	new_wakeup(WF_TTWU, 0, 0);
	wakee.flags = CW_TASK_SCHED_IDLE;
	EXPECT_EITHER(SCHED_IDLE_AVOIDS_PEERS, 1, IDLE_SMT, 6, IDLE_CPU);
	sys_smt(1, 4);
	make_sched_idle(3);
	make_idle(6);
	new_wakeup(WF_TTWU, 0, 0);
	wakee.flags = CW_TASK_SCHED_IDLE;
	sys.llc[0].has_idle_cores = 1;
	set_feature(CW_FEAT_SCHED_IDLE_AVOIDS_PEERS, false);
	decide_wakeup();
	EXPECT(d, 3, IDLE_CPU);
	wakee.recent_used_cpu = 0;
	sys.llc[0].has_idle_cores = 1;
	set_feature(CW_FEAT_SCHED_IDLE_AVOIDS_PEERS, true);
	decide_wakeup();
	EXPECT(d, 6, IDLE_CPU);
}

static void test_sis_keep_idle_cores(void)
{
	u32 on;

	/* the task may no longer use the cache that it ran in */
	for (on = 0; on <= 1; on++) {
		sys_smt(2, 2);
		set_feature(CW_FEAT_SIS_KEEP_IDLE_CORES, on);
		sys.llc[0].has_idle_cores = 1;
		new_wakeup(WF_TTWU, 0, 0);
		allowed = mask_range(4, 7);
		decide_wakeup();
		EXPECT(d, 0, TARGET_BUSY);
		CHECK_EQ(sys.llc[0].has_idle_cores, on);
		/* with one CPU of it the search has a say */
		allowed = mask_range(3, 7);
		wakee.recent_used_cpu = 0;
		sys.llc[0].has_idle_cores = 1;
		decide_wakeup();
		EXPECT(d, 0, TARGET_BUSY);
		CHECK_EQ(sys.llc[0].has_idle_cores, 0);
	}
}

/* The averages are part of task_cpu's, whatever CPU the task is to wake on. */
static void test_wake_cpu(void)
{
	SYS_LEVELS(4, { 4, LEVEL_FLAGS | SD_BALANCE_WAKE | SD_SHARE_LLC });
	new_wakeup(WF_TTWU, 0, 1);
	wakeup.task_cpu = 2;
	make_busy(1, 500, 500);
	make_busy(2, 500, 500);
	CHECK_EQ(cpu_load_without(&sys, 1, placed()), 500);
	CHECK_EQ(cpu_load_without(&sys, 2, placed()), 400);
	CHECK_EQ(cpu_util_without(&sys, 1, placed()), 500);
	sys.cpu[2].avg.util_est = 0;
	CHECK_EQ(cpu_util_without(&sys, 2, placed()), 400);
	wakee.avg.runnable_avg = 50;
	CHECK_EQ(cpu_runnable_without(&sys, 1, placed()), 500);
	CHECK_EQ(cpu_runnable_without(&sys, 2, placed()), 450);
	make_idle(1);
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	/* a kernel's load is an unsigned int here */
	sys.cpu[2].avg.load_avg = (1ULL << 32) + 300;
	CHECK_EQ(cpu_load_without(&sys, 2, placed()), 200);
	CHECK_EQ(cpu_load_without(&sys, 1, placed()), 0);
}

/* An id for each cluster: a CPU without one compares its cache's first CPU. */
static void test_share_resources(void)
{
	SYS_LEVELS(8, LEVEL_CLS(2), LEVEL_MC(8));
	CHECK(cpus_share_resources(&sys, 2, 3));
	CHECK(!cpus_share_resources(&sys, 2, 4));
	sys.domain[1].flags &= ~(u32)SD_CLUSTER; /* of CPUs 2 and 3: their id is now 0 */
	CHECK(cpus_share_resources(&sys, 2, 3));
	CHECK(cpus_share_resources(&sys, 2, 0));
	CHECK(cpus_share_resources(&sys, 0, 2));
	CHECK(!cpus_share_resources(&sys, 2, 4));
	CHECK(!cpus_share_resources(&sys, 4, 2));
}

int main(void)
{
	test_sync_waker_beside_a_delayed_sleeper();
	test_task_h_load();
	test_sched_idle_avoids_peers();
	test_sis_keep_idle_cores();
	test_wake_cpu();
	test_share_resources();
	return test_report("wakeup_kernels");
}
