/* SPDX-License-Identifier: GPL-2.0-only */
/* Buddies: entities that the next pick prefers or passes over. */
#ifndef CW_BUDDIES_H
#define CW_BUDDIES_H

#include "queue/entity.h"

/* Neither prefers the entity any more nor passes it over. */
static inline void clear_buddies(struct cw_fair_rq *cfs_rq, s32 id)
{
	if (cfs_rq->next == id)
		cfs_rq->next = CW_NO_ENTITY;
	if (cfs_rq->last == id)
		cfs_rq->last = CW_NO_ENTITY;
	if (cfs_rq->skip == id)
		cfs_rq->skip = CW_NO_ENTITY;
}

/* Prefers an entity, unless it is of the idle class. */
static inline void set_next_buddy(struct cw_fair_rq *cfs_rq, const struct cw_entity *se)
{
	if (se->flags & CW_SE_IDLE)
		return;
	cfs_rq->next = se->id;
	cfs_rq->next_deadline = se->deadline;
	cfs_rq->next_slice = se->slice;
}

#endif /* CW_BUDDIES_H */
