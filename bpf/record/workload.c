/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records a workload: attaches the BPF programs, and writes their events compactly. Where the
 * kernel refuses the programs, the tracepoints' text is recorded instead (tracefs.c).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common.h"
#include "counters.h"
#include "decisions.h"
#include "file.h"
#include "host.h"
#include "rings.h"
#include "workload.h"
#include "workload-host.h"

extern const char workload_bpf_object[], workload_bpf_object_end[];

#define PF_KTHREAD 0x00200000

static const struct {
	int call;
	enum work_wait wait;
} waits[] = {
	{ SYS_futex, WORK_WAIT_FUTEX },
	{ SYS_read, WORK_WAIT_READ },
	{ SYS_readv, WORK_WAIT_READ },
	{ SYS_write, WORK_WAIT_WRITE },
	{ SYS_writev, WORK_WAIT_WRITE },
	{ SYS_recvfrom, WORK_WAIT_SOCKET },
	{ SYS_recvmsg, WORK_WAIT_SOCKET },
	{ SYS_sendto, WORK_WAIT_SOCKET },
	{ SYS_sendmsg, WORK_WAIT_SOCKET },
	{ SYS_accept, WORK_WAIT_SOCKET },
	{ SYS_accept4, WORK_WAIT_SOCKET },
	{ SYS_connect, WORK_WAIT_SOCKET },
	{ SYS_epoll_pwait, WORK_WAIT_EPOLL },
	{ SYS_epoll_pwait2, WORK_WAIT_EPOLL },
	{ SYS_ppoll, WORK_WAIT_POLL },
	{ SYS_pselect6, WORK_WAIT_POLL },
	{ SYS_wait4, WORK_WAIT_CHILD },
	{ SYS_waitid, WORK_WAIT_CHILD },
	{ SYS_nanosleep, WORK_WAIT_TIME },
	{ SYS_clock_nanosleep, WORK_WAIT_TIME },
#ifdef SYS_epoll_wait /* arm64 has only the newer ones */
	{ SYS_epoll_wait, WORK_WAIT_EPOLL },
	{ SYS_poll, WORK_WAIT_POLL },
	{ SYS_select, WORK_WAIT_POLL },
#endif
};

struct writer {
	struct capture_file file;
	const struct work_options *options;
	struct work_control *control;
	unsigned char frame[1 << 16];
	size_t length;
	u64 at; /* of the last event of the frame */
	u64 events;
	u64 lost; /* as far as the file says it */
	bool full;
};

static struct writer writer;

static void flush_frame(void)
{
	while (writer.length % 8)
		writer.frame[writer.length++] = 0;
	if (writer.length)
		capture_file_frame(&writer.file, WORK_EVENTS, writer.frame, writer.length);
	writer.length = 0;
	writer.at = 0;
}

static void put_byte(unsigned char byte)
{
	writer.frame[writer.length++] = byte;
}

/* Seven bits in a byte, the lowest first; all but the last byte have the highest bit set. */
static void put(u64 value)
{
	for (; value > 0x7f; value >>= 7)
		put_byte(value | 0x80);
	put_byte(value);
}

static void put_signed(s64 value)
{
	put((u64)value << 1 ^ (u64)(value >> 63));
}

static void put_name(const char *comm)
{
	size_t length = strnlen(comm, CAPTURE_COMM - 1);

	put_byte(length);
	memcpy(writer.frame + writer.length, comm, length);
	writer.length += length;
}

static void put_cpus(const u64 *cpus)
{
	u32 words = CAPTURE_MASK_WORDS, word;

	while (words && !cpus[words - 1])
		words--;
	put_byte(words);
	for (word = 0; word < words; word++)
		put(cpus[word]);
}

/* What every event begins with. The longest is that of a new group. */
static void put_head(const struct work_event *event)
{
	if (writer.length > sizeof(writer.frame) - 512)
		flush_frame();
	put_byte(event->kind);
	put(event->cpu);
	put_signed(event->at - writer.at);
	put(event->pid);
	writer.at = event->at;
	writer.events++;
}

