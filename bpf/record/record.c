/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * coreward-record: runs a command and records what the kernel's fair class decided while it ran
 * (decisions.c), what tasks did (workload.c), or both.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "decisions.h"
#include "require.h"
#include "workload-host.h"

struct options {
	const char *output;
	unsigned long buffer_mib;
	unsigned long limit; /* placements or steps, 0: no limit */
	bool decisions; /* beside a workload */
	bool queue; /* record steps, not placements and balances */
	bool workload; /* record what tasks do */
	bool tracepoints;
	unsigned long max_mib;
	double duration;
	bool check; /* only say whether this kernel can be recorded */
	char **command;
};

static const char usage[] =
	"usage: coreward-record [-o FILE] [--queue] [--buffer MIB] [--limit N] -- COMMAND [ARGUMENT]...\n"
	"       coreward-record --workload [--decisions | --queue] [-o FILE] [--duration S] [--max-size MIB]\n"
	"                       [--tracepoints] [-- COMMAND [ARGUMENT]...]\n"
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
	"  --workload         record what all tasks do: who runs when, who wakes whom, what\n"
	"                     they sleep on (default file workload.cwr)\n"
	"  --decisions        with --workload: record placements and balances, too; --queue does so\n"
	"                     with steps\n"
	"  --duration S       stop recording, not the command, after S seconds (default: none);\n"
	"                     a workload needs no command then\n"
	"  --max-size MIB     stop recording a workload when the file has this size (default 1024)\n"
	"  --tracepoints      record a workload without BPF, as the text of tracepoints\n"
	"  --check            say whether this kernel can be recorded, as far as can be told\n"
	"                     without loading programs, and exit\n";

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
		{ "tracepoints", no_argument, NULL, 't' }, { "decisions", no_argument, NULL, 'D' },
		{ 0 },
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
		case 'D':
			options.decisions = true;
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
	if (options.decisions && options.queue)
		fail("--decisions and --queue exclude each other");
	if (!options.workload && !options.queue)
		options.decisions = true;
	if (options.limit && !options.decisions && !options.queue)
		fail("--limit counts decisions, and none are recorded without --decisions or --queue");
	if (options.tracepoints && (options.decisions || options.queue))
		fail("--tracepoints: decisions are recorded with BPF only");
	if (!options.output)
		options.output = options.workload ? "workload.cwr" : "decisions.cwc";
	options.command = argv + optind;
	return options;
}

int main(int argc, char **argv)
{
	struct options options = parse_options(argc, argv);
	struct decision_options decisions = {
		.queue = options.queue,
		.buffer_mib = options.buffer_mib,
		.limit = options.limit,
	};
	bool decides = options.decisions || options.queue || options.check;
	const char *missing = decides ? missing_requirement(KERNEL_BTF, KALLSYMS) : NULL;

	if (missing)
		fail("decisions of this kernel cannot be recorded: %s; " INSTEAD, missing);
	if (options.check)
		return 0;
	if (!options.workload)
		return record_decisions(&decisions, options.output, options.command);
	return record_workload(&(struct work_options){
		.output = options.output,
		.buffer_mib = options.buffer_mib,
		.max_mib = options.max_mib,
		.duration = options.duration,
		.tracepoints = options.tracepoints,
		.decisions = decides ? &decisions : NULL,
		.command = options.command,
	});
}
