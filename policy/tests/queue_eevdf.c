/* SPDX-License-Identifier: GPL-2.0-only */
/* EEVDF: lag, placement, deadlines, protection, picks, yields, sleepers that stay queued. */
#include "tests/queue_test.h"

/* nice 5; its request of 3 ms in virtual time, by the inverse of 335: 3 ms * 1024 / 335 */
#define NICE_5 335
#define NICE_5_SLICE 9170149

static void test_virtual_time(void)
{
	struct cw_entity se = entity(1, 0, 0, 1024);

	begin(true);
	CHECK_EQ(calc_delta_fair(&sys, &rq, SLICE, &se), SLICE);
	se.weight = NICE_5;
	CHECK_EQ(calc_delta_fair(&sys, &rq, SLICE, &se), NICE_5_SLICE);
	se.weight = 2048;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000, &se), 500);
	/* a task of nice 1 by 5237765, the nearest to 2^32 / 820; a group of that weight by 5237764: 10^12 times that / 2^22 */
	se.weight = 820;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000000000000, &se), 1248780488967);
	se.flags = CW_SE_GROUP;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000000000000, &se), 1248780250549);
	/* nice 12 and 13: 2^32 / 70 is 61356675.7, which counts as 61356676; 2^32 / 56 is 76695844.6, which counts as 76695844 */
	se = entity(1, 0, 0, 70);
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000000000000, &se), 14628571510314);
	se.weight = 56;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000000000000, &se), 18285714149475);
	/* weights with ten bits more, of which the inverse is that of the upper ones, and never that of less than 2 */
	se = entity(1, 0, 0, 2048 << 10);
	rq.load_shift = 10;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000, &se), 500);
	se.flags = CW_SE_GROUP;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000, &se), 499);
	se.weight = 2455;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000, &se), 511999);
	/* a division knows all of them: 1000 * 2^20 / 2455; 3121 is nice -5: 19383123 * 1024 / 3121 */
	set_feature(CW_FEAT_EXACT_DELTA, true);
	CHECK_EQ(calc_delta_fair(&sys, &rq, 1000, &se), 427118);
	se.weight = 3121 << 10;
	CHECK_EQ(calc_delta_fair(&sys, &rq, 19383123, &se), 6359602);
	set_feature(CW_FEAT_EXACT_DELTA, false);
	CHECK_EQ(task_weight(0, false), 1024);
	CHECK_EQ(task_weight(-21, false), 88761);
	CHECK_EQ(task_weight(20, false), 15);
	CHECK_EQ(task_weight(0, true), 3);
}

static void test_mean(void)
{
	begin(true);
	CHECK_EQ(avg_vruntime(&rq), 0);
	wait_entity(entity(1, -10, 0, 1024));
	wait_entity(entity(2, 5, 0, 2048));
	CHECK_EQ(avg_vruntime(&rq), 0); /* (-10 + 2 * 5) / 3 */
	wait_entity(entity(3, -1, 0, 1024));
	CHECK_EQ(avg_vruntime(&rq), -1); /* -1/4 is rounded down */
	run_entity(entity(4, 29, 0, 1024));
	CHECK_EQ(avg_vruntime(&rq), 5); /* 28/5 */
	rq.curr.flags = 0; /* about to sleep */
	CHECK_EQ(avg_vruntime(&rq), -1);
	rq.curr.flags = CW_SE_ON_RQ;
	update_zero_vruntime(&rq);
	CHECK_EQ(rq.zero_vruntime, 5);
	CHECK_EQ(avg_vruntime(&rq), 5);
	/* V is 5.6: an entity at 5 is eligible, one at 6 is not */
	CHECK(vruntime_eligible(&rq, 5));
	CHECK(!vruntime_eligible(&rq, 6));
}

