/* SPDX-License-Identifier: GPL-2.0-only */
/* What both recordings, of decisions and of workloads, need: messages, the command that is run, programs in sections. */
#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
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

void *map_variables(struct bpf_object *object, size_t size)
{
	void *variables =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(section(object, ".bss")), 0);

	if (variables == MAP_FAILED)
		fail("the BPF programs' variables cannot be mapped: %s", strerror(errno));
	return variables;
}

unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

static pid_t child;

static void pass_on(int signal)
{
	kill(child, signal);
}

static void start(char **command)
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

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

int wait_for_end(char **command, double duration, void (*drain)(void), void (*stop)(void))
{
	static const struct timespec pause = { .tv_nsec = PAUSE_NS };
	unsigned long long begin = now(), length = duration * NSEC_PER_SEC;
	bool stopped = false;
	int status = 0;

	if (*command) {
		start(command);
	} else {
		signal(SIGINT, interrupt);
		signal(SIGTERM, interrupt);
	}
	for (;;) {
		bool over = length && now() - begin >= length;

		if (over && !stopped) {
			stop();
			stopped = true;
		}
		if (*command ? waitpid(child, &status, WNOHANG) != 0 : over || interrupted)
			break;
		drain();
		nanosleep(&pause, NULL);
	}
	if (!stopped)
		stop();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
