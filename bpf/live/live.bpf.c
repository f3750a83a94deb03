/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy as a sched_ext scheduler.
 *
 * policy/ decides where a task goes when it wakes, forks or is pulled, on the state
 * that host.bpf.h keeps. EEVDF decides when it runs there (queue.bpf.h): each CPU has
 * a dispatch queue of its own, ordered by virtual deadline. A task that finds its CPU
 * idle goes there directly, without being queued.
 */
#include "scx.bpf.h"
#include "common/host.bpf.h"

/* Processes, in the storage of their leaders. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cw_process);
} processes SEC(".maps");

static inline struct cw_process *find_process(struct task_struct *leader)
{
	return bpf_task_storage_get(&processes, leader, 0, 0);
}

static inline struct cw_process *new_process(struct task_struct *leader)
{
	return bpf_task_storage_get(&processes, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#include "common/process.bpf.h"
#include "queue.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

/* Whether the kernel was built for the lazy preemption model. */
extern bool CONFIG_PREEMPT_LAZY __kconfig __weak;

/* The scheduler's data about a task. */
struct live_task {
	struct host_task host;
	struct live_entity se;
	s32 ran_on; /* the CPU that it ran on last, -1 before it ran */
	u32 push_to; /* active balance, exec: where it goes when it is queued next, PUSH_* */
	u64 woken_at; /* ns, 0 once it has run */
	u32 by_interrupt; /* an interrupt woke it, not a task */
	u64 unaccounted; /* run time that has not been added to its process yet, ns */
	u32 dequeues; /* how often it has left the queues to sleep, or for good */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct live_task);
} tasks SEC(".maps");

/* A wakeup has claimed the CPU, which was idle; no other may until it runs something. */
u32 claimed[CW_MAX_CPUS];
/* It is going offline, or is offline. */
#define OFFLINE 1
/* It was offline when the machine was read, so its place in the topology is not known. */
#define UNPLACED 2
u32 offline[CW_MAX_CPUS];
/* The idle tasks, as wakers. */
struct cw_task swapper[CW_MAX_CPUS];
/* The last decision that each CPU made. */
struct cw_decision decision[CW_MAX_CPUS];

#include "stats.bpf.h"

/*
 * The clock of the runqueue of `cpu`, whose lock is held. As for the fair class, a switch has one
 * time from its beginning to its end. scx_bpf_now() would read the hardware's clock in each program,
 * because sched_ext counts the clock as invalid once a CPU dispatches.
 */
static inline u64 rq_clock(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq ? rq->clock : scx_bpf_now();
}

