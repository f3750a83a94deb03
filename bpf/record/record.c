/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * coreward-record: runs a command and writes to a capture file what the kernel's fair
 * class decided while it ran, with the state that each decision was based on; or records
 * a workload (workload.c).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "common.h"
#include "file.h"
#include "host.h"
#include "require.h"
#include "workload-host.h"

extern const char capture_bpf_object[], capture_bpf_object_end[];
extern const char capture_linux_5_10_object[], capture_linux_5_10_object_end[];

struct options {
	const char *output;
	unsigned long buffer_mib;
	unsigned long limit; /* placements or steps, 0: no limit */
	bool queue; /* record steps, not placements and balances */
	bool workload; /* record what tasks do; the remaining ones are of that alone */
	bool tracepoints;
	unsigned long max_mib;
	double duration;
	bool check; /* only say whether this kernel can be recorded */
	char **command;
};

static const char usage[] =
	"usage: coreward-record [-o FILE] [--queue] [--buffer MIB] [--limit N] -- COMMAND [ARGUMENT]...\n"
	"       coreward-record --workload [-o FILE] [--duration S] [--max-size MIB] [--tracepoints] [-- COMMAND [ARGUMENT]...]\n"
	"       coreward-record --check\n"
	"\n"
	"Runs COMMAND and records where the fair class places tasks and which groups it\n"
	"balances from, with the state that each decision is made on. Needs root, and a\n"
	"kernel with BTF that allows fentry and fexit programs. Recording ends early, and\n"
	"the exit status is 3, if the kernel's sched domains change meanwhile (CPUs that go\n"
	"on or off, partitions).\n"
	"\n"
	"  -o, --output FILE  what to write (default decisions.cwc)\n"
	"  --queue            record what it does with the queue of each CPU instead:\n"
	"                     picks, preemptions, ends of turns\n"
	"  --buffer MIB       size of the ring buffer, a power of two (default 64)\n"
	"  --limit N          stop recording, not the command, after N decisions; with --queue\n"
	"                     they are spread over two seconds at least (default: none)\n"
	"  --workload         record what all tasks do instead: who runs when, who wakes whom, what\n"
	"                     they sleep on (default file workload.cwr)\n"
	"  --duration S       stop recording, not the command, after S seconds (default: none);\n"
	"                     a workload needs no command then\n"
	"  --max-size MIB     stop recording a workload when the file has this size (default 1024)\n"
	"  --tracepoints      record a workload without BPF, as the text of tracepoints\n"
	"  --check            say whether this kernel can be recorded, as far as can be told\n"
	"                     without loading programs, and exit\n";

/* What to do on a kernel that cannot be recorded. */
#define INSTEAD                                                                                  \
	"`coreward shadow` watches placements on kernels from 6.9 on that have BTF, and vm/parity " \
	"records Debian's kernels in guests"

static unsigned long parse_number(const char *name, const char *text, unsigned long least,
				  unsigned long most)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || value < least || value > most)
		fail("%s: `%s` is not a number from %lu to %lu", name, text, least, most);
	return value;
}

static double parse_seconds(const char *name, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || !(value >= 0.001 && value <= 86400))
		fail("%s: `%s` is not a number of seconds from 0.001 to 86400", name, text);
	return value;
}

