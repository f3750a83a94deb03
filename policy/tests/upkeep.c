/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What hosts tell of tasks (track/upkeep.h): sequences of events whose queue lengths
 * and averages can be worked out by hand.
 */
#include "test.h"

#include "track/upkeep.h"

/* One period of the averages, which halve in 32. */
#define PERIOD (1024ULL * 1024)
#define START (1000 * PERIOD)
#define NICE_5 335 /* its weight */

static struct cw_task task[2];

/* Two idle CPUs of a cache each, and two tasks that have slept for long. */
static void begin(void)
{
	sys_plain(2, 1);
	set_feature(CW_FEAT_UTIL_EST, true);
	for (int i = 0; i < 2; i++) {
		sys.cpu[i].nr_running = sys.cpu[i].cfs_nr_running = 0;
		sys.cpu[i].load_weight = 0;
		sys.cpu[i].avg = (struct cw_avg){ 0 };
		sys.cpu[i].curr_is_idle = 1;
		task[i] = (struct cw_task){ .pid = i + 1, .process = i + 1, .weight = 1024 };
		track_init_task(&task[i], 0);
		/* no load of its own to begin with */
		task[i].avg.load_avg = 0;
	}
}

static void enqueue(int i, s32 cpu, u64 now)
{
	track_enqueue_task(&sys, &task[i], cpu, now);
}

static void run(int i, s32 cpu, u64 now)
{
	enqueue(i, cpu, now);
	track_set_next_task(&sys, &task[i], cpu, now);
}

/* As a host in BPF sees it; the kernel's order is the other one, with the same sums. */
static void sleep_now(int i, s32 cpu, u64 now)
{
	track_put_prev_task(&sys, &task[i], cpu, now);
	track_dequeue_task(&sys, &task[i], now, false);
	track_sleep(&sys, &task[i], now);
	set_next_task_idle(&sys, cpu, now);
}

/* Two CPUs are about to count the same task; each has found that it is not counted. */
static void test_a_task_is_counted_once(void)
{
	begin();
	account_entity_enqueue(&sys, &task[0], 0);
	account_entity_enqueue(&sys, &task[0], 0);
	account_entity_enqueue(&sys, &task[0], 1);
	CHECK(sys.cpu[0].nr_running == 1 && sys.cpu[1].nr_running == 0);
	account_entity_dequeue(&sys, &task[0]);
	for (int i = 0; i < 2; i++)
		CHECK(!sys.cpu[i].nr_running && !sys.cpu[i].cfs_nr_running && !sys.cpu[i].load_weight);
}

/* A task wakes, runs for 32 periods and sleeps for 32. */
static void test_one_task(void)
{
	const struct cw_cpu *rq = &sys.cpu[0];

	begin();
	CHECK(idle_cpu(&sys, 0));
	enqueue(0, 0, START);
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
	CHECK_EQ(task[0].avg.util_avg, rq->avg.util_avg);
	CHECK_EQ(rq->nr_running, 0);
	CHECK_EQ(rq->load_weight, 0);
	CHECK_EQ(rq->avg.util_est, 0);
	CHECK_EQ(task_util_est_raw(&task[0]), task[0].avg.util_avg);
	CHECK(idle_cpu(&sys, 0));
	CHECK_EQ(rq->idle_stamp, START + 32 * PERIOD);
	enqueue(0, 0, START + 64 * PERIOD);
	CHECK(rq->avg.util_avg >= 254 && rq->avg.util_avg <= 256);
	CHECK_EQ(rq->avg.util_est, task_util_est_raw(&task[0]));
}

/* One runs while the other waits: both are runnable, one is running. */
static void test_two_tasks(void)
{
	const struct cw_cpu *rq = &sys.cpu[0];

	begin();
	task[1].weight = NICE_5;
	enqueue(0, 0, START);
	enqueue(1, 0, START);
	enqueue(1, 0, START); /* as when it is woken again */
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
	enqueue(0, 0, START);
	enqueue(1, 0, START);
	enqueue(1, 1, START + 32 * PERIOD);
	CHECK_EQ(sys.cpu[0].nr_running, 1);
	CHECK_EQ(sys.cpu[1].nr_running, 1);
	CHECK_EQ(sys.cpu[0].load_weight, 1024);
	task[1].weight = NICE_5;
	track_dequeue_task(&sys, &task[1], START + 32 * PERIOD, false);
	CHECK_EQ(sys.cpu[1].nr_running, 0);
	CHECK_EQ(sys.cpu[1].load_weight, 0);
	track_dequeue_task(&sys, &task[1], START + 32 * PERIOD, false); /* it is gone already */
	CHECK_EQ(sys.cpu[1].nr_running, 0);
}

