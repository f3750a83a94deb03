/* SPDX-License-Identifier: GPL-2.0-only */
/* select_idle_sibling() on CPUs of equal capacity: one state for each of its branches. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

/* Target `target`, previous CPU `prev`: a sync waker alone on the target draws the task. */
static void wake_with_target(s32 target, s32 prev)
{
	new_wakeup(WF_TTWU | (target != prev ? WF_SYNC : 0), target, prev);
}

static void test_target_idle(void)
{
	sys_plain(1, 4);
	wake_with_target(1, 1);
	make_idle(0);
	make_idle(1);
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	make_sched_idle(1);
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);

	/* not idle: a task is on its way, one has just been queued, or beside a SCHED_IDLE task */
	make_idle(1);
	sys.cpu[1].ttwu_pending = 1;
	decide_wakeup();
	EXPECT(d, 0, IDLE_CPU);
	sys.cpu[1].ttwu_pending = 0;
	sys.cpu[1].nr_running = 1;
	decide_wakeup();
	EXPECT(d, 0, IDLE_CPU);
	make_sched_idle(1);
	sys.cpu[1].nr_running = 2;
	decide_wakeup();
	EXPECT(d, 0, IDLE_CPU);
}

static void test_prev_idle(void)
{
	sys_plain(2, 4);
	make_idle(1);
	make_idle(3);
	make_idle(5);
	wake_with_target(0, 3);
	decide_wakeup();
	CHECK_EQ(d.target, 0);
	EXPECT(d, 3, PREV_IDLE);
	make_sched_idle(3);
	decide_wakeup();
	EXPECT(d, 3, PREV_IDLE);
	/* in another cache */
	wake_with_target(0, 5);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
}

static void test_percpu_kthread(void)
{
	sys_plain(1, 4);
	make_idle(2);
	wake_with_target(0, 0);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	decide_wakeup();
	EXPECT(d, 0, PERCPU_KTHREAD);
	wakeup.in_task = 0;
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
	wakeup.in_task = 1;
	waker.flags = CW_TASK_SCHED_IDLE;
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	sys.cpu[0].nr_running = 2;
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
	wake_with_target(0, 1);
	waker.flags = CW_TASK_PERCPU_KTHREAD;
	sys.cpu[0].nr_running = 1;
	decide_wakeup();
	EXPECT(d, 2, IDLE_CPU);
}

static void test_recent_used_cpu(void)
{
	sys_plain(2, 4);
	make_idle(1);
	make_idle(3);
	make_idle(5);
	wake_with_target(0, 0);
	wakee.recent_used_cpu = 3;
	decide_wakeup();
	EXPECT(d, 3, RECENT_IDLE);
	CHECK_EQ(wakee.recent_used_cpu, 0); /* the previous CPU takes its place */
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);

	make_sched_idle(3);
	wakee.recent_used_cpu = 3;
	decide_wakeup();
	EXPECT(d, 3, RECENT_IDLE);
	/* busy, in another cache, not allowed */
	wakee.recent_used_cpu = 2;
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	wakee.recent_used_cpu = 5;
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	CHECK(!(d.notes & CW_NOTE_AFFINITY));
	wakee.recent_used_cpu = 3;
	allowed = mask_range(0, 2);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	CHECK(d.notes & CW_NOTE_AFFINITY);
	/* never set */
	wakee.recent_used_cpu = -1;
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);

	/* a decision before it leaves it alone */
	make_idle(0);
	wakee.recent_used_cpu = 3;
	decide_wakeup();
	EXPECT(d, 0, TARGET_IDLE);
	CHECK_EQ(wakee.recent_used_cpu, 3);
}

static void test_scan_order(void)
{
	s32 first;

	/* upwards from the target and round */
	sys_plain(2, 8);
	make_idle(1);
	make_idle(6);
	wake_with_target(2, 2);
	decide_wakeup();
	EXPECT(d, 6, IDLE_CPU);
	CHECK_EQ(d.cpus_scanned, 4); /* 3, 4, 5, 6 */
	/* negative control: a scan from the lowest CPU would have chosen another */
	for_each_cpu(&sys, first, &sys.domain[0].span)
		if (choose_idle_cpu(&sys, first, &wakee))
			break;
	CHECK_EQ(first, 1);
	CHECK(first != d.cpu);

	make_busy(6, 1024, 1024);
	make_idle(9); /* another cache: never looked at */
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	CHECK_EQ(d.cpus_scanned, 7); /* 3..7, 0, 1 */
	/* SCHED_IDLE counts as idle, the first one met wins */
	make_sched_idle(4);
	decide_wakeup();
	EXPECT(d, 4, IDLE_CPU);
	/* only allowed CPUs are looked at */
	allowed = mask_range(0, 3);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	CHECK_EQ(d.cpus_scanned, 3); /* 3, 0, 1 */
	/* the last CPU of the system as target */
	make_idle(9);
	wake_with_target(15, 15);
	decide_wakeup();
	EXPECT(d, 9, IDLE_CPU);
	CHECK_EQ(d.cpus_scanned, 2); /* 8, 9 */
}

