/* SPDX-License-Identifier: GPL-2.0-only */
/* Fork and exec: what differs between kernels, and state that only a kernel's snapshot has. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

static void place(void)
{
	select_task_rq_fair(&sys, &wakeup, &d);
}

static void fork_on(s32 this_cpu)
{
	new_wakeup(WF_FORK, this_cpu, this_cpu);
	wakee.avg = (struct cw_avg){ .load_avg = 1024 };
}

static void test_allowed_cpus_of_a_group(void)
{
	/* LLC 1 has three idle CPUs, but none that the task may use: by 6.12.y it is as busy */
	sys_plain(2, 4);
	make_idle(1);
	make_idle(4);
	make_idle(5);
	make_idle(6);
	fork_on(0);
	place();
	EXPECT(d, 4, SLOW_PATH);
	allowed = mask_range(0, 3);
	mask_set(&allowed, 7);
	place();
	EXPECT(d, 1, SLOW_PATH);
	CHECK_EQ(d.groups_scanned, 2 + 4);
	set_feature(CW_FEAT_DST_GROUP_ALLOWED, false);
	place();
	EXPECT(d, 7, SLOW_PATH);
	/* two idle ones that it may use there, one here */
	set_feature(CW_FEAT_DST_GROUP_ALLOWED, true);
	mask_set(&allowed, 4);
	place();
	EXPECT(d, 1, SLOW_PATH);
	mask_set(&allowed, 5);
	place();
	EXPECT(d, 4, SLOW_PATH);
}

static void test_group_stats(void)
{
	/* CPU 6 is idle, but all CPUs are used beyond the margin: to 5.5 that group is overloaded, too */
	sys_plain(2, 4);
	make_idle(6);
	sys.cpu[6].avg.util_avg = sys.cpu[6].avg.util_est = 1000;
	fork_on(0);
	place();
	EXPECT(d, 6, SLOW_PATH);
	set_feature(CW_FEAT_DST_GROUP_STATS, false);
	place();
	CHECK(d.cpu < 4);
	/* by load that group wins, too; 5.5 knows no load of a busy group */
	set_feature(CW_FEAT_DST_GROUP_STATS, true);
	make_busy(6, 0, 1000);
	sys.cpu[5].nr_running = sys.cpu[1].nr_running = 2;
	place();
	EXPECT(d, 6, SLOW_PATH);
	set_feature(CW_FEAT_DST_GROUP_STATS, false);
	place();
	CHECK(d.cpu < 4);
	/* within the margin it is right */
	make_idle(6);
	place();
	EXPECT(d, 6, SLOW_PATH);
}

static void test_group_runnable(void)
{
	s32 cpu;

	/* a task on each CPU, none of which runs much, but here they wait for long */
	sys_plain(2, 4);
	for (cpu = 0; cpu < 8; cpu++)
		make_busy(cpu, 1024, 100);
	for (cpu = 0; cpu < 4; cpu++)
		sys.cpu[cpu].avg.runnable_avg = 2000;
	fork_on(0);
	place();
	CHECK(d.cpu >= 4);
	set_feature(CW_FEAT_GROUP_RUNNABLE, false);
	place();
	CHECK(d.cpu < 4);
}

static void test_fits_an_allowed_cpu(void)
{
	/* it fits CPU 6, but may use only the little ones of that group: misfits both */
	s32 cpu;

	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_ASYM(8));
	for (cpu = 0; cpu < 8; cpu++) {
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = cpu == 6 ? 1024 : 512;
		make_idle(cpu);
	}
	fork_on(0);
	wakee.avg.util_avg = 500;
	allowed = mask_range(0, 5);
	make_busy(0, 1024, 512);
	place();
	CHECK(d.cpu < 4);
	mask_set(&allowed, 6);
	place();
	CHECK(d.cpu >= 4);
}

/* Two nodes of four CPUs, more of them idle on node 1 than an imbalance allows. */
static void build_nodes(void)
{
	s32 cpu;

	SYS_LEVELS(8, LEVEL_MC(4), LEVEL_NUMA(8));
	for (cpu = 4; cpu < 8; cpu++) {
		sys.cpu[cpu].node = 1;
		make_idle(cpu);
	}
	fork_on(0);
}

