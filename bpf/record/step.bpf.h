/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what the fair class does with a CPU's queue. Each pair of programs belongs to
 * one function of the kernel, and reads the queue and the entity before and after it.
 * All programs run under the queue's lock with interrupts off, so only that function
 * changes anything in between.
 */
#ifndef CAPTURE_STEP_BPF_H
#define CAPTURE_STEP_BPF_H

#include "record/fair.h"

/* Moves from node to node for a walk over CAPTURE_MAX_WAITING of them; almost always enough. */
#define MAX_MOVES 240
#define MAX_DEPTH 8

typedef const struct cfs_rq___fair *cfs_rq_ptr;
typedef const struct sched_entity___fair *se_ptr;

/* A walk over the tree of waiting entities, in order. */
struct tree_walk {
	const struct rb_node *node;
	enum { WALK_DOWN, WALK_HERE, WALK_UP, WALK_DONE } move;
};

/* A step of which the function has not returned yet. */
struct step_draft {
	u64 cfs_rq;
	u64 se;
	u64 curr; /* what ran before it */
	u64 asked; /* the counts below, before it */
	u64 asked_lazy;
	u64 charged;
	struct tree_walk walk;
	u64 type;
	struct capture_step step;
	struct capture_waiting waiting[CAPTURE_MAX_WAITING];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CAPTURE_STEP_KINDS);
	__type(key, u32);
	__type(value, struct step_draft);
} steps SEC(".maps");

/* What a CPU is in the middle of. */
struct step_context {
	u64 asked; /* how often it was asked to switch */
	u64 asked_lazy;
	u64 charged; /* how many of these by update_curr() */
	u64 in_charge;
	u64 in_tick;
	u64 in_server;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct step_context);
} contexts SEC(".maps");

static struct step_context *step_context(void)
{
	u32 key = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&contexts, &key);
}

static struct step_draft *step_draft(u32 kind)
{
	u32 key = bpf_get_smp_processor_id() * CAPTURE_STEP_KINDS + kind;

	return bpf_map_lookup_elem(&steps, &key);
}

/* Since 7.3, tasks of groups are in the CPU's own queue. */
static __always_inline bool queue_is_flat(void)
{
	return bpf_core_field_exists(((cfs_rq_ptr)0)->h_curr);
}

/* Until 6.5. */
static __always_inline bool queue_is_cfs(void)
{
	return !bpf_core_field_exists(((se_ptr)0)->deadline);
}

static __always_inline cfs_rq_ptr root_queue(const struct rq___fair *rq)
{
	return (const void *)rq + bpf_core_field_offset(rq->cfs);
}

static __always_inline se_ptr entity_of_task(const struct task_struct___fair *p)
{
	return (const void *)p + bpf_core_field_offset(p->se);
}

static __always_inline const struct task_struct___fair *task_of_entity(se_ptr se)
{
	return (const void *)se - bpf_core_field_offset(struct task_struct___fair, se);
}

static __always_inline cfs_rq_ptr queue_of_entity(se_ptr se)
{
	cfs_rq_ptr cfs_rq = BPF_CORE_READ(se, cfs_rq);

	return queue_is_flat() ? root_queue(BPF_CORE_READ(cfs_rq, rq)) : cfs_rq;
}

static s32 group_id(cfs_rq_ptr cfs_rq)
{
	const struct task_group *tg = BPF_CORE_READ(cfs_rq, tg);
	s32 id = BPF_CORE_READ(tg, css.id);

	if (id || !bpf_core_field_exists(tg->autogroup))
		return -2 * id;
	return -2 * (s32)BPF_CORE_READ(tg, autogroup, id) - 1;
}

static s32 entity_id(se_ptr se)
{
	cfs_rq_ptr group = se ? BPF_CORE_READ(se, my_q) : NULL;

	if (!se)
		return 0;
	return group ? group_id(group) : BPF_CORE_READ(task_of_entity(se), pid);
}

