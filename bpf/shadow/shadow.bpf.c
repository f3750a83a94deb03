/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the policy beside the fair class of a running kernel and compares the two.
 *
 * The state that the policy decides on is maintained from the sched tracepoints alone
 * (host.bpf.h), because every kernel with BTF has them. The policy is asked when the
 * kernel is about to place a task (sched_waking, sched_process_fork, an exec). The
 * kernel's choice is known when the task is queued (sched_wakeup, sched_wakeup_new) or
 * has moved. Nothing here changes what the kernel does.
 */
#include "shadow.h"
/* after the integer types */
#include "common/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "common/host.bpf.h"

/*
 * Processes, by their pids. Their leaders' storage has no room for them in 7.x, where an
 * allocation within a tracepoint is limited to 8 KiB.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SHADOW_MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct cw_process);
} processes SEC(".maps");

/* One that has not run yet. */
struct cw_process blank_process;

static inline struct cw_process *find_process(struct task_struct *leader)
{
	u32 tgid = (u32)leader->tgid;

	return bpf_map_lookup_elem(&processes, &tgid);
}

static inline struct cw_process *new_process(struct task_struct *leader)
{
	u32 tgid = (u32)leader->tgid;

	bpf_map_update_elem(&processes, &tgid, &blank_process, BPF_NOEXIST);
	return bpf_map_lookup_elem(&processes, &tgid);
}

#include "common/process.bpf.h"
#include "stale.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct shadow_setup setup = { 0 };

_Static_assert(CW_NR_REASONS <= SHADOW_MAX_REASONS, "a reason has no counter");

/* A placement that the policy has decided, but the kernel has not. */
struct pending {
	s32 prev_cpu;
	s32 choice; /* -1: none */
	u32 reason;
};

struct shadow_task {
	struct host_task host;
	struct pending wake;
	struct pending exec;
	s32 exec_cpu; /* the CPU to which the kernel has moved it for an exec, -1: none */
	u16 known;
	u16 hidden;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct shadow_task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct shadow_totals);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct shadow_key);
	__type(value, struct shadow_share);
} shares SEC(".maps");

/* The stack from a tracepoint up to the function that wakes, with room to spare. */
#define STACK_WORDS 40

/* Scratch memory for a decision. A wakeup may interrupt a fork or an exec. */
struct scratch {
	struct cw_decision decision;
	struct cw_balance env;
	u64 stack[STACK_WORDS]; /* what stands on the kernel's */
};

enum { SCRATCH_WAKEUP, SCRATCH_TASK, NR_SCRATCH };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_SCRATCH);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static struct shadow_totals *totals_of_this_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&totals, &key);
}

static bool is_fair(const struct task_struct *p)
{
	return p->prio >= MAX_RT_PRIO && p->policy != SCHED_EXT;
}

static bool is_idle(const struct task_struct *p)
{
	return !p->pid;
}

static s32 task_cpu(const struct task_struct *p)
{
	return p->thread_info.cpu;
}

/* Starts with the kernel's averages of a task. */
static void take_averages(struct cw_avg *avg, const struct task_struct *p)
{
	avg->load_avg = p->se.avg.load_avg;
	avg->runnable_avg = p->se.avg.runnable_avg;
	avg->util_avg = p->se.avg.util_avg;
	avg->util_est = p->se.avg.util_est;
}

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

/*
 * A kernel may hide tasks from BPF, such as those of a virtual machine's supervisor. The events
 * of other tasks show when they wake and are switched to, but not when they are switched from.
 */
static bool is_hidden(s32 pid)
{
	struct task_struct *p = bpf_task_from_pid(pid);

	if (!p)
		return true;
	bpf_task_release(p);
	return false;
}

/* Does the policy ask which LLC a process prefers? This is the only such feature that affects placement. */
static bool prefers_llc(void)
{
	return sched_feat(&sys, CW_FEAT_CACHE_AWARE_WAKEUP);
}

/* The shadow's data about a task; NULL if there is no memory for it. */
static struct shadow_task *task_of(struct task_struct *p, bool is_new)
{
	struct shadow_task *t = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct shadow_totals *total;
	u64 now = bpf_ktime_get_ns();

	if (!t) {
		total = totals_of_this_cpu();
		if (total)
			total->lost++;
		return NULL;
	}
	if (t->known)
		return t;
	t->known = 1;
	t->hidden = !is_idle(p) && is_hidden(p->pid);
	t->wake.choice = t->exec.choice = t->exec_cpu = -1;
	host_init_task(&t->host, p, is_new, now);
	if (prefers_llc())
		sched_cache_fork(p, now);
	t->host.policy.cpu = task_cpu(p);
	t->host.policy.recent_used_cpu = p->recent_used_cpu;
	if (!is_new)
		take_averages(&t->host.policy.avg, p);
	return t;
}

