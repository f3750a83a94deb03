/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of data that several CPUs may change at once on a running kernel. A native
 * host has a single thread, so a plain assignment does the same there. Each function
 * returns the old value.
 */
#ifndef CW_ATOMIC_H
#define CW_ATOMIC_H

#ifdef __bpf__
/* Adds to a counter. */
#define cw_add(ptr, n) __sync_fetch_and_add(ptr, n)
/* Puts a value in the place of another. */
#define cw_xchg(ptr, value) __sync_lock_test_and_set(ptr, value)
/* Puts a value in the place of `old`, if that is what is there. */
#define cw_cmpxchg(ptr, old, value) __sync_val_compare_and_swap(ptr, old, value)
#else
#define cw_add(ptr, n)                              \
	__extension__({                             \
		__typeof__(*(ptr)) before = *(ptr); \
		*(ptr) = before + (n);              \
		before;                             \
	})
#define cw_xchg(ptr, value)                         \
	__extension__({                             \
		__typeof__(*(ptr)) before = *(ptr); \
		*(ptr) = (value);                   \
		before;                             \
	})
#define cw_cmpxchg(ptr, old, value)                 \
	__extension__({                             \
		__typeof__(*(ptr)) before = *(ptr); \
		if (before == (old))                \
			*(ptr) = (value);           \
		before;                             \
	})
#endif

#endif /* CW_ATOMIC_H */
