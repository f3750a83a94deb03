/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy as a native library: one exported symbol for each entry point.
 * crates/policy has this header's structures, constants and functions from
 * `make bindings`.
 */
#ifndef CW_NATIVE_H
#define CW_NATIVE_H

#include "balance/newidle.h"
#include "balance/nohz.h"
#include "balance/outcome.h"
#include "balance/periodic.h"
#include "queue/preempt.h"
#include "track/pelt.h"
#include "track/process.h"
#include "track/runnable_load.h"
#include "wakeup/wakeup.h"

void cw_update_load_avg_se(u64 now, struct cw_task *p, bool on_rq, bool running);
bool cw_update_cfs_rq_load_avg(u64 now, struct cw_cpu *rq, bool running);
void cw_attach_entity_load_avg(struct cw_cpu *rq, struct cw_task *p);
void cw_detach_entity_load_avg(struct cw_cpu *rq, const struct cw_task *p);
void cw_remove_entity_load_avg(struct cw_cpu *rq, struct cw_task *p);
void cw_update_runnable_load(struct cw_sys *sys, u64 now, s32 cpu);
void cw_enqueue_runnable_load(struct cw_sys *sys, s32 cpu, const struct cw_task *p);
void cw_dequeue_runnable_load(struct cw_sys *sys, s32 cpu, const struct cw_task *p);
void cw_init_entity_runnable_average(struct cw_task *p);
void cw_post_init_entity_util_avg(const struct cw_cpu *rq, struct cw_task *p);
u64 cw_update_rq_clock_pelt(u64 clock_pelt, u64 clock_task, u64 delta, u32 capacity, bool idle);
void cw_util_est_enqueue(const struct cw_sys *sys, struct cw_cpu *rq, const struct cw_task *p);
void cw_util_est_dequeue(const struct cw_sys *sys, struct cw_cpu *rq, const struct cw_task *p);
void cw_note_sync_sleep(struct cw_task *p, u64 sync_at, u64 now);
void cw_util_est_update(const struct cw_sys *sys, const struct cw_cpu *rq, struct cw_task *p);
void cw_process_init(const struct cw_sys *sys, struct cw_process *process, u64 now);
void cw_account_process(struct cw_sys *sys, struct cw_process *process, s32 cpu, u64 delta,
			u64 now);
bool cw_process_tick(const struct cw_sys *sys, struct cw_process *process, u64 now);
bool cw_process_find_llc(struct cw_sys *sys, struct cw_process *process, s32 cpu, u32 nr_running,
			 u64 now);
void cw_task_cache_cpu(struct cw_task *p, const struct cw_process *process);
s32 cw_select_task_rq_fair(struct cw_sys *sys, const struct cw_wakeup *w, struct cw_decision *d);
void cw_update_idle_core(struct cw_sys *sys, s32 cpu);
void cw_update_avg_idle(struct cw_sys *sys, s32 cpu, u64 now);
void cw_update_misfit_status(struct cw_sys *sys, const struct cw_task *p, s32 cpu);
void cw_balance_begin(struct cw_balance *env, s32 cpu, u32 level, u32 idle, u64 now);
s32 cw_sched_balance_find_src(struct cw_sys *sys, struct cw_balance *env, struct cw_decision *d);
u32 cw_sched_balance_find_src_group(struct cw_sys *sys, struct cw_balance *env,
				    struct cw_decision *d);
s32 cw_sched_balance_find_src_rq(struct cw_sys *sys, const struct cw_balance *env, u32 group,
				 struct cw_decision *d);
enum cw_detach cw_detach_task_step(struct cw_sys *sys, struct cw_balance *env,
				   const struct cw_task *p, const struct cw_cpumask *cpus_ptr,
				   bool running);
bool cw_can_migrate_task(struct cw_sys *sys, struct cw_balance *env, const struct cw_task *p,
			 const struct cw_cpumask *cpus_ptr, bool running);
enum cw_balance_step cw_balance_next_step(struct cw_sys *sys, struct cw_balance *env);
bool cw_balance_done(struct cw_sys *sys, struct cw_balance *env, u32 moved, bool curr_allowed);
bool cw_active_balance_begin(struct cw_sys *sys, struct cw_balance *env, s32 src_cpu, s32 dst_cpu,
			     bool for_llc, u64 now);
void cw_active_balance_done(struct cw_sys *sys, const struct cw_balance *env, bool moved);
bool cw_newidle_begin(struct cw_sys *sys, struct cw_newidle *walk, s32 cpu, u64 now,
		      u32 random);
u32 cw_newidle_next(struct cw_sys *sys, struct cw_newidle *walk, u64 now);
void cw_newidle_account(struct cw_sys *sys, struct cw_newidle *walk, u64 cost, u32 moved,
			bool may_go_on, u64 now);
bool cw_newidle_end(struct cw_sys *sys, const struct cw_newidle *walk);
void cw_periodic_begin(struct cw_sys *sys, struct cw_periodic *walk, s32 cpu, u32 idle, u64 now);
u32 cw_periodic_next(struct cw_sys *sys, struct cw_periodic *walk);
void cw_periodic_account(struct cw_sys *sys, struct cw_periodic *walk, u32 moved, bool may_go_on);
void cw_periodic_end(struct cw_sys *sys, const struct cw_periodic *walk);
bool cw_nohz_balancer_kick(struct cw_sys *sys, s32 cpu, const struct cw_cpumask *nohz_idle);
s32 cw_find_new_ilb(struct cw_sys *sys, const struct cw_cpumask *nohz_idle, s32 cpu);

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
