/* SPDX-License-Identifier: GPL-2.0-only */
/* Recording a workload, in user space. */
#ifndef CW_WORKLOAD_HOST_H
#define CW_WORKLOAD_HOST_H

#include <stdbool.h>

#include "decisions.h"

struct work_options {
	const char *output;
	unsigned long buffer_mib;
	unsigned long max_mib; /* of the file */
	double duration; /* s; 0: until the command ends */
	bool tracepoints; /* without BPF */
	const struct decision_options *decisions; /* recorded in the same file; NULL: none are */
	char **command; /* none if it is empty */
};

/* Both return the exit status. */
int record_workload(const struct work_options *options);
int record_tracepoints(const struct work_options *options);

#endif
