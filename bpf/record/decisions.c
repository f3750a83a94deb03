/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what the kernel's fair class decides, with the state that each decision is based on:
 * attaches the BPF programs, and writes their records as frames.
 */
#include "decisions.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture.h"
#include "common.h"
#include "host.h"
#include "require.h"

extern const char capture_bpf_object[], capture_bpf_object_end[];
extern const char capture_linux_5_10_object[], capture_linux_5_10_object_end[];

static struct {
	const struct decision_options *options;
	struct bpf_object *object;
	struct capture_control *control; /* the variables that are shared with the programs */
	struct ring_buffer *ring;
	u32 nr_cpus;
	struct capture_file *file;
	u32 base;
} recording;

static bool kernel_is_at_least(int major, int minor)
{
	struct utsname name;
	int found[2] = { 0, 0 };

	uname(&name);
	sscanf(name.release, "%d.%d", &found[0], &found[1]);
	return found[0] > major || (found[0] == major && found[1] >= minor);
}

/* Bits of preempt_count() for a served softirq, for hardirqs and for NMIs; they moved in 7.3. */
static u32 interrupt_mask(void)
{
	return kernel_is_at_least(7, 3) ? 0x1f000100 : 0x00ff0100;
}

/*
 * TIF_NEED_RESCHED, whose number depended on the architecture until common numbers were introduced:
 * x86-64 has them in 6.18, arm64 not yet, but in 7.3.
 */
static u32 need_resched(void)
{
	struct utsname name;

	uname(&name);
	if (!strcmp(name.machine, "aarch64"))
		return kernel_is_at_least(7, 3) ? 1 << 4 : 1 << 1;
	return kernel_is_at_least(6, 18) ? 1 << 4 : 1 << 3;
}

/* Programs that record steps, by their names. */
static bool is_of_steps(const struct bpf_program *program)
{
	return !strncmp(bpf_program__name(program), "step_", 5);
}

/* Programs for CFS, attached to functions that have another purpose since 6.6. */
static bool is_of_cfs(const struct bpf_program *program)
{
	return !strncmp(bpf_program__name(program), "step_cfs_", 9);
}

/* Selects the programs for what is to be recorded; optional ones only if this kernel has not inlined their function. */
static void choose_programs(struct bpf_object *object, bool queue)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object) {
		const char *function = strchr(bpf_program__section_name(program), '/');
		bool wanted = function && is_of_steps(program) == queue &&
			      !(is_of_cfs(program) && kernel_is_at_least(6, 6));

		if (!bpf_program__autoload(program) && wanted)
			wanted = libbpf_find_vmlinux_btf_id(function + 1, BPF_TRACE_FENTRY) > 0;
		if (function)
			bpf_program__set_autoload(program, wanted);
	}
}

static bool has_bpf_loop(void)
{
	return kernel_is_at_least(5, 17);
}

static u32 max_cpus(void)
{
	return has_bpf_loop() ? CAPTURE_MAX_CPUS : LINUX_5_10_MAX_CPUS;
}

/* The programs for this kernel. */
static struct bpf_object *open_object(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "coreward");

	if (has_bpf_loop())
		return bpf_object__open_mem(capture_bpf_object,
					    capture_bpf_object_end - capture_bpf_object, &open_options);
	return bpf_object__open_mem(capture_linux_5_10_object,
				    capture_linux_5_10_object_end - capture_linux_5_10_object,
				    &open_options);
}

/* Sets the size of a map, if these programs have it. */
static void size_map(struct bpf_object *object, const char *name, u32 entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	if (map)
		bpf_map__set_max_entries(map, entries);
}

/* Frames of one type so far. */
static u64 frames(enum capture_type type)
{
	return recording.file->frames[recording.base + type];
}

static void put_frame(enum capture_type type, const void *payload, size_t length)
{
	capture_file_frame(recording.file, recording.base + type, payload, length);
}

/* Has so many decisions as --limit asks for. */
static bool is_full(void)
{
	u64 limit = recording.options->limit;

	return limit && frames(CAPTURE_PLACEMENT) + frames(CAPTURE_STEP) >= limit;
}

