/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What several CPUs may change at once on a running kernel. A native host has
 * one thread, so there the same is a plain assignment.
 */
#ifndef CW_ATOMIC_H
#define CW_ATOMIC_H

#ifdef __bpf__
/* Adds to a counter. */
#define cw_add(ptr, n) ((void)__sync_fetch_and_add((ptr), (n)))
#else
#define cw_add(ptr, n) ((void)(*(ptr) += (n)))
#endif

#endif /* CW_ATOMIC_H */
