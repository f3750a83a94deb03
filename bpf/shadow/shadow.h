/* SPDX-License-Identifier: GPL-2.0-only */
/* The data that the programs of shadow.bpf.c share with user space. */
#ifndef SHADOW_H
#define SHADOW_H

#include "topology.h"

enum shadow_kind { SHADOW_WAKEUP, SHADOW_FORK, SHADOW_EXEC, SHADOW_NR_KINDS };

/* What commands are told apart by. */
enum shadow_by { SHADOW_BY_NONE, SHADOW_BY_COMM, SHADOW_BY_CGROUP };

/* At least CW_NR_REASONS. */
#define SHADOW_MAX_REASONS 32

/* The number of multi-threaded processes that CACHE_AWARE_WAKEUP follows at once, 16 KiB each. */
#define SHADOW_MAX_PROCESSES 1024

/* Functions of the kernel that wake with WF_SYNC. */
#define SHADOW_MAX_SYNC 4

struct shadow_range {
	u64 start;
	u64 size;
};

struct shadow_setup {
	u32 by; /* enum shadow_by */
	u32 nr_sync;
	struct shadow_range sync[SHADOW_MAX_SYNC]; /* their addresses */
};

/* What the kernel and the policy decided, for one kind of placement. */
struct shadow_counts {
	u64 decisions;
	u64 elsewhere; /* of these, the policy chose another CPU */
	u64 kernel[CW_NR_DISTANCES]; /* how far the kernel moved the task */
	u64 policy[CW_NR_DISTANCES]; /* how far the policy would have */
	u64 avoided[CW_NR_DISTANCES]; /* the kernel's moves where the policy's move has another distance */
	u64 added[CW_NR_DISTANCES]; /* likewise, moves of the policy */
};

/* How far the tracked state differs from the kernel's, for the CPUs that decisions were about. */
struct shadow_drift {
	u64 samples;
	u64 idle; /* one considered the CPU idle, the other did not */
	u64 nr_running; /* they counted different numbers of tasks */
	u64 nr_running_sum; /* by so many, together */
	u64 util_sum; /* the sum of the differences of their utilisations */
};

/* One CPU's. */
struct shadow_totals {
	struct shadow_counts kind[SHADOW_NR_KINDS];
	u64 unplaced; /* wakeups that the kernel places nowhere: still queued, or bound to a CPU */
	u64 lost; /* no memory for a task, or it was in use */
	u64 decided; /* calls of the policy */
	u64 ns; /* that these took together */
	u64 sync; /* wakeups with WF_SYNC */
	u64 preferred_llc; /* wakeups that searched the LLC that the process prefers */
	struct {
		u64 decisions;
		u64 elsewhere;
	} reason[SHADOW_MAX_REASONS]; /* the policy's */
	struct shadow_drift drift;
};

/* A command, or a cgroup id. */
struct shadow_key {
	union {
		char comm[16];
		u64 cgroup;
	};
};

/* The counters of one command or cgroup, over all kinds of placement. */
struct shadow_share {
	u64 decisions;
	u64 elsewhere;
	u64 avoided[CW_NR_DISTANCES];
	u64 added[CW_NR_DISTANCES];
};

#endif /* SHADOW_H */
