/* SPDX-License-Identifier: GPL-2.0-only */
/* What both recordings, of decisions and of workloads, need: messages, the command that is run, programs in sections. */
#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool quiet_libbpf = true;
char libbpf_warning[256];

void fail(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fputs("coreward-record: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(EXIT_UNUSABLE);
}

int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	char line[sizeof(libbpf_warning)];
	va_list copy;

	va_copy(copy, arguments);
	vsnprintf(line, sizeof(line), format, copy);
	va_end(copy);
	/* the last warning of all says only that loading failed */
	if (level == LIBBPF_WARN && !strstr(line, "failed to load object"))
		snprintf(libbpf_warning, sizeof(libbpf_warning), "%.*s", (int)strcspn(line, "\n"), line);
	return quiet_libbpf || level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, arguments);
}

struct bpf_map *section(struct bpf_object *object, const char *suffix)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		const char *dot = strchr(bpf_map__name(map), '.');

		if (dot && !strcmp(dot, suffix))
			return map;
	}
	fail("the BPF object has no section %s", suffix);
}

pid_t child;

static void pass_on(int signal)
{
	kill(child, signal);
}

void start(char **command)
{
	child = fork();
	if (child < 0)
		fail("cannot start a process: %s", strerror(errno));
	if (child) {
		/* the command decides what an interrupt means; what was recorded until then is kept */
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, pass_on);
		return;
	}
	execvp(command[0], command);
	fprintf(stderr, "coreward-record: %s: %s\n", command[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}