static u32 policy_flags(u32 policy)
{
	return (policy == SCHED_IDLE ? CAPTURE_ENTITY_IDLE : 0) |
	       (policy == SCHED_BATCH ? CAPTURE_ENTITY_BATCH : 0);
}

static u32 entity_flags(se_ptr se)
{
	cfs_rq_ptr group = BPF_CORE_READ(se, my_q);
	u32 flags = BPF_CORE_READ(se, on_rq) ? CAPTURE_ENTITY_ON_RQ : 0;

	if (bpf_core_field_exists(se->sched_delayed) && BPF_CORE_READ(se, sched_delayed))
		flags |= CAPTURE_ENTITY_DELAYED;
	if (bpf_core_field_exists(se->rel_deadline) && BPF_CORE_READ(se, rel_deadline))
		flags |= CAPTURE_ENTITY_REL_DEADLINE;
	if (bpf_core_field_exists(se->custom_slice) && BPF_CORE_READ(se, custom_slice))
		flags |= CAPTURE_ENTITY_CUSTOM_SLICE;
	if (!group)
		return flags | policy_flags(BPF_CORE_READ(task_of_entity(se), policy));
	if (bpf_core_field_exists(group->idle) && BPF_CORE_READ(group, idle))
		flags |= CAPTURE_ENTITY_IDLE;
	return flags | CAPTURE_ENTITY_GROUP;
}

static u64 entity_weight(se_ptr se)
{
	return bpf_core_field_exists(se->h_load) ? BPF_CORE_READ(se, h_load.weight) :
						   BPF_CORE_READ(se, load.weight);
}

static void read_entity(se_ptr se, struct capture_entity *out)
{
	__builtin_memset(out, 0, sizeof(*out));
	if (!se)
		return;
	out->id = entity_id(se);
	out->flags = entity_flags(se);
	out->vruntime = BPF_CORE_READ(se, vruntime);
	if (bpf_core_field_exists(se->deadline)) {
		out->deadline = BPF_CORE_READ(se, deadline);
		out->vlag = BPF_CORE_READ(se, vlag);
		out->slice = BPF_CORE_READ(se, slice);
	}
	if (bpf_core_field_exists(se->vprot))
		out->vprot = BPF_CORE_READ(se, vprot);
	out->exec_start = BPF_CORE_READ(se, exec_start);
	out->sum_exec_runtime = BPF_CORE_READ(se, sum_exec_runtime);
	out->prev_sum_exec_runtime = BPF_CORE_READ(se, prev_sum_exec_runtime);
	out->weight = entity_weight(se);
	out->load = BPF_CORE_READ(se, load.weight);
	out->inv_weight = bpf_core_field_exists(se->h_load) ? BPF_CORE_READ(se, h_load.inv_weight) :
							      BPF_CORE_READ(se, load.inv_weight);
	out->depth = BPF_CORE_READ(se, depth);
}

static __always_inline se_ptr entity_of_node(const struct rb_node *node)
{
	return (const void *)node - bpf_core_field_offset(struct sched_entity___fair, run_node);
}

static s64 leftmost_vruntime(cfs_rq_ptr cfs_rq)
{
	const struct rb_node *node = BPF_CORE_READ(cfs_rq, tasks_timeline.rb_leftmost);

	return node ? BPF_CORE_READ(entity_of_node(node), vruntime) : 0;
}

static s64 zero_vruntime(cfs_rq_ptr cfs_rq)
{
	if (queue_is_cfs())
		return leftmost_vruntime(cfs_rq);
	return bpf_core_field_exists(cfs_rq->zero_vruntime) ? BPF_CORE_READ(cfs_rq, zero_vruntime) :
							      BPF_CORE_READ(cfs_rq, min_vruntime);
}

