/* SPDX-License-Identifier: GPL-2.0-only */
/* Fork and exec placement: how groups are classified and compared. */
#include "test.h"

#include "wakeup/wakeup.h"

static struct cw_decision d;

/* A group of 4 CPUs of 1024 each. */
static struct cw_sg_stats stats(u32 nr_running, u64 util, u64 runnable)
{
	return (struct cw_sg_stats){
		.group_capacity = 4096,
		.group_weight = 4,
		.sum_nr_running = nr_running,
		.group_util = util,
		.group_runnable = runnable,
	};
}

static enum group_type classify(struct cw_sg_stats sgs, u32 imbalance)
{
	struct cw_group group = { .imbalance = imbalance };

	return group_classify(117, &group, &sgs);
}

static void test_classify(void)
{
	struct cw_sg_stats sgs;

	/* fewer tasks than CPUs: spare, whatever the averages */
	CHECK_EQ(classify(stats(3, 4096, 9999), 0), group_has_spare);
	/* a task per CPU: spare up to util 3500 (4096 / 1.17) and runnable 4792 (4096 * 1.17) */
	CHECK_EQ(classify(stats(4, 3500, 4792), 0), group_has_spare);
	CHECK_EQ(classify(stats(4, 3501, 4792), 0), group_fully_busy);
	CHECK_EQ(classify(stats(4, 3500, 4793), 0), group_fully_busy);
	CHECK_EQ(classify(stats(4, 4096, 9999), 0), group_fully_busy);
	/* more tasks than CPUs: overloaded beyond the same limits */
	CHECK_EQ(classify(stats(5, 3500, 4792), 0), group_has_spare);
	CHECK_EQ(classify(stats(5, 3501, 4792), 0), group_overloaded);
	CHECK_EQ(classify(stats(5, 3500, 4793), 0), group_overloaded);

	/* each type hides those below it */
	sgs = stats(5, 4096, 4096);
	sgs.group_misfit_task_load = sgs.group_smt_balance = sgs.group_asym_packing = 1;
	CHECK_EQ(classify(sgs, 1), group_overloaded);
	sgs.sum_nr_running = 4;
	CHECK_EQ(classify(sgs, 1), group_imbalanced);
	CHECK_EQ(classify(sgs, 0), group_asym_packing);
	sgs.group_asym_packing = 0;
	CHECK_EQ(classify(sgs, 0), group_smt_balance);
	sgs.group_smt_balance = 0;
	CHECK_EQ(classify(sgs, 0), group_misfit_task);
	sgs.group_misfit_task_load = 0;
	CHECK_EQ(classify(sgs, 0), group_fully_busy);

	sgs.group_load = 5000;
	CHECK_EQ(group_avg_load(&sgs), 1250);
	sgs.group_capacity = 0;
	CHECK_EQ(group_avg_load(&sgs), 5000 * 1024);
}

static void test_adjust_numa_imbalance(void)
{
	CHECK_EQ(adjust_numa_imbalance(2, 4, 4), 0);
	CHECK_EQ(adjust_numa_imbalance(3, 4, 4), 3);
	CHECK_EQ(adjust_numa_imbalance(2, 5, 4), 2);
	CHECK_EQ(adjust_numa_imbalance(0, 5, 4), 0);
}

/* Does a group of type `type` with `b` displace one with `a` as the idlest? */
static bool picks(u32 type, struct cw_sg_stats a, struct cw_sg_stats b)
{
	struct cw_group first = { .max_capacity = a.group_capacity };
	struct cw_group second = { .max_capacity = b.group_capacity };

	a.group_type = b.group_type = type;
	return update_pick_idlest(&first, &a, &second, &b);
}

