/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One attempt to balance one domain, like the kernel's struct lb_env: the request, the
 * findings, and the progress of moving tasks.
 *
 * It lasts from balance_begin() to balance_done(); loop.h says what happens in between.
 */
#ifndef CW_LB_ENV_H
#define CW_LB_ENV_H

#include "wakeup/group.h"
#include "mask.h"
#include "topology.h"
#include "types.h"
#include "util.h"

/* What the balancing CPU is doing; the kernel's enum cpu_idle_type. */
enum cw_idle_type {
	CW_NOT_IDLE,
	CW_IDLE,
	CW_NEWLY_IDLE,
};

/* cw_decision.event of a balance. */
enum cw_balance_event {
#define BALANCE_EVENT(name, bit, text) CW_BALANCE_##name = 1 << bit,
#include "balance/events.def"
#undef BALANCE_EVENT
};

/* The unit of cw_balance.imbalance. */
enum cw_migration_type {
	CW_MIGRATE_LOAD,
	CW_MIGRATE_UTIL,
	CW_MIGRATE_TASK,
	CW_MIGRATE_MISFIT,
	CW_MIGRATE_LLC_TASK,
};

/* The effect on NUMA balancing of moving tasks off a group or queue; see fbq.h. */
enum cw_fbq_type {
	CW_FBQ_REGULAR, /* some tasks have no preferred node */
	CW_FBQ_REMOTE, /* all have one, some are not on it */
	CW_FBQ_ALL, /* all are where they prefer to be */
};

/* What happened during the attempt: bits of cw_balance.flags. */
enum cw_lb_flag {
	LBF_ALL_PINNED = 1 << 0, /* no task seen so far may run on dst_cpu */
	LBF_NEED_BREAK = 1 << 1, /* the source's lock has been dropped */
	LBF_DST_PINNED = 1 << 2, /* a task may run on new_dst_cpu instead */
	LBF_SOME_PINNED = 1 << 3, /* some task may not run on dst_cpu */
	LBF_ACTIVE_LB = 1 << 4, /* active balance: one task, whatever its heat */
	LBF_LLC_PINNED = 1 << 5, /* a task was left on the LLC that it prefers */
	LBF_ACTIVE_LB_LLC = 1 << 6, /* active balance: a task that prefers dst_cpu's LLC */
	LBF_NOT_MINE = 1 << 8, /* should_we_balance() said no: stop the walk up the domains */
	LBF_SRC_HAS_WAITING = 1 << 9, /* the source had more than one task when it was chosen */
};

/* Statistics of a whole domain. */
struct cw_sd_stats {
	u32 busiest; /* index in cw_sys.group, CW_NONE if none */
	u32 local;
	u32 prefer_sibling; /* spread tasks over the groups before filling one */
	u32 pad;
	u64 total_load;
	u64 total_capacity;
	u64 total_util;
	u64 avg_load;
	struct cw_sg_stats busiest_stat;
	struct cw_sg_stats local_stat;
	struct cw_sg_stats candidate; /* the group under examination */
};

struct cw_balance {
	/* What was asked. */
	u64 now;
	s32 this_cpu; /* whose domain is balanced */
	u32 level; /* index in cw_sys.cpu_sd[this_cpu] */
	u32 idle; /* enum cw_idle_type */
	/* What was found. */
	u32 flags; /* enum cw_lb_flag */
	s32 dst_cpu; /* where tasks go: this_cpu, or another of its group if affinity asks for it */
	s32 src_cpu; /* where tasks come from, -1 before one is found */
	s32 new_dst_cpu; /* valid with LBF_DST_PINNED */
	u32 migration_type; /* enum cw_migration_type: the unit of `imbalance` */
	s64 imbalance; /* what is left to move */
	/* How far it came. */
	u32 loop; /* tasks looked at */
	u32 loop_break; /* the runqueue lock is dropped after this many */
	u32 loop_max; /* no more than this many are looked at */
	u32 detached; /* tasks taken */
	u32 nr_excluded; /* CPUs in `excluded`, which is not valid while this is 0 */
	u32 fbq_type; /* enum cw_fbq_type: queues of a type above it are no source */
	u32 dst_core_idle; /* no SMT sibling of dst_cpu is busy */
	u32 pad;
	struct cw_cpumask excluded; /* CPUs of the domain that this attempt leaves out */
	struct cw_sd_stats sds;
};

