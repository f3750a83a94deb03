/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EEVDF's arithmetic (queue.bpf.h), natively: virtual times that can be worked out by
 * hand. For tasks of nice 0 virtual time is real time.
 */
#include <string.h>

#include "tests/test.h"

#include "live/queue.bpf.h"

#define MS 1000000LL
#define SLICE (3 * MS)
/* the most that lag may be: two slices, or a tick */
#define LIMIT (6 * MS)
#define NICE_5 335
/* of a task of nice 5, in its virtual time: 3 ms * 1024 / 335, rounded down */
#define NICE_5_SLICE 9170149

static struct eevdf_entity task[3];

/* One CPU, and tasks that have slept for long. */
static void begin(void)
{
	memset(&sys, 0, sizeof(sys));
	memset(eevdf_queue, 0, sizeof(eevdf_queue));
	memset(task, 0, sizeof(task));
	sys.nr_cpus = 1;
	sys.features = 1ULL << CW_FEAT_PLACE_LAG | 1ULL << CW_FEAT_RUN_TO_PARITY |
		       1ULL << CW_FEAT_WAKEUP_PREEMPTION;
	sys.tunable[CW_TUNE_base_slice_ns] = SLICE;
	sys.tick_ns = 4 * MS;
	for (int i = 0; i < 3; i++)
		task[i].cpu = task[i].slept_on = -1;
}

/* Places a task and lets it wait. */
static void enqueue(int i)
{
	if (task[i].cpu != 0)
		place_entity(&task[i], 0, 1024, SLICE);
	queue_join(&task[i], 0);
}

/* The CPU runs the task for some time. */
static void run(int i, s64 from, s64 ns)
{
	queue_leave(&task[i]);
	set_next_entity(&task[i], 0, false, (u64)from);
	put_prev_entity(&task[i], 0, true, (u64)(from + ns));
}

/* A task that nothing could preempt for 300 ms pays for them, so that weights hold; the lag that it leaves with is limited. */
static void test_long_run(void)
{
	begin();
	for (int i = 0; i < 3; i++)
		enqueue(i);
	run(0, 0, SLICE);
	CHECK_EQ(task[0].vruntime, SLICE); /* a slice more than the others, V is at one */
	CHECK_EQ(task[0].vlag, -2 * MS);
	enqueue(0);
	CHECK_EQ(avg_vruntime(queue_of(0)), 1 * MS);
	run(1, SLICE, 300 * MS);
	CHECK_EQ(task[1].vlag, -LIMIT);
	CHECK_EQ(task[1].vruntime, 300 * MS);
	CHECK_EQ(task[1].deadline, task[1].vruntime + SLICE);
	CHECK(!queue_of(0)->curr_weight);
}

/*
 * What a task may have to wait is 5 s: of two others of nice 0 that is 2.5 s of virtual
 * time. Who is owed less is forgiven the rest, others nothing.
 */
static void test_limit_wait(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	enqueue(0);
	enqueue(1);
	task[2].vruntime = 2000 * MS;
	task[2].deadline = 2500 * MS;
	limit_wait(&task[2], 0);
	CHECK_EQ(task[2].vruntime, 2000 * MS);
	CHECK_EQ(task[2].deadline, 2500 * MS);
	task[2].deadline++;
	limit_wait(&task[2], 0);
	CHECK_EQ(task[2].vruntime, 2000 * MS);
	CHECK_EQ(task[2].deadline, 2500 * MS);
	task[2].vruntime = 3000 * MS;
	task[2].deadline = 3003 * MS;
	limit_wait(&task[2], 0);
	CHECK_EQ(task[2].vruntime, 2500 * MS);
	CHECK_EQ(task[2].deadline, 2500 * MS);
	/* a request of SCHED_IDLE, weight 3, is 1,024 ms: too many of nice 0 wait for it */
	CHECK_EQ(moved_deadline(0, 3), 1024 * MS);
	q->weight = 60 * 1024;
	CHECK_EQ(moved_deadline(0, 3), 5000 * MS / 60);
	/* alone it waits for nobody */
	begin();
	place_entity(&task[0], 0, 3, SLICE);
	limit_wait(&task[0], 0);
	CHECK_EQ(task[0].deadline - task[0].vruntime, 1024 * MS);
}

