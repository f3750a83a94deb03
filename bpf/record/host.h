/* SPDX-License-Identifier: GPL-2.0-only */
/* What user space knows about the recorded machine: /proc, /sys, debugfs. */
#ifndef CAPTURE_HOST_H
#define CAPTURE_HOST_H

#include <stddef.h>

#include "capture.h"

static inline u32 mask_words(u32 nr_cpus)
{
	return (nr_cpus + 63) / 64;
}

/* Adds the CPUs of a list such as 0-3,8 to the set. */
void parse_cpu_list(const char *list, u64 *set);
u32 possible_cpus(void);
/* arch_scale_cpu_capacity(); 1024 where all CPUs are alike. */
u32 cpu_capacity_orig(u32 cpu);
u32 cpu_node(u32 cpu);
/* The CPUs of its SMT core, itself included. */
void read_core(u32 cpu, u64 core[CAPTURE_MASK_WORDS]);
/* The payload of the host frame, padded to 8 bytes with NUL; free() it. */
char *describe_host(u32 nr_cpus, int hz, const char *sd_flags, size_t *length);

#endif
