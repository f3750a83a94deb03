/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recording a workload: what the BPF programs pass to the recorder, and the numbers that
 * the file has in common with it. docs/recording.md describes the file.
 */
#ifndef CW_WORKLOAD_H
#define CW_WORKLOAD_H

#include "capture.h"

#ifdef __bpf__
typedef unsigned char u8;
typedef unsigned short u16;
typedef short s16;
#else
typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t s16;
#endif

#define WORK_MAGIC 0x64726f6365727763ULL /* "cwrecord" */
#define WORK_VERSION 4

enum work_frame {
	WORK_HOST = 1,
	WORK_EVENTS = 2,
	WORK_END = 3,
	WORK_DECISIONS = 16, /* frames of decisions follow: this and their enum capture_type */
};

enum work_kind {
	WORK_SWITCH = 1,
	WORK_WAKING = 2,
	WORK_WAKEUP_NEW = 3,
	WORK_FORK = 4,
	WORK_EXIT = 5,
	WORK_EXEC = 6,
	WORK_NAME = 7,
	WORK_MIGRATE = 8,
	WORK_ALLOWED = 9,
	WORK_ENTER = 10,
	WORK_LEAVE = 11,
	WORK_LOST = 12,
	WORK_TASK = 13, /* it was there before */
	WORK_GROUP = 14, /* a task is in a task group */
	WORK_NEW_GROUP = 15, /* what that one is; before its first task */
	WORK_ARRIVED = 16, /* data at a socket that had none */
	WORK_RECEIVED = 17, /* all data of a socket */
};

enum work_leaving { WORK_RUNNABLE, WORK_BLOCKED, WORK_DEAD };
#define WORK_CYCLES 4 /* in the file, beside enum work_leaving: how many cycles follows */

enum work_handler { WORK_TIMER, WORK_NETWORK, WORK_BLOCK, WORK_OTHER };

/* What a task sleeps on. */
enum work_wait {
	WORK_WAIT_OTHER,
	WORK_WAIT_FUTEX,
	WORK_WAIT_PIPE_DATA,
	WORK_WAIT_PIPE_SPACE,
	WORK_WAIT_SOCKET,
	WORK_WAIT_EPOLL,
	WORK_WAIT_ANONYMOUS,
	WORK_WAIT_POLL,
	WORK_WAIT_CHILD,
	WORK_WAIT_TIME,
	/* not in the file: which of these it is depends on the file that the call names */
	WORK_WAIT_READ,
	WORK_WAIT_WRITE,
};

/* One event; WORK_SWITCH, WORK_NAME, WORK_ALLOWED and WORK_GROUP have more behind it. */
struct work_event {
	u64 at; /* CLOCK_MONOTONIC, ns */
	u32 pid; /* the current task, or, of what a packet on its way does, its sender */
	u32 other; /* next, woken, child, moved, named, allowed or grouped task; the handler */
	u32 id; /* of what the task sleeps on, or a socket; process of a child; task group, 0 for the root one */
	s16 prio; /* of the next, woken or new task */
	u16 cpu;
	u8 kind; /* enum work_kind */
	u8 detail; /* enum work_leaving; 1 if it is in an interrupt */
	u8 wait; /* enum work_wait */
	u8 pad[5];
};

struct work_switch {
	struct work_event event;
	u64 cycles; /* of the CPU since its last switch; 0 if it is not known, or if it was idle */
};

struct work_name {
	struct work_event event;
	char comm[16];
};

struct work_allowed {
	struct work_event event;
	u64 cpus[CAPTURE_MASK_WORDS];
};

/* Names of a group and of those that it is in, the innermost first; none of the root group. */
#define WORK_GROUP_LEVELS 4
#define WORK_GROUP_NAME 64

struct work_group {
	struct work_event event;
	u64 shares; /* tg->shares: 1024 << 10 for a weight of 100 */
	u64 quota; /* ns in each period; (u64)-1 for no limit */
	u64 period; /* ns */
	u64 autogroup; /* number of the session's group, which has no name; 0 if it is none */
	char names[WORK_GROUP_LEVELS][WORK_GROUP_NAME];
};

/* System calls have lower numbers. */
#define WORK_SYSCALLS 512

/* Set before loading. */
struct work_setup {
	u32 mask_words;
	u32 counts; /* 1: cycles are counted */
	u64 online[CAPTURE_MASK_WORDS];
	u8 waits[WORK_SYSCALLS]; /* enum work_wait of each system call */
};

struct work_control {
	u64 recording; /* 1 while events are recorded */
	u64 lost;
};

#endif
