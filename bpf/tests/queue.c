/* SPDX-License-Identifier: GPL-2.0-only */
/* EEVDF's arithmetic (queue.bpf.h), natively: virtual times that can be worked out by hand. */
#include <string.h>

#include "../../policy/tests/test.h"

#include "../queue.bpf.h"

#define MS 1000000LL
#define SLICE (3 * MS)
/* the most that lag may be: two slices, or a tick */
#define LIMIT (6 * MS)

static struct eevdf_entity task[3];

/* One CPU, and tasks that have slept for long. */
static void begin(void)
{
	memset(&sys, 0, sizeof(sys));
	memset(eevdf_queue, 0, sizeof(eevdf_queue));
	memset(task, 0, sizeof(task));
	sys.nr_cpus = 1;
	sys.features = 1ULL << CW_FEAT_PLACE_LAG;
	sys.tunable[CW_TUNE_base_slice_ns] = SLICE;
	sys.tick_ns = 4 * MS;
	for (int i = 0; i < 3; i++)
		task[i].cpu = -1;
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
	put_prev_entity(&task[i], 0, (u64)(from + ns));
}

/* A task that nothing could preempt for 300 ms is behind the others by the limit, no more. */
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
	/* V was at a third of the 303 ms that were run */
	CHECK_EQ(task[1].vruntime, 101 * MS + LIMIT);
	CHECK_EQ(task[1].deadline, task[1].vruntime + SLICE);
	CHECK(!queue_of(0)->curr_weight);
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

int main(void)
{
	test_long_run();
	test_alone();
	test_sums();
	test_moved();
	return test_report("queue");
}
