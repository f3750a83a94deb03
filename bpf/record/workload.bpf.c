/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what tasks do, and what makes them do it: who runs when, who wakes whom, what a
 * task sleeps on, and the interrupts in between. Nothing here changes what the kernel does.
 */
#include "workload.h"
/* after the integer types */
#include "common/kernel.h"
#include "record/workload-kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

#define NET_RX_SOFTIRQ 3
#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFSOCK 0140000
#define FUTEX_PRIVATE_FLAG 128
#define MSG_PEEK 2

const volatile struct work_setup setup = { 0 };
struct work_control control = { 0 };

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
};

/* Of each CPU, so that none waits for the events of another one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CAPTURE_MAX_CPUS);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* What a CPU is in the middle of. Counted here, because not every kernel shows its preempt_count. */
struct context {
	u32 handlers; /* of interrupts, nested */
	u32 sender; /* who put packets on the loopback interface that no softirq has taken yet; 0: nobody */
	u32 origin; /* who sent those that the softirq works on; 0: not known, or from outside */
	u32 own; /* that softirq runs within the sender, so that its time is the sender's */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct context);
} contexts SEC(".maps");

static struct context *context(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&contexts, &key);
}

static u32 current_pid(void)
{
	return bpf_get_current_pid_tgid();
}

static __always_inline struct work_event *reserve(u32 size, u8 kind, u32 other)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct work_event *event = NULL;
	void *ring;

	if (!control.recording)
		return NULL;
	ring = bpf_map_lookup_elem(&rings, &cpu);
	if (ring)
		event = bpf_ringbuf_reserve(ring, size, 0);
	if (!event) {
		__sync_fetch_and_add(&control.lost, 1);
		return NULL;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->at = bpf_ktime_get_ns();
	event->cpu = cpu;
	event->pid = current_pid();
	event->kind = kind;
	event->other = other;
	return event;
}

