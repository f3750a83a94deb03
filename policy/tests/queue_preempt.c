/* SPDX-License-Identifier: GPL-2.0-only */
/* Does a woken task preempt the running one, and what becomes of buddies and protection? */
#include "tests/queue_test.h"

#define PREEMPT(name) CW_QUEUE_PREEMPT_##name

static struct cw_entity with(struct cw_entity se, u32 flags)
{
	se.flags |= flags;
	return se;
}

static struct cw_entity asking(struct cw_entity se, u64 slice)
{
	se.slice = slice;
	return se;
}

/* `se` comes to the queue of a running task at 0 that is due at 3 ms. */
static u32 comes(struct cw_entity se, u32 wake_flags)
{
	rq.nr_waiting = 0;
	rq.sum_w_vruntime = rq.sum_weight = 0;
	run_entity(entity(1, 0, SLICE, 1024));
	wait_entity(se);
	return preempt(se, wake_flags, false);
}

static void test_policies(void)
{
	struct cw_entity se = entity(2, 0, MS, 1024);

	for (int eevdf = 0; eevdf < 2; eevdf++) {
		begin(eevdf);
		CHECK_EQ(comes(with(se, CW_SE_IDLE), 0), PREEMPT(IDLE));
		CHECK_EQ(comes(with(se, CW_SE_BATCH), 0), PREEMPT(BATCH));
		rq.curr.flags |= CW_SE_IDLE;
		CHECK_EQ(preempt(se, 0, false), PREEMPT(IDLE_CURR));
		CHECK_EQ(preempt(with(se, CW_SE_BATCH), 0, false), PREEMPT(IDLE_CURR));
		CHECK_EQ(preempt(with(se, CW_SE_IDLE), 0, false), PREEMPT(IDLE));
		CHECK_EQ(preempt(se, 0, true), PREEMPT(PENDING));
		rq.curr.flags &= ~(u32)CW_SE_IDLE;
		set_feature(CW_FEAT_WAKEUP_PREEMPTION, false);
		CHECK_EQ(preempt(se, 0, false), PREEMPT(OFF));
	}
}

/* Two idle groups compete like any others. */
static void test_idle_groups(void)
{
	struct cw_entity se = with(entity(2, -2 * MS, MS, 1024), CW_SE_IDLE | CW_SE_GROUP);

	for (int eevdf = 0; eevdf < 2; eevdf++) {
		begin(eevdf);
		run_entity(with(entity(1, 0, SLICE, 1024), CW_SE_IDLE | CW_SE_GROUP));
		wait_entity(se);
		CHECK_EQ(preempt(se, 0, false), eevdf ? PREEMPT(PICKED) : PREEMPT(BEHIND));
		CHECK_EQ(preempt(with(se, CW_SE_BATCH), 0, false), PREEMPT(BATCH));
		rq.curr.flags &= ~(u32)CW_SE_IDLE;
		CHECK_EQ(preempt(se, 0, false), PREEMPT(IDLE));
	}
}

static void test_cfs(void)
{
	begin(false);
	CHECK_EQ(comes(entity(2, -MS, 0, 1024), 0), PREEMPT(CLOSE));
	CHECK_EQ(rq.next, CW_NO_ENTITY);
	CHECK_EQ(comes(entity(2, -MS - 1, 0, 1024), 0), PREEMPT(BEHIND));
	CHECK_EQ(rq.next, 2);
	CHECK_EQ(rq.last, CW_NO_ENTITY);
	/* on a crowded CPU */
	set_feature(CW_FEAT_LAST_BUDDY, true);
	sys.tunable[CW_TUNE_latency_ns] = 2 * MS;
	CHECK_EQ(comes(entity(2, -MS - 1, 0, 1024), 0), PREEMPT(BEHIND));
	CHECK_EQ(rq.last, 1);
	/* a task only */
	rq.last = CW_NO_ENTITY;
	rq.curr.flags |= CW_SE_GROUP;
	CHECK_EQ(preempt(entity(2, -MS - 1, 0, 1024), 0, false), PREEMPT(BEHIND));
	CHECK_EQ(rq.last, CW_NO_ENTITY);
	rq.next = CW_NO_ENTITY;
	comes(entity(3, 0, 0, 1024), 0);
	CHECK_EQ(rq.next, CW_NO_ENTITY);
	set_feature(CW_FEAT_NEXT_BUDDY, true);
	comes(entity(3, 0, 0, 1024), WF_FORK);
	CHECK_EQ(rq.next, CW_NO_ENTITY);
	/* nor one of the idle class */
	CHECK_EQ(comes(with(entity(3, 0, 0, 1024), CW_SE_IDLE), 0), PREEMPT(IDLE));
	CHECK_EQ(rq.next, CW_NO_ENTITY);
	comes(with(entity(3, 0, 0, 1024), CW_SE_BATCH), 0);
	CHECK_EQ(rq.next, 3);
	rq.next = CW_NO_ENTITY;
	CHECK_EQ(comes(entity(3, 0, 0, 1024), 0), PREEMPT(CLOSE));
	CHECK_EQ(rq.next, 3);
}

