/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what the fair class of a running kernel decides, and the state that each
 * decision is based on: where a task is placed (wakeup, fork, exec), which group a
 * balance considers the busiest, and which CPU it pulls from. Alternatively, records
 * the changes of each CPU's queue (step.bpf.h).
 *
 * State is read on entry to the kernel's function and again on return, because other
 * CPUs keep running in between: a decision whose inputs changed meanwhile cannot be
 * repeated. Nothing here changes what the kernel does.
 */
#include "capture.h"
/* after the integer types */
#include "common/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

const volatile struct capture_setup setup = { 1, 1, 0, 0 };
struct capture_control control = { 0 };

#ifdef LINUX_5_10
#include "record/linux-5.10.bpf.h"
#else
extern const struct rq runqueues __ksym;
extern struct sched_domain_shared *const sd_llc_shared __ksym;
extern struct sched_domain *const sd_asym_cpucapacity __ksym;
extern const int sd_llc_id __ksym;
extern const struct pcpu_hot pcpu_hot __ksym __weak;
extern const int __preempt_count __ksym __weak;

#define per_cpu(variable, cpu) bpf_per_cpu_ptr(&(variable), cpu)
/* A member of what per_cpu() returned, or all of it. */
#define per_cpu_read(pointer, member) ((pointer)->member)
#define per_cpu_value(pointer) (*(pointer))
/* The target of a per-CPU pointer variable. */
#define per_cpu_pointer(variable, cpu)                                                             \
	({                                                                                         \
		typeof(&(variable)) slot = per_cpu(variable, cpu);                                 \
		slot ? *slot : NULL;                                                               \
	})
/* Calls step(i, walk) for each i below `nr` until it returns a value other than 0. */
#define for_each_index(nr, step, walk) bpf_loop(nr, step, walk, 0)
/* The same, `times` being a constant. */
#define repeat(times, step, walk) bpf_loop(times, step, walk, 0)
#endif

extern const void sd_flag_debug __ksym;
extern unsigned int CONFIG_HZ __kconfig;

#define WORDS(type) (sizeof(type) / sizeof(u64))
#define MAX_WORDS                                                                                  \
	(WORDS(struct capture_placement) + 2 * CAPTURE_MASK_WORDS +                                \
	 CAPTURE_MAX_CPUS * (WORDS(struct capture_cpu) + WORDS(struct capture_changed_cpu) +       \
			     CAPTURE_MAX_LEVELS * WORDS(struct capture_group_state)))

/* A frame under construction; the recorder gets it from `type` on. */
struct draft {
	u64 env; /* those of a balance that has not returned yet */
	u32 nr_words;
	u32 cpus_at; /* where the CPUs stand in words */
	u32 nr_nobusyq; /* of the domain before the balance */
	u32 pad;
	u64 type;
	u64 words[MAX_WORDS];
};

/* Two for each CPU: a wakeup may interrupt a balance. */
enum { DRAFT_PLACEMENT, DRAFT_BALANCE, NR_DRAFTS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_DRAFTS);
	__type(key, u32);
	__type(value, struct draft);
} drafts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

static struct draft *draft_of_this_cpu(u32 kind)
{
	u32 key = bpf_get_smp_processor_id() * NR_DRAFTS + kind;

	return bpf_map_lookup_elem(&drafts, &key);
}

/* Room for `words` more words (a constant); NULL if there is none. */
static __always_inline u64 *append(struct draft *draft, u32 words)
{
	u32 at = draft->nr_words;

	if (at > MAX_WORDS - words)
		return NULL;
	draft->nr_words = at + words;
	return &draft->words[at];
}

static void append_mask(struct draft *draft, const unsigned long *bits)
{
	u64 *words = append(draft, CAPTURE_MASK_WORDS);

	if (!words)
		return;
	__builtin_memset(words, 0, CAPTURE_MASK_WORDS * sizeof(u64));
	if (bits)
		bpf_probe_read_kernel(words, setup.mask_words * sizeof(u64), bits);
	draft->nr_words -= CAPTURE_MASK_WORDS - setup.mask_words;
}