static void test_lag(void)
{
	struct cw_entity se = entity(1, -100 * MS, 0, 1024);

	begin(true);
	run_entity(entity(2, 0, 0, 1024));
	CHECK_EQ(entity_lag(&sys, &rq, &se), 6 * MS); /* two slices */
	se.slice = MS;
	CHECK_EQ(entity_lag(&sys, &rq, &se), 4 * MS); /* a tick */
	se.vruntime = 100 * MS;
	CHECK_EQ(entity_lag(&sys, &rq, &se), -4 * MS);
	/* the longest slice of the queue, and a tick */
	set_feature(CW_FEAT_LAG_MAX_SLICE, true);
	CHECK_EQ(entity_lag(&sys, &rq, &se), -7 * MS);
	rq.curr.slice = 5 * MS;
	CHECK_EQ(entity_lag(&sys, &rq, &se), -9 * MS);
	/* a sleeper that stayed queued owes no more than it did, and is owed nothing */
	se.flags = CW_SE_DELAYED;
	se.vlag = -2 * MS;
	update_entity_lag(&sys, &rq, &se);
	CHECK_EQ(se.vlag, -9 * MS);
	set_feature(CW_FEAT_DELAY_KEEPS_LAG, true);
	se.vlag = -2 * MS;
	update_entity_lag(&sys, &rq, &se);
	CHECK_EQ(se.vlag, -2 * MS);
	se.vruntime = -MS;
	update_entity_lag(&sys, &rq, &se);
	CHECK_EQ(se.vlag, MS);
	set_feature(CW_FEAT_DELAY_ZERO, true);
	update_entity_lag(&sys, &rq, &se);
	CHECK_EQ(se.vlag, 0);
}

static void test_place(void)
{
	struct cw_entity se = entity(1, 77, 99, 1024);

	begin(true);
	set_feature(CW_FEAT_PLACE_LAG, true);
	run_entity(entity(2, 1000, 9000, 1024));
	/* it left owed 500: at 1000 - 500 * 2, for once it is in V is 500 */
	se.vlag = 500;
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_WAKEUP);
	CHECK_EQ(se.vruntime, 0);
	CHECK_EQ(se.deadline, SLICE);
	CHECK(se.flags & CW_SE_ON_RQ);
	/* beside a weight of 3 * 1024, an odd lag: -501 - 501 / 3, and the third is rounded towards zero */
	rq.curr.weight = 3072;
	se.vlag = -502;
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK_EQ(se.vruntime, 1000 + 502 + 167);
	set_feature(CW_FEAT_PLACE_LAG, false);
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK_EQ(se.vruntime, 1000);
	/* a new one has half a request first */
	set_feature(CW_FEAT_PLACE_DEADLINE_INITIAL, true);
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_INITIAL);
	CHECK_EQ(se.deadline, 1000 + SLICE / 2);
	enqueue_entity(&sys, &rq, &se, CW_ENQUEUE_WAKEUP);
	CHECK_EQ(se.deadline, 1000 + SLICE);
	/* what was asked for stays, what was not is the tunable's */
	se.slice = MS;
	se.flags |= CW_SE_CUSTOM_SLICE;
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK_EQ(se.deadline, 1000 + MS);
	sys.nr_cpus = 8; /* 1 + log2(8) times the tunable */
	se.flags &= ~(u32)CW_SE_CUSTOM_SLICE;
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK_EQ(se.deadline, 1000 + 4 * SLICE);
	/* nobody is there: at the origin, without its lag */
	begin(true);
	set_feature(CW_FEAT_PLACE_LAG, true);
	rq.zero_vruntime = 42;
	se.vlag = 500;
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK_EQ(se.vruntime, 42);
}