/* A sleeper wakes elsewhere: what it used follows it, and it is not hot there. */
static void test_sleeper_moves(void)
{
	u64 now = START + 32 * PERIOD;

	begin();
	run(0, 0, START);
	sleep_now(0, 0, now);
	track_set_task_cpu(&sys, &task[0], 1);
	CHECK_EQ(sys.cpu[0].removed.nr, 1);
	CHECK_EQ(task[0].exec_start, now);
	enqueue(0, 1, now);
	CHECK_EQ(task[0].exec_start, 0);
	CHECK(sys.cpu[1].avg.util_avg >= 510 && sys.cpu[1].avg.util_avg <= 512);
	/* CPU 0 learns of it when it is next brought up to date */
	CHECK(sys.cpu[0].avg.util_avg >= 510);
	enqueue(1, 0, now);
	CHECK_EQ(sys.cpu[0].avg.util_avg, 0);
	CHECK_EQ(sys.cpu[0].removed.nr, 0);
}

/* What a task knows of those that it woke is its parent's at first. */
static void test_fork(void)
{
	begin();
	task[0].last_wakee = 7;
	task[0].wakee_flips = 3;
	task[0].wakee_flip_decay_ts = 5000;
	track_fork(&task[1], &task[0]);
	CHECK_EQ(task[1].last_wakee, 7);
	CHECK_EQ(task[1].wakee_flips, 3);
	CHECK_EQ(task[1].wakee_flip_decay_ts, 5000);
	CHECK_EQ(task[1].pid, 2);
}

/* A new task begins with half of the capacity that nobody uses. */
static void test_new_task(void)
{
	begin();
	task[0].flags |= CW_TASK_NEW;
	enqueue(0, 0, START);
	CHECK_EQ(task[0].avg.util_avg, 512);
	CHECK_EQ(sys.cpu[0].avg.util_avg, 512);
	/* the other one has a share of CPU 0 by weight, as its part of what is used */
	task[1].flags |= CW_TASK_NEW;
	task[1].avg.load_avg = 1024;
	enqueue(1, 0, START);
	CHECK_EQ(task[1].avg.util_avg, 256);
}

/* A sleeper whose dequeue is delayed counts by its weight alone, on whatever queue it is. */
static void test_delayed(void)
{
	const struct cw_cpu *rq = &sys.cpu[0], *other = &sys.cpu[1];
	u64 now = START + 32 * PERIOD;

	begin();
	task[0].avg.util_est = 300;
	enqueue(1, 0, START);
	run(0, 0, START);
	CHECK_EQ(rq->avg.util_est, 300);
	track_delay_dequeue(&sys, &task[0], now);
	track_put_prev_task(&sys, &task[0], 0, now);
	track_sleep(&sys, &task[0], now);
	CHECK(task_util_est_raw(&task[0]) > 500);
	CHECK_EQ(rq->cfs_nr_running, 2);
	CHECK_EQ(rq->cfs_nr_delayed, 1);
	CHECK_EQ(rq->load_weight, 2048);
	CHECK_EQ(rq->avg.util_est, 0);
	/* a balance moves it, asleep as it is */
	track_dequeue_task(&sys, &task[0], now, false);
	track_detach_task(&sys, &task[0]);
	CHECK_EQ(rq->cfs_nr_delayed, 0);
	CHECK_EQ(rq->cfs_nr_running, 1);
	enqueue(0, 1, now);
	CHECK_EQ(other->cfs_nr_delayed, 1);
	CHECK_EQ(other->avg.util_est, 0);
	CHECK_EQ(other->avg.util_avg, task[0].avg.util_avg);
	/* and it is woken there */
	track_requeue_delayed(&sys, &task[0], now);
	CHECK_EQ(other->cfs_nr_delayed, 0);
	CHECK_EQ(other->cfs_nr_running, 1);
	CHECK_EQ(other->avg.util_est, task_util_est_raw(&task[0]));
}

