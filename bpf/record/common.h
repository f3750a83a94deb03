/* SPDX-License-Identifier: GPL-2.0-only */
/* What recording decisions and recording a workload have in common. */
#ifndef CW_RECORD_COMMON_H
#define CW_RECORD_COMMON_H

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

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

/* The command, once it was started. */
extern pid_t child;
void start(char **command);

#endif
