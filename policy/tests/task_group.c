/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task groups around all tasks (track/task_group.h): shares as a kernel printed them, and
 * sequences of events whose loads can be worked out by hand.
 */
#include "test.h"

#include "track/upkeep.h"

/* One period of the averages, which halve in 32. */
#define PERIOD (1024ULL * 1024)
#define START (1000 * PERIOD)

static struct cw_task task[2];

/* Two idle CPUs, `depth` groups, and two tasks that have slept for long. */
static void begin(u32 depth)
{
	sys_plain(2, 1);
	set_feature(CW_FEAT_TG_LOAD_AVG_RATELIMIT, false);
	sys.task_group_depth = depth;
	sys.tick_ns = 4000000;
	for (int i = 0; i < 2; i++) {
		sys.cpu[i].nr_running = sys.cpu[i].cfs_nr_running = 0;
		sys.cpu[i].load_weight = 0;
		sys.cpu[i].avg = (struct cw_avg){ 0 };
		sys.cpu[i].curr_is_idle = 1;
		sys.tg_cpu[i] = (struct cw_tg_cpu){ 0 };
		task[i] = (struct cw_task){ .pid = i + 1, .process = i + 1, .weight = 1024 };
		track_init_task(&task[i], 0);
		task[i].avg.load_avg = 0;
	}
	for (u32 level = 0; level < CW_MAX_TG_DEPTH; level++)
		sys.tg_load_avg[level] = 0;
}

static void run(int i, s32 cpu, u64 now)
{
	track_enqueue_task(&sys, &task[i], cpu, now);
	track_set_next_task(&sys, &task[i], cpu, now);
}

static void sleep_now(int i, s32 cpu, u64 now)
{
	track_put_prev_task(&sys, &task[i], cpu, now);
	track_dequeue_task(&sys, &task[i], now, false);
	set_next_task_idle(&sys, cpu, now);
}

/*
 * /sys/kernel/debug/sched/debug of Linux 6.18 on two CPUs, while hackbench ran in an autogroup:
 * tg_load_avg 94266; CPU 0 .load_avg 47285 = .tg_load_avg_contrib, .se->load.weight 525978;
 * CPU 1 .load_avg 47481, .tg_load_avg_contrib 46981, .se->load.weight 525372. The kernel's
 * weights are 1024 times as large.
 */
static void test_shares_of_a_kernel(void)
{
	struct cw_group_entity se = { .tg_load_avg_contrib = 47285 };

	begin(1);
	sys.tg_load_avg[0] = 94266;
	CHECK_EQ(calc_group_shares(&sys, &se, 0, 47285), 525978 / 1024);
	se.tg_load_avg_contrib = 46981;
	CHECK_EQ(calc_group_shares(&sys, &se, 0, 47481), 525372 / 1024);
}

/* 384 CPUs with the same load each: 1024 / 384 is 2.67. A queue that is a thousandth of the group's has 2, too. */
static void test_shares_are_small_integers(void)
{
	struct cw_group_entity se = { .tg_load_avg_contrib = 3000 };

	begin(1);
	sys.tg_load_avg[0] = 384 * 3000;
	CHECK_EQ(calc_group_shares(&sys, &se, 0, 3000), 2);
	CHECK_EQ(calc_group_shares(&sys, &se, 0, 3400), 3);
	sys.tg_load_avg[0] = 3000 * 1000;
	CHECK_EQ(calc_group_shares(&sys, &se, 0, 3000), 2);
	/* nothing is known of other CPUs: the group has this one for itself */
	sys.tg_load_avg[0] = se.tg_load_avg_contrib = 0;
	CHECK_EQ(calc_group_shares(&sys, &se, 0, 0), 1024);
}

/* One task that runs: its group's load is its own. It sleeps: the load decays as the task's. */
static void test_one_task(void)
{
	const struct cw_group_entity *se = sys.tg_cpu[0].level;
	u64 now = START + 32 * PERIOD;

	begin(1);
	run(0, 0, START);
	CHECK_EQ(se->weight, 1024);
	CHECK_EQ(cpu_load(&sys, 0), 0);
	track_task_tick(&sys, &task[0], 0, now);
	CHECK_EQ(cpu_load(&sys, 0), task[0].avg.load_avg);
	CHECK(cpu_load(&sys, 0) > 500 && cpu_load(&sys, 0) < 530);
	sleep_now(0, 0, now);
	update_blocked_averages(&sys, 0, now + 32 * PERIOD);
	/* each rounds down what it has */
	CHECK(sys.cpu[0].avg.load_avg - cpu_load(&sys, 0) <= 1);
	CHECK(cpu_load(&sys, 0) > 250 && cpu_load(&sys, 0) < 265);
	/* a CPU without groups has the load of its queue */
	sys.task_group_depth = 0;
	sys.cpu[0].avg.load_avg = 77;
	CHECK_EQ(cpu_load(&sys, 0), 77);
}

