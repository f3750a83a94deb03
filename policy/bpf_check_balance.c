/* SPDX-License-Identifier: GPL-2.0-only */
/* Every entry point of balancing as a BPF program, which shows that it compiles as one. */
#include "balance/loop.h"
#include "balance/nohz.h"

#define SEC(name) __attribute__((section(name), used))

struct cw_sys sys;
struct cw_lb lb;
struct cw_task task;
struct cw_cpumask mask;

SEC("syscall")
int start_newidle(struct cw_balance *ask)
{
	update_avg_idle(&sys, ask->this_cpu, ask->now);
	return lb_newidle(&sys, &lb, ask->this_cpu, ask->now, ask->flags);
}

SEC("syscall")
int start_periodic(struct cw_balance *ask)
{
	return lb_periodic(&sys, &lb, ask->this_cpu, ask->idle, ask->now);
}

SEC("syscall")
int next_step(void *ctx)
{
	(void)ctx;
	return lb_next(&sys, &lb);
}

SEC("syscall")
int offer_task(struct cw_balance *ask)
{
	return detach_task(&sys, &lb.env, &task, &mask, ask->flags);
}

SEC("syscall")
int active_balance(struct cw_balance *ask)
{
	return active_balance_begin(&sys, &lb.env, ask->src_cpu, ask->dst_cpu, ask->flags, ask->now) &&
	       active_balance_task(&sys, &lb.env, &task, &mask);
}

SEC("syscall")
int kick_idle_balance(struct cw_balance *ask)
{
	return kick_ilb(&sys, ask->this_cpu, &mask, ask->now);
}

SEC("syscall")
int misfit(struct cw_balance *ask)
{
	update_misfit_status(&sys, &task, ask->this_cpu);
	return check_misfit_status(cpu_rq(&sys, ask->this_cpu));
}

char _license[] SEC("license") = "GPL";
