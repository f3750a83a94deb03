/* SPDX-License-Identifier: GPL-2.0-only */
/* The ring buffers of all CPUs, read as one. */
#ifndef CW_RINGS_H
#define CW_RINGS_H

#include <stdbool.h>

#include "workload.h"

/* Makes a ring buffer for each CPU, all of them in so many MiB, and puts them into the map. */
bool rings_open(int map, u32 nr_cpus, unsigned long mib);

/*
 * Takes what the ring buffers have, and passes on what is not newer than `until`, in the order of
 * the times. Of events after this time, some may be on their way.
 */
void rings_drain(u64 until, void (*pass)(const struct work_event *event));

#endif
