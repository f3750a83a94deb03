/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asymmetric packing: in domains with SD_ASYM_PACKING, tasks prefer some CPUs to
 * others. The preference is the kernel's default, an arch_asym_cpu_priority() that no
 * architecture overrides: the lower the number, the better the CPU.
 */
#ifndef CW_ASYM_PACKING_H
#define CW_ASYM_PACKING_H

#include "mask.h"
#include "types.h"
#include "util.h"

/* Is `a` better to run on than `b`? */
static inline bool sched_asym_prefer(s32 a, s32 b)
{
	return a < b;
}

static inline s32 asym_prefer_cpu(struct cw_sys *sys, const struct cw_group *group)
{
	return cpumask_first(sys, &group->span);
}

/* Does the preference count for `cpu`? Between cores only if its whole core is idle. */
static inline bool sched_use_asym_prio(struct cw_sys *sys, const struct cw_domain *sd,
				       s32 cpu)
{
	if (!(sd->flags & SD_ASYM_PACKING))
		return false;
	if (!sys->smt_present || sd->flags & SD_SHARE_CPUCAPACITY)
		return true;
	return is_core_idle(sys, cpu);
}

/* Should work move to `dst` because it is better than `src`? */
static inline bool sched_asym(struct cw_sys *sys, const struct cw_domain *sd, s32 dst,
			      s32 src)
{
	return sched_use_asym_prio(sys, sd, dst) && sched_asym_prefer(dst, src);
}

#endif /* CW_ASYM_PACKING_H */
