/* SPDX-License-Identifier: GPL-2.0-only */
/* The recorded machine as user space sees it: CPUs and cores, kernel, settings. */
#include "host.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CPU_PATH "/sys/devices/system/cpu/cpu%u/"
#define SCHED_PATH "/sys/kernel/debug/sched/"
#define OLD_FEATURES_PATH "/sys/kernel/debug/sched_features" /* until 5.12 */

/* The first line of a file without its end; empty if it cannot be read. */
static void read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(line, size, file))
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
}

void parse_cpu_list(const char *list, u64 *set)
{
	while (*list) {
		char *end;
		unsigned long cpu = strtoul(list, &end, 10), last = cpu;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; cpu <= last && cpu < CAPTURE_MAX_CPUS; cpu++)
			set[cpu / 64] |= 1ULL << cpu % 64;
		if (end == list)
			return;
		list = *end == ',' ? end + 1 : end;
	}
}

u32 possible_cpus(void)
{
	char list[4096];
	const char *last;

	read_line("/sys/devices/system/cpu/possible", list, sizeof(list));
	last = strrchr(list, '-');
	if (!last)
		last = strrchr(list, ',');
	return *list ? strtoul(last ? last + 1 : list, NULL, 10) + 1 : 0;
}

u32 cpu_capacity_orig(u32 cpu)
{
	char path[128], line[64];

	snprintf(path, sizeof(path), CPU_PATH "cpu_capacity", cpu);
	read_line(path, line, sizeof(line));
	return *line ? strtoul(line, NULL, 10) : 1024;
}

u32 cpu_node(u32 cpu)
{
	char path[128];
	struct dirent *entry;
	u32 node = 0;
	DIR *directory;

	snprintf(path, sizeof(path), CPU_PATH, cpu);
	directory = opendir(path);
	while (directory && (entry = readdir(directory)))
		if (sscanf(entry->d_name, "node%u", &node) == 1)
			break;
	if (directory)
		closedir(directory);
	return node;
}

void read_core(u32 cpu, u64 core[CAPTURE_MASK_WORDS])
{
	char path[128], list[4096];

	memset(core, 0, CAPTURE_MASK_WORDS * sizeof(*core));
	core[cpu / 64] |= 1ULL << cpu % 64;
	snprintf(path, sizeof(path), CPU_PATH "topology/thread_siblings_list", cpu);
	read_line(path, list, sizeof(list));
	parse_cpu_list(list, core);
}

static void describe_file(FILE *out, const char *name, const char *path)
{
	char line[4096];

	read_line(path, line, sizeof(line));
	if (*line)
		fprintf(out, "%s\t%s\n", name, line);
}

/* Settings that were in sysctl until 5.12 and are in debugfs since. */
static void describe_setting(FILE *out, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), SCHED_PATH "%s", name);
	describe_file(out, name, path);
	snprintf(path, sizeof(path), "/proc/sys/kernel/sched_%s", name);
	describe_file(out, name, path);
}

char *describe_host(u32 nr_cpus, int hz, const char *sd_flags, size_t *length)
{
	char *text = NULL;
	struct utsname name;
	FILE *out = open_memstream(&text, length);

	uname(&name);
	fprintf(out, "release\t%s\nmachine\t%s\ncpus\t%u\n", name.release, name.machine, nr_cpus);
	fprintf(out, "hz\t%d\nsd_flags\t%s\n", hz, sd_flags);
	describe_file(out, "cmdline", "/proc/cmdline");
	describe_file(out, "features", SCHED_PATH "features");
	describe_file(out, "features", OLD_FEATURES_PATH);
	describe_file(out, "preempt", SCHED_PATH "preempt");
	describe_file(out, "base_slice_ns", SCHED_PATH "base_slice_ns");
	describe_setting(out, "latency_ns");
	describe_setting(out, "min_granularity_ns");
	describe_setting(out, "wakeup_granularity_ns");
	describe_setting(out, "tunable_scaling");
	describe_setting(out, "migration_cost_ns");
	describe_setting(out, "nr_migrate");
	describe_file(out, "llc_enabled", SCHED_PATH "llc_balancing/enabled");
	describe_file(out, "llc_imb_pct", SCHED_PATH "llc_balancing/imb_pct");
	describe_file(out, "llc_overaggr_pct", SCHED_PATH "llc_balancing/overaggr_pct");
	describe_file(out, "numa_balancing", "/proc/sys/kernel/numa_balancing");
	while (ftell(out) % 8)
		fputc('\0', out);
	fclose(out);
	return text;
}