static void test_pick_idlest(void)
{
	struct cw_sg_stats a = stats(4, 100, 0), b = a;
	struct cw_group group = { .weight = 4 };

	CHECK(update_pick_idlest(NULL, &a, &group, &b));
	a.group_type = group_overloaded;
	b.group_type = group_fully_busy;
	CHECK(update_pick_idlest(&group, &a, &group, &b));
	CHECK(!update_pick_idlest(&group, &b, &group, &a));

	a.avg_load = 1000;
	b.avg_load = 999;
	CHECK(picks(group_overloaded, a, b));
	CHECK(!picks(group_overloaded, b, a));
	CHECK(!picks(group_overloaded, a, a));
	CHECK(picks(group_fully_busy, a, b));
	CHECK(!picks(group_fully_busy, a, a));

	b.group_capacity = 4097; /* max_capacity in picks() */
	CHECK(picks(group_misfit_task, a, b));
	CHECK(!picks(group_misfit_task, b, a));
	CHECK(!picks(group_misfit_task, a, a));
	b = a;

	b.idle_cpus = 1;
	b.group_util = 200;
	CHECK(picks(group_has_spare, a, b)); /* more idle CPUs, whatever the utilisation */
	CHECK(!picks(group_has_spare, b, a));
	b.idle_cpus = 0;
	CHECK(picks(group_has_spare, b, a)); /* then less utilisation */
	CHECK(!picks(group_has_spare, a, b));
	CHECK(!picks(group_has_spare, a, a));

	b.idle_cpus = 4;
	CHECK(!picks(group_imbalanced, a, b));
	CHECK(!picks(group_asym_packing, a, b));
	CHECK(!picks(group_smt_balance, a, b));
}

/* Is the idlest group taken with these loads, in a domain with these flags? */
static bool load_wins(u32 flags, u64 local_load, u64 idlest_load)
{
	struct cw_domain sd = { .imbalance_pct = 117, .flags = flags };
	struct cw_sg_stats local = { .avg_load = local_load };
	struct cw_sg_stats idlest = { .avg_load = idlest_load };

	return idlest_load_wins(&sd, &local, &idlest);
}

static void test_load_margin(void)
{
	/* by more than 1024 * 17 / 100 = 174 ... */
	CHECK(!load_wins(0, 1000, 1174));
	CHECK(!load_wins(0, 1000, 900)); /* ... and 100 * 1000 <= 117 * 900 */
	CHECK(!load_wins(0, 117, 100));
	CHECK(load_wins(0, 118, 100));
	CHECK(load_wins(0, 1000, 854)); /* 117 * 854 = 99918 */
	CHECK(!load_wins(0, 1000, 855)); /* 117 * 855 = 100035 */
	CHECK(load_wins(0, 100, 0));
	/* across nodes the absolute margin has to be there too */
	CHECK(!load_wins(SD_NUMA, 118, 100));
	CHECK(!load_wins(SD_NUMA, 274, 100));
	CHECK(load_wins(SD_NUMA, 275, 100));
}

/* CPUs 0-3 and 4-7; a fork on CPU 0. */
static struct cw_group *find_group(void)
{
	struct cw_dst_search search = {
		.task = task_contribution(&sys, &wakeup),
		.level = 1,
		.wake_flags = wakeup.wake_flags,
		.numa_preferred_nid = wakee.numa_preferred_nid,
	};

	d = (struct cw_decision){ 0 };
	return group_at(&sys, sched_balance_find_dst_group(&sys, &search, &allowed, &d));
}

static struct cw_group *const other = &sys.group[9]; /* after the 8 of one CPU */

static void build(u32 flags)
{
	struct level levels[] = { LEVEL_MC(4), { 8, flags } };

	sys_levels(8, levels, 2);
	new_wakeup(WF_FORK, 0, 0);
	wakee.avg = (struct cw_avg){ .load_avg = 1024 };
}

static void make_all(s32 first, u32 nr_running, u32 load, u32 util)
{
	s32 cpu;

	for (cpu = first; cpu < first + 4; cpu++) {
		make_busy(cpu, load, util);
		sys.cpu[cpu].nr_running = sys.cpu[cpu].cfs_nr_running = nr_running;
	}
}

static void test_overloaded_and_busy(void)
{
	u32 nr;

	/* two tasks a CPU: overloaded; one: fully busy. The margins of idlest_load_wins() */
	for (nr = 1; nr <= 2; nr++) {
		build(LEVEL_FLAGS);
		make_all(0, nr, 1000, 1024);
		make_all(4, nr, 855, 1024);
		CHECK(!find_group());
		make_all(4, nr, 854, 1024);
		CHECK(find_group() == other);
		CHECK_EQ(d.groups_scanned, 2);
		CHECK_EQ(d.cpus_scanned, 8);
		build(LEVEL_FLAGS | SD_NUMA);
		make_all(0, nr, 275, 1024);
		make_all(4, nr, 101, 1024);
		CHECK(!find_group());
		make_all(4, nr, 100, 1024);
		CHECK(find_group() == other);
	}
	/* the type decides before the load */
	build(LEVEL_FLAGS);
	make_all(0, 2, 100, 1024);
	make_all(4, 1, 5000, 1024);
	CHECK(find_group() == other);
	make_all(0, 1, 5000, 1024);
	make_all(4, 2, 100, 1024);
	CHECK(!find_group());
}