/* A task that ran alone for 10 s and one that comes while no task is there begin at the same time. */
static void test_alone(void)
{
	begin();
	place_entity(&task[0], 0, 1024, SLICE);
	run(0, 0, 10000 * MS);
	CHECK_EQ(task[0].vruntime, 10000 * MS);
	CHECK_EQ(task[0].vlag, 0);
	enqueue(1);
	enqueue(0);
	CHECK_EQ(task[1].vruntime, task[0].vruntime);
	CHECK(entity_eligible(queue_of(0), task[0].vruntime));
	CHECK(entity_eligible(queue_of(0), task[1].vruntime));
}

/* Who leaves takes with it what it brought, once. */
static void test_sums(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	enqueue(0);
	enqueue(1);
	run(0, 0, SLICE);
	enqueue(0);
	CHECK_EQ(q->weight, 2048);
	CHECK_EQ(q->sum, SLICE * 1024);
	CHECK_EQ(queue_cpu(&task[0]), 0);
	/* as when another CPU takes it off while it is placed anew */
	task[0].vruntime = 100000 * MS;
	queue_leave(&task[0]);
	queue_leave(&task[0]);
	CHECK_EQ(queue_cpu(&task[0]), -1);
	queue_leave(&task[1]);
	CHECK_EQ(q->weight, 0);
	CHECK_EQ(q->sum, 0);
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
	task[2].vruntime = 100000 * MS;
	CHECK(may_run(&task[2], 0));
	CHECK_EQ(moved_deadline(0, 1024), SLICE / 2 + SLICE);
}

/* The CPU switches to the task. */
static void start(int i, s64 now)
{
	enqueue(i);
	queue_leave(&task[i]);
	set_next_entity(&task[i], 0, false, (u64)now);
}

/* It runs for 1 ms: V of two equal tasks moves by half of that, and it is not eligible any more. */
static void test_two_equal_tasks(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	start(0, 100 * MS);
	enqueue(1);
	CHECK_EQ(avg_vruntime(q), 0);
	CHECK(!update_curr(q, 101 * MS));
	CHECK_EQ(q->curr_vruntime, MS);
	CHECK_EQ(avg_vruntime(q), MS / 2);
	CHECK(entity_eligible(q, task[1].vruntime));
	CHECK(!entity_eligible(q, q->curr_vruntime));
	put_prev_entity(&task[0], 0, true, 101 * MS);
	CHECK_EQ(task[0].vruntime, MS);
	CHECK_EQ(task[0].deadline, SLICE);
}

/* V is nearer to the heavier task: (0 * 1024 + 1.024 ms * 335) / 1359, rounded down. */
static void test_weights(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	enqueue(0);
	place_entity(&task[1], 0, NICE_5, SLICE);
	CHECK_EQ(task[1].deadline, NICE_5_SLICE);
	start(1, 0);
	CHECK(!update_curr(q, 335000));
	CHECK_EQ(q->curr_vruntime, 1024000);
	CHECK_EQ(avg_vruntime(q), 1024000LL * NICE_5 / 1359);
	CHECK_EQ(calc_delta_real(1024000, NICE_5), 335000);
}

/* A request of 3 ms is served after 3 ms; the next one begins there. */
static void test_request(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	start(0, 0);
	CHECK(protect_curr(q));
	CHECK(!update_curr(q, SLICE - 1));
	CHECK(update_curr(q, SLICE + 5));
	CHECK_EQ(q->curr_deadline, 2 * SLICE + 5);
	CHECK(!protect_curr(q));
}