static inline struct live_task *lookup_task(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

#include "place.bpf.h"
#include "balance.bpf.h"
#include "crowd.bpf.h"
#include "pick.bpf.h"
#include "push.bpf.h"

s32 BPF_STRUCT_OPS(live_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return place_task(p, prev_cpu, wake_flags);
}

/*
 * The running task has executed another program. This is a good moment to move it, because
 * the caches hold little of it. sched_ext has no callback for it, so the CPU is made to
 * dispatch, and decides then.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(live_exec, struct task_struct *p)
{
	s32 cpu = bpf_get_smp_processor_id();
	struct live_task *t = lookup_task(p);

	if (!t || t->host.policy.queued.cpu != cpu || t->host.policy.nr_cpus_allowed < 2)
		return 0;
	balance_state_of(cpu)->exec = 1;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* SCHED_BATCH, include/uapi/linux/sched.h */
#define POLICY_BATCH 3

/* Places a task that comes to the queue of `cpu`. */
static inline void place_task_in_queue(struct live_task *t, const struct task_struct *p, s32 cpu)
{
	u32 flags = 0;

	if (t->host.policy.flags & CW_TASK_SCHED_IDLE)
		flags = CW_SE_IDLE;
	else if (p->policy == POLICY_BATCH)
		flags = CW_SE_BATCH;
	place_entity(&t->se, cpu, t->host.policy.weight, flags, t->ran_on < 0);
}

void BPF_STRUCT_OPS(live_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct live_stats *s = stats_of(bpf_get_smp_processor_id());
	u64 now = rq_clock(cpu);
	struct live_task *t = lookup_task(p);
	bool over;

	if (!t) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	/* a task that may run on one CPU only has not been placed */
	if (enq_flags & SCX_ENQ_WAKEUP && !t->woken_at) {
		t->woken_at = now;
		t->by_interrupt = !is_in_task(bpf_get_current_task_btf());
	}
	if (push_away(t, p, cpu, enq_flags, now))
		return;
	/* a CPU that goes offline keeps no queue; a task that is alone continues */
	if (offline[cpu & CW_CPU_MASK] || enq_flags & SCX_ENQ_LAST || claim_idle_cpu(cpu)) {
		insert_local(p, enq_flags);
		return;
	}
	track_enqueue_task(&sys, &t->host.policy, cpu, now);
	queue_leave(&t->se);
	over = charge_curr(&sys, fair_rq(cpu), now);
	if (t->se.cpu != cpu)
		place_task_in_queue(t, p, cpu);
	limit_wait(&t->se.se, cpu);
	queue_join(&t->se, cpu);
	if (gets_turns(p) && is_crowded(cpu)) {
		enqueue_kthread(p, cpu, enq_flags);
	} else {
		balance_state_of(cpu)->kthreads_among_tasks |= gets_turns(p);
		scx_bpf_dsq_insert_vtime(p, cpu, t->se.se.slice, (u64)t->se.se.deadline, enq_flags);
	}
	s->enqueued++;
	if (wakeup_preempt(t, cpu, now) || over) {
		s->preempted++;
		resched_curr_lazy(cpu, over || t->by_interrupt);
	}
}

void BPF_STRUCT_OPS(live_dispatch, s32 cpu, struct task_struct *prev)
{
	struct balance_state *balance = balance_state_of(cpu);
	struct live_queue *q = queue_of(cpu);
	u64 now = rq_clock(cpu);

	if (prev && !(prev->scx.flags & SCX_TASK_QUEUED))
		prev = NULL;
	if (balance->due) {
		balance->due = 0;
		sched_balance_domains(cpu, prev ? CW_NOT_IDLE : CW_IDLE);
	}
	if (balance->exec) {
		balance->exec = 0;
		if (prev)
			sched_exec(cpu, prev);
	}
	if (ask_to_leave(cpu, prev))
		return;
	if (prev) {
		charge_curr(&sys, &q->fair, now);
		if (is_rcu_reader(q, prev)) {
			/* until the next tick */
			prev->scx.slice = 1;
			return;
		}
	}
	if (balance->kthreads_among_tasks && is_crowded(cpu))
		gather_kthreads(cpu);
	if (has_waiting(cpu) && !(prev && pick_protected(&sys, &q->fair, true)) &&
	    (pick_kthread(cpu) || rescue_starving(cpu, now) || pick_waiting(cpu, prev)))
		return;
	if (prev)
		prev->scx.slice = base_slice(&sys);
	else
		sched_balance_newidle(cpu);
}

/* sched_yield. A task continues without a switch if no other task waits. */
bool BPF_STRUCT_OPS(live_yield, struct task_struct *from, struct task_struct *to)
{
	struct cw_fair_rq *rq = fair_rq(scx_bpf_task_cpu(from));

	if (to || !rq->nr_waiting)
		return false;
	charge_curr(&sys, rq, scx_bpf_now());
	yield_task_fair(&sys, rq);
	from->scx.slice = 0;
	return false;
}

/*
 * sched_ext does not ask what is to run next on a CPU that is going offline or coming online.
 * If the slice of its task ended there while its local queue is empty, the CPU would idle and
 * the task, which may be part of the hotplug itself, would wait. A tick therefore ends the
 * slice only if another task is in the local queue, and no slice ends between two ticks. A
 * task that does not belong there leaves when the CPU schedules.
 */
static inline void task_tick_offline(struct task_struct *p, s32 cpu)
{
	p->scx.slice = scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) ? 0 : SCX_SLICE_DFL;
	scx_bpf_kick_cpu(cpu, 0);
}

void BPF_STRUCT_OPS(live_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = rq_clock(cpu);
	struct live_task *t = lookup_task(p);

	if (!t)
		return;
	queue_leave(&t->se);
	if (t->se.cpu != cpu)
		place_task_in_queue(t, p, cpu);
	release_cpu(cpu);
	count_switch(t, cpu, now);
	host_set_next_task(&t->host, cpu, now);
	set_next_task(&t->se, cpu, now);
	if (offline[cpu & CW_CPU_MASK])
		p->scx.slice = SCX_SLICE_DFL;
}

