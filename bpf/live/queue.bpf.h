/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Earliest eligible virtual deadline first, as far as it is arithmetic: virtual
 * time, lag, eligibility. The tasks themselves wait in one dispatch queue for
 * each CPU, in order of their virtual deadlines.
 *
 * Each task has a virtual time, vruntime, that runs at 1024 / weight of real
 * time while it runs. With V the weighted mean over the CPU's tasks, a task's
 * lag is V - vruntime, and it is eligible while its lag is not negative. Of the
 * eligible ones the task with the earliest deadline runs, the deadline being the
 * vruntime at which its current request, a slice, is served.
 * (Stoica and Abdel-Wahab 1995; kernel/sched/fair.c, 6.12.)
 *
 * Virtual time is counted from `base`, which moves to V only while nothing
 * waits, so that other CPUs may take off waiting tasks without a lock. The sums
 * have room for 19 hours of virtual time without such a moment.
 *
 * CPUs have virtual times of their own, which may be minutes apart. So a task's
 * place in them is changed only under the lock of the runqueue that it is on. Who
 * pulls a task takes it off the sums and no more: the CPU that runs it places it.
 */
#ifndef CW_QUEUE_BPF_H
#define CW_QUEUE_BPF_H

#include "types.h"

/* A task's place in virtual time. */
struct eevdf_entity {
	s64 vruntime;
	s64 deadline;
	s64 vlag; /* lag when it last left a queue, in virtual ns */
	s64 key; /* vruntime - base as it is in the sums */
	u64 joined; /* 1 + the CPU in whose sums it is, or 0; above these 32 bits, how often it has joined */
	u32 weight; /* with which it is in the sums of its queue */
	s32 cpu; /* in whose virtual time vruntime and deadline are, or -1: it is to be placed anew */
	s32 slept_on; /* in whose vruntime still is since it went to sleep, or -1 */
};

/* One CPU's queue. The running task is not in the sums. */
struct eevdf_queue {
	s64 base;
	s64 sum; /* of (vruntime - base) * weight over waiting tasks */
	s64 weight; /* sum over waiting tasks */
	/* the running task; without one curr_weight is 0 */
	s64 curr_vruntime;
	s64 curr_deadline;
	s64 picked_deadline; /* as it was when the task was picked: RUN_TO_PARITY */
	u64 curr_start; /* until when it has been charged, ns */
	u32 curr_weight;
	u32 curr_idle; /* it is a SCHED_IDLE task */
	u32 resched; /* its next tick is to take the CPU from it */
	u32 rcu_ticks; /* for which it has kept the CPU as a reader of RCU */
} __attribute__((aligned(128)));

struct eevdf_queue eevdf_queue[CW_MAX_CPUS];

/* 1 + log2(min(CPUs, 8)): what base_slice_ns is scaled by (kernel/sched/fair.c: get_update_sysctl_factor). */
const volatile u32 slice_factor = 1;

static inline struct eevdf_queue *queue_of(s32 cpu)
{
	return &eevdf_queue[cpu & CW_CPU_MASK];
}

/* The size of a request, ns. */
static inline u64 eevdf_slice(void)
{
	return (u64)tunable(&sys, CW_TUNE_base_slice_ns) * slice_factor;
}

/* Real time to virtual time. */
static inline s64 calc_delta_fair(u64 delta, u32 weight)
{
	if (weight == CW_NICE_0_WEIGHT || !weight)
		return (s64)delta;
	return (s64)(delta * CW_NICE_0_WEIGHT / weight);
}

/* Virtual time to real time. */
static inline u64 calc_delta_real(s64 delta, u32 weight)
{
	return delta > 0 ? (u64)delta * weight / CW_NICE_0_WEIGHT : 0;
}

/* sum / weight, rounded down; weight > 0. BPF divides without signs. */
static inline s64 div_floor(s64 sum, s64 weight)
{
	if (sum >= 0)
		return (s64)((u64)sum / (u64)weight);
	return -(s64)(((u64)-sum + (u64)weight - 1) / (u64)weight);
}

/* V. */
static inline s64 avg_vruntime(const struct eevdf_queue *q)
{
	s64 sum = q->sum + (q->curr_vruntime - q->base) * q->curr_weight;
	s64 weight = q->weight + q->curr_weight;

	return weight > 0 ? q->base + div_floor(sum, weight) : q->base;
}

/* Does V reach this vruntime within so much real time? It advances by 1024 / weight of that. */
static inline bool is_due_within(const struct eevdf_queue *q, s64 vruntime, s64 ns)
{
	s64 sum = q->sum + (q->curr_vruntime - q->base) * q->curr_weight;

	return sum + ns * CW_NICE_0_WEIGHT >= (vruntime - q->base) * (q->weight + q->curr_weight);
}