/* Notes a group; false if it was known. Of more groups than there is room for, each task's is described. */
static bool is_new_group(u32 id)
{
	static u32 known[4096], count;
	u32 i;

	for (i = 0; i < count; i++)
		if (known[i] == id)
			return false;
	if (count < sizeof(known) / sizeof(*known))
		known[count++] = id;
	return true;
}

/* Describes a group, if it was not described yet: its path, cpu.weight and cpu.max in us. */
static void put_group(const struct work_group *group)
{
	struct work_event event = group->event;
	/* sched_weight_to_cgroup(); version 1 of cgroups allows more */
	u64 weight = ((group->shares >> 10) * 100 + 512) >> 10;
	bool limited = group->quota != (u64)-1;
	char path[WORK_GROUP_LEVELS * WORK_GROUP_NAME];
	size_t length = 0;
	int level;

	if (!event.id || !is_new_group(event.id))
		return;
	for (level = WORK_GROUP_LEVELS - 1; level >= 0; level--)
		if (*group->names[level])
			length += snprintf(path + length, sizeof(path) - length, "/%.*s", WORK_GROUP_NAME - 1,
					   group->names[level]);
	if (length >= sizeof(path))
		length = sizeof(path) - 1;
	if (!length)
		length = snprintf(path, sizeof(path), "/autogroup-%llu", (unsigned long long)group->autogroup);
	event.kind = WORK_NEW_GROUP;
	put_head(&event);
	put(event.id);
	put(weight < 1 ? 1 : weight > 10000 ? 10000 : weight);
	put(limited ? group->quota / 1000 : 0);
	put(limited ? group->period / 1000 : 0);
	put(length);
	memcpy(writer.frame + writer.length, path, length);
	writer.length += length;
}

static void put_event(const struct work_event *event)
{
	u64 cycles;

	if (event->kind == WORK_GROUP)
		put_group((const struct work_group *)event);
	put_head(event);
	switch (event->kind) {
	case WORK_SWITCH:
		cycles = ((const struct work_switch *)event)->cycles;
		counters_note(event->cpu, event->at, cycles);
		put_byte(event->detail | (cycles ? WORK_CYCLES : 0));
		put(event->other);
		put_signed(event->prio);
		if (cycles)
			put(cycles);
		if (event->detail == WORK_BLOCKED) {
			put_byte(event->wait);
			put(event->id);
		}
		break;
	case WORK_WAKING:
		put_byte(event->detail);
		put(event->other);
		put_signed(event->prio);
		break;
	case WORK_WAKEUP_NEW:
		put(event->other);
		put_signed(event->prio);
		break;
	case WORK_FORK:
		put(event->other);
		put(event->id);
		break;
	case WORK_EXIT:
	case WORK_EXEC:
	case WORK_MIGRATE:
		put(event->other);
		break;
	case WORK_NAME:
		put(event->other);
		put_name(((const struct work_name *)event)->comm);
		break;
	case WORK_ALLOWED:
		put(event->other);
		put_cpus(((const struct work_allowed *)event)->cpus);
		break;
	case WORK_GROUP:
		put(event->other);
		put(event->id);
		break;
	case WORK_ENTER:
		put_byte(event->other);
		break;
	case WORK_ARRIVED:
		put_byte(event->detail);
		put(event->id);
		break;
	case WORK_RECEIVED:
		put(event->id);
		break;
	}
}

/* Says that events were lost at about this time. */
static void put_lost(u64 at)
{
	struct work_event event = { .kind = WORK_LOST, .at = at };
	u64 lost = writer.control->lost;

	if (lost == writer.lost)
		return;
	put_head(&event);
	put(lost - writer.lost);
	writer.lost = lost;
}

static void stop(void)
{
	writer.control->recording = 0;
	if (writer.options->decisions)
		decisions_stop();
}

static void write_event(const struct work_event *event)
{
	if (writer.full)
		return;
	put_event(event);
	put_lost(event->at);
	if (writer.file.bytes + writer.length > writer.options->max_mib << 20) {
		writer.full = true;
		stop();
	}
}

static void read_online(u64 *cpus)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	char list[4096] = "";

	if (file && fgets(list, sizeof(list), file))
		parse_cpu_list(list, cpus);
	if (file)
		fclose(file);
}