/*
 * The other CPU's queue has a load of 3072. A task without a load is queued: the weight of
 * the queue counts at once, 1024 of 4096, and stays when the task sleeps.
 */
static void test_the_weight_of_the_queue_counts_at_once(void)
{
	const struct cw_group_entity *se = sys.tg_cpu[0].level;

	begin(1);
	sys.tg_load_avg[0] = 3072;
	run(0, 0, START);
	CHECK_EQ(se->weight, 256);
	run(1, 0, START);
	CHECK_EQ(se->weight, 1024 * 2048 / 5120);
	track_dequeue_task(&sys, &task[1], START, false);
	CHECK_EQ(se->weight, 256);
	track_dequeue_task(&sys, &task[0], START, false);
	CHECK_EQ(se->weight, 256);
}

/* In a group in a group, the outer one's queue has the weight of the inner one's entity. */
static void test_nested(void)
{
	const struct cw_group_entity *level = sys.tg_cpu[0].level;

	begin(2);
	sys.tg_load_avg[1] = 3072;
	sys.tg_load_avg[0] = 768;
	run(0, 0, START);
	CHECK_EQ(level[1].weight, 256);
	CHECK_EQ(level[0].weight, 256);
}

/* A task takes the time for which it was runnable along, and its group's load with it. */
static void test_a_task_moves(void)
{
	u64 now = START + 100 * PERIOD;
	u64 load;

	begin(1);
	run(0, 0, START);
	track_task_tick(&sys, &task[0], 0, now);
	load = cpu_load(&sys, 0);
	CHECK(load > 900);
	update_blocked_averages(&sys, 1, now);
	track_dequeue_task(&sys, &task[0], now, true);
	track_detach_task(&sys, &task[0]);
	CHECK_EQ(cpu_load(&sys, 0), 0);
	track_enqueue_task(&sys, &task[0], 1, now);
	CHECK(cpu_load(&sys, 1) + 10 > load && cpu_load(&sys, 1) <= load + 10);
	/* a second one was as long runnable, but a queue cannot have tasks for more than all the time */
	task[1].avg.load_avg = 1024;
	track_enqueue_task(&sys, &task[1], 1, now);
	CHECK_EQ(cpu_load(&sys, 1), sys.tg_cpu[1].level[0].weight);
}

/* Two tasks have been queued for long, and one leaves. The other has been there as long, so the load stays. */
static void test_one_of_two_moves(void)
{
	u64 now = START + 500 * PERIOD;
	u64 load;

	begin(1);
	run(0, 0, START);
	track_enqueue_task(&sys, &task[1], 0, START);
	track_task_tick(&sys, &task[0], 0, now);
	load = cpu_load(&sys, 0);
	CHECK_EQ(load, 1024);
	track_dequeue_task(&sys, &task[1], now, false);
	track_detach_task(&sys, &task[1]);
	CHECK(cpu_load(&sys, 0) >= load - 20);
}

/* Task 0 runs on CPU 0 until `now`, sleeps, and will wake on CPU 1. */
static void sleeper_moves(u64 now)
{
	begin(1);
	run(0, 0, START);
	sleep_now(0, 0, now);
	track_set_task_cpu(&sys, &task[0], 1);
}

/* A sleeper moves: its old CPU's load goes when that is updated next, except the part in which others ran there. */
static void test_a_sleeper_moves(void)
{
	u64 now = START + 100 * PERIOD;

	sleeper_moves(now);
	CHECK(cpu_load(&sys, 0) > 900);
	update_blocked_averages(&sys, 0, now + PERIOD);
	CHECK_EQ(cpu_load(&sys, 0), 0);
	sleeper_moves(now);
	sys.cpu[0].removed.util_avg = 0;
	update_blocked_averages(&sys, 0, now + PERIOD);
	CHECK(cpu_load(&sys, 0) > 800);
}

