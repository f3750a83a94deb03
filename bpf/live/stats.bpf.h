/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of what each CPU did. User space reads them and adds them up.
 *
 * Each CPU changes only its own counters, with interrupts off, so nothing has to be
 * atomic.
 */
#ifndef CW_STATS_BPF_H
#define CW_STATS_BPF_H

#include "topology.h"

/* Bucket i counts wakeups that waited for less than 2^i times 1,024 ns; the last one counts all others. */
#define LIVE_LATENCIES 24

struct live_stats {
	u64 reasons[CW_NR_REASONS]; /* placements, by enum cw_reason */
	u64 latencies[LIVE_LATENCIES]; /* of wakeups, until they ran */
#define FAMILY(...)
#define COUNTER(name, ...) u64 name;
#include "live/stats.def"
#undef FAMILY
#undef COUNTER
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

/* A task that ran on `a` before runs on `b`. */
static inline void count_migration(struct live_stats *s, s32 a, s32 b)
{
	switch (cpu_distance(&sys, a, b)) {
	case CW_DISTANCE_SAME:
		break;
	case CW_DISTANCE_CORE:
		s->migrations_core++;
		break;
	case CW_DISTANCE_LLC:
		s->migrations_llc++;
		break;
	case CW_DISTANCE_NODE:
		s->migrations_node++;
		break;
	case CW_DISTANCE_ACROSS:
		s->migrations_across++;
		break;
	}
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
	if (t->ran_on >= 0)
		count_migration(s, t->ran_on, cpu);
	t->ran_on = cpu;
}

#endif /* CW_STATS_BPF_H */