static void read_sums(cfs_rq_ptr cfs_rq, struct capture_fair_rq *out)
{
	if (bpf_core_field_exists(cfs_rq->sum_w_vruntime)) {
		out->sum_w_vruntime = BPF_CORE_READ(cfs_rq, sum_w_vruntime);
		out->sum_weight = BPF_CORE_READ(cfs_rq, sum_weight);
	} else if (bpf_core_field_exists(cfs_rq->avg_vruntime)) {
		out->sum_w_vruntime = BPF_CORE_READ(cfs_rq, avg_vruntime);
		out->sum_weight = BPF_CORE_READ(cfs_rq, avg_load);
	}
	if (bpf_core_field_exists(cfs_rq->sum_shift))
		out->sum_shift = BPF_CORE_READ(cfs_rq, sum_shift);
	if (bpf_core_field_exists(cfs_rq->min_vruntime))
		out->min_vruntime = BPF_CORE_READ(cfs_rq, min_vruntime);
	out->zero_vruntime = zero_vruntime(cfs_rq);
}

static void read_slices(cfs_rq_ptr cfs_rq, struct capture_fair_rq *out)
{
	const struct rb_node *root = BPF_CORE_READ(cfs_rq, tasks_timeline.rb_root.rb_node);
	se_ptr se = entity_of_node(root);

	if (root && bpf_core_field_exists(se->min_slice))
		out->min_slice = BPF_CORE_READ(se, min_slice);
	if (root && bpf_core_field_exists(se->max_slice))
		out->max_slice = BPF_CORE_READ(se, max_slice);
}

static void read_queue(cfs_rq_ptr cfs_rq, struct capture_fair_rq *out)
{
	__builtin_memset(out, 0, sizeof(*out));
	out->nr_queued = bpf_core_field_exists(cfs_rq->nr_queued) ? BPF_CORE_READ(cfs_rq, nr_queued) :
								    BPF_CORE_READ(cfs_rq, nr_running);
	out->h_nr_queued = bpf_core_field_exists(cfs_rq->h_nr_queued) ?
				   BPF_CORE_READ(cfs_rq, h_nr_queued) :
				   BPF_CORE_READ(cfs_rq, h_nr_running);
	if (bpf_core_field_exists(cfs_rq->h_nr_runnable))
		out->h_nr_runnable = BPF_CORE_READ(cfs_rq, h_nr_runnable);
	read_sums(cfs_rq, out);
	read_slices(cfs_rq, out);
	out->load = BPF_CORE_READ(cfs_rq, load.weight);
	out->curr = entity_id(BPF_CORE_READ(cfs_rq, curr));
	out->next = entity_id(BPF_CORE_READ(cfs_rq, next));
	if (bpf_core_field_exists(cfs_rq->last))
		out->last = entity_id(BPF_CORE_READ(cfs_rq, last));
	if (bpf_core_field_exists(cfs_rq->skip))
		out->skip = entity_id(BPF_CORE_READ(cfs_rq, skip));
}

static void read_waiting(const struct rb_node *node, struct step_draft *draft)
{
	u32 i = draft->step.nr_waiting;
	se_ptr se = entity_of_node(node);
	struct capture_waiting *out;

	if (i >= CAPTURE_MAX_WAITING)
		return;
	out = &draft->waiting[i];
	out->id = entity_id(se);
	out->flags = entity_flags(se);
	out->vruntime = BPF_CORE_READ(se, vruntime);
	out->deadline = bpf_core_field_exists(se->deadline) ? BPF_CORE_READ(se, deadline) : 0;
	out->slice = bpf_core_field_exists(se->slice) ? BPF_CORE_READ(se, slice) : 0;
	out->weight = entity_weight(se);
	draft->step.nr_waiting = i + 1;
}

/*
 * One move; the next entity is at most as many moves away as the tree is deep. The state of the walk is in the
 * draft, not on the stack: verifiers from 5.17 to 6.6 follow one call only, believe that the stack can hold nothing
 * else than what this call leaves there, and drop the code for other cases.
 */