static void test_moved(void)
{
	struct cw_entity se = entity(1, 100, 700, 1024);

	begin(true);
	wait_entity(se);
	se.flags = CW_SE_ON_RQ;
	set_feature(CW_FEAT_PLACE_REL_DEADLINE, true);
	CHECK(dequeue_entity(&sys, &rq, &se, false, true));
	CHECK_EQ(se.deadline, 600);
	CHECK_EQ(se.flags, CW_SE_REL_DEADLINE);
	dequeue_waiting(&rq, &se);
	CHECK_EQ(rq.sum_weight, 0);
	CHECK_EQ(rq.sum_w_vruntime, 0);
	rq.zero_vruntime = 5000;
	enqueue_entity(&sys, &rq, &se, 0);
	CHECK_EQ(se.vruntime, 5000);
	CHECK_EQ(se.deadline, 5600);
	CHECK_EQ(se.flags, CW_SE_ON_RQ);
	/* a sleeper asks anew */
	__enqueue_entity(&rq, &se);
	dequeue_entity(&sys, &rq, &se, true, true);
	CHECK_EQ(se.flags, 0);
}

static void test_charge(void)
{
	begin(true);
	run_entity(entity(1, 0, SLICE, 2048));
	CHECK(!update_curr(&sys, &rq, MS));
	CHECK_EQ(rq.curr.vruntime, MS / 2);
	CHECK_EQ(rq.curr.sum_exec_runtime, MS);
	/* served, but nobody waits */
	CHECK(!update_curr(&sys, &rq, 6 * MS));
	CHECK_EQ(rq.curr.deadline, SLICE + SLICE / 2);
	wait_entity(entity(2, 4 * MS, 10 * MS, 1024));
	CHECK(!update_curr(&sys, &rq, 7 * MS));
	CHECK(update_curr(&sys, &rq, 9 * MS));
	CHECK(!update_curr(&sys, &rq, 9 * MS));
}

static void test_turn_with_preempt_short(void)
{
	begin(true);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	run_entity(entity(1, 0, SLICE, 1024));
	wait_entity(entity(2, 0, 10 * MS, 1024));
	/* it has had more than its share, but is protected */
	CHECK(!update_curr(&sys, &rq, MS));
	cancel_protect_slice(&sys, &rq);
	CHECK(!update_curr(&sys, &rq, MS + 1));
	set_feature(CW_FEAT_PREEMPT_SHORT, true);
	CHECK(update_curr(&sys, &rq, MS + 2));
}

static void test_protection(void)
{
	struct cw_entity se = entity(1, 0, SLICE, 1024);

	begin(true);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	se.flags = CW_SE_ON_RQ;
	wait_entity(se);
	wait_entity(entity(2, 0, MS, 1024));
	leave(&se);
	set_next_entity(&sys, &rq, &se, 0);
	CHECK_EQ(rq.nr_waiting, 1);
	CHECK_EQ(pick(), 1); /* whichever is due before */
	set_feature(CW_FEAT_RUN_TO_PARITY, false);
	CHECK_EQ(pick(), 2);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	update_curr(&sys, &rq, 1);
	CHECK_EQ(pick(), 2); /* not eligible any more */
	cancel_protect_slice(&sys, &rq);
	CHECK(!protect_slice(&sys, &rq));
}