/* Is the lag of a task of the queue at this vruntime not negative? */
static inline bool entity_eligible(const struct eevdf_queue *q, s64 vruntime)
{
	return is_due_within(q, vruntime, 0);
}

/*
 * May a task that waits for `cpu` run there by its lag? One that was moved there
 * and is in another virtual time may: for that it was moved.
 */
static inline bool may_run(const struct eevdf_entity *se, s32 cpu)
{
	return se->cpu != cpu || entity_eligible(queue_of(cpu), se->vruntime);
}

/*
 * For how long a task may have to wait until V is at its deadline, ns. EEVDF knows no such
 * limit: among sixty tasks of nice 0 it owes one of SCHED_IDLE, of whose virtual time
 * a request takes a second, a turn each minute, and among five hundred one that spun
 * on a lock for half a second pays for that for five minutes. sched_ext's watchdog
 * ends the scheduler if a task waits for 30 s.
 */
#define EEVDF_WAIT_NS 5000000000LL

/* The deadline that a task may have at the latest among those of the queue. */
static inline s64 latest_deadline(const struct eevdf_queue *q)
{
	s64 weight = q->weight + q->curr_weight;

	return avg_vruntime(q) + div_floor(EEVDF_WAIT_NS * CW_NICE_0_WEIGHT, weight > 0 ? weight : 1);
}

/* Forgives a task that is about to wait for `cpu` what it would have to wait for too long for. */
static inline void limit_wait(struct eevdf_entity *se, s32 cpu)
{
	struct eevdf_queue *q = queue_of(cpu);
	s64 latest;

	if (is_due_within(q, se->deadline, EEVDF_WAIT_NS))
		return;
	latest = latest_deadline(q);
	if (se->vruntime > latest)
		se->vruntime = latest;
	if (se->deadline > latest)
		se->deadline = latest;
}

/*
 * Charges the running task for its time until `now`. True if its request is
 * served; then it has a new one.
 */
static inline bool update_curr(struct eevdf_queue *q, u64 now)
{
	s64 delta = (s64)(now - q->curr_start);

	if (!q->curr_weight || delta <= 0)
		return false;
	q->curr_start = now;
	q->curr_vruntime += calc_delta_fair((u64)delta, q->curr_weight);
	if (q->curr_vruntime < q->curr_deadline)
		return false;
	q->curr_deadline = q->curr_vruntime + calc_delta_fair(eevdf_slice(), q->curr_weight);
	return true;
}

/* The running task yields: it forfeits what is left of its request, unless it has had more than its share. */
static inline void forfeit_request(struct eevdf_queue *q, u64 now)
{
	update_curr(q, now);
	if (!entity_eligible(q, q->curr_vruntime))
		return;
	q->curr_vruntime = q->curr_deadline;
	q->curr_deadline += calc_delta_fair(eevdf_slice(), q->curr_weight);
}

/* Adds a waiting task, which is in no sums, to those of `cpu`. */
static inline void queue_join(struct eevdf_entity *se, s32 cpu)
{
	struct eevdf_queue *q = queue_of(cpu);

	se->key = se->vruntime - q->base;
	__sync_fetch_and_add(&q->sum, se->key * se->weight);
	__sync_fetch_and_add(&q->weight, se->weight);
	/* from here on others may take it off */
	__sync_lock_test_and_set(&se->joined, ((se->joined >> 32) + 1) << 32 | (u32)(cpu + 1));
}

/* The CPU in whose sums the task is, or -1. */
static inline s32 queue_cpu(const struct eevdf_entity *se)
{
	return (s32)(u32)se->joined - 1;
}

/* Takes a task off the sums that it is in, by exactly what it added: whoever comes first does it. */
static inline void queue_leave(struct eevdf_entity *se)
{
	u64 joined = __sync_fetch_and_add(&se->joined, 0);
	s64 key = se->key, weight = se->weight;
	struct eevdf_queue *q;

	if (!(u32)joined ||
	    __sync_val_compare_and_swap(&se->joined, joined, joined >> 32 << 32) != joined)
		return;
	q = queue_of((s32)(u32)joined - 1);
	__sync_fetch_and_add(&q->sum, -(key * weight));
	__sync_fetch_and_add(&q->weight, -weight);
}

/*
 * The lag that a task comes back with. A sleeper that owes time stays in the queue until
 * V has caught up (DELAY_DEQUEUE): here it leaves, and owes what it would owe by now
 * if its weight were still in the sums.
 */
