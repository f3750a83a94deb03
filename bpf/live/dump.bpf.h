/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler adds to sched_ext's dump. The kernel makes a dump when it ends a
 * scheduler because of a fault, and when SysRq-D asks for one.
 *
 * V and the virtual times of one queue are comparable only with each other. The time
 * that the running task has been charged for is in the line of its CPU, not yet in
 * its own line.
 */
#ifndef CW_DUMP_BPF_H
#define CW_DUMP_BPF_H

void BPF_STRUCT_OPS(live_dump, struct scx_dump_ctx *dump)
{
	scx_bpf_dump("cpus=%u llcs=%u features=0x%llx,0x%llx overloaded=%u serialized=%u\n", sys.nr_cpus,
		     sys.nr_llcs, sys.features[1], sys.features[0], sys.overloaded, sys.balance_running);
}

/* An idle CPU is shown only if something is unusual: it is claimed or offline, or tasks wait for it. */
void BPF_STRUCT_OPS(live_dump_cpu, struct scx_dump_ctx *dump, s32 cpu, bool idle)
{
	const struct balance_state *balance = balance_state_of(cpu);
	const struct cw_fair_rq *fair = fair_rq(cpu);
	const struct cw_cpu *rq = cpu_rq(&sys, cpu);
	u32 is_claimed = claimed[cpu & CW_CPU_MASK], is_offline = offline[cpu & CW_CPU_MASK];
	s32 queued = scx_bpf_dsq_nr_queued(cpu);

	if (idle && !is_claimed && !is_offline && queued <= 0 && !fair->nr_waiting)
		return;
	scx_bpf_dump("queued=%d waiting_weight=%lld V=%lld\n", queued, fair->sum_weight, avg_vruntime(fair));
	scx_bpf_dump("curr_weight=%u curr_vruntime=%lld curr_deadline=%lld resched=%u\n", fair->curr.weight,
		     fair->curr.vruntime, fair->curr.deadline, queue_of(cpu)->resched);
	scx_bpf_dump("nr_running=%u util=%llu idle=%u claimed=%u offline=%u\n", rq->nr_running,
		     (u64)rq->avg.util_avg, rq->curr_is_idle, is_claimed, is_offline);
	scx_bpf_dump("balance_due=%u exec=%u push_to=%d next_balance=%llu\n", balance->due,
		     balance->exec, (s32)(balance->push_to & PUSH_CPU) - 1, rq->next_balance);
}

void BPF_STRUCT_OPS(live_dump_task, struct scx_dump_ctx *dump, struct task_struct *p)
{
	const struct live_task *t = lookup_task(p);
	s32 queue;
	s64 lag;

	if (!t)
		return;
	queue = queue_cpu(&t->se);
	lag = queue < 0 ? t->se.se.vlag : avg_vruntime(fair_rq(queue)) - t->se.se.vruntime;
	scx_bpf_dump("vruntime=%lld deadline=%lld lag=%lld eevdf_weight=%u\n", t->se.se.vruntime,
		     t->se.se.deadline, lag, t->se.se.weight);
	scx_bpf_dump("queue=%d placed_on=%d counted_on=%d allowed=%u\n", queue, t->se.cpu,
		     t->host.policy.queued.cpu, t->host.policy.nr_cpus_allowed);
}

#endif /* CW_DUMP_BPF_H */