/* Of two CPUs with a cache each, the one whose queue holds tasks that prefer the other's. */
static void test_preferred_llc(void)
{
	static struct cw_process process;

	begin();
	set_feature(CW_FEAT_SCHED_CACHE, true);
	/* caches of one CPU do not enable it, but others of the machine may */
	sys.sched_cache_present = 1;
	process_init(&sys, &process, START);
	process.nr_threads = 2;
	process.footprint = 0;
	process.cache_cpu = 1;
	sys.tunable[CW_TUNE_llc_aggr_tolerance] = 100;
	run(0, 0, START);
	account_mm_sched(&sys, &process, &task[0], PERIOD, START);
	CHECK_EQ(sys.nr_pref_llc[1][0], 1);
	CHECK_EQ(sys.cpu[0].nr_pref_llc_running, 0);
	/* it comes to where it wants to be */
	track_put_prev_task(&sys, &task[0], 0, START);
	enqueue(0, 1, START);
	CHECK_EQ(sys.nr_pref_llc[1][0], 0);
	CHECK_EQ(sys.nr_pref_llc[1][1], 1);
	CHECK_EQ(sys.cpu[1].nr_pref_llc_running, 1);
	track_delay_dequeue(&sys, &task[0], START);
	CHECK_EQ(sys.nr_pref_llc[1][1], 1);
	CHECK_EQ(sys.cpu[1].nr_pref_llc_running, 0);
	track_requeue_delayed(&sys, &task[0], START);
	CHECK_EQ(sys.cpu[1].nr_pref_llc_running, 1);
	/* the process prefers none any more */
	process.cache_cpu = -1;
	account_mm_sched(&sys, &process, &task[0], PERIOD, START);
	CHECK_EQ(sys.nr_pref_llc[1][1], 0);
	CHECK_EQ(sys.cpu[1].nr_pref_llc_running, 0);
	CHECK(!(task[0].flags & CW_TASK_PREFERRED_LLC));
}

/* Threads of a process run on as many CPUs as have one of them current. */
static void test_running_threads(void)
{
	begin();
	task[1].process = task[0].process;
	run(0, 0, START);
	enqueue(1, 1, START);
	CHECK_EQ(nr_running_threads(&sys, 1), 1);
	run(1, 1, START);
	CHECK_EQ(nr_running_threads(&sys, 1), 2);
	CHECK_EQ(nr_running_threads(&sys, 2), 0);
	sleep_now(0, 0, START + PERIOD);
	CHECK_EQ(nr_running_threads(&sys, 1), 1);
}

/* What a task that ends has used leaves its CPU, once. */
static void test_task_ends(void)
{
	u64 now = START + 32 * PERIOD;

	begin();
	run(0, 0, START);
	sleep_now(0, 0, now);
	track_remove_task(&sys, &task[0]);
	track_remove_task(&sys, &task[0]);
	CHECK_EQ(sys.cpu[0].removed.nr, 1);
	update_blocked_averages(&sys, 0, now);
	CHECK_EQ(sys.cpu[0].avg.util_avg, 0);
}

/*
 * SYNC_ON_WAKER asks whether a task slept after it had woken another. One that leaves
 * the queue without sleeping, to be moved or because its weight changes, has not.
 */
static void test_sync_needs_sleep(void)
{
	begin();
	run(0, 0, START);
	note_sync_wakeup(&task[0], START);
	track_dequeue_task(&sys, &task[0], START + 1000, true);
	CHECK(!(task[0].flags & CW_TASK_SLEEPS_AFTER_SYNC));
	CHECK_EQ(task[0].sync_at, START);
	enqueue(0, 0, START + 1000);
	sleep_now(0, 0, START + 2000);
	CHECK(task[0].flags & CW_TASK_SLEEPS_AFTER_SYNC);
	CHECK_EQ(task[0].sync_at, 0);
	/* it does not wake another before it sleeps again: nothing new is known */
	run(0, 0, START + PERIOD);
	sleep_now(0, 0, START + 2 * PERIOD);
	CHECK(task[0].flags & CW_TASK_SLEEPS_AFTER_SYNC);
}

/* Half as fast a CPU: its clock is half as fast while it is busy, and catches up when it idles. */
static void test_clock(void)
{
	begin();
	sys.cpu[0].capacity_orig = 512;
	run(0, 0, START);
	CHECK_EQ(update_rq_clock(&sys, 0, START), START);
	CHECK_EQ(update_rq_clock(&sys, 0, START + 10 * PERIOD), START + 5 * PERIOD);
	/* time that passes until it idles is that of a busy CPU */
	set_next_task_idle(&sys, 0, START + 20 * PERIOD);
	CHECK_EQ(sys.cpu[0].clock_pelt, START + 10 * PERIOD);
	CHECK_EQ(update_rq_clock(&sys, 0, START + 21 * PERIOD), START + 21 * PERIOD);
	/* not if it has never idled: then half of its time passes, and later no more than it idles */
	begin();
	sys.cpu[0].capacity_orig = 512;
	run(0, 0, START);
	sleep_now(0, 0, START + 2000 * PERIOD);
	set_next_task_idle(&sys, 0, START + 2000 * PERIOD);
	CHECK_EQ(update_rq_clock(&sys, 0, START + 2001 * PERIOD), START + 1001 * PERIOD);
}

int main(void)
{
	test_a_task_is_counted_once();
	test_one_task();
	test_two_tasks();
	test_queued_moves();
	test_sleeper_moves();
	test_fork();
	test_new_task();
	test_delayed();
	test_preferred_llc();
	test_running_threads();
	test_task_ends();
	test_sync_needs_sleep();
	test_clock();
	return test_report("upkeep");
}