static inline s64 entity_lag(const struct eevdf_entity *se)
{
	const struct eevdf_queue *q = queue_of(se->slept_on);
	s64 total = q->weight + q->curr_weight, behind;

	if (se->vlag >= 0 || se->slept_on < 0 || !sched_feat(&sys, CW_FEAT_DELAY_DEQUEUE))
		return se->vlag;
	behind = avg_vruntime(q) - se->vruntime;
	if (behind >= 0)
		return 0;
	behind = div_floor(behind * total, total + se->weight);
	return behind < se->vlag ? se->vlag : behind;
}

/*
 * Places a task of `weight` that comes to the queue of `cpu`: at V less the lag
 * that it left its last queue with. Its own weight will pull V along, so the lag
 * is scaled up to be what it was once the task is in.
 */
static inline void place_entity(struct eevdf_entity *se, s32 cpu, u32 weight, u64 slice)
{
	struct eevdf_queue *q = queue_of(cpu);
	s64 total = q->weight + q->curr_weight, lag = 0;

	if (!q->weight)
		q->base = avg_vruntime(q);
	if (sched_feat(&sys, CW_FEAT_PLACE_LAG) && total > 0 && se->vlag)
		lag = div_floor(entity_lag(se) * (total + weight), total);
	se->cpu = cpu;
	se->weight = weight;
	se->vruntime = avg_vruntime(q) - lag;
	se->deadline = se->vruntime + calc_delta_fair(slice, weight);
}

/* Where a task that is moved to `cpu` waits among the deadlines there. */
static inline u64 moved_deadline(s32 cpu, u32 weight)
{
	const struct eevdf_queue *q = queue_of(cpu);
	s64 deadline = avg_vruntime(q) + calc_delta_fair(eevdf_slice(), weight);
	s64 latest = latest_deadline(q);

	return (u64)(deadline < latest ? deadline : latest);
}

/* Notes the lag of a task of `cpu`, at most two slices or a tick either way. */
static inline void update_entity_lag(struct eevdf_entity *se, s32 cpu)
{
	u64 slice = 2 * eevdf_slice();
	s64 limit = calc_delta_fair(slice > sys.tick_ns ? slice : sys.tick_ns, se->weight);
	s64 lag = avg_vruntime(queue_of(cpu)) - se->vruntime;

	se->vlag = lag > limit ? limit : lag < -limit ? -limit : lag;
}

/* The running task of `cpu` is `se` from now on. */
static inline void set_next_entity(struct eevdf_entity *se, s32 cpu, bool idle, u64 now)
{
	struct eevdf_queue *q = queue_of(cpu);

	q->curr_vruntime = se->vruntime;
	q->curr_deadline = se->deadline;
	q->picked_deadline = se->deadline;
	q->curr_start = now;
	q->curr_weight = se->weight;
	q->curr_idle = idle;
	q->resched = 0;
	q->rcu_ticks = 0;
}

/* `cpu` switches away from `se`, the running task; notes its lag if that leaves. */
static inline void put_prev_entity(struct eevdf_entity *se, s32 cpu, bool leaves, u64 now)
{
	struct eevdf_queue *q = queue_of(cpu);

	update_curr(q, now);
	se->vruntime = q->curr_vruntime;
	se->deadline = q->curr_deadline;
	if (leaves)
		update_entity_lag(se, cpu);
	/* it may come back before another task is placed: in the same virtual time */
	if (!q->weight)
		q->base = se->vruntime;
	q->curr_weight = 0;
}

/* Does the running task keep the CPU whatever waits, because its request is not served yet? */
static inline bool protect_curr(const struct eevdf_queue *q)
{
	return q->curr_weight && sched_feat(&sys, CW_FEAT_RUN_TO_PARITY) &&
	       q->picked_deadline == q->curr_deadline && entity_eligible(q, q->curr_vruntime);
}

/*
 * May a task that has just been queued on `cpu` run in place of the running one?
 * Only if it is also the best of those that wait, which the caller has to see.
 */
static inline bool check_preempt(const struct eevdf_entity *se, s32 cpu, bool idle)
{
	struct eevdf_queue *q = queue_of(cpu);

	if (!q->curr_weight || !sched_feat(&sys, CW_FEAT_WAKEUP_PREEMPTION))
		return false;
	if (q->curr_idle != idle)
		return q->curr_idle;
	if (!entity_eligible(q, se->vruntime) || protect_curr(q))
		return false;
	return !entity_eligible(q, q->curr_vruntime) || se->deadline < q->curr_deadline;
}

#endif /* CW_QUEUE_BPF_H */