/* A task that is there: its name and priority, and its affinity, if it has one of its own. */
static void put_task(pid_t tgid, pid_t pid, const u64 *online, u64 at)
{
	struct work_event event = { .kind = WORK_TASK, .at = at, .other = pid };
	struct work_allowed allowed = { .event = { .kind = WORK_ALLOWED, .at = at, .other = pid } };
	char path[64], line[1024], *name, *rest;
	unsigned int flags;
	long priority;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", tgid, pid);
	stat = fopen(path, "re");
	if (!stat)
		return;
	name = fgets(line, sizeof(line), stat) ? strchr(line, '(') : NULL;
	rest = name ? strrchr(name, ')') : NULL;
	fclose(stat);
	if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %ld",
			    &flags, &priority) != 2)
		return;
	*rest = '\0';
	put_head(&event);
	put(pid);
	put(tgid);
	put_signed(priority + 100);
	put_name(name + 1);
	if (flags & PF_KTHREAD || sched_getaffinity(pid, sizeof(allowed.cpus), (cpu_set_t *)allowed.cpus))
		return;
	if (memcmp(allowed.cpus, online, sizeof(allowed.cpus)))
		put_event(&allowed.event);
}

/* Calls for each number that is a name in a directory. */
static void for_each_number(const char *path, void (*call)(pid_t number, void *context), void *context)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (isdigit((unsigned char)*entry->d_name))
			call(atoi(entry->d_name), context);
	if (directory)
		closedir(directory);
}

struct there {
	pid_t tgid;
	u64 at;
	u64 online[CAPTURE_MASK_WORDS];
};

static void put_thread(pid_t pid, void *context)
{
	struct there *there = context;

	put_task(there->tgid, pid, there->online, there->at);
}

static void put_process(pid_t tgid, void *context)
{
	struct there *there = context;
	char path[64];

	there->tgid = tgid;
	snprintf(path, sizeof(path), "/proc/%d/task", tgid);
	for_each_number(path, put_thread, there);
}

static void put_tasks(u64 at)
{
	struct there there = { .at = at };

	read_online(there.online);
	for_each_number("/proc", put_process, &there);
}

/* Not every kernel has the tracepoints of sockets (Linux 6.3 has). */
static void leave_out_sockets(struct bpf_object *object)
{
	static const struct {
		const char *program, *tracepoint;
	} optional[] = { { "work_arrived", "sk_data_ready" }, { "work_received", "sock_recv_length" } };
	bool there = true;
	size_t i;

	for (i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		there &= libbpf_find_vmlinux_btf_id(optional[i].tracepoint, BPF_TRACE_RAW_TP) > 0;
	for (i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(object, optional[i].program), there);
}

static struct bpf_object *load(u32 nr_cpus, u32 counters)
{
	LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "coreward");
	struct bpf_object *object =
		bpf_object__open_mem(workload_bpf_object, workload_bpf_object_end - workload_bpf_object,
				     &open_options);
	struct work_setup *setup;
	size_t size, i;

	if (!object)
		return NULL;
	setup = (struct work_setup *)bpf_map__initial_value(section(object, ".rodata"), &size);
	if (!setup || size < sizeof(*setup))
		fail("the BPF object has no place for its settings");
	setup->mask_words = mask_words(nr_cpus);
	setup->counts = counters > 0;
	read_online(setup->online);
	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		setup->waits[waits[i].call] = waits[i].wait;
	bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "rings"), nr_cpus);
	leave_out_sockets(object);
	if (bpf_object__load(object)) {
		bpf_object__close(object);
		return NULL;
	}
	return object;
}

/* Ends of handlers before beginnings, so that none is counted whose end is missed. */
static bool attach(struct bpf_object *object)
{
	struct bpf_program *program;
	int beginnings;

	for (beginnings = 0; beginnings < 2; beginnings++)
		bpf_object__for_each_program(program, object) {
			bool begins = strstr(bpf_program__name(program), "_entry") != NULL;

			if (bpf_program__autoload(program) && begins == beginnings &&
			    !bpf_program__attach(program))
				return false;
		}
	return true;
}

static void drain(void)
{
	if (writer.options->decisions)
		decisions_drain();
	rings_drain(now(), write_event);
}