static struct options parse_options(int argc, char **argv)
{
	struct options options = { .buffer_mib = 64, .max_mib = 1024 };
	static const struct option known[] = {
		{ "output", required_argument, NULL, 'o' }, { "buffer", required_argument, NULL, 'b' },
		{ "limit", required_argument, NULL, 'l' },  { "help", no_argument, NULL, 'h' },
		{ "queue", no_argument, NULL, 'q' },	    { "verbose", no_argument, NULL, 'v' },
		{ "check", no_argument, NULL, 'c' },	    { "workload", no_argument, NULL, 'w' },
		{ "duration", required_argument, NULL, 'd' }, { "max-size", required_argument, NULL, 'm' },
		{ "tracepoints", no_argument, NULL, 't' },  { 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "+o:h", known, NULL)) != -1) {
		switch (option) {
		case 'o':
			options.output = optarg;
			break;
		case 'b':
			options.buffer_mib = parse_number("--buffer", optarg, 1, 2048);
			if (options.buffer_mib & (options.buffer_mib - 1))
				fail("--buffer: %s is not a power of two", optarg);
			break;
		case 'l':
			options.limit = parse_number("--limit", optarg, 1, 1000000000);
			break;
		case 'q':
			options.queue = true;
			break;
		case 'w':
			options.workload = true;
			break;
		case 'd':
			options.duration = parse_seconds("--duration", optarg);
			break;
		case 'm':
			options.max_mib = parse_number("--max-size", optarg, 1, 1 << 20);
			break;
		case 't':
			options.tracepoints = true;
			break;
		case 'c':
			options.check = true;
			break;
		case 'v':
			quiet_libbpf = false;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(EXIT_UNUSABLE);
		}
	}
	if (optind == argc && !options.check && !options.duration)
		fail("no command given; see coreward-record --help");
	if (!options.workload && (options.duration || options.tracepoints))
		fail("--duration and --tracepoints go with --workload");
	if (!options.output)
		options.output = options.workload ? "workload.cwr" : "decisions.cwc";
	options.command = argv + optind;
	return options;
}

/* The variables that are shared with the loaded programs. */
static struct capture_control *map_control(struct bpf_object *object)
{
	void *control = mmap(NULL, sizeof(struct capture_control), PROT_READ | PROT_WRITE, MAP_SHARED,
			     bpf_map__fd(section(object, ".bss")), 0);

	if (control == MAP_FAILED)
		fail("the BPF programs' variables cannot be mapped: %s", strerror(errno));
	return control;
}

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

static struct bpf_object *load(const struct options *options, u32 nr_cpus)
{
	struct bpf_object *object;
	struct capture_setup *setup;
	size_t setup_size;
	int error;

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
	return object;
}

static void attach(struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object) {
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
static int ask(struct bpf_object *object, const char *name, u64 first, u64 second)
{
	struct capture_question question = { .args = { first, second } };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &question, .ctx_size_in = sizeof(question));
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	int error = bpf_prog_test_run_opts(bpf_program__fd(program), &run);

	if (error)
		fail("%s: %s", name, strerror(-error));
	return run.retval;
}

struct drain {
	struct capture_file *file;
	struct capture_control *control;
	unsigned long limit;
};

/* What --limit counts. */
static u64 decisions(const struct capture_file *file)
{
	return file->frames[CAPTURE_PLACEMENT] + file->frames[CAPTURE_STEP];
}

static int take_record(void *context, void *bytes, size_t size)
{
	struct drain *drain = context;
	u64 type;

	memcpy(&type, bytes, sizeof(type));
	capture_file_frame(drain->file, type, (char *)bytes + sizeof(type), size - sizeof(type));
	if (drain->limit && decisions(drain->file) >= drain->limit)
		drain->control->recording = 0;
	return 0;
}

static void write_host(struct bpf_object *object, const struct drain *drain, u32 nr_cpus)
{
	char flags[1024] = "";
	char *text;
	size_t length;
	u32 bit;

	for (bit = 0; bit < 32; bit++) {
		/* the table ends where names end */
		if (ask(object, "name_sd_flag", bit, 0) || strncmp(drain->control->name, "SD_", 3))
			break;
		snprintf(flags + strlen(flags), sizeof(flags) - strlen(flags), "%s%s", bit ? " " : "",
			 drain->control->name);
	}
	text = describe_host(nr_cpus, ask(object, "hz", 0, 0), flags, &length);
	capture_file_frame(drain->file, CAPTURE_HOST, text, length);
	free(text);
}

static void write_cpus(struct bpf_object *object, struct capture_file *file, u32 nr_cpus)
{
	struct {
		struct capture_static_cpu cpu;
		u64 core[CAPTURE_MASK_WORDS];
	} frame;
	u32 cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		frame.cpu.cpu = cpu;
		frame.cpu.capacity_orig = cpu_capacity_orig(cpu);
		frame.cpu.node = cpu_node(cpu);
		frame.cpu.llc_id = ask(object, "llc_of_cpu", cpu, 0);
		read_core(cpu, frame.core);
		capture_file_frame(file, CAPTURE_CPU, &frame,
				   sizeof(frame.cpu) + mask_words(nr_cpus) * sizeof(u64));
	}
}

