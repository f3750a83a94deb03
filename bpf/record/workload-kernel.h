/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel structures that only the programs of a workload read, as in common/kernel.h. */
#ifndef CW_WORKLOAD_KERNEL_H
#define CW_WORKLOAD_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct inode {
	unsigned short i_mode;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct socket {
	struct file *file;
};

struct sk_buff_head {
	u32 qlen;
};

struct sock {
	struct socket *sk_socket;
	struct sk_buff_head sk_receive_queue;
};

struct mm_struct;

struct kernfs_node___work {
	const char *name;
};

struct cgroup___work {
	struct kernfs_node___work *kn;
};

struct cgroup_subsys_state {
	struct cgroup___work *cgroup;
};

struct autogroup {
	unsigned long id;
};

struct cfs_bandwidth {
	s64 period;
	u64 quota;
};

struct task_group {
	struct cgroup_subsys_state css;
	unsigned long shares;
	struct task_group *parent;
	struct autogroup *autogroup;
	struct cfs_bandwidth cfs_bandwidth;
};

struct task_struct___work {
	struct task_group *sched_task_group;
	struct files_struct *files;
	struct mm_struct *mm;
	struct cpumask cpus_mask;
};

#ifdef __TARGET_ARCH_arm64
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#define SYSCALL_NUMBER(regs) ((u64)(u32)BPF_CORE_READ(regs, syscallno))
#define SYSCALL_FIRST(regs) BPF_CORE_READ(regs, orig_x0)
#define SYSCALL_SECOND(regs) BPF_CORE_READ(regs, regs[1])
#else
struct pt_regs {
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};
#define SYSCALL_NUMBER(regs) BPF_CORE_READ(regs, orig_ax)
#define SYSCALL_FIRST(regs) BPF_CORE_READ(regs, di)
#define SYSCALL_SECOND(regs) BPF_CORE_READ(regs, si)
#endif

#pragma clang attribute pop

#endif
