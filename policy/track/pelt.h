/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Per-entity load tracking and the utilisation estimate built on it.
 *
 * Time is cut into periods of 1024 us (1024 ns count as one us). A signal's
 * sum is the geometric series
 *
 *	sum = u_0 + u_1 y + u_2 y^2 + ...        with y^32 = 1/2
 *
 * where u_i is the time, in us, for which the signal was on in the i-th period
 * before now. A signal that is always on tends to 1024 / (1 - y) = 47742, so
 *
 *	avg = sum / (47742 - 1024 + part of the current period)
 *
 * is 1 for "always on"; utilisation and runnable sums carry a factor 1024.
 * Everything is integer and rounds down at the kernel's own places, so a sum
 * here equals the kernel's for the same history (kernel/sched/pelt.c, 6.12).
 */
#ifndef CW_PELT_H
#define CW_PELT_H

#include "types.h"

#define PELT_PERIOD 1024
#define PELT_HALFLIFE 32
/* Sum of an always-on signal after infinitely many periods, in integer steps. */
#define LOAD_AVG_MAX 47742
#define PELT_MIN_DIVIDER (LOAD_AVG_MAX - PELT_PERIOD)
/* Flag in a task's util_est: its utilisation has not changed since. */
#define UTIL_AVG_UNCHANGED 0x80000000u
/* Below this (1 % of 1024) a change of utilisation is not worth an update. */
#define UTIL_EST_MARGIN (CW_CAPACITY_SCALE / 100)
/* The estimate is an exponential average with weight 1/4 for the new value. */
#define UTIL_EST_WEIGHT_SHIFT 2

/* floor((2^32 - 1) * y^n) for n = 0..31. */
static const u32 runnable_avg_yN_inv[PELT_HALFLIFE] = {
	0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6,
	0xe0ccdeeb, 0xdbfbb796, 0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85,
	0xc5672a10, 0xc12c4cc9, 0xbd08a39e, 0xb8fbaf46, 0xb504f333, 0xb123f581,
	0xad583ee9, 0xa9a15ab4, 0xa5fed6a9, 0xa2704302, 0x9ef5325f, 0x9b8d39b9,
	0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a, 0x8b95c1e3, 0x88980e80,
	0x85aac367, 0x82cd8698,
};

static inline u64 pelt_sub_positive(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static inline u64 pelt_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* val * y^n, rounded down. */
static inline u64 decay_load(u64 val, u64 n)
{
	u64 inv;

	if (n > PELT_HALFLIFE * 63)
		return 0;
	val >>= n / PELT_HALFLIFE;
	inv = runnable_avg_yN_inv[n % PELT_HALFLIFE];
	return (val >> 32) * inv + (((val & 0xffffffff) * inv) >> 32);
}

/* The divider that turns a sum into an average at this point of the period. */
static inline u32 get_pelt_divider(const struct cw_avg *avg)
{
	return PELT_MIN_DIVIDER + avg->period_contrib;
}

/*
 * Add `delta` us, over which the signals were load, runnable and running, to
 * the sums. Returns the number of period boundaries crossed.
 */
static inline u64 accumulate_sum(u64 delta, struct cw_avg *sa, u64 load, u64 runnable,
				 bool running)
{
	u64 contrib = delta; /* us that count, each decayed by the periods since */
	u64 periods;

	delta += sa->period_contrib;
	periods = delta / PELT_PERIOD;
	if (periods) {
		u64 head = PELT_PERIOD - sa->period_contrib;

		sa->load_sum = decay_load(sa->load_sum, periods);
		sa->runnable_sum = decay_load(sa->runnable_sum, periods);
		sa->util_sum = (u32)decay_load(sa->util_sum, periods);
		delta %= PELT_PERIOD;
		/* the rest of the old period, the full ones between, the start of the new one */
		contrib = decay_load(head, periods) +
			  (LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, periods) - PELT_PERIOD) + delta;
	}
	sa->period_contrib = (u32)delta;

	if (load)
		sa->load_sum += load * contrib;
	if (runnable)
		sa->runnable_sum += runnable * contrib * CW_CAPACITY_SCALE;
	if (running)
		sa->util_sum += (u32)(contrib * CW_CAPACITY_SCALE);
	return periods;
}

/*
 * Bring the sums to `now`; true if a period ended, so that the averages have to follow.
 * Always inlined, because hosts in BPF call this from the last of the 8 frames that a
 * program may have (MAX_CALL_FRAMES, include/linux/bpf_verifier.h).
 */
static inline __attribute__((always_inline)) bool update_load_sum(u64 now, struct cw_avg *sa,
								  u64 load, u64 runnable,
								  bool running)
{
	s64 delta = (s64)(now - sa->last_update_time);

	if (delta < 0) {
		sa->last_update_time = now;
		return false;
	}
	delta >>= 10;
	if (!delta)
		return false;
	sa->last_update_time += (u64)delta << 10;
	/* what is not queued does not run either */
	if (!load) {
		runnable = 0;
		running = false;
	}
	return accumulate_sum((u64)delta, sa, load, runnable, running) != 0;
}

