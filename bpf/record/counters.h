/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of the cycles of each CPU. */
#ifndef CW_COUNTERS_H
#define CW_COUNTERS_H

#include "capture.h"

/* Opens one on each CPU that has one. Returns how many there are; if there are none, errno says why. */
u32 counters_open(u32 nr_cpus);
/* Puts them into a map of perf events, by CPU. */
void counters_put(int map);
/* A CPU switches; it has had so many cycles since its last switch, 0 if it is not known. Times ascend. */
void counters_note(u32 cpu, u64 at, u64 cycles);
/* The speed of a CPU in the fastest tenth of the time whose cycles are known, in kHz; 0 if none are. */
u32 counters_fastest_khz(u32 cpu);

#endif
