/* SPDX-License-Identifier: GPL-2.0-only */
/* The entry points of native.h. */
#include "native.h"

void cw_update_blocked_averages(struct cw_sys *sys, s32 cpu, u64 now)
{
	update_blocked_averages(sys, cpu, now);
}

void cw_track_init_task(struct cw_task *p, s32 cpu)
{
	track_init_task(p, cpu);
}

void cw_track_fork(struct cw_task *p, const struct cw_task *parent)
{
	track_fork(p, parent);
}

void cw_track_enqueue_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	track_enqueue_task(sys, p, cpu, now);
}

void cw_track_set_next_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	track_set_next_task(sys, p, cpu, now);
}

void cw_track_task_tick(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	track_task_tick(sys, p, cpu, now);
}

void cw_track_put_prev_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now)
{
	track_put_prev_task(sys, p, cpu, now);
}

void cw_track_dequeue_task(struct cw_sys *sys, struct cw_task *p, u64 now, bool running)
{
	track_dequeue_task(sys, p, now, running);
}

void cw_track_sleep(const struct cw_sys *sys, struct cw_task *p, u64 now)
{
	track_sleep(sys, p, now);
}

void cw_track_delay_dequeue(struct cw_sys *sys, struct cw_task *p, u64 now)
{
	track_delay_dequeue(sys, p, now);
}

void cw_track_requeue_delayed(struct cw_sys *sys, struct cw_task *p, u64 now)
{
	track_requeue_delayed(sys, p, now);
}

void cw_track_detach_task(struct cw_sys *sys, struct cw_task *p)
{
	track_detach_task(sys, p);
}

void cw_track_set_task_cpu(struct cw_sys *sys, struct cw_task *p, s32 cpu)
{
	track_set_task_cpu(sys, p, cpu);
}

void cw_track_remove_task(struct cw_sys *sys, struct cw_task *p)
{
	track_remove_task(sys, p);
}

void cw_clear_tg_offline_cfs_rqs(struct cw_sys *sys, s32 cpu)
{
	clear_tg_offline_cfs_rqs(sys, cpu);
}

void cw_set_next_task_idle(struct cw_sys *sys, s32 cpu, u64 now)
{
	set_next_task_idle(sys, cpu, now);
}

void cw_note_sync_wakeup(struct cw_task *p, u64 now)
{
	note_sync_wakeup(p, now);
}

void cw_process_init(const struct cw_sys *sys, struct cw_process *process, u64 now)
{
	process_init(sys, process, now);
}

void cw_account_mm_sched(struct cw_sys *sys, struct cw_process *process, struct cw_task *p, u64 delta,
			 u64 now)
{
	account_mm_sched(sys, process, p, delta, now);
}

bool cw_process_tick(const struct cw_sys *sys, struct cw_process *process, u64 now)
{
	return process_tick(sys, process, now);
}

bool cw_task_cache_work(struct cw_sys *sys, struct cw_process *process, const struct cw_task *p, u64 now)
{
	return task_cache_work(sys, process, p, now);
}

void cw_task_cache_cpu(struct cw_task *p, const struct cw_process *process)
{
	task_cache_cpu(p, process);
}

s32 cw_select_task_rq_fair(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d)
{
	return select_task_rq_fair(sys, w, d);
}

void cw_update_avg_scan_cost(struct cw_sys *sys, const struct cw_decision *d, u64 ns)
{
	update_avg_scan_cost(sys, d, ns);
}

void cw_balance_begin(struct cw_balance *env, s32 cpu, u32 level, u32 idle, u64 now)
{
	balance_begin(env, cpu, level, idle, now);
}

s32 cw_sched_balance_find_src(struct cw_sys *sys, struct cw_balance *env, struct cw_decision *d)
{
	return sched_balance_find_src(sys, env, d);
}

/* The two halves of the above, for comparing each with a kernel's. */
u32 cw_sched_balance_find_src_group(struct cw_sys *sys, struct cw_balance *env,
				    struct cw_decision *d)
{
	balance_record(env, d);
	return sched_balance_find_src_group(sys, env, d);
}

s32 cw_sched_balance_find_src_rq(struct cw_sys *sys, const struct cw_balance *env, u32 group,
				 struct cw_decision *d)
{
	balance_record(env, d);
	return sched_balance_find_src_rq(sys, env, group, d);
}

enum cw_detach cw_detach_task(struct cw_sys *sys, struct cw_balance *env, const struct cw_task *p,
			      const struct cw_cpumask *cpus_ptr, bool running)
{
	return detach_task(sys, env, p, cpus_ptr, running);
}

bool cw_lb_newidle(struct cw_sys *sys, struct cw_lb *lb, s32 cpu, u64 now, u32 random)
{
	return lb_newidle(sys, lb, cpu, now, random);
}

void cw_lb_periodic(struct cw_sys *sys, struct cw_lb *lb, s32 cpu, u32 idle, u64 now)
{
	lb_periodic(sys, lb, cpu, idle, now);
}