static void test_sis_util(void)
{
	sys_plain(1, 8);
	make_idle(1);
	wake_with_target(2, 2);
	sys.llc[0].nr_idle_scan = 7; /* 3, 4, 5, 6, 7, 0, 1 */
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	CHECK_EQ(d.cpus_scanned, 7);
	CHECK(!(d.notes & CW_NOTE_SCAN_LIMIT));
	sys.llc[0].nr_idle_scan = 6;
	decide_wakeup();
	EXPECT(d, 2, TARGET_BUSY);
	CHECK_EQ(d.cpus_scanned, 6);
	CHECK(d.notes & CW_NOTE_SCAN_LIMIT);
	sys.llc[0].nr_idle_scan = 0;
	decide_wakeup();
	EXPECT(d, 2, TARGET_BUSY);
	CHECK_EQ(d.cpus_scanned, 0);
	CHECK_EQ(d.notes & (CW_NOTE_SIS_UTIL_STOP | CW_NOTE_SCAN_LIMIT), CW_NOTE_SIS_UTIL_STOP);
	set_feature(CW_FEAT_SIS_UTIL, false);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	sys.llc[0].nr_idle_scan = 0xffffffff;
	set_feature(CW_FEAT_SIS_UTIL, true);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
}

static void test_all_busy(void)
{
	sys_plain(1, 4);
	wake_with_target(0, 3);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	CHECK_EQ(d.cpus_scanned, 4); /* the target too, at the end of the round */

	/* an LLC of one CPU has no domain to search */
	SYS_LEVELS(4, LEVEL_PKG(4));
	make_idle(1);
	wake_with_target(0, 0);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	CHECK_EQ(d.cpus_scanned, 0);
}

static void test_smt_sibling(void)
{
	/* cores {0,1} {2,3} {4,5} {6,7}; none idle */
	sys_smt(1, 4);
	make_idle(1);
	make_idle(3);
	wake_with_target(0, 2);
	decide_wakeup();
	EXPECT(d, 3, IDLE_SMT); /* of the previous CPU, not of the target */
	CHECK_EQ(d.cpus_scanned, 1);
	make_sched_idle(3);
	decide_wakeup();
	EXPECT(d, 3, IDLE_SMT);
	/* not allowed there */
	allowed = mask_range(0, 2);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);
	/* outside the LLC's domain, as an isolated CPU is */
	allowed = mask_range(0, 7);
	sys.domain[sys.llc[0].domain].span.bits[0] &= ~(1ULL << 3);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);

	/* previous CPU in another cache: 9 is idle beside it, 1 is found by the scan */
	sys_smt(2, 4);
	make_idle(1);
	make_idle(9);
	wake_with_target(0, 8);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);

	/* a cache with an idle core is searched for that core first */
	sys_smt(1, 4);
	sys.llc[0].has_idle_cores = 1;
	make_idle(3);
	make_idle(6);
	make_idle(7);
	wake_with_target(0, 2);
	decide_wakeup();
	EXPECT(d, 6, IDLE_CORE);
}

static void test_idle_core(void)
{
	sys_smt(1, 4);
	sys.llc[0].has_idle_cores = 1;
	make_idle(1);
	make_idle(4);
	make_idle(5);
	wake_with_target(2, 2);
	decide_wakeup();
	EXPECT(d, 4, IDLE_CORE);
	CHECK_EQ(d.cpus_scanned, 4); /* {2,3} {4,5} */
	CHECK_EQ(sys.llc[0].has_idle_cores, 1);

	/* met by its second thread, the core is still taken, and that thread is the choice */
	wake_with_target(4, 4);
	make_busy(4, 1024, 1024);
	make_idle(0);
	decide_wakeup();
	EXPECT(d, 0, IDLE_CORE);
	allowed = mask_range(1, 7);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CORE); /* 0 may not be used, but has to be idle */

	/* the scan limit does not apply to cores, but 0 stops it */
	sys.llc[0].nr_idle_scan = 1;
	decide_wakeup();
	EXPECT(d, 1, IDLE_CORE);
	sys.llc[0].nr_idle_scan = 0;
	decide_wakeup();
	EXPECT(d, 4, TARGET_BUSY);
	CHECK(d.notes & CW_NOTE_SIS_UTIL_STOP);
	CHECK_EQ(sys.llc[0].has_idle_cores, 1);
}

static void test_no_idle_core(void)
{
	/* the hint was wrong: it is cleared, and the first idle CPU seen on the way is taken */
	sys_smt(1, 4);
	sys.llc[0].has_idle_cores = 1;
	make_idle(1);
	make_idle(7);
	wake_with_target(2, 2);
	decide_wakeup();
	EXPECT(d, 7, IDLE_CPU);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0);
	/* each core once: {2,3} {4,5} {6,7} in full, {0} */
	CHECK_EQ(d.cpus_scanned, 7);

	/* a SCHED_IDLE CPU is remembered, but is no part of an idle core */
	sys.llc[0].has_idle_cores = 1;
	make_sched_idle(4);
	make_idle(5);
	decide_wakeup();
	EXPECT(d, 4, IDLE_CPU);
	/* one that is not allowed is not remembered, though it makes no core either */
	sys.llc[0].has_idle_cores = 1;
	allowed = mask_range(0, 3);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);

	/* nor is an idle one that is not allowed: 5 beside 4 */
	sys.llc[0].has_idle_cores = 1;
	allowed = mask_range(0, 4);
	make_busy(4, 1024, 1024);
	decide_wakeup();
	EXPECT(d, 1, IDLE_CPU);

	/* nothing idle at all */
	make_busy(1, 1024, 1024);
	sys.llc[0].has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 2, TARGET_BUSY);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0);
}

