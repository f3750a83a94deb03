/* SPDX-License-Identifier: GPL-2.0-only */
/* Wakeups on states on which kernels until 5.10 decide otherwise, each with the rule off and on. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

/* CPU 5, of another cache, is idle, but has more load left than the waker's CPU. */
static void test_wa_idle_prev(void)
{
	sys_plain(2, 4);
	make_idle(5);
	sys.cpu[5].avg.load_avg = 900;
	sys.cpu[0].avg.load_avg = 10;
	new_wakeup(WF_TTWU, 0, 5);
	decide_wakeup();
	EXPECT(d, 5, TARGET_IDLE);
	set_feature(CW_FEAT_WA_IDLE_PREV, false);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY); /* 110 * 100 < 800 * 108 */
	CHECK(d.notes & CW_NOTE_WA_WEIGHT);
}

/* The waker is on CPU 1, and the only task there; the task ran on CPU 0. */
static void wake_with_recent(s32 recent)
{
	new_wakeup(WF_TTWU | WF_SYNC, 1, 0);
	wakee.recent_used_cpu = recent;
	waker.recent_used_cpu = 3;
}

static void test_recent_used_prev(void)
{
	sys_plain(1, 4);
	wake_with_recent(2);
	decide_wakeup();
	CHECK_EQ(wakee.recent_used_cpu, 0);
	CHECK_EQ(waker.recent_used_cpu, 3);

	set_feature(CW_FEAT_RECENT_USED_PREV, false);
	wake_with_recent(2);
	decide_wakeup();
	EXPECT(d, 1, TARGET_BUSY);
	CHECK_EQ(wakee.recent_used_cpu, 2);
	CHECK_EQ(waker.recent_used_cpu, 1);
	/* it was idle: it is exchanged for the previous CPU */
	make_idle(2);
	wake_with_recent(2);
	decide_wakeup();
	EXPECT(d, 2, RECENT_IDLE);
	CHECK_EQ(wakee.recent_used_cpu, 0);
	/* the task may not run where the waker does */
	wake_with_recent(2);
	allowed = mask_range(2, 3);
	decide_wakeup();
	CHECK_EQ(waker.recent_used_cpu, 3);
}

/* Cores 0-1, 2-3, 4-5, 6-7; the target and previous CPU is 3. */
static void wake_on_3(void)
{
	sys_smt(1, 4);
	set_feature(CW_FEAT_SIS_UTIL, false);
	new_wakeup(WF_TTWU, 3, 3);
}

static void search_in_turn(bool sis_prop)
{
	set_feature(CW_FEAT_SIS_ONE_SEARCH, false);
	set_feature(CW_FEAT_SIS_PROP, sis_prop);
}

static void test_search_in_turn(void)
{
	/* the sibling comes first, and last */
	wake_on_3();
	make_idle(2);
	make_idle(6);
	decide_wakeup();
	EXPECT(d, 2, IDLE_SMT);
	search_in_turn(false);
	decide_wakeup();
	EXPECT(d, 6, IDLE_CPU);
	CHECK_EQ(d.cpus_scanned, 4); /* 3, 4, 5, 6 */
	search_in_turn(true);
	decide_wakeup();
	EXPECT(d, 2, IDLE_SMT);
	CHECK(d.notes & CW_NOTE_SCAN_LIMIT);

	/* it is the target's, not that of the previous CPU */
	make_busy(6, 1024, 1024);
	make_idle(1);
	new_wakeup(WF_TTWU | WF_SYNC, 3, 0);
	decide_wakeup();
	EXPECT(d, 2, IDLE_SMT);
	set_feature(CW_FEAT_SIS_ONE_SEARCH, true);
	wakee.recent_used_cpu = 0;
	decide_wakeup();
	EXPECT(d, 1, IDLE_SMT);

	/* it has to be allowed, idle, and in the target's domain */
	search_in_turn(true);
	wakee.recent_used_cpu = 0;
	allowed = mask_range(3, 7);
	decide_wakeup();
	EXPECT(d, 3, TARGET_BUSY);
	make_busy(2, 1024, 1024);
	allowed = mask_range(2, 7);
	decide_wakeup();
	EXPECT(d, 3, TARGET_BUSY);
	make_idle(2);
	sys.domain[sys.llc[0].domain].span = mask_range(3, 7);
	new_wakeup(WF_TTWU, 3, 3);
	decide_wakeup();
	EXPECT(d, 3, TARGET_BUSY);

	/* without siblings there is none */
	sys_plain(1, 4);
	search_in_turn(true);
	new_wakeup(WF_TTWU, 0, 0);
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	CHECK_EQ(d.cpus_scanned, 3);
}

