/* SPDX-License-Identifier: GPL-2.0-only */
/* The speeds of CPUs, from the cycles between their switches. */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "record/counters.c"

/* What is not called here. */
void fail(const char *format, ...)
{
	(void)format;
	abort();
}

int bpf_map_update_elem(int map, const void *key, const void *value, __u64 flags)
{
	(void)map, (void)key, (void)value, (void)flags;
	abort();
}

int main(void)
{
	u64 at = 1000;
	u32 i;

	assert(counters_fastest_khz(0) == 0);
	/* it is not known since when the first ones have been counted, nor how many cycles others had */
	counters_note(0, at, 1000000);
	counters_note(0, at += 1000, 0);
	assert(counters_fastest_khz(0) == 0);
	/* nine tenths at 2 GHz, one at 3 GHz */
	for (i = 0; i < 10; i++)
		counters_note(0, at += 1000, i ? 2000 : 3000);
	assert(counters_fastest_khz(0) == 3000000);
	/* less than a tenth at 5 GHz: the rest of the fastest tenth is at 3 GHz */
	counters_note(0, at += 500, 2500);
	assert(counters_fastest_khz(0) == 5500 * 1000000ULL / 1500);
	/* faster than any CPU is */
	counters_note(1, 1000, 0);
	counters_note(1, 2000, 100000);
	assert(counters_fastest_khz(1) == 0);
	assert(counters_fastest_khz(2) == 0);
	return 0;
}