enum cw_lb_step cw_lb_next(struct cw_sys *sys, struct cw_lb *lb)
{
	return lb_next(sys, lb);
}

bool cw_active_balance_begin(struct cw_sys *sys, struct cw_balance *env, s32 src_cpu, s32 dst_cpu,
			     bool for_llc, u64 now)
{
	return active_balance_begin(sys, env, src_cpu, dst_cpu, for_llc, now);
}

bool cw_active_balance_task(struct cw_sys *sys, struct cw_balance *env, const struct cw_task *p,
			    const struct cw_cpumask *cpus_ptr)
{
	return active_balance_task(sys, env, p, cpus_ptr);
}

s32 cw_kick_nohz_stats(struct cw_sys *sys, s32 cpu, const struct cw_cpumask *nohz_idle, u64 now)
{
	return kick_nohz_stats(sys, cpu, nohz_idle, now);
}

bool cw_nohz_newidle_stats(const struct cw_sys *sys, s32 cpu, u64 now)
{
	return nohz_newidle_stats(sys, cpu, now);
}

bool cw_update_nohz_stats(struct cw_sys *sys, s32 cpu, u64 now)
{
	return update_nohz_stats(sys, cpu, now);
}

void cw_nohz_stats_done(struct cw_sys *sys, u64 now, bool has_blocked)
{
	nohz_stats_done(sys, now, has_blocked);
}

s32 cw_kick_ilb(struct cw_sys *sys, s32 cpu, const struct cw_cpumask *nohz_idle, u64 now)
{
	return kick_ilb(sys, cpu, nohz_idle, now);
}

void cw_fair_rq_init(struct cw_fair_rq *cfs_rq)
{
	cfs_rq_init(cfs_rq);
}

u32 cw_task_weight(s32 nice, bool idle)
{
	return task_weight(nice, idle);
}

s64 cw_entity_order(const struct cw_sys *sys, const struct cw_entity *se)
{
	return entity_order(sys, se);
}

s64 cw_avg_vruntime(const struct cw_fair_rq *cfs_rq)
{
	return avg_vruntime(cfs_rq);
}

bool cw_vruntime_eligible(const struct cw_fair_rq *cfs_rq, s64 vruntime)
{
	return vruntime_eligible(cfs_rq, vruntime);
}

void cw_update_zero_vruntime(struct cw_fair_rq *cfs_rq)
{
	update_zero_vruntime(cfs_rq);
}

void cw_update_min_vruntime(struct cw_fair_rq *cfs_rq)
{
	update_min_vruntime(cfs_rq);
}

bool cw_update_curr(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, u64 now)
{
	return update_curr(sys, cfs_rq, now);
}

void cw_task_fork_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
		       struct cw_entity *se)
{
	task_fork_fair(sys, cfs_rq, se);
}

void cw_migrate_task_rq_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			     struct cw_entity *se)
{
	migrate_task_rq_fair(sys, cfs_rq, se);
}

void cw_enqueue_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, struct cw_entity *se,
		       u32 why)
{
	enqueue_entity(sys, cfs_rq, se, why);
	__enqueue_entity(cfs_rq, se);
}

bool cw_dequeue_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, struct cw_entity *se,
		       bool sleep, bool may_delay)
{
	struct cw_entity old = *se;

	if (!dequeue_entity(sys, cfs_rq, se, sleep, may_delay))
		return false;
	if (se != &cfs_rq->curr)
		dequeue_waiting(cfs_rq, &old);
	return true;
}

bool cw_requeue_delayed_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
			       struct cw_entity *se)
{
	if (!requeue_delayed_entity(sys, cfs_rq, se))
		return false;
	__enqueue_entity(cfs_rq, se);
	return true;
}

void cw_reweight_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, struct cw_entity *se,
			u32 weight)
{
	reweight_entity(sys, cfs_rq, se, weight);
}

void cw_set_next_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
			const struct cw_entity *se, u64 now)
{
	dequeue_waiting(cfs_rq, se);
	set_next_entity(sys, cfs_rq, se, now);
}

void cw_put_prev_entity(struct cw_fair_rq *cfs_rq, struct cw_entity *se)
{
	put_prev_entity(cfs_rq, se);
	if (se->flags & CW_SE_ON_RQ)
		__enqueue_entity(cfs_rq, se);
}

bool cw_entity_tick(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	return entity_tick(sys, cfs_rq);
}

void cw_yield_task_fair(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq)
{
	yield_task_fair(sys, cfs_rq);
}

s32 cw_pick_next_entity(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			const struct cw_waiting *waiting, struct cw_queue_decision *d)
{
	return pick_next_entity(sys, cfs_rq, waiting, d);
}

bool cw_wakeup_preempt_fair(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
			    const struct cw_entity *pse, const struct cw_waiting *waiting,
			    u32 wake_flags, bool pending, u64 now, struct cw_queue_decision *d)
{
	return wakeup_preempt_fair(sys, cfs_rq, pse, waiting, wake_flags, pending, now, d);
}