static void test_update_idle_core(void)
{
	sys_smt(2, 2);
	make_idle(1);
	update_idle_core(&sys, 1);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0); /* its sibling is busy */
	make_sched_idle(0);
	update_idle_core(&sys, 1);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0);
	make_idle(0);
	update_idle_core(&sys, 1);
	CHECK_EQ(sys.llc[0].has_idle_cores, 1);
	CHECK_EQ(sys.llc[4].has_idle_cores, 0); /* the other cache */

	sys_plain(1, 4); /* without SMT there is nothing to record */
	make_idle(1);
	update_idle_core(&sys, 1);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0);
}

static void test_cluster(void)
{
	/* clusters 0-3 and 4-7 in one LLC, 8-15 the other */
	SYS_LEVELS(16, LEVEL_CLS(4), LEVEL_MC(8), LEVEL_PKG(16));
	make_idle(3);
	make_idle(5);
	wake_with_target(2, 3);
	decide_wakeup();
	EXPECT(d, 3, PREV_IDLE); /* same cluster */

	/* idle, but of another cluster: an idle CPU of the own cluster goes before it */
	wake_with_target(2, 5);
	decide_wakeup();
	EXPECT(d, 3, CLUSTER_IDLE);
	/* then any idle CPU of the LLC in scan order */
	make_busy(3, 1024, 1024);
	make_idle(4);
	decide_wakeup();
	EXPECT(d, 4, IDLE_CPU);
	CHECK_EQ(d.cpus_scanned, 5); /* 3, 0, 1, 2, then 4 */
	/* then the previous CPU after all */
	make_busy(4, 1024, 1024);
	sys.llc[0].nr_idle_scan = 4;
	decide_wakeup();
	EXPECT(d, 5, PREV_IDLE);
	CHECK_EQ(d.cpus_scanned, 4);

	/* the recently used CPU in the same order */
	make_idle(6);
	wake_with_target(2, 2);
	wakee.recent_used_cpu = 6;
	decide_wakeup();
	EXPECT(d, 6, RECENT_IDLE);
	sys.llc[0].nr_idle_scan = 8;
	wakee.recent_used_cpu = 6;
	decide_wakeup();
	EXPECT(d, 5, IDLE_CPU);
	make_idle(1);
	wakee.recent_used_cpu = 1;
	decide_wakeup();
	EXPECT(d, 1, RECENT_IDLE);

	/* hybrid: clusters elsewhere only, so the LLC is searched as one */
	wake_with_target(2, 2);
	make_busy(6, 1024, 1024);
	decide_wakeup();
	EXPECT(d, 1, CLUSTER_IDLE);
	sys.group[sys.domain[sys.llc[0].domain].first_group].flags &= ~(u32)SD_CLUSTER;
	decide_wakeup();
	EXPECT(d, 5, IDLE_CPU);

	/* the same state without clusters: the previous CPU at once */
	SYS_LEVELS(16, LEVEL_MC(8), LEVEL_PKG(16));
	make_idle(3);
	make_idle(5);
	wake_with_target(2, 5);
	decide_wakeup();
	EXPECT(d, 5, PREV_IDLE);
}

static void test_cluster_cores(void)
{
	/* clusters 0-3 and 4-7 of two cores each */
	SYS_LEVELS(8, LEVEL_SMT(2), LEVEL_CLS(4), LEVEL_MC(8));
	sys.llc[0].has_idle_cores = 1;
	make_idle(2);
	make_idle(3);
	make_idle(6);
	make_idle(7);
	wake_with_target(0, 0);
	decide_wakeup();
	EXPECT(d, 2, IDLE_CORE);
	/* a core of the other cluster beats a single CPU of this one */
	make_busy(2, 1024, 1024);
	decide_wakeup();
	EXPECT(d, 6, IDLE_CORE);
	/* without a core the CPU seen first: of this cluster */
	make_busy(6, 1024, 1024);
	decide_wakeup();
	EXPECT(d, 3, IDLE_CPU);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0);
}

int main(void)
{
	test_target_idle();
	test_prev_idle();
	test_percpu_kthread();
	test_recent_used_cpu();
	test_scan_order();
	test_sis_util();
	test_all_busy();
	test_smt_sibling();
	test_idle_core();
	test_no_idle_core();
	test_update_idle_core();
	test_cluster();
	test_cluster_cores();
	return test_report("wakeup_idle");
}