static void test_imbalanced(void)
{
	build(LEVEL_FLAGS);
	sys.group[8].imbalance = other->imbalance = 1;
	make_idle(5);
	CHECK(!find_group()); /* equal types of which nothing is known */
	other->imbalance = 0;
	CHECK(find_group() == other);
	other->imbalance = 1;
	sys.group[8].imbalance = 0;
	CHECK(!find_group());
}

static void test_misfit(void)
{
	s32 cpu;

	/* the task fits no CPU of either group: the one with the biggest CPU */
	build(LEVEL_FLAGS | SD_ASYM_CPUCAPACITY);
	for (cpu = 0; cpu < 8; cpu++) {
		sys.cpu[cpu].capacity = sys.cpu[cpu].capacity_orig = 512;
		make_idle(cpu);
	}
	wakee.avg.util_avg = 500;
	CHECK(!find_group());
	other->max_capacity = 1025;
	CHECK(find_group() == other);
	/* it fits one CPU there: spare against misfit */
	other->max_capacity = 1024;
	sys.cpu[6].capacity = sys.cpu[6].capacity_orig = 1024;
	CHECK(find_group() == other);
	/* it fits here only */
	sys.cpu[6].capacity = 512;
	sys.cpu[2].capacity = 1024;
	CHECK(!find_group());
	/* without SD_ASYM_CPUCAPACITY fitting is not asked for */
	sys.domain[2].flags &= ~(u32)SD_ASYM_CPUCAPACITY;
	make_busy(1, 1024, 1024);
	CHECK(find_group() == other);
}

static void test_spare(void)
{
	build(LEVEL_FLAGS);
	make_idle(1);
	make_idle(5);
	CHECK(!find_group()); /* as many idle CPUs */
	make_busy(4, 0, 0); /* less utilisation does not count against the local group */
	CHECK(!find_group());
	make_idle(6);
	CHECK(find_group() == other);
	make_idle(2);
	make_idle(3);
	CHECK(!find_group());
}

static void test_spare_numa(void)
{
	build(LEVEL_FLAGS | SD_NUMA);
	sys.domain[2].imb_numa_nr = 2;
	/* 4 idle there, 3 here: a small difference, and the 2 that would run here are allowed */
	make_idle(1);
	make_idle(2);
	make_idle(3);
	make_idle(4);
	make_idle(5);
	make_idle(6);
	make_idle(7);
	CHECK(!find_group());
	/* 3 would run here */
	make_busy(2, 0, 0);
	CHECK(find_group() == other);
	sys.domain[2].imb_numa_nr = 3;
	CHECK(!find_group());
	/* 4 against 1 is no small imbalance */
	make_busy(3, 0, 0);
	sys.domain[2].imb_numa_nr = 8;
	CHECK(find_group() == other);
	/* the task may use two of the local CPUs: no more than 2 are allowed to run there */
	make_idle(3);
	CHECK(!find_group());
	allowed = mask_range(2, 7);
	CHECK(find_group() == other);
	allowed = mask_range(0, 7);
	/* fewer idle CPUs there, by more than a pair */
	make_idle(0);
	make_idle(2);
	make_all(4, 1, 0, 0);
	CHECK(!find_group());
}

static void test_ring_order(void)
{
	/* three LLCs of 2, a fork in the second: of equal ones the next in the ring wins */
	sys_plain(3, 2);
	make_idle(0);
	make_idle(4);
	new_wakeup(WF_FORK, 2, 2);
	wakee.avg = (struct cw_avg){ 0 };
	select_task_rq_fair(&sys, &wakeup, &d);
	EXPECT(d, 4, SLOW_PATH);
	/* from the third: the first */
	make_busy(4, 1024, 1024);
	make_idle(2);
	wakeup.this_cpu = wakeup.prev_cpu = 5;
	select_task_rq_fair(&sys, &wakeup, &d);
	EXPECT(d, 0, SLOW_PATH);
}

int main(void)
{
	test_classify();
	test_adjust_numa_imbalance();
	test_pick_idlest();
	test_load_margin();
	test_overloaded_and_busy();
	test_imbalanced();
	test_misfit();
	test_spare();
	test_spare_numa();
	test_ring_order();
	return test_report("forkexec_group");
}
