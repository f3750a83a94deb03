/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of CPUs, and loops over them that a BPF verifier can bound. */
#ifndef CW_MASK_H
#define CW_MASK_H

#include "types.h"
#include "verifier.h"

static inline bool cpumask_test_cpu(s32 cpu, const struct cw_cpumask *m)
{
	return m->bits[(cpu & CW_CPU_MASK) / 64] >> (cpu & 63) & 1;
}

/* The first CPU of a & b that is not below `from`, or CW_MAX_CPUS. */
CW_GLOBAL s32 cpumask_next_and(const struct cw_sys *sys CW_NONNULL, s32 from,
			       const struct cw_cpumask *a CW_NONNULL, const struct cw_cpumask *b CW_NONNULL)
{
	u32 word = from < 0 ? 0 : (u32)from / 64;
	u64 keep = ~0ULL << (from & 63);

	for (; word < CW_MASK_WORDS && word < sys->mask_words && may_loop(); word++) {
		u32 i = unknown(word) & (CW_MASK_WORDS - 1);
		u64 bits = a->bits[i] & b->bits[i] & keep;

		if (bits)
			return (s32)(word * 64) + __builtin_ctzll(bits);
		keep = ~0ULL;
	}
	return CW_MAX_CPUS;
}

static inline s32 cpumask_next(const struct cw_sys *sys, s32 from, const struct cw_cpumask *m)
{
	return cpumask_next_and(sys, from, m, m);
}

static inline s32 cpumask_first(const struct cw_sys *sys, const struct cw_cpumask *m)
{
	return cpumask_next(sys, 0, m);
}

static inline bool cpumask_intersects(const struct cw_sys *sys, const struct cw_cpumask *a,
				      const struct cw_cpumask *b)
{
	return cpumask_next_and(sys, 0, a, b) < CW_MAX_CPUS;
}

/* Each CPU of a & b, ascending. */
#define for_each_cpu_and(sys, cpu, a, b)                                       \
	for ((cpu) = cpumask_next_and(sys, 0, a, b); (cpu) < CW_MAX_CPUS && may_loop();      \
	     (cpu) = cpumask_next_and(sys, (cpu) + 1, a, b))

#define for_each_cpu(sys, cpu, m) for_each_cpu_and(sys, cpu, m, m)

/*
 * The CPU that follows `cpu` in a & b when one starts at `start` and goes
 * round once; CW_MAX_CPUS at the end. `*wrapped` starts as false.
 */
static inline s32 cpumask_next_wrap(const struct cw_sys *sys, s32 cpu, s32 start, bool *wrapped,
				    const struct cw_cpumask *a, const struct cw_cpumask *b)
{
	s32 next = cpumask_next_and(sys, cpu, a, b);

	if (!*wrapped && next >= CW_MAX_CPUS) {
		*wrapped = true;
		next = cpumask_next_and(sys, 0, a, b);
	}
	return *wrapped && next >= start ? CW_MAX_CPUS : next;
}

/* Each CPU of a & b, from `start` upwards and round to it. */
#define for_each_cpu_wrap_and(sys, cpu, start, wrapped, a, b)                  \
	for ((wrapped) = false,                                                \
	    (cpu) = cpumask_next_wrap(sys, start, start, &(wrapped), a, b);    \
	     (cpu) < CW_MAX_CPUS && may_loop();                                              \
	     (cpu) = cpumask_next_wrap(sys, (cpu) + 1, start, &(wrapped), a, b))

#endif /* CW_MASK_H */
