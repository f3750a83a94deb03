/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler adds to the policy's queue (queue.bpf.h), natively: virtual times that
 * can be worked out by hand. For tasks of nice 0 virtual time is real time.
 */
#include <string.h>

#include "tests/test.h"

#include "live/queue.bpf.h"

#define MS 1000000LL
#define SLICE (3 * MS)
/* the most that lag may be: two slices, or a tick */
#define LIMIT (6 * MS)

static struct live_entity task[3];

/* One CPU, and tasks that have slept for long. */
static void begin(void)
{
	memset(&sys, 0, sizeof(sys));
	memset(live_queue, 0, sizeof(live_queue));
	memset(task, 0, sizeof(task));
	sys.nr_cpus = 1;
	set_feature(CW_FEAT_EEVDF, true);
	set_feature(CW_FEAT_PLACE_LAG, true);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	set_feature(CW_FEAT_WAKEUP_PREEMPTION, true);
	sys.tunable[CW_TUNE_base_slice_ns] = SLICE;
	sys.tick_ns = 4 * MS;
	for (int i = 0; i < 3; i++)
		task[i].cpu = task[i].slept_on = -1;
}

/* Places a task and lets it wait. */
static void enqueue(int i)
{
	if (task[i].cpu != 0)
		place_entity(&task[i], 0, 1024, 0, false);
	queue_join(&task[i], 0);
}

/* The CPU runs the task for some time. */
static void run(int i, s64 from, s64 ns)
{
	queue_leave(&task[i]);
	set_next_task(&task[i], 0, (u64)from);
	put_prev_task(&task[i], 0, true, (u64)(from + ns));
}

/* A task that nothing could preempt for 300 ms pays for them, so that weights hold; the lag that it leaves with is limited. */
static void test_long_run(void)
{
	begin();
	for (int i = 0; i < 3; i++)
		enqueue(i);
	run(0, 0, SLICE);
	CHECK_EQ(task[0].se.vruntime, SLICE); /* a slice more than the others, V is at one */
	CHECK_EQ(task[0].se.vlag, -2 * MS);
	enqueue(0);
	CHECK_EQ(avg_vruntime(fair_rq(0)), 1 * MS);
	run(1, SLICE, 300 * MS);
	CHECK_EQ(task[1].se.vlag, -LIMIT);
	CHECK_EQ(task[1].se.vruntime, 300 * MS);
	CHECK_EQ(task[1].se.deadline, task[1].se.vruntime + SLICE);
	CHECK(!fair_rq(0)->curr.weight);
}

/*
 * A task may have to wait for 5 s, which beside two others of nice 0 is 2.5 s of virtual
 * time. A task that would wait longer is forgiven the rest, others are forgiven nothing.
 */
static void test_limit_wait(void)
{
	struct cw_fair_rq *q = fair_rq(0);

	begin();
	enqueue(0);
	enqueue(1);
	task[2].se.vruntime = 2000 * MS;
	task[2].se.deadline = 2500 * MS;
	limit_wait(&task[2].se, 0);
	CHECK_EQ(task[2].se.vruntime, 2000 * MS);
	CHECK_EQ(task[2].se.deadline, 2500 * MS);
	task[2].se.deadline++;
	limit_wait(&task[2].se, 0);
	CHECK_EQ(task[2].se.vruntime, 2000 * MS);
	CHECK_EQ(task[2].se.deadline, 2500 * MS);
	task[2].se.vruntime = 3000 * MS;
	task[2].se.deadline = 3003 * MS;
	limit_wait(&task[2].se, 0);
	CHECK_EQ(task[2].se.vruntime, 2500 * MS);
	CHECK_EQ(task[2].se.deadline, 2500 * MS);
	/* a request of SCHED_IDLE, weight 3, is 1,024 ms: too many of nice 0 wait for it */
	CHECK_EQ(moved_deadline(0, 3), 1024 * MS - 1); /* rounded down */
	q->sum_weight = 60 * 1024;
	CHECK_EQ(moved_deadline(0, 3), 5000 * MS / 60);
	/* alone it waits for nobody */
	begin();
	place_entity(&task[0], 0, 3, CW_SE_IDLE, false);
	limit_wait(&task[0].se, 0);
	CHECK_EQ(task[0].se.deadline - task[0].se.vruntime, 1024 * MS - 1);
}

/* A task that ran alone for 10 s and one that comes while no task is there begin at the same time. */
static void test_alone(void)
{
	begin();
	place_entity(&task[0], 0, 1024, 0, false);
	run(0, 0, 10000 * MS);
	CHECK_EQ(task[0].se.vruntime, 10000 * MS);
	CHECK_EQ(task[0].se.vlag, 0);
	enqueue(1);
	enqueue(0);
	CHECK_EQ(task[1].se.vruntime, task[0].se.vruntime);
	CHECK(vruntime_eligible(fair_rq(0), task[0].se.vruntime));
	CHECK(vruntime_eligible(fair_rq(0), task[1].se.vruntime));
}

