/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy's EEVDF queue (policy/queue/), as a sched_ext scheduler needs it. The
 * tasks themselves wait in one dispatch queue for each CPU, ordered by virtual
 * deadline.
 *
 * A CPU that takes a task off another queue changes the sums of the waiting tasks
 * without a lock. Virtual time is therefore counted from an origin that moves to V
 * only while nothing waits; between two such moments, the sums have room for 19 hours
 * of virtual time.
 *
 * Each CPU has its own virtual time, and those of two CPUs may be minutes apart. A
 * task's place in virtual time is therefore changed only under the lock of the
 * runqueue that it is on. A CPU that pulls a task only takes it off the sums; the CPU
 * that runs the task places it.
 */
#ifndef CW_QUEUE_BPF_H
#define CW_QUEUE_BPF_H

#include "queue/preempt.h"

/* A task's place in virtual time. */
struct live_entity {
	struct cw_entity se;
	s64 key; /* vruntime minus the origin, as counted in the sums */
	u64 joined; /* 1 + the CPU in whose sums it is, or 0; the upper 32 bits count how often it has joined */
	s32 cpu; /* the CPU in whose virtual time it is, or -1: it has to be placed again */
	s32 slept_on; /* the CPU in whose virtual time it went to sleep and still is, or -1 */
};

/* One CPU's queue. */
struct live_queue {
	struct cw_fair_rq fair;
	u32 resched; /* the next tick is to take the CPU from the running task */
	u32 rcu_ticks; /* the number of ticks for which the running task has kept the CPU as an RCU reader */
} __attribute__((aligned(128)));

struct live_queue live_queue[CW_MAX_CPUS];

static inline struct live_queue *queue_of(s32 cpu)
{
	return &live_queue[cpu & CW_CPU_MASK];
}

static inline struct cw_fair_rq *fair_rq(s32 cpu)
{
	return &queue_of(cpu)->fair;
}

/* Does V reach this vruntime within `ns` of real time? V advances by 1024 / weight of real time. */
static inline bool is_due_within(const struct cw_fair_rq *rq, s64 vruntime, s64 ns)
{
	s64 weight, sum = queue_sum(rq, &weight);

	return sum + ns * CW_NICE_0_WEIGHT >= (vruntime - rq->zero_vruntime) * weight;
}

/*
 * Does the lag of a task that waits for `cpu` allow it to run there? A task that was moved
 * there and is still in another virtual time may run, because that is why it was moved.
 */
static inline bool may_run(const struct live_entity *le, s32 cpu)
{
	return le->cpu != cpu || entity_eligible(fair_rq(cpu), &le->se);
}

/*
 * How long a task may have to wait until V reaches its deadline, ns. EEVDF has no such limit.
 * Among sixty tasks of nice 0, it gives a SCHED_IDLE task, whose request takes a second of
 * virtual time, one turn a minute. Among five hundred, a task that spun on a lock for half a
 * second pays for that for five minutes. sched_ext's watchdog ends the scheduler if a task
 * waits for 30 s.
 */
#define EEVDF_WAIT_NS 5000000000LL

/* The latest deadline that a task may have in the queue. */
static inline s64 latest_deadline(const struct cw_fair_rq *rq)
{
	s64 weight = queue_weight(rq);

	return avg_vruntime(rq) + div_floor(EEVDF_WAIT_NS * CW_NICE_0_WEIGHT, weight > 0 ? weight : 1);
}

/* Limits the lag and deadline of a task that is about to wait for `cpu`, so that it does not wait too long. */
static inline void limit_wait(struct cw_entity *se, s32 cpu)
{
	const struct cw_fair_rq *rq = fair_rq(cpu);
	s64 latest;

	if (is_due_within(rq, se->deadline, EEVDF_WAIT_NS))
		return;
	latest = latest_deadline(rq);
	if (se->vruntime > latest)
		se->vruntime = latest;
	if (se->deadline > latest)
		se->deadline = latest;
}

/* Adds a waiting task, which is in no sums, to the sums of `cpu`. */
static inline void queue_join(struct live_entity *le, s32 cpu)
{
	struct cw_fair_rq *rq = fair_rq(cpu);

	le->key = le->se.vruntime - rq->zero_vruntime;
	__enqueue_entity(rq, &le->se);
	/* from here on, other CPUs may subtract it */
	__sync_lock_test_and_set(&le->joined, ((le->joined >> 32) + 1) << 32 | (u32)(cpu + 1));
}

/* The CPU in whose sums the task is, or -1. */
static inline s32 queue_cpu(const struct live_entity *le)
{
	return (s32)(u32)le->joined - 1;
}

/* Subtracts from the sums exactly what the task added; the first caller does it. */
static inline void queue_leave(struct live_entity *le)
{
	u64 joined = __sync_fetch_and_add(&le->joined, 0);
	u32 weight = le->se.weight;
	s64 key = le->key;

	if (!(u32)joined ||
	    __sync_val_compare_and_swap(&le->joined, joined, joined >> 32 << 32) != joined)
		return;
	__dequeue_entity(fair_rq((s32)(u32)joined - 1), key, weight);
}