/*
 * Does the current wakeup have WF_SYNC? The tracepoint does not say so, but the functions
 * that wake with it are on the stack, above the tracepoint's own frames.
 */
/* Bits of an address that arm64 does not sign. */
#define ADDRESS_MASK ((1ULL << 48) - 1)

static bool is_sync(void *ctx)
{
	u32 key = SCRATCH_WAKEUP, i, j;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &key);
	const u64 *stack;

	if (!scratch || bpf_probe_read_kernel(scratch->stack, sizeof(scratch->stack), ctx))
		return false;
	stack = scratch->stack;
	for (i = 0; i < STACK_WORDS; i++)
		for (j = 0; j < SHADOW_MAX_SYNC && j < setup.nr_sync; j++)
			if ((stack[i] & ADDRESS_MASK) - setup.sync[j].start < setup.sync[j].size)
				return true;
	return false;
}

static void count_share(struct task_struct *p, bool elsewhere, u32 kernel, u32 policy)
{
	struct shadow_share none = { 0 }, *share;
	struct shadow_key key = { 0 };

	if (setup.by == SHADOW_BY_COMM)
		bpf_probe_read_kernel(key.comm, sizeof(key.comm), p->comm);
	else
		key.cgroup = BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
	share = bpf_map_lookup_elem(&shares, &key);
	if (!share) {
		bpf_map_update_elem(&shares, &key, &none, BPF_NOEXIST);
		share = bpf_map_lookup_elem(&shares, &key);
	}
	if (!share)
		return;
	__sync_fetch_and_add(&share->decisions, 1);
	if (elsewhere)
		__sync_fetch_and_add(&share->elsewhere, 1);
	if (kernel == policy || kernel >= CW_NR_DISTANCES || policy >= CW_NR_DISTANCES)
		return;
	__sync_fetch_and_add(&share->avoided[kernel], 1);
	__sync_fetch_and_add(&share->added[policy], 1);
}

/* The kernel has placed the task on `cpu`. */
static void compare(struct task_struct *p, struct pending *pending, enum shadow_kind kind, s32 cpu)
{
	struct shadow_totals *total = totals_of_this_cpu();
	bool elsewhere = pending->choice != cpu;
	struct shadow_counts *counts;
	u32 kernel, policy;

	if (!total || pending->choice < 0)
		return;
	kernel = cpu_distance(&sys, pending->prev_cpu, cpu);
	policy = cpu_distance(&sys, pending->prev_cpu, pending->choice);
	pending->choice = -1;
	counts = &total->kind[kind];
	counts->decisions++;
	counts->elsewhere += elsewhere;
	if (pending->reason < SHADOW_MAX_REASONS) {
		total->reason[pending->reason].decisions++;
		total->reason[pending->reason].elsewhere += elsewhere;
	}
	counts->kernel[kernel]++;
	counts->policy[policy]++;
	if (kernel != policy) {
		counts->avoided[kernel]++;
		counts->added[policy]++;
	}
	if (setup.by != SHADOW_BY_NONE)
		count_share(p, elsewhere, kernel, policy);
}

