/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel's BPF verifier has to be told; empty in native builds.
 *
 * The verifier follows every path through a program, and a loop until its state repeats.
 * A loop therefore has may_loop() in its condition, which lets the verifier forget values
 * that changed from one iteration to the next (Linux 6.9; the kernel ends a loop after
 * more than 8 million iterations). A value that the verifier must not follow, such as
 * what a loop counts from, is made unknown(): it would be followed to the last iteration.
 * A function that is called from many paths, or within a loop, is a CW_GLOBAL: it is
 * verified once, for any arguments that its types allow. For that reason it must not read
 * pointers from the memory that it is passed.
 */
#ifndef CW_VERIFIER_H
#define CW_VERIFIER_H

#include "types.h"

#ifdef __bpf__
/* weak, so that the compiler concludes nothing from its body */
#define CW_GLOBAL __attribute__((weak))
#define CW_NONNULL __attribute__((btf_decl_tag("arg:nonnull")))
#define may_loop()                                                 \
	({                                                         \
		__label__ stop, end;                               \
		bool more = true;                                  \
		asm volatile goto("may_goto %l[stop]" :::: stop);  \
		goto end;                                          \
	stop:                                                      \
		more = false;                                      \
	end:;                                                      \
		more;                                              \
	})
/* Always 0, but in memory that could be written elsewhere. */
static volatile u32 cw_zero;
#define unknown(value) ((value) + (typeof(value))cw_zero)
/* One `type` for each CPU that decides, because a program's stack has only 512 bytes. */
#define cw_scratch(type, cpu)                                      \
	({                                                         \
		static type of_cpu[CW_MAX_CPUS];                   \
		&of_cpu[unknown(cpu) & CW_CPU_MASK];               \
	})
#else
#define cw_scratch(type, cpu) (&(type){ 0 })
#define CW_GLOBAL static inline
#define CW_NONNULL
#define may_loop() true
#define unknown(value) (value)
#endif

#endif /* CW_VERIFIER_H */
