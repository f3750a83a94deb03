/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EEVDF's arithmetic (queue.bpf.h), natively. With a slice of 3 ms and tasks of
 * nice 0 virtual time is real time; nice 5 weighs 335, so a slice is
 * 3 ms * 1024 / 335 = 9,170,149 ns of its virtual time.
 */
#include <string.h>

/* the tests of the policy have a system of their own */
#define sys policy_test_sys
#include "../../policy/tests/test.h"
#undef sys

static struct cw_sys sys;

#include "../queue.bpf.h"

#define MS 1000000LL
#define SLICE (3 * MS)
#define NICE_5 335
#define NICE_5_SLICE 9170149

static struct eevdf_entity se[3];
static struct eevdf_queue *q;

static void begin(void)
{
	int i;

	memset(&sys, 0, sizeof(sys));
	memset(eevdf_queue, 0, sizeof(eevdf_queue));
	memset(se, 0, sizeof(se));
	sys.tunable[CW_TUNE_base_slice_ns] = SLICE;
	sys.tick_ns = 4 * MS;
	sys.features = 1ULL << CW_FEAT_PLACE_LAG | 1ULL << CW_FEAT_RUN_TO_PARITY |
		       1ULL << CW_FEAT_WAKEUP_PREEMPTION;
	for (i = 0; i < 3; i++)
		se[i].queue = se[i].cpu = -1;
	q = queue_of(0);
}

/* A task comes to the queue and waits. */
static void wait_there(int i, u32 weight)
{
	place_entity(&se[i], 0, weight, eevdf_slice());
	queue_join(&se[i], 0);
}

/* The task is the one that runs from `now` on. */
static void run(int i, s64 now)
{
	queue_leave(&se[i]);
	set_next_entity(&se[i], 0, false, (u64)now);
}

/* It runs for 1 ms: V of two equal tasks moves by half of that, and it is not eligible any more. */
static void test_two_equal_tasks(void)
{
	begin();
	wait_there(0, 1024);
	run(0, 100 * MS);
	wait_there(1, 1024);
	CHECK_EQ(avg_vruntime(q), 0);
	CHECK(!update_curr(q, 101 * MS));
	CHECK_EQ(q->curr_vruntime, MS);
	CHECK_EQ(avg_vruntime(q), MS / 2);
	CHECK(entity_eligible(q, se[1].vruntime));
	CHECK(!entity_eligible(q, q->curr_vruntime));
	put_prev_entity(&se[0], 0, 101 * MS);
	CHECK_EQ(se[0].vruntime, MS);
	CHECK_EQ(se[0].deadline, SLICE);
}

/* V is nearer to the heavier task: (0 * 1024 + 1.024 ms * 335) / 1359, rounded down. */
static void test_weights(void)
{
	begin();
	wait_there(0, 1024);
	wait_there(1, NICE_5);
	CHECK_EQ(se[1].deadline, NICE_5_SLICE);
	run(1, 0);
	CHECK(!update_curr(q, 335000));
	CHECK_EQ(q->curr_vruntime, 1024000);
	CHECK_EQ(avg_vruntime(q), 1024000LL * 335 / 1359);
	CHECK_EQ(calc_delta_real(1024000, NICE_5), 335000);
}

/* A request of 3 ms is served after 3 ms; the next one begins there. */
static void test_request(void)
{
	begin();
	wait_there(0, 1024);
	run(0, 0);
	CHECK(protect_curr(q));
	CHECK(!update_curr(q, SLICE - 1));
	CHECK(update_curr(q, SLICE + 5));
	CHECK_EQ(q->curr_deadline, 2 * SLICE + 5);
	CHECK(!protect_curr(q));
}

/* Who yields has the rest of the request taken off, so that another is before it; twice in a row only once. */
static void test_yield(void)
{
	begin();
	wait_there(0, 1024);
	run(0, 0);
	wait_there(1, 1024);
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
	begin();
	wait_there(0, 1024);
	run(0, 0);
	wait_there(1, 1024);
	update_curr(q, MS);
	/* V is 0.5 ms: the waiting task is owed that */
	update_entity_lag(&se[1], 0);
	CHECK_EQ(se[1].vlag, MS / 2);
	queue_leave(&se[1]);
	CHECK_EQ(avg_vruntime(q), MS);
	wait_there(1, 1024);
	CHECK_EQ(se[1].vruntime, 0);
	CHECK_EQ(avg_vruntime(q), MS / 2);
	/* without PLACE_LAG it comes at V */
	queue_leave(&se[1]);
	sys.features &= ~(1ULL << CW_FEAT_PLACE_LAG);
	wait_there(1, 1024);
	CHECK_EQ(se[1].vruntime, MS);
}

/* Lag is at most two slices. */
static void test_lag_limit(void)
{
	begin();
	wait_there(0, 1024);
	run(0, 0);
	wait_there(1, 1024);
	update_curr(q, 100 * MS);
	update_entity_lag(&se[1], 0);
	CHECK_EQ(se[1].vlag, 2 * SLICE);
	put_prev_entity(&se[0], 0, 100 * MS);
	CHECK_EQ(se[0].vlag, -2 * SLICE);
}

/* Each task takes off the sums what it added, also after the base has moved; the second time does nothing. */
static void test_sums(void)
{
	int i;

	begin();
	wait_there(0, 1024);
	run(0, 0);
	update_curr(q, 7 * MS);
	wait_there(1, NICE_5);
	CHECK_EQ(q->base, 7 * MS);
	wait_there(2, 1024);
	CHECK_EQ(q->weight, NICE_5 + 1024);
	for (i = 0; i < 2; i++) {
		queue_leave(&se[1]);
		queue_leave(&se[2]);
	}
	CHECK_EQ(q->weight, 0);
	CHECK_EQ(q->sum, 0);
}

/* A waking task preempts one that has had more than its share, and an idle one always. */
static void test_preempt(void)
{
	begin();
	wait_there(0, 1024);
	run(0, 0);
	wait_there(1, 1024);
	CHECK(!check_preempt(&se[1], 0, false, 0));
	CHECK(check_preempt(&se[1], 0, false, 1));
	sys.features &= ~(1ULL << CW_FEAT_WAKEUP_PREEMPTION);
	CHECK(!check_preempt(&se[1], 0, false, SLICE));
	begin();
	wait_there(0, 1024);
	queue_leave(&se[0]);
	set_next_entity(&se[0], 0, true, 0);
	wait_there(1, 1024);
	CHECK(check_preempt(&se[1], 0, false, 0));
	CHECK(!check_preempt(&se[1], 0, true, 0));
}

int main(void)
{
	test_two_equal_tasks();
	test_weights();
	test_request();
	test_yield();
	test_lag();
	test_lag_limit();
	test_sums();
	test_preempt();
	return test_report("queue");
}
