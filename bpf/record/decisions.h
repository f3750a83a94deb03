/* SPDX-License-Identifier: GPL-2.0-only */
/* Recording decisions of the fair class, alone or beside a workload in the same file. */
#ifndef CW_DECISIONS_H
#define CW_DECISIONS_H

#include <stdbool.h>

#include "file.h"

struct decision_options {
	bool queue; /* record steps, not placements and balances */
	unsigned long buffer_mib;
	unsigned long limit; /* placements or steps, 0: no limit */
};

/* Loads the programs, or says why this kernel does not accept them, and exits. */
void decisions_load(const struct decision_options *options);
/* Writes what does not change, as frames whose types begin after `base`, and begins to record. */
void decisions_begin(struct capture_file *file, uint32_t base);
/* Writes what has been recorded; to be called every PAUSE_NS. */
void decisions_drain(void);
void decisions_stop(void);
/* Writes the rest, and the end frame. */
void decisions_end(void);
/* Says what was recorded. False if recording ended before decisions_stop(). */
bool decisions_report(void);

/* Records decisions alone while the command runs. Returns the exit status. */
int record_decisions(const struct decision_options *options, const char *output, char **command);

#endif