static void test_protect_slice(void)
{
	struct cw_entity se = entity(1, 0, SLICE, 1024), other = entity(2, 10, MS, 1024);

	begin(true);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	set_feature(CW_FEAT_PROTECT_SLICE, true);
	other.slice = MS;
	se.flags = CW_SE_ON_RQ;
	wait_entity(se);
	wait_entity(other);
	leave(&se);
	set_next_entity(&sys, &rq, &se, 0);
	CHECK_EQ(rq.curr.vprot, MS); /* the shorter request */
	CHECK(protect_slice(&sys, &rq));
	/* until there, and there the turn ends */
	CHECK(!update_curr(&sys, &rq, MS - 1));
	CHECK(update_curr(&sys, &rq, MS));
	/* a wakeup: no longer than one more request of the shortest */
	rq.curr.vprot = SLICE;
	update_protect_slice(&sys, &rq);
	CHECK_EQ(rq.curr.vprot, 2 * MS);
	/* counted from V, at half of what it is ahead */
	set_feature(CW_FEAT_WAKEUP_PROTECT, true);
	update_protect_slice(&sys, &rq);
	CHECK_EQ(rq.curr.vprot, MS + (MS + 10) / 2);
	cancel_protect_slice(&sys, &rq);
	CHECK_EQ(rq.curr.vprot, MS);
	/* with PREEMPT_SHORT, too, until it would not be eligible: at 10 + 1 */
	set_feature(CW_FEAT_PREEMPT_SHORT, true);
	rq.curr.vruntime = 0;
	set_protect_slice(&sys, &rq);
	CHECK_EQ(rq.curr.vprot, 11);
	/* equal requests: the whole one, without RUN_TO_PARITY that of one CPU */
	rq.min_slice = SLICE;
	rq.curr.deadline = SLICE;
	set_protect_slice(&sys, &rq);
	CHECK_EQ(rq.curr.vprot, SLICE);
	set_feature(CW_FEAT_RUN_TO_PARITY, false);
	set_feature(CW_FEAT_WAKEUP_PROTECT, false);
	rq.curr.slice = 4 * SLICE;
	rq.curr.deadline = 4 * SLICE;
	set_protect_slice(&sys, &rq);
	CHECK_EQ(rq.curr.vprot, SLICE);
}

static void test_pick(void)
{
	begin(true);
	CHECK_EQ(pick(), CW_NO_ENTITY);
	wait_entity(entity(1, 300, 310, 1024)); /* first due, but ahead of V, 200 */
	CHECK_EQ(pick(), 1);
	wait_entity(entity(2, 100, 400, 1024));
	CHECK_EQ(pick(), 2);
	wait_entity(entity(3, 500, 600, 1024)); /* V is 300 now */
	CHECK_EQ(pick(), 1);
	run_entity(entity(4, 300, 309, 1024));
	CHECK_EQ(pick(), 4);
	rq.curr.deadline = 310; /* a tie goes to the waiting entity */
	CHECK_EQ(pick(), 1);
	rq.curr.vruntime = 301; /* V is 300.25 */
	rq.curr.deadline = 0;
	CHECK_EQ(pick(), 1);
}

static void test_buddy(void)
{
	begin(true);
	wait_entity(entity(1, 0, 100, 1024));
	wait_entity(entity(2, 0, 200, 1024));
	wait_entity(entity(3, 1, 300, 1024));
	rq.next = 2;
	CHECK_EQ(pick(), 1);
	set_feature(CW_FEAT_PICK_BUDDY, true);
	CHECK_EQ(pick(), 2);
	rq.next = 3; /* not eligible */
	CHECK_EQ(pick(), 1);
	clear_buddies(&rq, 3);
	CHECK_EQ(rq.next, CW_NO_ENTITY);
}

static void test_yield(void)
{
	begin(true);
	run_entity(entity(1, 0, SLICE, 1024));
	yield_task_fair(&sys, &rq);
	CHECK_EQ(rq.curr.deadline, SLICE); /* for nobody */
	wait_entity(entity(2, 0, SLICE, 1024));
	yield_task_fair(&sys, &rq);
	CHECK_EQ(rq.curr.deadline, 2 * SLICE);
	CHECK_EQ(rq.curr.vruntime, 0);
	set_feature(CW_FEAT_YIELD_FORFEITS, true);
	rq.curr.deadline = SLICE;
	yield_task_fair(&sys, &rq);
	CHECK_EQ(rq.curr.vruntime, SLICE);
	CHECK_EQ(rq.curr.deadline, 2 * SLICE);
	/* it has had more than its share: nothing more to give */
	yield_task_fair(&sys, &rq);
	CHECK_EQ(rq.curr.vruntime, SLICE);
}

