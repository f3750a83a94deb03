/* SPDX-License-Identifier: GPL-2.0-only */
/* Recording a workload, in user space. */
#ifndef CW_WORKLOAD_HOST_H
#define CW_WORKLOAD_HOST_H

#include <stdbool.h>

struct work_options {
	const char *output;
	unsigned long buffer_mib;
	unsigned long max_mib; /* of the file */
	double duration; /* s; 0: until the command ends */
	bool tracepoints; /* without BPF */
	char **command; /* none if it is empty */
};

/* Both return the exit status. */
int record_workload(const struct work_options *options);
int record_tracepoints(const struct work_options *options);

/*
 * Starts the command, if there is one, and calls drain() now and then until recording is over, at
 * which it calls stop() once. Returns when the command has ended, its exit status.
 */
int wait_for_end(const struct work_options *options, void (*drain)(void), void (*stop)(void));

#endif