/* The speeds have as many digits before they are known as afterwards. */
static void write_host(u32 nr_cpus)
{
	struct utsname name;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	u32 cpu;

	uname(&name);
	fprintf(out, "release\t%s\nmachine\t%s\ncpus\t%u\nfastest_khz\t", name.release, name.machine, nr_cpus);
	for (cpu = 0; cpu < nr_cpus; cpu++)
		fprintf(out, "%8u%c", counters_fastest_khz(cpu), cpu + 1 < nr_cpus ? ' ' : '\n');
	while (ftell(out) % 8)
		fputc('\0', out);
	fclose(out);
	capture_file_frame(&writer.file, WORK_HOST, text, length);
	free(text);
}

static void abandon(void)
{
	capture_file_abandon(&writer.file);
}

static double own_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int record_workload(const struct work_options *options)
{
	u32 nr_cpus = possible_cpus(), counters;
	struct bpf_object *object;
	const char *uncounted;
	bool complete = true;
	u64 end[2], begin;
	double own;
	int status;

	if (!nr_cpus || nr_cpus > CAPTURE_MAX_CPUS)
		fail("this machine has %u CPUs; at most %u can be recorded", nr_cpus, CAPTURE_MAX_CPUS);
	if (options->tracepoints)
		return record_tracepoints(options);
	libbpf_set_print(print_libbpf);
	counters = counters_open(nr_cpus);
	uncounted = counters ? NULL : strerror(errno);
	if (options->decisions)
		decisions_load(options->decisions);
	object = load(nr_cpus, counters);
	if (!object || !attach(object)) {
		if (options->decisions)
			fail("this kernel does not accept the BPF programs (%s), without which only a workload can be "
			     "recorded", *libbpf_warning ? libbpf_warning : strerror(errno));
		fprintf(stderr,
			"coreward-record: this kernel does not accept the BPF programs (%s): the text of its "
			"tracepoints is recorded instead, which says neither what tasks sleep on nor whom a "
			"local packet comes from\n",
			*libbpf_warning ? libbpf_warning : strerror(errno));
		if (object)
			bpf_object__close(object);
		return record_tracepoints(options);
	}
	writer.options = options;
	if (!capture_file_create(&writer.file, options->output, WORK_MAGIC, WORK_VERSION))
		fail("%s: %s", options->output, strerror(errno));
	atexit(abandon);
	writer.control = map_variables(object, sizeof(*writer.control));
	counters_put(bpf_map__fd(bpf_object__find_map_by_name(object, "counters")));
	if (!rings_open(bpf_map__fd(bpf_object__find_map_by_name(object, "rings")), nr_cpus, options->buffer_mib))
		fail("the ring buffers cannot be opened: %s", strerror(errno));
	write_host(nr_cpus);
	if (options->decisions)
		decisions_begin(&writer.file, WORK_DECISIONS);
	begin = now();
	put_tasks(begin);
	own = own_seconds();
	writer.control->recording = 1;
	status = wait_for_end(options->command, options->duration, drain, stop);
	rings_drain((u64)-1, write_event);
	if (options->decisions)
		decisions_end();
	put_lost(now());
	flush_frame();
	end[0] = writer.events;
	end[1] = writer.lost;
	capture_file_frame(&writer.file, WORK_END, end, sizeof(end));
	capture_file_return(&writer.file);
	write_host(nr_cpus);
	if (!capture_file_finish(&writer.file))
		fail("%s: %s", options->output, strerror(writer.file.error));
	fprintf(stderr, "coreward-record: %s: %llu events, %llu lost, %.1f MB; writing them took %.3f s of a CPU\n",
		options->output, (unsigned long long)writer.events, (unsigned long long)writer.lost,
		writer.file.bytes / 1e6, own_seconds() - own);
	if (uncounted)
		fprintf(stderr, "coreward-record: no cycles: the machine has no counter for them (%s); time on a CPU is taken "
				"as work at full speed\n", uncounted);
	if (options->decisions)
		complete = decisions_report();
	if (writer.full) {
		fprintf(stderr, "coreward-record: the file reached %lu MiB (--max-size): recording ended there, and "
				"what came before is kept\n", options->max_mib);
		return EXIT_CUT_SHORT;
	}
	return complete ? status : EXIT_CUT_SHORT;
}
