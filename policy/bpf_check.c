/* SPDX-License-Identifier: GPL-2.0-only */
/* Every entry point of the policy as a BPF program, to see that it compiles as one. */
#include "track/process.h"
#include "track/runnable_load.h"
#include "wakeup/wakeup.h"

#define SEC(name) __attribute__((section(name), used))

struct cw_sys sys;
struct cw_task task[2];
struct cw_cpumask cpus;
struct cw_wakeup wakeup;
struct cw_decision decision;
struct cw_process process;

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

SEC("syscall")
int queue_changes(void *ctx)
{
	(void)ctx;
	update_runnable_load(&sys, wakeup.now, wakeup.this_cpu);
	enqueue_runnable_load(&sys, wakeup.this_cpu, &task[0]);
	dequeue_runnable_load(&sys, wakeup.this_cpu, &task[1]);
	return 0;
}

SEC("syscall")
int process_starts(void *ctx)
{
	(void)ctx;
	process_init(&sys, &process, wakeup.now);
	return 0;
}

SEC("syscall")
int thread_ran(void *ctx)
{
	(void)ctx;
	account_process(&sys, &process, wakeup.this_cpu, wakeup.random, wakeup.now);
	task_cache_cpu(&task[0], &process);
	return 0;
}

SEC("syscall")
int process_ticks(void *ctx)
{
	(void)ctx;
	if (process_tick(&sys, &process, wakeup.now))
		process_find_llc(&sys, &process, wakeup.this_cpu, wakeup.random, wakeup.now);
	return process.cache_cpu;
}

char _license[] SEC("license") = "GPL";