static void send(struct draft *draft, enum capture_type type)
{
	u32 words = draft->nr_words;

	draft->type = type;
	if (words > MAX_WORDS)
		return;
	if (bpf_ringbuf_output(&records, &draft->type, (words + 1) * sizeof(u64), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&control.lost, 1);
}

/* 32 bits are enough for values up to the sum of a machine's capacities. */
static u32 narrow(u64 value)
{
	return value > 0xffffffffu ? 0xffffffffu : value;
}

/* Fair tasks with and without delayed dequeues; until 6.13 a single number. */
static void read_nr_fair(const struct rq *rq, struct capture_cpu *out)
{
	const struct cfs_rq___h_nr_running *old = (const void *)&rq->cfs;

	if (bpf_core_field_exists(rq->cfs.h_nr_queued)) {
		out->h_nr_queued = per_cpu_read(rq, cfs.h_nr_queued);
		out->h_nr_runnable = per_cpu_read(rq, cfs.h_nr_runnable);
	} else {
		out->h_nr_queued = out->h_nr_runnable = BPF_CORE_READ(old, h_nr_running);
	}
}

/* The sum over queued tasks; until 6.7 it is beside a moving average, which matters only for tasks. */
static u32 util_est_of_queue(const struct rq *rq)
{
	const struct cfs_rq___util_est *old = (const void *)&rq->cfs;

	return bpf_core_field_exists(old->avg.util_est.enqueued) ?
		       BPF_CORE_READ(old, avg.util_est.enqueued) :
		       per_cpu_read(rq, cfs.avg.util_est);
}

static u32 nr_idle_entities(const struct cfs_rq *cfs)
{
	const struct cfs_rq___idle_h_nr_running *old = (const void *)cfs;
	const struct cfs_rq___h_nr_idle *new = (const void *)cfs;

	return bpf_core_field_exists(new->h_nr_idle) ? BPF_CORE_READ(new, h_nr_idle) :
						       BPF_CORE_READ(old, idle_h_nr_running);
}

/* How many tasks of the CPU prefer last-level cache `llc`. */
static u32 nr_pref_llc(const struct rq *rq, u32 llc)
{
	const struct sched_domain___cache *sd = (const void *)per_cpu_read(rq, sd);
	u32 count = 0;

	if (sd && bpf_core_field_exists(sd->llc_counts) && llc < BPF_CORE_READ(sd, llc_max))
		bpf_probe_read_kernel(&count, sizeof(count), BPF_CORE_READ(sd, llc_counts) + llc);
	return count;
}

static void read_llc(u32 cpu, struct capture_cpu *out)
{
	struct sched_domain_shared *shared = per_cpu_pointer(sd_llc_shared, cpu);
	struct sched_domain_shared___cache *cache = (void *)shared;

	if (!shared)
		return;
	out->has_idle_cores = BPF_CORE_READ(shared, has_idle_cores);
	if (bpf_core_field_exists(shared->nr_idle_scan))
		out->nr_idle_scan = BPF_CORE_READ(shared, nr_idle_scan);
	if (bpf_core_field_exists(cache->util_avg)) {
		out->llc_util_avg = narrow(BPF_CORE_READ(cache, util_avg));
		out->llc_capacity = narrow(BPF_CORE_READ(cache, capacity));
	}
}

#ifdef LINUX_5_10
/* What limits its scans for an idle CPU (SIS_PROP). */
static void read_scan_limit(u32 cpu, struct capture_cpu *out)
{
	struct sched_domain___scan_cost *sd = per_cpu_pointer(sd_llc, cpu);
	const struct rq *rq = per_cpu(runqueues, cpu);

	out->avg_idle = narrow(per_cpu_read(rq, avg_idle));
	if (sd)
		out->nr_idle_scan = narrow(BPF_CORE_READ(sd, avg_scan_cost));
}
#else
static void read_scan_limit(u32 cpu, struct capture_cpu *out)
{
}
#endif

static void read_asym(u32 cpu, struct capture_cpu *out)
{
	struct sched_domain *sd = per_cpu_pointer(sd_asym_cpucapacity, cpu);
	struct sched_domain_shared *shared = sd ? BPF_CORE_READ(sd, shared) : NULL;

	out->asym_has_idle_cores = CAPTURE_NO_SHARED;
	out->asym_nr_idle_scan = CAPTURE_NO_SHARED;
	if (!shared)
		return;
	out->asym_has_idle_cores = BPF_CORE_READ(shared, has_idle_cores);
	if (bpf_core_field_exists(shared->nr_idle_scan))
		out->asym_nr_idle_scan = BPF_CORE_READ(shared, nr_idle_scan);
}

static void read_cpu(u32 cpu, u32 dst_llc, struct capture_cpu *out)
{
	const struct rq *rq = per_cpu(runqueues, cpu);
	const struct cpuidle_state *idle_state;

	__builtin_memset(out, 0, sizeof(*out));
	if (!rq)
		return;
	out->nr_running = per_cpu_read(rq, nr_running);
	read_nr_fair(rq, out);
	out->h_nr_idle = nr_idle_entities(&rq->cfs);
	if (per_cpu_read(rq, curr) == per_cpu_read(rq, idle))
		out->flags |= CAPTURE_CPU_CURR_IDLE;
	if (per_cpu_read(rq, ttwu_pending))
		out->flags |= CAPTURE_CPU_TTWU_PENDING;
	idle_state = per_cpu_read(rq, idle_state);
	if (idle_state) {
		out->flags |= CAPTURE_CPU_IDLE_STATE;
		out->exit_latency = BPF_CORE_READ(idle_state, exit_latency);
	}
	out->capacity = per_cpu_read(rq, cpu_capacity);
	out->util_est = util_est_of_queue(rq);
	out->load_avg = per_cpu_read(rq, cfs.avg.load_avg);
	out->runnable_avg = per_cpu_read(rq, cfs.avg.runnable_avg);
	out->util_avg = per_cpu_read(rq, cfs.avg.util_avg);
	out->misfit_task_load = per_cpu_read(rq, misfit_task_load);
	out->idle_stamp = per_cpu_read(rq, idle_stamp);
	out->nr_numa_running = per_cpu_read(rq, nr_numa_running);
	out->nr_preferred_running = per_cpu_read(rq, nr_preferred_running);
	out->nr_pref_dst_llc = nr_pref_llc(rq, dst_llc);
	read_llc(cpu, out);
	read_scan_limit(cpu, out);
	read_asym(cpu, out);
}

struct cpu_walk {
	struct draft *draft;
	u32 dst_llc;
	u32 nr_changed;
};

static long append_cpu(u32 cpu, struct cpu_walk *walk)
{
	u64 *words = append(walk->draft, WORDS(struct capture_cpu));

	if (words)
		read_cpu(cpu, walk->dst_llc, (struct capture_cpu *)words);
	return !words;
}

static long append_changed_cpu(u32 cpu, struct cpu_walk *walk)
{
	u32 at = walk->draft->cpus_at + cpu * WORDS(struct capture_cpu);
	struct capture_changed_cpu changed = { .cpu = cpu };
	const u64 *before, *after = (const u64 *)&changed.after;
	bool same = true;
	u64 *words;
	u32 i;

	read_cpu(cpu, walk->dst_llc, &changed.after);
	if (at > MAX_WORDS - WORDS(struct capture_cpu))
		return 1;
	before = &walk->draft->words[at];
	for (i = 0; i < WORDS(struct capture_cpu); i++)
		same &= before[i] == after[i];
	if (same)
		return 0;
	words = append(walk->draft, WORDS(struct capture_changed_cpu));
	if (!words)
		return 1;
	__builtin_memcpy(words, &changed, sizeof(changed));
	walk->nr_changed++;
	return 0;
}

static void append_cpus(struct draft *draft, u32 dst_llc)
{
	struct cpu_walk walk = { .draft = draft, .dst_llc = dst_llc };

	draft->cpus_at = draft->nr_words;
	for_each_index(setup.nr_cpus, append_cpu, &walk);
}

static u32 append_changed_cpus(struct draft *draft, u32 dst_llc)
{
	struct cpu_walk walk = { .draft = draft, .dst_llc = dst_llc };

	for_each_index(setup.nr_cpus, append_changed_cpu, &walk);
	return walk.nr_changed;
}

struct group_walk {
	struct draft *draft;
	u32 nr_groups;
};

/* The group that a CPU belongs to in each of its domains. */
static long append_groups_of_cpu(u32 cpu, struct group_walk *walk)
{
	const struct rq *rq = per_cpu(runqueues, cpu);
	struct sched_domain *sd = rq ? per_cpu_read(rq, sd) : NULL;
	u32 level;

	for (level = 0; level < CAPTURE_MAX_LEVELS && sd; level++) {
		struct sched_group_capacity *sgc = BPF_CORE_READ(sd, groups, sgc);
		u64 *words = append(walk->draft, WORDS(struct capture_group_state));
		struct capture_group_state *group = (struct capture_group_state *)words;

		if (!words)
			return 1;
		group->capacity = narrow(BPF_CORE_READ(sgc, capacity));
		group->min_capacity = narrow(BPF_CORE_READ(sgc, min_capacity));
		group->max_capacity = narrow(BPF_CORE_READ(sgc, max_capacity));
		group->imbalance = BPF_CORE_READ(sgc, imbalance);
		group->next_update = BPF_CORE_READ(sgc, next_update);
		walk->nr_groups++;
		sd = BPF_CORE_READ(sd, parent);
	}
	return 0;
}

static u32 append_groups(struct draft *draft)
{
	struct group_walk walk = { .draft = draft };

	for_each_index(setup.nr_cpus, append_groups_of_cpu, &walk);
	return walk.nr_groups;
}

/* Its last activation or the average over several, whichever is greater; since 6.8 a single number. */
static u32 util_est_of_task(const struct sched_avg *avg)
{
	const struct sched_avg___util_est *old = (const void *)avg;
	u32 enqueued, ewma;

	if (!bpf_core_field_exists(old->util_est.enqueued))
		return BPF_CORE_READ(avg, util_est);
	enqueued = BPF_CORE_READ(old, util_est.enqueued) & ~UTIL_AVG_UNCHANGED;
	ewma = BPF_CORE_READ(old, util_est.ewma);
	return enqueued > ewma ? enqueued : ewma;
}

#define clamp(value, low, high)                                                                    \
	((value) < (low) ? (low) : (value) > (high) ? (high) : (value))

/*
 * A queued task has effective clamps. A sleeping task has those that it requested, limited by
 * its group, unless that is the root group or an autogroup. The system's limit is assumed to be
 * the full capacity, which is the default.
 */
static __always_inline u32 uclamp_eff_value(const struct task_struct___uclamp *p, u32 id)
{
	const struct uclamp_se *effective = p->uclamp + id, *asked = p->uclamp_req + id;
	const struct task_group___uclamp *group;
	u32 value;

	if (BPF_CORE_READ_BITFIELD_PROBED(effective, active))
		return BPF_CORE_READ_BITFIELD_PROBED(effective, value);
	value = BPF_CORE_READ_BITFIELD_PROBED(asked, value);
	group = BPF_CORE_READ(p, sched_task_group);
	if (group && BPF_CORE_READ(group, parent) && !BPF_CORE_READ(group, autogroup)) {
		u32 low = BPF_CORE_READ_BITFIELD_PROBED(group->uclamp + UCLAMP_MIN, value);
		u32 high = BPF_CORE_READ_BITFIELD_PROBED(group->uclamp + UCLAMP_MAX, value);

		value = clamp(value, low, high);
	}
	return value;
}

static void read_avg(const struct sched_avg *avg, struct capture_task *out)
{
	out->last_update_time = BPF_CORE_READ(avg, last_update_time);
	out->load_sum = BPF_CORE_READ(avg, load_sum);
	out->runnable_sum = BPF_CORE_READ(avg, runnable_sum);
	out->util_sum = BPF_CORE_READ(avg, util_sum);
	out->period_contrib = BPF_CORE_READ(avg, period_contrib);
	out->load_avg = BPF_CORE_READ(avg, load_avg);
	out->runnable_avg = BPF_CORE_READ(avg, runnable_avg);
	out->util_avg = BPF_CORE_READ(avg, util_avg);
	out->util_est = util_est_of_task(avg);
}

/* Both effective clamps in one number. */
static u32 read_uclamp(const struct task_struct *p)
{
	const struct task_struct___uclamp *task = (const void *)p;

	if (!bpf_core_field_exists(task->uclamp))
		return 1024 << 16;
	return uclamp_eff_value(task, UCLAMP_MAX) << 16 | uclamp_eff_value(task, UCLAMP_MIN);
}

static void read_task(const struct task_struct *p, struct capture_task *out)
{
	struct cfs_rq *cfs_rq = BPF_CORE_READ(p, se.cfs_rq);
	u32 flags = BPF_CORE_READ(p, flags);

	out->pid = BPF_CORE_READ(p, pid);
	out->recent_used_cpu = BPF_CORE_READ(p, recent_used_cpu);
	out->wakee_flips = BPF_CORE_READ(p, wakee_flips);
	out->wakee_flip_decay_ts = BPF_CORE_READ(p, wakee_flip_decay_ts);
	out->nr_cpus_allowed = BPF_CORE_READ(p, nr_cpus_allowed);
	out->flags = 0;
	if ((flags & PF_KTHREAD) && out->nr_cpus_allowed == 1)
		out->flags |= CAPTURE_TASK_PERCPU_KTHREAD;
	if (flags & PF_EXITING)
		out->flags |= CAPTURE_TASK_EXITING;
	if (BPF_CORE_READ(p, policy) == SCHED_IDLE)
		out->flags |= CAPTURE_TASK_SCHED_IDLE;
	read_avg(&p->se.avg, out);
	out->weight = BPF_CORE_READ(p, se.load.weight) >> 10;
	out->cfs_rq_update_time = BPF_CORE_READ(cfs_rq, avg.last_update_time);
	out->cfs_rq_load_avg = BPF_CORE_READ(cfs_rq, avg.load_avg);
	out->uclamp = read_uclamp(p);
	out->numa_preferred_nid = bpf_core_field_exists(p->numa_preferred_nid) ?
					  BPF_CORE_READ(p, numa_preferred_nid) :
					  -1;
	bpf_probe_read_kernel(out->comm, sizeof(out->comm), p->comm);
}

static u32 task_cpu(const struct task_struct *p)
{
	const struct task_struct___cpu *old = (const void *)p;

	return bpf_core_field_exists(p->thread_info.cpu) ? BPF_CORE_READ(p, thread_info.cpu) :
							   BPF_CORE_READ(old, cpu);
}

#ifndef LINUX_5_10
/* Of this CPU; x86 keeps it there. */
static u32 this_cpu_preempt_count(void)
{
	const struct pcpu_hot *hot;
	const int *plain;

	if (&pcpu_hot) {
		hot = bpf_this_cpu_ptr(&pcpu_hot);
		return hot->preempt_count;
	}
	if (&__preempt_count) {
		plain = bpf_this_cpu_ptr(&__preempt_count);
		return *plain;
	}
	return 0;
}
#endif

static bool in_task(const struct task_struct *current)
{
#ifdef __TARGET_ARCH_arm64
	const struct task_struct___arm64 *task = (const void *)current;
	u32 count = BPF_CORE_READ(task, thread_info.preempt_count);
#else
	u32 count = this_cpu_preempt_count();
#endif
	return !(count & setup.interrupt_mask);
}

static int begin_placement(struct task_struct *p, int prev_cpu, u32 wake_flags)
{
	struct task_struct *current = (void *)bpf_get_current_task();
	struct draft *draft = draft_of_this_cpu(DRAFT_PLACEMENT);
	struct capture_placement *head;

	if (!control.recording || !draft)
		return 0;
	draft->nr_words = 0;
	head = (struct capture_placement *)append(draft, WORDS(*head));
	if (!head)
		return 0;
	__builtin_memset(head, 0, sizeof(*head));
	head->now = bpf_ktime_get_ns();
	head->jiffies = bpf_jiffies64();
	head->this_cpu = bpf_get_smp_processor_id();
	head->prev_cpu = prev_cpu;
	head->wake_flags = wake_flags;
	if (in_task(current))
		head->flags |= CAPTURE_PLACEMENT_IN_TASK;
	head->task_cpu = task_cpu(p);
	read_task(p, &head->task);
	read_task(current, &head->waker);
	head->waker.woke_task = BPF_CORE_READ(current, last_wakee) == p;
	append_mask(draft, p->cpus_ptr->bits);
	append_cpus(draft, 0);
	if (wake_flags & (WF_FORK | WF_EXEC))
		head->nr_groups = append_groups(draft);
	return 0;
}

static int end_placement(struct task_struct *p, int chosen)
{
	struct task_struct *current = (void *)bpf_get_current_task();
	struct draft *draft = draft_of_this_cpu(DRAFT_PLACEMENT);
	struct capture_placement *head;

	/* no beginning: recording started in between */
	if (!control.recording || !draft || !draft->nr_words)
		return 0;
	head = (struct capture_placement *)draft->words;
	head->chosen = chosen;
	if (head->jiffies != bpf_jiffies64())
		head->flags |= CAPTURE_PLACEMENT_TICKED;
	head->task.cfs_rq_h_load = p->se.cfs_rq->h_load;
	head->waker.cfs_rq_h_load = BPF_CORE_READ(current, se.cfs_rq, h_load);
	head->nr_changed = append_changed_cpus(draft, 0);
	send(draft, CAPTURE_PLACEMENT);
	draft->nr_words = 0;
	return 0;
}

#ifdef LINUX_5_10
SEC("fentry/select_task_rq_fair")
int BPF_PROG(placement_begin, struct task_struct *p, int prev_cpu, int sd_flag, int wake_flags)
{
	/* the domain flags have the numbers that wake flags have since 5.11 */
	return begin_placement(p, prev_cpu, sd_flag | (wake_flags & WF_SYNC_5_10 ? WF_SYNC : 0));
}

SEC("fexit/select_task_rq_fair")
int BPF_PROG(placement_end, struct task_struct *p, int prev_cpu, int sd_flag, int wake_flags, int chosen)
{
	return end_placement(p, chosen);
}
#else
SEC("fentry/select_task_rq_fair")
int BPF_PROG(placement_begin, struct task_struct *p, int prev_cpu, int wake_flags)
{
	return begin_placement(p, prev_cpu, wake_flags);
}

SEC("fexit/select_task_rq_fair")
int BPF_PROG(placement_end, struct task_struct *p, int prev_cpu, int wake_flags, int chosen)
{
	return end_placement(p, chosen);
}
#endif

static u32 llc_of(u32 cpu)
{
	int *id = per_cpu(sd_llc_id, cpu);

	return id ? per_cpu_value(id) : 0;
}

/* enum cpu_idle_type had other numbers until 6.9 (CPU_IDLE was 0). */
static u32 idle_type(const struct lb_env *env)
{
	u32 idle = env->idle, cpu_idle = bpf_core_enum_value(enum cpu_idle_type, CPU_IDLE);

	return idle == 2 ? 2 : idle == cpu_idle;
}

/* How often balancing the domain found a busiest group but no queue in it. */
static u32 nr_nobusyq(const struct sched_domain *sd)
{
	u32 counts[3] = { 0 };

	if (bpf_core_field_exists(sd->lb_nobusyq))
		bpf_probe_read_kernel(counts, sizeof(counts),
				      (const void *)sd + bpf_core_field_offset(sd->lb_nobusyq));
	return counts[0] + counts[1] + counts[2];
}

static int begin_balance(struct lb_env *env)
{
	struct draft *draft = draft_of_this_cpu(DRAFT_BALANCE);
	struct capture_balance *head;

	if (!control.recording || !draft)
		return 0;
	draft->nr_words = 0;
	draft->env = 0;
	head = (struct capture_balance *)append(draft, WORDS(*head));
	if (!head)
		return 0;
	__builtin_memset(head, 0, sizeof(*head));
	head->now = bpf_ktime_get_ns();
	head->sequence = head->now << 10 | bpf_get_smp_processor_id();
	head->jiffies = bpf_jiffies64();
	head->dst_cpu = env->dst_cpu;
	head->span_weight = env->sd->span_weight;
	head->idle = idle_type(env);
	head->fbq_type = env->fbq_type;
	head->nr_balance_failed = env->sd->nr_balance_failed;
	append_mask(draft, env->cpus->bits);
	/* the group comes here */
	append_mask(draft, NULL);
	append_cpus(draft, llc_of(env->dst_cpu));
	head->nr_groups = append_groups(draft);
	draft->nr_nobusyq = nr_nobusyq(env->sd);
	return 0;
}

static int end_balance(struct lb_env *env, struct sched_group *group)
{
	struct draft *draft = draft_of_this_cpu(DRAFT_BALANCE);
	struct capture_balance *head;
	u32 at = WORDS(*head) + setup.mask_words;

	if (!control.recording || !draft || !draft->nr_words)
		return 0;
	head = (struct capture_balance *)draft->words;
	head->imbalance = env->imbalance;
	head->migration_type = env->migration_type;
	if (group)
		bpf_probe_read_kernel(&draft->words[at], setup.mask_words * sizeof(u64), group->cpumask);
	head->nr_changed = append_changed_cpus(draft, llc_of(head->dst_cpu));
	send(draft, CAPTURE_BALANCE);
	draft->nr_words = 0;
	if (group)
		draft->env = (u64)env;
	return 0;
}

/* Both had other names until 6.9. */
SEC("?fentry/sched_balance_find_src_group")
int BPF_PROG(balance_begin, struct lb_env *env)
{
	return begin_balance(env);
}

SEC("?fexit/sched_balance_find_src_group")
int BPF_PROG(balance_end, struct lb_env *env, struct sched_group *group)
{
	return end_balance(env, group);
}

SEC("?fentry/find_busiest_group")
int BPF_PROG(balance_begin_old, struct lb_env *env)
{
	return begin_balance(env);
}

SEC("?fexit/find_busiest_group")
int BPF_PROG(balance_end_old, struct lb_env *env, struct sched_group *group)
{
	return end_balance(env, group);
}

static void send_queue(struct draft *draft, s32 src_cpu)
{
	struct {
		u64 type;
		struct capture_queue queue;
	} record = { .type = CAPTURE_QUEUE };

	draft->env = 0;
	/* what was sent is still there */
	record.queue.sequence = ((struct capture_balance *)draft->words)->sequence;
	record.queue.src_cpu = src_cpu;
	if (bpf_ringbuf_output(&records, &record, sizeof(record), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&control.lost, 1);
}

/* The first task looked at, or the check whether to push one, shows which CPU was found. */
static void queue_found(const struct lb_env *env)
{
	struct draft *draft = draft_of_this_cpu(DRAFT_BALANCE);

	if (control.recording && draft && draft->env && draft->env == (u64)env)
		send_queue(draft, env->src_cpu);
}

/* The balance of `sd` is complete: was there a group, but no queue? */
static int queue_missing(const struct sched_domain *sd)
{
	struct draft *draft = draft_of_this_cpu(DRAFT_BALANCE);

	if (control.recording && draft && draft->env && nr_nobusyq(sd) != draft->nr_nobusyq)
		send_queue(draft, -1);
	return 0;
}

SEC("?fexit/sched_balance_rq")
int BPF_PROG(balance_done, int this_cpu, struct rq *rq, struct sched_domain *sd)
{
	return queue_missing(sd);
}

SEC("?fexit/load_balance")
int BPF_PROG(balance_done_old, int this_cpu, struct rq *rq, struct sched_domain *sd)
{
	return queue_missing(sd);
}

/*
 * Domains change because CPUs go online or offline or are partitioned. Later records would
 * belong to another machine than the file describes.
 */
SEC("fentry/cpu_attach_domain")
int BPF_PROG(domains_change)
{
	if (control.recording)
		control.domains_changed = 1;
	control.recording = 0;
	return 0;
}

SEC("fentry/can_migrate_task")
int BPF_PROG(queue_searched, struct task_struct *p, struct lb_env *env)
{
	queue_found(env);
	return 0;
}

/* Not in every kernel; inlined in 7.3. */
SEC("?fentry/need_active_balance")
int BPF_PROG(queue_not_searched, struct lb_env *env)
{
	queue_found(env);
	return 0;
}

struct domain_walk {
	struct draft *draft;
	struct sched_group *first;
	struct sched_group *group;
	u32 nr_groups;
	u32 child_flags; /* those of the domain below; since 5.15 groups have their own */
};

static long append_group(u32 i, struct domain_walk *walk)
{
	struct sched_group *group = walk->group;
	u64 *words = append(walk->draft, WORDS(struct capture_group));
	struct capture_group *out = (struct capture_group *)words;

	if (!words)
		return 1;
	out->weight = BPF_CORE_READ(group, group_weight);
	out->cores = bpf_core_field_exists(group->cores) ? BPF_CORE_READ(group, cores) : 0;
	out->flags = bpf_core_field_exists(group->flags) ? BPF_CORE_READ(group, flags) :
							   walk->child_flags;
	out->pad = 0;
	append_mask(walk->draft, (void *)group + bpf_core_field_offset(group->cpumask));
	append_mask(walk->draft, (void *)BPF_CORE_READ(group, sgc) +
					 bpf_core_field_offset(struct sched_group_capacity, cpumask));
	walk->nr_groups++;
	walk->group = BPF_CORE_READ(group, next);
	return walk->group == walk->first;
}

static const unsigned long *sched_domain_span(const struct sched_domain *sd)
{
	const struct sched_domain___span *old = (const void *)sd;

	return (const void *)sd + (bpf_core_field_exists(old->span) ?
					   bpf_core_field_offset(old->span) :
					   bpf_core_type_size(struct sched_domain));
}

static void append_domain(struct draft *draft, struct sched_domain *sd, u32 cpu, u32 index)
{
	struct capture_domain *out = (struct capture_domain *)append(draft, WORDS(*out));
	struct domain_walk walk = { .draft = draft };

	if (!out)
		return;
	out->cpu = cpu;
	out->index = index;
	out->flags = BPF_CORE_READ(sd, flags);
	out->level = BPF_CORE_READ(sd, level);
	out->imbalance_pct = BPF_CORE_READ(sd, imbalance_pct);
	out->busy_factor = BPF_CORE_READ(sd, busy_factor);
	out->min_interval_ms = BPF_CORE_READ(sd, min_interval);
	out->max_interval_ms = BPF_CORE_READ(sd, max_interval);
	out->cache_nice_tries = BPF_CORE_READ(sd, cache_nice_tries);
	out->imb_numa_nr = bpf_core_field_exists(sd->imb_numa_nr) ? BPF_CORE_READ(sd, imb_numa_nr) : 0;
	append_mask(draft, sched_domain_span(sd));
	walk.first = walk.group = BPF_CORE_READ(sd, groups);
	if (BPF_CORE_READ(sd, child))
		walk.child_flags = BPF_CORE_READ(sd, child, flags);
	for_each_index(CAPTURE_MAX_GROUPS, append_group, &walk);
	out->nr_groups = walk.nr_groups;
	out->pad = 0;
}

/*
 * The recorder's queries. Each runs once when it is called. They are programs of a tracepoint
 * that does not exist, because 5.10 has no other way.
 */

/* Sends domain args[1], counted from the bottom, of CPU args[0]; returns 1 if the CPU has fewer. */
SEC("raw_tp")
int send_domain(struct capture_question *question)
{
	u32 cpu = question->args[0], wanted = question->args[1], index;
	const struct rq *rq = per_cpu(runqueues, cpu);
	struct draft *draft = draft_of_this_cpu(DRAFT_BALANCE);
	struct sched_domain *sd = rq ? per_cpu_read(rq, sd) : NULL;

	for (index = 0; index < CAPTURE_MAX_LEVELS && index < wanted && sd; index++)
		sd = BPF_CORE_READ(sd, parent);
	if (!sd || !draft)
		return 1;
	draft->nr_words = 0;
	append_domain(draft, sd, cpu, wanted);
	send(draft, CAPTURE_DOMAIN);
	draft->nr_words = 0;
	return 0;
}

/* The number of the last-level cache of CPU args[0]. */
SEC("raw_tp")
int llc_of_cpu(struct capture_question *question)
{
	return llc_of(question->args[0]);
}

/* Jiffies a second. */
SEC("raw_tp")
int hz(struct capture_question *question)
{
	return CONFIG_HZ;
}

/* Writes the kernel's name of bit args[0] of sd->flags to control.name, because the numbers differ between kernels. */
SEC("raw_tp")
int name_sd_flag(struct capture_question *question)
{
	const void *flag = (const void *)&sd_flag_debug + question->args[0] * sizeof(struct sd_flag_debug);
	const char *name = NULL;

	bpf_probe_read_kernel(&name, sizeof(name), flag + __builtin_offsetof(struct sd_flag_debug, name));
	return bpf_probe_read_kernel_str(control.name, sizeof(control.name), name) < 0;
}

#include "record/step.bpf.h"