/* Run time is added to the task's process in steps of this many ns: a hundredth of an epoch (llc_epoch_period). */
#define ACCOUNT_STEP_NS 100000

/* Adds the running task's run time to that of its process on the CPU, if it is a full step. */
static inline void account_run(struct live_task *t, struct task_struct *p, u64 now)
{
	s64 delta = (s64)(now - t->host.policy.exec_start);
	struct cw_process *process;

	if (delta > 0)
		t->unaccounted += (u64)delta;
	if (t->unaccounted < ACCOUNT_STEP_NS)
		return;
	process = lookup_process(p);
	if (process)
		account_mm_sched(&sys, process, &t->host.policy, t->unaccounted, now);
	t->unaccounted = 0;
}

void BPF_STRUCT_OPS(live_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = rq_clock(cpu);
	struct live_task *t = lookup_task(p);

	if (!t)
		return;
	put_prev_task(&t->se, cpu, !runnable, now);
	account_run(t, p, now);
	track_put_prev_task(&sys, &t->host.policy, cpu, now);
}

void BPF_STRUCT_OPS(live_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct live_task *t = lookup_task(p);
	u64 now = rq_clock(scx_bpf_task_cpu(p));

	if (!t)
		return;
	/* before it is subtracted: see account_pull() */
	__sync_fetch_and_add(&t->dequeues, 1);
	if (queue_cpu(&t->se) >= 0) {
		update_entity_lag(&sys, fair_rq(queue_cpu(&t->se)), &t->se.se);
		queue_leave(&t->se);
	}
	t->se.slept_on = deq_flags & SCX_DEQ_SLEEP ? t->se.cpu : -1;
	t->se.cpu = -1;
	t->push_to = 0;
	host_dequeue_task(&t->host, now, deq_flags & SCX_DEQ_SLEEP);
}

/*
 * Wakes CPUs that idle although tasks wait for them, one at each tick of `cpu`. There should
 * be none. But while a CPU goes offline, a kick may be lost, and tasks that had been moved
 * there waited until sched_ext's watchdog ended the scheduler. A CPU that goes offline also
 * waits until its last task has left, and checks that only when it switches: it would not
 * notice that another CPU has taken the task.
 */
static inline void kick_stuck_cpu(s32 cpu)
{
	struct balance_state *balance = balance_state_of(cpu);
	s32 other = balance->looked_at + 1;

	if (other >= (s32)sys.nr_cpus)
		other = 0;
	balance->looked_at = other;
	if (cpu_rq(&sys, other)->curr_is_idle &&
	    (offline[other & CW_CPU_MASK] || has_waiting(other) ||
	     scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | other) > 0))
		scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(live_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = rq_clock(cpu);
	struct live_queue *q = queue_of(cpu);
	struct live_task *t = lookup_task(p);

	if (!hardirq_mask)
		learn_hardirq_mask();
	if (!t)
		return;
	host_scale_freq(cpu);
	account_run(t, p, now);
	track_task_tick(&sys, &t->host.policy, cpu, now);
	task_tick_cache(p, &t->host, now);
	if (offline[cpu & CW_CPU_MASK]) {
		update_curr(&sys, &q->fair, now);
		task_tick_offline(p, cpu);
		return;
	}
	if ((charge_curr(&sys, &q->fair, now) && has_waiting(cpu)) || q->resched)
		p->scx.slice = 0;
	if (sched_balance_trigger(cpu, now))
		p->scx.slice = 0;
	kick_stuck_cpu(cpu);
}

void BPF_STRUCT_OPS(live_update_idle, s32 cpu, bool idle)
{
	if (idle)
		release_cpu(cpu);
	host_set_idle(cpu, idle, scx_bpf_now());
}

/* A higher class takes the CPU: the task that was to run next here waits where others can pull it. */
void BPF_STRUCT_OPS(live_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	__sync_fetch_and_add(&cpu_rq(&sys, cpu)->nr_running, 1);
	scx_bpf_reenqueue_local();
}

void BPF_STRUCT_OPS(live_cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	__sync_fetch_and_add(&cpu_rq(&sys, cpu)->nr_running, -1);
}

/*
 * An offline CPU looks busy, so that the policy does not choose it. If it is chosen anyway,
 * the kernel chooses another one. Tasks that wait for it may run anywhere.
 */
