/* SPDX-License-Identifier: GPL-2.0-only */
/* Wakeups where CPUs differ in capacity: 7.3's idle cores and scan limit, and islands. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

static void decide_wakeup(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

/* CPUs 0-3 little (512), 4-7 big (1024), cores of two threads; a task of `util` on CPU `prev`. */
static void build_smt(s32 prev, u32 util)
{
	s32 cpu;

	SYS_LEVELS(8, LEVEL_SMT(2), LEVEL_MC(4), LEVEL_ASYM(8));
	for (cpu = 0; cpu < 4; cpu++)
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = 512;
	new_wakeup(WF_TTWU, prev, prev);
	wakee.avg.util_avg = util;
}

static struct cw_domain *asym_domain(void)
{
	return sd_asym_cpucapacity(&sys, 0);
}

static void test_shortcuts_want_an_idle_core(void)
{
	/* an idle target beside a busy sibling: taken by 6.12 only */
	build_smt(1, 100);
	make_idle(1);
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	make_idle(4);
	make_idle(5);
	set_feature(CW_FEAT_ASYM_IDLE_CORE, true);
	asym_domain()->has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 4, ASYM_IDLE_FITS);
	make_idle(0);
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	/* without SMT no sibling is asked for */
	sys.smt_present = 0;
	make_busy(0, 1024, 1024);
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
}

static void test_rank(void)
{
	build_smt(0, 600);
	set_feature(CW_FEAT_ASYM_IDLE_CORE, true);
	asym_domain()->has_idle_cores = 1;

	/* one thread of a big core is idle: it fits, but a sibling is busy */
	make_idle(6);
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	CHECK_EQ(asym_domain()->has_idle_cores, 0); /* and so no core is idle */
	/* a little core that is idle is better, too small as it is */
	make_idle(2);
	make_idle(3);
	asym_domain()->has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 2, ASYM_IDLE_BIGGEST);
	CHECK_EQ(asym_domain()->has_idle_cores, 1);
	/* when none is known to be idle, the first that fits will do */
	asym_domain()->has_idle_cores = 0;
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	/* a whole big core: right at once, after the idle thread of CPU 4 */
	make_idle(7);
	make_idle(4);
	asym_domain()->has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	/* threads only, none fits: the one of most capacity, and no core is idle */
	build_smt(0, 1000);
	set_feature(CW_FEAT_ASYM_IDLE_CORE, true);
	asym_domain()->has_idle_cores = 1;
	make_idle(2);
	make_idle(6);
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_BIGGEST);
	CHECK_EQ(asym_domain()->has_idle_cores, 0);
	/* nothing idle */
	make_busy(2, 1024, 1024);
	make_busy(6, 1024, 1024);
	asym_domain()->has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 0, TARGET_BUSY);
	CHECK_EQ(asym_domain()->has_idle_cores, 0);
}

static void test_where_idle_cores_are_noted(void)
{
	build_smt(0, 100);
	make_idle(2);
	make_idle(3);
	update_idle_core(&sys, 2);
	CHECK_EQ(sys.llc[0].has_idle_cores, 1);
	CHECK_EQ(asym_domain()->has_idle_cores, 0);
	sys.llc[0].has_idle_cores = 0;
	set_feature(CW_FEAT_ASYM_IDLE_CORE, true);
	update_idle_core(&sys, 2);
	CHECK_EQ(sys.llc[0].has_idle_cores, 0);
	CHECK_EQ(asym_domain()->has_idle_cores, 1);
	/* made of nodes: with the cache after all */
	asym_domain()->flags |= SD_NUMA;
	asym_domain()->has_idle_cores = 0;
	update_idle_core(&sys, 2);
	CHECK_EQ(sys.llc[0].has_idle_cores, 1);
	CHECK_EQ(asym_domain()->has_idle_cores, 0);
}