static void test_delayed(void)
{
	struct cw_entity se;

	begin(true);
	run_entity(entity(1, 600, SLICE, 1024));
	wait_entity(entity(2, 0, SLICE, 1024));
	/* without the feature it leaves, owing 300 */
	CHECK(dequeue_entity(&sys, &rq, &rq.curr, true, true));
	CHECK_EQ(rq.curr.vlag, -300);
	rq.curr.flags |= CW_SE_ON_RQ;
	set_feature(CW_FEAT_DELAY_DEQUEUE, true);
	/* not if it ends */
	CHECK(dequeue_entity(&sys, &rq, &rq.curr, true, false));
	rq.curr.flags |= CW_SE_ON_RQ;
	/* nor if it owes nothing */
	rq.curr.vruntime = 0;
	CHECK(dequeue_entity(&sys, &rq, &rq.curr, true, true));
	rq.curr.flags |= CW_SE_ON_RQ;
	rq.curr.vruntime = 600;
	CHECK(!dequeue_entity(&sys, &rq, &rq.curr, true, true));
	CHECK_EQ(rq.curr.flags, CW_SE_ON_RQ | CW_SE_DELAYED);
	put_prev_entity(&rq, &se);
	__enqueue_entity(&rq, &se);
	CHECK_EQ(rq.nr_waiting, 2);
	CHECK_EQ(rq.curr.weight, 0);
	/* the other one has run 1000 meanwhile: V is 800, it is owed 200 */
	rq.sum_w_vruntime += 1000 * 1024;
	set_feature(CW_FEAT_PLACE_LAG, true);
	CHECK(!requeue_delayed_entity(&sys, &rq, &se));
	CHECK_EQ(se.vlag, 200);
	CHECK_EQ(se.flags, CW_SE_ON_RQ);
	set_feature(CW_FEAT_DELAY_ZERO, true);
	se.flags |= CW_SE_DELAYED;
	CHECK(requeue_delayed_entity(&sys, &rq, &se));
	CHECK_EQ(se.vlag, 0);
	CHECK_EQ(se.vruntime, 1000); /* where V is without it */
	CHECK_EQ(rq.nr_waiting, 1);
	/* picked at last, it leaves with nothing owed to it */
	se.vruntime = 0;
	__enqueue_entity(&rq, &se);
	se.flags |= CW_SE_DELAYED;
	CHECK(dequeue_entity(&sys, &rq, &se, true, false));
	dequeue_waiting(&rq, &se);
	CHECK_EQ(se.vlag, 0);
	CHECK_EQ(se.flags, 0);
	/* one that still owes 200, as when nothing else is queued, keeps its debt */
	se.vruntime = 1400;
	__enqueue_entity(&rq, &se);
	se.flags |= CW_SE_DELAYED;
	CHECK(dequeue_entity(&sys, &rq, &se, true, false));
	dequeue_waiting(&rq, &se);
	CHECK_EQ(se.vlag, -200);
	se.vruntime = 0;
	/* on its way to another CPU it keeps what it is owed */
	se.flags |= CW_SE_DELAYED;
	__enqueue_entity(&rq, &se);
	CHECK(dequeue_entity(&sys, &rq, &se, false, false));
	CHECK_EQ(se.vlag, 500);
	CHECK_EQ(se.flags, CW_SE_DELAYED);
}

static void test_reweight(void)
{
	struct cw_entity se = entity(1, 600, 3000, 1024);

	begin(true);
	/* asleep: what it is owed in real time stays */
	se.vlag = 100;
	reweight_entity(&sys, &rq, &se, 2048);
	CHECK_EQ(se.vlag, 50);
	se = entity(1, 600, 3000, 1024);
	se.flags = CW_SE_ON_RQ;
	wait_entity(se);
	wait_entity(entity(2, 0, 3000, 1024));
	/* V is 300: 300 ahead becomes 150, a deadline in 2700 one in 1350 */
	reweight_entity(&sys, &rq, &se, 2048);
	CHECK_EQ(se.vruntime, 450);
	CHECK_EQ(se.deadline, 1650);
	CHECK_EQ(rq.sum_weight, 3072);
	CHECK_EQ(avg_vruntime(&rq), 300);
	/* on its way: a deadline that counts from its vruntime is turned, too */
	se = entity(1, 600, 2000, 1024);
	se.flags = CW_SE_REL_DEADLINE;
	reweight_entity(&sys, &rq, &se, 2048);
	CHECK_EQ(se.deadline, 2000);
	set_feature(CW_FEAT_REWEIGHT_DEADLINE, true);
	reweight_entity(&sys, &rq, &se, 1024);
	CHECK_EQ(se.deadline, 4000);
	CHECK_EQ(se.vruntime, 600);
}