static u64 difference(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* Compares the tracked state of a task's CPU with the kernel's own state. */
static void sample_drift(struct shadow_totals *total, const struct task_struct *p, s32 cpu)
{
	const struct rq *rq = p->se.cfs_rq->rq;
	const struct cw_cpu *own = cpu_rq(&sys, cpu);
	struct shadow_drift *drift = &total->drift;
	u32 nr_running, nr_delayed = 0;
	bool idle;

	if (!rq || rq->cpu != cpu)
		return;
	nr_running = rq->nr_running;
	idle = rq->curr == rq->idle && !nr_running && !rq->ttwu_pending;
	/* no event shows when a sleeper whose dequeue is delayed leaves the queue, so it counts as gone immediately */
	if (bpf_core_field_exists(rq->cfs.h_nr_runnable))
		nr_delayed = rq->cfs.h_nr_queued - rq->cfs.h_nr_runnable;
	/* read without the queue's lock: no sample while the counts change */
	if (nr_delayed > nr_running)
		return;
	nr_running -= nr_delayed;
	drift->samples++;
	drift->idle += idle != idle_cpu(&sys, cpu);
	drift->nr_running += nr_running != own->nr_running;
	drift->nr_running_sum += difference(nr_running, own->nr_running);
	drift->util_sum += difference(rq->cfs.avg.util_avg, own->avg.util_avg);
}

/* A thread has ended. If it is the first one, its process has ended, or nearly so. */
static void forget_process(const struct task_struct *p)
{
	u32 pid = (u32)p->pid;

	if (prefers_llc() && p->pid == p->tgid)
		bpf_map_delete_elem(&processes, &pid);
}

static void switch_from(struct task_struct *p, s32 cpu, u64 now)
{
	struct shadow_task *t;
	bool sleeps;

	if (is_idle(p))
		return;
	t = task_of(p, false);
	if (!t)
		return;
	sleeps = !p->on_rq || (bpf_core_field_exists(p->se.sched_delayed) && p->se.sched_delayed);
	if (is_fair(p) && t->host.policy.queued.cpu == cpu)
		track_put_prev_task(&sys, &t->host.policy, cpu, now);
	if (sleeps || !is_fair(p))
		host_dequeue_task(&t->host, now, sleeps);
	if (p->__state & TASK_DEAD) {
		track_remove_task(&sys, &t->host.policy);
		forget_process(p);
	}
}

static void switch_to(struct task_struct *p, s32 cpu, u64 now)
{
	struct shadow_task *t;

	cpu_rq(&sys, cpu)->curr = 0;
	host_set_idle(cpu, is_idle(p), now);
	if (is_idle(p) || !is_fair(p))
		return;
	t = task_of(p, false);
	if (t && !t->hidden)
		host_set_next_task(&t->host, cpu, now);
}

/*
 * The first of the programs. They are attached one after the other, and no task may be
 * counted before its leaving the queue or its end can be seen.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	s32 cpu = bpf_get_smp_processor_id();
	u64 now = bpf_ktime_get_ns();

	switch_from(prev, cpu, now);
	switch_to(next, cpu, now);
	return 0;
}

/* The run time of the running task, at ticks and switches. Loaded only if processes can prefer caches. */
SEC("tp_btf/sched_stat_runtime")
int BPF_PROG(stat_runtime, struct task_struct *p, u64 runtime)
{
	struct cw_process *process = lookup_process(p);
	struct shadow_task *t = process ? task_of(p, false) : NULL;
	u64 now = bpf_ktime_get_ns();

	if (!t)
		return 0;
	account_mm_sched(&sys, process, &t->host.policy, runtime, now);
	task_tick_cache(p, &t->host, now);
	return 0;
}

/* Has the policy choose a CPU. */
static void ask_policy(struct task_struct *p, struct shadow_task *t, struct shadow_task *waker,
		       struct pending *pending, u32 wake_flags)
{
	u32 scratch_key = wake_flags & WF_TTWU ? SCRATCH_WAKEUP : SCRATCH_TASK;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &scratch_key);
	struct shadow_totals *total = totals_of_this_cpu();
	struct cw_wakeup w = {
		.this_cpu = bpf_get_smp_processor_id(),
		.prev_cpu = pending->prev_cpu,
		.task_cpu = task_cpu(p),
		.wake_flags = wake_flags,
		.in_task = 1,
		.random = bpf_get_prandom_u32(),
		.now = bpf_ktime_get_ns(),
	};

	pending->choice = -1;
	if (!scratch || !total)
		return;
	host_set_cpus_allowed(&t->host, p, p->cpus_ptr);
	host_set_weight(&t->host, p);
	w.p = &t->host.policy;
	w.waker = &waker->host.policy;
	w.cpus_ptr = &t->host.allowed;
	if (prefers_llc())
		task_cache_cpu(&t->host.policy, lookup_process(p));
	host_refresh(&scratch->env, &w);
	pending->choice = select_task_rq_fair(&sys, &w, &scratch->decision);
	total->ns += bpf_ktime_get_ns() - w.now;
	total->decided++;
	total->sync += !!(wake_flags & WF_SYNC);
	total->preferred_llc += !!(scratch->decision.notes & CW_NOTE_CACHE_CPU);
	pending->reason = scratch->decision.reason;
	if (!(w.random & 15))
		sample_drift(total, p, task_cpu(p));
}

/* Will the kernel queue the task where it ran, because it is still there or may run nowhere else? */
static bool stays(const struct task_struct *p, const struct task_struct *waker, s32 this_cpu)
{
	s32 cpu = task_cpu(p);

	if (p == waker || p->on_rq || p->nr_cpus_allowed == 1 ||
	    (bpf_core_field_exists(p->migration_disabled) && p->migration_disabled))
		return true;
	/* still switching away: queued there remotely (ttwu_queue_wakelist) */
	return p->on_cpu && cpu != this_cpu &&
	       (!cpus_share_cache(&sys, cpu, this_cpu) || !cpu_rq(&sys, cpu)->nr_running);
}

