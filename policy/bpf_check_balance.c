/* SPDX-License-Identifier: GPL-2.0-only */
/* Every entry point of balancing as a BPF program, to see that it compiles as one. */
#include "balance/newidle.h"
#include "balance/nohz.h"
#include "balance/outcome.h"
#include "balance/periodic.h"

#define SEC(name) __attribute__((section(name), used))

struct cw_sys sys;
struct cw_balance env;
struct cw_decision decision;
struct cw_task task;
struct cw_cpumask mask;
struct cw_newidle newidle;
struct cw_periodic periodic;

SEC("syscall")
int find_source(struct cw_balance *ask)
{
	balance_begin(&env, ask->this_cpu, ask->level, ask->idle, ask->now);
	return sched_balance_find_src(&sys, &env, &decision);
}

SEC("syscall")
int detach_task(struct cw_balance *ask)
{
	return detach_task_step(&sys, &env, &task, &mask, ask->flags);
}

SEC("syscall")
int next_step(void *ctx)
{
	(void)ctx;
	return balance_next_step(&sys, &env);
}

SEC("syscall")
int end_balance(struct cw_balance *ask)
{
	return balance_done(&sys, &env, ask->detached, ask->flags);
}

SEC("syscall")
int active_balance(struct cw_balance *ask)
{
	if (!active_balance_begin(&sys, &env, ask->src_cpu, ask->dst_cpu, ask->flags, ask->now))
		return 0;
	if (!can_migrate_task(&sys, &env, &task, &mask, false))
		return 0;
	active_balance_done(&sys, &env, true);
	return 1;
}

SEC("syscall")
int start_newidle(struct cw_balance *ask)
{
	update_avg_idle(&sys, ask->this_cpu, ask->now);
	return newidle_begin(&sys, &newidle, ask->this_cpu, ask->now, ask->flags);
}

SEC("syscall")
int next_newidle(struct cw_balance *ask)
{
	newidle_account(&sys, &newidle, ask->now, ask->detached, ask->flags, ask->now);
	return newidle_next(&sys, &newidle, ask->now);
}

SEC("syscall")
int end_newidle(void *ctx)
{
	(void)ctx;
	return newidle_end(&sys, &newidle);
}

SEC("syscall")
int start_periodic(struct cw_balance *ask)
{
	periodic_begin(&sys, &periodic, ask->this_cpu, ask->idle, ask->now);
	return balance_due(&sys, ask->this_cpu, ask->level, ask->idle, ask->now);
}

SEC("syscall")
int next_periodic(struct cw_balance *ask)
{
	periodic_account(&sys, &periodic, ask->detached, ask->flags);
	return periodic_next(&sys, &periodic);
}

SEC("syscall")
int end_periodic(void *ctx)
{
	(void)ctx;
	periodic_end(&sys, &periodic);
	return 0;
}

SEC("syscall")
int kick_idle_balance(struct cw_balance *ask)
{
	if (!nohz_balancer_kick(&sys, ask->this_cpu, &mask))
		return -1;
	return find_new_ilb(&sys, &mask, &mask, ask->this_cpu);
}

SEC("syscall")
int misfit(struct cw_balance *ask)
{
	update_misfit_status(&sys, &task, ask->this_cpu);
	return check_misfit_status(cpu_rq(&sys, ask->this_cpu));
}

char _license[] SEC("license") = "GPL";