/* A task that leaves takes with it what it brought, once. */
static void test_sums(void)
{
	struct cw_fair_rq *q = fair_rq(0);

	begin();
	enqueue(0);
	enqueue(1);
	run(0, 0, SLICE);
	enqueue(0);
	CHECK_EQ(q->sum_weight, 2048);
	CHECK_EQ(q->sum_w_vruntime, SLICE * 1024);
	CHECK_EQ(queue_cpu(&task[0]), 0);
	/* as when another CPU takes it off while it is placed anew */
	task[0].se.vruntime = 100000 * MS;
	queue_leave(&task[0]);
	queue_leave(&task[0]);
	CHECK_EQ(queue_cpu(&task[0]), -1);
	queue_leave(&task[1]);
	CHECK_EQ(q->sum_weight, 0);
	CHECK_EQ(q->sum_w_vruntime, 0);
}

/* A task that was moved here waits for no lag, and behind a slice of V; one of this CPU's does. */
static void test_moved(void)
{
	begin();
	enqueue(0);
	enqueue(1);
	run(0, 0, SLICE);
	enqueue(0);
	CHECK(!may_run(&task[0], 0));
	CHECK(may_run(&task[1], 0));
	task[2].cpu = 1;
	task[2].se.vruntime = 100000 * MS;
	CHECK(may_run(&task[2], 0));
	CHECK_EQ(moved_deadline(0, 1024), SLICE / 2 + SLICE);
}

/* The CPU switches to the task. */
static void start(int i, s64 now)
{
	enqueue(i);
	queue_leave(&task[i]);
	set_next_task(&task[i], 0, (u64)now);
}

/* A sleeper that owes 1 ms stays where it is in virtual time until V has caught up. */
static void test_delay_dequeue(void)
{
	struct cw_fair_rq *q = fair_rq(0);

	begin();
	set_feature(CW_FEAT_DELAY_DEQUEUE, true);
	enqueue(0);
	enqueue(1);
	run(0, 0, 2 * MS);
	task[0].slept_on = 0;
	task[0].cpu = -1;
	CHECK_EQ(returning_lag(&task[0]), -1 * MS);
	queue_leave(&task[1]);
	set_next_task(&task[1], 0, 2 * MS);
	update_curr(&sys, q, 3 * MS); /* V of both would be at 1.5 ms */
	CHECK_EQ(returning_lag(&task[0]), -MS / 2);
	place_entity(&task[0], 0, 1024, 0, false);
	CHECK_EQ(task[0].se.vruntime, 2 * MS);
	set_feature(CW_FEAT_DELAY_DEQUEUE, false);
	CHECK_EQ(returning_lag(&task[0]), -1 * MS);
	set_feature(CW_FEAT_DELAY_DEQUEUE, true);
	update_curr(&sys, q, 5 * MS);
	CHECK_EQ(returning_lag(&task[0]), 0);
	/* it did not sleep */
	task[0].slept_on = -1;
	CHECK_EQ(returning_lag(&task[0]), -1 * MS);
	/* what it is owed stays */
	task[0].slept_on = 0;
	task[0].se.vlag = MS;
	CHECK_EQ(returning_lag(&task[0]), MS);
}

/* A waking task may preempt one that has had more than its share, if it is the best; an idle one always. */
static void test_preempt(void)
{
	struct cw_fair_rq *q = fair_rq(0);

	begin();
	CHECK_EQ(check_preempt(&task[1], 0, 0, 0), LIVE_PREEMPT_NO); /* nobody runs */
	start(0, 0);
	enqueue(1);
	CHECK_EQ(check_preempt(&task[1], 0, 0, 0), LIVE_PREEMPT_NO);
	update_curr(&sys, q, 1);
	CHECK_EQ(check_preempt(&task[1], 0, 0, 1), LIVE_PREEMPT_IF_BEST);
	/* a new one does not, since 7.3; one that does not ends the protection sooner: at V and a request */
	set_feature(CW_FEAT_WAKEUP_PICK, true);
	set_feature(CW_FEAT_WAKEUP_PROTECT, true);
	set_feature(CW_FEAT_PROTECT_SLICE, true);
	CHECK_EQ(check_preempt(&task[1], 0, 0, 1), LIVE_PREEMPT_IF_BEST);
	CHECK_EQ(check_preempt(&task[1], 0, WF_FORK, 1), LIVE_PREEMPT_NO);
	update_curr(&sys, q, 2 * MS);
	q->curr.vprot = 10 * SLICE;
	preempt_refused(0);
	CHECK_EQ(q->curr.vprot, MS + SLICE);
	set_feature(CW_FEAT_WAKEUP_PREEMPTION, false);
	CHECK_EQ(check_preempt(&task[1], 0, 0, 1), LIVE_PREEMPT_NO);
	begin();
	start(0, 0);
	q->curr.flags |= CW_SE_IDLE;
	enqueue(1);
	CHECK_EQ(check_preempt(&task[1], 0, 0, 0), LIVE_PREEMPT_YES);
	task[1].se.flags |= CW_SE_IDLE;
	CHECK_EQ(check_preempt(&task[1], 0, 0, 0), LIVE_PREEMPT_NO);
}

int main(void)
{
	test_delay_dequeue();
	test_preempt();
	test_long_run();
	test_limit_wait();
	test_alone();
	test_sums();
	test_moved();
	return test_report("queue");
}