static void test_core_in_turn(void)
{
	/* a whole core is taken by either */
	wake_on_3();
	make_idle(4);
	make_idle(5);
	sys.llc[0].has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 4, IDLE_CORE);
	search_in_turn(true);
	decide_wakeup();
	EXPECT(d, 4, IDLE_CORE);
	CHECK_EQ(sys.llc[0].has_idle_cores, 1);
	/* where none is noted, none is looked for: the search is for a CPU */
	sys.llc[0].has_idle_cores = 0;
	decide_wakeup();
	EXPECT(d, 4, IDLE_CPU);

	/* none is whole: one search takes what it has seen, the other begins anew */
	wake_on_3();
	make_idle(2);
	make_idle(6);
	sys.llc[0].has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 6, IDLE_CPU);
	search_in_turn(true);
	sys.llc[0].has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 2, IDLE_SMT);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0);
}

static void scan_with(u64 avg_idle, u64 avg_scan_cost, s32 expected)
{
	sys.cpu[3].avg_idle = avg_idle;
	sys.cpu[3].avg_scan_cost = avg_scan_cost;
	decide_wakeup();
	CHECK_EQ(d.cpu, expected);
}

static void test_sis_prop(void)
{
	wake_on_3();
	search_in_turn(true);
	make_idle(2);
	make_idle(6);
	/* 8 CPUs * 5120 / 512 = 80 ns in all, 16 ns for each: 5, one of which is only counted */
	scan_with(5120, 15, 6);
	scan_with(5120, 16, 2); /* 80 / 17 = 4 */
	scan_with(5119, 15, 2); /* 72 / 16 = 4 */
	/* never fewer than 4: CPU 5 is the third */
	make_idle(5);
	scan_with(0, 1000000, 5);
	scan_with(5120, 79, 5);
	make_busy(5, 1024, 1024);
	/* it is the waker's CPU that counts, which another cache makes a difference to */
	sys_plain(2, 8);
	set_feature(CW_FEAT_SIS_UTIL, false);
	search_in_turn(true);
	make_idle(6);
	new_wakeup(WF_TTWU, 8, 0);
	sys.cpu[0].avg_idle = 1000000;
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	sys.cpu[8].avg_idle = 1000000;
	decide_wakeup();
	EXPECT(d, 6, IDLE_CPU);
	/* a CPU without such a domain does not scan */
	sys.llc[sys.cpu[8].llc].domain = CW_NONE;
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	CHECK_EQ(d.cpus_scanned, 0);
}

static u64 scan_cost_after(u64 ns)
{
	update_avg_scan_cost(&sys, &d, ns);
	return sys.cpu[3].avg_scan_cost;
}

static void test_avg_scan_cost(void)
{
	wake_on_3();
	search_in_turn(false);
	make_idle(6);
	decide_wakeup();
	CHECK_EQ(scan_cost_after(800), 100);
	CHECK_EQ(scan_cost_after(20), 90); /* an eighth of -80 */
	/* nothing was found, or a sibling when all had been looked at */
	make_busy(6, 1024, 1024);
	decide_wakeup();
	EXPECT(d, 3, TARGET_BUSY);
	CHECK_EQ(scan_cost_after(170), 100);
	d.reason = CW_REASON_IDLE_SMT;
	CHECK_EQ(scan_cost_after(180), 110);
	/* the limit ended it; there was none; it was for a core; it was for a fork */
	d.notes |= CW_NOTE_SCAN_LIMIT;
	CHECK_EQ(scan_cost_after(900), 110);
	d.notes = 0;
	d.cpus_scanned = 0;
	CHECK_EQ(scan_cost_after(900), 110);
	d.cpus_scanned = 1;
	d.reason = CW_REASON_IDLE_CORE;
	CHECK_EQ(scan_cost_after(900), 110);
	d.reason = CW_REASON_IDLE_CPU;
	d.event = WF_FORK;
	CHECK_EQ(scan_cost_after(900), 110);
}

int main(void)
{
	test_wa_idle_prev();
	test_recent_used_prev();
	test_search_in_turn();
	test_core_in_turn();
	test_sis_prop();
	test_avg_scan_cost();
	return test_report("wakeup_older_kernels");
}