static long walk_tree(u32 i, struct step_draft **slot)
{
	struct step_draft *draft = *slot;
	struct tree_walk *walk = &draft->walk;
	const struct rb_node *node = walk->node, *next;

	if (walk->move == WALK_DOWN) {
		next = BPF_CORE_READ(node, rb_left);
		walk->move = next ? WALK_DOWN : WALK_HERE;
		walk->node = next ? next : node;
	} else if (walk->move == WALK_HERE) {
		if (draft->step.nr_waiting >= CAPTURE_MAX_WAITING)
			return 1;
		read_waiting(node, draft);
		next = BPF_CORE_READ(node, rb_right);
		walk->move = next ? WALK_DOWN : WALK_UP;
		walk->node = next ? next : node;
	} else {
		next = (const void *)(BPF_CORE_READ(node, __rb_parent_color) & ~3UL);
		if (!next) {
			walk->move = WALK_DONE;
			return 1;
		}
		walk->move = BPF_CORE_READ(next, rb_right) == node ? WALK_UP : WALK_HERE;
		walk->node = next;
	}
	return 0;
}

static void read_all_waiting(cfs_rq_ptr cfs_rq, struct step_draft *draft)
{
	draft->walk.node = BPF_CORE_READ(cfs_rq, tasks_timeline.rb_leftmost);
	draft->walk.move = WALK_HERE;
	if (!draft->walk.node)
		return;
	repeat(MAX_MOVES, walk_tree, &draft);
	if (draft->walk.move != WALK_DONE)
		draft->step.flags |= CAPTURE_STEP_CUT;
}

/* Begins a step on a queue; `se` may be NULL. Returns NULL if the step is not recorded. */
static struct step_draft *begin_step(u32 kind, cfs_rq_ptr cfs_rq, se_ptr se, u32 argument)
{
	struct step_draft *draft = step_draft(kind);
	struct step_context *context = step_context();
	const struct rq___fair *rq = BPF_CORE_READ(cfs_rq, rq);
	se_ptr curr = BPF_CORE_READ(cfs_rq, curr);

	if (!draft || !context)
		return NULL;
	draft->cfs_rq = 0;
	/* requeues are so rare that each is recorded */
	if (!control.recording || (control.allowance <= 0 && kind != CAPTURE_STEP_REQUEUE))
		return NULL;
	__builtin_memset(&draft->step, 0, sizeof(draft->step));
	draft->cfs_rq = (u64)cfs_rq;
	draft->se = (u64)se;
	draft->curr = (u64)curr;
	draft->asked = context->asked;
	draft->asked_lazy = context->asked_lazy;
	draft->charged = context->charged;
	draft->step.kind = kind;
	draft->step.cpu = BPF_CORE_READ(rq, cpu);
	draft->step.argument = argument;
	if (BPF_CORE_READ(rq, curr, thread_info.flags) & setup.need_resched)
		draft->step.flags |= CAPTURE_STEP_NEED_RESCHED;
	read_queue(cfs_rq, &draft->step.before);
	read_entity(curr, &draft->step.curr_before);
	read_entity(se, &draft->step.se_before);
	return draft;
}

