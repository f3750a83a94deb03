/* SPDX-License-Identifier: GPL-2.0-only */
/* Walks over sched domains and groups; which caches two CPUs share. */
#ifndef CW_TOPOLOGY_H
#define CW_TOPOLOGY_H

#include "mask.h"
#include "types.h"

#ifndef NULL
#define NULL ((void *)0)
#endif

enum cw_distance {
#define DISTANCE(name, text) CW_DISTANCE_##name,
#include "distances.def"
#undef DISTANCE
};
#define CW_NR_DISTANCES 5

static inline enum cw_distance cpu_distance(struct cw_sys *sys, s32 a, s32 b)
{
	const struct cw_cpu *from = cpu_rq(sys, a), *to = cpu_rq(sys, b);

	if (a == b)
		return CW_DISTANCE_SAME;
	if (from->core == to->core)
		return CW_DISTANCE_CORE;
	if (from->llc == to->llc)
		return CW_DISTANCE_LLC;
	return from->node == to->node ? CW_DISTANCE_NODE : CW_DISTANCE_ACROSS;
}

/* Indices are masked, not just compared: a BPF verifier loses sight of a comparison. */
static inline struct cw_domain *domain_at(struct cw_sys *sys, u32 i)
{
	return i == CW_NONE ? NULL : &sys->domain[i & (CW_MAX_DOMAINS - 1)];
}

static inline struct cw_group *group_at(struct cw_sys *sys, u32 i)
{
	return i == CW_NONE ? NULL : &sys->group[i & (CW_MAX_GROUPS - 1)];
}

/* The index of domain `level` of `cpu` in cw_sys.domain; CW_NONE above its top. */
CW_GLOBAL u32 cpu_domain_index(const struct cw_sys *sys CW_NONNULL, s32 cpu, u32 level)
{
	if (level >= CW_MAX_LEVELS || level >= sys->cpu[cpu & CW_CPU_MASK].nr_sd)
		return CW_NONE;
	return sys->cpu_sd[cpu & CW_CPU_MASK][level].domain;
}

/* Domain `level` of `cpu`, counted from the lowest; NULL above its top. */
static inline struct cw_domain *cpu_domain(struct cw_sys *sys, s32 cpu, u32 level)
{
	return domain_at(sys, cpu_domain_index(sys, cpu, level));
}

/* The domains of `cpu` from the lowest up; `level` numbers them. */
#define for_each_domain(sys, cpu, level, sd)                                   \
	for ((level) = unknown(0); ((sd) = cpu_domain(sys, cpu, level)) && may_loop(); (level)++)

/* The group of domain `level` that `cpu` itself is in, as an index in cw_sys.group. */
CW_GLOBAL u32 local_group_index(const struct cw_sys *sys CW_NONNULL, s32 cpu, u32 level)
{
	return level < CW_MAX_LEVELS ? sys->cpu_sd[cpu & CW_CPU_MASK][level].local_group : CW_NONE;
}

static inline struct cw_group *local_group(struct cw_sys *sys, s32 cpu, u32 level)
{
	return group_at(sys, local_group_index(sys, cpu, level));
}

/* The i-th group of `sd` in ring order from group `start`, as an index in cw_sys.group; CW_NONE past the last. */
CW_GLOBAL u32 group_index_in_ring(const struct cw_domain *sd CW_NONNULL, u32 start, u32 i)
{
	u32 offset = start - sd->first_group;

	if (i >= sd->nr_groups || i >= CW_MAX_CPUS)
		return CW_NONE;
	offset = (offset < sd->nr_groups ? offset : 0) + i;
	if (offset >= sd->nr_groups)
		offset -= sd->nr_groups;
	return sd->first_group + offset;
}

static inline struct cw_group *group_in_ring(struct cw_sys *sys, const struct cw_domain *sd,
					     u32 start, u32 i)
{
	return group_at(sys, group_index_in_ring(sd, start, i));
}

static inline struct cw_llc *llc_of(struct cw_sys *sys, s32 cpu)
{
	return &sys->llc[cpu_rq(sys, cpu)->llc & CW_CPU_MASK];
}

/* The highest domain of `cpu` whose CPUs share a cache; NULL if it has the cache for itself. */
static inline struct cw_domain *sd_llc(struct cw_sys *sys, s32 cpu)
{
	return domain_at(sys, llc_of(sys, cpu)->domain);
}

/* The domain to search where CPUs differ in capacity; NULL where they do not. */
static inline struct cw_domain *sd_asym_cpucapacity(struct cw_sys *sys, s32 cpu)
{
	return domain_at(sys, cpu_rq(sys, cpu)->asym_sd);
}

static inline bool cpus_share_cache(struct cw_sys *sys, s32 a, s32 b)
{
	return a == b || cpu_rq(sys, a)->llc == cpu_rq(sys, b)->llc;
}

/* The first CPU of the cluster of `cpu` where it has one, else of its last-level cache's domain. */
CW_GLOBAL s32 sd_share_id(struct cw_sys *sys CW_NONNULL, s32 cpu)
{
	struct cw_domain *sd, *shared = sd_llc(sys, cpu);
	u32 level;

	for_each_domain(sys, cpu, level, sd) {
		if (sd->flags & SD_CLUSTER) {
			shared = sd;
			break;
		}
	}
	return shared ? cpumask_first(sys, &shared->span) : cpu;
}

/* Same cluster where CPUs have one, else same last-level cache. */
static inline bool cpus_share_resources(struct cw_sys *sys, s32 a, s32 b)
{
	return a == b || sd_share_id(sys, a) == sd_share_id(sys, b);
}

/* The cluster of `cpu` as a group of its LLC domain; NULL where the LLC is not made of clusters. */
static inline struct cw_group *cluster_group(struct cw_sys *sys, s32 cpu)
{
	struct cw_domain *llc = sd_llc(sys, cpu), *sd;
	u32 level;

	for_each_domain(sys, cpu, level, sd) {
		struct cw_group *group;

		if (sd != llc)
			continue;
		group = local_group(sys, cpu, level);
		return group && group->flags & SD_CLUSTER ? group : NULL;
	}
	return NULL;
}

#endif /* CW_TOPOLOGY_H */