static void submit(struct work_event *event)
{
	if (event)
		bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static struct work_event *new_event(u8 kind, u32 other)
{
	return reserve(sizeof(struct work_event), kind, other);
}

static void send(u8 kind, u32 other)
{
	submit(new_event(kind, other));
}

static u32 hash(u64 id)
{
	return (id * 0x9e3779b97f4a7c15ULL) >> 32;
}

static const struct file *file_of(const struct task_struct___work *task, u32 fd)
{
	const struct file *file = NULL;
	const struct fdtable *table = BPF_CORE_READ(task, files, fdt);

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file;
}

/* What a read or write waits for depends on what it reads or writes. */
static u8 wait_for_file(const struct file *file, u8 call, u32 *id)
{
	const struct inode *inode = BPF_CORE_READ(file, f_inode);

	*id = hash((u64)inode);
	switch (BPF_CORE_READ(inode, i_mode) & S_IFMT) {
	case S_IFIFO:
		return call == WORK_WAIT_WRITE ? WORK_WAIT_PIPE_SPACE : WORK_WAIT_PIPE_DATA;
	case S_IFSOCK:
		return WORK_WAIT_SOCKET;
	case 0: /* anonymous ones share their inode */
		*id = hash((u64)BPF_CORE_READ(file, private_data));
		return WORK_WAIT_ANONYMOUS;
	default:
		*id = 0;
		return WORK_WAIT_OTHER;
	}
}

static void note_wait(const struct task_struct *task, struct work_event *event)
{
	const struct task_struct___work *work = (const void *)task;
	const struct pt_regs *regs;
	u64 call, first, second;
	const struct file *file;
	u8 wait;

	if (task->flags & PF_KTHREAD)
		return;
	regs = (const void *)bpf_task_pt_regs((void *)task);
	call = SYSCALL_NUMBER(regs);
	if (call >= WORK_SYSCALLS)
		return;
	first = SYSCALL_FIRST(regs);
	second = SYSCALL_SECOND(regs);
	wait = setup.waits[call];
	switch (wait) {
	case WORK_WAIT_FUTEX:
		event->id = hash(first + (second & FUTEX_PRIVATE_FLAG ? (u64)BPF_CORE_READ(work, mm) : 0));
		break;
	case WORK_WAIT_EPOLL:
		file = file_of(work, first);
		event->id = file ? hash((u64)BPF_CORE_READ(file, private_data)) : 0;
		break;
	case WORK_WAIT_READ:
	case WORK_WAIT_WRITE:
	case WORK_WAIT_SOCKET:
		file = file_of(work, first);
		wait = file ? wait_for_file(file, wait, &event->id) : WORK_WAIT_OTHER;
		break;
	}
	event->wait = wait;
}

/* A hash of the affinity of each task that has been seen with one of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, u32);
	__type(value, u32);
} restricted SEC(".maps");

/* Set with the first of these. */
bool any_restricted = false;

static void send_affinity(const struct task_struct *task, u32 pid)
{
	const struct task_struct___work *work = (const void *)task;
	struct work_allowed *allowed = (void *)reserve(sizeof(*allowed), WORK_ALLOWED, pid);
	u32 word;

	if (!allowed)
		return;
	for (word = 0; word < CAPTURE_MASK_WORDS; word++)
		allowed->cpus[word] = 0;
	for (word = 0; word < CAPTURE_MASK_WORDS && word < setup.mask_words; word++) {
		bpf_probe_read_kernel(&allowed->cpus[word], sizeof(u64), &work->cpus_mask.bits[0] + word);
		allowed->cpus[word] &= setup.online[word];
	}
	submit(&allowed->event);
}

/*
 * An affinity that was asked for, or that of a control group, is noticed when the task is
 * switched to. Tasks that may run everywhere are not looked up before the first one has one.
 */
static void note_affinity(const struct task_struct *task)
{
	const struct task_struct___work *work = (const void *)task;
	bool everywhere = true;
	u64 bits, all = 0;
	u32 word, pid, is, *was;

	if (task->flags & PF_KTHREAD)
		return;
	for (word = 0; word < CAPTURE_MASK_WORDS && word < setup.mask_words; word++) {
		bits = 0;
		bpf_probe_read_kernel(&bits, sizeof(bits), &work->cpus_mask.bits[0] + word);
		bits &= setup.online[word];
		everywhere &= bits == setup.online[word];
		all = (all + bits) * 0x9e3779b97f4a7c15ULL;
	}
	if (everywhere && !any_restricted)
		return;
	any_restricted = true;
	pid = task->pid;
	is = everywhere ? 0 : (u32)(all >> 32) | 1;
	was = bpf_map_lookup_elem(&restricted, &pid);
	if (was ? *was == is : everywhere)
		return;
	bpf_map_update_elem(&restricted, &pid, &is, 0);
	send_affinity(task, pid);
}

/* A hash of the task group of each task that has been seen in another one than the root group. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, u32);
	__type(value, u32);
} grouped SEC(".maps");

/* The root group, once it has been seen; whether there are others. */
u64 root_group = 0;
bool any_grouped = false;

static void send_group(const struct task_group *group, u32 pid, u32 id)
{
	struct work_group *out = (void *)reserve(sizeof(*out), WORK_GROUP, pid);
	const struct task_group *parent;
	u32 level;

	if (!out)
		return;
	__builtin_memset((void *)out + sizeof(out->event), 0, sizeof(*out) - sizeof(out->event));
	out->event.id = id;
	out->shares = BPF_CORE_READ(group, shares);
	out->quota = -1;
	if (bpf_core_field_exists(group->cfs_bandwidth)) {
		out->quota = BPF_CORE_READ(group, cfs_bandwidth.quota);
		out->period = BPF_CORE_READ(group, cfs_bandwidth.period);
	}
	if (bpf_core_field_exists(group->autogroup))
		out->autogroup = BPF_CORE_READ(group, autogroup, id);
	for (level = 0; level < WORK_GROUP_LEVELS; level++) {
		parent = BPF_CORE_READ(group, parent);
		if (!parent)
			break;
		bpf_probe_read_kernel_str(out->names[level], WORK_GROUP_NAME,
					  BPF_CORE_READ(group, css.cgroup, kn, name));
		group = parent;
	}
	submit(&out->event);
}

/* Noticed when the task is switched to, as its affinity. Kernel threads stay in the root group. */
static void note_group(const struct task_struct *task)
{
	const struct task_struct___work *work = (const void *)task;
	const struct task_group *group;
	u32 pid, is, *was;

	if (task->flags & PF_KTHREAD || !bpf_core_field_exists(work->sched_task_group))
		return;
	group = BPF_CORE_READ(work, sched_task_group);
	if (!root_group && !BPF_CORE_READ(group, parent))
		root_group = (u64)group;
	if ((u64)group == root_group && !any_grouped)
		return;
	any_grouped = true;
	pid = task->pid;
	is = (u64)group == root_group ? 0 : hash((u64)group) | 1;
	was = bpf_map_lookup_elem(&grouped, &pid);
	if (was ? *was == is : !is)
		return;
	bpf_map_update_elem(&grouped, &pid, &is, 0);
	send_group(group, pid, is);
}

/* A counter of the cycles in which a CPU is not halted, of each CPU that has one. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, CAPTURE_MAX_CPUS);
	__type(key, u32);
	__type(value, u32);
} counters SEC(".maps");

/* What it had counted at the last switch. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} counted SEC(".maps");

static u64 cycles_since_switch(void)
{
	struct bpf_perf_event_value value;
	u32 key = 0;
	u64 *last, cycles;

	if (!setup.counts)
		return 0;
	last = bpf_map_lookup_elem(&counted, &key);
	if (!last || bpf_perf_event_read_value(&counters, BPF_F_CURRENT_CPU, &value, sizeof(value)))
		return 0;
	cycles = value.counter - *last;
	*last = value.counter;
	return cycles;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(work_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct work_switch *out = (void *)reserve(sizeof(*out), WORK_SWITCH, next->pid);
	struct work_event *event = &out->event;
	struct context *here = context();
	u64 cycles;
	u32 state;

	if (here)
		here->handlers = 0; /* none switches */
	if (!out)
		return 0;
	cycles = cycles_since_switch();
	out->cycles = prev->pid ? cycles : 0;
	note_affinity(next);
	note_group(next);
	event->pid = prev->pid;
	event->prio = next->prio;
	state = prev->__state;
	if (!preempt && state) {
		event->detail = state & TASK_DEAD ? WORK_DEAD : WORK_BLOCKED;
		if (event->detail == WORK_BLOCKED)
			note_wait(prev, event);
	}
	submit(event);
	return 0;
}

