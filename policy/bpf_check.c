/* SPDX-License-Identifier: GPL-2.0-only */
/* Every entry point of the policy as a BPF program, to see that it compiles as one. */
#include "wakeup.h"

#define SEC(name) __attribute__((section(name), used))

struct cw_sys sys;
struct cw_task task[2];
struct cw_cpumask cpus;
struct cw_wakeup wakeup;
struct cw_decision decision;

SEC("syscall")
int place_task(void *ctx)
{
	struct cw_wakeup w = wakeup;

	(void)ctx;
	w.p = &task[0];
	w.waker = &task[1];
	w.cpus_ptr = &cpus;
	return select_task_rq_fair(&sys, &w, &decision);
}

SEC("syscall")
int cpu_goes_idle(void *ctx)
{
	(void)ctx;
	update_idle_core(&sys, wakeup.this_cpu);
	return 0;
}

char _license[] SEC("license") = "GPL";
