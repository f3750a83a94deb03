/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types and sched_ext's interface, included before the policy.
 *
 * The policy uses the kernel's names. vmlinux.h has the enumerators of the kernel that
 * it was generated from, and their values are not always the policy's. From here on,
 * these names are the policy's own.
 */
#ifndef CW_SCX_BPF_H
#define CW_SCX_BPF_H

#include <scx/common.bpf.h>
#include <bpf_experimental.h>

#define SD_BALANCE_NEWIDLE CW_SD_BALANCE_NEWIDLE
#define SD_BALANCE_EXEC CW_SD_BALANCE_EXEC
#define SD_BALANCE_FORK CW_SD_BALANCE_FORK
#define SD_BALANCE_WAKE CW_SD_BALANCE_WAKE
#define SD_WAKE_AFFINE CW_SD_WAKE_AFFINE
#define SD_ASYM_CPUCAPACITY CW_SD_ASYM_CPUCAPACITY
#define SD_ASYM_CPUCAPACITY_FULL CW_SD_ASYM_CPUCAPACITY_FULL
#define SD_SHARE_CPUCAPACITY CW_SD_SHARE_CPUCAPACITY
#define SD_CLUSTER CW_SD_CLUSTER
#define SD_SHARE_LLC CW_SD_SHARE_LLC
#define SD_SERIALIZE CW_SD_SERIALIZE
#define SD_ASYM_PACKING CW_SD_ASYM_PACKING
#define SD_PREFER_SIBLING CW_SD_PREFER_SIBLING
#define SD_NUMA CW_SD_NUMA
#define group_type cw_group_type
#define group_has_spare cw_group_has_spare
#define group_fully_busy cw_group_fully_busy
#define group_misfit_task cw_group_misfit_task
#define group_smt_balance cw_group_smt_balance
#define group_asym_packing cw_group_asym_packing
#define group_imbalanced cw_group_imbalanced
#define group_llc_balance cw_group_llc_balance
#define group_overloaded cw_group_overloaded
#define ASYM_IDLE_THREAD_FITS CW_ASYM_IDLE_THREAD_FITS
#define ASYM_IDLE_THREAD_MISFIT CW_ASYM_IDLE_THREAD_MISFIT

#endif /* CW_SCX_BPF_H */
