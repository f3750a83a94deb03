/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each CPU did: counters that user space reads and adds up.
 *
 * Each CPU counts what it does itself, with interrupts off, so that nothing has
 * to be atomic.
 */
#ifndef CW_STATS_BPF_H
#define CW_STATS_BPF_H

#include "topology.h"

/* How far a task came when it ran on another CPU than before. */
enum live_distance {
	LIVE_CORE, /* to an SMT sibling */
	LIVE_LLC, /* within a last-level cache */
	LIVE_NODE, /* within a node */
	LIVE_ACROSS, /* from one node to another */
	LIVE_NR_DISTANCES,
};

/* Bucket i counts wakeups that waited for less than 2^i times 1,024 ns, the last one all others. */
#define LIVE_LATENCIES 24

struct live_stats {
	u64 reasons[CW_NR_REASONS]; /* placements, by enum cw_reason */
	u64 cpus_scanned; /* by placements */
	u64 direct; /* tasks that went straight to a CPU */
	u64 enqueued; /* tasks that have to wait in the queue of one */
	u64 preempted; /* of these, how many have it switch at once */
	u64 migrations[LIVE_NR_DISTANCES];
	u64 switches; /* tasks that the CPU switched to */
	u64 pulled_newidle; /* tasks that it took from others because it ran out of work */
	u64 pulled_balance; /* tasks that its other balancing moved */
	u64 waited_ns; /* by wakeups, until they ran */
	u64 latencies[LIVE_LATENCIES]; /* the same time, of each of them */
} __attribute__((aligned(128)));

struct live_stats stats[CW_MAX_CPUS];

static inline struct live_stats *stats_of(s32 cpu)
{
	return &stats[cpu & CW_CPU_MASK];
}

static inline void count_decision(const struct cw_decision *d)
{
	struct live_stats *s = stats_of(d->this_cpu);

	if (d->reason < CW_NR_REASONS)
		s->reasons[d->reason]++;
	s->cpus_scanned += d->cpus_scanned;
}

/* The bucket of a time in ns. */
static inline u32 latency_bucket(u64 ns)
{
	u64 units = ns >> 10;
	u32 bucket = units ? 64 - (u32)__builtin_clzll(units) : 0;

	return bucket < LIVE_LATENCIES ? bucket : LIVE_LATENCIES - 1;
}

/* How far apart are two different CPUs? */
static inline enum live_distance distance(s32 a, s32 b)
{
	const struct cw_cpu *from = cpu_rq(&sys, a), *to = cpu_rq(&sys, b);

	if (from->core == to->core)
		return LIVE_CORE;
	if (from->llc == to->llc)
		return LIVE_LLC;
	return from->node == to->node ? LIVE_NODE : LIVE_ACROSS;
}

static inline void count_pull(s32 this_cpu, bool newidle)
{
	struct live_stats *s = stats_of(this_cpu);

	if (newidle)
		s->pulled_newidle++;
	else
		s->pulled_balance++;
}

/* `cpu` switches to the task. */
static inline void count_switch(struct live_task *t, s32 cpu, u64 now)
{
	struct live_stats *s = stats_of(cpu);

	s->switches++;
	if (t->woken_at) {
		/* the clocks of two CPUs may differ a little */
		u64 waited = now > t->woken_at ? now - t->woken_at : 0;

		s->latencies[latency_bucket(waited)]++;
		s->waited_ns += waited;
		t->woken_at = 0;
	}
	if (t->ran_on >= 0 && t->ran_on != cpu)
		s->migrations[distance(t->ran_on, cpu)]++;
	t->ran_on = cpu;
}

#endif /* CW_STATS_BPF_H */