static void send_step(struct step_draft *draft)
{
	u32 nr_waiting = draft->step.nr_waiting;

	draft->type = CAPTURE_STEP;
	draft->cfs_rq = 0;
	if (nr_waiting > CAPTURE_MAX_WAITING)
		return;
	__sync_fetch_and_add(&control.allowance, -1);
	if (bpf_ringbuf_output(&records, &draft->type,
			       sizeof(u64) + sizeof(struct capture_step) +
				       nr_waiting * sizeof(struct capture_waiting),
			       BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&control.lost, 1);
}

/* Ends the current step, if any. `curr` stays the same, although another entity may run afterwards. */
static void end_step(u32 kind, s32 result)
{
	struct step_draft *draft = step_draft(kind);
	struct step_context *context = step_context();
	cfs_rq_ptr cfs_rq;

	if (!draft || !context || !draft->cfs_rq)
		return;
	cfs_rq = (cfs_rq_ptr)draft->cfs_rq;
	draft->step.now = BPF_CORE_READ(cfs_rq, rq, clock_task);
	draft->step.result = result;
	if (context->asked != draft->asked)
		draft->step.flags |= CAPTURE_STEP_RESCHED;
	if (context->asked_lazy != draft->asked_lazy)
		draft->step.flags |= CAPTURE_STEP_RESCHED_LAZY;
	if (context->charged != draft->charged)
		draft->step.flags |= CAPTURE_STEP_CHARGED_RESCHED;
	read_queue(cfs_rq, &draft->step.after);
	read_entity((se_ptr)draft->curr, &draft->step.curr_after);
	read_entity((se_ptr)draft->se, &draft->step.se_after);
	send_step(draft);
}

/* The deadline server of the fair class, which update_curr() charges too, may ask for a switch of its own (6.8). */
SEC("?fentry/dl_server_update")
int BPF_PROG(step_server_begin)
{
	struct step_context *context = step_context();

	if (context)
		context->in_server = 1;
	return 0;
}

SEC("?fexit/dl_server_update")
int BPF_PROG(step_server_end)
{
	struct step_context *context = step_context();

	if (context)
		context->in_server = 0;
	return 0;
}

SEC("fentry/resched_curr")
int BPF_PROG(step_asked, struct rq *rq)
{
	struct step_context *context = step_context();

	if (context && !context->in_server) {
		context->asked++;
		context->charged += context->in_charge;
	}
	return 0;
}

/* 6.13 and later. */
SEC("?fentry/resched_curr_lazy")
int BPF_PROG(step_asked_lazy, struct rq *rq)
{
	struct step_context *context = step_context();

	if (context) {
		context->asked_lazy++;
		context->charged += context->in_charge;
	}
	return 0;
}

SEC("?fentry/place_entity")
int BPF_PROG(step_place_begin, u64 cfs_rq, u64 se, int flags)
{
	begin_step(CAPTURE_STEP_PLACE, (cfs_rq_ptr)cfs_rq, (se_ptr)se, flags);
	return 0;
}

SEC("?fexit/place_entity")
int BPF_PROG(step_place_end)
{
	end_step(CAPTURE_STEP_PLACE, 0);
	return 0;
}

/* (se) up to 6.18, (cfs_rq, se) in 7.3. */
SEC("?fentry/requeue_delayed_entity")
int BPF_PROG(step_requeue_begin)
{
	se_ptr se;
	u64 last;

	if (bpf_get_func_arg(ctx, bpf_get_func_arg_cnt(ctx) - 1, &last))
		return 0;
	se = (se_ptr)last;
	begin_step(CAPTURE_STEP_REQUEUE, queue_of_entity(se), se, 0);
	return 0;
}

SEC("?fexit/requeue_delayed_entity")
int BPF_PROG(step_requeue_end)
{
	end_step(CAPTURE_STEP_REQUEUE, 0);
	return 0;
}

SEC("?fentry/dequeue_entities")
int BPF_PROG(step_dequeue_begin, u64 rq, u64 entity, int flags)
{
	se_ptr se = (se_ptr)entity;

	begin_step(CAPTURE_STEP_DEQUEUE, queue_of_entity(se), se, flags);
	return 0;
}

SEC("?fexit/dequeue_entities")
int BPF_PROG(step_dequeue_end, u64 rq, u64 se, int flags, int result)
{
	end_step(CAPTURE_STEP_DEQUEUE, result);
	return 0;
}

/* CFS: once for each level of groups. */
SEC("?fentry/dequeue_entity")
int BPF_PROG(step_cfs_dequeue_begin, u64 cfs_rq, u64 se, int flags)
{
	begin_step(CAPTURE_STEP_DEQUEUE, (cfs_rq_ptr)cfs_rq, (se_ptr)se, flags);
	return 0;
}

SEC("?fexit/dequeue_entity")
int BPF_PROG(step_cfs_dequeue_end)
{
	end_step(CAPTURE_STEP_DEQUEUE, 0);
	return 0;
}

/* 7.3 */
SEC("?fentry/__dequeue_task")
int BPF_PROG(step_dequeue_task_begin, u64 rq, u64 p, int flags)
{
	se_ptr se = entity_of_task((const struct task_struct___fair *)p);

	begin_step(CAPTURE_STEP_DEQUEUE, queue_of_entity(se), se, flags);
	return 0;
}

SEC("?fexit/__dequeue_task")
int BPF_PROG(step_dequeue_task_end, u64 rq, u64 p, int flags, bool result)
{
	end_step(CAPTURE_STEP_DEQUEUE, result);
	return 0;
}

/* The two entities, or those of their groups, that are in one queue. */
static __always_inline void find_matching_se(se_ptr *se, se_ptr *pse)
{
	int depth = BPF_CORE_READ(*se, depth), pdepth = BPF_CORE_READ(*pse, depth), i;

	for (i = 0; i < MAX_DEPTH && depth > pdepth; i++, depth--)
		*se = BPF_CORE_READ(*se, parent);
	for (i = 0; i < MAX_DEPTH && pdepth > depth; i++, pdepth--)
		*pse = BPF_CORE_READ(*pse, parent);
	for (i = 0; i < MAX_DEPTH && BPF_CORE_READ(*se, cfs_rq) != BPF_CORE_READ(*pse, cfs_rq); i++) {
		*se = BPF_CORE_READ(*se, parent);
		*pse = BPF_CORE_READ(*pse, parent);
	}
}

static void begin_preempt(const struct rq___fair *rq, const struct task_struct___fair *p, u32 flags)
{
	se_ptr se = entity_of_task(BPF_CORE_READ(rq, curr)), pse = entity_of_task(p);
	u32 policy = BPF_CORE_READ(p, policy);
	struct step_draft *draft;

	/* nothing is asked then */
	if (se == pse || !BPF_CORE_READ(pse, on_rq) || !BPF_CORE_READ(rq, cfs.curr))
		return;
	if (!queue_is_flat())
		find_matching_se(&se, &pse);
	draft = begin_step(CAPTURE_STEP_PREEMPT, queue_of_entity(pse), pse, flags);
	if (!draft)
		return;
	if (policy == SCHED_BATCH)
		draft->step.flags |= CAPTURE_STEP_TASK_BATCH;
	if (policy == SCHED_IDLE)
		draft->step.flags |= CAPTURE_STEP_TASK_IDLE;
	if (BPF_CORE_READ(rq, curr, policy) == SCHED_IDLE)
		draft->step.flags |= CAPTURE_STEP_CURR_TASK_IDLE;
	read_all_waiting((cfs_rq_ptr)draft->cfs_rq, draft);
}

SEC("?fentry/check_preempt_wakeup_fair")
int BPF_PROG(step_preempt_begin, u64 rq, u64 p, int flags)
{
	begin_preempt((const struct rq___fair *)rq, (const struct task_struct___fair *)p, flags);
	return 0;
}

SEC("?fexit/check_preempt_wakeup_fair")
int BPF_PROG(step_preempt_end)
{
	end_step(CAPTURE_STEP_PREEMPT, 0);
	return 0;
}

/* Until 6.7 */
SEC("?fentry/check_preempt_wakeup")
int BPF_PROG(step_check_preempt_begin, u64 rq, u64 p, int flags)
{
	begin_preempt((const struct rq___fair *)rq, (const struct task_struct___fair *)p, flags);
	return 0;
}

SEC("?fexit/check_preempt_wakeup")
int BPF_PROG(step_check_preempt_end)
{
	end_step(CAPTURE_STEP_PREEMPT, 0);
	return 0;
}

/* 7.3 */
SEC("?fentry/wakeup_preempt_fair")
int BPF_PROG(step_wakeup_preempt_begin, u64 rq, u64 p, int flags)
{
	begin_preempt((const struct rq___fair *)rq, (const struct task_struct___fair *)p, flags);
	return 0;
}

SEC("?fexit/wakeup_preempt_fair")
int BPF_PROG(step_wakeup_preempt_end)
{
	end_step(CAPTURE_STEP_PREEMPT, 0);
	return 0;
}

/* The pick, level by level. The queues are as they were at the pick, because nothing follows it. */
SEC("?fexit/pick_task_fair")
int BPF_PROG(step_pick)
{
	struct step_draft *draft;
	u64 picked = 0;
	se_ptr se;
	u32 level;

	if (bpf_get_func_ret(ctx, &picked) || !picked || picked >= (u64)-4095)
		return 0;
	se = entity_of_task((const struct task_struct___fair *)picked);
	for (level = 0; level < MAX_DEPTH && se; level++) {
		draft = begin_step(CAPTURE_STEP_PICK, queue_of_entity(se), NULL, 0);
		if (!draft)
			return 0;
		read_all_waiting((cfs_rq_ptr)draft->cfs_rq, draft);
		end_step(CAPTURE_STEP_PICK, entity_id(se));
		if (queue_is_flat())
			return 0;
		se = BPF_CORE_READ(se, parent);
	}
	return 0;
}

/* CFS: once for each level of groups. The running entity has been charged. */
SEC("?fentry/pick_next_entity")
int BPF_PROG(step_cfs_pick_begin, u64 cfs_rq)
{
	struct step_draft *draft = begin_step(CAPTURE_STEP_PICK, (cfs_rq_ptr)cfs_rq, NULL, 0);

	if (draft)
		read_all_waiting((cfs_rq_ptr)cfs_rq, draft);
	return 0;
}

SEC("?fexit/pick_next_entity")
int BPF_PROG(step_cfs_pick_end, u64 cfs_rq, u64 curr, u64 picked)
{
	end_step(CAPTURE_STEP_PICK, entity_id((se_ptr)picked));
	return 0;
}

/* Charges outside of ticks are most of all steps, so only one in eight is recorded. */
static bool take_charge(const struct step_context *context)
{
	return context->in_tick || bpf_get_prandom_u32() % 8 == 0;
}

SEC("?fentry/update_curr")
int BPF_PROG(step_charge_begin, u64 queue)
{
	struct step_context *context = step_context();
	cfs_rq_ptr cfs_rq = (cfs_rq_ptr)queue;
	struct step_draft *draft;
	se_ptr curr;

	if (!context)
		return 0;
	context->in_charge = 1;
	curr = queue_is_flat() ? BPF_CORE_READ(cfs_rq, h_curr) : BPF_CORE_READ(cfs_rq, curr);
	/* in 7.3, a group's virtual time does not advance */
	if (!curr || (queue_is_flat() && BPF_CORE_READ(curr, my_q)) ||
	    (s64)(BPF_CORE_READ(cfs_rq, rq, clock_task) - BPF_CORE_READ(curr, exec_start)) <= 0 ||
	    !take_charge(context))
		return 0;
	draft = begin_step(CAPTURE_STEP_CHARGE, queue_of_entity(curr), NULL, 0);
	if (draft && context->in_tick)
		draft->step.flags |= CAPTURE_STEP_IN_TICK;
	return 0;
}

SEC("?fexit/update_curr")
int BPF_PROG(step_charge_end)
{
	struct step_context *context = step_context();

	if (!context)
		return 0;
	context->in_charge = 0;
	end_step(CAPTURE_STEP_CHARGE, 0);
	return 0;
}

SEC("?fentry/task_tick_fair")
int BPF_PROG(step_tick_begin, u64 rq, u64 p, int queued)
{
	struct step_context *context = step_context();
	se_ptr se = entity_of_task((const struct task_struct___fair *)p);

	if (!context)
		return 0;
	context->in_tick = 1;
	begin_step(CAPTURE_STEP_TICK, queue_of_entity(se), NULL, queued);
	return 0;
}

SEC("?fexit/task_tick_fair")
int BPF_PROG(step_tick_end)
{
	struct step_context *context = step_context();

	if (!context)
		return 0;
	context->in_tick = 0;
	end_step(CAPTURE_STEP_TICK, 0);
	return 0;
}

SEC("?fentry/yield_task_fair")
int BPF_PROG(step_yield_begin, u64 rq)
{
	se_ptr se = entity_of_task(BPF_CORE_READ((const struct rq___fair *)rq, curr));

	begin_step(CAPTURE_STEP_YIELD, queue_of_entity(se), NULL, 0);
	return 0;
}

SEC("?fexit/yield_task_fair")
int BPF_PROG(step_yield_end)
{
	end_step(CAPTURE_STEP_YIELD, 0);
	return 0;
}

SEC("?fentry/set_next_entity")
int BPF_PROG(step_set_next_begin, u64 cfs_rq, u64 se)
{
	begin_step(CAPTURE_STEP_SET_NEXT, (cfs_rq_ptr)cfs_rq, (se_ptr)se, 1);
	return 0;
}

SEC("?fexit/set_next_entity")
int BPF_PROG(step_set_next_end)
{
	end_step(CAPTURE_STEP_SET_NEXT, 0);
	return 0;
}

/* 7.3, where set_next_entity() does something else */
SEC("?fentry/set_next_task_fair")
int BPF_PROG(step_set_next_task_begin, u64 rq, u64 p, bool first)
{
	se_ptr se = entity_of_task((const struct task_struct___fair *)p);

	if (queue_is_flat())
		begin_step(CAPTURE_STEP_SET_NEXT, queue_of_entity(se), se, first);
	return 0;
}

SEC("?fexit/set_next_task_fair")
int BPF_PROG(step_set_next_task_end)
{
	if (queue_is_flat())
		end_step(CAPTURE_STEP_SET_NEXT, 0);
	return 0;
}

static void begin_reweight(cfs_rq_ptr cfs_rq, se_ptr se, u64 weight, bool on_rq)
{
	struct step_draft *draft;

	if (entity_weight(se) == weight)
		return;
	draft = begin_step(CAPTURE_STEP_REWEIGHT, cfs_rq, se, on_rq);
	if (draft)
		draft->step.weight = weight;
}

SEC("?fentry/reweight_entity")
int BPF_PROG(step_reweight_begin, u64 cfs_rq, u64 entity, u64 weight)
{
	se_ptr se = (se_ptr)entity;

	if (!queue_is_flat())
		begin_reweight((cfs_rq_ptr)cfs_rq, se, weight, BPF_CORE_READ(se, on_rq));
	return 0;
}

SEC("?fexit/reweight_entity")
int BPF_PROG(step_reweight_end)
{
	if (!queue_is_flat())
		end_step(CAPTURE_STEP_REWEIGHT, 0);
	return 0;
}

/* 7.3, where on_rq of an entity is set before it is placed. */
SEC("?fentry/reweight_eevdf")
int BPF_PROG(step_reweight_eevdf_begin, u64 cfs_rq, u64 se, u64 weight, bool on_rq)
{
	begin_reweight((cfs_rq_ptr)cfs_rq, (se_ptr)se, weight, on_rq);
	return 0;
}

SEC("?fexit/reweight_eevdf")
int BPF_PROG(step_reweight_eevdf_end)
{
	end_step(CAPTURE_STEP_REWEIGHT, 0);
	return 0;
}

#endif /* CAPTURE_STEP_BPF_H */
