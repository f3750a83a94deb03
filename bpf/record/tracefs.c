/* SPDX-License-Identifier: GPL-2.0-only */
/* Records a workload as the text of the tracepoints, compressed by gzip, from an instance of tracefs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common.h"
#include "host.h"
#include "workload-host.h"

#define TRACEFS "/sys/kernel/tracing"

static const char *const events[] = {
	"sched/sched_switch",	       "sched/sched_waking",	    "sched/sched_wakeup_new",
	"sched/sched_process_fork",    "sched/sched_process_exec",  "sched/sched_process_exit",
	"sched/sched_migrate_task",    "irq/softirq_entry",	    "irq/softirq_exit",
	"irq/irq_handler_entry",       "irq/irq_handler_exit",	    "timer/hrtimer_expire_entry",
	"timer/hrtimer_expire_exit",
};

static char instance[64], temporary[4096];

static bool set(const char *name, const char *value)
{
	char path[256];
	FILE *file;
	bool done;

	snprintf(path, sizeof(path), "%s/%s", instance, name);
	file = fopen(path, "we");
	if (!file)
		return false;
	done = fputs(value, file) >= 0;
	return !fclose(file) && done;
}

static void clean_up(void)
{
	rmdir(instance);
	if (*temporary)
		unlink(temporary);
}

static void stop_tracing(void)
{
	set("tracing_on", "0");
}

static void nothing(void)
{
}

/* Events that found no room, of all CPUs. */
static unsigned long lost_events(u32 nr_cpus)
{
	unsigned long lost = 0, value;
	char path[256], line[128];
	u32 cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/stats", instance, cpu);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "dropped events: %lu", &value) == 1)
				lost += value;
		if (file)
			fclose(file);
	}
	return lost;
}

/* Copies the text to the file, as far as it has room. */
static void copy(const struct work_options *options, unsigned long lost, bool *cut)
{
	unsigned long room = options->max_mib << 20;
	char path[256], line[4096];
	gzFile out = gzopen(temporary, "wbxe1");
	FILE *in;
	int end;

	snprintf(path, sizeof(path), "%s/trace", instance);
	in = fopen(path, "re");
	if (!out || !in)
		fail("%s: %s", out ? path : options->output, strerror(errno));
	while (!*cut && fgets(line, sizeof(line), in)) {
		gzputs(out, line);
		*cut = (unsigned long)gzoffset(out) > room;
	}
	if (lost)
		gzprintf(out, "CPU:0 [LOST %lu EVENTS]\n", lost);
	fclose(in);
	end = gzclose(out);
	if (end != Z_OK || rename(temporary, options->output))
		fail("%s: %s", options->output, end == Z_OK ? strerror(errno) : "it cannot be written");
	*temporary = '\0';
}

int record_tracepoints(const struct work_options *options)
{
	u32 nr_cpus = possible_cpus();
	char size[32], name[128];
	unsigned long lost;
	bool cut = false;
	int status;
	size_t i;

	snprintf(instance, sizeof(instance), TRACEFS "/instances/coreward-%d", (int)getpid());
	if (mkdir(instance, 0700))
		fail("tracepoints cannot be recorded: %s: %s; recording needs root and tracefs at " TRACEFS, instance,
		     strerror(errno));
	atexit(clean_up);
	snprintf(temporary, sizeof(temporary), "%s.%d", options->output, (int)getpid());
	snprintf(size, sizeof(size), "%lu", (options->buffer_mib << 10) / nr_cpus + 1);
	/* what does not fit is lost at the end, not in the middle */
	if (!set("tracing_on", "0") || !set("buffer_size_kb", size) || !set("options/overwrite", "0") ||
	    !set("trace_clock", "mono"))
		fail("tracepoints cannot be recorded: %s: %s", instance, strerror(errno));
	set("options/record-tgid", "1");
	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		snprintf(name, sizeof(name), "events/%s/enable", events[i]);
		if (!set(name, "1"))
			fprintf(stderr, "coreward-record: this kernel has no %s\n", events[i]);
	}
	set("tracing_on", "1");
	status = wait_for_end(options->command, options->duration, nothing, stop_tracing);
	lost = lost_events(nr_cpus);
	copy(options, lost, &cut);
	fprintf(stderr, "coreward-record: %s: text of tracepoints, %lu events lost\n", options->output, lost);
	if (cut) {
		fprintf(stderr, "coreward-record: the file reached %lu MiB (--max-size): it ends there\n",
			options->max_mib);
		return EXIT_CUT_SHORT;
	}
	return status;
}