static void test_preferred_node(void)
{
	s32 cpu;

	build_nodes();
	make_idle(2);
	place();
	EXPECT(d, 4, SLOW_PATH);
	wakee.numa_preferred_nid = 0;
	place();
	EXPECT(d, 2, SLOW_PATH);
	/* the other node, though it has no more idle CPUs than this one */
	build_nodes();
	make_idle(1);
	make_idle(2);
	make_idle(3);
	make_idle(0);
	wakee.numa_preferred_nid = NUMA_NO_NODE;
	place();
	CHECK(d.cpu < 4);
	wakee.numa_preferred_nid = 1;
	place();
	EXPECT(d, 4, SLOW_PATH);
	wakee.numa_preferred_nid = 2; /* neither */
	place();
	CHECK(d.cpu < 4);
	/* only between nodes, and only while both have spare capacity */
	wakee.numa_preferred_nid = 1;
	sys.domain[2].flags &= ~(u32)SD_NUMA;
	place();
	CHECK(d.cpu < 4);
	make_busy(3, 1024, 1024);
	wakee.numa_preferred_nid = 0;
	place();
	CHECK(d.cpu >= 4);
	sys.domain[2].flags |= SD_NUMA;
	wakee.numa_preferred_nid = 1;
	for (cpu = 4; cpu < 8; cpu++)
		make_busy(cpu, 1024, 1024);
	place();
	CHECK(d.cpu < 4);
}

/* Until 5.10 a node is left only if none of its CPUs is idle. */
static void test_imb_numa_nr(void)
{
	build_nodes(); /* four idle CPUs on the other node */
	make_idle(2);
	place();
	EXPECT(d, 4, SLOW_PATH);
	set_feature(CW_FEAT_IMB_NUMA_NR, false);
	place();
	EXPECT(d, 2, SLOW_PATH);
	make_busy(2, 1024, 1024);
	sys.domain[2].imb_numa_nr = 8; /* what it does not have says nothing */
	place();
	EXPECT(d, 4, SLOW_PATH);
	/* all are in use, but the node has capacity to spare */
	for (s32 cpu = 0; cpu < 4; cpu++)
		make_busy(cpu, 100, 100);
	place();
	EXPECT(d, 4, SLOW_PATH);
	/* within a node idle CPUs count */
	make_idle(2);
	sys.domain[2].flags &= ~(u32)SD_NUMA;
	place();
	EXPECT(d, 4, SLOW_PATH);
}

/* From 5.11 to 5.17 a node of 16 CPUs keeps a task while it then runs fewer than four. */
static void test_imb_numa_quarter(void)
{
	s32 cpu;

	SYS_LEVELS(32, LEVEL_MC(16), LEVEL_NUMA(32));
	for (cpu = 0; cpu < 32; cpu++) {
		sys.cpu[cpu].node = cpu / 16;
		make_idle(cpu);
	}
	make_busy(0, 1024, 1024);
	make_busy(1, 1024, 1024);
	fork_on(0);
	set_feature(CW_FEAT_IMB_NUMA_NR, false);
	set_feature(CW_FEAT_IMB_NUMA_QUARTER, true);
	place();
	CHECK(d.cpu < 16);
	make_busy(2, 1024, 1024);
	place();
	CHECK(d.cpu >= 16);
	set_feature(CW_FEAT_IMB_NUMA_QUARTER, false);
	place();
	CHECK(d.cpu < 16);
	/* within a node idle CPUs count */
	set_feature(CW_FEAT_IMB_NUMA_QUARTER, true);
	make_idle(2);
	sys.domain[sys.cpu_sd[0][1].domain].flags &= ~(u32)SD_NUMA;
	place();
	CHECK(d.cpu >= 16);
	set_feature(CW_FEAT_IMB_NUMA_QUARTER, false);
}

/* The idlest CPU of CPUs 0-7, seen from CPU 0. */
static s32 idlest_cpu(void)
{
	struct cw_group group = { .span = mask_range(0, 7), .weight = 8 };

	return sched_balance_find_dst_group_cpu(&sys, &wakee, &allowed, &d, &group);
}