/* A group is told of a load that has changed by more than 1/64. */
static void test_update_tg_load_avg(void)
{
	static const u64 load[][2] = { { 1040, 1024 }, { 1041, 1041 }, { 1008, 1024 }, { 1007, 1007 } };

	for (int i = 0; i < 4; i++) {
		begin(1);
		sys.tg_load_avg[0] = 5000;
		sys.tg_cpu[0].level[0].tg_load_avg_contrib = 1024;
		update_tg_load_avg(&sys, 0, 0, load[i][0]);
		CHECK_EQ(sys.tg_cpu[0].level[0].tg_load_avg_contrib, load[i][1]);
		CHECK_EQ(sys.tg_load_avg[0], 5000 + load[i][1] - 1024);
		CHECK_EQ(sys.tg_cpu[0].written, load[i][0] == load[i][1]);
	}
}

/* Twice the load `after` ns after the group was told last: what it knows. */
static u64 told(bool ratelimit, u64 after)
{
	begin(1);
	set_feature(CW_FEAT_TG_LOAD_AVG_RATELIMIT, ratelimit);
	sys.tg_cpu[0].level[0].tg_load_avg_contrib = 1024;
	sys.tg_cpu[0].level[0].last_update_tg_load_avg = START;
	sys.cpu[0].clock_task = START + after;
	update_tg_load_avg(&sys, 0, 0, 2048);
	return sys.tg_cpu[0].level[0].tg_load_avg_contrib;
}

static void test_ratelimit(void)
{
	CHECK_EQ(told(false, 999999), 2048);
	CHECK_EQ(told(true, 999999), 1024);
	CHECK_EQ(told(true, 1000000), 2048);
}

/*
 * Three groups whose entities have loads of 100, 50 and 40. The innermost queue has
 * 100 * 100 / 101 = 99, * 50 / 51 = 97, * 40 / 41 = 94 of the CPU's load, and a task of 512
 * in a queue of 1023 half of that. It is computed once per jiffy.
 */
static void test_h_load(void)
{
	static const u64 loads[] = { 100, 50, 40 };
	struct cw_tg_cpu *tg = &sys.tg_cpu[0];

	begin(3);
	for (int i = 0; i < 3; i++)
		tg->level[i].load_avg = loads[i];
	sys.cpu[0].avg.load_avg = 1023;
	task[0].avg.load_avg = 512;
	CHECK_EQ(task_h_load(&sys, &task[0], START), 47);
	CHECK_EQ(tg->h_load, 94);
	for (int i = 0; i < 3; i++)
		tg->level[i].load_avg = 2;
	CHECK_EQ(task_h_load(&sys, &task[0], START), 47);
	/* on many CPUs, tasks weigh nothing */
	CHECK_EQ(task_h_load(&sys, &task[0], START + 4000000), 0);
	CHECK_EQ(tg->h_load, 0);
	/* without groups */
	sys.task_group_depth = 0;
	CHECK_EQ(task_h_load(&sys, &task[0], START + 4000000), 512);
}

/* A quarter of the queue's load is that of queued tasks: so is a quarter of the CPU's. */
static void test_runnable_load(void)
{
	begin(1);
	sys.cpu[0].avg.load_avg = 2000;
	sys.runnable_load[0].load_avg = 500;
	sys.tg_cpu[0].level[0].load_avg = 40;
	CHECK_EQ(cpu_runnable_load(&sys, 0), 10);
	sys.task_group_depth = 0;
	CHECK_EQ(cpu_runnable_load(&sys, 0), 500);
	sys.runnable_load[0].load_avg = 0;
}

static void test_offline(void)
{
	begin(2);
	sys.tg_load_avg[0] = 500;
	sys.tg_load_avg[1] = 5000;
	sys.tg_cpu[1].level[0].tg_load_avg_contrib = 100;
	sys.tg_cpu[1].level[1].tg_load_avg_contrib = 1000;
	clear_tg_offline_cfs_rqs(&sys, 1);
	clear_tg_offline_cfs_rqs(&sys, 1);
	CHECK_EQ(sys.tg_load_avg[0], 400);
	CHECK_EQ(sys.tg_load_avg[1], 4000);
}

int main(void)
{
	test_shares_of_a_kernel();
	test_shares_are_small_integers();
	test_one_task();
	test_the_weight_of_the_queue_counts_at_once();
	test_nested();
	test_a_task_moves();
	test_one_of_two_moves();
	test_a_sleeper_moves();
	test_update_tg_load_avg();
	test_ratelimit();
	test_h_load();
	test_runnable_load();
	test_offline();
	return test_report("task_group");
}
