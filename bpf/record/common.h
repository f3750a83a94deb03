/* SPDX-License-Identifier: GPL-2.0-only */
/* What recording decisions and recording a workload have in common. */
#ifndef CW_RECORD_COMMON_H
#define CW_RECORD_COMMON_H

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define NSEC_PER_SEC 1000000000ULL
/* How often ring buffers are looked at. */
#define PAUSE_NS 20000000

/*
 * The exit status, as with `env` and `timeout`: 127 if the command does not exist, 2 if
 * recording failed, 3 if the file ends before the command did.
 */
enum { EXIT_UNUSABLE = 2, EXIT_CUT_SHORT = 3, EXIT_NOT_FOUND = 127 };

/* Says what is wrong, and exits. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

extern bool quiet_libbpf;
/* The last warning that says what is wrong, without the end of its line. */
extern char libbpf_warning[256];
int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments);

/* The map behind a section of global variables. */
struct bpf_map *section(struct bpf_object *object, const char *suffix);
/* The variables that the loaded programs write. */
void *map_variables(struct bpf_object *object, size_t size);

/* CLOCK_MONOTONIC, ns. */
unsigned long long now(void);

/*
 * Starts the command, if there is one, and calls drain() now and then until recording is over, at
 * which it calls stop() once: after `duration` seconds, if it is not 0, or when the command has
 * ended. Returns when the command has ended, its exit status.
 */
int wait_for_end(char **command, double duration, void (*drain)(void), void (*stop)(void));

#endif
