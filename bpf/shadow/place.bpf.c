/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy's decisions as programs to be run by hand (BPF_PROG_RUN). User space
 * writes the state and the question to the variables below and runs a program. It then
 * reads from them what was decided and what the policy wrote to the state. The result
 * shows whether the policy decides in BPF as it does in a native build.
 */
#include "balance/balance.h"
#include "wakeup/wakeup.h"

#define SEC(name) __attribute__((section(name), used))

struct cw_sys sys;
struct cw_task task;
struct cw_task waker;
struct cw_cpumask allowed;
struct cw_balance env;
struct cw_decision decision;

/* The question to place(): the members of struct cw_wakeup that are not pointers. */
struct place_question {
	s32 this_cpu;
	s32 prev_cpu;
	s32 task_cpu;
	u32 wake_flags;
	u32 in_task;
	u32 random;
	u32 wakes_itself; /* the task is its own waker: an exec */
	u32 group; /* of find_src_rq() */
	u64 now;
} question;

/* The choice: a CPU, or a group. */
s32 choice;

SEC("syscall")
int place(void *ctx)
{
	struct cw_wakeup w = {
		.p = &task,
		.waker = question.wakes_itself ? &task : &waker,
		.cpus_ptr = &allowed,
		.this_cpu = question.this_cpu,
		.prev_cpu = question.prev_cpu,
		.task_cpu = question.task_cpu,
		.wake_flags = question.wake_flags,
		.in_task = question.in_task,
		.random = question.random,
		.now = question.now,
	};

	(void)ctx;
	choice = select_task_rq_fair(&sys, &w, &decision);
	return 0;
}

SEC("syscall")
int find_src_group(void *ctx)
{
	(void)ctx;
	balance_record(&env, &decision);
	choice = sched_balance_find_src_group(&sys, &env, &decision);
	return 0;
}

SEC("syscall")
int find_src_rq(void *ctx)
{
	(void)ctx;
	balance_record(&env, &decision);
	choice = sched_balance_find_src_rq(&sys, &env, question.group, &decision);
	return 0;
}

char _license[] SEC("license") = "GPL";