static void test_eevdf(void)
{
	begin(true);
	CHECK_EQ(comes(entity(2, 0, MS, 1024), 0), PREEMPT(PICKED));
	CHECK_EQ(comes(entity(2, 0, MS, 1024), WF_FORK), PREEMPT(PICKED));
	CHECK_EQ(comes(entity(2, 0, SLICE, 1024), 0), PREEMPT(PICKED)); /* a tie */
	CHECK_EQ(comes(entity(2, 0, SLICE + 1, 1024), 0), PREEMPT(NOT_PICKED));
	CHECK_EQ(comes(entity(2, 1, MS, 1024), 0), PREEMPT(NOT_PICKED)); /* not eligible */
	CHECK_EQ(comes(entity(2, -2, 9 * MS, 1024), 0), PREEMPT(PICKED)); /* the running one is not */
	/* another one that waits is due before */
	comes(entity(2, 0, MS, 1024), 0);
	wait_entity(entity(3, 0, 2 * MS, 1024));
	CHECK_EQ(preempt(entity(3, 0, 2 * MS, 1024), 0, false), PREEMPT(NOT_PICKED));
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	CHECK_EQ(comes(entity(2, 0, MS, 1024), 0), PREEMPT(NOT_PICKED));
	set_feature(CW_FEAT_NEXT_BUDDY, true);
	comes(with(entity(2, 0, MS, 1024), CW_SE_DELAYED), 0);
	CHECK_EQ(rq.next, CW_NO_ENTITY);
	comes(entity(2, 0, MS, 1024), 0);
	CHECK_EQ(rq.next, 2);
}

static void test_short(void)
{
	struct cw_entity se = asking(entity(2, 0, MS, 1024), MS);

	begin(true);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	CHECK_EQ(comes(se, 0), PREEMPT(NOT_PICKED));
	set_feature(CW_FEAT_PREEMPT_SHORT, true);
	CHECK_EQ(comes(se, 0), PREEMPT(PICKED));
	CHECK(!protect_slice(&sys, &rq));
	CHECK_EQ(comes(asking(se, SLICE), 0), PREEMPT(NOT_PICKED));
	CHECK(protect_slice(&sys, &rq));
	/* it is not eligible, or is due later: the protection stays */
	CHECK_EQ(comes(asking(entity(2, 1, MS, 1024), MS), 0), PREEMPT(NOT_PICKED));
	CHECK_EQ(comes(asking(entity(2, 0, 4 * MS, 1024), MS), 0), PREEMPT(NOT_PICKED));
	CHECK(protect_slice(&sys, &rq));
	/* since 6.17 */
	set_feature(CW_FEAT_PROTECT_SLICE, true);
	CHECK_EQ(comes(se, 0), PREEMPT(PICKED));
	CHECK_EQ(rq.curr.vprot, 0);
	CHECK_EQ(comes(asking(entity(2, 1, MS, 1024), MS), 0), PREEMPT(NOT_PICKED));
	CHECK_EQ(rq.curr.vprot, MS); /* no longer than the shorter request */
	/* one that asks for as much leaves it alone */
	comes(asking(se, SLICE), 0);
	rq.curr.vprot = 9 * MS;
	CHECK_EQ(preempt(asking(entity(2, 1, MS, 1024), SLICE), 0, false), PREEMPT(NOT_PICKED));
	CHECK_EQ(rq.curr.vprot, 9 * MS);
}