/* Who yields loses the rest of the request; again at once, it has nothing to lose. */
static void test_yield(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	start(0, 0);
	enqueue(1);
	forfeit_request(q, 0);
	CHECK_EQ(q->curr_vruntime, SLICE);
	CHECK_EQ(q->curr_deadline, 2 * SLICE);
	CHECK(!protect_curr(q));
	CHECK(!entity_eligible(q, q->curr_vruntime));
	forfeit_request(q, MS);
	CHECK_EQ(q->curr_vruntime, SLICE + MS);
	CHECK_EQ(q->curr_deadline, 2 * SLICE);
}

/* A task that leaves with a lag is given it again, scaled by what its weight does to V. */
static void test_lag(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	start(0, 0);
	enqueue(1);
	update_curr(q, MS);
	update_entity_lag(&task[1], 0);
	CHECK_EQ(task[1].vlag, MS / 2);
	queue_leave(&task[1]);
	CHECK_EQ(avg_vruntime(q), MS);
	task[1].cpu = -1;
	enqueue(1);
	CHECK_EQ(task[1].vruntime, 0);
	CHECK_EQ(avg_vruntime(q), MS / 2);
	/* without PLACE_LAG it comes at V */
	queue_leave(&task[1]);
	sys.features &= ~(1ULL << CW_FEAT_PLACE_LAG);
	task[1].cpu = -1;
	enqueue(1);
	CHECK_EQ(task[1].vruntime, MS);
}

/* A sleeper that owes 1 ms stays where it is in virtual time until V has caught up. */
static void test_delay_dequeue(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	sys.features |= 1ULL << CW_FEAT_DELAY_DEQUEUE;
	enqueue(0);
	enqueue(1);
	run(0, 0, 2 * MS);
	task[0].slept_on = 0;
	task[0].cpu = -1;
	CHECK_EQ(entity_lag(&task[0]), -1 * MS);
	queue_leave(&task[1]);
	set_next_entity(&task[1], 0, false, 2 * MS);
	update_curr(q, 3 * MS); /* V of both would be at 1.5 ms */
	CHECK_EQ(entity_lag(&task[0]), -MS / 2);
	place_entity(&task[0], 0, 1024, SLICE);
	CHECK_EQ(task[0].vruntime, 2 * MS);
	sys.features &= ~(1ULL << CW_FEAT_DELAY_DEQUEUE);
	CHECK_EQ(entity_lag(&task[0]), -1 * MS);
	sys.features |= 1ULL << CW_FEAT_DELAY_DEQUEUE;
	update_curr(q, 5 * MS);
	CHECK_EQ(entity_lag(&task[0]), 0);
	/* it did not sleep */
	task[0].slept_on = -1;
	CHECK_EQ(entity_lag(&task[0]), -1 * MS);
	/* what it is owed stays */
	task[0].slept_on = 0;
	task[0].vlag = MS;
	CHECK_EQ(entity_lag(&task[0]), MS);
}

/* A waking task preempts one that has had more than its share, and an idle one always. */
static void test_preempt(void)
{
	struct eevdf_queue *q = queue_of(0);

	begin();
	start(0, 0);
	enqueue(1);
	CHECK(!check_preempt(&task[1], 0, false));
	update_curr(q, 1);
	CHECK(check_preempt(&task[1], 0, false));
	sys.features &= ~(1ULL << CW_FEAT_WAKEUP_PREEMPTION);
	CHECK(!check_preempt(&task[1], 0, false));
	begin();
	start(0, 0);
	q->curr_idle = true;
	enqueue(1);
	CHECK(check_preempt(&task[1], 0, false));
	CHECK(!check_preempt(&task[1], 0, true));
}

int main(void)
{
	test_two_equal_tasks();
	test_weights();
	test_request();
	test_yield();
	test_lag();
	test_delay_dequeue();
	test_preempt();
	test_long_run();
	test_limit_wait();
	test_alone();
	test_sums();
	test_moved();
	return test_report("queue");
}