static void write_domains(struct bpf_object *object, struct ring_buffer *ring, u32 nr_cpus)
{
	u32 cpu, index;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		for (index = 0; !ask(object, "send_domain", cpu, index); index++)
			;
		ring_buffer__consume(ring);
	}
}

/* Runs the command while draining the records; returns its wait status. */
static int run(char **command, struct ring_buffer *ring, const struct drain *drain)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };
	int status;

	start(command);
	while (!waitpid(child, &status, WNOHANG)) {
		drain->control->allowance = drain->limit ? drain->limit / 200 + 1 : INT64_MAX;
		ring_buffer__consume(ring);
		nanosleep(&pause, NULL);
	}
	return status;
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

static struct capture_file file;

static void write_end(u64 lost)
{
	struct capture_end end = {
		.placements = file.frames[CAPTURE_PLACEMENT],
		.balances = file.frames[CAPTURE_BALANCE],
		.queues = file.frames[CAPTURE_QUEUE],
		.lost = lost,
		.steps = file.frames[CAPTURE_STEP],
	};

	capture_file_frame(&file, CAPTURE_END, &end, end.steps ? sizeof(end) : offsetof(struct capture_end, steps));
}

/* Leaves no incomplete file behind. */
static void abandon_file(void)
{
	capture_file_abandon(&file);
}

int main(int argc, char **argv)
{
	struct options options = parse_options(argc, argv);
	u32 nr_cpus = possible_cpus();
	struct bpf_object *object;
	struct ring_buffer *ring;
	struct drain drain;
	const char *missing;
	u64 lost;
	int status;

	if (options.workload)
		return record_workload(&(struct work_options){
			.output = options.output,
			.buffer_mib = options.buffer_mib,
			.max_mib = options.max_mib,
			.duration = options.duration,
			.tracepoints = options.tracepoints,
			.command = options.command,
		});
	missing = missing_requirement(KERNEL_BTF, KALLSYMS);
	if (missing)
		fail("this kernel cannot be recorded: %s; " INSTEAD, missing);
	if (options.check)
		return 0;
	if (!nr_cpus || nr_cpus > max_cpus())
		fail("this machine has %u CPUs; at most %u can be recorded", nr_cpus, max_cpus());
	object = load(&options, nr_cpus);
	if (!capture_file_create(&file, options.output, CAPTURE_MAGIC, CAPTURE_VERSION))
		fail("%s: %s", options.output, strerror(errno));
	atexit(abandon_file);
	drain = (struct drain){
		.file = &file,
		.control = map_control(object),
		.limit = options.limit,
	};
	ring = ring_buffer__new(bpf_map__fd(bpf_object__find_map_by_name(object, "records")),
				take_record, &drain, NULL);
	if (!ring)
		fail("the ring buffer cannot be read: %s", strerror(errno));
	write_host(object, &drain, nr_cpus);
	write_cpus(object, &file, nr_cpus);
	write_domains(object, ring, nr_cpus);
	attach(object);
	count_in_domains();
	drain.control->recording = 1;
	status = run(options.command, ring, &drain);
	drain.control->recording = 0;
	ring_buffer__consume(ring);
	lost = drain.control->lost;
	write_end(lost);
	if (!capture_file_finish(&file))
		fail("%s: %s", options.output, strerror(file.error));
	fprintf(stderr, "coreward-record: %s: %llu placements, %llu balances, %llu steps, %llu lost\n",
		options.output, (unsigned long long)file.frames[CAPTURE_PLACEMENT],
		(unsigned long long)file.frames[CAPTURE_BALANCE],
		(unsigned long long)file.frames[CAPTURE_STEP], (unsigned long long)lost);
	if (drain.control->domains_changed) {
		fputs("coreward-record: the kernel's sched domains changed: recording ended there, and what came "
		      "before is kept\n", stderr);
		return EXIT_CUT_SHORT;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