/* The current task is to be moved by its CPU's stopper: for an exec, if it is in one. */
static void begin_exec(struct task_struct *task)
{
	struct shadow_task *t;

	if (!BPF_CORE_READ_BITFIELD(task, in_execve) || !is_fair(task) || task->nr_cpus_allowed == 1)
		return;
	t = task_of(task, false);
	if (!t)
		return;
	t->exec_cpu = -1;
	t->exec.prev_cpu = task_cpu(task);
	ask_policy(task, t, t, &t->exec, WF_EXEC);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *p)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct shadow_totals *total = totals_of_this_cpu();
	s32 this_cpu = bpf_get_smp_processor_id();
	struct shadow_task *t, *waker;
	u32 flags = WF_TTWU;

	if (!is_fair(p)) {
		/* prio 0 is the stop class's */
		if (!p->prio && (p->flags & PF_KTHREAD))
			begin_exec(current);
		return 0;
	}
	t = task_of(p, false);
	waker = task_of(current, false);
	if (!t || t->hidden || !waker || !total)
		return 0;
	t->wake.choice = -1;
	if (stays(p, current, this_cpu)) {
		total->unplaced++;
		return 0;
	}
	if (is_sync(ctx))
		flags |= WF_SYNC;
	t->wake.prev_cpu = p->wake_cpu;
	ask_policy(p, t, waker, &t->wake, flags);
	return 0;
}

static int enqueued(struct task_struct *p, enum shadow_kind kind)
{
	u64 now = bpf_ktime_get_ns();
	s32 cpu = task_cpu(p);
	struct shadow_task *t;

	cpu_rq(&sys, cpu)->ttwu_pending = 0;
	if (!is_fair(p))
		return 0;
	t = task_of(p, kind == SHADOW_FORK);
	if (!t || t->hidden)
		return 0;
	compare(p, &t->wake, kind, cpu);
	track_enqueue_task(&sys, &t->host.policy, cpu, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakeup, struct task_struct *p)
{
	return enqueued(p, SHADOW_WAKEUP);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wakeup_new, struct task_struct *p)
{
	return enqueued(p, SHADOW_FORK);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(migrate_task, struct task_struct *p, int dest_cpu)
{
	u64 now = bpf_ktime_get_ns();
	struct shadow_task *t;

	if (!is_fair(p))
		return 0;
	t = task_of(p, false);
	if (!t || t->hidden)
		return 0;
	if (t->host.policy.queued.cpu >= 0 && p->on_rq) {
		track_enqueue_task(&sys, &t->host.policy, dest_cpu, now);
		t->exec_cpu = dest_cpu;
		return 0;
	}
	host_dequeue_task(&t->host, now, false);
	track_set_task_cpu(&sys, &t->host.policy, dest_cpu);
	return 0;
}

/* A function is queued for another CPU. It may be the one that takes woken tasks (ttwu_queue_wakelist). */
SEC("tp_btf/csd_queue_cpu")
int BPF_PROG(csd_queue_cpu, unsigned int cpu, unsigned long callsite, void *func,
	     struct __call_single_data *csd)
{
	if ((csd->node.u_flags & CSD_FLAG_TYPE_MASK) == CSD_TYPE_TTWU)
		cpu_rq(&sys, cpu)->ttwu_pending = 1;
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct shadow_task *t, *waker;

	if (!is_fair(child))
		return 0;
	t = task_of(child, true);
	waker = task_of(parent, false);
	if (!t || !waker || child->nr_cpus_allowed == 1)
		return 0;
	t->wake.prev_cpu = task_cpu(child);
	ask_policy(child, t, waker, &t->wake, WF_FORK);
	return 0;
}

/* The exec is complete. If the kernel has not moved the task for it, it decided to keep the task in place. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *p)
{
	struct shadow_task *t;

	if (!is_fair(p))
		return 0;
	t = task_of(p, false);
	if (!t)
		return 0;
	if ((t->exec.choice < 0 || t->exec_cpu < 0) && p->nr_cpus_allowed > 1) {
		t->exec_cpu = t->exec.prev_cpu = task_cpu(p);
		ask_policy(p, t, t, &t->exec, WF_EXEC);
	}
	compare(p, &t->exec, SHADOW_EXEC, t->exec_cpu);
	t->exec_cpu = -1;
	return 0;
}
