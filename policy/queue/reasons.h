/* SPDX-License-Identifier: GPL-2.0-only */
/* The record of a decision of the queue: who preempts whom, who is picked, and why. */
#ifndef CW_QUEUE_REASONS_H
#define CW_QUEUE_REASONS_H

#include "types.h"

/* X(name, text): the text is what reports print. Append only. */
#define CW_QUEUE_REASONS(X)                                                    \
	X(NONE, "none")                                                        \
	X(PREEMPT_OFF, "no preemption: WAKEUP_PREEMPTION is off")              \
	X(PREEMPT_PENDING, "no preemption: the CPU is about to switch anyway") \
	X(PREEMPT_IDLE_CURR, "preempts: the running task is SCHED_IDLE")       \
	X(PREEMPT_IDLE, "no preemption: SCHED_IDLE")                           \
	X(PREEMPT_BATCH, "no preemption: SCHED_BATCH")                         \
	X(PREEMPT_DELAYED, "no preemption: its dequeue is delayed")            \
	X(PREEMPT_FORK, "no preemption: it is new")                            \
	X(PREEMPT_PICKED, "preempts: it would be picked")                      \
	X(PREEMPT_SHORT, "preempts: its request is shorter, and it is eligible") \
	X(PREEMPT_NOT_PICKED, "no preemption: it would not be picked")         \
	X(PREEMPT_BEHIND, "preempts: it is behind by more than the granularity") \
	X(PREEMPT_CLOSE, "no preemption: it is not behind by more than the granularity") \
	X(PREEMPT_SYNC, "preempts: its waker is about to sleep")               \
	X(PREEMPT_NO_SYNC, "no preemption: its waker is about to sleep")       \
	X(PICK_ONLY, "nothing else is queued")                                 \
	X(PICK_BUDDY, "the buddy")                                             \
	X(PICK_PROTECTED, "the running task: it is protected")                 \
	X(PICK_DEADLINE, "the earliest deadline of those that are eligible")   \
	X(PICK_CURR, "the running task: the earliest deadline")                \
	X(PICK_LEFTMOST, "the least vruntime")                                 \
	X(PICK_SECOND, "the next one: the first has yielded")

enum cw_queue_reason {
#define CW_QUEUE_REASON_ENUM(name, text) CW_QUEUE_##name,
	CW_QUEUE_REASONS(CW_QUEUE_REASON_ENUM)
#undef CW_QUEUE_REASON_ENUM
	CW_NR_QUEUE_REASONS
};

enum cw_queue_event {
	CW_QUEUE_PREEMPT, /* an entity has come to the queue: is it to run at once? */
	CW_QUEUE_PICK, /* what runs next? */
};

struct cw_queue_decision {
	u64 now;
	u32 event; /* enum cw_queue_event */
	u32 reason; /* enum cw_queue_reason */
	s32 curr; /* id of the running entity, or CW_NO_ENTITY */
	s32 id; /* id of the entity that came, or of the one that was picked */
	s32 picked; /* its index among those that wait, -1: the running one goes on */
	u32 preempts; /* CW_QUEUE_PREEMPT: 1 if it is to run at once */
};

#endif /* CW_QUEUE_REASONS_H */
