/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of the cycles of each CPU, for BPF programs to read. Each stays on its CPU's hardware:
 * one that took turns with others would miss cycles.
 */
#include "counters.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common.h"

/* Speeds are told apart by steps of so many kHz, up to 10 GHz; none is faster. */
#define STEP_KHZ 10000
#define STEPS 1000

static int counters[CAPTURE_MAX_CPUS];
static u32 size;

/* What each CPU has run at. */
static struct speeds {
	u64 switched; /* when it last switched; 0: not yet */
	struct {
		u64 ns, cycles;
	} at[STEPS];
} speeds[CAPTURE_MAX_CPUS];

u32 counters_open(u32 nr_cpus)
{
	struct perf_event_attr cycles = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.size = sizeof(cycles),
		.pinned = 1,
	};
	u32 opened = 0;
	int error = 0;

	for (size = 0; size < nr_cpus; size++) {
		counters[size] = syscall(SYS_perf_event_open, &cycles, -1, size, -1, PERF_FLAG_FD_CLOEXEC);
		if (counters[size] >= 0)
			opened++;
		else
			error = errno;
	}
	errno = error;
	return opened;
}

void counters_put(int map)
{
	u32 cpu;

	for (cpu = 0; cpu < size; cpu++)
		if (counters[cpu] >= 0 && bpf_map_update_elem(map, &cpu, &counters[cpu], BPF_ANY))
			fail("the counter of CPU %u's cycles cannot be read: %s", cpu, strerror(errno));
}

void counters_note(u32 cpu, u64 at, u64 cycles)
{
	struct speeds *of = &speeds[cpu];
	u64 ns = at - of->switched, step;

	if (cycles && of->switched && ns) {
		step = cycles * 1000000 / ns / STEP_KHZ;
		if (step < STEPS) {
			of->at[step].ns += ns;
			of->at[step].cycles += cycles;
		}
	}
	of->switched = at;
}

u32 counters_fastest_khz(u32 cpu)
{
	const struct speeds *of = &speeds[cpu];
	u64 all = 0, ns = 0, cycles = 0;
	u32 step;

	for (step = 0; step < STEPS; step++)
		all += of->at[step].ns;
	for (step = STEPS; step-- > 0 && ns * 10 < all;) {
		ns += of->at[step].ns;
		cycles += of->at[step].cycles;
	}
	return ns ? cycles * 1000000 / ns : 0;
}