void BPF_STRUCT_OPS(live_cpu_offline, s32 cpu)
{
	struct task_struct *p;
	s32 other;

	offline[cpu & CW_CPU_MASK] = OFFLINE;
	/* a task of the hotplug, on this CPU; others come through live_running() */
	bpf_get_current_task_btf()->scx.slice = SCX_SLICE_DFL;
	__sync_fetch_and_add(&cpu_rq(&sys, cpu)->nr_running, 1);
	bpf_for_each(scx_dsq, p, cpu, 0)
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_GLOBAL, 0);
	bpf_for_each(scx_dsq, p, kthread_queue(cpu), 0)
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_GLOBAL, 0);
	bpf_for(other, 0, sys.nr_cpus)
		if (other != cpu && !offline[other & CW_CPU_MASK])
			scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
}

/* User space reads the machine again for a CPU that it has not seen yet. */
void BPF_STRUCT_OPS(live_cpu_online, s32 cpu)
{
	if (offline[cpu & CW_CPU_MASK] == UNPLACED) {
		scx_bpf_exit(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG, "CPU %d is new", cpu);
		return;
	}
	offline[cpu & CW_CPU_MASK] = 0;
	__sync_fetch_and_add(&cpu_rq(&sys, cpu)->nr_running, -1);
}

void BPF_STRUCT_OPS(live_set_weight, struct task_struct *p, u32 weight)
{
	struct live_task *t = lookup_task(p);

	if (t)
		host_set_weight(&t->host, p);
}

void BPF_STRUCT_OPS(live_set_cpumask, struct task_struct *p, const struct cpumask *allowed)
{
	struct live_task *t = lookup_task(p);

	if (t)
		host_set_cpus_allowed(&t->host, p, allowed);
}

s32 BPF_STRUCT_OPS(live_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct live_task *t = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	const struct live_task *parent = args->fork ? lookup_task(bpf_get_current_task_btf()) : NULL;
	u64 now = scx_bpf_now();

	if (!t)
		return -ENOMEM;
	t->se.cpu = -1;
	t->se.slept_on = -1;
	t->se.se.id = p->pid;
	t->ran_on = -1;
	host_init_task(&t->host, p, args->fork, now);
	if (parent)
		track_fork(&t->host.policy, &parent->host.policy);
	host_set_cpus_allowed(&t->host, p, p->cpus_ptr);
	sched_cache_fork(p, now);
	return 0;
}

void BPF_STRUCT_OPS(live_disable, struct task_struct *p)
{
	struct live_task *t = lookup_task(p);

	if (!t)
		return;
	host_dequeue_task(&t->host, scx_bpf_now(), false);
	track_remove_task(&sys, &t->host.policy);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(live_init)
{
	s32 cpu;

	bpf_for(cpu, 0, sys.nr_cpus) {
		s32 error = scx_bpf_create_dsq(cpu, -1);

		if (!error)
			error = scx_bpf_create_dsq(kthread_queue(cpu), -1);
		if (error)
			return error;
	}
	return 0;
}

void BPF_STRUCT_OPS(live_exit, struct scx_exit_info *info)
{
	UEI_RECORD(uei, info);
}

#include "dump.bpf.h"

SCX_OPS_DEFINE(live_ops,
	       .select_cpu = (void *)live_select_cpu,
	       .enqueue = (void *)live_enqueue,
	       .dispatch = (void *)live_dispatch,
	       .yield = (void *)live_yield,
	       .running = (void *)live_running,
	       .stopping = (void *)live_stopping,
	       .quiescent = (void *)live_quiescent,
	       .tick = (void *)live_tick,
	       .update_idle = (void *)live_update_idle,
	       .cpu_acquire = (void *)live_cpu_acquire,
	       .cpu_release = (void *)live_cpu_release,
	       .cpu_online = (void *)live_cpu_online,
	       .cpu_offline = (void *)live_cpu_offline,
	       .set_weight = (void *)live_set_weight,
	       .set_cpumask = (void *)live_set_cpumask,
	       .init_task = (void *)live_init_task,
	       .disable = (void *)live_disable,
	       .dump = (void *)live_dump,
	       .dump_cpu = (void *)live_dump_cpu,
	       .dump_task = (void *)live_dump_task,
	       .init = (void *)live_init,
	       .exit = (void *)live_exit,
	       .flags = SCX_OPS_ALLOW_QUEUED_WAKEUP | SCX_OPS_ENQ_LAST,
	       .name = "coreward");
