/* SPDX-License-Identifier: GPL-2.0-only */
/* Every entry point of the policy as a BPF program, which shows that it compiles as one. */
#include "track/upkeep.h"
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
int cpu_idles(void *ctx)
{
	(void)ctx;
	set_next_task_idle(&sys, wakeup.this_cpu, wakeup.now);
	put_prev_task_idle(&sys, wakeup.this_cpu, wakeup.now);
	update_blocked_averages(&sys, wakeup.this_cpu, wakeup.now);
	return 0;
}

SEC("syscall")
int task_is_queued(void *ctx)
{
	(void)ctx;
	track_init_task(&task[0], wakeup.this_cpu);
	track_fork(&task[0], &task[1]);
	track_set_task_cpu(&sys, &task[1], wakeup.prev_cpu);
	track_enqueue_task(&sys, &task[1], wakeup.this_cpu, wakeup.now);
	track_delay_dequeue(&sys, &task[1], wakeup.now);
	track_requeue_delayed(&sys, &task[1], wakeup.now);
	return 0;
}

SEC("syscall")
int task_runs(void *ctx)
{
	(void)ctx;
	track_set_next_task(&sys, &task[0], wakeup.this_cpu, wakeup.now);
	note_sync_wakeup(&task[0], wakeup.now);
	track_task_tick(&sys, &task[0], wakeup.this_cpu, wakeup.now);
	track_put_prev_task(&sys, &task[0], wakeup.this_cpu, wakeup.now);
	return 0;
}

SEC("syscall")
int task_leaves(void *ctx)
{
	(void)ctx;
	track_dequeue_task(&sys, &task[0], wakeup.now, false);
	track_sleep(&sys, &task[0], wakeup.now);
	track_detach_task(&sys, &task[0]);
	track_remove_task(&sys, &task[1]);
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
	account_mm_sched(&sys, &process, &task[0], wakeup.random, wakeup.now);
	task_cache_cpu(&task[0], &process);
	return 0;
}

SEC("syscall")
int process_ticks(void *ctx)
{
	(void)ctx;
	if (process_tick(&sys, &process, wakeup.now))
		task_cache_work(&sys, &process, &task[0], wakeup.now);
	return process.cache_cpu;
}

char _license[] SEC("license") = "GPL";