static int take_record(void *context, void *bytes, size_t size)
{
	u64 type;

	(void)context;
	memcpy(&type, bytes, sizeof(type));
	put_frame(type, (char *)bytes + sizeof(type), size - sizeof(type));
	if (is_full())
		recording.control->recording = 0;
	return 0;
}

void decisions_load(const struct decision_options *options)
{
	u32 nr_cpus = possible_cpus();
	struct bpf_object *object;
	struct capture_setup *setup;
	size_t setup_size;
	int error;

	if (!nr_cpus || nr_cpus > max_cpus())
		fail("this machine has %u CPUs; at most %u can be recorded", nr_cpus, max_cpus());
	libbpf_set_print(print_libbpf);
	object = open_object();
	if (!object)
		fail("the BPF object cannot be read: %s", strerror(errno));
	setup = (struct capture_setup *)bpf_map__initial_value(section(object, ".rodata"), &setup_size);
	if (!setup || setup_size < sizeof(*setup))
		fail("the BPF object has no place for its settings");
	setup->nr_cpus = nr_cpus;
	setup->mask_words = mask_words(nr_cpus);
	setup->interrupt_mask = interrupt_mask();
	setup->need_resched = need_resched();
	size_map(object, "drafts", 2 * nr_cpus);
	size_map(object, "steps", (options->queue ? nr_cpus : 1) * CAPTURE_STEP_KINDS);
	size_map(object, "contexts", nr_cpus);
	size_map(object, "records", options->buffer_mib << 20);
	choose_programs(object, options->queue);
	error = bpf_object__load(object);
	if (error)
		fail("this kernel does not accept the BPF programs: %s (%s); recording needs root and a kernel "
		     "that allows fentry and fexit, such as Debian's 6.12; " INSTEAD,
		     libbpf_warning, strerror(-error));
	recording.options = options;
	recording.object = object;
	recording.nr_cpus = nr_cpus;
	recording.control = map_variables(object, sizeof(*recording.control));
	recording.ring = ring_buffer__new(bpf_map__fd(bpf_object__find_map_by_name(object, "records")),
					  take_record, NULL, NULL);
	if (!recording.ring)
		fail("the ring buffer cannot be read: %s", strerror(errno));
}

static void attach(void)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, recording.object) {
		if (bpf_program__type(program) != BPF_PROG_TYPE_TRACING ||
		    !bpf_program__autoload(program))
			continue;
		if (!bpf_program__attach(program))
			fail("this kernel does not allow %s (%s); recording decisions needs one that allows "
			     "fentry and fexit, such as Debian's 6.12",
			     bpf_program__section_name(program), strerror(errno));
	}
}

/* Runs a query program of the object; returns its result. */
static int ask(const char *name, u64 first, u64 second)
{
	struct capture_question question = { .args = { first, second } };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &question, .ctx_size_in = sizeof(question));
	struct bpf_program *program = bpf_object__find_program_by_name(recording.object, name);
	int error = bpf_prog_test_run_opts(bpf_program__fd(program), &run);

	if (error)
		fail("%s: %s", name, strerror(-error));
	return run.retval;
}

static void write_host(void)
{
	char flags[1024] = "";
	char *text;
	size_t length;
	u32 bit;

	for (bit = 0; bit < 32; bit++) {
		/* the table ends where names end */
		if (ask("name_sd_flag", bit, 0) || strncmp(recording.control->name, "SD_", 3))
			break;
		snprintf(flags + strlen(flags), sizeof(flags) - strlen(flags), "%s%s", bit ? " " : "",
			 recording.control->name);
	}
	text = describe_host(recording.nr_cpus, ask("hz", 0, 0), flags, &length);
	put_frame(CAPTURE_HOST, text, length);
	free(text);
}