/* Whether it is an interrupt's doing; what a packet does that is on its way is its sender's. */
static void note_context(struct work_event *event)
{
	struct context *here = context();

	if (!here)
		return;
	event->detail = here->handlers > 0;
	if (here->origin && here->handlers == 1) {
		event->pid = here->origin;
		event->detail = 0;
	}
}

SEC("tp_btf/sched_waking")
int BPF_PROG(work_waking, struct task_struct *p)
{
	struct work_event *event = new_event(WORK_WAKING, p->pid);

	if (!event)
		return 0;
	event->prio = p->prio;
	note_context(event);
	submit(event);
	return 0;
}

/* What a task that sleeps in a call for this socket sleeps on (wait_for_file()); 0 if it belongs to no file. */
static u32 socket_id(const struct sock *sk)
{
	u64 inode = (u64)BPF_CORE_READ(sk, sk_socket, file, f_inode);

	return inode ? hash(inode) : 0;
}

static struct work_event *new_socket_event(u8 kind, const struct sock *sk)
{
	u32 id = socket_id(sk);
	struct work_event *event = id ? new_event(kind, 0) : NULL;

	if (event)
		event->id = id;
	return event;
}

/* Data that a reader may wait for, before it is woken. Behind other data it changes nothing for a reader. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(work_arrived, const struct sock *sk)
{
	struct work_event *event;

	if (BPF_CORE_READ(sk, sk_receive_queue.qlen) > 1)
		return 0;
	event = new_socket_event(WORK_ARRIVED, sk);
	if (event)
		note_context(event);
	submit(event);
	return 0;
}

/* A reader would wait for what comes next. The end of a connection, of no bytes, is waited for as data is. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(work_received, const struct sock *sk, int length, int flags)
{
	if (length >= 0 && !(flags & MSG_PEEK) && !BPF_CORE_READ(sk, sk_receive_queue.qlen))
		submit(new_socket_event(WORK_RECEIVED, sk));
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(work_wakeup_new, struct task_struct *p)
{
	struct work_event *event = new_event(WORK_WAKEUP_NEW, p->pid);

	if (event)
		event->prio = p->prio;
	submit(event);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(work_fork, struct task_struct *parent, struct task_struct *child)
{
	struct work_event *event = new_event(WORK_FORK, child->pid);

	if (event)
		event->id = child->tgid;
	submit(event);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(work_exit, struct task_struct *p)
{
	send(WORK_EXIT, p->pid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(work_exec, struct task_struct *p)
{
	send(WORK_EXEC, p->pid);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(work_rename, struct task_struct *task, const char *comm)
{
	struct work_name *name = (void *)reserve(sizeof(*name), WORK_NAME, task->pid);

	if (!name)
		return 0;
	__builtin_memset(name->comm, 0, sizeof(name->comm));
	bpf_probe_read_kernel_str(name->comm, sizeof(name->comm), comm);
	submit(&name->event);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(work_migrate, struct task_struct *p)
{
	send(WORK_MIGRATE, p->pid);
	return 0;
}

SEC("tp_btf/netif_rx")
int BPF_PROG(work_netif_rx)
{
	struct context *here = context();

	if (!here)
		return 0;
	if (!here->handlers)
		here->sender = current_pid();
	else if (here->handlers == 1 && here->origin)
		here->sender = here->origin;
	return 0;
}

static void enter(u32 handler)
{
	struct context *here = context();

	if (here)
		here->handlers++;
	send(WORK_ENTER, handler);
}

static void leave(void)
{
	struct context *here = context();

	if (here && here->handlers)
		here->handlers--;
	send(WORK_LEAVE, 0);
}

static u32 handler_of_softirq(u32 vector)
{
	switch (vector) {
	case 1: /* TIMER_SOFTIRQ */
	case 8: /* HRTIMER_SOFTIRQ */
		return WORK_TIMER;
	case 2: /* NET_TX_SOFTIRQ */
	case NET_RX_SOFTIRQ:
		return WORK_NETWORK;
	case 4: /* BLOCK_SOFTIRQ */
	case 5: /* IRQ_POLL_SOFTIRQ */
		return WORK_BLOCK;
	default:
		return WORK_OTHER;
	}
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(work_softirq_entry, u32 vector)
{
	struct context *here = context();

	if (here && vector == NET_RX_SOFTIRQ && here->sender && !here->handlers) {
		here->origin = here->sender;
		here->own = here->sender == current_pid();
		here->sender = 0;
		if (here->own) {
			here->handlers++;
			return 0;
		}
	}
	enter(handler_of_softirq(vector));
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(work_softirq_exit, u32 vector)
{
	struct context *here = context();

	if (here && vector == NET_RX_SOFTIRQ && here->origin) {
		u32 own = here->own;

		here->origin = here->own = 0;
		if (own) {
			here->handlers = 0;
			return 0;
		}
	}
	leave();
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(work_irq_entry)
{
	enter(WORK_OTHER);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(work_irq_exit)
{
	leave();
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(work_hrtimer_entry)
{
	enter(WORK_TIMER);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(work_hrtimer_exit)
{
	leave();
	return 0;
}