static inline void update_load_avg_from_sum(struct cw_avg *sa, u64 weight)
{
	u32 divider = get_pelt_divider(sa);

	sa->load_avg = weight * sa->load_sum / divider;
	sa->runnable_avg = sa->runnable_sum / divider;
	sa->util_avg = sa->util_sum / divider;
}

/* A task's averages at `now`; true if they changed. */
static inline bool update_load_avg_se(u64 now, struct cw_task *p, bool on_rq, bool running)
{
	if (!update_load_sum(now, &p->avg, on_rq, on_rq, running))
		return false;
	update_load_avg_from_sum(&p->avg, p->weight);
	p->avg.util_est &= ~UTIL_AVG_UNCHANGED;
	return true;
}

/* When the runqueue of `p` was last updated: its task group's, or that of its CPU. */
static inline u64 cfs_rq_last_update_time(const struct cw_cpu *rq, const struct cw_task *p)
{
	return p->flags & CW_TASK_CFS_RQ ? p->cfs_rq.last_update_time : rq->avg.last_update_time;
}

/* A sleeper's averages, decayed to its old runqueue's last update without touching that queue. */
static inline void sync_entity_load_avg(const struct cw_cpu *rq, struct cw_task *p)
{
	if (update_load_sum(cfs_rq_last_update_time(rq, p), &p->avg, 0, 0, false))
		update_load_avg_from_sum(&p->avg, p->weight);
}

/*
 * A runqueue's averages at `now`: first subtract sleeping tasks that moved away, then
 * add the time since the last update. True if they changed.
 */
static inline bool update_cfs_rq_load_avg(u64 now, struct cw_cpu *rq, bool running)
{
	struct cw_avg *sa = &rq->avg;
	bool decayed = false;

	if (rq->removed.nr) {
		u32 divider = get_pelt_divider(sa);

		sa->load_avg = pelt_sub_positive(sa->load_avg, rq->removed.load_avg);
		sa->load_sum = pelt_max(pelt_sub_positive(sa->load_sum, rq->removed.load_avg * divider),
					sa->load_avg * PELT_MIN_DIVIDER);
		sa->util_avg = pelt_sub_positive(sa->util_avg, rq->removed.util_avg);
		sa->util_sum = (u32)pelt_max(
			pelt_sub_positive(sa->util_sum, rq->removed.util_avg * divider),
			sa->util_avg * PELT_MIN_DIVIDER);
		sa->runnable_avg = pelt_sub_positive(sa->runnable_avg, rq->removed.runnable_avg);
		sa->runnable_sum = pelt_max(
			pelt_sub_positive(sa->runnable_sum, rq->removed.runnable_avg * divider),
			sa->runnable_avg * PELT_MIN_DIVIDER);
		rq->removed = (struct cw_removed){ 0 };
		decayed = true;
	}
	if (update_load_sum(now, sa, rq->load_weight, rq->cfs_nr_running, running)) {
		update_load_avg_from_sum(sa, 1);
		decayed = true;
	}
	return decayed;
}

/* Add a task's averages to a runqueue that it was not accounted on. */
static inline void attach_entity_load_avg(struct cw_cpu *rq, struct cw_task *p)
{
	struct cw_avg *sa = &p->avg;
	u32 divider;

	/* from here on the two decay in step, so the task's own sums restart on the runqueue's period */
	sa->last_update_time = rq->avg.last_update_time;
	sa->period_contrib = rq->avg.period_contrib;
	divider = get_pelt_divider(sa);
	sa->util_sum = (u32)(sa->util_avg * divider);
	sa->runnable_sum = sa->runnable_avg * divider;
	sa->load_sum = sa->load_avg * divider;
	sa->load_sum = p->weight < sa->load_sum ? sa->load_sum / (p->weight ? p->weight : 1) : 1;

	rq->avg.load_avg += sa->load_avg;
	rq->avg.load_sum += (u64)p->weight * sa->load_sum;
	rq->avg.util_avg += sa->util_avg;
	rq->avg.util_sum += sa->util_sum;
	rq->avg.runnable_avg += sa->runnable_avg;
	rq->avg.runnable_sum += sa->runnable_sum;
}

/* Take a task's averages off the runqueue that it leaves while its lock is held. */
static inline void detach_entity_load_avg(struct cw_cpu *rq, const struct cw_task *p)
{
	struct cw_avg *sa = &rq->avg;

	sa->load_avg = pelt_sub_positive(sa->load_avg, p->avg.load_avg);
	sa->load_sum = pelt_max(pelt_sub_positive(sa->load_sum, (u64)p->weight * p->avg.load_sum),
				sa->load_avg * PELT_MIN_DIVIDER);
	sa->util_avg = pelt_sub_positive(sa->util_avg, p->avg.util_avg);
	sa->util_sum = (u32)pelt_max(pelt_sub_positive(sa->util_sum, p->avg.util_sum),
				     sa->util_avg * PELT_MIN_DIVIDER);
	sa->runnable_avg = pelt_sub_positive(sa->runnable_avg, p->avg.runnable_avg);
	sa->runnable_sum = pelt_max(pelt_sub_positive(sa->runnable_sum, p->avg.runnable_sum),
				    sa->runnable_avg * PELT_MIN_DIVIDER);
}