static void no_idle_state(s32 cpu, u64 idle_stamp)
{
	make_idle(cpu);
	sys.cpu[cpu].exit_latency_us = CW_NO_IDLE_STATE;
	sys.cpu[cpu].idle_stamp = idle_stamp;
}

static void test_no_idle_state(void)
{
	sys_plain(2, 4);
	fork_on(0);
	/* by the time that they went idle; one whose time is not known is not taken */
	no_idle_state(2, 0);
	CHECK_EQ(idlest_cpu(), 0);
	no_idle_state(3, 10);
	CHECK_EQ(idlest_cpu(), 3);
	no_idle_state(4, 10);
	CHECK_EQ(idlest_cpu(), 3);
	no_idle_state(4, 11);
	CHECK_EQ(idlest_cpu(), 4);
	/* one in an idle state comes before those that were met before it, however old */
	make_idle(5);
	sys.cpu[5].exit_latency_us = 900;
	sys.cpu[5].idle_stamp = 1;
	CHECK_EQ(idlest_cpu(), 5);
	/* one without a state that is met later needs a later time only */
	no_idle_state(6, 1);
	CHECK_EQ(idlest_cpu(), 5);
	no_idle_state(6, 2);
	CHECK_EQ(idlest_cpu(), 6);
	/* and keeps the latency that has to be matched */
	make_idle(7);
	sys.cpu[7].exit_latency_us = 900;
	sys.cpu[7].idle_stamp = 2;
	CHECK_EQ(idlest_cpu(), 6);
	sys.cpu[7].exit_latency_us = 899;
	CHECK_EQ(idlest_cpu(), 7);
}

static void test_sched_idle_peers(void)
{
	sys_plain(2, 4);
	fork_on(0);
	make_sched_idle(2);
	make_idle(5);
	wakee.flags = CW_TASK_SCHED_IDLE;
	CHECK_EQ(idlest_cpu(), 2);
	set_feature(CW_FEAT_SCHED_IDLE_AVOIDS_PEERS, true);
	CHECK_EQ(idlest_cpu(), 5);
	make_busy(5, 1024, 1024);
	CHECK_EQ(idlest_cpu(), 2); /* of least load */
	wakee.flags = 0;
	make_idle(5);
	CHECK_EQ(idlest_cpu(), 2);
}

static void test_exec_takes_off_the_groups_share(void)
{
	/* a third of a group that makes half of CPU 0's load: 100 of 600 */
	sys_plain(2, 4);
	new_wakeup(WF_EXEC, 0, 0);
	make_busy(0, 600, 600);
	wakee.avg.load_avg = 1000;
	wakee.flags = CW_TASK_CFS_RQ;
	wakee.cfs_rq = (struct cw_cfs_rq){ .last_update_time = 1, .load_avg = 2999, .h_load = 300 };
	CHECK_EQ(cpu_load_without(&sys, 0, placed()), 500);
	/* one that was never queued is on no runqueue */
	CHECK(task_running_on_cpu(placed(), 0));
	CHECK(!task_running_on_cpu(placed(), 1));
	wakee.avg.last_update_time = 0;
	CHECK(!task_running_on_cpu(placed(), 0));
}

/* An exec brings the task to the time of the runqueue that it counts on. */
static void test_sync_to_task_cpu(void)
{
	sys_plain(1, 4);
	new_wakeup(WF_EXEC, 0, 0);
	wakeup.task_cpu = 2;
	sys.cpu[2].avg.last_update_time = 33ULL << 20;
	wakee.avg.last_update_time = 1ULL << 20;
	wakee.avg.util_sum = 100 * LOAD_AVG_MAX;
	place();
	CHECK(wakee.avg.util_avg > 45 && wakee.avg.util_avg < 55);
}

int main(void)
{
	test_allowed_cpus_of_a_group();
	test_group_stats();
	test_group_runnable();
	test_fits_an_allowed_cpu();
	test_preferred_node();
	test_imb_numa_nr();
	test_imb_numa_quarter();
	test_no_idle_state();
	test_sched_idle_peers();
	test_exec_takes_off_the_groups_share();
	test_sync_to_task_cpu();
	return test_report("forkexec_kernels");
}