static void test_scan_limit(void)
{
	s32 cpu;

	/* without SMT, all busy but the last CPU that a scan from 2 meets */
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_ASYM(8));
	for (cpu = 0; cpu < 4; cpu++)
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = 512;
	new_wakeup(WF_TTWU, 2, 2);
	make_idle(6);
	asym_domain()->nr_idle_scan = 4;
	decide_wakeup(); /* 6.12 does not ask */
	EXPECT(d, 6, ASYM_IDLE_FITS);
	set_feature(CW_FEAT_ASYM_SIS_UTIL, true);
	decide_wakeup(); /* 2, 3, 4, 5 */
	EXPECT(d, 2, TARGET_BUSY);
	CHECK(d.notes & CW_NOTE_SCAN_LIMIT);
	CHECK_EQ(d.cpus_scanned, 4);
	asym_domain()->nr_idle_scan = 5;
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	/* what was found until then is taken: here one that is too small */
	make_idle(3);
	wakee.avg.util_avg = 600;
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	asym_domain()->nr_idle_scan = 4;
	decide_wakeup();
	EXPECT(d, 3, ASYM_IDLE_BIGGEST);
	asym_domain()->nr_idle_scan = 0;
	decide_wakeup();
	EXPECT(d, 2, TARGET_BUSY);
	CHECK(d.notes & CW_NOTE_SIS_UTIL_STOP);
	/* no limit without SIS_UTIL, nor where the domain is made of nodes */
	set_feature(CW_FEAT_SIS_UTIL, false);
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	set_feature(CW_FEAT_SIS_UTIL, true);
	asym_domain()->flags |= SD_NUMA;
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	/* nor in a search for a whole core */
	build_smt(2, 100);
	set_feature(CW_FEAT_ASYM_SIS_UTIL, true);
	set_feature(CW_FEAT_ASYM_IDLE_CORE, true);
	make_idle(6);
	make_idle(7);
	asym_domain()->nr_idle_scan = 1;
	asym_domain()->has_idle_cores = 1;
	decide_wakeup();
	EXPECT(d, 6, ASYM_IDLE_FITS);
	asym_domain()->has_idle_cores = 0;
	decide_wakeup();
	EXPECT(d, 2, TARGET_BUSY);
}

static void test_island(void)
{
	/* CPU 1 alone is isolated from the rest of such a machine: it still has to be big enough */
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_ASYM(8));
	sys.cpu[1].capacity = sys.cpu[1].capacity_orig = 512;
	sys.cpu[1].nr_sd = 0;
	sys.cpu[1].asym_sd = CW_NONE;
	sys.cpu[1].llc = 1;
	make_idle(1);
	new_wakeup(WF_TTWU, 1, 1);
	wakee.avg.util_avg = 409;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
	wakee.avg.util_avg = 410;
	decide_wakeup();
	EXPECT(d, 1, TARGET_BUSY);
	CHECK(d.notes & CW_NOTE_NO_FIT);
	sys.asym_present = 0;
	decide_wakeup();
	EXPECT(d, 1, TARGET_IDLE);
}

/* A task of a group is brought to its group's runqueue's time, not to the CPU's. */
static void test_sync_to_the_groups_runqueue(void)
{
	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_ASYM(8));
	make_idle(1);
	new_wakeup(WF_TTWU, 1, 1);
	wakee.avg.last_update_time = 1ULL << 20;
	wakee.avg.util_avg = 800;
	wakee.avg.util_sum = 800 * LOAD_AVG_MAX;
	sys.cpu[1].avg.last_update_time = 65ULL << 20;
	wakee.flags = CW_TASK_CFS_RQ;
	wakee.cfs_rq.last_update_time = 33ULL << 20;
	decide_wakeup();
	CHECK(wakee.avg.util_avg > 395 && wakee.avg.util_avg < 410);
	wakee.flags = 0;
	decide_wakeup();
	CHECK(wakee.avg.util_avg > 195 && wakee.avg.util_avg < 205);
	/* that of the CPU whose averages it is part of */
	wakeup.task_cpu = 2;
	sys.cpu[2].avg.last_update_time = 97ULL << 20;
	decide_wakeup();
	CHECK(wakee.avg.util_avg > 95 && wakee.avg.util_avg < 105);
}

int main(void)
{
	test_shortcuts_want_an_idle_core();
	test_rank();
	test_where_idle_cores_are_noted();
	test_scan_limit();
	test_island();
	test_sync_to_the_groups_runqueue();
	return test_report("wakeup_asym_kernels");
}
