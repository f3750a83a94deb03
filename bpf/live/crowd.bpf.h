/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What has to run when very many tasks wait, although its weight and deadline alone
 * would make it wait too long: kernel threads that everything else depends on, tasks
 * that are owed next to nothing (sched_ext's watchdog would end the scheduler for
 * them), and readers of RCU.
 */
#ifndef CW_CROWD_BPF_H
#define CW_CROWD_BPF_H

/* Does a task wait for `cpu`? The sums may not say so while it is moved. */
static inline bool has_waiting(s32 cpu)
{
	return fair_rq(cpu)->nr_waiting || scx_bpf_dsq_nr_queued(cpu) > 0;
}

/* Balancing may have brought the task's place in the queue here, but not yet the task. */
static inline bool may_run_here(struct task_struct *p, s32 cpu)
{
	return scx_bpf_task_cpu(p) == cpu || !is_migration_disabled(p);
}

/*
 * A kernel thread gets a turn at least this often, however many tasks wait. sched_ext's
 * watchdog runs in such a thread every 15 s, and so does the work by which RCU lets others
 * continue. A round among 1,250 tasks takes 5 to 15 s, and such work takes many rounds.
 */
#define KTHREAD_PERIOD_NS 100000000ULL
/* static_prio of nice 0: DEFAULT_PRIO, include/linux/sched/prio.h. */
#define DEFAULT_PRIO 120

/* The queue of kernel threads that wait for `cpu` among very many tasks, in the order in which they came. */
static inline u64 kthread_queue(s32 cpu)
{
	return CW_MAX_CPUS + (u64)cpu;
}

/* Might a kernel thread wait for longer than its period among the tasks of `cpu`? */
static inline bool is_crowded(s32 cpu)
{
	return cpu_rq(&sys, cpu)->nr_running * base_slice(&sys) > KTHREAD_PERIOD_NS;
}

/* Is the task such a kernel thread? */
static inline bool gets_turns(const struct task_struct *p)
{
	return p->flags & PF_KTHREAD && p->static_prio <= DEFAULT_PRIO;
}

static inline void enqueue_kthread(struct task_struct *p, s32 cpu, u64 enq_flags)
{
	balance_state_of(cpu)->kthreads = 1;
	scx_bpf_dsq_insert(p, kthread_queue(cpu), base_slice(&sys), enq_flags);
}

/* How many tasks at the head of a queue are looked at when a crowd has formed. */
#define GATHER_MAX 64

/*
 * A crowd has formed on `cpu`: moves the kernel threads that came before it to their own queue.
 * They would wait the longest, because new tasks have earlier deadlines and V slows down.
 */
static __noinline void gather_kthreads(s32 cpu)
{
	struct balance_state *balance = balance_state_of(cpu);
	struct task_struct *p;
	u32 asked = unknown(0u);

	balance->kthreads_among_tasks = 0;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (asked++ == GATHER_MAX)
			break;
		if (gets_turns(p) &&
		    scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, kthread_queue(cpu), 0))
			balance->kthreads = 1;
	}
}

/* Would the first kernel thread run before the first of the other tasks by EEVDF, too? */
static __noinline bool is_kthread_best(s32 cpu)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(kthread_queue(cpu));
	struct live_task *t = p ? lookup_task(p) : NULL;

	if (!t || !may_run(&t->se, cpu))
		return false;
	p = __COMPAT_scx_bpf_dsq_peek(cpu);
	return !p || t->se.se.deadline <= (s64)p->scx.dsq_vtime;
}

/* Runs a waiting kernel thread if its turn has come or no other task is there. */
static inline bool pick_kthread(s32 cpu)
{
	struct balance_state *balance = balance_state_of(cpu);
	u64 now;

	if (!balance->kthreads)
		return false;
	now = bpf_jiffies64();
	if (now < balance->next_kthread && scx_bpf_dsq_nr_queued(cpu) > 0 && !is_kthread_best(cpu))
		return false;
	balance->next_kthread = now + KTHREAD_PERIOD_NS / sys.tick_ns;
	balance->kthreads = scx_bpf_dsq_move_to_local(kthread_queue(cpu), 0);
	return balance->kthreads;
}

/* A task that has waited for this long runs, whatever the others are owed: sched_ext's watchdog waits for 30 s. */
#define STARVING_NS 10000000000ULL
/* How many tasks at the end of a queue are checked for starving. */
#define RESCUE_MAX 32

/*
 * The wait of a task is limited when it is queued (limit_wait()). But V slows down when more
 * tasks come, and then the tasks with the latest deadlines starve. This moves one of them to
 * the local queue of `cpu`.
 */
static __noinline bool find_starving(s32 cpu, u64 now)
{
	u64 *next = &balance_state_of(cpu)->next_rescue, jiffies = bpf_jiffies64();
	struct task_struct *p;
	u32 asked = unknown(0u);

	*next = now + STARVING_NS / 10;
	bpf_for_each(scx_dsq, p, cpu, SCX_DSQ_ITER_REV) {
		if (asked++ == RESCUE_MAX)
			break;
		if (jiffies - p->scx.runnable_at < STARVING_NS / sys.tick_ns || !may_run_here(p, cpu))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			/* there may be more */
			*next = now + sys.tick_ns;
			return true;
		}
	}
	return false;
}

static inline bool rescue_starving(s32 cpu, u64 now)
{
	return now >= balance_state_of(cpu)->next_rescue && find_starving(cpu, now);
}

/*
 * Each program runs within its own read-side section, which counts for the current task
 * (__bpf_prog_enter(), kernel/bpf/trampoline.c).
 */
#define RCU_NESTING_OWN 1

/* Number of ticks for which an RCU reader keeps its CPU. Most read-side sections last a small part of a tick. */
#define RCU_TICKS 8

/*
 * Is the running task within an RCU read-side section? sched_ext switches away from it there
 * when its slice ends, whereas the fair class lets it leave the kernel first. Among a thousand
 * waiting tasks, it would be back only after seconds, and RCU would wait that long for each
 * such reader.
 */
static inline bool is_rcu_reader(struct live_queue *q, const struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_lock_nesting) &&
	       p->rcu_read_lock_nesting > RCU_NESTING_OWN && q->rcu_ticks++ < RCU_TICKS;
}

#endif /* CW_CROWD_BPF_H */
