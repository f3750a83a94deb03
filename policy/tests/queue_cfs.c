/* SPDX-License-Identifier: GPL-2.0-only */
/* CFS: slices, placement, min_vruntime, turns, picks and buddies. */
#include "tests/queue_test.h"

static void test_slice(void)
{
	struct cw_entity se = entity(1, 0, 0, 1024);

	begin(false);
	CHECK_EQ(sched_nr_latency(&sys), 6);
	/* alone: the whole latency, by the inverse of 1024 rounded down */
	CHECK_EQ(sched_slice(&sys, &rq, &se), 5999998);
	run_entity(entity(2, 0, 0, 1024));
	CHECK_EQ(sched_slice(&sys, &rq, &se), 2999998);
	CHECK_EQ(sched_slice(&sys, &rq, &rq.curr), 5999998);
	for (s32 id = 3; id < 10; id++)
		wait_entity(entity(id, 0, 0, 1024));
	CHECK_EQ(sched_slice(&sys, &rq, &rq.curr), 999998); /* 8 ms for 8 */
	rq.curr.weight = 15;
	CHECK_EQ(sched_slice(&sys, &rq, &rq.curr), 16706); /* 8 ms * 15 / 7183 */
	set_feature(CW_FEAT_BASE_SLICE, true);
	CHECK_EQ(sched_slice(&sys, &rq, &rq.curr), MS);
}

/* Groups have finer weights, which count as what they are in whole steps of a nice value's. */
static void test_fine_slice(void)
{
	for (u32 sum_shift = 0; sum_shift <= 10; sum_shift += 10) {
		begin(false);
		rq.load_shift = 10;
		rq.sum_shift = sum_shift;
		run_entity(entity(1, 0, 0, 1024 << 10));
		CHECK_EQ(sched_slice(&sys, &rq, &rq.curr), 5999998);
		wait_entity(entity(2, 0, 0, 1024 << 10));
		CHECK_EQ(sched_slice(&sys, &rq, &rq.curr), 2999998);
		rq.curr.weight = (512 << 10) + 1023;
		CHECK_EQ(sched_slice(&sys, &rq, &rq.curr), 1999999); /* a third */
	}
}

static void test_place(void)
{
	struct cw_entity se = entity(1, 0, 0, 1024);

	begin(false);
	rq.min_vruntime = 100 * MS;
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_WAKEUP);
	CHECK_EQ(se.vruntime, 94 * MS);
	set_feature(CW_FEAT_GENTLE_FAIR_SLEEPERS, true);
	se.vruntime = 0;
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_WAKEUP);
	CHECK_EQ(se.vruntime, 97 * MS);
	/* a short sleep gains nothing */
	se.vruntime = 99 * MS;
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_WAKEUP);
	CHECK_EQ(se.vruntime, 99 * MS);
	/* SCHED_IDLE */
	se.vruntime = 0;
	se.flags |= CW_SE_IDLE;
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_WAKEUP);
	CHECK_EQ(se.vruntime, 97 * MS);
	set_feature(CW_FEAT_IDLE_SLEEPERS, true);
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_WAKEUP);
	CHECK_EQ(se.vruntime, 100 * MS - MS / 2);
}

static void test_child(void)
{
	struct cw_entity se = entity(1, 0, 0, 1024);

	begin(false);
	rq.min_vruntime = 50 * MS;
	run_entity(entity(2, 51 * MS, 0, 1024));
	task_fork_fair(&sys, &rq, &se);
	CHECK_EQ(se.vruntime, MS); /* with its parent, from min_vruntime */
	CHECK(se.flags & CW_SE_REL_VRUNTIME);
	set_feature(CW_FEAT_START_DEBIT, true);
	se = entity(1, 0, 0, 1024);
	task_fork_fair(&sys, &rq, &se);
	CHECK_EQ(se.vruntime, 2999998); /* half a latency behind the others */
	rq.min_vruntime = 7;
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_INITIAL);
	CHECK_EQ(se.vruntime, 2999998 + 7);
	CHECK_EQ(se.flags, CW_SE_ON_RQ);
}

static void test_moved(void)
{
	struct cw_entity se = entity(1, 1300, 0, 1024);

	begin(false);
	rq.min_vruntime = 1000;
	migrate_task_rq_fair(&sys, &rq, &se);
	migrate_task_rq_fair(&sys, &rq, &se); /* it has left already */
	CHECK_EQ(se.vruntime, 300);
	rq.min_vruntime = 7;
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK_EQ(se.vruntime, 307);
	CHECK(dequeue_entity(&sys, &rq, &se, false, true));
	CHECK_EQ(se.vruntime, 300);
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK(dequeue_entity(&sys, &rq, &se, true, true));
	CHECK_EQ(se.vruntime, 307); /* a sleeper stays where it is */
}