/*
 * The lag with which a task returns. In the kernel, a sleeper with negative lag stays in the
 * queue until V has caught up (DELAY_DEQUEUE). Here it leaves, and returns with the lag that
 * it would have by now if its weight were still in the sums.
 */
static inline s64 returning_lag(const struct live_entity *le)
{
	const struct cw_fair_rq *rq = fair_rq(le->slept_on);
	const struct cw_entity *se = &le->se;
	s64 total = queue_weight(rq), behind;

	if (se->vlag >= 0 || le->slept_on < 0 || !sched_feat(&sys, CW_FEAT_DELAY_DEQUEUE))
		return se->vlag;
	behind = avg_vruntime(rq) - se->vruntime;
	if (behind >= 0)
		return 0;
	behind = div_floor(behind * total, total + se->weight);
	return behind < se->vlag ? se->vlag : behind;
}

/* Places a task of `weight` that comes to the queue of `cpu`; `initial`: it is new. */
static inline void place_entity(struct live_entity *le, s32 cpu, u32 weight, u32 flags, bool initial)
{
	struct cw_fair_rq *rq = fair_rq(cpu);
	struct cw_entity *se = &le->se;
	s64 lag = returning_lag(le), own = se->vlag;

	if (!rq->nr_waiting)
		update_zero_vruntime(rq);
	le->cpu = cpu;
	se->weight = weight;
	se->vlag = lag;
	enqueue_entity(&sys, rq, se, initial ? CW_ENQUEUE_INITIAL : 0);
	se->flags = (se->flags & ~(u32)(CW_SE_IDLE | CW_SE_BATCH)) | flags;
	se->vlag = own;
}

/* The deadline by which a task that is moved to `cpu` waits there. */
static inline u64 moved_deadline(s32 cpu, u32 weight)
{
	const struct cw_fair_rq *rq = fair_rq(cpu);
	struct cw_entity se = { .weight = weight };
	s64 deadline = avg_vruntime(rq) + (s64)calc_delta_fair(&sys, rq, base_slice(&sys), &se);
	s64 latest = latest_deadline(rq);

	return (u64)(deadline < latest ? deadline : latest);
}

/* The running task of `cpu` is `le` from now on. */
static inline void set_next_task(struct live_entity *le, s32 cpu, u64 now)
{
	struct live_queue *q = queue_of(cpu);

	set_next_entity(&sys, &q->fair, &le->se, now);
	q->resched = 0;
	q->rcu_ticks = 0;
}

/* `cpu` switches away from `le`, the running task; saves its lag if it leaves the queue. */
static inline void put_prev_task(struct live_entity *le, s32 cpu, bool leaves, u64 now)
{
	struct cw_fair_rq *rq = fair_rq(cpu);

	charge_curr(&sys, rq, now);
	if (leaves)
		update_entity_lag(&sys, rq, &rq->curr);
	put_prev_entity(rq, &le->se);
	/* it may come back, in the same virtual time, before another task is placed */
	if (!rq->nr_waiting)
		rq->zero_vruntime = le->se.vruntime;
}

/* What the task that has just been queued on `cpu` does to the running one. */
enum live_preempt {
	LIVE_PREEMPT_NO,
	LIVE_PREEMPT_YES,
	LIVE_PREEMPT_IF_BEST, /* if it is also the best waiting task, which the caller has to check */
};

static inline enum live_preempt check_preempt(const struct live_entity *le, s32 cpu, u32 wake_flags,
					      u64 now)
{
	struct cw_fair_rq *rq = fair_rq(cpu);
	const struct cw_entity *se = &le->se;
	bool curr_eligible;
	u32 reason;

	if (!curr_competes(rq))
		return LIVE_PREEMPT_NO;
	if (sched_feat(&sys, CW_FEAT_WAKEUP_PICK))
		reason = preempt_before_wakeup_pick(&sys, rq, se, wake_flags, false, now);
	else
		reason = preempt_before_pick(&sys, rq, se, wake_flags, false);
	if (reason != CW_QUEUE_NONE)
		return preempts(reason) ? LIVE_PREEMPT_YES : LIVE_PREEMPT_NO;
	if (pick_protected(&sys, rq, true))
		return LIVE_PREEMPT_NO;
	curr_eligible = entity_eligible(rq, &rq->curr);
	if (pick_step(rq, curr_eligible, se->vruntime, se->deadline) != CW_PICK_TAKE)
		return LIVE_PREEMPT_NO;
	return LIVE_PREEMPT_IF_BEST;
}

/* The task that has just been queued on `cpu` does not preempt: sets how long the running task is protected. */
static inline void preempt_refused(s32 cpu)
{
	if (sched_feat(&sys, CW_FEAT_WAKEUP_PICK) && sched_feat(&sys, CW_FEAT_RUN_TO_PARITY) &&
	    curr_competes(fair_rq(cpu)))
		update_protect_slice(&sys, fair_rq(cpu));
}

#endif /* CW_QUEUE_BPF_H */