static void write_cpus(void)
{
	struct {
		struct capture_static_cpu cpu;
		u64 core[CAPTURE_MASK_WORDS];
	} frame;
	u32 cpu;

	for (cpu = 0; cpu < recording.nr_cpus; cpu++) {
		frame.cpu.cpu = cpu;
		frame.cpu.capacity_orig = cpu_capacity_orig(cpu);
		frame.cpu.node = cpu_node(cpu);
		frame.cpu.llc_id = ask("llc_of_cpu", cpu, 0);
		read_core(cpu, frame.core);
		put_frame(CAPTURE_CPU, &frame, sizeof(frame.cpu) + mask_words(recording.nr_cpus) * sizeof(u64));
	}
}

static void write_domains(void)
{
	u32 cpu, index;

	for (cpu = 0; cpu < recording.nr_cpus; cpu++) {
		for (index = 0; !ask("send_domain", cpu, index); index++)
			;
		ring_buffer__consume(recording.ring);
	}
}

#define SCHEDSTATS_PATH "/proc/sys/kernel/sched_schedstats"

static bool set_schedstats(char value)
{
	FILE *setting = fopen(SCHEDSTATS_PATH, "re+");
	bool was_other = setting && fgetc(setting) != value;

	if (was_other) {
		rewind(setting);
		fputc(value, setting);
	}
	if (setting)
		fclose(setting);
	return was_other;
}

static void stop_counting(void)
{
	set_schedstats('0');
}

/* Makes the kernel count the results of balancing in its domains: only there does it show that it found no queue. */
static void count_in_domains(void)
{
	if (set_schedstats('1'))
		atexit(stop_counting);
}

void decisions_begin(struct capture_file *file, u32 base)
{
	recording.file = file;
	recording.base = base;
	write_host();
	write_cpus();
	write_domains();
	attach();
	count_in_domains();
	recording.control->recording = 1;
}

void decisions_drain(void)
{
	u64 limit = recording.options->limit;

	/* of steps: what is asked for comes from two seconds at least */
	recording.control->allowance = limit ? limit * PAUSE_NS / (2 * NSEC_PER_SEC) + 1 : INT64_MAX;
	ring_buffer__consume(recording.ring);
}

void decisions_stop(void)
{
	recording.control->recording = 0;
}

void decisions_end(void)
{
	struct capture_end end;

	ring_buffer__consume(recording.ring);
	end = (struct capture_end){
		.placements = frames(CAPTURE_PLACEMENT),
		.balances = frames(CAPTURE_BALANCE),
		.queues = frames(CAPTURE_QUEUE),
		.lost = recording.control->lost,
		.steps = frames(CAPTURE_STEP),
	};
	put_frame(CAPTURE_END, &end, end.steps ? sizeof(end) : offsetof(struct capture_end, steps));
}

bool decisions_report(void)
{
	fprintf(stderr, "coreward-record: %s: %llu placements, %llu balances, %llu steps, %llu lost\n",
		recording.file->path, (unsigned long long)frames(CAPTURE_PLACEMENT),
		(unsigned long long)frames(CAPTURE_BALANCE), (unsigned long long)frames(CAPTURE_STEP),
		(unsigned long long)recording.control->lost);
	if (recording.control->domains_changed)
		fputs("coreward-record: the kernel's sched domains changed: recording of decisions ended there, and "
		      "what came before is kept\n", stderr);
	return !recording.control->domains_changed;
}

static struct capture_file file;

/* Leaves no incomplete file behind. */
static void abandon_file(void)
{
	capture_file_abandon(&file);
}

int record_decisions(const struct decision_options *options, const char *output, char **command)
{
	int status;

	decisions_load(options);
	if (!capture_file_create(&file, output, CAPTURE_MAGIC, CAPTURE_VERSION))
		fail("%s: %s", output, strerror(errno));
	atexit(abandon_file);
	decisions_begin(&file, 0);
	status = wait_for_end(command, 0, decisions_drain, decisions_stop);
	decisions_end();
	if (!capture_file_finish(&file))
		fail("%s: %s", output, strerror(file.error));
	return decisions_report() ? status : EXIT_CUT_SHORT;
}
