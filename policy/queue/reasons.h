/* SPDX-License-Identifier: GPL-2.0-only */
/* The record of a queue decision: whether an entity preempts, which one is picked, and why. */
#ifndef CW_QUEUE_REASONS_H
#define CW_QUEUE_REASONS_H

#include "types.h"

enum cw_queue_reason {
#define QUEUE_REASON(name, text) CW_QUEUE_##name,
#include "queue/reasons.def"
#undef QUEUE_REASON
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
	s32 picked; /* its index among the waiting entities; -1: the running one continues */
	u32 preempts; /* CW_QUEUE_PREEMPT: 1 if it is to run at once */
};

#endif /* CW_QUEUE_REASONS_H */