static void test_wakeup_pick(void)
{
	struct cw_entity se = asking(entity(2, 0, MS, 1024), MS);

	begin(true);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	set_feature(CW_FEAT_PROTECT_SLICE, true);
	set_feature(CW_FEAT_WAKEUP_PICK, true);
	/* neither a new task nor a sleeper whose dequeue was delayed preempts, nor ends the protection */
	CHECK_EQ(comes(entity(2, -MS, MS, 1024), WF_FORK), PREEMPT(FORK));
	CHECK_EQ(comes(with(se, CW_SE_DELAYED), 0), PREEMPT(DELAYED));
	CHECK_EQ(rq.curr.vprot, SLICE);
	/* one that is not picked ends it after one more request */
	rq.curr.vprot = 9 * MS;
	CHECK_EQ(comes(entity(2, 0, MS, 1024), 0), PREEMPT(NOT_PICKED));
	CHECK_EQ(rq.curr.vprot, SLICE);
	/* a shorter one at once if it is picked; not if another one is, nor with the switch pending */
	set_feature(CW_FEAT_PREEMPT_SHORT, true);
	CHECK_EQ(comes(se, WF_FORK), PREEMPT(PICKED));
	CHECK_EQ(rq.curr.vprot, 0);
	CHECK_EQ(rq.next, CW_NO_ENTITY);
	comes(entity(3, 0, MS / 2, 1024), 0);
	wait_entity(se);
	CHECK_EQ(preempt(se, 0, false), PREEMPT(NOT_PICKED));
	CHECK_EQ(preempt(se, 0, true), PREEMPT(PENDING));
}

static void test_wakeup_protect(void)
{
	struct cw_entity se = asking(entity(2, 0, MS, 1024), MS);

	begin(true);
	set_feature(CW_FEAT_RUN_TO_PARITY, true);
	set_feature(CW_FEAT_PROTECT_SLICE, true);
	set_feature(CW_FEAT_WAKEUP_PICK, true);
	set_feature(CW_FEAT_WAKEUP_PROTECT, true);
	/* a new task does not preempt, but ends the protection at V and a request */
	CHECK_EQ(comes(entity(2, -MS, MS, 1024), WF_FORK), PREEMPT(FORK));
	CHECK_EQ(rq.curr.vprot, -MS / 2 + SLICE);
	CHECK_EQ(comes(with(se, CW_SE_DELAYED), 0), PREEMPT(DELAYED));
	CHECK_EQ(comes(entity(2, 0, MS, 1024), 0), PREEMPT(NOT_PICKED));
	CHECK_EQ(comes(entity(2, -2, MS, 1024), 0), PREEMPT(PICKED)); /* the running one is not eligible */
	CHECK_EQ(rq.curr.vprot, 0);
	/* shorter, and eligible: even if another one is picked, and with the switch pending */
	set_feature(CW_FEAT_PREEMPT_SHORT, true);
	CHECK_EQ(comes(se, WF_FORK), PREEMPT(PICKED));
	CHECK_EQ(rq.next, 2);
	rq.next = CW_NO_ENTITY;
	comes(entity(3, 0, MS / 2, 1024), 0);
	wait_entity(se);
	CHECK_EQ(preempt(se, 0, true), PREEMPT(SHORT));
	set_feature(CW_FEAT_PREEMPT_SHORT, false);
	CHECK_EQ(preempt(se, 0, true), PREEMPT(PENDING));
	/* the buddy is the one that is due first */
	set_feature(CW_FEAT_NEXT_BUDDY, true);
	rq.next = CW_NO_ENTITY;
	comes(entity(2, 0, 2 * MS, 1024), 0);
	CHECK_EQ(rq.next, 2);
	comes(entity(3, 0, 4 * MS, 1024), 0);
	CHECK_EQ(rq.next, 2);
	comes(entity(4, 0, MS, 1024), 0);
	CHECK_EQ(rq.next, 4);
	/* its waker is about to sleep: only if that has run for the time in which caches go cold */
	sys.tunable[CW_TUNE_migration_cost_ns] = 1;
	CHECK_EQ(comes(entity(5, 0, MS / 2, 1024), WF_SYNC), PREEMPT(NO_SYNC));
	sys.tunable[CW_TUNE_migration_cost_ns] = 0;
	CHECK_EQ(comes(entity(6, 0, MS / 4, 1024), WF_SYNC), PREEMPT(SYNC));
}

int main(void)
{
	test_policies();
	test_idle_groups();
	test_cfs();
	test_eevdf();
	test_short();
	test_wakeup_pick();
	test_wakeup_protect();
	return test_report("queue_preempt");
}
