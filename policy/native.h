/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy as a native library: one exported symbol for each entry point.
 * `make bindings` generates the structures, constants and functions of
 * crates/policy from this header.
 */
#ifndef CW_NATIVE_H
#define CW_NATIVE_H

#include "balance/loop.h"
#include "balance/nohz.h"
#include "queue/preempt.h"
#include "track/upkeep.h"
#include "wakeup/wakeup.h"

void cw_update_blocked_averages(struct cw_sys *sys, s32 cpu, u64 now);
void cw_track_init_task(struct cw_task *p, s32 cpu);
void cw_track_fork(struct cw_task *p, const struct cw_task *parent);
void cw_track_enqueue_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now);
void cw_track_set_next_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now);
void cw_track_task_tick(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now);
void cw_track_put_prev_task(struct cw_sys *sys, struct cw_task *p, s32 cpu, u64 now);
void cw_track_dequeue_task(struct cw_sys *sys, struct cw_task *p, u64 now, bool running);
void cw_track_sleep(const struct cw_sys *sys, struct cw_task *p, u64 now);
void cw_track_delay_dequeue(struct cw_sys *sys, struct cw_task *p, u64 now);
void cw_track_requeue_delayed(struct cw_sys *sys, struct cw_task *p, u64 now);
void cw_track_detach_task(struct cw_sys *sys, struct cw_task *p);
void cw_track_set_task_cpu(struct cw_sys *sys, struct cw_task *p, s32 cpu);
void cw_track_remove_task(struct cw_sys *sys, struct cw_task *p);
void cw_clear_tg_offline_cfs_rqs(struct cw_sys *sys, s32 cpu);
void cw_set_next_task_idle(struct cw_sys *sys, s32 cpu, u64 now);
void cw_note_sync_wakeup(struct cw_task *p, u64 now);
void cw_process_init(const struct cw_sys *sys, struct cw_process *process, u64 now);
void cw_account_mm_sched(struct cw_sys *sys, struct cw_process *process, struct cw_task *p, u64 delta,
			 u64 now);
bool cw_process_tick(const struct cw_sys *sys, struct cw_process *process, u64 now);
bool cw_task_cache_work(struct cw_sys *sys, struct cw_process *process, const struct cw_task *p, u64 now);
void cw_task_cache_cpu(struct cw_task *p, const struct cw_process *process);
s32 cw_select_task_rq_fair(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d);
void cw_update_avg_scan_cost(struct cw_sys *sys, const struct cw_decision *d, u64 ns);
void cw_balance_begin(struct cw_balance *env, s32 cpu, u32 level, u32 idle, u64 now);
s32 cw_sched_balance_find_src(struct cw_sys *sys, struct cw_balance *env, struct cw_decision *d);
u32 cw_sched_balance_find_src_group(struct cw_sys *sys, struct cw_balance *env,
				    struct cw_decision *d);
s32 cw_sched_balance_find_src_rq(struct cw_sys *sys, const struct cw_balance *env, u32 group,
				 struct cw_decision *d);
enum cw_detach cw_detach_task(struct cw_sys *sys, struct cw_balance *env, const struct cw_task *p,
			      const struct cw_cpumask *cpus_ptr, bool running);
bool cw_lb_newidle(struct cw_sys *sys, struct cw_lb *lb, s32 cpu, u64 now, u32 random);
void cw_lb_periodic(struct cw_sys *sys, struct cw_lb *lb, s32 cpu, u32 idle, u64 now);
enum cw_lb_step cw_lb_next(struct cw_sys *sys, struct cw_lb *lb);
bool cw_active_balance_begin(struct cw_sys *sys, struct cw_balance *env, s32 src_cpu, s32 dst_cpu,
			     bool for_llc, u64 now);
bool cw_active_balance_task(struct cw_sys *sys, struct cw_balance *env, const struct cw_task *p,
			    const struct cw_cpumask *cpus_ptr);
s32 cw_kick_nohz_stats(struct cw_sys *sys, s32 cpu, const struct cw_cpumask *nohz_idle, u64 now);
bool cw_nohz_newidle_stats(const struct cw_sys *sys, s32 cpu, u64 now);
bool cw_update_nohz_stats(struct cw_sys *sys, s32 cpu, u64 now);
void cw_nohz_stats_done(struct cw_sys *sys, u64 now, bool has_blocked);
s32 cw_kick_ilb(struct cw_sys *sys, s32 cpu, const struct cw_cpumask *nohz_idle, u64 now);

void cw_fair_rq_init(struct cw_fair_rq *cfs_rq);
u32 cw_task_weight(s32 nice, bool idle);
s64 cw_entity_order(const struct cw_sys *sys, const struct cw_entity *se);
s64 cw_avg_vruntime(const struct cw_fair_rq *cfs_rq);
bool cw_vruntime_eligible(const struct cw_fair_rq *cfs_rq, s64 vruntime);
void cw_update_zero_vruntime(struct cw_fair_rq *cfs_rq);
void cw_update_min_vruntime(struct cw_fair_rq *cfs_rq);
bool cw_update_curr(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, u64 now);
void cw_task_fork_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
		       struct cw_entity *se);
void cw_migrate_task_rq_fair(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			     struct cw_entity *se);
void cw_enqueue_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, struct cw_entity *se,
		       u32 why);
bool cw_dequeue_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, struct cw_entity *se,
		       bool sleep, bool may_delay);
bool cw_requeue_delayed_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
			       struct cw_entity *se);
void cw_reweight_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq, struct cw_entity *se,
			u32 weight);
void cw_set_next_entity(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
			const struct cw_entity *se, u64 now);
void cw_put_prev_entity(struct cw_fair_rq *cfs_rq, struct cw_entity *se);
bool cw_entity_tick(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq);
void cw_yield_task_fair(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq);
s32 cw_pick_next_entity(const struct cw_sys *sys, const struct cw_fair_rq *cfs_rq,
			const struct cw_waiting *waiting, struct cw_queue_decision *d);
bool cw_wakeup_preempt_fair(const struct cw_sys *sys, struct cw_fair_rq *cfs_rq,
			    const struct cw_entity *pse, const struct cw_waiting *waiting,
			    u32 wake_flags, bool pending, u64 now, struct cw_queue_decision *d);

#endif /* CW_NATIVE_H */