static void test_min_vruntime(void)
{
	begin(false);
	run_entity(entity(1, 50, 0, 1024));
	wait_entity(entity(2, 20, 0, 1024));
	update_min_vruntime(&rq);
	CHECK_EQ(rq.min_vruntime, 20);
	rq.leftmost = 60;
	update_min_vruntime(&rq);
	CHECK_EQ(rq.min_vruntime, 50);
	rq.curr.weight = 0;
	rq.leftmost = 40;
	update_min_vruntime(&rq);
	CHECK_EQ(rq.min_vruntime, 50); /* it never goes back */
	rq.leftmost = 70;
	update_min_vruntime(&rq);
	CHECK_EQ(rq.min_vruntime, 70);
	rq.nr_waiting = 0;
	rq.leftmost = 90;
	update_min_vruntime(&rq);
	CHECK_EQ(rq.min_vruntime, 70); /* nobody waits */
	/* the running one pulls it along as it is charged */
	run_entity(entity(1, 75, 0, 1024));
	update_curr(&sys, &rq, 25);
	CHECK_EQ(rq.min_vruntime, 100);
}

/* Who goes to sleep holds min_vruntime back no longer; who moves counts its vruntime from it. */
static void test_leave(void)
{
	begin(false);
	run_entity(entity(1, 50, 0, 1024));
	wait_entity(entity(2, 70, 0, 1024));
	rq.min_vruntime = 40;
	CHECK(dequeue_entity(&sys, &rq, &rq.curr, false, true));
	CHECK_EQ(rq.curr.vruntime, 10);
	CHECK_EQ(rq.min_vruntime, 40);
	run_entity(entity(1, 50, 0, 1024));
	CHECK(dequeue_entity(&sys, &rq, &rq.curr, true, true));
	CHECK_EQ(rq.curr.vruntime, 50);
	CHECK_EQ(rq.min_vruntime, 70);
}

static void test_tick(void)
{
	begin(false);
	run_entity(entity(1, 0, 0, 1024));
	CHECK(!entity_tick(&sys, &rq));
	wait_entity(entity(2, 0, 0, 1024));
	rq.last = 1;
	rq.curr.sum_exec_runtime = 2999998;
	rq.curr.vruntime = 2999998;
	CHECK(!entity_tick(&sys, &rq));
	CHECK_EQ(rq.last, 1);
	rq.curr.sum_exec_runtime++;
	CHECK(entity_tick(&sys, &rq));
	CHECK_EQ(rq.last, CW_NO_ENTITY); /* and a buddy has had its turn */
	/* a slice ahead of the leftmost, but not before the least granularity */
	rq.curr.sum_exec_runtime = MS;
	rq.curr.vruntime = 2999999;
	CHECK(entity_tick(&sys, &rq));
	rq.curr.sum_exec_runtime--;
	CHECK(!entity_tick(&sys, &rq));
}

static void test_pick(void)
{
	begin(false);
	CHECK_EQ(pick(), CW_NO_ENTITY);
	wait_entity(entity(1, 5, 0, 1024));
	wait_entity(entity(2, 3, 0, 1024));
	wait_entity(entity(3, 4, 0, 1024));
	CHECK_EQ(pick(), 2);
	run_entity(entity(4, 2, 0, 1024));
	CHECK_EQ(pick(), 4);
	rq.curr.vruntime = 3; /* a tie goes to the waiting entity */
	CHECK_EQ(pick(), 2);
}

static void test_buddies(void)
{
	begin(false);
	wait_entity(entity(1, 0, 0, 1024));
	wait_entity(entity(2, MS, 0, 1024));
	wait_entity(entity(3, 10, 0, 1024));
	rq.last = 2;
	CHECK_EQ(pick(), 2);
	rq.next = 3; /* before the last one */
	CHECK_EQ(pick(), 3);
	clear_buddies(&rq, 3);
	clear_buddies(&rq, 1);
	CHECK_EQ(pick(), 2);
	/* unless that is unfair: of virtual time, twice the weight has half the granularity */
	begin(false);
	wait_entity(entity(1, 0, 0, 2048));
	wait_entity(entity(2, 500000, 0, 1024));
	rq.last = 2;
	CHECK_EQ(pick(), 2);
	begin(false);
	wait_entity(entity(1, 0, 0, 2048));
	wait_entity(entity(2, 500001, 0, 1024));
	rq.last = 2;
	CHECK_EQ(pick(), 1);
}

static void test_yield(void)
{
	begin(false);
	run_entity(entity(1, 0, 0, 1024));
	yield_task_fair(&sys, &rq);
	CHECK_EQ(rq.skip, CW_NO_ENTITY); /* for nobody */
	wait_entity(entity(2, 900000, 0, 1024));
	wait_entity(entity(3, 950000, 0, 1024));
	rq.next = 1;
	yield_task_fair(&sys, &rq);
	CHECK_EQ(rq.next, CW_NO_ENTITY);
	CHECK_EQ(pick(), 2);
	/* it was not its turn */
	rq.curr.vruntime = 920000;
	CHECK_EQ(pick(), 2);
	/* a waiting entity is passed over, too: the next is the running one */
	rq.skip = 2;
	CHECK_EQ(pick(), 1);
	rq.curr.vruntime = 960000;
	CHECK_EQ(pick(), 3);
	/* unless that is unfair */
	rq.skip = 1;
	rq.curr.vruntime = -200000;
	CHECK_EQ(pick(), 1);
}

int main(void)
{
	test_slice();
	test_fine_slice();
	test_place();
	test_child();
	test_moved();
	test_min_vruntime();
	test_leave();
	test_tick();
	test_pick();
	test_buddies();
	test_yield();
	return test_report("queue_cfs");
}
