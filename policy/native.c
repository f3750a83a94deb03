/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy as a native library: one exported symbol for each entry point,
 * and what a binding needs to check that it sees the structures as C does.
 */
#include "pelt.h"

void cw_update_load_avg_se(u64 now, struct cw_task *p, bool on_rq, bool running)
{
	update_load_avg_se(now, p, on_rq, running);
}

bool cw_update_cfs_rq_load_avg(u64 now, struct cw_cpu *rq, bool running)
{
	return update_cfs_rq_load_avg(now, rq, running);
}

void cw_attach_entity_load_avg(struct cw_cpu *rq, struct cw_task *p)
{
	attach_entity_load_avg(rq, p);
}

void cw_detach_entity_load_avg(struct cw_cpu *rq, const struct cw_task *p)
{
	detach_entity_load_avg(rq, p);
}

void cw_remove_entity_load_avg(struct cw_cpu *rq, struct cw_task *p)
{
	remove_entity_load_avg(rq, p);
}

void cw_init_entity_runnable_average(struct cw_task *p)
{
	init_entity_runnable_average(p);
}

void cw_post_init_entity_util_avg(const struct cw_cpu *rq, struct cw_task *p)
{
	post_init_entity_util_avg(rq, p);
}

u64 cw_update_rq_clock_pelt(u64 clock_pelt, u64 clock_task, u64 delta, u32 capacity, bool idle)
{
	return update_rq_clock_pelt(clock_pelt, clock_task, delta, capacity, idle);
}

void cw_util_est_enqueue(const struct cw_sys *sys, struct cw_cpu *rq, const struct cw_task *p)
{
	util_est_enqueue(sys, rq, p);
}

void cw_util_est_dequeue(const struct cw_sys *sys, struct cw_cpu *rq, const struct cw_task *p)
{
	util_est_dequeue(sys, rq, p);
}

void cw_util_est_update(const struct cw_sys *sys, const struct cw_cpu *rq, struct cw_task *p)
{
	util_est_update(sys, rq, p);
}

static const char *const reason_names[] = {
#define CW_REASON_NAME(name, text) #name,
	CW_REASONS(CW_REASON_NAME)
};

static const char *const reason_texts[] = {
#define CW_REASON_TEXT(name, text) text,
	CW_REASONS(CW_REASON_TEXT)
};

u32 cw_nr_reasons(void)
{
	return CW_NR_REASONS;
}

const char *cw_reason_name(u32 reason)
{
	return reason < CW_NR_REASONS ? reason_names[reason] : "?";
}

const char *cw_reason_text(u32 reason)
{
	return reason < CW_NR_REASONS ? reason_texts[reason] : "?";
}

/* Sizes in the order in which the binding lists its mirrors; 0 ends the list. */
u64 cw_sizeof(u32 i)
{
	static const u64 sizes[] = {
		sizeof(struct cw_cpumask), sizeof(struct cw_avg),    sizeof(struct cw_removed),
		sizeof(struct cw_domain),  sizeof(struct cw_group),  sizeof(struct cw_llc),
		sizeof(struct cw_cpu_sd),  sizeof(struct cw_cpu),    sizeof(struct cw_task),
		sizeof(struct cw_wakeup),  sizeof(struct cw_decision), sizeof(struct cw_sys),
	};

	return i < sizeof(sizes) / sizeof(sizes[0]) ? sizes[i] : 0;
}

/* Offsets of the last field of each structure, in the same order: catches a swapped field. */
u64 cw_last_offset(u32 i)
{
	static const u64 offsets[] = {
		0,
		__builtin_offsetof(struct cw_avg, util_est),
		__builtin_offsetof(struct cw_removed, nr),
		__builtin_offsetof(struct cw_domain, llc),
		__builtin_offsetof(struct cw_group, imbalance),
		__builtin_offsetof(struct cw_llc, domain),
		__builtin_offsetof(struct cw_cpu_sd, local_group),
		__builtin_offsetof(struct cw_cpu, removed),
		__builtin_offsetof(struct cw_task, avg),
		__builtin_offsetof(struct cw_wakeup, random),
		__builtin_offsetof(struct cw_decision, groups_scanned),
		__builtin_offsetof(struct cw_sys, group),
	};

	return i < sizeof(offsets) / sizeof(offsets[0]) ? offsets[i] : 0;
}