/* Placed anew: its lag of -300 becomes -150, stretched since its own weight is two thirds of the queue's. */
static void test_reweight_places(void)
{
	struct cw_entity se = entity(1, 600, 3000, 1024);

	begin(true);
	set_feature(CW_FEAT_REWEIGHT_PLACES, true);
	set_feature(CW_FEAT_PLACE_LAG, true);
	set_feature(CW_FEAT_PLACE_REL_DEADLINE, true);
	se.flags = CW_SE_ON_RQ;
	wait_entity(se);
	wait_entity(entity(2, 0, 3000, 1024));
	reweight_entity(&sys, &rq, &se, 2048);
	CHECK_EQ(se.vruntime, 450); /* 0 + 150 * 3072 / 1024 */
	CHECK_EQ(se.deadline, 450 + 1200);
	CHECK_EQ(se.flags, CW_SE_ON_RQ);
	CHECK_EQ(avg_vruntime(&rq), 300);
	/* the running one counts in the mean that it is placed by, with its new weight: 1200 / 3 + 150 * 5120 / 3072 */
	leave(&se);
	run_entity(entity(1, 600, 3000, 1024));
	reweight_entity(&sys, &rq, &rq.curr, 2048);
	CHECK_EQ(rq.curr.vruntime, 400 + 250);
	CHECK_EQ(rq.curr.deadline, 650 + 1200);
	CHECK_EQ(rq.curr.vprot, -150);
}

/* What is left of the protection is turned as the deadline is, unless none is left. */
static void test_reweight_protected(void)
{
	for (int protects = 0; protects < 2; protects++) {
		begin(true);
		set_feature(CW_FEAT_PROTECT_SLICE, protects);
		run_entity(entity(1, 600, 3000, 1024));
		wait_entity(entity(2, 0, 3000, 1024));
		rq.curr.vprot = 2100;
		reweight_entity(&sys, &rq, &rq.curr, 2048);
		CHECK_EQ(rq.curr.vruntime, 450);
		CHECK_EQ(rq.curr.vprot, protects ? 1200 : 2100);
	}
	run_entity(entity(1, 600, 3000, 1024));
	rq.curr.vprot = 500; /* over, though it would not be after the change */
	reweight_entity(&sys, &rq, &rq.curr, 2048);
	CHECK_EQ(rq.curr.vruntime, 450);
	CHECK_EQ(rq.curr.vprot, 500);
}

/* Whether the turn of one that is leaving the queue is over depends on how many are left, unless that is one. */
static void test_leaving_turn(void)
{
	begin(true);
	for (s32 others = 0; others < 3; others++) {
		run_entity(entity(9, 0, SLICE, 1024));
		rq.curr.flags = 0;
		CHECK_EQ(update_curr(&sys, &rq, SLICE), others != 1);
		wait_entity(entity(others + 1, 0, SLICE, 1024));
	}
}

int main(void)
{
	test_virtual_time();
	test_mean();
	test_lag();
	test_place();
	test_moved();
	test_charge();
	test_turn_with_preempt_short();
	test_protection();
	test_protect_slice();
	test_pick();
	test_buddy();
	test_yield();
	test_delayed();
	test_reweight();
	test_reweight_places();
	test_reweight_protected();
	test_leaving_turn();
	return test_report("queue_eevdf");
}