/* A sleeper moves away without its old runqueue's lock: leave a note for the runqueue's next update. */
static inline void remove_entity_load_avg(struct cw_cpu *rq, struct cw_task *p)
{
	sync_entity_load_avg(rq, p);
	rq->removed.nr++;
	rq->removed.load_avg += p->avg.load_avg;
	rq->removed.util_avg += p->avg.util_avg;
	rq->removed.runnable_avg += p->avg.runnable_avg;
}

/* A new task: full load, so that it is not ignored before it has a history. */
static inline void init_entity_runnable_average(struct cw_task *p)
{
	p->avg = (struct cw_avg){ 0 };
	p->avg.load_avg = p->weight;
}

/*
 * A new task's utilisation on its first runqueue: its share by weight of what
 * runs there, at most half of the capacity that is left.
 */
static inline void post_init_entity_util_avg(const struct cw_cpu *rq, struct cw_task *p)
{
	u64 cap = pelt_sub_positive(rq->capacity_orig, rq->avg.util_avg) / 2;

	if (cap) {
		u64 util = cap;

		if (rq->avg.util_avg) {
			util = rq->avg.util_avg * p->weight / (rq->avg.load_avg + 1);
			if (util > cap)
				util = cap;
		}
		p->avg.util_avg = util;
	}
	p->avg.runnable_avg = p->avg.util_avg;
}

static inline u64 cap_scale(u64 value, u32 capacity)
{
	return value * capacity / CW_CAPACITY_SCALE;
}

/*
 * The clock of a runqueue's averages, `delta` ns after it was last moved: it runs at the
 * speed of the CPU, so that the same work gives the same utilisation on a slow CPU as on a
 * fast one, and catches up with real time whenever the CPU idles.
 */
static inline void update_rq_clock_pelt(struct cw_cpu *rq, u64 delta)
{
	if (rq->curr_is_idle)
		rq->clock_pelt = rq->clock_task - rq->lost_idle_time;
	else
		rq->clock_pelt += cap_scale(cap_scale(delta, rq->capacity_orig), rq->freq_capacity);
}

/* The utilisation sum of a CPU that has always been busy. */
#define PELT_UTIL_SUM_FULL (PELT_MIN_DIVIDER * CW_CAPACITY_SCALE - LOAD_AVG_MAX)

/*
 * The CPU goes idle. If it has always been busy, a faster one might have been, too: then the
 * time that its clock is behind is not idle time.
 */
static inline void update_idle_rq_clock_pelt(struct cw_cpu *rq)
{
	if (rq->avg.util_sum >= PELT_UTIL_SUM_FULL)
		rq->lost_idle_time = rq->clock_task - rq->clock_pelt;
}

static inline u32 task_util_est_raw(const struct cw_task *p)
{
	return p->avg.util_est & ~UTIL_AVG_UNCHANGED;
}

static inline void util_est_enqueue(const struct cw_sys *sys, struct cw_cpu *rq,
				    const struct cw_task *p)
{
	if (sched_feat(sys, CW_FEAT_UTIL_EST))
		rq->avg.util_est += task_util_est_raw(p);
}

static inline void util_est_dequeue(const struct cw_sys *sys, struct cw_cpu *rq,
				    const struct cw_task *p)
{
	if (sched_feat(sys, CW_FEAT_UTIL_EST))
		rq->avg.util_est = (u32)pelt_sub_positive(rq->avg.util_est, task_util_est_raw(p));
}

/* A task goes to sleep on `rq`: move its estimate towards its utilisation this time. */
static inline void util_est_update(const struct cw_sys *sys, const struct cw_cpu *rq,
				   struct cw_task *p)
{
	u32 ewma = p->avg.util_est;
	u32 dequeued = (u32)p->avg.util_avg;

	if (!sched_feat(sys, CW_FEAT_UTIL_EST) || (ewma & UTIL_AVG_UNCHANGED))
		return;
	if (ewma <= dequeued) {
		ewma = dequeued; /* up at once */
	} else {
		u32 diff = ewma - dequeued;

		if (diff >= UTIL_EST_MARGIN) {
			/* the demand of a task that exceeds the CPU's capacity cannot be seen here */
			if (dequeued > rq->capacity_orig)
				return;
			/* it had to wait, so its utilisation is below its demand: keep the estimate */
			if (dequeued + UTIL_EST_MARGIN >= p->avg.runnable_avg)
				ewma = ((ewma << UTIL_EST_WEIGHT_SHIFT) - diff) >> UTIL_EST_WEIGHT_SHIFT;
		}
	}
	p->avg.util_est = ewma | UTIL_AVG_UNCHANGED;
}

#endif /* CW_PELT_H */