/* Tasks that are looked at before the source's lock is dropped: SCHED_NR_MIGRATE_BREAK. */
#define CW_NR_MIGRATE_BREAK 32

static inline struct cw_cpu_sd *cpu_sd(struct cw_sys *sys, s32 cpu, u32 level)
{
	return &sys->cpu_sd[cpu & CW_CPU_MASK][level < CW_MAX_LEVELS ? level : CW_MAX_LEVELS - 1];
}

static inline struct cw_domain *sd_domain(struct cw_sys *sys, const struct cw_cpu_sd *sd)
{
	return &sys->domain[sd->domain & (CW_MAX_DOMAINS - 1)];
}

static inline struct cw_group *sd_group(struct cw_sys *sys, u32 group)
{
	return &sys->group[group & (CW_MAX_GROUPS - 1)];
}

static inline struct cw_cpu_sd *env_sd(struct cw_sys *sys, const struct cw_balance *env)
{
	return cpu_sd(sys, env->this_cpu, env->level);
}

static inline struct cw_domain *env_domain(struct cw_sys *sys, const struct cw_balance *env)
{
	return sd_domain(sys, env_sd(sys, env));
}

/* The group that holds this_cpu: where the domain's ring of groups starts. */
static inline struct cw_group *env_local_group(struct cw_sys *sys, const struct cw_balance *env)
{
	return sd_group(sys, env_sd(sys, env)->local_group);
}

static inline bool env_has_parent(struct cw_sys *sys, const struct cw_balance *env)
{
	return env->level + 1 < cpu_rq(sys, env->this_cpu)->nr_sd &&
	       env->level + 1 < CW_MAX_LEVELS;
}

/* Is `cpu` under consideration? The answer holds for CPUs of the domain's span. */
static inline bool env_considers(const struct cw_balance *env, s32 cpu)
{
	return !env->nr_excluded || !cpumask_test_cpu(cpu, &env->excluded);
}

static inline void env_exclude(struct cw_balance *env, s32 cpu)
{
	if (!env->nr_excluded)
		for (u32 word = 0; word < CW_MASK_WORDS && may_loop(); word++)
			env->excluded.bits[word] = 0;
	env->excluded.bits[(cpu & CW_CPU_MASK) / 64] |= 1ULL << (cpu & 63);
	env->nr_excluded++;
}

/*
 * The CPU's fair tasks, as far as balancing counts them: with LB_RUNNABLE not
 * those that sleep and only wait to be dequeued.
 */
static inline u32 lb_nr_running(const struct cw_sys *sys, const struct cw_cpu *rq)
{
	u32 delayed = sched_feat(sys, CW_FEAT_LB_RUNNABLE) ? rq->cfs_nr_delayed : 0;

	return rq->cfs_nr_running > delayed ? rq->cfs_nr_running - delayed : 0;
}

/* Start over with the tasks of a source. */
static inline void env_rewind(struct cw_balance *env)
{
	env->loop = 0;
	env->loop_break = CW_NR_MIGRATE_BREAK;
}

/*
 * Prepare an attempt of `cpu` to balance its domain at `level`, which has to be
 * less than its nr_sd.
 */
static inline void balance_begin(struct cw_balance *env, s32 cpu, u32 level,
				 enum cw_idle_type idle, u64 now)
{
	env->now = now;
	env->this_cpu = cpu;
	env->level = level;
	env->idle = idle;
	env->flags = 0;
	env->dst_cpu = cpu;
	env->src_cpu = -1;
	env->new_dst_cpu = -1;
	env->migration_type = CW_MIGRATE_LOAD;
	env->imbalance = 0;
	env->loop_max = 0;
	env->detached = 0;
	env->nr_excluded = 0;
	env->fbq_type = CW_FBQ_ALL;
	env->dst_core_idle = 0;
	env_rewind(env);
}

#endif /* CW_LB_ENV_H */
