/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring buffers of all CPUs, read as one. One buffer for all CPUs would have them wait for
 * each other's events. The buffers are read one after the other, so an event of the last one
 * may be newer than events that are still to come into the first: those that are newer than the
 * beginning wait for the next time.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "rings.h"

/* No buffer is smaller, in bytes: some 1,300 events. */
#define LEAST (1UL << 16)

/* Events in the order in which they were taken. The size of each is a multiple of 8. */
struct batch {
	unsigned char *bytes;
	size_t length, room;
	struct place {
		u64 at;
		size_t offset, size;
	} *places;
	size_t count, most;
};

static struct ring_buffer *rings;
static struct batch taken, left;

/* Room for so many elements of a size. */
static void *grown(void *array, size_t *room, size_t needed, size_t size)
{
	if (needed > *room) {
		*room = 2 * needed;
		array = realloc(array, *room * size);
		if (!array)
			fail("there is no memory for %zu events", needed);
	}
	return array;
}

static void keep(struct batch *batch, const void *event, size_t size)
{
	u64 at = ((const struct work_event *)event)->at;

	batch->bytes = grown(batch->bytes, &batch->room, batch->length + size, 1);
	memcpy(batch->bytes + batch->length, event, size);
	batch->places = grown(batch->places, &batch->most, batch->count + 1, sizeof(*batch->places));
	batch->places[batch->count++] = (struct place){ at, batch->length, size };
	batch->length += size;
}

static int take(void *context, void *event, size_t size)
{
	(void)context;
	keep(&taken, event, size);
	return 0;
}

static int by_time(const void *first, const void *second)
{
	const struct place *a = first, *b = second;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->offset < b->offset ? -1 : 1;
}

bool rings_open(int map, u32 nr_cpus, unsigned long mib)
{
	unsigned long size = mib << 20;
	u32 cpu;

	while (size > LEAST && size * nr_cpus > mib << 20)
		size /= 2;
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		int ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, size, NULL);
		bool opened;

		if (ring < 0)
			return false;
		if (!rings)
			rings = ring_buffer__new(ring, take, NULL, NULL);
		else if (ring_buffer__add(rings, ring, take, NULL))
			return false;
		opened = rings && !bpf_map_update_elem(map, &cpu, &ring, BPF_ANY);
		/* the map and its reader have their own references */
		close(ring);
		if (!opened)
			return false;
	}
	return true;
}

void rings_drain(u64 until, void (*pass)(const struct work_event *event))
{
	struct batch passed;
	size_t i;

	ring_buffer__consume(rings);
	qsort(taken.places, taken.count, sizeof(*taken.places), by_time);
	for (i = 0; i < taken.count; i++) {
		const struct place *place = &taken.places[i];
		const void *event = taken.bytes + place->offset;

		if (place->at <= until)
			pass(event);
		else
			keep(&left, event, place->size);
	}
	passed = taken;
	taken = left;
	left = passed;
	left.length = left.count = 0;
}
